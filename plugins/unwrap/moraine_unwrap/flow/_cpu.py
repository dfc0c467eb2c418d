"""Serial loops of the network, the flow and the integration, compiled by numba; the callers check the inputs.

A half-edge ``h < 3T`` is the side of an edge that belongs to triangle ``h // 3``. Every edge of the hull has a second
half-edge, from ``3T`` on, that belongs to the earth. So each half-edge has a twin, and is an arc of the flow as well:
from its own node across the edge to the node of its twin. Nodes below T are triangles; node T is the earth, and those
above are groups of triangles around missing points.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FAR = np.int64(2**62)
"""Distance of a node that no search has reached."""

TINY = 1e-60
"""A sample of a smaller square is missing: zero is no data."""

ROUNDS = (16, 256, 4096)
"""Most nodes that a search may settle in the first rounds; those that find no partner wait for the next round.

Near partners find each other first. Otherwise a place that has run out of them sends one search after the other across
all of the cloud: with a discontinuity in the phase that costs ten times as much.
"""


# -- canonical numbers -------------------------------------------------------------------------------------------------

SMALL = 32
"""Numbers up to this many are sorted by insertion."""


@njit(nogil=True, cache=True)
def sort_slices(values, start):
    """Sort each slice of values that begins where `start` says, in place."""
    for i in range(len(start) - 1):
        first, last = start[i], start[i + 1]
        if last - first > SMALL:
            values[first:last] = np.sort(values[first:last])
            continue
        for j in range(first + 1, last):
            value = values[j]
            k = j
            while k > first and values[k - 1] > value:
                values[k] = values[k - 1]
                k -= 1
            values[k] = value


@njit(nogil=True, cache=True)
def number_triangles(tri, half, rank, n_vertices):
    """Return rank of the start and twin of every half-edge, for triangles sorted by their ranks, the smallest first."""
    n_half = len(tri)
    n_tri = n_half // 3
    corners = np.empty(n_half, np.int32)
    turn = np.empty(n_tri, np.int8)
    start = np.zeros(n_vertices + 1, np.int64)
    for t in range(n_tri):
        a, b, c = rank[tri[3 * t]], rank[tri[3 * t + 1]], rank[tri[3 * t + 2]]
        turn[t] = 0
        if b < a and b < c:
            turn[t] = 1
            a, b, c = b, c, a
        elif c < a:
            turn[t] = 2
            a, b, c = c, a, b
        corners[3 * t], corners[3 * t + 1], corners[3 * t + 2] = a, b, c
        start[a + 1] += 1
    for i in range(n_vertices):
        start[i + 1] += start[i]
    fill = start[:-1].copy()
    order = np.empty(n_tri, np.int64)  # second corner and triangle in one number
    for t in range(n_tri):
        first = corners[3 * t]
        order[fill[first]] = np.int64(corners[3 * t + 1]) << 32 | t
        fill[first] += 1
    sort_slices(order, start)
    new = np.empty(n_half, np.int32)
    vertex = np.empty(n_half, np.int32)
    n_hull = 0
    for i in range(n_tri):
        t = order[i] & 0xFFFFFFFF
        for j in range(3):
            h = 3 * t + (turn[t] + j) % 3
            new[h] = 3 * i + j
            vertex[3 * i + j] = corners[3 * t + j]
            n_hull += half[h] < 0
    twin = np.empty(n_half + n_hull, np.int32)
    earth = n_half
    for i in range(n_tri):
        t = order[i] & 0xFFFFFFFF
        for j in range(3):
            h = 3 * t + (turn[t] + j) % 3
            if half[h] >= 0:
                twin[3 * i + j] = new[half[h]]
            else:
                twin[3 * i + j] = earth
                twin[earth] = 3 * i + j
                earth += 1
    return vertex, twin


@njit(nogil=True, cache=True)
def number_edges(vertex, twin, n_vertices):
    """Return the sorted edges of triangles, and the edge of every half-edge, ``~edge`` where it runs downward.

    The first vertex of a triangle is its smallest: so its first half-edge runs upward, its last downward.
    """
    n_half = len(vertex)
    start = np.zeros(n_vertices + 1, np.int64)
    for a in range(0, n_half, 3):
        start[vertex[a] + 1] += 1 + (twin[a + 2] >= n_half)
        second, third = vertex[a + 1], vertex[a + 2]
        start[min(second, third) + 1] += (second < third) | (twin[a + 1] >= n_half)
    for i in range(n_vertices):
        start[i + 1] += start[i]
    fill = start[:-1].copy()
    order = np.empty(start[-1], np.int64)  # larger vertex and one half-edge in one number
    for a in range(0, n_half, 3):
        first, second, third = vertex[a], vertex[a + 1], vertex[a + 2]
        order[fill[first]] = np.int64(second) << 32 | a
        fill[first] += 1
        if twin[a + 2] >= n_half:
            order[fill[first]] = np.int64(third) << 32 | (a + 2)
            fill[first] += 1
        if second < third or twin[a + 1] >= n_half:
            low = min(second, third)
            order[fill[low]] = np.int64(max(second, third)) << 32 | (a + 1)
            fill[low] += 1
    sort_slices(order, start)
    edges = np.empty((len(order), 2), np.int32)
    signed_edge = np.empty(len(twin), np.int32)
    for p in range(n_vertices):
        for e in range(start[p], start[p + 1]):
            h = order[e] & 0xFFFFFFFF
            edges[e, 0] = p
            edges[e, 1] = order[e] >> 32
            is_up = vertex[h] == p
            signed_edge[h] = e if is_up else ~e
            signed_edge[twin[h]] = ~e if is_up else e
    return edges, signed_edge[:n_half]


@njit(nogil=True, cache=True)
def sorted_edges(edges, rank):
    """Return the edges of a chain between the ranks of their points, sorted."""
    key = np.empty(len(edges), np.int64)
    for e in range(len(edges)):
        p, q = rank[edges[e, 0]], rank[edges[e, 1]]
        key[e] = np.int64(min(p, q)) << 32 | max(p, q)
    key.sort()
    out = np.empty((len(edges), 2), np.int32)
    for e in range(len(edges)):
        out[e, 0] = key[e] >> 32
        out[e, 1] = key[e] & 0xFFFFFFFF
    return out


# -- nodes of the flow, and ways to integrate --------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def root(parent, node):
    """Return the representative of a node's group and shorten the way to it."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@njit(nogil=True, cache=True)
def contract(edges, signed_edge, twin, is_missing):
    """Join all triangles around missing points; what reaches the hull joins the earth.

    Returns
    -------
    head
        Node that each half-edge leads to, as an arc of the flow.
    start, arcs
        Arcs that leave the group ``T + 1 + i`` are ``arcs[start[i] : start[i + 1]]``.
    """
    n_half = len(signed_edge)
    n_tri = n_half // 3
    if not is_missing.any():
        return np.minimum(twin // 3, n_tri).astype(np.int32), np.zeros(1, np.int64), np.empty(0, np.int32)
    parent = np.arange(n_tri + 1).astype(np.int32)
    for h in range(n_half):
        e = signed_edge[h] if signed_edge[h] >= 0 else ~signed_edge[h]
        if is_missing[edges[e, 0]] or is_missing[edges[e, 1]]:
            a = root(parent, np.int32(h // 3))
            b = root(parent, np.int32(min(twin[h] // 3, n_tri)))
            parent[min(a, b)] = max(a, b)  # so the earth always stays the representative
    size = np.zeros(n_tri + 1, np.int32)
    for t in range(n_tri + 1):
        size[root(parent, np.int32(t))] += 1
    node = np.empty(n_tri + 1, np.int32)
    group = np.full(n_tri + 1, -1, np.int32)
    group[n_tri] = n_tri
    n_nodes = n_tri + 1
    for t in range(n_tri + 1):
        r = root(parent, np.int32(t))
        if size[r] == 1 and r < n_tri:
            node[t] = t
            continue
        if group[r] < 0:
            group[r] = n_nodes
            n_nodes += 1
        node[t] = group[r]
    head = np.empty(len(twin), np.int32)
    start = np.zeros(n_nodes - n_tri, np.int64)
    for h in range(len(twin)):
        head[h] = node[min(twin[h] // 3, n_tri)]
    for h in range(len(twin)):
        own = head[twin[h]]
        if own > n_tri and head[h] != own:
            start[own - n_tri] += 1
    for i in range(len(start) - 1):
        start[i + 1] += start[i]
    arcs = np.empty(start[-1], np.int32)
    fill = start[:-1].copy()
    for h in range(len(twin)):
        own = head[twin[h]]
        if own > n_tri and head[h] != own:
            arcs[fill[own - n_tri - 1]] = h
            fill[own - n_tri - 1] += 1
    return head, start, arcs


@njit(nogil=True, cache=True)
def spanning_forest(edges, is_link, is_missing):
    """Return steps that lead from vertex to vertex over all islands, and the island of every vertex (-1: missing).

    Only edges that are links are taken.
    Step i goes to ``to[i]`` from ``origin[i]`` (-1 where an island begins) along the edge ``step[i]``, ``~edge`` where
    it runs downward. Vertices come in the order of their distance from the first of the island.
    """
    n = len(is_missing)
    begin = np.zeros(n + 1, np.int64)
    begin_back = np.zeros(n + 1, np.int64)
    for e in range(len(edges)):
        begin[edges[e, 0] + 1] += 1
        begin_back[edges[e, 1] + 1] += 1
    for i in range(n):
        begin[i + 1] += begin[i]
        begin_back[i + 1] += begin_back[i]
    back = np.empty(len(edges), np.int32)
    fill = begin_back[:-1].copy()
    for e in range(len(edges)):
        back[fill[edges[e, 1]]] = e
        fill[edges[e, 1]] += 1

    island = np.full(n, -1, np.int32)
    to = np.empty(n, np.int32)
    origin = np.empty(n, np.int32)
    step = np.empty(n, np.int32)
    found = 0
    done = 0
    n_islands = 0
    for seed in range(n):
        if is_missing[seed] or island[seed] >= 0:
            continue
        island[seed] = n_islands
        to[found] = seed
        origin[found] = -1
        step[found] = 0
        found += 1
        while done < found:
            p = to[done]
            done += 1
            for j in range(begin[p], begin[p + 1]):
                q = edges[j, 1]
                if island[q] < 0 and is_link[j] and not is_missing[q]:
                    island[q] = n_islands
                    to[found] = q
                    origin[found] = p
                    step[found] = j
                    found += 1
            for j in range(begin_back[p], begin_back[p + 1]):
                e = back[j]
                q = edges[e, 0]
                if island[q] < 0 and is_link[e] and not is_missing[q]:
                    island[q] = n_islands
                    to[found] = q
                    origin[found] = p
                    step[found] = ~e
                    found += 1
        n_islands += 1
    return to[:found].copy(), origin[:found].copy(), step[:found].copy(), island


# -- phases ------------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def image_phase(ph):
    """Return the phase of samples in radians, nan where they are missing."""
    out = np.empty(len(ph), np.float64)
    for i in range(len(ph)):
        real, imag = np.float64(ph[i].real), np.float64(ph[i].imag)
        is_valid = TINY <= real * real + imag * imag < np.inf
        out[i] = np.arctan2(imag, real) if is_valid else np.nan
    return out


@njit(nogil=True, cache=True)
def pair_phase(ref, sec):
    """Return the phase of ref less that of sec in radians, nan where one of both is missing."""
    out = np.empty(len(ref), np.float64)
    for i in range(len(ref)):
        a, b = np.float64(ref[i].real), np.float64(ref[i].imag)
        c, d = np.float64(sec[i].real), np.float64(sec[i].imag)
        is_valid = TINY <= a * a + b * b < np.inf and TINY <= c * c + d * d < np.inf
        sine = b * c - a * d + 0.0  # never -0.0, so that half a cycle is pi and not -pi
        out[i] = np.arctan2(sine, a * c + b * d) if is_valid else np.nan
    return out


# -- residues and costs ------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def wrapped_cycles(phase, edges):
    """Return the cycles that bring the phase difference of each edge into [-pi, pi]."""
    cycles = np.empty(len(edges), np.int32)
    for e in range(len(edges)):
        cycles[e] = -np.int32(np.rint((phase[edges[e, 1]] - phase[edges[e, 0]]) / (2 * np.pi)))
    return cycles


@njit(nogil=True, cache=True)
def residues(signed_edge, cycles):
    """Return the sum of the cycles around each triangle."""
    out = np.empty(len(signed_edge) // 3, np.int32)
    for t in range(len(out)):
        total = np.int32(0)
        for h in range(3 * t, 3 * t + 3):
            e = signed_edge[h]
            total += cycles[e] if e >= 0 else -cycles[~e]
        out[t] = total
    return out


@njit(nogil=True, cache=True)
def arc_costs(signed_edge, twin, cost, earth_cost):
    """Return the cost of one cycle more along each half-edge, for edge costs ``(n_edges, 1 or 2)`` (up, down)."""
    n_half = len(signed_edge)
    down = cost.shape[1] - 1
    out = np.empty(len(twin), np.int32)
    for h in range(n_half):
        e = signed_edge[h]
        along, against = (cost[e, 0], cost[e, down]) if e >= 0 else (cost[~e, down], cost[~e, 0])
        if twin[h] >= n_half:
            along *= earth_cost
            out[twin[h]] = against * earth_cost
        out[h] = along
    return out


# -- minimum cost flow -------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def supplies(head, twin, residue, n_nodes):
    """Return the flow that must leave each node so that no triangle keeps a residue; 0 for the earth, which follows."""
    out = np.zeros(n_nodes, np.int32)
    for t in range(len(residue)):
        if residue[t]:
            out[head[twin[3 * t]]] -= residue[t]
    out[len(residue)] = 0
    return out


@njit(nogil=True, cache=True)
def push(heap_distance, heap_node, size, distance, node):
    """Put a node on a binary heap of `size` nodes."""
    i = size
    while i > 0:
        above = (i - 1) >> 1
        if heap_distance[above] <= distance:
            break
        heap_distance[i] = heap_distance[above]
        heap_node[i] = heap_node[above]
        i = above
    heap_distance[i] = distance
    heap_node[i] = node


@njit(nogil=True, cache=True)
def sift(heap_distance, heap_node, size):
    """Put the entry behind the end of a heap of `size` nodes in place of the first, which is taken off."""
    distance = heap_distance[size]
    node = heap_node[size]
    i = 0
    while True:
        below = 2 * i + 1
        if below >= size:
            break
        if below + 1 < size and heap_distance[below + 1] < heap_distance[below]:
            below += 1
        if heap_distance[below] >= distance:
            break
        heap_distance[i] = heap_distance[below]
        heap_node[i] = heap_node[below]
        i = below
    heap_distance[i] = distance
    heap_node[i] = node


@njit(nogil=True, cache=True)
def min_cost_flow(twin, head, start, arcs, cost, supply):
    """Return the flow along each half-edge at the least total cost, that cost, and potentials that prove it the least.

    The supplies are used up.

    Successive shortest paths: from one node after the other, Dijkstra's algorithm finds the nearest node of the
    opposite supply by reduced costs ``residual cost + potential[tail] - potential[head] >= 0``. These stay so when the
    potentials of the settled nodes change by what they are nearer than the end. Only the nodes that a search has
    touched are looked at again.

    The earth takes what comes, and at last gives what is missing: first the nodes of positive supply search along the
    arcs, then the negative ones that are left search against them. So no search ever goes on from the earth, which has
    more arcs than any other node.
    """
    n_nodes = len(supply)
    n_tri = n_nodes - len(start)
    flow = np.zeros(len(twin), np.int32)
    potential = np.zeros(n_nodes, np.int64)
    distance = np.full(n_nodes, FAR, np.int64)
    came_by = np.empty(n_nodes, np.int32)
    touched = np.empty(n_nodes, np.int32)
    settled = np.empty(n_nodes, np.int32)
    heap_distance = np.empty(len(twin) + 2, np.int64)
    heap_node = np.empty(len(twin) + 2, np.int32)
    total = np.int64(0)
    for sign in (1, -1):
        sources = np.flatnonzero(sign * supply > 0)
        for limit in (*ROUNDS, n_nodes + 1):
            for source in sources:
                while sign * supply[source] > 0:
                    distance[source] = 0
                    touched[0] = source
                    n_touched = 1
                    n_settled = 0
                    heap_distance[0] = 0
                    heap_node[0] = source
                    size = 1
                    end = -1
                    reach = np.int64(0)
                    while size > 0:
                        reach = heap_distance[0]
                        tail = heap_node[0]
                        size -= 1
                        sift(heap_distance, heap_node, size)
                        if reach > distance[tail]:
                            continue  # the node has come nearer since, and was settled
                        if tail == n_tri or sign * supply[tail] < 0:
                            end = tail
                            break
                        if n_settled == limit:
                            break
                        settled[n_settled] = tail
                        n_settled += 1
                        if tail < n_tri:
                            first, last = np.int64(3 * tail), np.int64(3 * tail + 3)
                        else:
                            first, last = start[tail - n_tri - 1], start[tail - n_tri]
                        base = reach + sign * potential[tail]
                        for i in range(first, last):
                            arc = i if tail < n_tri else np.int64(arcs[i])
                            way = arc if sign > 0 else np.int64(twin[arc])
                            node = head[arc]
                            there = base - sign * potential[node]
                            there += cost[way] if flow[way] >= 0 else -cost[twin[way]]
                            if there < distance[node]:
                                if distance[node] == FAR:
                                    touched[n_touched] = node
                                    n_touched += 1
                                distance[node] = there
                                came_by[node] = arc
                                push(heap_distance, heap_node, size, there, node)
                                size += 1
                    if end >= 0:
                        for i in range(n_settled):
                            potential[settled[i]] += sign * (distance[settled[i]] - reach)
                    for i in range(n_touched):
                        distance[touched[i]] = FAR
                    if end < 0:
                        break
                    node = end
                    while node != source:
                        arc = np.int64(came_by[node])
                        node = head[twin[arc]]
                        way = arc if sign > 0 else np.int64(twin[arc])
                        total += cost[way] if flow[way] >= 0 else -cost[twin[way]]
                        flow[way] += 1
                        flow[twin[way]] -= 1
                    supply[source] -= sign
                    if end != n_tri:
                        supply[end] += sign
    return flow, total, potential


@njit(nogil=True, cache=True)
def is_optimal(twin, head, cost, flow, potential):
    """Return whether no arc has a negative reduced cost: then no closed way of arcs would lower the total."""
    for h in range(len(twin)):
        back = twin[h]
        residual = np.int64(cost[h]) if flow[h] >= 0 else -np.int64(cost[back])
        if residual + potential[head[back]] - potential[head[h]] < 0:
            return False
    return True


# -- integration -------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def add_flow(signed_edge, twin, flow, cycles):
    """Add the flow of the half-edges to the cycles of their edges, in place."""
    for h in range(len(signed_edge)):
        if flow[h]:
            e = signed_edge[h]
            if e >= 0:
                cycles[e] += flow[h]
            elif twin[h] >= len(signed_edge):  # else the twin, which runs along the edge, has the same flow
                cycles[~e] -= flow[h]


@njit(nogil=True, cache=True)
def integrate(to, origin, step, cycles, n_vertices):
    """Return the sum of cycles along the steps of `spanning_forest`: 0 where an island begins, and where none leads."""
    out = np.zeros(n_vertices, np.int32)
    for i in range(len(to)):
        if origin[i] >= 0:
            e = step[i]
            out[to[i]] = out[origin[i]] + (cycles[e] if e >= 0 else -cycles[~e])
    return out
