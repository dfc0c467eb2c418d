"""The executor by itself: starting and stopping processes, and what a task costs, against concurrent.futures."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

from measure import Row, in_turn, seconds
from work import nothing

from moraine_core import Executor

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

WORKERS = 2


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--pairs", type=int, default=9, help="pairs of runs (count)")
    parser.add_argument("--tasks", type=int, default=2000, help="trivial tasks in processes (count)")
    parser.add_argument("--thread-tasks", type=int, default=20_000, help="trivial tasks in threads (count)")


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure."""
    times = in_turn(lambda: seconds(_start_moraine), lambda: seconds(_start_bare), chosen.pairs)
    yield Row("start, first answers and stop of 2 processes against ProcessPoolExecutor", *times, "s", 1.3)

    n = chosen.tasks
    with Executor(processes=True, n_workers=WORKERS) as executor, _bare_pool() as pool:
        times = in_turn(
            lambda: 1e6 / n * seconds(lambda: executor.map(nothing, [(i,) for i in range(n)])),
            lambda: 1e6 / n * seconds(lambda: list(pool.map(nothing, range(n)))),
            chosen.pairs,
        )
    yield Row(f"a trivial task, {n} in 2 processes, against ProcessPoolExecutor", *times, "us", 1.2)

    n = chosen.thread_tasks
    with Executor(n_workers=WORKERS) as executor:
        tasks = [(i,) for i in range(n)]
        ours = [1e6 / n * seconds(lambda: executor.map(nothing, tasks)) for _ in range(chosen.pairs)]
    yield Row(f"a trivial task, {n} in 2 threads", ours, [], "us", 40)


def _bare_pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn"))


def _start_moraine() -> None:
    with Executor(processes=True, n_workers=WORKERS) as executor:
        executor.map(nothing, [(i,) for i in range(WORKERS)])


def _start_bare() -> None:
    with _bare_pool() as pool:
        for future in [pool.submit(nothing, i) for i in range(WORKERS)]:
            future.result()
