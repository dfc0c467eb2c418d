"""Tiles: a product of a layer at one level as a zarr array of chunks 256 x 256 x 1, made when a chunk is asked for."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_view.pyramid import HALF_WORLD
from moraine_view.render import Frame, draw_points, level_for, sample_level
from moraine_view.web.layers import TILE, LevelGrid
from moraine_view.web.products import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moraine_view.web.layers import CachedPyramid, Layer
    from moraine_view.web.products import Product

LARGEST_DISK = 12.0
"""Radius of points in pixels, however close one looks."""

GZIP_LEVEL = 1
"""Tiles are made while somebody waits: a better level takes longer than it saves on the way."""

SAMPLE = 8192
"""Bytes of a tile that are compressed in two ways, to choose one."""


def array_metadata(product: Product, grid: LevelGrid) -> bytes:
    """Return the ``zarr.json`` of a level of a product.

    Parameters
    ----------
    product
        What is seen.
    grid
        The tiles of the level.

    Returns
    -------
    bytes
        JSON of a zarr array of format 3, with the coding in its attributes.
    """
    coding = product.coding
    return json.dumps(
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [*grid.shape, product.n_items],
            "data_type": coding.dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [TILE, TILE, 1]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": coding.nothing,
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "gzip", "configuration": {"level": GZIP_LEVEL}},
            ],
            "attributes": {"offset": coding.offset, "step": coding.step, "nothing": coding.nothing},
        }
    ).encode()


def tile(layer: Layer, product: Product, level: int, row: int, col: int, item: int) -> bytes:
    """Make one chunk.

    Parameters
    ----------
    layer, product
        What is seen.
    level
        From 0, the finest.
    row, col
        Of the tile, from those of the level's origin.
    item
        Number on the last axis of the product.

    Returns
    -------
    bytes
        ``(256, 256, 1)`` codes, gzipped; the same bytes for the same data.

    Raises
    ------
    IncompleteError
        Data are missing on disk.
    """
    codes = tile_codes(layer, product, level, row, col, item)
    return gzipped(np.ascontiguousarray(codes).tobytes())


def tile_codes(layer: Layer, product: Product, level: int, row: int, col: int, item: int) -> NDArray[Any]:
    """Make the codes of one tile, ``(256, 256)``; parameters as of `tile`."""
    source = layer.source()
    coding = product.coding
    if not layer.is_direct:
        return coding.encode(_drawn(source, layer.levels()[level], product, layer, row, col, item))
    codes = np.full((TILE, TILE), coding.nothing, "<u2" if coding.dtype == "uint16" else "uint8")
    rows, cols = source.array(str(level)).shape[:2]
    part = (
        slice(row * TILE, min((row + 1) * TILE, rows)),
        slice(col * TILE, min((col + 1) * TILE, cols)),
    )
    if product.looks > 1:
        values = _multilooked(source, product, layer, level, part, item)
    else:
        seen = shown(layer, product, item)
        values = seen.combine(*(source.read(str(level), part, channel) for channel in seen.channels))
    codes[: values.shape[0], : values.shape[1]] = coding.encode(values)
    return codes


def _drawn(
    source: CachedPyramid, grid: LevelGrid, product: Product, layer: Layer, row: int, col: int, item: int
) -> NDArray[Any]:
    """Draw the cells of a cloud, or its points where a cell is larger than a pixel."""
    side = TILE * grid.pixel
    x, y = (grid.origin[1] + col) * side, (grid.origin[0] + row) * side
    if source.crs == "grid":
        view = Frame(x - 0.5, y - 0.5, x - 0.5 + side, y - 0.5 + side, TILE, TILE, grid.pixel, is_y_down=True)
    else:
        west, north = x - HALF_WORLD, HALF_WORLD - y
        view = Frame(west, north - side, west + side, north, TILE, TILE, grid.pixel, is_y_down=False)
    seen = shown(layer, product, item)
    if view.pixel < source.cell * (1 - 1e-9):
        return draw_points(source, seen, view, LARGEST_DISK)
    return sample_level(source, seen, view, level_for(view.pixel, source.cell, source.n_levels))


def _multilooked(
    source: CachedPyramid, product: Product, layer: Layer, level: int, part: tuple[slice, slice], item: int
) -> NDArray[Any]:
    """Return the phase of interferograms averaged over looks, from samples of finer levels while there are such."""
    (ref,), (sec,) = shown(layer, product, item).channels
    looks = product.looks
    base = max(level - (looks.bit_length() - 1), 0)
    factor = 1 << (level - base)
    shape = source.array(str(base)).shape[:2]
    out = np.empty([s.stop - s.start for s in part])
    step = TILE // factor  # of this level, so that no more than a tile of the finer one is in memory at once
    for i in range(part[0].start, part[0].stop, step):
        for j in range(part[1].start, part[1].stop, step):
            ends = [min(k + step, s.stop) for k, s in zip((i, j), part, strict=True)]
            box = tuple(slice(k * factor, min(end * factor, n)) for k, end, n in zip((i, j), ends, shape, strict=True))
            channels = [source.read(str(base), box, (image,)) for image in (ref, sec)]
            phase = _look_phase(channels[0] * np.conj(channels[1]), looks)
            repeated = looks // factor
            fine = np.repeat(np.repeat(phase, repeated, axis=0), repeated, axis=1)
            rows, cols = ends[0] - i, ends[1] - j
            at = i - part[0].start, j - part[1].start
            out[at[0] : at[0] + rows, at[1] : at[1] + cols] = fine[:rows, :cols]
    return out


def _look_phase(samples: NDArray[Any], looks: int) -> NDArray[Any]:
    """Return the phase of the sum of each block of samples, nan where none is finite."""
    known = np.isfinite(samples)
    padding = [(0, -n % looks) for n in samples.shape]
    samples = np.pad(np.where(known, samples, 0), padding)
    n = np.pad(known, padding)
    blocks = (samples.shape[0] // looks, looks, samples.shape[1] // looks, looks)
    total = samples.reshape(blocks).sum(axis=(1, 3))
    phase: NDArray[Any] = np.where(n.reshape(blocks).any(axis=(1, 3)), np.angle(total), np.nan)
    return phase


def gzipped(data: bytes) -> bytes:
    """Compress without a time of day, so that the same data give the same bytes.

    Noise has no repetitions, and looking for them takes four times as long as coding the bytes by how often they occur;
    whether there are any is tried in the middle.
    """
    middle = max((len(data) - SAMPLE) // 2, 0)
    sample = data[middle : middle + SAMPLE]
    repeats = len(_deflated(sample, zlib.Z_DEFAULT_STRATEGY)) < 0.99 * len(_deflated(sample, zlib.Z_RLE))
    return _deflated(data, zlib.Z_DEFAULT_STRATEGY if repeats else zlib.Z_RLE)


def _deflated(data: bytes, strategy: int) -> bytes:
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, 31, zlib.DEF_MEM_LEVEL, strategy)
    return packer.compress(data) + packer.flush()
