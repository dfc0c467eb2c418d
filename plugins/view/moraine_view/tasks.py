"""What the tasks of the two pyramid commands do: the array functions of `kernels` on a band, an image or a cloud.

Arrays of one image of a stack keep its other axes, each of length 1; results have them too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from moraine_core import store
from moraine_view import kernels
from moraine_view.grid import PointGrid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from moraine_core import Chunk

# ---------------------------------------------------------------------------------------------------------------------
# Rasters


def first_levels(
    band: NDArray[Any], *, method: Literal["decimate", "mean"], n: int, keep_sums: bool, **notes: Any
) -> list[NDArray[Any]]:
    """Copy a band of an image, take it ``n`` levels down and note its statistics.

    Parameters
    ----------
    band
        ``(lines, width, 1...)``, any dtype and unit; not finite is missing.
    method
        ``"decimate"`` or ``"mean"``.
    n
        How many levels, at least 0.
    keep_sums
        Also return the sums of level ``n``, for `next_means`.
    notes
        As `noted` takes them.

    Returns
    -------
    list of ndarray
        Levels 0 to ``n``; the two sums if asked for; and what `noted` returns.
    """
    image = _plane(band)
    return [band, *_levels(image, method, n, band.ndim, keep_sums=keep_sums), *noted(image, **notes)]


def noted(
    values: NDArray[Any],
    *,
    line: int,
    steps: Sequence[int],
    before: Sequence[int],
    rooms: Sequence[int],
    n_axes: int,
) -> list[NDArray[Any]]:
    """Measure and sample a block of one image.

    Parameters
    ----------
    values
        ``(lines, width, 1...)`` or ``(n_points, 1...)``, any dtype and unit; not finite is missing.
    line, steps, before
        As in `kernels.measure_lines`.
    rooms
        How many values each sample may have.
    n_axes
        Axes of the stack.

    Returns
    -------
    list of ndarray
        The measures ``(n_lines, 1..., 6)``, and each sample ``(1, 1..., room)``, filled up with nan.
    """
    table, samples = kernels.measure_lines(values, line, steps, before)
    filled = [np.full(room, np.nan, sample.dtype) for room, sample in zip(rooms, samples, strict=True)]
    for room, sample in zip(filled, samples, strict=True):
        room[: sample.size] = sample
    ones = (1,) * n_axes
    return [table.reshape(len(table), *ones, -1), *(room.reshape(1, *ones, -1) for room in filled)]


def next_strides(band: NDArray[Any], *, n: int) -> list[NDArray[Any]]:
    """Take a band of a decimated level ``(lines, width, 1...)`` the next ``n`` levels down."""
    return _levels(_plane(band), "decimate", n, band.ndim, keep_sums=False)


def next_means(
    total: NDArray[Any], number: NDArray[np.int64], *, dtype: str, n: int, keep_sums: bool
) -> list[NDArray[Any]]:
    """Take a band of kept sums the next ``n`` levels down.

    Parameters
    ----------
    total, number
        Sums and numbers of finite level-0 pixels, ``(lines, width, 1...)`` float64 or complex128, and int64.
    dtype
        Of the data.
    n
        How many levels.
    keep_sums
        Also return the sums of the last level.

    Returns
    -------
    list of ndarray
        The levels; then the two sums if asked for.
    """
    levels, sums = kernels.resume_means(kernels.BlockSums(_plane(total), _plane(number)), dtype, n)
    return [_stacked(level, total.ndim) for level in (*levels, *(sums if keep_sums else ()))]


def _levels(image: NDArray[Any], method: str, n: int, ndim: int, *, keep_sums: bool) -> list[NDArray[Any]]:
    levels: list[NDArray[Any]] = []
    if method == "decimate":
        levels = kernels.strided_levels(image, n)
    elif n:
        levels, sums = kernels.mean_levels(image, n)
        levels += sums if keep_sums else ()
    return [_stacked(level, ndim) for level in levels]


def _plane(band: NDArray[Any]) -> NDArray[Any]:
    return band.reshape(band.shape[:2])


def _stacked(plane: NDArray[Any], ndim: int) -> NDArray[Any]:
    return plane.reshape(plane.shape + (1,) * (ndim - plane.ndim))


# ---------------------------------------------------------------------------------------------------------------------
# Points


def copy_coordinates(*coordinates: NDArray[Any], page_size: int) -> list[Any]:
    """Copy the coordinates of a block of points, and find the boxes of its pages.

    Parameters
    ----------
    coordinates
        ``x`` and ``y``, ``(n_points,)`` each; or one array ``(n_points, 2)`` with columns y, x.
    page_size
        Points per page of the R-tree.

    Returns
    -------
    list
        x, y (unchanged), the boxes ``(n_pages, 4)`` float64, and a mapping: ``n_bad``, the number of points whose
        coordinates are not finite, and if there is none ``low`` and ``high``, least and largest x and y.
    """
    from moraine_points.kernels import page_boxes

    x, y = coordinates if len(coordinates) == 2 else (coordinates[0][:, 1].copy(), coordinates[0][:, 0].copy())
    boxes = page_boxes(x.astype(np.float64), y.astype(np.float64), page_size)
    found: dict[str, Any] = {"n_bad": int(np.count_nonzero(~(np.isfinite(x) & np.isfinite(y))))}
    if not found["n_bad"]:
        found |= {"low": [float(x.min()), float(y.min())], "high": [float(x.max()), float(y.max())]}
    return [x, y, boxes, found]


def first_index(
    tree: NDArray[np.float64], *, x: Chunk, y: Chunk, grid: Sequence[Any], start: int, stop: int, n: int, **pages: int
) -> list[NDArray[np.int64]]:
    """Make a band of the index raster and take it ``n`` levels down.

    Parameters
    ----------
    tree
        R-tree of the cloud, ``(2L - 1, 4)`` float64.
    x, y
        Where the finite coordinates of the cloud are; only what can lie in the band is read.
    grid
        Fields of `grid.PointGrid`.
    start, stop
        Rows of the band.
    n
        How many levels, at least 0.
    pages
        ``page_size`` of the tree, ``n_points`` of the cloud, and the points of a ``run`` that is read together.

    Returns
    -------
    list of ndarray
        Levels 0 to ``n``, ``(rows, cols)`` int64 point numbers, -1 in an empty cell.
    """
    from moraine_points.kernels import rtree_ranges

    under = PointGrid(*grid)
    # a cell more on both sides: rounding may put a point on either side of the border
    low, high = (under.y0 + row * under.res for row in (start - 1, stop))
    ranges = rtree_ranges(tree, pages["n_points"], pages["page_size"], (-np.inf, low, np.inf, high))
    index = np.full((stop - start, under.ncols), -1, dtype=np.int64)
    for first, (px, py) in _runs([x, y], _runs_of(ranges, pages["run"]), pages["run"]):
        kernels.place_points(index, px, py, first, under, start)
    return [index, *next_index(index, n=n)]


def _runs_of(ranges: NDArray[np.int64], run: int) -> NDArray[np.int64]:
    """Return the numbers of the runs that ranges of points touch, ascending."""
    touched = [np.arange(first // run, (stop - 1) // run + 1) for first, stop in ranges]
    return np.unique(np.concatenate([np.empty(0, np.int64), *touched]))


def _runs(chunks: Sequence[Chunk], numbers: NDArray[np.int64], run: int) -> Iterator[tuple[int, list[NDArray[Any]]]]:
    """Read runs of points from several arrays of one cloud; yield the first point of each run, and the values."""
    arrays = [store.open_array(chunk.path) for chunk in chunks]
    for number in numbers.tolist():
        first, stop = number * run, min((number + 1) * run, arrays[0].shape[0])
        yield (
            first,
            [
                store.parallel_read_zarr(array, (slice(first, stop), *(chunk.block or ())[1:])).reshape(-1)
                for array, chunk in zip(arrays, chunks, strict=True)
            ],
        )


def next_index(index: NDArray[np.int64], *, n: int) -> list[NDArray[np.int64]]:
    """Take a band of an index level ``(rows, cols)`` the next ``n`` levels down."""
    levels = []
    for _ in range(n):
        index = kernels.coarser_index(index)
        levels.append(index)
    return levels


def copy_points(values: NDArray[Any], **notes: Any) -> list[NDArray[Any]]:
    """Copy a block of points of one image and note its statistics.

    Parameters
    ----------
    values
        ``(n_points, 1...)``, any dtype and unit; not finite is missing.
    notes
        As `noted` takes them.

    Returns
    -------
    list of ndarray
        The values; and what `noted` returns.
    """
    return [values, *noted(values, **notes)]


def shown_points(*index: NDArray[np.int64], values: Chunk, run: int) -> list[NDArray[Any]]:
    """Draw a band of several levels of a ``first`` pyramid.

    Parameters
    ----------
    index
        Point numbers of the band in each level, ``(rows, cols)`` int64.
    values
        Where the values of one image of the cloud are, ``(n_points, 1...)``; only what is seen is read.
    run
        Points that are read together.

    Returns
    -------
    list of ndarray
        The levels, as `kernels.draw_run` draws them, ``(rows, cols, 1...)``.
    """
    shape = values.shape or ()
    rasters = [kernels.empty_raster(level.shape, values.dtype) for level in index]
    for first, (part,) in _runs([values], kernels.runs_shown(index, shape[0], run), run):
        for raster, level in zip(rasters, index, strict=True):
            kernels.draw_run(raster, level, part, first)
    return [_stacked(raster, 1 + len(shape)) for raster in rasters]


def mean_points(index: NDArray[np.int64], *, values: Chunk, run: int, n: int, keep_sums: bool) -> list[NDArray[Any]]:
    """Draw a band of level 0 and take it ``n`` levels down by means.

    Parameters
    ----------
    index
        Point numbers of the band in level 0, ``(rows, cols)`` int64.
    values, run
        As in `shown_points`.
    n, keep_sums
        As in `first_levels`.

    Returns
    -------
    list of ndarray
        Levels 0 to ``n``; then the two sums if asked for.
    """
    (band,) = shown_points(index, values=values, run=run)
    return [band, *_levels(_plane(band), "mean", n, band.ndim, keep_sums=keep_sums)]


# ---------------------------------------------------------------------------------------------------------------------
# Statistics


def image_statistics(lines: NDArray[np.float64], values: NDArray[Any], *, count: int, dtype: str) -> dict[str, Any]:
    """Finish the statistics of one image.

    Parameters
    ----------
    lines
        ``(n, 1..., 6)`` from `kernels.measure_lines`.
    values
        Regular sample of the image, or all of it, any shape; nan where there is none.
    count
        Number of values of the image.
    dtype
        Of the data.

    Returns
    -------
    dict
        ``part``, a `kernels.PartialStatistics`, and ``row``, the values of `kernels.COLUMNS`.
    """
    part = kernels.join_lines(lines.reshape(len(lines), -1), count, dtype)
    percentiles = kernels.percentiles_of(kernels.measured(values))
    return {"part": part, "row": kernels.statistics_row(part, percentiles)}


def all_statistics(*values: NDArray[Any], shape: Sequence[int], images: Sequence[dict[str, Any]]) -> list[Any]:
    """Finish the statistics of all data.

    Parameters
    ----------
    values
        Regular sample of all data, or all of them, any shape; nan where there is none. None if there is one image.
    shape
        Of the table.
    images
        From `image_statistics`, in order.

    Returns
    -------
    list
        The table ``(*channels, 8)`` float64 of the images' rows, and the record of all data.
    """
    parts = [image["part"] for image in images]
    percentiles = kernels.percentiles_of(kernels.measured(values[0])) if values else images[0]["row"][-3:]
    record = kernels.finished_statistics(kernels.merge_statistics(parts), percentiles, parts)
    return [np.array([image["row"] for image in images]).reshape(shape), record]
