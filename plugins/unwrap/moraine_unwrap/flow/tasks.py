"""What tasks share and do around the array functions of unwrapping in space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_unwrap.flow import _cpu
from moraine_unwrap.flow.clouds import Cloud, cloud, pair_cycles
from moraine_unwrap.flow.kernels import Unwrapped, leveled
from moraine_unwrap.flow.networks import Network, along_curve, network, of_vertices
from moraine_unwrap.qualities import checked_qualities
from moraine_unwrap.triangulation.kernels import triangulate

if TYPE_CHECKING:
    from numpy.typing import NDArray


def shared_network(gix: NDArray[np.integer[Any]], *, spacing: tuple[float, float], name: str = "gix") -> Network:
    """Return the network of a point cloud, which all its pairs share.

    Points are triangulated in their order along a Hilbert curve, which is several times faster for millions of points
    in any other order.

    Parameters
    ----------
    gix
        Grid index (azimuth, range), ``(n_points, 2)``, in pixels.
    spacing
        Pixel spacing in azimuth and range, in meters.
    name
        What errors call `gix`.

    Returns
    -------
    Network
        The one of `moraine_unwrap.flow.networks.network`, with the point numbers of `gix`.
    """
    order = along_curve(gix * np.array(spacing))
    points = gix[order]
    net = network(points, triangulate(points, spacing, name=name, with_edges=False), spacing, is_sorted=True)
    vertex = np.empty_like(net.vertex)
    vertex[order] = net.vertex
    first = np.empty_like(net.points)
    first[vertex[::-1]] = np.arange(len(vertex) - 1, -1, -1)  # of points at one place the first is written last
    return net._replace(points=first, vertex=vertex)


def interferogram(ref: NDArray[np.complex64], sec: NDArray[np.complex64]) -> NDArray[np.float64]:
    """Return the wrapped phase of a pair of images.

    Parameters
    ----------
    ref, sec
        Two columns of a phase history, ``(n_points,)`` or ``(n_points, 1)``, of any modulus. A sample that is nan,
        infinite or of a modulus below 1e-30 is missing.

    Returns
    -------
    ndarray
        Phase of the first less that of the second, ``(n_points,)`` float64, in radians, in (-pi, pi]; nan where a
        sample is missing.

    Examples
    --------
    >>> interferogram(np.array([1j, 0], np.complex64), np.array([1, 1], np.complex64)).round(4).tolist()
    [1.5708, nan]
    """
    phase: NDArray[np.float64] = _cpu.pair_phase(ref.ravel(), sec.ravel())
    return phase


def shared_cloud(
    gix: NDArray[np.integer[Any]],
    *qualities: NDArray[Any],
    spacing: tuple[float, float],
    spatial_cost: str,
    names: tuple[str, ...],
) -> Cloud:
    """Return a cloud, which all its pairs share.

    Parameters
    ----------
    gix
        Grid index (azimuth, range), ``(n_points, 2)``, in pixels.
    *qualities
        As in `moraine_unwrap.qualities.checked_qualities`.
    spacing
        Pixel spacing in azimuth and range, in meters.
    spatial_cost
        "statistical", "length" or "constant".
    names
        What errors call `gix` and the qualities.

    Raises
    ------
    ValueError
        The points cannot be triangulated, or a variance is 0 or less.
    """
    weight, variance = checked_qualities(qualities, names[1:])
    net = shared_network(gix, spacing=spacing, name=names[0])
    return cloud(net, gix, spacing, spatial_cost, weight=weight, variance=variance)


def unwrap_pair(
    ref: NDArray[np.complex64],
    sec: NDArray[np.complex64],
    *,
    cloud: Cloud,
    earth_cost: int,
    ref_point: int,
    with_island: bool,
) -> tuple[Any, ...]:
    """Unwrap one pair of images.

    Parameters
    ----------
    ref, sec
        As in `interferogram`.
    cloud
        The cloud of the points.
    earth_cost
        Factor for the edges of the hull, unitless.
    ref_point
        Point that keeps its wrapped phase; if it is missing, the first point that is not.
    with_island
        Whether islands are returned, too.

    Returns
    -------
    unw_ph : ndarray
        Unwrapped phase, ``(n_points, 1)`` float32, in radians; nan where it is missing.
    island : ndarray
        Number of the island of every point, ``(n_points, 1)`` int32, -1 where it is missing.
    facts : tuple of int
        Cost of the cycles on edges, number of islands, and number of points that are not missing.

    Raises
    ------
    ArithmeticError
        The solution is not proven to be the cheapest.
    """
    net = cloud.net
    wrapped = interferogram(ref, sec)
    found = pair_cycles(cloud, of_vertices(net, wrapped, "ph"), earth_cost)
    out = leveled(net, wrapped, found.cycles, found.island, found.cost, ref_point)
    return results_of(out, with_island=with_island)


def results_of(out: Unwrapped, *, with_island: bool) -> tuple[Any, ...]:
    """Return an unwrapped pair as columns, and what is noted of it: the results of `unwrap_pair`."""
    facts = out.cost, int(out.island.max(initial=-1)) + 1, int(np.count_nonzero(out.island >= 0))
    islands = [out.island[:, None]] if with_island else []
    return out.phase.astype(np.float32)[:, None], *islands, facts
