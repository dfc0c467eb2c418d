"""pc-concat: parts one after another, put in order by keys, and the way back from ras2pc-ras-chunk."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_core import MoraineError, Workers
from moraine_core.cli.main import run as run_line
from moraine_core.run import check_command
from moraine_core.store import open_array, set_attributes
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_points import kernels
from moraine_points.pc_concat import pc_concat
from moraine_points.pc_sort import pc_sort
from moraine_points.ras2pc import ras2pc
from moraine_points.ras2pc_ras_chunk import ras2pc_ras_chunk
from moraine_points.spill import UNIT_ROWS

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

    from numpy.typing import NDArray

quick = settings(deadline=None, max_examples=8)


def write_parts(
    folder: Path, values: NDArray[Any], sizes: dict[int, int], chunks: tuple[int, ...] | None = None, rows: int = 0
) -> str:
    """Write consecutive rows as arrays of these numbers and sizes; return the directory."""
    start = 0
    for number, size in sizes.items():
        one = (1,) * (values.ndim - 1) if chunks is None else chunks
        write_array(folder / f"{number}.zarr", values[start : start + size], (rows or max(size, 1), *one))
        start += size
    assert start == len(values)
    return str(folder)


def concat(
    folder: Path,
    *sources: str,
    keys: tuple[NDArray[Any], ...] = (),
    chunks: int | None = None,
    outputs: int = 0,
) -> list[NDArray[Any]]:
    """Concatenate directories, each into an output of its own, or all sources into a single one."""
    pc = [str(folder / f"pc{k}.zarr") for k in range(outputs or len(sources))]
    pc_concat(
        pcs=list(sources),
        pc=pc,
        key=[write_array(folder / f"key{k}.zarr", key, (7,)) for k, key in enumerate(keys)] or None,
        chunks=chunks,
        workers=Workers(n_workers=2),
    )
    return [read_array(path) for path in pc]


# ------------------------------------------------------------------------------------------------------------- order


def test_the_worked_example_is_put_back_in_the_order_of_the_raster(tmp_path: Path) -> None:
    """Concatenation 0 3 1 4 2 5 7 6 8 of points in gix order; key 0 2 4 1 3 5 7 6 8."""
    values = np.array([0, 3, 1, 4, 2, 5, 7, 6, 8], np.float32)
    parts = write_parts(tmp_path / "parts", values, {0: 2, 1: 2, 2: 1, 3: 2, 4: 1, 8: 1})
    (result,) = concat(tmp_path, parts)
    assert result.tolist() == [0, 3, 1, 4, 2, 5, 7, 6, 8]
    (result,) = concat(tmp_path, parts, keys=(np.array([0, 2, 4, 1, 3, 5, 7, 6, 8]),))
    assert result.tolist() == list(range(9))
    assert open_array(tmp_path / "pc0.zarr").chunks == (2,)  # rows of the first part


@pytest.mark.parametrize("dtype", ["float32", "complex64", "bool", "int16"])
def test_parts_follow_one_another_by_their_numbers_and_rows_by_the_keys(tmp_path: Path, dtype: str) -> None:
    """10 comes after 9; K1[K2] is applied to the whole."""
    rng = np.random.default_rng(1)
    n_points, sizes = 60, {0: 5, 2: 20, 9: 1, 10: 0, 11: 34}
    data = [(rng.random((n_points, *tail)) * 100).astype(dtype) for tail in ((), (3,), (3, 5), (2, 2))]
    tails = [None, None, (3, 5), (1, 1)]
    sources = [
        write_parts(tmp_path / f"parts{k}", values, sizes, tail)
        for k, (values, tail) in enumerate(zip(data, tails, strict=True))
    ]
    first, second = rng.permutation(n_points), rng.permutation(n_points)
    for keys, rows in (((), range(n_points)), ((first,), first), ((first, second), [first[t] for t in second])):
        results = concat(tmp_path, *sources, keys=keys, chunks=8)
        for result, values in zip(results, data, strict=True):
            assert result.dtype == values.dtype
            np.testing.assert_array_equal(result, np.stack([values[row] for row in rows]))
    for k, trailing in enumerate([(), (1,), (3, 5), (1, 1)]):
        assert open_array(tmp_path / f"pc{k}.zarr").chunks == (8, *trailing)


def test_one_output_is_made_of_a_list_of_arrays_in_their_order(tmp_path: Path) -> None:
    values = speckle((9, 2))
    paths = [write_array(tmp_path / f"{name}.zarr", values[rows], (2, 2)) for name, rows in
             (("b", slice(0, 4)), ("a", slice(4, 5)), ("c", slice(5, 9)))]  # fmt: skip
    (result,) = concat(tmp_path, *paths, outputs=1)
    np.testing.assert_array_equal(result, values)
    (result,) = concat(tmp_path, paths[0], outputs=1, keys=(np.array([3, 1, 0, 2]),))
    np.testing.assert_array_equal(result, values[[3, 1, 0, 2]])


@pytest.mark.parametrize("tail", [(3,), (3, 5)])
def test_parts_of_several_chunks_along_the_points_are_read_too(tmp_path: Path, tail: tuple[int, ...]) -> None:
    values = np.arange(40 * np.prod(tail)).reshape(40, *tail)
    (result,) = concat(tmp_path, write_parts(tmp_path / "parts", values, {3: 25, 4: 15}, tail, rows=4))
    np.testing.assert_array_equal(result, values)


def test_images_that_are_stored_together_are_read_once(tmp_path: Path, chunk_reads: dict[str, Counter[str]]) -> None:
    values = speckle((30, 4))
    parts = write_parts(tmp_path / "parts", values, {3: 10, 5: 20}, (4,))
    (result,) = concat(tmp_path, parts, keys=(np.arange(30)[::-1].copy(),))
    np.testing.assert_array_equal(result, values[::-1])
    assert open_array(tmp_path / "pc0.zarr").chunks == (10, 1)
    assert chunk_reads["3.zarr"] == chunk_reads["5.zarr"] == {"0/0": 1}


def test_windows_in_any_order_are_read_once(tmp_path: Path, chunk_reads: dict[str, Counter[str]]) -> None:
    """However small the blocks of the output, and however their rows are scattered."""
    n_points = 2 * UNIT_ROWS + 50
    values = np.random.default_rng(2).random((n_points, 3, 5), dtype=np.float32)
    parts = write_parts(tmp_path / "parts", values, {0: UNIT_ROWS, 1: 1, 5: UNIT_ROWS + 1, 6: 48}, (3, 5))
    key = np.random.default_rng(3).permutation(n_points)
    (result,) = concat(tmp_path, parts, keys=(key,), chunks=3)
    np.testing.assert_array_equal(result, values[key])
    assert [chunk_reads[f"{number}.zarr"] for number in (0, 1, 5, 6)] == [{"0/0/0": 1}] * 4


def test_clouds_without_points_and_of_one_point(tmp_path: Path) -> None:
    for n_points in (0, 1):
        folder = tmp_path / str(n_points)
        ph, p = speckle((n_points, 3)), np.ones((n_points, 3, 5), bool)
        sources = [write_parts(folder / "a", ph, {0: n_points}), write_parts(folder / "b", p, {0: n_points}, (3, 5))]
        results = concat(folder, *sources, keys=(np.arange(n_points),))
        np.testing.assert_array_equal(results[0], ph)
        np.testing.assert_array_equal(results[1], p)


def test_a_grid_index_in_parts_stays_one(tmp_path: Path) -> None:
    gix = np.arange(20, dtype=np.int32).reshape(10, 2)
    (result,) = concat(tmp_path, write_parts(tmp_path / "parts", gix, {1: 4, 2: 6}, (2,)))
    np.testing.assert_array_equal(result, gix)
    assert open_array(tmp_path / "pc0.zarr").chunks == (4, 2)


def test_very_many_blocks_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    parts = write_parts(tmp_path / "parts", np.arange(1002), {0: 1, 1: 1001})
    with caplog.at_level(logging.WARNING, logger="moraine"):
        concat(tmp_path, parts, chunks=500)
        assert "--chunks" not in caplog.text
        pc_concat(pcs=parts, pc=str(tmp_path / "pc.zarr"), dry_run=True)
    assert "blocks of 1 points, as the first part; 1002 points are better cut by --chunks" in caplog.text


# -------------------------------------------------------------------------------------------------- there and back


@st.composite
def clouds(draw: st.DrawFn) -> tuple[tuple[int, int], NDArray[np.int32], tuple[int, int], tuple[int, int]]:
    """Draw a raster's shape, its points in their order, chunks of the raster, and blocks."""
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 12)))
    pixels = draw(st.sets(st.integers(0, shape[0] * shape[1] - 1), max_size=40))
    gix = np.stack(np.divmod(np.array(sorted(pixels), int), shape[1]), axis=1).astype(np.int32)
    sizes = st.tuples(st.integers(1, 8), st.integers(1, 8))
    return shape, gix, draw(sizes), draw(sizes)


@quick
@given(clouds())
def test_by_raster_chunk_and_back_is_the_values_at_the_points(
    tmp_path_factory: pytest.TempPathFactory,
    cloud: tuple[tuple[int, int], NDArray[np.int32], tuple[int, int], tuple[int, int]],
) -> None:
    """What ras2pc takes directly; and with the key of a sort after that of the chunks, in hilbert order."""
    folder = tmp_path_factory.mktemp("there")
    shape, gix, chunks, blocks = cloud
    data = [speckle((*shape, 2), seed=1), np.random.default_rng(2).random((*shape, 3, 1)) < 0.5]
    paths = {name: str(folder / f"{name}.zarr") for name in ("gix", "hix", "hix_sorted", "chunk_key", "sort_key")}
    write_array(paths["gix"], gix, (9, 2))
    write_array(paths["hix"], kernels.pc_hix(gix, shape), (9,))
    ras = [
        write_array(folder / f"ras{k}.zarr", values, (*chunks, *tail))
        for k, (values, tail) in enumerate(zip(data, ((1,), (3, 1)), strict=True))
    ]
    direct, dirs, back, hilbert = (
        [str(folder / f"{n}{k}") for k in range(2)] for n in ("direct", "dir", "back", "hil")
    )
    ras2pc(idx=paths["gix"], ras=ras, pc=direct)
    ras2pc_ras_chunk(gix=paths["gix"], ras=ras, pc=dirs, key=paths["chunk_key"], chunks=blocks)
    pc_concat(pcs=dirs, pc=back, key=paths["chunk_key"], chunks=5)
    pc_sort(idx_in=paths["hix"], idx=paths["hix_sorted"], key=paths["sort_key"])
    pc_concat(pcs=dirs, pc=hilbert, key=[paths["chunk_key"], paths["sort_key"]])
    order = np.argsort(read_array(paths["hix"]))
    for k, values in enumerate(data):
        expected = values[gix[:, 0], gix[:, 1]]
        for found, rows in ((direct[k], expected), (back[k], expected), (hilbert[k], expected[order])):
            result = read_array(found)
            assert result.dtype == values.dtype
            np.testing.assert_array_equal(result, rows)


def test_real_points_by_raster_chunk_and_back_in_hilbert_order(
    tmp_path: Path, real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Persistent scatterers of Amsterdam, 156 points and 10 dates of Sentinel-1, from the command line."""
    source = real_data / "s1-amsterdam-ps-complex"
    if not source.is_dir():
        pytest.skip(f"no {source.name} in {real_data}")
    group: Any = zarr.open_group(str(next(source.rglob(".zgroup")).parent), mode="r")
    gix = np.stack([group["azimuth"][:], group["range"][:]], axis=1).astype(np.int32)
    gix -= gix.min(axis=0)
    monkeypatch.chdir(tmp_path)
    samples = np.asarray(group["complex"][:])
    shape = [str(side) for side in gix.max(axis=0) + 1]
    write_array(tmp_path / "gix.zarr", gix, (50, 2))
    write_array(tmp_path / "rslc.zarr", samples, (50, 1))
    for line in (
        "pc2ras --idx gix.zarr --pc rslc.zarr --ras ras_rslc.zarr --chunks 300 500 --shape",
        "pc-sort --idx-in gix.zarr --idx sorted_gix.zarr",
        "ras2pc-ras-chunk --gix sorted_gix.zarr --ras ras_rslc.zarr --pc rslc_chunks --key chunk_key.zarr",
        "pc-hix --gix sorted_gix.zarr --hix hix_in.zarr --shape",
        "pc-sort --idx-in hix_in.zarr --idx hix.zarr --key sort_key.zarr",
        "pc-concat --pcs rslc_chunks --pc sorted_rslc.zarr --key chunk_key.zarr sort_key.zarr",
    ):
        words = [*line.split(), *(shape if line.endswith("--shape") else [])]
        assert run_line([*words, "--quiet"]) == 0
    # a pixel has its own samples: those that the data give for it
    own = {tuple(pixel): row for pixel, row in zip(gix.tolist(), samples, strict=True)}
    hix = read_array(tmp_path / "hix.zarr")
    assert (np.diff(hix) > 0).all()
    pixels = kernels.pc_gix(hix, (int(shape[0]), int(shape[1])))
    result = read_array(tmp_path / "sorted_rslc.zarr")
    assert len(result) == len(own)
    for pixel, row in zip(pixels.tolist(), result, strict=True):
        np.testing.assert_array_equal(row, own[tuple(pixel)].astype(row.dtype))


# --------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("key", "fault"),
    [
        ([0, 1, 2, 2, 4], r"row 3 repeats 2 of row 2; expected each row once"),
        ([0, 1, 2, 5, 4], r"row 3 is 5; expected 0 to 4, each once"),
        ([0, -1, 2, 3, 4], r"row 1 is -1; expected 0 to 4"),
    ],
)
@pytest.mark.parametrize("tail", [None, (3, 5)])
def test_a_key_that_is_no_permutation_is_refused(
    tmp_path: Path, key: list[int], fault: str, tail: tuple[int, ...] | None
) -> None:
    values = np.zeros((5, *(tail or ())), np.float32)
    parts = write_parts(tmp_path / "parts", values, {0: 2, 1: 3}, tail)
    with pytest.raises(MoraineError, match=rf"pc-concat: key .*key1\.zarr: {fault}"):
        concat(tmp_path, parts, keys=(np.arange(5), np.array(key)))
    assert not (tmp_path / "pc0.zarr").exists()


def test_keys_of_another_length_are_refused(tmp_path: Path) -> None:
    """Also where a part has been lost."""
    parts = write_parts(tmp_path / "parts", np.zeros(5), {0: 2, 1: 3})
    with pytest.raises(MoraineError, match=r"pc-concat: key .*key0\.zarr has shape \(6,\); expected \(5,\)"):
        concat(tmp_path, parts, keys=(np.arange(6),))
    with pytest.raises(MoraineError, match=r"key .*key1\.zarr has shape \(4,\); expected n_points 5, as in key .*key0"):
        concat(tmp_path, parts, keys=(np.arange(5), np.arange(4)))


def test_parts_that_disagree_are_refused(tmp_path: Path) -> None:
    values = np.zeros((4, 2), np.float32)
    for other, fault in (
        (np.zeros((4, 3), np.float32), r"\(4, 3\)"),
        (np.zeros((4, 2)), r"\(4, 2\) and dtype float64"),
    ):
        parts = write_parts(tmp_path / fault[2:5] / other.dtype.name, values, {0: 4})
        write_array(f"{parts}/1.zarr", other)
        with pytest.raises(
            MoraineError, match=rf"pc-concat: pcs .*1\.zarr has shape {fault}.*; expected trailing shape"
        ):
            concat(tmp_path, parts)


def test_directories_of_different_clouds_are_refused(tmp_path: Path) -> None:
    one = write_parts(tmp_path / "one", np.zeros(4), {0: 4})
    two = write_parts(tmp_path / "two", np.zeros(3), {0: 3})
    with pytest.raises(MoraineError, match=r"pc-concat: pcs of .*pc1\.zarr have 3 points; expected 4, as those of"):
        concat(tmp_path, one, two)


def test_lists_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    one = write_parts(tmp_path / "one", np.zeros(4), {0: 4})
    two = write_parts(tmp_path / "two", np.zeros(4), {0: 4})
    with pytest.raises(MoraineError, match="pc-concat: pcs has 1 paths and pc 2; expected as many of each"):
        concat(tmp_path, one, outputs=2)
    with pytest.raises(MoraineError, match=r"pcs has 2 paths for one pc, of which .*two is no array; expected one dir"):
        concat(tmp_path, f"{one}/0.zarr", two, outputs=1)


def test_what_holds_no_parts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(MoraineError, match=r"pc-concat: pcs .*empty: no chunks"):
        concat(tmp_path, str(tmp_path / "empty"))
    with pytest.raises(MoraineError, match=r"pc-concat: pcs: .*gone does not exist"):
        concat(tmp_path, str(tmp_path / "gone"))
    pyramid = write_parts(tmp_path / "pyramid", np.zeros((8, 8)), {0: 8})
    set_attributes(f"{pyramid}/0.zarr", {"moraine_pyramid": {"version": 1}})
    with pytest.raises(MoraineError, match="pyramid is a pyramid; expected parts of a point cloud"):
        concat(tmp_path, pyramid)


def test_a_part_that_lost_a_chunk_is_refused(tmp_path: Path) -> None:
    """A54: a hole is never read as a value."""
    gix = np.argwhere(np.ones((4, 4), bool)).astype(np.int32)
    ras2pc_ras_chunk(
        gix=write_array(tmp_path / "gix.zarr", gix),
        ras=write_array(tmp_path / "ras.zarr", np.ones((4, 4, 2), np.float32), (2, 2, 1)),
        pc=str(tmp_path / "parts"),
        key=str(tmp_path / "key.zarr"),
    )
    (tmp_path / "parts/2.zarr/c/0/1").unlink()
    with pytest.raises(MoraineError, match=r"pc-concat: pcs .*2\.zarr lacks 1 of its chunks"):
        concat(tmp_path, str(tmp_path / "parts"))


def test_an_output_among_the_parts_is_refused(tmp_path: Path) -> None:
    parts = write_parts(tmp_path / "parts", np.zeros(4), {0: 4})
    with pytest.raises(MoraineError, match="is, or is inside, or holds pcs"):
        pc_concat(pcs=parts, pc=f"{parts}/1.zarr")


def test_a_call_is_checked_before_its_directories_exist(tmp_path: Path) -> None:
    """A35: a pipeline knows that a step before will write them."""
    known = {str(tmp_path / "parts"): None, str(tmp_path / "key.zarr"): None}
    arguments = {"pcs": str(tmp_path / "parts"), "pc": str(tmp_path / "pc.zarr"), "key": str(tmp_path / "key.zarr")}
    assert check_command(pc_concat, arguments, Workers(), expected=known) == {str(tmp_path / "pc.zarr"): None}


@quick
@given(st.lists(st.integers(0, 70), min_size=1, max_size=5), st.integers(1, 50), st.randoms(use_true_random=False))
def test_rows_of_windows_come_back_from_parts_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], chunks: int, random: Any
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    n_points = sum(sizes)
    values = np.arange(n_points * 6, dtype=np.int16).reshape(n_points, 2, 3)
    ends = np.cumsum([0, *sizes])
    for number, (start, stop) in enumerate(pairwise(ends)):
        write_array(folder / "parts" / f"{number}.zarr", values[start:stop], (max(stop - start, 1), 2, 3))
    key = np.array(random.sample(range(n_points), n_points), np.int64)
    (result,) = concat(folder, str(folder / "parts"), keys=(key,), chunks=chunks)
    np.testing.assert_array_equal(result, values[key])
