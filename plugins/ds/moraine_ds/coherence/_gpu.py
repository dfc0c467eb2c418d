"""CUDA twins of `_cpu`, through cupy; `kernels` documents them. The source is in coherence.cu."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

TILE = 4
"""Images along a side of the tile of a thread, as in the source."""

MOST_THREADS = 512
"""Threads of a block at most: so many may have the registers that a tile needs."""

DEPTH = 32
"""Samples of an image in shared memory at a time, fewer where there are many images."""

SAMPLE_BYTES = 40 * 1024
"""Shared memory for samples: several blocks then fit into a multiprocessor."""

_module = cp.RawModule(code=Path(__file__).with_name("coherence.cu").read_text(encoding="utf-8"))


class Pairs(NamedTuple):
    """Image pairs as the kernel takes them, on the device."""

    tiles: Any
    """Tiles of the matrix (row, column) that have a pair, int32 ``(n_tiles, 2)``."""
    number: Any
    """Number of the pair of each two images, -1 if there is none, int32 ``(n_images, n_images)``."""


def pairs_on_device(first: Any, sec: Any) -> Pairs:
    """Return pairs, given row by row as in `_cpu`, for any number of launches."""
    n_images = len(first) - 1
    ref = np.repeat(np.arange(n_images), np.diff(first))
    tiles = np.unique(np.stack([ref // TILE, sec // TILE], axis=1), axis=0)
    number = np.full((n_images, n_images), -1)
    number[ref, sec] = np.arange(len(sec))
    return Pairs(cp.asarray(tiles.astype(np.int32)), cp.asarray(number.astype(np.int32)))


def coherence_of_points(rslc: Any, gix: Any, is_shp: Any, first: Any, sec: Any, strict: bool, out: Any) -> None:  # noqa: FBT001 - as `_cpu`
    """Compute the coherence of points, one pair after another: `out` is ``(n_pairs, n_points)``."""
    launch(rslc, gix, is_shp, pairs_on_device(first, sec), strict, out, (len(gix), 1))


def launch(rslc: Any, gix: Any, is_shp: Any, pairs: Pairs, strict: bool, out: Any, steps: tuple[int, int]) -> None:  # noqa: FBT001 - as `_cpu`
    """Compute the coherence of points; `steps` are how far apart pairs and points lie in the memory of `out`."""
    nlines, width, n_images = rslc.shape
    n_points, az_win, r_win = is_shp.shape
    threads = min(-(-len(pairs.tiles) // 32) * 32, MOST_THREADS)
    padded = -(-n_images // TILE) * TILE
    depth = max(min(DEPTH, SAMPLE_BYTES // (8 * padded)), 1)
    # room for the samples, and before them for a sum and a count of each thread or image
    buffer = max(depth * padded, -(-12 * max(threads, n_images) // 16) * 2)
    cells = az_win * r_win
    shared = 8 * buffer + 4 * (2 * n_images + 2 * cells + -(-cells // 32))
    has_gaps = cp.empty(n_points, dtype=cp.uint8)
    arguments = (
        *(rslc, np.int32(nlines), np.int32(width), np.int32(n_images)),
        *(gix, is_shp, np.int32(az_win), np.int32(r_win), pairs.tiles, np.int32(len(pairs.tiles)), pairs.number),
        *(np.int32(strict), np.int32(depth), np.int32(buffer), has_gaps, out, *map(np.int32, steps)),
    )
    for name in ("coherence", *(() if strict else ("coherence_of_gaps",))):
        kernel = _module.get_function(name)
        if shared > kernel.max_dynamic_shared_size_bytes:
            kernel.max_dynamic_shared_size_bytes = shared
        kernel((n_points,), (threads,), arguments, shared_mem=shared)
