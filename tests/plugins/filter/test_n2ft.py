"""The filter on point clouds: its sums against loops, and the command from zarr to zarr; with any weights, and ours."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
import torch

from moraine_core import UsageError, Workers
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_filter import weights
from moraine_filter.n2ft import n2ft
from moraine_filter.points import _cpu, limits, tasks
from moraine_filter.points.network import (
    STEP,
    PointNet,
    Table,
    gather,
    gather_with_torch,
    graphs_of,
    pool,
    pool_with_torch,
    slopes_of,
    spectra,
    spectra_with_torch,
)
from moraine_filter.points.structure import cloud_of, structure_of

NO_DATA = [nan, complex(nan, 1), complex(1, nan), inf, complex(1, -inf), 0, 1e-31]
PAIRS = ((0, 1), (2, 0), (1, 2))


@pytest.fixture(scope="module")
def anything(tmp_path_factory):
    """Return a file of random weights: what is true of any weights must not hang on ours."""
    torch.manual_seed(1)
    path = str(tmp_path_factory.mktemp("model") / "anything.safetensors")
    weights.save(path, PointNet().state_dict(), "n2ft", {})
    return path


@pytest.fixture
def run(tmp_path):
    """Return a function that filters arrays by the command."""
    count = iter(range(100))

    def call(x, y, rslc, stored=64, trust=False, workers=None, **options):
        folder = tmp_path / str(next(count))
        folder.mkdir()
        arrays = {
            "x": write_array(folder / "x.zarr", np.asarray(x, float), (stored,)),
            "y": write_array(folder / "y.zarr", np.asarray(y, float), (stored,)),
            "rslc": write_array(folder / "rslc.zarr", np.asarray(rslc, np.complex64), (stored, 1)),
            "intf": str(folder / "intf.zarr"),
        }
        if trust:
            arrays["trust"] = str(folder / "trust.zarr")
        n2ft(**arrays, **options, **({"workers": workers} if workers else {}))
        intf = read_array(arrays["intf"])
        return (intf, read_array(arrays["trust"])) if trust else intf

    return call


def points_and_stack(n, nimages=3, seed=0):
    """Return points in clusters and a stack that is coherent on a slope of phase."""
    rng = np.random.default_rng(seed)
    x, y = 50 * rng.normal(size=(2, n)) ** 3
    slope = np.exp(1j * np.outer(x / 90 - y / 70, np.arange(nimages)))
    return x, y, (speckle((n, 1), seed) + 0.6 * speckle((n, nimages), seed + 1)) * slope


def off(one, other):
    """Return angles between phasors, radians."""
    return np.abs(np.angle(one * np.conj(other)))


# ------------------------------------------------------------------------------------------------ what is added up


def some_features(seed=0, m=5, n=7, batch=3, channels=6, k=4):
    gen = torch.Generator().manual_seed(seed)
    features = torch.randn(n, batch, 2, channels, generator=gen)
    rows = torch.randint(0, n, (m, k), generator=gen)
    table = Table(rows, torch.randn(m, k, 2, generator=gen), torch.ones(m), torch.ones(m, k) / k)
    return features, table, torch.randn(m, k, channels, generator=gen)


def test_sums_over_neighbors_are_those_of_loops_that_extrapolate_the_phase():
    features, table, w = some_features()
    turning = 4
    found = gather(features, table, w, turning)
    for i in range(5):
        for b in range(3):
            total = np.zeros(6, complex)
            for k in range(4):
                h = features[table.rows[i, k], b].numpy()
                back = np.exp(-1j * float(h[:, turning] @ table.toward[i, k].numpy()))
                for c in range(6):
                    z = complex(h[0, c], h[1, c])
                    total[c] += float(w[i, k, c]) * (z * back if c < turning else z)
            np.testing.assert_allclose(found[i, b, 0], total.real, atol=2e-6)
            np.testing.assert_allclose(found[i, b, 1], total.imag, atol=2e-6)


def test_sums_and_their_gradients_are_those_of_torch_alone():
    """What runs on a GPU, run here, gives the same."""
    features, table, w = some_features(seed=1)
    results = []
    for function in (gather, gather_with_torch):
        leaves = features.clone().requires_grad_(), w.clone().requires_grad_()
        out = function(leaves[0], table, leaves[1], 4)
        out.square().sum().backward()
        results.append((out.detach(), *(leaf.grad for leaf in leaves)))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=3e-5, rtol=1e-5)


def test_cosine_and_sine_of_the_kernels_are_right_to_a_millionth():
    for angle in np.concatenate([np.linspace(-40, 40, 2001), np.arange(-9, 10) * np.pi / 4]).astype(np.float32):
        c, s = _cpu._phasor(angle)
        assert abs(c - np.cos(np.float64(angle))) < 4e-6
        assert abs(s - np.sin(np.float64(angle))) < 4e-6


def test_local_spectra_are_those_of_loops_and_of_torch():
    samples = torch.randn(9, 3, generator=torch.Generator().manual_seed(2))
    samples[:, 2] = 1
    samples[4] = 0
    _, table, _ = some_features(seed=3, n=5)
    found = spectra(samples, table)
    torch.testing.assert_close(found, spectra_with_torch(samples, table), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(pool(found, table), pool_with_torch(found, table))
    for i in range(5):
        power = []
        for a in range(8):
            for b in range(8):
                slope = STEP * (np.array([a, b]) - 3.5)
                z = samples[table.rows[i], 0].numpy() + 1j * samples[table.rows[i], 1].numpy()
                power.append(abs((z * np.exp(-1j * table.toward[i].numpy() @ slope)).sum()) ** 2)
        np.testing.assert_allclose(found[i], np.array(power) / np.mean(power), rtol=1e-3, atol=1e-4)


def test_the_slope_of_a_ramp_is_found_in_noise():
    rng = np.random.default_rng(8)
    x, y = rng.random((2, 3000))
    cloud = cloud_of(x, y)
    phase = (1.5 * x - 2 * y) / cloud.unit
    common, noise = speckle((3000,), 1), speckle((3000,), 2)
    z = common * (0.6 * common + 0.8 * noise).conj() * np.exp(1j * phase)
    samples = np.stack([(z / abs(z)).real, (z / abs(z)).imag, abs(z)], -1)[cloud.order, None]
    net = PointNet()
    with torch.no_grad():
        graphs = graphs_of(structure_of(cloud, np.arange(3000)))
        slopes = slopes_of(net.slopes, torch.from_numpy(samples.astype(np.float32)), graphs)
    assert [len(slope) for slope in slopes] == [3000, 750, 188]
    for slope in slopes:
        np.testing.assert_allclose(slope[:, 0, :, 0].median(0).values, [1.5, -2], atol=0.4)


def test_rows_at_a_time_change_nothing(monkeypatch):
    x, y, z = points_and_stack(900)
    parts = structure_of(cloud_of(x, y), np.arange(900))
    net, graphs = PointNet().eval(), graphs_of(parts)
    found = []
    for rows in (10**6, 100):
        monkeypatch.setattr("moraine_filter.points.network.ROWS", rows)
        found.append(tasks.filtered(net, graphs, z.astype(np.complex64), np.array(PAIRS)))
    np.testing.assert_allclose(*found, atol=2e-6)


# ------------------------------------------------------------------------------------------ true of any weights


def test_results_have_modulus_1_and_are_nan_exactly_where_a_sample_is_missing(run, anything):
    """A missing sample does not spread."""
    x, y, z = points_and_stack(200)
    for row, missing in enumerate(NO_DATA):
        z[7 * row, row % 3] = missing
    x[150], y[160] = nan, inf
    intf, trust = run(x, y, z, image_pairs=PAIRS, model=anything, trust=True)
    assert intf.shape == trust.shape == (200, 3)
    assert (intf.dtype, trust.dtype) == (np.complex64, np.float32)
    bad = ~np.isfinite(z) | (np.abs(z) < 1e-30) | ~np.isfinite(x + y)[:, None]
    expected = np.stack([bad[:, ref] | bad[:, sec] for ref, sec in PAIRS], axis=1)
    np.testing.assert_array_equal(np.isnan(intf), expected)
    np.testing.assert_array_equal(np.isnan(trust), expected)
    np.testing.assert_allclose(np.abs(intf[~expected]), 1, atol=1e-6)
    assert trust[~expected].min() > 0
    assert trust[~expected].max() <= 1


def test_a_missing_sample_is_as_if_its_phase_were_unknown(run, anything):
    """What is stored where the other image of a pair is missing changes nothing."""
    x, y, z = points_and_stack(150)
    z[40:60, 1] = nan
    other = z.copy()
    other[40:60, 0] *= np.exp(2j)
    one, two = (run(x, y, s, image_pairs=[(0, 1)], model=anything) for s in (z, other))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("n", [1, 2, 15, 100, 1000])
def test_any_number_of_points_and_chunks_give_the_results_of_the_whole(run, anything, n):
    """Far below the 1e-2 rad that are asked for."""
    x, y, z = points_and_stack(n)
    whole = run(x, y, z, stored=1000, image_pairs=PAIRS, model=anything)
    parts = run(x, y, z, stored=max(n // 5, 1), image_pairs=PAIRS, model=anything, out_chunks=max(n // 3, 1))
    assert np.isfinite(whole).all()
    assert off(whole, parts).max() < 1e-4


@pytest.mark.parametrize(
    "place",
    [lambda t: (t, 0 * t), lambda t: (3 * t, -2 * t), lambda t: (0 * t + 7, 0 * t + 7), lambda t: (t // 4, t // 4)],
    ids=["along x", "a slanted line", "all at one place", "four at each place"],
)
def test_points_on_a_line_and_duplicates_run(run, anything, place):
    x, y = place(np.arange(60.0))
    z = points_and_stack(60)[2]
    whole = run(x, y, z, image_pairs=PAIRS, model=anything)
    assert np.isfinite(whole).all()
    assert off(whole, run(x, y, z, stored=13, image_pairs=PAIRS, model=anything)).max() < 1e-4


def test_a_cloud_without_points_has_results_without_points(run, anything):
    assert run([], [], np.empty((0, 3)), image_pairs=PAIRS, model=anything).shape == (0, 3)


def test_all_pairs_are_those_one_by_one_in_any_order(run, anything):
    x, y, z = points_and_stack(120)
    together = run(x, y, z, image_pairs=PAIRS, model=anything)
    for number, pair in enumerate(PAIRS):
        alone = run(x, y, z, image_pairs=[pair], model=anything)
        assert off(alone[:, 0], together[:, number]).max() < 1e-4
    turned = run(x, y, z, image_pairs=PAIRS[::-1], model=anything)
    assert off(turned, together[:, ::-1]).max() < 1e-4
    assert run(x, y, z, model=anything).shape == (120, 3)


def test_a_constant_phase_is_added_to_the_result(run, anything):
    x, y, z = points_and_stack(300)
    other = z * np.exp(1j * np.array([0, 1.1, -2.5]))
    one, two = (run(x, y, s, image_pairs=PAIRS, model=anything) for s in (z, other))
    assert off(two, one * np.exp(1j * np.array([-1.1, -2.5, 3.6]))).max() < 1e-4


def test_where_the_cloud_lies_its_unit_and_the_order_of_its_points_do_not_matter(run, anything):
    x, y, z = points_and_stack(300)
    one = run(x, y, z, image_pairs=PAIRS, model=anything)
    moved = run(4 * x + 2**21, 4 * y - 2**22, z, image_pairs=PAIRS, model=anything)
    assert off(one, moved).max() < 1e-2
    assert np.median(off(one, moved)) < 1e-5
    shuffled = np.random.default_rng(1).permutation(300)
    other = run(x[shuffled], y[shuffled], z[shuffled], image_pairs=PAIRS, model=anything)
    assert off(one[shuffled], other).max() < 1e-4


def test_amplitudes_count_as_ratios_of_any_size(run, anything):
    x, y, z = points_and_stack(100)
    one = run(x, y, z, image_pairs=PAIRS, model=anything)
    for scale in (1e-12, 1e12):
        assert off(one, run(x, y, z * scale, image_pairs=PAIRS, model=anything)).max() < 1e-3


def test_threads_and_processes_give_the_same(run, anything):
    x, y, z = points_and_stack(150)
    calls = [Workers(n_workers=1), Workers(n_workers=2, processes=True)]
    one, two = (run(x, y, z, stored=40, image_pairs=PAIRS, model=anything, workers=w) for w in calls)
    np.testing.assert_array_equal(one, two)


def test_a_tile_that_depends_on_too_many_points_is_cut(monkeypatch):
    x, y = np.random.default_rng(5).random((2, 6000))
    cloud = cloud_of(x, y)
    monkeypatch.setattr(limits, "most_members", lambda _: 5000)
    ranks = np.arange(0, 1500, 5)
    cut = list(tasks.tiles(cloud, ranks, 300))
    np.testing.assert_array_equal(np.concatenate([tile for tile, _ in cut]), ranks)
    assert len(cut) > 2
    assert all(len(parts[0].members) <= 5000 or len(tile) == 1 for tile, parts in cut)


@pytest.mark.parametrize("chunks", [(7, 1), (40, 2), (100, 5)])
def test_samples_are_read_wherever_they_are_stored(tmp_path, chunks):
    from moraine_core import Chunk

    stack = speckle((100, 5), seed=3)
    path = write_array(tmp_path / "rslc.zarr", stack, chunks)
    points, images = np.array([99, 3, 50, 4, 98]), np.array([0, 3, 4])
    found = tasks.read_samples(Chunk(path), points, images)
    np.testing.assert_array_equal(found, stack[points][:, images])


# -------------------------------------------------------------------------------------------------- with our weights


def test_a_phase_without_noise_stays(run):
    x, y = 500 * np.random.default_rng(9).random((2, 800))
    z = np.exp(1j * np.array([0.4, -1, 2])) * np.ones((800, 1))
    intf, trust = run(x, y, z, image_pairs=PAIRS, trust=True)
    errors = off(intf, np.stack([z[:, a] * np.conj(z[:, b]) for a, b in PAIRS], axis=1))
    assert np.quantile(errors, 0.95) < 0.05
    assert np.median(trust) > 0.9


def test_noise_of_half_coherence_becomes_less_than_the_best_mean_of_neighbors_leaves(run):
    """A slope of phase, three pairs; means of the 256 nearest points with Gaussian weights of any bandwidth."""
    rng = np.random.default_rng(10)
    x, y = 500 * rng.random((2, 1500))
    phase = (x - y) / 40  # three points, one from the next, are about a radian
    common, noise = speckle((1500, 1), seed=1), speckle((1500, 3), seed=2)
    z = 0.5**0.5 * (common + noise) * np.exp(1j * np.outer(phase, [0, 1, 2]))
    pairs = [(1, 0), (2, 1)]
    intf = run(x, y, z, image_pairs=pairs)
    ours = np.sqrt(np.mean(off(intf, np.exp(1j * phase)[:, None]) ** 2))
    raw = np.stack([z[:, a] * np.conj(z[:, b]) for a, b in pairs], axis=1)
    apart = np.hypot(x[:, None] - x, y[:, None] - y)
    means = [np.exp(-0.5 * (apart / width) ** 2) @ raw for width in (5, 7, 10, 14, 20, 28, 40)]
    best = min(np.sqrt(np.mean(off(mean, np.exp(1j * phase)[:, None]) ** 2)) for mean in means)
    assert ours < 0.9 * best


def test_trust_is_high_where_phase_can_be_known_and_low_in_noise(run):
    rng = np.random.default_rng(6)
    x, y = 500 * rng.random((2, 1500))
    common, noise = speckle((1500, 1), seed=1), speckle((1500, 3), seed=2)
    left = (x < 250)[:, None]
    trust = run(x, y, np.where(left, common + 0.3 * noise, noise), image_pairs=PAIRS, trust=True)[1]
    known, unknown = np.median(trust[x < 200]), np.median(trust[x > 300])
    assert known > 0.85
    assert unknown < 0.7 * known


# ----------------------------------------------------------------------------------------------- what is refused


def test_calls_that_cannot_be_are_refused_in_a_sentence(run, anything, tmp_path, monkeypatch):
    x, y, z = points_and_stack(20)
    other = tmp_path / "other.safetensors"
    other.write_bytes(b"not weights")
    for words, options in (
        ("n2ft: image_pairs: pair 0 is .0, 3.; expected images 0 to 2 of rslc", {"image_pairs": [(0, 3)]}),
        ("n2ft: image_pairs: pair 1 is .0, 1., the images of pair 0", {"image_pairs": [(0, 1), (0, 1)]}),
        ("n2ft: chunks is 0; expected at least 1", {"chunks": 0}),
        ("n2ft: model .*nowhere: No such file", {"model": str(tmp_path / "nowhere")}),
        ("n2ft: model .*other.safetensors is not a whole safetensors file", {"model": str(other)}),
    ):
        arrays = {
            name: write_array(tmp_path / f"{name}.zarr", values)
            for name, values in (("x", x), ("y", y), ("rslc", z.astype(np.complex64)))
        }
        with pytest.raises(UsageError, match=words):
            n2ft(**arrays, intf=str(tmp_path / "intf.zarr"), **{"model": anything, **options})
        assert not (tmp_path / "intf.zarr").exists()
    with pytest.raises(UsageError, match=r"n2ft: rslc .* has 1 images; expected at least 2, to make pairs"):
        run(x, y, z[:, :1], model=anything)
    monkeypatch.setattr(weights, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="n2ft: torch is not installed; install it with"):
        run(x, y, z, model=anything)


def test_the_weights_of_another_network_are_refused(run, tmp_path):
    path = str(tmp_path / "n2f.safetensors")
    weights.save(path, {"a": torch.ones(2)}, "n2f", {})
    x, y, z = points_and_stack(20)
    with pytest.raises(UsageError, match=r"n2ft: model .* has weights of n2f; expected n2ft"):
        run(x, y, z, model=path)


def test_weights_of_other_shapes_are_refused_in_a_sentence(run, tmp_path):
    path = str(tmp_path / "other.safetensors")
    weights.save(path, {"a": torch.ones(2)}, "n2ft", {})
    with pytest.raises(ValueError, match=r"n2ft: model .* does not fit the network: Missing key"):
        run(*points_and_stack(20), image_pairs=PAIRS, model=path)


def test_the_weights_that_are_shipped_are_whole_and_small():
    about = weights.check(weights.packaged("n2ft"), "n2ft")
    assert (about["made_by"], about["license"]) == ("tools/train_n2ft.py", "BSD-3-Clause")
    assert sum(value.numel() for value in weights.load(weights.packaged("n2ft"), "n2ft").values()) <= 500_000
