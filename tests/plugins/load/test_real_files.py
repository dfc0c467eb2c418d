"""Files that GAMMA and others have written: all of them can be read."""

from __future__ import annotations

import numpy as np
import pytest

from moraine_core import Workers
from moraine_core.testing.data import read_array
from moraine_load import examples
from moraine_load.formats import RasterError, check_byte_order, check_size
from moraine_load.geometry import earth_fixed, radar_coordinates
from moraine_load.load_gamma_flatten_rslc import load_gamma_flatten_rslc
from moraine_load.par import read_dem_par, read_entries, read_slc_par, write_par
from moraine_load.rasters import read_block, write_block
from moraine_load.scene import scene_of


@pytest.fixture
def folder(real_data):
    """Return what gives a folder of real data, or skips."""

    def find(name):
        if not (real_data / name).is_dir():
            pytest.skip(f"no {real_data / name}")
        return real_data / name

    return find


def told(word):
    """Return a word as the number it is, or as it is."""
    try:
        return float(word)
    except ValueError:
        return word


@pytest.mark.parametrize("name", ["s1-mexico-gamma-network", "envisat-sydney-gamma"])
def test_all_headers_are_read_and_written_headers_read_the_same(folder, tmp_path, name):
    images = [*folder(name).rglob("*slc.par"), *folder(name).rglob("*mli.par")]
    maps = [*folder(name).rglob("*dem.par")]
    others = [*folder(name).rglob("*_base.par"), *folder(name).rglob("*_base_init.par")]
    assert len(images) >= 15
    assert maps
    for file in images:
        par = read_slc_par(file)
        assert par.range_samples > 0
        assert par.date in file.name
        write_par(tmp_path / "par", par)
        assert read_slc_par(tmp_path / "par") == par
    for file in maps:
        par = read_dem_par(file)
        assert par.projection == "EQA"
        assert par.post_lat < 0 < par.post_lon
        write_par(tmp_path / "par", par)
        assert read_dem_par(tmp_path / "par") == par
    for file in others:
        assert "initial_baseline(TCN)" in read_entries(file)


def test_every_key_of_a_header_is_kept(folder, tmp_path):
    for file in folder("envisat-sydney-gamma").rglob("*slc.par"):
        before = read_entries(file)
        write_par(tmp_path / "par", read_slc_par(file))
        after = read_entries(tmp_path / "par")
        assert set(before) <= set(after)
        for key, text in before.items():
            assert key == "date" or [*map(told, text.split())] == [*map(told, after[key].split())]


def test_rasters_of_sydney_are_big_endian(folder):
    """A31."""
    sydney = folder("envisat-sydney-gamma")
    dem = read_dem_par(sydney / "par" / "20060619_utm_dem.par")
    files = sorted((sydney / "unw").glob("*.unw"))
    assert len(files) == 17
    for file in files:
        check_size(file, "FLOAT", dem.width, dem.nlines)
        check_byte_order(file, "FLOAT", dem.width, dem.nlines)
        unw = read_block(file, "FLOAT", dem.width, (0, dem.nlines))
        assert np.mean(unw == 0) <= 0.21
        assert np.abs(unw).max() < 100
    heights = read_block(sydney / "20060619_utm.dem", "FLOAT", dem.width, (0, dem.nlines))
    assert (round(float(heights.min())), round(float(heights.max()))) == (193, 371)


def test_a_swapped_copy_of_a_raster_of_sydney_is_suspected(folder, tmp_path):
    sydney = folder("envisat-sydney-gamma")
    file = tmp_path / "swapped.dem"
    file.write_bytes(np.fromfile(sydney / "20060619_utm.dem", ">f4").astype("<f4").tobytes())
    with pytest.raises(RasterError, match=r"swapped\.dem seems to be little-endian"):
        check_byte_order(file, "FLOAT", 47, 72)


def test_the_middle_of_an_envisat_image_is_where_its_header_says(folder):
    """GAMMA counts its middle as line n // 2 - 1 and sample w // 2 - 1 here; the rest is below 1/1000 of a pixel."""
    par = read_slc_par(folder("envisat-sydney-gamma") / "native-par" / "r20090713_VV.slc.par")
    scene = scene_of(par)
    point = earth_fixed(par.center_longitude, par.center_latitude, 0.0, scene.semi_major, scene.semi_minor)
    line, sample = radar_coordinates(scene, point)
    assert abs(line - (scene.shape[0] // 2 - 1)) < 1e-3
    assert abs(sample - (scene.shape[1] // 2 - 1)) < 1e-3


def test_a_raw_sentinel_image_loads_to_the_same_values_from_both_formats(folder, tmp_path, tiff):
    """A30, with measured samples: integers, so both formats hold them exactly."""
    raw = tiff(next(folder("s1-slc-single").glob("*.tiff"))).astype(np.complex64)
    assert raw.shape == (601, 1401)
    assert 40 < np.abs(raw).mean() < 60
    found = {}
    for name in ("SCOMPLEX", "FCOMPLEX"):
        place = tmp_path / name
        place.mkdir()
        date = "20220918"
        write_par(place / f"{date}.rslc.par", examples.image_par(raw.shape, date, image_format=name))
        write_block(place / f"{date}.rslc", raw, name, raw.shape[1], 0)
        write_block(tmp_path / "hgt", np.zeros(raw.shape), "FLOAT", raw.shape[1], 0)
        load_gamma_flatten_rslc(
            rslc_dir=str(place),
            reference=date,
            hgt=str(tmp_path / "hgt"),
            rslc=str(tmp_path / f"{name}.zarr"),
            chunks=(256, 500),
            engine="native",
            workers=Workers(n_workers=1),
        )
        found[name] = read_array(tmp_path / f"{name}.zarr")[..., 0]
    assert found["SCOMPLEX"].tobytes() == found["FCOMPLEX"].tobytes()
    is_zero = raw == 0
    np.testing.assert_array_equal(found["SCOMPLEX"][~is_zero], raw[~is_zero])
    assert np.isnan(found["SCOMPLEX"][is_zero].real).all()
    assert np.isnan(found["SCOMPLEX"][is_zero].imag).all()
