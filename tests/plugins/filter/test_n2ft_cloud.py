"""Neighbors in point clouds, and what the results at some points depend on, against loops and searches by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_filter.points import _cpu
from moraine_filter.points.structure import COARSER, LEVELS, NEIGHBORS, STRIDE, cloud_of, structure_of


def nearest_by_loops(x, y, px, py, k, skip):
    """Return the rows of the nearest points to a place by sorting all of them."""
    order = sorted((float((x[j] - px) ** 2 + (y[j] - py) ** 2), j) for j in range(len(x)) if j != skip)
    rows = [j for _, j in order[:k]]
    return rows + [-1] * (k - len(rows))


coordinates = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=1, max_size=120)


@given(coordinates, st.integers(1, 20))
@settings(max_examples=40, deadline=None)
def test_nearest_points_are_those_of_a_search_through_all_also_with_ties_and_duplicates(points, k):
    x, y = np.array(points, float).T
    level = cloud_of(x, y).levels[0]
    rows = level.nearest(level.x, level.y, k, np.arange(len(x)))
    for i in range(len(x)):
        assert list(rows[i]) == nearest_by_loops(level.x, level.y, level.x[i], level.y[i], k, i)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 500])
def test_nearest_points_of_any_place_and_any_number_of_points(n):
    rng = np.random.default_rng(n)
    level = cloud_of(rng.normal(size=n) ** 3, rng.normal(size=n) ** 3).levels[0]
    places = rng.normal(size=(2, 30)) * 2
    rows = level.nearest(*places, 5)
    for i, (px, py) in enumerate(places.T):
        assert list(rows[i]) == nearest_by_loops(level.x, level.y, px, py, 5, None)


def test_ranks_are_a_permutation_and_neighbors_along_the_curve_are_near():
    x, y = np.random.default_rng(1).random((2, 4000))
    cloud = cloud_of(x, y)
    assert sorted(cloud.order) == list(range(4000))
    np.testing.assert_array_equal(cloud.rank[cloud.order], np.arange(4000))
    steps = np.hypot(np.diff(x[cloud.order]), np.diff(y[cloud.order]))
    assert np.median(steps) < 1.5 / np.sqrt(4000)


def test_the_order_of_the_points_does_not_matter_where_no_two_are_at_one_place():
    rng = np.random.default_rng(2)
    x, y = rng.random((2, 300))
    shuffled = rng.permutation(300)
    one, other = cloud_of(x, y), cloud_of(x[shuffled], y[shuffled])
    np.testing.assert_array_equal(one.order, shuffled[other.order])
    assert one.unit == other.unit


def test_a_point_without_coordinates_has_no_rank():
    x, y = np.array([0.0, np.nan, 2, 3, np.inf]), np.array([0.0, 1, 5, np.nan, 1])
    cloud = cloud_of(x, y)
    assert list(cloud.rank < 0) == [False, True, False, True, True]
    assert sorted(cloud.order) == [0, 2]


@pytest.mark.parametrize(
    ("x", "y", "unit"),
    [
        ([0, 3], [0, 4], 5),
        ([0, 3, 6], [0, 4, 8], (125 / 2) ** 0.5),  # at the ends; in the middle it is 5
        ([0, 0, 2, 2], [0, 0, 0, 0], (8 / 3) ** 0.5),  # of three neighbors, one at the same place
        ([7], [7], 1),
        ([7, 7, 7], [1, 1, 1], 1),
        ([], [], 1),
    ],
)
def test_the_unit_is_the_median_over_points_of_the_mean_square_distance_of_neighbors(x, y, unit):
    assert cloud_of(np.array(x, float), np.array(y, float)).unit == pytest.approx(unit)


def test_hilbert_keys_are_those_of_the_curve_written_down_by_hand():
    """A square of 2 x 2 corners: (0,0), (0,1), (1,1), (1,0), the first coordinate first."""
    x, y = np.array([0.0, 0, 1, 1]), np.array([0.0, 1, 1, 0])
    assert list(np.argsort(_cpu.hilbert_keys(x, y))) == [0, 1, 2, 3]


def points_of(part, cloud, number):
    """Return the ranks in the whole cloud of a part's members."""
    return part.members * STRIDE**number


@pytest.mark.parametrize("n", [1, 2, 15, 100, 1000, 5000])
def test_what_a_point_depends_on_is_the_same_in_any_part_of_the_cloud(n):
    rng = np.random.default_rng(3)
    x, y = np.exp(rng.normal(size=(2, n)))  # dense here, sparse there
    cloud = cloud_of(x, y)
    whole = structure_of(cloud, np.arange(n))
    start = n // 3
    some = structure_of(cloud, np.arange(start, min(start + 40, n)))
    for number in range(LEVELS):
        place = {rank: row for row, rank in enumerate(whole[number].members)}
        for kind, width in (("table", NEIGHBORS + 1), ("up", COARSER)):
            one, other = getattr(some[number], kind), getattr(whole[number], kind)
            if one is None:
                assert number == LEVELS - 1
                continue
            assert one.rows.shape[1] == width
            source = number + (kind == "up")
            for row in range(0, len(one.rows), 7):
                same = place[some[number].members[row]]
                there = one.weight[row] > 0
                np.testing.assert_array_equal(there, other.weight[same] > 0)
                np.testing.assert_array_equal(
                    some[source].members[one.rows[row][there]], whole[source].members[other.rows[same][there]]
                )
                np.testing.assert_array_equal(one.toward[row], other.toward[same])
                assert one.sharpness[row] == other.sharpness[same]


def test_each_step_reads_only_what_the_one_before_has_written():
    x, y = np.random.default_rng(4).random((2, 20000))
    parts = structure_of(cloud_of(x, y), np.arange(7000, 7300))
    for part in parts:
        assert part.counts == sorted(part.counts)
        for written, read in pairwise(part.counts):
            assert part.table.rows[:written].max() < read
        assert part.counts[-1] <= len(part.members) < 20000
        assert part.table.rows.max() < len(part.members)
    for lower, higher in pairwise(parts):
        assert len(lower.down) >= higher.counts[-1]
        assert lower.down.max() < len(lower.table.rows)
        np.testing.assert_array_equal(lower.members[lower.down], higher.members[: len(lower.down)] * STRIDE)
        assert lower.up.rows.max() < len(higher.members)
    assert [len(part.members) for part in parts] == sorted((len(part.members) for part in parts), reverse=True)


def test_neighbors_that_there_are_not_have_no_weight():
    parts = structure_of(cloud_of(np.array([0.0, 3, 0]), np.array([0.0, 0, 4])), np.arange(3))
    table = parts[0].table
    assert table.weight[:, :3].tolist() == [[pytest.approx(1 / 3)] * 3] * 3
    assert not table.weight[:, 3:].any()
    assert (table.rows < 3).all()


def test_neighbors_are_seen_relative_to_the_point_in_units_of_the_cloud():
    x, y = np.array([10.0, 13, 10]), np.array([20.0, 20, 24])
    cloud = cloud_of(x, y)
    assert cloud.unit == pytest.approx(17**0.5)  # 9, 16 and 25 are the squares; their means 12.5, 17 and 20.5
    part = structure_of(cloud, cloud.rank.astype(np.int64))[0]
    np.testing.assert_allclose(part.table.toward[0, 1:3] * 17**0.5, [[3, 0], [0, 4]], rtol=1e-6)
    assert part.table.sharpness[0] == pytest.approx((17 / ((9 + 16 + 0) / 3)) ** 0.5)
