"""Pyramids against copying their data with plain zarr, and the first view of a very large one."""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import Row, in_turn, seconds
from tree import run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

THREADS = 2
BAND = 1024
TILE = (256, 256)


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--pyramid-side", type=int, default=8000, help="lines and pixels of the raster (pixels)")
    parser.add_argument("--pyramid-points", type=int, default=10_000_000, help="points of the cloud (points)")
    parser.add_argument("--view-side", type=int, default=30_000, help="lines and pixels of what is viewed (pixels)")
    parser.add_argument("--view-images", type=int, default=100, help="images of what is viewed (count)")
    parser.add_argument("--pyramid-runs", type=int, default=5, help="pairs of runs (count)")


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure."""
    place = Path(__file__).parents[3]
    with tempfile.TemporaryDirectory(prefix="moraine-bench-", dir=place) as name:
        yield from _raster(chosen, Path(name))
    with tempfile.TemporaryDirectory(prefix="moraine-bench-", dir=place) as name:
        yield from _cloud(chosen, Path(name))
    with tempfile.TemporaryDirectory(prefix="moraine-bench-", dir=place) as name:
        yield from _view(chosen, Path(name))


def _raster(chosen: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Measure pyramids of a raster with some of its pixels missing."""
    import numpy as np

    from moraine_core import Workers
    from moraine_core.testing.data import write_array
    from moraine_view.ras_pyramid import ras_pyramid

    side = chosen.pyramid_side
    values = np.random.default_rng(0).normal(size=(side, side)).astype(np.float32)
    values[: side // 20] = np.nan
    ras = write_array(folder / "ras.zarr", values, (min(1000, side),) * 2)
    del values
    for method, bar in (("decimate", 1.5), ("mean", 2.0)):
        call: dict[str, Any] = {"ras": ras, "out_dir": str(folder / "pyramid"), "method": method}
        times = in_turn(
            lambda call=call: seconds(lambda: ras_pyramid(**call, workers=Workers(n_workers=THREADS))),
            lambda: seconds(lambda: _copy(ras, folder / "copy.zarr", TILE, BAND)),
            chosen.pyramid_runs,
        )
        size = f"{side} x {side} float32"
        yield Row(
            f"ras-pyramid, {method}, of {size} in {THREADS} threads against copying it into tiles", *times, "s", bar
        )


def _cloud(chosen: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Measure the pyramid of points in Hilbert order."""
    import numpy as np

    from moraine_core import Workers
    from moraine_core.testing.data import write_array
    from moraine_points.kernels import pc_gix
    from moraine_view.pc_pyramid import pc_pyramid

    n, shape = chosen.pyramid_points, (8192, 8192)
    rng = np.random.default_rng(1)
    y, x = pc_gix(np.sort(rng.permutation(shape[0] * shape[1])[:n]), shape).T
    data = {"pc": rng.normal(size=n).astype(np.float32), "x": 1.5e6 + 10.0 * x, "y": 5e6 + 10.0 * y}
    paths = {name: write_array(folder / f"{name}.zarr", values, (100_000,)) for name, values in data.items()}
    del x, y, data
    for method in ("first", "mean"):
        call: dict[str, Any] = {**paths, "out_dir": str(folder / "pyramid"), "method": method}
        times = in_turn(
            lambda call=call: seconds(lambda: pc_pyramid(**call, workers=Workers(n_workers=THREADS))),
            lambda: seconds(lambda: [_copy(p, folder / "copy.zarr", (65536,), 1 << 20) for p in paths.values()]),
            chosen.pyramid_runs,
        )
        yield Row(
            f"pc-pyramid, {method}, of {n / 1e6:g} million points in {THREADS} threads against copying values, x and y",
            *times,
            "s",
        )


def _copy(source: str, target: Path, chunks: Sequence[int], band: int) -> None:
    """Read an array once and write it once with plain zarr, band by band, compressed as moraine does."""
    import zarr

    from moraine_core.plan import Layout
    from moraine_core.store import create

    array = zarr.open_array(source, mode="r")
    create(Layout(str(target), array.shape, array.dtype.name, tuple(chunks)), target)
    copy = zarr.open_array(target, mode="r+")

    def work(start: int) -> None:
        part = slice(start, min(start + band, array.shape[0]))
        copy[part] = array[part]

    with ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(work, range(0, array.shape[0], band)):
            pass


def _view(chosen: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Measure the first picture of a stack, of whose pyramid only the level drawn has data: no other may be read."""
    import numpy as np
    import zarr

    from moraine_view.levels import level_shapes

    side, n_images = chosen.view_side, chosen.view_images
    for level, shape in enumerate(level_shapes(side, side)):
        array = zarr.create_array(
            str(folder / f"pyramid/{level}.zarr"), shape=(*shape, n_images), chunks=(*TILE, 1), dtype="float32"
        )
        if level == 0:
            marker = {"version": 1, "kind": "raster", "method": "mean", "stats": {"p01": 0.0, "p99": 1.0}}
            array.attrs["moraine_pyramid"] = marker
        if 400 < shape[0] <= 1000:
            array[:, :, 0] = np.random.default_rng(2).random(shape, dtype=np.float32)
    line = [str(Path(sys.executable).with_name("moraine")), "quicklook", "pyramid", "--json"]
    used = [run(line, folder) for _ in range(chosen.pyramid_runs)]
    size = f"{side} x {side} x {n_images} float32"
    yield Row(f"first picture of the pyramid of {size}", [u.seconds for u in used], (), "s", 3)
    yield Row(f"first picture of the pyramid of {size}: peak memory", [u.peak_mib for u in used], (), "MiB", 1024)
