"""pc-union: against Python's sets and dictionaries, with the dtypes that hold the data of both clouds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_core import MoraineError, Workers
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_points import picking, tasks
from moraine_points.pc_union import pc_union
from moraine_points.promotion import DIGITS, common_dtype

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Values = NDArray[Any]

WIDTH = 13
"""Width of the raster whose pixels, counted row by row, are the points of these tests."""


@pytest.fixture(autouse=True)
def _small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even a small cloud into many tasks, which read chunk by chunk."""
    monkeypatch.setattr(picking, "TASK_BYTES", 1)
    monkeypatch.setattr(tasks, "WINDOW_POINTS", 1)


def as_gix(pixels: Any) -> NDArray[np.int32]:
    return np.stack(np.divmod(np.array(pixels, np.int64), WIDTH), axis=1).astype(np.int32)


def write(path: Path, values: Values, block: int, *, whole: bool = True) -> str:
    return write_array(path, values, (block, *(values.shape[1:] if whole else (1,) * (values.ndim - 1))))


def union(
    folder: Path,
    clouds: tuple[Any, Any],
    data: tuple[tuple[Values, ...], tuple[Values, ...]] = ((), ()),
    *,
    blocks: tuple[int, int] = (4, 3),
    whole: bool = False,
    **options: Any,
) -> list[Values]:
    """Join two clouds whose data are written in blocks of points; return the index and the data."""
    outputs = [str(folder / f"pc{k}.zarr") for k in range(len(data[0]))]
    arguments: dict[str, Any] = {"idx": str(folder / "idx.zarr"), "pc": outputs or None}
    for number, idx, values, block in zip("12", clouds, data, blocks, strict=True):
        arguments[f"idx{number}"] = write(folder / f"idx{number}.zarr", np.asarray(idx), block)
        paths = [write(folder / f"pc{number}_{k}.zarr", v, block, whole=whole) for k, v in enumerate(values)]
        arguments[f"pc{number}"] = paths or None
    pc_union(**arguments, **options, workers=Workers(n_workers=2))
    return [read_array(path) for path in (arguments["idx"], *outputs)]


def test_the_published_example(tmp_path: Path) -> None:
    data = tuple((np.full(3, cloud, np.float32),) for cloud in (1, 2))
    idx, source = union(tmp_path, (np.array([1, 4, 6]), np.array([0, 4, 9])), data)
    assert idx.tolist() == [0, 1, 4, 6, 9]
    assert source.tolist() == [2, 1, 1, 1, 2]


clouds = st.sets(st.integers(0, 60), max_size=30)


@settings(deadline=None, max_examples=25)
@given(clouds, clouds, st.tuples(st.integers(1, 9), st.integers(1, 9)), st.integers(1, 20) | st.just(-1), st.booleans())
def test_points_and_data_are_those_of_joined_dictionaries(
    tmp_path_factory: pytest.TempPathFactory,
    points1: set[int],
    points2: set[int],
    blocks: tuple[int, int],
    chunks: int,
    is_gix: bool,
) -> None:
    ordered = [sorted(points) for points in (points1, points2)]
    indices = [as_gix(points) if is_gix else np.array(points, np.int64) for points in ordered]
    stacks = [
        np.array([[point, 1000 * cloud] for point in points], np.float32).reshape(-1, 2)
        for cloud, points in enumerate(ordered)
    ]
    idx, stack = union(
        tmp_path_factory.mktemp("union"),
        (indices[0], indices[1]),
        ((stacks[0],), (stacks[1],)),
        blocks=blocks,
        chunks=chunks,
    )
    # of two entries for one point the later one counts
    joined = dict.fromkeys(ordered[1], 1000) | dict.fromkeys(ordered[0], 0)
    expected = sorted(joined)
    assert idx.tolist() == (as_gix(expected) if is_gix else np.array(expected)).tolist()
    assert stack.tolist() == [[point, joined[point]] for point in expected]


@pytest.mark.parametrize("kind", ["gix", "hix"])
def test_empty_clouds_and_clouds_of_one_point_have_a_union(tmp_path: Path, kind: str) -> None:
    def index(*points: int) -> Values:
        return as_gix(points).reshape(-1, 2) if kind == "gix" else np.array(points, np.int64)

    def data(*points: int) -> tuple[Values]:
        return (np.array(points, np.complex64),)

    for first, second, expected in (((), (), []), ((5,), (), [5]), ((), (5,), [5]), ((5,), (5,), [5])):
        idx, values = union(tmp_path, (index(*first), index(*second)), (data(*first), data(*second)))
        assert idx.tolist() == index(*expected).tolist()
        assert values.tolist() == expected


def test_an_index_is_written_as_the_contract_says(tmp_path: Path) -> None:
    """A gix that is stored column by column, in int64, comes out whole, in int32."""
    gix = write_array(tmp_path / "gix1.zarr", as_gix([1, 5]).astype(np.int64), (1, 1))
    other = write_array(tmp_path / "gix2.zarr", as_gix([3, 5]), (2, 2))
    pc_union(idx1=gix, idx2=other, idx=str(tmp_path / "gix.zarr"))
    result = open_array(tmp_path / "gix.zarr")
    assert (result.dtype, result.chunks) == (np.int32, (1, 2))
    assert read_array(tmp_path / "gix.zarr").tolist() == as_gix([1, 3, 5]).tolist()


def test_stacks_are_cut_by_image_and_windows_and_gix_are_not(tmp_path: Path) -> None:
    windows = [np.random.default_rng(k).random((3, 3, 5)) < 0.5 for k in (1, 2)]
    points = [as_gix([1, 4, 6]), as_gix([0, 4, 9])]
    keys = (np.array([1, 4, 6]), np.array([0, 4, 9]))
    _, window, gix = union(tmp_path, keys, ((windows[0], points[0]), (windows[1], points[1])), whole=True)
    np.testing.assert_array_equal(window, np.stack([windows[1][0], *windows[0], windows[1][2]]))
    assert gix.tolist() == as_gix([0, 1, 4, 6, 9]).tolist()
    assert open_array(tmp_path / "pc0.zarr").chunks == (4, 3, 5)
    assert open_array(tmp_path / "pc1.zarr").chunks == (4, 2)
    stacks = (speckle((3, 3), 1), speckle((3, 3), 2))
    _, stack = union(tmp_path, keys, ((stacks[0],), (stacks[1],)))
    np.testing.assert_array_equal(stack, np.stack([stacks[1][0], *stacks[0], stacks[1][2]]))
    assert open_array(tmp_path / "pc0.zarr").chunks == (4, 1)


def test_nan_is_carried_along(tmp_path: Path) -> None:
    values = np.array([np.nan, 2 + 1j], np.complex64), np.array([complex(1, np.nan)], np.complex64)
    _, result = union(tmp_path, (np.array([1, 4]), np.array([2])), ((values[0],), (values[1],)))
    np.testing.assert_array_equal(result, np.array([np.nan, complex(1, np.nan), 2 + 1j], np.complex64))


# -- dtypes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype1", "dtype2", "expected"),
    [
        ("float32", "float64", "float64"),
        ("complex64", "float32", "complex64"),
        ("float64", "complex64", "complex128"),
        ("int16", "uint16", "int32"),
        ("bool", "uint8", "uint8"),
        ("int32", "float32", "float64"),
    ],
)
def test_data_of_different_dtypes_meet_in_the_smallest_that_holds_both(
    tmp_path: Path, dtype1: str, dtype2: str, expected: str
) -> None:
    data = (np.array([1, 0], dtype1),), (np.array([1], dtype2),)
    _, result = union(tmp_path, (np.array([1, 4]), np.array([2])), data)
    assert result.dtype == expected
    assert result.tolist() == [1, 1, 0]


@pytest.mark.parametrize(("dtype1", "dtype2"), [("int64", "float32"), ("int64", "uint64"), ("float64", "int64")])
def test_data_that_would_lose_digits_are_refused(tmp_path: Path, dtype1: str, dtype2: str) -> None:
    """The second cloud is not cast to the dtype of the first in silence."""
    data = (np.zeros(2, dtype1),), (np.zeros(1, dtype2),)
    with pytest.raises(MoraineError, match=rf"pc-union: pc2 .*pc2_0\.zarr is {dtype2}, pc1 .* is {dtype1}; expected"):
        union(tmp_path, (np.array([1, 4]), np.array([2])), data)


@pytest.mark.parametrize("dtype1", DIGITS)
@pytest.mark.parametrize("dtype2", DIGITS)
def test_the_common_dtype_holds_the_extremes_of_both_and_is_no_wider_than_that_of_numpy(
    dtype1: str, dtype2: str
) -> None:
    def extremes(dtype: str) -> list[Any]:
        kind = np.dtype(dtype).kind
        if kind == "b":
            return [False, True]
        if kind in "iu":
            return [int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)]
        tiny = np.finfo(dtype).smallest_subnormal
        return [complex(tiny, -tiny)] if kind == "c" else [float(tiny), 1 + float(np.finfo(dtype).eps)]

    def keeps(dtype: str, values: list[Any]) -> bool:
        with np.errstate(all="ignore"):
            return all(np.array([value]).astype(dtype)[0].item() == value for value in values)

    common = common_dtype(dtype1, dtype2)
    usual = np.promote_types(dtype1, dtype2).name
    if common is None:
        assert not keeps(usual, extremes(dtype1) + extremes(dtype2))
    else:
        assert common == common_dtype(dtype2, dtype1) == usual
        assert keeps(common, extremes(dtype1) + extremes(dtype2))


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("idx1", "idx2", "fault"),
    [
        ([3, 1], [2], r"idx1 .*idx1\.zarr: row 1 is below the row before"),
        ([1, 3, 3], [2], r"idx1 .*idx1\.zarr: row 2 repeats the row before"),
        ([3], [1, 5, 4], r"idx2 .*idx2\.zarr: row 2 is below"),
    ],
)
@pytest.mark.parametrize("kind", ["gix", "hix"])
def test_a_cloud_that_is_not_sorted_is_named_with_its_row(
    tmp_path: Path, idx1: list[int], idx2: list[int], fault: str, kind: str
) -> None:
    clouds = (as_gix(idx1), as_gix(idx2)) if kind == "gix" else (np.array(idx1), np.array(idx2))
    with pytest.raises(ValueError, match=f"pc-union: {fault}"):
        union(tmp_path, clouds, ((np.zeros(len(idx1)),), (np.zeros(len(idx2)),)))
    assert not (tmp_path / "idx.zarr").exists()
    assert not (tmp_path / "pc0.zarr").exists()


def test_two_rows_of_a_gix_that_ascend_in_one_column_only_are_not_sorted(tmp_path: Path) -> None:
    gix = np.array([[0, 5], [1, 6], [1, 2]], np.int32)
    with pytest.raises(ValueError, match=r"idx2 .*: row 2 is below"):
        union(tmp_path, (np.array([[0, 0]], np.int32), gix))


def test_clouds_of_different_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"pc-union: idx2 .* shape \(1,\), idx1 .* \(1, 2\); expected two gix"):
        union(tmp_path, (as_gix([1]), np.array([1])))


@pytest.mark.parametrize(
    ("clouds", "fault"),
    [
        ((as_gix([1]), as_gix([WIDTH * 7])), r"idx2 .*: row 0 is \(azimuth, range\) = \(7, 0\), outside .*\(7, 13\)"),
        ((np.array([[0, -1]], np.int32), as_gix([1])), r"idx1 .*: row 0 is .*\(0, -1\), outside"),
        ((np.array([3]), np.array([4, 256])), "idx2 .*: row 1 is 256; expected 0 to 255"),
    ],
)
def test_points_are_checked_against_a_shape_that_is_given(tmp_path: Path, clouds: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=f"pc-union: {fault}"):
        union(tmp_path, clouds, shape=(7, WIDTH))


@pytest.mark.parametrize("clouds", [(np.array([-1, 2]), np.array([3])), (np.array([[-1, 2]]), np.array([[3, 3]]))])
def test_negative_points_are_refused_without_a_shape(tmp_path: Path, clouds: Any) -> None:
    with pytest.raises(ValueError, match=r"pc-union: idx1 .*: row 0 is"):
        union(tmp_path, clouds)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"pc1", "pc2"}, "pc1 has 1 arrays and pc 0"),
        ({"pc1", "pc"}, "pc1 has 1 arrays and pc2 0"),
        ({"pc2", "pc"}, "pc1 has 0 arrays and pc2 1"),
        ({"pc"}, "pc1 has 0 arrays and pc 1"),
    ],
)
def test_data_are_given_for_both_clouds_and_the_output_or_not_at_all(
    tmp_path: Path, given: set[str], fault: str
) -> None:
    idx = [write_array(tmp_path / f"idx{k}.zarr", np.arange(k)) for k in (1, 2)]
    data = {f"pc{k}": write_array(tmp_path / f"pc{k}.zarr", np.zeros(k)) for k in (1, 2)}
    arguments = {name: path for name, path in {**data, "pc": str(tmp_path / "pc.zarr")}.items() if name in given}
    with pytest.raises(MoraineError, match=f"pc-union: {fault}; expected as many"):
        pc_union(idx1=idx[0], idx2=idx[1], idx=str(tmp_path / "idx.zarr"), **arguments)


def test_data_of_another_length_or_with_other_axes_are_refused(tmp_path: Path) -> None:
    keys = (np.array([1, 4]), np.array([2]))
    with pytest.raises(MoraineError, match=r"pc2 .* has shape \(2,\); expected n_points2 1, as in idx2"):
        union(tmp_path, keys, ((np.zeros(2),), (np.zeros(2),)))
    with pytest.raises(MoraineError, match=r"pc2 .* has shape \(1, 3\); expected \(n_points2, 2\), as pc1"):
        union(tmp_path, keys, ((np.zeros((2, 2)),), (np.zeros((1, 3)),)))


def test_a_shape_that_is_no_raster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"pc-union: shape is \(0, 5\); expected two sides"):
        union(tmp_path, (np.array([1]), np.array([2])), shape=(0, 5))
