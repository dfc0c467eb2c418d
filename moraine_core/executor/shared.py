"""Objects that every task can reach: written once, mapped by all workers of a machine, never sent in a message.

An object is pickled with its buffers out of band. For processes they go into one file, which each maps read-only; for
threads they are the caller's own. However many workers there are, the arrays are in memory once, and nobody can write.
"""

from __future__ import annotations

import fcntl
import io
import itertools
import mmap
import os
import pickle
import shutil
import struct
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from moraine_core.errors import UsageError

_ALIGN = 64
_HEADER = struct.Struct("<QQ")
_PREFIX = "moraine-put-"

_objects: dict[str, Any] = {}
"""What this process has loaded, by key. Keys begin with the generation they belong to."""


_shelves = itertools.count()


class Handle:
    """Stands for a shared object in a task's arguments; unpickling it in a worker yields the object itself.

    Parameters
    ----------
    key
        ``generation:number``.
    path
        File with the object, or ``""`` where all workers live in this process.
    """

    __slots__ = ("key", "path")

    def __init__(self, key: str, path: str) -> None:
        self.key, self.path = key, path

    def __reduce__(self) -> tuple[Any, ...]:
        return fetch, (self.key, self.path)


def fetch(key: str, path: str) -> Any:
    """Return a shared object; objects of generations before this one are let go.

    Raises
    ------
    UsageError
        The executor has released it.
    """
    if key in _objects:
        return _objects[key]
    if not path or not os.path.exists(path):
        msg = f"a task uses shared object {key}, which its executor has released"
        raise UsageError(msg)
    generation = key.partition(":")[0]
    for old in [k for k in _objects if k.partition(":")[0] != generation]:
        _objects.pop(old, None)
    return _objects.setdefault(key, read(Path(path)))


class Shelf:
    """Where one executor keeps what it shares."""

    def __init__(self) -> None:
        self._name = next(_shelves)
        self._generation = 0
        self._numbers = itertools.count()
        self._keys: list[str] = []
        self.file_bytes = 0
        """Bytes of all files, which are in memory as soon as a worker has mapped them."""
        self._folder: Path | None = None
        self._lock = -1

    def put(self, obj: Any, parent: Path | None) -> Handle:
        """Make an object reachable: in a file under `parent`, or without one for threads of this process."""
        number = next(self._numbers)
        key = f"{self._name}.{self._generation}:{number}"
        head, views = _dump(obj)
        if parent is None:
            _objects[key] = pickle.loads(head, buffers=[view.toreadonly() for view in views])
            self._keys.append(key)
            return Handle(key, "")
        if self._folder is None:
            self._folder, self._lock = _make_folder(parent)
        path = self._folder / f"{self._generation}-{number}"
        write(path, head, views)
        self.file_bytes += path.stat().st_size
        return Handle(key, str(path))

    def release(self) -> None:
        """Let everything go; what workers have mapped lives until they let go too."""
        for key in self._keys:
            _objects.pop(key, None)
        self._keys = []
        self.file_bytes = 0
        self._generation += 1
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._lock)
            self._folder = None


def _make_folder(parent: Path) -> tuple[Path, int]:
    """Return a new locked folder and its lock, and remove those that killed processes have left."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # in use, another user's, or gone
            lock = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if any(folder.iterdir()):  # an empty one may be about to be locked
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    lock = os.open(folder, os.O_RDONLY)
    with suppress(OSError):  # a file system without locks: then nobody else can lock, and so remove, it either
        fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


class _Pickler(pickle.Pickler):
    """Pickles arrays with gaps as if they had none: pickle puts only whole buffers out of band."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj).__name__ == "ndarray" and type(obj).__module__ == "numpy" and not obj.flags.forc:
            return obj.copy().__reduce_ex__(5)
        return NotImplemented


def _dump(value: Any) -> tuple[bytes, list[memoryview]]:
    buffers: list[pickle.PickleBuffer] = []
    head = io.BytesIO()
    try:
        _Pickler(head, protocol=5, buffer_callback=buffers.append).dump(value)
    except Exception as error:  # pickling runs anybody's code
        msg = f"a {type(value).__name__} cannot be shared with workers: {error}"
        raise UsageError(msg) from error
    return head.getvalue(), [buffer.raw() for buffer in buffers]


def write(path: Path, head: bytes, views: list[memoryview]) -> None:
    """Write a pickled object and its buffers to a file that `read` can map."""
    sizes = struct.pack(f"<{len(views)}Q", *(view.nbytes for view in views))
    with path.open("wb") as file:
        file.write(_HEADER.pack(len(head), len(views)) + sizes + head)
        for view in views:
            file.write(b"\0" * (-file.tell() % _ALIGN))
            file.write(view)


def read(path: Path) -> Any:
    """Return the object in a file, its arrays mapped and read-only."""
    with path.open("rb") as file:
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    head_size, count = _HEADER.unpack_from(content)
    sizes = struct.unpack_from(f"<{count}Q", content, _HEADER.size)
    position = _HEADER.size + 8 * count
    head = content[position : position + head_size]
    position += head_size
    views = []
    for size in sizes:
        position += -position % _ALIGN
        views.append(content[position : position + size])
        position += size
    return pickle.loads(head, buffers=views)
