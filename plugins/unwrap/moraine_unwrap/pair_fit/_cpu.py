"""Serial loops of the fit of whole cycles to a graph of pairs, compiled by numba; the callers check the inputs.

A pair k = (a, b) asks for ``n[b] - n[a] = m[k]``, and ``z[k] = m[k] + n[a] - n[b]`` is what it is off. The cost of all
z is the least if, and only if, there is a flow x along the pairs, with ``|x[k]|`` at most the cost, that leaves every
image as much as it enters it, and that is the cost where z is positive and minus the cost where z is negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

MISSING = np.int32(-(2**31))
"""Cycles of a pair that says nothing."""

FAR = np.int64(2**62)


class Room(NamedTuple):
    """Arrays that the fit of one row works in."""

    n: np.ndarray
    z: np.ndarray
    x: np.ndarray
    excess: np.ndarray
    queue: np.ndarray
    via: np.ndarray
    vote: np.ndarray
    weight: np.ndarray


NOT_REACHED = -1
"""In `Room.via`: the search has not come to this image."""
SOURCE = -2
"""In `Room.via`: the search began at this image."""


@njit(nogil=True, cache=True)
def make_room(n_images, n_pairs):
    """Return arrays to work in, all int64."""
    return Room(
        n=np.zeros(n_images, np.int64),
        z=np.zeros(n_pairs, np.int64),
        x=np.zeros(n_pairs, np.int64),
        excess=np.zeros(n_images, np.int64),
        queue=np.zeros(n_images, np.int64),
        via=np.zeros(n_images, np.int64),
        vote=np.zeros(n_pairs, np.int64),
        weight=np.zeros(n_pairs, np.int64),
    )


@njit(nogil=True, cache=True)
def fit_rows(graph, cycles, costs, is_missing, z):
    """Write into z, row by row, what the pairs are off in the fit; z is zeros before."""
    n_pairs = cycles.shape[1]
    room = make_room(graph.nimages, n_pairs)
    row = np.empty(n_pairs, np.int32)
    order, earlier_start, earlier, origin, pairs = way_of(graph)
    n = room.n
    for i in range(len(cycles)):
        for k in range(n_pairs):
            row[k] = cycles[i, k]
        if len(is_missing):
            take_out(pairs, is_missing[i], row)
        if not closes(order, earlier_start, earlier, origin, pairs, row, n) and not fit_row(graph, row, costs, room):
            for k in range(n_pairs):
                z[i, k] = room.z[k]


@njit(nogil=True, cache=True)
def image_rows(graph, cycles, costs, is_missing, n):
    """Write into n, row by row, the cycles of the images; 0 at the first image of every connected part."""
    row = np.empty(cycles.shape[1], np.int32)
    room = make_room(graph.nimages, cycles.shape[1])
    for i in range(len(cycles)):
        for k in range(len(row)):
            row[k] = cycles[i, k]
        if len(is_missing):
            take_out(graph.pairs, is_missing[i], row)
        fit_row(graph, row, costs, room)
        parts(graph, row, room.queue, room.via)
        for image in range(graph.nimages):
            n[i, image] = room.n[image] - room.n[room.via[image]]


@njit(nogil=True, cache=True)
def take_out(pairs, is_missing, row):
    """Make pairs of missing images missing."""
    for k in range(len(row)):
        if is_missing[pairs[k, 0]] or is_missing[pairs[k, 1]]:
            row[k] = MISSING


@njit(nogil=True, inline="always")
def way_of(graph):
    """Return the arrays that `closes` needs."""
    return graph.order, graph.earlier_start, graph.earlier, graph.origin, graph.pairs


@njit(nogil=True, inline="always")
def closes(order, earlier_start, earlier, origin, pairs, m, n):
    """Sum cycles along the first pair of each image with those before; return if no pair is missing, and all agree.

    It is what most rows spend their time with: so it is no call, for those with many arrays take longer than this, and
    it has no branch that depends on the cycles.
    """
    for p in range(len(order)):
        first = earlier_start[p]
        if first == earlier_start[p + 1]:
            n[order[p]] = 0
            continue
        code = earlier[first]
        n[order[p]] = n[origin[first]] + (m[code] if code >= 0 else -m[~code])
    off = np.int64(0)
    has_missing = False
    for k in range(len(m)):
        off |= m[k] + n[pairs[k, 0]] - n[pairs[k, 1]]
        has_missing |= m[k] == MISSING
    return off == 0 and not has_missing


@njit(nogil=True, cache=True)
def fit_row(graph, m, costs, room):
    """Fit the cycles of the images to one row: n and, unless it returns True, z of the room.

    True means that all loops close: nothing is off. Where `closes` says so, this need not be called.
    """
    if follow(graph, m, room.n):
        return True
    vote(graph, m, costs, room)
    balance(graph, m, costs, room)
    prefer_late(graph, m, costs, room)
    return False


@njit(nogil=True, inline="always")
def follow(graph, m, n):
    """Sum cycles image by image, past missing pairs; False as soon as two pairs disagree on one."""
    for p in range(len(graph.order)):
        is_known = False
        value = np.int64(0)
        for q in range(graph.earlier_start[p], graph.earlier_start[p + 1]):
            code = graph.earlier[q]
            k = code if code >= 0 else ~code
            if m[k] == MISSING:
                continue
            there = n[graph.origin[q]] + m[k] if code >= 0 else n[graph.origin[q]] - m[k]
            if not is_known:
                is_known, value = True, there
            elif there != value:
                return False
        n[graph.order[p]] = value
    return True


@njit(nogil=True, inline="always")
def vote(graph, m, costs, room):
    """Give each image the weighted median of what its pairs with images before it say: a start that is often right."""
    n, value, weight = room.n, room.vote, room.weight
    for p in range(len(graph.order)):
        count = 0
        total = np.int64(0)
        for q in range(graph.earlier_start[p], graph.earlier_start[p + 1]):
            code = graph.earlier[q]
            k = code if code >= 0 else ~code
            if m[k] == MISSING:
                continue
            there = n[graph.origin[q]] + m[k] if code >= 0 else n[graph.origin[q]] - m[k]
            at = count
            while at > 0 and value[at - 1] > there:
                value[at], weight[at] = value[at - 1], weight[at - 1]
                at -= 1
            value[at], weight[at] = there, costs[k]
            count += 1
            total += costs[k]
        chosen = np.int64(0)
        passed = np.int64(0)
        for at in range(count):
            passed += weight[at]
            if 2 * passed >= total:
                chosen = value[at]
                break
        n[graph.order[p]] = chosen
    for k in range(len(m)):
        room.z[k] = 0 if m[k] == MISSING else m[k] + n[graph.pairs[k, 0]] - n[graph.pairs[k, 1]]


@njit(nogil=True, inline="always")
def balance(graph, m, costs, room):
    """Find the flow and the cycles that fit each other: successive shortest paths, all that costs nothing first."""
    z, x, excess, via, queue = room.z, room.x, room.excess, room.via, room.queue
    excess[:] = 0
    for k in range(len(m)):
        x[k] = costs[k] if z[k] > 0 else (-costs[k] if z[k] < 0 else 0)
        excess[graph.pairs[k, 0]] -= x[k]
        excess[graph.pairs[k, 1]] += x[k]
    while True:
        tail = 0
        for image in range(graph.nimages):
            via[image] = NOT_REACHED
            if excess[image] > 0:
                via[image] = SOURCE
                queue[tail] = image
                tail += 1
        if not tail:
            return
        sink = NOT_REACHED
        while sink == NOT_REACHED:
            head = 0
            while head < tail and sink == NOT_REACHED:
                image = queue[head]
                head += 1
                for q in range(graph.arc_start[image], graph.arc_start[image + 1]):
                    code, other = graph.arcs[q], graph.arc_end[q]
                    k = code if code >= 0 else ~code
                    if via[other] != NOT_REACHED or z[k] != 0 or m[k] == MISSING:
                        continue
                    if x[k] == costs[k] if code >= 0 else x[k] == -costs[k]:
                        continue
                    via[other] = q
                    queue[tail] = other
                    tail += 1
                    if excess[other] < 0:
                        sink = other
                        break
            if sink == NOT_REACHED:
                raise_reached(graph, m, costs, room, tail)
        push(graph, costs, room, sink)


@njit(nogil=True, cache=True)
def raise_reached(graph, m, costs, room, tail):
    """Raise the cycles of all images that the search has reached until it can go on."""
    z, via, queue = room.z, room.via, room.queue
    step = FAR
    for at in range(tail):
        image = queue[at]
        for q in range(graph.arc_start[image], graph.arc_start[image + 1]):
            code = graph.arcs[q]
            k = code if code >= 0 else ~code
            if via[graph.arc_end[q]] == NOT_REACHED and m[k] != MISSING:
                length = -z[k] if code >= 0 else z[k]
                if length > 0:
                    step = min(step, length)
    shift(graph, room, m, tail, step)


@njit(nogil=True, cache=True)
def shift(graph, room, m, tail, step):
    """Raise the cycles of the images in the queue, which `Room.via` marks."""
    z, via, queue = room.z, room.via, room.queue
    for at in range(tail):
        image = queue[at]
        room.n[image] += step
        for q in range(graph.arc_start[image], graph.arc_start[image + 1]):
            code = graph.arcs[q]
            k = code if code >= 0 else ~code
            if via[graph.arc_end[q]] == NOT_REACHED and m[k] != MISSING:
                z[k] += step if code >= 0 else -step


@njit(nogil=True, cache=True)
def push(graph, costs, room, sink):
    """Send as much flow as possible along the path on which the search has come to the sink."""
    x, excess, via = room.x, room.excess, room.via
    amount = -excess[sink]
    image = sink
    while via[image] != SOURCE:
        q = via[image]
        code = graph.arcs[q]
        amount = min(amount, costs[code] - x[code] if code >= 0 else costs[~code] + x[~code])
        image = graph.arc_end[graph.reverse[q]]
    amount = min(amount, excess[image])
    excess[image] -= amount
    excess[sink] += amount
    image = sink
    while via[image] != SOURCE:
        q = via[image]
        code = graph.arcs[q]
        if code >= 0:
            x[code] += amount
        else:
            x[~code] -= amount
        image = graph.arc_end[graph.reverse[q]]


@njit(nogil=True, inline="always")
def prefer_late(graph, m, costs, room):
    """Of all fits of the least cost, take the one in which the first pair is off the least, then the second, and so on.

    The flow tells which they are: z may be positive only where x is the cost, and negative only where x is minus the
    cost.
    """
    z, x, via, queue = room.z, room.x, room.via, room.queue
    for k in range(len(m)):
        while z[k] != 0:
            a, b = graph.pairs[k, 0], graph.pairs[k, 1]
            first, last = (b, a) if z[k] > 0 else (a, b)
            via[:] = NOT_REACHED
            via[first] = SOURCE
            queue[0] = first
            tail = 1
            step = abs(z[k])
            head = 0
            while head < tail and via[last] == NOT_REACHED:
                image = queue[head]
                head += 1
                for q in range(graph.arc_start[image], graph.arc_start[image + 1]):
                    code, other = graph.arcs[q], graph.arc_end[q]
                    j = code if code >= 0 else ~code
                    if j == k or via[other] != NOT_REACHED or m[j] == MISSING:
                        continue
                    if slack(z[j], x[j], costs[j], code >= 0, j < k) == 0:
                        via[other] = q
                        queue[tail] = other
                        tail += 1
            if via[last] != NOT_REACHED:
                break
            for at in range(tail):
                image = queue[at]
                for q in range(graph.arc_start[image], graph.arc_start[image + 1]):
                    code = graph.arcs[q]
                    j = code if code >= 0 else ~code
                    if j != k and via[graph.arc_end[q]] == NOT_REACHED and m[j] != MISSING:
                        step = min(step, slack(z[j], x[j], costs[j], code >= 0, j < k))
            shift(graph, room, m, tail, step)


@njit(nogil=True, cache=True)
def slack(z, x, cost, is_up, is_fixed):
    """By how much z may grow, or shrink, without leaving the fits of the least cost."""
    if is_fixed:
        return np.int64(0)
    if x == (cost if is_up else -cost):
        return FAR
    if x == (-cost if is_up else cost):
        return abs(z)
    return np.int64(0)


@njit(nogil=True, cache=True)
def parts(graph, m, queue, part):
    """Write the first image of the connected part of every image, by the pairs that are not missing."""
    part[:] = NOT_REACHED
    for first in range(graph.nimages):
        if part[first] != NOT_REACHED:
            continue
        part[first] = first
        queue[0] = first
        head, tail = 0, 1
        while head < tail:
            image = queue[head]
            head += 1
            for q in range(graph.arc_start[image], graph.arc_start[image + 1]):
                code, other = graph.arcs[q], graph.arc_end[q]
                if part[other] == NOT_REACHED and m[code if code >= 0 else ~code] != MISSING:
                    part[other] = first
                    queue[tail] = other
                    tail += 1
