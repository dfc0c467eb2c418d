"""What tasks on points do besides calling a kernel: pick rows, and the pixels or points where a condition holds."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core import store
from moraine_points import _cpu, kernels
from moraine_points.layouts import WINDOW_POINTS
from moraine_raster.expression import Expression

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moraine_core import Chunk

    Values = NDArray[Any]


# -- rows in another order ---------------------------------------------------------------------------------------------


def take(values: Values, *, rows: kernels.Rows, dtype: str) -> Values:
    """Return rows of an array in any order.

    Parameters
    ----------
    values
        Data of the points, ``(n_points, ...)``.
    rows
        Row of each point of the result, ``(n,)``, unitless.
    dtype
        Dtype of the result.
    """
    out = np.empty((len(rows), *values.shape[1:]), dtype)
    for start in range(0, len(rows), WINDOW_POINTS):
        # in pieces: numpy makes row numbers of 8 bytes of them
        piece = slice(start, start + WINDOW_POINTS)
        out[piece] = values.take(rows[piece], axis=0)
    return out


def permutation(*, rows: kernels.Rows) -> kernels.Int64:
    """Return the row numbers themselves, ``(n_points,)`` int64, unitless."""
    return rows.astype(np.int64)


# -- rows of sorted clouds ---------------------------------------------------------------------------------------------


def union_rows(
    idx1: kernels.Gix, idx2: kernels.Gix, *, shape: tuple[int, int] | None, names: tuple[str, str]
) -> tuple[kernels.Rows, int]:
    """Return the rows of "the first cloud followed by the second" that make the union of both, and their number.

    Parameters
    ----------
    idx1, idx2
        Grid index ``(n, 2)`` of both, or Hilbert index ``(n,)`` of both; sorted.
    shape
        Lines and width of the raster, in pixels, if points are to be checked against it.
    names
        What errors call the two indices.

    Returns
    -------
    rows : ndarray
        Rows, as many as there can be at most, n1 + n2, unitless; zeros follow after the number that count.
    n_points : int
        Number of points of the result.

    Raises
    ------
    ValueError
        A cloud is not sorted, holds a point twice, or has one outside the raster.
    """
    rows = kernels.union(*_keys(idx1, idx2, shape, names), names)
    return _padded(rows, len(idx1) + len(idx2)), len(rows)


def intersect_rows(
    idx1: kernels.Gix, idx2: kernels.Gix, *, shape: tuple[int, int] | None, names: tuple[str, str]
) -> tuple[kernels.Rows, int]:
    """Return the rows that the points that two clouds share have in the first, and their number.

    Parameters, results and errors are those of `union_rows`; there are min(n1, n2) rows at most.
    """
    rows, _ = kernels.intersect(*_keys(idx1, idx2, shape, names), names)
    return _padded(rows, min(len(idx1), len(idx2))), len(rows)


def diff_rows(
    idx1: kernels.Gix, idx2: kernels.Gix, *, shape: tuple[int, int] | None, names: tuple[str, str]
) -> tuple[kernels.Rows, int]:
    """Return the rows of the points of the first cloud that the second lacks, and their number.

    Parameters, results and errors are those of `union_rows`; there are n1 rows at most.
    """
    rows = kernels.diff(*_keys(idx1, idx2, shape, names), names)
    return _padded(rows, len(idx1)), len(rows)


def subset_rows(
    idx_in: kernels.Gix, idx: kernels.Gix, *, shape: tuple[int, int] | None, names: tuple[str, str]
) -> kernels.Rows:
    """Return where the points of a subset are in a cloud.

    Parameters
    ----------
    idx_in, idx
        Index of the cloud and of its subset: gix ``(n, 2)`` or hix ``(n,)``. The subset is sorted, and so is the cloud
        where both are of one kind; of different kinds, the cloud may be in any order.
    shape
        Lines and width of the raster, in pixels; needed where the kinds differ.
    names
        What errors call the two indices.

    Returns
    -------
    ndarray
        Rows of the cloud, ``(n,)``, unitless, in the order of the subset.

    Raises
    ------
    ValueError
        A cloud is not sorted, holds a point twice, has one outside the raster, or the subset has points that the cloud
        lacks; their number and the first of them are named.
    """
    key = kernels.point_key(idx, shape, name=names[1])
    if idx_in.ndim == idx.ndim or shape is None:
        return kernels.match(kernels.point_key(idx_in, shape, name=names[0]), key, names, idx)
    cloud: kernels.Gix = (
        kernels.pc_hix(idx_in, shape, name=names[0]) if idx.ndim == 1 else kernels.pc_gix(idx_in, shape, name=names[0])
    )
    order = kernels.sort_key(cloud, shape, name=names[0])
    return order[kernels.match(kernels.point_key(cloud)[order], key, names, idx)]


def as_stored(values: Values) -> Values:
    """Return an array as it was read, for tasks to share."""
    return values


def pick(*, first: Chunk, second: Chunk | None, points: tuple[int, int], dtype: str, rows: kernels.Rows) -> Values:
    """Return some points of a cloud that was made from one or two sorted ones, reading only what holds their data.

    Parameters
    ----------
    first, second
        Data of the clouds, with all their points and the part of further axes to take.
    points
        First and last (exclusive) point of the result to return.
    dtype
        Dtype of the result, which holds all values of both.
    rows
        For each point of the result its row in "the first cloud followed by the second", ``(n,)``, unitless;
        ascending in each of them, so that no chunk is read twice.

    Returns
    -------
    ndarray
        Data, ``(points[1] - points[0], ...)``.
    """
    wanted = rows[slice(*points)]
    windows = [_Window(first, 0, dtype)]
    if second is not None:
        windows.append(_Window(second, windows[0].stop, dtype))
    out = np.empty((len(wanted), *windows[0].trailing), dtype)
    words, last, done = _words(out), windows[-1], 0
    while done < len(wanted):
        row = int(wanted[done])
        windows[0 if row < windows[0].stop else -1].show(row)
        done = _cpu.fill(words, wanted, done, windows[0].words, windows[0].start, last.words, last.start)
    return out


class _Window:
    """The chunk, or the few small ones, of a cloud's data that a task works on.

    Parameters
    ----------
    source
        The data.
    first_row
        Number of their first row among those of all clouds.
    dtype
        Dtype of the result.
    """

    def __init__(self, source: Chunk, first_row: int, dtype: str) -> None:
        self._array = store.open_array(source.path)
        self._part = tuple(slice(*bounds) for bounds in source.box[1:])
        self._first_row, self._dtype = first_row, dtype
        self._size = -(-WINDOW_POINTS // self._array.chunks[0]) * self._array.chunks[0]
        self.trailing = tuple(part.stop - part.start for part in self._part)
        self.stop = first_row + self._array.shape[0]
        self.start = first_row
        self.words = self._nothing = _words(np.empty((0, *self.trailing), dtype))

    def show(self, row: int) -> None:
        """Read the chunk that holds a row."""
        start = (row - self._first_row) // self._size * self._size
        self.words = self._nothing  # the chunk before is gone before the next one is read
        points = slice(start, min(start + self._size, self._array.shape[0]))
        values = store.parallel_read_zarr(self._array, (points, *self._part))
        self.start, self.words = self._first_row + start, _words(values.astype(self._dtype, copy=False))


def _keys(
    idx1: kernels.Gix, idx2: kernels.Gix, shape: tuple[int, int] | None, names: tuple[str, str]
) -> tuple[kernels.Int64, kernels.Int64]:
    return kernels.point_key(idx1, shape, name=names[0]), kernels.point_key(idx2, shape, name=names[1])


def _padded(rows: kernels.Rows, n_rows: int) -> kernels.Rows:
    out = np.zeros(n_rows, rows.dtype)
    out[: len(rows)] = rows
    return out


def _words(values: Values) -> Values:
    """Return the rows of an array as unsigned integers: the same bytes, in one of few dtypes to compile loops for."""
    size = values.dtype.itemsize
    rows = np.ascontiguousarray(values).reshape(len(values), prod(values.shape[1:]))
    return rows.view(f"u{min(size, 8)}")


# -- points by a condition ---------------------------------------------------------------------------------------------


def count(values: Values, *, variable: str, operation: str, name: str) -> int:
    """Return at how many pixels or points of a band a condition holds.

    Parameters
    ----------
    values
        Band of a raster, ``(lines, width)`` or ``(lines, width, 1)``, or of points, ``(n_points,)`` or
        ``(n_points, 1)``.
    variable, operation
        Name of the array in the condition, and the condition.
    name
        What errors call the array.

    Raises
    ------
    ValueError
        The condition has a value other than 0 and 1.
    """
    chosen = Expression(operation).evaluate({variable: values})
    if chosen.dtype != bool:
        odd = chosen[(chosen != 0) & (chosen != 1)]
        if odd.size:
            raise ValueError(f"{name}: operation {operation!r} gives {odd[0]}; expected true or false (1 or 0)")
    return int(np.count_nonzero(chosen))


def select(
    *,
    data: Chunk,
    idx: Chunk | None,
    variable: str,
    operation: str,
    start: int,
    band: int,
    skip: int,
    n_points: int,
    name: str,
) -> Values:
    """Return the index of pixels or points where a condition holds, from one band on until they are enough.

    Parameters
    ----------
    data
        A whole raster, ``(nlines, width)`` or ``(nlines, width, 1)``, or all data of a cloud, ``(n_points,)`` or
        ``(n_points, 1)``.
    idx
        The whole index of the cloud; None for a raster.
    variable, operation
        Name of the array in the condition, and the condition.
    start, band
        Line or point where the first band begins, and lines or points of a band.
    skip, n_points
        How many of the points belong to others, and how many follow that are asked for.
    name
        What errors call the index.

    Returns
    -------
    ndarray
        Index of the points; of pixels the grid index (azimuth, range). A gix is ``(n_points, 2)`` int32, a hix
        ``(n_points,)`` int64.

    Raises
    ------
    ValueError
        There are fewer: the data have changed since they were counted. Or the index has a negative point, or one
        beyond the largest raster.
    """
    array = store.open_array(data.path)
    index = None if idx is None else store.open_array(idx.path)
    out: Values = (
        np.empty(n_points, np.int64) if index is not None and index.ndim == 1 else np.empty((n_points, 2), np.int32)
    )
    found = 0
    while found < n_points:
        if start >= array.shape[0]:
            raise ValueError(f"{data.path}: has {n_points - found} chosen points fewer than before; did it change?")
        rows = slice(start, min(start + band, array.shape[0]))
        values = store.parallel_read_zarr(array, (rows, *(slice(None),) * (array.ndim - 1)))
        chosen = Expression(operation).evaluate({variable: values}).nonzero()
        part = slice(skip, skip + n_points - found)
        here = slice(found, found + len(chosen[0][part]))
        if index is None:
            out[here, 0] = chosen[0][part]
            out[here, 0] += start
            out[here, 1] = chosen[1][part]
        else:
            points = store.parallel_read_zarr(index, (rows, *(slice(None),) * (index.ndim - 1)))
            out[here] = kernels.checked(points, name=name, first_row=rows.start)[chosen[0][part]]
        found, start, skip = here.stop, rows.stop, 0
    return out


# -- points on a raster ------------------------------------------------------------------------------------------------


def bucket(
    gix: kernels.Gix, *, shape: tuple[int, int], chunks: tuple[int, int], name: str
) -> tuple[NDArray[np.int32], kernels.ChunkGroups]:
    """Return points in the order of the raster chunks they lie in, and their groups.

    Parameters
    ----------
    gix
        Grid index (azimuth, range), ``(n_points, 2)``, in pixels, in any order.
    shape, chunks
        Lines and width of the raster and of its chunks, in pixels.
    name
        What errors call `gix`.

    Raises
    ------
    ValueError
        A point is outside the raster; the first such row is named.
    """
    points = kernels.grid_index(gix, shape, name=name)
    groups = kernels.points_by_chunk(points, shape, chunks)
    return points[groups.order], groups._replace(order=groups.order[:0])  # the order has been applied


def mark(
    *,
    number: int,
    corner: tuple[int, int],
    size: tuple[int, int],
    points: tuple[NDArray[np.int32], kernels.ChunkGroups],
) -> NDArray[np.bool_]:
    """Return one chunk of a mask that is True at points.

    Parameters
    ----------
    number
        Number of the chunk, counted row by row.
    corner, size
        First line and pixel of the chunk, and its lines and width, in pixels.
    points
        The points by chunk, from `bucket`.

    Returns
    -------
    ndarray
        Mask, ``size``, bool.
    """
    gix, groups = points
    mask = np.zeros(size, np.bool_)
    group = int(np.searchsorted(groups.chunk, number))
    if group < groups.chunk.size and groups.chunk[group] == number:
        here = gix[groups.offsets[group] : groups.offsets[group + 1]]
        mask[here[:, 0] - corner[0], here[:, 1] - corner[1]] = True
    return mask
