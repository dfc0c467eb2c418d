"""Serial loops of the point kernels, compiled by numba; inputs are checked by `moraine_points.kernels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moraine_points.kernels import Gix, Int64, Rows

    Words = NDArray[np.uint64]  # unsigned integers of any size


@njit(nogil=True, cache=True)
def first_outside(gix: Gix, nlines: int, width: int) -> int:
    """Row of the first point outside the raster, -1 if there is none."""
    for k in range(len(gix)):
        if not (0 <= gix[k, 0] < nlines and 0 <= gix[k, 1] < width):
            return k
    return -1


# Both curve loops are free of branches: along a curve the bits look random, and a mispredicted branch costs more than
# the whole step. All ones (-1) or zero as a mask stands for "if"; inside a square of side s, s - 1 - x is x ^ (s - 1).


@njit(nogil=True, cache=True)
def hilbert_encode(gix: Gix, order: int) -> Int64:
    """Hilbert index of every point, from the coarsest bit to the finest."""
    hix = np.empty(len(gix), np.int64)
    for k in range(len(gix)):
        x, y, d = np.int64(gix[k, 0]), np.int64(gix[k, 1]), np.int64(0)
        for bit in range(order - 1, -1, -1):
            u, v = (x >> bit) & 1, (y >> bit) & 1
            d = (d << 2) | ((3 * u) ^ v)
            turn = v - 1
            flip = turn & -u  # also flips bits that were used already: they are never looked at again
            x, y = x ^ flip, y ^ flip
            swap = (x ^ y) & turn
            x, y = x ^ swap, y ^ swap
        hix[k] = d
    return hix


@njit(nogil=True, cache=True)
def hilbert_decode(hix: Int64, order: int) -> NDArray[np.int32]:
    """Undo `hilbert_encode`, from the finest bit to the coarsest."""
    gix = np.empty((len(hix), 2), np.int32)
    for k in range(len(hix)):
        x, y, d = np.int64(0), np.int64(0), hix[k]
        for bit in range(order):
            u = (d >> 1) & 1
            v = (d & 1) ^ u
            d >>= 2
            turn = v - 1
            swap = (x ^ y) & turn
            flip = turn & -u & ((np.int64(1) << bit) - 1)
            x, y = x ^ swap ^ flip | (u << bit), y ^ swap ^ flip | (v << bit)
        gix[k, 0], gix[k, 1] = x, y
    return gix


@njit(nogil=True, cache=True)
def locate(key1: Int64, key2: Int64, rows: Rows) -> None:
    """Set `rows` to the position in `key2` of every element of `key1`, -1 where it is not there; both ascend."""
    j = 0
    for i in range(len(key1)):
        while j < len(key2) and key2[j] < key1[i]:
            j += 1
        rows[i] = j if j < len(key2) and key2[j] == key1[i] else -1


@njit(nogil=True, cache=True)
def merge(key1: Int64, key2: Int64, rows: Rows) -> int:
    """Set `rows` to the positions in `key1` followed by `key2` that give the sorted union; return how many they are."""
    n1, n2 = len(key1), len(key2)
    i, j, k = 0, 0, 0
    while i < n1 or j < n2:
        if j == n2 or (i < n1 and key1[i] <= key2[j]):
            if j < n2 and key1[i] == key2[j]:
                j += 1
            rows[k] = i
            i += 1
        else:
            rows[k] = n1 + j
            j += 1
        k += 1
    return k


@njit(nogil=True, cache=True)
def fill(out: Words, rows: Rows, k: int, part1: Words, start1: int, part2: Words, start2: int) -> int:
    """Copy rows to `out`, from the k-th on, until one is in neither part; return its place.

    A part holds the rows from its start on of the array that `rows` number.
    """
    while k < len(rows):
        row = np.int64(rows[k])
        if 0 <= row - start1 < len(part1):
            for column in range(out.shape[1]):
                out[k, column] = part1[row - start1, column]
        elif 0 <= row - start2 < len(part2):
            for column in range(out.shape[1]):
                out[k, column] = part2[row - start2, column]
        else:
            break
        k += 1
    return k
