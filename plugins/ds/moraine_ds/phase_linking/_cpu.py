"""EMI of one point in float32, by serial numba functions; `kernels` documents what is computed.

Matrices are upper triangles stored by rows. A row has whole vectors, and rows come in whole groups of `GROUP`; what is
added to a matrix is one on the diagonal and zero elsewhere, so it changes nothing. Left of the diagonal a row may hold
anything finite.

`link` is for other compiled functions, too: it takes one packed row of coherence and a workspace.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from moraine_ds.phase_linking._simd import LANES, fma, fnma, load, mul, splat, sqrt, store, total

GROUP = 4
"""Rows that are eliminated together: each element of the rest is then loaded and stored a fourth as often."""

STEPS = 8
"""Most Lanczos steps for the eigenvector with one factorization."""

REAL_STEPS = 40
"""Most Lanczos steps for the smallest eigenvalue of the modulus."""

CONDITION = 1e5
"""Largest condition number of the regularized modulus, so that float32 can invert it."""

TOLERANCE = 1e-5
"""Estimated error of the eigenvector, relative to its length, at which the iteration ends."""

SINGLE_CONDITION = 5e4
"""Condition number from where on the modulus is inverted in float64: digits that are gone then are missed."""

BETA_TOLERANCE = 2e-5
"""Error of the regularization that does not matter."""

FIRST_SHIFT = 0.99
"""Phases that close have the eigenvalue 1, and noise raises it: the smallest eigenvalue is rarely below."""

FACTORIZATIONS = 40
"""Most factorizations, tried or used; 1 or 2 do for nearly all points."""

NOTHING = 1e-20
"""A component of the eigenvector below this has no phase."""

ZERO = np.float32(0)
ONE = np.float32(1)

compiled = njit(nogil=True, cache=True, error_model="numpy")


# -- layout ------------------------------------------------------------------------------------------------------------


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


# -- a block of points, and one ----------------------------------------------------------------------------------------


@compiled
def link_all(coh, ref, regularize, beta_min, ph, quality, beta):
    """Link each row of packed coherence; fill in the phasors, and the eigenvalue and regularization of each point."""
    work = workspace(ph.shape[1])
    for point in range(coh.shape[0]):
        quality[point], beta[point] = link(coh[point], ref, regularize, beta_min, work, ph[point])


@compiled
def link(coh, ref, regularize, beta_min, work, ph):
    """Link the phases of one point.

    Parameters
    ----------
    coh
        Coherence of all pairs of images, upper triangle row by row, complex64 ``(n (n - 1) / 2,)``, contiguous. A
        value that is not finite is missing.
    ref
        Number of the image whose phase is 0.
    regularize, beta_min
        As in `kernels.emi`.
    work
        From ``workspace(n)``; what an earlier point left in it does not matter.
    ph
        Filled with unit phasors, complex64 ``(n,)``.

    Returns
    -------
    quality, beta
        Smallest eigenvalue and regularization, float64; nan where the point has no result.
    """
    ph[:] = np.complex64(complex(np.nan, np.nan))
    images = np.arange(ph.size)
    if not unpack(coh, images.size, work):
        images = images_with_pairs(coh, ph.size)
        wanted, ref = ref, -1
        for k in range(images.size):
            if images[k] == wanted:
                ref = k
        if ref < 0:
            return np.nan, np.nan
        unpack_some(coh, ph.size, images, work)
    n = images.size
    beta = invert_modulus(n, regularize, beta_min, work)
    quality = find_eigenvector(n, beta, work)
    if np.isnan(quality):
        return np.nan, np.nan
    real, imag, _, _, _, vectors = parts(work, n)
    columns = columns_of(n)
    for k in range(n):
        ph[images[k]] = phasor(k, ref, vectors[:columns], vectors[columns:], real, imag, columns)
    return quality, beta


@compiled
def phasor(k, ref, x, y, real, imag, columns):
    """Return the phasor of image k relative to ref: that of the vector x + iy, or of their coherence where it is 0."""
    if k == ref:
        return np.complex64(1)
    a, b, c, d = np.float64(x[k]), np.float64(y[k]), np.float64(x[ref]), np.float64(y[ref])
    if min(a * a + b * b, c * c + d * d) < NOTHING * NOTHING:
        at = min(k, ref) * columns + max(k, ref)
        a, b, c, d = np.float64(real[at]), np.float64(imag[at] if k < ref else -imag[at]), np.float64(1), np.float64(0)
    re, im = a * c + b * d, b * c - a * d
    length = np.sqrt(re * re + im * im)
    return np.complex64(complex(re / length, im / length) if length > 0 else 1.0)


@compiled
def unpack(coh, n, work):
    """Write packed coherence out as rows; return whether every value is finite."""
    real, imag, _, _, _, _ = parts(work, n)
    columns = columns_of(n)
    pair = 0
    is_missing = False
    for i in range(rows_of(n)):
        row = i * columns
        for j in range(row + i // LANES * LANES, row + columns, LANES):
            store(real, j, splat(ZERO))
            store(imag, j, splat(ZERO))
        real[row + i] = ONE
        if i + 1 < n:
            values = coh[pair : pair + n - 1 - i]
            re, im = real[row + i + 1 : row + n], imag[row + i + 1 : row + n]
            for j in range(values.size):
                re[j] = values[j].real
                im[j] = values[j].imag
                is_missing |= not is_valid(values[j])
            pair += values.size
    return not is_missing


@compiled
def images_with_pairs(coh, n):
    """Return the images that have a finite coherence with any other, ascending."""
    has_pair = np.zeros(n, np.bool_)
    pair = 0
    for i in range(n):
        for j in range(i + 1, n):
            if is_valid(coh[pair]):
                has_pair[i] = True
                has_pair[j] = True
            pair += 1
    return np.flatnonzero(has_pair)


@compiled
def unpack_some(coh, n, images, work):
    """Write the packed coherence of some of n images out as rows; a value that is not finite counts as 0."""
    few = images.size
    real, imag, _, _, _, _ = parts(work, few)
    columns = columns_of(few)
    real[:] = ZERO
    imag[:] = ZERO
    for i in range(rows_of(few)):
        real[i * columns + i] = ONE
    for i in range(few):
        first = images[i] * (2 * n - images[i] - 1) // 2 - images[i] - 1
        for j in range(i + 1, few):
            value = coh[first + images[j]]
            if is_valid(value):
                real[i * columns + j] = value.real
                imag[i * columns + j] = value.imag


@compiled
def is_valid(value):
    """Return whether a coherence is finite, its square included."""
    return value.real * value.real + value.imag * value.imag < np.inf


# -- the weights: inverse of the regularized modulus -------------------------------------------------------------------


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


# -- extreme eigenvalues of the modulus --------------------------------------------------------------------------------


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


# -- the eigenvector of the smallest eigenvalue ------------------------------------------------------------------------


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
