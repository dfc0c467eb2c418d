"""Which positions lie inside polygons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_raster import _cpu, polygons

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MAX_LISTED = 8
"""How often an edge is listed at most, on average over all edges; it bounds the number of bands."""


class Edges(NamedTuple):
    """Edges of polygons, to be found by y: the plane is cut into bands of equal height, and each lists its edges."""

    ends: NDArray[np.float64]
    """``(n_edges, 4)``: x and y of the lower and of the upper end; edges along x are left out."""
    ring: NDArray[np.int32]
    """Number of the polygon, ``(n_edges,)``, ascending."""
    starts: NDArray[np.int64]
    """Where the list of each band begins and the last one ends, ``(n_bands + 1,)``."""
    listed: NDArray[np.int32]
    """Numbers of edges, ascending in each band."""
    low: float
    """The lowest y."""
    high: float
    """The highest y."""
    scale: float
    """Bands per unit of y."""


def edges_of(rings: Sequence[Sequence[tuple[float, float]]]) -> Edges:
    """Return the edges of polygons, ready for the functions below.

    Parameters
    ----------
    rings
        Vertices (x, y) of each polygon, in order; the last is joined to the first.

    Returns
    -------
    Edges
        With at most `MAX_LISTED` numbers per edge in the lists, whatever the polygons.
    """
    parts = [np.asarray(ring, np.float64).reshape(-1, 2) for ring in rings]
    ends = np.concatenate([np.empty((0, 4)), *(np.hstack([part, np.roll(part, -1, axis=0)]) for part in parts)])
    ring = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])
    # one direction for all: neighbors that share an edge then decide by the same number, without a gap between them
    falls = ends[:, 1] > ends[:, 3]
    ends[falls] = ends[falls][:, [2, 3, 0, 1]]
    is_sloped = ends[:, 1] < ends[:, 3]
    ends, ring = ends[is_sloped], ring[is_sloped]
    low, high = float(ends[:, 1].min(initial=np.inf)), float(ends[:, 3].max(initial=-np.inf))
    n_bands = 2 << len(ends).bit_length()
    while True:
        n_bands //= 2
        scale = n_bands / (high - low)
        scale = scale if np.isfinite(scale) else 0.0  # the first band for all
        first, last = (_cpu.bands(ends[:, column], low, scale, n_bands) for column in (1, 3))
        if n_bands == 1 or (last - first + 1).sum() <= MAX_LISTED * len(ends):
            starts, listed = _cpu.list_edges(first, last, n_bands)
            return Edges(ends, ring, starts, listed, low, high, scale)


def read_edges(*, path: str) -> Edges:
    """Return the edges of the polygons of a GeoJSON file."""
    return edges_of(polygons.read(path).rings)


def inside(x: NDArray[Any], y: NDArray[Any], *, edges: Edges, value: bool = True) -> tuple[NDArray[np.bool_], int]:
    """Return which positions lie inside any polygon.

    A position is inside a polygon if a ray from it along x crosses the boundary an odd number of times (Shimrat, 1962,
    CACM 5(8), algorithm 112). What lies exactly on an edge may count either way.

    Parameters
    ----------
    x, y
        Coordinates, real, of one shape, in the unit of the polygons. A position with a nan is outside.
    edges
        The polygons.
    value
        What stands for inside; the other one stands for outside.

    Returns
    -------
    is_inside : ndarray
        bool, in the shape of `x`.
    n_missing : int
        Number of positions with a nan.
    """
    flat_x, flat_y = (np.ascontiguousarray(values, np.float64).ravel() for values in (x, y))
    mask, n_missing = _cpu.inside(flat_x, flat_y, edges, value)
    return mask.reshape(np.shape(x)), int(n_missing)


def inside_gix(gix: NDArray[Any], *, edges: Edges, value: bool = True) -> tuple[NDArray[np.bool_], int]:
    """Return which points of a grid index lie inside any polygon of the radar grid.

    Parameters
    ----------
    gix
        Grid index (azimuth, range), ``(n_points, 2)`` integer, in pixels.
    edges, value
        As for `inside`; y is azimuth, x range.

    Returns
    -------
    is_inside : ndarray
        bool, ``(n_points,)``.
    n_missing : int
        0: no point lacks a position.
    """
    return inside(gix[:, 1], gix[:, 0], edges=edges, value=value)


def inside_grid(
    *, rows: tuple[int, int], columns: tuple[int, int], edges: Edges, value: bool = True
) -> tuple[NDArray[np.bool_], int]:
    """Return which pixels of a part of a raster have their center inside any polygon of the radar grid.

    Parameters
    ----------
    rows, columns
        First and last (exclusive) line and pixel; the center of a pixel has these whole numbers as y and x.
    edges, value
        As for `inside`.

    Returns
    -------
    is_inside : ndarray
        bool, ``(lines, pixels)``.
    n_missing : int
        0: no pixel lacks a position.
    """
    return _cpu.inside_grid(rows, columns, edges, value), 0
