"""Serial numba kernels; `kernels` documents the array functions.

The matrix product of a point is the hot loop of the family. LLVM does not find its registers by itself, so the
innermost part is written as vector code: see `add_products`. Everything around it is plain numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

TINY = 1e-60
"""A sample of less power is missing: zero is GAMMA's no-data, denormals are its shadow."""

LANES = 16 if "+avx512f" in get_host_cpu_features() else 8
"""Images that a vector holds: 8 accumulators of this width and what they need fill the registers."""

ROWS = 4
"""Images whose products with a vector of images are summed together."""

BLOCK = 64
"""Samples that are summed before the sum is added to the total: so float32 stays accurate in large windows."""

BATCH = 16
"""Points whose rows are turned into columns together: two cache lines of one column."""


@intrinsic
def add_products(typingctx, samples, row, column, n, stride, padded, totals):
    """Add ``x_i conj(x_j)`` of `ROWS` images i and `LANES` images j, summed over n samples, to the totals.

    `samples` is flat: sample q begins at ``q * stride``, with the real parts of all images and, `padded` places on,
    the imaginary ones. `row` and `column` are where the first image i and the first image j of the first sample are.
    The real part for image i + u goes to ``totals[2 u padded + column % stride:]``, the imaginary one `padded` places
    on. All sums of one pair are taken in one order, whatever else is computed.
    """
    signature = types.void(samples, row, column, n, stride, padded, totals)

    def codegen(context, builder, signature, args):
        single, word = ir.FloatType(), ir.IntType(32)
        vector = ir.VectorType(single, LANES)
        samples, totals = (context.make_array(signature.args[k])(context, builder, value=args[k]).data for k in (0, 6))
        _, row, column, n, stride, padded, _ = args
        index = row.type
        multiply_add = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fmuladd.v{LANES}f32"
        )

        def vector_at(array, offset):
            return builder.bitcast(builder.gep(array, [offset]), vector.as_pointer())

        def splat(offset):
            undefined = ir.Constant(vector, ir.Undefined)
            one = builder.insert_element(undefined, builder.load(builder.gep(samples, [offset])), word(0))
            return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(word, LANES), [0] * LANES))

        sums = [cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * LANES)) for _ in range(2 * ROWS)]
        with cgutils.for_range(builder, n) as loop:
            sample = builder.mul(loop.index, stride)
            j, i = builder.add(column, sample), builder.add(row, sample)
            real = builder.load(vector_at(samples, j), align=4)
            imag = builder.load(vector_at(samples, builder.add(j, padded)), align=4)
            for u in range(ROWS):
                i_u = builder.add(i, index(u))
                re, im = splat(i_u), splat(builder.add(i_u, padded))
                for total, terms in (
                    (sums[2 * u], ((re, real), (im, imag))),
                    (sums[2 * u + 1], ((im, real), (builder.fneg(re), imag))),
                ):
                    value = builder.load(total)
                    for a, b in terms:
                        value = builder.call(multiply_add, [a, b, value])
                    builder.store(value, total)
        for k in range(2 * ROWS):
            where = vector_at(totals, builder.add(builder.srem(column, stride), builder.mul(padded, index(k))))
            builder.store(builder.fadd(builder.load(where, align=4), builder.load(sums[k])), where, align=4)
        return context.get_dummy_value()

    return signature, codegen


class Workspace(NamedTuple):
    """What `coherence_of_point` writes for itself; one for each thread, from `workspace`."""

    samples: np.ndarray
    """Real and imaginary parts of the samples of a point, scaled to unit power of each image; ``(n_window, stride)``
    float32, the imaginary parts from ``n_padded`` on."""
    totals: np.ndarray
    """Sums of the products of `ROWS` images with all, ``(ROWS, 2, n_padded)`` float32."""
    power: np.ndarray
    """Power of each image, and then the factor that makes it 1, ``(n_images,)`` float64."""
    valid: np.ndarray
    """Number of valid samples of each image, ``(n_images,)`` int64."""
    common: np.ndarray
    """Powers and number of the samples that an image shares with each other one, ``(3, n_images)`` float64."""
    scale: np.ndarray
    """What the sums of an incomplete image with each other one are multiplied by, ``(n_images, n_images)`` float32."""


@nb.njit(nogil=True, cache=True)
def workspace(n_window, n_images):
    """Return a workspace for windows of `n_window` cells and `n_images` images.

    Places beyond the last image are zero and stay so: a workspace serves one number of images.
    """
    padded = (n_images + LANES - 1) // LANES * LANES
    # an odd number of cache lines: else the samples of an image would compete for few places of the cache
    stride = ((2 * padded + 15) // 16 | 1) * 16
    return Workspace(
        np.zeros((n_window, stride), np.float32),
        np.empty((ROWS, 2, padded), np.float32),
        np.empty(n_images, np.float64),
        np.empty(n_images, np.int64),
        np.empty((3, n_images), np.float64),
        np.empty((n_images, n_images), np.float32),
    )


@nb.njit(nogil=True, cache=True)
def coherence_of_point(block, line, pixel, is_shp, first, sec, strict, work, out):
    """Compute the coherence of one point over its homogeneous pixels (SHP); nothing is allocated.

    Parameters
    ----------
    block
        SLC stack, complex64 ``(nlines, width, nimages)``, C-contiguous.
    line, pixel
        The point in it. Pixels of the window that lie outside do not count.
    is_shp
        Its SHPs, bool ``(az_win, r_win)``, both odd.
    first, sec
        The image pairs, row by row: image i is the reference of pairs ``first[i]`` to ``first[i + 1]``, and ``sec[k]``,
        ascending in each row, is the secondary of pair k; int64 ``(nimages + 1,)`` and ``(n_pairs,)``, as
        `kernels.pair_rows` makes them.
    strict
        A pair is nan if any sample of either image is missing.
    work
        From ``workspace(az_win * r_win, nimages)``; overwritten.
    out
        Coherence of the pairs, complex64 ``(n_pairs,)``; overwritten. nan where there is no SHP, or where samples are
        missing and the two images share less than two.

    Returns
    -------
    int
        Number of SHPs with a valid sample.
    """
    n_images = block.shape[2]
    n, is_whole = _take_samples(block, line, pixel, is_shp, work)
    if n == 0:
        out[:] = complex(np.nan, np.nan)
        return 0
    if not is_whole:
        for image in range(n_images):
            if work.valid[image] < n:
                _rescale(work, n, image, strict)
    for row in range(0, n_images, ROWS):
        last = min(row + ROWS, n_images)
        low, high = n_images, -1  # the images that these are paired with
        for ref in range(row, last):
            if first[ref] < first[ref + 1]:
                low = min(low, sec[first[ref]])
                high = max(high, sec[first[ref + 1] - 1])
        if high < 0:
            continue
        _sum_products(work, n, row, low, high)
        for ref in range(row, last):
            real, imag = work.totals[ref - row, 0], work.totals[ref - row, 1]
            begin, end = first[ref], first[ref + 1]
            if begin < end and sec[end - 1] - sec[begin] == end - 1 - begin:  # without gaps, a plain copy
                for k in range(end - begin):
                    out[begin + k] = complex(real[sec[begin] + k], imag[sec[begin] + k])
            else:
                for pair in range(begin, end):
                    out[pair] = complex(real[sec[pair]], imag[sec[pair]])
            if not is_whole:
                for pair in range(first[ref], first[ref + 1]):
                    if work.valid[ref] < n:
                        out[pair] *= work.scale[ref, sec[pair]]
                    elif work.valid[sec[pair]] < n:
                        out[pair] *= work.scale[sec[pair], ref]
    return n


@nb.njit(nogil=True, cache=True)
def _take_samples(block, line, pixel, is_shp, work):
    """Gather the samples of the SHPs, missing ones as 0, and scale each image to unit power.

    Return the number of SHPs, and whether no sample is missing. Power is summed in float64: its square root is then
    right for amplitudes whose squares float32 cannot hold.
    """
    nlines, width, n_images = block.shape
    az_win, r_win = is_shp.shape
    padded = work.totals.shape[2]
    work.power[:] = 0
    work.valid[:] = 0
    n, n_valid = 0, 0
    for a in range(max(az_win // 2 - line, 0), min(az_win, nlines + az_win // 2 - line)):
        for r in range(max(r_win // 2 - pixel, 0), min(r_win, width + r_win // 2 - pixel)):
            if is_shp[a, r]:
                row = work.samples[n]
                count = _take_pixel(
                    block[line + a - az_win // 2, pixel + r - r_win // 2],
                    row[:n_images],
                    row[padded : padded + n_images],
                    work.power,
                    work.valid,
                )
                n_valid += count
                n += 1 if count else 0  # a pixel without valid samples counts as none
    factor = work.power
    for image in range(n_images):
        factor[image] = 1 / np.sqrt(factor[image]) if factor[image] > 0 else 0.0
    for sample in range(n):
        row = work.samples[sample]
        for image in range(n_images):
            row[image] = np.float32(row[image] * factor[image])
        for image in range(n_images):
            row[padded + image] = np.float32(row[padded + image] * factor[image])
    return n, n_valid == n * n_images


@nb.njit(nogil=True, cache=True, forceinline=True)
def _take_pixel(pixel, real, imag, power, valid):
    """Take the valid samples of a pixel, 0 for others; count them for each image, add their power, return how many."""
    count = 0
    for k in range(len(real)):
        re, im = pixel[k].real, pixel[k].imag
        squared = np.float64(re) * np.float64(re) + np.float64(im) * np.float64(im)
        is_valid = (squared >= TINY) & (squared < np.inf)
        real[k] = re if is_valid else np.float32(0)
        imag[k] = im if is_valid else np.float32(0)
        power[k] += squared if is_valid else 0.0
        valid[k] += 1 if is_valid else 0
        count += 1 if is_valid else 0
    return count


@nb.njit(nogil=True, cache=True)
def _sum_products(work, n, row, low, high):
    """Sum the products of `ROWS` images with the vectors of images from `low` to `high` over n samples."""
    stride, padded = work.samples.shape[1], work.totals.shape[2]
    begin, end = low // LANES * LANES, high // LANES * LANES + LANES
    samples, totals = work.samples.reshape(-1), work.totals.reshape(-1)
    work.totals[:, :, begin:end] = 0
    for sample in range(0, n, BLOCK):
        at = sample * stride
        for column in range(begin, end, LANES):
            count = min(BLOCK, n - sample)
            add_products(samples, at + row, at + column, count, stride, padded, totals)  # type: ignore[call-arg]


@nb.njit(nogil=True, cache=True)
def _rescale(work, n, image, strict):
    """Find what makes unit power of the samples that an incomplete image shares with each other one."""
    scale = work.scale[image]
    scale[:] = np.nan
    if strict:
        return
    padded, n_images = work.totals.shape[2], len(scale)
    work.common[:] = 0
    own, other, count = work.common[0], work.common[1], work.common[2]
    for sample in range(n):
        real, imag = work.samples[sample, :n_images], work.samples[sample, padded : padded + n_images]
        squared = np.float64(real[image]) ** 2 + np.float64(imag[image]) ** 2
        if squared > 0:
            _add_common(real, imag, squared, own, other, count)
    for k in range(n_images):
        if count[k] >= 2:
            scale[k] = 1 / np.sqrt(own[k] * other[k])


@nb.njit(nogil=True, cache=True)
def _add_common(real, imag, squared, own, other, count):
    """Add what a sample of one image contributes to the powers that it shares with each other image."""
    for k in range(len(real)):
        here = np.float64(real[k]) * np.float64(real[k]) + np.float64(imag[k]) * np.float64(imag[k])
        own[k] += squared if here > 0 else 0.0
        other[k] += here
        count[k] += 1.0 if here > 0 else 0.0


@nb.njit(nogil=True, cache=True)
def coherence_of_points(block, gix, is_shp, first, sec, strict, out):
    """Compute the coherence of points, one pair after another: `out` is ``(n_pairs, n_points)``."""
    n_points, az_win, r_win = is_shp.shape
    work = workspace(az_win * r_win, block.shape[2])
    rows = np.empty((BATCH, len(sec)), np.complex64)
    for start in range(0, n_points, BATCH):
        stop = min(start + BATCH, n_points)
        for point in range(start, stop):
            coherence_of_point(
                block, gix[point, 0], gix[point, 1], is_shp[point], first, sec, strict, work, rows[point - start]
            )
        for pair in range(len(sec)):
            for point in range(start, stop):
                out[pair, point] = rows[point - start, pair]


@nb.njit(nogil=True, cache=True)
def _popcount(word):
    """Return the number of set bits; LLVM makes one instruction of it."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@nb.njit(nogil=True, cache=True)
def n_looks(is_shp, table, out):
    """Compute the effective number of looks of each point from the table of correlations, all in [0, 1].

    The rows of a window lie one after another in one string of bits, so far apart that a lag is one shift.
    """
    n_points, az_win, r_win = is_shp.shape
    az_lags, r_lags = min(table.shape[0] // 2, az_win - 1), min(table.shape[1] // 2, r_win - 1)
    center_az, center_r = table.shape[0] // 2, table.shape[1] // 2
    width = r_win + r_lags
    words = (az_win * width + 63) // 64
    bits = np.zeros(2 * words + 1, np.uint64)  # what is shifted in from beyond the end is 0
    for point in range(n_points):
        bits[:words] = 0
        n = 0
        for az in range(az_win):
            for rg in range(r_win):
                if is_shp[point, az, rg]:
                    at = az * width + rg
                    bits[at // 64] |= np.uint64(1) << np.uint64(at % 64)
                    n += 1
        total = float(n)
        for az in range(az_lags + 1):
            for rg in range(-r_lags if az else 1, r_lags + 1):
                weight = table[center_az + az, center_r + rg] + table[center_az - az, center_r - rg]
                if weight > 0:
                    total += weight * _pairs_at(bits, words, az * width + rg)
        out[point] = n * n / total if n else 0.0


@nb.njit(nogil=True, cache=True)
def _pairs_at(bits, words, shift):
    """Return how many set bits have another one `shift` places on."""
    skip, low = shift // 64, np.uint64(shift % 64)
    count = np.uint64(0)
    for k in range(words - skip):
        # two shifts: one by 64 would be undefined
        moved = (bits[k + skip] >> low) | ((bits[k + skip + 1] << np.uint64(1)) << (np.uint64(63) - low))
        count += _popcount(bits[k] & moved)
    return np.int64(count)


@nb.njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _line_sums(re1, im1, ok1, re2, im2, ok2):
    """Return the sums over a pair of lines: product (real, imaginary), the two powers, and the number of products."""
    real, imag, power1, power2, count = np.float32(0), np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    for k in range(len(re1)):
        real += re1[k] * re2[k] + im1[k] * im2[k]
        imag += im1[k] * re2[k] - re1[k] * im2[k]
        power1 += (re1[k] * re1[k] + im1[k] * im1[k]) * ok2[k]
        power2 += (re2[k] * re2[k] + im2[k] * im2[k]) * ok1[k]
        count += ok1[k] * ok2[k]
    return np.float64(real), np.float64(imag), np.float64(power1), np.float64(power2), np.float64(count)


@nb.njit(nogil=True, cache=True)
def line_correlation(re, im, ok, fewest, out):
    """Average the squared correlation of pairs of lines at each lag; nan where no pair has `fewest` products.

    The image is two planes float32, 0 where a sample is missing; `ok` is 1 or 0. Lag 0 is in the center of `out`.
    """
    nlines, width = re.shape
    az_lags, r_lags = out.shape[0] // 2, out.shape[1] // 2
    out[az_lags, r_lags] = 1
    for az in range(az_lags + 1):
        for rg in range(-r_lags if az else 1, r_lags + 1):
            total, pairs = 0.0, 0
            a, b, length = max(-rg, 0), max(rg, 0), max(width - abs(rg), 0)
            for line in range(nlines - az):
                other = line + az
                real, imag, power1, power2, count = _line_sums(
                    re[line, a : a + length],
                    im[line, a : a + length],
                    ok[line, a : a + length],
                    re[other, b : b + length],
                    im[other, b : b + length],
                    ok[other, b : b + length],
                )
                if count >= fewest:
                    total += (real * real + imag * imag) / (power1 * power2) - 1 / count
                    pairs += 1
            value = total / pairs if pairs else np.nan
            out[az_lags + az, r_lags + rg] = value
            out[az_lags - az, r_lags - rg] = value


@nb.njit(nogil=True, cache=True)
def interleave(images, pixels, first, n):
    """Write n images, ``(n, n_pixels)``, into the columns from `first` on of ``(n_pixels, n_images)``."""
    for pixel in range(len(pixels)):
        for k in range(n):
            pixels[pixel, first + k] = images[k, pixel]
