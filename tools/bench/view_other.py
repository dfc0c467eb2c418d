"""The viewer beside bowser-insar, on the same values, in turn: start, first view, tiles, memory.

bowser shows maps: it reprojects values from UTM to Mercator and sends pictures. moraine cuts tiles on the radar grid
and sends numbers. The size of the job is alike, the job is not the same.
"""

from __future__ import annotations

import http.client
import json
import math
import random
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from measure import Row, seconds
from view_page import Page, chromium

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SIDE, IMAGES = 2000, 8

QUIET = 1.5
"""Seconds without a further tile, after which a view of bowser counts as whole."""

WHAT = f"of {SIDE} x {SIDE} x {IMAGES} float32"


def rows(viewer: Any, client: Any, python: str, folder: Path, *, n_tiles: int, count: int) -> Iterator[Row]:
    """Measure both.

    Parameters
    ----------
    viewer, client
        Of `view`.
    python
        Of the environment of bowser.
    folder
        For the data.
    n_tiles, count
        Tiles, and starts and first views.
    """
    import numpy as np

    from moraine_core.testing.data import write_array
    from moraine_view.ras_pyramid import ras_pyramid

    rng = np.random.default_rng(0)
    values = rng.normal(0, 0.002, (SIDE, SIDE, IMAGES)) + 0.01 * np.sin(np.arange(SIDE)[:, None, None] / 80)
    values = values.astype(np.float32)
    np.save(folder / "values.npy", values)
    own = write_array(folder / "values.zarr", values, (256, 256, 1))
    ras_pyramid(ras=own, out_dir=str(folder / "values_pyramid"))
    store = folder / "peer.zarr"
    line = [python, str(Path(__file__).with_name("view_peer.py")), str(folder / "values.npy"), str(store)]
    subprocess.run(line, check=True, capture_output=True)
    starts: tuple[list[float], list[float]] = ([], [])
    for _ in range(count):
        with viewer(folder / "values_pyramid") as (_, _, taken):
            starts[0].append(taken)
        with bowser(python, store) as (_, _, taken):
            starts[1].append(taken)
    yield Row(f"view: command to listening, {WHAT}, against bowser-insar", *starts, "s")
    with viewer(folder / "values_pyramid") as (url, process, _), bowser(python, store) as (peer, other, _):
        yield from _first_views(url, peer, count)
        mine = _tiles(rng)
        maps = list(_map_tiles(peer))
        random.Random(1).shuffle(maps)
        both = _latencies([client(url).get], [Peer(peer).get], mine[:n_tiles], maps[:n_tiles])
        yield Row("view: random cold tile, one connection, against bowser-insar", *both, "ms")
        yield Row("view: the same, 95th percentile", *([_p95(each)] for each in both), "ms")
        six = [client(url).get for _ in range(6)], [Peer(peer).get for _ in range(6)]
        both, taken = _six(six, mine[n_tiles : 2 * n_tiles], maps[n_tiles : 2 * n_tiles])
        yield Row(
            "view: six connections, 95th percentile, against bowser-insar", *([_p95(each)] for each in both), "ms"
        )
        yield Row("view: six connections, time per tile, against bowser-insar", *taken, "ms")
        yield Row("view: memory after that, against bowser-insar", [_memory(process.pid)], [_memory(other.pid)], "MiB")


class Peer:
    """One connection to bowser.

    Parameters
    ----------
    url
        Where it is.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.connection = http.client.HTTPConnection(str(parts.hostname), int(parts.port or 0), timeout=120)

    def get(self, target: str) -> bytes:
        """Fetch."""
        self.connection.request("GET", target)
        response = self.connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"{target}: {response.status} {body[:200]!r}")
        return body


@contextmanager
def bowser(python: str, store: Path) -> Iterator[tuple[str, subprocess.Popen[bytes], float]]:
    """Start bowser; give address, process and the seconds until it takes connections."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line = [str(Path(python).with_name("bowser")), "run", "-s", str(store), "-p", str(port)]
    start = time.perf_counter()
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=5).close()
                    break
                except OSError:
                    if process.poll() is not None or time.perf_counter() - start > 120:
                        raise RuntimeError("bowser does not start") from None
                    time.sleep(0.02)
            yield f"http://127.0.0.1:{port}", process, time.perf_counter() - start
        finally:
            process.terminate()


def _first_views(url: str, peer: str, count: int) -> Iterator[Row]:
    with chromium() as browser:
        if browser is None:
            return
        ours, theirs = [], []
        for _ in range(count + 1):
            page = Page(browser, url)
            ours.append(page.first.seconds)
            page.close()
            theirs.append(_first_view(browser, peer))
    yield Row(
        "view: page opened to whole first view, against bowser-insar cut off from other hosts",
        ours[1:],
        theirs[1:],
        "s",
    )


def _first_view(browser: Any, url: str) -> float:
    """Open bowser's page, with all other hosts refused at once, until no further tile comes."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.route(lambda asked: not asked.startswith(url), lambda route: route.abort())
    came: list[float] = []
    page.on("requestfinished", lambda request: came.append(time.perf_counter()) if "/tiles/" in request.url else None)
    start = time.perf_counter()
    page.goto(url, wait_until="commit")
    while time.perf_counter() - start < 60 and not (came and time.perf_counter() - came[-1] > QUIET):
        page.wait_for_timeout(50)
    context.close()
    if not came:
        raise RuntimeError("bowser shows no tile")
    return came[-1] - start


def _tiles(rng: Any) -> list[str]:
    n = SIDE // 256
    every = [f"/z/0/value/0/c/{row}/{col}/{k}" for row in range(n) for col in range(n) for k in range(IMAGES)]
    rng.shuffle(every)
    return every


def _map_tiles(url: str) -> Iterator[str]:
    """Name the tiles of bowser that have pixels of the size of the data, and are inside them."""
    said = json.loads(Peer(url).get("/datasets"))["displacement"]["latlon_bounds"]
    zoom = 12  # 31 m at this latitude, against 30 m
    n = 2**zoom
    left, right = ((lon + 180) / 360 * n for lon in (said[0], said[2]))
    top, bottom = ((1 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2 * n for lat in (said[3], said[1]))
    for x in range(math.ceil(left), math.floor(right)):
        for y in range(math.ceil(top), math.floor(bottom)):
            for k in range(IMAGES):
                yield (
                    f"/md/tiles/WebMercatorQuad/{zoom}/{x}/{y}.png?variable=displacement&time_idx={k}"
                    "&rescale=-0.02,0.02&colormap_name=viridis"
                )


def _latencies(
    ours: Sequence[Callable[[str], bytes]],
    theirs: Sequence[Callable[[str], bytes]],
    mine: Sequence[str],
    maps: Sequence[str],
) -> tuple[list[float], list[float]]:
    """Ask both in turn."""
    theirs[0](maps[-1])  # loads its libraries
    times: tuple[list[float], list[float]] = ([], [])
    for one, two in zip(mine, maps, strict=False):
        times[0].append(1e3 * seconds(lambda one=one: ours[0](one)))
        times[1].append(1e3 * seconds(lambda two=two: theirs[0](two)))
    return times


def _six(
    getters: tuple[Sequence[Callable[[str], bytes]], Sequence[Callable[[str], bytes]]],
    mine: Sequence[str],
    maps: Sequence[str],
) -> tuple[tuple[list[float], list[float]], tuple[list[float], list[float]]]:
    """Ask over six connections, the one and then the other: latencies, and milliseconds per tile."""
    times: tuple[list[float], list[float]] = ([], [])
    taken: tuple[list[float], list[float]] = ([], [])
    for which, targets in enumerate((mine, maps)):

        def work(number: int, which: int = which, targets: Sequence[str] = targets) -> None:
            get = getters[which][number]
            times[which].extend(1e3 * seconds(lambda target=target: get(target)) for target in targets[number::6])

        start = time.perf_counter()
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(6)))
        taken[which].append(1e3 * (time.perf_counter() - start) / len(targets))
    return times, taken


def _p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20)[-1]


def _memory(pid: int) -> float:
    import psutil

    process = psutil.Process(pid)
    return sum(each.memory_info().rss for each in (process, *process.children(recursive=True))) / 2**20
