"""What ``moraine check`` finds: chunks that are missing or cannot be read, and runs that have not ended."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core import store
from moraine_core.blocks import blocks
from moraine_core.errors import StoreNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moraine_core.executor import Executor

BATCH = 64
"""Chunks that one task reads."""


def check_store(path: str | Path, executor: Executor) -> dict[str, Any]:
    """Return which chunks of a store are missing, unreadable or unfinished.

    Parameters
    ----------
    path
        An array, or a directory or group with arrays at any depth.
    executor
        Reads the chunks.

    Returns
    -------
    dict
        ``path``; ``arrays``, the number of arrays; ``chunks``, the number of all chunks; ``missing`` and
        ``unreadable``, lists of texts; ``unfinished``, the command that has not ended, or what it has left beside.

    Raises
    ------
    StoreNotFoundError
        There is nothing that could be checked.
    """
    place = Path(path)
    arrays, hidden = list(_arrays(place)), list(_hidden(place))
    if not arrays and not hidden:
        msg = f"{place} holds no zarr array" if place.exists() else f"{place} does not exist"
        raise StoreNotFoundError(msg)
    found: dict[str, Any] = {"path": str(path), "arrays": len(arrays), "chunks": 0, "missing": [], "unreadable": []}
    found["unfinished"] = [*_unfinished(arrays), *map(_stopped, hidden)]
    for array in arrays:
        opened = store.open_array(array)
        found["chunks"] += opened.nchunks
        found["missing"] += [f"{array}: chunk {index}" for index in store.missing_chunks(array)]
        parts = blocks(opened.shape, opened.shards or opened.chunks)
        batches = iter(lambda parts=parts: list(islice(parts, BATCH)), [])  # type: ignore[misc]
        tasks = [(str(array), batch) for batch in batches]
        found["unreadable"] += [text for texts in executor.map(unreadable, tasks, f"check {array}") for text in texts]
    return found


def is_whole(found: dict[str, Any]) -> bool:
    """Tell whether nothing is missing, unreadable or unfinished."""
    return not (found["missing"] or found["unreadable"] or found["unfinished"])


def unreadable(path: str, parts: Sequence[tuple[slice, ...]]) -> list[str]:
    """Return a text for each part of an array that cannot be read; a task of the executor."""
    array = store.open_array(path)
    texts = []
    for part in parts:
        try:
            array[part]
        except Exception as error:  # noqa: BLE001 - whatever a codec raises means the chunk cannot be read
            index = tuple(s.start // c for s, c in zip(part, array.shards or array.chunks, strict=True))
            texts.append(f"{path}: chunk {index}: {type(error).__name__}: {error}")
    return texts


def _arrays(place: Path) -> Iterator[Path]:
    """Yield the arrays at a path: itself, or all below a directory or group; what lies hidden is not looked into."""
    if store.is_zarr(place) and not store.is_group(place):
        yield place
    elif place.is_dir():
        for entry in sorted(place.iterdir()):
            if entry.is_dir() and not entry.is_symlink() and not entry.name.startswith("."):
                yield from _arrays(entry)


def _hidden(place: Path) -> Iterator[Path]:
    """Yield the hidden folders that interrupted runs have left, beside a path and directly in it."""
    beside = store.Staging(place.absolute()).folder
    if beside.is_dir():
        yield beside
    if place.is_dir():
        yield from sorted(place.glob(".*.moraine"))


def _unfinished(arrays: Sequence[Path]) -> Iterator[str]:
    for array in arrays:
        command = store.open_array(array).attrs.get(store.UNFINISHED)
        if command is not None:
            yield f"{array}: {command} has not ended"


def _stopped(folder: Path) -> str:
    """Return what a run has left in its hidden folder, and what to do."""
    output = folder.with_name(folder.name.removeprefix(".").removesuffix(".moraine"))
    done = _tasks_done(folder / "journal.jsonl")
    return f"{output}: a run stopped after {done} tasks; the same call continues it, --fresh starts over"


def _tasks_done(journal: Path) -> int:
    if not journal.exists():
        return 0
    entries = 0
    for line in journal.read_text(encoding="utf-8").splitlines():
        try:
            entries += "task" in json.loads(line)
        except ValueError:
            break  # the last line of a killed process may be cut
    return entries
