"""simulate and the loaders find one geometry in two ways: the one searches along orbits, the others solve for points.

Each writes its own geometry and shares no line of it with the other, so that what they agree on is no common mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from moraine_core import Workers
from moraine_core.testing.data import read_array
from moraine_load.load_gamma_flatten_rslc import load_gamma_flatten_rslc
from moraine_load.load_gamma_lat_lon_hgt import load_gamma_lat_lon_hgt
from moraine_load.load_gamma_look_vector import load_gamma_look_vector
from moraine_load.simulate import simulate

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

TWO = Workers(n_workers=2)
STEADY = {"subsidence": 0.0, "seasonal": 0.0, "atmosphere": 0.0, "noise": 0.0, "decorrelation": False}
METERS = {"lat": 111320.0, "lon": 111320.0 * 0.757, "hgt": 1.0}


def stack(folder: Path, **options: Any) -> Path:
    simulate(out=str(folder / "gamma"), shape=(150, 200), nimages=4, reference=1, workers=TWO, **options)
    return folder / "gamma"


def flattened(gamma: Path) -> NDArray[Any]:
    """Return the flattened stack, times the conjugate of its reference."""
    load_gamma_flatten_rslc(
        rslc_dir=str(gamma / "rslc"),
        reference="20230118",
        hgt=str(gamma / "geocoding" / "scene.hgt"),
        rslc=str(gamma.parent / "rslc.zarr"),
        engine="native",
        workers=TWO,
    )
    rslc = read_array(gamma.parent / "rslc.zarr")
    return rslc * rslc[..., 1:2].conj()


def test_the_flattened_phase_of_a_stack_without_noise_is_zero_everywhere(tmp_path: Path) -> None:
    """Baselines of some 200 m and 100 m of relief make fringes; none is left."""
    gamma = stack(tmp_path, **STEADY, baseline=150.0, relief=100.0)
    raw = [np.fromfile(file, ">c8").reshape(150, 200) for file in sorted((gamma / "rslc").glob("*.rslc"))]
    assert np.angle(raw[0] * raw[1].conj()).std() > 0.5
    left = np.angle(flattened(gamma))
    assert np.isfinite(left).all()
    assert np.abs(left).max() < 1e-3


def test_motion_air_and_orbit_errors_are_what_is_left(tmp_path: Path) -> None:
    """The truth says the phase of the flattened stack to the last milliradian, ramps of wrong orbits included."""
    gamma = stack(tmp_path, **{**STEADY, "subsidence": 0.3, "seasonal": 0.01, "atmosphere": 1.0}, orbit_error=3.0)
    truth = read_array(gamma / "truth" / "phase.zarr")
    explained = sum(read_array(gamma / "truth" / f"{name}.zarr") for name in ("deformation", "atmosphere"))
    ramp = truth - (explained - explained[..., 1:2])
    assert np.ptp(ramp[..., 3]) > 0.01
    assert np.abs(np.angle(flattened(gamma) * np.exp(-1j * truth))).max() < 1e-3


def test_flattening_changes_no_amplitude_and_integers_load_as_they_are(tmp_path: Path) -> None:
    gamma = stack(tmp_path, image_format="SCOMPLEX")
    pairs = np.fromfile(gamma / "rslc" / "20230130.rslc", ">i2").reshape(150, 200, 2).astype(float)
    flattened(gamma)
    found = np.abs(read_array(tmp_path / "rslc.zarr")[..., 2])
    amplitude = np.hypot(pairs[..., 0], pairs[..., 1])
    np.testing.assert_allclose(found[amplitude > 0], amplitude[amplitude > 0], rtol=1e-6)
    assert np.isnan(found[amplitude == 0]).all()


@pytest.mark.parametrize("center", [(14.14, 40.82), (-70.5, -33.4), (0.0, 0.0), (179.99, 68.0)])
def test_pixels_are_found_at_the_same_place(tmp_path: Path, center: tuple[float, float]) -> None:
    """North and south, at the equator, and across the date line."""
    gamma = stack(tmp_path, center=center)
    outputs = {f"{name}_zarr": str(tmp_path / f"{name}.zarr") for name in METERS}
    pars = {"rslc_par": str(gamma / "rslc" / "20230118.rslc.par"), "dem_par": str(gamma / "DEM" / "dem_seg_par")}
    geocoding = gamma / "geocoding"
    load_gamma_lat_lon_hgt(
        diff_par=str(geocoding / "scene.diff_par"),
        hgt=str(geocoding / "scene.hgt"),
        engine="native",
        workers=TWO,
        **pars,
        **outputs,
    )
    for name, meters in METERS.items():
        difference = read_array(tmp_path / f"{name}.zarr") - read_array(gamma / "truth" / f"{name}.zarr")
        if name == "lon":
            difference = (difference + 180) % 360 - 180
        assert np.abs(difference).max() * meters < 0.1
    load_gamma_look_vector(
        theta=str(geocoding / "scene.lv_theta"),
        phi=str(geocoding / "scene.lv_phi"),
        lt=str(geocoding / "scene.lt_fine"),
        theta_zarr=str(tmp_path / "theta.zarr"),
        phi_zarr=str(tmp_path / "phi.zarr"),
        engine="native",
        workers=TWO,
        **pars,
    )
    for name in ("theta", "phi"):
        difference = read_array(tmp_path / f"{name}.zarr") - read_array(gamma / "truth" / f"{name}.zarr")
        assert np.abs(np.angle(np.exp(1j * difference))).max() < 1e-4
