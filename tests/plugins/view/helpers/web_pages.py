"""Pyramids written by hand, a server for them, and a browser that looks."""

from __future__ import annotations

import base64
import functools
import http.server
import shutil
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr

from moraine_view.web.answer import Site
from moraine_view.web.layers import find_layers
from moraine_view.web.reader import Reader
from moraine_view.web.serve import start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

AXE = Path(__file__).parents[1] / "vendor" / "axe.min.js"
"""Rules of accessibility."""

NO_BROWSER = "no browser: "
"""What begins the reason of a test that is skipped for want of one."""


def raster_pyramid(path: Path, data: NDArray[Any], unit: str = "", **stats: float) -> Path:
    """Write a pyramid of first pixels, with tiles of 256."""
    n_levels = min(data.shape[:2]).bit_length()
    for level in range(n_levels):
        part = data[:: 2**level, :: 2**level]
        chunks = (256, 256, *(1,) * (data.ndim - 2))
        array = zarr.create_array(
            str(path / f"{level}.zarr"), shape=part.shape, dtype=part.dtype, chunks=chunks, config=WHOLE
        )
        array[...] = part
        if unit and not level:
            array.attrs["unit"] = unit
    marker = {"version": 1, "kind": "raster", "method": "decimate", "stats": stats or statistics(data)}
    zarr.open_array(path / "0.zarr", mode="r+").attrs["moraine_pyramid"] = marker
    return path


WHOLE = {"write_empty_chunks": True}


def statistics(data: NDArray[Any]) -> dict[str, float]:
    """Measure what a marker holds."""
    values = np.abs(data) if data.dtype.kind == "c" else data.astype(float)
    values = values[np.isfinite(values)]
    prefix = "amplitude_" if data.dtype.kind == "c" else ""
    found = {
        "min": values.min(),
        "max": values.max(),
        "p01": np.quantile(values, 0.01),
        "p99": np.quantile(values, 0.99),
    }
    return {prefix + name: float(value) for name, value in found.items()}


def slc_stack(shape: tuple[int, int], n: int, seed: int = 1) -> NDArray[np.complex64]:
    """Make images with fringes that grow over time, noise, and a hole in all of them."""
    rng = np.random.default_rng(seed)
    i, j = np.mgrid[: shape[0], : shape[1]]
    phase = (0.05 * i + 0.02 * j)[..., None] * np.arange(n)
    noise = rng.normal(0, 0.3, (*shape, n))
    amplitude = rng.rayleigh(1, shape)[..., None] + 0.01
    stack = (amplitude * np.exp(1j * (noise - phase))).astype(np.complex64)
    stack[20:60, 30:80] = np.nan
    return stack


def dates(n: int) -> list[str]:
    """Give dates twelve days apart, the first on 2023-01-06."""
    start_ = np.datetime64("2023-01-06")
    return [str(start_ + 12 * k).replace("-", "") for k in range(n)]


def write_dates(folder: Path, n: int) -> None:
    """Write a meta.toml."""
    (folder / "meta.toml").write_text(f"dates = {dates(n)}\nradar_wavelength = 0.0554657\n".replace("'", '"'))


def site_of(*paths: Path, **options: Any) -> Site:
    """Return the site of pyramids."""
    return Site(find_layers(list(paths), Reader(), **options))


@contextmanager
def serving(site: Site) -> Iterator[str]:
    """Serve a site; give the address with the token."""
    server = start(site)
    thread = Thread(target=lambda: server.serve_forever(poll_interval=0.05), daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the browser of this machine; skip where there is none."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip("the Python package playwright is not installed")
    if found is None:
        skip(f"there is no {' or '.join(BROWSERS)}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def skip(why: str) -> None:
    """Skip for want of a browser; the end of the run says so."""
    pytest.skip(NO_BROWSER + why)


class Viewer:
    """A page of the viewer, and what it has asked for.

    Parameters
    ----------
    browser
        From `chromium`.
    url
        Where the viewer is, with the token.
    fragment
        What it is to show.
    options
        Of the browser's context.
    """

    def __init__(self, browser: Any, url: str, fragment: str = "", **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        self.context.set_default_timeout(30_000)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self._heard(message))
        self.page.goto(f"{url}#{fragment}" if fragment else url)
        self.wait()

    def _heard(self, message: Any) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def wait(self) -> None:
        """Wait until all panes show all their tiles."""
        busy = "[...document.querySelectorAll('.pane')].map((pane) => pane.getAttribute('aria-busy'))"
        for _ in range(1200):
            states = self.page.evaluate(busy)
            if states and set(states) == {"false"}:
                return
            assert self.errors == []
            self.page.wait_for_timeout(25)
        raise AssertionError(f"the picture is not ready: {states}")

    def until(self, script: str) -> Any:
        """Wait until an expression is true: the page forbids what Playwright would do for that."""
        for _ in range(600):
            if found := self.page.evaluate(script):
                return found
            self.page.wait_for_timeout(25)
        raise AssertionError(f"never true: {script}")

    def text(self, selector: str) -> str:
        """Give the text of an element."""
        return str(self.page.inner_text(selector))

    def pixels(self, pane: int = 0) -> NDArray[np.uint8]:
        """Put the tiles of the level that is shown together, as they are on their canvases."""
        found = self.page.evaluate(
            """(number) => {
              const pane = moraine.panes[number];
              const zoom = pane.grid._tileZoom;
              const code = (bytes) => {
                let text = "";
                for (let k = 0; k < bytes.length; k += 32768) {
                  text += String.fromCharCode(...bytes.subarray(k, k + 32768));
                }
                return btoa(text);
              };
              return [...pane.tiles.values()].filter((tile) => tile.coords.z === zoom).map(({ row, col, canvas }) => {
                const { width, height } = canvas;
                const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
                return { row, col, width, height, data: code(data) };
              });
            }""",
            pane,
        )
        rows = max(t["row"] * 256 + t["height"] for t in found)
        cols = max(t["col"] * 256 + t["width"] for t in found)
        out = np.zeros((rows, cols, 4), np.uint8)
        for t in found:
            data = np.frombuffer(base64.b64decode(t["data"]), np.uint8).reshape(t["height"], t["width"], 4)
            out[t["row"] * 256 : t["row"] * 256 + t["height"], t["col"] * 256 : t["col"] * 256 + t["width"]] = data
        return out

    def click(self, azimuth: int, range_: int, pane: int = 0, modifiers: Sequence[str] = ()) -> None:
        """Click on a pixel of a radar grid."""
        x, y = self.page.evaluate(
            """([number, i, j]) => {
              const { map, toMap, mapElement } = moraine.panes[number];
              const corner = map.latLngToContainerPoint(toMap(j, i));
              const { left, top } = mapElement.getBoundingClientRect();
              // a mouse is at whole pixels of the screen
              return [Math.ceil(left + corner.x - 1e-6), Math.ceil(top + corner.y - 1e-6)];
            }""",
            [pane, azimuth, range_],
        )
        for key in modifiers:
            self.page.keyboard.down(key)
        self.page.mouse.click(x, y)
        for key in modifiers:
            self.page.keyboard.up(key)

    def fragment(self) -> dict[str, str]:
        """Give the fields of the address."""
        text = self.page.evaluate("location.hash").lstrip("#")
        return dict(field.split("=", 1) for field in text.split("&") if field)

    def close(self) -> None:
        """End, and fail if the page had errors."""
        self.context.close()
        assert self.errors == []


def axe(viewer: Viewer) -> list[str]:
    """Return the serious findings of accessibility on a page."""
    viewer.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = viewer.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']}: {[node['html'][:150] for node in rule['nodes']]}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]


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
