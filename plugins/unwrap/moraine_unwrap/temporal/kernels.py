"""Array functions: extended minimum cost flow, which unwraps many pairs of images in time first and then in space.

Between two neighboring points each pair of images has a phase difference, a gradient, known up to whole cycles. Around
a loop of pairs, (a, b), (b, c) and (a, c), the gradients must add up; where they do not, the fewest cycles that make
them do so are added (in time, edge by edge). The corrected gradients of each pair are then integrated (in space, pair
by pair) by minimum cost flow. After Pepe and Lanari (2006); networks need not be planar, since in time a fit to any
graph takes the place of their flow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_raster.networks import TempNet
from moraine_unwrap.flow import _cpu as flow
from moraine_unwrap.flow.clouds import MOST_MISSING, remade
from moraine_unwrap.flow.costs import LENGTH_STEPS, edge_costs, statistical_costs
from moraine_unwrap.flow.kernels import Unwrapped, image_phase, leveled, settle
from moraine_unwrap.flow.networks import of_vertices, without
from moraine_unwrap.flow.tasks import shared_network
from moraine_unwrap.pair_fit.kernels import PairGraph, pair_graph
from moraine_unwrap.temporal import _cpu
from moraine_unwrap.temporal.dates import length_costs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moraine_unwrap.flow.networks import Float64, Int32, Network
    from moraine_unwrap.triangulation.kernels import PointArray

    Int8 = NDArray[np.int8]

NO_CYCLES = _cpu.NO_CYCLES
"""Cycles of a pair on an edge with an end where it is missing."""

VOTE_COST = 50
"""What a cycle off those that were found in time costs, against the likelihood in space."""

BANDWIDTH = 3
"""Every image is paired with this many following ones where no pairs are given."""


class ClosedCloud(NamedTuple):
    """What all pairs share in the spatial step.

    Attributes
    ----------
    net
        Network of the points, with none missing.
    places
        Coordinates (azimuth, range) of its vertices, ``(V, 2)``, in pixels.
    spacing
        Pixel spacing in azimuth and range, in meters.
    by_length, weight
        What the costs are made from: whether lengths count, and the quality of every vertex, ``(V,)``, unitless.
    costs
        Costs of the edges, ``(E, 1)`` int32, by `moraine_unwrap.flow.costs.edge_costs`.
    n_corrected
        Number of corrected pairs of each edge, ``(E,)``, by `close_loops`; None where they do not count.
    """

    net: Network
    places: PointArray
    spacing: tuple[float, float]
    by_length: bool
    weight: Float64 | None
    costs: Int32
    n_corrected: NDArray[Any] | None


class Closed(NamedTuple):
    """Gradients whose loops of pairs close.

    Attributes
    ----------
    cycles
        Cycles to add to the phase difference of each edge and pair, ``(E, n_pairs)`` int8; `NO_CYCLES` where the pair
        is missing.
    n_corrected
        Number of pairs of each edge whose cycles were changed, ``(E,)`` uint16.
    """

    cycles: Int8
    n_corrected: NDArray[np.uint16]


def vertex_phase(net: Network, ref: Float64, sec: Float64) -> Float64:
    """Return the phase of a pair at the vertices, not wrapped, so that the loops of pairs close.

    Parameters
    ----------
    net
        Network of the points.
    ref, sec
        Phases of both images, ``(n_points,)``, in radians. Of points at one place the smallest counts, in each image.

    Returns
    -------
    ndarray
        Phase of ref less that of sec, ``(V,)`` float64, in radians; nan where one is missing.
    """
    phase: Float64 = of_vertices(net, ref, "ph") - of_vertices(net, sec, "ph")
    return phase


def gradient_cycles(net: Network, phase: Float64, spatial_cost: str = "statistical") -> Int8:
    """Most likely cycles of the gradients of one pair, each edge by itself.

    Parameters
    ----------
    net
        Network of the points.
    phase
        Phase of the pair at the vertices, ``(V,)`` float64, in radians; nan where it is missing.
    spatial_cost
        "statistical": the cycles that bring the difference nearest to the local slope of the phase, as in
        `moraine_unwrap.flow.costs.statistical_costs`. Else those that wrap it into [-pi, pi].

    Returns
    -------
    ndarray
        Cycles to add to the phase difference of each edge, ``(E,)`` int8; `NO_CYCLES` where an end is missing.
    """
    is_missing = np.isnan(phase)
    known = np.where(is_missing, 0.0, phase)
    if spatial_cost == "statistical":
        cycles, _ = statistical_costs(net._replace(island=np.where(is_missing, np.int32(-1), net.island)), known)
    else:
        cycles = flow.wrapped_cycles(known, net.edges)
    cycles[is_missing[net.edges].any(axis=1)] = NO_CYCLES
    return cycles.astype(np.int8)


def close_loops(cycles: Int8, graph: PairGraph, costs: Sequence[int] | None = None, first_edge: int = 0) -> Closed:
    """Change the cycles of gradients so that they close all loops of image pairs, at the least cost: the temporal step.

    On an edge, the gradients of the pairs (a, b), (b, c) and (a, c) are right only if the first two add up to the last.
    With c[k] the cycles of pair k, the result is ``c[k] + z[k] = n[b] - n[a]`` with whole numbers n of the images, such
    that ``sum(cost |z|)`` is the least: then all gradients are differences of one number per image.

    Parameters
    ----------
    cycles
        What `gradient_cycles` returns for each pair, ``(E, n_pairs)`` int8. Phases of the pairs must not be wrapped.
    graph
        Network of the pairs, by `moraine_unwrap.pair_fit.kernels.pair_graph`.
    costs
        Cost of one cycle for every pair, unitless, at least 1; 1 by default.
    first_edge
        Number of the first edge, for errors.

    Returns
    -------
    Closed
        Missing pairs say nothing about the others and stay missing. Of several cheapest changes it is the one that
        changes the first pair the least, then the second, and so on.

    Raises
    ------
    ValueError
        The cycles of a pair would exceed 127.

    References
    ----------
    Pepe, A., Lanari, R. (2006): On the extension of the minimum cost flow algorithm for phase unwrapping of
    multitemporal differential SAR interferograms. IEEE TGRS 44(9), 2374-2383.

    Examples
    --------
    >>> graph = pair_graph(np.array([[0, 1], [1, 2], [0, 2]]), 3)
    >>> close_loops(np.array([[0, 0, 1], [1, 0, 1]], np.int8), graph).cycles.tolist()
    [[0, 0, 0], [1, 0, 1]]
    """
    closed = Closed(np.array(cycles, order="C"), np.zeros(len(cycles), np.uint16))
    prices = np.ones(len(graph.pairs), np.int64) if costs is None else np.array(costs, np.int64)
    edge, k = _cpu.close_loops(closed.cycles, graph, prices, closed.n_corrected)
    if edge >= 0:
        raise ValueError(
            f"pair {k} ({graph.pairs[k, 0]}, {graph.pairs[k, 1]}) would get more than {_cpu.MOST_CYCLES} cycles "
            f"on edge {first_edge + edge}"
        )
    return closed


def space_costs(
    net: Network,
    phase: Float64,
    cycles: Int8,
    costs: Int32,
    n_corrected: NDArray[Any] | None = None,
) -> tuple[Int32, Int32]:
    """Cycles and costs of the edges of one pair in the spatial step.

    Without `n_corrected` cycles and costs are taken as they are. With it, two witnesses are weighed. The cycles found
    in time have a vote: each cycle off them costs 50. The local statistics of the phase have their likelihood, with the
    costs s of `moraine_unwrap.flow.costs.statistical_costs` (100 for a cycle off a difference that fits its
    surroundings and has a variance of 1 rad^2), which grow as a parabola. The cheapest cycles are taken. Where both
    agree, to leave them costs ``s + 50``; where they disagree, to go over to the other costs only what its disadvantage
    is. All of it is multiplied by ``(costs - 1) / 99 / (1 + n)``, with the number n of pairs that were corrected on the
    edge: where many loops do not close, no pair is to be trusted. Costs are rounded, plus 1.

    Parameters
    ----------
    net
        Network of the vertices that are not missing.
    phase
        Phase of the pair at the vertices, ``(V,)`` float64, in radians; of missing ones anything.
    cycles
        Cycles found in time, ``(E,)`` int8; `NO_CYCLES` where they are not known: these edges have the most likely by
        themselves.
    costs
        Costs of the edges, ``(E, 1)`` int32, by `moraine_unwrap.flow.costs.edge_costs`.
    n_corrected
        Number of corrected pairs of each edge, ``(E,)``, by `close_loops`.

    Returns
    -------
    cycles
        Cycles to add to the phase difference of every edge, ``(E,)`` int32.
    costs
        Costs of one cycle off, ``(E, 1)``, or of one more and one less, ``(E, 2)``, int32, unitless, at least 1.
    """
    if n_corrected is None:
        return np.where(cycles == NO_CYCLES, flow.wrapped_cycles(phase, net.edges), cycles), costs
    likely, blended = statistical_costs(net, phase)
    _cpu.add_votes(likely, blended, cycles, VOTE_COST, (costs[:, 0] - 1) / (LENGTH_STEPS * (1.0 + n_corrected)))
    return likely, blended


def closed_cloud(
    net: Network,
    points: PointArray,
    spacing: tuple[float, float],
    n_corrected: NDArray[Any],
    spatial_cost: str = "statistical",
    weight: Float64 | None = None,
) -> ClosedCloud:
    """Return what all pairs share in the spatial step.

    Parameters
    ----------
    net
        Network of the points.
    points
        Their coordinates (azimuth, range), ``(n_points, 2)``, in pixels.
    spacing
        Pixel spacing in azimuth and range, in meters.
    n_corrected
        Number of corrected pairs of each edge, ``(E,)``, by `close_loops`.
    spatial_cost
        "constant", "length" or "statistical", see `space_costs`; the last begins with costs by length.
    weight
        Quality of every point, ``(n_points,)``, unitless, as in `moraine_unwrap.flow.costs.edge_costs`.

    Returns
    -------
    ClosedCloud
        Network, costs and corrections.
    """
    by_length = spatial_cost != "constant"
    return ClosedCloud(
        net,
        points[net.points],
        spacing,
        by_length,
        None if weight is None else of_vertices(net, weight, "weight"),
        edge_costs(net, "length" if by_length else "constant", weight),
        n_corrected if spatial_cost == "statistical" else None,
    )


def unwrap_gradients(
    cloud: ClosedCloud, ref: Float64, sec: Float64, cycles: Int8, *, earth_cost: int = 1, reference: int = 0
) -> Unwrapped:
    """Unwrap one pair from the cycles of its gradients: the spatial step.

    Where more than a tenth of the vertices is missing, the others are triangulated anew, as mcf-pc does. Edges that are
    new then have the cycles that are the most likely by themselves, and count as corrected as often as the mean edge.

    Parameters
    ----------
    cloud
        The points, and how often their edges were corrected.
    ref, sec
        Phases of both images by `image_phase`, ``(n_points,)`` float64, in radians.
    cycles
        Cycles to add to the difference of `vertex_phase` along each edge, ``(E,)`` int8.
    earth_cost
        Factor for the costs of the hull, unitless, at least 1.
    reference
        Point whose unwrapped phase is ``ref - sec``, not wrapped: so the loops of pairs close there. If it is missing,
        the first point that is not. In every other island it is the vertex that comes first on the curve.

    Returns
    -------
    Unwrapped
        Unwrapped phase ``ref - sec`` plus whole cycles, islands, and cost. Points at one place are within half a cycle
        of their vertex.

    Raises
    ------
    ArithmeticError
        The solution is not proven to be the cheapest.
    """
    net = cloud.net
    phase = vertex_phase(net, ref, sec)
    is_missing = np.isnan(phase)
    k, island = np.zeros(len(phase), np.int32), np.full(len(phase), -1, np.int32)
    if np.count_nonzero(is_missing) > MOST_MISSING * len(phase):
        valid = np.flatnonzero(~is_missing)
        part, cycles = _remade(cloud, valid, cycles)
    else:
        valid = np.arange(len(phase))
        part = cloud._replace(net=without(net, is_missing)) if is_missing.any() else cloud
    known = np.where(is_missing, 0.0, phase)[valid]
    wanted, costs = space_costs(part.net, known, cycles, part.costs, part.n_corrected)
    settled, cost = settle(part.net, wanted, costs, earth_cost)
    k[valid] = flow.integrate(part.net.to, part.net.origin, part.net.step, settled, len(valid))
    island[valid] = part.net.island
    own = ref - sec
    is_valid = np.isfinite(own)
    base = net.vertex[reference if is_valid[reference] else is_valid.argmax()] if is_valid.any() else np.int32(0)
    numbers = np.arange(len(phase), dtype=np.int32)
    of_vertex = leveled(net._replace(points=numbers, vertex=numbers), phase, k, island, cost, int(base))
    level = of_vertex.phase[net.vertex]
    of_point = np.where(is_valid, of_vertex.island[net.vertex], np.int32(-1))
    return Unwrapped(own + 2 * np.pi * np.rint((level - own) / (2 * np.pi)), of_point, cost)


def _remade(cloud: ClosedCloud, valid: NDArray[np.int64], cycles: Int8) -> tuple[ClosedCloud, Int8]:
    """Triangulate some vertices anew; return their cloud, and the cycles found in time."""
    net, row = remade(cloud.net, cloud.places, cloud.spacing, valid)
    is_old = row >= 0
    votes = np.full(len(row), NO_CYCLES)
    votes[is_old] = cycles[row[is_old]]
    n_corrected = cloud.n_corrected
    if n_corrected is not None:
        usual = float(n_corrected.mean()) if len(n_corrected) else 0.0
        n_corrected = np.where(is_old, n_corrected[row], usual)
    weight = None if cloud.weight is None else cloud.weight[valid]
    costs = edge_costs(net, "length" if cloud.by_length else "constant", weight)
    part = cloud._replace(net=net, places=cloud.places[valid], weight=weight, costs=costs, n_corrected=n_corrected)
    return part, votes


def emcf_pc(
    points: NDArray[Any],
    ph: NDArray[np.complex64],
    image_pairs: NDArray[Any] | None = None,
    *,
    spacing: tuple[float, float] = (1.0, 1.0),
    dates: Sequence[str] | None = None,
    weight: Float64 | None = None,
    earth_cost: int = 1,
    spatial_cost: str = "statistical",
    reference: int = 0,
) -> tuple[NDArray[np.float32], Int32]:
    """Unwrap pairs of images in time and space, all in memory.

    Parameters
    ----------
    points
        Coordinates (azimuth, range), ``(n_points, 2)``, in pixels.
    ph
        Phase history, ``(n_points, nimages)`` complex64, of any modulus.
    image_pairs
        Image pairs, ``(n_pairs, 2)``; by default each image with the next three.
    spacing
        Pixel spacing in azimuth and range, in meters.
    dates
        Dates of all images, YYYYMMDD, for temporal costs by length; without them all are 1.
    weight
        Quality of every point, ``(n_points,)``, unitless, 0 to 1.
    earth_cost
        Factor for the costs of the hull, unitless, at least 1.
    spatial_cost
        "constant", "length" or "statistical", see `space_costs`.
    reference
        Point whose phase is not wrapped.

    Returns
    -------
    unwrapped : ndarray
        Unwrapped phase, ``(n_points, n_pairs)`` float32, in radians; nan where an image is missing.
    pairs : ndarray
        Image pairs, ``(n_pairs, 2)`` int32.

    Examples
    --------
    >>> points = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> true = np.array([0.0, 1.5, 1.5, 3.0])[:, None] * np.arange(3)
    >>> unwrapped, pairs = emcf_pc(points, np.exp(1j * true).astype(np.complex64))
    >>> pairs.tolist(), unwrapped[3].round(2).tolist()
    ([[0, 1], [0, 2], [1, 2]], [-3.0, -6.0, -3.0])
    """
    nimages = ph.shape[1]
    if image_pairs is None:
        image_pairs = TempNet.from_bandwidth(nimages, min(BANDWIDTH, nimages)).image_pairs
    graph = pair_graph(image_pairs, nimages)
    net = shared_network(points, spacing=spacing)
    phase = [image_phase(ph[:, image]) for image in range(nimages)]
    cycles = np.empty((len(net.edges), len(graph.pairs)), np.int8)
    for k, (a, b) in enumerate(graph.pairs):
        cycles[:, k] = gradient_cycles(net, vertex_phase(net, phase[a], phase[b]), spatial_cost)
    closed = close_loops(cycles, graph, None if dates is None else length_costs(dates, graph.pairs.tolist()))
    cloud = closed_cloud(net, points, spacing, closed.n_corrected, spatial_cost, weight)
    out = np.empty((len(points), len(graph.pairs)), np.float32)
    for k, (a, b) in enumerate(graph.pairs):
        out[:, k] = unwrap_gradients(
            cloud, phase[a], phase[b], closed.cycles[:, k], earth_cost=earth_cost, reference=reference
        ).phase
    return out, graph.pairs
