"""bool2gix: against a plain search, with masks of numbers and missing values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_core import MoraineError, Workers
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, write_array
from moraine_points import conditions
from moraine_points.bool2gix import bool2gix

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


@pytest.fixture(autouse=True)
def _small_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even a small mask into many bands."""
    monkeypatch.setattr(conditions, "BAND_VALUES", 1)


def points(
    folder: Path, mask: NDArray[Any], mask_chunks: tuple[int, int] | None = None, **options: Any
) -> NDArray[np.int32]:
    path = write_array(folder / "is_pc.zarr", mask, mask_chunks)
    bool2gix(is_pc=path, gix=str(folder / "gix.zarr"), **options, workers=Workers(n_workers=2))
    gix = read_array(folder / "gix.zarr")
    assert gix.dtype == np.int32
    return gix


@settings(deadline=None, max_examples=20)
@given(
    st.tuples(st.integers(1, 17), st.integers(1, 13)),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.integers(1, 60),
    st.sampled_from([0.0, 0.02, 0.3, 1.0]),
)
def test_the_points_are_those_of_a_plain_search_and_no_flags(
    tmp_path_factory: pytest.TempPathFactory,
    shape: tuple[int, int],
    mask_chunks: tuple[int, int],
    chunks: int,
    share: float,
) -> None:
    """The index is one of integers: not every azimuth and range becomes 0 or 1."""
    mask = np.random.default_rng(sum(shape)).random(shape) < share
    folder = tmp_path_factory.mktemp("points")
    gix = points(folder, mask, mask_chunks, chunks=chunks)
    assert gix.tolist() == [[i, j] for i in range(shape[0]) for j in range(shape[1]) if mask[i, j]]
    assert open_array(folder / "gix.zarr").chunks == (chunks, 2)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32", "float64"])
def test_in_a_mask_of_numbers_every_value_but_zero_is_true(tmp_path: Path, dtype: str) -> None:
    mask = np.array([[0, 1, 2], [7, 0, 0]]).astype(dtype)
    if dtype != "uint8":
        mask[1, 1] = -3
    assert points(tmp_path, mask).tolist() == [[i, j] for i in range(2) for j in range(3) if mask[i, j]]


def test_fractions_and_infinities_are_true_and_missing_values_are_not(tmp_path: Path) -> None:
    mask = np.array([[0.25, np.nan, 0.0], [-0.0, np.inf, -1e-30]], np.float32)
    assert points(tmp_path, mask).tolist() == [[0, 0], [1, 1], [1, 2]]


@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (3, 0), (1, 1)])
def test_where_nothing_is_true_the_gix_is_empty(tmp_path: Path, shape: tuple[int, int]) -> None:
    assert points(tmp_path, np.zeros(shape, np.bool_)).shape == (0, 2)
    assert open_array(tmp_path / "gix.zarr").chunks == (100_000, 2)


@pytest.mark.parametrize(
    "values", [np.zeros(3, np.bool_), np.zeros((2, 3, 1), np.bool_), np.zeros((2, 2), np.complex64)]
)
def test_what_is_not_a_mask_of_a_raster_is_refused(tmp_path: Path, values: NDArray[Any]) -> None:
    path = write_array(tmp_path / "x.zarr", values)
    with pytest.raises(MoraineError, match=r"bool2gix: is_pc .*x\.zarr (has shape \((3,|2, 3, 1)\)|is complex64)"):
        bool2gix(is_pc=path, gix=str(tmp_path / "gix.zarr"))


def test_chunks_below_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"bool2gix: chunks .*expected positive"):
        points(tmp_path, np.ones((2, 2), np.bool_), chunks=0)
