"""Serial loops of the triangulation, compiled by numba; inputs are checked by `moraine_unwrap.triangulation.kernels`.

While points are inserted, a triangle is eight numbers of one array, `net`: in slots 0, 1, 2 the start vertices of its
half-edges, in slots 4, 5, 6 their twins (3 and 7 are not used). One triangle is half a line of cache, and the next
half-edge is found without a division. Beyond the hull lie *ghosts*: triangles of a hull edge and one vertex at
infinity, whose number is that of the points; so every half-edge has a twin and the hull needs no list of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from moraine_unwrap.triangulation.predicates._cpu import exact_circle, exact_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int32 = NDArray[np.int32]
    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]


# -- the order of insertion --------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def in_rounds(order: Int64) -> Int64:
    """Return the points of a curve in rounds: every 8^k-th first, then every 8^(k-1)-th of the others, ... .

    Along the curve alone the front of the triangulated area is full of long triangles that do not last: the rounds save
    a third of the flips, and within a round a point still lies beside the one before.
    """
    n = len(order)
    stride = 1
    while stride * 64 <= n:
        stride *= 8
    out = np.empty(n, np.int64)
    j = 0
    coarser = 0
    while stride:
        for i in range(0, n, stride):
            if coarser == 0 or i % coarser:
                out[j] = order[i]
                j += 1
        coarser = stride
        stride //= 8
    return out


@njit(nogil=True, cache=True)
def first_corner(x: Float64, y: Float64, turn_error: float) -> int:
    """Return the first point that is not on the line through points 0 and 1; the number of points if there is none."""
    for k in range(2, len(x)):
        if turn(x[0], y[0], x[1], y[1], x[k], y[k], turn_error) != 0.0:
            return k
    return len(x)


# -- predicates --------------------------------------------------------------------------------------------------------
#
# They take numbers, not arrays: numba counts the users of an array given to a function, which would double the time.


@njit(nogil=True, cache=True, forceinline=True)
def turn(px: float, py: float, ax: float, ay: float, bx: float, by: float, turn_error: float) -> float:
    """Return a number with the sign of (a - p) x (b - p): positive if p, a, b turn to the left."""
    left, right = (ax - px) * (by - py), (ay - py) * (bx - px)
    det = left - right
    if abs(det) < turn_error * (abs(left) + abs(right)):
        return exact_turn(px, py, ax, ay, bx, by)
    return det


@njit(nogil=True, cache=True, forceinline=True)
def is_later(ax: float, ay: float, bx: float, by: float) -> bool:
    """Return whether point a comes after point b in the order of (x, y)."""
    return ax > bx or (ax == bx and ay > by)


@njit(nogil=True, cache=True)
def is_illegal_tie(px: float, py: float, ax: float, ay: float, bx: float, by: float, dx: float, dy: float) -> bool:
    """Return whether the edge a-b of four points on one circle gives way to p-d.

    Every point is thought of as lifted a little above the paraboloid, a later one infinitely more than an earlier one.
    The last of the four then stands above the plane of the others, and is cut off by the edge it is not on.
    """
    if is_later(ax, ay, bx, by):
        return is_later(ax, ay, px, py) and is_later(ax, ay, dx, dy)
    return is_later(bx, by, px, py) and is_later(bx, by, dx, dy)


# -- insertion ---------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True, forceinline=True)
def following(e: int) -> int:
    """Return the next half-edge of the same triangle."""
    return e + 1 - 3 * ((e & 3) == 2)


@njit(nogil=True, cache=True, forceinline=True)
def preceding(e: int) -> int:
    """Return the previous half-edge of the same triangle."""
    return e - 1 + 3 * ((e & 3) == 0)


@njit(nogil=True, cache=True, forceinline=True)
def join(net: Int32, e: int, h: int) -> None:
    """Make two half-edges twins."""
    net[e + 4] = h
    net[h + 4] = e


@njit(nogil=True, cache=True)
def start(net: Int32, a: int, b: int, c: int, ghost: int) -> None:
    """Make the first triangle, a left turn, and its three ghosts."""
    for k, v in enumerate((a, b, c, b, a, ghost, c, b, ghost, a, c, ghost)):
        net[8 * (k // 3) + k % 3] = v
    for e, h in ((0, 8), (1, 16), (2, 24), (9, 26), (17, 10), (25, 18)):
        join(net, e, h)


@njit(nogil=True, cache=True, forceinline=True)
def locate(net: Int32, x: Float64, y: Float64, p: int, e: int, ghost: int, turn_error: float) -> int:
    """Walk from half-edge e of a true triangle to the triangle of a point; return one of its half-edges.

    The walk crosses any edge that has the point on its other side. On a Delaunay triangulation that always ends
    (H. Edelsbrunner, "An acyclicity theorem for cell complexes in d dimensions", Combinatorica 10, 1990). A point on an
    edge of the hull belongs to the ghost behind.
    """
    px, py = x[p], y[p]
    a, b = net[e], net[following(e)]
    ax, ay, bx, by = x[a], y[a], x[b], y[b]
    if turn(px, py, ax, ay, bx, by, turn_error) < 0.0:
        e = net[e + 4]
        ax, ay, bx, by = bx, by, ax, ay
    while True:
        after, before = following(e), preceding(e)
        c = net[before]
        if c == ghost:
            break
        cx, cy = x[c], y[c]
        side_after = turn(px, py, bx, by, cx, cy, turn_error)
        if side_after < 0.0:
            e = net[after + 4]
            ax, ay = cx, cy
            continue
        side_before = turn(px, py, cx, cy, ax, ay, turn_error)
        if side_before < 0.0:
            e = net[before + 4]
            bx, by = cx, cy
            continue
        if side_after == 0.0 and net[preceding(net[after + 4])] == ghost:
            e = net[after + 4]
        elif side_before == 0.0 and net[preceding(net[before + 4])] == ghost:
            e = net[before + 4]
        elif turn(px, py, ax, ay, bx, by, turn_error) == 0.0 and net[preceding(net[e + 4])] == ghost:
            e = net[e + 4]
        break
    return e


@njit(nogil=True, cache=True, forceinline=True)
def split(net: Int32, p: int, e: int, new: int) -> int:
    """Put a point into the triangle of half-edge e, with two new triangles from slot `new` on; return an outer edge."""
    first, second, third = e & ~7, new, new + 8
    a, b, c = net[first], net[first + 1], net[first + 2]
    behind_second, behind_third = net[first + 5], net[first + 6]
    net[first + 2] = p
    net[second], net[second + 1], net[second + 2] = b, c, p
    net[third], net[third + 1], net[third + 2] = c, a, p
    join(net, second, behind_second)
    join(net, third, behind_third)
    join(net, first + 1, second + 2)
    join(net, second + 1, third + 2)
    join(net, third + 1, first + 2)
    return first


@njit(nogil=True, cache=True, forceinline=True)
def flip(net: Int32, e: int) -> int:
    """Turn the edge of e = a-b, in the triangles p-a-b and b-a-d, into p-d; return a-d, now opposite to p."""
    twin = net[e + 4]
    before, twin_before = preceding(e), preceding(twin)
    net[e], net[twin] = net[twin_before], net[before]
    join(net, e, net[twin_before + 4])
    join(net, twin, net[before + 4])
    join(net, before, twin_before)
    return following(twin)


@njit(nogil=True, cache=True)
def insert(
    x: Float64, y: Float64, weight_x: float, weight_y: float, turn_error: float, exact_below: float
) -> tuple[Int32, int]:
    """Triangulate points, the first three of which are not on a line; return the net and its number of triangles.

    Each point splits the triangle it lies in; the edges opposite to it are then flipped, one after the other around the
    point, until all are legal (C. L. Lawson, "Software for C1 surface interpolation", 1977). Coordinates end with a
    value for the ghost, which is never used. `turn_error` bounds the relative rounding error of a turn, 0 if there
    is none; the circle determinant is free of rounding where the squared sum of its lifts is below `exact_below`.
    """
    ghost = len(x) - 1
    net = np.empty(16 * ghost, np.int32)
    left = turn(x[0], y[0], x[1], y[1], x[2], y[2], turn_error) > 0.0
    start(net, 0, 1 if left else 2, 2 if left else 1, ghost)
    new = 32
    near = 0
    circle_error = 8.0 * 2.0**-53 / np.sqrt(weight_x * weight_y)
    for p in range(3, ghost):
        e = split(net, p, locate(net, x, y, p, near, ghost, turn_error), new)
        new += 16
        px, py = x[p], y[p]
        a, b = net[e], net[following(e)]
        last = a
        ax, ay, bx, by = x[a] - px, y[a] - py, x[b] - px, y[b] - py
        a_lift = weight_x * ax * ax + weight_y * ay * ay
        b_lift = weight_x * bx * bx + weight_y * by * by
        while True:
            d = net[preceding(net[e + 4])]
            dx, dy = x[d] - px, y[d] - py
            d_lift = weight_x * dx * dx + weight_y * dy * dy
            if d == ghost:
                illegal = False
            elif a == ghost:
                illegal = turn(px, py, x[b], y[b], x[d], y[d], turn_error) < 0.0
            elif b == ghost:
                illegal = turn(px, py, x[d], y[d], x[a], y[a], turn_error) < 0.0
            else:
                det = (a_lift * (bx * dy - by * dx) - b_lift * (ax * dy - ay * dx)) + d_lift * (ax * by - ay * bx)
                size = (a_lift + b_lift + d_lift) ** 2
                if abs(det) <= circle_error * size and size >= exact_below:
                    det = exact_circle(px, py, x[a], y[a], x[b], y[b], x[d], y[d], weight_x, weight_y)
                illegal = det < 0.0 or (det == 0.0 and is_illegal_tie(px, py, x[a], y[a], x[b], y[b], x[d], y[d]))
            if illegal:
                e = flip(net, e)
                b, bx, by, b_lift = d, dx, dy, d_lift
                continue
            if a != ghost and b != ghost:
                near = e
            if b == last:
                break
            e = following(net[following(e) + 4])
            a, ax, ay, a_lift = b, bx, by, b_lift
            b = net[following(e)]
            bx, by = x[b] - px, y[b] - py
            b_lift = weight_x * bx * bx + weight_y * by * by
    return net, new // 8


# -- the arrays of the result ------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def triangles(net: Int32, n_net: int, ids: Int64) -> tuple[Int32, Int32]:
    """Return start vertices and twins of the half-edges without the ghosts; vertex k is called ids[k]."""
    ghost = len(ids)
    place = np.empty(n_net, np.int32)
    n = 0
    for t in range(n_net):
        if net[8 * t] == ghost or net[8 * t + 1] == ghost or net[8 * t + 2] == ghost:
            place[t] = -1
        else:
            place[t] = n
            n += 1
    tri = np.empty(3 * n, np.int32)
    half = np.empty(3 * n, np.int32)
    for t in range(n_net):
        if place[t] >= 0:
            for slot in range(3):
                e = 3 * place[t] + slot
                tri[e] = ids[net[8 * t + slot]]
                twin = net[8 * t + slot + 4]
                half[e] = 3 * place[twin >> 3] + (twin & 3) if place[twin >> 3] >= 0 else -1
    return tri, half


@njit(nogil=True, cache=True)
def edges_of(tri: Int32, half: Int32, n_points: int) -> tuple[Int32, Int32, NDArray[np.int8]]:
    """Return the edges sorted by (smaller, larger) point, the edge of every half-edge, and its sign.

    The sign is 1 where the half-edge runs from the smaller point to the larger, else -1. The order comes from a
    counting sort by the smaller point; the few edges of each are then sorted by the larger one.
    """
    stop = np.zeros(n_points + 1, np.int32)
    sign = np.empty(len(tri), np.int8)
    a = np.int32(0)
    for e in range(len(tri) - 1, -1, -1):
        b = tri[e - 2] if e % 3 == 2 else a
        a = tri[e]
        sign[e] = 1 if a < b else -1
        stop[min(a, b) + 1] += half[e] < e
    for k in range(n_points):
        stop[k + 1] += stop[k]
    n = stop[n_points]
    edge = np.empty(n, np.int64)  # larger point and half-edge in one word
    for e in range(len(tri) - 1, -1, -1):
        b = tri[e - 2] if e % 3 == 2 else a
        a = tri[e]
        if half[e] < e:
            edge[stop[min(a, b)]] = np.int64(max(a, b)) << 32 | e
            stop[min(a, b)] += 1
    edges = np.empty((n, 2), np.int32)
    edge_of_half = np.empty(len(tri), np.int32)
    first = 0
    for k in range(n_points):
        sort_short(edge, first, stop[k])
        for place in range(first, stop[k]):
            e = edge[place] & 0xFFFFFFFF
            edges[place, 0], edges[place, 1] = k, edge[place] >> 32
            edge_of_half[e] = place
            if half[e] >= 0:
                edge_of_half[half[e]] = place
        first = stop[k]
    return edges, edge_of_half, sign


@njit(nogil=True, cache=True, forceinline=True)
def sort_short(values: Int64, first: int, stop: int) -> None:
    """Sort a part of an array in place: by insertion, from far places to near ones where it is not short (Shell)."""
    gap = 1
    while gap * 9 < stop - first:
        gap = 3 * gap + 1
    while gap:
        for i in range(first + gap, stop):
            value = values[i]
            j = i
            while j - gap >= first and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@njit(nogil=True, cache=True)
def hull_of(tri: Int32, half: Int32) -> Int32:
    """Return the half-edges of the hull to the left, from the one that starts at the smallest point on."""
    n, first = 0, -1
    for e in range(len(tri)):
        if half[e] < 0:
            n += 1
            if first < 0 or tri[e] < tri[first]:
                first = e
    hull = np.empty(n, np.int32)
    e = first
    for k in range(n):
        hull[k] = e
        e = e + 1 if e % 3 < 2 else e - 2
        while half[e] >= 0:
            e = half[e]
            e = e + 1 if e % 3 < 2 else e - 2
    return hull


# -- regions -----------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def root(parent: Int32, k: int) -> int:
    """Return the smallest point known to be connected with point k, and shorten the way to it."""
    while parent[k] != k:
        parent[k] = parent[parent[k]]
        k = parent[k]
    return k


@njit(nogil=True, cache=True)
def components(edges: Int32, is_kept: NDArray[np.bool_], vertex: Int32, min_points: int) -> Int32:
    """Return the number of every point's component in the order of first points, -1 for less than min_points points."""
    parent = vertex.copy()
    for k in range(len(edges)):
        if is_kept[k]:
            a, b = root(parent, edges[k, 0]), root(parent, edges[k, 1])
            parent[max(a, b)] = min(a, b)
    size = np.zeros(len(parent), np.int32)
    for k in range(len(parent)):
        parent[k] = root(parent, k)
        size[parent[k]] += 1
    n = 0
    for k in range(len(parent)):
        first = parent[k]
        if first != k:
            parent[k] = parent[first]  # already the number of its component: the first point comes first
        elif size[k] >= min_points:
            parent[k] = n
            n += 1
        else:
            parent[k] = -1
    return parent
