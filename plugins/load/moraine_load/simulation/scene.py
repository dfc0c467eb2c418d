"""What is simulated, as plain numbers: raster, orbits, dates, the strength of every effect, the map segment."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from math import ceil, cos, degrees, radians, sin
from random import Random

from moraine_load.simulation.orbit import (
    ORBIT_RADIUS,
    SEMI_MAJOR,
    Orbit,
    locate,
    overhead,
    shifted,
    state,
)

LIGHT = 299792458.0
"""m/s."""

FREQUENCY = 5.4050005e9
"""Of the radar, Hz; C band."""

WAVELENGTH = LIGHT / FREQUENCY
"""m."""

INCIDENCE = radians(39.0)
"""At the middle of the scene."""

RANGE_BANDWIDTH = 0.88
"""Of the images, as a part of their sampling frequency in range."""

AZIMUTH_BANDWIDTH = 0.67
"""Of the images, as a part of their sampling frequency in azimuth."""

MAP_MARGIN = 10
"""Posts of the map segment beyond what the scene needs."""


@dataclass(frozen=True)
class MapGrid:
    """A segment of a map in geographic coordinates.

    Attributes
    ----------
    nlines, width
        Posts.
    north, west
        Of the center of the upper left post, degrees.
    post
        Distance of posts in latitude and in longitude, degrees.
    """

    nlines: int
    width: int
    north: float
    west: float
    post: float

    def lat(self, line: int) -> float:
        """Return the latitude of a line of posts, degrees."""
        return self.north - line * self.post

    def lon(self, column: int) -> float:
        """Return the longitude of a column of posts, degrees."""
        return self.west + column * self.post


@dataclass(frozen=True)
class Strength:
    """How strong every effect is; all zero and no decorrelation is a stack whose flattened phase is zero.

    Attributes
    ----------
    relief
        Standard deviation of the terrain's height, m.
    subsidence
        Of the middle of the bowl, away from the satellite, m/yr.
    seasonal
        Amplitude of the yearly motion, m.
    atmosphere
        Standard deviation of the atmosphere of each image, rad.
    noise
        Root mean square amplitude of the receiver's noise; that of bare ground is 80.
    decorrelation
        Whether distributed scatterers change with time.
    """

    relief: float
    subsidence: float
    seasonal: float
    atmosphere: float
    noise: float
    decorrelation: bool


@dataclass(frozen=True)
class Scene:
    """All that tasks need to know.

    Attributes
    ----------
    nlines, width
        Of the images.
    azimuth_spacing, range_spacing
        Of pixels, on the ground and in slant range, m.
    near_range
        Slant range of the first sample, m.
    line_time
        Between lines, s; time 0 is the middle of the scene.
    lat, lon
        Of the middle, degrees.
    lat_slope, lon_slope
        Change of latitude and longitude with line and with sample, degrees; near enough for a first guess.
    orbits, told
        The orbit of every image, and the one its parameter file tells.
    dates
        ``YYYYMMDD`` of every image.
    reference
        Number of the image to which all are coregistered.
    seed
        Of all that is random.
    strength
        Of every effect.
    segment
        The map segment.
    """

    nlines: int
    width: int
    azimuth_spacing: float
    range_spacing: float
    near_range: float
    line_time: float
    lat: float
    lon: float
    lat_slope: tuple[float, float]
    lon_slope: tuple[float, float]
    orbits: tuple[Orbit, ...]
    told: tuple[Orbit, ...]
    dates: tuple[str, ...]
    reference: int
    seed: int
    strength: Strength
    segment: MapGrid

    @property
    def nimages(self) -> int:
        """Number of images."""
        return len(self.dates)

    @property
    def days(self) -> tuple[float, ...]:
        """Days from the reference to every image."""
        days = [datetime.date(int(d[:4]), int(d[4:6]), int(d[6:])).toordinal() for d in self.dates]
        return tuple(float(day - days[self.reference]) for day in days)

    @property
    def days_of_year(self) -> tuple[int, ...]:
        """Day of the year of every image."""
        return tuple(datetime.date(int(d[:4]), int(d[4:6]), int(d[6:])).timetuple().tm_yday for d in self.dates)

    @property
    def ground_spacing(self) -> float:
        """Distance of samples on flat ground, m."""
        return self.range_spacing / sin(INCIDENCE)

    @property
    def extent(self) -> tuple[float, float]:
        """Size on the ground in azimuth and range, m."""
        return self.nlines * self.azimuth_spacing, self.width * self.ground_spacing

    @property
    def mean_height(self) -> float:
        """Of the terrain, m: three standard deviations, so that hardly any of it is below the ellipsoid."""
        return 3 * self.strength.relief

    def time(self, line: float) -> float:
        """Return the time of a line, s."""
        return (line - (self.nlines - 1) / 2) * self.line_time


def make_scene(
    *,
    shape: tuple[int, int],
    spacing: tuple[float, float],
    center: tuple[float, float],
    dates: tuple[str, ...],
    reference: int,
    seed: int,
    baseline: float,
    orbit_error: float,
    post: float,
    strength: Strength,
) -> Scene:
    """Return the scene around a point.

    Parameters
    ----------
    shape
        Lines and samples.
    spacing
        Of lines on the ground and of samples in slant range, m.
    center
        Longitude and latitude of the middle, degrees.
    dates
        ``YYYYMMDD``, ascending.
    reference
        Number of the reference image.
    seed
        Of all that is random.
    baseline, orbit_error
        Standard deviation of the distance of orbits across the flight, and of what is told from what is, m.
    post
        Distance of the posts of the map, m.
    strength
        Of every effect.
    """
    lon, lat = center
    nlines, width = shape
    orbit, distance = overhead(radians(lat), radians(lon), INCIDENCE)
    velocity = state(orbit, 0.0)[3:]
    ground_speed = sum(v * v for v in velocity) ** 0.5 * SEMI_MAJOR / ORBIT_RADIUS
    line_time = spacing[0] / ground_speed
    near_range = distance - (width - 1) / 2 * spacing[1]
    random = Random(seed)
    orbits, told = [], []
    for image in range(len(dates)):
        across, radial, drift, *errors = (random.gauss(0, 1) for _ in range(6))
        if image == reference:
            orbits.append(orbit)
            told.append(orbit)
            continue
        orbits.append(shifted(orbit, across * baseline, radial * baseline / 3, drift * baseline * 1e-3))
        told.append(
            shifted(orbits[-1], errors[0] * orbit_error, errors[1] * orbit_error, errors[2] * orbit_error * 2e-3)
        )
    middle = (nlines - 1) / 2 * line_time
    ranges = (near_range, near_range + (width - 1) * spacing[1])
    heights = (-3 * strength.relief, 3 * strength.relief)

    def ground(time: float, at: float, height: float) -> tuple[float, float]:
        found = locate(orbit, time, at, 3 * strength.relief + height, radians(lat), radians(lon))
        return degrees(found[0]), degrees(found[1])

    corners = [ground(time, at, height) for time in (-middle, middle) for at in ranges for height in heights]
    first, last = ground(-middle, distance, 0.0), ground(middle, distance, 0.0)
    near, far = ground(0.0, ranges[0], 0.0), ground(0.0, ranges[1], 0.0)
    mid = ground(0.0, distance, 0.0)
    lines, samples = max(nlines - 1, 1), max(width - 1, 1)
    return Scene(
        nlines=nlines,
        width=width,
        azimuth_spacing=spacing[0],
        range_spacing=spacing[1],
        near_range=near_range,
        line_time=line_time,
        lat=mid[0],
        lon=mid[1],
        lat_slope=((last[0] - first[0]) / lines, (far[0] - near[0]) / samples),
        lon_slope=((last[1] - first[1]) / lines, (far[1] - near[1]) / samples),
        orbits=tuple(orbits),
        told=tuple(told),
        dates=dates,
        reference=reference,
        seed=seed,
        strength=strength,
        segment=_segment(corners, degrees(post / SEMI_MAJOR)),
    )


def _segment(points: list[tuple[float, float]], post: float) -> MapGrid:
    """Return the map segment that holds some points (latitude, longitude), with a margin."""
    lats, lons = [p[0] for p in points], [p[1] for p in points]
    margin = MAP_MARGIN * post
    north, west = max(lats) + margin, min(lons) - margin
    return MapGrid(
        nlines=ceil((north - min(lats) + margin) / post) + 1,
        width=ceil((max(lons) + margin - west) / post) + 1,
        north=north,
        west=west,
        post=post,
    )


def meters_per_degree(lat: float) -> tuple[float, float]:
    """Return meters for a degree of latitude and of longitude, on a sphere."""
    return radians(SEMI_MAJOR), radians(SEMI_MAJOR) * cos(radians(lat))
