"""Exact signs of the turn and circle determinants by expansions.

An expansion is an array of float64, in ascending order of magnitude and without overlapping bits, whose exact sum is
the number; zero is the empty array. The sign is that of the last part (J. R. Shewchuk, "Adaptive precision
floating-point arithmetic and fast robust geometric predicates", Discrete & Computational Geometry 18, 1997). Nothing is
lost as long as no product over- or underflows: `moraine_unwrap.triangulation.kernels` scales coordinates accordingly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Expansion = NDArray[np.float64]


@njit(nogil=True, cache=True)
def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return the rounded sum and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@njit(nogil=True, cache=True)
def two_product(a: float, b: float) -> tuple[float, float]:
    """Return the rounded product and its rounding error (Dekker: both factors are cut into halves of 26 bits)."""
    product = a * b
    cut_a, cut_b = 134217729.0 * a, 134217729.0 * b  # 2**27 + 1
    high_a, high_b = cut_a - (cut_a - a), cut_b - (cut_b - b)
    low_a, low_b = a - high_a, b - high_b
    return product, low_a * low_b - (((product - high_a * high_b) - low_a * high_b) - high_a * low_b)


@njit(nogil=True, cache=True)
def difference(a: float, b: float) -> Expansion:
    """Return a - b."""
    total, error = two_sum(a, -b)
    out = np.empty(2)
    n = 0
    for part in (error, total):
        if part != 0.0:
            out[n] = part
            n += 1
    return out[:n]


@njit(nogil=True, cache=True)
def plus(e: Expansion, f: Expansion) -> Expansion:
    """Return e + f: both are merged by magnitude, then carried from the smallest part to the largest."""
    out = np.empty(len(e) + len(f))
    n, i, j = 0, 0, 0
    carry = 0.0
    while i < len(e) or j < len(f):
        if j == len(f) or (i < len(e) and abs(e[i]) < abs(f[j])):
            part = e[i]
            i += 1
        else:
            part = f[j]
            j += 1
        carry, error = two_sum(carry, part)
        if error != 0.0:
            out[n] = error
            n += 1
    if carry != 0.0:
        out[n] = carry
        n += 1
    return out[:n]


@njit(nogil=True, cache=True)
def scaled(e: Expansion, factor: float) -> Expansion:
    """Return e times a float."""
    out = np.empty(2 * len(e))
    n = 0
    carry = 0.0
    for k in range(len(e)):
        high, low = two_product(e[k], factor)
        carry, error = two_sum(carry, low)
        if error != 0.0:
            out[n] = error
            n += 1
        carry, error = two_sum(high, carry)
        if error != 0.0:
            out[n] = error
            n += 1
    if carry != 0.0:
        out[n] = carry
        n += 1
    return out[:n]


@njit(nogil=True, cache=True)
def times(e: Expansion, f: Expansion) -> Expansion:
    """Return e times f."""
    out = np.empty(0)
    for k in range(len(f)):
        out = plus(out, scaled(e, f[k]))
    return out


@njit(nogil=True, cache=True)
def cross(ax: Expansion, ay: Expansion, bx: Expansion, by: Expansion) -> Expansion:
    """Return ax by - ay bx."""
    return plus(times(ax, by), scaled(times(ay, bx), -1.0))


@njit(nogil=True, cache=True)
def lift(dx: Expansion, dy: Expansion, weight_x: float, weight_y: float) -> Expansion:
    """Return weight_x dx**2 + weight_y dy**2."""
    return plus(scaled(times(dx, dx), weight_x), scaled(times(dy, dy), weight_y))


@njit(nogil=True, cache=True)
def sign(e: Expansion) -> float:
    """Return -1, 0 or 1."""
    return np.sign(e[-1]) if len(e) else 0.0


@njit(nogil=True, cache=True)
def exact_turn(px: float, py: float, ax: float, ay: float, bx: float, by: float) -> float:
    """Return the sign of (a - p) x (b - p): 1 if p, a, b turn to the left, 0 if they lie on a line."""
    return sign(cross(difference(ax, px), difference(ay, py), difference(bx, px), difference(by, py)))


@njit(nogil=True, cache=True)
def exact_circle(
    px: float,
    py: float,
    ax: float,
    ay: float,
    bx: float,
    by: float,
    dx: float,
    dy: float,
    weight_x: float,
    weight_y: float,
) -> float:
    """Return -1 if d lies inside the circle through p, a, b (in a left turn), 0 on it, 1 outside.

    The circle is one of the metric weight_x dx**2 + weight_y dy**2.
    """
    a, a2 = difference(ax, px), difference(ay, py)
    b, b2 = difference(bx, px), difference(by, py)
    d, d2 = difference(dx, px), difference(dy, py)
    of_a = times(cross(b, b2, d, d2), lift(a, a2, weight_x, weight_y))
    of_b = times(cross(d, d2, a, a2), lift(b, b2, weight_x, weight_y))
    of_d = times(cross(a, a2, b, b2), lift(d, d2, weight_x, weight_y))
    return sign(plus(plus(of_a, of_b), of_d))
