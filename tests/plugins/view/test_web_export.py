"""`moraine view --export`: the same tiles in files, and the same page without a server that knows anything."""

from __future__ import annotations

import functools
import http.server
import json
import math
import re
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from web_pages import Viewer, axe, chromium, dates, raster_pyramid, site_of, slc_stack, write_dates

from moraine_core.cli.main import run
from moraine_core.testing.data import read_array, write_array
from moraine_view.palette import color_index, color_table
from moraine_view.pc_pyramid import pc_pyramid
from moraine_view.web.answer import content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

SHAPE, N = (300, 280), 4
D = dates(N)


@pytest.fixture(scope="module")
def stack() -> NDArray[np.complex64]:
    return slc_stack(SHAPE, N)


@pytest.fixture(scope="module")
def gix() -> NDArray[np.int32]:
    rng = np.random.default_rng(4)
    return np.stack(np.divmod(np.sort(rng.choice(300 * 280, 6000, replace=False)), 280), axis=1).astype(np.int32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, stack: Any, gix: Any) -> Path:
    folder = tmp_path_factory.mktemp("data")
    raster_pyramid(folder / "rslc_pyramid", stack)
    raster_pyramid(folder / "motion_pyramid", np.angle(stack)[..., :3].astype(np.float32) / 1000, "m")
    coh = np.stack([stack[..., a] * np.conj(stack[..., b]) for a in range(N) for b in range(a + 1, N)], axis=-1)
    raster_pyramid(folder / "coh_pyramid", (0.6 * np.exp(1j * np.angle(coh[:50, :60]))).astype(np.complex64))
    values = (gix.sum(axis=1)[:, None] * np.array([1.0, 0.5])).astype(np.float32)
    values[11] = np.nan
    pc_pyramid(
        pc=write_array(folder / "pc.zarr", values, (4000, 1)),
        yx=write_array(folder / "gix.zarr", gix, (4000, 2)),
        out_dir=str(folder / "points_pyramid"),
        ras_resolution=4.0,
    )
    write_dates(folder, N)
    return folder


@pytest.fixture(scope="module")
def exported(folder: Path) -> Path:
    out = folder / "out" / "site"
    assert run(["view", str(folder), "--export", str(out), "-q"]) == 0
    return out


@contextmanager
def files_of(folder: Path) -> Iterator[str]:
    """Serve files as the plainest of servers does."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    server.daemon_threads = True
    thread = Thread(target=lambda: server.serve_forever(poll_interval=0.05), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def url(browser: Any, exported: Path) -> Iterator[str]:
    with files_of(exported.parent) as url:
        yield f"{url}site/"  # in a folder, as on most servers


@pytest.fixture
def view(browser: Any, url: str) -> Iterator[Callable[..., Viewer]]:
    opened: list[Viewer] = []

    def open_it(fragment: str = "") -> Viewer:
        opened.append(Viewer(browser, url, fragment))
        return opened[-1]

    yield open_it
    for viewer in opened:
        viewer.close()


# -- the files


def test_every_tile_is_that_of_the_server_byte_for_byte(folder: Path, exported: Path) -> None:
    layers = site_of(folder).layers
    found = [path for path in exported.glob("z/*/*/[0-9]*/c/*/*/*") if path.is_file()]
    assert len(found) > 100
    for path in found:
        served = content(layers, f"/{path.relative_to(exported)}", {})
        assert path.read_bytes() == served.body, path


def test_all_arrays_open_with_zarr_and_series_hold_the_finest_level(exported: Path, stack: Any) -> None:
    layers = {layer["name"]: layer for layer in json.loads((exported / "meta.json").read_text())["layers"]}
    place = exported / "z" / str(layers["rslc"]["id"]) / "phase"
    phases = color_index(np.angle(stack), -math.pi, math.pi)
    np.testing.assert_array_equal(zarr.open_array(place / "0", mode="r")[...], phases)
    np.testing.assert_array_equal(zarr.open_array(place / "series", mode="r")[...], phases)
    np.testing.assert_array_equal(zarr.open_array(place / "2", mode="r")[...], phases[::4, ::4])


def test_points_are_exported_with_their_places(exported: Path, folder: Path, gix: Any) -> None:
    layer = next(
        found for found in json.loads((exported / "meta.json").read_text())["layers"] if found["name"] == "points"
    )
    place = exported / "z" / str(layer["id"])
    np.testing.assert_array_equal(zarr.open_array(place / "y", mode="r")[...], gix[:, 0] + 0.5)
    told = layer["products"]["value"]
    codes = zarr.open_array(place / "value" / "series", mode="r")[...]
    values = np.where(codes == told["nothing"], np.nan, told["offset"] + told["step"] * codes)
    np.testing.assert_allclose(values, read_array(folder / "pc.zarr"), atol=told["step"])


def test_no_path_of_this_machine_is_in_an_export(exported: Path, folder: Path) -> None:
    for path in exported.rglob("*"):
        if path.is_file() and path.suffix in (".json", ".html"):
            assert str(folder) not in path.read_text()


def test_too_large_an_export_is_refused_with_the_level_that_would_fit(
    folder: Path, tmp_path: Path, capsys: Any
) -> None:
    out = tmp_path / "small"
    line = ["view", str(folder / "rslc_pyramid"), "--export", str(out), "-q", "--max-size"]
    assert run([*line, "150kB"]) == 2
    said = capsys.readouterr().err
    level = re.search(r"would take about .*, more than --max-size .*; --finest (\d) would take", said)[1]
    assert not out.exists()
    assert run([*line, "150kB", "--finest", level]) == 0
    size = sum(path.stat().st_size for path in out.glob("z/**/*") if path.is_file() and path.suffix != ".json")
    assert size < 150 * 1024
    assert run([*line, "5kB", "--finest", "3"]) == 2
    assert run([*line, "much"]) == 2
    assert "max_size is 'much'" in capsys.readouterr().err


def test_an_export_replaces_nothing_but_an_export_and_only_when_told(folder: Path, tmp_path: Path, capsys: Any) -> None:
    source = str(folder / "motion_pyramid")
    (tmp_path / "mine").mkdir()
    assert run(["view", source, "--export", str(tmp_path / "mine"), "--overwrite"]) == 2
    assert "is no export of moraine view" in capsys.readouterr().err
    out = str(tmp_path / "out")
    assert run(["view", source, "--export", out, "-q"]) == 0
    assert run(["view", source, "--export", out, "-q"]) == 2
    assert run(["view", source, "--export", out, "-q", "--overwrite"]) == 0


def test_an_export_that_fails_leaves_nothing(tmp_path: Path, capsys: Any) -> None:
    raster_pyramid(tmp_path / "x_pyramid", np.zeros((50, 3000), np.float32))
    (tmp_path / "x_pyramid" / "0.zarr" / "c" / "0" / "7").unlink()
    assert run(["view", str(tmp_path), "--export", str(tmp_path / "out"), "-q"]) == 1
    assert "view: chunk (0, 7) of x_pyramid/0.zarr is missing" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


# -- the page


def test_pairs_are_formed_in_the_page(view: Any, stack: Any) -> None:
    """Two phases of 8 bits: 1.5 degrees at most from the truth, and no bias."""
    viewer = view(f"l=rslc&show=intf&a={D[1]}&b={D[3]}&v=149.5,139.5,0")
    truth = np.angle(stack[..., 1] * np.conj(stack[..., 3]))
    table = color_table("cyclic")
    index = color_index(truth, -math.pi, math.pi)
    found = viewer.pixels()
    near = [
        (found == table[np.where(index == 255, 255, (index.astype(int) + k) % 255)]).all(axis=-1) for k in (-1, 0, 1)
    ]
    assert np.any(near, axis=0).all()
    away = []
    for i, j in [(int(i), int(j)) for i, j in np.random.default_rng(0).integers((61, 0), SHAPE, (60, 2))]:
        told = viewer.page.evaluate(f"moraine.panes[0].valueAt({j + 0.5}, {i + 0.5})")
        away.append(math.remainder(told - truth[i, j], 2 * math.pi))
    assert np.abs(away).max() < math.radians(1.5)
    assert abs(np.mean(away)) < math.radians(0.3)


def test_reference_series_and_limits_need_no_server(view: Any, stack: Any, url: str) -> None:
    viewer = view(f"l=rslc&show=intf&a={D[0]}&b={D[2]}&v=149.5,139.5,0")
    viewer.click(130, 128)  # at the corner of four blocks
    viewer.page.wait_for_selector("#series-plot canvas")
    viewer.requests.clear()
    viewer.page.click("text=Set at last place")
    viewer.until("moraine.panes[0].constants !== null")
    viewer.page.keyboard.press("]")
    viewer.wait()
    viewer.page.keyboard.press("[")
    viewer.wait()
    assert all("/series/" not in request for request in viewer.requests)
    window = np.exp(1j * np.angle(stack[128:133, 126:131].astype(complex)))
    expected = np.angle((window[..., 0] * np.conj(window[..., 2])).sum())
    assert viewer.page.evaluate("moraine.panes[0].zero") == pytest.approx(expected, abs=0.02)
    viewer.page.click("#series-details summary")
    cells = viewer.page.locator("#series-table tbody td").all_inner_texts()
    constants = np.angle((window[..., 0, None] * np.conj(window)).sum(axis=(0, 1)))
    expected = np.angle(np.exp(1j * (np.angle(stack[130, 128, 0] * np.conj(stack[130, 128])) - constants)))
    found = np.array([float(cell.replace("−", "-")) for cell in cells])
    assert np.abs(np.angle(np.exp(1j * (found - expected)))).max() < 0.05
    assert all(request.startswith((url, "data:")) for request in viewer.requests)


def test_coherences_of_turned_pairs_and_of_an_image_with_itself(view: Any, stack: Any) -> None:
    told = []
    for a, b in ((0, 2), (2, 0)):
        viewer = view(f"l=coh&show=coh&a={D[a]}&b={D[b]}&v=25,30,0")
        told.append(viewer.page.evaluate("moraine.panes[0].valueAt(10.5, 10.5)"))
    assert told[0] == pytest.approx(np.angle(stack[10, 10, 0] * np.conj(stack[10, 10, 2])), abs=0.02)
    assert told[1] == pytest.approx(-told[0], abs=1e-6)
    viewer = view(f"l=coh&show=coh&a={D[1]}&b={D[1]}&v=25,30,0")
    assert viewer.page.evaluate("moraine.panes[0].valueAt(10.5, 10.5)") is None


def test_points_of_an_export_are_found_and_their_values_told(view: Any, gix: Any, folder: Path) -> None:
    i, j = map(int, gix[4500])  # in the second block
    viewer = view(f"l=points&show=value&k=1&v={i},{j},1")
    viewer.click(i, j)
    viewer.page.wait_for_selector("#series-plot canvas")
    assert viewer.fragment()["p"] == f"{i},{j}"
    viewer.page.click("#series-details summary")
    cells = viewer.page.locator("#series-table tbody td").all_inner_texts()
    np.testing.assert_allclose([float(c) for c in cells], read_array(folder / "pc.zarr")[4500], atol=0.3)


def test_a_profile_is_found_in_the_tiles(view: Any, stack: Any) -> None:
    viewer = view("l=motion&show=value&k=1&line=100,10,100,200&v=149.5,139.5,0")
    viewer.page.wait_for_selector("#profile-plot canvas")
    found = viewer.page.evaluate("moraine.panel.profile.values")
    np.testing.assert_allclose(found, np.angle(stack[100, 10:201, 1]) / 1000, atol=1e-5)


def test_what_an_export_cannot_do_is_disabled_with_the_reason(view: Any) -> None:
    viewer = view("l=rslc&show=intf&v=149.5,139.5,0")
    assert viewer.page.locator("label:has-text('Looks') + select").is_disabled()
    assert "averaging" in viewer.page.locator(".row:has(label:has-text('Looks'))").get_attribute("title")
    assert viewer.page.locator("label:has-text('Width (samples)') + input").is_disabled()
    assert axe(viewer) == []


def test_zoomed_in_beyond_the_finest_exported_level_pixels_grow(browser: Any, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "coarse"
    assert run(["view", str(folder / "motion_pyramid"), "--export", str(out), "-q", "--finest", "1"]) == 0
    with files_of(out) as url:
        viewer = Viewer(browser, url, "v=100,100,2&k=1")
        assert viewer.pixels().shape[:2] != SHAPE
        viewer.click(101, 101)
        viewer.page.wait_for_selector("#series-plot canvas")
        viewer.close()
