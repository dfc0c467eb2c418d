"""Radar geometry against circles, ellipsoids and closed formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from moraine_load import examples
from moraine_load.geometry import (
    baseline,
    earth_fixed,
    ground,
    ground_points,
    line_times,
    look_angles,
    orbit_at,
    orbit_coefficients,
    perpendicular_baseline,
    radar_coordinates,
    sample_ranges,
    simulated_phase,
)
from moraine_load.par import ParError
from moraine_load.scene import scene_of

SHAPE = (40, 50)
DATE = "20210101"


def scene(offset=0.0, shape=SHAPE, **changed):
    return scene_of(replace(examples.image_par(shape, DATE, offset), **changed))


def circle(orbit):
    """Return center, normal and radius of the circle that state vectors are on."""
    first, middle, last = (np.array(orbit.positions[k]) for k in (0, 3, 6))
    normal = np.cross(middle - first, last - first)
    normal /= np.linalg.norm(normal)
    center = normal * (middle @ normal)
    return center, normal, np.linalg.norm(middle - center)


def distance_to_circle(points, orbit):
    """Return the distance of points from a circle: the closest approach of a sensor on it, in closed form."""
    center, normal, radius = circle(orbit)
    away = points - center
    out_of_plane = away @ normal
    in_plane = np.sqrt(np.sum(away**2, axis=-1) - out_of_plane**2)
    return np.hypot(in_plane - radius, out_of_plane)


def heights(shape=SHAPE):
    line, sample = np.mgrid[: shape[0], : shape[1]]
    return np.where((line + sample) % 7 == 0, 0.0, 30.0 * line + 11.0 * sample - 300)


# ------------------------------------------------------------------------------------------------------ orbit


def test_an_orbit_between_its_vectors_is_the_circle_they_are_on():
    orbit = examples.circular_orbit()
    times = np.linspace(orbit.first_time, orbit.last_time, 301)
    position, velocity = orbit_at(orbit, times)
    center, normal, radius = circle(orbit)
    assert np.abs(np.linalg.norm(position - center, axis=1) - radius).max() < 2e-8
    assert np.abs((position - center) @ normal).max() < 2e-8
    assert np.abs(np.linalg.norm(velocity, axis=1) - 7500).max() < 1e-7


def test_an_orbit_goes_through_its_vectors_and_is_smooth_there():
    orbit = examples.circular_orbit()
    times = orbit.first_time + orbit.interval * np.arange(orbit.count)
    position, velocity = orbit_at(orbit, times)
    np.testing.assert_allclose(position, orbit.positions, rtol=0, atol=1e-8)
    np.testing.assert_allclose(velocity, orbit.velocities, rtol=0, atol=1e-9)
    before, _ = orbit_at(orbit, times[1:-1] - 1e-9)
    np.testing.assert_allclose(before, np.array(orbit.positions)[1:-1], rtol=0, atol=1e-5)


def test_a_polynomial_of_degree_seven_is_reproduced():
    rng = np.random.default_rng(1)
    powers = rng.normal(size=(8, 3)) * 10.0 ** -np.arange(8)[:, None] * 1e5
    t = np.arange(4.0) * 10 - 15
    values = np.stack([np.polynomial.Polynomial(powers[:, k])(t) for k in range(3)], axis=1)
    slopes = np.stack([np.polynomial.Polynomial(powers[:, k]).deriv()(t) for k in range(3)], axis=1)
    orbit = replace(
        examples.circular_orbit(),
        first_time=-15.0,
        positions=tuple(map(tuple, values.tolist())),
        velocities=tuple(map(tuple, slopes.tolist())),
    )
    position, _ = orbit_at(orbit, [-12.3, 0.4, 14.0])
    for k in range(3):
        expected = np.polynomial.Polynomial(powers[:, k])(np.array([-12.3, 0.4, 14.0]))
        np.testing.assert_allclose(position[:, k], expected, rtol=1e-11)
    assert orbit_coefficients(orbit).shape == (3, 8, 3)


# ----------------------------------------------------------------------------------------------------- ground


@pytest.mark.parametrize("side", [1, -1])
def test_a_point_has_the_range_the_height_and_zero_doppler_on_the_side_looked_to(side):
    image = replace(scene(), side=side)
    lines, samples, height = np.arange(SHAPE[0]), np.arange(SHAPE[1]), heights()
    found = ground(image, lines, samples, height)
    position, velocity = orbit_at(image.orbit, line_times(image, lines))
    away = found.xyz - position[:, None]
    reach = np.linalg.norm(away, axis=-1)
    assert np.abs(reach - sample_ranges(image, samples)).max() < 1e-8
    assert np.abs(np.einsum("ijk,ik->ij", away, velocity) / 7500).max() < 1e-6
    right = np.cross(velocity, position)
    assert (np.einsum("ijk,ik->ij", away, right) * side > 0).all()
    back = earth_fixed(found.lon, found.lat, height, image.semi_major, image.semi_minor)
    assert np.abs(back - found.xyz).max() < 1e-7


def test_pixels_without_a_height_or_out_of_reach_are_nan():
    image = scene()
    height = np.array([[0.0, np.nan, 2e5], [-1e6, 0.0, np.inf]])
    found = ground(image, [0, 1], [0, 1, 2], height)
    expected = [[True, False, True], [False, True, False]]
    np.testing.assert_array_equal(np.isfinite(found.lat), expected)
    np.testing.assert_array_equal(np.isfinite(found.xyz).all(axis=-1), expected)


def test_points_are_seen_at_the_pixels_they_were_located_from():
    image = scene()
    lines, samples = np.arange(0, SHAPE[0], 3), np.arange(0, SHAPE[1], 4)
    line, sample = radar_coordinates(image, ground_points(image, lines, samples, heights()[::3, ::4]))
    assert np.abs(line - lines[:, None]).max() < 1e-6
    assert np.abs(sample - samples).max() < 1e-8


def test_points_that_the_orbit_does_not_pass_have_no_coordinates():
    line, sample = radar_coordinates(scene(), np.array([[6.4e6, 0.0, 0.0], [-6.4e6, 0.0, 0.0]]))
    assert np.isnan(line).all()
    assert np.isnan(sample).all()


def test_coordinates_do_not_depend_on_the_block_in_which_they_are_computed():
    image, height = scene(), heights()
    whole = ground_points(image, np.arange(SHAPE[0]), np.arange(SHAPE[1]), height)
    part = ground_points(image, np.arange(11, 23), np.arange(7, 31), height[11:23, 7:31])
    assert part.tobytes() == np.ascontiguousarray(whole[11:23, 7:31]).tobytes()


def test_a_scene_of_forty_thousand_lines_has_right_coordinates_to_its_end():
    """A36: no index overflows on a 40 000 x 10 image, and its last line is where the orbit is then."""
    shape = (40_000, 10)
    par = replace(
        examples.image_par(shape, DATE),
        azimuth_line_time=1e-3,
        start_time=980.0,
    )
    image = scene_of(par)
    samples = np.arange(10)
    for lines in (np.arange(5), np.arange(32_765, 32_771), np.arange(39_990, 40_000)):
        found = ground(image, lines, samples, np.full((len(lines), 10), 12.0))
        line, sample = radar_coordinates(image, found.xyz)
        assert np.abs(line - lines[:, None]).max() < 1e-5
        assert np.abs(sample - samples).max() < 1e-7
        position, _ = orbit_at(image.orbit, 980.0 + lines * 1e-3)
        assert np.abs(np.linalg.norm(found.xyz[:, 0] - position, axis=1) - image.near_range).max() < 1e-7
    ends = ground(image, [0, 39_999], [0], np.zeros((2, 1)))
    assert 250e3 < np.linalg.norm(ends.xyz[1, 0] - ends.xyz[0, 0]) < 280e3


# ------------------------------------------------------------------------------------------- phase and baselines


def test_the_phase_is_that_of_the_distances_from_two_circles():
    reference, other = scene(), scene(120.0)
    lines, samples = np.arange(SHAPE[0]), np.arange(SHAPE[1])
    points = ground_points(reference, lines, samples, heights())
    phase = simulated_phase(reference, other, lines, samples, points)
    longer = distance_to_circle(points, other.orbit) - sample_ranges(reference, samples)
    assert np.abs(phase - 4 * np.pi / reference.wavelength * longer).max() < 1e-4
    assert np.abs(phase).min() > 1000
    assert np.abs(simulated_phase(reference, reference, lines, samples, points)).max() < 1e-4


def test_the_phase_does_not_know_by_which_clock_the_other_orbit_runs():
    reference, other = scene(), scene(120.0)
    later = replace(other, start_time=other.start_time + 777.25, orbit=replace(other.orbit, first_time=970.0 + 777.25))
    where = (np.arange(SHAPE[0]), np.arange(SHAPE[1]))
    points = ground_points(reference, *where, heights())
    found = [simulated_phase(reference, image, *where, points) for image in (other, later)]
    assert np.abs(found[0] - found[1]).max() < 1e-4


def test_a_baseline_across_the_track_is_cross_and_neither_along_nor_normal():
    found = baseline(scene(), scene(75.0), 20.0)
    np.testing.assert_allclose(found, (0.0, 75.0, 0.0), atol=1e-3)


def test_a_higher_orbit_is_a_negative_normal_baseline():
    higher = replace(scene(), orbit=examples.circular_orbit(radius=7.07e6 + 50))
    np.testing.assert_allclose(baseline(scene(), higher, 20.0), (0.0, 0.0, -50.0), atol=1e-3)


@pytest.mark.parametrize("side", [1, -1])
def test_the_perpendicular_baseline_is_what_the_phase_changes_by_with_height(side):
    """d phi / dh = 4 pi / lambda B_perp / (r sin(incidence)), the height ambiguity of any textbook."""
    reference, other = replace(scene(), side=side), replace(scene(75.0), side=side)
    line, sample = [SHAPE[0] // 2], [SHAPE[1] // 2]
    low, high = (ground(reference, line, sample, np.array([[h]])) for h in (0.0, 2.0))
    phases = [simulated_phase(reference, other, line, sample, p.xyz)[0, 0] for p in (low, high)]
    theta, _ = look_angles(reference, line, low)
    reach = sample_ranges(reference, sample)[0]
    # lower ranges from an outer orbit: the sign of the phase is that of r_other - r_ref
    expected = -(phases[1] - phases[0]) / 2 * reference.wavelength / (4 * np.pi) * reach * np.cos(theta[0, 0])
    found = perpendicular_baseline(reference, other, line[0], sample[0])
    assert abs(abs(found) - abs(expected)) < 0.02 * abs(expected)
    assert np.sign(found) == side


# ------------------------------------------------------------------------------------------------------- angles


def test_look_angles_point_to_the_sensor():
    image = scene()
    lines, samples = np.arange(5), np.arange(7)
    points = ground(image, lines, samples, heights((5, 7)))
    theta, phi = look_angles(image, lines, points)
    lon, lat = np.radians(points.lon), np.radians(points.lat)
    east = np.stack([-np.sin(lon), np.cos(lon), 0 * lon], axis=-1)
    north = np.stack([-np.sin(lat) * np.cos(lon), -np.sin(lat) * np.sin(lon), np.cos(lat)], axis=-1)
    up = np.cross(east, north)
    unit = (
        (np.cos(theta) * np.cos(phi))[..., None] * east
        + (np.cos(theta) * np.sin(phi))[..., None] * north
        + np.sin(theta)[..., None] * up
    )
    position, _ = orbit_at(image.orbit, line_times(image, lines))
    there = points.xyz + unit * sample_ranges(image, samples)[:, None]
    assert np.abs(there - position[:, None]).max() < 1e-3
    assert (np.cos(phi) < 0).all(), "an ascending orbit that looks to the right is in the west of what it sees"


# ------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"orbit": None}, "number_of_state_vectors is 0; expected at least 4"),
        ({"radar_frequency": None, "start_time": None}, "start_time, radar_frequency not found"),
        ({"azimuth_line_time": 0.0}, "azimuth_line_time is 0; expected a positive number"),
        ({"azimuth_deskew": "OFF"}, "azimuth_deskew is OFF; expected ON"),
        ({"start_time": 969.0}, "the image lasts from 969.0 to 969.078000 s, its state vectors from 970.0 to 1030.0 s"),
        ({"start_time": 1029.99}, "expected state vectors before and after the image"),
    ],
)
def test_a_header_that_geometry_cannot_be_made_of_is_refused(changed, message):
    par = replace(examples.image_par(SHAPE, DATE), path="an image.par", **changed)
    with pytest.raises(ParError, match=f"an image.par: .*{message}"):
        scene_of(par)


def test_too_few_state_vectors_are_refused():
    orbit = examples.circular_orbit()
    few = replace(orbit, positions=orbit.positions[:3], velocities=orbit.velocities[:3])
    with pytest.raises(ParError, match=r"a\.par: number_of_state_vectors is 3; expected at least 4"):
        scene_of(replace(examples.image_par(SHAPE, DATE), path="a.par", orbit=few))
