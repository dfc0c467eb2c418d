"""Small inputs for the commands of this family: what the conformance kit runs, and what a reader can try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.testing.data import speckle, write_array

if TYPE_CHECKING:
    from pathlib import Path


def ras_pyramid(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack of speckle with missing pixels."""
    ras = speckle((37 * scale, 29 * scale, 3), seed=1)
    ras[5:9, 4:11, 1] = np.nan
    path = write_array(folder / "ras.zarr", ras, chunks=(10 * scale, 12 * scale, 1))
    # bands of two tiles, and means that are handed on from one stage to the next
    return {
        "ras": path,
        "out_dir": str(folder / "pyramid"),
        "chunks": (5 * scale, 7 * scale),
        "rows": 8,
        "method": "mean",
    }


def pc_pyramid(folder: Path, scale: int) -> dict[str, Any]:
    """Write a cloud of points on a map with missing values, some of them in one cell."""
    rng = np.random.default_rng(2)
    n_points = 211 * scale
    pc = speckle((n_points, 2), seed=3)
    pc[::17, 0] = np.nan
    x, y = rng.uniform(0, 900 * scale, n_points) + 1_574_000, rng.uniform(0, 700, n_points) + 4_985_000
    return {
        "pc": write_array(folder / "pc.zarr", pc, chunks=(50 * scale, 1)),
        "x": write_array(folder / "x.zarr", x, chunks=(50 * scale,)),
        "y": write_array(folder / "y.zarr", y, chunks=(50 * scale,)),
        "out_dir": str(folder / "pyramid"),
        "ras_resolution": 20.0,
        "ras_chunks": (8, 9 * scale),
        "pc_chunks": 60 * scale,
        "method": "mean",
    }
