"""Zarr and files: opening with clear errors, creating, parallel reading and writing, staging and publishing.

Only this module knows how an output becomes visible as a whole: it is written in a hidden sibling folder and renamed
at the end. Everything else says `Staging` and asks nothing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
import zarr.errors
import zarr.storage
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.core.metadata import ArrayV3Metadata

from moraine_core.blocks import Box, Shape, box_shape, chunks_of, is_aligned, resolve_chunks, split, to_block, to_box
from moraine_core.blosc import guarded
from moraine_core.codecs import DEFAULT, codecs_of
from moraine_core.errors import (
    BusyError,
    DiskFullError,
    IncompleteError,
    LayoutError,
    StoreNotFoundError,
    UnreadableError,
)
from moraine_core.plan import Array, Layout, RawLayout, join_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moraine_core.codecs import Compressor
    from moraine_core.plan import Chunk

PROVENANCE = "moraine"
"""Attribute that says which command made an array, with which version, arguments and inputs."""

UNFINISHED = "moraine_unfinished"
"""Attribute of an array whose command has not ended."""

WRITE_ALL_CHUNKS: Any = {"write_empty_chunks": True}
"""A chunk full of the fill value is written too: what is missing on disk was never computed."""

MADE_BY = "moraine.json"
"""Name of the file that tells who made a directory, where no array directly in it does."""

LOCK = "lock"
"""Name of the lock file in the hidden folder of an output."""

ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")


def io_threads() -> int:
    """Return how many threads read or write the pieces of one part: all cores, or a task's share of them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(os.environ.get("MORAINE_IO_THREADS") or cores)


# --------------------------------------------------------------------------------------------------- opening


def is_zarr(path: str | Path) -> bool:
    """Tell whether a path holds a zarr array or group, of format 2 or 3."""
    return any((Path(path) / name).exists() for name in ZARR_FILES)


def is_group(path: str | Path) -> bool:
    """Tell whether a path holds a zarr group."""
    return is_zarr(path) and isinstance(zarr.open(str(path), mode="r"), zarr.Group)


def open_array(path: str | Path, *, writable: bool = False) -> zarr.Array[Any]:
    """Open a zarr array of format 2 or 3; read-only unless said otherwise.

    Raises
    ------
    StoreNotFoundError
        Nothing is there, or what is there is not a zarr array.
    """
    try:
        array = zarr.open_array(str(path), mode="r+" if writable else "r")
    except (FileNotFoundError, zarr.errors.NodeTypeValidationError, zarr.errors.ContainsGroupError) as error:
        raise StoreNotFoundError(_not_an_array(Path(path))) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:  # whatever zarr meets in broken JSON
        msg = f"{path}: its zarr metadata cannot be read: {error}"
        raise StoreNotFoundError(msg) from error
    if not writable:
        return zarr.Array(guarded(zarr.AsyncArray(array.metadata, array.store_path)))
    # the setting is not stored with an array: without it a chunk full of the fill value would be left out
    opened = zarr.AsyncArray(array.metadata, array.store_path, config=WRITE_ALL_CHUNKS)
    if isinstance(array.metadata, ArrayV3Metadata):
        # other codec pipelines are for reading: the Rust one leaves such chunks out all the same, and writes in place
        object.__setattr__(opened, "codec_pipeline", BatchedCodecPipeline.from_codecs(array.metadata.codecs))
    return zarr.Array(opened)


def _not_an_array(path: Path) -> str:
    if not path.exists():
        return f"{path} does not exist; expected a zarr array"
    if not path.is_dir():
        return f"{path} is a file; expected a zarr array"
    members = sorted(entry.name for entry in path.iterdir() if is_zarr(entry))
    if members:
        return f"{path} holds {len(members)} arrays or groups ({', '.join(members[:3])}, ...); expected one zarr array"
    return f"{path} holds no zarr array"


def describe(path: str | Path) -> Array:
    """Return the metadata of a stored array.

    Raises
    ------
    StoreNotFoundError
        There is no array.
    IncompleteError
        The command that was writing it has not ended.
    """
    array = open_array(path)
    attributes = dict(array.attrs)
    if UNFINISHED in attributes:
        msg = f"{path} is unfinished: {attributes[UNFINISHED]} stopped before its last chunk; run it again to continue"
        raise IncompleteError(msg)
    # a shard is the unit that may be written by one task alone, so it counts as the chunk
    chunks = array.shards or array.chunks
    return Array(str(path), tuple(array.shape), np.dtype(array.dtype).name, tuple(chunks), attributes)


def describe_whole(path: str | Path) -> Array:
    """Return the metadata of an array that is to be read: if moraine wrote it, no chunk may have been lost since.

    In an array of another program a chunk without a file may stand for the fill value, so its absence proves nothing.

    Raises
    ------
    StoreNotFoundError, IncompleteError
        As `describe`; or chunks are gone.
    """
    array = describe(path)
    if PROVENANCE in array.attributes and (holes := missing_chunks(path)):
        msg = f"{path} lacks {len(holes)} of its chunks, the first at {holes[0]}; moraine check lists them"
        raise IncompleteError(msg)
    return array


def stamp(path: str | Path) -> int:
    """Return the newest modification time, in nanoseconds, of a path and of everything in it."""
    newest = os.stat(path).st_mtime_ns
    folders = [os.fspath(path)] if os.path.isdir(path) else []
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                newest = max(newest, entry.stat(follow_symlinks=False).st_mtime_ns)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return newest


# --------------------------------------------------------------------------------------- reading and writing


def check_aligned(array: zarr.Array[Any], block: Sequence[slice | None] | None, path: str = "") -> Box:
    """Return the bounds of a block of whole chunks.

    Raises
    ------
    LayoutError
        An axis neither is whole nor begins and ends on chunk borders or the array's end.
    """
    box = to_box(block, array.shape)
    unit = array.shards or array.chunks
    if not is_aligned(box, array.shape, unit):
        where = path or array.store_path
        msg = f"{where}: part {_text(box)} is not made of whole chunks {tuple(unit)} of {array.shape}"
        raise LayoutError(msg)
    return box


def _joined(array: zarr.Array[Any]) -> Shape:
    """Return the size of the pieces that are read or written in one call: a chunk, or several small ones in a column.

    What zarr needs for a call is worth about a megabyte of decoding.
    """
    unit = array.shards or array.chunks
    return (unit[0] * join_count(prod(unit) * np.dtype(array.dtype).itemsize), *unit[1:]) if unit else unit


def _text(box: Box) -> str:
    return ", ".join(f"{start}:{stop}" for start, stop in box)


def _each(work: Any, pieces: Sequence[Box], threads: int | None) -> None:
    """Call `work` for every piece, in threads where that can help; the first error is raised."""
    threads = min(threads or io_threads(), len(pieces))
    if threads <= 1:
        for piece in pieces:
            work(piece)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, pieces):
            pass


def ahead(items: Iterator[Any]) -> Iterator[Any]:
    """Yield items, each made in a thread while the one before is in use."""
    end = object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, items, end)
            yield item


def parallel_read_zarr(
    array: zarr.Array[Any], block: Sequence[slice | None] | None = None, *, threads: int | None = None
) -> np.ndarray[Any, Any]:
    """Read a part of an array, the pieces that lie in different chunks in threads.

    Parameters
    ----------
    array
        Any zarr array.
    block
        One slice with step 1 per axis, within the array; ``None`` for the whole.
    threads
        At most so many at once; besides the result, each holds one decoded chunk. By default the process's share
        of the cores.

    Returns
    -------
    ndarray
        The part, in native byte order.

    Raises
    ------
    LayoutError
        The part is not within the array.
    UnreadableError
        A chunk was cut short or damaged.
    """
    box = to_box(block, array.shape)
    pieces = list(split(box, _joined(array)))
    dtype = np.dtype(array.dtype).newbyteorder("=")
    if len(pieces) == 1:
        return np.asarray(_values(array, box), dtype=dtype)
    out = np.empty(box_shape(box), dtype=dtype)
    origin = [start for start, _ in box]

    def read(piece: Box) -> None:
        here = tuple(slice(a - o, b - o) for (a, b), o in zip(piece, origin, strict=True))
        out[here] = _values(array, piece)

    _each(read, pieces, threads)
    return out


def _values(array: zarr.Array[Any], box: Box) -> Any:
    try:
        return array[to_block(box)]
    except (OSError, MemoryError):
        raise
    except Exception as error:
        path = str(array.store_path).removeprefix("file://")
        msg = f"{path}: part {_text(box)} cannot be read: {error}; moraine check lists all such chunks"
        raise UnreadableError(msg) from error


def parallel_write_zarr(
    array: zarr.Array[Any],
    data: np.ndarray[Any, Any],
    block: Sequence[slice | None] | None = None,
    *,
    threads: int | None = None,
) -> None:
    """Write whole chunks of an array, different chunks in threads.

    Parameters
    ----------
    array
        Opened for writing.
    data
        Values of exactly the part's shape.
    block
        The part, as in `parallel_read_zarr`, made of whole chunks.
    threads
        At most so many at once.

    Raises
    ------
    LayoutError
        The part is not made of whole chunks, or `data` has another shape, or a dtype of a kind that would lose
        information (complex as real, float as integer).
    DiskFullError
        The file system has no room left.
    """
    path = str(array.store_path).removeprefix("file://")
    box = check_aligned(array, block, path)
    _check_data(path, data, box, np.dtype(array.dtype))
    origin = [start for start, _ in box]

    def write(piece: Box) -> None:
        here = tuple(slice(a - o, b - o) for (a, b), o in zip(piece, origin, strict=True))
        array[to_block(piece)] = data[here]

    with disk_errors(path):
        _each(write, list(split(box, _joined(array))), threads)


def _check_data(path: str, data: np.ndarray[Any, Any], box: Box, dtype: np.dtype[Any]) -> None:
    """Raise a `LayoutError` where data do not fit a part, or would lose information when stored."""
    if tuple(data.shape) != box_shape(box):
        msg = f"{path}: data of shape {tuple(data.shape)} for part {_text(box)}; expected {box_shape(box)}"
        raise LayoutError(msg)
    if not np.can_cast(data.dtype, dtype, "same_kind"):
        msg = f"{path}: data of dtype {data.dtype} cannot be stored as {dtype}"
        raise LayoutError(msg)


def read_raw(chunk: Chunk) -> np.ndarray[Any, Any]:
    """Return rows of a headerless file, in native byte order.

    Raises
    ------
    LayoutError
        The file ends before the last of the rows.
    """
    offset, shape, dtype = _rows(chunk)
    with Path(chunk.path).open("rb") as file:
        file.seek(offset)
        data = np.fromfile(file, dtype=dtype, count=prod(shape))
    if data.size < prod(shape):
        msg = f"{chunk.path} ends at byte {offset + data.nbytes}; expected rows {_text(chunk.box[:1])} of {chunk.shape}"
        raise LayoutError(msg)
    return data.astype(dtype.newbyteorder("="), copy=False).reshape(shape)


def write_raw(chunk: Chunk, data: np.ndarray[Any, Any]) -> None:
    """Write whole rows at their place in a file that has its size already; several processes may, each its own rows.

    Raises
    ------
    LayoutError
        As for `parallel_write_zarr`.
    DiskFullError
        The file system has no room left.
    """
    offset, _, dtype = _rows(chunk)
    _check_data(chunk.path, data, chunk.box, dtype)
    with disk_errors(chunk.path), Path(chunk.path).open("r+b") as file:
        file.seek(offset)
        file.write(np.ascontiguousarray(data, dtype=dtype).data)


def _rows(chunk: Chunk) -> tuple[int, Shape, np.dtype[Any]]:
    """Return where in its file a part of whole rows begins, in bytes, its shape, and the dtype as stored."""
    shape, box = chunk.shape or (), chunk.box
    if any(part != (0, n) for part, n in zip(box[1:], shape[1:], strict=True)):
        msg = f"{chunk.path}: part {_text(box)} is not made of whole rows of {shape}"
        raise LayoutError(msg)
    dtype = np.dtype(chunk.dtype).newbyteorder(">" if chunk.byteorder == "big" else "<")
    return box[0][0] * prod(shape[1:]) * dtype.itemsize, box_shape(box), dtype


@contextmanager
def disk_errors(path: str | Path) -> Iterator[None]:
    """Turn "no space left" inside the block into a `DiskFullError` that names the path."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        reason = "no space left on the device" if error.errno == errno.ENOSPC else "the disk quota is used up"
        msg = f"{path}: {reason}; what was done so far is kept, make room and run the same call again"
        raise DiskFullError(error.errno, msg) from error


def numbered_arrays(path: str | Path) -> list[Path]:
    """Return the arrays ``0.zarr``, ``1.zarr``, ... in a directory, ordered as integers; gaps are normal.

    Raises
    ------
    StoreNotFoundError
        It holds no such array.
    """
    names = sorted((p for p in Path(path).glob("*.zarr") if p.stem.isdecimal()), key=lambda p: int(p.stem))
    if not names:
        msg = f"{path}: no chunks (arrays named by numbers) in this directory"
        raise StoreNotFoundError(msg)
    return names


class ZarrParts:
    """Arrays that are read as one, concatenated along axis 0; all share the trailing shape and the dtype.

    Parameters
    ----------
    paths
        The arrays, at least one.

    Attributes
    ----------
    parts
        Their metadata.
    shape, dtype
        Of the whole.

    Raises
    ------
    StoreNotFoundError
        One does not exist.
    IncompleteError
        One is unfinished, or has lost chunks.
    LayoutError
        Parts disagree.
    """

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self.parts = [describe_whole(path) for path in paths]
        first = self.parts[0]
        for part in self.parts:
            if not part.shape:
                msg = f"{part.path} has shape (); expected at least one axis"
                raise LayoutError(msg)
            if part.shape[1:] != first.shape[1:] or part.dtype != first.dtype:
                msg = (
                    f"{part.path} has shape {part.shape} and dtype {part.dtype}; expected trailing shape "
                    f"{first.shape[1:]} and {first.dtype}, as in {first.path}"
                )
                raise LayoutError(msg)
        self.shape: Shape = (sum(part.shape[0] for part in self.parts), *first.shape[1:])
        self.dtype = first.dtype

    def read(self, trailing: Sequence[slice] = (), *, threads: int | None = None) -> np.ndarray[Any, Any]:
        """Return all parts one after another, of their trailing axes only the part `trailing`."""
        block = tuple(trailing) or (slice(None),) * (len(self.shape) - 1)
        tail = box_shape(to_box(block, self.shape[1:]))
        out = np.empty((self.shape[0], *tail), dtype=self.dtype)
        row = 0
        for part in self.parts:
            rows = slice(row, row + part.shape[0])
            out[rows] = parallel_read_zarr(open_array(part.path), (slice(None), *block), threads=threads)
            row = rows.stop
        return out


class ZarrDir(ZarrParts):
    """A directory of arrays ``0.zarr``, ``1.zarr``, ..., read as one array; each part is one chunk along axis 0.

    Parameters
    ----------
    path
        The directory.

    Raises
    ------
    StoreNotFoundError
        It holds no such array.
    LayoutError
        Parts disagree, or one has several chunks along axis 0.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(numbered_arrays(path))
        self.path = str(path)
        for part in self.parts:
            if part.shape[0] > part.chunks[0]:
                msg = f"{part.path} has chunks of {part.chunks[0]} along axis 0; expected one chunk of {part.shape[0]}"
                raise LayoutError(msg)


# ---------------------------------------------------------------------------------------------------- creating


def missing_value(dtype: str) -> Any:
    """Return what stands for "no data" in a dtype: nan, nan+nanj, or 0 and False where there is none."""
    kind = np.dtype(dtype).kind
    return {"f": np.nan, "c": complex(np.nan, np.nan), "b": False}.get(kind, 0)


def create(
    layout: Layout,
    path: str | Path,
    attributes: Mapping[str, Any] | None = None,
    *,
    compressor: Compressor = DEFAULT,
) -> None:
    """Create the array that a layout describes, empty, with every chunk to be written (none left out as fill)."""
    if isinstance(layout, RawLayout):
        with disk_errors(path):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            with Path(path).open("wb") as file:
                file.truncate(layout.nbytes)
        return
    fill = missing_value(layout.dtype) if layout.fill is None else layout.fill
    with disk_errors(path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        zarr.create_array(
            str(path),
            shape=layout.shape,
            # zarr refuses chunks longer than they need be only for empty axes; a reader sees the declared block
            chunks=layout.chunks,
            shards=layout.shards,
            compressors=codecs_of(compressor, layout.dtype),
            dtype=layout.dtype,
            fill_value=fill,
            attributes={**layout.attributes, **(attributes or {})},
            overwrite=True,
            config=WRITE_ALL_CHUNKS,
        )


def set_attributes(path: str | Path, changes: Mapping[str, Any], remove: Sequence[str] = ()) -> None:
    """Change the attributes of an array or group; only the parent process ever does."""
    node = zarr.open(str(path), mode="r+")
    kept = {name: value for name, value in dict(node.attrs).items() if name not in remove}
    node.attrs.put({**kept, **changes})


def is_created(layout: Layout, path: str | Path) -> bool:
    """Tell whether the file of a raw layout is there, with its size."""
    return Path(path).is_file() and Path(path).stat().st_size == layout.nbytes


def arrays_in(path: Path, *, deep: bool = False) -> list[Path]:
    """Return the zarr arrays at a path, sorted: itself, or those inside a directory, directly or (`deep`) anywhere."""
    if is_zarr(path):
        return [path]
    entries = sorted(path.iterdir()) if path.is_dir() else []
    if not deep:
        return [entry for entry in entries if is_zarr(entry)]
    return [array for entry in entries for array in arrays_in(entry, deep=True)]


def missing_chunks(path: str | Path) -> list[Shape]:
    """Return the grid indices of chunks (shards) of an array that have no file.

    A shard whose file is empty counts as well: zarr takes it for one full of the fill value.
    """
    array = open_array(path)
    unit = array.shards or array.chunks
    box = tuple((0, n) for n in array.shape)
    place = Path(path)
    present = _chunk_files(place)
    if array.shards:  # these are few; to look at each small chunk would take long on a disk far away
        present = {name for name in present if (place / name).stat().st_size}
    encode = array.metadata.encode_chunk_key
    return [index for index in chunks_of(box, resolve_chunks(array.shape, unit)) if encode(index) not in present]


def _chunk_files(path: Path) -> set[str]:
    return {
        os.path.relpath(os.path.join(folder, name), path).replace(os.sep, "/")
        for folder, _, names in os.walk(path)
        for name in names
    }


def write_text(path: Path, text: str) -> None:
    """Write a small text file whole or not at all: under another name first, then renamed."""
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_text(text, encoding="utf-8")
        part.replace(path)


# --------------------------------------------------------------------------------------- staging and publishing


@dataclass(frozen=True)
class Staging:
    """The hidden place where one output is written until it is published.

    Attributes
    ----------
    output
        The path that will appear in the end.
    """

    output: Path

    @property
    def folder(self) -> Path:
        """Hidden sibling of the output that holds everything unfinished."""
        return self.output.parent / f".{self.output.name}.moraine"

    @property
    def data(self) -> Path:
        """The output while it is being written."""
        return self.folder / "data" / self.output.name

    @property
    def previous(self) -> Path:
        """Where an output of before waits for the moment of exchange."""
        return self.folder / "previous"

    def prepare(self) -> None:
        """Make the hidden folder, and undo an exchange and chunks that were cut in the middle."""
        with disk_errors(self.output):
            self.data.parent.mkdir(parents=True, exist_ok=True)
        for cut in self.data.rglob("*.partial"):  # what zarr calls a chunk before it is whole
            cut.unlink()
        if self.previous.exists() and not self.output.exists():
            self.previous.rename(self.output)

    def clear(self) -> None:
        """Remove what was written so far; the published output stays."""
        for leftover in (self.data, self.previous):
            remove(leftover)

    def publish(self) -> None:
        """Let the finished data take the output's place: two renames, and what was there before is removed."""
        remove(self.previous)
        if self.output.is_symlink() or self.output.exists():
            self.output.rename(self.previous)
        self.data.rename(self.output)
        remove(self.previous)

    def close(self) -> None:
        """Remove the hidden folder but for the lock in it, which ends with whoever holds it."""
        for entry in self.folder.iterdir() if self.folder.exists() else ():
            if entry.name != LOCK:
                remove(entry)


def remove(path: Path) -> None:
    """Remove a file, link or folder, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold a lock file while the block runs; the file goes with the block.

    The lock is the kernel's and ends with the process, however it ends, so a stale file locks nobody out.

    Raises
    ------
    BusyError
        Another process holds it.
    """
    with disk_errors(path):
        handle = _locked(path, what)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        yield
    finally:
        if _is_at(handle, path):
            path.unlink()
        os.close(handle)


def _locked(path: Path, what: str) -> int:
    """Return a handle that holds the lock of the file that is at `path` now."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except (FileNotFoundError, FileExistsError):
            if path.parent.is_file():
                raise
            continue  # the holder before us has just removed the folder
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(handle, 64).decode(errors="replace").strip() or "unknown"
            os.close(handle)
            msg = f"{what} is in use by another moraine (process {holder}); wait until it has ended"
            raise BusyError(msg) from error
        # the holder before us may have removed the file after we opened it: then we locked a file nobody sees
        if _is_at(handle, path):
            return handle
        os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    """Tell whether an open file is the one that lies at a path now."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def free_bytes(path: Path) -> int:
    """Return the free room, in bytes, of the file system that holds a path or its nearest existing parent."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free
