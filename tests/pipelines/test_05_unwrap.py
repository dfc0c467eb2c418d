"""04_refine and 05_unwrap on a simulated stack: the time series of all points are the truth up to their noise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from moraine_points import kernels

TOOL = Path(__file__).parents[2] / "tools" / "demo_truth.py"
BUILDINGS, BARE = 1, 3


def differences(scatterers):
    """Give time series less the truth relative to the first image, of the other images, rad.

    Nothing is taken off in space: the differences of an image are the same whole cycles everywhere, and noise.
    """
    truth = scatterers.truth("phase")[tuple(scatterers.read("unw/pc_gix").T)]
    return (scatterers.read("unw/pc_ts") - (truth - truth[:, :1]))[:, 1:]


def test_candidates_are_the_points_of_both_kinds_once_and_have_linked_phases_where_a_point_is_both(scatterers):
    ps, ds, both = (set(scatterers.read(name).tolist()) for name in ("ps/ps_can_hix", "pc/ds_hix", "pc/pc_can_hix"))
    assert ps - ds
    assert ps & ds
    assert both == ps | ds
    hix, ph = scatterers.read("pc/pc_can_hix"), scatterers.read("pc/pc_can_ph")
    assert (np.diff(hix) > 0).all()
    np.testing.assert_array_equal(ph[np.isin(hix, list(ds))], scatterers.read("pc/ds_ph"))
    is_rest = ~np.isin(scatterers.read("ps/ps_can_hix"), list(ds))
    np.testing.assert_array_equal(ph[~np.isin(hix, list(ds))], scatterers.read("ps/ps_can_rslc")[is_rest])


def test_points_are_the_candidates_that_fit_their_neighbors_with_all_their_data(scatterers):
    fits = scatterers.read("pc/pc_can_temp_coh") > 0.8
    assert 0.5 < fits.mean() < 1
    for name in ("hix", "ph", "e", "n", "lon", "lat", "temp_coh"):
        np.testing.assert_array_equal(scatterers.read(f"pc/pc_{name}"), scatterers.read(f"pc/pc_can_{name}")[fits])
    pixels = tuple(scatterers.read("unw/pc_gix").T)
    for name in ("hgt", "theta", "phi", "range"):
        np.testing.assert_array_equal(scatterers.read(f"pc/pc_{name}"), scatterers.read(f"raw/{name}")[pixels])


def test_points_that_are_taken_have_better_phases_than_those_that_are_not(scatterers):
    """Each phase is held against the truth relative to the image before, as the filter sees it."""
    fits = scatterers.read("pc/pc_can_temp_coh") > 0.8
    gix = kernels.pc_gix(scatterers.read("pc/pc_can_hix"), shape=(240, 320), name="candidates", first_row=0)
    ph, truth = scatterers.read("pc/pc_can_ph"), scatterers.truth("phase")[tuple(gix.T)]
    seen, true = ph[:, :-1] * ph[:, 1:].conj(), truth[:, :-1] - truth[:, 1:]
    power = np.square(np.angle(seen * np.exp(-1j * true))).mean(axis=1)
    assert power[fits].mean() < 0.5 * power[~fits].mean()


def test_time_series_have_the_whole_cycles_of_the_truth(scatterers):
    errors = differences(scatterers)
    errors -= 2 * np.pi * np.round(np.median(errors, axis=0) / (2 * np.pi))
    cover = scatterers.truth("cover")[tuple(scatterers.read("unw/pc_gix").T)]
    is_right = np.abs(errors) < np.pi
    assert is_right.mean() > 0.995
    for coherent in (BUILDINGS, BARE):
        assert is_right[cover == coherent].mean() > 0.9999


def test_time_series_rewrap_to_the_phases_of_the_points_and_begin_with_0(scatterers):
    ts, ph = scatterers.read("unw/pc_ts"), scatterers.read("pc/pc_ph")
    assert ts.dtype == np.float32
    assert (ts[:, 0] == 0).all()
    rest = np.angle(ph * ph[:, :1].conj() * np.exp(-1j * ts.astype(float)))
    assert np.abs(rest).max() < 1e-5


def test_the_truth_is_compared_in_a_table_and_a_picture(scatterers, tmp_path):
    picture = tmp_path / "truth.png"
    line = [sys.executable, str(TOOL), str(scatterers.work), "--picture", str(picture)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=100, check=True)
    header, *rows, bowl, _ = done.stdout.splitlines()
    assert header.split()[0] == "ground"
    assert {"buildings", "bare ground", "all"} <= {row[:12].strip() for row in rows}
    n_points, right, rms, _ = rows[-1].split()[1:]
    assert int(n_points) == len(scatterers.read("unw/pc_gix"))
    errors = differences(scatterers)
    errors -= np.median(errors, axis=0)
    assert float(right[:-1]) == pytest.approx(100 * (np.abs(errors) < np.pi).mean(), abs=1e-3)
    assert float(rms) == pytest.approx(np.sqrt((errors**2).mean()), abs=0.01)
    assert bowl.startswith("bowl: ")
    assert picture.read_bytes().startswith(b"\x89PNG")
