"""How large an export will be, and what would fit if it is too large."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np

from moraine_view.web.answer import page_files
from moraine_view.web.layers import TILE
from moraine_view.web.selection import dates_of, plan
from moraine_view.web.tiles import gzipped, tile_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moraine_view.web.layers import Layer
    from moraine_view.web.selection import Choice, Written

SAMPLES = 24
"""Tiles of the finest level that are made to find out how well they compress, and a quarter of that of the others."""

PLACE_BYTES = 16
"""Of a point: two coordinates."""

LAYER_BYTES = 20_000
"""Of a layer: what is said of it and of its arrays."""


def require_size(layers: Sequence[Layer], choice: Choice, most_bytes: int) -> float:
    """Estimate the size of an export from a few of its tiles.

    Parameters
    ----------
    layers
        Of the export.
    choice
        What of them.
    most_bytes
        Largest size.

    Returns
    -------
    float
        Bytes of all files together, to some percent.

    Raises
    ------
    ValueError
        It is too large; the message names levels and dates that would fit.
    """
    planned = plan(layers, choice)
    packed = {_key(written, level): _packed(written, level) for written in planned for level in written.levels}

    page = sum(map(len, page_files(layers).values())) + LAYER_BYTES * len(layers)

    def size(other: Choice) -> float:
        return page + sum(_bytes(written, packed) for written in plan(layers, other))

    total = size(choice)
    if total <= most_bytes:
        return total
    advice = [*_levels_that_fit(planned, choice, most_bytes, size), *_dates_that_fit(layers, choice, most_bytes, size)]
    said = " or ".join(advice) if advice else "neither fewer levels nor fewer dates would fit"
    msg = f"the export would take about {as_text(total)}, more than --max-size {as_text(most_bytes)}; {said}"
    raise ValueError(msg)


def _levels_that_fit(
    planned: Sequence[Written], choice: Choice, most_bytes: int, size: Callable[[Choice], float]
) -> list[str]:
    coarsest = max((written.levels[-1] for written in planned if written.layer.is_direct), default=0)
    for first in range(choice.first + 1, coarsest + 1):
        if (found := size(choice._replace(first=first))) <= most_bytes:
            last = "" if choice.last is None else choice.last
            return [f"--export-levels {first}..{last} would take {as_text(found)}"]
    return []


def _dates_that_fit(
    layers: Sequence[Layer], choice: Choice, most_bytes: int, size: Callable[[Choice], float]
) -> list[str]:
    """Leave out the earliest dates until it fits; what is asked for may have gaps, which are kept."""
    known = dates_of(layers)
    dates = choice.dates or tuple(known)
    for k in range(1, len(dates) - 1):
        rest = dates[k:]
        try:
            found = size(choice._replace(dates=rest))
        except ValueError:  # a stack has none of them
            return []
        if found <= most_bytes:
            said = f"{rest[0]}.." if [*rest] == known[known.index(rest[0]) :] else ",".join(rest)
            return [f"--export-dates {said} ({len(rest)} dates) would take {as_text(found)}"]
    return []


def _key(written: Written, level: int) -> tuple[int, str, int]:
    return written.layer.number, written.product.name, level


def _packed(written: Written, level: int) -> float:
    """Return the bytes that a pixel of a level takes."""
    chooser = Random(level)
    shape = written.layer.levels()[level].shape
    rows, cols = (-(-side // TILE) for side in shape)
    n_bytes, n_pixels = 0, 0
    most = SAMPLES if level == written.levels[0] else SAMPLES // 4
    for _ in range(min(most, rows * cols * len(written.places))):
        row, col = chooser.randrange(rows), chooser.randrange(cols)
        codes = tile_codes(written.layer, written.product, level, row, col, chooser.choice(written.items))
        n_bytes += len(gzipped(np.ascontiguousarray(codes).tobytes()))
        n_pixels += min(TILE, shape[0] - row * TILE) * min(TILE, shape[1] - col * TILE)
    return n_bytes / n_pixels


def _bytes(written: Written, packed: dict[tuple[int, str, int], float]) -> float:
    """Return the bytes of a product: its tiles, and its series."""
    n, total = len(written.places), 0.0
    for level in written.levels:
        rows, cols = written.layer.levels()[level].shape
        total += rows * cols * n * packed[_key(written, level)]
    if written.layer.is_direct:
        rows, cols = written.layer.levels()[written.levels[0]].shape
        return total + rows * cols * n * packed[_key(written, written.levels[0])]
    item = np.dtype(written.product.coding.dtype).itemsize
    return total + written.layer.source().shape[0] * (n * item + PLACE_BYTES)


def as_text(n_bytes: float) -> str:
    """Write a size for people."""
    return f"{n_bytes / 2**30:.3g} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.3g} MiB"
