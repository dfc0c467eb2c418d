"""The viewer as a folder of files that any file server can show: the same page and tiles, and series in blocks."""

from __future__ import annotations

import json
import math
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_view.web.answer import page_files
from moraine_view.web.layers import TILE
from moraine_view.web.meta import meta
from moraine_view.web.products import products
from moraine_view.web.tiles import GZIP_LEVEL, array_metadata, gzipped, tile_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from moraine_view.web.layers import Layer
    from moraine_view.web.products import Product

BLOCK = 64
"""Side of a block of series, in pixels."""

POINTS = 4096
"""Points of a block of series."""

SAMPLES = 12
"""Tiles that are made to find out how well they compress."""

FINEST_DISK = 4
"""Points are drawn down to this many pixels a cell."""


class Written(NamedTuple):
    """A product of a layer that is written: its items, and its levels from the finest."""

    layer: Layer
    product: Product
    items: tuple[int, ...]
    levels: range


def export(
    layers: Sequence[Layer],
    out: Path,
    *,
    finest: int = 0,
    most_bytes: int = 2 << 30,
    show: str | None = None,
    overwrite: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Write all that is needed to look at layers without this program.

    Parameters
    ----------
    layers
        What to write.
    out
        The folder; it appears when it is whole.
    finest
        Finest level of rasters, 0 for full resolution.
    most_bytes
        Largest size.
    show
        What of a stack is shown first.
    overwrite
        Replace an export that is there.
    say
        Is given how far it is.

    Returns
    -------
    Path
        `out`.

    Raises
    ------
    ValueError
        `out` exists, or it would be too large; then the message names the level that would fit.
    """
    if out.exists() and not (overwrite and _is_export(out)):
        what = "exists; --overwrite replaces it" if _is_export(out) else "exists and is no export of moraine view"
        msg = f"{out} {what}"
        raise ValueError(msg)
    planned = [written for layer in layers for written in _planned(layer, finest)]
    _check_size(planned, most_bytes, finest)
    part = out.with_name(f".{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        _write_page(layers, part, planned, show)
        jobs = [job for written in planned for job in _jobs(written)]
        every = max(len(jobs) // 10, 1)
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            for number, _ in enumerate(pool.map(lambda job: job(part), jobs), 1):
                if number % every == 0:
                    say(f"view: {100 * number // len(jobs)} % of {len(jobs)} parts written")
        if out.exists():
            shutil.rmtree(out)
        part.rename(out)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return out


def _is_export(out: Path) -> bool:
    with suppress(OSError, ValueError, AttributeError):
        return bool(json.loads((out / "meta.json").read_text(encoding="utf-8")).get("static"))
    return False


def _planned(layer: Layer, finest: int) -> Iterator[Written]:
    """Choose what is written: values, phases of images (pairs are formed in the page), coherences of pairs."""
    found = products(layer)
    n_levels = len(layer.levels())
    first = min(finest, n_levels - 1)
    if not layer.is_direct:
        cell, pixels = layer.source().cell, [grid.pixel for grid in layer.levels()]
        first = next(k for k, pixel in enumerate(pixels) if pixel * FINEST_DISK >= cell)
    for name in ("value", "coh", "coh_abs") if "phase" not in found else ("phase",):
        if name not in found:
            continue
        product = found[name]
        n = math.isqrt(product.n_items)
        items = [a * n + b for a, b in layer.pairs] if product.is_of_pairs else range(product.n_items)
        yield Written(layer, product, tuple(items), range(first, n_levels))


def _n_tiles(written: Written, level: int) -> tuple[int, int]:
    rows, cols = (-(-side // TILE) for side in written.layer.levels()[level].shape)
    return rows, cols


def _check_size(planned: Sequence[Written], most_bytes: int, finest: int) -> None:
    """Make a few tiles, and say what all of them will take."""
    by_level: dict[int, float] = {}
    for written in planned:
        chooser = Random(0)
        level = written.levels[0]
        rows, cols = _n_tiles(written, level)
        n_bytes, n_pixels = 0, 0
        for _ in range(min(SAMPLES, rows * cols * len(written.items))):
            row, col = chooser.randrange(rows), chooser.randrange(cols)
            n_bytes += len(gzipped(_codes(written, level, row, col, chooser.choice(written.items)).tobytes()))
            shape = written.layer.levels()[level].shape
            n_pixels += min(TILE, shape[0] - row * TILE) * min(TILE, shape[1] - col * TILE)
        for k, number in enumerate(written.levels):
            rows, cols = written.layer.levels()[number].shape
            by_level[k] = by_level.get(k, 0.0) + rows * cols * len(written.items) * n_bytes / n_pixels
    # series hold the finest level once more
    total = [sum(by_level[k] for k in by_level if k >= first) + by_level[first] for first in sorted(by_level)]
    if total[0] <= most_bytes:
        return
    fits = next((k for k, n_bytes in enumerate(total) if n_bytes <= most_bytes), None)
    advice = "no level would fit" if fits is None else f"--finest {finest + fits} would take {_size(total[fits])}"
    msg = f"the export would take about {_size(total[0])}, more than --max-size {_size(most_bytes)}; {advice}"
    raise ValueError(msg)


def _size(n_bytes: float) -> str:
    return f"{n_bytes / 2**30:.2g} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.2g} MiB"


def _codes(written: Written, level: int, row: int, col: int, item: int) -> NDArray[Any]:
    return np.ascontiguousarray(tile_codes(written.layer, written.product, level, row, col, item))


def _write_page(layers: Sequence[Layer], part: Path, planned: Sequence[Written], show: str | None) -> None:
    (part / "s").mkdir()
    for name, data in page_files().items():
        (part / name if name == "index.html" else part / "s" / name).write_bytes(data)
    described = meta(layers, show=show, is_static=True)
    for layer, said in zip(layers, described["layers"], strict=True):
        mine = [written for written in planned if written.layer is layer]
        said["products"] = {written.product.name: said["products"][written.product.name] for written in mine}
        said["finest"] = mine[0].levels[0]
        said["block"] = BLOCK if layer.is_direct else POINTS
    (part / "meta.json").write_text(json.dumps(described, allow_nan=False), encoding="utf-8")
    for written in planned:
        folder = part / "z" / str(written.layer.number) / written.product.name
        for level in written.levels:
            grid = written.layer.levels()[level]
            (folder / str(level)).mkdir(parents=True)
            (folder / str(level) / "zarr.json").write_bytes(array_metadata(written.product, grid))
        (folder / "series").mkdir()
        (folder / "series" / "zarr.json").write_bytes(_series_metadata(written))
    for layer in layers:
        if not layer.is_direct:
            _write_places(layer, part / "z" / str(layer.number))


def _series_metadata(written: Written) -> bytes:
    layer, product = written.layer, written.product
    if layer.is_direct:
        shape, chunk = list(layer.levels()[written.levels[0]].shape), [BLOCK, BLOCK]
    else:
        shape, chunk = [layer.source().shape[0]], [POINTS]
    said = json.loads(array_metadata(product, layer.levels()[0]))
    said["shape"] = [*shape, len(written.items)]
    said["chunk_grid"]["configuration"]["chunk_shape"] = [*chunk, len(written.items)]
    return json.dumps(said).encode()


def _write_places(layer: Layer, folder: Path) -> None:
    """Write where points are, in the plane, and the boxes of their blocks."""
    from moraine_view.pyramid import HALF_WORLD

    source = layer.source()
    x, y = (np.asarray(source.array(axis)[:], np.float64) for axis in "xy")
    x, y = (x + 0.5, y + 0.5) if source.crs == "grid" else (x + HALF_WORLD, HALF_WORLD - y)
    boxes = []
    for axis, values in (("x", x), ("y", y)):
        place = folder / axis
        (place / "c").mkdir(parents=True)
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
        (place / "zarr.json").write_text(json.dumps(said), encoding="utf-8")
        for number in range(-(-len(values) // POINTS)):
            block = np.full(POINTS, np.nan)
            some = values[number * POINTS : (number + 1) * POINTS]
            block[: len(some)] = some
            (place / "c" / str(number)).write_bytes(gzipped(block.astype("<f8").tobytes()))
            boxes.append((float(some.min()), float(some.max())))
    half = len(boxes) // 2
    both = [[*one, *two] for one, two in zip(boxes[:half], boxes[half:], strict=True)]
    (folder / "boxes.json").write_text(json.dumps(both), encoding="utf-8")


def _jobs(written: Written) -> Iterator[Callable[[Path], None]]:
    """Return what is to be done, each for one tile in all items."""
    for level in written.levels:
        rows, cols = _n_tiles(written, level)
        for row in range(rows):
            for col in range(cols):
                yield partial(_write_tile, written, level, row, col)
    if not written.layer.is_direct:
        n_points = written.layer.source().shape[0]
        for number in range(-(-n_points // POINTS)):
            yield partial(_write_points, written, number)


def _write_tile(written: Written, level: int, row: int, col: int, part: Path) -> None:
    folder = part / "z" / str(written.layer.number) / written.product.name
    place = folder / str(level) / "c" / str(row) / str(col)
    place.mkdir(parents=True)
    is_finest = written.layer.is_direct and level == written.levels[0]
    stacked = np.empty((TILE, TILE, len(written.items)), _dtype(written)) if is_finest else None
    for k, item in enumerate(written.items):
        codes = _codes(written, level, row, col, item)
        (place / str(item)).write_bytes(gzipped(codes.tobytes()))
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
                target = folder / "series" / "c" / str(row * n + i) / str(col * n + j)
                target.mkdir(parents=True)
                (target / "0").write_bytes(gzipped(np.ascontiguousarray(block).tobytes()))


def _write_points(written: Written, number: int, part: Path) -> None:
    """Write the series of a block of points."""
    from moraine_view.web.products import shown

    layer, product = written.layer, written.product
    source = layer.source()
    some = slice(number * POINTS, min((number + 1) * POINTS, source.shape[0]))
    block = np.full((POINTS, len(written.items)), product.coding.nothing, _dtype(written))
    for k, item in enumerate(written.items):
        seen = shown(layer, product, item)
        values = seen.combine(*(source.read("pc", (some,), channel) for channel in seen.channels))
        block[: some.stop - some.start, k] = product.coding.encode(values)
    target = part / "z" / str(layer.number) / product.name / "series" / "c" / str(number)
    target.mkdir(parents=True)
    (target / "0").write_bytes(gzipped(block.tobytes()))


def _dtype(written: Written) -> str:
    return "<u2" if written.product.coding.dtype == "uint16" else "uint8"
