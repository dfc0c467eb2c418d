"""`moraine view` in a real browser: one pane of a stack on the radar grid."""

from __future__ import annotations

import json
import math
import shutil
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from web_pages import axe, dates, raster_pyramid, serving, site_of, slc_stack, write_dates

from moraine_core.cli.main import run
from moraine_view.palette import color_index, color_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from moraine_view.web.answer import Site

SHAPE, N = (300, 520), 4
D = dates(N)


@pytest.fixture(scope="module")
def stack() -> NDArray[np.complex64]:
    return slc_stack(SHAPE, N)


@pytest.fixture(scope="module")
def heights() -> NDArray[np.float32]:
    i, j = np.mgrid[: SHAPE[0], : SHAPE[1]]
    values = (i - 100 + 0.1 * j).astype(np.float32)
    values[200:220, 300:360] = np.nan
    return values


@pytest.fixture(scope="module")
def motion(stack: NDArray[np.complex64]) -> NDArray[np.float32]:
    """Displacements in meters, millimeters of them."""
    i = np.arange(SHAPE[0])[:, None] + np.zeros(SHAPE)
    return ((i - 150)[..., None] * 1e-4 * np.arange(N) + 1e-3 * np.arange(N)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, stack: Any, heights: Any, motion: Any) -> Path:
    folder = tmp_path_factory.mktemp("data")
    raster_pyramid(folder / "rslc_pyramid", stack)
    raster_pyramid(folder / "hgt_pyramid", heights, "m")
    raster_pyramid(folder / "motion_pyramid", motion, "m")
    write_dates(folder, N)
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> Site:
    return site_of(folder)


PAIR = f"l=rslc&show=intf&a={D[0]}&b={D[2]}&v=149.5,259.5,0"


def colors(table: Any, index: NDArray[Any]) -> NDArray[np.uint8]:
    return color_table(table)[index]


# -- pixels


def test_the_pixels_of_a_pair_are_those_of_a_quicklook(view: Any, stack: NDArray[np.complex64]) -> None:
    """Phases near 0 and at the ends, the hole and the odd edges included: all of them are compared."""
    viewer = view(PAIR)
    index = color_index(np.angle(stack[..., 0] * np.conj(stack[..., 2])), -math.pi, math.pi)
    assert {0, 127, 254, 255} <= set(np.unique(index))
    np.testing.assert_array_equal(viewer.pixels(), colors("cyclic", index))


def test_coarser_levels_have_a_pixel_of_the_screen_for_each_cell(view: Any, stack: NDArray[np.complex64]) -> None:
    viewer = view(PAIR.replace("259.5,0", "259.5,-2"))
    part = stack[::4, ::4]
    index = color_index(np.angle(part[..., 0] * np.conj(part[..., 2])), -math.pi, math.pi)
    np.testing.assert_array_equal(viewer.pixels(), colors("cyclic", index))


def test_values_have_the_colors_of_their_limits_give_or_take_a_step(view: Any, heights: NDArray[np.float32]) -> None:
    viewer = view("l=hgt&show=value&v=149.5,259.5,0&lim=-50,150&cm=sequential")
    coding = viewer.page.evaluate("moraine.panes[0].picture.coding")
    half = coding["step"] / 2
    lower, upper = (color_index(heights + away, -50, 150).astype(int) for away in (-half, half))
    table = color_table("sequential")
    found = viewer.pixels()
    for wanted in (table[lower], table[upper]):
        same = (found == wanted).all(axis=-1)
        assert same[lower == upper].all()
    known = ~np.isnan(heights)
    assert (found[~known][:, 3] == 0).all()
    assert (found[known][:, 3] == 255).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (7, 1)])
def test_tiny_rasters_are_shown(view: Any, browser: Any, tmp_path: Path, shape: tuple[int, int]) -> None:
    values = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    raster_pyramid(tmp_path / "tiny_pyramid", values)
    with serving(site_of(tmp_path)) as url:
        viewer = view(f"l=tiny&show=value&v={(shape[0] - 1) / 2},{(shape[1] - 1) / 2},0&lim=0,10", url)
        assert viewer.pixels().shape[:2] == shape
        assert (viewer.pixels()[..., 3] == 255).all()


# -- which pair, which reference


def test_any_pair_is_within_its_tolerance_of_the_truth(view: Any, stack: NDArray[np.complex64]) -> None:
    """All pairs, one after the other: 1.5 degrees at most between the value told and that of the images."""
    viewer = view(PAIR)
    places = [(10, 20), (100, 300), (299, 519), (255, 256)]
    for a in range(N):
        for b in range(N):
            viewer.page.evaluate(f"moraine.change(() => Object.assign(moraine.state.panes[0], {{a: {a}, b: {b}}}))")
            viewer.wait()
            for i, j in places:
                told = viewer.page.evaluate(f"moraine.panes[0].valueAt({j} + 0.5, {i} + 0.5)")
                truth = np.angle(stack[i, j, a] * np.conj(stack[i, j, b]))
                assert abs(math.remainder(told - truth, 2 * math.pi)) < math.radians(1.5)


def test_the_reference_makes_the_mean_of_its_window_zero_and_asks_for_no_tile(view: Any, stack: Any) -> None:
    viewer = view(PAIR)
    viewer.click(150, 260)
    viewer.page.wait_for_selector("#places li")
    viewer.requests.clear()
    viewer.page.click("text=Set at last place")
    viewer.until("moraine.panes[0].constants !== null")
    assert viewer.requests == []
    intf = stack[148:153, 258:263, 0] * np.conj(stack[148:153, 258:263, 2])
    constant = np.angle(intf.sum())
    assert viewer.page.evaluate("moraine.panes[0].zero") == pytest.approx(constant, abs=1e-4)
    values = [
        viewer.page.evaluate(f"moraine.panes[0].valueAt({j} + 0.5, {i} + 0.5)")
        for i in range(148, 153)
        for j in range(258, 263)
    ]
    weights = np.abs(intf).ravel()
    assert abs(np.angle((weights * np.exp(1j * np.array(values))).sum())) < math.radians(1.5)
    index = color_index(
        np.angle(np.exp(1j * (np.angle(stack[..., 0] * np.conj(stack[..., 2])) - constant))), -math.pi, math.pi
    )
    found = viewer.pixels()
    table = color_table("cyclic")
    near = [
        (found == table[np.where(index == 255, 255, (index.astype(int) + k) % 255)]).all(axis=-1) for k in (-1, 0, 1)
    ]
    assert np.any(near, axis=0).all()


def test_the_reference_of_displacements_is_the_median_and_stays_when_the_next_place_is_picked(
    view: Any, motion: Any
) -> None:
    viewer = view(f"l=motion&show=value&k={D[3]}&ref=200,100,2&v=149.5,259.5,0")
    viewer.until("moraine.panes[0].constants !== null")
    viewer.click(20, 50)
    viewer.page.wait_for_selector("#places li:has-text('mm')")
    expected = (motion[20, 50, 3] - np.median(motion[198:203, 98:103, 3])) * 1000
    told = float(viewer.text("#places li").split(":")[1].split()[0].replace("−", "-"))
    assert told == pytest.approx(expected, abs=0.05)
    assert viewer.fragment()["ref"] == "200,100,2"
    assert "reference azimuth 200, range 100 ± 2" in viewer.text(".caption")
    assert "mm" in viewer.text(".bar-text")


def test_the_difference_of_two_dates_is_that_of_their_values(view: Any, motion: Any) -> None:
    viewer = view(f"l=motion&show=diff&a={D[3]}&b={D[1]}&v=149.5,259.5,0")
    told = viewer.page.evaluate("moraine.panes[0].valueAt(400.5, 250.5)")
    step = viewer.page.evaluate("moraine.panes[0].picture.coding.step")
    assert told == pytest.approx(motion[250, 400, 3] - motion[250, 400, 1], abs=step * 1.01)
    assert "2023-02-11 − 2023-01-18" in viewer.text(".caption")


def test_looks_come_from_the_server(view: Any, stack: Any) -> None:
    viewer = view(PAIR + "&looks=4")
    intf = stack[..., 0].astype(complex) * np.conj(stack[..., 2])
    block = np.angle(intf[100:104, 200:204].sum())
    told = viewer.page.evaluate("moraine.panes[0].valueAt(201.5, 102.5)")
    assert abs(math.remainder(told - block, 2 * math.pi)) < math.radians(1.5)
    assert "4 × 4 looks" in viewer.text(".caption")


# -- what asks for nothing


def test_limits_tables_and_dates_seen_before_ask_for_nothing(view: Any) -> None:
    viewer = view(f"l=motion&show=value&k={D[1]}&v=149.5,259.5,0")
    viewer.page.keyboard.press("]")
    viewer.wait()
    before = viewer.pixels()
    viewer.requests.clear()
    viewer.page.fill("label:has-text('Lowest') + input", "-4")
    viewer.page.fill("label:has-text('Highest') + input", "9")
    viewer.page.keyboard.press("Enter")
    assert viewer.fragment()["lim"] == "-0.004,0.009"
    limited = viewer.pixels()
    viewer.page.select_option("label:has-text('Table') + select", "sequential")
    table = viewer.pixels()
    viewer.page.click("text=reversed")
    for text in ("1–99 %", "2–98 % of the view", "Symmetric", "Full range"):
        viewer.page.click(f"button:has-text('{text}')")
    viewer.page.fill("label:has-text('Repeat every') + input", "5")
    viewer.page.keyboard.press("Enter")
    viewer.page.keyboard.press("Escape")
    viewer.page.evaluate("document.activeElement.blur()")
    viewer.page.keyboard.press("[")
    viewer.wait()
    assert viewer.requests == []
    assert (before != limited).any()
    assert (limited != table).any()
    assert viewer.fragment()["k"] == D[1]


def test_limits_of_the_view_are_its_percentiles(view: Any, heights: NDArray[np.float32]) -> None:
    viewer = view("l=hgt&show=value&v=149.5,259.5,0")
    viewer.page.click("text=2–98 % of the view")
    low, high = map(float, viewer.fragment()["lim"].split(","))
    expected = np.nanpercentile(heights, [2, 98])
    np.testing.assert_allclose([low, high], expected, atol=0.5)


def test_no_request_leaves_the_server(view: Any, url: str) -> None:
    viewer = view(PAIR)
    viewer.click(100, 100)
    viewer.page.wait_for_selector("#series-plot canvas")
    viewer.page.select_option("label:has-text('Layer') + select", "hgt")
    viewer.wait()
    place = url.split("/?")[0]
    assert len(viewer.requests) > 15
    assert all(request.startswith((place, "blob:", "data:")) for request in viewer.requests)


def test_real_values_that_repeat_have_the_colors_of_their_remainder(view: Any, heights: NDArray[np.float32]) -> None:
    viewer = view("l=hgt&show=value&v=149.5,259.5,0&wrap=40")
    half = viewer.page.evaluate("moraine.panes[0].picture.coding.step") / 2
    phase = [color_index(np.mod(heights + away + 20, 40) - 20, -20, 20) for away in (-half, half)]
    found, table = viewer.pixels(), color_table("cyclic")
    sure = phase[0] == phase[1]
    assert (found == table[phase[0]]).all(axis=-1)[sure].all()
    assert "every 40 the same color" in viewer.text(".bar-text")


# -- series


def test_a_click_gives_the_series_with_dates_as_a_picture_and_a_table(view: Any, stack: Any) -> None:
    viewer = view(PAIR)
    viewer.click(100, 300)
    viewer.page.wait_for_selector("#series-plot canvas")
    viewer.click(200, 400)
    viewer.page.wait_for_selector("#places li:nth-child(2)")
    viewer.page.click("#series-details summary")
    rows = viewer.page.evaluate(
        "[...document.querySelectorAll('#series-table tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"
    )
    assert [row[0] for row in rows] == ["2023-01-06", "2023-01-18", "2023-01-30", "2023-02-11"]
    found = np.array([[float(cell.replace("−", "-")) for cell in row[1:]] for row in rows])
    for column, (i, j) in enumerate([(100, 300), (200, 400)]):
        expected = np.angle(stack[i, j, 0] * np.conj(stack[i, j]))
        away = np.angle(np.exp(1j * (found[:, column] - expected)))
        np.testing.assert_allclose(away, 0, atol=1e-3)
    marks = viewer.page.evaluate("[...document.querySelectorAll('#places .mark path')].map((p) => p.getAttribute('d'))")
    assert len(set(marks)) == 2  # told apart by shape, not by color alone


def test_series_are_saved_as_a_table_with_unit_and_reference(view: Any, motion: Any) -> None:
    viewer = view(f"l=motion&show=value&k={D[1]}&ref=200,100,0&p=50,60&v=149.5,259.5,0")
    viewer.page.wait_for_selector("#series-plot canvas")
    viewer.until("moraine.panes[0].constants !== null")
    with viewer.page.expect_download() as download:
        viewer.page.click("#places-buttons >> text=Save as CSV")
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0] == 'date,"azimuth 50, range 60; motion (mm); reference azimuth 200, range 100 ± 0"'
    found = [float(line.split(",")[1]) for line in lines[1:]]
    np.testing.assert_allclose(found, (motion[50, 60] - motion[200, 100]) * 1000, atol=1e-3)


def test_a_place_outside_is_said(view: Any) -> None:
    viewer = view(PAIR.replace("149.5", "290"))
    viewer.click(320, 200)
    viewer.until("document.getElementById('status').textContent.includes('outside')")
    assert viewer.page.locator("#places li").count() == 0


def test_a_profile_is_drawn_between_two_places(view: Any, heights: NDArray[np.float32]) -> None:
    viewer = view("l=hgt&show=value&v=149.5,259.5,0")
    viewer.page.click("text=Draw a line")
    viewer.click(100, 100)
    viewer.click(100, 200)
    viewer.page.wait_for_selector("#profile-plot canvas")
    found = viewer.page.evaluate("moraine.panel.profile.found")
    assert len(found["values"]) == 101
    np.testing.assert_allclose(found["values"], heights[100, 100:201], atol=0.2)
    assert viewer.fragment()["line"] == "100,100,100,200"


# -- the address


def test_the_address_holds_all_that_is_seen(view: Any, url: str) -> None:
    viewer = view(
        f"l=motion&show=value&k={D[2]}&ref=10,20,3&p=30,40;50,60&line=1,2,30,40&lim=-0.001,0.002&cm=gray&rev=1&width=5&v=100,200,-0.5"
    )
    viewer.page.wait_for_selector("#profile-plot canvas")
    fields = viewer.fragment()
    assert "t" not in fields
    assert viewer.page.url.startswith(url.split("?")[0] + "#")
    again = view("&".join(f"{name}={value}" for name, value in fields.items()))
    again.page.wait_for_selector("#profile-plot canvas")
    assert again.fragment() == fields
    for each in (viewer, again):  # the reference is asked for on its own
        each.until("moraine.panes[0].constants !== null")
    assert (again.pixels() == viewer.pixels()).all()
    assert fields["k"] == D[2]
    assert fields["ref"] == "10,20,3"
    assert fields["p"] == "30,40;50,60"


def test_rubbish_in_the_address_shows_what_can_be_shown(view: Any) -> None:
    viewer = view(
        "l=<script>alert(1)</script>&show=__proto__&a=x&b=99999999999&v=a,b,c&ref=1&p=;;,&lim=9,1&panes=77&wrap=-1&cm=url(x)"
    )
    assert viewer.fragment()["l"] == "rslc"  # what is shown when nothing is asked for
    assert viewer.page.locator(".pane").count() == 1


def test_back_and_forward_go_through_what_was_chosen(view: Any) -> None:
    viewer = view(PAIR)
    viewer.page.select_option("label:has-text('Layer') + select", "hgt")
    viewer.wait()
    assert viewer.fragment()["l"] == "hgt"
    viewer.page.go_back()
    viewer.until("moraine.state.panes[0].layer === 'rslc'")
    viewer.wait()
    assert viewer.text(".caption").startswith("rslc · interferogram · 2023-01-06 → 2023-01-30")
    viewer.page.go_forward()
    viewer.until("moraine.state.panes[0].layer === 'hgt'")


def test_a_reload_keeps_everything(view: Any) -> None:
    viewer = view(PAIR + "&p=100,100&ref=50,50,1")
    before, pixels = viewer.fragment(), viewer.pixels()
    viewer.page.reload()
    viewer.wait()
    viewer.until("moraine.panes[0].constants !== null")
    assert viewer.fragment() == before
    assert (viewer.pixels() == pixels).all()


def test_data_made_again_are_offered_and_shown_after_a_reload(view: Any, tmp_path: Path) -> None:
    raster_pyramid(tmp_path / "x_pyramid", np.zeros((50, 60), np.float32), "m", min=0, max=9, p01=0, p99=9)
    with serving(site_of(tmp_path)) as url:
        viewer = view("", url)
        assert viewer.page.is_hidden("#notice")
        shutil.rmtree(tmp_path / "x_pyramid")
        raster_pyramid(tmp_path / "x_pyramid", np.full((50, 60), 9, np.float32), "m", min=0, max=9, p01=0, p99=9)
        viewer.page.evaluate("moraine.changed()")
        viewer.page.wait_for_selector("#notice:has-text('The data have changed: x.')")
        old = viewer.pixels()
        viewer.page.click("text=Reload")
        viewer.until("document.readyState === 'complete' && !!window.moraine")
        viewer.wait()
        assert (viewer.pixels()[0, 0] == color_table("sequential")[254]).all()
        assert (old[0, 0] == color_table("sequential")[0]).all()


def test_a_half_written_level_is_said_and_not_shown_as_empty(view: Any, tmp_path: Path) -> None:
    raster_pyramid(tmp_path / "x_pyramid", np.zeros((50, 300), np.float32))
    (tmp_path / "x_pyramid" / "0.zarr" / "c" / "0" / "1").unlink()
    with serving(site_of(tmp_path)) as url:
        viewer = view("v=25,150,0", url)
        viewer.page.wait_for_selector(".incomplete:has-text('a tile is not shown: incomplete: chunk (0, 1)')")
        assert viewer.page.locator(".tile.failed").count() == 1


# -- for everybody


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_there_are_no_serious_findings_of_accessibility(view: Any, scheme: str) -> None:
    viewer = view(PAIR + "&p=100,100&ref=50,50,1&line=1,1,100,100", color_scheme=scheme)
    viewer.page.wait_for_selector("#profile-plot canvas")
    viewer.page.click("#series-details summary")
    assert axe(viewer) == []
    viewer.page.click("#help-button")
    assert axe(viewer) == []


@pytest.mark.parametrize("width", [320, 1200])
def test_nothing_is_cut_off_on_a_narrow_screen(view: Any, width: int) -> None:
    viewer = view(PAIR + "&p=100,100", viewport={"width": width, "height": 700})
    viewer.page.wait_for_selector("#series-plot canvas")
    assert viewer.page.evaluate("document.documentElement.scrollWidth") <= width
    cut = viewer.page.evaluate(
        """[...document.querySelectorAll("button, select, input, .caption, .bar-text")].filter((e) => {
          const { left, right, width } = e.getBoundingClientRect();
          return width && (left < -1 || right > innerWidth + 1);
        }).map((e) => e.outerHTML.slice(0, 100))"""
    )
    assert cut == []


def test_everything_can_be_done_by_keyboard(view: Any, stack: Any) -> None:
    viewer = view(PAIR.replace("149.5,259.5", "150,260"), reduced_motion="reduce")
    keys = viewer.page.keyboard

    def focused() -> str:
        element = "document.activeElement"
        return str(viewer.page.evaluate(f"{element}.getAttribute('aria-label') ?? {element}.id"))

    for _ in range(12):
        keys.press("Tab")
        if focused().startswith("Picture 1"):
            break
    assert focused().startswith("Picture 1")
    # to a pixel, by pixels
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        keys.press(f"Alt+{key}")
    viewer.until("document.getElementById('status').textContent.startsWith('azimuth 151, range 262')")
    assert viewer.page.is_visible(".crosshair")
    keys.press("Enter")
    viewer.page.wait_for_selector("#places li:has-text('azimuth 151, range 262')")
    viewer.until("document.getElementById('status').textContent.includes('rad')")
    keys.press("r")
    viewer.until("moraine.panes[0].constants !== null")
    assert viewer.fragment()["ref"] == "151,262,2"
    keys.press("]")
    viewer.wait()
    assert viewer.fragment()["b"] == D[3]
    assert "2023-02-11" in viewer.text("#status")
    keys.press("]")
    assert "last" in viewer.text("#status")
    keys.press("[")
    viewer.wait()
    zoom = float(viewer.fragment()["v"].split(",")[2])
    keys.press("+")
    viewer.until(f"moraine.panes[0].map.getZoom() > {zoom}")
    viewer.wait()
    keys.press("-")
    viewer.until(f"moraine.panes[0].map.getZoom() === {zoom}")
    viewer.wait()
    keys.press("l")
    for _ in range(5):
        keys.press("Alt+ArrowLeft")
    keys.press("l")
    viewer.page.wait_for_selector("#profile-plot canvas")
    keys.press("Backspace")
    viewer.page.wait_for_selector("#places li", state="detached")
    keys.press("?")
    viewer.page.wait_for_selector("dialog[open]")
    keys.press("Escape")
    viewer.page.wait_for_selector("dialog[open]", state="hidden")


def test_single_keys_can_be_turned_off(view: Any) -> None:
    viewer = view(PAIR)
    viewer.page.keyboard.press("?")
    viewer.page.click("#single-keys")
    viewer.page.keyboard.press("Escape")
    viewer.page.keyboard.press("]")
    viewer.wait()
    assert viewer.fragment()["b"] == D[2]
    viewer.page.reload()
    viewer.wait()
    viewer.page.keyboard.press("]")
    assert viewer.fragment()["b"] == D[2]


def test_every_control_is_reached_by_tab_and_shows_that_it_is(view: Any) -> None:
    viewer = view(PAIR + "&p=100,100")
    viewer.page.wait_for_selector("#series-plot canvas")
    wanted = viewer.page.evaluate(
        """[...document.querySelectorAll("button, select, input, summary, [tabindex='0']")]
          .filter((e) => e.checkVisibility() && !e.disabled).length"""
    )
    seen = set()
    for _ in range(wanted + 8):
        viewer.page.keyboard.press("Tab")
        found = viewer.page.evaluate(
            """(() => {
              const e = document.activeElement;
              if (e === document.body) return null;
              const style = getComputedStyle(e);
              window.reached ??= [];
              if (!window.reached.includes(e)) window.reached.push(e);
              return [window.reached.indexOf(e), style.outlineStyle, e.outerHTML.slice(0, 120)];
            })()"""
        )
        if found:
            seen.add(found[0])
            assert found[1] != "none", found
    assert len(seen) >= wanted


def test_movement_is_left_out_where_people_ask_for_that(view: Any) -> None:
    viewer = view(PAIR, reduced_motion="reduce")
    assert viewer.page.evaluate("moraine.panes[0].map.options.zoomAnimation") is False
    assert viewer.page.evaluate("moraine.panes[0].map.options.inertia") is False


def test_names_from_the_data_are_text(view: Any, tmp_path: Path) -> None:
    raster_pyramid(tmp_path / "<img src=x onerror=alert(1)>_pyramid", np.zeros((5, 5), np.float32), "<b>m</b>")
    with serving(site_of(tmp_path)) as url:
        viewer = view("", url)
        assert "<img src=x onerror=alert(1)>" in viewer.text(".caption")
        assert "<b>m</b>" in viewer.text(".bar-text")
        assert viewer.page.locator("img").count() == 0


def test_what_is_seen_is_always_said(view: Any) -> None:
    """Sign, unit, reference and dates."""
    viewer = view(PAIR)
    assert viewer.text(".caption") == "rslc · interferogram · 2023-01-06 → 2023-01-30 · no reference"
    assert viewer.text(".bar-text") == "interferometric phase (rad); more: away from the satellite, a fringe is 27.7 mm"
    assert json.loads(json.dumps(viewer.page.title())) == "rslc – moraine view"


# -- in a notebook


def test_a_notebook_shows_the_page_in_a_frame(browser: Any, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "view.ipynb"
    assert run(["view", str(folder), "-o", str(file), "--show", "intf_0"]) == 0
    notebook = json.loads(file.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    sources = [cell["source"] for cell in notebook["cells"]]
    assert len(sources) == 1 + 3
    names: dict[str, Any] = {}
    exec(sources[0], names)
    shown = eval(sources[3], names)
    try:
        html = f"<!doctype html><title>notebook</title>{shown._repr_html_()}".encode()
        with page_at_another_port(html) as address:
            page = browser.new_page()
            page.goto(address)
            frame = page.frame_locator("iframe")
            frame.locator(".pane[aria-busy=false]").wait_for(timeout=30_000)
            assert frame.locator(".caption").inner_text().startswith("rslc · interferogram")
            page.close()
    finally:
        shown.close()
    assert run(["view", str(folder), "-o", str(file)]) == 2
    assert run(["view", str(folder), "-o", str(file), "--overwrite"]) == 0
    assert run(["view", str(folder), "-o", str(tmp_path / "view.html")]) == 2


@contextmanager
def page_at_another_port(html: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=lambda: server.serve_forever(poll_interval=0.05), daemon=True)
    thread.start()
    yield f"http://localhost:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_pages_of_other_places_cannot_show_it_in_a_frame(browser: Any, url: str) -> None:
    frame = f'<iframe src="{url.replace("127.0.0.1", "localhost")}"></iframe>'.encode()
    with page_at_another_port(b"<!doctype html><title>other</title>" + frame) as address:
        page = browser.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.goto(address)
        page.wait_for_load_state("load")
        for _ in range(400):
            if any("frame-ancestors" in text for text in said):
                break
            page.wait_for_timeout(25)
        assert any("frame-ancestors" in text for text in said)
        page.close()
