"""pc-logic-ras: against numpy's own search, for chunks of points and rasters that fit each other badly."""

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
from moraine_points.pc_logic_ras import pc_logic_ras

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


@pytest.fixture(autouse=True)
def _small_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even a small raster into many bands."""
    monkeypatch.setattr(conditions, "BAND_VALUES", 1)


def choose(
    folder: Path,
    ras: NDArray[Any],
    operation: str,
    *,
    raster_chunks: tuple[int, ...] | None = None,
    chunks: int | None = None,
) -> NDArray[np.int32]:
    path = write_array(folder / "ras.zarr", ras, raster_chunks)
    pc_logic_ras(
        ras=path, gix=str(folder / "gix.zarr"), operation=operation, chunks=chunks, workers=Workers(n_workers=2)
    )
    gix = read_array(folder / "gix.zarr")
    assert gix.dtype == np.int32
    return gix


@settings(deadline=None, max_examples=25)
@given(
    shape=st.tuples(st.integers(1, 17), st.integers(1, 13)),
    raster_chunks=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    chunks=st.integers(1, 60),
    share=st.sampled_from([0.0, 0.02, 0.3, 0.97, 1.0]),
)
def test_the_pixels_are_those_of_a_plain_search_in_the_order_of_the_raster(
    tmp_path_factory: pytest.TempPathFactory,
    shape: tuple[int, int],
    raster_chunks: tuple[int, int],
    chunks: int,
    share: float,
) -> None:
    ras = np.random.default_rng(sum(shape)).random(shape, np.float32)
    expected = [[i, j] for i in range(shape[0]) for j in range(shape[1]) if ras[i, j] < share]
    folder = tmp_path_factory.mktemp("logic")
    gix = choose(folder, ras, f"ras < {share}", raster_chunks=raster_chunks, chunks=chunks)
    assert gix.tolist() == expected
    assert open_array(folder / "gix.zarr").chunks == (chunks, 2)


def test_bands_may_hold_several_rows_of_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "BAND_VALUES", 200)
    ras = np.random.default_rng(4).random((83, 11))
    gix = choose(tmp_path, ras, "ras > 0.5", raster_chunks=(4, 5), chunks=70)
    np.testing.assert_array_equal(gix, np.argwhere(ras > 0.5))


def test_default_chunks_of_points_are_100000(tmp_path: Path) -> None:
    choose(tmp_path, np.ones((2, 3)), "ras > 0")
    assert open_array(tmp_path / "gix.zarr").chunks == (100_000, 2)


@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (3, 0)])
def test_an_empty_choice_is_an_empty_gix(tmp_path: Path, shape: tuple[int, int]) -> None:
    assert choose(tmp_path, np.zeros(shape, np.float32), "ras > 0").shape == (0, 2)


def test_missing_values_are_not_chosen_unless_asked_for(tmp_path: Path) -> None:
    ras = np.array([[np.nan, 1, 2], [0, np.nan, np.nan]], np.float32)
    assert choose(tmp_path, ras, "ras >= 1").tolist() == [[0, 1], [0, 2]]
    assert choose(tmp_path, ras, "(ras >= 1) & (ras <= 1)").tolist() == [[0, 1]]
    assert choose(tmp_path, ras, "isnan(ras)").tolist() == [[0, 0], [1, 1], [1, 2]]
    assert choose(tmp_path, ras, "~isnan(ras) & (ras != 1)").tolist() == [[0, 2], [1, 0]]
    assert choose(tmp_path, np.full((3, 2), np.nan), "ras < 1").shape == (0, 2)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float64", "complex64"])
def test_rasters_of_any_dtype_can_be_chosen_from(tmp_path: Path, dtype: str) -> None:
    ras = np.eye(5, dtype=dtype)
    operation = {"bool": "ras", "uint8": "ras", "complex64": "real(ras) == 1"}.get(dtype, "ras == 1")
    assert choose(tmp_path, ras, operation, raster_chunks=(2, 2), chunks=2).tolist() == [[k, k] for k in range(5)]


def test_a_raster_with_one_image_is_a_raster(tmp_path: Path) -> None:
    ras = np.arange(6).reshape(2, 3, 1)
    assert choose(tmp_path, ras, "ras > 3", raster_chunks=(1, 2, 1)).tolist() == [[1, 1], [1, 2]]


@pytest.mark.parametrize("shape", [(6,), (2, 3, 2), (2, 3, 1, 1)])
def test_more_or_less_than_one_value_per_pixel_is_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(MoraineError, match=r"pc-logic-ras: ras .*ras\.zarr has shape"):
        choose(tmp_path, np.zeros(shape), "ras > 3")


def test_a_result_that_is_no_condition_is_refused_before_work(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"pc-logic-ras: operation 'ras \* 2' gives float32 .*; expected bool"):
        choose(tmp_path, np.ones((2, 2), np.float32), "ras * 2")


def test_integers_other_than_0_and_1_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ras\.zarr: operation 'ras \+ 1' gives 2; expected true or false"):
        choose(tmp_path, np.array([[0, 1], [0, 0]]), "ras + 1")
    assert not (tmp_path / "gix.zarr").exists()


def test_other_names_than_ras_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"pc-logic-ras: .* uses 'adi'; the given names are: ras"):
        choose(tmp_path, np.ones((2, 2)), "adi < 3")


def test_chunks_of_no_points_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"pc-logic-ras: chunks .*expected positive"):
        choose(tmp_path, np.ones((2, 2)), "ras > 0", chunks=0)
