"""polygon-mask: polygons and positions of every kind, where analytic truth is at hand."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from moraine_core import MoraineError, UsageError, Workers
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, write_array
from moraine_raster.polygon_mask import polygon_mask

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

DIAMOND = [[14.0, 40.0], [15.0, 41.0], [14.0, 42.0], [13.0, 41.0], [14.0, 40.0]]
"""All places within one degree of 14 E, 41 N, the two differences added."""

BOX = [[1.5, 0.5], [4.5, 0.5], [4.5, 2.5], [1.5, 2.5]]
"""Range 2 to 4, azimuth 1 and 2, of the radar grid."""


def geojson(folder: Path, *rings: list[list[float]], radar: bool = False, **members: Any) -> str:
    data = {"type": "MultiPolygon", "coordinates": [[ring] for ring in rings]}
    if radar:
        data["moraine_coordinates"] = "radar_grid"
    file = folder / "region.geojson"
    file.write_text(json.dumps({**data, **members}))
    return str(file)


def masked(folder: Path, **arguments: Any) -> NDArray[np.bool_]:
    """Run the command; arrays are stored first, each given alone or with its chunks."""
    for name in ("x", "y", "gix"):
        if name in arguments:
            values, chunks = arguments[name] if isinstance(arguments[name], tuple) else (arguments[name], None)
            arguments[name] = write_array(folder / f"{name}.zarr", np.asarray(values), chunks)
    polygon_mask(mask=str(folder / "mask.zarr"), workers=Workers(n_workers=2), **arguments)
    mask = read_array(folder / "mask.zarr")
    assert mask.dtype == bool
    return mask


@pytest.mark.parametrize("keep", ["inside", "outside"])
@pytest.mark.parametrize(("shape", "chunks"), [((31, 23), (7, 10)), ((500,), (90,)), ((4, 5, 6), (3, 3, 3))])
def test_places_are_kept_inside_or_outside(
    tmp_path: Path, keep: str, shape: tuple[int, ...], chunks: tuple[int, ...]
) -> None:
    lon, lat = np.random.default_rng(1).uniform((12.5, 39.5), (15.5, 42.5), (*shape, 2)).T
    lon, lat = lon.T, lat.T
    expected = (abs(lon - 14) + abs(lat - 41) < 1) == (keep == "inside")
    polygons = geojson(tmp_path, DIAMOND)
    mask = masked(tmp_path, polygons=polygons, x=(lon, chunks), y=(lat, shape), keep=keep)
    np.testing.assert_array_equal(mask, expected)
    assert open_array(tmp_path / "mask.zarr").chunks == chunks


def test_inside_is_the_default_and_one_of_many_polygons_is_enough(tmp_path: Path) -> None:
    far = [[lon + 10, lat] for lon, lat in DIAMOND]
    mask = masked(tmp_path, polygons=geojson(tmp_path, DIAMOND, far), x=[14.0, 19.0, 24.0], y=[41.0, 41.0, 41.0])
    assert mask.tolist() == [True, False, True]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("chunks", [(2, 2), (2, 1)])
def test_points_of_a_gix_are_masked_one_by_one(tmp_path: Path, dtype: str, chunks: tuple[int, int]) -> None:
    gix = np.array([[0, 2], [1, 1], [1, 2], [2, 4], [2, 5], [3, 3], [4, 1]], dtype)
    mask = masked(tmp_path, polygons=geojson(tmp_path, BOX, radar=True), gix=(gix, chunks))
    assert mask.tolist() == [False, False, True, True, False, False, False]
    assert open_array(tmp_path / "mask.zarr").chunks == (2,)


@pytest.mark.parametrize(
    ("chunks", "stored"),
    [(None, (1000, 1000)), ((1000, 1000), (1000, 1000)), ((2, 3), (2, 3)), ((1, -1), (1, 7))],
)
def test_pixels_of_a_raster_are_masked_by_their_centers(
    tmp_path: Path, chunks: tuple[int, int] | None, stored: tuple[int, int]
) -> None:
    mask = masked(tmp_path, polygons=geojson(tmp_path, BOX, radar=True), shape=(5, 7), chunks=chunks)
    expected = np.zeros((5, 7), bool)
    expected[1:3, 2:5] = True
    np.testing.assert_array_equal(mask, expected)
    assert open_array(tmp_path / "mask.zarr").chunks == stored


def test_polygons_of_the_radar_grid_go_with_x_and_y_too(tmp_path: Path) -> None:
    """x is range, y azimuth; all three ways to give the pixels of a raster agree."""
    polygons = geojson(tmp_path, [[0.2, 1.1], [5.3, 0.4], [2.9, 6.6]], radar=True)
    azimuth, range_ = np.mgrid[:8, :6]
    by_xy = masked(tmp_path, polygons=polygons, x=range_, y=azimuth)
    by_shape = masked(tmp_path, polygons=polygons, shape=(8, 6))
    by_gix = masked(tmp_path, polygons=polygons, gix=np.stack([azimuth.ravel(), range_.ravel()], axis=1))
    np.testing.assert_array_equal(by_xy, by_shape)
    np.testing.assert_array_equal(by_gix.reshape(8, 6), by_shape)
    assert 0 < by_shape.sum() < by_shape.size


@pytest.mark.parametrize("keep", ["inside", "outside"])
def test_data_without_a_position_are_outside_and_the_log_tells_how_many(
    tmp_path: Path, keep: str, caplog: pytest.LogCaptureFixture
) -> None:
    lon, lat = np.full((5, 4), 14.0), np.full((5, 4), 41.0)
    lon[1], lat[1:3, 2] = np.nan, np.nan
    with caplog.at_level(logging.INFO, "moraine"):
        mask = masked(tmp_path, polygons=geojson(tmp_path, DIAMOND), x=(lon, (2, 3)), y=lat, keep=keep)
    np.testing.assert_array_equal(mask, np.isfinite(lon + lat) == (keep == "inside"))
    assert "polygon-mask: 5 of 20 positions are nan and count as outside" in caplog.messages


def test_the_log_tells_of_holes_and_of_other_geometries(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hole = [[14, 40.9], [14.1, 41.1], [13.9, 41.1]]
    geometries = [{"type": "Polygon", "coordinates": [DIAMOND, hole]}, {"type": "Point", "coordinates": [0, 0]}]
    features = [{"type": "Feature", "geometry": geometry} for geometry in geometries]
    polygons = geojson(tmp_path, type="FeatureCollection", features=features)
    with caplog.at_level(logging.INFO, "moraine"):
        assert masked(tmp_path, polygons=polygons, x=[14.0], y=[41.0]).tolist() == [True]
    told = f"polygon-mask: polygons {polygons}: holes ignored: 1, other geometries skipped: 1"
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [told]


def test_the_log_is_silent_where_nothing_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "moraine"):
        masked(tmp_path, polygons=geojson(tmp_path, DIAMOND), x=[14.0], y=[41.0])
    assert caplog.messages == []


def test_empty_clouds_and_clouds_of_one_point_have_their_masks(tmp_path: Path) -> None:
    lonlat, radar = tmp_path / "lonlat", tmp_path / "radar"
    lonlat.mkdir()
    radar.mkdir()
    places, grid = geojson(lonlat, DIAMOND), geojson(radar, BOX, radar=True)
    assert masked(tmp_path, polygons=places, x=np.empty(0), y=np.empty(0)).shape == (0,)
    assert masked(tmp_path, polygons=places, x=np.empty((0, 5)), y=np.empty((0, 5))).shape == (0, 5)
    assert masked(tmp_path, polygons=grid, gix=np.empty((0, 2), np.int32)).shape == (0,)
    assert masked(tmp_path, polygons=grid, gix=np.array([[1, 2]], np.int32)).tolist() == [True]
    assert masked(tmp_path, polygons=grid, shape=(1, 3)).tolist() == [[False] * 3]
    assert masked(tmp_path, polygons=places, x=np.full((1, 9), np.nan), y=np.zeros((1, 9))).tolist() == [[False] * 9]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ((), "none of x, y, gix and shape given"), (("x",), "x given"), (("y",), "y given"),
        (("x", "gix"), "x, gix given"), (("x", "y", "gix"), "x, y, gix given"),
        (("x", "y", "shape"), "x, y, shape given"), (("gix", "shape"), "gix, shape given"),
        (("y", "shape"), "y, shape given"),
    ],
)  # fmt: skip
def test_positions_are_given_in_exactly_one_way(tmp_path: Path, given: tuple[str, ...], found: str) -> None:
    positions = {"x": [1.0], "y": [1.0], "gix": np.ones((1, 2), np.int32), "shape": (3, 4)}
    polygons = geojson(tmp_path, BOX, radar=True)
    with pytest.raises(UsageError, match=f"polygon-mask: {found}; expected x and y, or gix, or shape"):
        masked(tmp_path, polygons=polygons, **{name: positions[name] for name in given})
    assert not (tmp_path / "mask.zarr").exists()


@pytest.mark.parametrize("positions", [{"gix": np.ones((1, 2), np.int32)}, {"shape": (3, 4)}])
def test_places_need_longitudes_and_latitudes_of_the_data(tmp_path: Path, positions: dict[str, Any]) -> None:
    expected = "region.geojson are in longitude and latitude; expected x and y with them, not " + next(iter(positions))
    with pytest.raises(UsageError, match=expected):
        masked(tmp_path, polygons=geojson(tmp_path, DIAMOND), **positions)


def test_x_and_y_of_different_shape_are_refused(tmp_path: Path) -> None:
    expected = r"polygon-mask: y .*y\.zarr has shape \(2, 3\); expected \(6,\), as x .*x\.zarr"
    with pytest.raises(UsageError, match=expected):
        masked(tmp_path, polygons=geojson(tmp_path, DIAMOND), x=np.zeros(6), y=np.zeros((2, 3)))


@pytest.mark.parametrize("shape", [(0, 4), (3, -1)])
def test_a_raster_without_pixels_is_refused(tmp_path: Path, shape: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match=r"polygon-mask: shape is \(.*\); expected at least one line"):
        masked(tmp_path, polygons=geojson(tmp_path, BOX, radar=True), shape=shape)


@pytest.mark.parametrize(
    ("name", "values"),
    [("x", np.ones(2, np.complex64)), ("x", np.ones(2, bool)), ("gix", np.ones((2, 3), np.int32)),
     ("gix", np.ones((2, 2), np.float32)), ("gix", np.ones(2, np.int64))],
)  # fmt: skip
def test_positions_of_another_kind_are_refused(tmp_path: Path, name: str, values: NDArray[Any]) -> None:
    rest = {"y": np.ones(2)} if name == "x" else {}
    with pytest.raises(MoraineError, match=rf"polygon-mask: {name} .*{name}\.zarr (is|has)"):
        masked(tmp_path, polygons=geojson(tmp_path, BOX, radar=True), **{name: values}, **rest)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"type": "Polygon",', "is not JSON"),
        ('{"type": "FeatureCollection", "features": []}', "has no polygon"),
        ('{"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 0]]]}', "2 distinct vertices"),
        ('{"type": "Polygon", "coordinates": [], "moraine_coordinates": "utm"}', "moraine_coordinates is utm"),
    ],
)
def test_a_file_without_polygons_is_refused_before_work(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "region.geojson"
    file.write_text(text)
    with pytest.raises(UsageError, match=rf"^polygon-mask: polygons .*region\.geojson.*{fault}"):
        masked(tmp_path, polygons=str(file), x=[0.0], y=[0.0])
    assert not (tmp_path / "mask.zarr").exists()


def test_a_file_that_does_not_exist_or_is_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.geojson", tmp_path):
        with pytest.raises(MoraineError, match="polygon-mask: polygons"):
            masked(tmp_path, polygons=str(path), x=[0.0], y=[0.0])


def test_the_mask_cannot_take_the_place_of_the_polygons_or_of_x(tmp_path: Path) -> None:
    polygons = geojson(tmp_path, DIAMOND)
    x = write_array(tmp_path / "x.zarr", np.zeros(2))
    for path in (polygons, x):
        with pytest.raises(MoraineError, match="polygon-mask: mask"):
            polygon_mask(polygons=polygons, mask=path, x=x, y=x)
    assert read_array(x).tolist() == [0, 0]


def test_scatterers_of_amsterdam_are_masked_by_a_trapezoid(
    tmp_path: Path, scatterers: tuple[NDArray[Any], NDArray[Any]]
) -> None:
    """Its west side leans, so longitude and latitude both count; the other sides lie beyond the cloud."""
    lon, lat = scatterers
    west, east, south, north = lon.min() + 0.001, lon.max() + 1, lat.min() - 1, lat.max() + 1
    lean = 0.1
    ring = [[west + lean * (y - lat.mean()), y] for y in (south, north)] + [[east, north], [east, south]]
    polygons = geojson(tmp_path, ring)
    mask = masked(tmp_path, polygons=polygons, x=(lon, (700,)), y=(lat, (700,)))
    np.testing.assert_array_equal(mask, lon > west + lean * (lat - lat.mean()))
    assert 100 < mask.sum() < len(lon) - 100
    outside = masked(tmp_path, polygons=polygons, x=(lon, (700,)), y=(lat, (700,)), keep="outside")
    np.testing.assert_array_equal(outside, ~mask)
