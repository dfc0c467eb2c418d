"""What the tasks of the two pyramid commands do: the array functions of `kernels` on a band, an image or a cloud.

Arrays of one image of a stack keep its other axes, each of length 1; results have them too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from moraine_view import kernels
from moraine_view.levels import piece_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# ---------------------------------------------------------------------------------------------------------------------
# Rasters


def first_levels(
    band: NDArray[Any], *, method: Literal["decimate", "mean"], n: int, keep_sums: bool
) -> list[NDArray[Any] | int]:
    """Copy a band of an image, take it ``n`` levels down and measure its lines.

    Parameters
    ----------
    band
        ``(lines, width, 1...)``, any dtype and unit; not finite is missing.
    method, n
        As in `kernels.coarser_levels`.
    keep_sums
        Also return the sums of level ``n``, for `next_means`.

    Returns
    -------
    list
        Levels 0 to ``n``; the two sums if asked for; statistics of the lines ``(lines, 1..., 7)``; and the number of
        finite values.
    """
    image = _plane(band)
    step = piece_lines(image.shape[1])
    lines = np.concatenate(
        [kernels.line_statistics(image[start : start + step]) for start in range(0, image.shape[0], step)]
    )
    return [
        band,
        *(_levels(image, method, n, band.ndim, keep_sums=keep_sums)),
        lines.reshape(len(lines), *band.shape[2:], -1),
        int(lines[:, 0].sum()),
    ]


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
    if method == "mean":
        levels, sums = kernels.mean_levels(image, n)
    else:
        levels, sums = kernels.coarser_levels(image, "decimate", n), None
    return [_stacked(level, ndim) for level in (*levels, *(sums if sums is not None and keep_sums else ()))]


def _plane(band: NDArray[Any]) -> NDArray[Any]:
    return band.reshape(band.shape[:2])


def _stacked(plane: NDArray[Any], ndim: int) -> NDArray[Any]:
    return plane.reshape(plane.shape + (1,) * (ndim - plane.ndim))


# ---------------------------------------------------------------------------------------------------------------------
# Points


def copy_coordinates(*coordinates: NDArray[Any], resolution: float, page_size: int) -> list[Any]:
    """Copy the coordinates of a cloud, build its R-tree and lay a grid under it.

    Parameters
    ----------
    coordinates
        ``x`` and ``y``, ``(n_points,)`` each; or one array ``(n_points, 2)`` with columns y, x.
    resolution
        Cell size of the grid, unit of the coordinates.
    page_size
        Points per leaf of the tree.

    Returns
    -------
    list
        x, y (unchanged), the tree ``(2L - 1, 4)`` float64, and a mapping: ``n_bad``, the number of points whose
        coordinates are not finite, and if there is none ``grid``, the fields of `kernels.PointGrid`.
    """
    from moraine_points.kernels import rtree

    x, y = coordinates if len(coordinates) == 2 else (coordinates[0][:, 1].copy(), coordinates[0][:, 0].copy())
    tree = rtree(x.astype(np.float64), y.astype(np.float64), page_size)
    n_bad = int(np.count_nonzero(~(np.isfinite(x) & np.isfinite(y))))
    found = {"n_bad": n_bad, "grid": None if n_bad else list(kernels.point_grid(x, y, resolution))}
    return [x, y, tree, found]


def first_index(
    x: NDArray[Any], y: NDArray[Any], *, grid: Sequence[Any], start: int, stop: int, n: int
) -> list[NDArray[np.int64]]:
    """Make a band of the index raster and take it ``n`` levels down.

    Parameters
    ----------
    x, y
        ``(n_points,)`` finite coordinates of the whole cloud.
    grid
        Fields of `kernels.PointGrid`.
    start, stop
        Rows of the band.
    n
        How many levels, at least 0.

    Returns
    -------
    list of ndarray
        Levels 0 to ``n``, ``(rows, cols)`` int64 point numbers, -1 in an empty cell.
    """
    index = kernels.point_index(x, y, kernels.PointGrid(*grid), slice(start, stop))
    return [index, *next_index(index, n=n)]


def next_index(index: NDArray[np.int64], *, n: int) -> list[NDArray[np.int64]]:
    """Take a band of an index level ``(rows, cols)`` the next ``n`` levels down."""
    levels = []
    for _ in range(n):
        index = kernels.coarser_index(index)
        levels.append(index)
    return levels


def copy_points(values: NDArray[Any], *, line: int) -> list[Any]:
    """Copy one image of a cloud and measure it.

    Parameters
    ----------
    values
        ``(n_points, 1...)``, any dtype and unit; not finite is missing.
    line
        Points that are measured together.

    Returns
    -------
    list
        The values; statistics ``(n_lines, 1..., 7)`` of each run of points; and the number of finite values.
    """
    flat = values.reshape(1, -1)
    lines = np.concatenate(
        [kernels.line_statistics(flat[:, start : start + line]) for start in range(0, flat.size, line)]
    )
    return [values, lines.reshape(len(lines), *values.shape[1:], -1), int(lines[:, 0].sum())]


def shown_points(values: NDArray[Any], *index: NDArray[np.int64]) -> list[NDArray[Any]]:
    """Draw a band of several levels of a ``first`` pyramid.

    Parameters
    ----------
    values
        ``(n_points, 1...)``, one image of the whole cloud.
    index
        Point numbers of the band in each level, ``(rows, cols)`` int64.

    Returns
    -------
    list of ndarray
        The levels, as `kernels.values_by_index` gives them.
    """
    return [kernels.values_by_index(values, level) for level in index]


def mean_points(values: NDArray[Any], index: NDArray[np.int64], *, n: int, keep_sums: bool) -> list[NDArray[Any]]:
    """Draw a band of level 0 and take it ``n`` levels down by means.

    Parameters
    ----------
    values
        ``(n_points, 1...)``, one image of the whole cloud.
    index
        Point numbers of the band in level 0, ``(rows, cols)`` int64.
    n, keep_sums
        As in `first_levels`.

    Returns
    -------
    list of ndarray
        Levels 0 to ``n``; then the two sums if asked for.
    """
    band = kernels.values_by_index(values, index)
    return [band, *_levels(_plane(band), "mean", n, band.ndim, keep_sums=keep_sums)]


# ---------------------------------------------------------------------------------------------------------------------
# Statistics


def sample_block(block: NDArray[Any], *, picks: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
    """Take a block's share of regular samples.

    Parameters
    ----------
    block
        ``(lines, width, 1...)`` or ``(n_points, 1...)``, any dtype and unit; not finite is missing.
    picks
        For each sample: its step, the number of finite values before the block, the room for values in the result,
        and the axes of the result.

    Returns
    -------
    list of ndarray
        For each sample ``(1, 1..., room)`` float64, filled up with nan.
    """
    samples = []
    for step, before, room, ndim in picks:
        sample = kernels.regular_sample(block, step, before)
        filled = np.pad(sample, (0, room - sample.size), constant_values=np.nan)
        samples.append(filled.reshape((1,) * (ndim - 1) + (room,)))
    return samples


def image_statistics(
    lines: NDArray[np.float64], sample: NDArray[np.float64], *, count: int, dtype: str
) -> dict[str, Any]:
    """Finish the statistics of one image.

    Parameters
    ----------
    lines
        ``(n, 1..., 7)`` from `kernels.line_statistics`.
    sample
        Regular sample of the image, any shape, nan where there is none.
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
    return {"part": part, "row": kernels.statistics_row(part, sample[~np.isnan(sample)])}


def all_statistics(sample: NDArray[np.float64], *, shape: Sequence[int], images: Sequence[dict[str, Any]]) -> list[Any]:
    """Finish the statistics of all data.

    Parameters
    ----------
    sample
        Regular sample of all data, any shape, nan where there is none.
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
    record = kernels.finished_statistics(kernels.merge_statistics(parts), sample[~np.isnan(sample)], parts)
    return [np.array([image["row"] for image in images]).reshape(shape), record]
