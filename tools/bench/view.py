"""The viewer against plain reads of the same chunks, and beside another: tiles, series, pictures, exports, memory."""

from __future__ import annotations

import http.client
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import view_other
import view_page
from measure import Row, in_turn, seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    import zarr

MORAINE = str(Path(sys.executable).with_name("moraine"))

SIDE, IMAGES = 3000, 8

EXPORTED = 30
"""Images of the stack that is exported."""

TILE = 256
ROWS, COLS = 4, 6
"""Tiles that a screen of 1280 x 800 pixels holds, with those that are cut."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--view-tiles", type=int, default=200, help="tiles that are timed (count)")
    parser.add_argument("--view-starts", type=int, default=5, help="starts that are timed (count)")
    parser.add_argument("--view-points", type=int, default=10_000_000, help="points of the cloud (points)")
    parser.add_argument(
        "--view-export", type=int, default=2000, help="side of the stack of 30 images that is exported (pixels)"
    )
    parser.add_argument("--view-peer", help="Python of an environment with bowser-insar; without it there is no peer")


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure."""
    place = Path(__file__).parents[3]
    for measure in (_stack, _export, _large, _cloud, _peer):
        with tempfile.TemporaryDirectory(prefix="moraine-bench-", dir=place) as name:
            yield from measure(chosen, Path(name))


class Client:
    """One connection to a viewer.

    Parameters
    ----------
    url
        With the token.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.connection = http.client.HTTPConnection(str(parts.hostname), int(parts.port or 0), timeout=60)
        self.connection.request("GET", f"/?{parts.query}")
        response = self.connection.getresponse()
        response.read()
        self.cookie = str(response.headers["Set-Cookie"]).partition(";")[0]

    def get(self, target: str) -> bytes:
        """Fetch."""
        self.connection.request("GET", target, headers={"Cookie": self.cookie})
        response = self.connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"{target}: {response.status} {body!r}")
        return body


@contextmanager
def viewer(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str], float]]:
    """Start the command; give address, process and the seconds it took to listen."""
    line = [MORAINE, "view", str(folder), "--no-browser"]
    start = time.perf_counter()
    with subprocess.Popen(line, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        found = re.search(r"http://\S+", process.stderr.readline() if process.stderr else "")
        if found is None:
            raise RuntimeError("the viewer printed no address")
        try:
            yield found[0], process, time.perf_counter() - start
        finally:
            process.terminate()


def memory_mib(process: subprocess.Popen[str]) -> float:
    """Return the resident memory of a process."""
    import psutil

    return float(psutil.Process(process.pid).memory_info().rss / 2**20)


def _write(folder: Path, side: int, images: int) -> None:
    """Write a pyramid of an SLC stack with fringes."""
    import numpy as np
    import zarr

    rng = np.random.default_rng(0)
    level = 0
    part = rng.normal(size=(side, side)).astype(np.float32) + 1j * rng.normal(size=(side, side)).astype(np.float32)
    part = part.astype(np.complex64)
    ramp = np.exp(1j * np.arange(side) / 40).astype(np.complex64)
    while min(part.shape) >= 1:
        array = zarr.create_array(
            str(folder / f"slc_pyramid/{level}.zarr"), shape=(*part.shape, images), chunks=(TILE, TILE, 1), dtype="c8"
        )
        for image in range(images):
            noise = np.exp(1j * rng.normal(0, 0.5, part.shape)).astype(np.complex64)
            array[..., image] = part * noise * ramp[:: 2**level] ** image
        if level == 0:
            stats = {"amplitude_p01": 0.1, "amplitude_p99": 3.0}
            array.attrs["moraine_pyramid"] = {"version": 1, "kind": "raster", "method": "decimate", "stats": stats}
        if min(part.shape) == 1:
            return
        part, level = part[::2, ::2], level + 1


def _stack(chosen: argparse.Namespace, folder: Path) -> Iterator[Row]:
    import zarr

    _write(folder, SIDE, IMAGES)
    size = f"{SIDE} x {SIDE} x {IMAGES} complex64"
    starts = []
    for _ in range(chosen.view_starts):
        with viewer(folder) as (_, _, taken):
            starts.append(taken)
    yield Row("view: command to listening", starts, (), "s", 0.9)
    array = zarr.open_array(folder / "slc_pyramid" / "0.zarr", mode="r")
    with viewer(folder) as (url, process, _):
        client = Client(url)
        wanted = _addresses(chosen.view_tiles)
        ours, peer = _in_pairs(client, array, wanted)
        yield Row(f"view: cold tile of an interferogram of {size} against reading its two chunks", ours, peer, "ms", 3)
        yield Row("view: the same, 95th percentile", [_p95(ours)], [_p95(peer)], "ms", 3)
        yield Row("view: the same, 95th percentile alone", [_p95(ours)], (), "ms", 15)
        yield from _together(url, chosen.view_tiles)
        screen = [f"/z/0/intf/0/c/{row}/{col}/1" for row in range(ROWS) for col in range(COLS)]
        yield Row("view: a screen at full resolution", [sum(len(client.get(a)) for a in screen) / 1e6], (), "MB", 1.6)
        places = [(random.randrange(SIDE), random.randrange(SIDE)) for _ in range(30)]
        at = iter(places * 3)
        of_ours, of_peer = in_turn(
            lambda: 1e3 * seconds(lambda: client.get("/series?layer=0&x={}&y={}&r=2&a=0".format(*next(at)))),
            lambda: 1e3 * seconds(lambda: _read_series(array, *next(at))),
            20,
        )
        yield Row(f"view: series of {IMAGES} images against reading its window", of_ours, of_peer, "ms", 2)
        bar = 10 + 1.5 * IMAGES
        yield Row("view: the same alone", of_ours, (), "ms", bar)
        yield Row("view: memory of the server after that", [memory_mib(process)], (), "MiB", 250)
        yield from view_page.first_pictures(url, chosen.view_starts, "of that stack", 0.5)
        yield from view_page.actions(url, chosen.view_starts, SIDE, IMAGES)


def _addresses(count: int) -> list[tuple[int, int, int, int]]:
    """Choose tiles and pairs, none twice and no chunk again soon."""
    n = SIDE // TILE
    every = [(row, col, a, a + 1) for row in range(n) for col in range(n) for a in range(0, IMAGES - 1, 2)]
    random.Random(1).shuffle(every)
    return every[:count]


def _in_pairs(
    client: Client, array: zarr.Array[Any], wanted: Sequence[tuple[int, int, int, int]]
) -> tuple[list[float], list[float]]:
    ours, peer = [], []
    for row, col, a, b in wanted:
        part = (slice(row * TILE, (row + 1) * TILE), slice(col * TILE, (col + 1) * TILE))
        target = f"/z/0/intf/0/c/{row}/{col}/{a * IMAGES + b}"
        ours.append(1e3 * seconds(lambda target=target: client.get(target)))
        peer.append(1e3 * seconds(lambda part=part, a=a, b=b: (array[(*part, a)], array[(*part, b)])))
    return ours, peer


def _p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20)[-1]


def _together(url: str, count: int) -> Iterator[Row]:
    """Six connections at a time, as browsers have them; pairs that were not asked for before."""
    n = SIDE // TILE
    every = [f"/z/0/intf/0/c/{r}/{c}/{a * IMAGES + b}" for r in range(n) for c in range(n) for a, b in ((1, 4), (3, 6))]
    random.Random(2).shuffle(every)
    clients = [Client(url) for _ in range(6)]
    times: list[float] = []

    def work(number: int) -> None:
        mine = every[:count][number::6]
        times.extend(1e3 * seconds(lambda target=target: clients[number].get(target)) for target in mine)

    start = time.perf_counter()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    taken = time.perf_counter() - start
    yield Row("view: six connections, 95th percentile of a tile", [_p95(times)], (), "ms", 60)
    yield Row("view: six connections, time per tile", [1e3 * taken / len(times)], (), "ms", 1000 / 150)


def _read_series(array: zarr.Array[Any], x: int, y: int) -> Any:
    return array[max(y - 2, 0) : y + 3, max(x - 2, 0) : x + 3, :]


def _export(chosen: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Export a stack, and look at it through a server of files."""
    side, images, out = chosen.view_export, EXPORTED, folder / "site"
    _write(folder, side, images)
    line = [MORAINE, "view", str(folder), "--export", str(out), "--max-size", "4GB", "-q"]
    taken = seconds(lambda: subprocess.run(line, check=True, stdout=subprocess.DEVNULL))
    size = f"{side} x {side} x {images} complex64"
    share = side * side * images / (4000 * 4000 * 30)
    yield Row(f"view: export of {size}", [taken], (), "s", 60 * share)
    stack, site = _gigabytes(folder / "slc_pyramid"), _gigabytes(out)
    yield Row("view: its size against that of the pyramid", [site], [stack], "GB", 0.25)
    yield from view_page.exported(out, chosen.view_starts, side)


def _gigabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e9


def _peer(chosen: argparse.Namespace, folder: Path) -> Iterator[Row]:
    if chosen.view_peer:
        yield from view_other.rows(
            viewer, Client, chosen.view_peer, folder, n_tiles=chosen.view_tiles, count=chosen.view_starts
        )


def _large(chosen: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Look at a stack of which only the level drawn has data: no other may be read."""
    import numpy as np
    import zarr

    from moraine_view.levels import level_shapes

    side, images = 30_000, 100
    for level, shape in enumerate(level_shapes(side, side)):
        array = zarr.create_array(
            str(folder / f"p_pyramid/{level}.zarr"), shape=(*shape, images), chunks=(TILE, TILE, 1), dtype="c8"
        )
        if level == 0:
            stats = {"amplitude_p01": 0.1, "amplitude_p99": 3.0}
            array.attrs["moraine_pyramid"] = {"version": 1, "kind": "raster", "method": "decimate", "stats": stats}
        if 300 < shape[0] <= 1000:
            values = np.exp(1j * np.random.default_rng(2).uniform(-3, 3, shape)).astype(np.complex64)
            array[:, :, 0], array[:, :, 1] = values, np.conj(values)
    with viewer(folder) as (url, process, _):
        yield from view_page.first_pictures(url, chosen.view_starts, f"of {side} x {side} x {images} complex64", 1.0)
        client = Client(url)
        layer = json.loads(client.get("/meta.json"))["layers"][0]
        level = next(k for k, found in enumerate(layer["levels"]) if found["shape"][0] <= 1000)
        client.get(f"/z/0/intf/{level}/c/0/0/1")
        yield Row("view: memory of that server", [memory_mib(process)], (), "MiB", 300)


def _cloud(chosen: argparse.Namespace, folder: Path) -> Iterator[Row]:
    import numpy as np

    from moraine_core.testing.data import write_array
    from moraine_points.kernels import pc_gix
    from moraine_view.pc_pyramid import pc_pyramid

    n, shape = chosen.view_points, (8192, 8192)
    rng = np.random.default_rng(1)
    y, x = pc_gix(np.sort(rng.permutation(shape[0] * shape[1])[:n]), shape).T
    data = {"pc": rng.normal(size=n).astype(np.float32), "x": 1.5e6 + 10.0 * x, "y": 5e6 + 10.0 * y}
    paths = {name: write_array(folder / f"{name}.zarr", values, (100_000,)) for name, values in data.items()}
    pc_pyramid(**paths, out_dir=str(folder / "p_pyramid"))
    with viewer(folder / "p_pyramid") as (url, process, _):
        yield from view_page.first_pictures(url, chosen.view_starts, f"of {n / 1e6:g} million points", 1.0)
        client = Client(url)
        layer = json.loads(client.get("/meta.json"))["layers"][0]
        level = next(k for k, found in enumerate(layer["levels"]) if found["pixel"] > 2) - 1
        rows_, cols = (side // TILE for side in layer["levels"][level]["shape"])
        client.get(f"/z/0/value/{level}/c/0/0/0")  # the search tree is loaded once
        chooser = random.Random(3)
        times = []
        for _ in range(chosen.view_tiles):
            target = f"/z/0/value/{level}/c/{chooser.randrange(rows_)}/{chooser.randrange(cols)}/0"
            times.append(1e3 * seconds(lambda target=target: client.get(target)))
        yield Row(f"view: deep tile of {n / 1e6:g} million points, 95th percentile", [_p95(times)], (), "ms", 30)
        yield Row("view: memory of that server", [memory_mib(process)], (), "MiB", 400)
