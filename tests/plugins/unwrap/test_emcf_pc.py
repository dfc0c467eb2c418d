"""Extended minimum cost flow against the truth, against all that could be cheaper, and against mcf-pc."""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from moraine_core import Array, Workers
from moraine_core.errors import MoraineError
from moraine_core.store import describe
from moraine_core.testing.data import read_array, write_array
from moraine_unwrap.emcf_pc import emcf_pc
from moraine_unwrap.flow.costs import edge_costs, statistical_costs
from moraine_unwrap.flow.kernels import image_phase
from moraine_unwrap.flow.tasks import shared_network
from moraine_unwrap.mcf_pc import mcf_pc
from moraine_unwrap.pair_fit.kernels import pair_graph
from moraine_unwrap.temporal import kernels
from moraine_unwrap.temporal.dates import length_costs
from moraine_unwrap.temporal.kernels import NO_CYCLES, close_loops, gradient_cycles, space_costs

if TYPE_CHECKING:
    from pathlib import Path

CYCLE = 2 * np.pi
HOP_3 = [(a, b) for a in range(6) for b in range(a + 1, min(a + 4, 6))]
"""Each of six images with the next three."""


def cloud(n_points: int = 900, seed: int = 0, nimages: int = 6, noise: float = 0.0, rate: float = 2.4) -> Any:
    """Return random pixels and the phases of a bowl that moves steadily, with noise."""
    rng = np.random.default_rng(seed)
    side = round((4 * n_points) ** 0.5)
    gix = np.stack(np.divmod(rng.choice(side * side, n_points, replace=False), side), axis=1).astype(np.int32)
    bowl = np.exp(-((gix / side - 0.5) ** 2).sum(axis=1) / 0.08)
    return gix, np.outer(bowl, rate * np.arange(nimages)) + rng.normal(0, noise, (n_points, nimages))


def phasors(true: Any) -> Any:
    return np.exp(1j * true).astype(np.complex64)


def differences(series: Any, pairs: Any = HOP_3) -> Any:
    return np.stack([series[:, a] - series[:, b] for a, b in pairs], axis=1)


def cycles_off(unwrapped: Any, true: Any, ref_point: int = 0) -> Any:
    """Return by how many cycles values differ from the truth, those of a reference point taken off."""
    off = (unwrapped - true) / CYCLE
    off = off - off[ref_point]
    whole = np.rint(off)
    assert np.abs(off - whole).max(initial=0) < 1e-5
    return whole


def written(folder: Path, gix: Any, ph: Any, pairs: Any = HOP_3, block: int | None = None) -> dict[str, Any]:
    """Write the inputs of a call and return its arguments."""
    block = max(len(gix) // 3, 1) if block is None else block
    return {
        "gix": write_array(folder / "gix.zarr", gix, (block, 2)),
        "ph": write_array(folder / "ph.zarr", ph, (block, 1)),
        "image_pairs": str([list(map(int, pair)) for pair in pairs]),
        "range_pixel_spacing": 1.0,
        "azimuth_pixel_spacing": 1.0,
        "unw_ph": str(folder / "unw.zarr"),
    }


def run(folder: Path, gix: Any, ph: Any, pairs: Any = HOP_3, **options: Any) -> Any:
    """Run the command on arrays and return the unwrapped pairs."""
    folder.mkdir(exist_ok=True)
    arguments = written(folder, gix, ph, pairs) | options
    emcf_pc(**arguments)
    return read_array(arguments["unw_ph"])


# -- truth -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spatial_cost", ["statistical", "length", "constant"])
def test_without_noise_the_truth_is_found(tmp_path, spatial_cost):
    gix, true = cloud()
    found = run(tmp_path, gix, phasors(true), spatial_cost=spatial_cost, ref_point=5)
    wanted = differences(true)
    assert np.abs(wanted).max() > CYCLE
    np.testing.assert_allclose(found - found[5], wanted - wanted[5], atol=1e-4)


def test_the_reference_point_keeps_the_difference_of_its_images_so_that_all_loops_close_there(tmp_path):
    gix, true = cloud(noise=0.3)
    ph = phasors(true)
    found = run(tmp_path, gix, ph, ref_point=17)
    np.testing.assert_allclose(found[17], differences(np.angle(ph))[17], atol=1e-6)


def test_wrapped_again_the_result_is_the_phase_that_was_given(tmp_path):
    gix, true = cloud(noise=1.0)
    ph = phasors(true)
    found = run(tmp_path, gix, ph).astype(np.float64)
    for k, (a, b) in enumerate(HOP_3):
        left = np.angle(np.exp(1j * found[:, k]) * np.conj(ph[:, a] * np.conj(ph[:, b])).astype(np.complex128))
        assert np.abs(left).max() < 1e-6


@pytest.mark.parametrize("spatial_cost", ["statistical", "length", "constant"])
def test_with_noise_it_gets_less_than_half_of_the_cycles_wrong_that_each_pair_by_itself_does(tmp_path, spatial_cost):
    gix, true = cloud(2500, noise=0.8, rate=1.2, seed=1)
    arguments = written(tmp_path, gix, phasors(true))
    wrong = []
    for step in (mcf_pc, emcf_pc):
        step(**arguments, spatial_cost=spatial_cost)
        off = cycles_off(read_array(arguments["unw_ph"]), differences(true))
        usual = np.median(off, axis=0)
        wrong.append(np.mean(off != usual))
    assert wrong[0] > 0.01
    assert wrong[1] < wrong[0] / 2


# -- in time -----------------------------------------------------------------------------------------------------------


def cheapest(cycles: Any, pairs: Any, costs: Any) -> int:
    """Return the least cost of closing all loops of five images, by trying cycles of the images."""
    image = np.array([(0, *n) for n in itertools.product(range(-4, 5), repeat=4)])
    changes = np.stack([image[:, b] - image[:, a] for a, b in pairs], axis=1) - cycles
    return int((np.abs(changes) @ np.array(costs)).min())


SMALL = [(0, 1), (2, 0), (1, 2), (3, 2), (1, 3), (0, 4)]
"""A network of five images with loops and a pair in none, unsorted and partly reversed."""


@given(
    rows=st.lists(st.lists(st.integers(-1, 1), min_size=6, max_size=6), min_size=1, max_size=4),
    costs=st.lists(st.integers(1, 5), min_size=6, max_size=6),
)
@settings(max_examples=25, deadline=None)
def test_loops_are_closed_at_the_least_cost(rows, costs):
    cycles = np.array(rows, np.int8)
    closed = close_loops(cycles, pair_graph(np.array(SMALL), 5), costs)
    for before, after, n in zip(rows, closed.cycles.astype(int), closed.n_corrected, strict=True):
        assert after[0] + after[2] + after[1] == 0  # (0, 1), (1, 2), (2, 0)
        assert after[4] + after[3] == after[2]  # (1, 3), (3, 2) against (1, 2)
        assert n == np.count_nonzero(after - before)
        assert np.dot(np.abs(after - before), costs) == cheapest(before, SMALL, costs)


def test_closing_loops_costs_what_a_linear_program_says():
    pairs = [(a, b) for a in range(9) for b in range(a + 1, min(a + 4, 9))]
    costs = length_costs([f"202001{1 + 3 * day:02}" for day in range(9)], pairs)
    cycles = np.random.default_rng(0).integers(-1, 2, (12, len(pairs))).astype(np.int8)
    closed = close_loops(cycles, pair_graph(np.array(pairs), 9), costs)
    incidence = np.zeros((len(pairs), 9))
    for k, (a, b) in enumerate(pairs):
        incidence[k, [a, b]] = -1, 1
    equations = np.hstack([incidence, -np.eye(len(pairs)), np.eye(len(pairs))])
    prices = np.concatenate([np.zeros(9), costs, costs])
    bounds = [(None, None)] * 9 + [(0, None)] * (2 * len(pairs))
    for before, after in zip(cycles.astype(int), closed.cycles.astype(int), strict=True):
        wanted = linprog(prices, A_eq=equations, b_eq=before, bounds=bounds).fun
        assert np.dot(np.abs(after - before), costs) == pytest.approx(wanted)


def test_a_missing_pair_says_nothing_in_time_and_stays_missing():
    graph = pair_graph(np.array([(0, 1), (1, 2), (0, 2)]), 3)
    closed = close_loops(np.array([[1, NO_CYCLES, 0]], np.int8), graph)
    assert closed.cycles.tolist() == [[1, NO_CYCLES, 0]]
    assert closed.n_corrected.tolist() == [0]


def test_more_cycles_than_are_kept_are_an_error():
    graph = pair_graph(np.array([(0, 1), (1, 2), (0, 2)]), 3)
    with pytest.raises(ValueError, match=r"pair 2 \(0, 2\) would get more than 127 cycles on edge 41"):
        close_loops(np.array([[0, 0, 0], [100, 100, 0]], np.int8), graph, [5, 5, 1], first_edge=40)


def test_costs_by_length_are_those_of_five_images_twelve_days_apart():
    """Spans of 12, 24 and 36 days cost 8, 4 and 3."""
    dates = ["20200101", "20200113", "20200125", "20200206", "20200218"]
    pairs = [(a, b) for a in range(5) for b in range(a + 1, min(a + 4, 5))]
    wanted = {1: 8, 2: 4, 3: 3}
    assert length_costs(dates, pairs) == tuple(wanted[b - a] for a, b in pairs)
    assert length_costs(["20200101", "20200102", "20210101"], [(0, 1), (1, 2), (2, 0)]) == (20, 4, 4)


def test_the_wrapped_cycles_of_pairs_leave_loops_open_by_whole_cycles_only():
    """Differences of exactly half a cycle are rounded in one way for all pairs, however they are subtracted."""
    gix = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.int32)
    quarter = np.array([[0, 0, 0], [2, 0, 1], [3, 2, 1], [1, 3, 2]])
    net = shared_network(gix, spacing=(1.0, 1.0))
    phase = [image_phase((1j**image).astype(np.complex64)) for image in quarter.T]
    of_pair = {(a, b): kernels.vertex_phase(net, phase[a], phase[b]) for a, b in itertools.permutations(range(3), 2)}
    cycles = {pair: gradient_cycles(net, values, "constant").astype(int) for pair, values in of_pair.items()}
    for (a, b), values in of_pair.items():
        np.testing.assert_array_equal(cycles[a, b], -cycles[b, a])
        step = values[net.edges[:, 1]] - values[net.edges[:, 0]] + CYCLE * cycles[a, b]
        assert np.abs(step).max() <= np.pi


# -- in space ----------------------------------------------------------------------------------------------------------


def lengths_of(net: Any) -> list[float]:
    return [float(np.hypot(*(net.position[p] - net.position[q]))) for p, q in net.edges]


def test_two_witnesses_make_the_costs_of_an_edge():
    """Each edge takes the cheapest cycles of a parabola and a vote together, found by trying them all."""
    gix, true = cloud(80, noise=1.5, nimages=2, rate=6.0)
    net = shared_network(gix, spacing=(1.0, 2.0))
    rng = np.random.default_rng(0)
    weight, n_corrected = rng.random(80), rng.integers(0, 12, len(net.edges))
    phase = true[net.points, 0] - true[net.points, 1]
    likely, stats = statistical_costs(net, phase)
    votes = (likely + rng.integers(-2, 3, len(likely))).astype(np.int8)
    votes[::7] = NO_CYCLES
    cycles, costs = space_costs(net, phase, votes, edge_costs(net, "length", weight), n_corrected)
    lengths = lengths_of(net)
    for e, (p, q) in enumerate(net.edges):
        least = min(weight[net.points[p]], weight[net.points[q]])
        trust = round(99 * min(np.median(lengths) / lengths[e], 1) * least) / 99 / (1 + int(n_corrected[e]))
        up, down = map(int, stats[e])

        def cost(c: int, e: int = e, up: int = up, down: int = down) -> float:
            off = c - int(likely[e])
            parabola = (up + down) / 2 * off * off + (up - down) / 2 * off
            return parabola + (50 * abs(c - int(votes[e])) if votes[e] != NO_CYCLES else 0)

        best = min(cost(c) for c in range(-9, 10))
        assert cost(int(cycles[e])) == best
        for column, c in enumerate((int(cycles[e]) + 1, int(cycles[e]) - 1)):
            assert abs(costs[e, column] - 1 - trust * (cost(c) - best)) <= 0.5 + 1e-9


@pytest.mark.parametrize("spatial_cost", ["length", "constant"])
def test_the_other_costs_take_the_cycles_found_in_time_where_they_are_known(spatial_cost):
    gix, true = cloud(60, noise=1.5)
    net = shared_network(gix, spacing=(1.0, 2.0))
    votes = np.random.default_rng(0).integers(-2, 3, len(net.edges)).astype(np.int8)
    votes[::5] = NO_CYCLES
    phase = true[net.points, 0]
    cycles, costs = space_costs(net, phase, votes, edge_costs(net, spatial_cost))
    np.testing.assert_array_equal(costs, edge_costs(net, spatial_cost))
    for e, (p, q) in enumerate(net.edges):
        wrapping = -round((phase[q] - phase[p]) / CYCLE)
        assert cycles[e] == (wrapping if e % 5 == 0 else votes[e])


def test_no_cycles_of_the_points_are_cheaper(tmp_path):
    """The cost in the attributes is the least that any whole cycles of the points could have."""
    gix = np.array([[0, 0], [0, 5], [5, 1], [6, 6], [2, 9]], np.int32)
    ph = phasors(np.random.default_rng(3).uniform(-np.pi, np.pi, (5, 3)))
    pairs = [(0, 1), (1, 2), (0, 2)]
    run(tmp_path, gix, ph, pairs, spatial_cost="constant")
    costs = describe(tmp_path / "unw.zarr").attributes["costs"]
    net = shared_network(gix, spacing=(1.0, 1.0))
    phase = [image_phase(column) for column in ph.T]
    cycles = np.stack(
        [gradient_cycles(net, kernels.vertex_phase(net, phase[a], phase[b]), "constant") for a, b in pairs], axis=1
    )
    wanted = close_loops(cycles, pair_graph(np.array(pairs), 3)).cycles.astype(int)
    for k in range(3):
        least = min(
            sum(abs(n[q] - n[p] - wanted[e, k]) for e, (p, q) in enumerate(net.edges))
            for n in itertools.product(range(-2, 3), repeat=5)
            if n[0] == 0
        )
        assert costs[k] == least


# -- networks of pairs -------------------------------------------------------------------------------------------------


def test_pairs_without_a_loop_are_unwrapped_as_by_mcf_pc_with_a_warning(tmp_path, caplog):
    gix, true = cloud(300, noise=0.8)
    pairs = [(0, 1), (3, 1), (4, 5)]
    with caplog.at_level(logging.WARNING, "moraine"):
        found = run(tmp_path, gix, phasors(true), pairs, ref_point=3)
    assert "emcf-pc: the pairs of image_pairs form no loop" in caplog.text
    mcf_pc(**written(tmp_path, gix, phasors(true), pairs), ref_point=3)
    np.testing.assert_array_equal(found, read_array(tmp_path / "unw.zarr"))


def test_the_order_and_direction_of_pairs_do_not_matter(tmp_path):
    gix, true = cloud(400, noise=0.6)
    ph = phasors(true)
    found = run(tmp_path / "sorted", gix, ph, [(0, 1), (0, 2), (1, 2), (3, 4)])
    others = run(tmp_path / "others", gix, ph, [(4, 3), (1, 2), (2, 0), (0, 1)])
    assert np.mean(cycles_off(others, np.stack([-found[:, 3], found[:, 2], -found[:, 1], found[:, 0]], 1)) != 0) < 0.02
    # in which pair a contradiction is settled may depend on the order; without one nothing does
    clean = phasors(cloud(400)[1])
    found = run(tmp_path / "sorted", gix, clean, [(0, 1), (0, 2), (1, 2), (3, 4)])
    others = run(tmp_path / "others", gix, clean, [(4, 3), (1, 2), (2, 0), (0, 1)])
    np.testing.assert_array_equal(others, np.stack([-found[:, 3], found[:, 2], -found[:, 1], found[:, 0]], 1))


def test_a_network_in_two_parts_is_unwrapped_part_by_part(tmp_path):
    gix, true = cloud(400, noise=0.9)
    ph = phasors(true)
    parts = [(0, 1), (1, 2), (0, 2)], [(3, 4), (4, 5), (3, 5)]
    both = run(tmp_path / "both", gix, ph, [*parts[0], *parts[1]], spatial_cost="length")
    each = [run(tmp_path / f"{n}", gix, ph, part, spatial_cost="length") for n, part in enumerate(parts)]
    np.testing.assert_array_equal(both, np.concatenate(each, axis=1))


# -- order, chunks and workers -----------------------------------------------------------------------------------------


def test_the_order_of_points_does_not_matter(tmp_path):
    gix, true = cloud(500, noise=0.9)
    order = np.random.default_rng(4).permutation(500)
    found = run(tmp_path / "first", gix, phasors(true), ref_point=int(order[2]))
    other = run(tmp_path / "other", gix[order], phasors(true)[order], ref_point=2)
    np.testing.assert_array_equal(found[order], other)


def test_chunks_blocks_of_edges_and_workers_do_not_matter(tmp_path, monkeypatch):
    gix, true = cloud(500, noise=0.9)
    found = run(tmp_path / "one", gix, phasors(true), workers=Workers(n_workers=1))
    monkeypatch.setattr("moraine_unwrap.emcf_pc.BLOCK", 37)
    other = run(tmp_path / "four", gix, phasors(true), out_chunks=64, workers=Workers(n_workers=4))
    np.testing.assert_array_equal(found, other)


def test_the_array_function_returns_what_the_command_writes(tmp_path):
    gix, true = cloud(300, noise=0.7)
    found, pairs = kernels.emcf_pc(gix, phasors(true), reference=9)
    assert pairs.tolist() == [list(pair) for pair in HOP_3]
    np.testing.assert_array_equal(found, run(tmp_path, gix, phasors(true), ref_point=9))


def test_the_memory_of_a_task_in_time_does_not_grow_with_the_cloud():
    """A47: time and space have limits of their own; only the one in space grows with the number of points."""

    def task_bytes(n_points: int) -> tuple[int, int]:
        gix = Array("gix", (n_points, 2), "int32", (1000, 2))
        ph = Array("ph", (n_points, 6), "complex64", (1000, 1))
        plans = emcf_pc.function(gix, ph, "unw", tuple(HOP_3), 1.0, 1.0)
        gradients, time = next(plans), plans.send([])
        plans.send([0])
        return gradients.task_bytes, time.task_bytes

    few, many = task_bytes(100_000), task_bytes(10_000_000)
    assert many[0] > 90 * few[0]
    assert many[1] == few[1]


# -- missing data, islands, tiny clouds --------------------------------------------------------------------------------


def test_a_sample_that_is_missing_takes_its_pairs_with_it_and_no_others(tmp_path):
    """A48: one bad image does not mask a point in all pairs."""
    gix, true = cloud(400)
    ph = phasors(true)
    ph[7, 2], ph[8, 0], ph[9] = np.nan, 0, np.nan
    found = run(tmp_path, gix, ph, ref_point=9)
    for k, pair in enumerate(HOP_3):
        missing = [point for point, images in ((7, {2}), (8, {0}), (9, set(range(6)))) if images & set(pair)]
        assert np.flatnonzero(np.isnan(found[:, k])).tolist() == missing
    off = (found - differences(true)) / CYCLE
    off -= off[0]  # the first point that is not missing stands in for the reference
    assert np.nanmax(np.abs(off - np.rint(off))) < 1e-5
    assert np.nanmax(np.abs(np.rint(off))) == 0
    np.testing.assert_allclose(found[0], differences(np.angle(ph))[0], atol=1e-6)


@pytest.mark.parametrize("share", [0.05, 0.4])
def test_many_missing_samples_of_one_image_leave_the_others_as_they_are(tmp_path, share):
    gix, true = cloud(1500, rate=0.8)
    ph = phasors(true)
    is_missing = np.random.default_rng(2).random(1500) < share
    is_missing[0] = False
    ph[is_missing, 3] = np.nan
    found = run(tmp_path, gix, ph)
    for k, pair in enumerate(HOP_3):
        valid = ~is_missing if 3 in pair else np.ones(1500, bool)
        np.testing.assert_array_equal(np.isfinite(found[:, k]), valid)
        assert np.mean(cycles_off(found[valid, k], differences(true)[valid, k]) != 0) < 0.01


def test_islands_are_numbered_and_named_in_a_warning(tmp_path, caplog):
    """A46: two halves that a wall of missing points parts in one image are not related there."""
    gix = np.stack(np.divmod(np.arange(400), 20), axis=1).astype(np.int32)
    true = np.outer(gix.sum(axis=1) * 0.2, np.arange(3))
    ph = phasors(true)
    ph[(gix[:, 0] >= 9) & (gix[:, 0] < 11), 2] = np.nan
    with caplog.at_level(logging.WARNING, "moraine"):
        run(tmp_path, gix, ph, [(0, 1), (1, 2), (0, 2)], island=str(tmp_path / "island.zarr"))
    assert "emcf-pc: missing points part pairs 1 2, 0 2 into islands" in caplog.text
    island = read_array(tmp_path / "island.zarr")
    unw = read_array(tmp_path / "unw.zarr")
    assert set(island[:, 0]) == {0}
    for k in (1, 2):
        np.testing.assert_array_equal(island[:, k] < 0, np.isnan(unw[:, k]))
        first, second = (set(island[part, k]) for part in (gix[:, 0] < 9, gix[:, 0] >= 11))
        assert len(first) == len(second) == 1
        assert first != second
    attributes = describe(tmp_path / "unw.zarr").attributes
    assert attributes["n_islands"] == [1, 2, 2]
    assert attributes["n_valid"] == [400, 360, 360]
    assert attributes["costs"] == [0, 0, 0]


@pytest.mark.parametrize("n_points", [0, 1, 2])
def test_clouds_of_hardly_any_points_are_unwrapped(tmp_path, n_points):
    gix, true = cloud(2, noise=0.5)
    found = run(tmp_path, gix[:n_points], phasors(true[:n_points]))
    assert found.shape == (n_points, len(HOP_3))
    if n_points:
        np.testing.assert_allclose(found[0], differences(np.angle(phasors(true)))[0], atol=1e-6)
        assert np.all(cycles_off(found, differences(true[:n_points])) == 0)


def test_points_on_a_line_are_unwrapped_along_it(tmp_path):
    along = np.random.default_rng(0).permutation(50)
    gix = np.stack([3 * along, 2 * along], axis=1).astype(np.int32)
    true = np.outer(along * 0.4, np.arange(4))
    found = run(tmp_path, gix, phasors(true), [(0, 1), (0, 2), (1, 2), (2, 3)])
    assert np.all(cycles_off(found, differences(true, [(0, 1), (0, 2), (1, 2), (2, 3)])) == 0)


def test_points_at_one_place_are_within_half_a_cycle_of_each_other(tmp_path):
    gix, true = cloud(200, noise=0.4)
    gix[50:60] = gix[100:110]
    found = run(tmp_path, gix, phasors(true))
    assert np.abs(found[50:60] - found[100:110]).max() <= CYCLE
    cycles_off(found, differences(true))


def test_an_image_that_is_missing_everywhere_gives_pairs_of_nan_and_a_warning(tmp_path, caplog):
    gix, true = cloud(100)
    ph = phasors(true)
    ph[:, 1] = np.nan
    with caplog.at_level(logging.WARNING, "moraine"):
        found = run(tmp_path, gix, ph, [(0, 1), (1, 2), (0, 2)])
    assert "emcf-pc: no point is valid in pairs 0 1, 1 2" in caplog.text
    assert np.isnan(found[:, :2]).all()
    np.testing.assert_allclose(
        found[:, 2] - found[0, 2], differences(true, [(0, 2)])[:, 0] - differences(true, [(0, 2)])[0, 0], atol=1e-4
    )


# -- options and errors ------------------------------------------------------------------------------------------------


def test_each_option_changes_the_result(tmp_path):
    """A55: nothing is accepted in vain."""
    gix, true = cloud(700, noise=1.3, seed=5)
    ph, weight = phasors(true), np.random.default_rng(1).random(700)
    (tmp_path / "meta.toml").write_text(
        'dates = ["20200101", "20200103", "20200301", "20200305", "20200901", "20201001"]'
    )
    options: dict[str, dict[str, Any]] = {
        "temporal_cost": {"temporal_cost": "length", "dates": str(tmp_path / "meta.toml")},
        "spatial_cost": {"spatial_cost": "length"},
        "constant": {"spatial_cost": "constant"},
        "weight": {"weight": write_array(tmp_path / "weight.zarr", weight)},
        "earth_cost": {"earth_cost": 50},
        "azimuth_pixel_spacing": {"azimuth_pixel_spacing": 9.0},
        "range_pixel_spacing": {"range_pixel_spacing": 9.0},
    }
    plain = run(tmp_path / "plain", gix, ph)
    for name, changed in options.items():
        assert np.any(run(tmp_path / name, gix, ph, **changed) != plain), name
    corner = int(np.argmin(np.hypot(*gix.T)))
    shift = (run(tmp_path / "ref_point", gix, ph, ref_point=corner) - plain) / CYCLE
    np.testing.assert_allclose(shift, np.broadcast_to(np.rint(shift[0]), shift.shape), atol=1e-5)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ref_point": 90}, r"emcf-pc: ref_point is 90; expected 0 to 89"),
        ({"earth_cost": 0}, r"emcf-pc: earth_cost is 0; expected 1 to"),
        ({"out_chunks": 0}, r"emcf-pc: out_chunks is 0; expected at least 1"),
        ({"range_pixel_spacing": -2.0}, r"emcf-pc: range_pixel_spacing is -2; expected a positive number"),
        ({"image_pairs": "[[0, 0]]"}, r"emcf-pc: image_pairs: pair 0 is \(0, 0\); expected two different images"),
        ({"image_pairs": "[[0, 6]]"}, r"emcf-pc: image_pairs: pair 0 is \(0, 6\); expected images 0 to 5"),
        ({"image_pairs": "[[0, 1], [1, 0]]"}, r"expected each pair once"),
        ({"image_pairs": "[]"}, r"emcf-pc: image_pairs is empty; expected at least one pair"),
        ({"temporal_cost": "length"}, r"emcf-pc: temporal_cost is length, which needs dates; none is given"),
        ({"dates": "good.toml"}, r"emcf-pc: dates is given with temporal_cost constant"),
        ({"temporal_cost": "length", "dates": "good.toml"}, r"good.toml has 2 dates; expected 6, one for each image"),
        ({"temporal_cost": "length", "dates": "bad.toml"}, r"bad.toml cannot be read as TOML"),
        ({"temporal_cost": "length", "dates": "empty.toml"}, r"empty.toml has no list of dates"),
        ({"temporal_cost": "length", "dates": "odd.toml"}, r"emcf-pc: dates have '20200230'; expected YYYYMMDD"),
        ({"temporal_cost": "length", "dates": "same.toml"}, r"images 0 and 1 of a pair both have the date 20200101"),
        ({"temporal_cost": "length", "dates": "none.toml"}, r"none.toml does not exist"),
        ({"temporal_cost": "wide"}, r"temporal_cost"),
        ({"spatial_cost": "cheap"}, r"spatial_cost"),
        ({"weight": "short.zarr"}, r"n_points"),
        ({"ph": "whole.zarr"}, r"has chunks \(90, 6\); expected \(90, 1\), one image per chunk"),
        ({"gix": "none.zarr"}, r"none.zarr"),
        ({"unw_ph": "ph.zarr"}, r"ph.zarr is, or is inside, or holds ph"),
    ],
)
def test_a_wrong_call_is_refused_in_one_sentence_before_anything_is_written(tmp_path, monkeypatch, changed, words):
    monkeypatch.chdir(tmp_path)
    gix, true = cloud(90)
    arguments = written(tmp_path, gix, phasors(true), block=90) | {"unw_ph": "unw.zarr"}
    write_array(tmp_path / "short.zarr", np.ones(89))
    write_array(tmp_path / "whole.zarr", phasors(true), (90, 6))
    days = {"good": ["20200101", "20200102"], "odd": ["20200230"] * 6, "same": ["20200101"] * 6, "empty": None}
    for name, dates in days.items():
        (tmp_path / f"{name}.toml").write_text(f"dates = {dates}\n" if dates else "")
    (tmp_path / "bad.toml").write_text("dates = [")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises((MoraineError, ValueError), match=words) as caught:
        emcf_pc(**arguments | changed)
    assert "Traceback" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
