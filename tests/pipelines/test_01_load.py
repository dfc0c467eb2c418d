"""01_load on a simulated stack: what is loaded is the truth."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from moraine_core.cli.main import run
from moraine_core.testing.data import read_array

FILE = Path(__file__).parents[2] / "pipelines" / "01_load.toml"
SHAPE = (90, 130)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work directory, with a blank in its name, in which the pipeline has run."""
    folder = tmp_path_factory.mktemp("my work")
    words = ["--shape", *map(str, SHAPE), "--nimages", "5", "--reference", "2", "--geo", "town"]
    assert run(["simulate", "--out", str(folder / "my stack"), *words, "--baseline", "120", "--quiet"]) == 0
    variables = {"gamma": "my stack", "reference": "20230130", "geo": "town"}
    words = [word for name, value in variables.items() for word in ("--var", f"{name}={value}")]
    assert run(["run", str(FILE), "--workdir", str(folder), *words, "--quiet"]) == 0
    return folder


def test_the_phase_of_bright_points_is_motion_and_air(work: Path):
    """Persistent scatterers stand out of their surroundings: fringes of height and of the flat Earth would show."""
    rslc = read_array(work / "raw" / "rslc.zarr")
    truth = read_array(work / "my stack" / "truth" / "phase.zarr")
    bright = read_array(work / "my stack" / "truth" / "ps_amplitude.zarr") >= 1000
    left = np.angle(rslc * rslc[..., 2:3].conj() * np.exp(-1j * truth))[bright]
    assert len(left) > 10
    assert np.median(np.abs(left)) < 0.1
    raw = [np.fromfile(work / "my stack" / "rslc" / f"{date}.rslc", ">c8") for date in ("20230106", "20230130")]
    fringes = np.angle(raw[0].reshape(SHAPE) * raw[1].reshape(SHAPE).conj() * np.exp(-1j * truth[..., 0]))[bright]
    assert np.median(np.abs(fringes)) > 0.5


def test_geometry_is_that_of_the_truth(work: Path):
    for name, tolerance in (("lat", 1e-6), ("lon", 1e-6), ("hgt", 0.1), ("theta", 1e-4), ("phi", 1e-4)):
        loaded, truth = (
            read_array(work / "raw" / f"{name}.zarr"),
            read_array(work / "my stack" / "truth" / f"{name}.zarr"),
        )
        assert loaded.shape == SHAPE
        np.testing.assert_allclose(loaded, truth, rtol=0, atol=tolerance)


def test_web_mercator_and_range_follow(work: Path):
    lat, lon = (np.radians(read_array(work / "raw" / f"{name}.zarr")) for name in ("lat", "lon"))
    np.testing.assert_allclose(read_array(work / "raw" / "e.zarr"), 6378137 * lon, rtol=1e-14)
    northing = 6378137 * np.log(np.tan(np.pi / 4 + lat / 2))
    np.testing.assert_allclose(read_array(work / "raw" / "n.zarr"), northing, rtol=1e-13)
    meta = tomllib.loads((work / "raw" / "meta.toml").read_text(encoding="utf-8"))
    expected = meta["near_range"] + meta["range_pixel_spacing"] * np.arange(SHAPE[1])
    np.testing.assert_allclose(read_array(work / "raw" / "range.zarr"), np.tile(expected, (SHAPE[0], 1)), rtol=1e-7)


def test_metadata_tells_dates_and_baselines(work: Path):
    meta = tomllib.loads((work / "raw" / "meta.toml").read_text(encoding="utf-8"))
    assert meta["dates"] == ["20230106", "20230118", "20230130", "20230211", "20230223"]
    assert meta["reference"] == "20230130"
    assert meta["perpendicular_baseline"][2] == 0
    assert 50 < np.std(meta["perpendicular_baseline"]) < 300
    west, south, east, north = meta["lonlat_bbox"]
    lat, lon = (read_array(work / "raw" / f"{name}.zarr") for name in ("lat", "lon"))
    assert west < lon.min() < lon.max() < east
    assert south < lat.min() < lat.max() < north


def test_the_second_run_has_nothing_to_do(work: Path, capsys: pytest.CaptureFixture[str]):
    variables = ["--var", "gamma=my stack", "--var", "reference=20230130", "--var", "geo=town"]
    assert run(["run", str(FILE), "--workdir", str(work), *variables, "--dry-run"]) == 0
    out = capsys.readouterr()
    assert "run (" not in out.out + out.err
