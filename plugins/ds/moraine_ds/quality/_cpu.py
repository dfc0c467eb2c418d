"""Serial numba kernels; `kernels` documents them.

Loops over all pairs of a point are free of sums, so that they run in vector registers; sums are taken row by row of the
pairs (one reference image) in float32, and over the rows in float64.
"""

from __future__ import annotations

import numba as nb
import numpy as np

SCALE = np.float32(2.0**40)
"""Factor of coherence, a power of two: squares of what is barely valid (1e-30) are then normal numbers in float32."""

LOWEST = np.float32((2.0**40 * 1e-30) ** 2)
HIGHEST = np.float32(3e38)
"""Squared moduli, scaled, of coherence that is there; nan is in no range."""

_jit = nb.njit(nogil=True, cache=True, error_model="numpy")


@_jit
def _phasors(ph, real, imag):
    """Normalize the phases of a point; 0 where they are missing. Return how many are there."""
    present = 0
    for image in range(ph.size):
        re, im = np.float64(ph[image].real), np.float64(ph[image].imag)
        modulus = np.sqrt(re * re + im * im)
        if np.isfinite(modulus) and modulus >= 1e-30:
            real[image], imag[image] = re / modulus, im / modulus
            present += 1
        else:
            real[image] = imag[image] = 0
    return present


@_jit
def _directions(coh, real, imag):
    """Normalize coherence, given as alternating real and imaginary parts; return how many pairs have one."""
    valid = 0
    for pair in range(real.size):
        re, im = coh[2 * pair] * SCALE, coh[2 * pair + 1] * SCALE
        square = re * re + im * im
        is_valid = (square >= LOWEST) & (square <= HIGHEST)
        inverse = np.float32(1) / np.sqrt(square)
        real[pair] = re * inverse if is_valid else np.float32(0)
        imag[pair] = im * inverse if is_valid else np.float32(0)
        valid += is_valid
    return valid


@_jit
def _weights(coh, looks, weight):
    """Set the weight of each pair: squared coherence beyond that of noise."""
    floor = np.float32(2.0**80 / looks)
    gain = np.float32(1 / ((1 - 1 / looks) * 2.0**80))
    for pair in range(weight.size):
        re, im = coh[2 * pair] * SCALE, coh[2 * pair + 1] * SCALE
        square = re * re + im * im
        is_valid = (square >= LOWEST) & (square <= HIGHEST)
        value = min(max((square - floor) * gain, np.float32(0)), np.float32(1))
        weight[pair] = value if is_valid else np.float32(0)


@_jit
def _edges(coh, threshold, edge):
    """Mark the pairs whose squared coherence is above a threshold."""
    lowest = max(np.float32(threshold * 2.0**80), LOWEST)
    for pair in range(edge.size):
        re, im = coh[2 * pair] * SCALE, coh[2 * pair + 1] * SCALE
        square = re * re + im * im
        edge[pair] = (square > lowest) & (square <= HIGHEST)


@_jit
def _drop_missing_images(rows, ph_real, ph_imag, real, imag, weight, edge):
    """Take out the pairs of images without phase; return how many of the others have coherence."""
    valid = 0
    for row in range(rows.shape[0]):
        ref, sec, first, number = rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3]
        for step in range(number):
            pair = first + step
            is_there = (ph_real[ref] != 0 or ph_imag[ref] != 0) and (
                ph_real[sec + step] != 0 or ph_imag[sec + step] != 0
            )
            if not is_there:
                real[pair] = imag[pair] = 0
                weight[pair], edge[pair] = 0, 0
            elif real[pair] != 0 or imag[pair] != 0:
                valid += 1
    return valid


@_jit
def _sums(rows, ph_real, ph_imag, real, imag, weight):
    """Return the moduli of the sums of residual phasors, plain and weighted, and the sums of weights and squares."""
    plain_re, plain_im, weighted_re, weighted_im, total, squares = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for row in range(rows.shape[0]):
        ref, sec, first = rows[row, 0], rows[row, 1], rows[row, 2]
        sum_re = sum_im = weighted_sum_re = weighted_sum_im = weights = weights_squared = np.float32(0)
        for step in range(rows[row, 3]):
            re, im, w = real[first + step], imag[first + step], weight[first + step]
            ph_re, ph_im = ph_real[sec + step], ph_imag[sec + step]
            term_re, term_im = re * ph_re - im * ph_im, re * ph_im + im * ph_re
            sum_re += term_re
            sum_im += term_im
            weighted_sum_re += w * term_re
            weighted_sum_im += w * term_im
            weights += w
            weights_squared += w * w
        ref_re, ref_im = ph_real[ref], ph_imag[ref]
        plain_re += sum_re * ref_re + sum_im * ref_im
        plain_im += sum_im * ref_re - sum_re * ref_im
        weighted_re += weighted_sum_re * ref_re + weighted_sum_im * ref_im
        weighted_im += weighted_sum_im * ref_re - weighted_sum_re * ref_im
        total += np.float64(weights)
        squares += np.float64(weights_squared)
    plain = np.sqrt(plain_re * plain_re + plain_im * plain_im)
    return plain, np.sqrt(weighted_re * weighted_re + weighted_im * weighted_im), total, squares


@_jit
def _components(rows, edge, nimages, sets):
    """Return how many connected components the edges leave of the images.

    Sets of images are bits of 64-bit words. The images of a row that edges join, and all components that have one of
    them, become one component; when it holds all images, the other rows need no look.
    """
    words = sets.size // (nimages + 1)
    n_sets = 0
    for row in range(rows.shape[0]):
        joined = sets[n_sets * words : (n_sets + 1) * words]
        if not _join(rows, row, edge, joined):
            continue
        n_sets = _merge(sets, n_sets, words)
        if n_sets == 1 and _count(sets[:words]) == nimages:
            return 1
    return nimages - _count(sets[: n_sets * words]) + n_sets


@_jit
def _join(rows, row, edge, joined):
    """Set the bits of the images of a row that edges join; return whether there are any."""
    ref, sec, first, number = rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3]
    joined[:] = 0
    any_bits = np.uint64(0)
    step = 0
    while step < number:  # word by word
        word, shift = (sec + step) >> 6, (sec + step) & 63
        bits = np.uint64(0)
        for i in range(min(64 - shift, number - step)):
            bits |= np.uint64(edge[first + step + i]) << np.uint64(shift + i)
        joined[word] |= bits
        any_bits |= bits
        step += 64 - shift
    joined[ref >> 6] |= np.uint64(1) << np.uint64(ref & 63)
    return any_bits != 0


@_jit
def _merge(sets, n_sets, words):
    """Join the set behind the first `n_sets`, which are disjoint, with those it meets; return how many there are then.

    Sets it does not meet do not meet what it is joined with either.
    """
    kept = 0
    for number in range(n_sets):
        meets = np.uint64(0)
        for word in range(words):
            meets |= sets[number * words + word] & sets[n_sets * words + word]
        for word in range(words):
            if meets != 0:
                sets[n_sets * words + word] |= sets[number * words + word]
            else:
                sets[kept * words + word] = sets[number * words + word]
        kept += meets == 0
    for word in range(words):
        sets[kept * words + word] = sets[n_sets * words + word]
    return kept + 1


@_jit
def _count(words):
    """Return how many bits are set."""
    count = 0
    for word in words:
        bits = word
        while bits != 0:
            bits &= bits - np.uint64(1)
            count += 1
    return count


@_jit
def workspace(nimages, n_pairs):
    """Return the working memory of `point`: two arrays of float32, one of flags, one of words."""
    words = (nimages + 63) // 64
    return (
        np.empty((2, nimages), np.float32),
        np.empty((3, n_pairs), np.float32),
        np.empty(n_pairs, np.uint8),
        np.empty((nimages + 1) * words, np.uint64),
    )


@_jit
def point(coh, ph, looks, log_p, rows, phasors, pairs, edge, sets):
    """Return the four measures of one point: plain, weighted, effective pairs, components.

    `coh` (n_pairs) complex64 and `ph` (nimages) complex64 are contiguous, `looks` is nan where there are none,
    `log_p` the logarithm of the probability of an edge, `rows` what `kernels.rows_of` gives; the rest is `workspace`.
    """
    nimages, parts = ph.size, coh.view(np.float32)
    ph_real, ph_imag, real, imag, weight = phasors[0], phasors[1], pairs[0], pairs[1], pairs[2]
    present = _phasors(ph, ph_real, ph_imag)
    valid = _directions(parts, real, imag)
    is_weighted = looks > 1 and looks < np.inf
    if is_weighted:
        _weights(parts, looks, weight)
        _edges(parts, -np.expm1(log_p / (looks - 1)), edge)
    else:
        weight[:] = 0
    if present < nimages:
        valid = _drop_missing_images(rows, ph_real, ph_imag, real, imag, weight, edge)
    plain, modulus, total, squares = _sums(rows, ph_real, ph_imag, real, imag, weight)
    plain = min(plain / valid, 1.0) if valid else np.nan  # rounding may pass 1
    weighted, effective, components = np.nan, 0.0, nimages
    if is_weighted:
        if total > 0:
            weighted, effective = min(modulus / total, 1.0), total * total / squares
        components = _components(rows, edge, nimages, sets)
    return plain, weighted, effective, components


@_jit
def points(coh, ph, looks, log_p, rows, t_coh, t_coh_w, eff_n_pairs, n_components):
    """Write the four measures of each point."""
    phasors, pairs, edge, sets = workspace(ph.shape[1], coh.shape[1])
    for i in range(coh.shape[0]):
        plain, weighted, effective, components = point(coh[i], ph[i], looks[i], log_p, rows, phasors, pairs, edge, sets)
        t_coh[i], t_coh_w[i], eff_n_pairs[i], n_components[i] = plain, weighted, effective, components
