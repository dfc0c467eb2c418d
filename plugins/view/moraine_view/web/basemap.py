"""Pictures behind a map, from a local archive of tiles: PMTiles, version 3 (its public specification)."""

from __future__ import annotations

import base64
import json
import os
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

HEADER = 127

MOST_DEPTH = 4
"""Directories below one another."""

MOST_BYTES = 32 << 20
"""Largest directory, after decompression."""

IMAGES = {2: "image/png", 3: "image/jpeg", 4: "image/webp", 5: "image/avif"}

NOTHING = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
)
"""A transparent picture: where the archive has none."""


class Entry(NamedTuple):
    """What a directory says of tiles that follow one another."""

    tile: int
    offset: int
    length: int
    run: int
    """How many tiles share it; 0 if it is another directory."""


@dataclass(frozen=True)
class Basemap:
    """An archive of tiles, opened for looking."""

    path: Path
    content_type: str
    min_zoom: int
    max_zoom: int
    credit: str
    """Who made it, as the archive says."""
    root: tuple[int, int]
    """Offset and length of the first directory."""
    leaves: int
    """Offset of the others."""
    data: int
    """Offset of the tiles."""
    packing: int
    """1: directories are plain, 2: gzip."""

    def tile(self, zoom: int, col: int, row: int) -> tuple[str, bytes]:
        """Return type and bytes of a tile, a transparent picture where there is none.

        Parameters
        ----------
        zoom, col, row
            As on all web maps: col from the west, row from the north.

        Returns
        -------
        tuple
            For a browser.
        """
        place = self._find(tile_number(zoom, col, row)) if self.min_zoom <= zoom <= self.max_zoom else None
        if place is None:
            return "image/png", NOTHING
        return self.content_type, _read(self.path, self.data + place.offset, place.length)

    def _find(self, number: int) -> Entry | None:
        offset, length = self.root
        for _ in range(MOST_DEPTH):
            found = _last(_directory(self.path, offset, length, self.packing), number)
            if found is None or (found.run and number >= found.tile + found.run):
                return None
            if found.run:
                return found
            offset, length = self.leaves + found.offset, found.length
        return None


def open_basemap(path: Path) -> Basemap:
    """Open an archive.

    Parameters
    ----------
    path
        A file.

    Returns
    -------
    Basemap
        Its header.

    Raises
    ------
    ValueError
        It cannot be read, or holds no pictures.
    """
    try:
        head = _read(path, 0, HEADER)
    except (OSError, ValueError) as error:
        msg = f"basemap: {path} cannot be read: {getattr(error, 'strerror', None) or error}"
        raise ValueError(msg) from error
    if head[:7] != b"PMTiles" or head[7] != 3:
        msg = f"basemap: {path} is no PMTiles archive of version 3"
        raise ValueError(msg)
    root, root_length, about, about_length, leaves, _, data, _ = (
        int.from_bytes(head[k : k + 8], "little") for k in range(8, 72, 8)
    )
    packing, tile_packing, kind, min_zoom, max_zoom = head[97:102]
    if kind not in IMAGES or tile_packing > 1:
        msg = f"basemap: {path} holds no pictures; expected png, jpeg, webp or avif tiles, not vector ones"
        raise ValueError(msg)
    if packing not in (1, 2):
        msg = f"basemap: {path} has directories that are neither plain nor gzip"
        raise ValueError(msg)
    try:
        said = json.loads(_unpacked(_read(path, about, about_length), packing) or b"{}")
    except (ValueError, zlib.error):
        said = {}
    credit = str(said.get("attribution") or said.get("name") or path.stem) if isinstance(said, dict) else path.stem
    return Basemap(path, IMAGES[kind], min_zoom, max_zoom, credit, (root, root_length), leaves, data, packing)


def tile_number(zoom: int, col: int, row: int) -> int:
    """Return the number of a tile: those of coarser zooms first, then along a Hilbert curve.

    Parameters
    ----------
    zoom, col, row
        Of the tile; col and row from 0 to below ``2**zoom``.

    Returns
    -------
    int
        From 0.
    """
    number = ((1 << 2 * zoom) - 1) // 3
    x, y, side = col, row, 1 << zoom
    half = side >> 1
    while half:
        right, low = int(x & half > 0), int(y & half > 0)
        number += half * half * ((3 * right) ^ low)
        if not low:
            if right:
                x, y = side - 1 - x, side - 1 - y
            x, y = y, x
        half >>= 1
    return number


def _last(directory: tuple[Entry, ...], number: int) -> Entry | None:
    """Return the last entry that begins at a tile or before it."""
    low, high = 0, len(directory)
    while low < high:
        middle = (low + high) // 2
        if directory[middle].tile <= number:
            low = middle + 1
        else:
            high = middle
    return directory[low - 1] if low else None


@lru_cache(maxsize=64)
def _directory(path: Path, offset: int, length: int, packing: int) -> tuple[Entry, ...]:
    data: bytes = _unpacked(_read(path, offset, length), packing)
    at = 0

    def number() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = int(data[at])
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    count = number()
    tiles, tile = [], 0
    for _ in range(count):
        tile += number()
        tiles.append(tile)
    runs = [number() for _ in range(count)]
    lengths = [number() for _ in range(count)]
    offsets: list[int] = []
    for k in range(count):
        value = number()
        # 0 means: right behind the one before
        offsets.append(offsets[-1] + lengths[k - 1] if value == 0 and k else value - 1)
    return tuple(Entry(*fields) for fields in zip(tiles, offsets, lengths, runs, strict=True))


def _unpacked(data: bytes, packing: int) -> bytes:
    if packing == 1:
        return data
    return zlib.decompressobj(31).decompress(data, MOST_BYTES)


def _read(path: Path, offset: int, length: int) -> bytes:
    if not 0 <= length <= MOST_BYTES or not 0 <= offset < 1 << 62:
        msg = "it names parts that are too large"
        raise ValueError(msg)
    handle = os.open(path, os.O_RDONLY)
    try:
        data = os.pread(handle, length, offset)
    finally:
        os.close(handle)
    if len(data) < length:
        msg = "it is cut short"
        raise ValueError(msg)
    return data
