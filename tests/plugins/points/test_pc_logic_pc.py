"""pc-logic-pc: against a plain search, for chunks of index, data and result that fit each other badly."""

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
from moraine_points.pc_logic_pc import pc_logic_pc

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


@pytest.fixture(autouse=True)
def _small_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even a small cloud into many bands."""
    monkeypatch.setattr(conditions, "BAND_VALUES", 1)


def cloud(n_points: int, kind: str = "gix") -> NDArray[Any]:
    """Return different points in no order."""
    pixels = np.random.default_rng(n_points).permutation(4 * n_points)[:n_points]
    return np.stack(np.divmod(pixels, 10), axis=1).astype(np.int32) if kind == "gix" else pixels.astype(np.int64)


def choose(
    folder: Path,
    idx: NDArray[Any],
    data: NDArray[Any],
    operation: str,
    *,
    blocks: tuple[int, int] = (4, 3),
    **options: Any,
) -> NDArray[Any]:
    """Choose from a cloud whose index and data are written in blocks of points."""
    pc_logic_pc(
        idx_in=write_array(folder / "idx_in.zarr", idx, (blocks[0], *idx.shape[1:])),
        pc_in=write_array(folder / "pc_in.zarr", data, (blocks[1], *data.shape[1:])),
        idx=str(folder / "idx.zarr"),
        operation=operation,
        **options,
        workers=Workers(n_workers=2),
    )
    return read_array(folder / "idx.zarr")


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 50),
    st.sampled_from(["gix", "hix"]),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.integers(1, 30) | st.just(-1),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
def test_the_points_are_those_of_a_plain_search_in_their_order(
    tmp_path_factory: pytest.TempPathFactory,
    n_points: int,
    kind: str,
    blocks: tuple[int, int],
    chunks: int,
    share: float,
) -> None:
    idx = cloud(n_points, kind)
    data = np.random.default_rng(n_points + 1).random(n_points, np.float32)
    folder = tmp_path_factory.mktemp("logic")
    result = choose(folder, idx, data, f"pc_in < {share}", blocks=blocks, chunks=chunks)
    assert result.dtype == idx.dtype
    assert result.shape[1:] == idx.shape[1:]
    assert result.tolist() == [point for point, value in zip(idx.tolist(), data, strict=True) if value < share]


def test_bands_may_hold_several_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "BAND_VALUES", 20)
    idx, data = cloud(83), np.random.default_rng(4).random(83)
    result = choose(tmp_path, idx, data, "pc_in > 0.5", chunks=30)
    assert result.tolist() == [point for point, value in zip(idx.tolist(), data, strict=True) if value > 0.5]


def test_missing_values_are_not_chosen_unless_asked_for(tmp_path: Path) -> None:
    idx, data = np.arange(4), np.array([np.nan, 1, 0, np.nan], np.float32)
    assert choose(tmp_path, idx, data, "pc_in >= 0").tolist() == [1, 2]
    assert choose(tmp_path, idx, data, "isnan(pc_in)").tolist() == [0, 3]
    assert choose(tmp_path, idx, data, "pc_in != pc_in").tolist() == [0, 3]
    assert choose(tmp_path, idx, data, "pc_in < 0").shape == (0,)


def test_data_with_one_image_are_data_of_points(tmp_path: Path) -> None:
    idx = cloud(5)
    result = choose(tmp_path, idx, np.arange(5).reshape(5, 1), "pc_in > 2")
    assert result.tolist() == idx[3:].tolist()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float64", "complex64"])
def test_data_of_any_dtype_can_be_chosen_by(tmp_path: Path, dtype: str) -> None:
    data = np.array([0, 1, 0, 1], dtype)
    operation = {"bool": "pc_in", "uint8": "pc_in", "complex64": "real(pc_in) == 1"}.get(dtype, "pc_in == 1")
    assert choose(tmp_path, np.arange(4), data, operation).tolist() == [1, 3]


def test_chunks_are_those_of_the_index_unless_asked_for(tmp_path: Path) -> None:
    choose(tmp_path, cloud(9), np.arange(9), "pc_in > 2")
    assert open_array(tmp_path / "idx.zarr").chunks == (4, 2)
    choose(tmp_path, cloud(9), np.arange(9), "pc_in > 2", chunks=5)
    assert open_array(tmp_path / "idx.zarr").chunks == (5, 2)


def test_an_index_is_written_in_the_dtype_of_the_contract(tmp_path: Path) -> None:
    data = np.arange(3)
    assert choose(tmp_path, cloud(3).astype(np.int64), data, "pc_in > 0").dtype == np.int32
    assert choose(tmp_path, np.arange(3, dtype=np.int32), data, "pc_in > 0").dtype == np.int64


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 2), (3, 1, 1)])
def test_more_than_one_value_per_point_is_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(MoraineError, match=r"pc-logic-pc: pc_in .*pc_in\.zarr has shape"):
        choose(tmp_path, np.arange(3), np.zeros(shape), "pc_in > 0")


def test_data_of_another_length_are_refused_with_both_paths(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"pc_in .* has shape \(4,\); expected n_points 3, as in idx_in"):
        choose(tmp_path, np.arange(3), np.zeros(4), "pc_in > 0")


def test_a_result_that_is_no_condition_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"pc-logic-pc: operation 'pc_in \* 2' gives float32 .*; expected bool"):
        choose(tmp_path, np.arange(2), np.ones(2, np.float32), "pc_in * 2")
    with pytest.raises(
        ValueError, match=r"pc-logic-pc: pc_in .*: operation 'pc_in \+ 1' gives 2; expected true or fal"
    ):
        choose(tmp_path, np.arange(2), np.array([0, 1]), "pc_in + 1")
    assert not (tmp_path / "idx.zarr").exists()


@pytest.mark.parametrize("bad", [-1, 2**31])
def test_a_point_that_no_raster_has_is_named_by_its_row(tmp_path: Path, bad: int) -> None:
    """Nothing is wrapped where the index is stored in a wider dtype than is written."""
    idx = np.array([[0, 0], [0, 1], [0, 2], [0, 3], [0, 4], [0, bad]])
    with pytest.raises(ValueError, match=rf"pc-logic-pc: idx_in .*idx_in\.zarr: row 5 is .*\(0, {bad}\), outside"):
        choose(tmp_path, idx, np.arange(6), "pc_in > 0")


def test_an_array_of_another_name_is_refused_with_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"pc-logic-pc: .*uses 'ras'; the given names are: pc_in"):
        choose(tmp_path, np.arange(2), np.zeros(2), "ras > 0")
