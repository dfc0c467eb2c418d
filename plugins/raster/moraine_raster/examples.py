"""Small inputs for the commands of this family: what the conformance kit runs, and what a reader can try."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.testing.data import speckle, write_array

if TYPE_CHECKING:
    from pathlib import Path


def image_pairs(folder: Path, scale: int) -> dict[str, Any]:
    """Name a number of images."""
    return {"out": str(folder / "pairs.txt"), "nimages": 7 * scale, "bandwidth": 3}


def math(folder: Path, scale: int) -> dict[str, Any]:
    """Write an interferogram and its coherence, in chunks of different sizes."""
    shape = (31 * scale, 26 * scale)
    coh = np.random.default_rng(2).random(shape, dtype=np.float32)
    coh[3, 4:] = np.nan
    return {
        "output": str(folder / "phase.zarr"),
        "operation": "where(coh > 0.3, angle(intf), nan)",
        "intf": write_array(folder / "intf.zarr", speckle(shape, seed=1), chunks=(9 * scale, 7 * scale)),
        "coh": write_array(folder / "coh.zarr", coh, chunks=(10 * scale, 26 * scale)),
    }


def polygon_mask(folder: Path, scale: int) -> dict[str, Any]:
    """Write two polygons that overlap, and longitudes and latitudes in chunks of different sizes."""
    shape = (29 * scale, 21 * scale)
    lat, lon = np.meshgrid(np.linspace(41, 40, shape[0]), np.linspace(14, 15, shape[1]), indexing="ij")
    lon[5, 2:9] = np.nan
    rings = [
        [[14.1, 40.2], [14.9, 40.3], [14.4, 40.5], [14.6, 40.9], [14.1, 40.2]],
        [[14.3, 40.1], [14.8, 40.7], [14.2, 40.8], [14.3, 40.1]],
    ]
    geometry = {"type": "MultiPolygon", "coordinates": [[ring] for ring in rings]}
    (folder / "polygons.geojson").write_text(json.dumps(geometry), encoding="utf-8")
    return {
        "polygons": str(folder / "polygons.geojson"),
        "mask": str(folder / "mask.zarr"),
        "x": write_array(folder / "lon.zarr", lon, chunks=(8 * scale, 7 * scale)),
        "y": write_array(folder / "lat.zarr", lat, chunks=(29 * scale, 5 * scale)),
        "keep": "outside",
    }


def transform(folder: Path, scale: int) -> dict[str, Any]:
    """Write longitudes and latitudes, in chunks of different sizes."""
    shape = (23 * scale, 17 * scale)
    random = np.random.default_rng(3)
    lon, lat = random.uniform(-180, 180, shape), random.uniform(-89, 89, shape)
    lon[2, 3:] = np.nan
    return {
        "xx_in": write_array(folder / "lon.zarr", lon, chunks=(9 * scale, 7 * scale)),
        "yy_in": write_array(folder / "lat.zarr", lat.astype(np.float32), chunks=(10 * scale, 17 * scale)),
        "xx_out": str(folder / "e.zarr"),
        "yy_out": str(folder / "n.zarr"),
    }
