"""pc-hix: the published indices, in blocks of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from moraine_core import MoraineError, Workers
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, write_array
from moraine_points import kernels
from moraine_points.pc_hix import pc_hix

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

TABLE = [[0, 3, 4, 5], [1, 2, 7, 6], [14, 13, 8, 9], [15, 12, 11, 10]]
"""Hilbert index of every pixel of a raster of 4 by 4."""


def index(folder: Path, gix: Any, shape: tuple[int, int], *, block: int = 3, **options: Any) -> NDArray[Any]:
    path = write_array(folder / "gix.zarr", np.asarray(gix).reshape(-1, 2), chunks=(block, 2))
    pc_hix(gix=path, hix=str(folder / "hix.zarr"), shape=shape, workers=Workers(n_workers=2), **options)
    return read_array(folder / "hix.zarr")


@pytest.mark.parametrize("chunks", [None, 1, 5, 100, -1])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint16"])
def test_every_pixel_has_the_index_of_the_table(tmp_path: Path, chunks: int | None, dtype: str) -> None:
    pixels = np.random.default_rng(1).permutation(np.indices((4, 4)).reshape(2, -1).T).astype(dtype)
    hix = index(tmp_path, pixels, (4, 4), chunks=chunks)
    assert hix.dtype == np.int64
    assert hix.tolist() == [TABLE[azimuth][range_] for azimuth, range_ in pixels.tolist()]


def test_the_index_depends_on_the_shape_of_the_raster(tmp_path: Path) -> None:
    gix = np.array([[0, 4159], [980, 0], [123, 456]], np.int32)
    assert index(tmp_path, gix, (981, 4160)).tolist() == [16778581, 349104, 94085]
    gix = np.array([[2499, 0], [1250, 917]], np.int32)
    assert index(tmp_path, gix, (2500, 1834)).tolist() == [15462415, 2070455]


def test_the_last_pixels_of_a_long_scene_have_an_index_of_their_own(tmp_path: Path) -> None:
    """A36: no overflow beyond 32767 lines."""
    gix = np.stack(np.divmod(np.arange(399_700, 400_000), 10), axis=1).astype(np.int32)
    hix = index(tmp_path, gix, (40_000, 10), block=70)
    assert len(set(hix.tolist())) == 300
    np.testing.assert_array_equal(kernels.pc_gix(hix, (40_000, 10)), gix)


def test_chunks_are_those_of_the_points_unless_asked_for(tmp_path: Path) -> None:
    index(tmp_path, np.zeros((7, 2), np.int32), (1, 1), block=3)
    assert open_array(tmp_path / "hix.zarr").chunks == (3,)
    index(tmp_path, np.zeros((7, 2), np.int32), (1, 1), block=3, chunks=5)
    assert open_array(tmp_path / "hix.zarr").chunks == (5,)


def test_a_gix_stored_column_by_column_is_read(tmp_path: Path) -> None:
    gix = write_array(tmp_path / "gix.zarr", np.array([[3, 0], [0, 3], [2, 2]], np.int32), chunks=(2, 1))
    pc_hix(gix=gix, hix=str(tmp_path / "hix.zarr"), shape=(4, 4))
    assert read_array(tmp_path / "hix.zarr").tolist() == [15, 5, 8]


def test_a_cloud_of_no_points_has_an_empty_index(tmp_path: Path) -> None:
    assert index(tmp_path, np.zeros((0, 2), np.int32), (4, 4)).shape == (0,)


@pytest.mark.parametrize("bad", [(-1, 0), (0, -1), (5, 0), (0, 7)])
def test_a_point_outside_the_raster_is_named_by_its_row_in_the_cloud(tmp_path: Path, bad: tuple[int, int]) -> None:
    gix = np.array([(0, 0)] * 4 + [bad], np.int32)
    with pytest.raises(ValueError, match=rf"gix\.zarr: row 4 is .*\({bad[0]}, {bad[1]}\), outside the raster \(5, 7\)"):
        index(tmp_path, gix, (5, 7), block=3)
    assert not (tmp_path / "hix.zarr").exists()


@pytest.mark.parametrize("shape", [(0, 5), (5, -1), (2**31 + 1, 5)])
def test_a_shape_that_is_no_raster_is_refused(tmp_path: Path, shape: tuple[int, int]) -> None:
    with pytest.raises(MoraineError, match=rf"pc-hix: shape is \({shape[0]}, {shape[1]}\); expected two sides"):
        index(tmp_path, np.zeros((1, 2), np.int32), shape)


@pytest.mark.parametrize("values", [np.zeros((3, 2), np.float32), np.zeros((3, 3), np.int32), np.zeros(3, np.int32)])
def test_what_is_not_a_gix_is_refused_with_its_path(tmp_path: Path, values: NDArray[Any]) -> None:
    path = write_array(tmp_path / "x.zarr", values)
    with pytest.raises(MoraineError, match=r"pc-hix: gix .*x\.zarr (is float32|has shape \(3)"):
        pc_hix(gix=path, hix=str(tmp_path / "hix.zarr"), shape=(5, 7))
