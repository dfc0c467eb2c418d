"""Readers of the few kinds of files that the real data come in."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def read_half_floats(path: Path) -> NDArray[np.float32]:
    """Read a TIFF of one band of 16-bit floats, in strips or tiles, plain or deflated: what Pillow does not read.

    Tag numbers are those of the TIFF 6.0 specification.
    """
    raw = path.read_bytes()
    (start,) = struct.unpack("<I", raw[4:8])
    (count,) = struct.unpack("<H", raw[start : start + 2])
    tags: dict[int, Any] = {}
    for at in range(start + 2, start + 2 + 12 * count, 12):
        tag, kind, number = struct.unpack("<HHI", raw[at : at + 8])
        if kind in (3, 4):
            form = f"<{number}{'H' if kind == 3 else 'I'}"
            size = struct.calcsize(form)
            place = at + 8 if size <= 4 else struct.unpack("<I", raw[at + 8 : at + 12])[0]
            tags[tag] = struct.unpack(form, raw[place : place + size])
    width, nlines, is_deflated, is_difference = tags[256][0], tags[257][0], tags[259] == (8,), tags.get(317) == (2,)
    assert (tags[258], tags[339]) == ((16,), (3,))
    tile_width, tile_lines = (tags[322][0], tags[323][0]) if 322 in tags else (width, tags[278][0])
    across = -(-width // tile_width)
    out = np.empty((-(-nlines // tile_lines) * tile_lines, across * tile_width), np.uint16)
    places = zip(tags.get(324, tags.get(273)), tags.get(325, tags.get(279)), strict=True)
    for number, (begin, size) in enumerate(places):
        data = raw[begin : begin + size]
        tile = np.frombuffer(zlib.decompress(data) if is_deflated else data, "<u2").reshape(-1, tile_width)
        i, j = divmod(number, across)
        part = (slice(i * tile_lines, i * tile_lines + len(tile)), slice(j * tile_width, (j + 1) * tile_width))
        out[part] = np.cumsum(tile, axis=1, dtype=np.uint16) if is_difference else tile
    return out[:nlines, :width].view(np.float16).astype(np.float32)


def read_floats(path: Path) -> NDArray[np.float32]:
    """Read a TIFF of one band of 32-bit floats; 0 means missing."""
    from PIL import Image

    with Image.open(path) as image:
        values = np.array(image, dtype=np.float32)
    values[values == 0] = np.nan
    return values
