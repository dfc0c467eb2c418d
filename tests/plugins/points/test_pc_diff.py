"""pc-diff: against Python's sets."""

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
from moraine_points.pc_diff import pc_diff

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


def diff(folder: Path, clouds: tuple[Any, Any], *data: Values, **options: Any) -> list[Values]:
    """Take the points of the first cloud that are not in the second; return the index and the data."""
    arguments: dict[str, Any] = {"idx": str(folder / "idx.zarr")}
    for name, values, block in (("idx1", clouds[0], 4), ("idx2", clouds[1], 3)):
        values = np.asarray(values)
        arguments[name] = write_array(folder / f"{name}.zarr", values, (block, *values.shape[1:]))
    inputs = [write_array(folder / f"in{k}.zarr", v, (3, *(1,) * (v.ndim - 1))) for k, v in enumerate(data)]
    outputs = [str(folder / f"out{k}.zarr") for k in range(len(data))]
    pc_diff(**arguments, pc1=inputs or None, pc=outputs or None, **options, workers=Workers(n_workers=2))
    return [read_array(path) for path in (arguments["idx"], *outputs)]


def test_the_published_example(tmp_path: Path) -> None:
    assert diff(tmp_path, (np.array([1, 4, 6]), np.array([0, 4, 9])))[0].tolist() == [1, 6]


sets = st.sets(st.integers(0, 40), max_size=25)


@settings(deadline=None, max_examples=20)
@given(sets, sets, st.integers(1, 9) | st.just(-1), st.booleans())
def test_points_are_those_of_the_difference_of_sets(
    tmp_path_factory: pytest.TempPathFactory, points1: set[int], points2: set[int], chunks: int, is_gix: bool
) -> None:
    ordered = sorted(points1), sorted(points2)
    indices = [as_gix(points) if is_gix else np.array(points, np.int64) for points in ordered]
    data = np.array(ordered[0], np.float32), np.array([[p, -p] for p in ordered[0]], np.int16).reshape(-1, 2)
    idx, flat, stack = diff(tmp_path_factory.mktemp("diff"), (indices[0], indices[1]), *data, chunks=chunks)
    expected = sorted(points1 - points2)
    assert idx.tolist() == (as_gix(expected) if is_gix else np.array(expected)).tolist()
    assert flat.tolist() == expected
    assert stack.tolist() == [[p, -p] for p in expected]
    assert (flat.dtype, stack.dtype) == (np.float32, np.int16)


@pytest.mark.parametrize(
    ("points", "expected"), [(([], []), []), (([], [1]), []), (([1], []), [1]), (([1], [1]), []), (([1], [0]), [1])]
)
def test_clouds_of_no_point_and_of_one(
    tmp_path: Path, points: tuple[list[int], list[int]], expected: list[int]
) -> None:
    data = np.array(points[0], np.complex64)
    for clouds in ([np.array(p, np.int64) for p in points], [as_gix(p).reshape(-1, 2) for p in points]):
        idx, values = diff(tmp_path, (clouds[0], clouds[1]), data)
        assert len(idx) == len(expected)
        assert idx.shape[1:] == clouds[0].shape[1:]
        assert values.tolist() == expected


def test_chunks_are_those_of_the_first_cloud_unless_asked_for(tmp_path: Path) -> None:
    diff(tmp_path, (as_gix(range(9)), as_gix([1])), np.zeros((9, 2)))
    assert open_array(tmp_path / "idx.zarr").chunks == (4, 2)
    assert open_array(tmp_path / "out0.zarr").chunks == (4, 1)
    diff(tmp_path, (as_gix(range(9)), as_gix([1])), np.zeros((9, 2)), chunks=5)
    assert open_array(tmp_path / "out0.zarr").chunks == (5, 1)


def test_a_cloud_that_is_not_sorted_is_named_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"pc-diff: idx1 .*idx1\.zarr: row 2 repeats the row before"):
        diff(tmp_path, (np.array([1, 3, 3]), np.array([2])), np.zeros(3))
    with pytest.raises(ValueError, match=r"pc-diff: idx2 .*idx2\.zarr: row 1 is below the row before"):
        diff(tmp_path, (as_gix([1, 3]), as_gix([2, 1])))
    assert not (tmp_path / "idx.zarr").exists()
    assert not (tmp_path / "out0.zarr").exists()


def test_points_outside_a_shape_that_is_given_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"pc-diff: idx1 .*: row 1 is .*\(1, 0\), outside the raster \(1, 13\)"):
        diff(tmp_path, (as_gix([1, 13]), as_gix([1])), shape=(1, 13))


def test_clouds_of_different_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"pc-diff: idx2 .*; expected two gix \(n_points, 2\), or two hix"):
        diff(tmp_path, (np.array([1]), as_gix([1])))


@pytest.mark.parametrize(("name", "fault"), [("pc1", "pc1 has 1 arrays and pc 0"), ("pc", "pc1 has 0 arrays and pc 1")])
def test_data_and_output_go_together(tmp_path: Path, name: str, fault: str) -> None:
    idx = [write_array(tmp_path / f"idx{k}.zarr", np.arange(2)) for k in (1, 2)]
    data = {"pc1": write_array(tmp_path / "pc1.zarr", np.arange(2)), "pc": str(tmp_path / "pc.zarr")}[name]
    with pytest.raises(MoraineError, match=f"pc-diff: {fault}; expected as many"):
        pc_diff(idx1=idx[0], idx2=idx[1], idx=str(tmp_path / "idx.zarr"), **{name: data})
