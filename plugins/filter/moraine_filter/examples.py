"""Small inputs for the commands of this family: what the conformance kit runs, and what a reader can try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.testing.data import speckle, write_array

if TYPE_CHECKING:
    from pathlib import Path


def n2ft(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack of points on a slope of phase, with some missing samples and two points at one place."""
    n_points = 60 + 400 * scale
    rng = np.random.default_rng(4)
    x, y = rng.uniform(0, 30 * n_points**0.5, (2, n_points))
    order = np.lexsort((y, x // 100))
    x, y = x[order], y[order]
    x[-1], y[-1] = x[5], y[5]
    slope = np.exp(1j * np.outer(x / 90 - y / 70, np.arange(5)))
    rslc = (speckle((n_points, 1), seed=5) + 0.7 * speckle((n_points, 5), seed=6)) * slope
    rslc[11, 2], rslc[13] = np.nan, 0
    return {
        "x": write_array(folder / "x.zarr", x, chunks=(150 * scale,)),
        "y": write_array(folder / "y.zarr", y, chunks=(170 * scale,)),
        "rslc": write_array(folder / "rslc.zarr", rslc.astype(np.complex64), chunks=(130 * scale, 1)),
        "intf": str(folder / "intf.zarr"),
        "image_pairs": "[[0, 1], [0, 2], [1, 2], [2, 3], [1, 4], [3, 4]]",
        "trust": str(folder / "trust.zarr"),
        "out_chunks": 130 * scale,
    }


def n2f(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack of speckle that is coherent on slopes of phase, with some missing samples."""
    shape = (21 * scale, 25 * scale)
    line, pixel = np.indices(shape, dtype=np.float32)
    slope = np.exp(1j * ((line - pixel / 2) / 9)[..., None] * np.arange(4))
    rslc = (speckle((*shape, 1), seed=1) + 0.7 * speckle((*shape, 4), seed=2)) * slope
    rslc[3, 4:8, 1], rslc[5, 6], rslc[9:15, 10:13] = np.nan, 0, np.inf
    return {
        "rslc": write_array(folder / "rslc.zarr", rslc.astype(np.complex64), chunks=(9 * scale, 8 * scale, 1)),
        "intf": str(folder / "intf.zarr"),
        "image_pairs": "[[0, 1], [0, 2], [2, 1], [2, 3]]",
        "trust": str(folder / "trust.zarr"),
        "chunks": (9 * scale, 8 * scale),
        "out_chunks": (9 * scale, 8 * scale),
    }
