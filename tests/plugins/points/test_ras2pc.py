"""ras2pc: against plain indexing, and reading no more of a raster than holds points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr

from moraine_core import MoraineError, Plan, Workers, hookimpl
from moraine_core.run import run_command
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_core.testing.interrupt import observed_by
from moraine_points import kernels, layouts
from moraine_points.ras2pc import ras2pc

if TYPE_CHECKING:
    from collections import Counter

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


def test_several_window_arrays_of_different_chunks_are_taken_in_one_call(tmp_path: Path) -> None:
    gix = points()
    cases = [
        (raster("bool", 3, 5), (6, 5, 3, 5)),
        (raster("float64", 5, 3), (23, 2, 5, 3)),
        (raster("complex64", 1, 7), (6, 5, 1, 7)),
        (raster("int16", 2), (6, 5, 1)),
    ]
    for result, (values, _) in zip(take(tmp_path, gix, *cases, block=3), cases, strict=True):
        assert result.dtype == values.dtype
        np.testing.assert_array_equal(result, values[gix[:, 0], gix[:, 1]])
    assert not list(tmp_path.glob(".*"))


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


@pytest.mark.parametrize(
    ("trailing", "chunks", "images"),
    [((), (), [()]), ((4,), (1,), [(0,), (1,), (2,), (3,)]), ((4,), (4,), [(0,)]), ((3, 5), (3, 5), [(0, 0)])],
    ids=["raster", "one image a chunk", "all images in a chunk", "windows"],
)
def test_a_chunk_that_holds_points_is_read_once_and_no_other(
    tmp_path: Path,
    chunk_reads: dict[str, Counter[str]],
    trailing: tuple[int, ...],
    chunks: tuple[int, ...],
    images: list[tuple[int, ...]],
) -> None:
    """Points of three chunks, in no order, in blocks of one point: each block has points of any of them."""
    values = raster("float32", *trailing)
    pixels = [(i, j) for i in (0, 3, 5) for j in (1, 4)] + [(7, 11), (8, 12)] + [(20, 15), (22, 16)]
    gix = np.random.default_rng(1).permutation(np.array(pixels, np.int32))
    (result,) = take(tmp_path, gix, (values, (6, 5, *chunks)), block=1)
    np.testing.assert_array_equal(result, values[gix[:, 0], gix[:, 1]])
    expected = {"/".join(map(str, (*place, *image))): 1 for place in ((0, 0), (1, 2), (3, 3)) for image in images}
    assert chunk_reads["ras0.zarr"] == expected


@pytest.mark.parametrize("trailing", [(), (4,), (3, 5)])
def test_of_shards_only_the_chunks_inside_that_hold_points_are_decoded(
    tmp_path: Path, trailing: tuple[int, ...]
) -> None:
    """Bytes of other chunks inside the shards are garbage, which cannot be decoded."""
    values = raster("float32", *trailing)
    path = tmp_path / "ras.zarr"
    inner = (3, 4, *((1,) if len(trailing) == 1 else trailing))
    shards = (6, 8, *((2,) if len(trailing) == 1 else trailing))
    array = zarr.create_array(str(path), shape=values.shape, chunks=inner, shards=shards, dtype="float32")
    array[...] = values
    gix = np.array([[22, 16], [0, 0], [7, 11], [2, 3]], np.int32)
    chunks_with_points = {tuple(point // inner[:2]) for point in gix}
    spoilt = sum(spoil_shard(file, path, shards, inner, chunks_with_points) for file in shard_files(path))
    assert spoilt >= 30
    with pytest.raises((ValueError, RuntimeError)):
        read_array(path)
    ras2pc(idx=write_array(tmp_path / "gix.zarr", gix, (1, 2)), ras=str(path), pc=str(tmp_path / "pc.zarr"))
    np.testing.assert_array_equal(read_array(tmp_path / "pc.zarr"), values[gix[:, 0], gix[:, 1]])


def shard_files(path: Path) -> list[Path]:
    return [file for file in (path / "c").rglob("*") if file.is_file()]


def spoil_shard(file: Path, path: Path, shards: tuple[int, ...], inner: tuple[int, ...], keep: set[Any]) -> int:
    """Overwrite the chunks of one shard that are not kept; return how many.

    A shard ends with its index: offset and size of each chunk inside, uint64, in row-major order, and a checksum.
    """
    per_shard = [shard // chunk for shard, chunk in zip(shards, inner, strict=True)]
    place = [int(part) for part in file.relative_to(path / "c").parts]
    content = bytearray(file.read_bytes())
    n_chunks = int(np.prod(per_shard))
    index = np.frombuffer(bytes(content[-16 * n_chunks - 4 : -4]), "<u8").reshape(*per_shard, 2)
    spoilt = 0
    for chunk in np.ndindex(*per_shard):
        offset, size = index[chunk].tolist()
        where = tuple(p * n + c for p, n, c in zip(place, per_shard, chunk, strict=True))
        if offset != 2**64 - 1 and where[:2] not in keep:
            content[offset : offset + size] = b"x" * size
            spoilt += 1
    file.write_bytes(content)
    return spoilt


def test_images_that_are_stored_together_are_taken_together_only_as_far_as_they_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their values at all points are in memory at once."""
    gix, stack = points(40), raster("complex64", 6)
    for most, tasks in ((2**26, 2), (2 * 40 * 8, 3), (1, 6)):
        monkeypatch.setattr(layouts, "VALUES_BYTES", most)
        (result,) = take(tmp_path, gix, (stack, (6, 5, 4)))
        np.testing.assert_array_equal(result, stack[gix[:, 0], gix[:, 1]])
        record = ras2pc(
            idx=str(tmp_path / "idx.zarr"), ras=str(tmp_path / "ras0.zarr"), pc=str(tmp_path / "x.zarr"), dry_run=True
        )
        assert record.plans[0]["tasks"] == tasks


def test_the_memory_of_a_task_does_not_grow_with_the_window_array(tmp_path: Path) -> None:
    """A block of points and a raster chunk are in memory, never all points."""
    shape = (60, 50)
    windows = np.arange(60 * 50 * 15, dtype=np.float32).reshape(*shape, 3, 5)
    gix = np.random.default_rng(2).permutation(np.argwhere(np.ones(shape, bool))).astype(np.int32)
    noted = []

    class Notes:
        @hookimpl
        def moraine_plan_ready(self, plan: Plan) -> None:
            noted.append(plan)

    ras = write_array(tmp_path / "ras.zarr", windows, (6, 5, 3, 5))
    arguments = {"idx": write_array(tmp_path / "gix.zarr", gix, (100, 2)), "ras": ras, "pc": str(tmp_path / "pc.zarr")}
    run_command(ras2pc, arguments, host=observed_by(Notes()))
    np.testing.assert_array_equal(read_array(tmp_path / "pc.zarr"), windows[gix[:, 0], gix[:, 1]])
    _, spilling, ordering = noted
    assert len(spilling.tasks) == 100
    assert len(ordering.tasks) == 30
    per_point = 16  # what all tasks share
    assert max(plan.task_bytes for plan in noted) - per_point * len(gix) < 8 * 100 * 15 * 4


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
