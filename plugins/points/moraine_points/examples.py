"""Small inputs for the commands of this family: what the conformance kit runs, and what a reader can try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.testing.data import speckle, write_array
from moraine_points.kernels import pc_hix as hilbert_index

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def _cloud(scale: int) -> tuple[NDArray[np.int32], tuple[int, int]]:
    """Return every third pixel of a raster in random order, and the raster's shape."""
    shape = (37 * scale, 23 * scale)
    pixels = np.random.default_rng(3).permutation(shape[0] * shape[1])[::3]
    return np.stack(np.unravel_index(pixels, shape), axis=1).astype(np.int32), shape


def pc_hix(folder: Path, scale: int) -> dict[str, Any]:
    """Write a cloud without order."""
    gix, shape = _cloud(scale)
    path = write_array(folder / "gix.zarr", gix, chunks=(50 * scale, 2))
    return {"gix": path, "hix": str(folder / "hix.zarr"), "shape": shape, "chunks": 60 * scale}


def pc_sort(folder: Path, scale: int) -> dict[str, Any]:
    """Write a cloud without order with a stack, a window array and its gix as data."""
    gix, shape = _cloud(scale)
    block = 50 * scale
    windows = np.random.default_rng(4).random((len(gix), 3, 5)) < 0.5
    return {
        "idx_in": write_array(folder / "hix_in.zarr", hilbert_index(gix, shape), chunks=(block,)),
        "idx": str(folder / "hix.zarr"),
        "pc_in": [
            write_array(folder / "rslc_in.zarr", speckle((len(gix), 4), seed=5), chunks=(block, 1)),
            write_array(folder / "is_shp_in.zarr", windows, chunks=(block, 3, 5)),
            write_array(folder / "gix_in.zarr", gix, chunks=(block, 2)),
        ],
        "pc": [str(folder / name) for name in ("rslc.zarr", "is_shp.zarr", "gix.zarr")],
        "shape": shape,
        "key": str(folder / "key.zarr"),
    }


def pc_logic_ras(folder: Path, scale: int) -> dict[str, Any]:
    """Write a raster with missing values, a third of whose pixels are chosen."""
    ras = np.random.default_rng(6).random((41 * scale, 29 * scale), dtype=np.float32)
    ras[::7, ::5] = np.nan
    path = write_array(folder / "adi.zarr", ras, chunks=(9 * scale, 8 * scale))
    return {"ras": path, "gix": str(folder / "gix.zarr"), "operation": "ras < 0.3", "chunks": 50 * scale}


def ras2pc(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack, a window array and a height, and points in the order of the Hilbert curve."""
    gix, shape = _cloud(scale)
    hix = np.sort(hilbert_index(gix, shape))
    windows = np.random.default_rng(7).random((*shape, 3, 5), dtype=np.float32)
    height = np.random.default_rng(8).integers(-5, 300, shape, dtype=np.int16)
    chunks = (9 * scale, 8 * scale)
    return {
        "idx": write_array(folder / "hix.zarr", hix, chunks=(50 * scale,)),
        "ras": [
            write_array(folder / "rslc.zarr", speckle((*shape, 3), seed=9), chunks=(*chunks, 1)),
            write_array(folder / "p.zarr", windows, chunks=(*chunks, 3, 5)),
            write_array(folder / "hgt.zarr", height, chunks=chunks),
        ],
        "pc": [str(folder / f"pc_{name}.zarr") for name in ("rslc", "p", "hgt")],
        "chunks": 60 * scale,
    }
