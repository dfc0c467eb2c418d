"""Radar geometry from state vectors: points on the ground, ranges, baselines and directions, as array functions.

Coordinates of a pixel are its line and sample, 0 at the center of the first; Earth-fixed coordinates are in m.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_load import _cpu

if TYPE_CHECKING:
    from moraine_load.par import StateVectors
    from moraine_load.scene import Scene

    Floats = np.ndarray[Any, np.dtype[np.float64]]

WINDOW = 4
"""State vectors that a polynomial of the orbit goes through."""


class Ground(NamedTuple):
    """Points on the ground."""

    lon: Floats
    """Longitude, degrees."""
    lat: Floats
    """Latitude, degrees."""
    xyz: Floats
    """Earth-fixed coordinates, m; one axis more."""


class Baseline(NamedTuple):
    """Where one orbit runs as seen from another, at one time, in m."""

    along: float
    """Along the track."""
    cross: float
    """Across the track, positive to the right of the flight."""
    normal: float
    """Positive down, to the center of the Earth."""


@lru_cache(maxsize=1024)
def orbit_coefficients(orbit: StateVectors) -> Floats:
    """Return the polynomials of an orbit, by Hermite interpolation of positions and velocities.

    In each interval the polynomial of degree 7 takes the positions and velocities of the four vectors around it; in the
    first and last interval, of the four at that end. Neighbors agree in position and velocity where they meet.

    Returns
    -------
    array
        (intervals, 8, 3), float64, m; powers of the time since the beginning of the interval, in steps.
    """
    positions, velocities = np.asarray(orbit.positions), np.asarray(orbit.velocities) * orbit.interval
    coef = np.empty((orbit.count - 1, 2 * WINDOW, 3))
    powers = np.arange(2 * WINDOW)
    for i in range(len(coef)):
        start = min(max(i - WINDOW // 2 + 1, 0), orbit.count - WINDOW)
        nodes = np.arange(start, start + WINDOW)
        u = (nodes - i).astype(np.float64)
        values = u[:, None] ** powers
        slopes = powers * u[:, None] ** np.maximum(powers - 1, 0)
        # less a straight line, so that the digits of large coordinates are not lost in solving
        rest = positions[nodes] - positions[i] - u[:, None] * velocities[i]
        solved = np.linalg.solve(np.vstack([values, slopes]), np.vstack([rest, velocities[nodes] - velocities[i]]))
        solved[0], solved[1] = positions[i], velocities[i]
        coef[i] = solved
    return coef


def orbit_at(orbit: StateVectors, times: Any) -> tuple[Floats, Floats]:
    """Return positions (m) and velocities (m/s) of an orbit, each (n, 3), at n times (s)."""
    coef, state = orbit_coefficients(orbit), np.empty((3, 3))
    found = np.empty((2, np.size(times), 3))
    for i, time in enumerate(np.atleast_1d(times)):
        _cpu.orbit_at(float(time), orbit.first_time, orbit.interval, coef, state)
        found[:, i] = state[:2]
    return found[0], found[1]


def line_times(scene: Scene, lines: Any) -> Floats:
    """Return the times of lines, s."""
    return scene.start_time + np.asarray(lines, np.float64) * scene.line_time


def sample_ranges(scene: Scene, samples: Any) -> Floats:
    """Return the slant ranges of samples, m."""
    return scene.near_range + np.asarray(samples, np.float64) * scene.range_spacing


def ground_points(scene: Scene, lines: Any, samples: Any, height: Any) -> Floats:
    """Return the Earth-fixed points on the ground of a block of pixels with known heights.

    A point is where the sphere of the range around the sensor, the zero-Doppler plane of the line, and the surface of
    the height above the ellipsoid meet, on the side the radar looks to (Curlander, 1982, IEEE TGRS 20(3)).

    Parameters
    ----------
    scene
        The image.
    lines, samples
        Coordinates of the block, (nl,) and (w,), pixels.
    height
        m above the ellipsoid, (nl, w); nan where missing.

    Returns
    -------
    array
        m, (nl, w, 3), float64; nan where the height is missing or no point of that height has the range.
    """
    height = np.asarray(height)
    xyz = np.empty((*height.shape, 3))
    orbit, coef = scene.orbit, orbit_coefficients(scene.orbit)
    _cpu.points(
        line_times(scene, lines),
        sample_ranges(scene, samples),
        height,
        orbit.first_time,
        orbit.interval,
        coef,
        scene.side,
        scene.semi_major,
        scene.semi_minor,
        xyz,
    )
    return xyz


def ground(scene: Scene, lines: Any, samples: Any, height: Any) -> Ground:
    """Return the points on the ground of a block of pixels with their longitudes and latitudes.

    Parameters
    ----------
    scene, lines, samples, height
        As in `ground_points`.

    Returns
    -------
    Ground
        (nl, w), float64; nan as in `ground_points`.
    """
    xyz = ground_points(scene, lines, samples, height)
    tan_lat = np.empty(xyz.shape[:2])
    _cpu.latitudes(xyz, scene.semi_major, scene.semi_minor, tan_lat)
    return Ground(np.degrees(np.arctan2(xyz[..., 1], xyz[..., 0])), np.degrees(np.arctan(tan_lat)), xyz)


def look_angles(scene: Scene, lines: Any, points: Ground) -> tuple[Floats, Floats]:
    """Return the direction from points of an image to the sensor, in GAMMA's angles.

    Parameters
    ----------
    scene, lines
        The image, and the lines (nl,) of the points.
    points
        As `ground` returns them, (nl, w).

    Returns
    -------
    theta, phi
        Elevation above the horizon and orientation, 0 east and pi/2 north, radians, (nl, w), float64.
    """
    theta, phi = np.empty(points.lat.shape), np.empty(points.lat.shape)
    orbit, coef = scene.orbit, orbit_coefficients(scene.orbit)
    times = line_times(scene, lines)
    _cpu.angles(times, orbit.first_time, orbit.interval, coef, points.xyz, np.tan(np.radians(points.lat)), theta, phi)
    return theta, phi


def earth_fixed(lon: Any, lat: Any, height: Any, semi_major: float, semi_minor: float) -> Floats:
    """Return Earth-fixed coordinates (..., 3), m, of longitude and latitude (degrees) and ellipsoidal height (m)."""
    lam, phi, h = np.broadcast_arrays(np.radians(lon), np.radians(lat), np.asarray(height, np.float64))
    e2 = 1.0 - (semi_minor / semi_major) ** 2
    n = semi_major / np.sqrt(1.0 - e2 * np.sin(phi) ** 2)
    return np.stack(
        [
            (n + h) * np.cos(phi) * np.cos(lam),
            (n + h) * np.cos(phi) * np.sin(lam),
            (n * (1.0 - e2) + h) * np.sin(phi),
        ],
        axis=-1,
    )


def radar_coordinates(scene: Scene, xyz: Any) -> tuple[Floats, Floats]:
    """Return line and sample (pixels, float64, shape of the points) at which an image sees points.

    Parameters
    ----------
    scene
        The image.
    xyz
        Earth-fixed points, (..., 3), m; on the side that the radar looks to.

    Returns
    -------
    lines, samples
        nan for points that the orbit does not pass.
    """
    xyz = np.asarray(xyz, np.float64)
    time, reach = _closest(scene, xyz.reshape(-1, 3))
    lines = (time - scene.start_time) / scene.line_time
    samples = (reach - scene.near_range) / scene.range_spacing
    return lines.reshape(xyz.shape[:-1]), samples.reshape(xyz.shape[:-1])


def simulated_phase(reference: Scene, other: Scene, lines: Any, samples: Any, xyz: Any) -> Floats:
    """Return the phase of ``s_ref * conj(s_other)`` that geometry alone makes, repeat pass.

    ``phi = 4 pi / lambda (r_other - r_ref)``, with `r_other` the distance of the pixel's point on the ground from the
    other orbit at its closest approach.

    Parameters
    ----------
    reference, other
        The image whose geometry the pixels have, and another.
    lines, samples
        Coordinates of the block, (nl,) and (w,), pixels.
    xyz
        Its points on the ground, as `ground_points` returns them, (nl, w, 3), m.

    Returns
    -------
    array
        radians, (nl, w), float64; not wrapped. nan where the point is missing or the orbit does not pass it.
    """
    out = np.empty(xyz.shape[:2])
    orbit = other.orbit
    # co-registered images run alike: the other's time is near that of the same line
    _cpu.range_differences(
        xyz,
        sample_ranges(reference, samples),
        line_times(other, lines),
        orbit.first_time,
        orbit.interval,
        orbit_coefficients(orbit),
        out,
    )
    out *= 4.0 * np.pi / reference.wavelength
    return out


def baseline(reference: Scene, other: Scene, line: float) -> Baseline:
    """Return the baseline from a line of the reference orbit to the other orbit, in the frame of the reference.

    The frame is GAMMA's TCN: N points to the center of the Earth, C is across the track to the right of the flight, T
    completes it. The other orbit is taken where it is closest to the plane across the reference's track.
    """
    (position,), (velocity,) = orbit_at(reference.orbit, line_times(reference, line))
    n = -position / np.linalg.norm(position)
    c = np.cross(n, velocity)
    c /= np.linalg.norm(c)
    t = np.cross(c, n)
    time = float(line_times(other, line))
    for _ in range(20):
        (there,), (speed,) = orbit_at(other.orbit, time)
        change = -np.dot(there - position, t) / np.dot(speed, t)
        time += change
        if abs(change) < 1e-9:
            break
    (there,), _ = orbit_at(other.orbit, time)
    away = there - position
    return Baseline(float(away @ t), float(away @ c), float(away @ n))


def perpendicular_baseline(reference: Scene, other: Scene, line: float, sample: float, height: float = 0.0) -> float:
    """Return the component of the baseline across the line of sight of a pixel, m.

    ``C cos(look) - N sin(look)``, with the look angle between N and the line of sight; positive where the other sensor
    is farther out than the reference, to the side the radar looks to.
    """
    b = baseline(reference, other, line)
    (position,), _ = orbit_at(reference.orbit, line_times(reference, line))
    sight = ground_points(reference, [line], [sample], np.array([[height]]))[0, 0] - position
    look = np.arccos(np.dot(sight, -position) / (np.linalg.norm(sight) * np.linalg.norm(position)))
    return float(reference.side * b.cross * np.cos(look) - b.normal * np.sin(look))


def _closest(scene: Scene, xyz: Floats) -> tuple[Floats, Floats]:
    """Return times (s) and ranges (m) of the closest approach of an image's orbit to points (n, 3)."""
    time, reach = np.empty(len(xyz)), np.empty(len(xyz))
    orbit, coef = scene.orbit, orbit_coefficients(scene.orbit)
    middle = float(line_times(scene, (scene.shape[0] - 1) / 2))
    _cpu.approach(np.ascontiguousarray(xyz), middle, orbit.first_time, orbit.interval, coef, time, reach)
    return time, reach
