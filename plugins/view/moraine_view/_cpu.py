"""Serial numba loops of the pyramids; `kernels` documents them.

Sums are taken in a fixed order, written out in lanes so that the compiler can use vector instructions without being
allowed to change it: the same bits on every processor.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types
from numba.extending import overload

LANES = 8

# ---------------------------------------------------------------------------------------------------------------------
# Statistics


def measured(value):
    """Give what the statistics are of: a value in double precision, of a complex one the amplitude."""
    raise NotImplementedError


@overload(measured)
def _measured(value):
    if value == types.complex64:
        return lambda value: math.sqrt(np.float64(value.real) ** 2 + np.float64(value.imag) ** 2)  # cannot overflow
    if value == types.complex128:
        # hypot alone is infinite where one part is and the other is nan
        return lambda value: math.nan if value != value else math.hypot(value.real, value.imag)
    return lambda value: np.float64(value)


@njit(nogil=True, cache=True)
def measure_lines(values, length, step, before, table, sample):
    """Fill a row of `table` per line, and row s of `sample` with every ``step[s]``-th finite value of each line.

    Returns how many values each row of `sample` holds.
    """
    known = np.empty(length)
    n_picked = np.zeros(step.size, np.int64)
    for i in range(table.shape[0]):
        line = values[i * length : (i + 1) * length]
        n, n_nan = 0, 0
        for j in range(line.size):
            value = measured(line[j])
            known[n] = value  # if it is not finite, the next one takes its place
            n += math.isfinite(value)
            n_nan += math.isnan(value)
        table[i, 0], table[i, 1] = n, n_nan
        describe(known[:n], table[i])
        for s in range(step.size):
            place = n_picked[s]
            for k in range(-(before[s] + i * length) % step[s], n, step[s]):
                sample[s, place] = known[k]
                place += 1
            n_picked[s] = place
    return n_picked


@njit(nogil=True, cache=True)
def describe(known, row):
    """Put least, largest and mean value, and the sum of squared distances from the mean, into a row of the table."""
    sums, lows, highs = np.zeros(LANES), np.full(LANES, np.inf), np.full(LANES, -np.inf)
    squares = np.zeros(LANES)
    n = known.size
    whole = n - n % LANES
    for k in range(0, whole, LANES):
        for lane in range(LANES):
            value = known[k + lane]
            sums[lane] += value
            lows[lane] = min(lows[lane], value)
            highs[lane] = max(highs[lane], value)
    for k in range(whole, n):
        sums[k - whole] += known[k]
        lows[k - whole] = min(lows[k - whole], known[k])
        highs[k - whole] = max(highs[k - whole], known[k])
    mean = joined(sums) / max(n, 1)
    for k in range(0, whole, LANES):
        for lane in range(LANES):
            distance = known[k + lane] - mean
            squares[lane] += distance * distance
    for k in range(whole, n):
        distance = known[k] - mean
        squares[k - whole] += distance * distance
    row[2], row[3], row[4], row[5] = lows.min(), highs.max(), mean, joined(squares)


@njit(nogil=True, cache=True)
def joined(lanes):
    """Add eight lanes."""
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))


# ---------------------------------------------------------------------------------------------------------------------
# Levels of means


@njit(nogil=True, cache=True)
def first_sums(band, total, number):
    """Sum the finite pixels of every 2 x 2 block, and count them; `total` is wide, real or complex."""
    rows, cols = band.shape
    nothing = total.dtype.type(0)
    for i in range(total.shape[0]):
        low = 2 * i + 1 < rows
        for j in range(total.shape[1]):
            right = 2 * j + 1 < cols
            a, na = pixel(band[2 * i, 2 * j], nothing)
            b, nb = pixel(band[2 * i, 2 * j + 1], nothing) if right else (nothing, 0)
            c, nc = pixel(band[2 * i + 1, 2 * j], nothing) if low else (nothing, 0)
            d, nd = pixel(band[2 * i + 1, 2 * j + 1], nothing) if low and right else (nothing, 0)
            total[i, j] = (a + b) + (c + d)
            number[i, j] = (na + nb) + (nc + nd)


@njit(nogil=True, cache=True)
def pixel(value, nothing):
    """Give a value and 1, or nothing and 0 where it is not finite."""
    known = value - value == 0  # false for nan and infinities, of complex values in either part
    return (nothing + value if known else nothing), int(known)


@njit(nogil=True, cache=True)
def next_sums(cells, out):
    """Add 2 x 2 cells, in the same order everywhere; what lies outside is zero."""
    rows, cols = cells.shape
    nothing = out.dtype.type(0)
    for i in range(out.shape[0]):
        low = 2 * i + 1 < rows
        for j in range(out.shape[1]):
            right = 2 * j + 1 < cols
            a = cells[2 * i, 2 * j]
            b = cells[2 * i, 2 * j + 1] if right else nothing
            c = cells[2 * i + 1, 2 * j] if low else nothing
            d = cells[2 * i + 1, 2 * j + 1] if low and right else nothing
            out[i, j] = (a + b) + (c + d)


@njit(nogil=True, cache=True)
def real_means(total, number, out):
    """Divide sums by numbers; nan where there is none."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            n = number[i, j]
            out[i, j] = total[i, j] / n if n else math.nan


@njit(nogil=True, cache=True)
def complex_means(total, number, out):
    """Divide sums by numbers, each part by itself; nan in both where there is none."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            n = number[i, j]
            known = n > 0
            real = total[i, j].real / n if known else math.nan
            imag = total[i, j].imag / n if known else math.nan
            out[i, j] = complex(real, imag)


# ---------------------------------------------------------------------------------------------------------------------
# Points


@njit(nogil=True, cache=True)
def place_points(index, x, y, first, x0, y0, res, start):
    """Put the numbers of points, counted from `first`, into the cells of a band of rows that begins at `start`."""
    for p in range(x.size):
        row = np.rint((y[p] - y0) / res) - start
        if 0 <= row < index.shape[0]:
            index[int(row), int(np.rint((x[p] - x0) / res))] = first + p


@njit(nogil=True, cache=True)
def mark_runs(index, run, is_shown):
    """Mark the runs of points of which a cell shows one."""
    for i in range(index.shape[0]):
        for j in range(index.shape[1]):
            if index[i, j] >= 0:
                is_shown[index[i, j] // run] = True


@njit(nogil=True, cache=True)
def draw_run(index, values, first, raster):
    """Draw the cells that show one of the points whose values are given, the first of them number `first`."""
    for i in range(index.shape[0]):
        for j in range(index.shape[1]):
            at = index[i, j] - first
            if 0 <= at < values.size:
                raster[i, j] = values[at]
