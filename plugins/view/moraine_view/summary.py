"""What ``moraine info`` says of a pyramid: from its marker, or measured on a coarser level where there is none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.store import open_array
from moraine_view import kernels
from moraine_view.pyramid import count_levels, read_marker

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 1 << 26
"""Largest level that is read to measure it."""


def summarize(path: Path) -> dict[str, Any] | None:
    """Summarize a pyramid.

    Parameters
    ----------
    path
        Anything.

    Returns
    -------
    dict or None
        ``path kind shape dtype levels``, ``method`` if known, ``stats_level``, statistics and ``warnings``; None if the
        path is no finished pyramid.
    """
    found = read_marker(path)
    if found is None:
        return None
    level0, marker = found
    is_cloud = marker.get("kind") == "point cloud"
    data = open_array(path / "pc.zarr") if is_cloud else level0
    level, stats = 0, marker.get("stats")
    if not stats:
        level, stats = _measured(path, is_cloud=is_cloud)
        if level and marker.get("method") == "mean":
            stats["warnings"].append(f"statistics are of the means of level {level}")
    return {
        "path": str(path),
        "kind": f"{marker['kind']} pyramid",
        "shape": list(level0.shape),
        "dtype": np.dtype(data.dtype).name,
        "levels": count_levels(path),
        **({"method": marker["method"]} if "method" in marker else {}),
        "stats_level": level,
        **stats,
    }


def _measured(path: Path, *, is_cloud: bool) -> tuple[int, dict[str, Any]]:
    """Measure the finest level that is small enough; return its number and the record."""
    levels = [open_array(path / f"{level}.zarr") for level in range(count_levels(path))]
    small = (level for level, array in enumerate(levels) if array.nbytes <= MOST_BYTES)
    level = next(small, len(levels) - 1)
    values = np.asarray(levels[level][...])
    if is_cloud:
        index = np.asarray(open_array(path / f"idx_{level}.zarr")[...])
        values = values[index >= 0]
    images = values.reshape(-1, math.prod(levels[level].shape[2:])).T
    lines, _ = kernels.measure_lines(images, images.shape[1])
    parts = [kernels.join_lines(line[None], images.shape[1], values.dtype) for line in lines]
    percentiles = kernels.percentiles_of(kernels.measured(images))
    return level, dict(kernels.finished_statistics(kernels.merge_statistics(parts), percentiles, parts))
