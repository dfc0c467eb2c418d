"""The command load-gamma-lat-lon-hgt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from moraine_core import MoraineError, Workers
from moraine_core.store import describe
from moraine_core.testing.data import read_array
from moraine_load import examples
from moraine_load.geometry import earth_fixed, line_times, orbit_at, sample_ranges
from moraine_load.load_gamma_lat_lon_hgt import load_gamma_lat_lon_hgt
from moraine_load.par import DiffPar, read_dem_par, read_slc_par, write_par
from moraine_load.scene import scene_of

SHAPE = (13, 17)


def run(stack, **options):
    """Run the command beside the stack and return latitude, longitude and height."""
    folder = Path(stack["hgt"]).parent
    given = {name: stack[name] for name in ("diff_par", "rslc_par", "dem_par", "hgt")}
    outputs = {f"{name}_zarr": str(folder / f"{name}.zarr") for name in ("lat", "lon", "hgt")}
    options = {"engine": "native", "chunks": (6, 5), **options}
    load_gamma_lat_lon_hgt(**given, **outputs, **options, workers=Workers(n_workers=1), fresh=True)
    return [read_array(path) for path in outputs.values()]


def refused(stack, **options):
    """Run the command, expect a refusal without an output, and return its text."""
    with pytest.raises(MoraineError) as caught:
        run(stack, **options)
    assert not list(Path(stack["hgt"]).parent.glob("*.zarr"))
    return str(caught.value)


def test_points_are_at_the_range_and_in_the_zero_doppler_plane_of_their_pixels(stack):
    lat, lon, height = run(stack)
    scene = scene_of(read_slc_par(stack["rslc_par"]))
    points = earth_fixed(lon, lat, height, scene.semi_major, scene.semi_minor)
    position, velocity = orbit_at(scene.orbit, line_times(scene, np.arange(SHAPE[0])))
    away = points - position[:, None]
    reach = np.linalg.norm(away, axis=-1)
    assert np.nanmax(np.abs(reach - sample_ranges(scene, np.arange(SHAPE[1])))) < 1e-3
    assert np.nanmax(np.abs(np.einsum("ijk,ik->ij", away, velocity) / 7500)) < 1e-3


def test_heights_are_kept_at_sea_level_and_only_missing_ones_are_missing(stack):
    """A height of exactly 0 m, as over open water, is a height."""
    heights = examples.example_heights(SHAPE)
    lat, lon, height = run(stack)
    np.testing.assert_array_equal(height, heights)
    assert (height == 0).sum() > 20
    for coordinate in (lat, lon):
        assert coordinate.dtype == np.float64
        np.testing.assert_array_equal(np.isnan(coordinate), np.isnan(heights))


def test_a_scene_of_forty_thousand_lines_is_located_to_its_end(stack):
    """A36: a 40 000 x 10 image; its lines follow each other to the last, each where the orbit is then."""
    shape = (40_000, 10)
    par = replace(examples.image_par(shape, "20210101"), azimuth_line_time=1e-3, start_time=980.0)
    write_par(stack["rslc_par"], par)
    write_par(stack["diff_par"], DiffPar())
    Path(stack["hgt"]).write_bytes(np.full(shape, 7, ">f4").tobytes())
    lat, lon, height = run(stack, chunks=(9000, 1000))
    assert lat.shape == shape
    assert (np.diff(lat, axis=0) > 0).all(), "the orbit climbs"
    scene = scene_of(par)
    lines = np.array([0, 32_767, 32_768, 35_000, 39_999])
    points = earth_fixed(lon[lines], lat[lines], height[lines], scene.semi_major, scene.semi_minor)
    position, _ = orbit_at(scene.orbit, 980.0 + lines * 1e-3)
    reach = np.linalg.norm(points - position[:, None], axis=-1)
    assert np.abs(reach - sample_ranges(scene, np.arange(10))).max() < 1e-6


def test_reference_system_and_unit_are_written_with_the_coordinates(stack):
    """A36."""
    run(stack)
    for name in ("lat", "lon"):
        attributes = describe(Path(stack["hgt"]).parent / f"{name}.zarr").attributes
        assert (attributes["crs"], attributes["unit"]) == ("EPSG:4326", "degrees")


def test_an_offset_in_the_diff_par_is_refused_unless_the_caller_says_what_to_do(stack):
    plain = run(stack)
    zeros = (0.0,) * 5
    diff = DiffPar(
        range_samp_1=17,
        az_samp_1=13,
        range_offset_polynomial=(0.25, *zeros),
        azimuth_offset_polynomial=(-0.53, *zeros),
    )
    write_par(stack["diff_par"], diff)
    with pytest.raises(
        MoraineError, match=r"diff_par: azimuth_offset_polynomial reaches 0\.530 pixels; expected 0, or"
    ):
        run(stack)
    np.testing.assert_array_equal(run(stack, offsets="ignore"), plain)
    moved = run(stack, offsets="add")
    scene = scene_of(read_slc_par(stack["rslc_par"]))
    at_sea = (slice(0, 1), slice(0, 5))
    points = earth_fixed(moved[1][at_sea], moved[0][at_sea], moved[2][at_sea], scene.semi_major, scene.semi_minor)
    position, _ = orbit_at(scene.orbit, line_times(scene, [-0.53]))
    reach = np.linalg.norm(points[0] - position, axis=-1)
    assert np.nanmax(np.abs(reach - sample_ranges(scene, np.arange(5) + 0.25))) < 1e-3
    other = run(stack, offsets="subtract")
    # there and back, but for the curvature of the image
    np.testing.assert_allclose((np.array(moved[:2]) + other[:2]) / 2, plain[:2], atol=1e-9)


def test_offsets_that_are_not_constant_or_of_another_image_are_not_guessed(stack):
    diff = DiffPar(range_samp_1=17, az_samp_1=13, range_offset_polynomial=(0.25, 0.01, 0.0, 0.0, 0.0, 0.0))
    write_par(stack["diff_par"], diff)
    expected = "range_offset_polynomial changes by 0.170 pixels in the image; expected a constant, or engine gamma"
    assert expected in refused(stack, offsets="add")
    write_par(stack["diff_par"], replace(diff, range_samp_1=8))
    assert "az_samp_1 and range_samp_1 are 13 and 8; expected 13 and 17, the image in 1 x 1 looks" in refused(stack)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"projection": "UTM"}, "DEM_projection is UTM; expected EQA, geographic coordinates"),
        ({"corner_lat": None}, "corner_lat not found"),
        ({"post_lat": 1e-3}, "post_lat is 0.001, post_lon 0.0004; expected north up"),
        ({"width": 0}, "lines of 0 samples; expected at least 1"),
        ({"datum_shift_dx": 87.0}, "datum_shift_dx is 87; expected 0, a map on the ellipsoid of the image"),
        ({"ellipsoid_ra": 6377397.155}, "the ellipsoid has the axes 6377397.2 and 6356"),
    ],
)
def test_a_map_that_does_not_fit_is_refused(stack, changed, message):
    write_par(stack["dem_par"], replace(read_dem_par(stack["dem_par"]), **changed))
    text = refused(stack)
    assert "dem_par: " in text
    assert message in text


def test_heights_that_no_range_reaches_are_told(stack):
    Path(stack["hgt"]).write_bytes(np.full(SHAPE, 1e6, ">f4").tobytes())
    assert "no pixel could be located with the heights of" in refused(stack)


def test_programs_locate_all_pixels(stack, programs, tmp_path):
    """A33: longitude comes first in their pairs, and one coordinate that is 0 is a coordinate."""
    programs.add("mkgrid", "pt2geo")
    lat, lon, height = run(stack, engine="auto", scratch_dir=str(tmp_path / "scratch"))
    line, sample = np.mgrid[:13, :17]
    expected = np.where(sample == 0, 0.0, 45 + 0.1 * line)
    expected[0:, 0] = np.nan  # the stand-in puts the first column at longitude 0 and latitude 0
    np.testing.assert_allclose(lat, expected)
    np.testing.assert_allclose(lon, np.where(np.isnan(expected), np.nan, 0.1 * sample))
    heights = examples.example_heights(SHAPE)
    np.testing.assert_array_equal(height, np.where(np.isnan(expected), np.nan, heights))
    assert [call[0] for call in programs.calls] == ["mkgrid", "pt2geo"]


def test_coordinates_that_are_nowhere_are_an_error(stack, programs, tmp_path, monkeypatch):
    """A36: all-constant output of a program is no result."""
    programs.add("mkgrid", "pt2geo")
    monkeypatch.setenv("STAND_IN_NOWHERE", "1")
    assert "no pixel could be located" in refused(stack, engine="gamma", scratch_dir=str(tmp_path / "scratch"))
