"""Extreme eigenvalues of the modulus of a coherence matrix, and the vector operations of these iterations."""

from __future__ import annotations

import numpy as np

from moraine_ds.phase_linking._simd import LANES, fma, fnma, load, mul, splat, sqrt, store, total
from moraine_ds.phase_linking.layout._cpu import GROUP, ONE, ZERO, columns_of, compiled, parts, rows_of

REAL_STEPS = 40
"""Most Lanczos steps for the smallest eigenvalue of the modulus."""

BETA_TOLERANCE = 2e-5
"""Error of the regularization that does not matter."""


@compiled
def smallest_eigenvalue(n, seed, work):
    """Return the smallest eigenvalue of the regularized modulus, by Lanczos iteration with the inverse.

    Each seed starts it from another direction.
    """
    _, _, weights, _, _, vectors = parts(work, n)
    rows, columns = rows_of(n), columns_of(n)
    q, before, product = vectors[:columns], vectors[columns : 2 * columns], vectors[2 * columns : 3 * columns]
    alpha, beta, ritz = np.zeros(REAL_STEPS), np.zeros(REAL_STEPS), np.zeros(REAL_STEPS)
    seed = np.uint32(seed)
    q[:] = ZERO
    before[:] = ZERO
    for i in range(n):  # any direction does that is nothing special to the matrix
        seed = np.uint32(seed * np.uint32(1664525) + np.uint32(1013904223))
        q[i] = np.float32(seed) / np.float32(2**31) - np.float32(0.5)
    scale_by(q, columns, ONE / np.sqrt(dot(q, q, columns)))
    theta = 0.0
    for k in range(REAL_STEPS):
        multiply(weights, q, product, rows, columns)
        scale_by(product, columns, -ONE)
        overlap = dot(q, product, columns)
        last = np.float32(beta[k - 1]) if k > 0 else ZERO
        for j in range(0, columns, LANES):
            rest = fnma(splat(overlap), load(q, j), load(product, j))
            store(product, j, fnma(splat(last), load(before, j), rest))
        length = np.sqrt(dot(product, product, columns))
        alpha[k], beta[k] = overlap, length
        is_last = k + 1 == REAL_STEPS or length < 1e-6 * abs(overlap)
        if k % 4 == 3 or is_last:
            theta, residual = largest_ritz(alpha, beta, k + 1, ritz)
            if is_last or residual < min(BETA_TOLERANCE / 2 * theta, 1e-3) * theta:
                break
        before, q, product = q, product, before
        scale_by(q, columns, ONE / length)
    return 1 / theta


@compiled
def largest_eigenvalue(n, work):
    """Return the largest eigenvalue of the modulus: the quotient of two power steps, to a few digits."""
    real, imag, _, modulus, _, vectors = parts(work, n)
    rows, columns = rows_of(n), columns_of(n)
    for i in range(rows):
        for j in range(i * columns + i // LANES * LANES, (i + 1) * columns, LANES):
            re, im = load(real, j), load(imag, j)
            store(modulus, j, sqrt(fma(re, re, mul(im, im))))
    x, y = vectors[:columns], vectors[columns : 2 * columns]
    x[:n] = ONE
    x[n:] = ZERO
    for _ in range(3):
        multiply(modulus, x, y, rows, columns)
        norm = np.sqrt(dot(y, y, columns))
        value = norm / np.sqrt(dot(x, x, columns))
        for j in range(columns):
            x[j] = y[j] / norm
    return np.float64(value)


@compiled
def multiply(a, x, y, rows, columns):
    """Set y to the product of a symmetric matrix, zero left of the diagonal, and a vector."""
    y[:] = ZERO
    for i in range(0, rows, GROUP):
        x0, x1, x2, x3 = splat(x[i]), splat(x[i + 1]), splat(x[i + 2]), splat(x[i + 3])
        row0 = i * columns
        row1, row2, row3 = row0 + columns, row0 + 2 * columns, row0 + 3 * columns
        s0 = s1 = s2 = s3 = splat(ZERO)
        for j in range(i // LANES * LANES, columns, LANES):
            value, there = load(y, j), load(x, j)
            a0, a1, a2, a3 = load(a, row0 + j), load(a, row1 + j), load(a, row2 + j), load(a, row3 + j)
            s0, s1, s2, s3 = fma(a0, there, s0), fma(a1, there, s1), fma(a2, there, s2), fma(a3, there, s3)
            store(y, j, fma(a3, x3, fma(a2, x2, fma(a1, x1, fma(a0, x0, value)))))
        # the diagonal was met along the row and along the column
        y[i] += total(s0) - a[row0 + i] * x[i]
        y[i + 1] += total(s1) - a[row1 + i + 1] * x[i + 1]
        y[i + 2] += total(s2) - a[row2 + i + 2] * x[i + 2]
        y[i + 3] += total(s3) - a[row3 + i + 3] * x[i + 3]


@compiled
def dot(x, y, size):
    """Return the scalar product of two vectors of whole lanes."""
    value = splat(ZERO)
    for j in range(0, size, LANES):
        value = fma(load(x, j), load(y, j), value)
    return total(value)


@compiled
def scale_by(x, size, factor):
    """Multiply a vector of whole lanes by a number."""
    for j in range(0, size, LANES):
        store(x, j, mul(splat(factor), load(x, j)))


@compiled
def largest_ritz(alpha, beta, k, vector):
    """Return the largest eigenvalue of a tridiagonal matrix of k rows, and how far beta[k - 1] lets it be off.

    `alpha` is the diagonal, ``beta[: k - 1]`` what is beside it, ``beta[k - 1]`` what would come next. `vector` is
    filled with the eigenvector of length 1, which is positive.
    """
    theta = alpha[0]
    scale = 0.0
    for i in range(k):
        beside = (beta[i - 1] if i > 0 else 0.0) + (beta[i] if i < k - 1 else 0.0)
        theta = max(theta, alpha[i] + beside)
        scale = max(scale, abs(alpha[i]) + beside)
    # Laguerre's iteration on the determinant comes down from above to the largest root; until there pivots are positive
    for _ in range(50):
        inverse, slope, bend, first, second = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(k - 1, -1, -1):
            ratio = beta[i] * beta[i] * inverse if i < k - 1 else 0.0
            change = ratio * inverse
            bend = change * (bend - 2 * slope * slope * inverse)
            slope = 1 + change * slope
            inverse = 1 / max(theta - alpha[i] - ratio, 1e-14 * scale)
            first += slope * inverse
            second += (slope * inverse) ** 2 - bend * inverse
        step = k / (first + np.sqrt(max((k - 1) * (k * second - first * first), 0.0)))
        theta -= step
        if step < 1e-7 * scale:  # the next one would be its cube
            break
    vector[k - 1] = 1.0
    pivot = theta - alpha[k - 1]
    square = 1.0
    for i in range(k - 1, 0, -1):
        pivot = max(pivot, 1e-14 * scale)
        vector[i - 1] = vector[i] * pivot / beta[i - 1]
        square += vector[i - 1] * vector[i - 1]
        pivot = theta - alpha[i - 1] - beta[i - 1] * beta[i - 1] / pivot
    for i in range(k):
        vector[i] /= np.sqrt(square)
    return theta, beta[k - 1] * vector[k - 1]
