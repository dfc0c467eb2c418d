"""Serial loops over positions and edges of polygons, compiled by numba; the arrays are those of `inside.Edges`."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _band(y, low, scale, n_bands):
    """Band of a y that is not below the lowest: never falls while y rises, so an edge spans the bands of its ends."""
    return min(np.int64((y - low) * scale), n_bands - 1)


@njit(nogil=True, cache=True)
def bands(y, low, scale, n_bands):
    """Band of each y."""
    found = np.empty(len(y), np.int64)
    for k in range(len(y)):
        found[k] = _band(y[k], low, scale, n_bands)
    return found


@njit(nogil=True, cache=True)
def list_edges(first, last, n_bands):
    """List the edges of every band, from the first and the last band of every edge."""
    starts = np.zeros(n_bands + 1, np.int64)
    for edge in range(len(first)):
        for band in range(first[edge], last[edge] + 1):
            starts[band + 1] += 1
    starts = np.cumsum(starts)
    listed = np.empty(starts[-1], np.int32)
    at = starts[:-1].copy()
    for edge in range(len(first)):
        for band in range(first[edge], last[edge] + 1):
            listed[at[band]] = edge
            at[band] += 1
    return starts, listed


@njit(nogil=True, cache=True)
def _is_inside(x, y, edges):
    """Whether an odd number of edges of any one ring lie to the right; nan compares as false and is outside."""
    if not (edges.low <= y < edges.high):
        return False
    band = _band(y, edges.low, edges.scale, len(edges.starts) - 1)
    ring, is_odd = -1, False
    for k in range(edges.starts[band], edges.starts[band + 1]):
        edge = edges.listed[k]
        if edges.ring[edge] != ring:
            if is_odd:
                return True
            ring = edges.ring[edge]
        x0, y0, x1, y1 = edges.ends[edge, 0], edges.ends[edge, 1], edges.ends[edge, 2], edges.ends[edge, 3]
        if y0 <= y < y1 and x < x0 + (y - y0) / (y1 - y0) * (x1 - x0):
            is_odd = not is_odd
    return is_odd


@njit(nogil=True, cache=True)
def inside(x, y, edges, value):
    """Mask of positions, and how many have a nan."""
    mask = np.empty(len(x), np.bool_)
    n_missing = 0
    for k in range(len(x)):
        n_missing += np.isnan(x[k]) or np.isnan(y[k])
        mask[k] = _is_inside(x[k], y[k], edges) == value
    return mask, n_missing


@njit(nogil=True, cache=True)
def inside_grid(rows, columns, edges, value):
    """Mask of the pixels of a part of a raster."""
    mask = np.empty((rows[1] - rows[0], columns[1] - columns[0]), np.bool_)
    for i in range(mask.shape[0]):
        for j in range(mask.shape[1]):
            mask[i, j] = _is_inside(np.float64(columns[0] + j), np.float64(rows[0] + i), edges) == value
    return mask
