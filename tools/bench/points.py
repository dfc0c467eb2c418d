"""Point clouds at scale: order, sets and selection against copying the same data with zarr through the Executor."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row, seconds
from tree import Used, run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

THREADS = 2
BLOCK = 100_000
SHAPE = (20_000, 20_000)
LIMIT = "2GiB"


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--points", type=int, default=10_000_000, help="points of the clouds (points)")
    parser.add_argument("--point-images", type=int, default=20, help="images of their data (count)")
    parser.add_argument("--scene", type=int, default=4000, help="lines and pixels of the stack of ras2pc (pixels)")
    parser.add_argument("--scene-images", type=int, default=30, help="images of the stack of ras2pc (count)")
    parser.add_argument("--scene-points", type=int, default=200_000, help="points that ras2pc takes (points)")
    parser.add_argument("--point-runs", type=int, default=3, help="pairs of runs (count)")


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure."""
    yield from _kernels(chosen)
    with tempfile.TemporaryDirectory(prefix="moraine-bench-", dir=Path(__file__).parents[3]) as name:
        yield from _clouds(chosen, Path(name))
    with tempfile.TemporaryDirectory(prefix="moraine-bench-", dir=Path(__file__).parents[3]) as name:
        yield from _raster(chosen, Path(name))


def _kernels(chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure array functions in one thread."""
    import numpy as np

    from moraine_points import kernels

    n, millions = chosen.points, chosen.points / 1e6
    gix = np.random.default_rng(1).integers(0, SHAPE[0], (n, 2), dtype=np.int32)
    kernels.pc_hix(gix[:1000], SHAPE)  # compiled
    times = [seconds(lambda: kernels.pc_hix(gix, SHAPE)) for _ in range(chosen.point_runs)]
    yield Row(f"Hilbert index of {millions:g} million points on one core", times, (), "s", n / 20e6)
    order = np.argsort(kernels.pc_hix(gix, SHAPE), kind="stable")
    y, x = np.ascontiguousarray(gix[order].T.astype(np.float64))
    kernels.rtree(x[:1000], y[:1000])
    times = [seconds(lambda: kernels.rtree(x, y)) for _ in range(chosen.point_runs)]
    yield Row(f"R-tree of {millions:g} million points on one core", times, (), "s", n / 10e6)


def _clouds(chosen: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Measure commands on clouds, each in a process of its own."""
    import numpy as np

    from moraine_core.testing.data import write_array

    n, n_images = chosen.points, chosen.point_images
    rng = np.random.default_rng(2)
    hix = np.unique(rng.integers(0, 4**15, n + n // 8))
    hix = hix[np.sort(rng.permutation(hix.size)[:n])]
    n = hix.size
    thirds = rng.integers(0, 3, n)  # in the first cloud, in the second, in both
    parts = {
        "sorted": hix,
        "mixed": hix[rng.permutation(n)],
        "one": hix[thirds != 1],
        "two": hix[thirds != 0],
        "some": hix[thirds != 2],
    }
    for name, part in parts.items():
        write_array(folder / f"{name}.zarr", part, (BLOCK,))
        if name != "some":
            _write_stack(folder / f"{name}_pc.zarr", part.size, n_images)
    size = f"{n / 1e6:.3g} million points x {n_images} images"
    commands = {
        "pc-sort": ("mixed", ["--idx-in", "mixed.zarr", "--pc-in", "mixed_pc.zarr"]),
        "pc-union": (
            "sorted",
            ["--idx1", "one.zarr", "--pc1", "one_pc.zarr", "--idx2", "two.zarr", "--pc2", "two_pc.zarr"],
        ),
        "pc-select-data": ("sorted", ["--idx-in", "sorted.zarr", "--pc-in", "sorted_pc.zarr"]),
    }
    for name, (data, arguments) in commands.items():
        wanted = ["--idx", "some.zarr" if name == "pc-select-data" else "idx.zarr", "--pc", "pc.zarr"]
        line = [name, *arguments, *wanted, "--n-workers", str(THREADS), "--max-memory", LIMIT]
        pairs = [_in_turn(line, f"{data}_pc.zarr", folder, number) for number in range(chosen.point_runs)]
        ours, copies = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        yield Row(
            f"{name} of {size} in {THREADS} threads against copying them",
            [used.seconds for used in ours],
            [used.seconds for used in copies],
            "s",
            2.0,
        )
        yield Row(f"{name} of {size}: peak memory", [used.peak_mib for used in ours], (), "MiB", 2048)


def _write_stack(path: Path, n_points: int, n_images: int) -> None:
    """Write the data of a cloud, image by image."""
    from moraine_core.plan import Chunk, Layout
    from moraine_core.store import create
    from moraine_core.testing.data import speckle

    layout = Layout(str(path), (n_points, n_images), "complex64", (BLOCK, 1))
    create(layout, path)
    for image in range(n_images):
        Chunk(layout, (slice(None), slice(image, image + 1))).write(speckle((n_points, 1), seed=image))


def _in_turn(line: Sequence[str], data: str, folder: Path, number: int) -> tuple[Used, Used]:
    """Run a command and a copy of data of the size that it handles; who is first alternates."""
    copy = [sys.executable, str(Path(__file__).with_name("points_copy.py")), data, "copy.zarr", str(THREADS)]
    ours = [str(Path(sys.executable).with_name("moraine")), *line, "--quiet"]
    used = {}
    for key, words in (("ours", ours), ("copy", copy)) if number % 2 else (("copy", copy), ("ours", ours)):
        used[key] = run(words, folder)
    return used["ours"], used["copy"]


def _raster(chosen: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Measure taking points from a stack against reading it once."""
    import numpy as np

    from moraine_core.plan import Chunk, Layout
    from moraine_core.store import create
    from moraine_core.testing.data import speckle, write_array

    side, n_images = chosen.scene, chosen.scene_images
    layout = Layout(str(folder / "rslc.zarr"), (side, side, n_images), "complex64", (1000, 1000, 1))
    create(layout, layout.path)
    for image in range(n_images):
        whole = (slice(None), slice(None), slice(image, image + 1))
        Chunk(layout, whole).write(speckle((side, side, 1), seed=image))
    rng = np.random.default_rng(3)
    pixels = np.sort(rng.permutation(side * side)[: chosen.scene_points])
    everywhere = np.stack(np.divmod(pixels, side), axis=1).astype(np.int32)
    corner = everywhere[(everywhere < side // 2).all(axis=1)]
    n_points = f"{chosen.scene_points:,} points"
    for gix, where in ((everywhere, n_points), (corner, f"{len(corner):,} points in a quarter")):
        write_array(folder / "gix.zarr", gix, (BLOCK, 2))
        line = ["ras2pc", "--idx", "gix.zarr", "--ras", "rslc.zarr", "--pc", "pc.zarr", "--n-workers", str(THREADS)]
        read = [sys.executable, str(Path(__file__).with_name("points_copy.py")), "rslc.zarr", "", str(THREADS)]
        ours, reads = [], []
        for _ in range(chosen.point_runs):
            ours.append(run([str(Path(sys.executable).with_name("moraine")), *line, "--quiet"], folder))
            reads.append(run(read, folder))
        yield Row(
            f"ras2pc of {where} from {side} x {side} x {n_images} in {THREADS} threads against reading the whole once",
            [used.seconds for used in ours],
            [used.seconds for used in reads],
            "s",
        )
        yield Row(f"ras2pc of {where}: peak memory", [used.peak_mib for used in ours], (), "MiB")
