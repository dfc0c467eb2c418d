"""`moraine view` of points, on radar grids and on the map, and of several pictures side by side."""

from __future__ import annotations

import gzip
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from web_pages import axe, dates, raster_pyramid, site_of, write_dates

from moraine_core.testing.data import write_array
from moraine_view.pc_pyramid import pc_pyramid
from moraine_view.web.answer import Request, answer

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from moraine_view.web.answer import Site

N = 3
SHAPE = (300, 400)
RADIUS = 6378137.0
CELL = 4.0


@pytest.fixture(scope="module")
def gix() -> NDArray[np.int32]:
    """Points on the radar grid, each pixel once."""
    rng = np.random.default_rng(5)
    pixels = np.sort(rng.choice(SHAPE[0] * SHAPE[1], 2000, replace=False))
    return np.stack(np.divmod(pixels, SHAPE[1]), axis=1).astype(np.int32)


@pytest.fixture(scope="module")
def motion(gix: NDArray[np.int32]) -> NDArray[np.float32]:
    values = (gix[:, :1] * 0.1 - 15 + np.arange(N) * gix[:, 1:] * 0.01).astype(np.float32)
    values[7] = np.nan
    return values


@pytest.fixture(scope="module")
def lonlat() -> NDArray[np.float64]:
    rng = np.random.default_rng(6)
    return np.stack([rng.uniform(4.90, 4.91, 500), rng.uniform(52.34, 52.345, 500)], axis=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, gix: Any, motion: Any, lonlat: Any) -> Path:
    folder = tmp_path_factory.mktemp("points")
    pc_pyramid(
        pc=write_array(folder / "pc.zarr", motion, (700, 1)),
        yx=write_array(folder / "gix.zarr", gix, (700, 2)),
        out_dir=str(folder / "radar_pyramid"),
        ras_resolution=CELL,
    )
    east = RADIUS * np.radians(lonlat[:, 0])
    north = RADIUS * np.log(np.tan(np.pi / 4 + np.radians(lonlat[:, 1]) / 2))
    velocity = np.arange(500, dtype=np.float32) / 10 - 20
    pc_pyramid(
        pc=write_array(folder / "v.zarr", velocity, (200,)),
        x=write_array(folder / "e.zarr", east, (200,)),
        y=write_array(folder / "n.zarr", north, (200,)),
        out_dir=str(folder / "map_pyramid"),
        ras_resolution=20.0,
    )
    raster_pyramid(folder / "ras_pyramid", np.add.outer(np.arange(300.0), np.arange(400.0)).astype(np.float32))
    write_dates(folder, N)
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> Site:
    return site_of(folder)


def ask(site: Site, target: str) -> Any:
    response = answer(site, Request("GET", target, {"host": "localhost", "cookie": f"{site.name}={site.token}"}))
    assert response.status == 200, response.body
    return response.body


def layer_of(site: Site, name: str) -> dict[str, Any]:
    found = json.loads(ask(site, "/meta.json"))["layers"]
    return next(layer for layer in found if layer["name"] == name)


def values_of(site: Site, name: str, level: int, row: int, col: int, item: int = 0) -> NDArray[np.float64]:
    """Give the values of a tile of the plane, counted from the corner of the plane."""
    layer = layer_of(site, name)
    top, left = layer["levels"][level]["origin"]
    body = ask(site, f"/z/{layer['id']}/value/{level}/c/{row - top}/{col - left}/{item}")
    codes = np.frombuffer(gzip.decompress(body), "<u2").reshape(256, 256)
    told = layer["products"]["value"]
    return np.where(codes == told["nothing"], np.nan, told["offset"] + told["step"] * codes)


# -- tiles


@pytest.mark.parametrize("level", [1, 4, 6])
def test_points_are_disks_the_later_ones_above(site: Site, gix: Any, motion: Any, level: int) -> None:
    """As a loop over all points finds it for pixels of the tile, at 4 pixels a cell of the radar grid and at 1."""
    pixel = 2.0 ** (level - 6)
    radius = min(max(1, 0.4 * CELL / pixel), 12)  # beyond 12 pixels disks only hide each other
    corner = 1 if level > 1 else 16
    found = values_of(site, "radar", level, corner, corner, item=2)
    known = ~np.isnan(motion[:, 2])
    n_seen = 0
    for i in range(0, 256, 7):
        for j in range(0, 256, 7):
            # pixel centers, from the corner of the grid; a pixel of the grid is centered at a half
            y, x = (256 * corner + i + 0.5), (256 * corner + j + 0.5)
            away = np.hypot((gix[:, 0] + 0.5) / pixel - y, (gix[:, 1] + 0.5) / pixel - x)
            covering = np.flatnonzero((away <= radius) & known)
            if covering.size:
                assert found[i, j] == pytest.approx(motion[covering[-1], 2], abs=0.02)
                n_seen += 1
            else:
                assert math.isnan(found[i, j])
    assert n_seen > (0 if level == 1 else 5)


def test_zoomed_out_every_pixel_is_a_cell_of_the_level(site: Site, folder: Path) -> None:
    from moraine_core.testing.data import read_array

    cells = read_array(folder / "radar_pyramid" / "1.zarr")[..., 1]
    found = values_of(site, "radar", 6 + 3, 0, 0, item=1)
    y0, x0 = 0, 0  # the least coordinates are where the first cells are centered
    bounds = json.loads(ask(site, "/meta.json"))["layers"]
    extent = next(layer["extent"] for layer in bounds if layer["name"] == "radar")
    for i in range(0, 38):
        for j in range(0, 50):
            y, x = (i + 0.5) * 8, (j + 0.5) * 8
            row, col = int((y - extent[1]) / CELL) // 2, int((x - extent[0]) / CELL) // 2
            inside = extent[1] <= y < extent[3] and extent[0] <= x < extent[2]
            expected = cells[row, col] if inside else np.nan
            assert found[i, j] == pytest.approx(expected, abs=0.02, nan_ok=True), (i, j, y0, x0)


def test_tiles_of_the_map_are_where_everybody_has_them(site: Site, lonlat: NDArray[np.float64]) -> None:
    """A point is seen in the tile and at the pixel that the formulas of web maps give it."""
    zoom = 20
    x = (lonlat[:, 0] + 180) / 360 * 2**zoom * 256
    lat = np.radians(lonlat[:, 1])
    y = (1 - np.arcsinh(np.tan(lat)) / np.pi) / 2 * 2**zoom * 256
    last = len(lonlat) - 1
    row, col = int(y[last] // 256), int(x[last] // 256)
    found = values_of(site, "map", 22 - zoom, row, col)
    assert found[int(y[last] % 256), int(x[last] % 256)] == pytest.approx(last / 10 - 20, abs=0.03)


# -- questions


def test_the_series_is_that_of_the_nearest_point(site: Site, gix: Any, motion: Any) -> None:
    number = layer_of(site, "radar")["id"]
    rng = np.random.default_rng(1)
    for y, x in rng.uniform((0, 0), SHAPE, (20, 2)):
        found = json.loads(ask(site, f"/series?layer={number}&x={x:.3f}&y={y:.3f}&reach=5"))
        away = np.hypot(gix[:, 0] + 0.5 - round(y, 3), gix[:, 1] + 0.5 - round(x, 3))
        if away.min() > 5:
            assert "no point" in found["nothing"]
            continue
        nearest = away[found["point"]]
        assert nearest == pytest.approx(away.min(), abs=1e-6)
        np.testing.assert_allclose(found["values"], motion[found["point"]], rtol=1e-6)
        assert (found["y"], found["x"]) == tuple(gix[found["point"]] + 0.5)


def test_the_reference_of_points_is_the_median_of_those_in_the_window(site: Site, gix: Any, motion: Any) -> None:
    number = layer_of(site, "radar")["id"]
    i, j = gix[1000]
    found = json.loads(ask(site, f"/ref?layer={number}&x={j + 0.5}&y={i + 0.5}&r=5&reach=1"))
    near = (np.abs(gix - gix[1000]) <= 5.5 * CELL).all(axis=1)
    assert near.sum() > 5
    np.testing.assert_allclose(found["ref"], np.median(motion[near], axis=0), rtol=1e-5)


# -- in the browser


def test_a_click_takes_the_point_and_its_place(view: Any, gix: Any, motion: Any) -> None:
    i, j = map(int, gix[500])
    viewer = view(f"l=radar&show=value&k={dates(N)[1]}&v={i},{j},3")
    viewer.click(i, j)
    viewer.page.wait_for_selector("#series-plot canvas")
    assert viewer.fragment()["p"] == f"{i},{j}"
    assert viewer.text("#places li").startswith(f"azimuth {i}, range {j}: ")
    viewer.page.click("#series-details summary")
    cells = viewer.page.locator("#series-table tbody td").all_inner_texts()
    np.testing.assert_allclose([float(cell.replace("−", "-")) for cell in cells], motion[500], rtol=1e-3, atol=1e-3)


def test_the_map_has_north_up_degrees_and_a_scale(view: Any, lonlat: Any) -> None:
    viewer = view("l=map&show=value")
    place = "((lon, lat) => { const p = moraine.panes[0]; return p.map.latLngToContainerPoint([lat, lon]); })"
    south, north = (viewer.page.evaluate(f"{place}({lon}, {lat}).y") for lon, lat in ((4.905, 52.34), (4.905, 52.345)))
    west, east = (viewer.page.evaluate(f"{place}({lon}, {lat}).x") for lon, lat in ((4.90, 52.342), (4.91, 52.342)))
    assert north < south
    assert west < east
    assert viewer.page.locator(".leaflet-control-scale").is_visible()
    assert "°" in viewer.page.locator(".edge-x").first.inner_text()
    index = 123
    lon, lat = lonlat[index]
    viewer.page.evaluate(f"moraine.panes[0].map.setView([{lat}, {lon}], 21, {{animate: false}})")
    viewer.wait()
    told = viewer.page.evaluate(
        f"(() => {{ const p = moraine.panes[0]; return p.valueAt(...p.fromMap(L.latLng({lat}, {lon}))); }})()"
    )
    assert told == pytest.approx(index / 10 - 20, abs=0.05)


def test_panes_of_one_grid_share_view_cursor_and_places(view: Any, gix: Any) -> None:
    viewer = view("panes=2&l=ras&show=value&v=150,200,1&2.l=radar&2.show=value&2.k=20230118")
    center = lambda k: viewer.page.evaluate(f"moraine.panes[{k}].view()")  # noqa: E731
    assert center(0) == center(1)
    viewer.page.evaluate("moraine.panes[0].map.panBy([60, 40], {animate: false})")
    viewer.wait()
    np.testing.assert_allclose(center(0), center(1), atol=0.6)
    viewer.page.evaluate("moraine.panes[1].map.setZoom(2, {animate: false})")
    viewer.wait()
    np.testing.assert_allclose(center(0), center(1), atol=0.6)
    i, j = next((int(i), int(j)) for i, j in gix if abs(i - 160) < 30 and abs(j - 220) < 30)
    viewer.click(i, j, pane=0)
    viewer.page.wait_for_selector("#places li")
    assert viewer.page.locator(".pane .mark-0").count() == 2
    assert viewer.page.locator(".pane:nth-child(2) .pointer").count() == 1
    assert f"azimuth {i}, range {j}" in viewer.text(".pane:nth-child(2) .readout")
    # the controls are those of the pane that was touched last
    viewer.page.keyboard.press("2")
    assert "pane 2" in viewer.text("#which-pane")
    viewer.page.keyboard.press("]")
    viewer.wait()
    assert viewer.fragment()["2.k"] == "20230130"
    again = view("&".join(f"{name}={value}" for name, value in viewer.fragment().items()))
    assert again.fragment() == viewer.fragment()


def test_panes_of_different_grids_keep_their_own_view(view: Any) -> None:
    viewer = view("panes=2&l=ras&show=value&v=150,200,0&2.l=map&2.show=value&2.v=52.342,4.905,17")
    before = viewer.page.evaluate("moraine.panes[1].view()")
    viewer.page.evaluate("moraine.panes[0].map.panBy([60, 40], {animate: false})")
    viewer.wait()
    assert viewer.page.evaluate("moraine.panes[1].view()") == before
    fields = viewer.fragment()
    assert fields["2.v"] == "52.342000,4.905000,17"
    assert fields["v"] != "150,200,0"


def test_more_panes_come_with_something_to_compare(view: Any) -> None:
    viewer = view("l=radar&show=value&k=20230106")
    viewer.page.select_option("#pane-count", "4")
    viewer.wait()
    assert viewer.page.locator(".pane").count() == 4
    fields = viewer.fragment()
    assert [fields[f"{k}.k"] for k in (2, 3)] == ["20230118", "20230130"]
    assert axe(viewer) == []
    viewer.page.select_option("#pane-count", "1")
    viewer.wait()
    assert viewer.page.locator(".pane").count() == 1


def test_lines_can_be_drawn_as_high_as_they_are(view: Any) -> None:
    viewer = view("l=ras&show=value&v=150,200,0&asp=3")
    box = "(() => { const p = moraine.panes[0].map; const q = (y, x) => p.latLngToContainerPoint([y, x]); return [q(10, 0).y - q(0, 0).y, q(0, 10).x - q(0, 0).x]; })()"  # noqa: E501
    assert viewer.page.evaluate(box) == [30, 10]
    assert viewer.page.evaluate("moraine.panes[0].valueAt(200.5, 150.5)") == pytest.approx(350, abs=0.5)
    viewer.click(160, 210)
    viewer.page.wait_for_selector("#places li:has-text('azimuth 160, range 210: ')")
    assert float(viewer.text("#places li").split(":")[1].split()[0]) == pytest.approx(370, abs=0.5)
