"""Costs of whole cycles on the edges of a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from moraine_unwrap.flow.networks import of_vertices
from moraine_unwrap.flow.slopes import _cpu as slopes

if TYPE_CHECKING:
    from moraine_unwrap.flow.networks import Float64, Int32, Network

LENGTH_STEPS = 99
"""Costs by length or weight are whole numbers from 1 to one more than this."""

LIKELIHOOD_UNIT = 100.0
"""Statistical cost of a cycle on an edge that fits its surroundings and has a variance of 1 rad^2."""

LEAST_PRECISION = 0.01
"""Least weight of a point, of whatever variance, in the search for the slope, unitless."""


def edge_costs(net: Network, spatial_cost: str = "constant", weight: Float64 | None = None) -> Int32:
    """Costs of edges that do not depend on the phase.

    ``1 + round(99 a b)`` with ``a = min(median length / length, 1)`` for `spatial_cost` "length", else 1, and b the
    smaller weight of both ends, 1 without weights. Without length and weight all costs are 1. On long edges and at bad
    points cycles are cheap, so the discontinuities go there.

    Parameters
    ----------
    net
        A network.
    spatial_cost
        "constant" or "length".
    weight
        Quality of every point, ``(n_points,)``, unitless; taken as 0 below 0 and where it is nan, and as 1 above 1.

    Returns
    -------
    ndarray
        Cost of one cycle on every edge in the order of ``net.edges``, ``(E, 1)`` int32, unitless, 1 to 100.

    Raises
    ------
    ValueError
        If `spatial_cost` is neither, or the weights are not one for each point.

    Examples
    --------
    >>> from moraine_unwrap.flow.networks import network
    >>> from moraine_unwrap.triangulation.kernels import triangulate
    >>> points = np.array([[0, 0], [0, 10], [0, 20], [0, 60]])
    >>> net = network(points, triangulate(points))
    >>> edge_costs(net, "length").ravel().tolist()
    [100, 100, 26]
    """
    if spatial_cost not in ("constant", "length"):
        raise ValueError(f"spatial_cost is {spatial_cost!r}; expected 'constant' or 'length'")
    quality = _quality(net, weight)
    factor = np.minimum(quality[net.edges[:, 0]], quality[net.edges[:, 1]])
    if spatial_cost == "length":
        step = net.position[net.edges[:, 1]] - net.position[net.edges[:, 0]]
        length = np.sqrt(step[:, 0] ** 2 + step[:, 1] ** 2)
        factor = factor * np.minimum(np.median(length) / length, 1) if length.size else factor
    elif weight is None:
        return np.ones((len(net.edges), 1), np.int32)
    costs: Int32 = (1 + np.rint(LENGTH_STEPS * factor)).astype(np.int32)
    return costs[:, None]


def statistical_costs(
    net: Network, phase: Float64, variance: Float64 | None = None, weight: Float64 | None = None
) -> tuple[Int32, Int32]:
    """Cycles and costs of edges from the local statistics of the phase.

    The phase difference along an edge is the local slope times the edge plus normal noise of variance v. Of all numbers
    of cycles the one that leaves the smallest rest r, in [-pi, pi], is the most likely. With one cycle more or less the
    negative logarithm of the likelihood is larger by ``((r +- 2 pi)**2 - r**2) / (2 v) = 2 pi (pi +- r) / v``. That is
    the cost, in whole numbers: ``1 + round(100 w (pi +- r) / (pi v))``, where w is the smaller weight of both ends. So
    a cycle is cheap where the difference is nearly half a cycle off the slope, and where noise is strong; and
    differences of more than half a cycle are right where the neighborhood shows them.

    The slope of a cell of 32 vertices is the one, of all below half a cycle per typical edge length, with the largest
    sum of ``cos(difference - slope * edge)`` over its edges and those of 1 to 8 cells before and behind: the fewest for
    which the sum exceeds five standard deviations of pure noise; 0 if it never does. On a raster it is at most half a
    cycle per pixel, since larger ones look the same. A slope holds for edges up to
    twice the typical length, and less and less up to four times, for its error grows along the way.

    The variance v is the sum of the given ones of both ends, and of what the cell shows beyond them:
    ``-2 ln(mean cos(r) / mean exp(-v / 2))``.

    Parameters
    ----------
    net
        A network; missing vertices are already taken out.
    phase
        Wrapped phase of every vertex, ``(V,)`` float64, in radians; of missing ones anything.
    variance
        Variance of the phase noise of every point, ``(n_points,)``, in rad^2, above 0.
    weight
        As in `edge_costs`.

    Returns
    -------
    cycles
        Cycles to add to the phase difference of every edge, ``(E,)`` int32.
    costs
        Costs of one cycle more and one less, ``(E, 2)`` int32, unitless.

    Raises
    ------
    ValueError
        If variances or weights are not one for each point, or a variance is not above 0.

    References
    ----------
    Chen, C. W., Zebker, H. A. (2001): Two-dimensional phase unwrapping with use of statistical models for cost
    functions in nonlinear optimization. JOSA A 18(2), 338-351. Spagnolini, U. (1995): 2-D phase unwrapping and
    instantaneous frequency estimation. IEEE TGRS 33(3), 579-589.
    """
    is_valid = net.island >= 0
    known = np.where(is_valid, phase, 0.0)
    precision = is_valid.astype(np.float32)
    noise = np.zeros(len(known))
    if variance is not None:
        noise = of_vertices(net, variance, "variance")
        is_wrong = is_valid & ~(noise > 0)
        if is_wrong.any():
            v = int(is_wrong.argmax())
            raise ValueError(f"variance of point {net.points[v]} is {noise[v]} rad^2; expected more than 0")
        noise = np.where(is_valid, noise, 0.0)
        precision *= np.maximum(np.exp(-noise / 2), LEAST_PRECISION).astype(np.float32)
    walk = slopes.lattice()
    score, squares = slopes.scores(net.position, net.edges, known, precision, net.cell_start, net.cell_scale, walk)
    slope = slopes.best_slopes(score, squares, net.cell_scale, walk, *net.most_slope)
    cycles, rest = slopes.residual_phases(net.position, net.edges, known, slope, net.cell_scale)
    local = slopes.local_variances(net.position, net.edges, rest, precision, net.cell_start, net.cell_scale)
    quality = _quality(net, weight)
    return cycles, slopes.likelihood_costs(net.edges, rest, local, noise, quality, LIKELIHOOD_UNIT)


def _quality(net: Network, weight: Float64 | None) -> Float64:
    """Weight of every vertex, in [0, 1]; 1 without weights."""
    if weight is None:
        return np.ones(len(net.points))
    return np.clip(np.nan_to_num(of_vertices(net, weight, "weight"), nan=0.0), 0.0, 1.0)
