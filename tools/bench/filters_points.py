"""The learned filter on point clouds against Gaussian-weighted means of neighbors, on simulated clouds."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

from measure import Row, in_turn, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np

    Array = np.ndarray[Any, Any]

SIDE = 96
"""Pixels of the square that points lie in."""
N_POINTS = 4096
N_PAIRS = 4
FIRST_SEED = 70_000
"""Training uses small seeds; others were looked at while the network was designed."""
NEIGHBORS = 256
"""Nearest points of which means are taken."""
BANDWIDTHS = (0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.6)
"""Of the Gaussian, in units of the median distance to the nearest point, or of that to the tenth nearest over 1.8."""


def rows(model: str, seeds: int) -> Iterator[Row]:
    """Measure n2ft with a file of weights on some sets of scenes."""
    yield from accuracy(model, seeds)
    yield from seams(model)
    yield from throughput(model)


def cloud_and_scene(kind: str, seed: int, coh: float) -> tuple[Array, Array, Array]:
    """Return points (n, 2), interferograms of one clean phase (n, pairs), and that phase (n)."""
    import numpy as np
    import torch
    from training import clouds, scenes

    gen = torch.Generator().manual_seed(seed)
    contrast = 0.0 if seed % 2 else 1.0  # evenly spread, and in clusters
    density = torch.exp(contrast * scenes.fractal(1, SIDE, 3, gen)).flatten()
    cell = torch.multinomial(density, N_POINTS, replacement=True, generator=gen)
    xy = torch.stack([cell % SIDE, cell // SIDE], -1) + scenes.uniform((N_POINTS, 2), -0.5, 0.5, gen)
    xy = xy.clamp(0, SIDE - 1)
    phase = clouds.at_points(scenes.clean_phase(kind, 1, SIDE, gen), (xy / (SIDE - 1) * 2 - 1)[None])[0].numpy()
    rng = np.random.default_rng(seed)
    common, own = (rng.normal(size=(N_POINTS, N_PAIRS, 2)) @ [1, 1j] for _ in range(2))
    z = common * (coh * common + np.sqrt(1 - coh**2) * own).conj() * np.exp(1j * phase)[:, None]
    return xy.numpy().astype(float), z.astype(np.complex64), phase


def accuracy(model: str, seeds: int) -> Iterator[Row]:
    """Compare errors by coherence with the mean of least error over all scenes, and by kind with the one of each kind.

    The second is a peer that nobody has: its bandwidth is chosen for the kind of scene and the coherence, by the truth.
    """
    from training import scenes

    for coh, bar in ((0.3, 1.0), (0.5, 0.9), (0.7, 1.0)):
        ours: dict[str, list[float]] = {kind: [] for kind in scenes.KINDS}
        peers: dict[str, dict[str, list[float]]] = {}
        for kind in scenes.KINDS:
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                xy, z, phase = cloud_and_scene(kind, seed, coh)
                ours[kind].append(error(n2ft(xy, z, model), phase))
                for name, mean in means(xy, z):
                    peers.setdefault(name, {}).setdefault(kind, []).append(error(mean, phase))
        pooled = {name: rms_of(by_kind.values()) for name, by_kind in peers.items()}
        best = min(pooled, key=pooled.__getitem__)
        words = f"phase error of n2ft, all scenes, coherence {coh}, against {best}"
        yield Row(words, [rms_of(ours.values())], [pooled[best]], "rad", bar)
        for kind in scenes.KINDS:
            best = min(peers, key=lambda name, kind=kind: rms_of([peers[name][kind]]))  # type: ignore[misc]
            words = f"phase error of n2ft, {kind}, coherence {coh}, against {best}"
            yield Row(words, ours[kind], peers[best][kind], "rad")


def rms_of(errors: Iterable[list[float]]) -> float:
    """Return the root mean square over scenes of equal size."""
    squares = [error * error for row in errors for error in row]
    return (sum(squares) / len(squares)) ** 0.5


def n2ft(xy: Array, z: Array, model: str) -> Array:
    """Return interferograms (n, pairs) filtered by the package, as pairs of a real image and themselves."""
    import numpy as np

    from moraine_filter.points import tasks
    from moraine_filter.points.network import graphs_of
    from moraine_filter.points.structure import cloud_of, structure_of

    cloud = cloud_of(*xy.T)
    parts = structure_of(cloud, np.arange(len(xy)))
    samples = np.column_stack([z, np.ones(len(xy), z.dtype)])[cloud.order[parts[0].members]]
    pairs = np.column_stack([np.arange(z.shape[1]), np.full(z.shape[1], z.shape[1])])
    values = tasks.filtered(tasks.network(model, "cpu"), graphs_of(parts), samples, pairs)
    out = np.empty_like(z)
    out[cloud.order] = values @ np.array([1, 1j], np.complex64)
    return out


def means(xy: Array, z: Array) -> Iterator[tuple[str, Array]]:
    """Yield Gaussian-weighted means of the nearest points by name: of samples and of phasors, of all bandwidths."""
    import numpy as np
    from scipy.spatial import cKDTree

    distance, near = cKDTree(xy).query(xy, NEIGHBORS)
    for of, values in (("samples", z), ("phasors", z / np.maximum(np.abs(z), np.float32(1e-30)))):
        gathered = values[near]
        for spread, unit in (("", np.median(distance[:, 1])), ("local ", distance[:, 10:11] / 1.8)):
            for width in BANDWIDTHS:
                weights = np.exp(-0.5 * (distance / (width * unit)) ** 2).astype(np.float32)
                yield f"a mean of {of}, {spread}bandwidth {width}", np.einsum("nk,nkp->np", weights, gathered)


def error(z: Array, phase: Array) -> float:
    """Return the root mean square error of the phase of interferograms, radians."""
    import numpy as np

    return float(np.sqrt(np.mean(np.angle(z * np.exp(-1j * phase)[:, None]) ** 2)))


def seams(model: str) -> Iterator[Row]:
    """Compare the command in small chunks with the whole cloud at once."""
    import numpy as np

    from moraine_core.testing.data import read_array, write_array
    from moraine_filter.n2ft import n2ft as command

    xy, z, _ = cloud_and_scene("mix", FIRST_SEED, 0.5)
    with tempfile.TemporaryDirectory(prefix="moraine-bench-") as name:
        call = {
            "x": write_array(f"{name}/x.zarr", xy[:, 0]),
            "y": write_array(f"{name}/y.zarr", xy[:, 1]),
            "rslc": write_array(f"{name}/rslc.zarr", z),
            "model": model,
        }
        found = []
        for chunk in (N_POINTS, N_POINTS // 8):
            out = f"{name}/{chunk}.zarr"
            command(**call, intf=out, chunks=chunk, out_chunks=chunk)
            found.append(read_array(out))
    off = float(np.abs(np.angle(found[0] * found[1].conj())).max())
    yield Row("largest difference of n2ft in chunks from the whole cloud", [off], [], "rad", 1e-4)


def throughput(model: str) -> Iterator[Row]:
    """Compare the time of a cloud with that of one mean of the neighbors, both on one core."""
    xy, z, _ = cloud_and_scene("mix", FIRST_SEED, 0.5)
    times = in_turn(lambda: seconds(lambda: n2ft(xy, z, model)), lambda: seconds(lambda: next(means(xy, z))), 3)
    words = f"n2ft of {N_POINTS} points x {N_PAIRS}, one core, against one mean of {NEIGHBORS} neighbors"
    yield Row(words, *times, "s")
