"""Serial numba kernels on point clouds: the Hilbert order, nearest neighbors in a tree of boxes, and sums over them.

A tree is built on points in Hilbert order. A leaf holds the next `LEAF` points; a node of each level above holds `FAN`
of the level below. Boxes are rows (least x, least y, largest x, largest y), those of the leaves first, the root last.
"""

from __future__ import annotations

import numba as nb
import numpy as np

LEAF = 8
"""Points in a leaf of the tree."""

FAN = 4
"""Children of a node."""

BITS = 26
"""Bits of a coordinate along the Hilbert curve."""

MISSING = -1
"""Row of a neighbor that there is not."""

_jit = nb.njit(nogil=True, cache=True, error_model="numpy")


@_jit
def hilbert_keys(x, y):
    """Return the place of each point along a Hilbert curve that fills the square around all of them."""
    n = x.size
    keys = np.zeros(n, np.int64)
    if n == 0:
        return keys
    low_x, low_y = x.min(), y.min()
    side = max(x.max() - low_x, y.max() - low_y)
    scale = (2.0**BITS - 1) / side if side > 0 else 0.0
    for i in range(n):
        a, b, key = np.int64((x[i] - low_x) * scale), np.int64((y[i] - low_y) * scale), np.int64(0)
        half = np.int64(1) << (BITS - 1)
        while half > 0:
            u, v = np.int64(a >= half), np.int64(b >= half)
            key += half * half * ((3 * u) ^ v)
            a, b = a & (half - 1), b & (half - 1)
            if v == 0:
                if u == 1:
                    a, b = half - 1 - a, half - 1 - b
                a, b = b, a
            half >>= 1
        keys[i] = key
    return keys


@_jit
def tree(x, y):
    """Return the boxes of a tree, and where those of each level start."""
    sizes = np.zeros(40, np.int64)
    sizes[0] = max((x.size + LEAF - 1) // LEAF, 1)
    levels = 1
    while sizes[levels - 1] > 1:
        sizes[levels] = (sizes[levels - 1] + FAN - 1) // FAN
        levels += 1
    starts = np.zeros(levels + 1, np.int64)
    starts[1:] = np.cumsum(sizes[:levels])
    boxes = np.empty((starts[levels], 4))
    boxes[:, :2], boxes[:, 2:] = np.inf, -np.inf
    for i in range(x.size):
        box = boxes[i // LEAF]
        box[0], box[1] = min(box[0], x[i]), min(box[1], y[i])
        box[2], box[3] = max(box[2], x[i]), max(box[3], y[i])
    for level in range(1, levels):
        for child in range(starts[level - 1], starts[level]):
            box = boxes[starts[level] + (child - starts[level - 1]) // FAN]
            box[:2] = np.minimum(box[:2], boxes[child, :2])
            box[2:] = np.maximum(box[2:], boxes[child, 2:])
    return boxes, starts


@_jit
def _box_distance(box, px, py):
    dx = max(max(box[0] - px, px - box[2]), 0.0)
    dy = max(max(box[1] - py, py - box[3]), 0.0)
    return dx * dx + dy * dy


@_jit
def _nearest(x, y, boxes, starts, px, py, skip, rows, squares, stack):
    """Write the rows of the nearest points to a place, nearest first; of equal distance, the lower row first."""
    k = rows.size
    rows[:] = MISSING
    squares[:] = np.inf
    if k == 0:
        return
    levels = starts.size - 1
    stack[0, 0], stack[0, 1] = levels - 1, 0
    depth = 1
    while depth > 0:
        depth -= 1
        level, node = stack[depth, 0], stack[depth, 1]
        if _box_distance(boxes[starts[level] + node], px, py) > squares[k - 1]:
            continue
        if level == 0:
            for j in range(node * LEAF, min(node * LEAF + LEAF, x.size)):
                dx, dy = x[j] - px, y[j] - py
                d2 = dx * dx + dy * dy
                last = k - 1
                if j == skip or d2 > squares[last] or (d2 == squares[last] and j > rows[last] >= 0):
                    continue
                while last > 0 and (d2 < squares[last - 1] or (d2 == squares[last - 1] and j < rows[last - 1])):
                    squares[last], rows[last] = squares[last - 1], rows[last - 1]
                    last -= 1
                squares[last], rows[last] = d2, j
            continue
        first, stop = node * FAN, min(node * FAN + FAN, starts[level] - starts[level - 1])
        base = depth
        for child in range(first, stop):  # the nearest child comes to the top of the stack
            d2 = _box_distance(boxes[starts[level - 1] + child], px, py)
            if d2 > squares[k - 1]:
                continue
            place = depth
            while place > base and _box_distance(boxes[starts[level - 1] + stack[place - 1, 1]], px, py) < d2:
                stack[place] = stack[place - 1]
                place -= 1
            stack[place, 0], stack[place, 1] = level - 1, child
            depth += 1


@_jit
def nearest(x, y, boxes, starts, px, py, skip, k):
    """Return the rows of the nearest points to each place, without the row `skip` of each; -1 where there are fewer."""
    rows, squares = np.empty((px.size, k), np.int64), np.empty(k)
    stack = np.empty((FAN * starts.size, 2), np.int64)
    for i in range(px.size):
        _nearest(x, y, boxes, starts, px[i], py[i], skip[i], rows[i], squares, stack)
    return rows


@_jit
def enter(rows, place, members, count):
    """Append the rows that are no members yet, and note the place of each; return the number of members."""
    for row in rows.flat:
        if row >= 0 and place[row] < 0:
            place[row] = count
            members[count] = row
            count += 1
    return count


@_jit
def edges(px, py, x, y, rows, unit, reach):
    """Return how neighbors lie to their places, in units of a length, one over their spread, and their weights.

    Neighbors beyond `reach` units are seen in their direction at that distance: a slope says nothing so far away. A row
    that is missing has the weight 0, any other one over their number.
    """
    n, k = rows.shape
    toward, weight = np.zeros((n, k, 2), np.float32), np.zeros((n, k), np.float32)
    sharpness = np.zeros(n, np.float32)
    for i in range(n):
        total, count = 0.0, 0
        for j in range(k):
            if rows[i, j] >= 0:
                dx, dy = (x[rows[i, j]] - px[i]) / unit, (y[rows[i, j]] - py[i]) / unit
                nearer = reach / max(np.hypot(dx, dy), reach)
                toward[i, j, 0], toward[i, j, 1] = dx * nearer, dy * nearer
                total += (dx * dx + dy * dy) * nearer * nearer
                count += 1
        sharpness[i] = np.sqrt(count / total) if total > 0 else 0.0
        for j in range(k):
            if rows[i, j] >= 0:
                weight[i, j] = 1.0 / count
    return toward, sharpness, weight


TINY = 1e-30
"""An amplitude below this is a missing sample, as is one that is no finite number."""

LARGEST = 1e30
"""What larger products of amplitudes count as: float32 can add them up."""


@_jit
def _interferogram(ref, sec):
    """Return phasor and amplitude of a pair of samples; zeros where one is missing."""
    re_ref, im_ref, re_sec, im_sec = (
        np.float64(ref.real),
        np.float64(ref.imag),
        np.float64(sec.real),
        np.float64(sec.imag),
    )
    size_ref, size_sec = np.hypot(re_ref, im_ref), np.hypot(re_sec, im_sec)
    if not (TINY <= size_ref < np.inf and TINY <= size_sec < np.inf):
        return 0.0, 0.0, 0.0
    size = size_ref * size_sec
    re, im = (re_ref * re_sec + im_ref * im_sec) / size, (im_ref * re_sec - re_ref * im_sec) / size
    return re, im, min(max(size, TINY), LARGEST)


@_jit
def interferograms(samples, pairs, out):
    """Write phasor and amplitude of interferograms, three numbers each; zeros where a sample is missing."""
    for i in range(samples.shape[0]):
        for p in range(pairs.shape[0]):
            out[i, p, 0], out[i, p, 1], out[i, p, 2] = _interferogram(samples[i, pairs[p, 0]], samples[i, pairs[p, 1]])


@_jit
def write_results(values, samples, pairs, rows, phasors, trust):
    """Write results to their rows: phasors of modulus 1, and the modulus, at most 1; none where a sample is missing."""
    for i in range(values.shape[0]):
        for p in range(values.shape[1]):
            re, im = values[i, p, 0], values[i, p, 1]
            size = np.hypot(re, im)
            if _interferogram(samples[i, pairs[p, 0]], samples[i, pairs[p, 1]])[2] > 0 and size > 0:
                phasors[rows[i], p] = complex(re / size, im / size)
                if trust.size > 0:
                    trust[rows[i], p] = min(size, np.float32(1))


TURN = np.float32(0.5 / np.pi)


@_jit
def _phasor(angle):
    """Return cosine and sine in float32, to 1e-6: polynomials that loops can use in vector registers."""
    t = angle * TURN
    t = (t - np.floor(t + np.float32(0.5))) * np.float32(4)  # quarter turns, -2 to 2
    quarter = np.floor(t + np.float32(0.5))
    r = (t - quarter) * np.float32(0.5 * np.pi)
    r2 = r * r
    sin = r * (np.float32(1) + r2 * (np.float32(-1 / 6) + r2 * (np.float32(1 / 120) - r2 * np.float32(1 / 5040))))
    cos = np.float32(1) + r2 * (
        np.float32(-0.5) + r2 * (np.float32(1 / 24) + r2 * (np.float32(-1 / 720) + r2 * np.float32(1 / 40320)))
    )
    odd = (quarter == np.float32(1)) | (quarter == np.float32(-1))
    c, s = (sin, cos) if odd else (cos, sin)
    c = -c if (quarter == np.float32(1)) | (quarter == np.float32(2)) | (quarter == np.float32(-2)) else c
    s = -s if (quarter == np.float32(-1)) | (quarter == np.float32(2)) | (quarter == np.float32(-2)) else s
    return c, s


_contracting = nb.njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
"""For sums of products, which are fused: faster, more accurate, and the same for every point."""


@_contracting
def _powers(angle, out):
    """Write the phasors of -3.5, -2.5, ... 3.5 times an angle, as products of two of them."""
    c, s = _phasor(np.float32(0.5) * angle)
    c1, s1 = c * c - s * s, np.float32(2) * c * s
    for a in range(4):
        out[0, 4 + a], out[1, 4 + a] = c, s
        out[0, 3 - a], out[1, 3 - a] = c, -s
        c, s = c * c1 - s * s1, c * s1 + s * c1


@_contracting
def spectra(samples, rows, toward, weight, step, out):
    """Write local spectra: the power of phasors around each point at slopes of 8 x 8 steps around 0, x first.

    Samples are ``(n, 3)``, phasor and amplitude; the spectrum of a point is divided by its mean.
    """
    x, y = np.empty((2, 8), np.float32), np.empty((2, 8), np.float32)
    re, im = np.empty((8, 8), np.float32), np.empty((8, 8), np.float32)
    for i in range(rows.shape[0]):
        re[:] = 0
        im[:] = 0
        for k in range(rows.shape[1]):
            z = samples[rows[i, k]]
            if weight[i, k] == 0 or z[2] == 0:
                continue
            _powers(-step * toward[i, k, 0], x)
            _powers(-step * toward[i, k, 1], y)
            for a in range(8):
                z_re, z_im = z[0] * x[0, a] - z[1] * x[1, a], z[0] * x[1, a] + z[1] * x[0, a]
                for b in range(8):
                    re[a, b] += z_re * y[0, b] - z_im * y[1, b]
                    im[a, b] += z_re * y[1, b] + z_im * y[0, b]
        total = np.float32(0)
        for a in range(8):
            for b in range(8):
                out[i, 8 * a + b] = re[a, b] * re[a, b] + im[a, b] * im[a, b]
                total += out[i, 8 * a + b]
        if total > 0:
            for m in range(64):
                out[i, m] *= np.float32(64) / total


@_contracting
def pool(values, rows, weight, out):
    """Write weighted sums of the values of neighbors, ``(n, channels)``."""
    for i in range(rows.shape[0]):
        out[i] = 0
        for k in range(rows.shape[1]):
            for m in range(values.shape[1]):
                out[i, m] += weight[i, k] * values[rows[i, k], m]


@_contracting
def gather(features, rows, toward, weights, turning, out):
    """Add up features of neighbors, each channel with its own weights, turned by what their slope gives on the way.

    Features are ``(n, batch, 2, channels)``, real and imaginary parts on the third axis. The first `turning` channels
    are turned; the next one holds the slope of the phase along x and y.
    """
    m, k_max = rows.shape
    batch, channels = features.shape[1], features.shape[3]
    total, frame = np.empty((batch, 2, channels), np.float32), np.empty((batch, 2), np.float32)
    for i in range(m):
        total[:] = 0
        for k in range(k_max):
            near, dx, dy = features[rows[i, k]], toward[i, k, 0], toward[i, k, 1]
            for b in range(batch):
                frame[b, 0], frame[b, 1] = _phasor(-(near[b, 0, turning] * dx + near[b, 1, turning] * dy))
            for b in range(batch):
                c, s = frame[b, 0], frame[b, 1]
                for f in range(turning):
                    w, re, im = weights[i, k, f], near[b, 0, f], near[b, 1, f]
                    total[b, 0, f] += w * (re * c - im * s)
                    total[b, 1, f] += w * (re * s + im * c)
                for f in range(turning, channels):
                    total[b, 0, f] += weights[i, k, f] * near[b, 0, f]
                    total[b, 1, f] += weights[i, k, f] * near[b, 1, f]
        out[i] = total


@nb.njit(nogil=True, cache=True, fastmath=True)
def gather_gradient(gradient, features, rows, toward, weights, turning, d_features, d_weights):
    """Add the gradient of `gather` in the features, and write that in the weights."""
    m, k_max = rows.shape
    batch, channels = features.shape[1], features.shape[3]
    frame, change = np.empty((batch, 2), np.float32), np.empty((2, channels), np.float32)
    w, dw = np.empty(channels, np.float32), np.empty(channels, np.float32)
    for i in range(m):
        g = gradient[i]
        for k in range(k_max):
            row, dx, dy = rows[i, k], toward[i, k, 0], toward[i, k, 1]
            near = features[row]
            for b in range(batch):
                frame[b, 0], frame[b, 1] = _phasor(-(near[b, 0, turning] * dx + near[b, 1, turning] * dy))
            w[:] = weights[i, k]
            dw[:] = 0
            for b in range(batch):
                c, s, slope = frame[b, 0], frame[b, 1], np.float32(0)
                for f in range(turning):
                    re = near[b, 0, f] * c - near[b, 1, f] * s
                    im = near[b, 0, f] * s + near[b, 1, f] * c
                    dw[f] += g[b, 0, f] * re + g[b, 1, f] * im
                    slope += w[f] * (g[b, 1, f] * re - g[b, 0, f] * im)
                    change[0, f] = w[f] * (g[b, 0, f] * c + g[b, 1, f] * s)
                    change[1, f] = w[f] * (g[b, 1, f] * c - g[b, 0, f] * s)
                for f in range(turning, channels):
                    dw[f] += g[b, 0, f] * near[b, 0, f] + g[b, 1, f] * near[b, 1, f]
                    change[0, f] = w[f] * g[b, 0, f]
                    change[1, f] = w[f] * g[b, 1, f]
                change[0, turning] -= slope * dx
                change[1, turning] -= slope * dy
                for f in range(channels):
                    d_features[row, b, 0, f] += change[0, f]
                    d_features[row, b, 1, f] += change[1, f]
            d_weights[i, k] = dw
