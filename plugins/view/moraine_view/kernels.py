"""Array functions behind the pyramids: coarser levels, exact statistics, points on a grid.

All of them are serial, know no files, and give the same bits however the data are cut:

* *Levels* halve the raster again and again. A band of lines that starts at a multiple of ``2**k`` can be taken ``k``
  levels down on its own: every 2 x 2 block lies inside the band. Means travel as sums and counts
  (:class:`BlockSums`), never as rounded means, so a band that is resumed later loses nothing.
* *Statistics* are measured line by line (:func:`measure_lines`), and the lines of an image are joined at once
  (:func:`join_lines`) into a small record of plain numbers; those of the images are merged in order
  (:func:`merge_statistics`). Percentiles come from a regular sample whose members are fixed by the data alone.
* *Points* fall on a grid (`grid.point_grid`); an index raster says which point each cell shows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np

from moraine_view import _cpu
from moraine_view.levels import PIECE_DEPTH, mean_dtype, piece_lines
from moraine_view.statistics import N_MEASURES, sample_dtype

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import DTypeLike, NDArray

    from moraine_view.grid import PointGrid

    Record = dict[str, float | list[str] | None]

# ---------------------------------------------------------------------------------------------------------------------
# Levels


class BlockSums(NamedTuple):
    """What is known of the level-0 pixels under each cell of a level."""

    total: NDArray[Any]
    """Sum over the finite level-0 pixels, ``(lines, width)`` float64 or complex128; 0 where there is none."""
    n: NDArray[np.int64]
    """Number of finite level-0 pixels, ``(lines, width)`` int64."""


def pixel_sums(band: NDArray[Any]) -> BlockSums:
    """Sum the pixels of every 2 x 2 block, in a fixed order.

    Parameters
    ----------
    band
        ``(lines, width)`` of level 0, real, bool or complex. Not finite means missing; a complex value is finite only
        if both its parts are.

    Returns
    -------
    BlockSums
        Of level 1, ``(ceil(lines / 2), ceil(width / 2))``.
    """
    shape = _halves(band.shape)
    sums = BlockSums(np.empty(shape, "complex128" if band.dtype.kind == "c" else "float64"), np.empty(shape, "int64"))
    _cpu.first_sums(_compilable(band), *sums)
    return sums


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
    halved = BlockSums(*(np.empty(_halves(cells.shape), cells.dtype) for cells in sums))
    for cells, out in zip(sums, halved, strict=True):
        _cpu.next_sums(cells, out)
    return halved


def _halves(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-(-n // 2) for n in shape)


def _compilable(values: NDArray[Any]) -> NDArray[Any]:
    """Return values in a dtype that compiled loops take."""
    if values.dtype.kind == "b":
        return values.view("uint8")
    return values.astype("float32") if values.dtype == np.float16 else values


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
    out = np.empty(sums.n.shape, mean_dtype(np.dtype(dtype).name))
    compiled = np.empty(out.shape, "float32") if out.dtype == np.float16 else out
    (_cpu.complex_means if out.dtype.kind == "c" else _cpu.real_means)(*sums, compiled)
    return compiled.astype(out.dtype, copy=False)


def strided_levels(band: NDArray[Any], n: int) -> list[NDArray[Any]]:
    """Take a band of one image the next ``n`` levels down by its first pixels.

    Parameters
    ----------
    band
        ``(lines, width)`` of any level, any dtype and unit.
    n
        How many levels.

    Returns
    -------
    list of ndarray
        The next ``n`` levels, dtype of the band.
    """
    levels = []
    for _ in range(n):
        band = np.ascontiguousarray(band[::2, ::2])
        levels.append(band)
    return levels


def mean_levels(band: NDArray[Any], n: int) -> tuple[list[NDArray[Any]], BlockSums]:
    """Take a band of one image the next ``n`` levels down by means; its wide sums are never in memory as a whole.

    Bands rendered one by one and stacked equal the whole image rendered at once, bit for bit, when each begins at a
    multiple of ``2**n`` lines.

    Parameters
    ----------
    band
        ``(lines, width)`` of level 0, real, bool or complex; not finite is missing.
    n
        How many levels, at least 1.

    Returns
    -------
    levels : list of ndarray
        Levels 1 to ``n``, of :func:`~moraine_view.levels.mean_dtype`.
    sums : BlockSums
        Of level ``n``, to go on from with :func:`resume_means`.
    """
    depth, step = min(n, PIECE_DEPTH), piece_lines(band.shape[1])
    pieces = []
    for start in range(0, band.shape[0], step):
        sums = pixel_sums(band[start : start + step])
        coarser, last = resume_means(sums, band.dtype, depth - 1)
        pieces.append(([block_means(sums, band.dtype), *coarser], last))
    levels = [np.concatenate(parts) for parts in zip(*(levels for levels, _ in pieces), strict=True)]
    sums = BlockSums(*(np.concatenate(parts) for parts in zip(*(last for _, last in pieces), strict=True)))
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

COLUMNS = ("nan_fraction", "min", "max", "mean", "std", "p01", "p50", "p99")
"""Names of the statistics, in the order of the columns of ``stats.zarr``."""

RUN = 1 << 12
"""Values that are looked at together where lines do not matter."""


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
    min: float | None
    """Least finite value, None if there is none; so for the largest."""
    max: float | None
    mean: float
    """Mean of the finite values, 0 if there is none."""
    m2: float
    """Sum of the squared distances of the finite values from their mean."""


def _kind(dtype: np.dtype[Any]) -> str:
    return {"b": "bool", "c": "complex"}.get(dtype.kind, "real")


def measured(values: NDArray[Any]) -> NDArray[Any]:
    """Give what the statistics are of: the finite values in C order, amplitudes of complex ones.

    Parameters
    ----------
    values
        Any shape, real, bool or complex; nan is missing.

    Returns
    -------
    ndarray
        ``(n_finite,)`` a copy of :func:`~moraine_view.statistics.sample_dtype`, unit of the data.
    """
    _, (known,) = measure_lines(values, RUN, [1], [0])
    return known


def measure_lines(
    values: NDArray[Any], length: int, steps: Sequence[int] = (), before: Sequence[int] = ()
) -> tuple[NDArray[np.float64], list[NDArray[Any]]]:
    """Measure each line for itself, so that the result does not depend on which lines come together, and sample it.

    Sample s is every ``steps[s]``-th finite value of each line. The numbers of a line's values begin where they would
    if no value before it were missing: what is taken depends on the line and its place alone, and where nothing is
    missing it is every ``steps[s]``-th value of the data.

    Parameters
    ----------
    values
        Any shape, in C order one line after another, real, bool or complex; not finite is missing, of complex values
        the amplitude is measured.
    length
        Values of a line; the last one may be shorter.
    steps
        Of the samples.
    before
        For each sample, how many values the data have before these.

    Returns
    -------
    table : ndarray
        ``(n_lines, 6)`` float64: number of finite and of missing (nan) values; least and largest finite value (inf and
        -inf if there is none), their mean (0 if there is none) and the sum of their squared distances from it.
    samples : list of ndarray
        ``(n_s,)`` each, of :func:`~moraine_view.statistics.sample_dtype`, unit of the data.
    """
    flat = _compilable(values).reshape(-1)
    table = np.empty((-(-flat.size // length), N_MEASURES))
    room = max((-(-flat.size // step) for step in steps), default=0)
    picked = np.empty((len(steps), room), sample_dtype(values.dtype.name))
    n_picked = _cpu.measure_lines(flat, length, np.array(steps, np.int64), np.array(before, np.int64), table, picked)
    return table, [row[:n] for row, n in zip(picked, n_picked, strict=True)]


def join_lines(lines: NDArray[np.float64], count: int, dtype: DTypeLike) -> PartialStatistics:
    """Join the statistics of all lines of an image.

    Parameters
    ----------
    lines
        ``(n, 6)`` from :func:`measure_lines`, in order.
    count
        Number of values in them together, missing ones included.
    dtype
        Of the data.

    Returns
    -------
    PartialStatistics
        Of the image.
    """
    n, nan, low, high, means, m2 = lines.T
    total = float(n.sum())
    with np.errstate(over="ignore"):  # float64 beyond 1e154 has no squares; its spread is then infinite
        mean = float((n * means).sum() / max(total, 1))
        spread = float(m2.sum() + (n * np.square(means - mean)).sum())
    return PartialStatistics(
        kind=_kind(np.dtype(dtype)),
        count=count,
        nan=int(nan.sum()),
        inf=count - int(nan.sum() + total),
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
        min=min(lows, default=None),
        max=max(highs, default=None),
        mean=a["mean"] + step * share,
        m2=a["m2"] + b["m2"] + step * step * na * share,
    )


def six_digits(value: float) -> float | None:
    """Round to six significant digits; None for what JSON cannot say (nan, infinities)."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def finished_statistics(
    total: PartialStatistics,
    percentiles: Sequence[float],
    channels: Sequence[PartialStatistics] = (),
) -> Record:
    """Make the record that ``moraine info`` shows and the pyramid's marker keeps.

    Parameters
    ----------
    total
        Of all data.
    percentiles
        Of all data, from :func:`percentiles_of`.
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
        return {"true_fraction": six_digits(total["mean"]), "warnings": warnings}
    prefix = "amplitude_" if total["kind"] == "complex" else ""
    record: Record = {
        # the fraction of missing values is not a property of the amplitude
        name if name == "nan_fraction" else prefix + name: six_digits(value)
        for name, value in zip(COLUMNS, statistics_row(total, percentiles), strict=True)
    }
    return {**record, "warnings": warnings}


def statistics_row(total: PartialStatistics, percentiles: Sequence[float]) -> list[float]:
    """Make one row of ``stats.zarr``.

    Parameters
    ----------
    total
        Of one channel.
    percentiles
        Of that channel, from :func:`percentiles_of`.

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


def percentiles_of(known: NDArray[Any]) -> list[float]:
    """Find the 1st, 50th and 99th percentile, interpolated linearly between neighbors.

    Parameters
    ----------
    known
        ``(n,)`` real, without nan; its order is lost.

    Returns
    -------
    list of float
        Three values, nan if there are none.
    """
    found = []
    for share in (0.01, 0.5, 0.99):
        if known.size == 0:
            found.append(math.nan)
            continue
        place = share * (known.size - 1)
        below = int(place)
        known.partition(below)
        low = float(known[below])
        # an infinite difference of two finite values is no reason for nan
        found.append(low + (place - below) * (float(known[below + 1 :].min()) - low) if below < place else low)
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Points


def place_points(
    index: NDArray[np.int64], x: NDArray[Any], y: NDArray[Any], first: int, grid: PointGrid, start: int
) -> None:
    """Let the cells of a band show points: of those in a cell, the one placed last.

    Parameters
    ----------
    index
        ``(rows, ncols)`` int64 numbers of the points shown so far, -1 in an empty cell; changed in place.
    x, y
        ``(n,)`` finite coordinates of points inside the grid; a point falls in the cell with the nearest center.
    first
        Number of the first of them.
    grid
        Under the whole cloud.
    start
        First row of the band.
    """
    px, py = (np.ascontiguousarray(values, np.float64) for values in (x, y))
    _cpu.place_points(index, px, py, first, grid.x0, grid.y0, grid.res, start)


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


def runs_shown(index: Sequence[NDArray[np.int64]], n_points: int, run: int) -> NDArray[np.int64]:
    """Find which runs of points are seen at all, so that the others need not be read.

    Parameters
    ----------
    index
        ``(rows, cols)`` int64 point numbers each, -1 in an empty cell.
    n_points
        Number of points of the cloud.
    run
        Points of a run.

    Returns
    -------
    ndarray
        ``(n,)`` int64 numbers of runs, ascending.
    """
    is_shown = np.zeros(-(-n_points // run), bool)
    for level in index:
        _cpu.mark_runs(level, run, is_shown)
    return np.flatnonzero(is_shown)


def empty_raster(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Make a raster in which nothing is drawn yet.

    Parameters
    ----------
    shape
        Rows and columns.
    dtype
        Of the points.

    Returns
    -------
    ndarray
        ``shape`` of :func:`~moraine_view.levels.mean_dtype` (so integers and bools can be missing), nan.
    """
    made = np.dtype(mean_dtype(np.dtype(dtype).name))
    return np.full(shape, complex(np.nan, np.nan) if made.kind == "c" else np.nan, dtype=made)


def draw_run(raster: NDArray[Any], index: NDArray[np.int64], values: NDArray[Any], first: int) -> None:
    """Draw a run of points that an index level shows.

    The levels of a ``mean`` pyramid are :func:`mean_levels` of this raster at level 0: an empty cell is nan there, so
    only the cells that show a point have weight.

    Parameters
    ----------
    raster
        ``(rows, cols)`` from :func:`empty_raster`, changed in place.
    index
        ``(rows, cols)`` int64 point numbers, -1 in an empty cell.
    values
        ``(n,)`` of the points, any dtype and unit.
    first
        Number of the first of them.
    """
    if raster.dtype == np.float16:  # which compiled loops do not take: its bits will do
        _cpu.draw_run(index, values.view("uint16"), first, raster.view("uint16"))
    else:
        _cpu.draw_run(index, _compilable(values), first, raster)
