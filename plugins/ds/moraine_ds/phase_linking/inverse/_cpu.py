"""The weights of EMI: minus the inverse of the regularized modulus of a coherence matrix."""

from __future__ import annotations

import numpy as np

from moraine_ds.phase_linking._simd import LANES, fma, fnma, load, mul, splat, sqrt, store
from moraine_ds.phase_linking.eigenvalues._cpu import BETA_TOLERANCE, largest_eigenvalue, smallest_eigenvalue
from moraine_ds.phase_linking.layout._cpu import GROUP, ONE, ZERO, columns_of, compiled, parts, rows_of

CONDITION = 1e5
"""Largest condition number of the regularized modulus, so that float32 can invert it."""

SINGLE_CONDITION = 5e4
"""Condition number from where on the modulus is inverted in float64: digits that are gone then are missed."""


@compiled
def invert_modulus(n, regularize, beta_min, work):
    """Leave minus the inverse of the regularized modulus in the weights; return its regularization, nan without one."""
    _, _, weights, _, _, vectors = parts(work, n)
    rows, columns = rows_of(n), columns_of(n)
    if not regularize:
        fill_modulus(n, ONE, ONE, work)
        is_easy = invert(weights, rows, columns, vectors)
        return 0.0 if is_easy or invert_precisely(n, 0.0, regularize, work) else np.nan
    fill_modulus(n, ONE, np.float32(1 - enough(n, beta_min)), work)
    is_hard = False
    if is_definite(weights, rows, columns) and invert_regularized(n, beta_min, is_hard, work):
        return beta_min
    beta, stable = 1 - 0.8 * (1 - beta_min), 1.0
    estimates = 0
    for _ in range(50):
        if not invert_regularized(n, beta, is_hard, work):
            # ever more, until the matrix is definite; where it was with more, half as much more will do
            beta = 1 - 0.8 * (1 - beta) if stable == 1 else (beta + stable) / 2
            continue
        estimates += 1
        smallest = (smallest_eigenvalue(n, estimates, work) - beta) / (1 - beta)
        largest = largest_eigenvalue(n, work) if abs(smallest) < 2 * n / CONDITION else np.float64(n)
        beta, stable = max(adaptive_beta(smallest, largest), beta_min), beta
        is_hard = n > SINGLE_CONDITION * (beta + (1 - beta) * smallest)
        fill_modulus(n, ONE, np.float32(1 - (smallest - BETA_TOLERANCE)), work)
        # no eigenvalue is missed where the matrix less nearly this one is definite, and from near by it is precise;
        # what is still in doubt after three estimates is a matter of rounding
        is_sure = estimates > 2 or (stable < 8 * beta and is_definite(weights, rows, columns))
        if is_sure and invert_regularized(n, beta, is_hard, work):
            return beta
    return stable if invert_regularized(n, stable, is_hard, work) else np.nan


@compiled
def invert_regularized(n, beta, is_hard, work):
    """Leave minus the inverse of the modulus with this regularization in the weights; False if it is not definite."""
    _, _, weights, _, _, vectors = parts(work, n)
    if is_hard:
        return invert_precisely(n, beta, is_hard, work)
    fill_modulus(n, np.float32(1 - beta), ONE, work)
    return invert(weights, rows_of(n), columns_of(n), vectors)


@compiled
def enough(n, beta_min):
    """Return which smallest eigenvalue of a modulus is large enough for `beta_min` alone, whatever the largest is."""
    ratio = beta_min / (1 - beta_min)
    return max(-ratio / 2, (n + ratio) / SINGLE_CONDITION - ratio)


@compiled
def adaptive_beta(smallest, largest):
    """Return the least regularization for the extreme eigenvalues of a modulus.

    It makes the smallest eigenvalue at least (1 - beta) times what it was below 0, and the condition at most
    `CONDITION`.
    """
    below = max(0.0, -smallest)
    definite = 2 * below / (1 + 2 * below)
    conditioned = (largest / CONDITION - smallest) / ((1 - smallest) + (largest - 1) / CONDITION)
    return max(definite, conditioned, 0.0)


@compiled
def fill_modulus(n, scale, diagonal, work):
    """Write the modulus, times `scale` and with another diagonal, to the weights."""
    real, imag, weights, _, _, _ = parts(work, n)
    columns = columns_of(n)
    for i in range(rows_of(n)):
        row = i * columns
        for j in range(row + i // LANES * LANES, row + columns, LANES):
            re, im = load(real, j), load(imag, j)
            store(weights, j, mul(splat(scale), sqrt(fma(re, re, mul(im, im)))))
        weights[row + i] = diagonal if i < n else ONE


@compiled
def is_definite(a, rows, columns):
    """Return whether a matrix is positive definite, by a Cholesky factorization of it in place."""
    for k in range(0, rows, GROUP):
        for i in range(k, k + GROUP):
            row = i * columns
            pivot = a[row + i]
            if not pivot > ZERO:
                return False
            scale = splat(ONE / np.sqrt(pivot))
            for j in range(row + i // LANES * LANES, row + columns, LANES):
                store(a, j, mul(scale, load(a, j)))
            for other in range(i + 1, k + GROUP):
                factor, down = splat(a[row + other]), other * columns
                for j in range(other // LANES * LANES, columns, LANES):
                    store(a, down + j, fnma(factor, load(a, row + j), load(a, down + j)))
        group = a[k * columns : (k + GROUP) * columns]
        for i in range(k + GROUP, rows, GROUP):
            subtract_group(a, i, columns, group, group)
    return True


@compiled
def invert(a, rows, columns, vectors):
    """Replace a positive definite matrix by minus its inverse; return False if it is not positive definite.

    Symmetric Gauss-Jordan elimination without pivoting, by groups of rows: with K a group, P the inverse of its
    diagonal block and R = P A[K, :], each other row i becomes A[i, :] - A[i, K] R, the group becomes R, and its
    diagonal block -P.
    """
    old, new, block = (
        vectors[: GROUP * columns],
        vectors[GROUP * columns : 2 * GROUP * columns],
        vectors[-GROUP * GROUP :],
    )
    for k in range(0, rows, GROUP):
        gather_group(a, k, columns, old)
        for r in range(GROUP):
            for s in range(GROUP):
                block[GROUP * r + s] = old[r * columns + k + s]
        if not invert_block(block):
            return False
        for r in range(GROUP):
            p0, p1 = splat(block[GROUP * r]), splat(block[GROUP * r + 1])
            p2, p3 = splat(block[GROUP * r + 2]), splat(block[GROUP * r + 3])
            for j in range(0, columns, LANES):
                value = mul(p0, load(old, j))
                value = fma(p1, load(old, columns + j), value)
                value = fma(p2, load(old, 2 * columns + j), value)
                store(new, r * columns + j, fma(p3, load(old, 3 * columns + j), value))
            # with I - P in place of R[K], the update below leaves R in the columns K of the rows above, too
            for s in range(GROUP):
                new[r * columns + k + s] = (ONE if r == s else ZERO) - block[GROUP * r + s]
        for i in range(0, rows, GROUP):
            if i != k:
                subtract_group(a, i, columns, old, new)
        for r in range(GROUP):
            row = (k + r) * columns
            for j in range(k // LANES * LANES, columns, LANES):
                store(a, row + j, load(new, r * columns + j))
            for s in range(GROUP):
                a[row + k + s] = -block[GROUP * r + s]
    for i in range(rows):  # what is left of the diagonal is not part of the matrix
        for j in range(i * columns + i // LANES * LANES, i * columns + i):
            a[j] = ZERO
    return True


@compiled
def gather_group(a, k, columns, old):
    """Copy the rows of a group of a symmetric matrix, their part left of the diagonal from the columns above it."""
    for j in range(k):
        for r in range(GROUP):
            old[r * columns + j] = a[j * columns + k + r]
    for r in range(GROUP):
        row = (k + r) * columns
        for s in range(r):
            old[r * columns + k + s] = a[(k + s) * columns + k + r]
        for j in range(k + r, columns):
            old[r * columns + j] = a[row + j]


@compiled
def invert_block(p):
    """Invert the symmetric diagonal block of a group; return False if it is not positive definite."""
    for r in range(GROUP):
        pivot = p[(GROUP + 1) * r]
        if not pivot > ZERO:
            return False
        pivot = ONE / pivot
        p[(GROUP + 1) * r] = ONE
        for t in range(GROUP):
            p[GROUP * r + t] *= pivot
        for s in range(GROUP):
            if s != r:
                factor = p[GROUP * s + r]
                p[GROUP * s + r] = ZERO
                for t in range(GROUP):
                    p[GROUP * s + t] -= factor * p[GROUP * r + t]
    return True


@compiled
def subtract_group(a, i, columns, old, new):
    """Subtract from a group of rows the product of the transposed columns of `old` below them with `new`."""
    c00, c10, c20, c30 = coefficients(old, i, columns)
    c01, c11, c21, c31 = coefficients(old, i + 1, columns)
    c02, c12, c22, c32 = coefficients(old, i + 2, columns)
    c03, c13, c23, c33 = coefficients(old, i + 3, columns)
    row0 = i * columns
    row1, row2, row3 = row0 + columns, row0 + 2 * columns, row0 + 3 * columns
    for j in range(i // LANES * LANES, columns, LANES):
        n0, n1, n2, n3 = load(new, j), load(new, columns + j), load(new, 2 * columns + j), load(new, 3 * columns + j)
        store(a, row0 + j, fnma(c30, n3, fnma(c20, n2, fnma(c10, n1, fnma(c00, n0, load(a, row0 + j))))))
        store(a, row1 + j, fnma(c31, n3, fnma(c21, n2, fnma(c11, n1, fnma(c01, n0, load(a, row1 + j))))))
        store(a, row2 + j, fnma(c32, n3, fnma(c22, n2, fnma(c12, n1, fnma(c02, n0, load(a, row2 + j))))))
        store(a, row3 + j, fnma(c33, n3, fnma(c23, n2, fnma(c13, n1, fnma(c03, n0, load(a, row3 + j))))))


@compiled
def coefficients(group, j, columns):
    """Return column j of a group of rows, each element in all lanes of a vector."""
    return splat(group[j]), splat(group[columns + j]), splat(group[2 * columns + j]), splat(group[3 * columns + j])


@compiled
def invert_precisely(n, beta, must_be_definite, work):
    """As `invert_regularized`, in float64; what need not be definite still must not be singular."""
    real, imag, weights, _, _, _ = parts(work, n)
    columns = columns_of(n)
    a, top = np.empty((n, n)), np.empty(n)
    for i in range(n):
        a[i, i] = 1
        for j in range(i + 1, n):
            re, im = np.float64(real[i * columns + j]), np.float64(imag[i * columns + j])
            a[i, j] = (1 - beta) * np.sqrt(re * re + im * im)
            a[j, i] = a[i, j]
    for k in range(n):
        pivot = a[k, k]
        if not (pivot if must_be_definite else abs(pivot)) > 1e-12:
            return False
        a[k, k] = 1
        for j in range(n):
            top[j] = a[k, j] / pivot
        for i in range(n):
            if i == k:
                a[i] = top
            else:
                factor = a[i, k]
                a[i, k] = 0
                for j in range(n):
                    a[i, j] -= factor * top[j]
    weights[:] = ZERO
    for i in range(n):
        for j in range(i, n):
            weights[i * columns + j] = -(a[i, j] + a[j, i]) / 2
    for i in range(n, rows_of(n)):
        weights[i * columns + i] = -ONE
    return True
