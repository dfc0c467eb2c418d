"""Serial loops of the simulation, compiled by numba. No sum runs across pixels: a pixel's bits are its own."""

from __future__ import annotations

from math import cos, degrees, pi, radians, sin

import numpy as np
from numba import njit
from numba.extending import register_jitable

from moraine_load.simulation import orbit as orbits

for _function in (orbits.state, orbits.ground_point, orbits.closest_approach, orbits.locate, orbits.look_angles):
    register_jitable(_function)

ground_point, closest_approach, locate, look_angles = (
    orbits.ground_point,
    orbits.closest_approach,
    orbits.locate,
    orbits.look_angles,
)


@njit(nogil=True, cache=True)
def spline_weights(part):
    """Return the four cubic B-splines at a place between knots, 0 to 1."""
    rest = 1 - part
    square = part * part
    cube = square * part
    return (
        rest * rest * rest / 6,
        (3 * cube - 6 * square + 4) / 6,
        (-3 * cube + 3 * square + 3 * part + 1) / 6,
        cube / 6,
    )


@njit(nogil=True, cache=True)
def spline_at(weights, y, x):
    """Return a spline field at one place, in knots from the second one."""
    row = min(max(int(np.floor(y)), 0), weights.shape[0] - 4)
    column = min(max(int(np.floor(x)), 0), weights.shape[1] - 4)
    a, b, c, d = spline_weights(y - row)
    e, f, g, h = spline_weights(x - column)
    total = 0.0
    for k, along in enumerate((e, f, g, h)):
        w = weights[row : row + 4, column + k]
        total += along * (a * w[0] + b * w[1] + c * w[2] + d * w[3])
    return total


@njit(nogil=True, cache=True)
def spline_grid(weights, y, x):
    """Return a spline field at the crossings of lines and columns."""
    out = np.empty((y.size, x.size))
    line = np.empty(weights.shape[1])
    for i in range(y.size):
        row = min(max(int(np.floor(y[i])), 0), weights.shape[0] - 4)
        a, b, c, d = spline_weights(y[i] - row)
        for k in range(line.size):
            line[k] = a * weights[row, k] + b * weights[row + 1, k] + c * weights[row + 2, k] + d * weights[row + 3, k]
        for j in range(x.size):
            column = min(max(int(np.floor(x[j])), 0), weights.shape[1] - 4)
            e, f, g, h = spline_weights(x[j] - column)
            out[i, j] = e * line[column] + f * line[column + 1] + g * line[column + 2] + h * line[column + 3]
    return out


@njit(nogil=True, cache=True)
def terrain_height(weights, knot, mean, relief, lat, lon):
    """Height (m) of the terrain at a latitude and longitude (degrees); `knot` is (north, west, per lat, per lon)."""
    north, west, per_lat, per_lon = knot
    return mean + relief * spline_at(weights, (north - lat) * per_lat, (lon - west) * per_lon)


@njit(nogil=True, cache=True)
def locate_pixels(orbit, first, times, ranges, guess, weights, knot, mean, relief, lat, lon, hgt, theta, phi):
    """Fill in where on the terrain pixels lie, and from where they are seen; nan where the search does not end.

    `first` is the number of the first line. `guess` is latitude and longitude of the first pixel of the image and their
    change per line and sample, degrees. The height is the root of terrain(where a pixel of height h lies) - h, by the
    secant method.
    """
    lat0, lon0, lat_line, lon_line, lat_sample, lon_sample = guess
    for i in range(times.size):
        for j in range(ranges.size):
            # by the number in the image: a last digit of the guess is one of the result
            a = radians(lat0 + (first + i) * lat_line + j * lat_sample)
            b = radians(lon0 + (first + i) * lon_line + j * lon_sample)
            h, before, error_before = mean, 0.0, 0.0
            found = False
            for step in range(30):
                a, b, _ = locate(orbit, times[i], ranges[j], h, a, b)
                error = terrain_height(weights, knot, mean, relief, degrees(a), degrees(b)) - h
                if abs(error) < 1e-7:
                    found = True
                    break
                slope = (error - error_before) / (h - before) if step > 0 else -1.0
                before, error_before = h, error
                h -= error / min(slope, -0.2)
            if not found:
                lat[i, j], lon[i, j], hgt[i, j] = np.nan, np.nan, np.nan
                theta[i, j], phi[i, j] = np.nan, np.nan
                continue
            lat[i, j], lon[i, j], hgt[i, j] = degrees(a), degrees(b), h
            theta[i, j], phi[i, j] = look_angles(orbit, times[i], a, b, h)


@njit(nogil=True, cache=True)
def see_posts(orbit, lats, lons, first_time, line_time, near_range, spacing, weights, knot, mean, relief):
    """Return height, pixel (range + 1j azimuth) and look angles of posts of a map."""
    shape = (lats.size, lons.size)
    hgt, pixel = np.empty(shape, np.float32), np.empty(shape, np.complex64)
    theta, phi = np.empty(shape, np.float32), np.empty(shape, np.float32)
    for i in range(lats.size):
        for j in range(lons.size):
            h = terrain_height(weights, knot, mean, relief, lats[i], lons[j])
            a, b = radians(lats[i]), radians(lons[j])
            x, y, z = ground_point(a, b, h)
            time, distance = closest_approach(orbit, x, y, z, 0.0, 1e-10)
            hgt[i, j] = h
            pixel[i, j] = complex((distance - near_range) / spacing, (time - first_time) / line_time)
            theta[i, j], phi[i, j] = look_angles(orbit, time, a, b, h)
    return hgt, pixel, theta, phi


@njit(nogil=True, cache=True)
def positions(lat, lon, hgt):
    """Return Earth-fixed positions (m) of pixels."""
    out = np.empty((*lat.shape, 3))
    for i in range(lat.shape[0]):
        for j in range(lat.shape[1]):
            x, y, z = ground_point(radians(lat[i, j]), radians(lon[i, j]), hgt[i, j])
            out[i, j, 0], out[i, j, 1], out[i, j, 2] = x, y, z
    return out


@njit(nogil=True, cache=True)
def slant_ranges(orbit, where, times):
    """Return how far pixels are from an orbit (m)."""
    out = np.empty(where.shape[:2])
    for i in range(where.shape[0]):
        for j in range(where.shape[1]):
            _, out[i, j] = closest_approach(orbit, where[i, j, 0], where[i, j, 1], where[i, j, 2], times[i], 1e-6)
    return out


@njit(nogil=True, cache=True)
def band_limited(noise, azimuth, range_):
    """Filter interleaved complex lines along both axes; the result is smaller by the filters' lengths less one."""
    rows, columns = noise.shape[0] - azimuth.size + 1, noise.shape[1] - 2 * (range_.size - 1)
    out = np.empty((rows, columns), np.float32)
    line = np.empty(noise.shape[1], np.float32)
    for i in range(rows):
        line[:] = 0
        for m in range(azimuth.size):
            source, weight = noise[i + m], azimuth[m]
            for j in range(line.size):
                line[j] += weight * source[j]
        target = out[i]
        target[:] = 0
        for m in range(range_.size):
            weight = range_[m]
            shifted = line[2 * m :]
            for j in range(columns):
                target[j] += weight * shifted[j]
    return out


@njit(nogil=True, cache=True)
def next_image(cover, state, change, noise, lasting, steady, phase, tables, out):
    """Let distributed scatterers change by one image, and write the image.

    Arrays are ``(lines, width)`` complex64, `phase` float64; tables hold a float32 for each class of cover. `state`
    (the changing part of the scatterers) becomes ``keep * state + renew * change``; the image is ``parts[0] * lasting +
    parts[1] * state + parts[2] * noise + steady``, turned by `phase`, 0 where that is nan; `tables` are keep, renew and
    parts.
    """
    keep, renew, parts = tables
    for i in range(cover.shape[0]):
        for j in range(cover.shape[1]):
            c = cover[i, j]
            state[i, j] = keep[c] * state[i, j] + renew[c] * change[i, j]
            s = parts[0, c] * lasting[i, j] + parts[1, c] * state[i, j] + parts[2, c] * noise[i, j] + steady[i, j]
            turn = phase[i, j] % (2 * pi)
            out[i, j] = s * complex(cos(turn), sin(turn)) if np.isfinite(turn) else 0
