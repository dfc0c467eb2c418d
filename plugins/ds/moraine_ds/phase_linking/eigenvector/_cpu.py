"""The eigenvector of the smallest eigenvalue of the weighted coherence, whose phases are the linked ones."""

from __future__ import annotations

import numpy as np

from moraine_ds.phase_linking._simd import LANES, fma, fnma, load, mul, splat, store, total
from moraine_ds.phase_linking.eigenvalues._cpu import dot, largest_ritz, scale_by
from moraine_ds.phase_linking.inverse._cpu import coefficients
from moraine_ds.phase_linking.layout._cpu import GROUP, ONE, STEPS, ZERO, columns_of, compiled, parts, rows_of

TOLERANCE = 1e-5
"""Estimated error of the eigenvector, relative to its length, at which the iteration ends."""

FIRST_SHIFT = 0.99
"""Phases that close have the eigenvalue 1, and noise raises it: the smallest eigenvalue is rarely below."""

FACTORIZATIONS = 40
"""Most factorizations, tried or used; 1 or 2 do for nearly all points."""


@compiled
def find_eigenvector(n, beta, work):
    """Leave the eigenvector of the smallest eigenvalue of weights o coherence in the vectors; return the eigenvalue.

    Lanczos iteration with the inverse of the matrix less a shift. That the Cholesky factorization succeeds proves
    that the shift lies below the smallest eigenvalue, so no other one is nearer.
    """
    if np.isnan(beta):
        return np.nan
    start_vector(n, work)
    shift, step, proven = FIRST_SHIFT, 0.02, -np.inf
    quality = np.nan
    used = 0
    for _ in range(FACTORIZATIONS):
        fill_shifted(n, beta, shift, work)
        if not factorize(n, work):
            if proven > -np.inf:
                shift = (shift + proven) / 2
            else:
                shift -= step
                step *= 4
            continue
        theta, residual, error = iterate(n, work)
        quality, proven = shift + 1 / theta, shift
        used += 1
        if error < TOLERANCE or used == 6:
            break
        shift += 0.9 / (theta + residual)
    return quality


@compiled
def start_vector(n, work):
    """Write the column of the image that the others explain best, weighted by coherence, as the first vector."""
    real, imag, weights, _, _, vectors = parts(work, n)
    columns = columns_of(n)
    x, y = vectors[:columns], vectors[columns : 2 * columns]
    x[:] = ZERO
    y[:] = ZERO
    best = 0
    for i in range(n):
        if weights[i * columns + i] < weights[best * columns + best]:
            best = i
    square = ZERO
    for i in range(n):
        at = min(i, best) * columns + max(i, best)
        re, im = real[at], imag[at] if i <= best else -imag[at]
        modulus = np.sqrt(re * re + im * im)
        x[i] = re * modulus
        y[i] = im * modulus
        square += x[i] * x[i] + y[i] * y[i]
    scale_by(x, columns, ONE / np.sqrt(square))
    scale_by(y, columns, ONE / np.sqrt(square))


@compiled
def fill_shifted(n, beta, shift, work):
    """Write weights o coherence, less a shift on the diagonal, where the factor will be."""
    real, imag, weights, re, im, _ = parts(work, n)
    columns = columns_of(n)
    scale = splat(np.float32(beta - 1))  # the weights have the other sign
    for i in range(rows_of(n)):
        row = i * columns
        for j in range(row + i // LANES * LANES, row + columns, LANES):
            weight = mul(scale, load(weights, j))
            store(re, j, mul(weight, load(real, j)))
            store(im, j, mul(weight, load(imag, j)))
        re[row + i] = -weights[row + i] - np.float32(shift)


@compiled
def factorize(n, work):
    """Replace a Hermitian matrix A by U with A = U^H U and the inverse of its diagonal; False if not definite."""
    _, _, _, re, im, _ = parts(work, n)
    rows, columns = rows_of(n), columns_of(n)
    for k in range(0, rows, GROUP):
        for i in range(k, k + GROUP):
            row = i * columns
            pivot = re[row + i]
            if not pivot > ZERO:
                return False
            pivot = ONE / np.sqrt(pivot)
            scale = splat(pivot)
            for j in range(row + i // LANES * LANES, row + columns, LANES):
                store(re, j, mul(scale, load(re, j)))
                store(im, j, mul(scale, load(im, j)))
            re[row + i] = pivot
            for other in range(i + 1, k + GROUP):
                a, b = splat(re[row + other]), splat(im[row + other])
                down = other * columns
                for j in range(other // LANES * LANES, columns, LANES):
                    x, y = load(re, row + j), load(im, row + j)
                    store(re, down + j, fnma(b, y, fnma(a, x, load(re, down + j))))
                    store(im, down + j, fma(b, x, fnma(a, y, load(im, down + j))))
        row0 = k * columns
        row1, row2, row3 = row0 + columns, row0 + 2 * columns, row0 + 3 * columns
        for i in range(k + GROUP, rows):
            a0, a1, a2, a3 = coefficients(re, row0 + i, columns)
            b0, b1, b2, b3 = coefficients(im, row0 + i, columns)
            row = i * columns
            for j in range(i // LANES * LANES, columns, LANES):
                p, q = load(re, row + j), load(im, row + j)
                x, y = load(re, row0 + j), load(im, row0 + j)
                p, q = fnma(b0, y, fnma(a0, x, p)), fma(b0, x, fnma(a0, y, q))
                x, y = load(re, row1 + j), load(im, row1 + j)
                p, q = fnma(b1, y, fnma(a1, x, p)), fma(b1, x, fnma(a1, y, q))
                x, y = load(re, row2 + j), load(im, row2 + j)
                p, q = fnma(b2, y, fnma(a2, x, p)), fma(b2, x, fnma(a2, y, q))
                x, y = load(re, row3 + j), load(im, row3 + j)
                store(re, row + j, fnma(b3, y, fnma(a3, x, p)))
                store(im, row + j, fma(b3, x, fnma(a3, y, q)))
    return True


@compiled
def iterate(n, work):
    """Improve the first vector by Lanczos steps with the inverse of what was factorized.

    Returns
    -------
    theta, residual, error
        Largest eigenvalue of the inverse, norm of the residual, estimated error of the vector.
    """
    _, _, _, _, _, vectors = parts(work, n)
    columns = columns_of(n)
    size = 2 * columns  # real part, then imaginary part
    product = vectors[(STEPS + 1) * size : (STEPS + 2) * size]
    alpha, beta, ritz = np.zeros(STEPS), np.zeros(STEPS), np.zeros(STEPS)
    theta, residual, error = 0.0, 0.0, 1.0
    for k in range(STEPS):
        q, following = vectors[k * size : (k + 1) * size], vectors[(k + 1) * size : (k + 2) * size]
        solve(q, product, following, n, work)
        overlap = dot(q, following, size)  # real: the matrix is Hermitian
        for j in range(0, size, LANES):
            rest = fnma(splat(overlap), load(q, j), load(following, j))
            if k > 0:
                rest = fnma(splat(np.float32(beta[k - 1])), load(vectors, (k - 1) * size + j), rest)
            store(following, j, rest)
        length = np.sqrt(dot(following, following, size))
        alpha[k], beta[k] = overlap, length
        is_last = k + 1 == STEPS or length <= np.float32(1e-6) * overlap
        if k > 1 or is_last:
            theta, residual = largest_ritz(alpha, beta, k + 1, ritz)
            error = vector_error(alpha, beta, k + 1, theta, residual)
            is_last |= error < TOLERANCE
        if length > ZERO:
            scale_by(following, size, ONE / length)
        if is_last:
            ritz_vector(vectors, ritz, k + 1, residual / theta, size)
            break
    return theta, residual, error


@compiled
def vector_error(alpha, beta, k, theta, residual):
    """Estimate the error of a Ritz vector after one more product: residual over the distance of the eigenvalues.

    The other eigenvalues are at most the rest of the Frobenius norm.
    """
    rest = -theta * theta
    for i in range(k):
        rest += alpha[i] * alpha[i]
        if i < k - 1:
            rest += 2 * beta[i] * beta[i]
    following = np.sqrt(max(rest, 0.0))
    return residual / max(theta - following, 0.05 * theta) * min(following / theta, 1.0)


@compiled
def ritz_vector(vectors, ritz, k, beyond, size):
    """Write to the first vector the Ritz vector of k steps, with the part beyond them that one more product adds."""
    for j in range(0, size, LANES):
        value = mul(splat(np.float32(beyond)), load(vectors, k * size + j))
        for i in range(k):
            value = fma(splat(np.float32(ritz[i])), load(vectors, i * size + j), value)
        store(vectors, j, value)
    first = vectors[:size]
    scale_by(first, size, ONE / np.sqrt(dot(first, first, size)))


@compiled
def solve(x, between, z, n, work):
    """Solve U^H U z = x for vectors of real and imaginary part; `between` is overwritten."""
    _, _, _, re, im, _ = parts(work, n)
    rows, columns = rows_of(n), columns_of(n)
    for j in range(0, 2 * columns, LANES):
        store(between, j, load(x, j))
    # U^H y = x from the first group on; y goes where z will be
    for k in range(0, rows, GROUP):
        row0 = k * columns
        row1, row2, row3 = row0 + columns, row0 + 2 * columns, row0 + 3 * columns
        for i in range(k, k + GROUP):
            row = i * columns
            a, b = between[i] * re[row + i], between[columns + i] * re[row + i]
            z[i] = a
            z[columns + i] = b
            for other in range(i + 1, k + GROUP):
                c, d = re[row + other], im[row + other]
                between[other] -= c * a + d * b
                between[columns + other] -= c * b - d * a
        a0, a1, a2, a3 = splat(z[k]), splat(z[k + 1]), splat(z[k + 2]), splat(z[k + 3])
        c = columns + k
        b0, b1, b2, b3 = splat(z[c]), splat(z[c + 1]), splat(z[c + 2]), splat(z[c + 3])
        for j in range(k // LANES * LANES, columns, LANES):
            p, q = load(between, j), load(between, columns + j)
            u, v = load(re, row0 + j), load(im, row0 + j)
            p, q = fnma(v, b0, fnma(u, a0, p)), fma(v, a0, fnma(u, b0, q))
            u, v = load(re, row1 + j), load(im, row1 + j)
            p, q = fnma(v, b1, fnma(u, a1, p)), fma(v, a1, fnma(u, b1, q))
            u, v = load(re, row2 + j), load(im, row2 + j)
            p, q = fnma(v, b2, fnma(u, a2, p)), fma(v, a2, fnma(u, b2, q))
            u, v = load(re, row3 + j), load(im, row3 + j)
            store(between, j, fnma(v, b3, fnma(u, a3, p)))
            store(between, columns + j, fma(v, a3, fnma(u, b3, q)))
    # U z = y from the last group on; `between` holds z where it is known and 0 elsewhere
    between[:] = ZERO
    for k in range(rows - GROUP, -1, -GROUP):
        row0 = k * columns
        row1, row2, row3 = row0 + columns, row0 + 2 * columns, row0 + 3 * columns
        p0 = p1 = p2 = p3 = q0 = q1 = q2 = q3 = splat(ZERO)
        for j in range(k // LANES * LANES, columns, LANES):
            a, b = load(between, j), load(between, columns + j)
            u, v = load(re, row0 + j), load(im, row0 + j)
            p0, q0 = fnma(v, b, fma(u, a, p0)), fma(v, a, fma(u, b, q0))
            u, v = load(re, row1 + j), load(im, row1 + j)
            p1, q1 = fnma(v, b, fma(u, a, p1)), fma(v, a, fma(u, b, q1))
            u, v = load(re, row2 + j), load(im, row2 + j)
            p2, q2 = fnma(v, b, fma(u, a, p2)), fma(v, a, fma(u, b, q2))
            u, v = load(re, row3 + j), load(im, row3 + j)
            p3, q3 = fnma(v, b, fma(u, a, p3)), fma(v, a, fma(u, b, q3))
        z[k] -= total(p0)
        z[k + 1] -= total(p1)
        z[k + 2] -= total(p2)
        z[k + 3] -= total(p3)
        c = columns + k
        z[c] -= total(q0)
        z[c + 1] -= total(q1)
        z[c + 2] -= total(q2)
        z[c + 3] -= total(q3)
        for i in range(k + GROUP - 1, k - 1, -1):
            row = i * columns
            a, b = z[i], z[columns + i]
            for other in range(i + 1, k + GROUP):
                c, d = re[row + other], im[row + other]
                a -= c * z[other] - d * z[columns + other]
                b -= c * z[columns + other] + d * z[other]
            a *= re[row + i]
            b *= re[row + i]
            z[i] = a
            z[columns + i] = b
            between[i] = a
            between[columns + i] = b
    for j in range(rows, columns):
        z[j] = ZERO
        z[columns + j] = ZERO
