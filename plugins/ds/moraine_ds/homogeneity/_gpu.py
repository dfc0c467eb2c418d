"""CUDA twins of `_cpu`, through cupy; `kernels` documents them, and the sources say how they work."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import cupy as cp
import numpy as np

THREADS = 256

ROWS, LANES = 8, 32
"""Lines and pixels of a block that tests; a warp takes pixels side by side."""

TILE_BYTES = 40 << 10
"""Shared memory for the tiles of images; several blocks find room on a multiprocessor."""

SHARED_BYTES = 227 << 10
"""Most shared memory of a block on the GPUs with the most."""


def add_images(images: Any, gain: Any, first: int, series: Any, n_valid: Any) -> None:
    """Put the amplitudes of some images, the first of which has this number, into the series of their pixels."""
    _, n_images, stride = series.shape
    args = (images, cp.asarray(gain), np.int32(first), np.int32(images.shape[2]), series, n_valid)
    sizes = (np.int64(n_valid.size), *_int32(n_valid.shape[1], n_images, stride))
    _launch(_series().get_function("add_images"), n_valid.size, THREADS, (*args, *sizes))


def sort_series(series: Any) -> None:
    """Sort the series of every pixel in place."""
    nlines, n_images, stride = series.shape
    columns = nlines * stride
    threads = next((t for t in (128, 64, 32) if 4 * n_images * t <= SHARED_BYTES // 2), 32)
    shared = 4 * n_images * threads
    if shared > SHARED_BYTES:
        msg = f"the stack has {n_images} images; expected at most {SHARED_BYTES // 128} on a GPU"
        raise ValueError(msg)
    top = 1
    while 2 * top < n_images:
        top *= 2
    args = (series, np.int64(columns), *_int32(n_images, stride, top))
    _launch(_series().get_function("sort_series"), columns, threads, args, shared)


def shp_test(
    series: Any,
    n_valid: Any,
    half_win: tuple[int, int],
    limit: Any,
    fewest: int,
    is_shp: Any,
    shp_num: Any,
    pvalue: Any,
) -> None:
    """Test every pixel against the half of its window behind it, and mirror."""
    nlines, n_images, stride = series.shape
    width = n_valid.shape[1]
    if n_valid.size == 0:
        return
    az_half, r_half = half_win
    module = _test(az_half, r_half)
    tile = 4 * (ROWS + az_half) * (LANES + 2 * r_half)
    if tile > SHARED_BYTES:
        msg = f"az_half_win and r_half_win are {half_win}; the window is too large for a GPU"
        raise ValueError(msg)
    planes = max(min(TILE_BYTES // tile, n_images, 4), 1)
    half_cells = ((2 * az_half + 1) * (2 * r_half + 1)) // 2
    words = cp.empty((max(-(-half_cells // 32), 1), nlines, width), dtype=cp.uint32)
    kernel = module.get_function("mark_homogeneous")
    _allow(kernel, planes * tile)
    sizes = _int32(nlines, width, n_images, stride, fewest, planes)
    blocks = -(-nlines // ROWS) * -(-width // LANES)
    kernel((blocks,), (LANES, ROWS), (series, n_valid, cp.asarray(limit), words, *sizes), shared_mem=planes * tile)
    args = (words, n_valid, np.int32(fewest), is_shp, shp_num, *_int32(nlines, width))
    _launch(module.get_function("write_windows"), 32 * n_valid.size, THREADS, args)
    if pvalue.size:
        args = (series, n_valid, pvalue, *_int32(nlines, width, n_images, stride, fewest))
        _launch(module.get_function("write_pvalues"), n_valid.size * (half_cells + 1), THREADS, args)


def select_shp(pvalue: Any, alpha: Any, is_shp: Any, shp_num: Any) -> None:
    """Mark p values of at least alpha, which nan is not, and count them."""
    cells = pvalue.shape[-2] * pvalue.shape[-1]
    args = (cp.ascontiguousarray(pvalue), alpha, is_shp, shp_num, np.int64(shp_num.size), np.int32(cells))
    _launch(_series().get_function("select_shp"), 32 * shp_num.size, THREADS, args)


def _int32(*values: int) -> tuple[Any, ...]:
    return tuple(np.int32(value) for value in values)


def _launch(kernel: Any, threads: int, block: int, args: tuple[Any, ...], shared: int = 0) -> None:
    """Start so many threads in blocks of one size; none where there is nothing to do."""
    if threads:
        _allow(kernel, shared)
        kernel((-(-threads // block),), (block,), args, shared_mem=shared)


def _allow(kernel: Any, shared: int) -> None:
    """Let a kernel have more dynamic shared memory than CUDA gives unasked."""
    if shared > 48 << 10:
        kernel.max_dynamic_shared_size_bytes = shared


@cache
def _series() -> Any:
    return cp.RawModule(code=_source("series.cu"))


@cache
def _test(az_half_win: int, r_half_win: int) -> Any:
    """Return the kernels of one window: with its size known, loops over it unroll and its bits stay in registers."""
    macros = {"AZ_HALF_WIN": az_half_win, "R_HALF_WIN": r_half_win, "ROWS": ROWS, "LANES": LANES}
    options = tuple(f"-D{name}={value}" for name, value in macros.items())
    return cp.RawModule(code=_source("shp_test.cu"), options=options)


def _source(name: str) -> str:
    return files("moraine_ds.homogeneity").joinpath(name).read_text(encoding="utf-8")
