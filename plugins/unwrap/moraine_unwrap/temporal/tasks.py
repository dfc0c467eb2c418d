"""What tasks share and do around the array functions of extended minimum cost flow.

The number of edges is known only when points are triangulated. So arrays of edges have three rows for each point, the
most that there can be; what is behind the last edge says nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_unwrap.flow.kernels import image_phase
from moraine_unwrap.flow.tasks import results_of, shared_network
from moraine_unwrap.qualities import checked_qualities
from moraine_unwrap.temporal import kernels
from moraine_unwrap.temporal.kernels import NO_CYCLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moraine_unwrap.flow.networks import Network
    from moraine_unwrap.pair_fit.kernels import PairGraph
    from moraine_unwrap.temporal.kernels import ClosedCloud

    Phasors = NDArray[np.complex64]
    Int8 = NDArray[np.int8]
    Counts = NDArray[np.uint16]


def gradient_cycles(ref: Phasors, sec: Phasors, *, net: Network, spatial_cost: str, n_rows: int) -> Int8:
    """Return the cycles of the gradients of one pair, each edge by itself.

    Parameters
    ----------
    ref, sec
        Columns of the phase history, ``(n_points, 1)``.
    net
        Network of the points.
    spatial_cost
        As in `moraine_unwrap.temporal.kernels.gradient_cycles`.
    n_rows
        Rows to return.

    Returns
    -------
    ndarray
        Cycles, ``(n_rows, 1)`` int8; behind the last edge `NO_CYCLES`.
    """
    phase = kernels.vertex_phase(net, image_phase(ref[:, 0]), image_phase(sec[:, 0]))
    out = np.full((n_rows, 1), NO_CYCLES)
    out[: len(net.edges), 0] = kernels.gradient_cycles(net, phase, spatial_cost)
    return out


def close_loops(cycles: Int8, *, graph: PairGraph, costs: Sequence[int] | None, first_edge: int) -> tuple[Any, ...]:
    """Return what `moraine_unwrap.temporal.kernels.close_loops` does, and the number of edges that were corrected."""
    closed = kernels.close_loops(cycles, graph, costs, first_edge)
    return *closed, int(np.count_nonzero(closed.n_corrected))


def shared_cloud(
    n_corrected: Counts,
    gix: NDArray[np.integer[Any]],
    *weight: NDArray[Any],
    spacing: tuple[float, float],
    spatial_cost: str,
    names: tuple[str, ...],
) -> ClosedCloud:
    """Return what all pairs share in the spatial step.

    Parameters
    ----------
    n_corrected
        Number of corrected pairs of each edge, ``(n_rows,)``.
    gix
        Grid index (azimuth, range), ``(n_points, 2)``, in pixels.
    *weight
        Quality of every point, ``(n_points,)``, unitless, if there is one.
    spacing
        Pixel spacing in azimuth and range, in meters.
    spatial_cost
        As in `moraine_unwrap.temporal.kernels.closed_cloud`.
    names
        What errors call `gix` and `weight`.
    """
    net = shared_network(gix, spacing=spacing, name=names[0])
    quality, _ = checked_qualities(weight, names[1:])
    return kernels.closed_cloud(net, gix, spacing, n_corrected[: len(net.edges)], spatial_cost, quality)


def unwrap_pair(
    ref: Phasors,
    sec: Phasors,
    cycles: Int8,
    *,
    cloud: ClosedCloud,
    earth_cost: int,
    ref_point: int,
    with_island: bool,
) -> tuple[Any, ...]:
    """Unwrap one pair of images from the cycles of its gradients.

    Parameters
    ----------
    ref, sec
        Columns of the phase history, ``(n_points, 1)``.
    cycles
        Cycles of the gradients, ``(n_rows, 1)`` int8.
    cloud
        The points, and how often their edges were corrected.
    earth_cost, ref_point
        As `earth_cost` and `reference` in `moraine_unwrap.temporal.kernels.unwrap_gradients`.
    with_island
        Whether islands are returned, too.

    Returns
    -------
    unw_ph : ndarray
        Unwrapped phase, ``(n_points, 1)`` float32, in radians; nan where it is missing.
    island : ndarray
        Number of the island of every point, ``(n_points, 1)`` int32, -1 where it is missing.
    facts : tuple of int
        Cost of the cycles on edges, number of islands, and number of points that are not missing.
    """
    phases = image_phase(ref[:, 0]), image_phase(sec[:, 0])
    wanted = cycles[: len(cloud.net.edges), 0]
    out = kernels.unwrap_gradients(cloud, *phases, wanted, earth_cost=earth_cost, reference=ref_point)
    return results_of(out, with_island=with_island)
