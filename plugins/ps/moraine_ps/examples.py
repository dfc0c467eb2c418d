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
