"""image-pairs: the lists of pairs against the definition, and as other commands read them."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from moraine_core import MoraineError
from moraine_core.arguments import parse_pairs
from moraine_core.testing.data import write_array
from moraine_raster.image_pairs import image_pairs

if TYPE_CHECKING:
    from pathlib import Path


def pairs(folder: Path, **arguments: Any) -> list[tuple[int, int]]:
    image_pairs(out=str(folder / "pairs.txt"), **arguments)
    return list(parse_pairs(folder / "pairs.txt"))


@pytest.mark.parametrize("nimages", [2, 3, 7])
@pytest.mark.parametrize("bandwidth", [None, 1, 2, 6, 99])
def test_all_pairs_within_the_bandwidth_are_listed_in_order(
    tmp_path: Path, nimages: int, bandwidth: int | None
) -> None:
    expected = [(i, j) for i, j in combinations(range(nimages), 2) if bandwidth is None or j - i <= bandwidth]
    assert pairs(tmp_path, nimages=nimages, bandwidth=bandwidth) == expected


def test_the_text_has_a_header_and_two_columns(tmp_path: Path) -> None:
    image_pairs(out=str(tmp_path / "pairs.txt"), nimages=3)
    assert (tmp_path / "pairs.txt").read_text() == "# reference secondary\n0 1\n0 2\n1 2\n"
    assert np.loadtxt(tmp_path / "pairs.txt", dtype=int).tolist() == [[0, 1], [0, 2], [1, 2]]


@pytest.mark.parametrize("shape", [(3, 4, 5), (9, 5)])
def test_the_number_of_images_is_the_last_axis_of_a_stack(tmp_path: Path, shape: tuple[int, ...]) -> None:
    rslc = write_array(tmp_path / "rslc.zarr", np.zeros(shape, np.complex64))
    assert pairs(tmp_path, rslc=rslc, bandwidth=1) == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_an_older_list_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("old")
    assert pairs(tmp_path, nimages=2) == [(0, 1)]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "neither of rslc and nimages given; expected one"),
        ({"nimages": 1}, "nimages is 1; expected at least 2"),
        ({"nimages": -3}, "nimages is -3; expected at least 2"),
        ({"nimages": 5, "bandwidth": 0}, "bandwidth is 0; expected at least 1"),
    ],
)
def test_what_gives_no_pairs_is_refused(tmp_path: Path, arguments: dict[str, int], fault: str) -> None:
    with pytest.raises(MoraineError, match=f"image-pairs: {fault}"):
        pairs(tmp_path, **arguments)
    assert not (tmp_path / "pairs.txt").exists()


@pytest.mark.parametrize(
    ("shape", "dtype"), [((0, 4, 3), "complex64"), ((0, 3), "complex64"), ((1, 3), "float32"), ((2, 2, 3), "int16")]
)
def test_only_the_number_of_images_of_a_stack_counts(tmp_path: Path, shape: tuple[int, ...], dtype: str) -> None:
    rslc = write_array(tmp_path / "rslc.zarr", np.zeros(shape, dtype))
    assert pairs(tmp_path, rslc=rslc) == [(0, 1), (0, 2), (1, 2)]


def test_a_raster_is_no_stack(tmp_path: Path) -> None:
    rslc = write_array(tmp_path / "rslc.zarr", np.zeros(5, np.float32))
    with pytest.raises(MoraineError, match=r"image-pairs: rslc .*rslc\.zarr has shape \(5,\); expected"):
        pairs(tmp_path, rslc=rslc)


def test_a_stack_and_a_number_together_are_refused(tmp_path: Path) -> None:
    rslc = write_array(tmp_path / "rslc.zarr", np.zeros((3, 4, 5), np.complex64))
    with pytest.raises(MoraineError, match="image-pairs: both of rslc and nimages given"):
        pairs(tmp_path, rslc=rslc, nimages=5)


def test_a_stack_of_one_image_is_refused_with_its_path(tmp_path: Path) -> None:
    rslc = write_array(tmp_path / "rslc.zarr", np.zeros((3, 4, 1), np.complex64))
    with pytest.raises(MoraineError, match=r"image-pairs: rslc .*rslc\.zarr has 1 images; expected at least 2"):
        pairs(tmp_path, rslc=rslc)
