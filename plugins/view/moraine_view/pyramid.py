"""One pyramid directory, opened for looking at: what is in it and where on the ground or in the image it lies."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import zarr

from moraine_core.store import open_array

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

VERSION = 1
HALF_WORLD = 20037508.342789244
"""Half the length of the equator on web mercator, in meters."""

Kind = Literal["raster", "point cloud"]
Crs = Literal["grid", "web_mercator"]


@dataclass(frozen=True)
class Pyramid:
    """A pyramid's metadata; values are read later, and only those needed."""

    path: Path
    kind: Kind
    shape: tuple[int, ...]
    """Of the data: level 0 of a raster, the points of a cloud."""
    dtype: np.dtype[Any]
    stack: tuple[int, ...]
    """Lengths of the axes behind the spatial ones."""
    level_shape: tuple[int, int]
    """Rows and columns of level 0."""
    n_levels: int
    crs: Crs
    x0: float
    """Center of the first cell of level 0: range or easting, then azimuth or northing."""
    y0: float
    cell: float
    """Cell size of level 0, in pixels (grid) or meters (web mercator)."""
    stats: Mapping[str, Any]
    """Statistics of the data as kept in the marker; empty if there is none."""
    unit: str
    """Unit of the values if the data tell it, else empty."""

    def array(self, name: str) -> zarr.Array[Any]:
        """Open one of the pyramid's arrays, read only."""
        return open_array(self.path / f"{name}.zarr")

    def read(self, name: str, part: tuple[slice, ...], channel: tuple[int, ...] = ()) -> NDArray[Any]:
        """Read a spatial part of one channel of an array."""
        selection: tuple[slice | int, ...] = (*part, *channel)
        return np.asarray(self.array(name)[selection])

    def image_percentiles(self, channel: tuple[int, ...]) -> tuple[float, float] | None:
        """Give the 1st and 99th percentile of an image of a stack; None where they are not known."""
        if not (self.stack and (self.path / "stats.zarr").is_dir()):
            return None
        p01, _, p99 = self.read("stats", (), channel)[-3:].tolist()
        return None if np.isnan(p01) else (p01, p99)

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Edges ``(x_min, y_min, x_max, y_max)``, half a cell beyond the outermost centers."""
        rows, cols = self.level_shape
        half = self.cell / 2
        return (
            self.x0 - half,
            self.y0 - half,
            self.x0 + (cols - 1) * self.cell + half,
            self.y0 + (rows - 1) * self.cell + half,
        )


def open_pyramid(path: Path) -> Pyramid:
    """Open a pyramid directory.

    Parameters
    ----------
    path
        The directory.

    Returns
    -------
    Pyramid
        Its metadata.

    Raises
    ------
    ValueError
        If it is no (finished) pyramid, newer than this code, or lies in degrees.
    """
    found = read_marker(path)
    if found is None:
        what = "is not a finished pyramid" if path.exists() else "does not exist"
        msg = f"{path} {what}; build one with `moraine ras-pyramid` (rasters) or `moraine pc-pyramid` (point clouds)"
        raise ValueError(msg)
    level0, marker = found
    rows, cols = level0.shape[:2]
    is_cloud = marker.get("kind") == "point cloud"
    data = open_array(path / "pc.zarr") if is_cloud else level0
    crs, x0, y0, cell = _cloud_grid(path, rows, cols) if is_cloud else ("grid", 0.0, 0.0, 1.0)
    return Pyramid(
        path=path,
        kind="point cloud" if is_cloud else "raster",
        shape=data.shape,
        dtype=np.dtype(data.dtype),
        stack=data.shape[1:] if is_cloud else data.shape[2:],
        level_shape=(rows, cols),
        n_levels=count_levels(path),
        crs=crs,
        x0=x0,
        y0=y0,
        cell=cell,
        stats=marker.get("stats") or {},
        unit=str(level0.attrs.get("unit", "")),
    )


def read_marker(path: Path) -> tuple[zarr.Array[Any], dict[str, Any]] | None:
    """Open level 0 of a pyramid and read what its marker says.

    Parameters
    ----------
    path
        A directory, or anything else.

    Returns
    -------
    tuple or None
        Level 0, and the marker; of a pyramid from before there were markers only its ``kind``. None if the path is no
        finished pyramid.

    Raises
    ------
    ValueError
        The pyramid is newer than this code.
    """
    level0 = _level(path, 0)
    if level0 is None or level0.ndim < 2:
        return None
    marker = level0.attrs.get("moraine_pyramid") or _old_marker(path, level0)
    if not isinstance(marker, dict):
        return None
    if (version := int(str(marker.get("version", VERSION)))) > VERSION:
        msg = f"{path} is a pyramid of version {version}; this moraine reads versions up to {VERSION}"
        raise ValueError(msg)
    return level0, dict(marker)


def count_levels(path: Path) -> int:
    """Count the levels of a pyramid."""
    n_levels = 1
    while (path / f"{n_levels}.zarr").is_dir():
        n_levels += 1
    return n_levels


def _level(path: Path, level: int) -> zarr.Array[Any] | None:
    try:
        return zarr.open_array(path / f"{level}.zarr", mode="r")
    except (FileNotFoundError, zarr.errors.NodeTypeValidationError):
        return None


def _old_marker(path: Path, level0: zarr.Array[Any]) -> dict[str, Any] | None:
    """Recognize a pyramid from before the marker by its second level."""
    level1 = _level(path, 1)
    if level1 is None or level1.shape[:2] != tuple(-(-n // 2) for n in level0.shape[:2]):
        return None
    return {"kind": "point cloud" if (path / "pc.zarr").is_dir() else "raster"}


def _cloud_grid(path: Path, rows: int, cols: int) -> tuple[Crs, float, float, float]:
    with (path / "bounds.toml").open("rb") as file:
        bounds = tomllib.load(file)
    x0, y0, xm, ym = (float(edge) for edge in bounds["bounds"])
    # the longer side tells the cell size best; a cloud in a single cell has any
    span, n = max((xm - x0, cols - 1), (ym - y0, rows - 1), key=lambda side: side[1])
    cell = float(bounds.get("resolution", span / n if n else 1.0))
    return _crs(path, x0, y0, xm, ym), x0, y0, cell


def _crs(path: Path, x0: float, y0: float, xm: float, ym: float) -> Crs:
    """Tell a radar grid (whole numbers from 0) from web mercator (anything else but degrees)."""
    if min(x0, y0) >= 0 and x0.is_integer() and y0.is_integer() and _starts_whole(path):
        return "grid"
    if x0 >= -180 and xm <= 360 and y0 >= -90 and ym <= 90:
        msg = (
            f"{path}: coordinates x {x0:g} to {xm:g}, y {y0:g} to {ym:g} look like degrees; "
            "expected radar grid indices or web mercator meters: use `moraine transform` first"
        )
        raise ValueError(msg)
    if max(abs(x0), abs(xm), abs(y0), abs(ym)) > 1.001 * HALF_WORLD:
        msg = (
            f"{path}: coordinates x {x0:g} to {xm:g}, y {y0:g} to {ym:g} are neither radar grid indices "
            "nor web mercator meters; use `moraine transform` first"
        )
        raise ValueError(msg)
    return "web_mercator"


def _starts_whole(path: Path) -> bool:
    """Look at the first coordinates only: those of a map are practically never whole numbers."""
    try:
        heads = [open_array(path / f"{axis}.zarr")[:1000] for axis in "xy"]
    except (OSError, RuntimeError, EOFError, ValueError) as error:
        msg = f"{path}: the coordinates in x.zarr and y.zarr cannot be read: {error}"
        raise ValueError(msg) from error
    return all(bool(np.all(np.asarray(head) == np.rint(np.asarray(head, dtype=np.float64)))) for head in heads)
