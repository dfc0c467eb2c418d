"""Circular orbits over a turning Earth, and where a radar on one sees a point on the ground.

Plain functions of numbers, which the declaration calls as they are and the kernels compile. The geometry is found the
forward way: from a ground point, search along the orbit for the moment of closest approach; a pixel is located by
moving a ground point until it is seen at the pixel's time and range. Nothing is interpolated.

An orbit is five numbers: radius (m), inclination, longitude of the ascending node and argument of latitude at time 0
(rad), angular rate (rad/s). Times are seconds from the middle of the scene; positions are Earth-fixed, in m.
"""

from __future__ import annotations

from math import asin, atan2, cos, hypot, pi, sin, sqrt

Orbit = tuple[float, float, float, float, float]
Triple = tuple[float, float, float]

SEMI_MAJOR = 6378137.0
"""Of the WGS 84 ellipsoid, m."""

FLATTENING = 1 / 298.257223563
"""Of the WGS 84 ellipsoid."""

ECCENTRICITY_2 = FLATTENING * (2 - FLATTENING)

EARTH_RATE = 7.2921151467e-5
"""Turning of the Earth, rad/s."""

GRAVITATION = 3.986004418e14
"""Gravitational constant times mass of the Earth, m^3/s^2."""

ORBIT_RADIUS = 7.0735e6
"""Of a Sentinel-1-like orbit, m."""

INCLINATION = 98.18 * pi / 180
"""Of a Sentinel-1-like orbit, rad."""


def state(orbit: Orbit, time: float) -> tuple[float, float, float, float, float, float]:
    """Return position (m) and velocity (m/s) of the sensor, Earth-fixed."""
    radius, inclination, node, argument, rate = orbit
    u, turned = argument + rate * time, node - EARTH_RATE * time
    cu, su, cn, sn = cos(u), sin(u), cos(turned), sin(turned)
    ci, si = cos(inclination), sin(inclination)
    x = radius * (cn * cu - sn * su * ci)
    y = radius * (sn * cu + cn * su * ci)
    z = radius * su * si
    speed = radius * rate
    vx = speed * (-cn * su - sn * cu * ci) + EARTH_RATE * y
    vy = speed * (-sn * su + cn * cu * ci) - EARTH_RATE * x
    vz = speed * cu * si
    return x, y, z, vx, vy, vz


def ground_point(lat: float, lon: float, height: float) -> Triple:
    """Return the Earth-fixed position (m) of a latitude and longitude (rad) at an ellipsoidal height (m)."""
    sine = sin(lat)
    normal = SEMI_MAJOR / sqrt(1 - ECCENTRICITY_2 * sine * sine)
    ring = (normal + height) * cos(lat)
    return ring * cos(lon), ring * sin(lon), (normal * (1 - ECCENTRICITY_2) + height) * sine


def closest_approach(orbit: Orbit, x: float, y: float, z: float, time: float, tolerance: float) -> tuple[float, float]:
    """Return when the sensor is nearest to a ground point (s), and how far that is (m), searching from a first guess.

    The range is least where the line of sight is square to the Earth-fixed velocity: zero Doppler. Newton's steps take
    the acceleration of the orbit in inertial space; what the turning of the Earth adds is of the order of 1 %, so that
    each step leaves about a hundredth of the error, and a last step below `tolerance` (s) a hundredth of that. The
    range is exact to 1e-12 m with a tolerance of 1e-6.
    """
    rate = orbit[4]
    for _ in range(12):
        sx, sy, sz, vx, vy, vz = state(orbit, time)
        dx, dy, dz = x - sx, y - sy, z - sz
        slope = vx * vx + vy * vy + vz * vz + rate * rate * (sx * dx + sy * dy + sz * dz)
        step = (dx * vx + dy * vy + dz * vz) / slope
        time += step
        if abs(step) < tolerance:
            break
    sx, sy, sz, vx, vy, vz = state(orbit, time)
    return time, sqrt((x - sx) ** 2 + (y - sy) ** 2 + (z - sz) ** 2)


def locate(
    orbit: Orbit, time: float, distance: float, height: float, lat: float, lon: float
) -> tuple[float, float, float]:
    """Return latitude and longitude (rad) of the ground that is seen at a time (s) and slant range (m), and the error.

    Parameters
    ----------
    orbit
        Of the sensor.
    time, distance
        Of closest approach.
    height
        Of the ground above the ellipsoid, m.
    lat, lon
        First guess on the right side of the orbit, rad.

    Returns
    -------
    lat, lon
        Found by Newton's method on (time, range) as functions of them; derivatives by differences of 10 m.
    error
        How far the last step was, rad.
    """
    step = 10.0 / SEMI_MAJOR
    error = 1.0
    for _ in range(12):
        px, py, pz = ground_point(lat, lon, height)
        t, r = closest_approach(orbit, px, py, pz, time, 1e-10)
        dt, dr = t - time, r - distance
        px, py, pz = ground_point(lat + step, lon, height)
        t_lat, r_lat = closest_approach(orbit, px, py, pz, time, 1e-10)
        px, py, pz = ground_point(lat, lon + step, height)
        t_lon, r_lon = closest_approach(orbit, px, py, pz, time, 1e-10)
        a, b, c, d = (t_lat - t) / step, (t_lon - t) / step, (r_lat - r) / step, (r_lon - r) / step
        determinant = a * d - b * c
        d_lat, d_lon = (d * dt - b * dr) / determinant, (a * dr - c * dt) / determinant
        lat, lon = lat - d_lat, lon - d_lon
        error = hypot(d_lat, d_lon)
        if error < 1e-13:
            break
    return lat, lon, error


def look_angles(orbit: Orbit, time: float, lat: float, lon: float, height: float) -> tuple[float, float]:
    """Return elevation and orientation (rad) of the sensor as seen from the ground at a time.

    Elevation is pi/2 straight up; orientation is 0 to the east and pi/2 to the north.
    """
    px, py, pz = ground_point(lat, lon, height)
    sx, sy, sz, _, _, _ = state(orbit, time)
    dx, dy, dz = sx - px, sy - py, sz - pz
    east = -sin(lon) * dx + cos(lon) * dy
    toward_axis = cos(lon) * dx + sin(lon) * dy
    north = -sin(lat) * toward_axis + cos(lat) * dz
    up = cos(lat) * toward_axis + sin(lat) * dz
    return atan2(up, hypot(east, north)), atan2(north, east)


def overhead(lat: float, lon: float, incidence: float) -> tuple[Orbit, float]:
    """Return an ascending orbit that sees a ground point at time 0 on its right, and the slant range (m) to it.

    Parameters
    ----------
    lat, lon
        Of the point, at height 0, rad; not beyond 75 degrees north or south.
    incidence
        Angle between the vertical at the point and the line of sight, rad; kept to a few tenths of a degree, since the
        orbit is placed with triangles on a sphere.
    """
    point = ground_point(lat, lon, 0.0)
    earth = sqrt(point[0] ** 2 + point[1] ** 2 + point[2] ** 2)
    angle = incidence - asin(earth / ORBIT_RADIUS * sin(incidence))
    center = asin(point[2] / earth)
    azimuth = asin(cos(INCLINATION) / cos(center)) - pi / 2  # to the left of the heading
    below = asin(sin(center) * cos(angle) + cos(center) * sin(angle) * cos(azimuth))
    east = atan2(sin(azimuth) * sin(angle) * cos(center), cos(angle) - sin(center) * sin(below))
    argument = asin(sin(below) / sin(INCLINATION))
    node = lon + east - atan2(cos(INCLINATION) * sin(argument), cos(argument))
    rate = sqrt(GRAVITATION / ORBIT_RADIUS**3)
    time, distance = closest_approach((ORBIT_RADIUS, INCLINATION, node, argument, rate), *point, 0.0, 1e-12)
    return (ORBIT_RADIUS, INCLINATION, node - EARTH_RATE * time, argument + rate * time, rate), distance


def shifted(orbit: Orbit, across: float, radial: float, drift: float) -> Orbit:
    """Return an orbit that passes the scene to the right of another and above it (m), drifting to the right (m/s)."""
    radius, inclination, node, argument, rate = orbit
    tilt = -drift / (radius * rate * cos(argument))
    node += (across + radius * tilt * sin(argument)) / (radius * sin(inclination) * cos(argument))
    return radius + radial, inclination + tilt, node, argument, sqrt(GRAVITATION / (radius + radial) ** 3)


def heading_of(orbit: Orbit, time: float) -> float:
    """Return the direction of the Earth-fixed flight, clockwise from north, degrees."""
    x, y, z, vx, vy, vz = state(orbit, time)
    lat, lon = atan2(z, hypot(x, y)), atan2(y, x)
    east = -sin(lon) * vx + cos(lon) * vy
    north = -sin(lat) * (cos(lon) * vx + sin(lon) * vy) + cos(lat) * vz
    return atan2(east, north) * 180 / pi
