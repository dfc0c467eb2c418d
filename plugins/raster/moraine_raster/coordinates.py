"""Coordinates from one reference system to another, on arrays."""

from __future__ import annotations

import importlib
from math import pi
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Float64 = np.ndarray[Any, np.dtype[np.float64]]

RADIUS = 6378137.0
"""Of the sphere of web mercator, m."""

GEOGRAPHIC, WEB_MERCATOR = 4326, 3857
"""EPSG codes of longitude and latitude on WGS 84, and of web mercator."""


def transform(x: ArrayLike, y: ArrayLike, *, epsg_in: int, epsg_out: int) -> tuple[Float64, Float64]:
    """Return coordinates in another reference system.

    Parameters
    ----------
    x, y
        Coordinates, x (east, longitude) first whatever the order of axes in the system's definition; of one shape, in
        the unit of the system: degrees for EPSG:4326, m for EPSG:3857.
    epsg_in, epsg_out
        EPSG codes. 4326 and 3857 need no library; other codes need pyproj.

    Returns
    -------
    x, y
        float64, of the shape of the input. Both are nan where either coordinate is nan or the result is infinite,
        as at the poles of web mercator.

    Raises
    ------
    ImportError
        pyproj is needed and not installed.

    Notes
    -----
    Web mercator: ``e = R lon``, ``n = R ln tan(pi/4 + lat/2) = R artanh(sin(lat))``, with angles in radians and
    R = 6378137 m (EPSG guidance note 7-2, method 1024). Latitudes beyond 85.06 degrees are not clipped.

    Examples
    --------
    >>> e, n = transform([14.14], [40.82], epsg_in=4326, epsg_out=3857)
    >>> print(f"{e[0]:.4f} {n[0]:.3f}")
    1574057.5998 4985827.849
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if epsg_in == epsg_out:
            out = x, y
        elif (epsg_in, epsg_out) == (GEOGRAPHIC, WEB_MERCATOR):
            out = RADIUS * np.radians(x), _isometric(y)
        elif (epsg_in, epsg_out) == (WEB_MERCATOR, GEOGRAPHIC):
            out = np.degrees(x / RADIUS), np.degrees(np.arctan(np.sinh(y / RADIUS)))
        else:
            out = _by_pyproj(x, y, epsg_in, epsg_out)
    is_missing = ~(np.isfinite(x) & np.isfinite(y) & np.isfinite(out[0]) & np.isfinite(out[1]))
    return np.where(is_missing, np.nan, out[0]), np.where(is_missing, np.nan, out[1])


def _by_pyproj(x: Float64, y: Float64, epsg_in: int, epsg_out: int) -> tuple[Any, Any]:
    """Transform by pyproj, which takes an array of one value for a number, and warns that it is none."""
    transform = transformer(epsg_in, epsg_out).transform
    found: tuple[Any, Any] = transform(x.item(), y.item()) if x.size == 1 else transform(x, y)
    return found


def _isometric(lat: Float64) -> Float64:
    """Return the northing of a latitude in degrees; nan at the poles and beyond."""
    # the tangent form keeps its digits where a tangent of pi/4 + lat/2, or a sine near 1, loses them
    return np.where(np.abs(lat) < 90, RADIUS * np.arcsinh(np.tan(lat * (pi / 180))), np.nan)


def transformer(epsg_in: int, epsg_out: int) -> Any:
    """Return pyproj's transformer between two systems, x first.

    Raises
    ------
    ImportError
        pyproj is not installed.
    ValueError
        It does not know a code.
    """
    pyproj = importlib.import_module("pyproj")
    try:
        return pyproj.Transformer.from_crs(epsg_in, epsg_out, always_xy=True)
    except pyproj.exceptions.CRSError as error:
        msg = f"epsg_in {epsg_in}, epsg_out {epsg_out}: {error}"
        raise ValueError(msg) from error
