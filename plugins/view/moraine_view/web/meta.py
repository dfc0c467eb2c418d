"""``meta.json``: all that the page must know of the layers before it asks for tiles."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from moraine_core import __version__
from moraine_view.web.codes import STEPS
from moraine_view.web.ground import Spacing
from moraine_view.web.layers import TILE
from moraine_view.web.products import image_labels, item_labels, percentiles_of_items, products
from moraine_view.web.reader import IncompleteError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moraine_view.web.basemap import Basemap
    from moraine_view.web.layers import Layer

VERSION = 1
"""Of what the page and the server say to each other."""


def stamp_of(layer: Layer) -> str:
    """Return a short text that differs whenever tiles of a layer may differ."""
    text = f"{layer.path} {layer.stamp()} {__version__} {VERSION} {STEPS}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def meta(
    layers: Sequence[Layer], *, show: str | None = None, basemap: Basemap | None = None, is_static: bool = False
) -> dict[str, Any]:
    """Describe the layers.

    Parameters
    ----------
    layers
        All of the viewer.
    show
        What of a stack is shown first.
    basemap
        Pictures behind maps.
    is_static
        The tiles are files, and nobody answers questions.

    Returns
    -------
    dict
        Plain data.
    """
    return {
        "version": VERSION,
        "moraine": __version__,
        "static": is_static,
        "show": show,
        "basemap": basemap and {"zoom": [basemap.min_zoom, basemap.max_zoom], "credit": basemap.credit},
        "tile": TILE,
        "layers": [_layer(layer, is_static=is_static) for layer in layers],
    }


def _layer(layer: Layer, *, is_static: bool) -> dict[str, Any]:
    head = {"id": layer.number, "name": layer.name, "stamp": stamp_of(layer), "grid": layer.grid}
    try:
        return {**head, **_details(layer, is_static=is_static)}
    except IncompleteError as error:
        return {**head, "error": str(error)}


def _details(layer: Layer, *, is_static: bool) -> dict[str, Any]:
    source = layer.source()
    attributes = source.array("0").attrs
    labels = image_labels(layer) if layer.axis in ("images", "pairs") else []
    return {
        "kind": "raster" if layer.is_direct else "points",
        "shape": list(source.shape),
        "dtype": source.dtype.name,
        "unit": source.unit,
        "sign": str(attributes.get("sign", "")),
        "axis": layer.axis,
        "items": item_labels(layer),
        "images": labels,
        "dates": layer.dates[: len(labels)] if len(layer.dates) >= len(labels) else [],
        "pairs": [list(pair) for pair in layer.pairs] if layer.axis == "pairs" else [],
        "wavelength": layer.wavelength,
        "cell": source.cell,
        "is_map": source.crs == "web_mercator",
        "spacing": layer.spacing._asdict() if isinstance(layer.spacing, Spacing) else None,
        "no_spacing": layer.spacing if isinstance(layer.spacing, str) else "",
        "ground": layer.ground is not None and not is_static,
        "extent": list(layer.plane_extent()),
        "levels": [
            {"shape": list(grid.shape), "origin": list(grid.origin), "pixel": grid.pixel} for grid in layer.levels()
        ],
        "products": {
            product.name: {
                "quantity": product.quantity,
                "dtype": product.coding.dtype,
                "offset": product.coding.offset,
                "step": product.coding.step,
                "nothing": product.coding.nothing,
                "pairs": product.is_of_pairs,
                "looks": product.looks,
            }
            for product in products(layer).values()
        },
        "stats": {key: value for key, value in source.stats.items() if key != "warnings"},
        "warnings": list(source.stats.get("warnings") or []),
        "item_percentiles": percentiles_of_items(layer),
    }
