"""Costs against their formulas; slopes and variances against the ones that made the phase; shares of right cycles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moraine_unwrap.flow.costs import edge_costs, statistical_costs
from moraine_unwrap.flow.kernels import unwrap
from moraine_unwrap.flow.networks import Network, network
from moraine_unwrap.triangulation.kernels import triangulate

CYCLE = 2 * np.pi


def wrap(phase: Any) -> Any:
    return phase - CYCLE * np.round(phase / CYCLE)


def cloud(n: int = 4000, seed: int = 0) -> tuple[Any, Network]:
    """About one point for each square unit."""
    points = np.random.default_rng(seed).uniform(0, n**0.5, (n, 2))
    return points, network(points, triangulate(points))


def right_share(found: Any, truth: Any, part: Any = slice(None)) -> float:
    k = np.round((found.phase - truth) / CYCLE)[part]
    return float(np.unique(k, return_counts=True)[1].max() / len(k))


def test_costs_by_length_and_weight_are_those_of_the_formula():
    points, net = cloud(300)
    weight = np.random.default_rng(1).uniform(-0.2, 1.2, 300)
    weight[7] = np.nan
    ends = net.points[net.edges]
    length = np.hypot(*(points[ends[:, 1]] - points[ends[:, 0]]).T)
    for spatial_cost in ("constant", "length"):
        for given in (None, weight):
            expected = []
            for (p, q), far in zip(ends, length, strict=True):
                share = min(np.median(length) / far, 1) if spatial_cost == "length" else 1.0
                if given is not None:
                    share *= min(*(0.0 if np.isnan(w) else min(max(w, 0.0), 1.0) for w in (given[p], given[q])))
                expected.append(1 + round(99 * share))
            if spatial_cost == "constant" and given is None:
                expected = [1] * len(ends)
            np.testing.assert_array_equal(edge_costs(net, spatial_cost, given)[:, 0], expected)


def test_weights_move_the_jump_to_bad_points():
    """A pair of residues with two ways between them: the jump takes the one along points of no weight."""
    points = np.argwhere(np.ones((9, 9), bool))
    net = network(points, triangulate(points))
    jump = np.where((points[:, 0] > 4) & (points[:, 1] >= 3) & (points[:, 1] <= 5), CYCLE / 2, 0.0)
    weight = np.where(points[:, 0] > 4, 0.05, 1.0)
    plain = unwrap(net, wrap(jump), costs=edge_costs(net))
    weighted = unwrap(net, wrap(jump), costs=edge_costs(net, weight=weight))
    assert weighted.cost <= 100 * plain.cost
    good = points[:, 0] <= 4
    np.testing.assert_array_equal(weighted.phase[good], 0.0)


@pytest.mark.parametrize("slope", [(0.0, 0.0), (1.5, 0.4), (-2.0, 1.2), (0.3, 2.6)])
def test_a_plane_asks_for_its_own_cycles_on_every_edge_of_usual_length(slope):
    """Also where a difference exceeds half a cycle, which wrapping alone always gets wrong."""
    points, net = cloud()
    truth = points @ np.array(slope)
    cycles, costs = statistical_costs(net, wrap(truth)[net.points])
    ends = net.points[net.edges]
    step = points[ends[:, 1]] - points[ends[:, 0]]
    is_usual = np.hypot(*step.T) < 1.9
    difference = wrap(truth)[ends[:, 1]] - wrap(truth)[ends[:, 0]]
    expected = np.round((step @ np.array(slope) - difference) / CYCLE)
    np.testing.assert_array_equal(cycles[is_usual], expected[is_usual])
    assert costs.min() >= 1
    assert right_share(unwrap(net, wrap(truth)), truth) > 0.998  # but for corners on the hull, far from all others


def test_costs_are_those_of_the_likelihood_with_the_variance_of_the_noise():
    """Without a slope: ``1 + round(100 (pi +- r) / (pi v))``, and v near the variance of a difference, 2 sigma^2."""
    rng = np.random.default_rng(4)
    _, net = cloud(20000)
    sigma = 0.5
    phase = wrap(rng.normal(0, sigma, 20000))[net.points]
    cycles, costs = statistical_costs(net, phase)
    rest = phase[net.edges[:, 1]] - phase[net.edges[:, 0]] + CYCLE * cycles
    variance = 200 / (costs.sum(axis=1) - 2)  # the sum over both directions does not depend on r
    assert np.median(variance) == pytest.approx(2 * sigma**2, rel=0.1)
    r = np.pi * (costs[:, 0] - costs[:, 1]) / (costs.sum(axis=1) - 2)
    assert np.median(np.abs(r - rest)) < 0.1  # the slopes that are found in noise are small


def test_given_variances_count_and_those_of_the_neighborhood_are_added():
    rng = np.random.default_rng(4)
    _, net = cloud(8000)
    sigma = rng.choice([0.1, 0.8], 8000)
    phase = wrap(rng.normal(0, sigma))[net.points]
    _, costs = statistical_costs(net, phase, sigma**2)
    variance = 200 / (costs.sum(axis=1) - 2)
    ends = sigma[net.points[net.edges]]
    for pair in ((0.1, 0.1), (0.1, 0.8), (0.8, 0.8)):
        of_pair = np.sort(ends, axis=1) == pair
        expected = pair[0] ** 2 + pair[1] ** 2
        assert expected < np.median(variance[of_pair.all(axis=1)]) < expected + 0.15


def test_weights_scale_the_statistical_costs():
    _, net = cloud(500)
    phase = np.random.default_rng(2).uniform(-np.pi, np.pi, 500)
    full = statistical_costs(net, phase)[1] - 1
    half = statistical_costs(net, phase, weight=np.full(500, 0.5))[1] - 1
    np.testing.assert_allclose(half, full / 2, atol=1)


def test_pure_noise_has_no_slope():
    _, net = cloud(20000)
    phase = np.random.default_rng(6).uniform(-np.pi, np.pi, 20000)
    cycles, _ = statistical_costs(net, phase)
    wrapped = -np.round((phase[net.edges[:, 1]] - phase[net.edges[:, 0]]) / CYCLE)
    assert np.mean(cycles != wrapped) < 0.02


def test_the_scale_follows_the_density_of_the_points():
    """A cloud that is 16 times as dense on one side, with a slope near half a cycle per edge on both sides."""
    rng = np.random.default_rng(9)
    dense, sparse = rng.uniform((0, 0), (20, 20), (6400, 2)), rng.uniform((20, 0), (100, 80), (6400, 2))
    points = np.concatenate([dense, sparse])
    truth = np.where(points[:, 0] < 20, 8 * (points[:, 0] - 20), 2 * (points[:, 0] - 20)) + rng.normal(0, 0.3, 12800)
    net = network(points, triangulate(points))
    found, plain = unwrap(net, wrap(truth)), unwrap(net, wrap(truth), costs=edge_costs(net))
    for part in (points[:, 0] < 20, points[:, 0] > 20):
        assert right_share(found, truth, part) > 0.98
        assert right_share(plain, truth, part) < 0.5


@pytest.mark.parametrize("slope", [(1.0, 0.5), (-2.5, 0.2), (3.0, -0.1)])
def test_a_slope_of_less_than_half_a_cycle_per_pixel_is_not_taken_for_one_of_more(slope):
    """On a raster whose pixels are long, slopes a cycle per pixel apart look the same; the smaller one is meant."""
    points = np.argwhere(np.ones((60, 60), bool))
    truth = points @ np.array(slope)
    net = network(points, triangulate(points, (14.0, 3.0)), (14.0, 3.0))
    assert right_share(unwrap(net, wrap(truth)), truth) == 1


@pytest.mark.parametrize("seed", [0, 1])
def test_statistics_get_more_cycles_right_than_constant_costs(seed):
    """1 rad of noise on a bowl with slopes up to 2 rad per edge: near the share that whole cycles of noise allow."""
    rng = np.random.default_rng(seed)
    points, net = cloud(30000, seed)
    away = points - points.mean(axis=0)
    bowl = np.exp(-(away**2).sum(axis=1) / (2 * 26**2))
    truth = 2 * 26 * np.exp(0.5) * bowl + rng.normal(0, 1, 30000)
    share = right_share(unwrap(net, wrap(truth)), truth)
    assert share > 0.99
    assert share > right_share(unwrap(net, wrap(truth), costs=edge_costs(net)), truth) + 0.005


def test_given_variances_help_where_they_differ():
    rng = np.random.default_rng(0)
    _, net = cloud(30000)
    sigma = rng.uniform(0.2, 1.8, 30000)
    truth = rng.normal(0, sigma)
    with_them = right_share(unwrap(net, wrap(truth), variance=sigma**2), truth)
    assert with_them > right_share(unwrap(net, wrap(truth)), truth)
    assert with_them > right_share(unwrap(net, wrap(truth), costs=edge_costs(net)), truth)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net: edge_costs(net, "size"), "spatial_cost is 'size'; expected 'constant' or 'length'"),
        (lambda net: edge_costs(net, weight=np.ones(3)), r"weight has shape \(3,\); expected \(300,\)"),
        (
            lambda net: statistical_costs(net, np.zeros(300), np.ones(299)),
            r"variance has shape \(299,\); expected \(300,\)",
        ),
        (
            lambda net: statistical_costs(net, np.zeros(300), np.where(np.arange(300) == 42, 0.0, 1.0)),
            r"variance of point 42 is 0.0 rad\^2; expected more than 0",
        ),
        (
            lambda net: statistical_costs(net, np.zeros(300), np.where(np.arange(300) == 9, np.nan, 1.0)),
            r"variance of point 9 is nan rad\^2; expected more than 0",
        ),
    ],
)
def test_wrong_calls_are_refused_in_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call(cloud(300)[1])
