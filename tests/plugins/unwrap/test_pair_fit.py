"""The fit of whole cycles to pairs against known optima, linear programs and the trial of all possibilities."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from moraine_unwrap.pair_fit.kernels import MISSING, MOST_CYCLES, PairGraph, fit, image_cycles, pair_graph


def graph_of(pairs: Any, nimages: int) -> PairGraph:
    return pair_graph(np.array(pairs, np.int32).reshape(-1, 2), nimages)


def near(nimages: int, bandwidth: int) -> list[tuple[int, int]]:
    """Return the pairs of images up to so many places apart."""
    return [(a, b) for a in range(nimages) for b in range(a + 1, min(a + bandwidth + 1, nimages))]


def least_cost(pairs: Any, nimages: int, cycles: Any, costs: Any) -> float:
    """Return the cost of the best fit by a linear program in the images' cycles and what the pairs are off."""
    n_pairs = len(pairs)
    difference = np.zeros((n_pairs, nimages))
    for k, (a, b) in enumerate(pairs):
        difference[k, a] += 1
        difference[k, b] -= 1
    eye = np.eye(n_pairs)
    above = np.block([[difference, -eye], [-difference, -eye]])
    bound = np.concatenate([-np.asarray(cycles), cycles])
    objective = np.concatenate([np.zeros(nimages), costs])
    limits = [(None, None)] * nimages + [(0, None)] * n_pairs
    return float(linprog(objective, A_ub=above, b_ub=bound, bounds=limits, method="highs").fun)


def best_by_trial(pairs: Any, nimages: int, cycles: Any, costs: Any, missing: Any = ()) -> list[int]:
    """Return what pairs are off in the cheapest of all fits; of several the one with the first pairs off the least."""
    found = []
    for n in itertools.product(range(-3, 4), repeat=nimages):
        off = [0 if k in missing else int(cycles[k]) + n[a] - n[b] for k, (a, b) in enumerate(pairs)]
        cost = sum(int(c) * abs(z) for c, z in zip(costs, off, strict=True))
        found.append((cost, [abs(z) for z in off], off))
    return min(found)[2]


@pytest.mark.parametrize(
    ("wrong", "off"),
    [
        ({(0, 1): 1}, {(0, 1): 1}),
        ({(0, 1): 1, (0, 2): 1}, {(0, 3): -1}),
        ({(2, 3): 1}, {(2, 3): 1}),
        ({(0, 1): 1, (2, 3): -1}, {(0, 1): 1, (2, 3): -1}),
        ({(0, 1): 2, (3, 4): 1}, {(0, 1): 2, (3, 4): 1}),
    ],
)
def test_nine_pairs_of_five_images_have_the_known_fits(wrong: Any, off: Any) -> None:
    pairs = near(5, 3)
    (found,) = fit(graph_of(pairs, 5), np.array([[wrong.get(pair, 0) for pair in pairs]]))
    assert {pair: int(z) for pair, z in zip(pairs, found, strict=True) if z} == off


def test_of_three_equal_corrections_of_a_triangle_it_takes_that_of_the_last_pair():
    graph = graph_of([(0, 1), (1, 2), (0, 2)], 3)
    assert fit(graph, np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])).tolist() == [[0, 0, -1], [0, 0, -1], [0, 0, 1]]


random_network = st.integers(2, 5).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(
            st.tuples(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), st.integers(-2, 2), st.integers(1, 4)),
            min_size=1,
            max_size=8,
        ).map(lambda rows: [row for row in rows if row[0][0] != row[0][1]]),
        st.sets(st.integers(0, n - 1), max_size=1),
    )
)


@settings(deadline=None, max_examples=60)
@given(random_network)
def test_any_small_network_is_fitted_as_the_trial_of_all_possibilities_says(network: Any) -> None:
    """Also with pairs given twice or reversed, in several parts, and with an image missing."""
    nimages, rows, absent = network
    pairs, cycles, costs = ([row[column] for row in rows] for column in range(3))
    is_missing = np.isin(np.arange(nimages), list(absent))[None]
    missing = [k for k, pair in enumerate(pairs) if absent & set(pair)]
    values = np.array(cycles, np.int64).reshape(1, -1)
    found = fit(graph_of(pairs, nimages), values, np.array(costs, np.int64), is_missing)
    assert found.dtype == np.int32
    assert found[0].tolist() == best_by_trial(pairs, nimages, cycles, costs, missing)


@pytest.mark.parametrize("seed", range(12))
def test_large_networks_are_fitted_at_the_cost_of_the_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nimages = int(rng.integers(8, 30))
    pairs = near(nimages, 3) if seed % 2 else [tuple(rng.permutation(nimages)[:2]) for _ in range(3 * nimages)]
    pairs = [pair if rng.random() < 0.7 else pair[::-1] for pair in pairs]
    costs = rng.integers(1, 21, len(pairs))
    graph = graph_of(pairs, nimages)
    for share in (0.02, 0.2, 1.0):
        cycles = rng.integers(-3, 4, len(pairs)) * (rng.random(len(pairs)) < share)
        off = fit(graph, cycles[None], costs)[0]
        n = image_cycles(graph, cycles[None], costs)[0]
        assert off.tolist() == [m + n[a] - n[b] for m, (a, b) in zip(cycles, pairs, strict=True)]
        assert np.sum(costs * np.abs(off)) == pytest.approx(least_cost(pairs, nimages, cycles, costs))


def random_rows(seed: int, share: float = 0.1) -> tuple[list[tuple[int, int]], Any]:
    rng = np.random.default_rng(seed)
    pairs = near(9, 3)
    n = rng.integers(-4, 5, (60, 9))
    wrong = rng.integers(-2, 3, (60, len(pairs))) * (rng.random((60, len(pairs))) < share)
    return pairs, np.array([[row[b] - row[a] for a, b in pairs] for row in n]) + wrong


def test_a_row_does_not_know_its_neighbors():
    pairs, cycles = random_rows(0)
    graph = graph_of(pairs, 9)
    whole = fit(graph, cycles)
    for row in range(len(cycles)):
        assert fit(graph, cycles[row : row + 1])[0].tolist() == whole[row].tolist()
    np.testing.assert_array_equal(fit(graph, cycles[::-1]), whole[::-1])


def test_the_fit_changes_sign_with_the_cycles_and_with_the_direction_of_a_pair():
    pairs, cycles = random_rows(1)
    whole = fit(graph_of(pairs, 9), cycles)
    np.testing.assert_array_equal(fit(graph_of(pairs, 9), -cycles), -whole)
    sign = np.where(np.arange(len(pairs)) % 3, 1, -1)
    turned = [pair if s > 0 else pair[::-1] for pair, s in zip(pairs, sign, strict=True)]
    np.testing.assert_array_equal(fit(graph_of(turned, 9), cycles * sign), whole * sign)


def test_numbers_of_the_images_do_not_matter():
    pairs, cycles = random_rows(2)
    number = np.random.default_rng(3).permutation(9)
    renamed = [(number[a], number[b]) for a, b in pairs]
    np.testing.assert_array_equal(fit(graph_of(renamed, 9), cycles), fit(graph_of(pairs, 9), cycles))


def test_cycles_of_images_are_added_to_all_pairs_without_a_change():
    pairs, cycles = random_rows(4)
    n = np.random.default_rng(5).integers(-90, 90, (len(cycles), 9))
    graph = graph_of(pairs, 9)
    shifted = cycles + np.array([[row[b] - row[a] for a, b in pairs] for row in n])
    np.testing.assert_array_equal(fit(graph, shifted), fit(graph, cycles))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_any_integers_are_taken(dtype: str) -> None:
    pairs, cycles = random_rows(6)
    graph = graph_of(pairs, 9)
    np.testing.assert_array_equal(fit(graph, cycles.astype(dtype)), fit(graph, cycles))


def test_pairs_of_a_missing_image_are_as_if_they_were_not_there():
    pairs, cycles = random_rows(7, share=0.2)
    is_missing = np.random.default_rng(8).random((len(cycles), 9)) < 0.2
    found = fit(graph_of(pairs, 9), cycles, is_missing=is_missing)
    for row, absent in enumerate(is_missing):
        kept = [k for k, (a, b) in enumerate(pairs) if not (absent[a] or absent[b])]
        alone = fit(graph_of([pairs[k] for k in kept], 9), cycles[row : row + 1, kept])[0]
        expected = np.zeros(len(pairs), int)
        expected[kept] = alone
        assert found[row].tolist() == expected.tolist()


def test_a_missing_pair_is_as_if_it_was_not_there_and_has_no_correction():
    pairs, cycles = random_rows(9, share=0.2)
    is_missing = np.random.default_rng(10).random(cycles.shape) < 0.3
    found = fit(graph_of(pairs, 9), np.where(is_missing, MISSING, cycles))
    assert not found[is_missing].any()
    for row, absent in enumerate(is_missing):
        kept = np.flatnonzero(~absent)
        alone = fit(graph_of([pairs[k] for k in kept], 9), cycles[row : row + 1, kept])[0]
        assert found[row, kept].tolist() == alone.tolist()


def test_cycles_of_images_are_counted_from_the_first_image_of_each_part():
    graph = graph_of([(4, 1), (1, 3), (2, 0)], 6)
    assert image_cycles(graph, np.array([[5, 2, -7]])).tolist() == [[0, 0, 7, 2, -5, 0]]
    without_1 = np.array([[False, True, False, False, False, False]])
    assert image_cycles(graph, np.array([[5, 2, -7]]), is_missing=without_1).tolist() == [[0, 0, 7, 0, 0, 0]]


@pytest.mark.parametrize(
    ("pairs", "nimages", "n_loops"),
    [
        ([], 0, 0),
        ([], 3, 0),
        ([(0, 1), (1, 2)], 3, 0),
        ([(0, 1), (1, 0)], 2, 1),
        (near(5, 3), 5, 5),
        ([(0, 1), (1, 2), (2, 0), (3, 4)], 5, 1),
    ],
)
def test_loops_are_counted(pairs: Any, nimages: int, n_loops: int) -> None:
    graph = graph_of(pairs, nimages)
    assert graph.n_loops == n_loops
    assert fit(graph, np.ones((2, len(pairs)), int)).shape == (2, len(pairs))
    assert fit(graph, np.ones((0, len(pairs)), int)).shape == (0, len(pairs))


def test_a_network_travels_to_other_processes():
    graph = graph_of(near(5, 2), 5)
    back = pickle.loads(pickle.dumps(graph))
    cycles = np.array([[0, 1, 0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(fit(back, cycles), fit(graph, cycles))


def test_large_cycles_and_costs_do_not_overflow():
    graph = graph_of([(0, 1), (1, 2), (0, 2)], 3)
    most = 2**31 - 1
    cycles = np.array([[MOST_CYCLES, MOST_CYCLES, -MOST_CYCLES]])
    assert fit(graph, cycles, np.array([most, most, most])).tolist() == [[0, 0, -3 * MOST_CYCLES]]
    assert fit(graph, cycles, np.array([most, 1, most])).tolist() == [[0, 3 * MOST_CYCLES, 0]]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"cycles": np.zeros((2, 2), int)}, r"cycles are int64 \(2, 2\); expected integers of shape \(n, 3\)"),
        ({"cycles": np.zeros((2, 3))}, r"cycles are float64 \(2, 3\); expected integers"),
        ({"cycles": np.array([[0, 0, 0], [0, 2**20 + 1, 0]])}, "row 1 has 1048577 cycles for pair 1; expected at most"),
        ({"cycles": np.array([[0, 0, -(2**40)]])}, "row 0 has -1099511627776 cycles for pair 2"),
        ({"costs": np.ones(2, int)}, r"costs are int64 \(2,\); expected integers of shape \(3,\)"),
        ({"costs": np.array([1, 0, 1])}, "costs are 0 to 1; expected 1 to 2147483647"),
        ({"is_missing": np.zeros((2, 4), bool)}, r"is_missing has shape \(2, 4\); expected \(2, 3\)"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(arguments: Any, sentence: str) -> None:
    graph = graph_of([(0, 1), (1, 2), (0, 2)], 3)
    with pytest.raises(ValueError, match=sentence):
        fit(graph, **{"cycles": np.zeros((2, 3), int), **arguments})


@pytest.mark.parametrize("pair", [(1, 1), (0, 3), (-1, 0)])
def test_a_pair_that_is_none_is_refused(pair: Any) -> None:
    with pytest.raises(ValueError, match=r"pair 1 is \(.*\); expected two different images of 0 to 2"):
        graph_of([(0, 1), pair], 3)
