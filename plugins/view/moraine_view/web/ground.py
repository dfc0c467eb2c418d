"""Where the pixels of a radar grid lie on the ground: spacings from metadata, longitude and latitude from rasters."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import zarr

from moraine_core.store import PROVENANCE, open_array
from moraine_view.web.reader import IncompleteError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from moraine_view.web.reader import Reader

RASTERS = ("{}.zarr", "{}_pyramid/0.zarr")
"""What the rasters of `lon` and `lat` are called beside the layers of a grid."""


class Spacing(NamedTuple):
    """Sides of a pixel of a radar grid, in meters."""

    azimuth: float
    range: float
    is_ground: bool
    """`range` is measured on the ground, in the middle of the image; else along the line of sight."""


def spacing_of(meta: Mapping[str, Any], shape: tuple[int, int] | None) -> Spacing | str:
    """Find the spacings of a radar grid.

    Parameters
    ----------
    meta
        What is in a ``meta.toml``: ``azimuth_pixel_spacing`` and ``range_pixel_spacing`` in m; with ``incidence`` in
        degrees the latter, which is along the line of sight, is told on the ground.
    shape
        Of the grid, None if it is not known; spacings of another ``shape`` are those of other pixels.

    Returns
    -------
    Spacing or str
        On the ground if the incidence is known; why they are not known otherwise.

    Notes
    -----
    Ground range is slant range divided by the sine of the incidence angle (flat ground).
    """
    azimuth, slant = (_length(meta.get(f"{axis}_pixel_spacing")) for axis in ("azimuth", "range"))
    if azimuth is None or slant is None:
        return "no meta.toml near the data tells azimuth_pixel_spacing and range_pixel_spacing"
    own = meta.get("shape")
    if shape is not None and isinstance(own, list) and own != list(shape):
        return f"the spacings in meta.toml are those of {own} pixels; this grid has {list(shape)}"
    incidence = meta.get("incidence")
    if isinstance(incidence, int | float) and 1 < incidence < 90:
        return Spacing(azimuth, slant / math.sin(math.radians(incidence)), is_ground=True)
    return Spacing(azimuth, slant, is_ground=False)


def _length(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < math.inf else None


class Ground:
    """Longitude and latitude of the pixels of a grid.

    Parameters
    ----------
    lon, lat
        Rasters in degrees.
    shape
        Of the grid.
    reader
        Reads them.
    """

    def __init__(self, lon: Path, lat: Path, shape: tuple[int, int], reader: Reader) -> None:
        self._paths = lon, lat
        self._shape = shape
        self._reader = reader

    def covers(self, i: int, j: int) -> bool:
        """Tell whether a pixel is one of the grid."""
        return 0 <= i < self._shape[0] and 0 <= j < self._shape[1]

    def at(self, i: int, j: int) -> tuple[float, float] | None:
        """Give longitude and latitude of a pixel, in degrees; None where they are not finite.

        Raises
        ------
        IncompleteError
            The rasters are gone, or not whole.
        """
        part = slice(i, i + 1), slice(j, j + 1)
        lon, lat = (float(self._read(path, part)) for path in self._paths)
        return (lon, lat) if math.isfinite(lon) and math.isfinite(lat) else None

    def _read(self, path: Path, part: tuple[slice, slice]) -> Any:
        try:
            array = open_array(path)
        except (OSError, ValueError, KeyError) as error:
            msg = f"{path.parent.name}/{path.name} cannot be opened"
            raise IncompleteError(msg) from error
        folder = path if PROVENANCE in array.attrs else None  # ours have all their chunks
        return self._reader.read((str(path), array_stamp(path)), array, part, (), folder)[0, 0]


def find_ground(folders: Iterable[Path], shape: tuple[int, int], reader: Reader) -> Ground | None:
    """Find rasters of longitude and latitude: ``lon.zarr`` and ``lat.zarr``, or pyramids of them.

    Parameters
    ----------
    folders
        Where to look.
    shape
        Of the grid, which the rasters must have.
    reader
        Reads them.

    Returns
    -------
    Ground or None
        The first pair found.
    """
    for folder in folders:
        for form in RASTERS:
            lon, lat = (folder / form.format(name) for name in ("lon", "lat"))
            if _is_raster(lon, shape) and _is_raster(lat, shape):
                return Ground(lon, lat, shape, reader)
    return None


def _is_raster(path: Path, shape: tuple[int, int]) -> bool:
    try:
        array = zarr.open_array(path, mode="r")
    except (OSError, ValueError, KeyError):
        return False
    return array.shape == shape and np.dtype(array.dtype).kind == "f"


def array_stamp(path: Path) -> str:
    """Return what changes when an array is made again; empty if it is gone."""
    for name in ("zarr.json", ".zattrs", ".zarray"):
        try:
            found = os.stat(path / name)
        except OSError:
            continue
        return f"{found.st_mtime_ns:x}-{found.st_ino:x}"
    return ""
