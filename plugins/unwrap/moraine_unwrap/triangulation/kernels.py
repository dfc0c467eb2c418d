"""Array functions: Delaunay triangulation of points, lengths of its edges, and its connected regions.

Points of a raster are triangulated in the metric of the ground, ``(spacing_az d_az)**2 + (spacing_r d_r)**2``, but by
their integer coordinates: every decision is exact, and where four pixels lie on one circle, as everywhere in a raster,
the order of their coordinates decides. So the triangles do not depend on the order of the points.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from moraine_points.kernels import pc_hix
from moraine_unwrap.triangulation import _cpu

if TYPE_CHECKING:
    from numpy.typing import NDArray

PointArray: TypeAlias = "NDArray[np.integer] | NDArray[np.floating]"
Int32: TypeAlias = "NDArray[np.int32]"
Int64: TypeAlias = "NDArray[np.int64]"
Float64: TypeAlias = "NDArray[np.float64]"

MOST_POINTS = 2**27 - 1
"""The array used while triangulating has 16 numbers for each point, counted by int32."""

_NOTHING: Int32 = np.empty(0, np.int32)
_RATIO_TOLERANCE = Fraction(1, 1000)
_LARGEST_RATIO = 1e6
_CURVE_BITS = 24  # of the cells along the curve for coordinates that are no integers
_TURN_ERROR = 3.0000000000000004 * 2.0**-53  # J. R. Shewchuk (1997), bound A of orient2d


class Triangulation(NamedTuple):
    """A triangulated point cloud of `n_points` points, T triangles and E edges; all arrays but one are int32, unitless.

    Triangle t consists of the half-edges 3t, 3t+1, 3t+2, which turn to the left in the plane (azimuth, range).
    """

    tri: Int32
    """Start point of every half-edge, ``(3T,)``."""
    half: Int32
    """Half-edge on the other side of the same edge, ``(3T,)``; -1 on the hull."""
    edges: Int32
    """Points of every edge, ``(E, 2)``, the smaller first; in ascending order."""
    edge_of_half: Int32
    """Edge of every half-edge, ``(3T,)``."""
    sign_of_half: NDArray[np.int8]
    """1 where a half-edge runs from the smaller point to the larger, else -1, ``(3T,)`` int8."""
    vertex: Int32
    """Point whose vertex a point shares, ``(n_points,)``: its own number, or the first of the points at that place."""

    @property
    def n_points(self) -> int:
        """Number of points, also those that share a vertex."""
        return len(self.vertex)


class _Plane(NamedTuple):
    """Coordinates that the predicates take, and what is known of their rounding."""

    x: Float64
    y: Float64
    weights: tuple[float, float]
    turn_error: float
    exact_below: float
    cells: Int64
    """Cell of every point for the space-filling curve, ``(n_points, 2)``, not negative."""


def metric_weights(spacing: tuple[float, float]) -> tuple[int, int]:
    """Whole numbers w for which ``w[0] d_az**2 + w[1] d_r**2`` is, up to a factor, the squared distance on the ground.

    Their ratio is the simplest fraction within 0.1 % of ``(spacing[0] / spacing[1])**2``: so close, no triangle changes
    its form in a way that matters, and with small numbers most determinants are exact in floating point.

    Parameters
    ----------
    spacing
        Pixel spacing in azimuth and range, in meters.

    Returns
    -------
    tuple of int
        Weights of azimuth and range, at least 1, unitless.

    Raises
    ------
    ValueError
        If a spacing is not positive and finite, or one is more than a million times the other.

    Examples
    --------
    >>> metric_weights((10.0, 10.0)), metric_weights((13.9516, 2.329562))
    ((1, 1), (215, 6))
    """
    _check_spacing(spacing)
    ratio = (Fraction(spacing[0]) / Fraction(spacing[1])) ** 2
    fraction = _simplest_between(ratio * (1 - _RATIO_TOLERANCE), ratio * (1 + _RATIO_TOLERANCE))
    return fraction.numerator, fraction.denominator


def triangulate(
    points: PointArray, spacing: tuple[float, float] = (1.0, 1.0), *, name: str = "gix", with_edges: bool = True
) -> Triangulation:
    """Delaunay triangulation of points.

    Points are inserted one by one along a Hilbert curve, in rounds of growing density (after N. Amenta, S. Choi and
    G. Rote, "Incremental constructions con BRIO", 2003), with flips of edges (C. L. Lawson, 1977). Turns and circles
    are computed in float64 and, where rounding could decide, exactly (J. R. Shewchuk, 1997). Where four points lie on
    one circle, the last of them (by azimuth, then range) is cut off; so a set of points has one triangulation.

    Parameters
    ----------
    points
        Coordinates (azimuth, range), ``(n_points, 2)`` in any order, in pixels: integers, whose metric is that of
        `metric_weights`, or floats, which are multiplied by the spacing first. Of floats, what is smaller than 2**-150
        of the largest counts as zero.
    spacing
        Pixel spacing in azimuth and range, in meters.
    name
        What errors call the points.
    with_edges
        Number the edges of triangles, which takes a sixth of the time; without, the three arrays about them are empty
        where there are triangles.

    Returns
    -------
    Triangulation
        Triangles, edges and the vertices of points. Points at the same place share the vertex of the first of them; the
        others are in no edge. Without any triangle (fewer than three vertices, or all on one line) the edges are the
        chain of the vertices along the line.

    Raises
    ------
    ValueError
        If the points are not ``(n_points, 2)`` real numbers, one is not finite, integers span 2**53 pixels or more,
        there are more than `MOST_POINTS` points, or the spacing is wrong (see `metric_weights`).

    Examples
    --------
    >>> triangulate(np.array([[0, 0], [0, 1], [1, 0], [1, 1]])).edges.tolist()
    [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]
    """
    _check_points(points, name)
    _check_spacing(spacing)
    if not len(points):
        return _chain(np.empty(0, np.int64), np.empty(0, np.int32))
    plane = _lattice(points, spacing, name) if points.dtype.kind in "iu" else _scaled(points, spacing)
    order, vertex = _places(plane)
    order = _cpu.in_rounds(order)
    x, y = np.append(plane.x[order], 0.0), np.append(plane.y[order], 0.0)
    corner = _cpu.first_corner(x[:-1], y[:-1], plane.turn_error)
    if corner == len(order):
        return _chain(order[np.lexsort((y[:-1], x[:-1]))], vertex)
    for values in (x, y, order):  # the corner becomes the third point
        values[2 : corner + 1] = np.roll(values[2 : corner + 1], 1)
    tri, half = _cpu.triangles(*_cpu.insert(x, y, *plane.weights, plane.turn_error, plane.exact_below), order)
    if not with_edges:
        return Triangulation(tri, half, np.empty((0, 2), np.int32), _NOTHING, np.empty(0, np.int8), vertex)
    return Triangulation(tri, half, *_cpu.edges_of(tri, half, len(points)), vertex)


def hull(triangulation: Triangulation) -> NDArray[np.int32]:
    """Half-edges of the hull, in the order in which they follow each other to the left.

    Parameters
    ----------
    triangulation
        What `triangulate` returns.

    Returns
    -------
    ndarray
        Half-edges, ``(n_hull,)`` int32, unitless, from the one that starts at the smallest point on; empty without a
        triangle.

    Examples
    --------
    >>> net = triangulate(np.array([[0, 0], [3, 0], [0, 3], [1, 1]]))
    >>> net.tri[hull(net)].tolist()
    [0, 1, 2]
    """
    return _cpu.hull_of(triangulation.tri, triangulation.half)


def edge_lengths(
    points: PointArray, edges: NDArray[np.int32], spacing: tuple[float, float] = (1.0, 1.0)
) -> NDArray[np.float64]:
    """Lengths of edges on the ground.

    Parameters
    ----------
    points
        Coordinates (azimuth, range), ``(n_points, 2)``, in pixels.
    edges
        Points of every edge, ``(n_edges, 2)`` int32.
    spacing
        Pixel spacing in azimuth and range, in meters.

    Returns
    -------
    ndarray
        Lengths, ``(n_edges,)`` float64, in meters.

    Examples
    --------
    >>> edge_lengths(np.array([[0, 0], [3, 4]]), np.array([[0, 1]], np.int32), (1.0, 2.0)).round(3).tolist()
    [8.544]
    """
    first, second = edges.T
    azimuth, range_ = (np.subtract(c[second], c[first], dtype=np.float64) for c in np.asarray(points).T)
    lengths: NDArray[np.float64] = np.sqrt((azimuth * spacing[0]) ** 2 + (range_ * spacing[1]) ** 2)
    return lengths


def regions(
    triangulation: Triangulation,
    lengths: NDArray[np.float64],
    max_edge_factor: float = 4.0,
    min_region_points: int = 30,
) -> NDArray[np.int32]:
    """Regions of a point cloud: points that are linked by edges not much longer than usual.

    Parameters
    ----------
    triangulation
        What `triangulate` returns.
    lengths
        Length of every edge, ``(n_edges,)`` float64, in meters (see `edge_lengths`).
    max_edge_factor
        Edges longer than this many times the median edge do not link, unitless.
    min_region_points
        A part with fewer points than this is none, in points.

    Returns
    -------
    ndarray
        Number of the region of every point, ``(n_points,)`` int32, unitless: from 0 on in the order of their first
        points, -1 for points in no region.

    Raises
    ------
    ValueError
        If `max_edge_factor` is not above 1, or `min_region_points` is below 1.

    Examples
    --------
    >>> points = np.array([[0, 0], [0, 1], [1, 0], [500, 500], [1, 1]])
    >>> net = triangulate(points)
    >>> regions(net, edge_lengths(points, net.edges), min_region_points=2).tolist()
    [0, 0, 0, -1, 0]
    """
    if not max_edge_factor > 1:
        raise ValueError(f"max_edge_factor is {max_edge_factor}; expected more than 1")
    if min_region_points < 1:
        raise ValueError(f"min_region_points is {min_region_points}; expected at least 1")
    longest = max_edge_factor * np.median(lengths) if lengths.size else 0.0
    return _cpu.components(triangulation.edges, lengths <= longest, triangulation.vertex, min_region_points)


# -- coordinates -------------------------------------------------------------------------------------------------------


def _check_points(points: PointArray, name: str) -> None:
    if points.ndim != 2 or points.shape[1] != 2 or points.dtype.kind not in "iuf":
        raise ValueError(f"{name} is {points.dtype} {points.shape}; expected integers or floats of shape (n_points, 2)")
    if len(points) > MOST_POINTS:
        raise ValueError(f"{name} has {len(points)} points; expected at most {MOST_POINTS}")
    if points.dtype.kind == "f":
        wrong = ~np.isfinite(points).all(axis=1)
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"{name} is ({points[row, 0]}, {points[row, 1]}) in row {row}; expected finite coordinates"
            )


def _check_spacing(spacing: tuple[float, float]) -> None:
    azimuth, range_ = spacing
    if not all(isfinite(s) and s > 0 for s in spacing) or max(spacing) > _LARGEST_RATIO * min(spacing):
        raise ValueError(
            f"pixel spacing is ({azimuth:g}, {range_:g}) m; expected two positive numbers whose ratio is at most "
            f"{_LARGEST_RATIO:g}"
        )


def _lattice(points: PointArray, spacing: tuple[float, float], name: str) -> _Plane:
    """Integer coordinates: exact in float64, with the metric in the weights."""
    weights = metric_weights(spacing)
    low, high = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    span = [last - first for first, last in zip(low, high, strict=True)]
    if max(span) >= 2**53:
        raise ValueError(f"{name} spans {span[0]} x {span[1]} pixels; expected less than 2**53")
    # modulo 2**64, so that no type of integer overflows
    shifted = (points.astype(np.uint64) - np.array([first % 2**64 for first in low], np.uint64)).astype(np.int64)
    ratio = spacing[0] / spacing[1]
    stretch = (max(1, round(ratio)), max(1, round(1 / ratio)))  # cells of the curve are about square on the ground
    longest = max(s * f for s, f in zip(span, stretch, strict=True))
    cells = shifted * np.array(stretch) if longest < 2**31 else shifted >> max(0, max(span).bit_length() - 31)
    return _Plane(
        x=shifted[:, 0].astype(np.float64),
        y=shifted[:, 1].astype(np.float64),
        weights=(float(weights[0]), float(weights[1])),
        turn_error=0.0 if max(span) < 2**26 else _TURN_ERROR,
        exact_below=2.0**53 * (weights[0] * weights[1]) ** 0.5,
        cells=cells,
    )


def _scaled(points: PointArray, spacing: tuple[float, float]) -> _Plane:
    """Coordinates in meters, divided by a power of two: no product of four over- or underflows."""
    scale = np.array(spacing) / max(spacing)
    exponent = int(np.frexp(np.abs(points).max())[1])
    x, y = (np.ldexp(c.astype(np.float64), -exponent) * s for c, s in zip(points.T, scale, strict=True))
    for values in (x, y):
        values[np.abs(values) < 2.0**-150] = 0.0
    cell = max(float(np.ptp(x)), float(np.ptp(y))) / (2**_CURVE_BITS - 1) or 1.0
    cells = np.stack([(x - x.min()) / cell, (y - y.min()) / cell], axis=1).astype(np.int64)
    return _Plane(x, y, (1.0, 1.0), _TURN_ERROR, 0.0, cells)


def _places(plane: _Plane) -> tuple[Int64, Int32]:
    """Return the first points of all places in the order of a Hilbert curve, and the first at the place of every point.

    In one cell of the curve, places are ordered by their coordinates.
    """
    side = int(plane.cells.max()) + 1
    key = pc_hix(plane.cells, (side, side))
    order = np.argsort(key)
    vertex = np.arange(len(order), dtype=np.int32)
    is_tie = np.diff(key[order]) == 0
    if is_tie.any():
        rows = np.flatnonzero(np.append(is_tie, False) | np.append(False, is_tie))
        tied = order[rows]
        order[rows] = tied[np.lexsort((tied, plane.y[tied], plane.x[tied], key[tied]))]
        x, y = plane.x[order], plane.y[order]
        is_first = np.append(True, (np.diff(x) != 0) | (np.diff(y) != 0))
        vertex[order] = order[is_first][np.cumsum(is_first) - 1]
        order = order[is_first]
    return order, vertex


def _chain(order: Int64, vertex: Int32) -> Triangulation:
    """Edges between points that follow each other on a line."""
    edges = np.sort(np.stack([order[:-1], order[1:]], axis=1).astype(np.int32), axis=1)
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    return Triangulation(_NOTHING, _NOTHING, edges, _NOTHING, np.empty(0, np.int8), vertex)


def _simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """Fraction with the smallest denominator between two positive ones, by their continued fraction."""
    whole = low.numerator // low.denominator
    if low == whole:
        return low
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / _simplest_between(1 / (high - whole), 1 / (low - whole))
