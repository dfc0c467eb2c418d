"""The peer of the point benchmarks: ``points_copy.py SOURCE TARGET THREADS`` copies with zarr, or only reads."""

from __future__ import annotations

import sys
from itertools import product
from typing import Any

import zarr

from moraine_core import Executor
from moraine_core.codecs import DEFAULT, codecs_of


def copy(source: str, target: str, part: tuple[slice, ...]) -> None:
    """Copy a part of an array, or only read it."""
    values = zarr.open_array(source, mode="r")[part]
    if target:
        zarr.open_array(target, mode="r+")[part] = values


def parts_of(array: zarr.Array[Any]) -> list[tuple[slice, ...]]:
    """Return the parts that are copied: a chunk each, but of points a whole image."""
    chunks = (array.shape[0], 1) if array.ndim == 2 else array.chunks
    starts = product(*(range(0, n, c) for n, c in zip(array.shape, chunks, strict=True)))
    return [tuple(slice(low, low + c) for low, c in zip(corner, chunks, strict=True)) for corner in starts]


def main(source: str, target: str, threads: str) -> None:
    """Copy."""
    array = zarr.open_array(source, mode="r")
    if target:
        codecs = codecs_of(DEFAULT, str(array.dtype))
        zarr.create_array(
            target, shape=array.shape, chunks=array.chunks, dtype=array.dtype, compressors=codecs, overwrite=True
        )
    with Executor(n_workers=int(threads)) as executor:
        executor.map(copy, [(source, target, part) for part in parts_of(array)])


if __name__ == "__main__":
    main(*sys.argv[1:])
