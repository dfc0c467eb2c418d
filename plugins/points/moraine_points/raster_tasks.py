"""What tasks between rasters and points do besides calling a kernel: they read only chunks that hold what they need."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_core import store
from moraine_points import kernels
from moraine_points.part_tasks import in_spill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moraine_core import Chunk

    Values = NDArray[Any]
    Grid = tuple[int, int]


class Points(NamedTuple):
    """Where points lie in rasters of one size."""

    gix: NDArray[np.int32]
    """Grid index (azimuth, range), ``(n_points, 2)`` int32, in pixels."""
    groups: Mapping[Grid, kernels.ChunkGroups]
    """The points by raster chunk, for every size (lines, width) of chunks that was asked for."""

    def of_block(self, grid: Grid, number: int) -> kernels.Int64:
        """Return the rows of the points in one block of a grid, ascending, ``(n,)`` int64, unitless."""
        groups = self.groups[grid]
        group = int(np.searchsorted(groups.chunk, number))
        if group == len(groups.chunk) or groups.chunk[group] != number:
            return np.empty(0, np.int64)
        return groups.order[groups.offsets[group] : groups.offsets[group + 1]]


# -- where points lie --------------------------------------------------------------------------------------------------


def locate(idx: kernels.Gix, *, shape: Grid, grids: Sequence[Grid], name: str, is_sorted: bool = False) -> Points:
    """Find where points lie in rasters.

    Parameters
    ----------
    idx
        Grid index ``(n_points, 2)`` or Hilbert index ``(n_points,)``, integers.
    shape
        Lines and width of the rasters, in pixels.
    grids
        Lines and width of chunks, in pixels, for which the points are grouped.
    name
        What errors call `idx`.
    is_sorted
        The points must be in gix order.

    Raises
    ------
    ValueError
        A point is outside the raster, or not in the order asked for; the first such row is named.
    """
    gix = kernels.grid_index(idx, shape, name=name)
    if is_sorted:
        kernels.check_sorted(kernels.gix_key(gix, shape[1]), name)
    return Points(gix, {grid: kernels.points_by_chunk(gix, shape, grid) for grid in grids})


def points_per_chunk(*, grid: Grid, points: Points) -> list[list[int]]:
    """Return the numbers of the chunks that hold points, ascending, and how many each holds."""
    groups = points.groups[grid]
    return [groups.chunk.tolist(), np.diff(groups.offsets).tolist()]


def places_of_points(idx: kernels.Gix, **options: Any) -> dict[Grid, kernels.Int64]:
    """Return where a spill of each grid keeps the row of each point.

    Parameters
    ----------
    idx, **options
        As for `locate`.

    Returns
    -------
    dict
        By grid: row of the spill, ``(n_points,)`` int64, unitless.
    """
    groups = locate(idx, **options).groups
    return {grid: in_spill(_places(group.order), np.diff(group.offsets)) for grid, group in groups.items()}


def chunk_key(*, grid: Grid, points: Points) -> kernels.Int64:
    """Return the place of each point where those of one chunk follow those of the chunk before it.

    Returns
    -------
    ndarray
        ``(n_points,)`` int64, unitless: ``concatenated[key]`` is in the order of the points.
    """
    return _places(points.groups[grid].order)


def _places(order: kernels.Int64) -> kernels.Int64:
    """Return the inverse of a permutation."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places


# -- rasters at points -------------------------------------------------------------------------------------------------


def gather(*, ras: Chunk, points: Points) -> Values:
    """Return values of a raster at all points, reading only the chunks that hold some.

    Parameters
    ----------
    ras
        The raster, with all lines and pixels and the part of its further axes to take.
    points
        The points.

    Returns
    -------
    ndarray
        Values, ``(n_points, ...)``, in the dtype of the raster.
    """
    return _gathered(ras, points.gix, points.groups, len(points.gix))


def gather_block(*, ras: Chunk, grid: Grid, number: int, n_rows: int, points: Points) -> Values:
    """Return values of a raster at the points of one block, in their order.

    Parameters
    ----------
    ras
        As in `gather`.
    grid
        Lines and width of the blocks, in pixels; `points` must be grouped by it.
    number
        Row-major number of the block.
    n_rows
        Rows of the result, at least as many as there are points; those left over are 0.
    points
        The points.

    Returns
    -------
    ndarray
        Values, ``(n_rows, ...)``, in the dtype of the raster.
    """
    return _gathered(ras, points.gix[points.of_block(grid, number)], {}, n_rows)


def _gathered(ras: Chunk, gix: kernels.Gix, grouped: Mapping[Grid, kernels.ChunkGroups], n_rows: int) -> Values:
    array = store.open_array(ras.path)
    nlines, width = array.shape[:2]
    # of a sharded array these are the chunks inside the shards: the least that can be read
    grid = (array.chunks[0], array.chunks[1])
    groups = grouped[grid] if grid in grouped else kernels.points_by_chunk(gix, (nlines, width), grid)
    across = -(-width // grid[1])
    origin = [start for start, _ in ras.box[2:]]
    sizes = [stop - start for start, stop in ras.box[2:]]
    values = np.zeros((n_rows, *sizes), np.dtype(array.dtype).newbyteorder("="))
    for group, number in enumerate(groups.chunk.tolist()):
        here = groups.order[groups.offsets[group] : groups.offsets[group + 1]]
        top, left = number // across * grid[0], number % across * grid[1]
        window = (slice(top, min(top + grid[0], nlines)), slice(left, min(left + grid[1], width)))
        pixels = (gix[here, 0] - top, gix[here, 1] - left)
        for images in _stored_together(ras.box[2:], array.chunks[2:]):
            own: list[Any] = [slice(part.start - o, part.stop - o) for part, o in zip(images, origin, strict=True)]
            # without a name the chunk is gone before the next one is read
            values[(here, *own)] = store.parallel_read_zarr(array, (*window, *images))[pixels]
    return values


def _stored_together(bounds: Sequence[tuple[int, int]], chunks: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield the pieces of a part that lie in one stored chunk each."""
    yield from product(
        *(
            [slice(max(first, start), min(first + size, stop)) for first in range(start - start % size, stop, size)]
            for (start, stop), size in zip(bounds, chunks, strict=True)
        )
    )


# -- points into rasters -----------------------------------------------------------------------------------------------


def scatter(
    *, pc: Chunk, corner: Grid, sizes: Grid, grid: Grid, number: int, fill: float | None, points: Points
) -> Values:
    """Return a block of a raster with values at its points.

    Parameters
    ----------
    pc
        Data of all points, ``(n_points, ...)``, with the part of the further axes to take.
    corner, sizes
        First line and pixel of the block, and its lines and width, in pixels.
    grid, number
        Lines and width, in pixels, of the blocks by which `points` are grouped, and the row-major number of this one.
    fill
        Value of pixels without a point; None is missing (nan), or False.
    points
        The points. Of several in one pixel the last one counts.

    Returns
    -------
    ndarray
        ``(lines, width, ...)``, in the dtype of the data.
    """
    array = store.open_array(pc.path)
    dtype = np.dtype(array.dtype).newbyteorder("=")
    trailing = [slice(*bounds) for bounds in pc.box[1:]]
    empty = store.missing_value(dtype.name) if fill is None or np.isnan(fill) else fill
    values = np.full((*sizes, *(part.stop - part.start for part in trailing)), empty, dtype)
    rows = points.of_block(grid, number)
    size = array.chunks[0]
    # rows ascend: those of one stored chunk are together, and a later row takes the place of an earlier one
    for here in np.split(rows, np.flatnonzero(np.diff(rows // size)) + 1) if len(rows) else ():
        start = int(here[0]) // size * size
        stored = store.parallel_read_zarr(array, (slice(start, min(start + size, array.shape[0])), *trailing))
        values[points.gix[here, 0] - corner[0], points.gix[here, 1] - corner[1]] = stored[here - start]
    return values
