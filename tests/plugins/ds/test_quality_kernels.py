"""Temporal coherence of distributed scatterers: by hand, against plain loops, and against what theory says."""

from __future__ import annotations

from cmath import exp, pi
from math import inf, nan

import numpy as np
import pytest

from moraine_ds.quality import kernels
from moraine_ds.quality.kernels import ds_temp_coh
from moraine_ds.quality.random_graph import edge_probability
from moraine_raster.networks import TempNet

NO_DATA = [nan, complex(nan, 1), complex(1, nan), inf, complex(1, -inf), 0, 1e-31, 1e-40]


def phasors(phases):
    return np.exp(1j * phases).astype(np.complex64)


def random_points(n_points, nimages, seed, *, noise=1.0, decay=4.0):
    """Return coherence of all pairs, and phases that fit it but for noise."""
    rng = np.random.default_rng(seed)
    pairs = TempNet.from_bandwidth(nimages).image_pairs
    theta = rng.uniform(-pi, pi, (n_points, nimages))
    psi = noise * rng.normal(size=(n_points, len(pairs)))
    size = 0.1 + 0.9 * np.exp(-np.diff(pairs)[:, 0] / decay) * rng.uniform(0.1, 1, (n_points, len(pairs)))
    coh = size * np.exp(1j * (theta[:, pairs[:, 0]] - theta[:, pairs[:, 1]] + psi))
    return coh.astype(np.complex64), phasors(theta)


def is_valid(value):
    return np.isfinite(value) and abs(value) >= 1e-30


def by_loops(coh, ph, looks, pairs, alpha=1e-3):
    """Return the four measures of one point, written as the formulas are."""
    nimages = len(ph)
    total, weighted, weights, squares, count = 0j, 0j, 0.0, 0.0, 0
    linked = np.eye(nimages, dtype=bool)
    for value, (a, b) in zip(map(complex, coh), pairs, strict=True):
        if not (is_valid(value) and is_valid(complex(ph[a])) and is_valid(complex(ph[b]))):
            continue
        residual = value * complex(ph[a]).conjugate() * complex(ph[b])
        residual /= abs(value) * abs(complex(ph[a])) * abs(complex(ph[b]))
        total += residual
        count += 1
        if looks > 1:
            w = max(0.0, (abs(value) ** 2 - 1 / looks) / (1 - 1 / looks))
            weighted += w * residual
            weights += w
            squares += w * w
            if abs(value) ** 2 > 1 - edge_probability(nimages, alpha) ** (1 / (looks - 1)):
                linked[a, b] = linked[b, a] = True
    for _ in range(nimages.bit_length()):
        linked = linked @ linked
    return (
        abs(total) / count if count else nan,
        abs(weighted) / weights if weights else nan,
        weights**2 / squares if weights else 0.0,
        len({tuple(row) for row in linked}),
    )


def compare(found, coh, ph, looks, pairs, alpha=1e-3):
    for i in range(len(coh)):
        expected = by_loops(coh[i], ph[i], np.broadcast_to(looks, len(coh))[i], pairs, alpha)
        np.testing.assert_allclose([measure[i] for measure in found], expected, rtol=1e-5, atol=1e-6, err_msg=str(i))


@pytest.mark.parametrize("nimages", [2, 3, 17, 33, 70])
def test_phases_that_fit_have_temporal_coherence_one(to_device, nimages):
    coh, ph = random_points(3, nimages, seed=1, noise=0)
    found = ds_temp_coh(to_device(coh), to_device(ph), n_looks=50)
    np.testing.assert_allclose(found.t_coh, 1, rtol=1e-6)
    np.testing.assert_allclose(found.t_coh_w, 1, rtol=1e-6)
    assert (found.t_coh <= 1).all()
    assert (found.t_coh_w <= 1).all()


def test_three_pairs_by_hand(to_device):
    ph = to_device(np.ones((1, 3), np.complex64))
    found = ds_temp_coh(to_device(np.complex64([[0.9, -0.1, 0.9]])), ph, n_looks=50)
    np.testing.assert_allclose(np.ravel(found[:3]), [1 / 3, 1, 2], rtol=1e-6)
    coh = np.complex64([[0.9, 0.5 * exp(0.5j), 0.9 * exp(-0.3j)]])
    found = ds_temp_coh(to_device(coh), ph, n_looks=50)
    np.testing.assert_allclose(np.ravel(found[:3]), [0.9462940, 0.9673476, 2.5179464], rtol=1e-6)


def test_components_of_blocks(to_device):
    pairs = TempNet.from_bandwidth(10).image_pairs
    apart = (pairs[:, 0] < 5) != (pairs[:, 1] < 5)
    coh = np.stack([np.full(45, 0.9), np.where(apart, 0.02, 0.9), np.full(45, 0.02)]).astype(np.complex64)
    found = ds_temp_coh(to_device(coh), to_device(np.ones((3, 10), np.complex64)), n_looks=50)
    assert found.n_components.tolist() == [1, 2, 10]


@pytest.mark.parametrize("nimages", [2, 5, 17, 34, 67])
@pytest.mark.parametrize("looks", [1.5, 20, 200])
def test_every_point_equals_plain_loops(to_device, nimages, looks):
    coh, ph = random_points(6, nimages, seed=2)
    found = ds_temp_coh(to_device(coh), to_device(ph * np.float32(3)), n_looks=looks)
    assert [str(measure.dtype) for measure in found] == ["float32", "float32", "float32", "int16"]
    compare(found, coh, ph, looks, TempNet.from_bandwidth(nimages).pairs)


@pytest.mark.parametrize(
    "pairs",
    [
        TempNet.from_bandwidth(12, 3).pairs,
        ((5, 2), (0, 7), (7, 8), (2, 0), (11, 10), (3, 4), (4, 11)),  # unsorted, some reversed
        tuple(TempNet.from_bandwidth(12).pairs[k] for k in np.random.default_rng(3).permutation(66)),
    ],
)
def test_any_network_of_pairs_is_taken(to_device, pairs):
    coh, ph = random_points(5, 12, seed=4)
    rng = np.random.default_rng(5)
    coh = coh[:, : len(pairs)] * rng.choice([0.2, 1], (5, len(pairs))).astype(np.float32)
    found = ds_temp_coh(to_device(coh), to_device(ph), n_looks=30, image_pairs=pairs, alpha=0.2)
    compare(found, coh, ph, 30, pairs, alpha=0.2)


def test_missing_pairs_and_images_are_left_out(to_device):
    nimages, n_points = 12, 40
    coh, ph = random_points(n_points, nimages, seed=6)
    rng = np.random.default_rng(7)
    for missing in NO_DATA:
        coh[rng.random(coh.shape) < 0.05] = missing
        ph[rng.random(ph.shape) < 0.01] = missing
    coh[0], ph[1], ph[2, 1:] = nan, 0, nan
    found = ds_temp_coh(to_device(coh), to_device(ph), n_looks=30)
    compare(found, coh, ph, 30, TempNet.from_bandwidth(nimages).pairs)
    for point in range(3):
        assert np.isnan(found.t_coh[point])
        assert np.isnan(found.t_coh_w[point])
        assert found.eff_n_pairs[point] == 0
        assert found.n_components[point] == nimages


@pytest.mark.parametrize("missing", NO_DATA)
def test_a_missing_pair_does_not_count(to_device, missing):
    """REF-BUG: one pair without coherence made the whole point nan."""
    coh = np.array([[1, missing, -1]], np.complex64)
    found = ds_temp_coh(to_device(coh), to_device(np.ones((1, 3), np.complex64)), n_looks=9)
    np.testing.assert_allclose(found.t_coh, 0, atol=1e-7)
    whole = ds_temp_coh(
        to_device(np.array([[1, missing, 1]], np.complex64)), to_device(np.ones((1, 3), np.complex64)), n_looks=9
    )
    assert [float(measure[0]) for measure in whole] == [1, 1, 2, 1]


def test_coherence_of_any_size_has_a_phase(to_device):
    """A modulus of 1e-29 is one; its square is no number in float32."""
    coh = np.complex64([[1e-29, 1e-29j, 1e-29]])
    found = ds_temp_coh(to_device(coh), to_device(np.ones((1, 3), np.complex64)))
    np.testing.assert_allclose(found.t_coh, abs(2 + 1j) / 3, rtol=1e-6)


def test_the_modulus_of_phases_does_not_matter(to_device):
    """REF-BUG: phases were taken to have modulus 1."""
    coh, ph = random_points(4, 9, seed=8)
    plain = ds_temp_coh(to_device(coh), to_device(ph), n_looks=30)
    for factor in (1e-25, 7, 1e15):
        for found, expected in zip(
            ds_temp_coh(to_device(coh), to_device(ph * np.float32(factor)), n_looks=30), plain, strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_plain_measure_is_the_same_with_and_without_looks(to_device):
    coh, ph = random_points(50, 17, seed=9)
    with_looks = ds_temp_coh(to_device(coh), to_device(ph), n_looks=30)
    without = ds_temp_coh(to_device(coh), to_device(ph))
    np.testing.assert_array_equal(with_looks.t_coh, without.t_coh)
    assert np.isnan(without.t_coh_w).all()
    assert (without.eff_n_pairs == 0).all()
    assert (without.n_components == 17).all()


@pytest.mark.parametrize("looks", [1, 0.5, 0, -3, nan, inf])
def test_points_without_enough_looks_have_no_weights(to_device, looks):
    coh, ph = random_points(1, 6, seed=10, noise=0)
    found = ds_temp_coh(to_device(coh), to_device(ph), n_looks=to_device(np.float32([looks])))
    assert found.t_coh[0] == pytest.approx(1)
    assert np.isnan(found.t_coh_w[0])
    assert (found.eff_n_pairs[0], found.n_components[0]) == (0, 6)


def test_looks_are_those_of_each_point(to_device):
    coh, ph = random_points(7, 9, seed=11)
    looks = np.linspace(2, 80, 7).astype(np.float32)
    found = ds_temp_coh(to_device(coh), to_device(ph), n_looks=to_device(looks))
    compare(found, coh, ph, looks, TempNet.from_bandwidth(9).pairs)


def test_a_point_does_not_depend_on_the_others(to_device):
    """A40: changing one point leaves every bit of the others; a point alone gives what it gives among many."""
    coh, ph = random_points(11, 17, seed=12)
    whole = ds_temp_coh(to_device(coh), to_device(ph), n_looks=30)
    coh[4] = nan
    changed = ds_temp_coh(to_device(coh), to_device(ph), n_looks=30)
    alone = ds_temp_coh(to_device(coh[7:8].copy()), to_device(ph[7:8].copy()), n_looks=30)
    for before, after, single in zip(whole, changed, alone, strict=True):
        np.testing.assert_array_equal(np.delete(np.asarray(after), 4), np.delete(np.asarray(before), 4))
        assert single[0] == before[7]


@pytest.mark.parametrize("n_points", [0, 3])
@pytest.mark.parametrize("nimages", [1, 2])
def test_the_smallest_clouds_and_stacks(to_device, n_points, nimages):
    n_pairs = nimages - 1
    coh = np.full((n_points, n_pairs), 0.5 * exp(1j), np.complex64)
    found = ds_temp_coh(to_device(coh), to_device(np.ones((n_points, nimages), np.complex64)), n_looks=30)
    assert [measure.shape for measure in found] == [(n_points,)] * 4
    assert np.isnan(found.t_coh).all() if nimages == 1 else np.allclose(found.t_coh, 1)
    assert (found.n_components == 1).all()


def test_two_images_of_noise_are_two_components(to_device):
    found = ds_temp_coh(to_device(np.complex64([[0.1]])), to_device(np.ones((1, 2), np.complex64)), n_looks=30)
    assert found.n_components[0] == 2
    assert found.t_coh[0] == pytest.approx(1)


def looked(rng, covariance, n_points, looks):
    """Return coherence matrices (their pairs) that are estimated with a number of independent looks."""
    nimages = len(covariance)
    factor = np.linalg.cholesky(covariance)
    noise = rng.normal(size=(2, n_points, looks, nimages)) / np.sqrt(2)
    samples = (noise[0] + 1j * noise[1]) @ factor.T
    cross = np.einsum("pli,plj->pij", samples, samples.conj())
    power = np.einsum("pii->pi", cross).real
    coh = cross / np.sqrt(power[:, :, None] * power[:, None, :])
    ref, sec = np.triu_indices(nimages, 1)
    return coh[:, ref, sec].astype(np.complex64)


def test_pure_noise_is_connected_as_often_as_asked():
    coh = looked(np.random.default_rng(13), np.eye(17), 4000, 46)
    found = ds_temp_coh(coh, np.ones((4000, 17), np.complex64), n_looks=46, alpha=0.05)
    share = np.mean(found.n_components == 1)
    assert share == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 4000))


def test_decaying_coherence_has_the_temporal_coherence_of_theory():
    """Median 0.959 for 17 images, 50 looks, coherence 0.1 + 0.9 exp(-d / 4), and phases of maximum likelihood."""
    distance = np.abs(np.subtract.outer(np.arange(17), np.arange(17)))
    coh = looked(np.random.default_rng(14), 0.1 + 0.9 * np.exp(-distance / 4), 800, 50)
    matrix = np.zeros((800, 17, 17), complex)
    ref, sec = np.triu_indices(17, 1)
    matrix[:, ref, sec] = coh
    matrix += matrix.conj().swapaxes(1, 2) + np.eye(17)
    inverse = np.linalg.inv(np.abs(matrix))
    vectors = np.linalg.eigh(inverse * matrix)[1][:, :, 0]
    found = ds_temp_coh(coh, vectors.astype(np.complex64), n_looks=50)
    assert np.median(found.t_coh) == pytest.approx(0.959, abs=0.01)
    assert np.median(found.t_coh_w) > np.median(found.t_coh)
    assert (found.n_components == 1).all()


def test_random_phases_have_the_noise_floor_of_a_random_walk():
    coh, _ = random_points(4000, 17, seed=15)
    ph = phasors(np.random.default_rng(16).uniform(-pi, pi, (4000, 17)))
    assert np.mean(ds_temp_coh(coh, ph).t_coh) < 3 / np.sqrt(136)


@pytest.mark.parametrize(
    ("coh", "ph", "options", "fault"),
    [
        ((4, 3), (4, 4), {}, r"coh has shape \(4, 3\) and ph \(4, 4\); expected coh \(4, 6\)"),
        ((3, 6), (4, 4), {}, r"coh has shape \(3, 6\)"),
        ((4, 6), (4, 4), {"image_pairs": [(0, 1)]}, r"expected coh \(4, 1\)"),
        ((4, 1), (4, 4), {"image_pairs": [(0, 4)]}, r"pair 0 is \(0, 4\)"),
        ((4, 6), (4, 4), {"alpha": 0.7}, r"alpha is 0.7"),
    ],
)
def test_what_does_not_fit_is_refused(coh, ph, options, fault):
    with pytest.raises(ValueError, match=fault):
        ds_temp_coh(np.ones(coh, np.complex64), np.ones(ph, np.complex64), **options)


@pytest.mark.parametrize("shared_bytes", [10_000, 2000, 500])
def test_a_gpu_takes_more_images_with_less_points_per_block(emulated_cupy, monkeypatch, shared_bytes):
    from moraine_ds.quality import _gpu

    monkeypatch.setattr(_gpu, "MAX_SHARED_BYTES", shared_bytes)  # a point of 40 images takes 640
    coh, ph = random_points(9, 40, seed=17)
    found = ds_temp_coh(emulated_cupy.asarray(coh), emulated_cupy.asarray(ph), n_looks=30)
    for one, other in zip(found, ds_temp_coh(coh, ph, n_looks=30), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_gpu_refuses_more_images_than_a_warp_holds(emulated_cupy):
    from moraine_ds.quality import _gpu

    coh, ph = (emulated_cupy.zeros((1, n), dtype=np.complex64) for n in (1, 1025))
    with pytest.raises(ValueError, match="1025 images; the kernel for GPUs takes up to 1024"):
        _gpu.points(coh, ph, None, -1.0, np.array([[0, 1]]), None, None, None, None)


def test_rows_are_pairs_of_one_reference_in_sequence():
    assert kernels.rows_of(TempNet.from_bandwidth(4)).tolist() == [[0, 1, 0, 3], [1, 2, 3, 2], [2, 3, 5, 1]]
    rows = kernels.rows_of(TempNet.of([(0, 2), (0, 3), (0, 5), (3, 1), (3, 2)]))
    assert rows.tolist() == [[0, 2, 0, 2], [0, 5, 2, 1], [3, 1, 3, 2]]
    assert kernels.rows_of(TempNet.of([], 3)).shape == (0, 4)
