"""pc-gix: the inverse of pc-hix, which refuses indices of other rasters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_core import MoraineError, Workers
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, write_array
from moraine_points.pc_gix import pc_gix
from moraine_points.pc_hix import pc_hix

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def decode(
    folder: Path, hix: NDArray[Any], shape: tuple[int, int], *, block: int = 3, **options: Any
) -> NDArray[np.int32]:
    path = write_array(folder / "hix.zarr", hix, (block,))
    pc_gix(hix=path, gix=str(folder / "gix.zarr"), shape=shape, **options, workers=Workers(n_workers=2))
    gix = read_array(folder / "gix.zarr")
    assert gix.dtype == np.int32
    return gix


@pytest.mark.parametrize(
    ("shape", "indices"),
    [
        ((4, 4), {(0, 0): 0, (0, 1): 3, (1, 0): 1, (0, 3): 5, (3, 0): 15, (3, 3): 10}),
        ((100, 200), {(0, 199): 20543, (99, 0): 5135, (99, 199): 28304, (50, 100): 13110, (1, 2): 7}),
        ((981, 4160), {(0, 4159): 16778581, (980, 0): 349104, (500, 2000): 1485978, (123, 456): 94085}),
        ((1, 1), {(0, 0): 0}),
    ],
)
def test_published_indices(tmp_path: Path, shape: tuple[int, int], indices: dict[tuple[int, int], int]) -> None:
    hix = np.array(list(indices.values()), np.int64)
    assert decode(tmp_path, hix, shape).tolist() == [list(point) for point in indices]


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_encoding_and_decoding_leave_a_cloud_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    shape = data.draw(st.tuples(st.integers(1, 2**31), st.integers(1, 2**31)))
    point = st.tuples(st.integers(0, shape[0] - 1), st.integers(0, shape[1] - 1))
    gix = np.array(data.draw(st.lists(point, max_size=20)), np.int32).reshape(-1, 2)
    folder = tmp_path_factory.mktemp("round")
    path = write_array(folder / "gix_in.zarr", gix, (data.draw(st.integers(1, 9)), 2))
    pc_hix(gix=path, hix=str(folder / "hix.zarr"), shape=shape)
    pc_gix(hix=str(folder / "hix.zarr"), gix=str(folder / "gix.zarr"), shape=shape, chunks=data.draw(st.integers(1, 9)))
    np.testing.assert_array_equal(read_array(folder / "gix.zarr"), gix)


def test_chunks_are_those_of_the_points_unless_asked_for(tmp_path: Path) -> None:
    decode(tmp_path, np.zeros(7, np.int64), (1, 1))
    assert open_array(tmp_path / "gix.zarr").chunks == (3, 2)
    decode(tmp_path, np.zeros(7, np.int64), (1, 1), chunks=5)
    assert open_array(tmp_path / "gix.zarr").chunks == (5, 2)


def test_a_cloud_of_no_points_has_an_empty_index(tmp_path: Path) -> None:
    assert decode(tmp_path, np.zeros(0, np.int64), (4, 4)).shape == (0, 2)


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (-1, "is -1; expected 0 to 63 on the curve"),
        (64, "is 64; expected 0 to 63 on the curve"),
        (63, r"is 63, which is \(azimuth, range\) = \(7, 0\), outside the raster \(5, 7\)"),
    ],
)
def test_an_index_of_another_raster_is_named_by_its_row_in_the_cloud(tmp_path: Path, bad: int, fault: str) -> None:
    with pytest.raises(ValueError, match=rf"pc-gix: hix .*hix\.zarr: row 4 {fault}"):
        decode(tmp_path, np.array([0, 1, 2, 3, bad]), (5, 7))
    assert not (tmp_path / "gix.zarr").exists()


def test_a_shape_that_is_no_raster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"pc-gix: shape is \(5, 0\); expected two sides"):
        decode(tmp_path, np.zeros(1, np.int64), (5, 0))


@pytest.mark.parametrize("values", [np.zeros((3, 2), np.int64), np.zeros(3, np.float32)])
def test_what_is_not_a_hix_is_refused_with_its_path(tmp_path: Path, values: NDArray[Any]) -> None:
    path = write_array(tmp_path / "x.zarr", values)
    with pytest.raises(MoraineError, match=r"pc-gix: hix .*x\.zarr (is float32|has shape \(3, 2\))"):
        pc_gix(hix=path, gix=str(tmp_path / "gix.zarr"), shape=(5, 7))
