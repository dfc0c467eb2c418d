"""Points in polygons: against the winding number in exact arithmetic, and properties of the plane."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from moraine_raster.inside import MAX_LISTED, edges_of, inside, inside_gix, inside_grid

Ring = list[tuple[float, float]]

SQUARE: Ring = [(0, 0), (4, 0), (4, 4), (0, 4)]


def is_inside(x: object, y: object, *rings: Ring) -> list[bool]:
    return inside(np.asarray(x, float), np.asarray(y, float), edges=edges_of(rings))[0].tolist()


def winding_number(x: int, y: int, ring: Ring) -> int | None:
    """Turns of a closed polygon around a point, in rational numbers; None on its boundary."""
    turns = 0
    for (x0, y0), (x1, y1) in zip(ring, ring[1:] + ring[:1], strict=True):
        ax, ay, bx, by = (Fraction(value) for value in (x0, y0, x1, y1))
        side = (bx - ax) * (y - ay) - (x - ax) * (by - ay)
        if side == 0 and min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by):
            return None
        if ay <= y < by and side > 0:
            turns += 1
        elif by <= y < ay and side < 0:
            turns -= 1
    return turns


@st.composite
def simple_polygons(draw: st.DrawFn) -> Ring:
    """Polygons that do not cross themselves: vertices of any distance around a center, by angle."""
    n = draw(st.integers(3, 25))
    radii = draw(st.lists(st.floats(0.5, 9), min_size=n, max_size=n))
    x, y, turn = draw(st.floats(-3, 3)), draw(st.floats(-3, 3)), draw(st.floats(0, 2))
    angles = [turn + 2 * math.pi * k / n for k in range(n)]
    return [(x + r * math.cos(a), y + r * math.sin(a)) for r, a in zip(radii, angles, strict=True)]


@settings(deadline=None, max_examples=25)
@given(rings=st.lists(simple_polygons(), min_size=1, max_size=4))
def test_a_point_is_inside_if_any_polygon_winds_around_it(rings: list[Ring]) -> None:
    y, x = (axis.ravel() for axis in np.mgrid[-11:12:3, -11:12:3])
    expected = []
    for px, py in zip(x.tolist(), y.tolist(), strict=True):
        turns = [winding_number(px, py, ring) for ring in rings]
        assume(None not in turns)
        expected.append(any(turns))
    assert is_inside(x, y, *rings) == expected


@settings(deadline=None, max_examples=40)
@given(ring=simple_polygons(), start=st.integers(0, 24), twice=st.integers(0, 24))
def test_a_ring_may_begin_anywhere_run_either_way_and_repeat_a_vertex(ring: Ring, start: int, twice: int) -> None:
    y, x = (axis.ravel() for axis in np.mgrid[-12:12:0.7, -12:12:0.7])
    start, twice = start % len(ring), twice % len(ring)
    same = [ring[start:] + ring[:start], ring[::-1], [*ring, ring[0]], [*ring[:twice], ring[twice], *ring[twice:]]]
    expected = is_inside(x, y, ring)
    assert [is_inside(x, y, other) == expected for other in same] == [True] * 4


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 15), st.integers(1, 15), st.lists(st.tuples(st.integers(0, 16), st.integers(0, 16))))
def test_triangles_that_tile_a_square_share_no_point_and_leave_none_out(
    x: int, y: int, points: list[tuple[int, int]]
) -> None:
    """Also on their common edges: in a map of neighboring regions nothing falls through."""
    corners = [(0.0, 0.0), (16.0, 0.0), (16.0, 16.0), (0.0, 16.0)]
    triangles = [[corners[k], corners[(k + 1) % 4], (float(x), float(y))] for k in range(4)]
    px, py = np.array(points, float).reshape(-1, 2).T
    times = sum(np.array(is_inside(px, py, triangle), int) for triangle in triangles)
    assert np.array_equal(times, ((px < 16) & (py < 16)).astype(int))
    assert is_inside(px, py, *triangles) == (times == 1).tolist()


def test_polygons_that_overlap_are_joined_and_do_not_cancel() -> None:
    other = [(x + 2, y + 2) for x, y in SQUARE]
    assert is_inside([1, 3, 5, 7], [1, 3, 5, 7], SQUARE, other) == [True, True, True, False]
    assert is_inside([1, 9], [1, 1], SQUARE, SQUARE) == [True, False]


def test_a_polygon_around_another_is_no_hole() -> None:
    inner = [(1, 1), (3, 1), (3, 3), (1, 3)]
    assert is_inside([2, 0.5], [2, 0.5], SQUARE, inner) == [True, True]


def test_a_concave_polygon_is_not_its_hull() -> None:
    comb = [(0, 0), (5, 0), (5, 5), (4, 5), (4, 1), (3, 1), (3, 5), (2, 5), (2, 1), (1, 1), (1, 5), (0, 5)]
    assert is_inside([0.5, 1.5, 2.5, 3.5, 4.5, 2], [3, 3, 3, 3, 3, 0.5], comb) == [True, False, True, False, True, True]


def test_missing_positions_are_outside_and_counted() -> None:
    x, y = np.array([2, np.nan, 2, np.nan, 2]), np.array([2, 2, np.nan, np.nan, 2])
    for value in (True, False):
        mask, n_missing = inside(x, y, edges=edges_of([SQUARE]), value=value)
        assert mask.tolist() == [value, not value, not value, not value, value]
        assert n_missing == 3


def test_infinite_positions_are_outside_and_not_missing() -> None:
    inf = np.inf
    mask, n_missing = inside(np.array([inf, -inf, 2, 2]), np.array([2, 2, inf, -inf]), edges=edges_of([SQUARE]))
    assert mask.tolist() == [False] * 4
    assert n_missing == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", ">f8"])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 6), (3, 1, 2), (0,), (2, 0)])
def test_positions_of_any_real_dtype_and_shape_keep_their_shape(dtype: str, shape: tuple[int, ...]) -> None:
    x = np.resize(np.array([2, 9], dtype), shape)
    mask, _ = inside(x, np.full(shape, 2, dtype), edges=edges_of([SQUARE]))
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, x == 2)


def test_positions_in_columns_of_a_larger_array_are_found() -> None:
    positions = np.array([[2, 2, 0], [9, 2, 0], [1, 3, 0]], float)
    assert inside(positions[:, 0], positions[:, 1], edges=edges_of([SQUARE]))[0].tolist() == [True, False, True]


def test_a_gix_is_azimuth_and_range_and_a_polygon_range_and_azimuth() -> None:
    """A polygon of two columns of ranges over many lines."""
    edges = edges_of([[(0.5, 2.5), (2.5, 2.5), (2.5, 90.5), (0.5, 90.5)]])
    gix = np.array([[3, 1], [90, 2], [1, 3], [2, 90], [91, 2], [3, 0]], np.int32)
    mask, n_missing = inside_gix(gix, edges=edges)
    assert mask.tolist() == [True, True, False, False, False, False]
    assert n_missing == 0


@settings(deadline=None, max_examples=20)
@given(ring=simple_polygons(), row=st.integers(-9, 5), column=st.integers(-9, 5), value=st.booleans())
def test_pixels_of_a_part_of_a_raster_are_the_positions_of_their_centers(
    ring: Ring, row: int, column: int, value: bool
) -> None:
    edges = edges_of([ring])
    y, x = np.mgrid[row : row + 7, column : column + 5]
    mask, _ = inside_grid(rows=(row, row + 7), columns=(column, column + 5), edges=edges, value=value)
    np.testing.assert_array_equal(mask, inside(x, y, edges=edges, value=value)[0])


def test_pixels_in_a_circle_are_as_many_as_its_area() -> None:
    """Gauss's circle problem: the difference is of the order of the circumference at most."""
    angles = np.linspace(0, 2 * np.pi, 3000, endpoint=False)
    ring = np.stack([100.3 + 90 * np.cos(angles), 99.8 + 90 * np.sin(angles)], axis=1)
    mask, _ = inside_grid(rows=(0, 200), columns=(0, 200), edges=edges_of([ring]))
    assert abs(int(mask.sum()) - np.pi * 90**2) < 90


def test_many_polygons_are_searched_by_their_band() -> None:
    """Squares of side 0.6 on a grid: whether a point is in one is a matter of its fraction."""
    corners = np.array([(0.2, 0.2), (0.8, 0.2), (0.8, 0.8), (0.2, 0.8)])
    rings = [corners + np.array([column, row]) for row in range(60) for column in range(60)]
    x, y = np.random.default_rng(5).uniform(-1, 61, (2, 20_000))
    expected = (abs(x % 1 - 0.5) < 0.3) & (abs(y % 1 - 0.5) < 0.3) & (x > 0) & (x < 60) & (y > 0) & (y < 60)
    edges = edges_of(rings)
    np.testing.assert_array_equal(inside(x, y, edges=edges)[0], expected)
    assert len(edges.starts) > 500, "otherwise each point would look at thousands of edges"


def test_lists_of_edges_stay_short_where_all_edges_are_long() -> None:
    """A comb of a thousand teeth: every edge spans all the height."""
    teeth = [(k, 1000.0 * (k % 2)) for k in range(2001)]
    edges = edges_of([teeth])
    assert len(edges.listed) <= MAX_LISTED * len(edges.ends)
    assert inside(np.array([1.0, 2.0]), np.array([1.0, 900.0]), edges=edges)[0].tolist() == [True, False]


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e-12, 1e12, 1e300])
def test_polygons_of_any_size_are_filled(scale: float) -> None:
    ring = [(x * scale, y * scale) for x, y in SQUARE]
    assert is_inside([2 * scale, 5 * scale, 2 * scale], [2 * scale, 2 * scale, -scale], ring) == [True, False, False]


def test_polygons_without_area_hold_nothing() -> None:
    flat, upright, spike = [(0, 1), (2, 1), (1, 1)], [(1, 0), (1, 2), (1, 1)], [(0, 0), (2, 2), (1, 1)]
    for rings in ([flat], [upright], [spike], [flat, upright, spike], []):
        assert not any(is_inside([0, 1, 1.5, 1], [0, 1, 1.2, 0.5], *rings))
