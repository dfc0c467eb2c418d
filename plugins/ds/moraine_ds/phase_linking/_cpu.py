"""EMI of one point in float32, by serial numba functions; `kernels` documents what is computed.

`link` is for other compiled functions, too: it takes one packed row of coherence and a workspace (see `layout`).
"""

from __future__ import annotations

import numpy as np

from moraine_ds.phase_linking._simd import LANES, splat, store
from moraine_ds.phase_linking.eigenvector._cpu import find_eigenvector
from moraine_ds.phase_linking.inverse._cpu import invert_modulus
from moraine_ds.phase_linking.layout._cpu import ONE, ZERO, columns_of, compiled, parts, rows_of, workspace

NOTHING = 1e-20
"""A component of the eigenvector below this has no phase."""


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
