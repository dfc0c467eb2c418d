"""Dask as a contender of the memory benchmark, run by the Python of its own environment; as `memory_run` otherwise."""

from __future__ import annotations

import sys
from pathlib import Path

import dask.array as da
from dask.distributed import Client, LocalCluster

WORKERS = 2


def main(workload: str, folder: str) -> None:
    """Compute ``a[1:] + b[1:]`` or ``a[1:] - mean(a)`` from `folder` into ``folder/out.zarr``."""
    a, b, out = (str(Path(folder) / name) for name in ("a.zarr", "b.zarr", "out.zarr"))
    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        x = da.from_zarr(a)
        result = x[1:] + da.from_zarr(b)[1:] if workload == "add" else x[1:] - x.mean()
        result.rechunk(x.chunksize).to_zarr(out, overwrite=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
