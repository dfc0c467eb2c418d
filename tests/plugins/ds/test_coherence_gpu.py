"""The CUDA kernels of coherence, run on the CPU, give what numba's give."""

from __future__ import annotations

import numpy as np
import pytest

from moraine_core.testing.data import speckle
from moraine_ds.coherence import kernels, tasks


def scene(n_images, n_points=9, window=(3, 5)):
    rng = np.random.default_rng(n_images)
    rslc = speckle((8, 9, n_images), 1) + speckle((8, 9, 1), 2)
    gix = np.stack([rng.integers(0, n, n_points) for n in (8, 9)], axis=1).astype(np.int32)
    return rslc, gix, rng.random((n_points, *window)) < 0.7


def on_both(cupy, rslc, gix, is_shp, pairs=None, **options):
    """Return the coherence from numba and from the emulated GPU."""
    there = kernels.empirical_co_pc(*(cupy.asarray(array) for array in (rslc, gix, is_shp)), pairs, **options)
    assert isinstance(there, cupy.ndarray)
    return kernels.empirical_co_pc(rslc, gix, is_shp, pairs, **options), there.get()


@pytest.mark.parametrize("n_images", [2, 4, 7, 21])
def test_whole_samples(emulated_cupy, n_images):
    here, there = on_both(emulated_cupy, *scene(n_images))
    assert (there.dtype, there.shape) == (here.dtype, here.shape)
    np.testing.assert_allclose(there, here, atol=1e-6)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("missing", [np.nan, 0, np.inf])
def test_missing_samples(emulated_cupy, missing, strict):
    rslc, gix, is_shp = scene(6, n_points=20)
    rslc[:4][np.random.default_rng(1).random((4, 9, 6)) < 0.3] = missing
    rslc[:, :3, 2] = missing
    rslc[6, 4] = missing  # a pixel without any sample makes no image incomplete
    is_shp[3] = False
    here, there = on_both(emulated_cupy, rslc, gix, is_shp, strict=strict)
    np.testing.assert_allclose(there, here, atol=1e-6)
    assert np.isnan(here).any()
    assert not np.isnan(here).all()


def test_a_sparse_network_and_amplitudes_far_from_one(emulated_cupy):
    rslc, gix, is_shp = scene(13)
    rslc[:, :, 3] *= np.float32(1e-25)
    rslc[:, :, 9] *= np.float32(1e20)
    here, there = on_both(emulated_cupy, rslc, gix, is_shp, [(0, 1), (0, 12), (3, 9), (5, 6)])
    np.testing.assert_allclose(there, here, atol=1e-6)


def test_windows_of_more_pixels_than_fit_at_once(emulated_cupy):
    rslc, gix, _ = scene(5, n_points=2)
    here, there = on_both(emulated_cupy, rslc, gix, np.ones((2, 15, 17), bool))
    np.testing.assert_allclose(there, here, atol=1e-6)


def test_more_tiles_than_threads_and_shared_memory_beyond_the_default(emulated_cupy):
    rslc, gix, _ = scene(130, n_points=2)
    here, there = on_both(emulated_cupy, rslc, gix, np.ones((2, 3, 1601), bool))
    np.testing.assert_allclose(there, here, atol=1e-6)


def test_looks(emulated_cupy):
    rng = np.random.default_rng(3)
    is_shp = rng.random((40, 5, 9)) < 0.4
    is_shp[4] = False
    table = rng.random((9, 13)) - 0.3
    there = kernels.n_looks(emulated_cupy.asarray(is_shp), table)
    np.testing.assert_allclose(there.get(), kernels.n_looks(is_shp, table), rtol=1e-6)
    assert kernels.n_looks(emulated_cupy.asarray(is_shp[:0]), table).shape == (0,)


def test_one_pair_and_every_pixel(emulated_cupy):
    rslc, gix, is_shp = scene(3)
    there = kernels.ad_intf_pc(*(emulated_cupy.asarray(a) for a in (rslc[:, :, 0], rslc[:, :, 2], gix, is_shp)))
    np.testing.assert_allclose(there.get(), kernels.empirical_co_pc(rslc, gix, is_shp)[:, 1], atol=1e-6)
    flags = np.random.default_rng(4).random((8, 9, 3, 3)) < 0.7
    matrices = kernels.empirical_co(emulated_cupy.asarray(rslc), emulated_cupy.asarray(flags))
    for found, expected in zip(matrices, kernels.empirical_co(rslc, flags), strict=True):
        np.testing.assert_allclose(found.get(), expected, atol=1e-5)


def test_a_task_of_a_raster_chunk(emulated_cupy):
    rslc, gix, is_shp = scene(10)
    raster = gix + np.array([20, 30], np.int32)
    raster[2, 1] += 90  # of the raster chunk beside
    here = [k for k in range(len(gix)) if k != 2]
    options = {
        "origin": (20, 30),
        "pixels": (30, 39),
        "images": (3, 13),
        "columns": (1, 4),
        "strict": False,
        "with_looks": True,
        "image_pairs": [(0, 1), (3, 4), (3, 12), (5, 7), (7, 13)],
        "correlation": [[0.2, 1, 0.2]],
    }
    results = [
        tasks.coherence_of_chunk(iter([move(p) for p in planes]), move(raster), move(is_shp[here]), **options)
        for planes in [list(np.moveaxis(rslc, 2, 0))]
        for move in (np.ascontiguousarray, emulated_cupy.asarray)
    ]
    expected = kernels.empirical_co_pc(rslc, gix[here], is_shp[here], [(0, 1), (0, 9), (2, 4)])
    np.testing.assert_array_equal(results[0][0], expected)
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(other.get(), one, atol=1e-6)


def test_points_that_are_gone_are_an_error():
    with pytest.raises(ValueError, match="1 points in gix and 2 in its directory"):
        tasks.points_of_chunk(np.array([[1, 2], [1, 9]]), 2, (0, 0), (0, 5))
