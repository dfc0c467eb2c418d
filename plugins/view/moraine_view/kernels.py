"""Array functions behind the pyramids: coarser levels, exact statistics, points on a grid.

All of them are serial, know no files, and give the same bits however the data are cut:

* *Levels* halve the raster again and again. A band of lines that starts at a multiple of ``2**k`` can be taken ``k``
  levels down on its own: every 2 x 2 block lies inside the band. Means travel as sums and counts
  (:class:`BlockSums`), never as rounded means, so a band that is resumed later loses nothing.
* *Statistics* are measured line by line (:func:`line_statistics`), and the lines of an image are joined at once
  (:func:`join_lines`) into a small record of plain numbers; those of the images are merged in order
  (:func:`merge_statistics`). Percentiles come from a regular sample (:func:`regular_sample`) whose members are fixed
  by the data alone.
* *Points* fall on a grid (:func:`point_grid`); an index raster says which point each cell shows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import numpy as np

from moraine_view.levels import PIECE_DEPTH, mean_dtype, piece_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import DTypeLike, NDArray

    Record = dict[str, float | list[str] | None]

# ---------------------------------------------------------------------------------------------------------------------
# Levels


class BlockSums(NamedTuple):
    """What is known of the level-0 pixels under each cell of a level."""

    total: NDArray[Any]
    """Sum over the finite level-0 pixels, ``(lines, width)`` float64 or complex128; 0 where there is none."""
    n: NDArray[np.int64]
    """Number of finite level-0 pixels, ``(lines, width)`` int64."""


def block_sums(band: NDArray[Any]) -> BlockSums:
    """Begin the mean of level 0: every pixel is its own block.

    Parameters
    ----------
    band
        ``(lines, width)`` real, bool or complex. Not finite means missing; a complex value is finite only if both
        its parts are.

    Returns
    -------
    BlockSums
        Of the same shape.
    """
    finite = np.isfinite(band)
    wide = np.complex128 if np.iscomplexobj(band) else np.float64
    return BlockSums(np.where(finite, band, 0).astype(wide), finite.astype(np.int64))


def halve_sums(sums: BlockSums) -> BlockSums:
    """Join 2 x 2 cells into one.

    The four cells are added in a fixed order, so a cell's sum depends on its own pixels only.

    Parameters
    ----------
    sums
        Of a level ``(lines, width)``; the first line has an even number in that level.

    Returns
    -------
    BlockSums
        Of the next level, ``(ceil(lines / 2), ceil(width / 2))``.
    """
    return BlockSums(_add_quads(sums.total), _add_quads(sums.n))


def _add_quads(cells: NDArray[Any]) -> NDArray[Any]:
    even = np.pad(cells, [(0, n % 2) for n in cells.shape])
    result: NDArray[Any] = (even[::2, ::2] + even[::2, 1::2]) + (even[1::2, ::2] + even[1::2, 1::2])
    return result


def block_means(sums: BlockSums, dtype: DTypeLike) -> NDArray[Any]:
    """Divide sums by counts.

    Parameters
    ----------
    sums
        Of any level, ``(lines, width)``.
    dtype
        Of the data the sums come from.

    Returns
    -------
    ndarray
        ``(lines, width)`` of :func:`~moraine_view.levels.mean_dtype`, unit of the data, nan (both parts) where no
        pixel was finite.
    """
    missing = complex(np.nan, np.nan) if np.iscomplexobj(sums.total) else np.nan
    mean = np.where(sums.n > 0, sums.total / np.maximum(sums.n, 1), missing)
    return mean.astype(mean_dtype(np.dtype(dtype).name))


def coarser_levels(band: NDArray[Any], method: Literal["decimate", "mean"], n: int) -> list[NDArray[Any]]:
    """Take a band of one image the next ``n`` levels down.

    Bands rendered one by one and stacked equal the whole image rendered at once, bit for bit, when each begins at a
    multiple of ``2**n`` lines.

    Parameters
    ----------
    band
        ``(lines, width)`` of level 0, any dtype and unit; nan is missing.
    method
        ``"decimate"`` or ``"mean"``.
    n
        How many levels.

    Returns
    -------
    list of ndarray
        Levels 1 to ``n``; dtype of the band (decimate) or :func:`~moraine_view.levels.mean_dtype` (mean).
    """
    if method == "decimate":
        return [band[:: 1 << level, :: 1 << level] for level in range(1, n + 1)]
    if method != "mean":
        msg = f"unknown method {method!r}; expected 'decimate' or 'mean'"
        raise ValueError(msg)
    return mean_levels(band, n)[0]


def mean_levels(band: NDArray[Any], n: int) -> tuple[list[NDArray[Any]], BlockSums]:
    """Take a band of one image the next ``n`` levels down by means; its wide sums are never in memory as a whole.

    Parameters
    ----------
    band
        ``(lines, width)`` of level 0, real, bool or complex; not finite is missing.
    n
        How many levels, at least 0.

    Returns
    -------
    levels : list of ndarray
        Levels 1 to ``n``, of :func:`~moraine_view.levels.mean_dtype`.
    sums : BlockSums
        Of level ``n``, to go on from with :func:`resume_means`.
    """
    depth, step = min(n, PIECE_DEPTH), piece_lines(band.shape[1])
    pieces = [
        resume_means(block_sums(band[start : start + step]), band.dtype, depth)
        for start in range(0, band.shape[0], step)
    ]
    levels = [np.concatenate(parts) for parts in zip(*(levels for levels, _ in pieces), strict=True)]
    sums = BlockSums(*(np.concatenate(parts) for parts in zip(*(sums for _, sums in pieces), strict=True)))
    coarser, sums = resume_means(sums, band.dtype, n - depth)
    return levels + coarser, sums


def resume_means(sums: BlockSums, dtype: DTypeLike, n: int) -> tuple[list[NDArray[Any]], BlockSums]:
    """Take kept sums the next ``n`` levels down.

    Parameters
    ----------
    sums
        Of any level, ``(lines, width)``.
    dtype
        Of the data the sums come from.
    n
        How many levels, at least 0.

    Returns
    -------
    levels : list of ndarray
        The next ``n`` levels, of :func:`~moraine_view.levels.mean_dtype`.
    sums : BlockSums
        Of the last of them.
    """
    levels = []
    for _ in range(n):
        sums = halve_sums(sums)
        levels.append(block_means(sums, dtype))
    return levels, sums


# ---------------------------------------------------------------------------------------------------------------------
# Statistics

SAMPLE_SIZE = 1 << 23
"""The regular sample for the percentiles holds at most this many values."""

COLUMNS = ("nan_fraction", "min", "max", "mean", "std", "p01", "p50", "p99")
"""Names of the statistics, in the order of the columns of ``stats.zarr``."""


class PartialStatistics(TypedDict):
    """Statistics of a part of the data, in plain numbers that survive JSON exactly."""

    kind: str
    """``"bool"``, ``"real"`` or ``"complex"``; of complex values the amplitude is measured."""
    count: int
    """Number of values."""
    nan: int
    """Number of missing values: nan, or nan in either part."""
    inf: int
    """Number of infinite values (and not nan in the other part)."""
    true: int
    """Number of values that are True (bool data only)."""
    min: float | None
    """Least finite value, None if there is none; so for the largest."""
    max: float | None
    mean: float
    """Mean of the finite values, 0 if there is none."""
    m2: float
    """Sum of the squared distances of the finite values from their mean."""


def _kind(dtype: np.dtype[Any]) -> str:
    return {"b": "bool", "c": "complex"}.get(dtype.kind, "real")


def measured(values: NDArray[Any]) -> NDArray[np.float64]:
    """Give what the statistics are of: the finite values in C order, amplitudes of complex ones.

    Parameters
    ----------
    values
        Any shape, real, bool or complex; nan is missing.

    Returns
    -------
    ndarray
        ``(n_finite,)`` float64, unit of the data.
    """
    finite: NDArray[Any] = values[np.isfinite(values)]
    if finite.dtype.kind == "c":
        # in double precision: an amplitude near the float32 limit must not overflow, nor depend on the dtype
        finite = np.abs(finite.astype(np.complex128))
    return finite.astype(np.float64, copy=False)


def partial_statistics(values: NDArray[Any]) -> PartialStatistics:
    """Measure one block.

    Parameters
    ----------
    values
        Any shape, real, bool or complex; nan is missing, infinities are counted and otherwise left out.

    Returns
    -------
    PartialStatistics
        Of this block, for :func:`merge_statistics`.
    """
    return join_lines(line_statistics(values.reshape(1, -1)), values.size, values.dtype)


def line_statistics(lines: NDArray[Any]) -> NDArray[np.float64]:
    """Measure each line for itself, so that the result does not depend on which lines come together.

    Parameters
    ----------
    lines
        ``(n, length)``, real, bool or complex, in C order; not finite is missing, of complex values the amplitude is
        measured.

    Returns
    -------
    ndarray
        ``(n, 7)`` float64: number of finite, of missing (nan) and of True values; least and largest finite value
        (inf and -inf if there is none), their mean (0 if there is none) and the sum of their squared distances from it.
    """
    finite = np.isfinite(lines)
    values = np.where(finite, lines, 0)
    wide = np.abs(values.astype(np.complex128)) if values.dtype.kind == "c" else values.astype(np.float64)
    n = finite.sum(axis=1)
    with np.errstate(over="ignore"):  # float64 beyond 1e154 has no squares; its spread is then infinite
        mean = wide.sum(axis=1) / np.maximum(n, 1)
        m2 = np.square(np.where(finite, wide - mean[:, None], 0)).sum(axis=1)
    return np.column_stack(
        [
            n,
            np.isnan(lines).sum(axis=1),
            np.count_nonzero(lines, axis=1) if lines.dtype.kind == "b" else np.zeros_like(n),
            np.where(finite, wide, np.inf).min(axis=1, initial=np.inf),
            np.where(finite, wide, -np.inf).max(axis=1, initial=-np.inf),
            mean,
            m2,
        ]
    )


def join_lines(lines: NDArray[np.float64], count: int, dtype: DTypeLike) -> PartialStatistics:
    """Join the statistics of all lines of an image.

    Parameters
    ----------
    lines
        ``(n, 7)`` from :func:`line_statistics`, in order.
    count
        Number of values in them together, missing ones included.
    dtype
        Of the data.

    Returns
    -------
    PartialStatistics
        Of the image.
    """
    n, nan, true, low, high, means, m2 = lines.T
    total = float(n.sum())
    with np.errstate(over="ignore"):
        mean = float((n * means).sum() / max(total, 1))
        spread = float(m2.sum() + (n * np.square(means - mean)).sum())
    return PartialStatistics(
        kind=_kind(np.dtype(dtype)),
        count=count,
        nan=int(nan.sum()),
        inf=count - int(nan.sum() + total),
        true=int(true.sum()),
        min=float(low.min()) if total else None,
        max=float(high.max()) if total else None,
        mean=mean,
        m2=spread,
    )


def n_finite(part: PartialStatistics) -> int:
    """Count the finite values of a partial record."""
    return part["count"] - part["nan"] - part["inf"]


def merge_statistics(parts: Iterable[PartialStatistics]) -> PartialStatistics:
    """Join the records of blocks, in the order given.

    Mean and M2 are joined pair by pair (Chan, Golub and LeVeque, 1983), which does not lose digits where the mean is
    large against the spread. Fed in block order, whichever worker made them, the result is always the same.

    Parameters
    ----------
    parts
        At least one record, all of one kind.

    Returns
    -------
    PartialStatistics
        Of all the blocks together.
    """
    merged: PartialStatistics | None = None
    for part in parts:
        merged = part if merged is None else _merge(merged, part)
    if merged is None:
        msg = "no statistics to merge: expected those of at least one block"
        raise ValueError(msg)
    return merged


def _merge(a: PartialStatistics, b: PartialStatistics) -> PartialStatistics:
    if a["kind"] != b["kind"]:
        msg = f"statistics of {a['kind']} and of {b['kind']} values cannot be merged"
        raise ValueError(msg)
    na, nb = n_finite(a), n_finite(b)
    share = nb / max(na + nb, 1)
    step = b["mean"] - a["mean"]
    lows = [p["min"] for p in (a, b) if p["min"] is not None]
    highs = [p["max"] for p in (a, b) if p["max"] is not None]
    return PartialStatistics(
        kind=a["kind"],
        count=a["count"] + b["count"],
        nan=a["nan"] + b["nan"],
        inf=a["inf"] + b["inf"],
        true=a["true"] + b["true"],
        min=min(lows, default=None),
        max=max(highs, default=None),
        mean=a["mean"] + step * share,
        m2=a["m2"] + b["m2"] + step * step * na * share,
    )


def sample_step(size: int) -> int:
    """Say which finite values the sample takes: every ``ceil(size / 2**23)``-th of data with ``size`` values."""
    return max(1, -(-size // SAMPLE_SIZE))


def regular_sample(values: NDArray[Any], step: int, before: int) -> NDArray[np.float64]:
    """Pick this block's share of the regular sample.

    The finite values of the whole data are numbered from 0 in C order, one channel after another; the sample is the
    numbers that are multiples of ``step``. A block that is a run of that order (a band of whole lines of one channel,
    a range of points) needs only to know how many finite values come ``before`` it: the sum of :func:`n_finite` over
    the earlier blocks. So the sample depends neither on the blocks nor on the workers, but it is taken in a second
    reading of the data, when the earlier blocks have been counted.

    Parameters
    ----------
    values
        A block, real, bool or complex, in C order of the data; nan and infinities are skipped.
    step
        From :func:`sample_step`.
    before
        Number of finite values in all blocks before this one.

    Returns
    -------
    ndarray
        ``(n,)`` float64, amplitudes of complex values, unit of the data.
    """
    finite = values[np.isfinite(values)]
    return measured(finite[-before % step :: step])


def six_digits(value: float) -> float | None:
    """Round to six significant digits; None for what JSON cannot say (nan, infinities)."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def finished_statistics(
    total: PartialStatistics,
    sample: NDArray[np.float64],
    channels: Sequence[PartialStatistics] = (),
) -> Record:
    """Make the record that ``moraine info`` shows and the pyramid's marker keeps.

    Parameters
    ----------
    total
        Of all data.
    sample
        ``(n,)`` float64: the regular sample of the data, for the percentiles (interpolated linearly).
    channels
        One merged record per image (channel), in order, for the warnings.

    Returns
    -------
    dict
        ``nan_fraction min max mean std p01 p50 p99`` rounded to six significant digits (None where nothing is
        finite; ``amplitude_min`` and so on for complex data; only ``true_fraction`` for bools), and ``warnings``.
    """
    warnings = _warnings(total, channels)
    if total["kind"] == "bool":
        return {"true_fraction": six_digits(total["true"] / max(total["count"], 1)), "warnings": warnings}
    prefix = "amplitude_" if total["kind"] == "complex" else ""
    record: Record = {
        # the fraction of missing values is not a property of the amplitude
        name if name == "nan_fraction" else prefix + name: six_digits(value)
        for name, value in zip(COLUMNS, statistics_row(total, sample), strict=True)
    }
    return {**record, "warnings": warnings}


def statistics_row(total: PartialStatistics, sample: NDArray[np.float64]) -> list[float]:
    """Make one row of ``stats.zarr``.

    Parameters
    ----------
    total
        Of one channel.
    sample
        ``(n,)`` float64: the regular sample of that channel.

    Returns
    -------
    list of float
        The values of :data:`COLUMNS`, not rounded; nan where nothing is finite. Bools count as 0 and 1, so that
        ``mean`` is the fraction of True.
    """
    n = n_finite(total)
    nan_fraction = total["nan"] / total["count"] if total["count"] else math.nan
    if n == 0 or total["min"] is None or total["max"] is None:
        return [nan_fraction, *[math.nan] * 7]
    percentiles = np.quantile(sample, [0.01, 0.5, 0.99]).tolist() if sample.size else [math.nan] * 3
    return [nan_fraction, total["min"], total["max"], total["mean"], math.sqrt(total["m2"] / n), *percentiles]


def _warnings(total: PartialStatistics, channels: Sequence[PartialStatistics]) -> list[str]:
    warnings = [f"{total['inf']} infinite values"] if total["inf"] else []
    if (dull := _dull(total)) is not None:
        return [*warnings, dull]
    dulls = ((k, _dull(channel)) for k, channel in enumerate(channels))
    return warnings + [f"image {k}: {dull}" for k, dull in dulls if dull is not None]


def _dull(part: PartialStatistics) -> str | None:
    """Say it if there is only one value."""
    if part["count"] == 0:
        return None
    if part["nan"] == part["count"]:
        return "all values are nan"
    if part["min"] is None or part["min"] != part["max"] or part["inf"]:
        return None
    if part["kind"] == "bool":
        return f"all values are {bool(part['min'])}"
    # phases may differ where amplitudes do not
    return f"all {'amplitudes' if part['kind'] == 'complex' else 'values'} are {part['min']:.6g}"


# ---------------------------------------------------------------------------------------------------------------------
# Points


class PointGrid(NamedTuple):
    """A grid under a point cloud; cell ``(i, j)`` is centered at ``(x0 + j * res, y0 + i * res)``."""

    x0: float
    y0: float
    res: float
    """Cell size, unit of the coordinates."""
    nrows: int
    """Cells along y; rows grow with y."""
    ncols: int
    """Cells along x."""

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Centers of the corner cells ``(x0, y0, xm, ym)``, unit of the coordinates."""
        return self.x0, self.y0, self.x0 + (self.ncols - 1) * self.res, self.y0 + (self.nrows - 1) * self.res


def point_grid(x: NDArray[Any], y: NDArray[Any], res: float) -> PointGrid:
    """Lay a grid under points, cut to the largest cell used.

    Parameters
    ----------
    x, y
        ``(n_points,)`` real coordinates, at least one point; nan is an error.
    res
        Cell size, unit of the coordinates, positive.

    Returns
    -------
    PointGrid
        With its first cell centered at the least ``x`` and ``y``.
    """
    if not res > 0 or not math.isfinite(res):
        msg = f"the cell size must be a positive number, found {res}"
        raise ValueError(msg)
    if x.size == 0:
        msg = "a cloud without points has no grid"
        raise ValueError(msg)
    if bad := int(np.count_nonzero(~(np.isfinite(x) & np.isfinite(y)))):
        msg = f"{bad} of {x.size} points have coordinates that are not finite; leave these points out first"
        raise ValueError(msg)
    x0, y0 = float(x.min()), float(y.min())
    nrows, ncols = (int(np.rint((float(c.max()) - c0) / res)) + 1 for c, c0 in ((y, y0), (x, x0)))
    return PointGrid(x0, y0, float(res), nrows, ncols)


def point_index(x: NDArray[Any], y: NDArray[Any], grid: PointGrid, rows: slice | None = None) -> NDArray[np.int64]:
    """Say which point every cell of level 0 shows: of those in the cell, the last in the arrays.

    Parameters
    ----------
    x, y
        ``(n_points,)`` finite coordinates inside the grid; a point falls in the cell with the nearest center.
    grid
        From :func:`point_grid` of the same points.
    rows
        A band of the grid; all rows by default.

    Returns
    -------
    ndarray
        ``(rows, ncols)`` int64 point numbers, -1 in an empty cell.
    """
    start, stop = (0, grid.nrows) if rows is None else (rows.start, rows.stop)
    row = np.rint((y.astype(np.float64) - grid.y0) / grid.res).astype(np.int64)
    point = np.flatnonzero((row >= start) & (row < stop))
    col = np.rint((x[point].astype(np.float64) - grid.x0) / grid.res).astype(np.int64)
    index = np.full((stop - start) * grid.ncols, -1, dtype=np.int64)
    # "last" is "largest number": plain assignment leaves it open which of several values for one cell stays
    np.maximum.at(index, (row[point] - start) * grid.ncols + col, point)
    return index.reshape(stop - start, grid.ncols)


def coarser_index(index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Halve an index level: each cell shows the first non-empty of its four finer cells, in row-major order.

    Parameters
    ----------
    index
        ``(rows, cols)`` int64 point numbers, -1 in an empty cell.

    Returns
    -------
    ndarray
        ``(ceil(rows / 2), ceil(cols / 2))`` int64, -1 where all four are empty.
    """
    even = np.pad(index, [(0, n % 2) for n in index.shape], constant_values=-1)
    quads = [even[i::2, j::2] for i in (0, 1) for j in (0, 1)]
    shown = quads[0].copy()
    for quad in quads[1:]:
        np.copyto(shown, quad, where=shown < 0)
    return shown


def values_by_index(values: NDArray[Any], index: NDArray[np.int64]) -> NDArray[Any]:
    """Draw the points that an index level shows.

    The levels of a ``mean`` pyramid are :func:`coarser_levels` of this raster at level 0: an empty cell is nan there,
    so only the cells that show a point have weight.

    Parameters
    ----------
    values
        ``(n_points, ...)``, any dtype and unit.
    index
        ``(rows, cols)`` int64 point numbers, -1 in an empty cell.

    Returns
    -------
    ndarray
        ``(rows, cols, ...)`` of :func:`~moraine_view.levels.mean_dtype` (so integers and bools can be missing), nan
        in an empty cell.
    """
    dtype = np.dtype(mean_dtype(values.dtype.name))
    missing = complex(np.nan, np.nan) if dtype.kind == "c" else np.nan
    raster = np.full(index.shape + values.shape[1:], missing, dtype=dtype)
    shown = index >= 0
    raster[shown] = values[index[shown]]
    return raster
