"""The native geometry against what GAMMA itself computed for 13 Sentinel-1 images of Mexico City."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

from moraine_load.geometry import baseline, earth_fixed, ground, look_angles, perpendicular_baseline, radar_coordinates
from moraine_load.load_gamma_metadata import load_gamma_metadata
from moraine_load.par import read_dem_par, read_entries, read_slc_par
from moraine_load.rasters import read_block
from moraine_load.scene import scene_of

IMPORT_HEIGHT = 100.0
"""Height (m) that GAMMA took for the center coordinates in the headers of these images."""


@pytest.fixture
def mexico(real_data):
    folder = real_data / "s1-mexico-gamma-network"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    return folder


@pytest.fixture
def scene_at(mexico):
    """Return what gives the scene of a date, multilooked (8 x 2) as the baselines and the lookup table are."""
    return lambda date: scene_of(read_slc_par(mexico / "headers" / f"r{date}_VV_8rlks_mli.par"))


def pairs(mexico):
    return [file.name[:17].split("-") for file in sorted((mexico / "geometry").glob("*_base.par"))]


def test_center_coordinates_of_the_headers_are_at_the_middle_of_the_images(mexico):
    """So the first line is taken at start_time and the first sample is at near_range_slc, pixel centers both."""
    files = sorted((mexico / "headers").glob("*_slc.par"))
    assert len(files) == 13
    for file in files:
        par = read_slc_par(file)
        scene = scene_of(par)
        axes = scene.semi_major, scene.semi_minor
        point = earth_fixed(par.center_longitude, par.center_latitude, IMPORT_HEIGHT, *axes)
        line, sample = radar_coordinates(scene, point)
        assert abs(line - (scene.shape[0] - 1) / 2) < 1e-3
        assert abs(sample - (scene.shape[1] - 1) / 2) < 0.02


def test_the_lookup_table_is_where_the_orbit_sees_the_map(mexico, scene_at, tiff):
    """The segment's corner is the corner of its first pixel here: its header was made from a GeoTIFF.

    The offset in azimuth is one constant, 2.19 ms: no convention of pixels, which the test above settles, and no error
    of the geometry, which would depend on range, line or height. A table that was refined with a DIFF par has its
    constant in it.
    """
    dem = read_dem_par(next((mexico / "headers").glob("*dem.par")))
    heights = tiff(mexico / "geotiffs" / "cropA_T005A_dem.tif")
    row, column = np.mgrid[: dem.nlines, : dem.width] + 0.5
    scene = scene_at("20180106")
    lon, lat = dem.corner_lon + column * dem.post_lon, dem.corner_lat + row * dem.post_lat
    line, sample = radar_coordinates(scene, earth_fixed(lon, lat, heights, scene.semi_major, scene.semi_minor))
    table = read_block(mexico / "geometry" / "20180106_VV_8rlks_eqa_to_rdc.lt", "FCOMPLEX", dem.width, (0, dem.nlines))
    distance, azimuth = sample - table.real, line - table.imag
    assert abs(np.median(distance)) < 0.05
    assert distance.std() < 0.15
    assert azimuth.std() < 0.01
    assert abs(np.median(azimuth) + 0.5333) < 0.001
    assert np.abs(np.polyfit(table.imag.ravel(), azimuth.ravel(), 1)[0]) < 1e-5
    assert np.abs(np.polyfit(table.real.ravel(), azimuth.ravel(), 1)[0]) < 1e-5


def test_orbital_baselines_of_all_pairs_are_those_of_gamma(mexico, scene_at):
    cross, normal = [], []
    for first, second in pairs(mexico):
        reference, other = scene_at(first), scene_at(second)
        text = read_entries(mexico / "geometry" / f"{first}-{second}_VV_8rlks_base.par")["initial_baseline(TCN)"]
        _, expected_cross, expected_normal = map(float, text.split()[:3])
        found = baseline(reference, other, (reference.shape[0] - 1) / 2)
        cross.append(abs(found.cross - expected_cross))
        normal.append(abs(found.normal - expected_normal))
    assert len(cross) == 30
    assert max(cross) < 0.8
    assert max(normal) < 0.8
    assert np.median(cross) < 0.3
    assert np.median(normal) < 0.2


def test_the_baseline_along_the_line_of_sight_is_that_of_gamma_to_millimeters(mexico, scene_at):
    """It is what makes the phase: a millimeter of range is 0.23 rad."""
    for first, second in pairs(mexico):
        reference, other = scene_at(first), scene_at(second)
        text = read_entries(mexico / "geometry" / f"{first}-{second}_VV_8rlks_base.par")["initial_baseline(TCN)"]
        _, cross, normal = map(float, text.split()[:3])
        par = read_slc_par(mexico / "headers" / f"r{first}_VV_8rlks_mli.par")
        # the triangle of sensor, middle of the image and center of the Earth, as the headers give it
        far, near, reach = par.sar_to_earth_center, par.earth_radius_below_sensor, par.center_range_slc
        look = np.arccos((far**2 + reach**2 - near**2) / (2 * far * reach))
        found = baseline(reference, other, (reference.shape[0] - 1) / 2)
        difference = (found.cross - cross) * np.sin(look) + (found.normal - normal) * np.cos(look)
        assert abs(difference) < 5e-3


def test_perpendicular_baselines_in_the_middle_are_those_of_the_tables(mexico, scene_at):
    worst = 0.0
    for first, second in pairs(mexico):
        lines = (mexico / "geometry" / f"{first}-{second}_VV_8rlks_bperp.par").read_text().splitlines()
        table = np.array(
            [list(map(float, line.split())) for line in lines if len(line.split()) == 9 and line[5].isdigit()]
        )
        reference, other = scene_at(first), scene_at(second)
        middle = [(n - 1) / 2 for n in reference.shape]
        row = table[np.argmin(np.abs(table[:, :2] - middle).sum(axis=1))]
        found = perpendicular_baseline(reference, other, row[0], row[1])
        assert abs(row[7]) < 1 or np.sign(found) == np.sign(row[7])
        worst = max(worst, abs(found - row[7]))
    assert worst < 1.0


def test_the_elevation_of_the_look_vector_is_that_of_the_header(mexico, scene_at):
    """Incidence and elevation add up to 90 degrees; the header has the incidence on a sphere."""
    par = read_slc_par(mexico / "headers" / "r20180106_VV_8rlks_mli.par")
    scene = scene_of(par)
    line, sample = ([(n - 1) / 2] for n in scene.shape)
    theta, phi = look_angles(scene, line, ground(scene, line, sample, np.zeros((1, 1))))
    assert abs(90 - np.degrees(theta[0, 0]) - par.incidence_angle) < 0.2
    # at the sensor, the direction is across the heading; 8 degrees of longitude away it is turned by 2 to 3 degrees
    assert abs(np.degrees(phi[0, 0]) % 360 - (180 - par.heading)) < 4


def test_the_network_gives_complete_metadata(mexico, tmp_path):
    """Only the headers are real: files of the right size, empty on disk, stand for the images."""
    folder = tmp_path / "rslc"
    folder.mkdir()
    for file in (mexico / "headers").glob("*_slc.par"):
        date = file.name[1:9]
        (folder / f"{date}.rslc.par").write_bytes(file.read_bytes())
        par = read_slc_par(file)
        with (folder / f"{date}.rslc").open("wb") as sparse:
            sparse.truncate(8 * par.range_samples * par.azimuth_lines)
    dem_par = next((mexico / "headers").glob("*dem.par"))
    load_gamma_metadata(
        rslc_dir=str(folder),
        dem_par=str(dem_par),
        reference="20180106",
        meta_file=str(tmp_path / "meta.toml"),
        engine="native",
    )
    meta = tomllib.loads((tmp_path / "meta.toml").read_text(encoding="utf-8"))
    assert meta["dates"] == sorted(meta["dates"])
    assert len(meta["dates"]) == len(meta["perpendicular_baseline"]) == 13
    assert meta["radar_wavelength"] == 299792458 / 5.4050005e9
    assert (meta["range_pixel_spacing"], meta["azimuth_pixel_spacing"]) == (2.329562, 14.011650)
    assert (meta["heading"], meta["incidence"], meta["near_range"]) == (-12.2742586, 39.7036, 798980.1369)
    assert (meta["reference"], meta["shape"], meta["image_format"]) == ("20180106", [9083, 68116], "FCOMPLEX")
    west, south, east, north = meta["lonlat_bbox"]
    assert (west, north) == (-99.1910697816367417, 19.4512926234517565)
    assert (south, east) == pytest.approx((north - 59 * 0.0013888889, west + 99 * 0.0013888889), abs=1e-12)
    e, n = meta["merca_bbox"][:2]
    assert e == pytest.approx(20037508.342789244 * west / 180, abs=1e-6)
    assert n == pytest.approx(6378137 * np.arcsinh(np.tan(np.radians(south))), abs=1e-6)
    baselines = dict(zip(meta["dates"], meta["perpendicular_baseline"], strict=True))
    assert baselines["20180106"] == 0
    # middle of the tables of GAMMA for the pairs with the reference
    for date, expected in (("20180130", 30.3), ("20180319", 3.2), ("20180412", -75.0), ("20180518", -28.9)):
        assert abs(baselines[date] - expected) < 2.0
