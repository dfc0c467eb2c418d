"""Triangulations against what defines them: whole, empty circles in whole numbers, one result for one set of points."""

from __future__ import annotations

import csv
import itertools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull, Delaunay

from moraine_unwrap.triangulation.kernels import (
    Triangulation,
    edge_lengths,
    hull,
    metric_weights,
    triangulate,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

FIBONACCI = [1, 1]
while len(FIBONACCI) < 75:
    FIBONACCI.append(FIBONACCI[-1] + FIBONACCI[-2])  # three pairs in a row enclose an area of 1/2

SENTINEL_1 = (13.9516, 2.329562)  # pixel spacing in azimuth and range, in meters


# -- what defines a Delaunay triangulation, by the book ----------------------------------------------------------------


def doubled_area(a: Any, b: Any, c: Any) -> Any:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def in_circle(a: Any, b: Any, c: Any, d: Any, weights: tuple[int, int]) -> Any:
    """Positive if d is inside the circle through a, b, c (to the left), by the determinant of the textbooks."""
    (ax, ay), (bx, by), (cx, cy) = ((v[0] - d[0], v[1] - d[1]) for v in (a, b, c))
    u, v = weights
    a2, b2, c2 = (u * x * x + v * y * y for x, y in ((ax, ay), (bx, by), (cx, cy)))
    return a2 * (bx * cy - by * cx) - b2 * (ax * cy - ay * cx) + c2 * (ax * by - ay * bx)


def exact(points: NDArray[Any]) -> list[tuple[Any, Any]]:
    """Return coordinates as whole numbers of Python, or as fractions."""
    number = int if points.dtype.kind in "iu" else Fraction
    return [(number(x), number(y)) for x, y in points.tolist()]


def check(points: NDArray[Any], net: Triangulation, weights: tuple[int, int] = (1, 1)) -> None:
    """Check that half-edges fit, that the triangles cover the hull once, and that no neighbor is inside a circle.

    A triangulation whose neighbors are not inside is the Delaunay triangulation (Delaunay, 1934).
    """
    place = exact(points)
    tri, half = net.tri.tolist(), net.half.tolist()
    following = [e + 1 if e % 3 < 2 else e - 2 for e in range(len(tri))]
    area = 0
    for e, twin in enumerate(half):
        a, b, c = tri[e], tri[following[e]], tri[following[following[e]]]
        if e % 3 == 0:
            assert doubled_area(place[a], place[b], place[c]) > 0
            area += doubled_area(place[a], place[b], place[c])
        if twin >= 0:
            assert half[twin] == e
            assert (tri[twin], tri[following[twin]]) == (b, a)
            d = tri[following[following[twin]]]
            assert in_circle(place[a], place[b], place[c], place[d], weights) <= 0
    around = [place[tri[e]] for e in hull(net).tolist()]
    assert len(around) == half.count(-1)
    assert sum(p[0] * q[1] - p[1] * q[0] for p, q in zip(around, around[1:] + around[:1], strict=True)) == area
    for a, b, c in zip(around, around[1:] + around[:1], around[2:] + around[:2], strict=True):
        assert doubled_area(a, b, c) >= 0
    vertices = set(net.vertex.tolist())
    assert set(tri) == vertices
    assert len(vertices) - len(net.edges) + len(tri) // 3 == 1  # Euler
    check_edges(net)


def check_edges(net: Triangulation) -> None:
    """Check the edges against sets of pairs."""
    following = np.arange(len(net.tri)).reshape(-1, 3)[:, [1, 2, 0]].ravel()
    pairs = np.stack([net.tri, net.tri[following]], axis=1)
    assert list(map(tuple, net.edges.tolist())) == sorted({tuple(sorted(pair)) for pair in pairs.tolist()})
    np.testing.assert_array_equal(net.edges[net.edge_of_half], np.sort(pairs, axis=1))
    np.testing.assert_array_equal(net.sign_of_half, np.where(pairs[:, 0] < pairs[:, 1], 1, -1))
    assert {name: getattr(net, name).dtype.name for name in net._fields} == {
        **dict.fromkeys(net._fields, "int32"),
        "sign_of_half": "int8",
    }


def coordinates(points: NDArray[Any], net: Triangulation) -> set[frozenset[tuple[Any, ...]]]:
    """Return the triangles as sets of places."""
    return {frozenset(map(tuple, triangle)) for triangle in points[net.tri.reshape(-1, 3)].tolist()}


def pixels(rng: np.random.Generator, n_points: int, shape: tuple[int, int]) -> NDArray[np.int32]:
    """Return different pixels of a raster in random order."""
    chosen = rng.choice(shape[0] * shape[1], n_points, replace=False)
    return np.stack(np.divmod(chosen, shape[1]), axis=1).astype(np.int32)


# -- triangles ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(60, 50), (40_000, 30_000), (2_000_000_000, 3)])
@pytest.mark.parametrize("spacing", [(1.0, 1.0), SENTINEL_1, SENTINEL_1[::-1]])
def test_no_pixel_lies_inside_the_circle_of_a_triangle(seed: int, shape: tuple[int, int], spacing: tuple[float, float]):
    points = pixels(np.random.default_rng(seed), 1500, shape)
    check(points, triangulate(points, spacing), metric_weights(spacing))


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_no_point_lies_inside_the_circle_of_a_triangle(offset: float):
    points = np.random.default_rng(5).normal(size=(700, 2)) ** 3 + offset
    check(points, triangulate(points))


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=40, unique=True),
    st.sampled_from([(1.0, 1.0), (2.0, 1.0), (1.0, 5.0), SENTINEL_1]),
    st.randoms(use_true_random=False),
)
def test_few_pixels_with_many_ties(places: list[tuple[int, int]], spacing: tuple[float, float], random: Any):
    points = np.array(places)
    net = triangulate(points, spacing)
    if not len(net.tri):
        assert all(doubled_area(places[0], places[1], p) == 0 for p in places)
        return
    weights = metric_weights(spacing)
    check(points, net, weights)
    for triangle in points[net.tri.reshape(-1, 3)].tolist():
        assert all(in_circle(*triangle, p, weights) <= 0 for p in places)
    random.shuffle(places)
    again = np.array(places)
    assert coordinates(again, triangulate(again, spacing)) == coordinates(points, net)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(*[st.integers(0, 4), st.integers(-1, 1)] * 2), min_size=3, max_size=30, unique=True),
    st.sampled_from([2**12, 2**20, 2**24, 2**30, 2**48]),
    st.sampled_from([(1.0, 1.0), SENTINEL_1]),
)
def test_large_circles_and_lines_that_all_but_meet_a_pixel(
    places: list[tuple[int, int, int, int]], step: int, spacing: tuple[float, float]
):
    """Pixels of a coarse raster, some of them moved by one pixel of a fine one: floats alone take them for ties."""
    points = np.unique([(x * step + dx, y * step + dy) for x, dx, y, dy in places], axis=0)
    net = triangulate(points, spacing)
    if len(net.tri):
        check(points, net, metric_weights(spacing))


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.tuples(*[st.one_of(st.floats(-1e200, 1e200), st.sampled_from([0.1, 0.2, 0.30000000000000004, 1.0]))] * 2),
        min_size=3,
        max_size=15,
        unique=True,
    )
)
def test_floats_of_any_size_are_triangulated_exactly(places: list[tuple[float, float]]):
    points = np.array(places)
    points[np.abs(points) < np.abs(points).max() * 2.0**-140] = 0.0  # not smaller than what counts as zero
    points = np.unique(points, axis=0)
    net = triangulate(points)
    if len(net.tri):
        check(points, net)
    else:
        place = exact(points)
        assert all(doubled_area(place[0], place[-1], p) == 0 for p in place)


@pytest.mark.parametrize("make", [lambda p: p, lambda p: p * np.array([0.1, 0.7]), lambda p: p + 0.125])
def test_the_result_does_not_depend_on_the_order_of_the_points(make: Any):
    rng = np.random.default_rng(1)
    points = make(pixels(rng, 900, (40, 40)))
    first = triangulate(points, SENTINEL_1)
    order = rng.permutation(len(points))
    second = triangulate(points[order], SENTINEL_1)
    np.testing.assert_array_equal(order[second.tri], first.tri)
    np.testing.assert_array_equal(second.half, first.half)


@pytest.mark.parametrize("spacing", [(1.0, 1.0), (20.0, 5.0), SENTINEL_1])
def test_all_cells_of_a_full_raster_are_cut_along_the_same_diagonal(spacing: tuple[float, float]):
    points = np.stack(np.divmod(np.arange(30 * 41), 41), axis=1)
    net = triangulate(points, spacing)
    steps = np.diff(points[net.edges], axis=1)[:, 0]
    assert {tuple(step) for step in steps.tolist()} == {(0, 1), (1, 0), (1, -1)}
    assert len(net.tri) == 3 * 2 * 29 * 40
    check_edges(net)


def test_a_raster_that_is_moved_has_the_same_triangles():
    points = pixels(np.random.default_rng(8), 500, (30, 30))
    np.testing.assert_array_equal(triangulate(points + 1_000_000).edges, triangulate(points).edges)


@pytest.mark.parametrize("unit", [1, *(3**k for k in range(7, 31))])
def test_points_on_one_circle_are_cut_off_from_the_last_on(unit: int):
    """The circle of radius 5 has 12 points with whole coordinates; in large units floats do not see that it is one."""
    circle = np.array([(x, y) for x in range(-5, 6) for y in range(-5, 6) if x * x + y * y == 25])
    assert len(circle) == 12
    net = triangulate(unit * circle)
    check(unit * circle, net)
    np.testing.assert_array_equal(net.edges, triangulate(circle).edges)
    for last in range(11, 2, -1):  # of any four points the last is in no edge with the one opposite
        edges = net.edges[(net.edges <= last).all(axis=1)]
        assert (edges == last).sum() == 2


@pytest.mark.parametrize("n_points", [10, 30, 100, 1000])
def test_a_point_with_very_many_edges(n_points: int):
    angle = np.random.default_rng(6).permutation(n_points) * 2 * np.pi / n_points
    points = np.concatenate([[(0.0, 0.0)], np.stack([np.cos(angle), np.sin(angle)], axis=1)])
    net = triangulate(points)
    assert (net.edges[:, 0] == 0).sum() == n_points
    check(points, net)


def test_thousands_of_points_nearly_on_a_circle():
    angle = np.linspace(0, 2 * np.pi, 2000, endpoint=False)
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    check(points, triangulate(points))


@pytest.mark.parametrize(
    "points",
    [
        pytest.param([(k, 0) for k in range(200)] + [(3, 7)], id="a line and a point above"),
        pytest.param([(k, 0) for k in range(200)] + [(500, 0), (500, 1)], id="a line and a point behind"),
        pytest.param([(k, k % 2) for k in range(200)], id="two lines"),
        pytest.param([(k, k) for k in range(100)] + [(k, 99 - k) for k in range(100)], id="crossing lines"),
        pytest.param([(k, k * k) for k in range(200)], id="a parabola"),
        pytest.param([(k, 2**40 * (k % 2)) for k in range(100)], id="far apart"),
        pytest.param(list(itertools.pairwise(FIBONACCI[40:75])), id="nearly on a line"),
        pytest.param([(0, 0), (2**52, 1), (1, 2**52), (2**52, 2**52), (2**51, 3)], id="huge"),
    ],
)
def test_shapes_with_many_points_on_lines(points: list[tuple[int, int]]):
    array = np.array(points)
    check(array, triangulate(array))


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "int32", "int64", "uint64", "float32", "float64", ">i4"])
def test_any_type_of_number_gives_the_same_triangles(dtype: str):
    points = pixels(np.random.default_rng(2), 300, (100, 100))
    np.testing.assert_array_equal(triangulate(points.astype(dtype)).edges, triangulate(points).edges)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint64"])
def test_the_ends_of_a_type_of_integer_do_not_overflow(dtype: str):
    ends = np.iinfo(dtype)
    low = ends.min if ends.bits < 53 else ends.max - 2**40
    points = np.array([(low, low), (low, ends.max), (ends.max, low), (ends.max, ends.max)], dtype)
    assert triangulate(points).edges.tolist() == [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]


# -- other programs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_random_points_have_the_triangles_of_qhull(seed: int):
    points = np.random.default_rng(seed).random((3000, 2))
    net = triangulate(points)
    assert {frozenset(t) for t in net.tri.reshape(-1, 3).tolist()} == {
        frozenset(t) for t in Delaunay(points).simplices.tolist()
    }
    assert set(net.tri[hull(net)].tolist()) == set(ConvexHull(points).vertices.tolist())


def test_the_spacing_of_pixels_is_that_of_the_ground():
    """Few of the triangles differ from those of Qhull in meters: ties, and a metric within 0.1 % of the true one."""
    points = pixels(np.random.default_rng(4), 3000, (3000, 20_000))
    ours = {frozenset(t) for t in triangulate(points, SENTINEL_1).tri.reshape(-1, 3).tolist()}
    theirs = {frozenset(t) for t in Delaunay(points * np.array(SENTINEL_1)).simplices.tolist()}
    assert len(ours & theirs) > 0.998 * len(theirs)
    square = {frozenset(t) for t in triangulate(points).tri.reshape(-1, 3).tolist()}
    assert len(square & theirs) < 0.6 * len(theirs)


def test_the_first_cloud_of_the_specification_has_its_counts():
    rng = np.random.default_rng(0)
    net = triangulate(np.stack([rng.uniform(0, 100, 200), rng.uniform(0, 100, 200)], axis=1))
    assert (len(net.tri) // 3, len(net.edges), len(hull(net))) == (382, 581, 16)


def test_the_second_cloud_of_the_specification_has_its_counts():
    rng = np.random.default_rng(7)
    net = triangulate(np.stack([rng.uniform(0, 100, 60), rng.uniform(0, 100, 60)], axis=1))
    assert (len(net.tri) // 3, len(net.edges), len(hull(net))) == (107, 166, 11)


def test_a_real_cloud_of_persistent_scatterers(real_data: Path):
    """2500 scatterers of TerraSAR-X over Amsterdam, dense: 37 lines of 159 pixels."""
    with (real_data / "tsx-amsterdam-ps-cloud" / "example.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    points = np.array([(row["pnt_line"], row["pnt_pixel"]) for row in rows], np.int32)
    check(points, triangulate(points, (1.97, 0.91)), metric_weights((1.97, 0.91)))


# -- few points, copies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "float64"])
@pytest.mark.parametrize(
    ("places", "edges"),
    [
        ([], []),
        ([(4, 5)], []),
        ([(4, 5), (4, 5)], []),
        ([(4, 5), (1, 9)], [[0, 1]]),
        ([(3, 3), (1, 1), (2, 2), (0, 0)], [[0, 2], [1, 2], [1, 3]]),
        ([(7, 2), (7, 1), (7, 2), (7, 9)], [[0, 1], [0, 3]]),
    ],
)
def test_without_a_triangle_the_edges_are_a_chain(places: list[tuple[int, int]], edges: list[list[int]], dtype: str):
    net = triangulate(np.array(places, dtype).reshape(-1, 2))
    assert net.edges.tolist() == edges
    assert net.edges.shape[1] == 2
    assert [len(array) for array in (net.tri, net.half, net.edge_of_half, net.sign_of_half, hull(net))] == [0] * 5
    assert net.n_points == len(places)
    check_edges(net._replace(edges=np.empty((0, 2), np.int32)))


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_copies_share_the_vertex_of_the_first(dtype: str):
    rng = np.random.default_rng(3)
    points = rng.integers(0, 12, (400, 2)).astype(dtype)
    net = triangulate(points)
    seen: dict[tuple[int, ...], int] = {}
    expected = [seen.setdefault(tuple(point), k) for k, point in enumerate(points.tolist())]
    assert net.vertex.tolist() == expected
    check(points, net)
    unique = np.unique(points, axis=0)
    assert coordinates(points, net) == coordinates(unique, triangulate(unique))


def test_minus_zero_is_the_same_place_as_zero():
    net = triangulate(np.array([(0.0, 1.0), (-0.0, 1.0), (1.0, 0.0), (1.0, -0.0), (2.0, 2.0)]))
    assert net.vertex.tolist() == [0, 0, 2, 2, 4]
    assert net.edges.tolist() == [[0, 2], [0, 4], [2, 4]]


def test_numbers_too_small_beside_the_others_count_as_zero():
    net = triangulate(np.array([(0.0, 0.0), (1e-100, 0.0), (1.0, 0.0), (0.0, 1.0)]))
    assert net.vertex.tolist() == [0, 0, 2, 3]
    tiny = triangulate(np.array([(0.0, 0.0), (1e-310, 0.0), (0.0, 1e-310), (1e-310, 1e-310)]))
    assert len(tiny.tri) == 6


# -- the metric and lengths --------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.floats(0.01, 1000), st.floats(0.01, 1000))
def test_weights_are_the_simplest_within_a_thousandth(azimuth: float, range_: float):
    first, second = metric_weights((azimuth, range_))
    ratio = (Fraction(azimuth) / Fraction(range_)) ** 2
    assert abs(Fraction(first, second) / ratio - 1) <= Fraction(1, 1000)
    for smaller in range(max(1, second - 50), second):
        nearest = round(ratio * smaller)
        assert abs(Fraction(nearest, smaller) / ratio - 1) > Fraction(1, 1000)


def test_lengths_are_those_on_the_ground():
    points = np.array([(0, 0), (3, 0), (0, 4)], np.int32)
    lengths = edge_lengths(points, np.array([(0, 1), (0, 2), (1, 2)], np.int32), (2.0, 0.5))
    np.testing.assert_allclose(lengths, [6, 2, np.sqrt(40)], rtol=1e-15)


def test_lengths_of_unsigned_coordinates_do_not_wrap():
    points = np.array([(5, 5), (2, 1)], np.uint16)
    assert edge_lengths(points, np.array([(0, 1)], np.int32)).tolist() == [5.0]


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "text"),
    [
        (np.zeros((3, 3)), r"pc is float64 \(3, 3\); expected integers or floats of shape \(n_points, 2\)"),
        (np.zeros(4, np.int32), r"pc is int32 \(4,\); expected integers or floats"),
        (np.zeros((3, 2), complex), r"pc is complex128 \(3, 2\); expected integers or floats"),
        (np.array([(0, 0), (1, np.nan), (2, 2)]), r"pc is \(1.0, nan\) in row 1; expected finite coordinates"),
        (np.array([(0, 0), (1, 3), (-np.inf, 2)]), r"pc is \(-inf, 2.0\) in row 2; expected finite coordinates"),
        (np.array([(0, 0), (2**53, 3)]), r"pc spans 9007199254740992 x 3 pixels; expected less than 2\*\*53"),
        (np.array([(-(2**63), 0), (2**63 - 1, 3)]), r"pc spans 18446744073709551615 x 3 pixels"),
    ],
)
def test_wrong_points_are_refused_in_one_sentence(points: NDArray[Any], text: str):
    with pytest.raises(ValueError, match=text):
        triangulate(points, name="pc")


@pytest.mark.parametrize("spacing", [(0.0, 1.0), (1.0, -2.0), (np.nan, 1.0), (1.0, np.inf), (1.0, 1e7)])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_wrong_spacings_are_refused_in_one_sentence(spacing: tuple[float, float], dtype: str):
    with pytest.raises(ValueError, match=r"pixel spacing is \(.*\) m; expected two positive numbers"):
        triangulate(np.zeros((3, 2), dtype), spacing)


def test_more_points_than_the_arrays_can_count_are_refused():
    with pytest.raises(ValueError, match="has 134217728 points; expected at most 134217727"):
        triangulate(np.broadcast_to(np.int8(0), (2**27, 2)))
