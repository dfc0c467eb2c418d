"""Array functions of the correction by closure: of the points, of their regions, and of whole arrays.

An unwrapped pair (a, b) is the difference of the wrapped phases of its images plus whole cycles c. Where cycles are
wrong, loops of pairs do not close. Three steps correct them (after Yunjun et al., 2019):

1. each point by itself: the smallest corrections d, ``sum(|d|)`` over the pairs, with which all loops close;
2. each region of connected points and each pair: the median of d over the region, for errors of unwrapping come in
   connected areas. Points of no region keep their own d;
3. each point again by itself, after the correction of step 2; this gives the cycles of the images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from moraine_unwrap.closure import _cpu
from moraine_unwrap.flow.kernels import image_phase
from moraine_unwrap.flow.networks import along_curve
from moraine_unwrap.pair_fit.kernels import PairGraph, pair_graph
from moraine_unwrap.triangulation.kernels import edge_lengths, regions, triangulate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moraine_unwrap.triangulation.kernels import PointArray

Int16: TypeAlias = "NDArray[np.int16]"
Int32: TypeAlias = "NDArray[np.int32]"
Float32: TypeAlias = "NDArray[np.float32]"
Phasors: TypeAlias = "NDArray[np.complex64]"

PIECE = 2**16
"""Phases that are computed at a time."""

NO_OFFSET = int(_cpu.NO_OFFSET)
"""Correction of a pair that is missing at a point."""


TOLERANCE = _cpu.TOLERANCE
"""Largest distance of an unwrapped phase from the wrapped one plus whole cycles, in cycles."""


class Loops(NamedTuple):
    """What the loops of points say, each by itself."""

    offsets: Int16
    """Whole cycles to add to the pairs, ``(n_points, n_pairs)``; `NO_OFFSET` for a missing pair."""
    cycles: Int32
    """Whole cycles of the images, ``(n_points, nimages)``."""
    misclosure_fraction: Float32
    """Share of the pairs to correct, ``(n_points,)``, unitless; nan without any pair."""


class Corrected(NamedTuple):
    """Phases of which all loops close."""

    ts: Float32
    """Phase of the images relative to one of them, ``(n_points, nimages)``, in radians; nan where no pair connects."""
    change_fraction: Float32
    """Share of the pairs that were changed, ``(n_points,)``, unitless; nan without any pair."""
    correction: Int16
    """Whole cycles that were added to the pairs, ``(n_points, n_pairs)``, 0 for missing ones; no rows if not asked."""


class ClosedTimeSeries(NamedTuple):
    """All that the correction of whole arrays gives; see `Loops` and `Corrected`, and `region_labels` for `region`."""

    ts: Float32
    correction: Int16
    misclosure_fraction: Float32
    change_fraction: Float32
    region: Int32


def correct_closure(
    points: PointArray,
    ph: Phasors,
    unw_ph: Float32,
    image_pairs: NDArray[Any],
    spacing: tuple[float, float] = (1.0, 1.0),
    *,
    ref: int = 0,
    max_edge_factor: float = 4.0,
    min_region_points: int = 30,
) -> ClosedTimeSeries:
    """Correct unwrapped pairs so that all their loops close, and return the time series of the phase.

    Parameters
    ----------
    points
        Coordinates (azimuth, range), ``(n_points, 2)``, in pixels.
    ph
        Phase history, ``(n_points, nimages)`` complex64, of any modulus. What is nan, infinite or 0 is missing.
    unw_ph
        Unwrapped phase of the pairs, ``(n_points, n_pairs)`` float32, in radians; nan is missing.
    image_pairs
        Images of every pair, ``(n_pairs, 2)`` integer, unitless.
    spacing
        Pixel spacing in azimuth and range, in meters.
    ref
        Image that the time series is relative to.
    max_edge_factor, min_region_points
        What a region is; see `moraine_unwrap.triangulation.kernels.regions`.

    Returns
    -------
    ClosedTimeSeries
        Time series, corrections of the pairs, fractions and regions.

    Raises
    ------
    ValueError
        A value of `unw_ph` is more than `TOLERANCE` from the phase of `ph` plus whole cycles, or more than 2**20
        cycles; or a correction is 2**15 cycles or more.

    References
    ----------
    Yunjun, Z., Fattahi, H., Amelung, F. (2019): Small baseline InSAR time series analysis: Unwrapping error correction
    and noise reduction. Computers & Geosciences 133, 104331.

    Examples
    --------
    >>> points = np.array([[0, 0]])
    >>> ph = np.exp(1j * np.array([[0.0, 1.0, 2.0]])).astype(np.complex64)
    >>> unw = np.array([[-1.0, -2.0, -1.0 + 2 * np.pi]], np.float32)
    >>> result = correct_closure(points, ph, unw, np.array([[0, 1], [0, 2], [1, 2]]))
    >>> result.ts.tolist(), result.correction.tolist()
    ([[0.0, 1.0, 2.0]], [[0, 0, -1]])
    """
    graph = pair_graph(image_pairs, ph.shape[1])
    loops = loop_offsets(ph, unw_ph, graph=graph)
    region = region_labels(points, spacing, max_edge_factor, min_region_points)
    offsets = region_offsets(loops.offsets, *by_region(region))
    corrected = region_series(ph, loops.offsets, loops.cycles, region, graph=graph, region_offsets=offsets, ref=ref)
    return ClosedTimeSeries(
        corrected.ts, corrected.correction, loops.misclosure_fraction, corrected.change_fraction, region
    )


def loop_offsets(
    ph: Phasors,
    unw_ph: Float32,
    *,
    graph: PairGraph,
    name: str = "unw_ph",
    first_point: int = 0,
) -> Loops:
    """Fit whole cycles to the pairs of every point by itself: the first step.

    Parameters
    ----------
    ph, unw_ph
        As in `correct_closure`.
    graph
        Network of the pairs, by `moraine_unwrap.pair_fit.kernels.pair_graph`.
    name, first_point
        What errors call `unw_ph`, and the number of its first point.

    Returns
    -------
    Loops
        Corrections, cycles of the images and share of pairs to correct. Of several smallest corrections it is the one
        that changes the first pair the least, then the second, and so on.

    Raises
    ------
    ValueError
        See `correct_closure`.
    """
    n_points, n_pairs = unw_ph.shape
    loops = Loops(
        offsets=np.empty((n_points, n_pairs), np.int16),
        cycles=np.empty((n_points, graph.nimages), np.int32),
        misclosure_fraction=np.empty(n_points, np.float32),
    )
    costs = np.ones(n_pairs, np.int64)
    for rows in _pieces(ph.shape):
        fault = _cpu.correct_loops(
            graph,
            image_phase(ph[rows]),
            unw_ph[rows],
            costs,
            *(values[rows] for values in loops),
        )
        _raise_if_wrong(fault, graph, name, first_point + rows.start)
    return loops


def region_labels(
    points: PointArray,
    spacing: tuple[float, float] = (1.0, 1.0),
    max_edge_factor: float = 4.0,
    min_region_points: int = 30,
    *,
    name: str = "gix",
) -> Int32:
    """Regions of points in any order.

    Points are triangulated in their order along a Hilbert curve, which is much faster for large clouds.

    Parameters
    ----------
    points
        Coordinates (azimuth, range), ``(n_points, 2)``, in pixels.
    spacing
        Pixel spacing in azimuth and range, in meters.
    max_edge_factor, min_region_points
        As in `moraine_unwrap.triangulation.kernels.regions`, which has the errors.
    name
        What errors call the points.

    Returns
    -------
    ndarray
        Number of the region of every point, ``(n_points,)`` int32, unitless: from 0 on in the order of their first
        points, -1 for points in no region.
    """
    order = along_curve(points * np.array(spacing))
    along = points[order]
    net = triangulate(along, spacing, name=name)
    found = regions(net, edge_lengths(along, net.edges, spacing), max_edge_factor, min_region_points)
    region = np.empty_like(found)
    region[order] = found
    numbered: Int32 = _cpu.number_by_first(region)
    return numbered


def by_region(region: Int32) -> tuple[Int32, NDArray[np.int64]]:
    """Return the points of all regions, one region after the other.

    Parameters
    ----------
    region
        Number of the region of every point, ``(n_points,)`` int32, unitless; -1 for none.

    Returns
    -------
    rows : ndarray
        Points of the regions, int32, unitless.
    start : ndarray
        First place in `rows` of every region, and the end, ``(n_regions + 1,)`` int64, unitless.
    """
    rows, start = _cpu.group_by_region(region, int(region.max(initial=-1)) + 1)
    return rows, start


def region_offsets(offsets: Int16, rows: Int32, start: NDArray[np.int64]) -> Int16:
    """Median of the corrections of the points of every region: the second step.

    Parameters
    ----------
    offsets
        Corrections, ``(n_points, n_pairs)``, in cycles; `NO_OFFSET` does not count.
    rows, start
        Points of the regions, by `by_region`.

    Returns
    -------
    ndarray
        Medians, ``(n_regions, n_pairs)`` int16, in cycles. Between two middle values it is their mean, a half rounded
        to the even number. 0 where no point of a region has the pair.

    Examples
    --------
    >>> offsets = np.array([[0], [1], [1], [2], [3]], np.int16)
    >>> region_offsets(offsets, *by_region(np.array([0, 0, 0, 1, 1], np.int32))).tolist()
    [[1], [2]]
    """
    out = np.empty((len(start) - 1, offsets.shape[1]), np.int16)
    _cpu.medians(offsets, rows, start, out)
    return out


def region_series(
    ph: Phasors,
    offsets: Int16,
    cycles: Int32,
    region: Int32,
    *,
    graph: PairGraph,
    region_offsets: Int16,
    ref: int = 0,
    with_correction: bool = True,
    name: str = "unw_ph",
    first_point: int = 0,
) -> Corrected:
    """Correct the pairs of every point as its region says, and fit whole cycles to them again: the third step.

    Parameters
    ----------
    ph
        Phase history, ``(n_points, nimages)`` complex64.
    offsets, cycles
        What `loop_offsets` returns for the points.
    region
        Number of the region of the points, ``(n_points,)`` int32, unitless; -1 for none.
    graph
        Network of the pairs.
    region_offsets
        Corrections of the regions, ``(n_regions, n_pairs)`` int16, in cycles.
    ref
        Image that the time series is relative to.
    with_correction
        Whether the corrections are returned.
    name, first_point
        What errors call the unwrapped pairs, and the number of the first point.

    Returns
    -------
    Corrected
        Time series ``arg(ph) - arg(ph[ref])`` plus whole cycles, share of changed pairs, and corrections.

    Raises
    ------
    ValueError
        A correction is 2**15 cycles or more.
    """
    n_points, n_pairs = offsets.shape
    ts = np.empty((n_points, graph.nimages), np.float32)
    fraction = np.empty(n_points, np.float32)
    correction = np.empty((n_points if with_correction else 0, n_pairs), np.int16)
    costs = np.ones(n_pairs, np.int64)
    for rows in _pieces(ph.shape):
        given = offsets[rows], cycles[rows], region[rows], region_offsets
        fault = _cpu.correct_regions(
            graph,
            image_phase(ph[rows]),
            *given,
            costs,
            ref,
            ts[rows],
            fraction[rows],
            correction[rows],
        )
        _raise_if_wrong(fault, graph, name, first_point + rows.start)
    return Corrected(ts, fraction, correction)


def _pieces(shape: tuple[int, ...]) -> list[slice]:
    n_points, nimages = shape
    step = max(PIECE // nimages, 1)
    return [slice(start, start + step) for start in range(0, n_points, step)]


def _raise_if_wrong(fault: tuple[int, int, int, float], graph: PairGraph, name: str, first_point: int) -> None:
    kind, row, k, amount = fault
    if kind == _cpu.FITS:
        return
    where = f"{name}: pair {k} ({graph.pairs[k, 0]}, {graph.pairs[k, 1]}) of point {first_point + row}"
    if kind == _cpu.IS_TOO_FAR:
        raise ValueError(f"{where} would have to be corrected by {amount:.0f} cycles; expected less than 2**15")
    if amount <= TOLERANCE:
        raise ValueError(f"{where} is more than 2**20 cycles; expected phases that float32 holds")
    raise ValueError(
        f"{where} is {amount:.3g} cycles from the wrapped phase of ph plus whole cycles; expected at most {TOLERANCE}"
    )
