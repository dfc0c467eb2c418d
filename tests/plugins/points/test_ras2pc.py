"""ras2pc: against plain indexing, and reading no more of a raster than holds points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from moraine_core import MoraineError, Workers
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_points import kernels
from moraine_points.ras2pc import ras2pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHAPE = (23, 17)
"""Lines and width of the rasters."""


def points(n_points: int = 40) -> NDArray[np.int32]:
    """Return different points in random order."""
    pixels = np.random.default_rng(n_points).permutation(SHAPE[0] * SHAPE[1])[:n_points]
    return np.stack(np.divmod(pixels, SHAPE[1]), axis=1).astype(np.int32)


def raster(dtype: str, *trailing: int) -> NDArray[Any]:
    """Return a raster whose every value is another one, as far as the dtype can tell."""
    values = np.arange(np.prod((*SHAPE, *trailing))).reshape(*SHAPE, *trailing)
    return (values % 3 == 0) if dtype == "bool" else values.astype(dtype)


def take(
    folder: Path,
    idx: NDArray[Any],
    *rasters: tuple[NDArray[Any], tuple[int, ...]],
    block: int = 7,
    chunks: int | None = None,
) -> list[NDArray[Any]]:
    """Take the values of rasters, given with their chunks, at points."""
    outputs = [str(folder / f"pc{k}.zarr") for k in range(len(rasters))]
    ras2pc(
        idx=write_array(folder / "idx.zarr", idx, chunks=(block, *idx.shape[1:])),
        ras=[write_array(folder / f"ras{k}.zarr", values, sizes) for k, (values, sizes) in enumerate(rasters)],
        pc=outputs,
        chunks=chunks,
        workers=Workers(n_workers=2),
    )
    return [read_array(path) for path in outputs]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int16", "uint8", "int64", "bool"])
def test_values_are_those_of_plain_indexing(tmp_path: Path, dtype: str) -> None:
    gix = points()
    plane, stack = raster(dtype), raster(dtype, 3)
    results = take(tmp_path, gix, (plane, (5, 4)), (stack, (9, 17, 1)))
    for result, values in zip(results, (plane, stack), strict=True):
        assert result.dtype == values.dtype
        assert result.tolist() == [values[i, j].tolist() for i, j in gix.tolist()]


@pytest.mark.parametrize("chunks", [(1, 1), (23, 17), (30, 40), (6, 5)])
@pytest.mark.parametrize("trailing", [1, 2, 5])
def test_rasters_in_any_chunks_give_the_same_values(tmp_path: Path, chunks: tuple[int, int], trailing: int) -> None:
    gix, stack = points(), raster("float32", 4)
    (result,) = take(tmp_path, gix, (stack, (*chunks, trailing)))
    np.testing.assert_array_equal(result, stack[gix[:, 0], gix[:, 1]])
    assert open_array(tmp_path / "pc0.zarr").chunks == (7, 1)


def test_windows_are_kept_whole_and_two_more_axes_of_other_kind_are_cut(tmp_path: Path) -> None:
    gix, stack = points(), raster("float32", 3, 5)
    results = take(tmp_path, gix, (stack, (6, 5, 3, 5)), (stack, (6, 5, 1, 1)), (stack, (6, 5, 3, 2)))
    for k, chunks in enumerate([(7, 3, 5), (7, 1, 1), (7, 1, 1)]):
        np.testing.assert_array_equal(results[k], stack[gix[:, 0], gix[:, 1]])
        assert open_array(tmp_path / f"pc{k}.zarr").chunks == chunks


def test_a_hix_is_decoded_with_the_size_of_the_raster(tmp_path: Path) -> None:
    gix, plane = points(), raster("float32")
    (result,) = take(tmp_path, kernels.pc_hix(gix, SHAPE), (plane, (6, 5)))
    np.testing.assert_array_equal(result, plane[gix[:, 0], gix[:, 1]])


def test_a_hix_of_another_raster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"ras2pc: idx .*idx\.zarr: row 1 is 1023, .*outside the raster \(23, 17\)"):
        take(tmp_path, np.array([0, 1023]), (raster("float32"), (6, 5)))


def test_missing_values_stay_missing(tmp_path: Path) -> None:
    stack = speckle((*SHAPE, 2))
    stack[2, 3, 1] = np.nan
    (result,) = take(tmp_path, np.array([[2, 3], [2, 4]], np.int32), (stack, (6, 5, 1)))
    assert np.isnan(result).tolist() == [[False, True], [False, False]]


def test_a_point_that_occurs_twice_has_its_value_twice(tmp_path: Path) -> None:
    plane = raster("float32")
    (result,) = take(tmp_path, np.array([[2, 3], [9, 9], [2, 3]], np.int32), (plane, (6, 5)))
    assert result.tolist() == [plane[2, 3], plane[9, 9], plane[2, 3]]


@pytest.mark.parametrize("idx", [np.zeros((0, 2), np.int32), np.zeros(0, np.int64)])
def test_no_points_have_no_values(tmp_path: Path, idx: NDArray[Any]) -> None:
    stack = raster("float32", 3, 5)
    results = take(tmp_path, idx, (raster("bool"), (6, 5)), (raster("int16", 3), (6, 5, 1)), (stack, (6, 5, 3, 5)))
    assert [result.shape for result in results] == [(0,), (0, 3), (0, 3, 5)]


def test_chunks_of_points_are_those_of_the_index_unless_asked_for(tmp_path: Path) -> None:
    gix, plane, windows = points(), raster("float32"), raster("float32", 3, 5)
    for chunks in (1, 16, 1000, -1):
        results = take(tmp_path, gix, (plane, (6, 5)), (windows, (6, 5, 3, 5)), chunks=chunks)
        for result, values in zip(results, (plane, windows), strict=True):
            np.testing.assert_array_equal(result, values[gix[:, 0], gix[:, 1]])
        assert open_array(tmp_path / "pc0.zarr").chunks == (40 if chunks == -1 else chunks,)


@pytest.mark.parametrize("trailing", [(), (2,), (3, 5)])
def test_only_chunks_that_hold_points_are_read(tmp_path: Path, trailing: tuple[int, ...]) -> None:
    """Chunks without points are replaced by garbage, which cannot be decoded."""
    values, chunks = raster("float32", *trailing), (6, 5, *((1,) if len(trailing) == 1 else trailing))
    path = Path(write_array(tmp_path / "ras.zarr", values, chunks))
    gix = np.array([[0, 0], [22, 16], [7, 11], [8, 12]], np.int32)
    needed = {(0, 0), (3, 3), (1, 2)}
    spoilt = 0
    for file in (path / "c").rglob("*"):
        if file.is_file() and tuple(int(part) for part in file.relative_to(path / "c").parts[:2]) not in needed:
            file.write_bytes(b"garbage")
            spoilt += 1
    assert spoilt >= 13
    with pytest.raises((ValueError, RuntimeError)):
        read_array(path)
    ras2pc(idx=write_array(tmp_path / "gix.zarr", gix), ras=str(path), pc=str(tmp_path / "pc.zarr"))
    np.testing.assert_array_equal(read_array(tmp_path / "pc.zarr"), values[gix[:, 0], gix[:, 1]])


def test_rasters_of_one_line_or_one_pixel_are_rasters(tmp_path: Path) -> None:
    line = np.arange(9, dtype=np.float32)[None]
    assert take(tmp_path, np.array([[0, 7], [0, 2]], np.int32), (line, (1, 4)))[0].tolist() == [7, 2]
    assert take(tmp_path, np.array([0]), (line[:, 4:5], (1, 1)))[0].tolist() == [4]


@pytest.mark.parametrize("bad", [(-1, 0), (0, -1), (23, 0), (0, 17)])
def test_a_point_outside_the_raster_is_refused_and_never_wrapped(tmp_path: Path, bad: tuple[int, int]) -> None:
    gix = np.array([(1, 1), bad], np.int32)
    with pytest.raises(MoraineError, match=rf"ras2pc: idx .*row 1 is .*\({bad[0]}, {bad[1]}\), outside the raster"):
        take(tmp_path, gix, (raster("float32"), (6, 5)))
    assert not (tmp_path / "pc0.zarr").exists()


def test_rasters_of_different_sizes_are_refused_with_the_odd_one(tmp_path: Path) -> None:
    """A34: sizes are compared before work."""
    other = np.zeros((23, 18), np.float32)
    with pytest.raises(MoraineError, match=r"ras .*ras1\.zarr has shape \(23, 18\); expected width 17, as in .*ras0"):
        take(tmp_path, points(), (raster("float32"), (6, 5)), (other, (6, 5)))


def test_lists_of_different_lengths_are_refused(tmp_path: Path) -> None:
    idx = write_array(tmp_path / "gix.zarr", points())
    ras = write_array(tmp_path / "ras.zarr", raster("float32"))
    with pytest.raises(MoraineError, match="ras2pc: ras has 1 arrays and pc 2; expected as many"):
        ras2pc(idx=idx, ras=ras, pc=[str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr")])


def test_an_array_without_two_axes_is_no_raster(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"ras2pc: ras .*ras0\.zarr has shape \(9,\); expected \(nlines, width"):
        take(tmp_path, points(), (np.zeros(9), (3,)))


def test_a_raster_without_pixels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"ras2pc: ras .*ras0\.zarr has shape \(0, 4\); expected at least one pixel"):
        take(tmp_path, np.zeros((0, 2), np.int32), (np.zeros((0, 4)), (3, 3)))
