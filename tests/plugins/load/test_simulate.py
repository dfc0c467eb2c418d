"""simulate: what is written is what physics, statistics and the options say."""

from __future__ import annotations

import tomllib
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from moraine_core import UsageError, Workers
from moraine_core.testing.data import read_array
from moraine_load.par import read_dem_par, read_slc_par
from moraine_load.simulate import simulate
from moraine_load.simulation.orbit import overhead

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

WAVELENGTH = 299792458.0 / 5.4050005e9
QUIET = {"subsidence": 0.0, "seasonal": 0.0, "atmosphere": 0.0, "noise": 0.0, "decorrelation": False, "baseline": 0.0}
"""Nothing moves, nothing changes."""


class Stack:
    """A simulated stack."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        simulate(out=str(folder), workers=Workers(n_workers=2), **options)
        self.par_files = sorted((folder / "rslc").glob("*.par"))
        self.shape = tuple(options["shape"])

    def truth(self, name: str) -> NDArray[Any]:
        return read_array(self.folder / "truth" / f"{name}.zarr")

    @property
    def described(self) -> dict[str, Any]:
        return tomllib.loads((self.folder / "truth" / "truth.toml").read_text(encoding="utf-8"))

    def image(self, number: int, dtype: str = ">c8") -> NDArray[Any]:
        files = sorted((self.folder / "rslc").glob("*.rslc"))
        return np.fromfile(files[number], dtype).reshape(*self.shape, *(() if dtype == ">c8" else (2,)))

    def raster(self, name: str, dtype: str, width: int) -> NDArray[Any]:
        return np.fromfile(self.folder / name, dtype).reshape(-1, width)


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Make stacks by their options, each once."""

    @cache
    def make(**options: Any) -> Stack:
        return Stack(tmp_path_factory.mktemp("stack") / "out", **options)

    return make


# ------------------------------------------------------------------------------------------------- geometry


def test_the_orbit_is_that_of_sentinel_1() -> None:
    """98.6 minutes for a revolution (175 in 12 days), about 693 km above the Earth."""
    (radius, inclination, *_, rate), distance = overhead(np.radians(40.0), np.radians(14.0), np.radians(39.0))
    assert abs(2 * np.pi / rate - 12 * 86400 / 175) < 15
    assert 690e3 < radius - 6378137 < 715e3
    assert abs(np.degrees(inclination) - 98.18) < 0.01
    assert 840e3 < distance < 900e3


def earth_fixed(lat: NDArray[Any], lon: NDArray[Any], hgt: NDArray[Any]) -> NDArray[Any]:
    """Return positions on WGS 84 by the reduced latitude, another way than the simulation's."""
    a, b = 6378137.0, 6378137.0 * (1 - 1 / 298.257223563)
    lat, lon = np.radians(lat), np.radians(lon)
    reduced = np.arctan(b / a * np.tan(lat))
    ring = a * np.cos(reduced) + hgt * np.cos(lat)
    return np.stack([ring * np.cos(lon), ring * np.sin(lon), b * np.sin(reduced) + hgt * np.sin(lat)], axis=-1)


def orbit_of(par: Any) -> Any:
    """Return the sensor's position as a polynomial through all state vectors (Neville's scheme)."""
    times = par.orbit.first_time + par.orbit.interval * np.arange(par.orbit.count)
    positions = np.array(par.orbit.positions)

    def at(time: NDArray[Any]) -> NDArray[Any]:
        table = [np.broadcast_to(p, (*time.shape, 3)) for p in positions]
        for order in range(1, len(table)):
            table = [
                ((time - times[i])[..., None] * table[i + 1] - (time - times[i + order])[..., None] * table[i])
                / (times[i + order] - times[i])
                for i in range(len(table) - 1)
            ]
        return table[0]

    return at


def test_pixels_lie_at_their_range_where_the_sensor_is_nearest(stacks: Any) -> None:
    stack = stacks(shape=(40, 60), nimages=2, **QUIET)
    par = read_slc_par(stack.par_files[0])
    line, sample = np.meshgrid(np.arange(40), np.arange(60), indexing="ij")
    ground = earth_fixed(*(stack.truth(name) for name in ("lat", "lon", "hgt")))
    orbit = orbit_of(par)
    time = par.start_time + line * par.azimuth_line_time
    before, now, after = (np.linalg.norm(orbit(time + dt) - ground, axis=-1) for dt in (-0.5, 0.0, 0.5))
    np.testing.assert_allclose(now, par.near_range_slc + sample * par.range_pixel_spacing, rtol=0, atol=1e-4)
    # a parabola has its vertex where both sides are equal; 1e-3 m of 0.5 s is 1e-7 of the flight
    np.testing.assert_allclose(before, after, rtol=0, atol=1e-3)


def test_the_radar_looks_to_the_right_of_an_ascending_orbit(stacks: Any) -> None:
    stack = stacks(shape=(40, 60), nimages=2, **QUIET)
    theta, phi, lon, lat = (stack.truth(name) for name in ("theta", "phi", "lon", "lat"))
    assert np.all(np.diff(lon, axis=1) > 0), "range grows to the east"
    assert np.all(np.diff(lat, axis=0) > 0), "lines go north"
    assert abs(np.degrees(theta).mean() - 51.0) < 0.5, "39 degrees of incidence"
    assert abs(np.degrees(phi).mean() + 169.9) < 2, "the sensor is in the west by south"
    assert -16 < read_slc_par(stack.par_files[0]).heading < -10


def test_the_map_has_the_terrain_of_the_pixels(stacks: Any) -> None:
    """Heights between posts are bilinear; the terrain bends little within 25 m."""
    stack = stacks(shape=(120, 160), nimages=1, relief=100.0)
    par = read_dem_par(stack.folder / "DEM" / "dem_seg_par")
    dem = stack.raster("DEM/dem_seg", ">f4", par.width).astype(float)
    assert dem.shape == (par.nlines, par.width)
    lat, lon, hgt = (stack.truth(name) for name in ("lat", "lon", "hgt"))
    i, j = (lat - par.corner_lat) / par.post_lat, (lon - par.corner_lon) / par.post_lon
    expected = bilinear(dem, i, j)
    assert np.std(hgt) > 5
    assert np.abs(hgt - expected).max() < 0.5
    np.testing.assert_array_equal(stack.raster("geocoding/scene.hgt", ">f4", 160), hgt)


def bilinear(values: NDArray[Any], i: NDArray[Any], j: NDArray[Any]) -> NDArray[Any]:
    row, column = np.floor(i).astype(int), np.floor(j).astype(int)
    y, x = i - row, j - column
    upper = values[row, column] * (1 - x) + values[row, column + 1] * x
    lower = values[row + 1, column] * (1 - x) + values[row + 1, column + 1] * x
    return upper * (1 - y) + lower * y


def test_the_lookup_table_leads_to_pixels_at_the_place_of_the_post(stacks: Any) -> None:
    stack = stacks(shape=(120, 160), nimages=1, relief=100.0)
    par = read_dem_par(stack.folder / "DEM" / "dem_seg_par")
    table = stack.raster("geocoding/scene.lt_fine", ">c8", par.width)
    inside = (table.real > 0) & (table.real < 158) & (table.imag > 0) & (table.imag < 118)
    assert inside.sum() > 500
    post_lat = np.broadcast_to((par.corner_lat + par.post_lat * np.arange(par.nlines))[:, None], table.shape)
    post_lon = np.broadcast_to((par.corner_lon + par.post_lon * np.arange(par.width))[None, :], table.shape)
    for name, post, meters in (("lat", post_lat, 111e3), ("lon", post_lon, 84e3)):
        found = bilinear(stack.truth(name), table.imag[inside], table.real[inside])
        assert np.abs(found - post[inside]).max() * meters < 0.5
    for name in ("theta", "phi"):
        angle = stack.raster(f"geocoding/scene.lv_{name}", ">f4", par.width)[inside]
        np.testing.assert_allclose(
            bilinear(stack.truth(name), table.imag[inside], table.real[inside]), angle, rtol=0, atol=1e-5
        )


def test_ground_that_is_not_found_is_no_data_everywhere(stacks: Any) -> None:
    """Slopes of 600 m of relief are steeper than the line of sight in places; zero is GAMMA's missing sample."""
    stack = stacks(shape=(200, 300), nimages=2, relief=600.0, image_format="SCOMPLEX")
    lost = np.isnan(stack.truth("lat"))
    assert 0 < lost.mean() < 0.01
    for name in ("lon", "hgt", "theta", "phi"):
        np.testing.assert_array_equal(np.isnan(stack.truth(name)), lost)
    assert not stack.image(1, ">i2")[lost].any()
    assert np.isnan(stack.truth("phase")[lost]).all()


# ----------------------------------------------------------------------------------------------- statistics


def alone(stack: Stack) -> NDArray[Any]:
    """Return where no persistent scatterer is near."""
    near = stack.truth("is_ps").copy()
    for axis in (0, 1):
        near = np.any([np.roll(near, shift, axis) for shift in range(-5, 6)], axis=0)
    return ~near


CHANGING = {"shape": (260, 330), "dates": ("20230106", "20230118", "20230719"), "noise": 20.0, "subsidence": 0.0,
            "seasonal": 0.0, "atmosphere": 0.0, "baseline": 0.0, "relief": 0.0}  # fmt: skip


def test_speckle_is_gaussian_and_limited_in_bandwidth(stacks: Any) -> None:
    """Intensity is exponential: its second moment is twice its square; neighbors correlate as a sinc of the bandwidth.

    The window of the filters takes away some: 0.08 at most.
    """
    stack = stacks(**CHANGING)
    where = (stack.truth("cover") == 4) & alone(stack)
    image = np.where(where, stack.image(0), np.nan)
    intensity = np.abs(image) ** 2
    mean = np.nanmean(intensity)
    assert abs(np.nanmean(intensity**2) / mean**2 - 2) < 0.15
    assert abs(mean / (100**2 + 20**2) - 1) < 0.05
    for axis, bandwidth in ((0, 0.67), (1, 0.88)):
        one, two = np.moveaxis(image, axis, 0)[:-1], np.moveaxis(image, axis, 0)[1:]
        correlation = np.nanmean(one * two.conj()).real / mean
        assert abs(correlation - np.sinc(bandwidth)) < 0.08


def test_the_coherence_of_each_class_is_what_its_constants_say(stacks: Any) -> None:
    """Twelve days, half a year, and the summer: measured over all pixels of a class, without any phase to remove."""
    stack = stacks(**CHANGING)
    covers, lonely, truth = stack.truth("cover"), alone(stack), stack.truth("coherence")
    images = [stack.image(k) for k in range(3)]
    days, season = (0, 12, 194), [np.cos(np.pi * (d - 196) / 365.25) ** 2 for d in (6, 18, 200)]
    for number, cover in enumerate(stack.described["cover"]):
        where = (covers == number) & lonely
        if where.sum() < 1500:
            continue
        signal = cover["amplitude"] ** 2 / (cover["amplitude"] ** 2 + 20**2)
        for i, k in ((0, 1), (0, 2), (1, 2)):
            stays = np.exp(-(days[k] - days[i]) / cover["days"])
            lost = (1 - cover["seasonal"] * season[i]) * (1 - cover["seasonal"] * season[k])
            expected = cover["initial"] * lost * (cover["lasting"] + (1 - cover["lasting"]) * stays) * signal
            a, b = images[i][where], images[k][where]
            found = abs(np.vdot(b, a)) / np.sqrt(np.vdot(a, a).real * np.vdot(b, b).real)
            assert abs(found - expected) < 0.05, (cover["name"], i, k)
            assert abs(truth[number, i, k] - expected) < 1e-6
            assert truth[number, k, i] == truth[number, i, k]
    assert np.all(truth[:, range(3), range(3)] == 1)
    np.testing.assert_array_equal(stack.truth("is_water"), covers == 0)


def test_persistent_scatterers_are_steady_and_as_bright_as_they_say(stacks: Any) -> None:
    stack = stacks(**CHANGING)
    amplitude = stack.truth("ps_amplitude")
    np.testing.assert_array_equal(np.isfinite(amplitude), stack.truth("is_ps"))
    bright = amplitude >= 1000
    assert bright.sum() > 20
    seen = np.abs([stack.image(k)[bright] for k in range(3)])
    assert abs(np.median(seen[0] / amplitude[bright]) - 1) < 0.1
    assert np.median(seen.std(axis=0) / seen.mean(axis=0)) < 0.1
    assert set(np.unique(amplitude[np.isfinite(amplitude)])) <= {250.0, 500.0, 1000.0, 2000.0}


def test_the_atmosphere_has_a_power_law_and_its_strength(stacks: Any) -> None:
    """Power falls with wave number to the -11/3 in two dimensions; fitted between 4 and 0.6 km, under a window."""
    spacing = 60.0
    stack = stacks(
        shape=(192, 192),
        spacing=(spacing, spacing * float(np.sin(np.radians(39)))),
        nimages=10,
        atmosphere=2.0,
        relief=0.0,
        post=200.0,
    )
    air = np.moveaxis(stack.truth("atmosphere"), 2, 0).astype(float)
    window = np.hanning(192)[:, None] * np.hanning(192)
    power = (np.abs(np.fft.fft2((air - air.mean((1, 2), keepdims=True)) * window)) ** 2).mean(0)
    k = np.hypot(*np.meshgrid(np.fft.fftfreq(192, spacing), np.fft.fftfreq(192, spacing), indexing="ij"))
    edges = np.geomspace(1 / 4000, 1 / 600, 9)
    mean = [power[(k >= a) & (k < b)].mean() for a, b in pairwise(edges)]
    slope = np.polyfit(np.log(np.sqrt(edges[:-1] * edges[1:])), np.log(mean), 1)[0]
    assert abs(slope + 11 / 3) < 0.4
    assert 1.0 < np.sqrt((air**2).mean()) < 3.0


# ---------------------------------------------------------------------------------------------------- phase


def test_ground_that_sinks_by_a_wavelength_fraction_turns_the_phase_back(stacks: Any) -> None:
    """A quarter of a meter in a year is 8.2 mm in 12 days, 1.86 rad there and back, away from the satellite."""
    stack = stacks(shape=(60, 80), nimages=2, **{**QUIET, "subsidence": 0.25})
    expected = -4 * np.pi / WAVELENGTH * 0.25 * 12 / 365.25
    motion, phase = stack.truth("deformation")[..., 1], stack.truth("phase")
    assert abs(motion.min() - expected) < 0.01
    np.testing.assert_allclose(phase[..., 1], motion, rtol=1e-6)
    assert not phase[..., 0].any()
    turned = np.angle(stack.image(1) * stack.image(0).conj())
    np.testing.assert_allclose(np.angle(np.exp(1j * (turned - motion))), 0, atol=1e-4)


def test_the_air_of_both_images_is_in_an_interferogram(stacks: Any) -> None:
    stack = stacks(shape=(60, 80), nimages=3, reference=1, **{**QUIET, "atmosphere": 1.5})
    air, phase = stack.truth("atmosphere"), stack.truth("phase")
    np.testing.assert_allclose(phase, air - air[..., 1:2], atol=1e-5)
    seen = stack.image(0) * stack.image(2).conj()
    np.testing.assert_allclose(np.angle(seen * np.exp(-1j * (air[..., 0] - air[..., 2]))), 0, atol=1e-4)


def test_height_makes_fringes_by_the_perpendicular_baseline(stacks: Any) -> None:
    """Between two pixels, d(r_k - r_ref) = |P - S_k| - |P - S_ref| by the told orbits, found by trying times."""
    stack = stacks(shape=(40, 60), nimages=2, **{**QUIET, "baseline": 150.0})
    ground = earth_fixed(*(stack.truth(name)[::13, ::19] for name in ("lat", "lon", "hgt")))
    line = np.arange(40)[::13, None] + np.zeros(ground.shape[1], int)
    nearest = []
    for file in stack.par_files:
        par = read_slc_par(file)
        time, orbit = par.start_time + line * par.azimuth_line_time, orbit_of(par)
        for step in (0.1, 0.001):  # the vertex of a parabola through three distances
            a, b, c = (np.linalg.norm(orbit(time + dt) - ground, axis=-1) ** 2 for dt in (-step, 0.0, step))
            time = time + step * (a - c) / (2 * (a - 2 * b + c))
        nearest.append(np.linalg.norm(orbit(time) - ground, axis=-1))
    excess = 4 * np.pi / WAVELENGTH * (nearest[1] - nearest[0])
    assert np.ptp(excess) > 1
    seen = (stack.image(0) * stack.image(1).conj())[::13, ::19]
    np.testing.assert_allclose(np.angle(seen * np.exp(-1j * excess)), 0, atol=1e-3)


# ------------------------------------------------------------------------------------------- files and calls


def test_scomplex_is_fcomplex_rounded(stacks: Any) -> None:
    options = {"shape": (30, 40), "nimages": 2}
    floats, integers = stacks(**options), stacks(**options, image_format="SCOMPLEX")
    image, pairs = floats.image(1), integers.image(1, ">i2")
    assert read_slc_par(integers.par_files[1]).image_format == "SCOMPLEX"
    np.testing.assert_array_equal(pairs[..., 0], np.rint(image.real))
    np.testing.assert_array_equal(pairs[..., 1], np.rint(image.imag))


def test_no_bit_depends_on_the_lines_of_a_task(stacks: Any) -> None:
    """On rows long enough for the machine's widest instructions, with scatterers that spread from band to band."""
    one, two = (stacks(shape=(90, 333), nimages=2, orbit_error=1.0, lines=lines) for lines in (32, 19))
    for file in sorted(p for p in one.folder.glob("[rDg]*/*") if p.is_file()):
        assert file.read_bytes() == (two.folder / file.relative_to(one.folder)).read_bytes(), file.name
    for array in sorted(one.folder.glob("truth/*.zarr")):
        assert one.truth(array.stem).tobytes() == two.truth(array.stem).tobytes(), array.stem


def test_another_seed_is_another_scene(stacks: Any) -> None:
    one, two = (stacks(shape=(30, 40), nimages=2, seed=seed) for seed in (1, 2))
    correlation = np.vdot(one.image(0), two.image(0)) / np.vdot(one.image(0), one.image(0)).real
    assert abs(correlation) < 0.2
    assert not np.array_equal(one.truth("atmosphere"), two.truth("atmosphere"))


def test_parameter_files_agree_with_the_options(stacks: Any) -> None:
    stack = stacks(
        shape=(40, 60), nimages=3, interval=6, first_date="20231228", spacing=(14.0, 2.5), center=(-99.1, 19.4)
    )
    pars = [read_slc_par(file) for file in stack.par_files]
    assert [par.date for par in pars] == ["20231228", "20240103", "20240109"]
    for par in pars:
        assert (par.azimuth_lines, par.range_samples) == (40, 60)
        assert (par.azimuth_pixel_spacing, par.range_pixel_spacing) == (14.0, 2.5)
        assert abs(par.end_time - par.start_time - 39 * par.azimuth_line_time) < 1e-9
        assert par.orbit.first_time < par.start_time - 20
        assert par.orbit.last_time > par.end_time + 20
        # the beam's footprint runs over the ground more slowly than the satellite flies
        assert abs(par.azimuth_line_time * 6838 - 14.0) < 0.2
    middle = [stack.truth(name)[20, 30] for name in ("lon", "lat")]
    np.testing.assert_allclose(middle, [-99.1, 19.4], atol=0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first_date": "2023-01-06"}, "first_date is '2023-01-06'; expected YYYYMMDD"),
        ({"dates": ("20230106", "20230106")}, "ascending"),
        ({"nimages": 0}, "expected at least 1"),
        ({"reference": 12}, "of 12 images, from 0"),
        ({"shape": (0, 10)}, "at least one line"),
        ({"center": (0.0, 80.0)}, "latitude 80"),
        ({"spacing": (14.0, 0.0)}, "more than 0"),
        ({"seed": -1}, "seed is -1"),
        ({"geo": "a/b"}, "a name for files"),
    ],
)
def test_options_without_meaning_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulate(out=str(tmp_path / "out"), **options)
    assert not list(tmp_path.iterdir())


def test_a_stack_of_92_images_fits_into_4_gib() -> None:
    """Two workers, each with a task and the input of the next one."""
    plans = list(simulate.function(out="out", shape=(981, 4160), nimages=92))
    need = max(plan.task_bytes + max(task.input_bytes for task in plan.tasks) for plan in plans)
    assert 2 * need < 3 * 2**30
