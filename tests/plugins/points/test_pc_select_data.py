"""pc-select-data: against looking each point up in a dictionary, for indices of one kind and of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_core import Array, MoraineError, Workers, store
from moraine_core.call import CommandCall
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_points import kernels, picking, tasks
from moraine_points.pc_select_data import pc_select_data
from moraine_points.pc_sort import pc_sort

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Values = NDArray[Any]

SHAPE = (11, 13)


@pytest.fixture
def _small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even a small cloud into many tasks, which read chunk by chunk."""
    monkeypatch.setattr(picking, "TASK_BYTES", 1)
    monkeypatch.setattr(tasks, "WINDOW_POINTS", 1)


def as_gix(pixels: Any) -> NDArray[np.int32]:
    return np.stack(np.divmod(np.array(pixels, np.int64), SHAPE[1]), axis=1).astype(np.int32)


def index(pixels: Any, kind: str) -> Values:
    """Return the sorted index of some pixels, counted row by row."""
    gix = as_gix(sorted(pixels)).reshape(-1, 2)
    return gix if kind == "gix" else np.sort(kernels.pc_hix(gix, SHAPE))


def pixels_of(idx: Values) -> list[int]:
    """Return the pixels of an index, counted row by row, in its order."""
    gix = idx if idx.ndim == 2 else kernels.pc_gix(idx, SHAPE)
    return [azimuth * SHAPE[1] + range_ for azimuth, range_ in gix.tolist()]


def select(
    folder: Path, idx_in: Values, idx: Values, *data: Values, blocks: tuple[int, int] = (4, 3), **options: Any
) -> list[Values]:
    """Select data written in blocks of points, window arrays whole; return the results."""

    def write(name: str, values: Values, block: int) -> str:
        cut = (1,) * (values.ndim - 1) if values.ndim == 2 and values.dtype.kind == "c" else values.shape[1:]
        return write_array(folder / f"{name}.zarr", values, (block, *cut))

    outputs = [str(folder / f"out{k}.zarr") for k in range(len(data))]
    pc_select_data(
        idx_in=write("idx_in", idx_in, blocks[0]),
        idx=write("idx", idx, blocks[1]),
        pc_in=[write(f"in{k}", values, blocks[0]) for k, values in enumerate(data)],
        pc=outputs,
        **options,
        workers=Workers(n_workers=2),
    )
    return [read_array(path) for path in outputs]


clouds = st.sets(st.integers(0, SHAPE[0] * SHAPE[1] - 1), max_size=50)


@pytest.mark.usefixtures("_small_tasks")
@settings(deadline=None, max_examples=30)
@given(
    clouds,
    st.integers(0, 2**50),
    st.sampled_from(["gix", "hix"]),
    st.sampled_from(["gix", "hix"]),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.integers(1, 60) | st.just(-1),
)
def test_every_point_gets_its_own_data(
    tmp_path_factory: pytest.TempPathFactory,
    cloud: set[int],
    chosen: int,
    kind_in: str,
    kind: str,
    blocks: tuple[int, int],
    chunks: int,
) -> None:
    subset = [pixel for k, pixel in enumerate(sorted(cloud)) if chosen >> k & 1]
    idx_in, idx = index(cloud, kind_in), index(subset, kind)
    own = {pixel: [complex(pixel, 1), complex(-pixel, 2)] for pixel in cloud}
    stack = np.array([own[pixel] for pixel in pixels_of(idx_in)], np.complex64).reshape(-1, 2)
    flat = np.array(pixels_of(idx_in), np.int32)
    shape = SHAPE if kind != kind_in else None
    result, again = select(
        tmp_path_factory.mktemp("select"), idx_in, idx, stack, flat, blocks=blocks, chunks=chunks, shape=shape
    )
    assert result.tolist() == [own[pixel] for pixel in pixels_of(idx)]
    assert again.tolist() == pixels_of(idx)


def test_a_gix_in_hilbert_order_is_selected_from_by_hix(tmp_path: Path) -> None:
    """Of different kinds, the cloud may be in the order of the other index, or in none."""
    pixels = np.random.default_rng(1).permutation(143)[:60]
    gix = as_gix(pixels)
    hix = kernels.pc_hix(gix, SHAPE)
    for order in (np.argsort(hix), np.arange(60)):
        (result,) = select(tmp_path, gix[order], np.sort(hix)[::2], pixels[order], shape=SHAPE)
        assert as_gix(result).tolist() == kernels.pc_gix(np.sort(hix)[::2], SHAPE).tolist()
    (result,) = select(tmp_path, hix, index(pixels[:9], "gix"), pixels, shape=SHAPE)
    assert result.tolist() == sorted(pixels[:9])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int16", "int64", "uint8", "bool"])
def test_data_of_any_dtype_are_taken(tmp_path: Path, dtype: str) -> None:
    values = (np.arange(20) % 3).astype(dtype)
    (result,) = select(tmp_path, np.arange(20), np.array([3, 4, 17]), values)
    assert result.dtype == dtype
    assert result.tolist() == values[[3, 4, 17]].tolist()


@pytest.mark.usefixtures("_small_tasks")
def test_stacks_are_cut_by_image_and_windows_and_gix_are_not(tmp_path: Path) -> None:
    stack, windows, gix = speckle((20, 3)), np.random.default_rng(1).random((20, 3, 5)) < 0.5, as_gix(range(20))
    chosen = np.array([0, 7, 8, 19])
    results = select(tmp_path, np.arange(20), chosen, stack, windows, gix)
    for k, (values, chunks) in enumerate(((stack, (3, 1)), (windows, (3, 3, 5)), (gix, (3, 2)))):
        np.testing.assert_array_equal(results[k], values[chosen])
        assert open_array(tmp_path / f"out{k}.zarr").chunks == chunks


def test_several_images_in_a_stored_chunk_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = speckle((20, 6))
    reads = counted_reads(monkeypatch, "stack.zarr")
    path = write_array(tmp_path / "stack.zarr", stack, (10, 6))
    idx = write_array(tmp_path / "idx.zarr", np.arange(20))
    pc_select_data(idx_in=idx, idx=idx, pc_in=path, pc=str(tmp_path / "out.zarr"), workers=Workers(n_workers=1))
    np.testing.assert_array_equal(read_array(tmp_path / "out.zarr"), stack)
    assert open_array(tmp_path / "out.zarr").chunks == (20, 1)
    assert len(reads) == 1


def counted_reads(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """Return a list that grows by the part of each read of an array of that name."""
    parts: list[Any] = []
    read = store.parallel_read_zarr

    def counting(array: Any, block: Any = None, **options: Any) -> Any:
        if str(array.store_path).endswith(name):
            parts.append(block)
        return read(array, block, **options)

    monkeypatch.setattr(store, "parallel_read_zarr", counting)
    return parts


@pytest.mark.usefixtures("_small_tasks")
def test_only_chunks_that_hold_points_of_the_subset_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = counted_reads(monkeypatch, "in0.zarr")
    select(tmp_path, np.arange(100), np.array([3, 5, 41, 49, 99]), np.zeros(100), blocks=(10, 5))
    assert sorted(rows.start for rows, *_ in reads) == [0, 40, 90]


def test_ten_million_points_in_two_threads_need_less_than_2_gib(tmp_path: Path) -> None:
    """What a task needs is known without data: for a stack of 20 images it is a column at most."""
    n, block = 10_000_000, 100_000
    known: dict[str, Array | None] = {
        "/hix": Array("/hix", (n,), "int64", (block,)),
        "/part": Array("/part", (n // 2,), "int64", (block,)),
        "/rslc": Array("/rslc", (n, 20), "complex64", (block, 1)),
    }
    column = 8 * n

    def task_bytes(command: Any, **arguments: str) -> int:
        call = CommandCall(command, arguments, Workers())
        call.check(known)
        assert call.first_plan is not None
        return call.first_plan.task_bytes

    idx, pc = str(tmp_path / "idx"), str(tmp_path / "pc")
    sorting = task_bytes(pc_sort, idx_in="/hix", idx=idx, pc_in="/rslc", pc=pc)
    assert 2 * column < sorting < 3 * column
    selecting = task_bytes(pc_select_data, idx_in="/hix", idx="/part", pc_in="/rslc", pc=pc)
    assert selecting < column


def test_a_call_is_checked_before_its_inputs_exist(tmp_path: Path) -> None:
    """A35: a pipeline knows what comes out of a step whose inputs an earlier step has yet to write."""
    known: dict[str, Array | None] = {
        "/hix": Array("/hix", (9,), "int64", (4,)),
        "/part": Array("/part", (5,), "int64", (3,)),
        "/ph": Array("/ph", (9, 2), "float32", (4, 1)),
    }
    out = str(tmp_path / "out.zarr")
    call = CommandCall(pc_select_data, {"idx_in": "/hix", "idx": "/part", "pc_in": "/ph", "pc": out}, Workers())
    result = call.check(known)[out]
    assert result is not None
    assert (result.shape, result.dtype, result.chunks) == ((5, 2), "float32", (3, 1))


@pytest.mark.parametrize("kind_in", ["gix", "hix"])
@pytest.mark.parametrize("kind", ["gix", "hix"])
def test_subsets_and_clouds_of_no_point_and_of_one(tmp_path: Path, kind_in: str, kind: str) -> None:
    for cloud, subset in (([], []), ([7], []), ([7], [7]), ([3, 7], [7])):
        (result,) = select(
            tmp_path, index(cloud, kind_in), index(subset, kind), np.array(cloud, np.float32), shape=SHAPE
        )
        assert result.tolist() == subset


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subset", "fault"),
    [
        ([4, 7], r"1 of its 2 points are not in idx_in .*idx_in\.zarr; the first is row 1, 7"),
        ([0, 4, 5], r"2 of its 3 points are not in idx_in .*; the first is row 0, 0"),
        ([90, 91], r"2 of its 2 points are not in idx_in .*; the first is row 0, 90"),
    ],
)
def test_points_that_the_cloud_lacks_are_counted_and_the_first_is_named(
    tmp_path: Path, subset: list[int], fault: str
) -> None:
    """Also those beyond the end of the cloud: the result is never shorter than the subset."""
    with pytest.raises(MoraineError, match=rf"pc-select-data: idx .*idx\.zarr: {fault}"):
        select(tmp_path, np.array([1, 4, 6]), np.array(subset), np.zeros(3))
    assert not (tmp_path / "out0.zarr").exists()


def test_a_missing_point_of_a_gix_is_named_by_its_pixel(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"1 of its 2 points .* row 1, \(azimuth, range\) = \(10, 12\)"):
        select(tmp_path, as_gix([1, 4]), as_gix([4, 142]), np.zeros(2))
    with pytest.raises(MoraineError, match=r"1 of its 2 points .* row 1, \(azimuth, range\) = \(10, 12\)"):
        select(tmp_path, index([1, 4], "hix"), as_gix([4, 142]), np.zeros(2), shape=SHAPE)


@pytest.mark.parametrize(
    ("idx_in", "idx", "fault"),
    [
        ([1, 1, 2], [1], "idx_in .*: row 1 repeats the row before"),
        ([2, 1], [1], "idx_in .*: row 1 is below the row before"),
        ([1, 2, 3], [2, 2], "idx .*: row 1 repeats the row before"),
        ([1, 2, 3], [3, 2], "idx .*: row 1 is below the row before"),
    ],
)
@pytest.mark.parametrize("kind", ["gix", "hix"])
def test_clouds_that_are_not_sorted_are_refused(
    tmp_path: Path, idx_in: list[int], idx: list[int], fault: str, kind: str
) -> None:
    cloud, subset = (as_gix(idx_in), as_gix(idx)) if kind == "gix" else (np.array(idx_in), np.array(idx))
    with pytest.raises(MoraineError, match=f"pc-select-data: {fault}"):
        select(tmp_path, cloud, subset, np.zeros(len(idx_in)))


def test_a_cloud_of_the_other_kind_that_holds_a_point_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"idx_in .*: row 2 repeats the point of row 0"):
        select(tmp_path, as_gix([5, 1, 5]), index([1], "hix"), np.zeros(3), shape=SHAPE)


def test_indices_of_different_kinds_need_the_shape(tmp_path: Path) -> None:
    with pytest.raises(
        MoraineError, match=r"pc-select-data: idx_in .* idx .*; expected two gix or two hix, or --shape"
    ):
        select(tmp_path, as_gix([5]), np.array([1]), np.zeros(1))


@pytest.mark.parametrize(
    ("idx_in", "idx", "fault"),
    [
        (as_gix([1, 143]), as_gix([1]), r"idx_in .*: row 1 is .*\(11, 0\), outside the raster \(11, 13\)"),
        (as_gix([1, 143]), np.array([1]), r"idx_in .*: row 1 is .*\(11, 0\), outside the raster \(11, 13\)"),
        (np.array([0, 255]), as_gix([0]), r"idx_in .*: row 1 is 255, .* outside the raster \(11, 13\)"),
        (np.array([0, 2]), np.array([0, 256]), "idx .*: row 1 is 256; expected 0 to 255"),
        (as_gix([1]), np.array([[0, -1]]), r"idx .*: row 0 is .*\(0, -1\), outside"),
    ],
)
def test_points_outside_the_raster_are_refused(tmp_path: Path, idx_in: Values, idx: Values, fault: str) -> None:
    with pytest.raises(MoraineError, match=f"pc-select-data: {fault}"):
        select(tmp_path, idx_in, idx, np.zeros(len(idx_in)), shape=SHAPE)


def test_data_of_another_length_and_lists_of_different_lengths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"pc_in .* has shape \(4,\); expected n_points_in 3, as in idx_in"):
        select(tmp_path, np.arange(3), np.array([1]), np.zeros(4))
    idx = write_array(tmp_path / "i.zarr", np.arange(3))
    with pytest.raises(MoraineError, match="pc-select-data: pc_in has 1 arrays and pc 2; expected as many"):
        pc_select_data(idx_in=idx, idx=idx, pc_in=idx, pc=[str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr")])
