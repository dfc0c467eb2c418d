"""Array functions: whole cycles that make the loops of a network of pairs close, at the least cost.

Every pair (a, b) of a network comes with a whole number of cycles m. If they were all right, one number n for each
image would explain them, ``m = n[b] - n[a]``. Where loops do not close some are wrong, and the fewest and smallest
corrections ``z = m + n[a] - n[b]`` are the best guess: those that minimize the sum of ``cost |z|`` (Costantini, 1998).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from moraine_unwrap.pair_fit import _cpu

if TYPE_CHECKING:
    from numpy.typing import NDArray

Int32: TypeAlias = "NDArray[np.int32]"
Int64: TypeAlias = "NDArray[np.int64]"
Bool: TypeAlias = "NDArray[np.bool_]"

MISSING = int(_cpu.MISSING)
"""Cycles of a pair that says nothing in a row: it constrains no image, and its z is 0."""

MOST_CYCLES = 2**20
"""Most cycles of a pair, so that no sum overflows."""

MOST_COST = 2**31 - 1
"""Largest cost of a pair: costs are int32."""


class PairGraph(NamedTuple):
    """A network of pairs, prepared for fits. All arrays are int32, unitless.

    A pair k stands in `earlier` and `arcs` as k for the way from its first image to its second, and as ``~k`` for the
    way back.
    """

    pairs: Int32
    """Images of every pair, ``(K, 2)``."""
    nimages: int
    """Number of images."""
    n_loops: int
    """Number of independent loops: 0 where nothing can be off."""
    order: Int32
    """Images in the order in which cycles are summed, ``(nimages,)``: next is the one with the most pairs before it."""
    earlier_start: Int32
    """First row in `earlier` of every place of `order`, and the end, ``(nimages + 1,)``."""
    earlier: Int32
    """Pairs that lead to an image from those before it, ``(K,)``."""
    origin: Int32
    """Where each of `earlier` begins, ``(K,)``."""
    arc_start: Int32
    """First row in `arcs` of every image, and the end, ``(nimages + 1,)``."""
    arcs: Int32
    """Pairs that lead out of every image, ``(2K,)``."""
    arc_end: Int32
    """Where each of `arcs` leads, ``(2K,)``."""
    reverse: Int32
    """Row in `arcs` of the same way back, ``(2K,)``."""


def pair_graph(image_pairs: NDArray[Any], nimages: int) -> PairGraph:
    """Prepare a network of pairs for fits.

    Parameters
    ----------
    image_pairs
        Images of every pair, ``(K, 2)`` integer, unitless: in any order and direction, also several times the same, and
        in parts that are not connected.
    nimages
        Number of images.

    Returns
    -------
    PairGraph
        A few small arrays.

    Raises
    ------
    ValueError
        A pair is made of one image, or names one that is not there.

    Examples
    --------
    >>> pair_graph(np.array([[0, 1], [1, 2], [0, 2]]), 3).n_loops
    1
    """
    pairs = np.asarray(image_pairs, np.int32).reshape(-1, 2)
    wrong = (pairs[:, 0] == pairs[:, 1]) | (pairs < 0).any(axis=1) | (pairs >= nimages).any(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"pair {row} is ({pairs[row, 0]}, {pairs[row, 1]}); expected two different images of 0 to {nimages - 1}"
        )
    links: list[list[tuple[int, int]]] = [[] for _ in range(nimages)]
    for k, (a, b) in enumerate(pairs.tolist()):
        links[a].append((k, b))
        links[b].append((~k, a))
    order, n_parts = _order(links)
    place = {image: p for p, image in enumerate(order)}
    earlier = [[(~code, other) for code, other in links[image] if place[other] < p] for p, image in enumerate(order)]
    row_of = {code: row for row, code in enumerate(code for leaving in links for code, _ in leaving)}
    return PairGraph(
        pairs=pairs,
        nimages=nimages,
        n_loops=len(pairs) - nimages + n_parts,
        order=_int32(order),
        earlier_start=_starts(earlier),
        earlier=_int32(code for arriving in earlier for code, _ in arriving),
        origin=_int32(other for arriving in earlier for _, other in arriving),
        arc_start=_starts(links),
        arcs=_int32(row_of),
        arc_end=_int32(other for leaving in links for _, other in leaving),
        reverse=_int32(row_of[~code] for code in row_of),
    )


def fit(
    graph: PairGraph, cycles: NDArray[Any], costs: NDArray[Any] | None = None, is_missing: Bool | None = None
) -> Int32:
    """Return what pairs are off in the best fit: for each row ``z = m + n[a] - n[b]`` of least ``sum(cost |z|)``.

    Subtracted from the cycles, z makes every loop close. Exact, whatever the network: a start by majority, then the
    flow through the network that proves a fit to be the best (successive shortest paths; Ahuja et al., 1993, chapter
    9). Of several best fits it returns the one in which the first pair is off the least, then the second, and so on:
    there is exactly one. A row with nothing to correct costs no more than a look at it.

    Parameters
    ----------
    graph
        What `pair_graph` returns for the network, of K pairs.
    cycles
        Cycles of the pairs in every row, ``(n, K)`` integer, up to `MOST_CYCLES`; `MISSING` for none.
    costs
        What one cycle off costs, ``(K,)`` integer, unitless, from 1 on; 1 by default.
    is_missing
        True where an image is missing, ``(n, nimages)`` bool; its pairs are missing too.

    Returns
    -------
    ndarray
        z, ``(n, K)`` int32, in cycles; 0 for missing pairs.

    Raises
    ------
    ValueError
        A shape is another one, or cycles or costs are out of their range.

    References
    ----------
    Ahuja, R. K., Magnanti, T. L., Orlin, J. B. (1993): Network Flows. Costantini, M. (1998): A novel phase unwrapping
    method based on network programming. IEEE TGRS 36(3), 813-821.

    Examples
    --------
    >>> graph = pair_graph(np.array([[0, 1], [1, 2], [0, 2]]), 3)
    >>> fit(graph, np.array([[0, 1, 1], [1, 0, 0]])).tolist()
    [[0, 0, 0], [0, 0, -1]]
    """
    values, of_pairs, absent = _checked(graph, cycles, costs, is_missing)
    z = np.zeros(values.shape, np.int32)
    _cpu.fit_rows(graph, values, of_pairs, absent, z)
    return z


def image_cycles(
    graph: PairGraph, cycles: NDArray[Any], costs: NDArray[Any] | None = None, is_missing: Bool | None = None
) -> Int32:
    """Return the cycles n of the images in the best fit; see `fit` for what it is, and for errors.

    Parameters
    ----------
    graph, cycles, costs, is_missing
        As in `fit`.

    Returns
    -------
    ndarray
        Cycles, ``(n, nimages)`` int32: ``m = n[b] - n[a]`` for all pairs that are not off. In every part of the network
        that the pairs which are not missing connect, the first image has 0.

    Examples
    --------
    >>> graph = pair_graph(np.array([[0, 1], [1, 2], [0, 2]]), 3)
    >>> image_cycles(graph, np.array([[0, 1, 1]])).tolist()
    [[0, 0, 1]]
    """
    values, of_pairs, absent = _checked(graph, cycles, costs, is_missing)
    n = np.zeros((len(values), graph.nimages), np.int32)
    _cpu.image_rows(graph, values, of_pairs, absent, n)
    return n


def _checked(
    graph: PairGraph, cycles: NDArray[Any], costs: NDArray[Any] | None, is_missing: Bool | None
) -> tuple[Int32, Int64, Bool]:
    n_pairs = len(graph.pairs)
    values = np.asarray(cycles)
    if values.ndim != 2 or values.shape[1] != n_pairs or values.dtype.kind not in "iu":
        raise ValueError(f"cycles are {values.dtype} {values.shape}; expected integers of shape (n, {n_pairs})")
    if values.size and (values.max() > MOST_CYCLES or values.min() < -MOST_CYCLES):
        is_wrong = (values > MOST_CYCLES) | ((values < -MOST_CYCLES) & (values != MISSING))
        if is_wrong.any():
            row, k = np.argwhere(is_wrong)[0]
            raise ValueError(
                f"row {row} has {values[row, k]} cycles for pair {k}; expected at most {MOST_CYCLES} either way"
            )
    prices = np.ones(n_pairs, np.int64) if costs is None else np.asarray(costs)
    if prices.shape != (n_pairs,) or prices.dtype.kind not in "iu":
        raise ValueError(f"costs are {prices.dtype} {prices.shape}; expected integers of shape ({n_pairs},)")
    if n_pairs and not 1 <= prices.min() <= prices.max() <= MOST_COST:
        raise ValueError(f"costs are {prices.min()} to {prices.max()}; expected 1 to {MOST_COST}")
    absent = np.empty((0, graph.nimages), np.bool_) if is_missing is None else is_missing
    if is_missing is not None and absent.shape != (len(values), graph.nimages):
        raise ValueError(f"is_missing has shape {absent.shape}; expected ({len(values)}, {graph.nimages})")
    return values.astype(np.int32, copy=False), prices.astype(np.int64, copy=False), absent


def _order(links: list[list[tuple[int, int]]]) -> tuple[list[int], int]:
    """Images so that each has as many pairs with those before it as possible, and the number of connected parts."""
    n_before = [0] * len(links)
    left = set(range(len(links)))
    order: list[int] = []
    n_parts = 0
    while left:
        image = max(left, key=lambda i: (n_before[i], -i))
        n_parts += not n_before[image]
        left.remove(image)
        order.append(image)
        for _, other in links[image]:
            n_before[other] += 1
    return order, n_parts


def _starts(lists: list[list[tuple[int, int]]]) -> Int32:
    return np.cumsum([0, *map(len, lists)], dtype=np.int32)


def _int32(values: Any) -> Int32:
    return np.fromiter(values, np.int32)
