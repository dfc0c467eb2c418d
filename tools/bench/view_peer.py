"""Put a stack into a store that the viewer ``bowser-insar`` shows: run by the Python of its environment.

``python view_peer.py VALUES.npy STORE.zarr``; values are float32, ``(nlines, width, nimages)``.
"""

from __future__ import annotations

import sys

import numpy as np
import rioxarray  # noqa: F401 - the accessor ``rio``
import xarray as xr
import zarr
from bowser.geozarr import ZarrWriteConfig, build_pyramid, shard_encoding

WEST, NORTH, PIXEL = 400_000, 3_900_000, 30
"""Of the corner, in UTM zone 11, and of a pixel, in meters."""


def main(values: str, store: str) -> None:
    """Write the store with its pyramid, as its own converter does, in chunks of 256 x 256."""
    data = np.moveaxis(np.load(values), -1, 0)
    n, rows, cols = data.shape
    coordinates = {
        "time": np.datetime64("2023-01-06", "ns") + np.arange(n) * np.timedelta64(12, "D"),
        "y": NORTH - PIXEL * (np.arange(rows) + 0.5),
        "x": WEST + PIXEL * (np.arange(cols) + 0.5),
    }
    stack = xr.Dataset({"displacement": (("time", "y", "x"), data)}, coordinates).rio.write_crs(32611)
    config = ZarrWriteConfig(shard_factor=1)
    stack.to_zarr(store, group="0", mode="w", consolidated=False, encoding=shard_encoding(stack, config))
    levels = build_pyramid(store, config=config, level_0_ds=stack)
    zarr.open_group(store, mode="r+").attrs["multiscales"] = {"layout": levels}


if __name__ == "__main__":
    main(*sys.argv[1:])
