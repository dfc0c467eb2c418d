"""One contender of the memory benchmark in a process of its own: ``memory_run.py moraine|bare add|anomaly FOLDER``."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import work
import zarr

WORKERS = 2


def main(contender: str, workload: str, folder: str) -> None:
    """Compute ``a[1:] + b[1:]`` or ``a[1:] - mean(a)`` from `folder` into ``folder/out.zarr``."""
    a, b, out = (str(Path(folder) / name) for name in ("a.zarr", "b.zarr", "out.zarr"))
    source = zarr.open_array(a, mode="r")
    (n_rows, width), (rows, _) = source.shape, source.chunks
    zarr.create_array(out, shape=(n_rows - 1, width), chunks=source.chunks, dtype="float64", overwrite=True)
    run = {"moraine": _moraine, "bare": _bare}[contender]
    run(workload, a, b, out, n_rows, rows)


def _spans(n_rows: int, rows: int) -> list[tuple[int, int]]:
    return [(start, min(start + rows, n_rows)) for start in range(0, n_rows, rows)]


def _moraine(workload: str, a: str, b: str, out: str, n_rows: int, rows: int) -> None:
    from moraine_core import ALL, Chunk, Executor

    def part(path: str, start: int, stop: int) -> Any:
        return Chunk(path, (slice(start, stop), ALL))

    spans = _spans(n_rows - 1, rows)
    with Executor(processes=True, n_workers=WORKERS) as executor:
        if workload == "add":
            tasks = [([part(a, s + 1, e + 1), part(b, s + 1, e + 1)], [part(out, s, e)]) for s, e in spans]
            executor.map_chunks(work.add, tasks)
            return
        totals = executor.map_chunks(work.total, [([part(a, s, e)], []) for s, e in _spans(n_rows, rows)])
        mean = sum(totals) / zarr.open_array(a, mode="r").size
        executor.map_chunks(work.subtract, [([part(a, s + 1, e + 1)], [part(out, s, e)]) for s, e in spans], mean=mean)


def _bare(workload: str, a: str, b: str, out: str, n_rows: int, rows: int) -> None:
    spans = _spans(n_rows - 1, rows)
    with ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn")) as pool:
        if workload == "add":
            futures = [pool.submit(work.bare_add, a, b, out, s, e) for s, e in spans]
        else:
            totals = [pool.submit(work.bare_total, a, s, e) for s, e in _spans(n_rows, rows)]
            mean = sum(future.result() for future in totals) / zarr.open_array(a, mode="r").size
            futures = [pool.submit(work.bare_subtract, a, out, mean, s, e) for s, e in spans]
        for future in futures:
            future.result()


if __name__ == "__main__":
    main(*sys.argv[1:])
