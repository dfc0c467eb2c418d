"""The command load-gamma-look-vector."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from moraine_core import MoraineError, Workers
from moraine_core.testing.data import read_array
from moraine_load import _cpu, examples
from moraine_load.load_gamma_look_vector import load_gamma_look_vector
from moraine_load.par import read_dem_par
from moraine_load.rasters import read_block, write_block

SHAPE = (13, 17)
MAP = ("theta", "phi", "lt", "dem_par")


def run(stack, names=MAP, **options):
    """Run the command beside the stack and return theta and phi."""
    folder = Path(stack["hgt"]).parent
    given = {name: stack[name] for name in ("rslc_par", *names)}
    outputs = {f"{name}_zarr": str(folder / f"{name}.zarr") for name in ("theta", "phi")}
    options = {"engine": "native", "chunks": (6, 5), **options}
    load_gamma_look_vector(**given, **outputs, **options, workers=Workers(n_workers=1), fresh=True)
    return [read_array(path) for path in outputs.values()]


def refused(stack, names=MAP, **options):
    """Run the command, expect a refusal without an output, and return its text."""
    with pytest.raises(MoraineError) as caught:
        run(stack, names, **options)
    assert not list(Path(stack["hgt"]).parent.glob("*.zarr"))
    return str(caught.value)


@pytest.fixture
def at_sea(stack):
    """Return the stack with its heights at sea level, as those of its map are."""
    Path(stack["hgt"]).write_bytes(bytes(4 * 13 * 17))
    return stack


def test_vectors_from_the_map_are_those_from_heights_and_orbit(at_sea):
    """Two ways to one result: geometry in each pixel, and geometry in the map with a lookup table."""
    from_map, from_heights = run(at_sea), run(at_sea, ["hgt"])
    for one, other in zip(from_map, from_heights, strict=True):
        assert one.dtype == other.dtype == np.float32
        assert np.isfinite(one).all()
        assert np.abs(one - other).max() < 1e-5
    assert 0.7 < from_map[0].mean() < 1.1


def test_a_phi_of_zero_is_a_direction_and_a_theta_of_zero_is_none(at_sea):
    dem = read_dem_par(at_sea["dem_par"])
    shape = (dem.nlines, dem.width)
    theta = np.full(shape, 0.7)
    theta[: shape[0] // 2] = 0
    write_block(at_sea["theta"], theta, "FLOAT", shape[1], 0)
    write_block(at_sea["phi"], np.zeros(shape), "FLOAT", shape[1], 0)
    theta, phi = run(at_sea)
    known = np.isfinite(theta)
    assert 0 < known.mean() < 1
    np.testing.assert_allclose(theta[known], 0.7, rtol=1e-6)
    np.testing.assert_array_equal(phi[known], 0)
    np.testing.assert_array_equal(np.isnan(phi), ~known)


def test_orientations_across_the_cut_at_pi_are_not_averaged_to_zero(at_sea):
    dem = read_dem_par(at_sea["dem_par"])
    phi = np.where(np.mgrid[: dem.nlines, : dem.width].sum(axis=0) % 2, 3.1, -3.1)
    write_block(at_sea["phi"], phi, "FLOAT", dem.width, 0)
    found = run(at_sea)[1]
    assert (np.abs(found) > 3.09).all()


def test_pixels_that_the_map_does_not_reach_are_nan(at_sea):
    dem = read_dem_par(at_sea["dem_par"])
    table = read_block(at_sea["lt"], "FCOMPLEX", dem.width, (0, dem.nlines)).copy()
    table[table.real > 8] = 0
    write_block(at_sea["lt"], table, "FCOMPLEX", dem.width, 0)
    theta, phi = run(at_sea)
    assert np.isnan(theta[:, 9:]).all()
    assert np.isfinite(theta[4:9, 1:3]).all()
    np.testing.assert_array_equal(np.isnan(theta), np.isnan(phi))


def test_linear_functions_are_resampled_exactly_and_without_gaps():
    rng = np.random.default_rng(1)
    row, column = np.mgrid[:12, :15].astype(float)
    azimuth = 3.1 * row + 0.7 * column + rng.uniform(-0.3, 0.3, row.shape) - 8
    distance = -0.4 * row + 2.9 * column + rng.uniform(-0.3, 0.3, row.shape) - 6
    values = np.stack([azimuth, 2 * distance - azimuth], axis=-1)
    whole = np.full((20, 25, 2), np.nan)
    _cpu.rasterize(azimuth, distance, values, 0, 0, whole)
    line, sample = np.mgrid[:20, :25]
    known = np.isfinite(whole[..., 0])
    assert known[3:18, 3:22].all()
    np.testing.assert_allclose(whole[known], np.stack([line, 2 * sample - line], axis=-1)[known], atol=1e-9)
    part = np.full((6, 9, 2), np.nan)
    _cpu.rasterize(azimuth, distance, values, 5, 11, part)
    assert part.tobytes() == np.ascontiguousarray(whole[5:11, 11:20]).tobytes()


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ((), "nothing"),
        (("theta", "phi", "lt"), "theta, phi, lt"),
        ((*MAP, "hgt"), "theta, phi, lt, dem_par, hgt"),
        (("theta", "hgt"), "theta, hgt"),
    ],
)
def test_either_the_files_of_the_map_or_heights_are_expected(stack, names, found):
    assert f"{found} given; expected theta, phi, lt and dem_par, or hgt" in refused(stack, names)


@pytest.mark.parametrize("name", ["theta", "phi", "lt"])
def test_a_file_of_the_map_with_another_size_is_told(stack, name):
    file = Path(stack[name])
    file.write_bytes(file.read_bytes()[:-4])
    assert f"{file} has {file.stat().st_size} bytes" in refused(stack)


def test_geocode_resamples_cosine_and_sine(stack, programs, tmp_path):
    programs.add("geocode")
    dem = read_dem_par(stack["dem_par"])
    middle = dem.nlines * dem.width // 2
    expected = [np.fromfile(stack[name], ">f4")[middle] for name in ("theta", "phi")]
    found = run(stack, engine="gamma", scratch_dir=str(tmp_path / "scratch"))
    for one, value in zip(found, expected, strict=True):
        assert np.isnan(one[0, 0])
        np.testing.assert_allclose(one.ravel()[1:], value, rtol=1e-6)
    assert [call[0] for call in programs.calls] == ["geocode"] * 3
    assert {tuple(call[-2:]) for call in programs.calls} == {("17", "13")}


def test_a_missing_program_is_named(stack, programs):
    text = refused(stack, engine="gamma", scratch_dir="anywhere")
    assert "engine is gamma, but geocode not found on the PATH; expected all of geocode, or engine native" in text
    assert programs.calls == []


def test_heights_need_no_program(at_sea, programs):
    programs.add("geocode")
    assert np.isfinite(run(at_sea, ["hgt"], engine="auto")[0]).all()
    assert programs.calls == []


def test_examples_look_to_the_right_from_the_west(at_sea):
    _, phi = run(at_sea)
    assert (np.cos(phi) < 0).all()
    assert examples.DATES[0] in at_sea["rslc_par"]
