"""What of the layers an export holds: levels of rasters, dates of stacks, and the products that are written."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from moraine_view.web.products import image_labels, products

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moraine_view.web.layers import Layer
    from moraine_view.web.products import Product

FINEST_DISK = 4
"""Points are drawn down to this many pixels a cell."""


class Choice(NamedTuple):
    """Which levels of rasters and which dates of stacks are written."""

    first: int = 0
    last: int | None = None
    """None: the coarsest."""
    dates: tuple[str, ...] | None = None
    """In order, without hyphens; None: all, also of stacks without dates."""


class Written(NamedTuple):
    """A product of a layer that is written."""

    layer: Layer
    product: Product
    images: tuple[int, ...]
    """Those of the stack that are written, if it counts images or their pairs."""
    places: tuple[int, ...]
    """What is written of the stack: numbers of images, of pairs, or of whatever it counts."""
    levels: range
    """From the finest."""

    @property
    def items(self) -> list[int]:
        """Return the items of the product that are written, in the order of the stack."""
        if not self.product.is_of_pairs:
            return list(self.places)
        n = math.isqrt(self.product.n_items)
        return [ref * n + sec for ref, sec in (self.layer.pairs[k] for k in self.places)]

    @property
    def numbers(self) -> list[int]:
        """Return the numbers of these items in the files, where images are counted anew."""
        if not self.product.is_of_pairs:
            return list(range(len(self.places)))
        n, place = len(self.images), {image: k for k, image in enumerate(self.images)}
        return [place[ref] * n + place[sec] for ref, sec in (self.layer.pairs[k] for k in self.places)]

    @property
    def n_numbers(self) -> int:
        """Return how long the axis of items is in the files; pairs that are not written are missing there."""
        return len(self.images) ** 2 if self.product.is_of_pairs else len(self.places)


def choose(layers: Sequence[Layer], levels: str, dates: str | None) -> Choice:
    """Read what the command line says.

    Parameters
    ----------
    layers
        Of the export.
    levels
        ``1``, ``1..``, ``..4`` or ``1..4``.
    dates
        Dates and ranges of dates, ends included: ``20200106,20200118..20200330``; None for all.

    Returns
    -------
    Choice
        Of dates those that layers have.

    Raises
    ------
    ValueError
        It is not well formed, or there are no such dates.
    """
    found = re.fullmatch(r"([0-9]{1,3})?(\.\.)?([0-9]{1,3})?", levels.strip(), re.ASCII)
    if found is None or not (found[1] or found[3]) or (found[1] and found[3] and int(found[1]) > int(found[3])):
        msg = f"export_levels is {levels!r}; expected levels such as 1.. or 1..4, of which 0 is the data"
        raise ValueError(msg)
    first = int(found[1] or 0)
    last = int(found[3]) if found[3] else None if found[2] else first
    return Choice(first, last, None if dates is None else _dates(dates_of(layers), dates))


def dates_of(layers: Sequence[Layer]) -> list[str]:
    """List the dates of all layers, without hyphens, each once and in order."""
    return sorted({_plain(date) for layer in layers for date in layer.dates})


def _plain(date: str) -> str:
    return date.strip().replace("-", "")


def _dates(known: Sequence[str], text: str) -> tuple[str, ...]:
    if not known:
        msg = "export_dates: no stack here has dates"
        raise ValueError(msg)
    chosen: set[str] = set()
    for part in text.split(","):
        first, dots, last = part.partition("..")
        low, high = _plain(first), _plain(last if dots else first)
        some = {date for date in known if low <= date and (date <= high or not high)} if low or high else set()
        if not some:
            msg = f"export_dates: {part.strip()!r} has none of the {len(known)} dates, {known[0]} to {known[-1]}"
            raise ValueError(msg)
        chosen |= some
    return tuple(sorted(chosen))


def plan(layers: Sequence[Layer], choice: Choice) -> list[Written]:
    """Choose what is written: values, phases of images (pairs are formed in the page), coherences of pairs.

    Parameters
    ----------
    layers
        Of the export.
    choice
        What of them.

    Returns
    -------
    list of Written
        At least one for each layer.

    Raises
    ------
    ValueError
        A stack has none of the dates.
    """
    return [written for layer in layers for written in _of_layer(layer, choice)]


def _of_layer(layer: Layer, choice: Choice) -> Iterator[Written]:
    found = products(layer)
    images = _images(layer, choice.dates)
    places: Sequence[int] = range(layer.n_items)
    if layer.axis == "images":
        places = images
    elif layer.axis == "pairs":
        some = set(images)
        places = [k for k, pair in enumerate(layer.pairs) if some.issuperset(pair)]
    if not places:
        msg = f"export_dates: {layer.name} has none of these dates, or no pair of two of them"
        raise ValueError(msg)
    for name in ("value", "coh", "coh_abs") if "phase" not in found else ("phase",):
        if name in found:
            yield Written(layer, found[name], images, tuple(places), _levels(layer, choice))


def _images(layer: Layer, dates: Sequence[str] | None) -> tuple[int, ...]:
    """Choose the images of a stack; empty if it counts something else."""
    n = len(image_labels(layer)) if layer.axis in ("images", "pairs") else 0
    if dates is None or len(layer.dates) < n:
        return tuple(range(n))
    return tuple(k for k in range(n) if _plain(layer.dates[k]) in dates)


def _levels(layer: Layer, choice: Choice) -> range:
    coarsest = len(layer.levels()) - 1
    if layer.is_direct:
        last = coarsest if choice.last is None else min(choice.last, coarsest)
        return range(min(choice.first, last), last + 1)
    cell = layer.source().cell
    return range(next(k for k, grid in enumerate(layer.levels()) if grid.pixel * FINEST_DISK >= cell), coarsest + 1)
