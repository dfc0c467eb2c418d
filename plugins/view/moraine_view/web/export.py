"""The viewer as a folder of files that any file server can show: the same page and tiles, and series in blocks."""

from __future__ import annotations

import json
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Condition
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core import store
from moraine_core.errors import MoraineError
from moraine_view.web.answer import page_files
from moraine_view.web.layers import TILE
from moraine_view.web.meta import meta
from moraine_view.web.reader import IncompleteError
from moraine_view.web.selection import choose, plan
from moraine_view.web.sizes import as_text, require_size
from moraine_view.web.tiles import GZIP_LEVEL, array_metadata, gzipped, tile_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from moraine_view.web.layers import Layer
    from moraine_view.web.selection import Written

log = logging.getLogger("moraine")

BLOCK = 64
"""Side of a block of series, in pixels."""

POINTS = 4096
"""Points of a block of series."""


def export(
    layers: Sequence[Layer],
    out: Path,
    *,
    levels: str = "0..",
    dates: str | None = None,
    most_bytes: int = 2 << 30,
    show: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write all that is needed to look at layers without this program.

    Parameters
    ----------
    layers
        What to write.
    out
        The folder; it appears when it is whole, and an export that was there stays until then.
    levels
        Of rasters, such as ``"1.."``; 0 is full resolution.
    dates
        Of stacks, such as ``"20200106,20200118..20200330"``; None for all.
    most_bytes
        Largest size.
    show
        What of a stack is shown first.
    overwrite
        Replace an export that is there.

    Returns
    -------
    Path
        `out`.

    Raises
    ------
    ValueError
        `out` exists, there are no such levels or dates, or it would be too large; then the message names what would
        fit.
    MoraineError
        It cannot be written, or another process is writing it.
    """
    stamps = [layer.stamp() for layer in layers]
    place = Path(os.path.realpath(out))  # a link stays, and what it leads to is replaced
    _require_place(out, place, overwrite=overwrite)
    choice = choose(layers, levels, dates)
    planned = plan(layers, choice)
    expected = require_size(layers, choice, most_bytes)
    with _staged(out, place) as staging:
        _require_place(out, place, overwrite=overwrite)
        if (free := store.free_bytes(staging.folder)) < expected:
            msg = f"the export would take about {as_text(expected)}, and {as_text(free)} are free there"
            raise ValueError(msg)
        threads = min(8, 2 * (os.cpu_count() or 1))
        with ThreadPoolExecutor(threads) as pool, Folder(staging.data, most_bytes) as folder:
            _write_page(layers, folder, planned, show)
            jobs = [job for written in planned for job in _jobs(written)]
            for number, _ in enumerate(pool.map(lambda job: job(folder), jobs), 1):
                tenths = 10 * number // len(jobs)
                if tenths > 10 * (number - 1) // len(jobs):
                    log.info("%d %% of %d parts written", 10 * tenths, len(jobs))
        if changed := [layer.name for layer, stamp in zip(layers, stamps, strict=True) if layer.stamp() != stamp]:
            msg = f"{', '.join(changed)}: made again while it was exported; nothing is changed, export it again"
            raise IncompleteError(msg)
        staging.publish()
    return out


class Folder:
    """Where files are put, up to a size, while its block runs.

    A Ctrl-C while a pool of threads starts leaves one that nobody waits for; after the block it can write no more.

    Parameters
    ----------
    root
        The folder.
    most_bytes
        Of all files together.
    """

    def __init__(self, root: Path, most_bytes: int) -> None:
        self.root = root
        self.most_bytes = most_bytes
        self.nbytes = 0
        self._n_writing = 0
        self._is_open = True
        self._change = Condition()

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        with self._change:
            self._is_open = False
            self._change.wait_for(lambda: not self._n_writing)

    def put(self, name: str, data: bytes) -> None:
        """Write a file, given its path in the folder.

        Raises
        ------
        ValueError
            The files become too large.
        """
        with self._change:
            self.nbytes += len(data)
            if self.nbytes > self.most_bytes:
                size = as_text(self.most_bytes)
                msg = f"the export takes more than --max-size {size}, against what a few tiles promised"
                raise ValueError(msg)
            if not self._is_open:
                msg = f"{self.root}: the export has ended"
                raise ValueError(msg)
            self._n_writing += 1
        try:
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        finally:
            with self._change:
                self._n_writing -= 1
                self._change.notify_all()


@contextmanager
def _staged(out: Path, place: Path) -> Iterator[store.Staging]:
    """Hold the hidden place of an export, which goes with the block, however it ends."""
    staging = store.Staging(place)
    try:
        with ExitStack() as stack:
            stack.callback(_remove_if_empty, staging.folder)
            stack.enter_context(store.exclusive(staging.folder / store.LOCK, f"view: {out}"))
            stack.callback(staging.close)
            staging.prepare()
            staging.clear()
            yield staging
    except OSError as error:
        if isinstance(error, MoraineError) and error.errno is None:
            raise
        reason = (os.strerror(error.errno) if error.errno else str(error)).lower()
        msg = f"view: {out} cannot be written: {reason}; nothing is changed"
        raise MoraineError(msg) from error


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _require_place(out: Path, place: Path, *, overwrite: bool) -> None:
    """Check that there is nothing, or an export that may be replaced."""
    if place.exists() and not (overwrite and _is_export(place)):
        what = "exists; --overwrite replaces it" if _is_export(place) else "exists and is no export of moraine view"
        msg = f"{out} {what}"
        raise ValueError(msg)


def _is_export(place: Path) -> bool:
    with suppress(OSError, ValueError, AttributeError):
        return bool(json.loads((place / "meta.json").read_text(encoding="utf-8")).get("static"))
    return False


def _codes(written: Written, level: int, row: int, col: int, item: int) -> NDArray[Any]:
    return np.ascontiguousarray(tile_codes(written.layer, written.product, level, row, col, item))


def _folder(written: Written) -> str:
    return f"z/{written.layer.number}/{written.product.name}"


def _write_page(layers: Sequence[Layer], folder: Folder, planned: Sequence[Written], show: str | None) -> None:
    for name, data in page_files(layers).items():
        folder.put(name if name == "index.html" else f"s/{name}", data)
    described = meta(layers, show=show, is_static=True)
    for layer, said in zip(layers, described["layers"], strict=True):
        if "error" in said:
            raise IncompleteError(said["error"])
        said.update(_said(said, [written for written in planned if written.layer is layer]))
    folder.put("meta.json", json.dumps(described, allow_nan=False).encode())
    for written in planned:
        product = written.product._replace(n_items=written.n_numbers)
        for level in written.levels:
            grid = written.layer.levels()[level]
            folder.put(f"{_folder(written)}/{level}/zarr.json", array_metadata(product, grid))
        folder.put(f"{_folder(written)}/series/zarr.json", _series_metadata(written))
    for layer in layers:
        if not layer.is_direct:
            _write_places(layer, folder)


def _said(said: dict[str, Any], mine: Sequence[Written]) -> dict[str, Any]:
    """Say of a layer only what is written of it."""
    first = mine[0]
    images, places = first.images, first.places
    return {
        "products": {written.product.name: said["products"][written.product.name] for written in mine},
        "levels": said["levels"][: first.levels[-1] + 1],
        "finest": first.levels[0],
        "block": BLOCK if first.layer.is_direct else POINTS,
        "images": [said["images"][k] for k in images],
        "dates": [said["dates"][k] for k in images] if said["dates"] else [],
        "items": [said["items"][k] for k in places],
        "pairs": [[images.index(k) for k in said["pairs"][place]] for place in places] if said["pairs"] else [],
        "item_percentiles": [said["item_percentiles"][k] for k in places] if said["item_percentiles"] else [],
    }


def _series_metadata(written: Written) -> bytes:
    layer, product = written.layer, written.product
    if layer.is_direct:
        shape, chunk = list(layer.levels()[written.levels[0]].shape), [BLOCK, BLOCK]
    else:
        shape, chunk = [layer.source().shape[0]], [POINTS]
    said = json.loads(array_metadata(product, layer.levels()[0]))
    said["shape"] = [*shape, len(written.places)]
    said["chunk_grid"]["configuration"]["chunk_shape"] = [*chunk, len(written.places)]
    return json.dumps(said).encode()


def _write_places(layer: Layer, folder: Folder) -> None:
    """Write where points are, in the plane, and the boxes of their blocks."""
    from moraine_view.pyramid import HALF_WORLD

    source = layer.source()
    x, y = (source.read(axis, (slice(None),)).astype(np.float64) for axis in "xy")
    x, y = (x + 0.5, y + 0.5) if source.crs == "grid" else (x + HALF_WORLD, HALF_WORLD - y)
    boxes = []
    for axis, values in (("x", x), ("y", y)):
        said = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [len(values)],
            "data_type": "float64",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [POINTS]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": "NaN",
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "gzip", "configuration": {"level": GZIP_LEVEL}},
            ],
        }
        place = f"z/{layer.number}/{axis}"
        folder.put(f"{place}/zarr.json", json.dumps(said).encode())
        for number in range(-(-len(values) // POINTS)):
            block = np.full(POINTS, np.nan)
            some = values[number * POINTS : (number + 1) * POINTS]
            block[: len(some)] = some
            folder.put(f"{place}/c/{number}", gzipped(block.astype("<f8").tobytes()))
            boxes.append((float(some.min()), float(some.max())))
    half = len(boxes) // 2
    both = [[*one, *two] for one, two in zip(boxes[:half], boxes[half:], strict=True)]
    folder.put(f"z/{layer.number}/boxes.json", json.dumps(both).encode())


def _jobs(written: Written) -> Iterator[Callable[[Folder], None]]:
    """Return what is to be done, each for one tile in all items."""
    for level in written.levels:
        rows, cols = (-(-side // TILE) for side in written.layer.levels()[level].shape)
        for row in range(rows):
            for col in range(cols):
                yield partial(_write_tile, written, level, row, col)
    if not written.layer.is_direct:
        n_points = written.layer.source().shape[0]
        for number in range(-(-n_points // POINTS)):
            yield partial(_write_points, written, number)


def _write_tile(written: Written, level: int, row: int, col: int, folder: Folder) -> None:
    is_finest = written.layer.is_direct and level == written.levels[0]
    stacked = np.empty((TILE, TILE, len(written.places)), _dtype(written)) if is_finest else None
    for k, (item, number) in enumerate(zip(written.items, written.numbers, strict=True)):
        codes = _codes(written, level, row, col, item)
        folder.put(f"{_folder(written)}/{level}/c/{row}/{col}/{number}", gzipped(codes.tobytes()))
        if stacked is not None:
            stacked[..., k] = codes
    if stacked is None:
        return
    rows, cols = written.layer.levels()[level].shape
    n = TILE // BLOCK
    for i in range(n):
        for j in range(n):
            if (row * n + i) * BLOCK < rows and (col * n + j) * BLOCK < cols:
                block = stacked[i * BLOCK : (i + 1) * BLOCK, j * BLOCK : (j + 1) * BLOCK]
                data = gzipped(np.ascontiguousarray(block).tobytes())
                folder.put(f"{_folder(written)}/series/c/{row * n + i}/{col * n + j}/0", data)


def _write_points(written: Written, number: int, folder: Folder) -> None:
    """Write the series of a block of points."""
    from moraine_view.web.products import shown

    layer, product = written.layer, written.product
    source = layer.source()
    some = slice(number * POINTS, min((number + 1) * POINTS, source.shape[0]))
    block = np.full((POINTS, len(written.places)), product.coding.nothing, _dtype(written))
    for k, item in enumerate(written.items):
        seen = shown(layer, product, item)
        values = seen.combine(*(source.read("pc", (some,), channel) for channel in seen.channels))
        block[: some.stop - some.start, k] = product.coding.encode(values)
    folder.put(f"{_folder(written)}/series/c/{number}/0", gzipped(block.tobytes()))


def _dtype(written: Written) -> str:
    return "<u2" if written.product.coding.dtype == "uint16" else "uint8"
