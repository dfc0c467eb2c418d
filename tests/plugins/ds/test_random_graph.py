"""The probability of an edge at which random graphs are connected, against exact arithmetic and simulation."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from moraine_ds.quality.random_graph import connection_probability, edge_probability
from moraine_raster.networks import TempNet


def connected(nimages, p):
    """Return Gilbert's recursion in exact fractions."""
    q, c = 1 - Fraction(p), [None, Fraction(1)]
    for m in range(2, nimages + 1):
        c.append(1 - sum(comb(m - 1, k - 1) * c[k] * q ** (k * (m - k)) for k in range(1, m)))
    return c[nimages]


@pytest.mark.parametrize(
    ("nimages", "alpha", "p"),
    [
        (2, 1e-3, 1e-3),
        (3, 1e-3, 0.0183702539),
        (3, 0.5, 0.5),
        (5, 1e-3, 0.0565057628),
        (10, 1e-3, 0.0754239580),
        (17, 1e-3, 0.0679999768),
        (17, 1e-2, 0.0879555738),
        (17, 0.5, 0.183397954),
        (30, 1e-3, 0.0537232150),
        (92, 1e-3, 0.0284883009),
    ],
)
def test_the_probability_is_that_of_60_digit_arithmetic(nimages, alpha, p):
    assert edge_probability(nimages, alpha) == pytest.approx(p, rel=1e-8)


@pytest.mark.parametrize(
    ("nimages", "looks", "threshold"), [(17, 46, 0.057989), (92, 46, 0.076027), (92, 20, 0.170786)]
)
def test_the_threshold_on_squared_coherence(nimages, looks, threshold):
    assert 1 - edge_probability(nimages, 1e-3) ** (1 / (looks - 1)) == pytest.approx(threshold, abs=5e-7)


@pytest.mark.parametrize("nimages", [2, 3, 8, 20])
@pytest.mark.parametrize("p", [1e-6, 0.01, 0.3, 0.95])
def test_graphs_are_connected_as_often_as_the_recursion_says_without_rounding(nimages, p):
    assert connection_probability(nimages, p) == pytest.approx(float(connected(nimages, p)), rel=1e-11)


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 0.5])
@pytest.mark.parametrize("nimages", [2, 9, 24])
def test_the_probability_solves_the_equation(nimages, alpha):
    assert float(connected(nimages, edge_probability(nimages, alpha))) == pytest.approx(alpha, rel=1e-10)


def test_a_graph_of_one_node_or_of_all_edges_is_connected():
    assert edge_probability(0, 0.1) == edge_probability(1, 0.1) == 1
    assert connection_probability(1, 0.01) == connection_probability(9, 1.0) == 1


def test_drawn_graphs_are_connected_as_often():
    rng = np.random.default_rng(1)
    pairs = TempNet.from_bandwidth(9).image_pairs
    drawn = rng.random((4000, len(pairs))) < edge_probability(9, 0.3)
    share = np.mean([TempNet.of(pairs[edges], 9).is_connected for edges in drawn])
    assert share == pytest.approx(0.3, abs=4 * np.sqrt(0.3 * 0.7 / 4000))


@pytest.mark.parametrize("alpha", [0, 9e-7, 0.51, 1, -1, float("nan")])
def test_a_probability_out_of_range_is_refused(alpha):
    with pytest.raises(ValueError, match=r"expected 1e-06 to 0\.5"):
        edge_probability(5, alpha)
