"""What tasks on points do besides calling a kernel: pick rows, and read only the part of a raster that they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_core import store
from moraine_points import kernels
from moraine_raster.expression import Expression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from moraine_core import Chunk

    Values = NDArray[Any]


class Points(NamedTuple):
    """Where points lie in rasters of one size."""

    gix: NDArray[np.int32]
    """Grid index (azimuth, range), ``(n_points, 2)`` int32, in pixels."""
    groups: Mapping[tuple[int, int], kernels.ChunkGroups]
    """The points by raster chunk, for every size (lines, width) of chunks that was asked for."""


# -- sorting -----------------------------------------------------------------------------------------------------------


def take(values: Values, *, order: kernels.Int64, dtype: str) -> Values:
    """Return the rows of an array in another order.

    Parameters
    ----------
    values
        Data of the points, ``(n_points, ...)``.
    order
        Row of each point, ``(n,)`` int64, unitless.
    dtype
        Dtype of the result.
    """
    return values[order].astype(dtype, copy=False)


def permutation(*, order: kernels.Int64) -> kernels.Int64:
    """Return the order itself, ``(n_points,)`` int64, unitless."""
    return order


# -- rasters at points -------------------------------------------------------------------------------------------------


def locate(idx: kernels.Gix, *, shape: tuple[int, int], grids: Sequence[tuple[int, int]], name: str) -> Points:
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

    Raises
    ------
    ValueError
        A point is outside the raster; the first such row is named.
    """
    gix = kernels.grid_index(idx, shape, name=name)
    return Points(gix, {grid: kernels.points_by_chunk(gix, shape, grid) for grid in grids})


def gather(*, ras: Chunk, grid: tuple[int, int], rows: tuple[int, int] | None, points: Points) -> Values:
    """Return values of a raster at points, reading only the chunks that hold some.

    Parameters
    ----------
    ras
        The raster, with all lines and pixels and the part of its further axes to take.
    grid
        Lines and width of the chunks of the raster, in pixels.
    rows
        First and last (exclusive) point to take; None takes all, which must be grouped by `grid`.
    points
        The points.

    Returns
    -------
    ndarray
        Values, ``(n_points, ...)``, in the dtype of the raster.
    """
    array = store.open_array(ras.path)
    (nlines, line_width), (lines, width) = array.shape[:2], grid
    if rows is None:
        gix, groups = points.gix, points.groups[grid]
    else:
        gix = points.gix[slice(*rows)]
        groups = kernels.points_by_chunk(gix, (nlines, line_width), grid)
    across = -(-line_width // width)
    trailing = [slice(*bounds) for bounds in ras.box[2:]]
    sizes = [part.stop - part.start for part in trailing]
    values = np.empty((len(gix), *sizes), np.dtype(array.dtype).newbyteorder("="))
    for group, number in enumerate(groups.chunk.tolist()):
        here = groups.order[groups.offsets[group] : groups.offsets[group + 1]]
        top, left = number // across * lines, number % across * width
        window = (slice(top, min(top + lines, nlines)), slice(left, min(left + width, line_width)))
        pixels = (gix[here, 0] - top, gix[here, 1] - left)
        # without a name the chunk is gone before the next one is read
        values[here] = store.parallel_read_zarr(array, (*window, *trailing))[pixels]
    return values


# -- points of a raster by a condition ---------------------------------------------------------------------------------


def count(values: Values, *, operation: str, name: str) -> int:
    """Return in how many pixels of a band a condition holds.

    Parameters
    ----------
    values
        Band of a raster, ``(lines, width)`` or ``(lines, width, 1)``.
    operation
        Condition on the array ``ras``.
    name
        What errors call the raster.

    Raises
    ------
    ValueError
        The condition has a value other than 0 and 1.
    """
    chosen = _evaluate(values, operation)
    if chosen.dtype != bool:
        odd = chosen[(chosen != 0) & (chosen != 1)]
        if odd.size:
            raise ValueError(f"{name}: operation {operation!r} gives {odd[0]}; expected true or false (1 or 0)")
    return int(np.count_nonzero(chosen))


def select(*, ras: Chunk, operation: str, first_line: int, lines: int, skip: int, n_points: int) -> NDArray[np.int32]:
    """Return the pixels where a condition holds, row by row, from one band of lines on until they are enough.

    Parameters
    ----------
    ras
        The whole raster, ``(nlines, width)`` or ``(nlines, width, 1)``.
    operation
        Condition on the array ``ras``.
    first_line, lines
        Line where the first band begins, and lines of a band, in pixels.
    skip, n_points
        How many of the pixels belong to others, and how many follow that are asked for.

    Returns
    -------
    ndarray
        Grid index (azimuth, range), ``(n_points, 2)`` int32, in pixels.

    Raises
    ------
    ValueError
        There are fewer: the raster has changed since they were counted.
    """
    array = store.open_array(ras.path)
    gix = np.empty((n_points, 2), np.int32)
    found, line = 0, first_line
    while found < n_points:
        if line >= array.shape[0]:
            raise ValueError(f"{ras.path}: has {n_points - found} chosen pixels fewer than before; did it change?")
        rows = slice(line, min(line + lines, array.shape[0]))
        values = store.parallel_read_zarr(array, (rows, *(slice(None),) * (array.ndim - 1)))
        azimuth, range_ = np.nonzero(_evaluate(values, operation))
        part = slice(skip, skip + n_points - found)
        new = len(azimuth[part])
        gix[found : found + new, 0] = azimuth[part]
        gix[found : found + new, 0] += line
        gix[found : found + new, 1] = range_[part]
        found, line, skip = found + new, rows.stop, 0
    return gix


def _evaluate(values: Values, operation: str) -> Values:
    """Return a condition on a band as a plane ``(lines, width)``."""
    return Expression(operation).evaluate({"ras": values.reshape(values.shape[:2])})
