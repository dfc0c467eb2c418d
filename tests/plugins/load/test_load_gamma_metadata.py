"""The command load-gamma-metadata; what it makes of real headers is in test_mexico."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from moraine_core import MoraineError
from moraine_load import examples
from moraine_load.load_gamma_metadata import load_gamma_metadata, web_mercator
from moraine_load.par import read_dem_par, read_slc_par, write_par


def run(stack, tmp_path, **options):
    """Run the command and return the file as TOML."""
    given = {name: stack[name] for name in ("rslc_dir", "dem_par")}
    options = {"reference": examples.DATES[1], "engine": "native", **options}
    load_gamma_metadata(**given, meta_file=str(tmp_path / "meta.toml"), **options)
    return tomllib.loads((tmp_path / "meta.toml").read_text(encoding="utf-8"))


def test_all_keys_are_there_with_plain_values(stack, tmp_path):
    meta = run(stack, tmp_path)
    assert meta["moraine_meta_version"] == 1
    assert meta["dates"] == list(examples.DATES)
    assert meta["reference"] == "20210113"
    assert meta["shape"] == [13, 17]
    assert meta["image_format"] == "FCOMPLEX"
    assert meta["radar_wavelength"] == 299792458 / 5.405e9
    assert (meta["range_pixel_spacing"], meta["azimuth_pixel_spacing"]) == (4.0, 13.5)
    assert (meta["heading"], meta["incidence"], meta["near_range"]) == (-11.5, 39.0, 849968.0)
    dem = read_dem_par(stack["dem_par"])
    west, south, east, north = meta["lonlat_bbox"]
    assert (west, north) == (dem.corner_lon, dem.corner_lat)
    assert east - west == pytest.approx((dem.width - 1) * 4e-4)
    assert north - south == pytest.approx((dem.nlines - 1) * 4e-4)
    assert len(meta["merca_bbox"]) == 4
    assert "np." not in (tmp_path / "meta.toml").read_text()


def test_baselines_are_relative_to_the_reference_and_positive_outward(stack, tmp_path):
    """The orbits of the example are 60 m apart across the track, at a look angle of about 32 degrees."""
    first, own, last = run(stack, tmp_path)["perpendicular_baseline"]
    assert own == 0
    assert first == pytest.approx(-last, abs=0.1)
    assert 45 < last < 60


def test_web_mercator_is_that_of_the_map():
    assert web_mercator(14.14, 40.82) == pytest.approx((1574057.5998, 4985827.8482), abs=1e-3)
    assert web_mercator(180.0, 0.0)[0] == pytest.approx(20037508.342789244, abs=1e-6)


def test_a_map_that_is_not_geographic_is_refused(stack, tmp_path):
    write_par(stack["dem_par"], replace(read_dem_par(stack["dem_par"]), projection="UTM", corner_lat=None))
    with pytest.raises(MoraineError, match="dem_par: DEM_projection is UTM; expected EQA"):
        run(stack, tmp_path)


def test_a_header_without_a_heading_is_told(stack, tmp_path):
    file = f"{stack['rslc_dir']}/{examples.DATES[1]}.rslc.par"
    write_par(file, replace(read_slc_par(file), heading=None, incidence_angle=None))
    with pytest.raises(MoraineError, match=r"20210113\.rslc\.par: heading, incidence_angle not found"):
        run(stack, tmp_path)
    assert not (tmp_path / "meta.toml").exists()


def test_baselines_of_the_program_are_matched_by_date_not_by_row(stack, programs, tmp_path):
    programs.add("base_calc")
    found = run(stack, tmp_path, engine="gamma", scratch_dir=str(tmp_path / "scratch"))["perpendicular_baseline"]
    assert found == [10.5 * (101 - 113), 0.0, 10.5 * (125 - 113)]
    assert Path(tmp_path / "scratch" / "slc_tab").read_text().count(".rslc.par") == 3


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("1 20210113 20210101 many\n", "line 1 is '1 20210113 20210101 many'; expected number, two dates and"),
        ("one line\n", "line 1 is 'one line'; expected number, two dates and the perpendicular baseline"),
        ("1 20210113 20210101 1.0\n", "has no row of 20210113 with 20210125; expected one for each date"),
    ],
)
def test_a_table_that_cannot_be_read_is_an_error(stack, programs, tmp_path, monkeypatch, table, message):
    programs.add("base_calc")
    monkeypatch.setenv("STAND_IN_TABLE", table)
    with pytest.raises(MoraineError, match=message):
        run(stack, tmp_path, engine="gamma", scratch_dir=str(tmp_path / "scratch"))
