"""What can be seen of a layer: kinds of pictures, the channels that each needs, and how they are coded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_view.show import Shown, plan_show
from moraine_view.web.codes import PHASE, SHARE, Coding, decibel_coding, decibels, value_coding

if TYPE_CHECKING:
    from moraine_view.web.layers import Layer

LOOKS = (1, 2, 4, 8)
"""Samples along each axis that are averaged in an interferogram."""


class Product(NamedTuple):
    """One kind of picture of a layer: an array with two spatial axes and one of items."""

    name: str
    quantity: str
    """``phase``, ``share``, ``decibel`` or ``value``."""
    n_items: int
    """Items of the last axis; for those of two images ``a n + b`` is the item of (a, b)."""
    coding: Coding
    is_of_pairs: bool = False
    looks: int = 1


def products(layer: Layer) -> dict[str, Product]:
    """List what can be seen of a layer, what suits it best first.

    Parameters
    ----------
    layer
        Any.

    Returns
    -------
    dict
        By name.
    """
    source, axis, n = layer.source(), layer.axis, layer.n_items
    if source.dtype.kind != "c":
        return {"value": Product("value", "value", n, value_coding(source.stats, source.dtype))}
    decibel = decibel_coding(source.stats)
    found = []
    if axis == "pairs":
        n_images = n_images_of(layer)
        found += [
            Product("coh", "phase", n_images**2, PHASE, is_of_pairs=True),
            Product("coh_abs", "share", n_images**2, SHARE, is_of_pairs=True),
        ]
    else:
        if axis == "images" and n > 1:
            looks = LOOKS if layer.is_direct else (1,)
            found += [Product(intf_name(k), "phase", n * n, PHASE, is_of_pairs=True, looks=k) for k in looks]
        found += [Product("phase", "phase", n, PHASE), Product("amp", "decibel", n, decibel)]
    return {product.name: product for product in found}


def intf_name(looks: int) -> str:
    """Return the name of an interferogram of so many looks along each axis."""
    return "intf" if looks == 1 else f"intf{looks}"


def n_images_of(layer: Layer) -> int:
    """Count the images that the pairs of a layer are of."""
    return max((max(pair) for pair in layer.pairs), default=0) + 1


def shown(layer: Layer, product: Product, item: int) -> Shown:
    """Say which channels an item of a product needs and what becomes of them.

    Parameters
    ----------
    layer, product
        What is seen.
    item
        Number on the last axis of the product.

    Returns
    -------
    Shown
        As for a quicklook, whose pictures are these.
    """
    source = layer.source()
    if product.is_of_pairs:
        pair = divmod(item, math.isqrt(product.n_items))
        if product.name in ("coh", "coh_abs"):
            return plan_show(product.name, source.dtype, source.stack, pair, layer.pairs)
        return plan_show("intf_all", source.dtype, source.stack, pair)
    channel = layer.channel(item)
    if product.name == "amp":
        return Shown("amplitude", "values", (), (channel,), decibels)
    return plan_show(None, source.dtype, source.stack, channel)


def item_labels(layer: Layer) -> list[str]:
    """Name the items of a layer's stack: dates, pairs of dates, or numbers."""
    stack = layer.source().stack
    if not stack:
        return [""]
    if layer.axis == "pairs":
        names = image_labels(layer)
        return [f"{names[ref]} – {names[sec]}" for ref, sec in layer.pairs]
    if len(stack) == 1:
        return image_labels(layer)
    return [f"({', '.join(map(str, index))})" for index in np.ndindex(*stack)]


def image_labels(layer: Layer) -> list[str]:
    """Name the images of a layer by date where that is known."""
    n = n_images_of(layer) if layer.axis == "pairs" else (layer.source().stack or (0,))[0]
    if len(layer.dates) >= n > 0:
        return [iso_date(date) for date in layer.dates[:n]]
    return [f"image {number}" for number in range(n)]


def iso_date(date: str) -> str:
    """Write ``YYYYMMDD`` as ``YYYY-MM-DD``; anything else stays."""
    return f"{date[:4]}-{date[4:6]}-{date[6:]}" if len(date) == 8 and date.isdigit() else date


def percentiles_of_items(layer: Layer) -> list[Any]:
    """Return the 1st and 99th percentile of each item of a real stack; empty where they are not known.

    Parameters
    ----------
    layer
        Any.

    Returns
    -------
    list
        Of pairs of float, or of None where an item has no finite value.
    """
    source = layer.source()
    if source.dtype.kind not in "iuf" or not source.stack or not (source.path / "stats.zarr").is_dir():
        return []
    table = np.asarray(source.array("stats")[...]).reshape(-1, 8)[:, [5, 7]]
    return [None if np.isnan(row).any() else [float(f"{value:.6g}") for value in row] for row in table]
