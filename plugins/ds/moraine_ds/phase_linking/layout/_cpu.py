"""How matrices of one point lie in memory: upper triangles stored by rows, in a workspace.

A row has whole vectors, and rows come in whole groups of `GROUP`; what is added to a matrix is one on the diagonal and
zero elsewhere, so it changes nothing. Left of the diagonal a row may hold anything finite.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from moraine_ds.phase_linking._simd import LANES

GROUP = 4
"""Rows that are eliminated together: each element of the rest is then loaded and stored a fourth as often."""

STEPS = 8
"""Most Lanczos steps for the eigenvector with one factorization."""

ZERO = np.float32(0)

ONE = np.float32(1)

compiled = njit(nogil=True, cache=True, error_model="numpy")


@compiled
def rows_of(n):
    """Return the number of stored rows of a matrix of n images."""
    return (n + GROUP - 1) // GROUP * GROUP


@compiled
def columns_of(n):
    """Return the number of stored columns of a matrix of n images."""
    return (n + LANES - 1) // LANES * LANES


@compiled
def workspace(n):
    """Return what `link` needs for n images: float32, without values, on a cache line."""
    size = 5 * rows_of(n) * columns_of(n) + (2 * STEPS + 4) * columns_of(n) + GROUP * GROUP
    raw = np.empty(size + LANES, np.float32)
    start = (-raw.ctypes.data // 4) % LANES
    return raw[start : start + size]


@compiled
def parts(work, n):
    """Return the parts of a workspace: real and imaginary part of the coherence and of a factor, weights, vectors."""
    size = rows_of(n) * columns_of(n)
    return (
        work[:size],
        work[size : 2 * size],
        work[2 * size : 3 * size],
        work[3 * size : 4 * size],
        work[4 * size : 5 * size],
        work[5 * size :],
    )
