"""GAMMA stacks in and out, in bytes a second, against copying the same bytes from file to file."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row, in_turn, seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

THREADS = 2


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--stack", type=int, nargs=3, default=(600, 900, 12), help="lines, pixels, images (counts)")
    parser.add_argument("--load-runs", type=int, default=3, help="pairs of runs (count)")


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure."""
    from moraine_core import Workers
    from moraine_load.load_gamma_flatten_rslc import load_gamma_flatten_rslc
    from moraine_load.simulate import simulate

    lines, width, n_images = chosen.stack
    workers = Workers(n_workers=THREADS)
    with tempfile.TemporaryDirectory(prefix="moraine-bench-", dir=Path(__file__).parents[3]) as name:
        folder = Path(name)
        gamma = folder / "gamma"

        def make() -> float:
            call = {"out": str(gamma), "shape": (lines, width), "nimages": n_images}
            return seconds(lambda: simulate(**call, workers=workers))

        def load() -> float:
            call = {
                "rslc_dir": str(gamma / "rslc"),
                "reference": min(path.stem for path in (gamma / "rslc").glob("*.rslc")),
                "hgt": str(gamma / "geocoding" / "scene.hgt"),
                "rslc": str(folder / "rslc.zarr"),
                "engine": "native",
            }
            return seconds(lambda: load_gamma_flatten_rslc(**call, workers=workers))

        for what, ours, source in (("simulate", make, gamma), ("load-gamma-flatten-rslc", load, gamma / "rslc")):
            times = in_turn(ours, lambda s=source: _copy(s, folder / "copy"), chosen.load_runs)
            of_ours, of_peer = ([_megabytes(source) / t for t in of_one] for of_one in times)
            size = f"{lines} x {width} x {n_images} images"
            yield Row(f"{what}, {size} in {THREADS} threads, against copying its files", of_ours, of_peer, "MB/s")
        cpu = lines * width * n_images / 1e6
        yield Row("simulate, for a million pixels of an image", [make() / cpu], [], "s")


def _copy(source: Path, target: Path) -> float:
    """Copy a folder to the disk, not only into memory: what is compared with is on the disk, too."""
    shutil.rmtree(target, ignore_errors=True)

    def work() -> None:
        shutil.copytree(source, target)
        os.sync()

    return seconds(work)


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
