"""03_ds on a simulated stack: coherent ground is selected, water is not, and linked phases are as good as they can be.

How good that is is simulated here once more, without a raster: independent looks of the true coherence, linked. The
speckle is oversampled: of the 121 pixels of a window so many looks are independent as the bandwidths say, 71.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import maximum_filter, minimum_filter

from moraine_core.testing.data import read_array, write_array
from moraine_ds.empirical_co_emi_temp_coh_pc import empirical_co_emi_temp_coh_pc
from moraine_ds.phase_linking.kernels import emi
from moraine_points.ras2pc_ras_chunk import ras2pc_ras_chunk

WATER, BUILDINGS, BARE = 0, 1, 3
ALPHA = 0.01
LOOKS = 71
"""0.88 * 0.67 * 121: bandwidths in range and azimuth, as parts of the sampling frequencies, and pixels of a window."""


def rms(errors):
    return float(np.sqrt(np.mean(errors**2)))


def coherence(scatterers):
    """Give the true coherence of each class of the ground, ``(classes, nimages, nimages)``."""
    return scatterers.truth("coherence").astype(float)


def is_selected(scatterers):
    selected = np.zeros(scatterers.truth("cover").shape, bool)
    selected[tuple(scatterers.read("ds/ds_gix").T)] = True
    return selected


def test_of_coherent_distributed_scatterers_at_least_90_percent_are_selected(scatterers):
    matrices = coherence(scatterers)
    mean = matrices[:, *np.triu_indices(matrices.shape[1], 1)].mean(axis=1)
    coherent = np.flatnonzero(mean > 0.4)
    assert coherent.tolist() == [1, 2, 3]  # buildings, streets, bare ground
    is_ds = np.isin(scatterers.truth("cover"), coherent) & ~scatterers.truth("is_ps")
    assert is_selected(scatterers)[is_ds].mean() >= 0.9


def test_no_water_is_selected(scatterers):
    """Water within 4 pixels of land holds some of the land: so far reaches the filter that limits the bandwidth."""
    is_water = minimum_filter(scatterers.truth("cover") == WATER, size=9, mode="nearest")
    assert is_water.sum() > 5000
    assert not is_selected(scatterers)[is_water].any()


def independent_looks(scatterers, cover, *, tested):
    """Give errors of phases linked from independent looks, those that the test takes for alike if `tested`."""
    rng = np.random.default_rng(11)
    matrix = coherence(scatterers)[cover]
    n_images = len(matrix)
    factor = np.linalg.cholesky(matrix)
    packed = []
    for _ in range(600):
        noise = rng.standard_normal((2, LOOKS, n_images))
        looks = (noise[0] + 1j * noise[1]) @ factor.T
        if tested:
            looks = looks[are_alike(np.abs(looks), np.abs(looks[0]))]
        if len(looks) > 5:
            products = looks.T @ looks.conj()
            power = np.sqrt(np.diag(products).real)
            packed.append((products / np.outer(power, power))[np.triu_indices(n_images, 1)])
    return np.angle(emi(np.array(packed, np.complex64)))[:, 1:]


def are_alike(series, center):
    """Compare series ``(n_series, n)`` with one of them by the test of Kolmogorov and Smirnov (Stephens, 1970)."""
    n = len(center)
    order = np.argsort(np.concatenate([series, np.broadcast_to(center, series.shape)], axis=1), axis=1)
    distance = np.abs(np.cumsum(np.where(order < n, 1, -1), axis=1)).max(axis=1) / n
    size = np.sqrt(n / 2)
    at = np.maximum((size + 0.12 + 0.11 / size) * distance, 0.1)  # where p is 1 up to rounding
    terms = np.arange(1, 100)[:, None]
    return 2 * np.sum((-1.0) ** (terms - 1) * np.exp(-2 * terms**2 * at**2), axis=0) >= ALPHA


@pytest.mark.parametrize(("cover", "is_whole"), [(BUILDINGS, False), (BARE, True)])
def test_linked_phases_are_as_near_to_the_truth_as_those_of_independent_looks(scatterers, cover, is_whole):
    """Among looks that the test of homogeneity takes for alike, as in the pipeline.

    In a short stack it takes those whose speckle happens to be as bright, which costs coherence: see the next test for
    what is lost. Buildings have streets in every window, bare ground is taken where it fills the window.
    """
    gix = scatterers.read("ds/ds_gix")
    is_ds = (scatterers.truth("cover") == cover) & ~scatterers.truth("is_ps")
    chosen = (minimum_filter(is_ds, size=11) if is_whole else is_ds)[tuple(gix.T)]
    assert chosen.sum() > 1000
    errors = scatterers.errors(scatterers.read("ds/ds_ph")[chosen], gix[chosen])
    assert rms(errors) < 1.05 * rms(independent_looks(scatterers, cover, tested=True))


def test_with_known_neighbors_linked_phases_are_those_of_independent_looks(scatterers, tmp_path):
    """What is lost on the way from pixels to phases is nothing but what the test of homogeneity loses."""
    is_ps_near = maximum_filter(scatterers.truth("is_ps"), size=9)
    is_bare = minimum_filter((scatterers.truth("cover") == BARE) & ~is_ps_near, size=11, mode="constant")
    gix = np.argwhere(is_bare).astype(np.int32)
    assert len(gix) > 500
    everywhere = np.ones((*is_bare.shape, 11, 11), bool)
    inputs = {"gix": write_array(tmp_path / "gix.zarr", gix, (200, 2))}
    is_shp = write_array(tmp_path / "is_shp.zarr", everywhere, (100, 130, 11, 11))
    ras2pc_ras_chunk(**inputs, ras=is_shp, pc=str(tmp_path / "is_shp"), key=str(tmp_path / "key.zarr"))
    empirical_co_emi_temp_coh_pc(
        **inputs,
        rslc=str(scatterers.work / "raw" / "rslc.zarr"),
        is_shp_dir=str(tmp_path / "is_shp"),
        ph_dir=str(tmp_path / "ph"),
        t_coh_dir=str(tmp_path / "t_coh"),
        chunks=(100, 130),
    )
    parts = sorted((tmp_path / "ph").glob("*.zarr"), key=lambda path: int(path.stem))
    ph = np.concatenate([read_array(part) for part in parts])[read_array(tmp_path / "key.zarr")]
    errors = rms(scatterers.errors(ph, gix))
    assert errors == pytest.approx(rms(independent_looks(scatterers, BARE, tested=False)), rel=0.1)


def test_data_of_the_selection_are_those_of_the_candidates(scatterers):
    gix = scatterers.read("ds/ds_gix")
    pixels = tuple(gix.T)
    assert (np.diff(scatterers.read("ds/ds_hix")) > 0).all()
    for name in ("e", "n"):
        np.testing.assert_array_equal(scatterers.read(f"ds/ds_{name}"), scatterers.read(f"raw/{name}")[pixels])
    place = np.full(scatterers.truth("cover").shape, -1)
    place[tuple(scatterers.read("ds/ds_can_gix").T)] = np.arange(len(scatterers.read("ds/ds_can_gix")))
    taken = place[pixels]
    assert (taken >= 0).all()
    np.testing.assert_array_equal(scatterers.read("ds/ds_ph"), scatterers.read("ds/ds_can_ph")[taken])
    good = (scatterers.read("ds/ds_can_n_components") == 1) & (scatterers.read("ds/ds_can_t_coh_w") >= 0.9)
    np.testing.assert_array_equal(np.flatnonzero(good), np.sort(taken))


@pytest.mark.parametrize("pipeline", ["02_ps.toml", "03_ds.toml"])
def test_the_second_run_has_nothing_to_do(scatterers, pipeline, capsys):
    assert scatterers.run(pipeline, "--dry-run") == 0
    out = capsys.readouterr()
    assert "run (" not in out.out + out.err
