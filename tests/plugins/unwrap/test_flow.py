"""Whole cycles against linear programs, known optima and the absence of any cheaper way; one result for any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array

from moraine_unwrap.flow.costs import edge_costs, statistical_costs
from moraine_unwrap.flow.kernels import fit_cycles, unwrap
from moraine_unwrap.flow.networks import Network, along_curve, network, without
from moraine_unwrap.triangulation.kernels import triangulate

CYCLE = 2 * np.pi


def wrap(phase: Any) -> Any:
    return phase - CYCLE * np.round(phase / CYCLE)


def net_of(points: Any, spacing: tuple[float, float] = (1.0, 1.0)) -> Network:
    return network(points, triangulate(points, spacing), spacing)


def noisy_field() -> tuple[Network, Any]:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 100, 200), rng.uniform(0, 100, 200)
    phase = wrap(0.15 * x + 0.08 * y + 2 * np.sin(x / 15) + rng.normal(0, 1.2, 200))
    return net_of(np.stack([x, y], axis=1)), phase


def vortex() -> tuple[Network, Any]:
    points = np.random.default_rng(7).uniform(0, 100, (2, 60))
    return net_of(points.T), np.arctan2(points[1] - 50.2, points[0] - 49.7)


def wished_cycles(net: Network, phase: Any) -> Any:
    """Cycles that wrap the phase difference of every edge."""
    at = phase[net.points]
    return -np.round((at[net.edges[:, 1]] - at[net.edges[:, 0]]) / CYCLE).astype(np.int32)


def hull_factor(net: Network, earth_cost: int) -> Any:
    """Factor of the cost of every edge: edges of one triangle belong to the hull."""
    edge = np.where(net.signed_edge >= 0, net.signed_edge, ~net.signed_edge)
    return np.where(np.bincount(edge, minlength=len(net.edges)) == 1, earth_cost, 1)


def price(net: Network, cycles: Any, costs: Any, k: Any, earth_cost: int = 1, is_used: Any = None) -> int:
    """What vertices' cycles cost by the definition, edge by edge."""
    off = k[net.edges[:, 1]].astype(int) - k[net.edges[:, 0]] - cycles
    each = np.where(off > 0, off * costs[:, 0], -off * costs[:, -1]) * hull_factor(net, earth_cost)
    return int(each.sum() if is_used is None else each[is_used].sum())


def least_price(net: Network, cycles: Any, costs: Any, earth_cost: int = 1, is_used: Any = None) -> float:
    """The optimum by linear programming over the cycles of the vertices: no triangles, no flow."""
    used = np.arange(len(net.edges)) if is_used is None else np.flatnonzero(is_used)
    n, m = len(net.points), len(used)
    row = np.arange(m)
    first, second = net.edges[used].T
    values = np.concatenate([np.ones(m), -np.ones(m), -np.ones(m), np.ones(m)])
    columns = np.concatenate([second, first, n + row, n + m + row])
    equal = csr_array((values, (np.tile(row, 4), columns)), shape=(m, n + 2 * m))
    up, down = (costs[used, side] * hull_factor(net, earth_cost)[used] for side in (0, -1))
    bounds = [(None, None)] * n + [(0, None)] * (2 * m)
    return float(linprog(np.concatenate([np.zeros(n), up, down]), A_eq=equal, b_eq=cycles[used], bounds=bounds).fun)


@pytest.mark.parametrize(
    ("make", "sizes", "earth_cost", "spatial_cost", "optimum"),
    [
        (noisy_field, (382, 581, 16), 1, "constant", 55),
        (noisy_field, (382, 581, 16), 3, "constant", 63),
        (noisy_field, (382, 581, 16), 1, "length", 3994),
        (noisy_field, (382, 581, 16), 3, "length", 4196),
        (vortex, (107, 166, 11), 1, "constant", 6),
        (vortex, (107, 166, 11), 3, "constant", 8),
        (vortex, (107, 166, 11), 100, "constant", 105),
    ],
)
def test_known_fields_cost_what_other_solvers_found(make, sizes, earth_cost, spatial_cost, optimum):
    net, phase = make()
    n_half = len(net.signed_edge)
    assert (n_half // 3, len(net.edges), len(net.twin) - n_half) == sizes
    costs = edge_costs(net, spatial_cost)
    found = unwrap(net, phase, costs=costs, earth_cost=earth_cost)
    k = np.round((found.phase - phase) / CYCLE).astype(int)[net.points]
    assert found.cost == optimum == price(net, wished_cycles(net, phase), costs, k, earth_cost)


@pytest.mark.parametrize(("earth_cost", "cost"), [(1, 1), (3, 3)])
def test_a_single_residue_goes_to_the_earth(earth_cost, cost):
    net = net_of(np.array([[0, 0], [10, 0], [0, 10]]))
    found = unwrap(net, np.array([0.0, 2.0, -2.0]), costs=edge_costs(net), earth_cost=earth_cost)
    assert found.cost == cost


@pytest.mark.parametrize("seed", range(12))
def test_the_cost_is_that_of_the_linear_program(seed):
    """Costs of both directions differ, some are 0, and edges ask for cycles that contradict each other badly."""
    rng = np.random.default_rng(seed)
    points = np.unique(rng.integers(0, 12, (60, 2)), axis=0)
    net = net_of(points)
    cycles = rng.integers(-2, 3, len(net.edges)).astype(np.int32)
    costs = rng.integers(0, 9, (len(net.edges), 1 + seed % 2)).astype(np.int32)
    earth_cost = 1 + seed % 4
    found = fit_cycles(net, cycles, costs, earth_cost)
    assert found.cost == price(net, cycles, costs, found.cycles, earth_cost)
    assert found.cost == pytest.approx(least_price(net, cycles, costs, earth_cost))


@pytest.mark.parametrize("seed", range(8))
def test_missing_points_are_as_if_their_edges_were_not_there(seed):
    rng = np.random.default_rng(seed)
    net = net_of(np.unique(rng.integers(0, 12, (70, 2)), axis=0))
    cycles = rng.integers(-1, 2, len(net.edges)).astype(np.int32)
    costs = rng.integers(1, 5, (len(net.edges), 1)).astype(np.int32)
    is_missing = rng.random(len(net.points)) < (0.05, 0.2, 0.5, 0.8)[seed % 4]
    is_used = ~is_missing[net.edges].any(axis=1)
    found = fit_cycles(without(net, is_missing), cycles, costs)
    assert found.cost == price(net, cycles, costs, found.cycles, is_used=is_used)
    assert found.cost == pytest.approx(least_price(net, cycles, costs, is_used=is_used))


def test_no_closed_way_through_the_triangles_is_cheaper_than_the_result():
    """Bellman and Ford find no negative cycle in the residual network, and every triangle ends without a residue."""
    net, phase = noisy_field()
    cycles, costs = statistical_costs(net, phase[net.points])
    k = fit_cycles(net, cycles, costs, 2).cycles
    flow = k[net.edges[:, 1]] - k[net.edges[:, 0]] - cycles
    edge = np.where(net.signed_edge >= 0, net.signed_edge, ~net.signed_edge)
    sign = np.where(net.signed_edge >= 0, 1, -1)
    np.testing.assert_array_equal((sign * (cycles + flow)[edge]).reshape(-1, 3).sum(axis=1), 0)
    n_tri = len(edge) // 3
    ways = []
    for e in range(len(net.edges)):
        factor = hull_factor(net, 2)[e]
        up, down = costs[e] * factor
        halves = np.flatnonzero(edge == e)
        inner = halves[0] // 3
        outer = halves[1] // 3 if len(halves) == 2 else n_tri
        left, right = (inner, outer) if sign[halves[0]] > 0 else (outer, inner)
        ways.append((left, right, up if flow[e] >= 0 else -down))  # one cycle more on the edge
        ways.append((right, left, down if flow[e] <= 0 else -up))
    tail, head, cost = np.array(ways).T
    distance = np.zeros(n_tri + 1, np.int64)
    for _ in range(n_tri + 2):
        before = distance.copy()
        np.minimum.at(distance, head, before[tail] + cost)
        if (distance == before).all():
            break
    else:
        pytest.fail("a negative cycle remains")


def test_results_do_not_depend_on_the_order_of_points():
    rng = np.random.default_rng(3)
    n = 2000
    points = np.unique(rng.integers(0, 60, (n, 2)), axis=0)  # a raster with holes: many triangulations, many optima
    n = len(points)
    phase = wrap(0.9 * points[:, 0] + rng.normal(0, 1.1, n))
    phase[rng.random(n) < 0.05] = np.nan
    weight = rng.random(n)
    net = net_of(points, (14.0, 2.3))
    reference = int(np.flatnonzero(np.isfinite(phase))[10])
    whole = unwrap(net, phase, weight=weight, reference=reference)
    constant = unwrap(net, phase, costs=edge_costs(net), reference=reference)
    for _ in range(3):
        order = rng.permutation(n)
        mixed = net_of(points[order], (14.0, 2.3))
        at = int(np.flatnonzero(order == reference)[0])
        other = unwrap(mixed, phase[order], weight=weight[order], reference=at)
        np.testing.assert_array_equal(other.phase, whole.phase[order])
        np.testing.assert_array_equal(other.island, whole.island[order])
        plain = unwrap(mixed, phase[order], costs=edge_costs(mixed), reference=at)
        np.testing.assert_array_equal(plain.phase, constant.phase[order])


def test_a_smooth_phase_of_a_raster_comes_back_exactly():
    points = np.argwhere(np.ones((40, 30), bool))
    truth = points @ np.array([1.0, 0.5])
    net = net_of(points)
    for costs in (edge_costs(net), edge_costs(net, "length"), None):
        found = unwrap(net, wrap(truth), costs=costs)
        np.testing.assert_allclose(found.phase - found.phase[0], truth, atol=1e-9)
        assert found.cost == 0


def test_little_noise_makes_few_errors():
    rng = np.random.default_rng(1)
    points = rng.uniform(0, 55, (3000, 2))
    truth = points @ np.array([0.8, -0.5]) + rng.normal(0, 0.3, 3000)
    net = net_of(points)
    for costs in (edge_costs(net), None):
        off = np.round((unwrap(net, wrap(truth), costs=costs).phase - truth) / CYCLE)
        assert np.mean(off != np.median(off)) < 0.01


def test_rewrapping_gives_the_phase_and_the_reference_keeps_its_own():
    net, phase = noisy_field()
    for reference in (0, 117):
        found = unwrap(net, phase, reference=reference)
        np.testing.assert_allclose(np.exp(1j * found.phase), np.exp(1j * phase), atol=1e-12)
        assert found.phase[reference] == phase[reference]
        assert set(found.island) == {0}
    np.testing.assert_array_equal(unwrap(net, np.exp(1j * phase) * 7).island, 0)
    np.testing.assert_allclose(unwrap(net, np.exp(1j * phase) * 7).phase, unwrap(net, phase).phase, atol=1e-12)


def test_differences_of_exactly_half_a_cycle_are_the_same_from_both_sides():
    """The wrapped difference is antisymmetric, so an edge between two triangles adds no residue of its own."""
    net = net_of(np.array([[0, 0], [0, 2], [2, 0], [2, 2]]))
    for phase in ([0.0, np.pi, np.pi, 0.0], [-np.pi, 0.0, 0.0, np.pi], [np.pi, np.pi, -np.pi, -np.pi]):
        found = unwrap(net, np.array(phase), costs=edge_costs(net))
        k = np.round((found.phase - phase) / CYCLE).astype(int)[net.points]
        assert found.cost == price(net, wished_cycles(net, np.array(phase)), edge_costs(net), k)


def test_missing_points_stay_missing_and_do_not_matter():
    rng = np.random.default_rng(5)
    points = np.argwhere(np.ones((30, 30), bool))
    truth = 0.7 * points[:, 0] + rng.normal(0, 0.2, 900)
    phase = wrap(truth)
    is_missing = rng.random(900) < 0.15
    phase[is_missing] = rng.choice([np.nan, np.inf, -np.inf], is_missing.sum())
    net = net_of(points)
    for costs in (None, edge_costs(net)):
        found = unwrap(net, phase, costs=costs)
        np.testing.assert_array_equal(np.isnan(found.phase), is_missing)
        np.testing.assert_array_equal(found.island < 0, is_missing)
        main = found.island == 0
        assert main.sum() > 0.95 * (~is_missing).sum()
        shift = (found.phase - truth)[main]
        np.testing.assert_allclose(shift, shift[0], atol=1e-9)
    zero = np.where(is_missing, 0, np.exp(1j * np.nan_to_num(phase, posinf=0.0, neginf=0.0)))
    np.testing.assert_array_equal(np.isnan(unwrap(net, zero).phase), is_missing)


def test_a_wall_of_missing_points_makes_two_islands():
    points = np.argwhere(np.ones((11, 20), bool))
    truth = 0.4 * points[:, 0] + 0.1 * points[:, 1]
    phase = wrap(truth)
    phase[points[:, 0] == 5] = np.nan
    found = unwrap(net_of(points), phase)
    above, below = points[:, 0] < 5, points[:, 0] > 5
    assert {tuple(set(found.island[part])) for part in (above, below)} == {(0,), (1,)}
    for part in (above, below):
        np.testing.assert_allclose(np.ptp((found.phase - truth)[part]), 0, atol=1e-9)
    assert found.phase[0] == phase[0]


def test_a_missing_reference_is_replaced_by_the_first_point():
    net, phase = noisy_field()
    phase[:3] = np.nan
    assert unwrap(net, phase).phase[3] == phase[3]


@pytest.mark.parametrize(
    ("points", "truth"),
    [
        ([], []),
        ([[4, 5]], [1.0]),
        ([[4, 5], [4, 9]], [3.0, 5.0]),
        ([[0, 0], [3, 3], [1, 1], [2, 2]], [3.0, 9.0, 5.0, 7.0]),
    ],
)
def test_few_points_and_points_on_a_line_are_unwrapped_along_it(points, truth):
    net = net_of(np.array(points, np.int32).reshape(-1, 2))
    truth = np.array(truth)
    for costs in (edge_costs(net), edge_costs(net, "length", np.ones(len(truth))), None):
        found = unwrap(net, wrap(truth), costs=costs)
        np.testing.assert_allclose(found.phase, truth + (wrap(truth) - truth)[:1], atol=1e-12)
        assert found.cost == 0


def test_nothing_is_left_when_all_points_are_missing():
    net, phase = noisy_field()
    found = unwrap(net, np.full_like(phase, np.nan))
    assert np.isnan(found.phase).all()
    assert (found.island == -1).all()
    assert found.cost == 0


def test_points_at_one_place_keep_their_phases_and_are_not_half_a_cycle_apart():
    points = np.argwhere(np.ones((5, 8), bool))
    twice = np.concatenate([points, points[[3, 20, 20]]])
    truth = 1.1 * twice[:, 0] + 0.8 * twice[:, 1] + np.array([0.0] * 40 + [0.5, 2.0, -1.0])
    found = unwrap(net_of(twice), wrap(truth))
    np.testing.assert_allclose(wrap(found.phase - truth), 0, atol=1e-12)
    for copy, first in ((40, 3), (41, 20), (42, 20)):
        assert abs(found.phase[copy] - found.phase[first]) <= np.pi
    order = np.random.default_rng(2).permutation(43)
    mixed = unwrap(net_of(twice[order]), wrap(truth)[order], reference=int(np.flatnonzero(order == 0)[0]))
    np.testing.assert_array_equal(mixed.phase, found.phase[order])


def test_far_residues_are_paired_across_the_cloud():
    """A dislocation: searches of every length, of which the cost is known from the geometry of a square raster."""
    points = np.argwhere(np.ones((60, 60), bool))
    plus = np.arctan2(points[:, 0] - 20.4, points[:, 1] - 29.6)
    minus = np.arctan2(points[:, 0] - 40.6, points[:, 1] - 29.6)
    net = net_of(points)
    phase = wrap(plus - minus)
    found = unwrap(net, phase, costs=edge_costs(net))
    cycles = wished_cycles(net, phase)
    assert found.cost == pytest.approx(least_price(net, cycles, edge_costs(net)))


def test_a_ring_around_one_point_is_solved_at_the_least_cost():
    """Every triangle is at the hull, and one vertex has all the others as neighbors."""
    angle = np.linspace(0, CYCLE, 200, endpoint=False)
    ring = np.round(1000 * np.stack([np.cos(angle), np.sin(angle)], axis=1)).astype(int)
    net = net_of(np.concatenate([[[0, 0]], ring]))
    phase = np.random.default_rng(0).uniform(-np.pi, np.pi, 201)
    cycles = wished_cycles(net, phase)
    for earth_cost in (1, 5):
        found = fit_cycles(net, cycles, edge_costs(net), earth_cost)
        assert found.cost == price(net, cycles, edge_costs(net), found.cycles, earth_cost)
        assert found.cost == pytest.approx(least_price(net, cycles, edge_costs(net), earth_cost))


@given(st.integers(0, 2**32 - 1), st.integers(3, 25), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_any_small_network_is_solved_at_the_least_cost(seed, n, earth_cost):
    rng = np.random.default_rng(seed)
    net = net_of(rng.integers(0, 5, (n, 2)))
    phase = rng.uniform(-np.pi, np.pi, n)
    phase[rng.random(n) < 0.1] = np.nan
    for costs in (edge_costs(net), None):
        found = unwrap(net, phase, costs=costs, earth_cost=earth_cost)
        is_valid = np.isfinite(phase)
        np.testing.assert_allclose(wrap(found.phase - phase)[is_valid], 0, atol=1e-9)
        np.testing.assert_array_equal(np.isnan(found.phase), ~is_valid)


def test_the_curve_puts_equal_cells_in_the_order_of_coordinates():
    rng = np.random.default_rng(8)
    ground = np.concatenate([rng.uniform(0, 1e-7, (50, 2)), [[1e6, 1e6]]])
    order = along_curve(ground)
    inside = ground[order[order < 50]]
    np.testing.assert_array_equal(np.lexsort((inside[:, 1], inside[:, 0])), np.arange(50))
    mixed = rng.permutation(51)
    np.testing.assert_array_equal(mixed[along_curve(ground[mixed])], order)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net, phase: unwrap(net, phase[:-1]), r"phase has shape \(199,\); expected \(200,\)"),
        (lambda net, phase: unwrap(net, phase, reference=200), "reference is point 200; expected 0 to 199"),
        (lambda net, phase: unwrap(net, phase, reference=-1), "reference is point -1; expected 0 to 199"),
        (lambda net, phase: unwrap(net, phase, earth_cost=0), "earth_cost is 0; expected at least 1"),
        (
            lambda net, phase: unwrap(net, phase, costs=edge_costs(net) - 2),
            "costs of edges are -1 to -1 with earth_cost 1; expected 0 or more",
        ),
        (
            lambda net, phase: unwrap(net, phase, costs=edge_costs(net) * 100, earth_cost=2**30),
            "costs of edges are 100 to 100 with earth_cost 1073741824",
        ),
    ],
)
def test_wrong_calls_are_refused_in_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call(*noisy_field())
