"""GeoJSON: what is read, and that what is not GeoJSON is refused with a sentence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from moraine_raster.polygons import Polygons, read

if TYPE_CHECKING:
    from pathlib import Path

RING = [[0, 0], [4, 0], [4, 3], [0, 0]]
VERTICES = [(0.0, 0.0), (4.0, 0.0), (4.0, 3.0)]
POLYGON = {"type": "Polygon", "coordinates": [RING]}
POINT = {"type": "Point", "coordinates": [0, 0]}
FEATURE = {"type": "Feature", "properties": {"name": "Campi Flegrei"}, "geometry": POLYGON}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "region.geojson"


def read_text(file: Path, text: str | bytes) -> Polygons:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(str(file))


def read_data(file: Path, data: Any) -> Polygons:
    return read_text(file, json.dumps(data))


@pytest.mark.parametrize(
    "data",
    [
        POLYGON,
        FEATURE,
        {"type": "FeatureCollection", "features": [FEATURE]},
        {"type": "MultiPolygon", "coordinates": [[RING]]},
        {"type": "Polygon", "coordinates": [RING[:-1]]},
        {"type": "Polygon", "coordinates": [[[x, y, 120.5] for x, y in RING]]},
        {**POLYGON, "moraine_coordinates": "lonlat", "bbox": [0, 0, 4, 3]},
    ],
    ids=["geometry", "feature", "collection", "multi", "open ring", "heights", "further members"],
)
def test_a_polygon_may_stand_alone_in_a_feature_or_in_a_collection(file: Path, data: Any) -> None:
    assert read_data(file, data) == Polygons("lonlat", [VERTICES], 0, 0)


@pytest.mark.parametrize("data", [POLYGON, FEATURE, {"type": "FeatureCollection", "features": [FEATURE]}])
def test_coordinates_are_those_of_the_radar_grid_if_the_file_says_so(file: Path, data: dict[str, Any]) -> None:
    assert read_data(file, {**data, "moraine_coordinates": "radar_grid"}).coordinates == "radar_grid"


def test_all_polygons_of_all_features_are_taken_in_order(file: Path) -> None:
    def moved(dx: int) -> list[list[int]]:
        return [[x + dx, y] for x, y in RING]

    multi = {"type": "MultiPolygon", "coordinates": [[moved(10)], [moved(20)]]}
    features = [FEATURE, {"type": "Feature", "geometry": multi, "properties": None}]
    found = read_data(file, {"type": "FeatureCollection", "features": features})
    assert [ring[0] for ring in found.rings] == [(0, 0), (10, 0), (20, 0)]


def test_holes_and_other_geometries_are_left_out_and_counted(file: Path) -> None:
    holes = {"type": "Polygon", "coordinates": [RING, RING, RING]}
    geometries = [holes, POINT, None, {"type": "GeometryCollection", "geometries": [POLYGON]}, {"type": "LineString"}]
    features = [{"type": "Feature", "geometry": geometry} for geometry in geometries]
    found = read_data(file, {"type": "FeatureCollection", "features": features})
    assert found == Polygons("lonlat", [VERTICES], 2, 4)


def test_text_may_be_any_utf_8(file: Path) -> None:
    text = json.dumps({**FEATURE, "properties": {"name": "Ciudad de México"}}, ensure_ascii=False)
    for data in (text.encode(), b"\xef\xbb\xbf" + text.encode()):
        assert read_text(file, data).rings == [VERTICES]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "is not JSON in UTF-8: Expecting value"),
        ('{"type": "Polygon", "coordinates": [', "is not JSON in UTF-8"),
        (b'{"type": "Polygon\xff"}', "is not JSON in UTF-8: 'utf-8' codec"),
        ("[" * 100_000, "is not JSON in UTF-8"),
        ("[]", "no GeoJSON"),
        ("3", "no GeoJSON"),
        ("null", "no GeoJSON"),
        ("{}", "no GeoJSON"),
        ('{"type": 3}', "no GeoJSON"),
        ('{"type": ["Polygon"]}', "no GeoJSON"),
    ],
)
def test_what_is_no_geojson_is_refused(file: Path, text: str | bytes, fault: str) -> None:
    with pytest.raises(ValueError, match=rf"^polygons .*region\.geojson.* {fault}") as caught:
        read_text(file, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"type": "FeatureCollection", "features": []}, "no polygon (0 other geometries)"),
        ({"type": "FeatureCollection"}, "the member features is None; expected a list"),
        ({"type": "FeatureCollection", "features": [POLYGON]}, "a member of features is no Feature"),
        ({"type": "FeatureCollection", "features": [None]}, "a member of features is no Feature"),
        ({"type": "Feature", "geometry": POINT}, "no polygon (1 other geometries)"),
        ({"type": "Feature"}, "no polygon (1 other geometries)"),
        (POINT, "no polygon (1 other geometries)"),
        ({"type": "Polygon"}, "the coordinates of a Polygon is None; expected a list"),
        ({"type": "Polygon", "coordinates": []}, "no polygon"),
        ({"type": "Polygon", "coordinates": {"x": 1}}, "the coordinates of a Polygon is {'x': 1}"),
        ({"type": "Polygon", "coordinates": [3]}, "the ring of polygon 0 is 3; expected a list"),
        ({"type": "Polygon", "coordinates": RING}, "polygon 0 has the vertex 0; expected two finite numbers"),
        ({"type": "Polygon", "coordinates": [[]]}, "polygon 0 has 0 distinct vertices"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 0]]]}, "polygon 0 has 2 distinct vertices"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 0], [1, 1]]]}, "polygon 0 has 2 distinct vertices"),
        ({"type": "MultiPolygon", "coordinates": [[RING], [[[0, 0], [1, "2"], [3, 4]]]]}, "polygon 1 has the vertex"),
        ({"type": "MultiPolygon", "coordinates": [3]}, "a polygon is 3; expected a list"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1], [3, 4]]]}, "the vertex [1]; expected two finite numbers"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [True, 1], [3, 4]]]}, "the vertex [True, 1]"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [float("nan"), 1], [3, 4]]]}, "the vertex [nan, 1]"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [10**400, 1], [3, 4]]]}, "the vertex [1000000"),
        ({**POLYGON, "moraine_coordinates": "mercator"}, "is mercator; expected lonlat or radar_grid"),
        ({**POLYGON, "moraine_coordinates": None}, "is None; expected lonlat or radar_grid"),
        ({**POLYGON, "moraine_coordinates": ["lonlat"]}, "is ['lonlat']; expected lonlat or radar_grid"),
    ],
)
def test_what_is_no_polygon_is_refused(file: Path, data: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=r"^polygons .*region\.geojson: ") as caught:
        read_data(file, data)
    assert fault in str(caught.value)
    assert len(str(caught.value)) < len(str(file)) + 120
