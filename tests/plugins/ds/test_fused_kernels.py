"""The fused step is the three separate ones: on the CPU to the last bit, and on an emulated GPU."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_core.testing.data import speckle
from moraine_ds.coherence import kernels as coherence
from moraine_ds.fused import kernels, tasks
from moraine_ds.phase_linking import kernels as linking
from moraine_ds.quality import kernels as quality


def scene(n_images=6, n_points=30, window=(3, 5), seed=1, common=1.5):
    """Return a stack with a common part, points and their homogeneous pixels."""
    rng = np.random.default_rng(seed)
    rslc = speckle((12, 15, n_images), seed) + common * speckle((12, 15, 1), seed + 1)
    gix = np.unique(np.stack([rng.integers(0, n, n_points) for n in (12, 15)], axis=1).astype(np.int32), axis=0)
    return rslc, gix, rng.random((len(gix), *window)) < 0.7


def separate(rslc, gix, is_shp, n_looks=None, *, strict=False, alpha=1e-3, **options):
    """Return what the three steps give, and the coherence between them."""
    coh = coherence.empirical_co_pc(rslc, gix, is_shp, strict=strict)
    ph = linking.emi(coh, **options)
    return (ph, *quality.ds_temp_coh(coh, ph, n_looks=n_looks, alpha=alpha))


def assert_same_bits(found, expected):
    for name, one, other in zip(kernels.LinkedPoints._fields, found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes(), name


def damage(rslc, is_shp):
    """Add what a scene can lack: samples, images, homogeneous pixels."""
    rng = np.random.default_rng(3)
    rslc[:4][rng.random((4, *rslc.shape[1:])) < 0.3] = np.nan
    rslc[:, :4, -1] = 0  # an image without any sample here
    rslc[8:, 10:] = np.nan  # nothing at all
    rslc[5, 6:9] *= np.float32(1e15)
    is_shp[2] = False
    is_shp[4] = False
    is_shp[4, 1, 2] = True


# -- on the CPU --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_images", [2, 3, 17, 30, 92])
def test_results_are_those_of_the_separate_steps(n_images):
    stack = scene(n_images)
    looks = coherence.n_looks(stack[2], [[0.2, 1, 0.2]])
    found = kernels.empirical_co_emi_temp_coh_pc(*stack, looks)
    assert_same_bits(found, separate(*stack, looks))
    assert np.isfinite(found.ph).all()
    assert np.isfinite(found.t_coh_w).any()


@pytest.mark.parametrize(
    "options",
    [{"ref": 3}, {"regularize": False}, {"beta_min": 0.5}, {"alpha": 0.3}, {"strict": True}],
    ids=lambda options: next(iter(options)),
)
def test_options_are_those_of_the_separate_steps(options):
    rslc, gix, is_shp = scene(9, common=0.7)
    rslc[3:6, :, 4] = np.nan
    looks = coherence.n_looks(is_shp, None)
    found = kernels.empirical_co_emi_temp_coh_pc(rslc, gix, is_shp, looks, **options)
    assert_same_bits(found, separate(rslc, gix, is_shp, looks, **options))
    plain = kernels.empirical_co_emi_temp_coh_pc(rslc, gix, is_shp, looks)
    assert any(one.tobytes() != other.tobytes() for one, other in zip(found, plain, strict=True))


def test_missing_samples_and_points_without_pixels_are_those_of_the_separate_steps():
    """What has no answer is nan, and nothing is infinite."""
    rslc, gix, is_shp = scene(7, n_points=80)
    damage(rslc, is_shp)
    looks = coherence.n_looks(is_shp, [[0.3, 1, 0.3]])
    found = kernels.empirical_co_emi_temp_coh_pc(rslc, gix, is_shp, looks)
    assert_same_bits(found, separate(rslc, gix, is_shp, looks))
    lacks_all = np.isnan(found.ph).all(axis=1)
    lacks_some = np.isnan(found.ph).any(axis=1) & ~lacks_all
    assert lacks_all[2]
    assert lacks_some.any()
    assert not np.isinf(np.concatenate([np.abs(found.ph).ravel(), *found[1:]])).any()
    assert np.isnan(found.t_coh[lacks_all]).all()
    assert (found.n_components[lacks_all] == 7).all()


def test_a_bad_point_does_not_touch_its_neighbors():
    """A39: what is nan stays where it is."""
    rslc, gix, is_shp = scene(11, n_points=60)
    damage(rslc, is_shp)
    looks = coherence.n_looks(is_shp, None)
    found = kernels.empirical_co_emi_temp_coh_pc(rslc, gix, is_shp, looks)
    is_good = ~np.isnan(found.ph).any(axis=1)
    assert 0 < is_good.sum() < len(gix) - 4
    alone = kernels.empirical_co_emi_temp_coh_pc(rslc, gix[is_good], is_shp[is_good], looks[is_good])
    assert_same_bits([array[is_good] for array in found], alone)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**16), n_images=st.integers(2, 12))
def test_points_in_another_order_are_the_same_points(seed, n_images):
    rslc, gix, is_shp = scene(n_images, seed=seed)
    order = np.random.default_rng(seed).permutation(len(gix))
    found = kernels.empirical_co_emi_temp_coh_pc(rslc, gix, is_shp)
    other = kernels.empirical_co_emi_temp_coh_pc(rslc, gix[order], is_shp[order])
    assert_same_bits([array[order] for array in found], other)


def test_phases_that_all_pixels_share_are_found_exactly():
    """One phase history in all pixels of a point: linked phases are that history, and everything fits."""
    phases = np.random.default_rng(5).uniform(-np.pi, np.pi, (12, 15, 8))
    phases[:] = phases[6, 6]
    rslc = (np.exp(1j * phases) * np.random.default_rng(6).uniform(0.5, 2, (12, 15, 8))).astype(np.complex64)
    _, gix, is_shp = scene(8)
    is_shp[:] = True
    found = kernels.empirical_co_emi_temp_coh_pc(rslc, gix, is_shp, np.full(len(gix), 15.0), ref=2)
    truth = np.exp(1j * (phases[6, 6] - phases[6, 6, 2]))
    np.testing.assert_allclose(found.ph, np.broadcast_to(truth, found.ph.shape), atol=1e-4)
    np.testing.assert_allclose(found.t_coh, 1, atol=1e-5)
    np.testing.assert_allclose(found.t_coh_w, 1, atol=1e-5)
    assert (found.n_components == 1).all()


def test_without_looks_only_the_plain_measure_is_known():
    stack = scene()
    found = kernels.empirical_co_emi_temp_coh_pc(*stack)
    assert_same_bits(found, separate(*stack))
    assert np.isnan(found.t_coh_w).all()


def test_no_points_are_empty_results():
    rslc, gix, is_shp = scene()
    found = kernels.empirical_co_emi_temp_coh_pc(rslc, gix[:0], is_shp[:0], np.empty(0, np.float32))
    assert [array.shape for array in found] == [(0, 6), (0,), (0,), (0,), (0,)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"ref": 6}, "ref is 6; expected one of 6 images"),
        ({"beta_min": 1.0}, "beta_min is 1.0; expected at least 0 and below 1"),
        ({"alpha": 0.6}, "alpha is 0.6"),
        ({"batch_size": 0}, "batch_size is 0; expected at least 1"),
        ({"n_looks": np.ones(3)}, r"n_looks has shape \(3,\)"),
    ],
)
def test_wrong_parameters_are_named(options, text):
    with pytest.raises(ValueError, match=text):
        kernels.empirical_co_emi_temp_coh_pc(*scene(), **options)


def test_a_stack_of_one_image_has_no_pairs():
    rslc, gix, is_shp = scene()
    with pytest.raises(ValueError, match="rslc has 1 images; expected at least 2"):
        kernels.empirical_co_emi_temp_coh_pc(rslc[:, :, :1], gix, is_shp)


# -- on a GPU ----------------------------------------------------------------------------------------------------------


def test_an_emulated_gpu_gives_the_same(emulated_cupy):
    """Coherence within 1e-5 changes phases by little; points of hardly any pixels are not told apart from noise."""
    rslc, gix, is_shp = scene(7, n_points=14, window=(5, 5))
    rslc[:5, :, 2][np.random.default_rng(1).random((5, 15)) < 0.3] = np.nan
    is_shp[2] = False
    looks = coherence.n_looks(is_shp, [[0.2, 1, 0.2]])
    here = kernels.empirical_co_emi_temp_coh_pc(rslc, gix, is_shp, looks, ref=1)
    there = kernels.empirical_co_emi_temp_coh_pc(
        *(emulated_cupy.asarray(array) for array in (rslc, gix, is_shp, looks)), ref=1, batch_size=5
    )
    assert all(isinstance(array, emulated_cupy.ndarray) for array in there)
    assert [(a.dtype, a.shape) for a in there] == [(a.dtype, a.shape) for a in here]
    np.testing.assert_allclose(there.ph, here.ph, atol=1e-3)
    np.testing.assert_allclose(there.t_coh, here.t_coh, atol=1e-4)
    np.testing.assert_allclose(there.t_coh_w, here.t_coh_w, atol=1e-4)
    np.testing.assert_allclose(there.eff_n_pairs, here.eff_n_pairs, rtol=1e-3)
    np.testing.assert_array_equal(there.n_components, here.n_components)
    assert np.isnan(here.ph[2]).all()


def test_batches_of_a_gpu_do_not_matter(emulated_cupy):
    arrays = [emulated_cupy.asarray(array) for array in scene(4, n_points=9)]
    results = [kernels.empirical_co_emi_temp_coh_pc(*arrays, batch_size=size) for size in (1, 7, 1000)]
    assert_same_bits(results[0], results[1])
    assert_same_bits(results[0], results[2])


def test_a_gpu_has_nothing_to_do_without_points(emulated_cupy):
    rslc, gix, is_shp = map(emulated_cupy.asarray, scene(4))
    assert kernels.empirical_co_emi_temp_coh_pc(rslc, gix[:0], is_shp[:0]).ph.shape == (0, 4)


def test_bands_of_a_gpu_are_joined(emulated_cupy):
    pieces = [emulated_cupy.asarray(np.full((k, 3), k, np.complex64)) for k in (1, 2)]
    whole = tasks.joined(*pieces)
    assert isinstance(whole, emulated_cupy.ndarray)
    assert whole.real[:, 0].tolist() == [1, 2, 2]
