"""pc-intersect: against Python's sets, with data of either cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_core import MoraineError, Workers
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, write_array
from moraine_points import picking, tasks
from moraine_points.pc_intersect import pc_intersect

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Values = NDArray[Any]


@pytest.fixture(autouse=True)
def _small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even a small cloud into many tasks, which read chunk by chunk."""
    monkeypatch.setattr(picking, "TASK_BYTES", 1)
    monkeypatch.setattr(tasks, "WINDOW_POINTS", 1)


def as_gix(pixels: Any, width: int = 13) -> NDArray[np.int32]:
    return np.stack(np.divmod(np.array(pixels, np.int64), width), axis=1).astype(np.int32)


def intersect(
    folder: Path, clouds: tuple[Any, Any], data: dict[str, Values] | None = None, **options: Any
) -> list[Values]:
    """Intersect two clouds, with the data of those that are named; return the index and the data."""
    arguments: dict[str, Any] = {"idx": str(folder / "idx.zarr")}
    for name, values, block in (("idx1", clouds[0], 4), ("idx2", clouds[1], 3)):
        values = np.asarray(values)
        arguments[name] = write_array(folder / f"{name}.zarr", values, (block, *values.shape[1:]))
    for name, values in (data or {}).items():
        arguments[name] = write_array(folder / f"{name}.zarr", values, (3, *(1,) * (values.ndim - 1)))
    if data:
        arguments["pc"] = str(folder / "pc.zarr")
    pc_intersect(**arguments, **options, workers=Workers(n_workers=2))
    return [read_array(arguments[name]) for name in ("idx", "pc") if name in arguments]


def test_the_published_example(tmp_path: Path) -> None:
    assert intersect(tmp_path, (np.array([1, 4, 6]), np.array([0, 4, 9])))[0].tolist() == [4]


sets = st.sets(st.integers(0, 40), max_size=25)


@settings(deadline=None, max_examples=20)
@given(sets, sets, st.integers(1, 9) | st.just(-1), st.booleans(), st.booleans())
def test_points_are_those_of_both_sets_and_data_of_the_preferred_one(
    tmp_path_factory: pytest.TempPathFactory,
    points1: set[int],
    points2: set[int],
    chunks: int,
    is_gix: bool,
    prefer_1: bool,
) -> None:
    ordered = sorted(points1), sorted(points2)
    indices = [as_gix(points) if is_gix else np.array(points, np.int64) for points in ordered]
    data = {
        f"pc{k}": np.array([[point, k] for point in points], np.int16).reshape(-1, 2)
        for k, points in enumerate(ordered, 1)
    }
    idx, stack = intersect(
        tmp_path_factory.mktemp("intersect"), (indices[0], indices[1]), data, chunks=chunks, prefer_1=prefer_1
    )
    expected = sorted(points1 & points2)
    assert idx.tolist() == (as_gix(expected) if is_gix else np.array(expected)).tolist()
    assert stack.tolist() == [[point, 1 if prefer_1 else 2] for point in expected]


@pytest.mark.parametrize("prefer_1", [True, False])
@pytest.mark.parametrize("name", ["pc1", "pc2"])
def test_where_one_cloud_has_data_they_are_taken_whichever_is_preferred(
    tmp_path: Path, name: str, prefer_1: bool
) -> None:
    """Data of the second cloud alone do not fail because the first is preferred by default."""
    data = {"pc1": np.array([1.0, 4, 6]), "pc2": np.array([0.0, 40, 90])}
    _, result = intersect(tmp_path, (np.array([1, 4, 6]), np.array([0, 4, 9])), {name: data[name]}, prefer_1=prefer_1)
    assert result.tolist() == [4.0 if name == "pc1" else 40.0]


def test_the_data_keep_dtype_and_axes_of_their_cloud(tmp_path: Path) -> None:
    data = {"pc1": np.zeros((2, 3), np.float32), "pc2": np.ones(2, np.complex64)}
    clouds = (np.array([1, 4]), np.array([4, 5]))
    assert intersect(tmp_path, clouds, data)[1].tolist() == [[0, 0, 0]]
    assert open_array(tmp_path / "pc.zarr").chunks == (4, 1)
    result = intersect(tmp_path, clouds, data, prefer_1=False)[1]
    assert (result.dtype, result.tolist()) == (np.complex64, [1])


@pytest.mark.parametrize("points", [([1, 3], [2, 4]), ([], [1]), ([1], []), ([], [])])
def test_an_intersection_may_be_empty(tmp_path: Path, points: tuple[list[int], list[int]]) -> None:
    data = {"pc1": np.zeros((len(points[0]), 2), np.float32)}
    for clouds in ([np.array(p, np.int64) for p in points], [as_gix(p).reshape(-1, 2) for p in points]):
        idx, stack = intersect(tmp_path, (clouds[0], clouds[1]), data)
        assert idx.shape == (0, *clouds[0].shape[1:])
        assert stack.shape == (0, 2)


def test_two_clouds_of_one_point_may_share_it(tmp_path: Path) -> None:
    idx, values = intersect(tmp_path, (as_gix([5]), as_gix([5])), {"pc1": np.array([7.0])})
    assert (idx.tolist(), values.tolist()) == ([[0, 5]], [7.0])


def test_a_cloud_that_is_not_sorted_is_named_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"pc-intersect: idx1 .*idx1\.zarr: row 2 repeats the row before"):
        intersect(tmp_path, (np.array([1, 3, 3]), np.array([2])), {"pc1": np.zeros(3)})
    with pytest.raises(ValueError, match=r"pc-intersect: idx2 .*idx2\.zarr: row 1 is below the row before"):
        intersect(tmp_path, (as_gix([1, 3]), as_gix([2, 1])))
    assert not (tmp_path / "idx.zarr").exists()


def test_points_outside_a_shape_that_is_given_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"pc-intersect: idx2 .*: row 1 is .*\(1, 0\), outside the raster \(1, 13\)"):
        intersect(tmp_path, (as_gix([1]), as_gix([1, 13])), shape=(1, 13))


def test_clouds_of_different_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"pc-intersect: idx2 .*; expected two gix \(n_points, 2\), or two hix"):
        intersect(tmp_path, (np.array([1]), as_gix([1])))


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"pc1"}, "pc1 has 1 arrays and pc 0"),
        ({"pc2"}, "pc2 has 1 arrays and pc 0"),
        ({"pc1", "pc2"}, "pc1 has 1 arrays and pc 0"),
        ({"pc"}, "pc1 has 0 arrays and pc 1"),
    ],
)
def test_data_and_output_go_together(tmp_path: Path, given: set[str], fault: str) -> None:
    paths = {name: write_array(tmp_path / f"{name}.zarr", np.arange(2)) for name in ("idx1", "idx2", "pc1", "pc2")}
    data = {name: path for name, path in {**paths, "pc": str(tmp_path / "pc.zarr")}.items() if name in given}
    with pytest.raises(MoraineError, match=f"pc-intersect: {fault}; expected as many"):
        pc_intersect(idx1=paths["idx1"], idx2=paths["idx2"], idx=str(tmp_path / "idx.zarr"), **data)
