"""Tasks of unwrapping in tiles: one tile in several pairs, and one pair out of its tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core import store
from moraine_unwrap.flow.clouds import cloud, pair_cycles
from moraine_unwrap.flow.kernels import leveled
from moraine_unwrap.flow.networks import network, of_vertices
from moraine_unwrap.flow.tasks import interferogram, results_of
from moraine_unwrap.qualities import checked_qualities
from moraine_unwrap.tiling import kernels
from moraine_unwrap.triangulation.kernels import triangulate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from moraine_core import Chunk
    from moraine_unwrap.flow.networks import Int32, Int64
    from moraine_unwrap.tiling.kernels import Tiling

WINDOW_POINTS = 2**20
"""Points of a column that are read at a time, unless a stored chunk is larger."""


def largest_tile(gix: NDArray[Any], *, spacing: tuple[float, float], n_tiles: int) -> int:
    """Return how many vertices the largest tile has with its halo.

    Parameters are those of `moraine_unwrap.tiling.kernels.tiling`.
    """
    found = kernels.tiling(gix, spacing, n_tiles)
    return max(len(found.vertices(tile)[0]) for tile in range(n_tiles))


def unwrap_tile(
    *,
    tiling: Tiling,
    tile: int,
    size: int,
    pairs: Sequence[tuple[int, int]],
    gix: Chunk,
    ph: Chunk,
    qualities: Mapping[str, Chunk],
    spacing: tuple[float, float],
    spatial_cost: str,
    earth_cost: int,
) -> tuple[Int32, Int32]:
    """Unwrap some pairs in one tile.

    Parameters
    ----------
    tiling, tile
        The tiles, and the number of this one.
    size
        Rows of the results, at least the number of its vertices.
    pairs
        Images (reference, secondary) of the pairs.
    gix, ph
        Grid index and phase history of all points, unread.
    qualities
        Weight and variance of all points, unread, those that there are, by what errors call them.
    spacing, spatial_cost, earth_cost
        As in `moraine_unwrap.flow.clouds`.

    Returns
    -------
    cycles, island
        What `moraine_unwrap.tiling.kernels.join` takes of the tile, ``(size, len(pairs))`` int32; 0 and -1 behind its
        vertices.

    Raises
    ------
    ArithmeticError
        A solution is not proven to be the cheapest; the tile and the pair are named.
    """
    vertices, is_core = tiling.vertices(tile)
    cycles, island = np.zeros((size, len(pairs)), np.int32), np.full((size, len(pairs)), -1, np.int32)
    if not len(vertices):
        return cycles, island
    rows = tiling.rows(vertices)
    points = np.stack([picked(gix, rows, axis) for axis in (0, 1)], axis=1)
    net = network(points, triangulate(points, spacing, with_edges=False), spacing, is_sorted=True)
    weight, variance = checked_qualities([picked(chunk, rows) for chunk in qualities.values()], list(qualities))
    is_part = None if len(vertices) == len(tiling.points) else is_core  # a halo may reach everywhere
    whole = cloud(net, points, spacing, spatial_cost, weight=weight, variance=variance, is_core=is_part)
    images = {image: picked(ph, rows, image) for image in sorted({image for pair in pairs for image in pair})}
    for column, (ref, sec) in enumerate(pairs):
        wrapped = interferogram(images[ref], images[sec])
        try:
            found = pair_cycles(whole, of_vertices(net, wrapped, "ph"), earth_cost)
        except ArithmeticError as error:
            raise ArithmeticError(f"tile {tile}, pair {ref} {sec}: {error}") from error
        cycles[: len(vertices), column] = found.cycles
        island[: len(vertices), column] = _without_lone(found.island, is_core)
    return cycles, island


def join_pair(
    ref: NDArray[np.complex64],
    sec: NDArray[np.complex64],
    cycles: Int32,
    island: Int32,
    *,
    tiling: Tiling,
    size: int,
    ref_point: int,
    with_island: bool,
) -> tuple[Any, ...]:
    """Join what was found of one pair in all tiles.

    Parameters
    ----------
    ref, sec
        As in `moraine_unwrap.flow.tasks.interferogram`.
    cycles, island
        Results of `unwrap_tile` for the pair, of tile after tile, ``(n_tiles size, 1)`` int32.
    tiling, size
        As there.
    ref_point, with_island
        As in `moraine_unwrap.flow.tasks.unwrap_pair`, whose results these are too, with a cost of 0.
    """
    wrapped = interferogram(ref, sec)
    parts = [slice(size * tile, size * tile + len(tiling.vertices(tile)[0])) for tile in range(tiling.n_tiles)]
    found = kernels.join(tiling, *([values[part, 0] for part in parts] for values in (cycles, island)))
    out = leveled(tiling, wrapped, found.cycles, found.island, 0, ref_point)
    return results_of(out, with_island=with_island)


def picked(chunk: Chunk, rows: Int64, column: int | None = None) -> NDArray[Any]:
    """Return some points of an array, of which only the stored chunks that hold them are read, a few at a time.

    Parameters
    ----------
    chunk
        The array.
    rows
        Points, ``(n,)``, in any order.
    column
        Column of an array of two axes.
    """
    array = store.open_array(chunk.path)
    out = np.empty(len(rows), array.dtype)
    window = -(-WINDOW_POINTS // array.chunks[0]) * array.chunks[0]
    order = np.argsort(rows, kind="stable")
    starts = rows[order] // window
    for first in np.unique(starts):
        here = order[np.searchsorted(starts, first) : np.searchsorted(starts, first, "right")]
        near = rows[here] - first * window
        low, high = int(first * window + near.min()), int(first * window + near.max()) + 1
        columns = () if column is None else (slice(column, column + 1),)
        values = store.parallel_read_zarr(array, (slice(low, high), *columns))
        out[here] = values.reshape(len(values))[rows[here] - low]
    return out


def _without_lone(island: Int32, is_core: NDArray[np.bool_]) -> Int32:
    """Take out vertices of the halo that nothing links."""
    size = np.bincount(island[island >= 0], minlength=1)
    is_lone = (island >= 0) & ~is_core
    is_lone[is_lone] = size[island[is_lone]] == 1
    return np.where(is_lone, np.int32(-1), island)
