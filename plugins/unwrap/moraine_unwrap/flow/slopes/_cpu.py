"""Serial loops of the local phase statistics, compiled by numba; `moraine_unwrap.flow.costs` says what is computed.

Vertices are numbered along a space-filling curve, and edges are sorted by their smaller vertex. So `CELL` vertices in a
row are a compact cell whose edges are a slice, and cells in a row are a larger neighborhood.
"""

from __future__ import annotations

import numpy as np
from numba import njit

CELL = 32
"""Vertices of a cell: about 96 edges."""

REACH = 3
"""Slopes are searched on a lattice up to this many steps of one radian per typical edge length in each direction."""

FARTHEST = 3.3
"""Largest slope that is searched, in radians per typical edge length: a little more than half a cycle."""

LONGEST = 3.0
"""Edges longer than this many typical lengths say nothing about the slope."""

WINDOWS = (1, 2, 4, 8)
"""Cells on either side that are summed, the fewest first, until the best slope is significant."""

SIGNIFICANCE = 5.0
"""Standard deviations of pure noise that the score of a significant slope exceeds."""

ONE = np.float32(1)
S3, S5, S7, S9, S11 = (np.float32(v) for v in (-1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800))
C2, C4, C6, C8, C10, C12 = (np.float32(v) for v in (-1 / 2, 1 / 24, -1 / 720, 1 / 40320, -1 / 3628800, 1 / 479001600))

FIXED = np.float32(4096)
"""Scores are summed as whole numbers of this part: the same sum in any order, and so in any width of vectors."""

FULLY, NOT_AT_ALL = 2.0, 4.0
"""Typical lengths up to which a slope holds along an edge, and from which on it says nothing: its error grows."""

LEAST_COHERENCE, MOST_COHERENCE = 0.05, 0.97
"""Bounds of the coherence of phase differences, from which a variance is -2 ln(coherence): 6 to 0.06 rad^2."""

MOST_VARIANCE = 40.0
"""Largest variance of an edge in its cost, in rad^2: its phase says nothing long before."""

compiled = njit(nogil=True, cache=True, error_model="numpy")


@compiled
def cell_edges(edges, n_cells):
    """Return the first edge of every cell, and the number of edges at the end."""
    start = np.zeros(n_cells + 1, np.int64)
    for e in range(len(edges)):
        start[edges[e, 0] // CELL + 1] += 1
    for c in range(n_cells):
        start[c + 1] += start[c]
    return start


@compiled
def typical_lengths(position, edges, start):
    """Return the geometric mean of the lengths of each cell's edges; 0 for a cell without edges."""
    out = np.zeros(len(start) - 1)
    for c in range(len(out)):
        n = start[c + 1] - start[c]
        total = 0.0
        product = 1.0
        for i in range(n):
            dx, dy = step_of(position, edges, start[c] + i)
            product *= dx * dx + dy * dy
            if i % 4 == 3 or i == n - 1:  # one logarithm for four lengths
                total += np.log(product)
                product = 1.0
        if n > 0:
            out[c] = np.exp(total / (2 * n))
    return out


@compiled
def step_of(position, edges, e):
    """Return the way from the smaller to the larger vertex of an edge."""
    p, q = edges[e]
    return position[q, 0] - position[p, 0], position[q, 1] - position[p, 1]


@compiled
def lattice():
    """Return the slopes that are searched, in steps, as `scores` walks them: row by row, from 0 to both sides."""
    out = np.empty(((2 * REACH + 1) ** 2, 2), np.int8)
    n = 0
    for i in range(-REACH, REACH + 1):
        for side in (1, -1):
            j = 0 if side == 1 else -1
            while i * i + j * j <= FARTHEST * FARTHEST and abs(j) <= REACH:
                out[n, 0] = i
                out[n, 1] = j
                n += 1
                j += side
    return out[:n].copy()


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def sine_cosine(angle):
    """Return sine and cosine of a float32 angle in [-pi, pi] by Taylor series of its half; branch-free for vectors."""
    half = ONE / 2 * angle
    z = half * half
    sine = half * (ONE + z * (S3 + z * (S5 + z * (S7 + z * (S9 + z * S11)))))
    cosine = ONE + z * (C2 + z * (C4 + z * (C6 + z * (C8 + z * (C10 + z * C12)))))
    return 2 * ONE * sine * cosine, ONE - 2 * ONE * sine * sine


@compiled
def rotate(real, imag, cosine, sine, n):
    """Multiply n phasors by others, in place."""
    for i in range(n):
        a = real[i] * cosine[i] - imag[i] * sine[i]
        imag[i] = real[i] * sine[i] + imag[i] * cosine[i]
        real[i] = a


@compiled
def rotate_and_sum(real, imag, cosine, sine, n):
    """Multiply n phasors by others, in place, and return the sum of their real parts in whole parts."""
    total = np.int64(0)
    for i in range(n):
        a = real[i] * cosine[i] - imag[i] * sine[i]
        imag[i] = real[i] * sine[i] + imag[i] * cosine[i]
        real[i] = a
        total += np.int32(a)
    return total


@compiled
def lane(n):
    """Return an array for n values: one each, because the rows of a two-dimensional array are not vectorized."""
    return np.empty(n, np.float32)


@compiled
def gather(position, edges, phase, precision, first, n, scale, dx, dy, angle, weight):
    """Take steps in units of the scale, wrapped differences and weights of n edges from `first` on."""
    for i in range(n):
        across, along = step_of(position, edges, first + i)
        across, along = across / scale, along / scale
        square = across * across + along * along
        is_near = square <= LONGEST * LONGEST
        dx[i] = across if is_near else 0.0
        dy[i] = along if is_near else 0.0
        p, q = edges[first + i]
        weight[i] = precision[p] * precision[q] * min(1.0, 1 / square) if is_near else 0.0
        d = phase[q] - phase[p]
        angle[i] = d - 2 * np.pi * np.rint(d / (2 * np.pi))


@compiled
def phasors(angle, real, imag, n):
    """Set the phasors of n angles in [-pi, pi]."""
    for i in range(n):
        imag[i], real[i] = sine_cosine(angle[i])


@compiled
def multiply(values, factors, n):
    """Multiply n values by others, in place."""
    for i in range(n):
        values[i] *= factors[i]


@compiled
def scores(position, edges, phase, precision, start, scale, walk):
    """Return for each cell the score of each slope: the sum over its edges of ``w cos(difference - slope * (dx, dy))``.

    The weights w are ``min(1, (scale / length)**2)``, those of long edges 0, times the precision of both ends. Also
    returned is the sum of w**2 of each cell.
    """
    n_cells = len(scale)
    out = np.zeros((n_cells, len(walk)), np.int64)
    squares = np.zeros(n_cells)
    most = 0
    for c in range(n_cells):
        most = max(most, start[c + 1] - start[c])
    dx, dy, angle, weight = lane(most), lane(most), lane(most), lane(most)
    real, imag, row, row_imag = lane(most), lane(most), lane(most), lane(most)
    xc, xs, xs_back, yc, ys, ys_back = lane(most), lane(most), lane(most), lane(most), lane(most), lane(most)
    for c in range(n_cells):
        n = start[c + 1] - start[c]
        if n == 0:
            continue
        gather(position, edges, phase, precision, start[c], n, scale[c], dx, dy, angle, weight)
        for i in range(n):
            squares[c] += weight[i] * weight[i]
            weight[i] *= FIXED
        phasors(dx, xc, xs_back, n)
        phasors(dy, yc, ys_back, n)
        phasors(angle, row, row_imag, n)
        multiply(row, weight, n)
        multiply(row_imag, weight, n)
        for i in range(n):
            xs[i] = -xs_back[i]
            ys[i] = -ys_back[i]
        for _ in range(REACH):  # to the first row of the lattice
            rotate(row, row_imag, xc, xs_back, n)
        for k in range(len(walk)):
            j = walk[k, 1]
            if j == 0 and k > 0:
                rotate(row, row_imag, xc, xs, n)
            if j == 0 or j == -1:
                for i in range(n):
                    real[i] = row[i]
                for i in range(n):
                    imag[i] = row_imag[i]
            if j == 0:
                total = np.int64(0)
                for i in range(n):
                    total += np.int32(real[i])
                out[c, k] = total
            elif j > 0:
                out[c, k] = rotate_and_sum(real, imag, yc, ys, n)
            else:
                out[c, k] = rotate_and_sum(real, imag, yc, ys_back, n)
    return out, squares


@compiled
def best_slopes(score, squares, scale, walk, most_x, most_y):
    """Return the slope of each cell, in radians per unit of length, (0, 0) where none is significant.

    The score of a cell is summed with those of cells of the same scale around it. The peak on the lattice is refined by
    a parabola in each direction. Slopes beyond the most in a direction are none.
    """
    n_cells = len(scale)
    at = np.full((2 * REACH + 3, 2 * REACH + 3), -1, np.int32)
    for k in range(len(walk)):
        at[walk[k, 0] + REACH + 1, walk[k, 1] + REACH + 1] = k
    out = np.zeros((n_cells, 2))
    total = np.empty(len(walk), np.int64)
    for c in range(n_cells):
        if scale[c] == 0:
            continue
        total[:] = score[c]
        w2 = squares[c]
        added = 0
        for window in WINDOWS:
            for d in range(added + 1, window + 1):
                for other in (c - d, c + d):
                    if 0 <= other < n_cells and scale[other] == scale[c]:
                        total += score[other]
                        w2 += squares[other]
            added = window
            best = most_likely(total, walk, most_x * scale[c], most_y * scale[c])
            if total[best] > SIGNIFICANCE * np.sqrt(w2 / 2) * FIXED:
                i, j = walk[best, 0] + REACH + 1, walk[best, 1] + REACH + 1
                out[c, 0] = (walk[best, 0] + vertex_of(total, at[i - 1, j], best, at[i + 1, j])) / scale[c]
                out[c, 1] = (walk[best, 1] + vertex_of(total, at[i, j - 1], best, at[i, j + 1])) / scale[c]
                break
    return out


@compiled
def most_likely(total, walk, most_x, most_y):
    """Return the lattice point of the highest score among those within the most steps in each direction."""
    best = -1
    for k in range(len(walk)):
        if abs(walk[k, 0]) <= most_x and abs(walk[k, 1]) <= most_y and (best < 0 or total[k] > total[best]):
            best = k
    return best


@compiled
def vertex_of(total, below, k, above):
    """Return where, in steps from k, a parabola through three scores has its vertex; 0 at the edge of the lattice."""
    if below < 0 or above < 0:
        return 0.0
    bend = 2 * total[k] - total[below] - total[above]
    return 0.5 * (total[above] - total[below]) / bend if bend > 0 else 0.0


@compiled
def residual_phases(position, edges, phase, slope, scale):
    """Return the cycles that bring the difference of each edge nearest to the slope, and the rest, in [-pi, pi]."""
    cycles = np.empty(len(edges), np.int32)
    rest = np.empty(len(edges), np.float32)
    for e in range(len(edges)):
        p, q = edges[e]
        dx, dy = step_of(position, edges, e)
        a, b = p // CELL, q // CELL
        length = np.sqrt(dx * dx + dy * dy) / (min(scale[a], scale[b]) if scale[b] > 0 else scale[a])
        share = min(max((NOT_AT_ALL - length) / (NOT_AT_ALL - FULLY), 0.0), 1.0) / 2
        mean = share * ((slope[a, 0] + slope[b, 0]) * dx + (slope[a, 1] + slope[b, 1]) * dy)
        away = phase[q] - phase[p] - mean
        cycles[e] = -np.int32(np.rint(away / (2 * np.pi)))
        rest[e] = away + 2 * np.pi * cycles[e]
    return cycles, rest


@compiled
def local_variances(position, edges, rest, precision, start, scale):
    """Return the variance of the edges in and beside each cell beyond what their precision says, in rad^2.

    It is ``-2 ln`` of the mean of ``cos(rest)`` over its expectation: the product of the precisions of both ends.
    """
    n_cells = len(scale)
    sums = np.zeros((n_cells, 2))
    for c in range(n_cells):
        for e in range(start[c], start[c + 1]):
            p, q = edges[e]
            dx, dy = step_of(position, edges, e)
            expected = precision[p] * precision[q]
            w = expected * min(1.0, scale[c] * scale[c] / (dx * dx + dy * dy))
            sums[c, 0] += w * sine_cosine(rest[e])[1]
            sums[c, 1] += w * expected
    out = np.empty(n_cells)
    for c in range(n_cells):
        found, expected = 0.0, 0.0
        for other in range(max(c - 1, 0), min(c + 2, n_cells)):
            found += sums[other, 0]
            expected += sums[other, 1]
        coherence = found / expected if expected > 0 else 0.0
        out[c] = -2 * np.log(min(max(coherence, LEAST_COHERENCE), MOST_COHERENCE))
    return out


@compiled
def likelihood_costs(edges, rest, variance, noise, weight, unit):
    """Return the costs of one cycle up and down on each edge: ``1 + round(unit weight (pi +- rest) / (pi v))``.

    v is the variance of the edge's cell plus the noise of both ends, at most `MOST_VARIANCE`.
    """
    out = np.empty((len(edges), 2), np.int32)
    for e in range(len(edges)):
        p, q = edges[e]
        v = min(variance[p // CELL] + noise[p] + noise[q], MOST_VARIANCE)
        factor = unit * min(weight[p], weight[q]) / (np.pi * v)
        out[e, 0] = 1 + np.int32(np.rint(max(np.pi + rest[e], 0.0) * factor))
        out[e, 1] = 1 + np.int32(np.rint(max(np.pi - rest[e], 0.0) * factor))
    return out
