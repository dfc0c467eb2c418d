"""Array functions of unwrapping in space: the cheapest whole cycles of a network, and an unwrapped interferogram.

Unwrapped phases are ``phase + 2 pi k`` with one whole number k per point. An edge of the triangulation from p to q says
by how many cycles ``k[q] - k[p]`` should differ, and a cost says what one cycle more or less costs. Only where these
wishes contradict each other around a triangle, at residues, is there anything to decide: the cheapest decision is a
flow of least cost through the triangles (Costantini, 1998).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_unwrap.flow import _cpu
from moraine_unwrap.flow.costs import statistical_costs
from moraine_unwrap.flow.networks import of_vertices, without

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moraine_unwrap.flow.networks import Float64, Int32, Network, Vertices

MOST_COST = 2**31 - 1
"""Largest cost of an edge, earth cost included: costs are int32."""


class CycleFit(NamedTuple):
    """The cheapest whole cycles.

    Attributes
    ----------
    cycles
        Whole cycles of every vertex, ``(V,)`` int32; 0 for the first vertex of every island and for missing ones.
    cost
        Sum over the edges of their cost times the cycles by which they were changed, unitless.
    """

    cycles: Int32
    cost: int


class Unwrapped(NamedTuple):
    """An unwrapped phase.

    Attributes
    ----------
    phase
        Unwrapped phase in radians, ``(n_points,)`` float64; nan where it is missing.
    island
        Number of the connected part that a point belongs to, ``(n_points,)`` int32, -1 where the phase is missing.
        Between islands the whole cycles are not known.
    cost
        Sum of what was paid for cycles on edges, unitless.
    """

    phase: Float64
    island: Int32
    cost: int


def fit_cycles(net: Network, cycles: Int32, costs: Int32, earth_cost: int = 1) -> CycleFit:
    """Cheapest whole cycles k of the vertices, which minimize ``sum(cost |k[q] - k[p] - cycles|)`` over edges (p, q).

    Exact: successive shortest paths find the flow through the triangles that removes all residues at the least cost,
    and the cycles are then summed along edges. Of several optima the network decides, not the order of the points.

    Parameters
    ----------
    net
        A network.
    cycles
        Cycles that each edge of ``net.edges`` asks for, ``(E,)`` int32.
    costs
        Cost of one cycle off the demand, ``(E, 1)`` int32, or of one too many and one too few, ``(E, 2)``; 0 or more.
    earth_cost
        Factor for the edges of the hull, unitless, at least 1.

    Returns
    -------
    CycleFit
        Cycles of the vertices and total cost.

    Raises
    ------
    ValueError
        If the earth cost is below 1, or a cost is negative or exceeds 2**31 - 1.
    ArithmeticError
        If the flow that was found leaves a residue, or its potentials do not prove that it is the cheapest.

    References
    ----------
    Costantini, M. (1998): A novel phase unwrapping method based on network programming. IEEE TGRS 36(3), 813-821.
    Costantini, M., Rosen, P. A. (1999): A generalized phase unwrapping approach for sparse data. IGARSS, 267-269.
    Ahuja, R. K., Magnanti, T. L., Orlin, J. B. (1993): Network Flows, chapter 9.
    """
    edge_cycles, cost = settle(net, cycles, costs, earth_cost)
    return CycleFit(_cpu.integrate(net.to, net.origin, net.step, edge_cycles, len(net.points)), cost)


def settle(net: Network, cycles: Int32, costs: Int32, earth_cost: int = 1) -> tuple[Int32, int]:
    """Cheapest cycles of the edges that do not contradict each other around any triangle, and what they cost.

    Parameters and errors are those of `fit_cycles`; the cycles of the edges are ``(E,)`` int32.
    """
    if earth_cost < 1:
        raise ValueError(f"earth_cost is {earth_cost}; expected at least 1")
    if costs.size and (costs.min() < 0 or int(costs.max()) * earth_cost > MOST_COST):
        raise ValueError(
            f"costs of edges are {costs.min()} to {costs.max()} with earth_cost {earth_cost}; expected 0 or more, and "
            f"products of at most {MOST_COST}"
        )
    cost = _cpu.arc_costs(net.signed_edge, net.twin, costs, earth_cost)
    n_nodes = len(net.signed_edge) // 3 + len(net.start)
    supply = _cpu.supplies(net.head, net.twin, _cpu.residues(net.signed_edge, cycles), n_nodes)
    flow, total, potential = _cpu.min_cost_flow(net.twin, net.head, net.start, net.arcs, cost, supply)
    if supply.any() or not _cpu.is_optimal(net.twin, net.head, cost, flow, potential):
        raise ArithmeticError("the flow does not remove all residues at the least cost: its potentials do not prove it")
    settled = cycles.copy()
    _cpu.add_flow(net.signed_edge, net.twin, flow, settled)
    return settled, int(total)


def unwrap(
    net: Network,
    phase: NDArray[Any],
    *,
    costs: Int32 | None = None,
    variance: Float64 | None = None,
    weight: Float64 | None = None,
    earth_cost: int = 1,
    reference: int = 0,
) -> Unwrapped:
    """Unwrap one interferogram of points.

    Parameters
    ----------
    net
        Network of the points.
    phase
        Wrapped phase of every point, ``(n_points,)``: real, in radians, or complex, of any modulus. What is nan or
        infinite, or 0 and complex, is missing.
    costs
        What `edge_costs` returns; without it `statistical_costs` are made from the phase.
    variance, weight
        As in `statistical_costs`, for which alone they are used.
    earth_cost
        Factor for the costs of the hull, unitless, at least 1.
    reference
        Point that keeps its wrapped phase; if it is missing, the first point that is not. In every other island the
        vertex that comes first on the curve keeps its own.

    Returns
    -------
    Unwrapped
        Unwrapped phase, which differs from the wrapped by whole cycles, and islands. Points at one place are within
        half a cycle of the one of them with the smallest wrapped phase.

    Raises
    ------
    ValueError
        If the phase is not one for each point, or the reference is none of them.

    Examples
    --------
    >>> from moraine_unwrap.flow.networks import network
    >>> from moraine_unwrap.triangulation.kernels import triangulate
    >>> points = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> net = network(points, triangulate(points))
    >>> unwrap(net, np.array([2.0, 3.0, -3.0, -2.0])).phase.round(2).tolist()
    [2.0, 3.0, 3.28, 4.28]
    """
    n_points = len(net.vertex)
    if phase.shape != (n_points,):
        raise ValueError(f"phase has shape {phase.shape}; expected ({n_points},), one for each point of the network")
    if n_points and not 0 <= reference < n_points:
        raise ValueError(f"reference is point {reference}; expected 0 to {n_points - 1}")
    wrapped = np.where(net.island[net.vertex] >= 0, _radians(phase), np.nan)
    of_vertex = of_vertices(net, wrapped, "phase")
    is_missing = np.isnan(of_vertex)
    if (is_missing & (net.island >= 0)).any():
        net = without(net, is_missing)
    known = np.where(is_missing, 0.0, of_vertex)
    if costs is None:
        cycles, costs = statistical_costs(net, known, variance, weight)
    else:
        cycles = _cpu.wrapped_cycles(known, net.edges)
    fit = fit_cycles(net, cycles, costs, earth_cost)
    return leveled(net, wrapped, fit.cycles, net.island, fit.cost, reference)


def leveled(net: Vertices, wrapped: Float64, cycles: Int32, island: Int32, cost: int, reference: int) -> Unwrapped:
    """Unwrapped phase of the points from the cycles of the vertices; the reference keeps its wrapped phase.

    Parameters
    ----------
    net
        Tells which points the vertices stand for.
    wrapped
        Wrapped phase of every point, ``(n_points,)`` float64, in radians, nan where it is missing.
    cycles, island
        Whole cycles of every vertex, and the number of its island, -1 where it is missing, ``(V,)`` int32.
    cost
        What was paid for them, unitless.
    reference
        As in `unwrap`.

    Returns
    -------
    Unwrapped
        As `unwrap` says.
    """
    is_valid = np.isfinite(wrapped)
    label = np.where(is_valid, island[net.vertex], np.int32(-1))
    k = cycles
    if is_valid.any():
        base = net.vertex[reference if is_valid[reference] else is_valid.argmax()]
        k = np.where(island == island[base], k - k[base], k)
    if len(net.points) == len(net.vertex):
        return Unwrapped(wrapped + 2 * np.pi * k[net.vertex], label, cost)
    level = (of_vertices(net, wrapped, "phase") + 2 * np.pi * k)[net.vertex]
    return Unwrapped(wrapped + 2 * np.pi * np.rint((level - wrapped) / (2 * np.pi)), label, cost)


def image_phase(ph: NDArray[np.complexfloating[Any, Any]]) -> Float64:
    """Phase of samples.

    Parameters
    ----------
    ph
        Phase history or any part of it, complex, of any shape and modulus. A sample that is nan, infinite or of a
        modulus below 1e-30 is missing.

    Returns
    -------
    ndarray
        Phase in radians, of the same shape, float64, nan where it is missing.

    Examples
    --------
    >>> image_phase(np.array([1j, 0], np.complex64)).round(4).tolist()
    [1.5708, nan]
    """
    phase: Float64 = _cpu.image_phase(ph.ravel())
    return phase.reshape(ph.shape)


def _radians(phase: NDArray[Any]) -> Float64:
    """Phase in radians, nan where it is missing."""
    if phase.dtype.kind == "c":
        return image_phase(phase)
    return np.where(np.isfinite(phase), phase, np.nan).astype(np.float64)
