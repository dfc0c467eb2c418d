"""What mcf-pc, emcf-pc and the closure correction get wrong in scenes whose truth is known."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from measure import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from unwrap_scenes import Scene

THREADS = 2
CHUNK = 10_000
"""Points of a chunk of the data of commands."""

COSTS = ("constant", "length", "statistical")
BARS = {
    ("A", "mcf"): 1.54,
    ("A", "emcf"): 0.81,
    ("A", "emcf + closure"): 0.41,
    ("C, noise of 0.7 rad", "mcf"): 0.53,
    ("C, noise of 0.7 rad", "emcf"): 0.10,
}
"""Published medians of wrong cycles in scenes of these descriptions, in percent."""


def scenes() -> dict[str, Callable[[int], Scene]]:
    """Return the makers of the scenes; each takes the seed."""
    from unwrap_scenes import clusters, grid, islands

    found: dict[str, Callable[[int], Scene]] = {"A": clusters, "B": islands}
    for noise in (0.0, 0.5, 0.7, 0.8, 1.0):
        found[f"C, noise of {noise} rad"] = lambda seed, noise=noise: grid(noise, seed)
    return found


def rows(folder: Path, realizations: int, *, all_costs: bool = False) -> Iterator[Row]:
    """Measure with the default spatial cost, or with all of them. No step may do worse than mcf-pc alone."""
    for scene, make in scenes().items():
        wrong: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for seed in range(realizations):
            for key, shares in wrong_shares(folder, make(seed), COSTS if all_costs else ("",)).items():
                wrong.setdefault(key, []).append(shares)
        for (step, cost), found in wrong.items():
            cycles, edges = ([100 * share for share in column] for column in zip(*found, strict=True))
            alone = median(100 * share for share, _ in wrong["mcf", cost])
            bar = BARS.get((scene, step), alone)
            more = f"at most {max(cycles):.2g} %; wrong edges {median(edges):.2g} %"
            words = f"wrong cycles in scene {scene}: {' '.join(filter(None, (step, cost)))} ({more})"
            yield Row(words, cycles, (), "%", bar if step == "mcf" else min(bar, alone))


def wrong_shares(folder: Path, scene: Scene, costs: tuple[str, ...]) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the shares of wrong cycles and of wrong edges, of every step and spatial cost; "" is the default."""
    import numpy as np
    from unwrap_scenes import wrong_cycles, wrong_edges

    from moraine_core import Workers
    from moraine_core.testing.data import read_array
    from moraine_unwrap.emcf_pc import emcf_pc
    from moraine_unwrap.mcf_pc import mcf_pc
    from moraine_unwrap.triangulation.kernels import triangulate
    from moraine_unwrap.unwrap_correct_closure_pc import unwrap_correct_closure_pc

    arguments = written(folder, scene)
    edges = triangulate(scene.gix).edges
    workers = Workers(n_workers=THREADS)
    unw, ts = str(folder / "unw.zarr"), str(folder / "ts.zarr")

    def shares(pairs: Any) -> tuple[float, float]:
        return wrong_cycles(scene, pairs), wrong_edges(scene, pairs, edges)

    found = {}
    for cost in costs:
        kind = {"spatial_cost": cost} if cost else {}
        for step, command in (("mcf", mcf_pc), ("emcf", emcf_pc)):
            command(**arguments, **kind, unw_ph=unw, ref_point=scene.reference, workers=workers)
            found[step, cost] = shares(read_array(unw).astype(np.float64))
            unwrap_correct_closure_pc(**arguments, unw_ph=unw, ts=ts, workers=workers)
            images = read_array(ts).astype(np.float64)
            corrected = images[:, scene.pairs[:, 0]] - images[:, scene.pairs[:, 1]]
            found[f"{step} + closure", cost] = shares(corrected)
    return found


def written(folder: Path, scene: Scene) -> dict[str, Any]:
    """Write a scene for the commands and return the arguments that they share."""
    from moraine_core.testing.data import write_array
    from moraine_raster.networks import TempNet

    TempNet.of(scene.pairs).save(folder / "pairs.txt")
    chunk = min(CHUNK, len(scene.gix))
    return {
        "gix": write_array(folder / "gix.zarr", scene.gix, (chunk, 2)),
        "ph": write_array(folder / "ph.zarr", scene.ph, (chunk, 1)),
        "image_pairs": str(folder / "pairs.txt"),
        "range_pixel_spacing": 1.0,
        "azimuth_pixel_spacing": 1.0,
    }
