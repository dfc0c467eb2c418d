"""Networks of image pairs: what they hold, what they connect, and which pairs they refuse."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moraine_core.arguments import parse_pairs
from moraine_raster.networks import TempNet, nimages_of


@pytest.mark.parametrize(("bandwidth", "n_pairs"), [(1, 91), (3, 270), (91, 4186), (92, 4186), (None, 4186)])
def test_a_bandwidth_gives_as_many_pairs_as_the_formula(bandwidth, n_pairs):
    network = TempNet.from_bandwidth(92, bandwidth)
    assert len(network.pairs) == n_pairs
    assert network.is_sorted
    assert network.is_connected
    assert network.is_complete == (n_pairs == 4186)


@given(st.integers(1, 12), st.integers(1, 12))
def test_a_bandwidth_gives_the_pairs_of_the_definition(nimages, bandwidth):
    if bandwidth > nimages:
        with pytest.raises(ValueError, match=f"bandwidth is {bandwidth} for {nimages} images"):
            TempNet.from_bandwidth(nimages, bandwidth)
        return
    expected = [(i, j) for i, j in combinations(range(nimages), 2) if j - i <= bandwidth]
    assert list(TempNet.from_bandwidth(nimages, bandwidth).pairs) == expected


@pytest.mark.parametrize("bandwidth", [0, -1])
def test_a_bandwidth_below_one_is_refused(bandwidth):
    with pytest.raises(ValueError, match="expected 1 to the number of images"):
        TempNet.from_bandwidth(5, bandwidth)


def test_pairs_come_as_an_array():
    pairs = TempNet.of([(0, 2), (1, 2)]).image_pairs
    assert pairs.dtype == np.int32
    assert pairs.tolist() == [[0, 2], [1, 2]]
    assert TempNet.of([], 4).image_pairs.shape == (0, 2)


def test_an_array_of_pairs_makes_a_network():
    pairs = np.array([[0, 1], [1, 2], [0, 3]], np.int64)
    network = TempNet.of(pairs)
    assert network.nimages == 4
    np.testing.assert_array_equal(network.image_pairs, pairs)


@pytest.mark.parametrize(
    ("pairs", "nimages", "number"),
    [
        ([], 0, []),
        ([], 3, [0, 1, 2]),
        ([(0, 1), (2, 3)], 5, [0, 0, 1, 1, 2]),
        ([(0, 2), (1, 2)], 3, [0, 0, 0]),  # connected, though no pair is (0, 1)
        ([(3, 2), (2, 0), (1, 3)], 4, [0, 0, 0, 0]),
    ],
)
def test_components_are_what_pairs_connect(pairs, nimages, number):
    network = TempNet.of(pairs, nimages)
    assert network.components() == number
    assert network.is_connected == (len(set(number)) < 2)


@given(st.integers(1, 9), st.data())
def test_components_are_those_of_powers_of_the_adjacency(nimages, data):
    every = list(combinations(range(nimages), 2))
    pairs = data.draw(st.lists(st.sampled_from(every), unique=True)) if every else []
    reach = np.eye(nimages, dtype=int)
    for ref, sec in pairs:
        reach[ref, sec] = reach[sec, ref] = 1
    reach = np.linalg.matrix_power(reach, nimages) > 0
    number = TempNet.of(pairs, nimages).components()
    np.testing.assert_array_equal(np.equal.outer(number, number), reach)


def test_unsorted_and_reversed_pairs_are_taken_as_they_are():
    network = TempNet.of([(2, 1), (0, 1)])
    assert network.pairs == ((2, 1), (0, 1))
    assert not network.is_sorted
    assert not TempNet.of([(1, 2), (0, 1)]).is_sorted
    assert not TempNet.of([(0, 2), (0, 1), (1, 2)]).is_complete


def test_what_needs_order_names_the_first_pair_out_of_it():
    network = TempNet.from_bandwidth(4, 2)
    assert network.in_order() is network
    with pytest.raises(ValueError, match=r"pair 0 is \(2, 1\); expected the earlier image first"):
        TempNet.of([(2, 1), (0, 1)]).in_order()
    with pytest.raises(ValueError, match=r"pair 2 is \(0, 1\), after \(1, 2\)"):
        TempNet.of([(0, 2), (1, 2), (0, 1)]).in_order()


@pytest.mark.parametrize(
    ("pairs", "fault"),
    [
        ([(0, 1), (1, 1)], r"pair 1 is \(1, 1\); expected two different images"),
        ([(0, 3)], r"pair 0 is \(0, 3\); expected images 0 to 2"),
        ([(0, 1), (-1, 1)], r"pair 1 is \(-1, 1\); expected images 0 to 2"),
        ([(0, 1), (1, 2), (0, 1)], r"pair 2 is \(0, 1\), the images of pair 0"),
        ([(0, 1), (1, 0)], r"pair 1 is \(1, 0\), the images of pair 0"),
    ],
)
def test_a_pair_that_cannot_be_is_refused(pairs, fault):
    with pytest.raises(ValueError, match=fault):
        TempNet.of(pairs, 3)


def test_pairs_are_found_in_their_direction():
    network = TempNet.from_bandwidth(5, 2)
    asked = [(1, 3), (0, 4), (3, 1), (0, 1)]
    found = network.index_of(asked)
    assert found.dtype == np.int32
    assert found.tolist() == [network.pairs.index((1, 3)), -1, -1, 0]
    assert network.index_of([]).tolist() == []


def test_every_pair_of_a_network_is_found_at_its_place():
    network = TempNet.from_bandwidth(17)
    np.testing.assert_array_equal(network.index_of(network.image_pairs), np.arange(136))
    # row by row of the upper triangle
    assert [network.pairs.index((i, j)) for i, j in [(0, 1), (3, 9), (15, 16)]] == [
        i * (2 * 17 - i - 1) // 2 + j - i - 1 for i, j in [(0, 1), (3, 9), (15, 16)]
    ]


def test_a_saved_network_is_read_again(tmp_path):
    network = TempNet.of([(0, 1), (3, 1)], 6)
    network.save(tmp_path / "pairs.txt")
    assert TempNet.load(tmp_path / "pairs.txt", 6) == network
    assert TempNet.load(tmp_path / "pairs.txt").nimages == 4
    assert parse_pairs(tmp_path / "pairs.txt") == network.pairs


@pytest.mark.parametrize("text", ["0 1\n1 x\n", "0 1\n1\n", "0 1 2\n", "0 1\n1 1\n"])
def test_a_text_that_holds_no_pairs_is_refused_with_its_path(tmp_path, text):
    (tmp_path / "pairs.txt").write_text(text)
    with pytest.raises(ValueError, match=r"pairs\.txt: "):
        TempNet.load(tmp_path / "pairs.txt")


@given(st.integers(1, 3000))
def test_the_number_of_images_follows_from_that_of_all_pairs(nimages):
    assert nimages_of(nimages * (nimages - 1) // 2) == nimages


@pytest.mark.parametrize("n_pairs", [-1, 2, 4, 5, 4185])
def test_a_number_of_pairs_that_no_complete_network_has_is_refused(n_pairs):
    with pytest.raises(ValueError, match=f"{n_pairs} pairs are not all pairs"):
        nimages_of(n_pairs)


def test_a_network_is_made_without_numpy():
    code = "import sys, moraine_raster.networks as n; n.TempNet.from_bandwidth(9); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
