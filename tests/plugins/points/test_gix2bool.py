"""gix2bool: a mask that is true at the points and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_core import MoraineError, Workers
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, write_array
from moraine_points.bool2gix import bool2gix
from moraine_points.gix2bool import gix2bool

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def mask(folder: Path, gix: NDArray[Any], shape: tuple[int, int], **options: Any) -> NDArray[np.bool_]:
    path = write_array(folder / "gix.zarr", gix, (3, 2))
    gix2bool(gix=path, is_pc=str(folder / "is_pc.zarr"), shape=shape, **options, workers=Workers(n_workers=2))
    result = read_array(folder / "is_pc.zarr")
    assert (result.dtype, result.shape) == (np.bool_, shape)
    return result


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_the_mask_is_true_at_the_points_and_nowhere_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    shape = data.draw(st.tuples(st.integers(1, 20), st.integers(1, 20)))
    chunks = data.draw(st.tuples(st.integers(1, 9) | st.just(-1), st.integers(1, 9) | st.just(-1)))
    points = data.draw(st.lists(st.tuples(st.integers(0, shape[0] - 1), st.integers(0, shape[1] - 1)), max_size=40))
    folder = tmp_path_factory.mktemp("mask")
    result = mask(folder, np.array(points, np.int32).reshape(-1, 2), shape, chunks=chunks)
    inside = set(points)
    assert result.tolist() == [[(i, j) in inside for j in range(shape[1])] for i in range(shape[0])]
    # and back: the points in the order of the raster, each once
    bool2gix(is_pc=str(folder / "is_pc.zarr"), gix=str(folder / "back.zarr"))
    assert read_array(folder / "back.zarr").tolist() == [list(point) for point in sorted(inside)]


def test_points_may_come_in_any_order_and_twice(tmp_path: Path) -> None:
    gix = np.array([[2, 1], [0, 0], [2, 1], [1, 2]], np.int64)
    assert mask(tmp_path, gix, (3, 4)).nonzero()[0].tolist() == [0, 1, 2]


def test_a_cloud_of_no_points_marks_nothing(tmp_path: Path) -> None:
    assert not mask(tmp_path, np.zeros((0, 2), np.int32), (3, 4)).any()


def test_chunks_are_1000_pixels_unless_asked_for(tmp_path: Path) -> None:
    mask(tmp_path, np.zeros((1, 2), np.int32), (3, 4))
    assert open_array(tmp_path / "is_pc.zarr").chunks == (1000, 1000)
    mask(tmp_path, np.zeros((1, 2), np.int32), (3, 4), chunks=(2, -1))
    assert open_array(tmp_path / "is_pc.zarr").chunks == (2, 4)


@pytest.mark.parametrize("bad", [(-1, 0), (0, -1), (3, 0), (0, 4)])
def test_a_point_outside_the_raster_is_named_by_its_row(tmp_path: Path, bad: tuple[int, int]) -> None:
    gix = np.array([(0, 0)] * 4 + [bad], np.int32)
    fault = rf"row 4 is .*\({bad[0]}, {bad[1]}\), outside the raster \(3, 4\)"
    with pytest.raises(MoraineError, match=rf"gix2bool: gix .*gix\.zarr: {fault}"):
        mask(tmp_path, gix, (3, 4))
    assert not (tmp_path / "is_pc.zarr").exists()


def test_a_shape_that_is_no_raster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"gix2bool: shape is \(0, 4\); expected two sides"):
        mask(tmp_path, np.zeros((1, 2), np.int32), (0, 4))


@pytest.mark.parametrize("values", [np.zeros((3, 3), np.int32), np.zeros((3, 2), np.float32), np.zeros(3, np.int64)])
def test_what_is_not_a_gix_is_refused(tmp_path: Path, values: NDArray[Any]) -> None:
    path = write_array(tmp_path / "x.zarr", values)
    with pytest.raises(MoraineError, match=r"gix2bool: gix .*x\.zarr (is float32|has shape \(3)"):
        gix2bool(gix=path, is_pc=str(tmp_path / "is_pc.zarr"), shape=(5, 7))
