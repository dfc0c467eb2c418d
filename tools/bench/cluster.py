"""Slots in jobs against bare Parsl: what a task costs, chunks of an array, and how soon there is a first result."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import Row, in_turn, seconds
from work import double_chunk, nothing

from moraine_core import Executor

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

CHUNK = 65536
"""Values of a chunk: 512 KiB of float64."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--cluster-pairs", type=int, default=5, help="pairs of runs (count)")
    parser.add_argument("--cluster-tasks", type=int, default=1000, help="trivial tasks (count)")
    parser.add_argument("--cluster-scheduler", default="local", help="slurm, by default one of this machine, or local")


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure."""
    from moraine_core.testing.data import read_array, write_array

    # the nodes must find the functions of this folder
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    n, pairs, scheduler = chosen.cluster_tasks, chosen.cluster_pairs, chosen.cluster_scheduler
    with tempfile.TemporaryDirectory() as folder, slurm(scheduler, Path(folder, "slurm")):
        import numpy as np

        source = write_array(f"{folder}/a.zarr", np.arange(200.0 * CHUNK), (CHUNK,))
        out = write_array(f"{folder}/b.zarr", np.zeros(200 * CHUNK), (CHUNK,))
        chunks = [(source, out, i * CHUNK, (i + 1) * CHUNK) for i in range(200)]
        with ours(folder, scheduler) as executor, bare(folder, scheduler) as pool:
            times = in_turn(
                lambda: 1e3 / n * seconds(lambda: executor.map(nothing, [(i,) for i in range(n)])),
                lambda: 1e3 / n * seconds(lambda: list(pool.map(nothing, range(n)))),
                pairs,
            )
            yield Row(f"a trivial task, {n} on 2 jobs of 2 slots, against bare Parsl", *times, "ms", 1.5)
            times = in_turn(
                lambda: seconds(lambda: executor.map(double_chunk, chunks)),
                lambda: seconds(lambda: list(pool.map(double_chunk, *zip(*chunks, strict=True)))),
                pairs,
            )
            if not np.array_equal(read_array(out), 2 * read_array(source)):
                msg = "the chunks are not what they should be"
                raise RuntimeError(msg)
            yield Row("200 chunks of 512 KiB read and written, against bare Parsl", *times, "s", 1.2)
        first, peer = in_turn(lambda: _first_of_ours(folder, scheduler), lambda: _first_of_bare(folder, scheduler), 2)
        late = [a - b for a, b in zip(first, peer, strict=True)]
        yield Row("first result, later than that of bare Parsl", late, [], "s", 2.0)


@contextmanager
def slurm(scheduler: str, folder: Path) -> Iterator[None]:
    """Start the Slurm of the tests, unless another scheduler is asked for or the environment names a Slurm."""
    if scheduler != "slurm" or "SLURM_CONF" in os.environ:
        yield
        return
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "plugins" / "cluster"))
    import slurm_here

    here = slurm_here.Slurm(folder, 27700, cpus=4)  # both pools at once have four slots each
    os.environ["SLURM_CONF"] = str(here.conf)
    try:
        here.start()
        yield
    finally:
        here.stop()
        del os.environ["SLURM_CONF"]


@contextmanager
def ours(folder: str, scheduler: str) -> Iterator[Executor]:
    """Give an executor with two jobs of two slots, all of them there."""
    with Executor(backend=_backend(folder, scheduler)) as executor:
        while len(executor.backend.slots()) < 4:
            executor.map(nothing, [(0,)])
        executor.run_on_workers(nothing, 0)
        yield executor


@contextmanager
def bare(folder: str, scheduler: str) -> Iterator[Any]:
    """Give Parsl's own pool of the same jobs, warm."""
    with _pool(folder, scheduler) as pool:
        list(pool.map(nothing, range(200)))
        yield pool


def _backend(folder: str, scheduler: str) -> Any:
    from moraine_cluster.config import ClusterConfig, Jobs
    from moraine_cluster.parsl_backend import ParslBackend

    lo = "lo" if scheduler == "slurm" else None
    jobs = Jobs(start=2, max=2)
    return ParslBackend(
        ClusterConfig(scheduler=scheduler, shared=folder, jobs=jobs, slots_per_node=2, interface=lo)  # type: ignore[arg-type]
    )


def _pool(folder: str, scheduler: str) -> Any:
    from parsl.concurrent import ParslPoolExecutor
    from parsl.config import Config
    from parsl.executors import HighThroughputExecutor
    from parsl.providers import LocalProvider, SlurmProvider

    logging.getLogger("parsl").propagate = False
    blocks: dict[str, Any] = {"init_blocks": 2, "max_blocks": 2}
    path = f"export PATH={Path(sys.executable).parent}:$PATH"
    provider = (
        LocalProvider(worker_init=path, **blocks)
        if scheduler == "local"
        else SlurmProvider(worker_init=path, exclusive=False, cores_per_node=2, walltime="00:10:00", **blocks)
    )
    executor = HighThroughputExecutor(
        label="bare",
        provider=provider,
        address="127.0.0.1",
        interchange_launch_cmd=[sys.executable, str(Path(sys.executable).with_name("interchange.py"))],
        max_workers_per_node=2,
        cores_per_worker=0.001,
        encrypted=True,
    )
    config = Config(executors=[executor], run_dir=f"{folder}/bare", strategy_period=1, initialize_logging=False)
    return ParslPoolExecutor(config)


def _first_of_ours(folder: str, scheduler: str) -> float:
    start = time.perf_counter()
    with Executor(backend=_backend(folder, scheduler)) as executor:
        executor.map(nothing, [(0,)])
        return time.perf_counter() - start


def _first_of_bare(folder: str, scheduler: str) -> float:
    start = time.perf_counter()
    with _pool(folder, scheduler) as pool:
        list(pool.map(nothing, [0]))
        return time.perf_counter() - start
