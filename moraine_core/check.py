"""``moraine check``: are all chunks of a store there, and can they be read?"""

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
        An array, or a directory of arrays such as a pyramid; published, or still in its hidden folder.
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
    staging = store.Staging(place.absolute())
    arrays = store.arrays_in(place)
    if not arrays and not staging.folder.exists():
        msg = f"{place} holds no zarr array" if place.exists() else f"{place} does not exist"
        raise StoreNotFoundError(msg)
    found: dict[str, Any] = {"path": str(path), "arrays": len(arrays), "chunks": 0, "missing": [], "unreadable": []}
    found["unfinished"] = list(_unfinished(staging, arrays))
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
        except Exception as error:  # noqa: BLE001, PERF203 - whatever a codec raises means the chunk cannot be read
            index = tuple(s.start // c for s, c in zip(part, array.shards or array.chunks, strict=True))
            texts.append(f"{path}: chunk {index}: {type(error).__name__}: {error}")
    return texts


def _unfinished(staging: store.Staging, arrays: Sequence[Path]) -> Iterator[str]:
    for array in arrays:
        command = store.open_array(array).attrs.get(store.UNFINISHED)
        if command is not None:
            yield f"{array}: {command} has not ended"
    journal = staging.folder / "journal.jsonl"
    if staging.folder.exists():
        done = _tasks_done(journal) if journal.exists() else 0
        yield f"{staging.output}: a run stopped after {done} tasks; the same call continues it, --fresh starts over"


def _tasks_done(journal: Path) -> int:
    entries = 0
    for line in journal.read_text(encoding="utf-8").splitlines():
        try:
            entries += "task" in json.loads(line)
        except ValueError:
            break  # the last line of a killed process may be cut
    return entries
