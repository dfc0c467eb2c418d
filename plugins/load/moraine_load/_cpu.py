"""Serial numba kernels; `geometry` and `resampling` document them.

An orbit comes as ``first`` and ``step`` (time of the first vector and between vectors, s) and ``coef`` of shape
(intervals, 8, 3): in each interval a polynomial of degree 7 in the time since its beginning, in steps.
"""

from __future__ import annotations

import numba as nb
import numpy as np

CLOSE = 0.03
"""A height this near (m) is off by less than 1e-8 m after the Newton step that follows."""

SOON = 1e-7
"""A Newton step in time this short (s) is the last."""


@nb.njit(nogil=True, cache=True)
def orbit_at(time, first, step, coef, out):
    """Put position, velocity and acceleration at a time into `out`, (3, 3)."""
    x = (time - first) / step
    i = min(max(int(np.floor(x)), 0), coef.shape[0] - 1)
    u = x - i
    for axis in range(3):
        p, v, a = coef[i, 7, axis], 0.0, 0.0
        for k in range(6, -1, -1):
            a = a * u + v
            v = v * u + p
            p = p * u + coef[i, k, axis]
        out[0, axis] = p
        out[1, axis] = v / step
        out[2, axis] = 2.0 * a / (step * step)


@nb.njit(nogil=True, cache=True)
def geodetic(x, y, z, major, minor, rounds):
    """Return tangent of latitude and height above the ellipsoid of a point (Bowring, 1976).

    One round leaves less than 1e-10 of the latitude, and of the height what is quadratic in that; two leave nothing.
    """
    p = max(np.sqrt(x * x + y * y), 1e-9)
    e2 = 1.0 - (minor / major) ** 2
    tan_u = z * major / (p * minor)
    tan_lat = tan_u
    for _ in range(rounds):
        cos_u = 1.0 / np.sqrt(1.0 + tan_u * tan_u)
        sin_u = tan_u * cos_u
        tan_lat = (z + e2 / (1.0 - e2) * minor * sin_u * sin_u * sin_u) / (p - e2 * major * cos_u * cos_u * cos_u)
        tan_u = tan_lat * minor / major
    cos_lat = 1.0 / np.sqrt(1.0 + tan_lat * tan_lat)
    sin_lat = tan_lat * cos_lat
    return tan_lat, p * cos_lat + z * sin_lat - major * np.sqrt(1.0 - e2 * sin_lat * sin_lat)


@nb.njit(nogil=True, cache=True)
def line_frame(time, first, step, coef, side, state, frame):
    """Put the orbit at a line into `state`, and the line's plane into `frame`: unit vectors down and to the side."""
    orbit_at(time, first, step, coef, state)
    s, v = state[0], state[1]
    speed2 = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    along = (s[0] * v[0] + s[1] * v[1] + s[2] * v[2]) / speed2
    for axis in range(3):
        frame[0, axis] = along * v[axis] - s[axis]
    norm = np.sqrt(frame[0, 0] ** 2 + frame[0, 1] ** 2 + frame[0, 2] ** 2)
    for axis in range(3):
        frame[0, axis] /= norm
    scale = side / np.sqrt(speed2)
    for axis in range(3):
        j, k = (axis + 1) % 3, (axis + 2) % 3
        frame[1, axis] = (frame[0, j] * v[k] - frame[0, k] * v[j]) * scale


@nb.njit(nogil=True, cache=True)
def locate(state, frame, reach, height, major, minor, point):
    """Put the point at a range in a line's plane with a height into `point`; tell whether there is one, else nan."""
    s = state[0]
    s2 = s[0] * s[0] + s[1] * s[1] + s[2] * s[2]
    down = -(s[0] * frame[0, 0] + s[1] * frame[0, 1] + s[2] * frame[0, 2])
    sine2 = s[2] * s[2] / s2
    radius = major * minor / np.sqrt(minor * minor * (1.0 - sine2) + major * major * sine2) + height
    cosine = (s2 + reach * reach - radius * radius) / (2.0 * reach * down)
    if not 0.0 < cosine < 1.0:  # above the sensor or out of reach, and where the height is nan
        point[:] = np.nan
        return False
    angle = np.arccos(cosine)
    error = np.inf
    for _ in range(30):
        c, n = np.sin(angle), np.cos(angle)
        for axis in range(3):
            point[axis] = s[axis] + reach * (n * frame[0, axis] + c * frame[1, axis])
        if abs(error) < CLOSE:
            return True
        tan_lat, found = geodetic(point[0], point[1], point[2], major, minor, 1)
        cos_lat = 1.0 / np.sqrt(1.0 + tan_lat * tan_lat)
        outward = cos_lat / max(np.sqrt(point[0] * point[0] + point[1] * point[1]), 1e-9)
        up = (point[0] * outward, point[1] * outward, tan_lat * cos_lat)
        slope = 0.0
        for axis in range(3):
            slope += up[axis] * reach * (n * frame[1, axis] - c * frame[0, axis])
        error = found - height
        angle -= error / slope
    point[:] = np.nan
    return False


@nb.njit(nogil=True, cache=True)
def closest(x, y, z, start, first, step, coef, state):
    """Return time and range of closest approach (zero Doppler) to a point; `state` is the orbit then. nan beyond it."""
    time = start
    for _ in range(20):
        orbit_at(time, first, step, coef, state)
        f, slope = 0.0, 0.0
        for axis in range(3):
            point = x if axis == 0 else (y if axis == 1 else z)
            away = point - state[0, axis]
            f += state[1, axis] * away
            slope += state[2, axis] * away - state[1, axis] * state[1, axis]
        change = -f / slope
        time += change
        if not first - step <= time <= first + (coef.shape[0] + 1) * step:
            break
        if abs(change) < SOON:
            orbit_at(time, first, step, coef, state)
            dx, dy, dz = x - state[0, 0], y - state[0, 1], z - state[0, 2]
            return time, np.sqrt(dx * dx + dy * dy + dz * dz)
    return np.nan, np.nan


@nb.njit(nogil=True, cache=True)
def points(times, reach, height, first, step, coef, side, major, minor, out):
    """Fill `out` (lines, samples, 3) with Earth-fixed points."""
    state, frame = np.empty((3, 3)), np.empty((2, 3))
    for i in range(out.shape[0]):
        line_frame(times[i], first, step, coef, side, state, frame)
        for j in range(out.shape[1]):
            locate(state, frame, reach[j], np.float64(height[i, j]), major, minor, out[i, j])


@nb.njit(nogil=True, cache=True)
def latitudes(xyz, major, minor, tan_lat):
    """Fill `tan_lat` (lines, samples) with the tangents of the latitudes of points (lines, samples, 3)."""
    for i in range(xyz.shape[0]):
        for j in range(xyz.shape[1]):
            tan_lat[i, j], _ = geodetic(xyz[i, j, 0], xyz[i, j, 1], xyz[i, j, 2], major, minor, 2)


@nb.njit(nogil=True, cache=True)
def angles(times, first, step, coef, xyz, tan_lat, theta, phi):
    """Fill `theta` and `phi` with elevation and orientation of the direction from points to the sensor."""
    state = np.empty((3, 3))
    for i in range(xyz.shape[0]):
        orbit_at(times[i], first, step, coef, state)
        for j in range(xyz.shape[1]):
            x, y = xyz[i, j, 0], xyz[i, j, 1]
            dx, dy, dz = state[0, 0] - x, state[0, 1] - y, state[0, 2] - xyz[i, j, 2]
            p = np.sqrt(x * x + y * y)
            cos_lon, sin_lon = x / p, y / p
            cos_lat = 1.0 / np.sqrt(1.0 + tan_lat[i, j] ** 2)
            sin_lat = tan_lat[i, j] * cos_lat
            outward = cos_lon * dx + sin_lon * dy
            east = cos_lon * dy - sin_lon * dx
            north = cos_lat * dz - sin_lat * outward
            up = cos_lat * outward + sin_lat * dz
            theta[i, j] = np.arctan2(up, np.sqrt(east * east + north * north))
            phi[i, j] = np.arctan2(north, east)


@nb.njit(nogil=True, cache=True)
def approach(xyz, start, first, step, coef, time, reach):
    """Fill `time` and `reach` with time and range of closest approach to points (n, 3)."""
    state = np.empty((3, 3))
    for i in range(xyz.shape[0]):
        time[i], reach[i] = closest(xyz[i, 0], xyz[i, 1], xyz[i, 2], start, first, step, coef, state)


@nb.njit(nogil=True, cache=True)
def range_differences(xyz, reach, starts, first, step, coef, out):
    """Fill `out` (lines, samples) with the ranges of points from another orbit, less `reach` (samples)."""
    state = np.empty((3, 3))
    for i in range(xyz.shape[0]):
        for j in range(xyz.shape[1]):
            x, y, z = xyz[i, j, 0], xyz[i, j, 1], xyz[i, j, 2]
            _, there = closest(x, y, z, starts[i], first, step, coef, state)
            out[i, j] = there - reach[j]


@nb.njit(nogil=True, cache=True)
def rotate(image, phase, tiny, out):
    """Fill `out` with ``image * exp(1j phase)``; nan where a sample's amplitude is below `tiny` or not finite."""
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            re, im = np.float64(image[i, j].real), np.float64(image[i, j].imag)
            amplitude = np.sqrt(re * re + im * im)
            if amplitude >= tiny and np.isfinite(amplitude) and np.isfinite(phase[i, j]):
                c, s = np.cos(phase[i, j]), np.sin(phase[i, j])
                out[i, j] = complex(re * c - im * s, re * s + im * c)
            else:
                out[i, j] = complex(np.nan, np.nan)


@nb.njit(nogil=True, cache=True)
def rasterize(rows, columns, values, top, left, out):
    """Fill `out` (lines, samples, channels) by linear interpolation in the triangles of a grid of points.

    A cell of the grid is two triangles; one with a corner that is nan is left out. A pixel in several triangles
    takes the last, whatever the part of the raster that `out`, with its first pixel at (top, left), may be.
    """
    for gi in range(rows.shape[0] - 1):
        for gj in range(rows.shape[1] - 1):
            for half in range(2):
                ai, aj = (gi, gj) if half == 0 else (gi + 1, gj + 1)
                ya, xa = rows[ai, aj], columns[ai, aj]
                yb, xb = rows[gi, gj + 1], columns[gi, gj + 1]
                yc, xc = rows[gi + 1, gj], columns[gi + 1, gj]
                area = (yb - ya) * (xc - xa) - (xb - xa) * (yc - ya)
                if not abs(area) > 0:
                    continue
                low, high = min(ya, yb, yc), max(ya, yb, yc)
                near, far = min(xa, xb, xc), max(xa, xb, xc)
                if high < top or far < left or low >= top + out.shape[0] or near >= left + out.shape[1]:
                    continue
                for i in range(max(int(np.ceil(low)), top), min(int(np.floor(high)) + 1, top + out.shape[0])):
                    for j in range(max(int(np.ceil(near)), left), min(int(np.floor(far)) + 1, left + out.shape[1])):
                        wb = ((i - ya) * (xc - xa) - (j - xa) * (yc - ya)) / area
                        wc = ((yb - ya) * (j - xa) - (xb - xa) * (i - ya)) / area
                        wa = 1.0 - wb - wc
                        if wa < -1e-9 or wb < -1e-9 or wc < -1e-9:
                            continue
                        for k in range(out.shape[2]):
                            value = wa * values[ai, aj, k] + wb * values[gi, gj + 1, k] + wc * values[gi + 1, gj, k]
                            if np.isfinite(value):
                                out[i - top, j - left, k] = value
