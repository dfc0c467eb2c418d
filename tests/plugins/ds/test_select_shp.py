"""The command select-shp, from zarr to zarr."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from moraine_core import UsageError, Workers
from moraine_core.errors import LayoutError
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_ds.select_shp import select_shp
from moraine_ds.shp_test import shp_test


def run(folder, pvalue, stored, **options):
    """Write p values in chunks as given, run the command, and return what it wrote."""
    path = write_array(folder / "pvalue.zarr", pvalue, stored)
    outputs = {name: str(folder / f"{name}.zarr") for name in ("is_shp", "shp_num")}
    select_shp(pvalue=path, **outputs, workers=Workers(n_workers=2), fresh=True, **options)
    return [read_array(path) for path in outputs.values()]


@pytest.fixture
def pvalue():
    """Return p values, nan among them, and some that are alpha itself."""
    values = np.random.default_rng(1).random((11, 13, 3, 5), dtype=np.float32)
    values[values < 0.1] = nan
    values[3, 4] = nan
    values[2, :, 1, 1] = 0.3
    return values


def test_at_least_alpha_is_homogeneous_and_nan_is_not(tmp_path, pvalue):
    is_shp, shp_num = run(tmp_path, pvalue, (4, 5, 3, 5), alpha=0.3)
    expected = [[[[p >= np.float32(0.3) for p in row] for row in window] for window in line] for line in pvalue]
    np.testing.assert_array_equal(is_shp, expected)
    np.testing.assert_array_equal(shp_num, np.sum(expected, axis=(2, 3)))
    assert (is_shp.dtype, shp_num.dtype) == (bool, np.int32)
    assert is_shp[2, :, 1, 1].all()
    assert shp_num[3, 4] == 0


def test_the_result_depends_neither_on_chunks_nor_on_how_windows_are_stored(tmp_path, pvalue):
    expected = run(tmp_path, pvalue, pvalue.shape)
    for stored, chunks in (((4, 5, 3, 5), None), ((4, 5, 1, 2), None), ((4, 5, 3, 5), (3, -1))):
        for one, other in zip(run(tmp_path, pvalue, stored, chunks=chunks), expected, strict=True):
            np.testing.assert_array_equal(one, other)
        assert open_array(tmp_path / "is_shp.zarr").chunks == (*((3, 13) if chunks else (4, 5)), 3, 5)


def test_points_have_windows_as_pixels_have(tmp_path, pvalue):
    expected = run(tmp_path, pvalue, pvalue.shape)
    found = run(tmp_path, pvalue.reshape(-1, 3, 5), (20, 3, 5))
    np.testing.assert_array_equal(found[0], expected[0].reshape(-1, 3, 5))
    np.testing.assert_array_equal(found[1], expected[1].ravel())
    assert open_array(tmp_path / "shp_num.zarr").chunks == (20,)


@pytest.mark.parametrize("alpha", [0.02, 0.05, 0.2])
def test_it_chooses_what_the_test_chooses(tmp_path, alpha):
    stack = speckle((12, 10, 17), seed=2)
    stack[:, 5:] *= 2
    stack[3, 4, :5] = 0
    paths = {name: str(tmp_path / f"{name}.zarr") for name in ("is_shp", "shp_num", "pvalue")}
    rslc = write_array(tmp_path / "rslc.zarr", stack, (5, 10, 1))
    shp_test(rslc=rslc, **paths, az_half_win=1, r_half_win=2, alpha=alpha, workers=Workers(n_workers=1))
    is_shp, shp_num = run(tmp_path / "chosen", read_array(paths["pvalue"]), (5, 10, 3, 5), alpha=alpha)
    np.testing.assert_array_equal(is_shp, read_array(paths["is_shp"]))
    np.testing.assert_array_equal(shp_num, read_array(paths["shp_num"]))


def test_no_points_give_empty_outputs(tmp_path):
    is_shp, shp_num = run(tmp_path, np.zeros((0, 3, 5), np.float32), (10, 3, 5))
    assert (is_shp.shape, shp_num.shape) == ((0, 3, 5), (0,))


@pytest.mark.parametrize("alpha", [0, 1, nan])
def test_a_level_that_is_none_is_refused(tmp_path, pvalue, alpha):
    with pytest.raises(UsageError, match=r"select-shp: alpha is .*; expected a level between 0 and 1"):
        run(tmp_path, pvalue, pvalue.shape, alpha=alpha)
    assert not (tmp_path / "is_shp.zarr").exists()


@pytest.mark.parametrize("values", [np.ones((3, 4), np.float32), np.ones((3, 4, 3, 5), np.float64)])
def test_what_are_no_windows_is_refused(tmp_path, values):
    with pytest.raises(LayoutError, match="select-shp: pvalue"):
        run(tmp_path, values, values.shape)
