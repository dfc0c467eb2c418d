"""Networks: a triangulation prepared for flows, once for all interferograms of a point cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from moraine_points.kernels import pc_hix
from moraine_unwrap.flow import _cpu
from moraine_unwrap.flow.slopes import _cpu as slopes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moraine_unwrap.triangulation.kernels import PointArray, Triangulation

Int32: TypeAlias = "NDArray[np.int32]"
Int64: TypeAlias = "NDArray[np.int64]"
Float64: TypeAlias = "NDArray[np.float64]"
Bool: TypeAlias = "NDArray[np.bool_]"

_CURVE_BITS = 16


class Network(NamedTuple):
    """A triangulation of V vertices, E edges and T triangles, prepared for flows.

    Vertices are numbered along a Hilbert curve, and edges by their vertices, the smaller first: so nothing but the
    numbers of points depends on their order. Points at the same place share a vertex. Half-edges and nodes are
    explained in the module `_cpu`. Any number of interferograms can use the arrays at the same time.
    """

    points: Int32
    """Point of every vertex, ``(V,)``."""
    vertex: Int32
    """Vertex of every point, ``(n_points,)``."""
    position: Float64
    """Coordinates of the vertices on the ground, ``(V, 2)``, in meters."""
    edges: Int32
    """Vertices of every edge, ``(E, 2)``, ascending."""
    signed_edge: Int32
    """Edge of every half-edge of a triangle, ``(3T,)``: ``~edge`` where the direction is the opposite."""
    twin: Int32
    """Other half-edge of the edge, ``(3T + n_hull,)``; the last belong to the earth."""
    head: Int32
    """Node that every half-edge leads to, ``(3T + n_hull,)``."""
    start: Int64
    """First row in `arcs` of every joined group of triangles, and the end."""
    arcs: Int32
    """Half-edges that lead out of each group of triangles."""
    to: Int32
    """Vertices that are not missing, from the nearest to the farthest in every island, ``(n_valid,)``."""
    origin: Int32
    """Vertex from which `to` is reached, ``(n_valid,)``; -1 where an island begins."""
    step: Int32
    """Edge by which `to` is reached, ``(n_valid,)``: ``~edge`` where the direction is the opposite."""
    island: Int32
    """Number of the connected part that a vertex belongs to, ``(V,)``; -1 for missing ones."""
    is_link: Bool
    """Whether cycles are summed along an edge, ``(E,)``; parts that only other edges join are islands."""
    cell_start: Int64
    """First edge of every cell of vertices, and the end."""
    cell_scale: Float64
    """Typical length of the edges of every cell, in steps of a factor of two, in meters."""
    most_slope: tuple[float, float]
    """Largest slope in azimuth and range, in radians per meter: half a cycle per pixel. On a raster a larger one cannot
    be told from a smaller one; infinite for coordinates that are no integers."""


def network(
    points: PointArray,
    triangulation: Triangulation,
    spacing: tuple[float, float] = (1.0, 1.0),
    *,
    is_sorted: bool = False,
) -> Network:
    """Prepare a triangulation for flows: once for all pairs of a stack.

    Parameters
    ----------
    points
        Coordinates (azimuth, range), ``(n_points, 2)``, in pixels, as they were triangulated.
    triangulation
        What `moraine_unwrap.triangulation.kernels.triangulate` returns for them.
    spacing
        Pixel spacing in azimuth and range, in meters.
    is_sorted
        The points come in the order of the curve already.

    Returns
    -------
    Network
        The same for any order of the points, but for the point numbers in it.

    Examples
    --------
    >>> from moraine_unwrap.triangulation.kernels import triangulate
    >>> points = np.array([[0, 0], [0, 10], [10, 0]])
    >>> network(points, triangulate(points)).island.tolist()
    [0, 0, 0]
    """
    firsts = np.flatnonzero(triangulation.vertex == np.arange(triangulation.n_points))
    at = np.asarray(points)
    ground = np.stack([at[firsts, axis] * float(spacing[axis]) for axis in (0, 1)], axis=1)
    order = np.arange(len(firsts)) if is_sorted else along_curve(ground)
    position = ground[order]
    n_vertices = len(order)
    rank = np.empty(triangulation.n_points, np.int32)
    rank[firsts[order]] = np.arange(n_vertices, dtype=np.int32)
    corner, twin = _cpu.number_triangles(triangulation.tri, triangulation.half, rank, n_vertices)
    edges, signed_edge = _cpu.number_edges(corner, twin, n_vertices)
    if not len(twin):
        edges = _cpu.sorted_edges(triangulation.edges, rank)
    nothing = np.zeros(n_vertices, np.bool_)
    head, start, arcs = _cpu.contract(edges, signed_edge, twin, nothing)
    is_link = np.ones(len(edges), np.bool_)
    to, origin, step, island = _cpu.spanning_forest(edges, is_link, nothing)
    cell_start = slopes.cell_edges(edges, -(-n_vertices // slopes.CELL))
    return Network(
        points=firsts[order].astype(np.int32),
        vertex=rank[triangulation.vertex],
        position=position,
        edges=edges,
        signed_edge=signed_edge,
        twin=twin,
        head=head,
        start=start,
        arcs=arcs,
        to=to,
        origin=origin,
        step=step,
        island=island,
        is_link=is_link,
        cell_start=cell_start,
        cell_scale=_cell_scales(slopes.typical_lengths(position, edges, cell_start)),
        most_slope=(np.pi / spacing[0], np.pi / spacing[1]) if at.dtype.kind in "iu" else (np.inf, np.inf),
    )


def without(net: Network, is_missing: Bool) -> Network:
    """Take vertices out of a network.

    All triangles around a missing vertex become one node of the flow. Its residue is the sum of theirs: that is the one
    of the boundary, without what is missing. Around a vertex of the hull they become a part of the earth.

    Parameters
    ----------
    net
        A network.
    is_missing
        True for the vertices to take out, ``(V,)`` bool.

    Returns
    -------
    Network
        Shares all arrays that do not change. Vertices that no edge connects any more are islands of their own.

    Examples
    --------
    >>> from moraine_unwrap.triangulation.kernels import triangulate
    >>> points = np.array([[0, 0], [0, 10], [0, 20]])
    >>> net = network(points, triangulate(points))
    >>> without(net, np.array([False, True, False])).island.tolist()
    [0, -1, 1]
    """
    head, start, arcs = _cpu.contract(net.edges, net.signed_edge, net.twin, is_missing)
    to, origin, step, island = _cpu.spanning_forest(net.edges, net.is_link, is_missing)
    return net._replace(head=head, start=start, arcs=arcs, to=to, origin=origin, step=step, island=island)


def linked(net: Network, is_link: Bool) -> Network:
    """Let cycles be summed along some edges only; the flow crosses all of them as before.

    Parameters
    ----------
    net
        A network without missing vertices.
    is_link
        True for the edges to sum along, ``(E,)`` bool.

    Returns
    -------
    Network
        Its islands are the parts that these edges connect.

    Examples
    --------
    >>> from moraine_unwrap.triangulation.kernels import triangulate
    >>> points = np.array([[0, 0], [0, 10], [0, 20]])
    >>> linked(network(points, triangulate(points)), np.array([True, False])).island.tolist()
    [0, 0, 1]
    """
    to, origin, step, island = _cpu.spanning_forest(net.edges, is_link, np.zeros(len(net.points), np.bool_))
    return net._replace(to=to, origin=origin, step=step, island=island, is_link=is_link)


def along_curve(ground: Float64) -> Int64:
    """Order of places along a Hilbert curve, those in one cell of it by their coordinates.

    Neighbors on the curve are neighbors on the ground. Where millions of points are sorted like this before they are
    triangulated, that and everything after it find in the cache what they need.

    Parameters
    ----------
    ground
        Coordinates on the ground, ``(n, 2)`` float64, in meters.

    Returns
    -------
    ndarray
        Rows of `ground` in this order, ``(n,)`` int64.

    Examples
    --------
    >>> along_curve(np.array([[0.0, 0.0], [9.0, 0.0], [9.0, 9.0], [0.0, 9.0]])).tolist()
    [0, 3, 2, 1]
    """
    if not len(ground):
        return np.empty(0, np.int64)
    low = [float(along.min()) for along in ground.T]
    span = max(float(along.max()) - first for along, first in zip(ground.T, low, strict=True))
    cells = (ground - low) / (span / (2**_CURVE_BITS - 1) or 1.0)
    key = pc_hix(cells.astype(np.int32), (2**_CURVE_BITS, 2**_CURVE_BITS))
    order = np.argsort(key)
    is_same = np.zeros(len(key) + 1, np.bool_)
    is_same[1:-1] = key[order[1:]] == key[order[:-1]]
    rows = np.flatnonzero(is_same[1:] | is_same[:-1])
    tied = order[rows]
    order[rows] = tied[np.lexsort((ground[tied, 1], ground[tied, 0], key[tied]))]
    return order


class Vertices(Protocol):
    """What tells which points vertices stand for: a network, or a cloud that is cut into tiles."""

    @property
    def points(self) -> Int32:
        """Point of every vertex, ``(V,)``."""

    @property
    def vertex(self) -> Int32:
        """Vertex of every point, ``(n_points,)``."""


def of_vertices(net: Vertices, values: NDArray[Any], name: str) -> Float64:
    """Values of the vertices, the smallest one of points at the same place."""
    if values.shape != net.vertex.shape:
        raise ValueError(f"{name} has shape {values.shape}; expected {net.vertex.shape}, one for each point")
    if len(net.points) == len(net.vertex):
        return values[net.points].astype(np.float64)
    out = np.full(len(net.points), np.nan)
    np.fmin.at(out, net.vertex, values)
    return out


def _cell_scales(lengths: Float64) -> Float64:
    """Typical lengths rounded to the median times a power of two, so that neighbors share a lattice of slopes."""
    if not (lengths > 0).any():
        return lengths
    median = np.median(lengths[lengths > 0])
    octave = np.rint(np.log2(np.where(lengths > 0, lengths, median) / median))
    return np.where(lengths > 0, median * np.exp2(octave), 0.0)
