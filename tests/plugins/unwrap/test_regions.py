"""Regions against components of a graph by scipy, and clouds whose parts are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from moraine_unwrap.triangulation.kernels import edge_lengths, regions, triangulate

if TYPE_CHECKING:
    from numpy.typing import NDArray


def regions_of(points: NDArray[Any], *options: float, spacing: tuple[float, float] = (1.0, 1.0)) -> NDArray[np.int32]:
    net = triangulate(points, spacing)
    return regions(net, edge_lengths(points, net.edges, spacing), *options)


def square(side: int, corner: tuple[int, int]) -> NDArray[np.int64]:
    """Return all pixels of a square."""
    return np.stack(np.divmod(np.arange(side * side), side), axis=1) + np.array(corner)


def test_islands_are_numbered_by_their_first_points():
    points = np.concatenate([square(8, (0, 0)), square(7, (0, 40)), square(6, (60, 60)), square(5, (90, 0))])
    rng = np.random.default_rng(0)
    order = rng.permutation(len(points))
    sizes = np.repeat([64, 49, 36, 25], [64, 49, 36, 25])[order]
    found = regions_of(points[order])
    assert found.dtype == np.int32
    assert set(found[sizes == 25].tolist()) == {-1}  # fewer than 30 points
    numbers = [set(found[sizes == size].tolist()) for size in (64, 49, 36)]
    assert [len(number) for number in numbers] == [1, 1, 1]
    first = {int(np.flatnonzero(found == number)[0]): number for number in range(3)}
    assert [first[row] for row in sorted(first)] == [0, 1, 2]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("factor", [1.2, 1.8, 4.0])
@pytest.mark.parametrize("smallest", [1, 5, 30])
def test_regions_are_the_components_of_scipy(seed: int, factor: float, smallest: int):
    rng = np.random.default_rng(seed)
    points = np.unique(rng.integers(0, 300, (1500, 2)), axis=0)
    points = rng.permutation(points[np.cos(points / 15).prod(axis=1) > 0.2])
    spacing = (3.0, 1.0)
    net = triangulate(points, spacing)
    lengths = edge_lengths(points, net.edges, spacing)
    kept = net.edges[lengths <= factor * np.median(lengths)]
    graph = coo_array((np.ones(len(kept)), kept.T), shape=(len(points), len(points)))
    count, label = connected_components(graph, directed=False)
    big = np.bincount(label, minlength=count) >= smallest
    first = [int(np.argmax(label == part)) for part in range(count)]
    number = {part: k for k, part in enumerate(sorted(np.flatnonzero(big).tolist(), key=lambda part: first[part]))}
    assert regions(net, lengths, factor, smallest).tolist() == [number.get(part, -1) for part in label.tolist()]


def test_edges_as_long_as_the_limit_still_link():
    points = np.array([(0, 0), (0, 1), (0, 2), (0, 3), (0, 7), (0, 12)])
    assert regions_of(points, 4.0, 1).tolist() == [0, 0, 0, 0, 0, 1]


def test_copies_are_in_the_region_of_their_place_and_count_as_points():
    points = np.array([(0, 0), (0, 1), (0, 0), (1, 0), (90, 90), (90, 90)])
    assert regions_of(points, 4.0, 4).tolist() == [0, 0, 0, 0, -1, -1]
    assert regions_of(points, 4.0, 2).tolist() == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize(("n_points", "smallest", "expected"), [(0, 1, []), (1, 1, [0]), (1, 2, [-1]), (2, 2, [0, 0])])
def test_few_points(n_points: int, smallest: int, expected: list[int]):
    assert regions_of(np.arange(2 * n_points).reshape(-1, 2), 4.0, smallest).tolist() == expected


def test_the_options_of_regions_are_checked():
    with pytest.raises(ValueError, match=r"max_edge_factor is 1\.0; expected more than 1"):
        regions_of(square(3, (0, 0)), 1.0)
    with pytest.raises(ValueError, match="max_edge_factor is nan; expected more than 1"):
        regions_of(square(3, (0, 0)), np.nan)
    with pytest.raises(ValueError, match="min_region_points is 0; expected at least 1"):
        regions_of(square(3, (0, 0)), 4.0, 0)
