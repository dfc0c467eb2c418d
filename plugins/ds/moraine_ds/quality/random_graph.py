"""How likely a random graph is connected: what tells pairs with coherence from noise."""

from __future__ import annotations

from functools import lru_cache
from math import exp, log

import numpy as np

ALPHA_RANGE = (1e-6, 0.5)
"""Probabilities of a connected graph that `edge_probability` takes."""


@lru_cache(maxsize=64)
def edge_probability(nimages: int, alpha: float) -> float:
    """Return the probability of an edge at which a random graph is connected with probability `alpha`.

    Every edge is there with that probability, each by itself (Gilbert, 1959).

    Parameters
    ----------
    nimages
        Number of nodes.
    alpha
        Probability of a connected graph, 1e-6 to 0.5.

    Returns
    -------
    float
        Probability, unitless, to 12 digits; 1 for fewer than two nodes.

    Raises
    ------
    ValueError
        `alpha` is outside its range.

    References
    ----------
    Gilbert, E. N. (1959): Random graphs. The Annals of Mathematical Statistics 30(4), 1141-1144.
    """
    if not ALPHA_RANGE[0] <= alpha <= ALPHA_RANGE[1]:
        msg = f"alpha is {alpha}; expected {ALPHA_RANGE[0]} to {ALPHA_RANGE[1]}"
        raise ValueError(msg)
    if nimages < 2:
        return 1.0
    # a connected graph holds one of the nimages**(nimages - 2) trees: alpha is at most what they add up to
    low, high = (log(alpha) - (nimages - 2) * log(nimages)) / (nimages - 1), 0.0
    while high - low > 1e-13:
        middle = (low + high) / 2
        if connection_probability(nimages, exp(middle)) < alpha:
            low = middle
        else:
            high = middle
    return exp(high)


def connection_probability(nimages: int, p: float) -> float:
    """Return the probability that a graph is connected whose edges are there with probability `p`.

    Nodes are explored one by one from the first: each finds every node that is not yet found with probability `p`. The
    graph is connected if found nodes never run out before all are found. Unlike Gilbert's recursion for the same
    number, ``C_m = 1 - sum_{k=1}^{m-1} binom(m-1, k-1) C_k (1-p)**(k (m-k))``, nothing is subtracted here, so that
    no digits are lost.

    Parameters
    ----------
    nimages
        Number of nodes, at least 1.
    p
        Probability, 0 to 1.

    Returns
    -------
    float
        Probability, unitless.
    """
    if p >= 1 or nimages == 1:
        return 1.0
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, nimages)))])
    before, after = np.tril_indices(nimages)  # nodes still to be found
    log_choose = log_factorial[before] - log_factorial[after] - log_factorial[before - after]
    step = np.zeros((nimages, nimages))
    log_step = log_choose + after * np.log1p(-p) + (before - after) * np.log(p)
    step[before, after] = np.where(log_step > -200, np.exp(log_step), 0)  # what is smaller adds nothing and is slow
    hidden = np.zeros(nimages)
    hidden[nimages - 1] = 1
    for left in range(nimages - 1, 0, -1):
        hidden = hidden[: left + 1] @ step[: left + 1, :left]  # with `left` still hidden, no found node is left
    return float(hidden[0])
