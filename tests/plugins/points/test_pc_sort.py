"""pc-sort: clouds come out in order with their data, and are refused where they are no sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_core import MoraineError, Workers
from moraine_core.run import check_command
from moraine_core.store import describe, open_array
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_points import kernels
from moraine_points.pc_sort import pc_sort

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def cloud(n_points: int, side: int = 60) -> NDArray[np.int32]:
    """Return different points of a square raster in random order."""
    pixels = np.random.default_rng(n_points).permutation(side * side)[:n_points]
    return np.stack(np.divmod(pixels, side), axis=1).astype(np.int32)


def sort(
    folder: Path,
    idx: NDArray[Any],
    data: tuple[NDArray[Any], ...] = (),
    *,
    block: int = 7,
    whole: tuple[int, ...] = (),
    **options: Any,
) -> list[NDArray[Any]]:
    """Sort an index and its data, written in blocks of points; data whose position is in `whole` are not cut."""

    def chunks(values: NDArray[Any], *, cut: bool = True) -> tuple[int, ...]:
        return (block, *((1,) * (values.ndim - 1) if cut else values.shape[1:]))

    outputs = [str(folder / f"out{k}.zarr") for k in range(len(data))]
    inputs = [
        write_array(folder / f"in{k}.zarr", values, chunks(values, cut=k not in whole)) for k, values in enumerate(data)
    ]
    pc_sort(
        idx_in=write_array(folder / "idx_in.zarr", idx, chunks(idx, cut=False)),
        idx=str(folder / "idx.zarr"),
        pc_in=inputs or None,
        pc=outputs or None,
        workers=Workers(n_workers=2),
        **options,
    )
    return [read_array(path) for path in (folder / "idx.zarr", *outputs)]


@pytest.mark.parametrize("n_points", [1, 6, 7, 40])
def test_a_gix_comes_out_row_by_row(tmp_path: Path, n_points: int) -> None:
    gix = cloud(n_points)
    (result,) = sort(tmp_path, gix)
    assert result.dtype == np.int32
    assert result.tolist() == sorted(gix.tolist())
    assert open_array(tmp_path / "idx.zarr").chunks == (7, 2)


@pytest.mark.parametrize("n_points", [1, 6, 7, 40])
def test_a_hix_comes_out_ascending(tmp_path: Path, n_points: int) -> None:
    hix = kernels.pc_hix(cloud(n_points), (60, 60))
    (result,) = sort(tmp_path, hix)
    assert result.dtype == np.int64
    assert result.tolist() == sorted(hix.tolist())
    assert open_array(tmp_path / "idx.zarr").chunks == (7,)


def test_an_index_is_written_in_the_dtype_of_the_contract(tmp_path: Path) -> None:
    gix = cloud(20)
    assert sort(tmp_path, gix.astype(np.int64))[0].dtype == np.int32
    assert sort(tmp_path, np.arange(20, 0, -1, dtype=np.int32))[0].dtype == np.int64


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int16", "int64", "uint8", "bool"])
def test_data_of_any_dtype_are_carried_along(tmp_path: Path, dtype: str) -> None:
    gix = cloud(31)
    labels = (gix[:, 0] * 60 + gix[:, 1]) % 250  # data that say which point they belong to
    data = (labels.astype(dtype), (labels[:, None] + np.arange(3)).astype(dtype))
    idx, flat, stack = sort(tmp_path, gix, data)
    known = {tuple(point): k for k, point in enumerate(gix.tolist())}
    rows = [known[tuple(point)] for point in idx.tolist()]
    for result, values in ((flat, data[0]), (stack, data[1])):
        assert result.dtype == values.dtype
        assert result.tolist() == [values[row].tolist() for row in rows]


def test_nan_is_carried_along(tmp_path: Path) -> None:
    (_, data) = sort(tmp_path, np.array([5, 3, 4]), (np.array([np.nan, 1, 2], np.float32),))
    np.testing.assert_array_equal(data, np.array([1, 2, np.nan], np.float32))


def test_stacks_are_cut_by_image_and_windows_and_gix_are_not(tmp_path: Path) -> None:
    n = 20
    gix = cloud(n)
    stack, windows = speckle((n, 3)), np.random.default_rng(1).random((n, 3, 5)) < 0.5
    idx, *results = sort(tmp_path, np.arange(n)[::-1].copy(), (stack, windows, gix), whole=(0, 1, 2), chunks=6)
    assert idx.tolist() == list(range(n))
    for k, (values, chunks) in enumerate(((stack, (6, 1)), (windows, (6, 3, 5)), (gix, (6, 2)))):
        np.testing.assert_array_equal(results[k], values[::-1])
        assert open_array(tmp_path / f"out{k}.zarr").chunks == chunks


def test_an_array_with_two_more_axes_that_is_not_stored_in_windows_is_cut_by_both(tmp_path: Path) -> None:
    values = np.random.default_rng(1).random((9, 2, 3))
    _, result = sort(tmp_path, np.arange(9)[::-1].copy(), (values,), block=4)
    np.testing.assert_array_equal(result, values[::-1])
    assert open_array(tmp_path / "out0.zarr").chunks == (4, 1, 1)


def test_the_key_finds_the_sorted_points_in_the_unsorted_cloud(tmp_path: Path) -> None:
    gix = cloud(33)
    (result,) = sort(tmp_path, gix, key=str(tmp_path / "key.zarr"))
    key = read_array(tmp_path / "key.zarr")
    assert key.dtype == np.int64
    assert gix[key].tolist() == result.tolist()
    assert open_array(tmp_path / "key.zarr").chunks == (7,)


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=30, unique=True), st.integers(1, 12))
def test_sorting_agrees_with_the_sort_of_the_language(
    tmp_path_factory: pytest.TempPathFactory, points: list[int], block: int
) -> None:
    hix = np.array(points, np.int64)
    idx, data = sort(tmp_path_factory.mktemp("sort"), hix, (hix.astype(np.float64),), block=block)
    assert idx.tolist() == data.tolist() == sorted(points)


@pytest.mark.parametrize("idx", [np.zeros((0, 2), np.int32), np.zeros(0, np.int64)])
def test_a_cloud_of_no_points_is_sorted(tmp_path: Path, idx: NDArray[Any]) -> None:
    empty = np.zeros((0, 3), np.complex64)
    result, data = sort(tmp_path, idx, (empty,), key=str(tmp_path / "key.zarr"))
    assert result.shape == idx.shape
    assert data.shape == (0, 3)
    assert read_array(tmp_path / "key.zarr").shape == (0,)


@pytest.mark.parametrize("idx", [np.array([[9, 9], [5, 5], [1, 1], [5, 5]], np.int32), np.array([9, 5, 1, 5])])
def test_a_point_that_occurs_twice_is_named_with_both_rows(tmp_path: Path, idx: NDArray[Any]) -> None:
    with pytest.raises(MoraineError, match=r"pc-sort: idx_in .*idx_in\.zarr: row 3 repeats the point of row 1"):
        sort(tmp_path, idx, (np.zeros(4, np.float32),))
    assert not (tmp_path / "idx.zarr").exists()
    assert not (tmp_path / "out0.zarr").exists()


@pytest.mark.parametrize(
    ("idx", "fault"),
    [
        (np.array([[0, 0], [5, 0]], np.int32), r"row 1 is \(azimuth, range\) = \(5, 0\), outside the raster \(5, 7\)"),
        (np.array([[0, 0], [0, -1]], np.int32), r"row 1 is .*\(0, -1\), outside"),
        (np.array([0, 64]), "row 1 is 64; expected 0 to 63"),
    ],
)
def test_points_are_checked_against_a_shape_that_is_given(tmp_path: Path, idx: NDArray[Any], fault: str) -> None:
    with pytest.raises(MoraineError, match=rf"pc-sort: idx_in .*{fault}"):
        sort(tmp_path, idx, shape=(5, 7))


def test_the_shape_does_not_change_the_order(tmp_path: Path) -> None:
    gix = cloud(25)
    np.testing.assert_array_equal(sort(tmp_path, gix, shape=(60, 60))[0], sort(tmp_path, gix)[0])


def test_data_of_another_length_are_refused_with_both_paths(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"pc_in .*in0\.zarr has shape \(4,\); expected n_points 3, as in idx_in"):
        sort(tmp_path, np.arange(3), (np.zeros(4, np.float32),))


def test_lists_of_different_lengths_are_refused(tmp_path: Path) -> None:
    idx = write_array(tmp_path / "idx_in.zarr", np.arange(3))
    arguments = {"idx_in": idx, "idx": str(tmp_path / "idx.zarr")}
    with pytest.raises(MoraineError, match="pc-sort: pc_in has 0 arrays and pc 1; expected as many"):
        pc_sort(**arguments, pc=str(tmp_path / "pc.zarr"))
    with pytest.raises(MoraineError, match="pc-sort: pc_in has 1 arrays and pc 0"):
        pc_sort(**arguments, pc_in=write_array(tmp_path / "pc_in.zarr", np.zeros(3, np.float32)))


def test_a_call_is_checked_before_its_index_exists(tmp_path: Path) -> None:
    """A35: a pipeline knows what comes out of a step whose inputs an earlier step has yet to write."""
    described = describe(write_array(tmp_path / "idx_in.zarr", np.arange(20), chunks=(6,)))
    (tmp_path / "idx_in.zarr").rename(tmp_path / "gone.zarr")
    arguments = {"idx_in": described.path, "idx": str(tmp_path / "idx.zarr")}
    known = check_command(pc_sort, arguments, Workers(), expected={described.path: described})
    result = known[str(tmp_path / "idx.zarr")]
    assert result is not None
    assert (result.shape, result.dtype, result.chunks) == ((20,), "int64", (6,))


def test_real_points_are_sorted_along_the_hilbert_curve_with_their_samples(tmp_path: Path, real_data: Path) -> None:
    """Persistent scatterers of Amsterdam, 156 points and 10 dates of Sentinel-1."""
    group: Any = zarr.open_group(str(next((real_data / "s1-amsterdam-ps-complex").rglob(".zgroup")).parent), mode="r")
    gix = np.stack([group["azimuth"][:], group["range"][:]], axis=1).astype(np.int32)
    samples = np.asarray(group["complex"][:])
    hix = kernels.pc_hix(gix, (2000, 3200))
    key = str(tmp_path / "key.zarr")
    result, rslc, sorted_gix = sort(tmp_path, hix, (samples, gix), block=50, whole=(1,), shape=(2000, 3200), key=key)
    assert (np.diff(result) > 0).all()
    assert sorted(result.tolist()) == sorted(hix.tolist())
    # a point is known by its pixel: its samples are still its own
    own = {tuple(point): row for point, row in zip(gix.tolist(), samples, strict=True)}
    for point, row in zip(sorted_gix.tolist(), rslc, strict=True):
        np.testing.assert_array_equal(row, own[tuple(point)])
    # neighbors along the curve are neighbors in the plane: the way through all points gets shorter
    length = [float(np.hypot(*np.diff(order.astype(float), axis=0).T).sum()) for order in (gix, sorted_gix)]
    assert length[1] < length[0]
