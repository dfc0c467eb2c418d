"""Array functions: points are cut into tiles with halos, and what was found in tiles is joined.

A tile is a core of cells and a halo of the nearest other cells on each of its four sides, however far they are: so
parts of a cloud that lie apart meet in a tile, as they do in a triangulation of all points. Triangles at the points of
the core are those of the whole cloud. Cycles are summed along edges with an end in the core alone; so the islands of
the tiles, joined where tiles share points, are the islands of the whole cloud.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_unwrap.flow.networks import along_curve
from moraine_unwrap.tiling.sizes import CELL, halo_cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from moraine_unwrap.flow.networks import Bool, Float64, Int32, Int64


class Tiling(NamedTuple):
    """Points cut into tiles.

    Attributes
    ----------
    points
        First point of every vertex, ``(V,)`` int32; vertices are numbered along the curve.
    vertex
        Vertex of every point, ``(n_points,)`` int32.
    copies
        Points that share the vertex of an earlier one, int32.
    start
        First row in `cells` of every tile, and the end, ``(n_tiles + 1,)`` int64.
    cells
        Cells of every tile with its halo, ascending, int32. Cell c holds the vertices ``32 c`` to ``32 c + 31``.
    is_core
        Whether the cell is no halo; every cell is that in exactly one tile.
    """

    points: Int32
    vertex: Int32
    copies: Int32
    start: Int64
    cells: Int32
    is_core: Bool

    @property
    def n_tiles(self) -> int:
        """Number of tiles."""
        return len(self.start) - 1

    def vertices(self, tile: int) -> tuple[Int64, Bool]:
        """Return the vertices of a tile, ascending, and whether they are no halo."""
        part = slice(self.start[tile], self.start[tile + 1])
        cells = self.cells[part].astype(np.int64)
        vertices = (CELL * cells[:, None] + np.arange(CELL)).ravel()
        is_there = vertices < len(self.points)
        return vertices[is_there], np.repeat(self.is_core[part], CELL)[is_there]

    def rows(self, vertices: Int64) -> Int64:
        """Return the points of vertices: first one of each, in their order, then the others."""
        rows = self.points[vertices].astype(np.int64)
        if not len(self.copies):
            return rows
        is_member = np.zeros(len(self.points), np.bool_)
        is_member[vertices] = True
        return np.concatenate([rows, self.copies[is_member[self.vertex[self.copies]]]])


def tiling(gix: NDArray[Any], spacing: tuple[float, float], n_tiles: int) -> Tiling:
    """Cut points into tiles: in halves of equal numbers of points, again and again, across the longer side.

    Parameters
    ----------
    gix
        Grid index (azimuth, range), ``(n_points, 2)``, in pixels.
    spacing
        Pixel spacing in azimuth and range, in meters.
    n_tiles
        Number of tiles, at least 1. There are empty ones where cells are fewer.

    Returns
    -------
    Tiling
        The same for any order of the points, but for the point numbers in it.

    Examples
    --------
    >>> gix = np.argwhere(np.ones((100, 10)))
    >>> found = tiling(gix, (1.0, 1.0), 2)
    >>> [int(found.vertices(tile)[1].sum()) for tile in (0, 1)]
    [512, 488]
    """
    order = along_curve(gix * np.array(spacing))
    places = gix[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (places[1:] != places[:-1]).any(axis=1)
    vertex = np.empty(len(order), np.int32)
    vertex[order] = np.cumsum(is_first, dtype=np.int32) - 1
    points = np.empty(int(is_first.sum()), np.int32)
    points[vertex[::-1]] = np.arange(len(order) - 1, -1, -1)  # of points at one place the first is written last
    copies = np.flatnonzero(points[vertex] != np.arange(len(order))).astype(np.int32)
    ground = gix[points] * np.array(spacing)
    centers = np.stack([_means(along) for along in ground.T], axis=1)
    tiles = []
    for core in _split(np.arange(len(centers)), centers, n_tiles):
        halo = _halo(core, centers)
        cells = np.concatenate([core, halo])
        is_core = np.arange(len(cells)) < len(core)
        rank = np.argsort(cells)
        tiles.append((cells[rank].astype(np.int32), is_core[rank]))
    start = np.concatenate([[0], np.cumsum([len(cells) for cells, _ in tiles])])
    return Tiling(
        points,
        vertex,
        copies,
        start.astype(np.int64),
        np.concatenate([cells for cells, _ in tiles]),
        np.concatenate([is_core for _, is_core in tiles]),
    )


def _means(along: Float64) -> Float64:
    """Means of cells."""
    starts = np.arange(0, len(along), CELL)
    counts = np.minimum(len(along) - starts, CELL)
    return np.add.reduceat(along, starts) / counts if len(along) else np.empty(0)


def _split(cells: Int64, centers: Float64, n_tiles: int) -> Iterator[Int64]:
    """Cells of each tile."""
    if n_tiles == 1:
        yield cells
        return
    here = centers[cells]
    axis = int(np.argmax(np.ptp(here, axis=0))) if len(cells) else 0
    order = np.lexsort((cells, here[:, 1 - axis], here[:, axis]))
    first = n_tiles // 2
    n_first = -(-len(cells) * first // n_tiles)
    yield from _split(cells[order[:n_first]], centers, first)
    yield from _split(cells[order[n_first:]], centers, n_tiles - first)


def _halo(core: Int64, centers: Float64) -> Int64:
    """Cells nearest to the box of a core, as many on each of its four sides."""
    if not len(core):
        return core
    low, high = centers[core].min(axis=0), centers[core].max(axis=0)
    beyond = np.maximum(centers - high, 0) - np.maximum(low - centers, 0)
    away = np.hypot(beyond[:, 0], beyond[:, 1])
    size = np.abs(beyond)
    side = np.where(size[:, 0] >= size[:, 1], 2 * (beyond[:, 0] > 0), 1 + 2 * (beyond[:, 1] > 0))
    side[core] = -1
    most = halo_cells(len(core))
    chosen = []
    for number in range(4):
        there = np.flatnonzero(side == number)
        if len(there) > most:
            farthest = np.partition(away[there], most - 1)[most - 1]
            nearer = there[away[there] < farthest]
            there = np.concatenate([nearer, there[away[there] == farthest][: most - len(nearer)]])
        chosen.append(there)
    return np.concatenate(chosen)


class Joined(NamedTuple):
    """What was found in tiles, joined.

    Attributes
    ----------
    cycles, island
        Whole cycles of every vertex, 0 at the first of every island, and the number of its island, -1 where it is
        missing, ``(V,)`` int32.
    """

    cycles: Int32
    island: Int32


def join(tiling: Tiling, cycles: Sequence[Int32], island: Sequence[Int32]) -> Joined:
    """Join the cycles that were found in tiles.

    Every tile and island of it is shifted by whole cycles. Points that two tiles share vote by how many the two differ;
    of all votes the most frequent counts, and a spanning tree of most votes joins what is connected.

    Parameters
    ----------
    tiling
        The tiles.
    cycles, island
        Of each tile the whole cycles of its vertices, and the islands in it, -1 where a vertex is missing or where it
        is in the halo and beside no vertex of the core; int32.

    Returns
    -------
    Joined
        Each vertex has the cycles of the tile whose core it is in, shifted.
    """
    n_vertices = len(tiling.points)
    total, node = np.zeros(n_vertices, np.int32), np.full(n_vertices, -1, np.int32)
    base = np.zeros(tiling.n_tiles, np.int32)
    n_nodes = 0
    members = [tiling.vertices(tile) for tile in range(tiling.n_tiles)]
    for tile, (vertices, is_core) in enumerate(members):
        base[tile] = n_nodes
        n_nodes += int(island[tile].max(initial=-1)) + 1
        core = is_core & (island[tile] >= 0)
        total[vertices[core]] = cycles[tile][core]
        node[vertices[core]] = base[tile] + island[tile][core]
    votes = []
    for tile, (vertices, is_core) in enumerate(members):
        shared = ~is_core & (island[tile] >= 0)
        at = vertices[shared]
        shared[shared] = node[at] >= 0
        at = vertices[shared]
        ends = np.stack([base[tile] + island[tile][shared], node[at]])
        votes.append(np.stack([*ends, (cycles[tile][shared] - total[at])]))
    root, shift = _spanning_tree(n_nodes, *_most_frequent(np.concatenate(votes, axis=1)))
    is_valid = node >= 0
    total[is_valid] += shift[node[is_valid]]
    label = np.full(n_vertices, -1, np.int32)
    _, first, number = np.unique(root[node[is_valid]], return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first))
    label[is_valid] = rank[number]
    firsts = np.sort(first)
    total[is_valid] -= total[is_valid][firsts][label[is_valid]]
    return Joined(total, label)


def _most_frequent(votes: Int32) -> tuple[Int64, Int64, Int64]:
    """Return the ends of every pair of nodes and the most frequent difference; those with the most votes come first."""
    is_swapped = votes[0] > votes[1]
    low, high = np.minimum(votes[0], votes[1]), np.maximum(votes[0], votes[1])
    difference = np.where(is_swapped, -votes[2], votes[2])
    (low, high, difference), count = np.unique(np.stack([low, high, difference]), axis=1, return_counts=True)
    order = np.lexsort((difference, np.abs(difference), -count, high, low))
    low, high, difference, count = low[order], high[order], difference[order], count[order]
    is_best = np.ones(len(low), np.bool_)
    is_best[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    low, high, difference, count = low[is_best], high[is_best], difference[is_best], count[is_best]
    order = np.lexsort((high, low, -count))
    return low[order], high[order], difference[order]


def _spanning_tree(n_nodes: int, low: Int64, high: Int64, difference: Int64) -> tuple[Int32, Int32]:
    """Root of every node, and its shift: edges in the given order say ``shift[high] - shift[low] = difference``."""
    parent = list(range(n_nodes))
    to_parent = [0] * n_nodes

    def find(node: int) -> tuple[int, int]:
        way = []
        while parent[node] != node:
            way.append(node)
            node = parent[node]
        total = 0
        for step in reversed(way):
            total += to_parent[step]
            parent[step], to_parent[step] = node, total
        return node, total

    for a, b, d in zip(low.tolist(), high.tolist(), difference.tolist(), strict=True):
        (root_a, shift_a), (root_b, shift_b) = find(a), find(b)
        if root_a != root_b:
            parent[root_b], to_parent[root_b] = root_a, shift_a + d - shift_b
    found = [find(node) for node in range(n_nodes)]
    return np.array([root for root, _ in found], np.int32), np.array([shift for _, shift in found], np.int32)
