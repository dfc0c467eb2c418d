"""The command shp-test, from zarr to zarr."""

from __future__ import annotations

from math import nan
from pathlib import Path

import numpy as np
import pytest
import zarr

from moraine_core import UsageError, Workers
from moraine_core.errors import LayoutError
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_ds.homogeneity import kernels
from moraine_ds.homogeneity.ks import significance
from moraine_ds.shp_test import PADDING, shp_test

ONE = Workers(n_workers=1)
HALF = {"az_half_win": 2, "r_half_win": 3}
NAMES = ("is_shp", "shp_num", "pvalue")


def call(folder, stack, stored, *, workers=ONE, with_pvalue=True, **options):
    """Write a stack in chunks as given, run the command, and return the record of the run."""
    rslc = write_array(folder / "rslc.zarr", stack, stored)
    outputs = {name: str(folder / f"{name}.zarr") for name in NAMES[: 3 if with_pvalue else 2]}
    return shp_test(**{"rslc": rslc, **outputs, **HALF, "workers": workers, "fresh": True, **options})


def run(folder, stack, stored, *, with_pvalue=True, **options):
    """Run the command and return what it wrote."""
    call(folder, stack, stored, with_pvalue=with_pvalue, **options)
    return [read_array(folder / f"{name}.zarr") for name in NAMES[: 3 if with_pvalue else 2]]


@pytest.fixture
def stack():
    """Return two fields of speckle in images of different brightness, with missing samples."""
    values = speckle((23, 31, 9), seed=1) * np.geomspace(0.3, 3, 9).astype(np.float32)
    values[:, 17:] *= 3
    values[np.random.default_rng(2).random(values.shape) < 0.05] = nan
    values[4, 5] = 0
    return values


@pytest.mark.parametrize("options", [{}, {"alpha": 0.3}, {"min_images": 9}, {"method": "ks"}])
def test_the_outputs_are_those_of_the_array_function(tmp_path, stack, options):
    expected = kernels.shp_test(
        stack, **HALF, with_pvalue=True, **{name: one for name, one in options.items() if name != "method"}
    )
    for found, one in zip(run(tmp_path, stack, (12, 16, 1), **options), expected, strict=True):
        assert found.dtype == one.dtype
        np.testing.assert_array_equal(found, one)
    assert expected[1][4, 5] == 0
    for found, one in zip(run(tmp_path, stack, (12, 16, 1), with_pvalue=False, **options), expected[:2], strict=True):
        np.testing.assert_array_equal(found, one)


def test_windows_are_never_cut_and_blocks_are_those_of_the_stack_or_as_asked_for(tmp_path, stack):
    run(tmp_path, stack, (12, 16, 1))
    assert open_array(tmp_path / "is_shp.zarr").chunks == (12, 16, 5, 7)
    assert open_array(tmp_path / "pvalue.zarr").chunks == (12, 16, 5, 7)
    assert open_array(tmp_path / "shp_num.zarr").chunks == (12, 16)
    run(tmp_path, stack, (12, 16, 1), chunks=(6, -1))
    assert open_array(tmp_path / "is_shp.zarr").chunks == (6, 31, 5, 7)
    assert open_array(tmp_path / "shp_num.zarr").chunks == (6, 31)


@pytest.mark.parametrize("calibrate", [False, True])
def test_the_result_depends_neither_on_chunks_nor_on_workers(tmp_path, stack, calibrate):
    """A10: blocks narrower than the window too."""
    whole = run(tmp_path, stack, (23, 31, 9), calibrate=calibrate)
    for stored, chunks in (((12, 16, 1), None), ((7, 5, 3), (9, 2))):
        workers = Workers(n_workers=3)
        for one, other in zip(
            run(tmp_path, stack, stored, calibrate=calibrate, chunks=chunks, workers=workers), whole, strict=True
        ):
            np.testing.assert_array_equal(one, other, err_msg=f"{stored} {chunks}")


def test_threads_share_the_kernels_without_harm(tmp_path, stack):
    """A43: 8 threads, many tasks, kernels that start no threads of their own."""
    whole = run(tmp_path, stack, (23, 31, 9))
    found = run(tmp_path, stack, (23, 31, 9), chunks=(2, 2), workers=Workers(n_workers=8))
    for one, other in zip(found, whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_calibration_takes_out_the_brightness_of_images(tmp_path, stack):
    brighter = stack * np.array([1, 1, 50, 1, 1, 0.02, 1, 1, 1], np.float32)
    plain = run(tmp_path, stack, (12, 16, 1), calibrate=True)[1]
    np.testing.assert_array_equal(run(tmp_path, brighter, (12, 16, 1), calibrate=True)[1], plain)
    assert not np.array_equal(run(tmp_path, brighter, (12, 16, 1))[1], run(tmp_path, stack, (12, 16, 1))[1])


def test_calibration_divides_each_image_by_its_mean(tmp_path, stack):
    amplitude = np.abs(stack.astype(np.complex128))
    amplitude[amplitude == 0] = nan
    gain = 1 / np.nanmean(amplitude, axis=(0, 1))
    expected = kernels.shp_test(stack, **HALF, gain=list(gain))
    np.testing.assert_array_equal(run(tmp_path, stack, (12, 16, 1), calibrate=True)[1], expected[1])


def test_an_image_without_a_valid_sample_is_left_out(tmp_path, stack):
    stack[..., 3] = 0
    for calibrate in (False, True):
        found = run(tmp_path, stack, (12, 16, 1), calibrate=calibrate, min_images=5)
        expected = run(tmp_path, np.delete(stack, 3, axis=-1), (12, 16, 1), calibrate=calibrate, min_images=5)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_real_images_have_homogeneous_neighbors(tmp_path, real_data):
    """Ten complex images of 156 real scatterers, laid side by side: the test is symmetric and the counts add up."""
    source = zarr.open_array(str(real_data / "s1-amsterdam-ps-complex" / "stm_sparse.zarr" / "complex"), mode="r")
    stack = np.asarray(source[...], np.complex64).reshape(12, 13, 10)
    is_shp, shp_num, p = run(tmp_path, stack, (12, 13, 1))
    assert np.argwhere(shp_num == 0).tolist() == [[0, 3], [2, 5]]  # all samples of points 3 and 31 are zero
    np.testing.assert_array_equal(shp_num, is_shp.sum(axis=(2, 3)))
    np.testing.assert_array_equal(is_shp[1:, :, 1, 3], is_shp[:-1, :, 3, 3])
    np.testing.assert_array_equal(is_shp, p >= np.float32(0.05))


def test_an_empty_raster_gives_empty_outputs(tmp_path):
    is_shp, shp_num, p = run(tmp_path, np.zeros((0, 4, 5), np.complex64), (10, 4, 1))
    assert is_shp.shape == p.shape == (0, 4, 5, 7)
    assert shp_num.shape == (0, 4)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"az_half_win": -1}, r"az_half_win and r_half_win are \(-1, 3\); expected 0 or more"),
        ({"alpha": 0}, "alpha is 0.0; expected a level between 0 and 1"),
        ({"alpha": 1.5}, "alpha is 1.5; expected a level between 0 and 1"),
        ({"alpha": nan}, "alpha is nan; expected a level between 0 and 1"),
        ({"min_images": 2}, "min_images is 2; expected 3 to 9, the images of rslc"),
        ({"min_images": 10}, "min_images is 10; expected 3 to 9, the images of rslc"),
        ({"alpha": 1e-9}, "alpha is 1e-09, .* all pixels would be homogeneous; expected more than"),
        ({"alpha": 0.03, "min_images": 3}, "alpha is 0.03, which the p value of 3 images is never below"),
        ({"method": "ad"}, "method .*ad"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_written(tmp_path, stack, options, sentence):
    with pytest.raises(UsageError, match=f"shp-test: {sentence}"):
        run(tmp_path, stack, (12, 16, 1), **options)
    assert {path.name for path in Path(tmp_path).iterdir()} == {"rslc.zarr"}


@pytest.mark.parametrize("n_images", [0, 1, 2])
def test_fewer_than_three_images_are_refused(tmp_path, n_images):
    with pytest.raises(UsageError, match=f"shp-test: rslc .*rslc.zarr has {n_images} images; expected at least 3"):
        run(tmp_path, np.ones((3, 4, n_images), np.complex64), (3, 4, 1))


@pytest.mark.parametrize("values", [np.ones((3, 4, 5), np.float32), np.ones((5, 4), np.complex64)])
def test_what_is_no_stack_is_refused(tmp_path, values):
    with pytest.raises(LayoutError, match="shp-test: rslc"):
        run(tmp_path, values, values.shape)


def test_the_least_p_value_decides_which_alpha_is_refused():
    """All samples of one series above all of the other is the most that can be."""
    assert significance(9, 3, 3) == pytest.approx(0.0326, abs=1e-4)


def test_a_task_holds_amplitudes_but_not_the_stack(tmp_path):
    """Bytes of a task, as planned: 4 per sample, 125 per pixel for the results, twice as many again to encode them."""
    rslc = str(tmp_path / "rslc.zarr")
    zarr.create_array(rslc, shape=(2000, 2000, 92), chunks=(1000, 1000, 1), dtype="complex64")
    record = shp_test(
        rslc=rslc,
        is_shp=str(tmp_path / "is_shp.zarr"),
        shp_num=str(tmp_path / "shp_num.zarr"),
        az_half_win=5,
        r_half_win=5,
        dry_run=True,
    )
    assert record.plans[0]["task_bytes"] < 1.05 * 1000 * 1000 * (92 * 4 + 3 * 125 + 2 * 8)


@pytest.mark.parametrize("width", [1, 15, 16, 17, 32, 33, 48, 49, 1000])
def test_series_are_padded_by_no_more_than_planned(width):
    stride = kernels.stride_of(width)
    assert width <= stride <= width + PADDING
    assert stride % 32 == 16
