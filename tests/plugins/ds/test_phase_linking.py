"""EMI against an eigendecomposition in double precision, closed forms, and the statistics of speckle."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_ds.phase_linking import _cpu
from moraine_ds.phase_linking.inverse._cpu import adaptive_beta
from moraine_ds.phase_linking.kernels import emi

ANGLES = np.array([0.3, 1.0, 0.5])
"""Phases of the pairs (0, 1), (0, 2), (1, 2) of three images, which do not close."""


def packed(matrix):
    first, second = np.triu_indices(matrix.shape[-1], 1)
    return np.ascontiguousarray(matrix[..., first, second], dtype=np.complex64)


def closing(theta, modulus):
    """Return packed coherence of some modulus whose phases are those of a history."""
    theta = np.asarray(theta)
    return packed(modulus * np.exp(1j * (theta[..., :, None] - theta[..., None, :])))


def sample_coherence(matrix, looks, points, seed):
    """Return coherence estimated from looks at speckle of a known coherence matrix, complex128 matrices."""
    rng = np.random.default_rng(seed)
    factor = np.linalg.cholesky(matrix)
    noise = rng.normal(size=(2, points, looks, len(matrix)))
    samples = (noise[0] + 1j * noise[1]) @ factor.T
    products = np.einsum("pli,plj->pij", samples, samples.conj())
    power = np.sqrt(np.einsum("pii->pi", products).real)
    return products / (power[:, :, None] * power[:, None, :])


def decaying(n_images, lasting, changing, images):
    distance = np.abs(np.subtract.outer(np.arange(n_images), np.arange(n_images)))
    matrix = lasting + changing * np.exp(-distance / images)
    np.fill_diagonal(matrix, 1)
    return matrix


def oracle(coh, n_images, ref=0, *, regularize=True, beta_min=0.0):
    """Link phases as the formulas say, point by point, in double precision; return phasors, eigenvalues, b."""
    first, second = np.triu_indices(n_images, 1)
    phasors, qualities, betas = [], [], []
    for row in coh.astype(complex):
        matrix = np.eye(n_images, dtype=complex)
        matrix[first, second] = row
        matrix[second, first] = row.conj()
        beta = 0.0
        if regularize:
            values = np.linalg.eigvalsh(np.abs(matrix))
            below, smallest, largest = max(0, -values[0]), values[0], values[-1]
            conditioned = (largest / 1e5 - smallest) / ((1 - smallest) + (largest - 1) / 1e5)
            beta = max(2 * below / (1 + 2 * below), conditioned, 0, beta_min)
        matrix = (1 - beta) * matrix + beta * np.eye(n_images)
        values, vectors = np.linalg.eigh(np.linalg.inv(np.abs(matrix)) * matrix)
        vector = vectors[:, 0] * vectors[ref, 0].conj()
        phasors.append(vector / np.abs(vector))
        qualities.append(values[0])
        betas.append(beta)
    return np.array(phasors), np.array(qualities), np.array(betas)


def details(coh, n_images, ref=0, *, regularize=True, beta_min=0.0):
    """Return phasors, eigenvalue and regularization of each point."""
    ph = np.empty((len(coh), n_images), np.complex64)
    quality, beta = np.empty((2, len(coh)))
    _cpu.link_all(coh, ref, regularize, beta_min, ph, quality, beta)
    return ph, quality, beta


def largest_error(ph, expected):
    return np.abs(np.angle(ph * np.conj(expected))).max()


# -- known values ------------------------------------------------------------------------------------------------------


def test_phases_that_close_are_exact_and_their_eigenvalue_is_one():
    theta = np.array([0, 0.5, -1, 2, 3])
    ph, quality, beta = details(closing(theta, decaying(5, 0, 1, -1 / np.log(0.9)))[None], 5)
    np.testing.assert_allclose(ph[0], np.exp(1j * theta), atol=1e-4)
    assert quality[0] == pytest.approx(1, abs=1e-5)
    assert beta[0] == 0


def test_full_coherence_is_linked_though_its_modulus_is_singular():
    theta = np.linspace(0, 3, 20)
    ph, quality, beta = details(closing(theta, np.ones((20, 20)))[None], 20)
    np.testing.assert_allclose(ph[0], np.exp(1j * theta), atol=1e-4)
    assert beta[0] == pytest.approx(1.999620e-4, rel=1e-2)
    assert quality[0] == pytest.approx(1, abs=1e-2)


@pytest.mark.parametrize(
    ("modulus", "regularize", "beta", "phases", "quality"),
    [
        ((0.8, 0.6, 0.7), True, 0, (0, -0.312735, -0.837884), 1.001421),
        ((0.8, 0.6, 0.7), False, 0, (0, -0.312735, -0.837884), 1.001421),
        ((0.95, 0.2, 0.95), True, 0.330852, (0, -0.274250, -0.748500), 0.997858),
        ((0.95, 0.2, 0.95), False, 0, (0, 2.825379, -0.832427), -3.473591),
    ],
)
def test_three_images_whose_phases_do_not_close(modulus, regularize, beta, phases, quality):
    ph, found, b = details(
        (np.array(modulus) * np.exp(1j * ANGLES)).astype(np.complex64)[None], 3, regularize=regularize
    )
    np.testing.assert_allclose(np.angle(ph[0]), phases, atol=5e-6)
    assert found[0] == pytest.approx(quality, abs=5e-6)
    assert b[0] == pytest.approx(beta, abs=2e-5)


def test_two_images_have_the_phase_of_their_coherence():
    coh = np.array([[0.5 * np.exp(0.7j)]], np.complex64)
    ph, quality, _ = details(coh, 2)
    np.testing.assert_allclose(np.angle(ph[0]), [0, -0.7], atol=1e-6)
    assert quality[0] == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(np.angle(emi(coh, ref=1)[0]), [0.7, 0], atol=1e-6)


def test_one_image_has_the_phase_zero():
    np.testing.assert_array_equal(emi(np.zeros((3, 0), np.complex64)), np.ones((3, 1)))


@pytest.mark.parametrize(
    ("smallest", "largest", "beta"),
    [(-0.1, 5, 0.1666667), (-0.5, 30, 0.5), (1e-6, 20, 1.989624e-4), (0.01, 10, 0)],
)
def test_the_least_regularization_of_given_eigenvalues(smallest, largest, beta):
    found = adaptive_beta(smallest, largest)
    assert found == pytest.approx(beta, rel=1e-6)
    if smallest == -0.1:
        assert (1 - found) * smallest + found == pytest.approx(0.0833333, abs=1e-7)


@pytest.mark.parametrize(
    ("n_images", "beta"), [(2, 1.99998e-5), (3, 2.99994e-5), (17, 1.699728e-4), (20, 1.999620e-4), (92, 9.191636e-4)]
)
def test_the_regularization_of_ones_makes_their_condition_what_float32_can_invert(n_images, beta):
    coh = np.ones((1, n_images * (n_images - 1) // 2), np.complex64)
    ph, _, found = details(coh, n_images)
    assert found[0] == pytest.approx(beta, rel=1e-2)
    np.testing.assert_allclose(ph, 1, atol=1e-5)


# -- against an eigendecomposition -------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta_min", [0.0, 0.25, 0.5])
@pytest.mark.parametrize(
    ("n_images", "looks", "points"),
    [(3, 5, 200), (4, 9, 200), (5, 20, 100), (16, 20, 60), (17, 20, 60), (31, 46, 40), (92, 46, 8)],
)
def test_phases_are_those_of_an_eigendecomposition(n_images, looks, points, beta_min):
    """Sizes on both sides of whole groups and vectors; the moduli of many images are indefinite."""
    coh = packed(sample_coherence(decaying(n_images, 0.2, 0.6, 8), looks, points, seed=n_images))
    expected, quality, beta = oracle(coh, n_images, ref=2, beta_min=beta_min)
    ph, found_quality, found_beta = details(coh, n_images, ref=2, beta_min=beta_min)
    np.testing.assert_allclose(found_beta, beta, atol=3e-5)
    is_good = (beta == 0) | (beta > 1e-3)  # what is nearly singular is too much for float32
    assert is_good.mean() > 0.8
    assert largest_error(ph[is_good], expected[is_good]) < 1e-3
    np.testing.assert_allclose(found_quality[is_good], quality[is_good], rtol=1e-3)
    np.testing.assert_allclose(np.abs(ph), 1, rtol=1e-5)
    np.testing.assert_array_equal(ph[:, 2], 1)


def test_phases_without_regularization_are_those_of_an_eigendecomposition():
    coh = packed(sample_coherence(decaying(8, 0.3, 0.3, 4), 6, 60, seed=3))
    expected, quality, _ = oracle(coh, 8, regularize=False)
    ph, found, beta = details(coh, 8, regularize=False)
    assert (quality < 0).any()
    assert (beta == 0).all()
    np.testing.assert_allclose(found, quality, rtol=2e-3)
    assert np.median(np.abs(np.angle(ph * expected.conj())).max(axis=1)) < 1e-4


def test_coherence_of_many_images_and_more_than_a_cache_holds():
    coh = packed(sample_coherence(decaying(150, 0.3, 0.3, 10), 46, 2, seed=4))
    assert largest_error(emi(coh), oracle(coh, 150)[0]) < 1e-3


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 24), st.integers(0, 2**31), st.sampled_from([0.0, 0.3, 0.5]), st.data())
def test_closing_phases_of_any_number_of_images_are_exact(n_images, seed, beta_min, data):
    ref = data.draw(st.integers(0, n_images - 1))
    rng = np.random.default_rng(seed)
    theta = rng.uniform(-np.pi, np.pi, n_images)
    modulus = decaying(n_images, rng.uniform(0.1, 0.5), rng.uniform(0, 0.4), rng.uniform(1, 20))
    ph = emi(closing(theta, modulus)[None], ref, beta_min=beta_min)[0]
    np.testing.assert_allclose(ph, np.exp(1j * (theta - theta[ref])), atol=1e-4)


def test_without_regularization_linked_phases_are_useless_and_with_it_they_are_not():
    """30 images of coherence 0.8 in 12 looks, 1000 points: median of the largest error of a point, and eigenvalues."""
    matrix = np.full((30, 30), 0.8) + 0.2 * np.eye(30)
    coh = packed(sample_coherence(matrix, 12, 1000, seed=5))
    ph, quality, _ = details(coh, 30, regularize=False)
    assert (quality < 0).all()
    assert np.median(np.abs(np.angle(ph)).max(axis=1)) == pytest.approx(3.13, abs=0.02)
    ph, _, beta = details(coh, 30)
    error = np.angle(ph)
    assert np.median(beta) == pytest.approx(0.013, abs=0.001)
    assert np.median(np.abs(error).max(axis=1)) == pytest.approx(0.302, abs=0.02)
    assert np.sqrt((error**2).mean()) == pytest.approx(0.156, abs=0.008)


@pytest.mark.parametrize(
    ("n_images", "looks", "matrix", "expected"),
    [
        (17, 50, decaying(17, 0.1, 0.9, 4), (0.308, 0.254)),
        (17, 50, decaying(17, 0.3, 0.3, 10), (0.179, 0.169)),
        (92, 46, decaying(92, 0.6, 0.3, 20), (0.107, 0.100)),
    ],
)
def test_the_spread_of_phases_is_what_others_found(n_images, looks, matrix, expected):
    """Root mean square over all images, by least regularization 0 and 0.5; with 0.5 it is smaller."""
    coh = packed(sample_coherence(matrix, looks, 12000 // n_images, seed=6))
    found = [np.sqrt((np.angle(emi(coh, beta_min=beta)) ** 2).mean()) for beta in (0.0, 0.5)]
    np.testing.assert_allclose(found, expected, rtol=0.1)
    assert found[1] < found[0]


def test_sequential_and_full_linking_agree():
    """A41: two halves linked apart, joined by their common image, against all images at once, at coherence 0.8."""
    coh = sample_coherence(np.full((20, 20), 0.8) + 0.2 * np.eye(20), 100, 400, seed=7)
    full = emi(packed(coh))
    first, second = emi(packed(coh[:, :11, :11])), emi(packed(coh[:, 10:, 10:]))
    joined = np.concatenate([first, second[:, 1:] * first[:, 10:]], axis=1)
    assert np.sqrt((np.angle(joined * full.conj()) ** 2).mean()) < 0.1


# -- what must not matter ----------------------------------------------------------------------------------------------


def test_a_point_does_not_depend_on_its_neighbors_or_their_order():
    """A40: bit for bit."""
    coh = packed(sample_coherence(decaying(19, 0.2, 0.5, 5), 15, 30, seed=8))
    ph = emi(coh)
    order = np.random.default_rng(9).permutation(30)
    np.testing.assert_array_equal(emi(coh[order]), ph[order])
    for point in (0, 7, 29):
        np.testing.assert_array_equal(emi(coh[point : point + 1])[0], ph[point])
    changed = coh.copy()
    changed[3] = np.nan
    changed[4] *= -1
    np.testing.assert_array_equal(np.delete(emi(changed), [3, 4], axis=0), np.delete(ph, [3, 4], axis=0))


def test_the_order_of_images_changes_the_order_of_phases():
    matrix = sample_coherence(decaying(12, 0.2, 0.5, 5), 30, 20, seed=10)
    order = np.random.default_rng(11).permutation(12)
    turned = emi(packed(matrix[:, order][:, :, order]), ref=int(np.flatnonzero(order == 4)[0]))
    assert largest_error(turned, emi(packed(matrix), ref=4)[:, order]) < 1e-4


def test_a_phase_added_to_an_image_is_added_to_its_history():
    matrix = sample_coherence(decaying(9, 0.2, 0.5, 5), 20, 20, seed=12)
    theta = np.random.default_rng(13).uniform(-np.pi, np.pi, 9)
    added = matrix * np.exp(1j * (theta[:, None] - theta))
    assert largest_error(emi(packed(added)), emi(packed(matrix)) * np.exp(1j * (theta - theta[0]))) < 1e-4


def test_another_reference_is_a_common_phase():
    """REF-BUG: the option ref was accepted and not passed on."""
    coh = packed(sample_coherence(decaying(9, 0.2, 0.5, 5), 20, 20, seed=14))
    first = emi(coh)
    for ref in (3, 8):
        found = emi(coh, ref=ref)
        np.testing.assert_array_equal(found[:, ref], 1)
        np.testing.assert_allclose(found, first * first[:, ref : ref + 1].conj(), atol=1e-6)


def test_leading_axes_and_other_memory_layouts_are_kept():
    coh = packed(sample_coherence(decaying(6, 0.2, 0.5, 5), 20, 12, seed=15))
    ph = emi(coh)
    np.testing.assert_array_equal(emi(coh.reshape(3, 4, 15)), ph.reshape(3, 4, 6))
    np.testing.assert_array_equal(emi(coh[0]), ph[0])
    np.testing.assert_array_equal(emi(np.asfortranarray(coh)), ph)
    np.testing.assert_array_equal(emi(coh.astype(np.complex128)), ph)
    coh.flags.writeable = False
    np.testing.assert_array_equal(emi(coh), ph)
    assert emi(coh[:0]).shape == (0, 6)


def test_threads_side_by_side_give_the_same():
    """A43: 8 threads, each with a workspace of its own."""
    coh = packed(sample_coherence(decaying(30, 0.2, 0.5, 5), 20, 50, seed=16))
    expected = emi(coh)
    found = [None] * 8

    def work(k):
        for _ in range(5):
            found[k] = emi(coh)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in found:
        np.testing.assert_array_equal(one, expected)


# -- missing and degenerate --------------------------------------------------------------------------------------------


def without_image(coh, n_images, image, value=np.nan):
    first, second = np.triu_indices(n_images, 1)
    coh = coh.copy()
    coh[..., (first == image) | (second == image)] = value
    return coh


@pytest.mark.parametrize("image", [0, 3, 8])
def test_an_image_without_pairs_is_missing_and_the_others_are_as_if_it_were_not_there(image):
    """A37, A39."""
    matrix = sample_coherence(decaying(9, 0.2, 0.5, 5), 20, 10, seed=17)
    rest = np.delete(np.arange(9), image)
    found = emi(without_image(packed(matrix), 9, image), ref=5)
    assert np.isnan(found[:, image]).all()
    expected = emi(packed(matrix[:, rest][:, :, rest]), ref=int(np.flatnonzero(rest == 5)[0]))
    np.testing.assert_array_equal(found[:, rest], expected)


def test_without_its_reference_a_point_is_missing():
    coh = packed(sample_coherence(decaying(5, 0.2, 0.5, 5), 20, 4, seed=18))
    coh[2] = without_image(coh[2], 5, 1)
    ph = emi(coh, ref=1)
    assert np.isnan(ph[2]).all()
    assert np.isfinite(np.delete(ph, 2, axis=0)).all()


def test_other_missing_pairs_count_as_no_coherence():
    """REF-BUG: nan went into the eigensolver."""
    coh = packed(sample_coherence(decaying(7, 0.2, 0.5, 5), 20, 10, seed=19))
    missing, zero = coh.copy(), coh.copy()
    missing[:, [2, 9]] = [np.nan, complex(0.5, np.inf)]
    zero[:, [2, 9]] = 0
    np.testing.assert_array_equal(emi(missing), emi(zero))
    assert largest_error(emi(missing), oracle(zero, 7)[0]) < 1e-3


def test_a_point_with_fewer_than_two_images_is_missing():
    coh = np.full((3, 3), 0.5 + 0.1j, np.complex64)
    coh[1] = np.nan
    coh[2, 1:] = np.nan  # images 0 and 1 are left
    ph = emi(coh)
    assert np.isnan(ph[1]).all()
    np.testing.assert_allclose(np.angle(ph[2, :2]), [0, -np.angle(0.5 + 0.1j)], atol=1e-6)
    assert np.isnan(ph[2, 2])


def test_without_any_coherence_phases_are_defined():
    for n_images in (2, 3, 10):
        np.testing.assert_array_equal(emi(np.zeros((1, n_images * (n_images - 1) // 2), np.complex64)), 1)


def test_an_image_without_coherence_does_not_disturb_the_others():
    """Its eigenvalue is 1, and those of noisy phases are larger: the smallest one says nothing of the rest."""
    matrix = sample_coherence(decaying(9, 0.2, 0.5, 5), 20, 10, seed=20)
    found = emi(without_image(packed(matrix), 9, 4, value=0))
    rest = np.delete(np.arange(9), 4)
    assert largest_error(found[:, rest], emi(packed(matrix[:, rest][:, :, rest]))) < 1e-4
    assert np.isfinite(found[:, 4]).all()


@settings(deadline=None, max_examples=80)
@given(
    st.integers(1, 20),
    st.integers(0, 2**31),
    st.sampled_from(["noise", "unit", "huge", "tiny", "sparse", "negative"]),
    st.booleans(),
    st.sampled_from([0.0, 0.5, 0.99]),
)
def test_nonsense_gives_phasors_or_nan(n_images, seed, kind, regularize, beta_min):
    rng = np.random.default_rng(seed)
    shape = (5, n_images * (n_images - 1) // 2)
    phase = np.exp(2j * np.pi * rng.random(shape))
    modulus = {
        "noise": rng.random(shape),
        "unit": np.ones(shape),
        "huge": 10.0 ** rng.uniform(-3, 18, shape),
        "tiny": 10.0 ** rng.uniform(-44, -10, shape),
        "sparse": rng.random(shape) < 0.2,
        "negative": np.full(shape, 0.999),
    }[kind]
    coh = (modulus * (-1 if kind == "negative" else phase)).astype(np.complex64)
    coh[rng.random(shape) < 0.1] = rng.choice([np.nan, np.inf, 0])
    ph = emi(coh, regularize=regularize, beta_min=beta_min)
    is_phasor = np.abs(np.abs(ph) - 1) < 1e-5
    assert (is_phasor | np.isnan(ph)).all()
    if regularize and kind != "huge":
        has_pair = np.zeros((5, n_images), bool)
        for k, pair in enumerate(zip(*np.triu_indices(n_images, 1), strict=True)):
            has_pair[:, pair] |= np.isfinite(coh[:, k : k + 1])
        has_pair |= n_images == 1
        np.testing.assert_array_equal(np.isfinite(ph), has_pair & has_pair[:, :1])


# -- calls -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_pairs", "options", "fault"),
    [
        (4, {}, "4 pairs are not all pairs"),
        (3, {"ref": 3}, "ref is 3; expected one of 3 images, from 0"),
        (3, {"ref": -1}, "ref is -1"),
        (3, {"beta_min": 1.0}, "beta_min is 1.0; expected at least 0 and below 1"),
        (3, {"beta_min": -0.1}, "beta_min is -0.1"),
        (3, {"beta_min": np.nan}, "beta_min is nan"),
    ],
)
def test_wrong_calls_are_refused(n_pairs, options, fault):
    with pytest.raises(ValueError, match=fault):
        emi(np.zeros((2, n_pairs), np.complex64), **options)


def test_a_compiled_function_links_single_points_with_one_workspace():
    """What a fused command calls: `link`, point after point, whatever the one before left behind."""
    coh = packed(sample_coherence(decaying(21, 0.2, 0.5, 5), 15, 10, seed=21))
    coh[4] = without_image(coh[4], 21, 6)
    work, ph = _cpu.workspace(21), np.empty((10, 21), np.complex64)
    work[:] = np.nan
    for point in (4, 2, 9):
        _cpu.link(coh[point], 0, True, 0.0, work, ph[point])
        np.testing.assert_array_equal(ph[point], emi(coh[point]))


# -- the kernel for GPUs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_images", "points"), [(1, 2), (2, 4), (3, 9), (17, 6), (30, 4), (92, 2), (145, 2)])
def test_the_gpu_finds_what_the_cpu_finds(emulated_cupy, n_images, points):
    """The largest matrix has no room in shared memory."""
    coh = packed(sample_coherence(decaying(n_images, 0.2, 0.6, 8), 20, points, seed=22))
    if n_images > 2:
        coh[0] = without_image(coh[0], n_images, 1)
        coh[1, 1] = np.nan
        coh[-1, 0] = np.inf
    for options in ({}, {"beta_min": 0.5, "ref": n_images - 1}, {"ref": n_images // 2}):
        found, expected = emi(emulated_cupy.asarray(coh), **options), emi(coh, **options)
        assert isinstance(found, emulated_cupy.ndarray)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_allclose(found[np.isfinite(found)], expected[np.isfinite(found)], atol=1e-3)


def test_the_gpu_takes_coherence_that_is_singular_indefinite_or_nothing(emulated_cupy):
    three = np.array([0.95, 0.2, 0.95]) * np.exp(1j * ANGLES)
    coh = np.array([three, np.zeros(3), np.ones(3), np.full(3, np.nan), [0.5, np.nan, np.nan]], np.complex64)
    for options in ({}, {"regularize": False}, {"beta_min": 0.5}):
        found, expected = emi(emulated_cupy.asarray(coh), **options), emi(coh, **options)
        np.testing.assert_allclose(found, expected, atol=1e-4)
    assert emi(emulated_cupy.asarray(coh[:0])).shape == (0, 3)


def test_the_gpu_links_full_coherence(emulated_cupy):
    theta = np.linspace(0, 3, 20)
    found = emi(emulated_cupy.asarray(closing(theta, np.ones((20, 20)))[None]))
    np.testing.assert_allclose(found[0], np.exp(1j * theta), atol=1e-3)
