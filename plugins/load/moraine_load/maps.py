"""Map segments: what of a DEM par is needed, and that it is in geographic coordinates on the ellipsoid of the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moraine_load.par import DemPar, ParError, read_dem_par

if TYPE_CHECKING:
    from moraine_load.scene import Scene

WGS84_MAJOR = 6378137.0
"""m."""

SAME_AXIS = 0.5
"""Difference of semi-axes (m) that moves no coordinate more than it is rounded."""

_SHIFTS = ("datum_shift_dx", "datum_shift_dy", "datum_shift_dz", "datum_scale_m")
_ROTATIONS = ("datum_rotation_alpha", "datum_rotation_beta", "datum_rotation_gamma")


def read_map(path: str) -> DemPar:
    """Read the DEM par of a segment in geographic coordinates.

    Raises
    ------
    ParError
        The projection is another, or corner, posts or size are missing or wrong.
    """
    par = read_dem_par(path)
    if par.projection != "EQA":
        msg = f"{path}: DEM_projection is {par.projection or 'missing'}; expected EQA, geographic coordinates"
        raise ParError(msg)
    par.need("width", "nlines", "corner_lat", "corner_lon", "post_lat", "post_lon")
    if min(par.width or 0, par.nlines or 0) < 1:
        msg = f"{path}: the segment has {par.nlines} lines of {par.width} samples; expected at least 1"
        raise ParError(msg)
    if not (par.post_lat or 0) < 0 < (par.post_lon or 0):
        msg = f"{path}: post_lat is {par.post_lat}, post_lon {par.post_lon}; expected north up: negative, and positive"
        raise ParError(msg)
    return par


def lonlat_bbox(par: DemPar) -> tuple[float, float, float, float]:
    """Return west, south, east and north of the centers of the corner pixels of a segment, degrees."""
    lon, lat = par.corner_lon or 0.0, par.corner_lat or 0.0
    east = lon + ((par.width or 1) - 1) * (par.post_lon or 0.0)
    south = lat + ((par.nlines or 1) - 1) * (par.post_lat or 0.0)
    return lon, south, east, lat


def crs_of(par: DemPar) -> str:
    """Return the reference system of a segment's coordinates: ``EPSG:4326`` on WGS 84, else a description."""
    if par.ellipsoid_ra is None or abs(par.ellipsoid_ra - WGS84_MAJOR) < SAME_AXIS:
        return "EPSG:4326"
    return f"geographic, ellipsoid {par.ellipsoid_name or par.ellipsoid_ra}"


def check_datum(par: DemPar, scene: Scene) -> None:
    """Check that a map has the ellipsoid and the datum of an image.

    Raises
    ------
    ParError
        It has not: coordinates would need a transformation between datums.
    """
    moved = [name for name in (*_SHIFTS, *_ROTATIONS) if getattr(par, name)]
    if moved:
        msg = f"{par.path}: {moved[0]} is {getattr(par, moved[0]):g}; expected 0, a map on the ellipsoid of the image"
        raise ParError(msg)
    major = par.ellipsoid_ra
    if major is None or par.ellipsoid_reciprocal_flattening is None:
        return
    minor = major * (1.0 - 1.0 / par.ellipsoid_reciprocal_flattening)
    if max(abs(major - scene.semi_major), abs(minor - scene.semi_minor)) > SAME_AXIS:
        msg = (
            f"{par.path}: the ellipsoid has the axes {major:.1f} and {minor:.1f} m; expected {scene.semi_major:.1f} "
            f"and {scene.semi_minor:.1f} m, as in the header of the image"
        )
        raise ParError(msg)
