"""The CUDA twin of `_cpu`, through cupy; `kernels` documents it, and the source says how it works."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import cupy as cp
import numpy as np

from moraine_ds.phase_linking.eigenvalues._cpu import REAL_STEPS
from moraine_ds.phase_linking.layout._cpu import GROUP, STEPS

SHARED_WORDS = 12 << 10
"""Shared memory of a block that every GPU since 2020 has, in 8 bytes: matrices of more than 138 images have no room."""

BLOCKS = 1056
"""Blocks of a launch: 8 for each of 132 multiprocessors, some more than run at once."""

SPILLING_BLOCKS = 264
"""Blocks of a launch whose matrices are in the memory of the device: so many that this is little."""


def link_all(
    coh: Any,
    ref: int,
    regularize: bool,  # noqa: FBT001 - as in _cpu
    beta_min: float,
    ph: Any,
    quality: Any,
    beta: Any,
) -> None:
    """Link each row of packed coherence; fill in the phasors, and the eigenvalue and regularization of each point."""
    n_points, n_images = ph.shape
    if n_points == 0:
        return
    matrix = matrix_words(n_images)
    shared, spill, blocks = shared_words(n_images) + matrix, None, min(n_points, BLOCKS)
    if shared > SHARED_WORDS:
        shared -= matrix
        blocks = min(n_points, SPILLING_BLOCKS)
        spill = cp.empty(blocks * matrix, dtype=cp.complex64)
    kernel = _module().get_function("link_points")
    if 8 * shared > 48 << 10:
        kernel.max_dynamic_shared_size_bytes = 8 * shared
    options = (np.int32(ref), np.bool_(regularize), np.float64(beta_min))
    sizes = (np.int64(n_points), np.int32(n_images))
    threads = 128 if n_images <= 128 else 256
    kernel((blocks,), (threads,), (coh, *options, ph, quality, beta, *sizes, spill), shared_mem=8 * shared)


def matrix_words(n_images: int) -> int:
    """Return the size of a packed matrix, in 8 bytes."""
    rows = -(-n_images // GROUP) * GROUP
    return rows * (rows + 1) // 2


def shared_words(n_images: int) -> int:
    """Return the shared memory of a block besides its matrix, in 8 bytes."""
    rows = -(-n_images // GROUP) * GROUP
    return 3 * REAL_STEPS + 3 + 16 + rows // 2 + (2 * GROUP + STEPS + 2) * rows


@cache
def _module() -> Any:
    source = files("moraine_ds.phase_linking").joinpath("emi.cu").read_text(encoding="utf-8")
    return cp.RawModule(code=source)
