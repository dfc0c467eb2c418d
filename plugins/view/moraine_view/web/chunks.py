"""Chunks of local arrays, decoded in the thread that asks for them.

zarr hands each read to an event loop and to another thread and back. For a tile of two chunks that takes half of the
time, and more when several connections ask at once.
"""

from __future__ import annotations

import math
import mmap
import struct
import sys
import weakref
import zlib
from collections import deque
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BytesCodec
from zarr.storage import LocalStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

DECODERS = {"zstd": numcodecs.Zstd, "blosc": numcodecs.Blosc, "gzip": numcodecs.GZip}
"""Compressors whose chunks say by themselves how they were made."""

LARGE = 1 << 16
"""Bytes from which an array gets pages of its own."""

SPARE = 8 << 20
"""Bytes of pages of one size that are kept for the next block."""

_spare: dict[int, deque[mmap.mmap]] = {}
"""Pages that no array uses any more, by their size."""


class UnreadableError(Exception):
    """A chunk is cut short or damaged, or its file may not be read."""


class Plain(NamedTuple):
    """How the chunks of an array are stored, if it is simple enough."""

    folder: Path
    compressor: str
    """A key of `DECODERS`, or empty."""
    is_swapped: bool
    """Bytes are in the other order than this machine has them."""


def plain(array: Any) -> Plain | None:
    """Tell how the chunks of an array are stored.

    Parameters
    ----------
    array
        Opened.

    Returns
    -------
    Plain or None
        None where zarr must read: older formats, shards, other codecs, or a store that is no folder.
    """
    if not isinstance(array, zarr.Array) or not isinstance(array.store_path.store, LocalStore):
        return None
    if array.metadata.zarr_format != 3 or array.shards is not None or array.dtype.kind not in "biufc":
        return None
    first, *rest = array.metadata.codecs
    names = [str(codec.to_dict()["name"]) for codec in rest]
    if not isinstance(first, BytesCodec) or len(names) > 1 or not set(names) <= set(DECODERS):
        return None
    is_swapped = array.dtype.itemsize > 1 and first.endian is not None and first.endian.value != sys.byteorder
    folder = Path(array.store_path.store.root) / array.store_path.path
    return Plain(folder, names[0] if names else "", is_swapped)


def read_chunks(array: zarr.Array[Any], stored: Plain, part: Sequence[slice], channel: Sequence[int]) -> NDArray[Any]:
    """Read whole chunks of one channel.

    Parameters
    ----------
    array
        Opened.
    stored
        What `plain` says of it.
    part
        Of the first axes; begins where a chunk does, and ends there or at the edge.
    channel
        Indices on the other axes.

    Returns
    -------
    ndarray
        Of the shape of `part`.

    Raises
    ------
    FileNotFoundError
        A chunk has no file.
    UnreadableError
        A chunk is damaged.
    """
    sizes = array.chunks[: len(part)]
    behind = list(zip(channel, array.chunks[len(part) :], strict=True))
    inside: tuple[Any, ...] = (..., *(index % size for index, size in behind))
    spans = [range(s.start // size, -(-s.stop // size)) for s, size in zip(part, sizes, strict=True)]
    shape = [s.stop - s.start for s in part]
    if math.prod(map(len, spans)) == 1 and math.prod(array.chunks[len(part) :]) == 1:
        whole = _empty(array.chunks, array.dtype)
        _decode(array, stored, (*(span.start for span in spans), *channel), whole)
        cut: NDArray[Any] = whole[inside][tuple(map(slice, shape))]
        return cut
    out, chunk = _empty(shape, array.dtype), np.empty(array.chunks, array.dtype)
    for number in product(*spans):
        _decode(array, stored, (*number, *(index // size for index, size in behind)), chunk)
        at = [n * size - s.start for n, size, s in zip(number, sizes, part, strict=True)]
        values = chunk[inside][tuple(slice(n - a) for a, n in zip(at, shape, strict=True))]
        out[tuple(slice(a, a + n) for a, n in zip(at, values.shape, strict=True))] = values
    return out


def _empty(shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Make an array in pages that were used before, if there are such of its size.

    Blocks live for long and are made by many threads. In what these need for a moment in between, the C library would
    keep twice as much; and fresh pages for each block would cost a third of the time of a tile.
    """
    n = math.prod(shape)
    size = n * dtype.itemsize
    if size < LARGE:
        return np.empty(shape, dtype)
    free = _spare.setdefault(size, deque(maxlen=SPARE // size))
    try:
        pages = free.pop()
    except IndexError:
        pages = mmap.mmap(-1, size)
    out = np.frombuffer(pages, dtype, n)
    weakref.finalize(out, free.append, pages).atexit = False  # it lives as long as any part of it
    return out.reshape(shape)


def _decode(array: zarr.Array[Any], stored: Plain, number: tuple[int, ...], out: NDArray[Any]) -> None:
    """Read a chunk into an array of its shape."""
    try:
        data = (stored.folder / array.metadata.encode_chunk_key(number)).read_bytes()
        if not data or (stored.compressor == "blosc" and not _is_whole_blosc(data, out.nbytes)):
            raise EOFError
        if stored.compressor:
            DECODERS[stored.compressor]().decode(data, out)
        else:
            out[...] = np.frombuffer(data, out.dtype).reshape(out.shape)
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError, ValueError, EOFError, zlib.error) as error:
        msg = f"chunk {number} of {stored.folder.parent.name}/{stored.folder.name} cannot be read"
        raise UnreadableError(msg) from error
    if stored.is_swapped:
        out.byteswap(inplace=True)


def _is_whole_blosc(data: bytes, n_bytes: int) -> bool:
    """Compare the sizes in the header of a chunk with those that are: the decoder itself would read on behind its end.

    From the format of Blosc 1: at byte 4 the size of the values, at byte 12 that of the chunk.
    """
    return len(data) >= 16 and data[4:8] + data[12:16] == struct.pack("<II", n_bytes, len(data))
