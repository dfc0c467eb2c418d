"""Where pictures of `moraine view` lie: true aspect, degrees on radar grids, one over the other, the coastline."""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from web_pages import Viewer, axe, dates, files_of, raster_pyramid, site_of, slc_stack, write_dates

from moraine_core.cli.main import run
from moraine_core.testing.data import write_array
from moraine_view.palette import color_index, color_table
from moraine_view.pc_pyramid import pc_pyramid
from moraine_view.web.answer import Request, answer, page_files
from moraine_view.web.ground import Spacing, spacing_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moraine_view.web.answer import Site

SHAPE, N = (300, 520), 3
D = dates(N)
SLANT, AZIMUTH, INCIDENCE = 2.3, 13.9, 38.0
GROUND = SLANT / math.sin(math.radians(INCIDENCE))
META = {"range_pixel_spacing": SLANT, "azimuth_pixel_spacing": AZIMUTH, "incidence": INCIDENCE}


def lon_lat() -> tuple[Any, Any]:
    """Degrees of the pixels; one of them is not known."""
    i, j = np.mgrid[: SHAPE[0], : SHAPE[1]]
    lon, lat = 4.9 + 1e-5 * j + 1e-7 * i, 52.3 - 1e-4 * i
    lat[7, 9] = np.nan
    return lon, lat


def heights() -> Any:
    i, j = np.mgrid[: SHAPE[0], : SHAPE[1]]
    return (i - 100 + 0.1 * j).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    raster_pyramid(folder / "raw" / "rslc_pyramid", slc_stack(SHAPE, N))
    raster_pyramid(folder / "raw" / "hgt_pyramid", heights(), "m")
    raster_pyramid(folder / "raw" / "small_pyramid", heights()[:100, :90])
    raster_pyramid(folder / "ps" / "adi_pyramid", heights())
    write_dates(folder / "raw", N)
    with (folder / "raw" / "meta.toml").open("a") as file:
        file.writelines(f"{name} = {value}\n" for name, value in META.items())
        file.write(f"shape = [{SHAPE[0]}, {SHAPE[1]}]\n")
    for name, values in zip(("lon", "lat"), lon_lat(), strict=True):
        write_array(folder / "raw" / f"{name}.zarr", values, (70, 100))
    east, north = 545458.0, 6867000.0  # in Amsterdam
    pc_pyramid(
        pc=write_array(folder / "v.zarr", np.arange(100, dtype=np.float32), (100,)),
        x=write_array(folder / "e.zarr", east + 9.5 * np.arange(100), (100,)),
        y=write_array(folder / "n.zarr", north + 4.5 * np.arange(100), (100,)),
        out_dir=str(folder / "map_pyramid"),
        ras_resolution=20.0,
    )
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> Site:
    return site_of(folder)


@pytest.fixture(scope="module")
def exported(browser: Any, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    out = tmp_path_factory.mktemp("out") / "site"
    assert run(["view", str(folder), "--export", str(out), "-q"]) == 0
    with files_of(out) as url:
        yield url


def asked(site: Site, target: str) -> Any:
    response = answer(site, Request("GET", target, {"host": "localhost", "cookie": f"{site.name}={site.token}"}))
    return json.loads(response.body) if response.status == 200 else response.status


def layers(site: Site) -> dict[str, Any]:
    return {layer["name"]: layer for layer in asked(site, "/meta.json")["layers"]}


# -- spacings and true aspect


def test_a_pixel_is_longer_on_the_ground_than_along_the_line_of_sight() -> None:
    """At an incidence of 30 degrees it is twice as long."""
    found = spacing_of({**META, "incidence": 30.0}, None)
    assert found == Spacing(AZIMUTH, pytest.approx(2 * SLANT), is_ground=True)
    assert spacing_of({k: v for k, v in META.items() if k != "incidence"}, None) == (AZIMUTH, SLANT, False)


@pytest.mark.parametrize("wrong", [None, 0, -2.3, "2.3", True, math.inf, math.nan])
def test_spacings_that_are_none_are_not_taken(wrong: Any) -> None:
    assert "no meta.toml" in str(spacing_of({**META, "range_pixel_spacing": wrong}, None))


def test_spacings_hold_for_all_layers_of_their_grid_and_for_no_other(site: Site) -> None:
    found = layers(site)
    for name in ("rslc", "hgt", "adi"):
        assert found[name]["spacing"] == {"azimuth": AZIMUTH, "range": pytest.approx(GROUND), "is_ground": True}
        assert found[name]["no_spacing"] == ""
    assert found["small"]["spacing"] is None
    assert "those of [300, 520] pixels; this grid has [100, 90]" in found["small"]["no_spacing"]


def test_true_aspect_shows_pixels_as_long_as_they_are_and_says_along_what(view: Any) -> None:
    viewer = view("l=hgt&show=value&v=149.5,259.5,0&lim=-100,250&cm=sequential&line=20,20,200,400")
    square = viewer.pixels()
    assert viewer.text(".scale-of") == "along ground range"
    viewer.page.focus("text=true aspect")
    viewer.page.keyboard.press("Space")
    viewer.wait()
    assert viewer.fragment()["asp"] == "true"
    box = viewer.page.evaluate(
        """(() => {
          const { map, toMap } = moraine.panes[0];
          const [a, b] = [[0, 0], [100, 100]].map(([x, y]) => map.latLngToContainerPoint(toMap(x, y)));
          return [b.x - a.x, b.y - a.y];
        })()"""
    )
    assert box[1] / box[0] == pytest.approx(AZIMUTH / GROUND, rel=0.01)
    assert viewer.text(".scale-of") == "azimuth and ground range"
    bar = viewer.page.locator(".leaflet-control-scale-line")
    meters = float(bar.inner_text().split()[0])
    pixels = bar.evaluate("(e) => parseFloat(e.style.width)")
    assert meters / pixels == pytest.approx(GROUND, rel=0.02)  # a pixel of the screen is one of range at this zoom
    part = viewer.pixels()  # lines that are higher leave less room
    np.testing.assert_array_equal(part, square[: part.shape[0]])
    # what is picked is what is under the pointer, and lengths are those on the ground
    for i, j in [(120, 260), (150, 300), (181, 222)]:
        viewer.click(i, j)
        viewer.page.wait_for_selector(f"#places li:has-text('azimuth {i}, range {j}')")
        told = viewer.page.evaluate(f"moraine.panes[0].valueAt({j} + 0.5, {i} + 0.5)")
        assert told == pytest.approx(heights()[i, j], abs=0.2)
    viewer.page.wait_for_selector("#profile-plot canvas")
    viewer.until("moraine.panel.profile.rows.rows.length > 0")
    rows = viewer.page.evaluate("moraine.panel.profile.rows")
    head, last = rows["head"], rows["rows"][-1]
    assert head[0] == "distance on the ground (m)"
    assert last[0] == pytest.approx(math.hypot(180 * AZIMUTH, 380 * GROUND), rel=1e-3)
    again = view("&".join(f"{name}={value}" for name, value in viewer.fragment().items()))
    assert again.fragment() == viewer.fragment()
    viewer.page.uncheck("text=true aspect")
    assert "asp" not in viewer.fragment()


def test_true_aspect_is_greyed_out_with_the_reason_where_spacings_are_not_known(view: Any) -> None:
    viewer = view("l=small&show=value&asp=true")
    assert viewer.page.is_disabled("text=true aspect")
    assert "this grid has [100, 90]" in viewer.text("#why-aspect")
    assert "asp" not in viewer.fragment()
    assert viewer.page.locator(".leaflet-control-scale").count() == 0
    assert axe(viewer) == []


# -- degrees on radar grids


def test_degrees_of_a_pixel_are_those_of_the_rasters_beside_its_grid(site: Site) -> None:
    lon, lat = lon_lat()
    found = layers(site)
    for name in ("rslc", "adi"):
        number = found[name]["id"]
        assert found[name]["ground"] is True
        for i, j in [(0, 0), (299, 519), (123, 77)]:
            told = asked(site, f"/ground?layer={number}&x={j + 0.9}&y={i + 0.1}")
            assert told == {"lon": pytest.approx(lon[i, j], abs=1e-7), "lat": pytest.approx(lat[i, j], abs=1e-7)}
        for i, j in [(7, 9), (-1, 5), (300, 5), (5, 520)]:
            assert "not known" in asked(site, f"/ground?layer={number}&x={j}.5&y={i}.5")["nothing"]
    assert found["small"]["ground"] is False
    assert "nothing" in asked(site, f"/ground?layer={found['small']['id']}&x=5&y=5")
    assert asked(site, "/ground?layer=99&x=5&y=5") == 404
    assert asked(site, "/ground?layer=0&x=nan&y=../5") == 400


def test_degrees_are_told_at_the_pointer_that_rests_with_places_and_in_files(view: Any) -> None:
    lon, lat = lon_lat()
    viewer = view("l=hgt&show=value&v=149.5,259.5,0")
    viewer.requests.clear()
    box = viewer.page.locator(".map").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for k in range(30):
        viewer.page.mouse.move(middle[0] + k, middle[1])
    viewer.until("document.querySelector('.readout').textContent.includes('lat')")
    n_asked = sum("/ground?" in request for request in viewer.requests)
    assert 1 <= n_asked <= 10  # not at every step
    i, j = viewer.page.evaluate("moraine.panes[0].told.map(Math.floor).reverse()")
    degrees = f"lat {lat[i, j]:.5f}°, lon {lon[i, j]:.5f}°"
    assert viewer.text(".readout").startswith(f"azimuth {i}, range {j} ({degrees}): ")
    viewer.click(160, 240)
    degrees = f"azimuth 160, range 240 (lat {lat[160, 240]:.5f}°, lon {lon[160, 240]:.5f}°)"
    viewer.page.wait_for_selector(f"#places li:has-text('{degrees}: ')")
    viewer.page.click("#series-details summary")
    assert viewer.text("#series-table th:nth-child(2)") == degrees
    with viewer.page.expect_download() as download:
        viewer.page.click("#places-buttons >> text=Save as CSV")
    assert degrees in Path(download.value.path()).read_text().splitlines()[0]


def test_degrees_are_read_out_by_keyboard(view: Any) -> None:
    viewer = view("l=hgt&show=value&v=150,260,0", reduced_motion="reduce")
    viewer.page.keyboard.press("1")
    viewer.page.keyboard.press("Alt+ArrowRight")
    viewer.until("/azimuth 150, range 261 .lat /.test(document.getElementById('status').textContent)")


def test_an_export_has_true_aspect_and_coast_but_asks_for_no_degrees(view: Any, exported: str) -> None:
    viewer = view("l=hgt&show=value&asp=true", exported)
    assert viewer.fragment()["asp"] == "true"
    assert viewer.text(".scale-of") == "azimuth and ground range"
    viewer.click(150, 260)
    viewer.page.wait_for_selector("#places li:has-text('azimuth 150, range 260: ')")
    assert not any("ground?" in request for request in viewer.requests)
    far = view("l=map&show=value&v=52.4,4.9,8", exported)
    far.page.wait_for_selector("path.coast", state="attached")


# -- one picture over the other


SWIPE = f"panes=2&swipe=40&l=rslc&show=intf&a={D[0]}&b={D[2]}&v=149.5,259.5,0&2.l=hgt&2.show=value"


def pane_at(viewer: Viewer, share: float) -> int:
    """Tell which picture is seen at a share of the width, a bit below the middle."""
    return int(
        viewer.page.evaluate(
            """(share) => {
              const { left, top, width, height } = document.querySelector(".map").getBoundingClientRect();
              const found = document.elementFromPoint(left + share * width, top + 0.6 * height);
              return moraine.panes.findIndex((pane) => pane.mapElement.contains(found));
            }""",
            share,
        )
    )


def screen(viewer: Viewer, pane: int, i: float, j: float) -> list[float]:
    """Give where on the screen a place of a picture is, from the corner of its first pixel."""
    found: list[float] = viewer.page.evaluate(
        """([number, i, j]) => {
          const { map, toMap, mapElement } = moraine.panes[number];
          const { x, y } = map.latLngToContainerPoint(toMap(j, i));
          const { left, top } = mapElement.getBoundingClientRect();
          return [left + x, top + y];
        }""",
        [pane, i, j],
    )
    return found


def test_a_divider_parts_two_pictures_of_one_place(view: Any) -> None:
    viewer = view(SWIPE.replace("9.5,0", "9.5,1"))
    boxes = [viewer.page.locator(".map").nth(k).bounding_box() for k in range(2)]
    assert boxes[0] == boxes[1]
    assert viewer.page.evaluate("moraine.panes[0].view()") == viewer.page.evaluate("moraine.panes[1].view()")
    assert [pane_at(viewer, share) for share in (0.05, 0.37, 0.43, 0.9)] == [0, 0, 1, 1]
    # both say their values at the pointer, whichever is seen there
    viewer.page.mouse.click(*screen(viewer, 0, 150.5, 150.5))
    viewer.page.wait_for_selector("#places li")
    readouts = viewer.page.locator(".readout").all_inner_texts()
    assert readouts[0].startswith("azimuth 150, range 150")
    assert readouts[0].endswith("rad")
    assert float(readouts[1].split(": ")[1].split()[0]) == pytest.approx(65, abs=0.2)
    assert axe(viewer) == []
    again = view("&".join(f"{name}={value}" for name, value in viewer.fragment().items()))
    assert again.fragment() == viewer.fragment()
    assert again.fragment()["swipe"] == "40"


def test_the_pixels_of_a_swipe_are_those_of_the_picture_on_each_side(view: Any, tmp_path: Path) -> None:
    viewer = view(SWIPE + "&2.cm=gray&2.lim=-100,250")
    shot = tmp_path / "shot.png"
    viewer.page.screenshot(path=str(shot))
    from PIL import Image

    seen = np.asarray(Image.open(shot).convert("RGB"))
    stack = slc_stack(SHAPE, N)
    phase = color_table("cyclic")[color_index(np.angle(stack[..., 0] * np.conj(stack[..., 2])), -math.pi, math.pi)]
    gray = color_table("gray")[color_index(heights(), -100, 250)]
    for number, truth, (i, j) in [(0, phase, (200, 100)), (1, gray, (200, 400))]:
        x, y = map(round, screen(viewer, number, i, j))
        part = seen[y : y + 20, x : x + 20].astype(int)
        away = np.abs(part - truth[i : i + 20, j : j + 20, :3]).max(axis=-1)
        assert np.median(away) <= 2


def test_the_divider_moves_by_keyboard_and_by_mouse_and_is_kept_in_the_address(view: Any) -> None:
    viewer = view(SWIPE.replace("&swipe=40", ""))
    viewer.page.focus("#swipe-on")
    viewer.page.keyboard.press("Space")
    assert viewer.fragment()["swipe"] == "50"
    viewer.page.focus("#swipe")
    for key in ("ArrowRight", "ArrowRight", "PageDown"):
        viewer.page.keyboard.press(key)
    share = int(viewer.fragment()["swipe"])
    assert share == int(viewer.page.input_value("#swipe"))
    assert share < 50
    slider = viewer.page.get_by_role("slider", name="Divider of the two pictures")
    assert slider.get_attribute("aria-valuetext") == f"{share} % of the width is picture 1, the rest picture 2"
    viewer.page.keyboard.press("End")
    assert pane_at(viewer, 0.95) == 0
    viewer.page.keyboard.press("Home")
    assert pane_at(viewer, 0.05) == 1
    box = viewer.page.locator("#swipe").bounding_box()
    y = box["y"] + box["height"] / 2
    viewer.page.mouse.move(box["x"] + 14, y)
    viewer.page.mouse.down()
    viewer.page.mouse.move(box["x"] + box["width"] * 0.7, y, steps=5)
    viewer.page.mouse.up()
    assert abs(int(viewer.fragment()["swipe"]) - 71) <= 2
    assert [pane_at(viewer, at) for at in (0.6, 0.8)] == [0, 1]
    # the picture is still moved and zoomed beside it
    before = viewer.page.evaluate("moraine.panes[0].view()")
    viewer.page.mouse.move(box["x"] + 100, y)
    viewer.page.mouse.down()
    viewer.page.mouse.move(box["x"] + 160, y + 10, steps=4)
    viewer.page.mouse.up()
    assert viewer.page.evaluate("moraine.panes[0].view()") != before
    viewer.page.uncheck("#swipe-on")
    assert "swipe" not in viewer.fragment()
    assert viewer.page.locator("#swipe").count() == 0
    viewer.page.go_back()
    viewer.until("location.hash.includes('swipe=')")


def test_pictures_of_two_grids_cannot_lie_over_each_other_and_that_is_said(view: Any) -> None:
    viewer = view("panes=2&swipe=30&l=hgt&show=value&2.l=map&2.show=value")
    assert viewer.page.is_disabled("#swipe-on")
    assert "needs two pictures of one grid" in viewer.text("#swipe-row")
    assert viewer.page.locator("#swipe").count() == 0
    viewer.page.select_option("#pane-count", "1")
    assert viewer.page.is_hidden("#swipe-row")
    assert "swipe" not in viewer.fragment()


def test_a_swipe_fits_a_narrow_screen(view: Any) -> None:
    viewer = view(SWIPE, viewport={"width": 320, "height": 700})
    assert viewer.page.evaluate("document.documentElement.scrollWidth") <= 320
    assert [pane_at(viewer, share) for share in (0.1, 0.9)] == [0, 1]


# -- numbers along the edges


@pytest.mark.parametrize("height", [500, 1000])
def test_degrees_along_the_edges_are_where_they_say(view: Any, height: int) -> None:
    """However few of them have room: a single one is not rounded to the next whole degree."""
    viewer = view("panes=4&l=map&show=value&v=52.3695,4.9042,18.25", viewport={"width": 1000, "height": height})
    told = viewer.page.evaluate(
        """(() => {
          const { map, edges } = moraine.panes[0];
          return [...edges.children].map((mark) => {
            const degrees = Number(mark.textContent.replace("−", "-").replace("°", ""));
            const isX = mark.className.includes("edge-x");
            const { x, y } = map.latLngToContainerPoint(isX ? [52.3695, degrees] : [degrees, 4.9042]);
            return isX ? [x, parseFloat(mark.style.left)] : [y, parseFloat(mark.style.top)];
          });
        })()"""
    )
    assert len(told) >= 2
    for place, drawn in told:
        assert place == pytest.approx(drawn, abs=1.01)


# -- the coastline


def test_the_coast_is_where_it_is() -> None:
    """Capes lie on it, to a few kilometers; Madrid and Moscow do not."""
    found = json.loads(page_files()["coast.json"])
    points = found["grid"] * np.concatenate([np.cumsum(np.reshape(line, (-1, 2)), axis=0) for line in found["lines"]])
    for lon, lat in [(-5.716, 50.066), (20.0, -34.83), (-74.0, 40.57), (4.76, 52.96)]:
        assert np.hypot((points[:, 0] - lon) * math.cos(math.radians(lat)), points[:, 1] - lat).min() < 0.08
    for lon, lat in [(-3.70, 40.42), (37.6, 55.75)]:
        assert np.hypot(points[:, 0] - lon, points[:, 1] - lat).min() > 2


def test_the_coast_is_made_of_the_arcs_of_land_but_not_of_its_cuts() -> None:
    """Arcs are steps. Cuts are at 180 degrees and the south pole. What is nearly straight needs its ends only."""
    tool = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "coast.py"))
    topology = {
        "transform": {"scale": [0.5, 0.25], "translate": [-180, -90]},
        "arcs": [[[20, 400], [2, 0], [2, 0], [0, -4]], [[0, 300], [0, 10], [4, 0], [6, 2]], [[8, 0], [9, 0]]],
    }
    degrees = [(line * tool["GRID"]).tolist() for line in tool["coast"](topology)]
    assert degrees == [[[-170, 10], [-168, 10], [-168, 9]], [[-180, -12.5], [-178, -12.5], [-175, -12]]]


def test_points_that_the_coast_has_lost_are_off_by_no_more_than_the_tolerance() -> None:
    tool = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "coast.py"))
    rng = np.random.default_rng(3)
    points = np.cumsum(rng.normal(0, 0.003, (300, 2)), axis=0)
    is_kept = tool["simplified"](points)
    assert 2 < is_kept.sum() < 250
    kept = points[is_kept]
    for point in points:
        along, away = np.diff(kept, axis=0), point - kept[:-1]
        share = np.clip((along * away).sum(axis=1) / (along**2).sum(axis=1), 0, 1)
        assert np.hypot(*(away - share[:, None] * along).T).min() <= 0.0051


def test_the_page_adds_up_the_steps_of_lines(view: Any) -> None:
    viewer = view("l=map&show=value")
    lines = viewer.page.evaluate(
        "async (file) => (await import(new URL('s/coast.js', location.href))).coastOf(file)",
        {"grid": 0.5, "lines": [[8, 90, 2, 0, 0, -4], [-3, 1, 1, 1]]},
    )
    assert lines == [[[45, 4], [45, 5], [43, 5]], [[0.5, -1.5], [1, -1]]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_coast_is_drawn_under_the_points_from_afar_only(view: Any, scheme: str) -> None:
    viewer = view("l=map&show=value", color_scheme=scheme)
    assert viewer.page.locator("path.coast").count() == 0
    assert not any("coast.json" in request for request in viewer.requests)
    viewer.page.evaluate("moraine.panes[0].map.setView([52.4, 4.9], 8, {animate: false})")
    viewer.page.wait_for_selector("path.coast", state="attached")
    assert "Natural Earth" in viewer.text(".credit")
    coast, tiles = (
        int(viewer.page.evaluate(f"getComputedStyle(document.querySelector('.leaflet-{name}-pane')).zIndex"))
        for name in ("coast", "tile")
    )
    assert coast < tiles
    # data that are smaller than a few pixels are encircled
    ring = viewer.page.locator(".ring").bounding_box()
    middle = viewer.page.evaluate(
        """(() => {
          const { map, mapElement, layer, toMap } = moraine.panes[0];
          const [x0, y0, x1, y1] = layer.extent;
          const { x, y } = map.latLngToContainerPoint(toMap((x0 + x1) / 2, (y0 + y1) / 2));
          const { left, top } = mapElement.getBoundingClientRect();
          return [left + x, top + y];
        })()"""
    )
    assert [ring["x"] + 9, ring["y"] + 9] == pytest.approx(middle, abs=1.5)
    # it goes through what is seen, and the drawing is small
    drawn = viewer.page.evaluate("document.querySelector('path.coast').getAttribute('d')")
    assert 200 < len(drawn) < 200_000
    assert axe(viewer) == []
    viewer.page.evaluate("moraine.panes[0].map.setZoom(10, {animate: false})")
    assert viewer.page.locator("path.coast").count() == 0
    assert viewer.page.locator(".credit").count() == 0
    viewer.page.evaluate("moraine.panes[0].map.setZoom(16, {animate: false})")
    assert viewer.page.locator(".ring").count() == 0
    viewer.page.evaluate("moraine.panes[0].map.setZoom(9, {animate: false})")
    viewer.page.wait_for_selector("path.coast", state="attached")
    assert sum("coast.json" in request for request in viewer.requests) == 1
