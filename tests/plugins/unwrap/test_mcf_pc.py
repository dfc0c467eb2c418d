"""The command from zarr to zarr: whole cycles, islands, references, every option, and every sentence of refusal."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from moraine_core import UsageError, Workers
from moraine_core.errors import LayoutError
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, write_array
from moraine_unwrap.flow import _cpu
from moraine_unwrap.flow import tasks as flow_tasks
from moraine_unwrap.flow.costs import edge_costs
from moraine_unwrap.flow.kernels import unwrap
from moraine_unwrap.flow.networks import network
from moraine_unwrap.flow.tasks import interferogram, shared_network
from moraine_unwrap.mcf_pc import mcf_pc
from moraine_unwrap.triangulation.kernels import triangulate

CYCLE = 2 * np.pi
SPACING = {"range_pixel_spacing": 3.0, "azimuth_pixel_spacing": 14.0}


def wrap(phase):
    return phase - CYCLE * np.round(phase / CYCLE)


@pytest.fixture
def call(tmp_path):
    """Return a function that writes a cloud with phases of its images, in radians, runs the command and reads it."""
    numbers = iter(range(1000))

    def run(gix, theta, pairs, *, missing=None, block=300, workers=None, **options):
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        ph = np.exp(1j * np.asarray(theta, float)).astype(np.complex64)
        if missing is not None:
            ph[missing] = np.nan
        for name in ("weight", "variance"):
            if name in options:
                options[name] = write_array(folder / f"{name}.zarr", options[name], (block,))
        gix = np.asarray(gix, np.int32).reshape(-1, 2)
        arguments = {
            "gix": write_array(folder / "gix.zarr", gix, (block, 2)),
            "ph": write_array(folder / "ph.zarr", ph, (block, 1)),
            "unw_ph": str(folder / "unw.zarr"),
            "island": str(folder / "island.zarr"),
            "image_pairs": pairs,
            **SPACING,
            **options,
        }
        mcf_pc(workers=workers or Workers(), **arguments)
        run.attributes = dict(open_array(arguments["unw_ph"]).attrs)
        unw = read_array(arguments["unw_ph"])
        assert unw.dtype == np.float32
        expected = np.stack([interferogram(ph[:, a], ph[:, b]) for a, b in pairs], axis=1)
        np.testing.assert_array_equal(np.isnan(unw), np.isnan(expected))
        off = wrap(unw.astype(float) - expected)
        assert np.nanmax(np.abs(off), initial=0) <= 1e-6 * max(1, np.nanmax(np.abs(unw), initial=0))
        return unw, read_array(arguments["island"])

    return run


def scene(n=1500, seed=0, noise=0.3, nimages=4):
    """Return random pixels and phases of images: a bowl that grows from image to image, and noise."""
    rng = np.random.default_rng(seed)
    pixels = rng.choice(60 * 60, n, replace=False)
    gix = np.stack(np.divmod(pixels, 60), axis=1)
    bowl = np.exp(-((gix - 30.0) ** 2).sum(axis=1) / 400)
    return gix, np.outer(bowl, 9.0 * np.arange(nimages)) + rng.normal(0, noise, (n, nimages))


def cycles_off(unw, theta, pairs):
    """Return the whole cycles by which results differ from the truth."""
    truth = np.stack([theta[:, a] - theta[:, b] for a, b in pairs], axis=1)
    return np.round((unw - truth) / CYCLE)


@pytest.mark.parametrize("spatial_cost", ["statistical", "length", "constant"])
def test_a_smooth_raster_comes_back_exactly(call, spatial_cost):
    gix = np.argwhere(np.ones((40, 30)))
    theta = np.outer(gix @ [1.0, 0.5], [0.0, 1.0])
    unw, island = call(gix, theta, [(1, 0)], spatial_cost=spatial_cost)
    np.testing.assert_allclose(unw[:, 0] - unw[0, 0], gix @ [1.0, 0.5], atol=1e-4)
    assert (island == 0).all()


def test_little_noise_makes_few_errors_in_any_network_of_pairs(call):
    """A network without loops, in two parts, unsorted and with a reversed pair."""
    gix, theta = scene(3000, noise=0.2)
    pairs = [(3, 2), (0, 1)]
    unw, _ = call(gix, theta, pairs)
    off = cycles_off(unw, theta, pairs)
    assert all(np.mean(column != np.median(column)) < 0.01 for column in off.T)


@pytest.mark.parametrize("spatial_cost", ["statistical", "length", "constant"])
def test_results_are_those_of_the_array_function(call, spatial_cost):
    gix, theta = scene(noise=0.9)
    rng = np.random.default_rng(1)
    weight, variance = rng.random(len(gix)), rng.uniform(0.3, 2, len(gix))
    missing = rng.random(theta.shape) < 0.02
    given = {"weight": weight} | ({"variance": variance} if spatial_cost == "statistical" else {})
    pairs = [(0, 1), (2, 0)]
    unw, island = call(
        gix, theta, pairs, missing=missing, spatial_cost=spatial_cost, earth_cost=3, ref_point=42, **given
    )
    net = network(gix, triangulate(gix, (14.0, 3.0)), (14.0, 3.0))
    costs = None if spatial_cost == "statistical" else edge_costs(net, spatial_cost, weight)
    ph = np.where(missing, np.nan, np.exp(1j * theta)).astype(np.complex64)
    for column, (a, b) in enumerate(pairs):
        more = given if spatial_cost == "statistical" else {}
        found = unwrap(net, interferogram(ph[:, a], ph[:, b]), costs=costs, earth_cost=3, reference=42, **more)
        np.testing.assert_array_equal(unw[:, column], found.phase.astype(np.float32))
        np.testing.assert_array_equal(island[:, column], found.island)
        assert call.attributes["costs"][column] == found.cost
        assert call.attributes["n_valid"][column] == np.isfinite(found.phase).sum()


def test_points_in_another_order_have_the_same_values(call):
    gix, theta = scene(noise=1.0)
    missing = np.random.default_rng(2).random(theta.shape) < 0.05
    pairs = [(0, 1), (1, 3)]
    order = np.random.default_rng(3).permutation(len(gix))
    unw, island = call(gix, theta, pairs, missing=missing, ref_point=int(order[7]))
    mixed, mixed_island = call(gix[order], theta[order], pairs, missing=missing[order], ref_point=7)
    np.testing.assert_array_equal(mixed, unw[order])
    np.testing.assert_array_equal(mixed_island, island[order])


def test_chunks_and_workers_change_nothing(call):
    gix, theta = scene(noise=1.0)
    pairs = [(0, 1), (1, 3), (2, 3)]
    unw, island = call(gix, theta, pairs)
    for options in ({"block": 17, "out_chunks": 1000}, {"out_chunks": 40, "workers": Workers(n_workers=3)}):
        again, island_again = call(gix, theta, pairs, **options)
        np.testing.assert_array_equal(again, unw)
        np.testing.assert_array_equal(island_again, island)


@pytest.mark.parametrize(("earth_cost", "cost"), [(1, 6), (3, 8), (100, 105)])
def test_a_vortex_pays_for_the_hull(call, earth_cost, cost):
    """One residue among 60 random points of a square; costs of the optimum from an independent solver."""
    x, y = np.random.default_rng(7).uniform(0, 100, (2, 60))
    gix = np.stack([np.round(1e6 * y), np.round(1e6 * x)], axis=1)
    theta = np.outer(np.arctan2(y - 50.2, x - 49.7), [1, 0])
    call(gix, theta, [(0, 1)], spatial_cost="constant", earth_cost=earth_cost, range_pixel_spacing=1e-6,
         azimuth_pixel_spacing=1e-6)  # fmt: skip
    assert call.attributes["costs"] == [cost]


@pytest.mark.parametrize(
    ("earth_cost", "spatial_cost", "optimum"),
    [(1, "constant", 55), (3, "constant", 63), (1, "length", 3994), (3, "length", 4196)],
)
def test_a_noisy_field_costs_what_other_solvers_found(call, earth_cost, spatial_cost, optimum):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 100, 200), rng.uniform(0, 100, 200)
    theta = np.outer(0.15 * x + 0.08 * y + 2 * np.sin(x / 15) + rng.normal(0, 1.2, 200), [1, 0])
    call(np.stack([np.round(1e6 * y), np.round(1e6 * x)], axis=1), theta, [(0, 1)], spatial_cost=spatial_cost,
         earth_cost=earth_cost, range_pixel_spacing=1e-6, azimuth_pixel_spacing=1e-6)  # fmt: skip
    assert call.attributes["costs"] == [optimum]


@pytest.mark.parametrize(
    ("gix", "truth"),
    [
        ([], []),
        ([[4, 5]], [1.0]),
        ([[4, 5], [4, 9]], [3.0, 5.0]),
        ([[0, 0], [3, 3], [1, 1], [2, 2]], [3.0, 9.0, 5.0, 7.0]),
        ([[7, 7], [7, 7], [7, 7]], [3.0, 3.5, 2.5]),
    ],
)
@pytest.mark.parametrize("tile", [None, 1])
def test_few_points_points_on_a_line_and_points_at_one_place(call, gix, truth, tile):
    theta = np.outer(truth, [1.0, 0.0, 2.0])
    for spatial_cost in ("statistical", "length", "constant"):
        unw, island = call(gix, theta, [(0, 1), (0, 2)], spatial_cost=spatial_cost, **({"tile": tile} if tile else {}))
        for column, sign in ((0, 1), (1, -1)):
            rise = unw[:, column] - sign * np.array(truth)
            np.testing.assert_allclose(rise, rise[:1].repeat(len(rise)), atol=1e-5)
        assert (island == 0).all()


def test_the_reference_point_keeps_its_wrapped_phase(call):
    gix, theta = scene()
    for ref_point in (0, 700):
        unw, _ = call(gix, theta, [(0, 3)], ref_point=ref_point)
        assert unw[ref_point, 0] == pytest.approx(wrap(theta[ref_point, 0] - theta[ref_point, 3]), abs=1e-6)


def test_a_missing_reference_point_is_replaced_by_the_first_valid_point(call):
    gix, theta = scene()
    missing = np.zeros(theta.shape, bool)
    missing[:3, 3] = True
    unw, _ = call(gix, theta, [(0, 3)], missing=missing)
    assert unw[3, 0] == pytest.approx(wrap(theta[3, 0] - theta[3, 3]), abs=1e-6)


def test_missing_points_differ_from_pair_to_pair_and_do_not_matter(call):
    gix, theta = scene(2500, noise=0.1)
    missing = np.random.default_rng(5).random(theta.shape) < [0.02, 0, 0.05, 0.3]
    pairs = [(0, 1), (1, 2), (0, 3)]
    unw, island = call(gix, theta, pairs, missing=missing)
    off = cycles_off(unw, theta, pairs)
    for column, (a, b) in enumerate(pairs):
        lost = missing[:, a] | missing[:, b]
        np.testing.assert_array_equal(island[:, column] < 0, lost)
        main = island[:, column] == np.bincount(island[~lost, column]).argmax()
        assert main.sum() > 0.99 * (~lost).sum()
        assert len(set(off[main, column])) == 1


def test_a_wall_of_missing_points_makes_islands_with_a_warning(call, caplog):
    """A46: labels of what cannot be related; the pair is named, with a hint."""
    gix = np.argwhere(np.ones((30, 30)))
    theta = np.outer(gix @ [0.4, 0.1], [0, 1, 2])
    for width in (2, 12):  # of less and of more than a tenth of the points
        missing = np.zeros(theta.shape, bool)
        missing[(gix[:, 0] >= 10) & (gix[:, 0] < 10 + width), 2] = True
        with caplog.at_level(logging.WARNING, "moraine"):
            unw, island = call(gix, theta, [(0, 1), (1, 2)], missing=missing)
        assert "part pair 1 2 into islands" in caplog.text
        assert call.attributes["n_islands"] == [1, 2]
        assert (island[:, 0] == 0).all()
        off = cycles_off(unw, theta, [(0, 1), (1, 2)])[:, 1]
        parts = gix[:, 0] < 10, gix[:, 0] >= 10 + width
        labels = [set(island[part, 1]) for part in parts]
        assert sorted(map(tuple, labels)) == [(0,), (1,)]
        assert all(len(set(off[part])) == 1 for part in parts)


def test_a_gap_in_a_sparse_remainder_is_bridged_by_edges_of_usual_length(call):
    """Half of the points is missing at random: the others are triangulated anew and are one island."""
    gix, theta = scene(3000, noise=0.05)
    missing = np.zeros(theta.shape, bool)
    missing[:, 1] = np.random.default_rng(6).random(3000) < 0.5
    unw, island = call(gix, theta, [(0, 1)], missing=missing)
    valid = ~missing[:, 1]
    assert np.mean(island[valid, 0] == 0) > 0.99
    off = cycles_off(unw, theta, [(0, 1)])[valid & (island[:, 0] == 0)]
    assert len(np.unique(off)) == 1


def test_a_pair_without_valid_points_is_nan_and_named(call, caplog):
    gix, theta = scene(200)
    missing = np.zeros(theta.shape, bool)
    missing[:, 2] = True
    with caplog.at_level(logging.WARNING, "moraine"):
        unw, island = call(gix, theta, [(0, 1), (1, 2)], missing=missing)
    assert "no point is valid in pair 1 2" in caplog.text
    assert np.isnan(unw[:, 1]).all()
    assert (island[:, 1] == -1).all()
    assert np.isfinite(unw[:, 0]).all()


def test_zero_and_infinite_samples_are_missing_as_nan_is(tmp_path):
    gix, theta = scene(300)
    ph = np.exp(1j * theta).astype(np.complex64)
    found = []
    for number, value in enumerate((np.nan, 0, np.inf, complex(1, np.nan))):
        changed = ph.copy()
        changed[5:9, 1] = value
        folder = tmp_path / str(number)
        folder.mkdir()
        mcf_pc(
            gix=write_array(folder / "gix.zarr", gix.astype(np.int32), (100, 2)),
            ph=write_array(folder / "ph.zarr", changed, (100, 1)),
            unw_ph=str(folder / "unw.zarr"),
            image_pairs=[(0, 1)],
            **SPACING,
        )
        found.append(read_array(folder / "unw.zarr"))
        assert np.isnan(found[-1][5:9]).all()
        np.testing.assert_array_equal(found[-1], found[0])


@pytest.mark.parametrize("spatial_cost", ["statistical", "length", "constant"])
def test_a_discontinuity_goes_where_weights_are_low(call, spatial_cost):
    """Points of weight 0 may be wrong; the others are all right. A55: the option changes the result."""
    rng = np.random.default_rng(8)
    gix = np.argwhere(np.ones((40, 40)))
    is_bad = (abs(gix[:, 0] - 20) < 4) & (rng.random(1600) < 0.7)
    theta = np.outer(np.where(is_bad, rng.uniform(-np.pi, np.pi, 1600), 0.3 * gix[:, 1]), [1, 0])
    weight = np.where(is_bad, np.nan, 1.0)
    unw, _ = call(gix, theta, [(0, 1)], weight=weight, spatial_cost=spatial_cost)
    off = cycles_off(unw, theta, [(0, 1)])[~is_bad]
    assert np.mean(off != off[0]) < 0.001


def test_known_variances_make_fewer_errors(call):
    rng = np.random.default_rng(4)
    gix = rng.integers(0, 2000, (8000, 2))
    sigma = rng.uniform(0.2, 1.8, 8000)
    theta = np.outer(rng.normal(0, sigma), [1, 0])
    wrong = []
    for given in ({}, {"variance": sigma**2}, {"variance": np.where(sigma > 1.7, np.inf, sigma**2)}):
        off = cycles_off(call(gix, theta, [(0, 1)], **given)[0], theta, [(0, 1)])
        wrong.append(np.mean(off != np.median(off)))
    assert wrong[1] < wrong[0]
    assert wrong[2] < wrong[0]


def test_each_kind_of_costs_gives_another_result(call):
    """A55: no option is without effect."""
    gix, theta = scene(noise=1.3)
    found = [
        call(gix, theta, [(0, 1)], **options)[0]
        for options in (
            {},
            {"spatial_cost": "length"},
            {"spatial_cost": "constant"},
            {"spatial_cost": "constant", "earth_cost": 50},
            {"range_pixel_spacing": 30.0},
        )
    ]
    for number, one in enumerate(found):
        assert all((one != other).any() for other in found[:number])


def test_a_pair_that_fails_does_not_lose_the_others_and_is_listed(call, monkeypatch, tmp_path):
    """A44: the same call goes on with the pair alone. A47: a solution that is not proven is an error."""
    gix, theta = scene(300)
    pairs = [(0, 1), (1, 2), (2, 3)]
    solved = []
    original = flow_tasks.pair_cycles

    def fails_once(cloud, phase, earth_cost):
        solved.append(1)
        if len(solved) == 2:
            raise ArithmeticError("no solution")
        return original(cloud, phase, earth_cost)

    monkeypatch.setattr(flow_tasks, "pair_cycles", fails_once)
    arguments = {
        "gix": write_array(tmp_path / "gix.zarr", gix.astype(np.int32), (100, 2)),
        "ph": write_array(tmp_path / "ph.zarr", np.exp(1j * theta).astype(np.complex64), (100, 1)),
        "unw_ph": str(tmp_path / "unw.zarr"),
        "image_pairs": pairs,
        **SPACING,
    }
    with pytest.raises(Exception, match="no solution"):
        mcf_pc(workers=Workers(n_workers=1), **arguments)
    assert not (tmp_path / "unw.zarr").exists()
    assert len(solved) == 3
    mcf_pc(workers=Workers(n_workers=1), **arguments)
    assert len(solved) == 4
    np.testing.assert_array_equal(read_array(tmp_path / "unw.zarr"), call(gix, theta, pairs)[0])


@pytest.mark.parametrize("options", [{}, {"tile": 150}])
def test_a_solution_that_is_not_proven_fails(call, monkeypatch, options):
    """A47: the solver's status is checked; of tiles the tile is named."""
    gix, theta = scene(300)
    monkeypatch.setattr(_cpu, "is_optimal", lambda *_: False)
    with pytest.raises(Exception, match=r"tile \d, pair 0 1: the flow does not" if options else "the flow does not"):
        call(gix, theta, [(0, 1)], **options)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"image_pairs": []}, UsageError, r"mcf-pc: image_pairs is empty; expected at least one pair"),
        ({"image_pairs": [(1, 1)]}, UsageError, r"image_pairs: pair 0 is \(1, 1\); expected two different images"),
        ({"image_pairs": [(0, 4)]}, UsageError, r"pair 0 is \(0, 4\); expected images 0 to 3 of ph .*ph.zarr"),
        ({"image_pairs": [(0, 1), (1, 0)]}, UsageError, "expected each pair once"),
        ({"range_pixel_spacing": 0}, UsageError, r"mcf-pc: range_pixel_spacing is 0; expected a positive number \(m\)"),
        ({"azimuth_pixel_spacing": float("nan")}, UsageError, "azimuth_pixel_spacing is nan; expected a positive"),
        ({"azimuth_pixel_spacing": 1e9}, UsageError, "expected two numbers whose ratio is at most 1000000"),
        ({"earth_cost": 0}, UsageError, "mcf-pc: earth_cost is 0; expected 1 to 100000"),
        ({"ref_point": 300}, UsageError, "mcf-pc: ref_point is 300; expected 0 to 299, one of the points"),
        ({"ref_point": -1}, UsageError, "mcf-pc: ref_point is -1; expected 0 to 299"),
        ({"out_chunks": 0}, UsageError, "mcf-pc: out_chunks is 0; expected at least 1, or -1 for all"),
        ({"tile": 0}, UsageError, "mcf-pc: tile is 0; expected at least 1, or -1 for all"),
        ({"spatial_cost": "size"}, UsageError, "spatial_cost is 'size'; expected one of statistical, length, constant"),
        ({"spatial_cost": "length", "variance": np.ones(300)}, UsageError,
         "mcf-pc: variance is given with spatial_cost length; it counts in statistical alone"),
        ({"variance": np.where(np.arange(300) == 7, -1.0, 1.0)}, UsageError,
         r"mcf-pc: variance .*variance.zarr is -1 at point 7; expected more than 0 \(rad\^2\)"),
        ({"weight": np.ones(299)}, LayoutError, r"weight.zarr has shape \(299,\); expected n_points 300"),
        ({"weight": np.ones((300, 2))}, LayoutError, r"weight.zarr has shape \(300, 2\); expected \(n_points\)"),
        ({"gix": np.zeros((299, 2), np.int32)}, LayoutError, "expected n_points 299"),
        ({"gix": np.zeros((300, 2), np.float32)}, LayoutError, "gix.zarr is float32; expected integer"),
        ({"ph": np.ones((300, 4), np.float32)}, LayoutError, "ph.zarr is float32; expected complex64"),
        ({"ph_chunks": (100, 4)}, UsageError,
         r"mcf-pc: ph .*ph.zarr has chunks \(100, 4\); expected \(100, 1\), one image per chunk: moraine pc-concat"),
    ],
)  # fmt: skip
def test_wrong_calls_are_refused_in_a_sentence_before_anything_is_written(tmp_path, change, error, message):
    gix, theta = scene(300)
    values = {"gix": gix.astype(np.int32), "ph": np.exp(1j * theta).astype(np.complex64)}
    chunks = {"ph": change.pop("ph_chunks", (100, 1))} if "ph_chunks" in change else {"ph": (100, 1)}
    arrays = values | {name: value for name, value in change.items() if isinstance(value, np.ndarray)}
    paths = {
        name: write_array(tmp_path / f"{name}.zarr", value, chunks.get(name, (100,) * value.ndim))
        for name, value in arrays.items()
    }
    arguments = {"unw_ph": str(tmp_path / "unw.zarr"), "image_pairs": [(0, 1)], **SPACING, **change, **paths}
    with pytest.raises(error, match=message):
        mcf_pc(**arguments)
    assert not (tmp_path / "unw.zarr").exists()


def test_the_advice_on_chunks_helps(tmp_path):
    """A phase history with all images in a chunk is refused; the command named in the sentence makes a good one."""
    from moraine_points.pc_concat import pc_concat

    _, theta = scene(300)
    path = write_array(tmp_path / "ph.zarr", np.exp(1j * theta).astype(np.complex64), (100, 4))
    pc_concat(pcs=[path], pc=[str(tmp_path / "new.zarr")])
    assert open_array(tmp_path / "new.zarr").chunks[1] == 1
    np.testing.assert_array_equal(read_array(tmp_path / "new.zarr"), read_array(path))


def test_the_network_is_the_one_of_the_points_as_they_are():
    gix = np.random.default_rng(0).integers(0, 40, (900, 2))  # with points at the same place
    for points in (gix, gix[:2], gix[:1], gix[:0]):
        found = shared_network(points, spacing=(14.0, 3.0))
        expected = network(points, triangulate(points, (14.0, 3.0)), (14.0, 3.0))
        for name, array in expected._asdict().items():
            np.testing.assert_array_equal(getattr(found, name), array, err_msg=name)


def test_the_phase_of_a_pair_is_the_angle_of_ref_conj_sec():
    rng = np.random.default_rng(0)
    ref, sec = (rng.normal(size=50) + 1j * rng.normal(size=50) for _ in "ab")
    found = interferogram(ref.astype(np.complex64), sec.astype(np.complex64))
    np.testing.assert_allclose(found, np.angle(ref * np.conj(sec)), atol=1e-6)
    half = interferogram(np.complex64([1, -1]), np.complex64([-1, 1]))
    np.testing.assert_array_equal(half, np.pi)
