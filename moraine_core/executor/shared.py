"""Objects that every task can reach: written once, mapped by all workers of a machine, never sent in a message.

An object is pickled with its buffers out of band into one file, which each process maps read-only: however many
workers there are, the arrays are in memory once.
"""

from __future__ import annotations

import mmap
import pickle
import struct
from pathlib import Path
from typing import Any

_ALIGN = 64
_HEADER = struct.Struct("<QQ")

_objects: dict[str, Any] = {}
"""What this process has loaded, by key. Keys begin with the generation they belong to."""


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
    """Return a shared object; objects of generations before this one are let go."""
    if key not in _objects:
        generation = key.partition(":")[0]
        if path:
            for old in [k for k in _objects if k.partition(":")[0] != generation]:
                del _objects[old]
        _objects[key] = read(Path(path))
    return _objects[key]


def keep(key: str, value: Any) -> None:
    """Make an object reachable in this process without a file."""
    _objects[key] = value


def forget(keys: list[str]) -> None:
    """Let objects of this process go."""
    for key in keys:
        _objects.pop(key, None)


def write(path: Path, value: Any) -> None:
    """Write an object to a file that `read` can map."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
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
    return pickle.loads(head, buffers=views)  # noqa: S301 - written by our own parent
