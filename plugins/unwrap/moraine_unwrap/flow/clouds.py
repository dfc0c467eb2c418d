"""Clouds: all that pairs of one set of points share while they are unwrapped, and the cycles of one pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from moraine_unwrap.flow import _cpu
from moraine_unwrap.flow.costs import edge_costs, statistical_costs
from moraine_unwrap.flow.kernels import settle
from moraine_unwrap.flow.networks import Network, linked, network, of_vertices, without
from moraine_unwrap.flow.slopes._cpu import CELL
from moraine_unwrap.triangulation.kernels import triangulate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moraine_unwrap.flow.networks import Bool, Float64, Int32
    from moraine_unwrap.triangulation.kernels import PointArray

MOST_MISSING = 0.1
"""Share of missing vertices from which on the others are triangulated anew, unitless."""

LONGEST_LINK = 4.0
"""Edges across missing points link while they are not longer than this many edges of the whole cloud, unitless."""


class Cloud(NamedTuple):
    """A network of V vertices with what else unwrapping needs to know of them.

    Attributes
    ----------
    net
        The network.
    places
        Coordinates (azimuth, range) of the vertices, ``(V, 2)``, in pixels.
    spacing
        Pixel spacing in azimuth and range, in meters.
    spatial_cost
        "statistical", or as in `moraine_unwrap.flow.costs.edge_costs`.
    weight, variance
        As in `moraine_unwrap.flow.costs`, of the points; None without.
    costs
        Costs of the edges where they do not depend on the phase.
    is_core
        True for the vertices whose edges are those of a larger cloud that this is a part of, ``(V,)`` bool; None where
        this is all.
    """

    net: Network
    places: PointArray
    spacing: tuple[float, float]
    spatial_cost: str = "statistical"
    weight: Float64 | None = None
    variance: Float64 | None = None
    costs: Int32 | None = None
    is_core: Bool | None = None


class Cycles(NamedTuple):
    """Whole cycles of the vertices of a cloud.

    Attributes
    ----------
    cycles
        ``(V,)`` int32; 0 for the first vertex of every island and for missing ones.
    island
        Number of the island, ``(V,)`` int32, -1 for missing ones.
    cost
        Sum of what was paid for cycles on edges, unitless.
    """

    cycles: Int32
    island: Int32
    cost: int


def cloud(
    net: Network,
    points: PointArray,
    spacing: tuple[float, float],
    spatial_cost: str = "statistical",
    *,
    weight: Float64 | None = None,
    variance: Float64 | None = None,
    is_core: Bool | None = None,
) -> Cloud:
    """Prepare what all pairs of a set of points share.

    Parameters
    ----------
    net
        Network of the points.
    points
        Their coordinates (azimuth, range), ``(n_points, 2)``, in pixels.
    spacing
        Pixel spacing in azimuth and range, in meters.
    spatial_cost
        "statistical", "length" or "constant".
    weight, variance
        As in `moraine_unwrap.flow.costs`, ``(n_points,)``.
    is_core
        As in `Cloud`.

    Returns
    -------
    Cloud
        Without `is_core`, all edges link; else those with an end in the core.

    Raises
    ------
    ValueError
        If weights are not one for each point.
    """
    return _cloud(Cloud(net, points[net.points], spacing, spatial_cost, weight, variance, is_core=is_core))


def pair_cycles(whole: Cloud, phase: Float64, earth_cost: int = 1) -> Cycles:
    """Cheapest whole cycles of one pair.

    Where few vertices are missing, their triangles become holes in the network; where more than a tenth is, the others
    are triangulated anew. Edges of that triangulation that are new are longer than usual: those of more than four times
    the length of the edges around link nothing, so islands are apart for either reason: no edge, or only such.

    Parameters
    ----------
    whole
        The cloud.
    phase
        Wrapped phase of the vertices, ``(V,)`` float64, in radians, nan where it is missing.
    earth_cost
        Factor for edges of the hull, unitless, at least 1. Where the cloud is a part of a larger one, edges of the hull
        without an end in the core are none of the larger one's hull, and pay 1.

    Returns
    -------
    Cycles
        Whole cycles of the vertices and their islands.

    Raises
    ------
    ValueError, ArithmeticError
        As `moraine_unwrap.flow.kernels.fit_cycles`.
    """
    is_missing = np.isnan(phase)
    n_missing = int(is_missing.sum())
    if n_missing > MOST_MISSING * len(phase):
        valid = np.flatnonzero(~is_missing)
        part = _cycles(_remade(whole, valid), phase[valid], earth_cost)
        cycles, island = np.zeros(len(phase), np.int32), np.full(len(phase), -1, np.int32)
        cycles[valid], island[valid] = part.cycles, part.island
        return Cycles(cycles, island, part.cost)
    if n_missing:
        whole = whole._replace(net=without(whole.net, is_missing))
    return _cycles(whole, np.where(is_missing, 0.0, phase), earth_cost)


def _cycles(cloud: Cloud, phase: Float64, earth_cost: int) -> Cycles:
    """Cycles of a cloud; those of missing vertices are 0, whatever their phase."""
    net = cloud.net
    if cloud.costs is None:
        cycles, costs = statistical_costs(net, phase, cloud.variance, cloud.weight)
    else:
        cycles, costs = _cpu.wrapped_cycles(phase, net.edges), cloud.costs
    if cloud.is_core is not None and earth_cost > 1:
        edge = net.signed_edge[net.twin[len(net.signed_edge) :]]
        edge = np.where(edge < 0, ~edge, edge)
        edge = edge[cloud.is_core[net.edges[edge]].any(axis=1)]
        costs = costs.copy()
        costs[edge] *= earth_cost
        earth_cost = 1
    settled, cost = settle(net, cycles, costs, earth_cost)
    return Cycles(_cpu.integrate(net.to, net.origin, net.step, settled, len(phase)), net.island, cost)


def _cloud(cloud: Cloud) -> Cloud:
    """Add the costs that do not depend on the phase, and take out the links beyond the core."""
    net = cloud.net
    if cloud.is_core is not None:
        net = linked(net, net.is_link & cloud.is_core[net.edges].any(axis=1))
    costs = None if cloud.spatial_cost == "statistical" else edge_costs(net, cloud.spatial_cost, cloud.weight)
    return cloud._replace(net=net, costs=costs)


def remade(
    net: Network, places: PointArray, spacing: tuple[float, float], valid: NDArray[np.int64]
) -> tuple[Network, NDArray[np.int64]]:
    """Triangulate some vertices of a network anew.

    Parameters
    ----------
    net
        The network of all vertices.
    places
        Coordinates (azimuth, range) of its vertices, ``(V, 2)``, in pixels.
    spacing
        Pixel spacing in azimuth and range, in meters.
    valid
        The vertices to keep, ascending.

    Returns
    -------
    part : Network
        Their network. New edges of more than `LONGEST_LINK` times the length of the edges around do not link.
    row : ndarray
        Row in ``net.edges`` of each of its edges, ``(E',)`` int64; -1 for new ones.
    """
    kept = places[valid]
    part = network(kept, triangulate(kept, spacing, with_edges=False), spacing, is_sorted=True)
    ends = valid[part.edges]
    keys = net.edges[:, 0].astype(np.int64) << 32 | net.edges[:, 1]
    wanted = ends[:, 0] << 32 | ends[:, 1]
    at = np.searchsorted(keys, wanted)
    row = np.where(np.append(keys, -1)[at] == wanted, at, -1)
    step = part.position[part.edges[:, 1]] - part.position[part.edges[:, 0]]
    usual = net.cell_scale[ends // CELL].max(axis=1)
    return linked(part, (row >= 0) | (np.hypot(step[:, 0], step[:, 1]) <= LONGEST_LINK * usual)), row


def _remade(whole: Cloud, valid: NDArray[np.int64]) -> Cloud:
    """Triangulate some vertices of a cloud anew."""
    net, _ = remade(whole.net, whole.places, whole.spacing, valid)
    weight, variance = (
        None if values is None else of_vertices(whole.net, values, name)[valid]
        for values, name in ((whole.weight, "weight"), (whole.variance, "variance"))
    )
    is_core = None if whole.is_core is None else whole.is_core[valid]
    return _cloud(Cloud(net, whole.places[valid], whole.spacing, whole.spatial_cost, weight, variance, is_core=is_core))
