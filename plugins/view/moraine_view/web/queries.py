"""Numbers that are not pictures: the series of a place, constants of a reference window, profiles along a line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_view.pyramid import HALF_WORLD
from moraine_view.web.reader import read_zarr
from moraine_view.web.tiles import tile_codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moraine_view.web.layers import CachedPyramid, Layer
    from moraine_view.web.products import Product

MOST_RADIUS = 32
"""Largest half side of a window, in pixels."""

MOST_SAMPLES = 2000
"""Longest profile."""

MOST_WIDTH = 64
"""Widest swath of a profile, in samples."""


class NothingThereError(Exception):
    """No data at the place that was asked for."""


class Place(NamedTuple):
    """A place in the plane: x to the right, y down, as `Layer.plane_extent` has them."""

    x: float
    y: float
    radius: int
    """Half side of the window around it, in pixels or cells of level 0; 0 is the place alone."""
    reach: float
    """How far a point may be away, in the unit of the plane."""


def series(layer: Layer, place: Place, image: int) -> dict[str, Any]:
    """Give the values of one place in all items, and the constants that would make its window the reference.

    Parameters
    ----------
    layer
        Any.
    place
        Inside the data.
    image
        The image that the constants of a stack of complex images are to.

    Returns
    -------
    dict
        ``x y`` of the pixel or point; ``values``, or ``phase`` and ``amplitude`` of complex data (None where missing);
        ``ref``, see `reference`.

    Raises
    ------
    NothingThereError
        The place is outside, or no point is near.
    """
    source = layer.source()
    if layer.is_direct:
        i, j = _pixel(source, place)
        window, (di, dj) = _window(source, i, j, place.radius)
        values = window[di, dj]
        found: dict[str, Any] = {"x": j, "y": i}
    else:
        point, x, y = _nearest(source, place)
        window = _points_near(source, x, y, place.radius, point)
        values = window[0, 0]
        found = {"x": x, "y": y, "point": point}
    return {**found, **_values(values.reshape(-1)), "ref": _constants(layer, window, image)}


def reference(layer: Layer, place: Place, image: int) -> dict[str, Any]:
    """Give the constants that make the mean of a window zero, in all items.

    Parameters
    ----------
    layer, place, image
        As for `series`.

    Returns
    -------
    dict
        ``ref``: of complex images, for each image b the angle of the sum of ``s_image conj(s_b)`` in rad; of other
        complex data the angle of the sum of each item; of real data the median of each item. None where nothing is
        finite.
    """
    return {"ref": series(layer, place, image)["ref"]}


def ground(layer: Layer, x: float, y: float) -> dict[str, float]:
    """Give longitude and latitude of a place of a radar grid.

    Parameters
    ----------
    layer
        Any of the grid.
    x, y
        Of the place in the plane, in pixels.

    Returns
    -------
    dict
        ``lon lat`` of the pixel's center in degrees, to about a centimeter.

    Raises
    ------
    NothingThereError
        They are not known there.
    """
    i, j = math.floor(y), math.floor(x)
    found = layer.ground.at(i, j) if layer.ground is not None and layer.ground.covers(i, j) else None
    if found is None:
        msg = "longitude and latitude of this place are not known"
        raise NothingThereError(msg)
    return {"lon": round(found[0], 7), "lat": round(found[1], 7)}


def _pixel(source: CachedPyramid, place: Place) -> tuple[int, int]:
    i, j = math.floor(place.y), math.floor(place.x)
    rows, cols = source.level_shape
    if not (0 <= i < rows and 0 <= j < cols):
        msg = "this place is outside the data"
        raise NothingThereError(msg)
    return i, j


def _window(source: CachedPyramid, i: int, j: int, radius: int) -> tuple[NDArray[Any], tuple[int, int]]:
    """Read the pixels around one in all items, and say where in them it is."""
    array = source.array("0")
    part = tuple(
        slice(max(k - radius, 0), min(k + radius + 1, n)) for k, n in zip((i, j), source.level_shape, strict=True)
    )
    selection = (*part, *(slice(0, n) for n in source.stack))
    values = read_zarr(array, selection, source.path / "0.zarr" if source.is_whole else None)
    return values, (i - part[0].start, j - part[1].start)


def _nearest(source: CachedPyramid, place: Place) -> tuple[int, float, float]:
    """Find the point that is nearest to a place; return its number and its place in the plane."""
    numbers, x, y = _points_in(source, place, place.reach)
    distance = np.hypot(x - place.x, y - place.y)
    if not numbers.size or distance.min() > place.reach:
        msg = "there is no point near this place"
        raise NothingThereError(msg)
    first = int(distance.argmin())
    return int(numbers[first]), float(x[first]), float(y[first])


def _points_in(
    source: CachedPyramid, place: Place, reach: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return numbers and places in the plane of the points in pages that meet a square."""
    from moraine_points.kernels import rtree_ranges

    is_grid = source.crs == "grid"
    x, y = (place.x - 0.5, place.y - 0.5) if is_grid else (place.x - HALF_WORLD, HALF_WORLD - place.y)
    box = (x - reach, y - reach, x + reach, y + reach)
    page_size = int(str(source.array("rtree").attrs["page_size"]))
    tree = source.read("rtree", (slice(None), slice(None)))
    ranges = rtree_ranges(tree, source.shape[0], page_size, box)
    pages = [slice(int(start), int(stop)) for start, stop in ranges]
    if not pages:
        return np.empty(0, np.int64), np.empty(0), np.empty(0)
    numbers = np.concatenate([np.arange(page.start, page.stop) for page in pages])
    px, py = (np.concatenate([source.read(axis, (page,)) for page in pages]).astype(np.float64) for axis in "xy")
    inside = (np.abs(px - x) <= reach) & (np.abs(py - y) <= reach)
    px, py = px[inside], py[inside]
    return (numbers[inside], px + 0.5, py + 0.5) if is_grid else (numbers[inside], px + HALF_WORLD, HALF_WORLD - py)


def _points_near(source: CachedPyramid, x: float, y: float, radius: int, point: int) -> NDArray[Any]:
    """Read a point in all items, and the points in the window around it behind it, ``(1, n, items)``."""
    numbers = np.array([point])
    if radius:
        around, _, _ = _points_in(source, Place(x, y, 0, 0), (radius + 0.5) * source.cell)
        numbers = np.concatenate([numbers, around[around != point][:4096]])
    array = source.array("pc")
    items = math.prod(source.stack)
    out = np.empty((1, len(numbers), items), array.dtype)
    order = np.argsort(numbers)
    for item in range(items):
        channel = tuple(int(k) for k in np.unravel_index(item, source.stack)) if source.stack else ()
        for place in order:
            number = int(numbers[place])
            out[0, place, item] = source.read("pc", (slice(number, number + 1),), channel)[0]
    return out


def _values(values: NDArray[Any]) -> dict[str, Any]:
    if values.dtype.kind != "c":
        return {"values": numbers(values)}
    return {"phase": numbers(np.angle(values), 5), "amplitude": numbers(np.abs(values))}


def _constants(layer: Layer, window: NDArray[Any], image: int) -> list[float | None]:
    pixels = window.reshape(window.shape[0] * window.shape[1], -1)
    if pixels.dtype.kind != "c":
        return numbers([_median(column) for column in pixels.T.astype(np.float64)])
    if layer.axis == "images":
        pixels = pixels[:, image, None] * np.conj(pixels)
    known = np.isfinite(pixels)
    total = np.where(known, pixels, 0).sum(axis=0)
    return numbers(np.where(known.any(axis=0) & (total != 0), np.angle(total), np.nan), 5)


def _median(values: NDArray[Any]) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else math.nan


def numbers(values: Any, digits: int | None = None) -> list[float | None]:
    """Return numbers as JSON can say them: None for what is not finite.

    Parameters
    ----------
    values
        ``(n,)`` real.
    digits
        Behind the point; None: seven that count.

    Returns
    -------
    list
        Of float or None.
    """
    listed = np.asarray(values, dtype=np.float64).tolist()
    rounded = (round(v, digits) if digits is not None else float(f"{v:.7g}") for v in listed)
    return [v if math.isfinite(v) else None for v in rounded]


class Line(NamedTuple):
    """A line in the plane, and how it is sampled."""

    x0: float
    y0: float
    x1: float
    y1: float
    level: int
    """Level of the view: samples are a pixel of it apart."""
    width: int
    """Samples across the line; 1 takes the nearest pixel, more the median of them."""


def profile(layer: Layer, product: Product, item: int, line: Line) -> dict[str, Any]:
    """Give values along a line.

    Parameters
    ----------
    layer, product, item
        What is seen.
    line
        Where.

    Returns
    -------
    dict
        ``distance`` from the beginning in the unit of the plane; ``values``; and of a swath ``low`` and ``high``, the
        quartiles. Of phases the swath is averaged as unit phasors, and the quartiles are those of the differences from
        the average.
    """
    grid = layer.levels()[line.level]
    length = math.hypot(line.x1 - line.x0, line.y1 - line.y0)
    n = min(max(int(length / grid.pixel) + 1, 2), MOST_SAMPLES)
    along = np.linspace(0, 1, n)
    across = (np.arange(line.width) - (line.width - 1) / 2) * grid.pixel
    ux, uy = ((line.x1 - line.x0) / length, (line.y1 - line.y0) / length) if length else (1.0, 0.0)
    x = line.x0 + along[:, None] * (line.x1 - line.x0) - across * uy
    y = line.y0 + along[:, None] * (line.y1 - line.y0) + across * ux
    cols = np.floor(x / grid.pixel).astype(np.int64) - grid.origin[1] * 256
    rows = np.floor(y / grid.pixel).astype(np.int64) - grid.origin[0] * 256
    inside = (rows >= 0) & (rows < grid.shape[0]) & (cols >= 0) & (cols < grid.shape[1])
    values = np.full(x.shape, np.nan)
    tiles = np.unique(np.stack([rows[inside] >> 8, cols[inside] >> 8], axis=1), axis=0)
    coding = product.coding
    for row, col in tiles.tolist():
        codes = tile_codes(layer, product, line.level, row, col, item)
        here = inside & (rows >> 8 == row) & (cols >> 8 == col)
        found = codes[rows[here] & 255, cols[here] & 255]
        values[here] = np.where(found == coding.nothing, np.nan, coding.offset + coding.step * found)
    result = {"distance": numbers(along * length)}
    if line.width == 1:
        return {**result, "values": numbers(values[:, 0])}
    center, low, high = _swath(values, is_phase=product.quantity == "phase")
    return {**result, "values": numbers(center), "low": numbers(low), "high": numbers(high)}


def _swath(values: NDArray[Any], *, is_phase: bool) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return center and quartiles of each row, nan where nothing is known."""
    out = np.full((3, len(values)), np.nan)
    for k, row in enumerate(values):
        known = row[np.isfinite(row)]
        if not known.size:
            continue
        if is_phase:
            mean = float(np.angle(np.exp(1j * known).sum()))
            away = np.angle(np.exp(1j * (known - mean)))
            out[:, k] = mean, *(mean + np.quantile(away, [0.25, 0.75]))
        else:
            out[:, k] = np.quantile(known, [0.5, 0.25, 0.75])
    return out[0], out[1], out[2]
