"""Reading parts of arrays through a cache of decoded blocks, for many threads at once."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from concurrent.futures import Future
from itertools import product
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_view.web.chunks import UnreadableError, plain, read_chunks

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from pathlib import Path

    import zarr
    from numpy.typing import NDArray

    Block = NDArray[Any]

MOST_BYTES = 64 << 20
"""Largest block that is decoded for a picture."""

SIDES = {1: 1 << 16, 2: 256}
"""Values along each axis that are decoded together at least, by the number of spatial axes."""


class IncompleteError(Exception):
    """A part of the data is missing on disk, or is too large to be read for a picture."""


class Reader:
    """Keeps decoded blocks of arrays, those used last.

    Parameters
    ----------
    budget
        Bytes of blocks to keep.
    """

    def __init__(self, budget: int = 128 << 20) -> None:
        self.budget = budget
        self.nbytes = 0
        self._kept: OrderedDict[Hashable, Block] = OrderedDict()
        self._pending: dict[Hashable, Future[Block]] = {}
        self._lock = Lock()

    def read(
        self,
        name: Hashable,
        array: zarr.Array[Any],
        part: Sequence[slice],
        channel: Sequence[int] = (),
        folder: Path | None = None,
    ) -> Block:
        """Read a spatial part of one channel.

        Parameters
        ----------
        name
            Of the array in the cache; another one once the data have changed.
        array
            Opened.
        part
            Of the spatial axes, inside the array.
        channel
            Indices on the other axes.
        folder
            Of the array, if a chunk without a file means that the data are not whole.

        Returns
        -------
        ndarray
            Not to be written to.

        Raises
        ------
        IncompleteError
            A chunk is not there, or the chunks are too large.
        """
        shape = array.shape[: len(part)]
        spans = [s.indices(n)[:2] for s, n in zip(part, shape, strict=True)]
        units = [_unit(chunk, SIDES[len(part)]) for chunk in array.chunks[: len(part)]]
        places = [range(low // unit, -(-high // unit)) for (low, high), unit in zip(spans, units, strict=True)]
        numbers = list(product(*places))
        if len(numbers) == 1:
            block, corner = self._block(name, array, numbers[0], units, tuple(channel), folder)
            return block[tuple(slice(low - c, high - c) for (low, high), c in zip(spans, corner, strict=True))]
        out = np.empty([max(high - low, 0) for low, high in spans], array.dtype)
        for number in numbers:
            block, corner = self._block(name, array, number, units, tuple(channel), folder)
            into, of = [], []
            for (low, high), first, size in zip(spans, corner, block.shape, strict=True):
                begin, end = max(low, first), min(high, first + size)
                into.append(slice(begin - low, end - low))
                of.append(slice(begin - first, end - first))
            out[tuple(into)] = block[tuple(of)]
        return out

    def _block(
        self,
        name: Hashable,
        array: zarr.Array[Any],
        number: tuple[int, ...],
        units: Sequence[int],
        channel: tuple[int, ...],
        folder: Path | None,
    ) -> tuple[Block, list[int]]:
        """Return a block and its first cell; of several threads that want the same one, only one reads."""
        corner = [n * unit for n, unit in zip(number, units, strict=True)]
        key = (name, number, channel)
        with self._lock:
            if (kept := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return kept, corner
            waiting = self._pending.get(key)
            if waiting is None:
                mine: Future[Block] = Future()
                self._pending[key] = mine
        if waiting is not None:
            return waiting.result(), corner
        try:
            block = self._decode(array, corner, units, channel, folder)
        except BaseException as error:
            with self._lock:
                del self._pending[key]
            mine.set_exception(error)
            raise
        with self._lock:
            del self._pending[key]
            self._kept[key] = block
            self.nbytes += block.nbytes
            while self.nbytes > self.budget and len(self._kept) > 1:
                self.nbytes -= self._kept.popitem(last=False)[1].nbytes
        mine.set_result(block)
        return block, corner

    def _decode(
        self,
        array: zarr.Array[Any],
        corner: Sequence[int],
        units: Sequence[int],
        channel: tuple[int, ...],
        folder: Path | None,
    ) -> Block:
        part = tuple(
            slice(c, min(c + unit, n)) for c, unit, n in zip(corner, units, array.shape[: len(units)], strict=True)
        )
        chunk_bytes = int(np.prod(array.chunks)) * array.dtype.itemsize
        if chunk_bytes > MOST_BYTES:
            msg = f"chunks of {array.chunks} are too large to look at; build the pyramid with smaller tiles"
            raise IncompleteError(msg)
        block = self._values(array, part, channel, folder)
        block.flags.writeable = False
        return block

    def _values(
        self, array: zarr.Array[Any], part: Sequence[slice], channel: tuple[int, ...], folder: Path | None
    ) -> Block:
        if (stored := plain(array)) is not None:
            try:
                return read_chunks(array, stored, part, channel)
            except UnreadableError as error:
                raise IncompleteError(str(error)) from error
            except FileNotFoundError:
                pass
        return read_zarr(array, (*part, *channel), folder)


def read_zarr(array: zarr.Array[Any], selection: Sequence[slice | int], folder: Path | None = None) -> Block:
    """Read a part of an array through zarr.

    Parameters
    ----------
    array
        Opened.
    selection
        A part of every axis.
    folder
        Of the array, if a chunk without a file means that the data are not whole; else that is fill values.

    Returns
    -------
    ndarray
        A copy.

    Raises
    ------
    IncompleteError
        A chunk is missing or damaged.
    """
    if folder is not None:
        require_chunks(array, folder, selection)
    try:
        return np.asarray(array[tuple(selection)])
    except (OSError, RuntimeError, ValueError, EOFError, zlib.error) as error:
        msg = f"a chunk of {'/'.join(str(array.store_path).rsplit('/', 2)[1:])} cannot be read"
        raise IncompleteError(msg) from error


def _unit(chunk: int, least: int) -> int:
    """Return how many values along an axis are decoded together: whole chunks, and at least so many."""
    return chunk * max(1, -(-least // chunk))


def require_chunks(array: zarr.Array[Any], folder: Path, selection: Sequence[slice | int]) -> None:
    """Check that the files of a part of an array are there; zarr would take a missing one for fill values.

    Parameters
    ----------
    array
        Opened.
    folder
        Where it lies.
    selection
        A part of every axis.

    Raises
    ------
    IncompleteError
        One is missing.
    """
    stored = array.shards or array.chunks
    spans = [
        range(s // size, s // size + 1)
        if isinstance(s, int)
        else range(s.indices(n)[0] // size, -(-s.indices(n)[1] // size))
        for s, n, size in zip(selection, array.shape, stored, strict=True)
    ]
    for number in product(*spans):
        if not (folder / array.metadata.encode_chunk_key(number)).is_file():
            msg = f"chunk {number} of {folder.parent.name}/{folder.name} is missing"
            raise IncompleteError(msg)
