"""What people do in the viewer's page, timed in the browser: with the network as it is, and as it is elsewhere."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from measure import Row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLOW = {"offline": False, "latency": 40, "downloadThroughput": 10e6 / 8, "uploadThroughput": 10e6 / 8}
"""10 Mbit/s and 40 ms, as the browser emulates them."""

SLOW_TEXT = "at 10 Mbit/s and 40 ms"

SETTLED = """async (pane) => {
  let end = 0, calm = 0;
  while (calm < 6) { // what a change needs may be asked for some frames later
    await new Promise(requestAnimationFrame);
    if (pane.root.getAttribute("aria-busy") === "true") end = calm = 0;
    else { end ||= performance.now(); calm += 1; }
  }
  return end;
}"""
"""Waits until a pane is drawn and stays so, and returns when that was."""


class Done(NamedTuple):
    """What an action took."""

    seconds: float
    megabytes: float
    requests: int


class Page:
    """A page of the viewer, from the first picture on.

    Parameters
    ----------
    browser
        Of Playwright.
    url
        Where the viewer is.
    slow
        Whether the network is.
    """

    def __init__(self, browser: Any, url: str, *, slow: bool = False) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 800})
        self.page = self.context.new_page()
        self.nbytes, self.n_requests = 0.0, 0
        session = self.context.new_cdp_session(self.page)
        session.send("Network.enable")
        session.on("Network.loadingFinished", self._finished)
        self.page.on("request", self._asked)
        if slow:
            session.send("Network.emulateNetworkConditions", SLOW)
        start = time.perf_counter()
        self.page.goto(url, wait_until="commit")
        self.page.wait_for_selector('.pane[aria-busy="false"]')
        self.first = Done(time.perf_counter() - start, self.nbytes / 1e6, self.n_requests)

    def _finished(self, event: Any) -> None:
        self.nbytes += event["encodedDataLength"]

    def _asked(self, request: Any) -> None:
        self.n_requests += not request.url.startswith(("data:", "blob:"))

    def do(self, script: str) -> Done:
        """Do something to the first pane, and wait until all of its tiles are there and drawn."""
        self.page.wait_for_timeout(100)  # what happened before is over
        nbytes, n_requests = self.nbytes, self.n_requests
        taken = self.page.evaluate(
            f"""async () => {{
              const pane = moraine.panes[0];
              const start = performance.now();
              await (async () => {{ {script} }})();
              return await ({SETTLED})(pane) - start;
            }}"""
        )
        self.page.wait_for_timeout(50)  # the browser tells sizes a little later
        return Done(taken / 1e3, (self.nbytes - nbytes) / 1e6, self.n_requests - n_requests)

    def close(self) -> None:
        """Close it with its cache."""
        self.context.close()


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser; None where there is none."""
    found = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        yield None
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def first_pictures(url: str, count: int, what: str, bar: float) -> Iterator[Row]:
    """Open the page until its picture is whole, each time with an empty cache."""
    with chromium() as browser:
        if browser is None:
            return
        times = []
        for _ in range(count + 1):
            page = Page(browser, url)
            times.append(page.first.seconds)
            page.close()
    yield Row(f"view: page opened to whole first picture {what}", times[1:], (), "s", bar)


def actions(url: str, count: int, side: int, n_images: int) -> Iterator[Row]:
    """Do what people do with a stack of images, here and far away."""
    with chromium() as browser:
        if browser is None:
            return
        near = [_near(browser, url, side) for _ in range(count + 1)][1:]
        far = [_far(browser, url, side) for _ in range(count)]
    yield Row("view: full-resolution view of 1280 x 800", [each["full"].seconds for each in near], (), "s")
    yield Row("view: new date", [each["date"].seconds for each in near], (), "s", 0.35)
    yield Row(
        f"view: series of {n_images} images on click, until it is drawn",
        [1e3 * each["series"].seconds for each in near],
        (),
        "ms",
    )
    for name in ("reference", "limits", "table"):
        yield Row(f"view: new {name}", [1e3 * each[name].seconds for each in near], (), "ms", 100)
        yield Row(f"view: new {name}: requests", [each[name].requests for each in near], (), "", 0)
    yield Row(f"view: first picture {SLOW_TEXT}", [each["first"].seconds for each in far], (), "s")
    yield Row(f"view: full-resolution view {SLOW_TEXT}", [each["full"].seconds for each in far], (), "s", 1.5)
    yield Row("view: the same, bytes", [each["full"].megabytes for each in far], (), "MB", 1.6)
    yield Row(f"view: new date {SLOW_TEXT}", [each["date"].seconds for each in far], (), "s", 1.8)
    yield Row(f"view: series on click {SLOW_TEXT}", [1e3 * each["series"].seconds for each in far], (), "ms")


def exported(folder: Path, count: int, side: int) -> Iterator[Row]:
    """Look at an export through a server that knows nothing but files."""
    with chromium() as browser, files(folder) as url:
        if browser is None:
            return
        far = [_far(browser, url, side) for _ in range(count)]
    yield Row(
        f"view: full-resolution view of an export {SLOW_TEXT}", [each["full"].seconds for each in far], (), "s", 2.8
    )
    yield Row("view: the same, bytes", [each["full"].megabytes for each in far], (), "MB", 3.3)
    yield Row(f"view: new date of an export {SLOW_TEXT}", [each["date"].seconds for each in far], (), "s")
    yield Row(
        f"view: series on click in an export {SLOW_TEXT}", [1e3 * each["series"].seconds for each in far], (), "ms"
    )


def _full(side: int) -> str:
    return f"pane.goTo([{side / 2}, {side / 2}], 0)"


DATE = "moraine.change(() => (moraine.state.panes[0].b = 3))"


def _click(side: int) -> str:
    return f"await moraine.pickAt(pane, [{side / 2 + 30.5}, {side / 2 + 10.5}])"


def _near(browser: Any, url: str, side: int) -> dict[str, Done]:
    page = Page(browser, url)
    found = {
        "full": page.do(_full(side)),
        "date": page.do(DATE),
        "series": page.do(_click(side)),
        "reference": page.do("moraine.referenceAtPick()"),
        "limits": page.do("moraine.change(() => (moraine.state.panes[0].lim = [-1, 1]))"),
        "table": page.do("moraine.change(() => (moraine.state.panes[0].cm = 'gray'))"),
    }
    page.close()
    return found


def _far(browser: Any, url: str, side: int) -> dict[str, Done]:
    page = Page(browser, url, slow=True)
    found = {"first": page.first, "full": page.do(_full(side)), "date": page.do(DATE), "series": page.do(_click(side))}
    page.close()
    return found


@contextmanager
def files(folder: Path) -> Iterator[str]:
    """Serve files, with connections that stay, as common servers have them."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()
