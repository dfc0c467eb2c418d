"""CUDA twins of `_cpu`, through cupy; `kernels` documents them. The source is in ds_temp_coh.cu."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

MAX_IMAGES = 1024
"""Each lane of a warp holds one word of 32 images while components are counted."""

MAX_SHARED_BYTES = 48 << 10
"""Shared memory of a block without asking for more."""

_module = cp.RawModule(code=Path(__file__).with_name("ds_temp_coh.cu").read_text(encoding="utf-8"))


def points(
    coh: Any,
    ph: Any,
    looks: Any,
    log_p: float,
    pairs: np.ndarray[Any, Any],
    t_coh: Any,
    t_coh_w: Any,
    eff_n_pairs: Any,
    n_components: Any,
) -> None:
    """Write the four measures of each point; `pairs` are ``(n_pairs, 2)``."""
    n_points, nimages = ph.shape
    if nimages > MAX_IMAGES:
        raise ValueError(f"ph has {nimages} images; the kernel for GPUs takes up to {MAX_IMAGES}")
    if n_points == 0:
        return
    warp_bytes = nimages * (8 + 4 * ((nimages + 31) // 32))
    warps = max(1, min(8, MAX_SHARED_BYTES // warp_bytes))
    shared = warps * warp_bytes
    kernel = _module.get_function("ds_temp_coh")
    if shared > MAX_SHARED_BYTES:
        kernel.max_dynamic_shared_size_bytes = shared
    packed = pairs[:, 0].astype(np.uint32) | pairs[:, 1].astype(np.uint32) << np.uint32(16)
    kernel(
        (-(-n_points // warps),),
        (32 * warps,),
        (
            coh,
            ph,
            looks,
            cp.asarray(packed),
            np.float64(log_p),
            np.int32(n_points),
            np.int32(nimages),
            np.int32(pairs.shape[0]),
            t_coh,
            t_coh_w,
            eff_n_pairs,
            n_components,
        ),
        shared_mem=shared,
    )
