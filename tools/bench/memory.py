"""Memory and time of chunk tasks in 2 processes against a bare ProcessPoolExecutor doing the same reads and writes."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row
from tree import Used, run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

WIDTH = 2048
"""Elements in a row of float64: 64 rows are 1 MiB."""

WORKLOADS = {"add": "`a[1:] + b[1:]`", "anomaly": "`a[1:] - mean(a)`"}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--chunks", type=int, default=200, help="chunks of each array (count)")
    parser.add_argument("--chunk-mib", type=int, default=16, help="size of a chunk (MiB)")
    parser.add_argument("--few", type=int, default=64, help="chunks of the short run of the growth test (count)")
    parser.add_argument("--many", type=int, default=512, help="chunks of the long run of the growth test (count)")
    parser.add_argument("--growth-mib", type=int, default=4, help="size of a chunk of the growth test (MiB)")
    parser.add_argument("--runs", type=int, default=3, help="pairs of runs (count)")
    parser.add_argument("--folder", type=Path, help="where the data lie meanwhile; beside the checkout by default")
    parser.add_argument("--dask", action="store_true", help="measure dask as well, in an environment of its own")


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure."""
    size = f"{chosen.chunks} x {chosen.chunk_mib} MiB"
    with _data(chosen, chosen.chunks, chosen.chunk_mib) as folder:
        for workload, formula in WORKLOADS.items():
            pairs = [_pair(workload, folder, number) for number in range(chosen.runs)]
            ours, bare = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            yield _peak_row(f"peak memory, {formula}, {size}, against a bare pool", ours, bare, 1.1)
            times = [u.seconds for u in ours], [u.seconds for u in bare]
            yield Row(f"time, {formula}, {size}, against a bare pool", *times, "s", 1.1)
            if chosen.dask:
                dask = [_dask(workload, folder)] * len(ours)
                yield _peak_row(f"peak memory, {formula}, {size}, against dask", ours, dask)
    with _data(chosen, chosen.few, chosen.growth_mib) as folder:
        few = {workload: _run("moraine", workload, folder) for workload in WORKLOADS}
    with _data(chosen, chosen.many, chosen.growth_mib) as folder:
        for workload, formula in WORKLOADS.items():
            name = f"peak memory, {formula}, {chosen.many} chunks of {chosen.growth_mib} MiB against {chosen.few}"
            yield _peak_row(name, [_run("moraine", workload, folder)], [few[workload]], 1.1)


def _peak_row(name: str, ours: list[Used], peer: list[Used], bar: float | None = None) -> Row:
    return Row(name, [used.peak_mib for used in ours], [used.peak_mib for used in peer], "MiB", bar)


def _pair(workload: str, folder: Path, number: int) -> tuple[Used, Used]:
    """Run both contenders, the first one in turn, and prove that they write the same."""
    used, ends = {}, {}
    for contender in ("moraine", "bare") if number % 2 else ("bare", "moraine"):
        used[contender] = _run(contender, workload, folder)
        ends[contender] = _first_and_last(folder / "out.zarr")
    if ends["moraine"] != ends["bare"]:
        msg = f"{workload}: the contenders wrote different values"
        raise RuntimeError(msg)
    return used["moraine"], used["bare"]


def _run(contender: str, workload: str, folder: Path) -> Used:
    script = Path(__file__).with_name("memory_run.py")
    return run([sys.executable, str(script), contender, workload, str(folder)])


def _dask(workload: str, folder: Path) -> Used:
    """Run dask in an environment that is made the first time and goes with the data."""
    python = folder / "dask" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "dask")], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "dask[array,distributed]", "zarr>=3"], check=True)
    return run([str(python), str(Path(__file__).with_name("memory_dask.py")), workload, str(folder)])


@contextlib.contextmanager
def _data(chosen: argparse.Namespace, chunks: int, chunk_mib: int) -> Iterator[Path]:
    """Two random arrays in a temporary folder, which is removed in the end."""
    import numpy as np
    import zarr

    parent = chosen.folder or Path(__file__).parents[3]
    needed, free = 3 * chunks * chunk_mib * 2**20, shutil.disk_usage(parent).free
    if needed > 0.9 * free:
        msg = f"{parent} has {free / 2**30:.1f} GiB free; the arrays need {needed / 2**30:.1f}: see --chunks, --folder"
        raise RuntimeError(msg)
    rows = 64 * chunk_mib
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory(prefix="moraine-bench-", dir=parent) as name:
        for array in ("a.zarr", "b.zarr"):
            path = Path(name) / array
            store = zarr.create_array(path, shape=(rows * chunks, WIDTH), chunks=(rows, WIDTH), dtype="float64")
            for start in range(0, rows * chunks, rows):
                store[start : start + rows] = rng.random((rows, WIDTH))
        yield Path(name)


def _first_and_last(path: Path) -> bytes:
    import zarr

    array = zarr.open_array(path, mode="r")
    return array[:1].tobytes() + array[-1:].tobytes()
