"""02_ps on a simulated stack: persistent scatterers are found where they are, with the phases that they have."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import maximum_filter

DISPERSION, T_COH = 0.25, 0.9
CLUTTER = np.array([12.0, 150.0, 45.0, 80.0, 100.0, 115.0])  # amplitude of each class of the ground, see truth.toml
WATER, BUILDINGS, BARE, FIELDS, FOREST = 0, 1, 3, 4, 5


def chosen_pixels(scatterers):
    chosen = np.zeros(scatterers.truth("cover").shape, bool)
    chosen[tuple(scatterers.read("ps/ps_can_gix").T)] = True
    return chosen


def test_persistent_scatterers_are_found_where_the_simulation_put_them(scatterers):
    """With a ratio R of signal to clutter the dispersion is about 1 / sqrt(2 R) (Ferretti et al., 2001)."""
    is_ps = scatterers.truth("is_ps")
    ratio = (scatterers.truth("ps_amplitude")[is_ps] / CLUTTER[scatterers.truth("cover")[is_ps]]) ** 2
    steady = 1 / np.sqrt(2 * ratio) < DISPERSION - 0.05
    assert steady.sum() > 200
    assert chosen_pixels(scatterers)[is_ps][steady].mean() > 0.99


def test_where_speckle_changes_nearly_nothing_else_is_chosen(scatterers):
    cover, chosen = scatterers.truth("cover"), chosen_pixels(scatterers)
    is_ps_near = maximum_filter(scatterers.truth("is_ps"), size=9)  # the bandwidth's filter spreads it by 4 pixels
    for changing in (WATER, FIELDS, FOREST):
        assert chosen[(cover == changing) & ~is_ps_near].mean() < 0.002


def test_filtered_interferograms_are_nearer_to_the_truth(scatterers):
    """Where ground is coherent, from one image to the next, nine tenths of the power of the noise are gone."""
    rslc, filtered, truth = scatterers.read("raw/rslc"), scatterers.read("ps/ras_n2f_intf"), scatterers.truth("phase")
    raw = rslc[..., :-1] * rslc[..., 1:].conj()
    cover = scatterers.truth("cover")
    for coherent in (BUILDINGS, BARE):
        errors = [
            np.angle(z * np.exp(-1j * (truth[..., :-1] - truth[..., 1:])))[cover == coherent] for z in (filtered, raw)
        ]
        assert np.mean(errors[0] ** 2) < 0.1 * np.mean(errors[1] ** 2)


def test_candidates_are_of_steady_amplitude_or_of_a_phase_that_fits_its_surroundings(scatterers):
    chosen = scatterers.read("ps/ras_adi") < DISPERSION
    fits = scatterers.read("ps/ras_temp_coh") > T_COH
    assert (fits & ~chosen).sum() > 1000
    np.testing.assert_array_equal(chosen_pixels(scatterers), chosen | fits)


def test_phases_of_bright_candidates_are_the_true_ones(scatterers):
    """Clutter turns each of two phases by 1 / sqrt(2 R) rad."""
    gix, rslc = scatterers.read("ps/ps_can_gix"), scatterers.read("ps/ps_can_rslc")
    is_bright = np.nan_to_num(scatterers.truth("ps_amplitude"))[tuple(gix.T)] >= 1000
    assert is_bright.sum() > 50
    errors = scatterers.errors(rslc * rslc[:, :1].conj(), gix)[is_bright]
    assert np.sqrt(np.mean(errors**2)) < CLUTTER.max() / 1000


def test_data_of_candidates_are_those_of_their_pixels_in_hilbert_order(scatterers):
    pixels = tuple(scatterers.read("ps/ps_can_gix").T)
    assert (np.diff(scatterers.read("ps/ps_can_hix")) > 0).all()
    for name in ("rslc", "e", "n", "lon", "lat"):
        np.testing.assert_array_equal(scatterers.read(f"ps/ps_can_{name}"), scatterers.read(f"raw/{name}")[pixels])
    np.testing.assert_array_equal(scatterers.read("ps/ps_can_adi"), scatterers.read("ps/ras_adi")[pixels])
