"""Small inputs for the commands of this family: what the conformance kit runs, and what a reader can try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.testing.data import speckle, write_array

if TYPE_CHECKING:
    from pathlib import Path


def amp_disp(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack of speckle with some missing samples."""
    rslc = speckle((13 * scale, 17 * scale, 6), seed=1)
    rslc[2, 3, :] = np.nan
    rslc[4, 5, 1] = 0
    path = write_array(folder / "rslc.zarr", rslc, chunks=(5 * scale, 6 * scale, 1))
    return {"rslc": path, "adi": str(folder / "adi.zarr"), "chunks": (5 * scale, 6 * scale), "calibrate": True}


def temp_coh(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack of speckle, and interferograms of some of its pairs with other noise; some samples are missing."""
    shape = (11 * scale, 14 * scale)
    rslc = speckle((*shape, 6), seed=2)
    pairs = [[0, 1], [0, 2], [1, 2], [2, 3], [2, 5], [3, 4], [4, 5]]
    noise = speckle((*shape, len(pairs)), seed=3)
    intf = np.stack([rslc[..., ref] * rslc[..., sec].conj() for ref, sec in pairs], axis=-1) + noise
    rslc[2, 3, 1] = np.nan
    rslc[4, 5] = 0
    intf[6, 2:7, 4] = np.nan
    return {
        "intf": write_array(folder / "intf.zarr", intf, chunks=(4 * scale, 5 * scale, 1)),
        "rslc": write_array(folder / "rslc.zarr", rslc, chunks=(5 * scale, 6 * scale, 1)),
        "t_coh": str(folder / "t_coh.zarr"),
        "image_pairs": str(pairs),
        "chunks": (4 * scale, 5 * scale),
    }
