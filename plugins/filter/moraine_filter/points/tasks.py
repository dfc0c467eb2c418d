"""What the tasks of n2ft call: the cloud is prepared once, then blocks of points are filtered in all their pairs."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from moraine_core import store
from moraine_core.device import array_module
from moraine_filter.loading import loaded
from moraine_filter.points import _cpu, limits
from moraine_filter.points.network import PointNet, graphs_of
from moraine_filter.points.structure import Cloud, cloud_of, structure_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from moraine_core import Chunk
    from moraine_filter.points.network import Graph
    from moraine_filter.points.structure import Part, Rows

    Samples = NDArray[np.complex64]


def cloud(x: NDArray[Any], y: NDArray[Any]) -> Cloud:
    """Return a cloud, ready to be asked for neighbors; see `cloud_of`."""
    return cloud_of(x, y)


def filter_block(
    points: Any,
    *,
    rslc: Chunk,
    columns: tuple[int, int],
    at_once: int,
    model: str,
    with_trust: bool,
    cloud: Cloud,
    image_pairs: Sequence[Sequence[int]],
) -> tuple[NDArray[Any], ...]:
    """Return filtered interferograms of a block of points.

    Parameters
    ----------
    points
        First and last (exclusive) point; on a GPU where the network shall run there.
    rslc
        The whole stack, complex64 ``(n_points, nimages)``, of which this reads what results depend on.
    columns
        First and last (exclusive) pair.
    at_once
        Points that are worked on together.
    model
        Path of the weights.
    with_trust
        Return the modulus too.
    cloud
        All points.
    image_pairs
        Reference and secondary image of all pairs.

    Returns
    -------
    intf : ndarray
        Phasors of modulus 1, complex64 ``(points, pairs)``; nan where a sample or a coordinate is missing.
    trust : ndarray
        Their modulus before it was made 1, 0 to 1, float32, the same shape; only `with_trust`.
    """
    torch.set_num_threads(1)  # all parallelism is the executor's
    device = "cuda" if array_module(points).__name__ == "cupy" else "cpu"
    net = network(model, device)
    start, stop = (int(bound) for bound in points)
    images, pairs = np.unique(np.array(image_pairs[slice(*columns)], np.int64), return_inverse=True)
    pairs = pairs.reshape(-1, 2)
    intf = np.full((stop - start, len(pairs)), np.nan + 1j * np.nan, np.complex64)
    trust = np.full(intf.shape if with_trust else (0, 0), np.nan, np.float32)
    ranks = np.sort(cloud.rank[start:stop])
    for tile, parts in tiles(cloud, ranks[ranks >= 0].astype(np.int64), at_once):
        samples = read_samples(rslc, cloud.order[parts[0].members], images)
        graphs, rows = graphs_of(parts, device), cloud.order[tile] - start
        size = limits.batch_of(len(samples))
        for first in range(0, len(pairs), size):
            some = slice(first, first + size)
            values = filtered(net, graphs, samples, pairs[some], device)
            _cpu.write_results(values, samples, pairs[some], rows, intf[:, some], trust[:, some])
    return (intf, trust) if with_trust else (intf,)


@lru_cache(maxsize=2)
def network(model: str, device: str) -> PointNet:
    """Return the network with the weights of a file, on a device."""
    return loaded(PointNet(), "n2ft", model, device)


def tiles(cloud: Cloud, ranks: Rows, at_once: int) -> Iterator[tuple[Rows, list[Part]]]:
    """Yield points that are worked on together, and what their results depend on.

    Parameters
    ----------
    cloud
        All points.
    ranks
        Ranks of the points, ascending.
    at_once
        Most points of a tile; it has fewer where its results depend on too many.
    """
    count = -(-len(ranks) // at_once)
    waiting = [ranks[len(ranks) * k // count : len(ranks) * (k + 1) // count] for k in reversed(range(count))]
    while waiting:
        tile = waiting.pop()
        parts = structure_of(cloud, tile)
        if len(parts[0].members) > limits.most_members(at_once) and len(tile) > 1:
            del parts
            waiting += [tile[len(tile) // 2 :], tile[: len(tile) // 2]]
        else:
            yield tile, parts


def read_samples(rslc: Chunk, points: NDArray[np.integer[Any]], images: NDArray[np.integer[Any]]) -> Samples:
    """Return samples of a stack at some points and images, complex64 ``(points, images)``.

    Parameters
    ----------
    rslc
        The whole stack.
    points, images
        Numbers of points, in any order, and of images, ascending.
    """
    array = store.open_array(rslc.path)
    (n_points, _), (high, wide) = array.shape, array.chunks
    window = -(-limits.WINDOW // high) * high
    order = np.argsort(points, kind="stable")
    ascending = points[order]
    out = np.empty((len(points), len(images)), np.complex64)
    for start in range(0, n_points, window):
        here = slice(*np.searchsorted(ascending, (start, start + window)))
        if here.start == here.stop:
            continue
        # from the first chunk that is needed to the last
        low = int(ascending[here.start]) // high * high
        stop = min((int(ascending[here.stop - 1]) // high + 1) * high, n_points)
        rows = ascending[here] - low
        for left in np.unique(images // wide) * wide:
            columns = np.flatnonzero(images // wide * wide == left)
            block = slice(low, stop), slice(int(images[columns[0]]), int(images[columns[-1]]) + 1)
            values = store.parallel_read_zarr(array, block)
            for column in columns:
                out[order[here], column] = values[rows, images[column] - images[columns[0]]]
    return out


@torch.inference_mode()
def filtered(
    net: PointNet, graphs: Sequence[Graph], samples: Samples, pairs: NDArray[np.int64], device: str = "cpu"
) -> NDArray[np.float32]:
    """Return what the network makes of interferograms.

    Parameters
    ----------
    net, graphs
        The network, and the structure of the points, both on the device.
    samples
        Images at the members of level 0, complex64 ``(n, images)``.
    pairs
        Reference and secondary image of each interferogram, as columns of the samples.
    device
        Where the network is.

    Returns
    -------
    ndarray
        float32 ``(n_points, n_pairs, 2)``.
    """
    values = np.empty((len(samples), len(pairs), 3), np.float32)
    _cpu.interferograms(samples, pairs, values)
    out: NDArray[np.float32] = net(torch.from_numpy(values).to(device), graphs).cpu().numpy()
    return out
