"""Serial loops of the correction by closure, compiled by numba; the callers check the inputs.

Cycles of the images of a pair k = (a, b) and of the pair itself fit where ``n[a] - n[b] = c[k]``. The fit to a graph of
pairs takes the second image minus the first, so it works with -n, and what it finds to be off is minus the correction.
"""

from __future__ import annotations

from math import isfinite, nan, pi

import numpy as np
from numba import njit

from moraine_unwrap.pair_fit._cpu import MISSING, closes, fit_row, make_room, parts, way_of

NO_OFFSET = np.int16(-(2**15))
"""Correction of a pair that is missing."""

TOLERANCE = 0.1
"""Largest distance of an unwrapped phase from the wrapped one plus whole cycles, in cycles."""

MOST_OFFSET = 2**15 - 1
"""Largest correction that int16 holds."""

MOST_CYCLES = 2**20
"""Most cycles of a pair in float32: beyond, its fractions are no longer known."""

FITS, IS_NO_WHOLE, IS_TOO_FAR = 0, 1, 2
"""What a row may be: right, with a phase that is not the wrapped one plus cycles, or corrected by too many cycles."""


@njit(nogil=True, cache=True)
def correct_loops(graph, psi, unw, costs, offsets, cycles, fraction):
    """Fit the cycles of all points, each by itself; return what is wrong, at which point and pair, and by how much."""
    n_points, n_pairs = unw.shape
    room = make_room(graph.nimages, n_pairs)
    order, earlier_start, earlier, origin, pairs = way_of(graph)
    n, row = room.n, np.empty(n_pairs, np.int32)
    for i in range(n_points):
        n_valid = 0
        for k in range(n_pairs):
            c = (unw[i, k] - (psi[i, pairs[k, 0]] - psi[i, pairs[k, 1]])) / (2 * pi)
            if not isfinite(c):
                row[k] = MISSING
                continue
            whole = np.rint(c)
            if abs(c - whole) > TOLERANCE or abs(whole) > MOST_CYCLES:
                return IS_NO_WHOLE, i, k, abs(c - whole)
            row[k] = np.int32(whole)
            n_valid += 1
        is_closed = closes(order, earlier_start, earlier, origin, pairs, row, n) or fit_row(graph, row, costs, room)
        for image in range(len(n)):
            cycles[i, image] = -n[image]
        n_off = 0
        for k in range(n_pairs):
            offset = np.int64(0) if is_closed else -room.z[k]
            if abs(offset) > MOST_OFFSET:
                return IS_TOO_FAR, i, k, float(offset)
            n_off += offset != 0
            offsets[i, k] = NO_OFFSET if row[k] == MISSING else offset
        fraction[i] = n_off / n_valid if n_valid else nan
    return FITS, 0, 0, 0.0


@njit(nogil=True, cache=True)
def number_by_first(region):
    """Return regions with new numbers, in the order of their first points."""
    number = np.full(len(region), -1, np.int32)
    out = np.empty(len(region), np.int32)
    n = 0
    for i in range(len(region)):
        r = region[i]
        if r >= 0 and number[r] < 0:
            number[r] = n
            n += 1
        out[i] = number[r] if r >= 0 else -1
    return out


@njit(nogil=True, cache=True)
def group_by_region(region, n_regions):
    """Return the points of all regions, one region after the other, and where each begins, and the end."""
    start = np.zeros(n_regions + 1, np.int64)
    for i in range(len(region)):
        if region[i] >= 0:
            start[region[i] + 1] += 1
    start = np.cumsum(start)
    place = start.copy()
    rows = np.empty(start[n_regions], np.int32)
    for i in range(len(region)):
        if region[i] >= 0:
            rows[place[region[i]]] = i
            place[region[i]] += 1
    return rows, start


@njit(nogil=True, cache=True)
def medians(offsets, rows, start, out):
    """Write the median correction of every region and pair, a half rounded to the even number; by counting."""
    counts = np.zeros(2 * MOST_OFFSET + 1, np.int64)
    for k in range(offsets.shape[1]):
        for r in range(len(start) - 1):
            n = 0
            low, high = np.int64(MOST_OFFSET), np.int64(-MOST_OFFSET)
            for at in range(start[r], start[r + 1]):
                offset = np.int64(offsets[rows[at], k])
                if offset != NO_OFFSET:
                    counts[offset + MOST_OFFSET] += 1
                    low = offset if offset < low else low
                    high = offset if offset > high else high
                    n += 1
            lower, upper = 0, 0  # the values in the places (n - 1) // 2 and n // 2
            passed = 0
            for value in range(low, high + 1):
                count = counts[value + MOST_OFFSET]
                if passed <= (n - 1) // 2 < passed + count:
                    lower = value
                if passed <= n // 2 < passed + count:
                    upper = value
                passed += count
                counts[value + MOST_OFFSET] = 0
            out[r, k] = np.rint((lower + upper) / 2)


@njit(nogil=True, cache=True)
def correct_regions(graph, psi, offsets, cycles, region, region_offsets, costs, ref, ts, fraction, correction):
    """Fit the cycles of all points after the correction of their regions; return what is wrong, where, and by how much.

    A correction with no rows is not written.
    """
    n_points, n_pairs = offsets.shape
    room = make_room(graph.nimages, n_pairs)
    n = np.empty(graph.nimages, np.int64)
    part = np.zeros(graph.nimages, np.int64)
    row = np.empty(n_pairs, np.int32)
    for i in range(n_points):
        is_same, n_valid = True, 0
        for k in range(n_pairs):
            if offsets[i, k] != NO_OFFSET:
                n_valid += 1
                if region[i] >= 0 and region_offsets[region[i], k] != offsets[i, k]:
                    is_same = False
        for image in range(graph.nimages):
            n[image] = cycles[i, image]
        if not is_same or n_valid < n_pairs:
            for k in range(n_pairs):
                row[k] = MISSING
                if offsets[i, k] != NO_OFFSET:
                    offset = region_offsets[region[i], k] if region[i] >= 0 else offsets[i, k]
                    row[k] = n[graph.pairs[k, 0]] - n[graph.pairs[k, 1]] - offsets[i, k] + offset
        if n_valid < n_pairs:
            parts(graph, row, room.queue, part)
        else:
            part[:] = 0
        n_off = 0
        if not is_same:
            fit_row(graph, row, costs, room)
        for k in range(n_pairs):
            offset = np.int64(offsets[i, k])
            if offset == NO_OFFSET:
                offset = np.int64(0)
            elif not is_same:
                a, b = graph.pairs[k, 0], graph.pairs[k, 1]
                offset += room.n[b] - room.n[a] - (n[a] - n[b])
                if abs(offset) > MOST_OFFSET:
                    return IS_TOO_FAR, i, k, float(offset)
            n_off += offset != 0
            if len(correction):
                correction[i, k] = offset
        fraction[i] = n_off / n_valid if n_valid else nan
        for image in range(graph.nimages):
            whole = n[image] - n[ref] if is_same else room.n[ref] - room.n[image]
            ts[i, image] = psi[i, image] - psi[i, ref] + 2 * pi * whole if part[image] == part[ref] else nan
    return FITS, 0, 0, 0.0
