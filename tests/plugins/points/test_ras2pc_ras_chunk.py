"""ras2pc-ras-chunk: the worked example of the data conventions, and the arrays against plain loops over the points."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from moraine_core import MoraineError, Workers
from moraine_core.store import PROVENANCE, UNFINISHED, ZarrDir, describe, missing_chunks
from moraine_core.testing.data import read_array, write_array
from moraine_points import layouts
from moraine_points.ras2pc_ras_chunk import ras2pc_ras_chunk

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

    from numpy.typing import NDArray

EXAMPLE = np.array([(0, 0), (0, 4), (0, 6), (1, 1), (1, 5), (2, 2), (2, 3), (3, 0), (4, 6)], np.int32)
"""Points of the worked example, in a raster of 5 lines and 7 pixels."""

SHAPE = (23, 17)


def points(n_points: int = 60) -> NDArray[np.int32]:
    """Return different pixels in the order of the raster."""
    pixels = np.sort(np.random.default_rng(n_points).permutation(SHAPE[0] * SHAPE[1])[:n_points])
    return np.stack(np.divmod(pixels, SHAPE[1]), axis=1).astype(np.int32)


def raster(dtype: str, shape: tuple[int, int], *trailing: int) -> NDArray[Any]:
    """Return a raster whose every value is another one, as far as the dtype can tell."""
    values = np.arange(np.prod((*shape, *trailing))).reshape(*shape, *trailing)
    return (values % 3 == 0) if dtype == "bool" else values.astype(dtype)


def store(
    folder: Path,
    gix: NDArray[Any],
    *rasters: tuple[NDArray[Any], tuple[int, ...]],
    chunks: tuple[int, int] | None = None,
) -> tuple[list[dict[int, NDArray[Any]]], NDArray[Any]]:
    """Store values of rasters, given with their chunks, by raster chunk; return the arrays by number, and the key."""
    outputs = [folder / f"pc{k}" for k in range(len(rasters))]
    ras2pc_ras_chunk(
        gix=write_array(folder / "gix.zarr", gix, chunks=(7, 2)),
        ras=[write_array(folder / f"ras{k}.zarr", values, sizes) for k, (values, sizes) in enumerate(rasters)],
        pc=[str(path) for path in outputs],
        key=str(folder / "key.zarr"),
        chunks=chunks,
        workers=Workers(n_workers=2),
    )
    found = [{int(path.stem): read_array(path) for path in output.glob("*.zarr")} for output in outputs]
    return found, read_array(folder / "key.zarr")


def test_the_worked_example(tmp_path: Path) -> None:
    """Shape (5, 7), blocks (2, 3): numbers of chunks 0 1 2 0 1 3 4 3 8."""
    # a value says which of the points it is
    values = np.full((5, 7), -1.0, np.float32)
    values[EXAMPLE[:, 0], EXAMPLE[:, 1]] = np.arange(9)
    ((arrays,), key) = store(tmp_path, EXAMPLE, (values, (2, 3)))
    assert {number: array.tolist() for number, array in arrays.items()} == {
        0: [0, 3], 1: [1, 4], 2: [2], 3: [5, 7], 4: [6], 8: [8]
    }  # fmt: skip
    assert key.dtype == np.int64
    assert key.tolist() == [0, 2, 4, 1, 3, 5, 7, 6, 8]
    concatenated = np.concatenate([arrays[number] for number in sorted(arrays)])
    assert concatenated.tolist() == [0, 3, 1, 4, 2, 5, 7, 6, 8]
    assert concatenated[key].tolist() == list(range(9))


@pytest.mark.parametrize(
    ("dtype", "chunks"),
    [(dtype, (6, 10)) for dtype in ("complex64", "int16", "bool", "float64")]
    + [("float32", chunks) for chunks in (None, (-1, -1), (4, -1), (100, 7), (3, 2))],
)
def test_arrays_are_those_of_a_loop_over_the_points(tmp_path: Path, dtype: str, chunks: tuple[int, int] | None) -> None:
    gix = points()
    cases = [
        (raster(dtype, SHAPE), (6, 5)),
        (raster(dtype, SHAPE, 3), (9, 17, 1)),
        (raster(dtype, SHAPE, 3, 5), (5, 6, 3, 5)),
    ]
    found, key = store(tmp_path, gix, *cases, chunks=chunks)
    lines, width = [n if c == -1 else c for c, n in zip(chunks or (6, 5), SHAPE, strict=True)]
    across = -(-SHAPE[1] // width)
    for (values, _), arrays in zip(cases, found, strict=True):
        expected: dict[int, list[Any]] = {}
        for i, j in gix.tolist():
            expected.setdefault(i // lines * across + j // width, []).append(values[i, j].tolist())
        assert {number: array.tolist() for number, array in arrays.items()} == expected
        assert {array.dtype for array in arrays.values()} == {values.dtype}
        concatenated = np.concatenate([arrays[number] for number in sorted(arrays)])
        np.testing.assert_array_equal(concatenated[key], values[gix[:, 0], gix[:, 1]])


def test_arrays_are_one_chunk_of_points_and_one_image_or_a_whole_window(tmp_path: Path) -> None:
    gix = points()
    stack, windows = raster("float32", SHAPE, 3), raster("float32", SHAPE, 3, 5)
    found, _ = store(
        tmp_path, gix, (stack, (6, 5, 3)), (windows, (6, 5, 3, 5)), (windows, (6, 5, 1, 1)), (stack[..., 0], (6, 5))
    )
    for k, trailing in enumerate([(1,), (3, 5), (1, 1), ()]):
        for number, array in found[k].items():
            assert describe(tmp_path / f"pc{k}" / f"{number}.zarr").chunks == (len(array), *trailing)
        assert ZarrDir(tmp_path / f"pc{k}").shape[0] == len(gix)
    assert describe(tmp_path / "key.zarr").chunks == (7,)


def test_every_array_is_whole_and_tells_who_made_it(tmp_path: Path) -> None:
    store(tmp_path, points(), (raster("float32", SHAPE, 2), (6, 5, 1)))
    for path in [*(tmp_path / "pc0").glob("*.zarr"), tmp_path / "key.zarr"]:
        described = describe(path)
        assert described.attributes[PROVENANCE]["command"] == "ras2pc-ras-chunk"
        assert UNFINISHED not in described.attributes
        assert missing_chunks(path) == []


def test_what_was_in_the_directory_before_is_gone(tmp_path: Path) -> None:
    plane = raster("float32", SHAPE)
    store(tmp_path, points(), (plane, (6, 5)))
    found, _ = store(tmp_path, np.array([[0, 0]], np.int32), (plane, (6, 5)))
    assert [list(arrays) for arrays in found] == [[0]]


def test_a_cloud_without_points_has_one_array_of_none_that_tells_shape_and_dtype(tmp_path: Path) -> None:
    cases = (raster("complex64", SHAPE, 3), (6, 5, 1)), (raster("bool", SHAPE, 3, 5), (6, 5, 3, 5))
    found, key = store(tmp_path, np.zeros((0, 2), np.int32), *cases)
    assert key.shape == (0,)
    for arrays, (values, _) in zip(found, cases, strict=True):
        assert {number: (array.shape, array.dtype) for number, array in arrays.items()} == {
            0: ((0, *values.shape[2:]), values.dtype)
        }


def test_missing_values_stay_missing(tmp_path: Path) -> None:
    plane = np.full((5, 7), np.nan, np.float32)
    ((arrays,), _) = store(tmp_path, EXAMPLE, (plane, (2, 3)))
    assert all(np.isnan(array).all() for array in arrays.values())


@pytest.mark.parametrize("n_together", [1, 2, 4])
def test_each_raster_chunk_with_points_is_read_once(
    tmp_path: Path, chunk_reads: dict[str, Counter[str]], n_together: int
) -> None:
    """Blocks of two by two raster chunks; one of the four may hold no point and is not read."""
    stack = raster("float32", SHAPE, 4)
    gix = np.array([[0, 0], [1, 1], [7, 6], [8, 3], [22, 16]], np.int32)
    store(tmp_path, gix, (stack, (6, 5, n_together)), chunks=(12, 10))
    chunks = {"0/0", "1/1", "1/0", "3/3"}
    expected = {f"{place}/{image}": 1 for place in chunks for image in range(4 // n_together)}
    assert chunk_reads["ras0.zarr"] == expected


def test_a_task_holds_no_more_images_than_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a bound, a dense block of a long stack would be in memory with all its images."""
    monkeypatch.setattr(layouts, "VALUES_BYTES", 2 * 9 * 4)
    stack, gix = raster("float32", (5, 7), 5), EXAMPLE
    ((arrays,), _) = store(tmp_path, gix, (stack, (5, 7, 1)), chunks=(-1, -1))
    np.testing.assert_array_equal(arrays[0], stack[gix[:, 0], gix[:, 1]])
    record = ras2pc_ras_chunk(
        gix=str(tmp_path / "gix.zarr"), ras=str(tmp_path / "ras0.zarr"), pc=str(tmp_path / "x"),
        key=str(tmp_path / "y.zarr"), chunks=(-1, -1),
    )  # fmt: skip
    assert record.plans[1]["tasks"] == 1 + 3  # the key, and images by two


# --------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([(0, 0), (2, 2), (1, 1)], "row 2 is below the row before it"),
        ([(0, 0), (0, 0)], "row 1 repeats the row before it"),
        ([(0, 0), (0, 7)], r"row 1 is \(azimuth, range\) = \(0, 7\), outside the raster \(5, 7\)"),
        ([(-1, 0)], r"row 0 is .*\(-1, 0\), outside"),
    ],
)
def test_points_out_of_order_or_of_the_raster_are_refused(
    tmp_path: Path, rows: list[tuple[int, int]], fault: str
) -> None:
    with pytest.raises(MoraineError, match=rf"ras2pc-ras-chunk: gix .*gix\.zarr: {fault}"):
        store(tmp_path, np.array(rows, np.int32), (raster("float32", (5, 7)), (2, 3)))
    assert {path.name for path in tmp_path.iterdir()} == {"gix.zarr", "ras0.zarr"}


def test_rasters_of_different_sizes_are_refused(tmp_path: Path) -> None:
    cases = (raster("float32", (5, 7)), (2, 3)), (raster("float32", (5, 8)), (2, 3))
    with pytest.raises(MoraineError, match=r"ras .*ras1\.zarr has shape \(5, 8\); expected width 7, as in .*ras0"):
        store(tmp_path, EXAMPLE, *cases)


@pytest.mark.parametrize("chunks", [(0, 3), (2, -2)])
def test_chunks_that_are_none_are_refused(tmp_path: Path, chunks: tuple[int, int]) -> None:
    with pytest.raises(MoraineError, match=r"ras2pc-ras-chunk: chunks are .*; expected positive sizes, or -1"):
        store(tmp_path, EXAMPLE, (raster("float32", (5, 7)), (2, 3)), chunks=chunks)


def test_a_raster_without_pixels_and_lists_of_different_lengths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"ras2pc-ras-chunk: ras .* has shape \(0, 4\); expected at least one pixel"):
        store(tmp_path, np.zeros((0, 2), np.int32), (np.zeros((0, 4)), (3, 3)))
    gix, key = str(tmp_path / "gix.zarr"), str(tmp_path / "key.zarr")
    with pytest.raises(MoraineError, match="ras2pc-ras-chunk: ras has 1 arrays and pc 2; expected as many"):
        ras2pc_ras_chunk(
            gix=gix, ras=str(tmp_path / "ras0.zarr"), pc=[str(tmp_path / "a"), str(tmp_path / "b")], key=key
        )


def test_blocks_that_cut_chunks_of_a_raster_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cases = (raster("float32", SHAPE), (6, 5)), (raster("float32", SHAPE), (3, 4))
    for chunks, warned in (((6, 5), {"ras1"}), ((12, 20), set()), ((4, -1), {"ras0", "ras1"}), ((-1, -1), set())):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="moraine"):
            store(tmp_path, points(), *cases, chunks=chunks)
        messages = [record.getMessage() for record in caplog.records if "multiples" in record.getMessage()]
        assert {name for name in ("ras0", "ras1") for text in messages if name in text} == warned, chunks
