"""Polygons from GeoJSON files (RFC 7946)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

if TYPE_CHECKING:
    from collections.abc import Iterator

Coordinates: TypeAlias = Literal["lonlat", "radar_grid"]
Ring: TypeAlias = list[tuple[float, float]]

MEMBER = "moraine_coordinates"
"""Member at the top of a file that says what its coordinates are; RFC 7946 knows only longitude and latitude."""


class Polygons(NamedTuple):
    """The polygons of a file."""

    coordinates: Coordinates
    """``lonlat``: x is longitude, y latitude, in degrees; ``radar_grid``: x is range, y azimuth, in pixels."""
    rings: list[Ring]
    """The outer ring of each polygon, as vertices (x, y); the last one is joined to the first."""
    n_holes: int
    """Inner rings, which are left out."""
    n_skipped: int
    """Geometries that are no polygons, which are left out."""


def read(path: str) -> Polygons:
    """Read the polygons of a GeoJSON file.

    Parameters
    ----------
    path
        A FeatureCollection, a Feature or a bare geometry, in UTF-8. Polygons and MultiPolygons are taken, and of them
        the outer rings. Without the member `MEMBER` the coordinates are longitudes and latitudes.

    Raises
    ------
    ValueError
        The file is not GeoJSON, has unknown coordinates, a ring with fewer than three distinct vertices, or no polygon.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        msg = f"polygons {path} is not JSON in UTF-8: {error}"
        raise ValueError(msg) from None
    try:
        return _collect(data)
    except ValueError as error:
        msg = f"polygons {path}: {error}"
        raise ValueError(msg) from None


def _collect(data: Any) -> Polygons:
    """Return the polygons of a decoded file."""
    polygons = []
    n_skipped = 0
    for geometry in _geometries(data):
        found = _polygons(geometry)
        polygons += found
        n_skipped += not found
    coordinates = data.get(MEMBER, "lonlat")
    if coordinates not in get_args(Coordinates):
        msg = f"{MEMBER} is {str(coordinates)[:40]}; expected {' or '.join(get_args(Coordinates))}"
        raise ValueError(msg)
    if not polygons:
        msg = f"it has no polygon ({n_skipped} other geometries); expected at least one"
        raise ValueError(msg)
    rings = [_ring(polygon[0], number) for number, polygon in enumerate(polygons)]
    return Polygons(coordinates, rings, sum(len(polygon) - 1 for polygon in polygons), n_skipped)


def _geometries(data: Any) -> Iterator[Any]:
    """Yield the geometries of a collection, a feature, or of what is one."""
    kind = data.get("type") if isinstance(data, dict) else None
    if kind == "FeatureCollection":
        for feature in _list(data.get("features"), "the member features"):
            if not isinstance(feature, dict) or feature.get("type") != "Feature":
                msg = "a member of features is no Feature"
                raise ValueError(msg)
            yield feature.get("geometry")
    elif kind == "Feature":
        yield data.get("geometry")
    elif isinstance(kind, str):
        yield data
    else:
        msg = "it is no GeoJSON: at its top is no object with a type"
        raise ValueError(msg)


def _polygons(geometry: Any) -> list[list[Any]]:
    """Return the polygons of a geometry, each a list of rings that is not empty."""
    if not isinstance(geometry, dict) or geometry.get("type") not in ("Polygon", "MultiPolygon"):
        return []
    coordinates = _list(geometry.get("coordinates"), f"the coordinates of a {geometry['type']}")
    polygons = [coordinates] if geometry["type"] == "Polygon" else coordinates
    return [polygon for polygon in polygons if _list(polygon, "a polygon")]


def _ring(positions: Any, number: int) -> Ring:
    """Return the vertices of a ring without the last one that closes it."""
    ring = []
    for position in _list(positions, f"the ring of polygon {number}"):
        if not isinstance(position, list) or len(position) < 2 or not all(map(_is_finite, position[:2])):
            msg = f"polygon {number} has the vertex {str(position)[:40]}; expected two finite numbers"
            raise ValueError(msg)
        ring.append((float(position[0]), float(position[1])))
    if len(ring) > 1 and ring[0] == ring[-1]:
        ring.pop()
    if len(set(ring)) < 3:
        msg = f"polygon {number} has {len(set(ring))} distinct vertices; expected at least 3"
        raise ValueError(msg)
    return ring


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        msg = f"{what} is {str(value)[:40]}; expected a list"
        raise ValueError(msg)  # noqa: TRY004 - the file is wrong, not the program
    return value
