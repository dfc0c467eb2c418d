"""Serial numba kernels; `kernels` documents them.

Series of amplitudes lie with *pixels* side by side, ``(nlines, nimages, stride)``: so each step of sorting and of
testing is one loop over many pixels, which compiles to vector instructions without a branch.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from moraine_ds.homogeneity import ks

TINY = np.float32(1e-30)
"""An amplitude below this is a missing sample: zero is GAMMA's no-data, denormals are its shadow."""

INF = np.float32(np.inf)
"""What stands for missing samples: behind all amplitudes when sorted."""

LARGEST = np.finfo(np.float32).max

MISSING_KEY = np.uint32(0xFF000000)
"""What `measure_distance` makes of a missing sample, and below all it makes of them: the bits of INF, moved by one."""

END_KEY = np.uint32(0xFFFFFFFF)
"""Differs from every key."""

STRIP = 256
"""Pixels that are worked on together: their series and windows stay in the cache of a core."""

compiled = nb.njit(nogil=True, cache=True)

kolmogorov = compiled(ks.kolmogorov)
effective_scale = compiled(ks.effective_scale)


@compiled
def significance(distance, n_x, n_y):
    """Return the p value of a distance, as `ks.significance` does."""
    return kolmogorov(effective_scale(n_x, n_y) * distance / (n_x * n_y))


@compiled
def add_images(images, gain, first, series, n_valid):
    """Put the amplitudes of some images, the first of which has this number, into the series of their pixels."""
    nlines, width, n_images = images.shape
    for line in range(nlines):
        for pixel in range(width):
            count = 0
            for image in range(n_images):
                sample = images[line, pixel, image]
                # squares of float32 are exact in float64, so the sum is rounded once, and alike on every machine
                re, im = np.float64(sample.real), np.float64(sample.imag)
                amplitude = np.sqrt(re * re + im * im)
                is_valid = TINY <= amplitude < np.inf
                scaled = min(amplitude * gain[first + image], LARGEST)
                series[line, first + image, pixel] = np.float32(scaled) if is_valid else INF
                count += is_valid
            n_valid[line, pixel] += count


@compiled
def merge_exchange(values, first, n, stride, size, top, p):
    """Do pass p of `sort_series` on n rows of `size` values, which begin at `first` and lie `stride` apart."""
    q, r, d = top, 0, p
    while True:
        for i in range(n - d):
            if i & p == r:
                low = values[first + i * stride :][:size]
                high = values[first + (i + d) * stride :][:size]
                for pixel in range(size):
                    x, y = low[pixel], high[pixel]
                    low[pixel] = min(x, y)
                    high[pixel] = max(x, y)
        if q == p:
            break
        d, q, r = q - p, q >> 1, p


@compiled
def first_pass(n):
    """Return the largest power of two below n."""
    top = 1
    while 2 * top < n:
        top *= 2
    return top


@compiled
def sort_series(series):
    """Sort the series of every pixel in place: Batcher's merge exchange (Knuth, volume 3, algorithm 5.2.2 M).

    Which elements it exchanges does not depend on their values, so all pixels of a strip go through it together.
    """
    nlines, n_images, stride = series.shape
    values = series.reshape(-1)
    top = first_pass(n_images)
    for line in range(nlines):
        for start in range(0, stride, STRIP):
            p = top
            while p > 0:
                first = line * n_images * stride + start
                merge_exchange(values, first, n_images, stride, min(STRIP, stride - start), top, p)
                p >>= 1


@compiled
def mark_different(values, x, y, n, k, stride, different):
    """Mark pixels whose distance from their neighbor exceeds ``k / n``, for n valid samples of both.

    Let A(v), B(v) count the samples of both that are not above v, and a, b be the sorted samples, from 0. Then
    ``A(v) - B(v) <= k`` for all v exactly if ``b[i] <= a[i + k]`` for all i < n - k. For, if it holds,
    ``A(a[i + k]) >= i + k + 1``, so ``B(a[i + k]) >= i + 1``, which means ``b[i] <= a[i + k]``. And if A(v) = c > k,
    then ``b[c - 1 - k] <= a[c - 1] <= v``, so ``B(v) >= c - k``. Equal values need no care. The other way round alike.

    `x` and `y` are where the first samples of the first pixel and of its neighbor are in `values`.
    """
    size = different.size
    different[:] = 0
    for i in range(n - k):
        a, b = x + i * stride, y + i * stride
        x_low, x_high = values[a:][:size], values[a + k * stride :][:size]
        y_low, y_high = values[b:][:size], values[b + k * stride :][:size]
        for pixel in range(size):
            different[pixel] |= np.int32(x_low[pixel] > y_high[pixel]) | np.int32(y_low[pixel] > x_high[pixel])


@compiled
def measure_distance(bits, x, n_x, y, n_y, n_images, stride, keys, height, distance):
    """Put the distance of pixels from their neighbors, in units of ``1 / (n_x n_y)``, into `distance`.

    `bits` are the series as integers: those of positive floats have their order. With one bit more they tell of which
    pixel they are. Both series are merged, and counted in their order; `keys` and `height` are for that.
    """
    size = distance.size
    for i in range(n_images):
        row_x, row_y = keys[2 * i], keys[2 * i + 1]
        from_x, from_y = bits[x + i * stride :][:size], bits[y + i * stride :][:size]
        for pixel in range(size):
            row_x[pixel] = from_x[pixel] << np.uint32(1)
            row_y[pixel] = from_y[pixel] << np.uint32(1) | np.uint32(1)
    # sequences in even and in odd rows are what the last pass of the sort begins with
    merge_exchange(keys.reshape(-1), 0, 2 * n_images, STRIP, size, first_pass(2 * n_images), 1)
    height[:size] = 0
    distance[:] = 0
    for i in range(2 * n_images):
        row, following = keys[i], keys[i + 1]
        for pixel in range(size):
            key = row[pixel]
            step = -n_x[pixel] if key & np.uint32(1) else n_y[pixel]
            height[pixel] += np.int32(0) if key >= MISSING_KEY else step
            is_last = key >> np.uint32(1) != following[pixel] >> np.uint32(1)  # of equal values: only then it counts
            distance[pixel] = max(distance[pixel], abs(height[pixel]) if is_last else np.int32(0))


@compiled
def shp_test(series, n_valid, half_win, limit, fewest, is_shp, shp_num, pvalue):
    """Test every pixel against the half of its window behind it, and mirror: the test is symmetric.

    `is_shp` comes in False; `pvalue` comes in nan, or empty if it is not wanted.
    """
    nlines, n_images, stride = series.shape
    width = n_valid.shape[1]
    az_half, r_half = half_win
    wants_p = pvalue.size > 0
    values = series.reshape(-1)
    bits = values.view(np.uint32)
    scratch = np.empty(STRIP, np.int32)
    height = np.empty(STRIP, np.int32)
    keys = np.empty((2 * n_images + 1, STRIP), np.uint32)
    keys[2 * n_images] = END_KEY
    p_of_steps = np.ones((n_images + 1, n_images + 1), np.float32)  # series of equal length have few distances
    if wants_p:
        for n in range(1, n_images + 1):
            for k in range(n + 1):
                p_of_steps[n, k] = significance(k * n, n, n)
    for start in range(0, width, STRIP):
        end = min(start + STRIP, width)
        for line in range(nlines):
            for pixel in range(start, end):
                if n_valid[line, pixel] >= fewest:
                    is_shp[line, pixel, az_half, r_half] = True
                    if wants_p:
                        pvalue[line, pixel, az_half, r_half] = 1
            for az in range(min(az_half + 1, nlines - line)):
                other_line = line + az
                for r in range(-r_half if az else 1, r_half + 1):
                    first, last = max(start, -r), min(end, width - r)
                    if first >= last:
                        continue
                    n_x, n_y = n_valid[line, first:last], n_valid[other_line, first + r : last + r]
                    most, least = max(n_x.max(), n_y.max()), min(n_x.min(), n_y.min())
                    if most < fewest:
                        continue
                    x = line * n_images * stride + first
                    y = other_line * n_images * stride + first + r
                    distance = scratch[: last - first]
                    if most == least and not wants_p:
                        # all alike, as almost everywhere: which side of the limit they are on is quick to see
                        mark_different(values, x, y, most, limit[most, most] // most, stride, distance)
                        for i in range(last - first):
                            is_same = distance[i] == 0
                            is_shp[line, first + i, az_half + az, r_half + r] = is_same
                            is_shp[other_line, first + i + r, az_half - az, r_half - r] = is_same
                        continue
                    measure_distance(bits, x, n_x, y, n_y, n_images, stride, keys, height, distance)
                    for i in range(last - first):
                        if n_x[i] < fewest or n_y[i] < fewest:
                            continue
                        is_same = distance[i] <= limit[n_x[i], n_y[i]]
                        is_shp[line, first + i, az_half + az, r_half + r] = is_same
                        is_shp[other_line, first + i + r, az_half - az, r_half - r] = is_same
                        if wants_p:
                            if n_x[i] == n_y[i]:
                                p = p_of_steps[n_x[i], distance[i] // n_x[i]]
                            else:
                                p = np.float32(significance(distance[i], n_x[i], n_y[i]))
                            pvalue[line, first + i, az_half + az, r_half + r] = p
                            pvalue[other_line, first + i + r, az_half - az, r_half - r] = p
    count_shp(is_shp, shp_num)


@compiled
def count_shp(is_shp, shp_num):
    """Count the marks of each window."""
    marks = is_shp.reshape(shp_num.size, -1).view(np.uint8)
    counts = shp_num.reshape(-1)
    for pixel in range(counts.size):
        count = 0
        for cell in range(marks.shape[1]):
            count += marks[pixel, cell]
        counts[pixel] = count


@compiled
def select_shp(pvalue, alpha, is_shp, shp_num):
    """Mark p values of at least alpha, which nan is not, and count them."""
    values, marks = pvalue.reshape(-1), is_shp.reshape(-1)
    for cell in range(values.size):
        marks[cell] = values[cell] >= alpha
    count_shp(is_shp, shp_num)
