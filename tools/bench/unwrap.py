"""Unwrapping of point clouds: speed against whirlwind-insar, spurt and moraine 0.9.0, and quality by known truth."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import unwrap_quality
from measure import Row, in_turn, seconds
from peer import started
from tree import run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from unwrap_scenes import Scene

THREADS = 2
PEERS = ("moraine==0.9.0", "ortools", "whirlwind-insar", "spurt")
EMCF_POINTS = 29_000
LEAST_VARIANCE = 0.01
NOISES = (0.6, 1.0)
LIMIT_MIB = 2e9 / 2**20


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--unwrap-points", type=int, default=100_000, help="points of one interferogram (points)")
    parser.add_argument("--many-points", type=int, default=1_000_000, help="points of the largest cloud (points)")
    parser.add_argument("--unwrap-runs", type=int, default=5, help="pairs of runs (count)")
    parser.add_argument("--unwrap-seeds", type=int, default=3, help="scenes of one interferogram of each kind (count)")
    parser.add_argument("--realizations", type=int, default=8, help="realizations of scenes A, B and C (count)")
    parser.add_argument("--all-costs", action="store_true", help="scenes A, B and C with all spatial costs")
    parser.add_argument("--unwrap-peer", type=Path, help="Python with the peers; by default one is made, and goes")


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="moraine-bench-", dir=Path(__file__).parents[3]) as name:
        folder = Path(name)
        with started("unwrap_peer.py", folder, PEERS, chosen.unwrap_peer) as ask:
            yield from _interferogram(folder, chosen, ask)
            yield from _emcf(folder, chosen, ask)
            yield from _costs(folder, chosen, ask)
        yield from _growth(folder, chosen)
        yield from _closure(folder, chosen)
        yield from unwrap_quality.rows(folder, chosen.realizations, all_costs=chosen.all_costs)


def _interferogram(folder: Path, chosen: argparse.Namespace, ask: Callable[[str], float]) -> Iterator[Row]:
    """Measure one interferogram, from points to phases, and each further one."""
    import unwrap_scenes as scenes

    from moraine_unwrap.flow.costs import edge_costs
    from moraine_unwrap.flow.kernels import unwrap
    from moraine_unwrap.flow.tasks import shared_network

    def network(scene: Scene) -> Any:
        return shared_network(scene.gix, spacing=(1.0, 1.0))

    size = f"{chosen.unwrap_points:,} points"
    for noise in NOISES:
        scene = scenes.uniform(chosen.unwrap_points, noise, 0)
        name = f"even{noise}"
        _write(folder, name, scene)
        net, phase = network(scene), scene.wrapped_pairs()[:, 0]
        unit = edge_costs(net)
        calls: dict[str, tuple[Callable[[], Any], float | None]] = {
            "one interferogram, {}": (lambda s=scene, p=phase: unwrap(network(s), p), 1.0),
            "each further one, {}": (lambda n=net, p=phase: unwrap(n, p), 0.5),
            "one interferogram with unit costs, {}": (lambda s=scene, p=phase: _unit(network(s), p), 1.0),
            "each further one with unit costs, {}": (lambda n=net, p=phase, c=unit: unwrap(n, p, costs=c), 0.5),
        }
        for words, (call, bar) in calls.items():
            times = in_turn(lambda c=call: seconds(c), lambda n=name: ask(f"whirlwind {n}"), chosen.unwrap_runs)
            what = words.format(f"{size}, noise of {noise} rad")
            yield Row(f"{what}, against whirlwind-insar", *times, "s", bar)
        call, _ = calls["one interferogram with unit costs, {}"]
        times = in_turn(lambda c=call: seconds(c), lambda n=name: ask(f"moraine {n}"), 2)
        what = f"one interferogram with unit costs, {size}, noise of {noise} rad"
        yield Row(f"{what}, against moraine 0.9.0", *times, "s")


def _unit(net: Any, phase: Any) -> Any:
    from moraine_unwrap.flow.costs import edge_costs
    from moraine_unwrap.flow.kernels import unwrap

    return unwrap(net, phase, costs=edge_costs(net))


def _costs(folder: Path, chosen: argparse.Namespace, ask: Callable[[str], float]) -> Iterator[Row]:
    """Compare costs by what they get wrong, on the same points as the peers."""
    import numpy as np
    import unwrap_scenes as scenes

    from moraine_unwrap.flow.costs import edge_costs
    from moraine_unwrap.flow.kernels import unwrap
    from moraine_unwrap.flow.tasks import shared_network

    kinds: dict[str, dict[str, Any]] = {
        "even noise of 1 rad": {},
        "uneven noise of 1 rad": {"is_even": False},
        "even noise of 1 rad, steep": {"steepest": 2.0},
    }
    for number, (kind, how) in enumerate(kinds.items()):
        wrong: dict[str, list[float]] = {}
        for seed in range(chosen.unwrap_seeds):
            scene = scenes.uniform(chosen.unwrap_points, 1.0, seed, **how)
            name = f"kind{number}seed{seed}"
            _write(folder, name, scene)
            net = shared_network(scene.gix, spacing=(1.0, 1.0))
            phase, variance = scene.wrapped_pairs()[:, 0], _variance(scene)
            found = {
                "unit": unwrap(net, phase, costs=edge_costs(net)).phase,
                "length": unwrap(net, phase, costs=edge_costs(net, "length")).phase,
                "statistical": unwrap(net, phase).phase,
                "variance": unwrap(net, phase, variance=variance).phase,
            }
            for program in ("whirlwind", "moraine"):
                ask(f"{program} {name}")
                found[program] = np.load(folder / f"{program}_{name}.npy")
            for key, phases in found.items():
                wrong.setdefault(key, []).append(100 * scenes.wrong_points(scene, phases.astype(np.float64)))
        for ours, theirs, words, bar in (
            ("unit", "moraine", "unit costs, against moraine 0.9.0 (OR-Tools)", 1.05),
            ("length", "moraine", "costs by length, against moraine 0.9.0", None),
            ("statistical", "moraine", "statistical costs, against moraine 0.9.0", 1.0),
            ("statistical", "whirlwind", "statistical costs, against whirlwind-insar with the true variances", None),
            ("variance", "whirlwind", "statistical costs and whirlwind-insar, both with the true variances", 1.0),
        ):
            yield Row(f"wrong points, {kind}: {words}", wrong[ours], wrong[theirs], "%", bar)


def _emcf(folder: Path, chosen: argparse.Namespace, ask: Callable[[str], float]) -> Iterator[Row]:
    """Measure EMCF: its time once, and what it gets wrong in several smaller scenes."""
    import numpy as np
    import unwrap_scenes as scenes

    from moraine_core import Workers
    from moraine_core.testing.data import read_array
    from moraine_unwrap.emcf_pc import emcf_pc

    unw = str(folder / "unw.zarr")

    def ours(scene: Scene) -> float:
        arguments = unwrap_quality.written(folder, scene)
        how = {"ref_point": scene.reference, "workers": Workers(n_workers=THREADS)}
        return seconds(lambda: emcf_pc(**arguments, **how, unw_ph=unw))

    wrong: dict[str, list[float]] = {"ours": [], "spurt": []}
    for seed in range(chosen.unwrap_seeds):
        scene = scenes.clusters(seed, side=200)
        _write(folder, f"small{seed}", scene)
        ours(scene)
        ask(f"spurt small{seed}")
        for name, phases in (("ours", read_array(unw)), ("spurt", np.load(folder / f"spurt_small{seed}.npy"))):
            wrong[name].append(100 * scenes.wrong_cycles(scene, phases.astype(np.float64)))
    yield Row("wrong cycles of emcf-pc, scene A of 200 x 200 pixels, against spurt", *wrong.values(), "%", 1.0)
    whole = scenes.clusters(0, n_season=11)
    few = np.sort(np.random.default_rng(0).permutation(len(whole.gix))[:EMCF_POINTS])
    scene = scenes.Scene(whole.gix[few], whole.phase[few], whole.noise[few], whole.dates)
    _write(folder, "emcf", scene)
    times = [min(ours(scene) for _ in range(3))], [ask("spurt emcf")]
    size = f"{len(scene.gix):,} points x {len(scene.pairs)} pairs"
    yield Row(f"emcf-pc of {size}, zarr to zarr, against EMCF of spurt in memory", *times, "s", 0.05)


def _growth(folder: Path, chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure how time and memory grow with the cloud."""
    import unwrap_scenes as scenes

    from moraine_unwrap.flow.kernels import unwrap
    from moraine_unwrap.flow.tasks import shared_network

    large, small = (scenes.uniform(n_points, 1.0, 0) for n_points in (chosen.many_points, chosen.unwrap_points))
    unwrap_quality.written(folder, large)

    def whole(scene: Scene) -> float:
        phase = scene.wrapped_pairs()[:, 0]
        return seconds(lambda: unwrap(shared_network(scene.gix, spacing=(1.0, 1.0)), phase))

    times = in_turn(lambda: whole(large), lambda: whole(small), 3)
    many = f"{chosen.many_points / 1e6:g} million points"
    yield Row(f"one interferogram, {many} against {chosen.unwrap_points:,}", *times, "s", 14.0)
    line = ["mcf-pc", "--gix", "gix.zarr", "--ph", "ph.zarr", "--unw-ph", "many.zarr", "--image-pairs", "pairs.txt"]
    line += ["--quiet", "--range-pixel-spacing", "1", "--azimuth-pixel-spacing", "1", "--n-workers", str(THREADS)]
    used = run([str(Path(sys.executable).with_name("moraine")), *line], folder)
    yield Row(f"mcf-pc of one pair of {many}: peak memory", [used.peak_mib], (), "MiB", round(LIMIT_MIB))
    yield Row(f"mcf-pc of one pair of {many}: the whole command", [used.seconds], (), "s")


def _closure(folder: Path, chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure the closure correction of interferograms that were unwrapped one by one."""
    import numpy as np
    import unwrap_scenes as scenes

    from moraine_core import Workers
    from moraine_unwrap.mcf_pc import mcf_pc
    from moraine_unwrap.unwrap_correct_closure_pc import unwrap_correct_closure_pc

    workers = Workers(n_workers=THREADS)
    scene = scenes.clusters(0, side=round(1.02 * (chosen.unwrap_points / 0.19) ** 0.5), n_season=11)
    n_points = min(chosen.unwrap_points, len(scene.gix))
    few = np.sort(np.random.default_rng(0).permutation(len(scene.gix))[:n_points])
    scene = scenes.Scene(scene.gix[few], scene.phase[few], scene.noise[few], scene.dates)
    arguments = unwrap_quality.written(folder, scene)
    unw = str(folder / "unw.zarr")
    mcf_pc(**arguments, unw_ph=unw, workers=workers)
    times = in_turn(
        lambda: seconds(
            lambda: unwrap_correct_closure_pc(**arguments, unw_ph=unw, ts=f"{folder}/ts.zarr", workers=workers)
        ),
        lambda: seconds(lambda: [_copy(path, folder) for path in 2 * (unw, arguments["ph"])]),
        3,
    )
    size = f"{n_points:,} points x {len(scene.pairs)} pairs"
    yield Row(f"unwrap-correct-closure-pc of {size} against copying its inputs twice", *times, "s", 1.3)


def _copy(path: str, folder: Path) -> None:
    from points_copy import main

    main(path, str(folder / "copy.zarr"), str(THREADS))


def _variance(scene: Scene) -> Any:
    """Variance of the first interferogram, ``(n_points,)``, in rad^2."""
    import numpy as np

    return np.maximum(np.sum(scene.noise[:, scene.pairs[0]] ** 2, axis=1), LEAST_VARIANCE)


def _write(folder: Path, name: str, scene: Scene) -> None:
    """Write what the peers read."""
    import numpy as np

    phase = scene.wrapped_pairs()[:, 0]
    np.savez(
        folder / f"{name}.npz",
        points=scene.gix.astype(np.float64),
        phase=phase.astype(np.float32),
        phasor=np.exp(1j * phase).astype(np.complex64),
        variance=_variance(scene).astype(np.float32),
        ph=scene.ph,
    )
