"""Serial loops of unwrapping in time, compiled by numba; the callers check the inputs."""

from __future__ import annotations

import numpy as np
from numba import njit

from moraine_unwrap.pair_fit._cpu import MISSING, fit_row, make_room

NO_CYCLES = np.int8(-128)
"""Cycles of a pair on an edge with an end where it is missing."""

MOST_CYCLES = 127
"""Most cycles of a pair on an edge: int8."""


@njit(nogil=True, cache=True)
def close_loops(cycles, graph, costs, n_corrected):
    """Change cycles, edge by edge and in place, so that all loops of pairs close; count the pairs that changed.

    Returns the edge and the pair whose cycles would not fit into int8 any more, or -1 and -1.
    """
    n_pairs = len(graph.pairs)
    room = make_room(graph.nimages, n_pairs)
    row = np.empty(n_pairs, np.int32)
    for e in range(len(cycles)):
        for k in range(n_pairs):
            row[k] = MISSING if cycles[e, k] == NO_CYCLES else -np.int32(cycles[e, k])
        if fit_row(graph, row, costs, room):
            continue
        for k in range(n_pairs):
            if room.z[k] != 0:
                closed = cycles[e, k] + room.z[k]
                if abs(closed) > MOST_CYCLES:
                    return e, k
                cycles[e, k] = closed
                n_corrected[e] += 1
    return -1, -1


@njit(nogil=True, cache=True)
def add_votes(cycles, costs, votes, vote_cost, trust):
    """Blend the most likely cycles of edges with those voted for in time, and scale the costs, all in place.

    With S the most likely cycles and D those voted for, S + q cycles cost ``q up + q (q - 1) / 2 (up + down)`` by
    likelihood, a parabola, plus `vote_cost` for each cycle off D. The cheapest q is taken, and what one cycle more and
    one less cost from there.
    """
    for e in range(len(cycles)):
        has_vote = votes[e] != NO_CYCLES
        voted = np.int64(votes[e]) - cycles[e] if has_vote else 0
        price = vote_cost if has_vote else 0
        bend = costs[e, 0] + costs[e, 1]
        q = 0
        up = costs[e, 0] + (price if q >= voted else -price)
        down = costs[e, 1] + (price if q <= voted else -price)
        while up < 0:
            down = -up
            q += 1
            up = costs[e, 0] + q * bend + (price if q >= voted else -price)
        while down < 0:
            up = -down
            q -= 1
            down = costs[e, 1] - q * bend + (price if q <= voted else -price)
        cycles[e] += q
        costs[e, 0] = 1 + np.rint(trust[e] * up)
        costs[e, 1] = 1 + np.rint(trust[e] * down)
