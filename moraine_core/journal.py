"""The journal of a run: which tasks are finished, with their small results, so that the same call can continue."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

from moraine_core.errors import MoraineError
from moraine_core.store import disk_errors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import FileIO
    from pathlib import Path

    from moraine_core.plan import Plan


class JournalMismatchError(MoraineError):
    """The journal is of another call, or of the same call with another plan: the run starts over."""


def digest(value: Any) -> str:
    """Return a stable digest of plain data."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def plan_digest(plan: Plan) -> str:
    """Return a digest of all that a plan does."""
    layouts = [(type(x).__name__, x.path, x.shape, x.dtype, x.chunks, str(x.fill)) for x in plan.outputs]
    tasks = [(t.kernel, str(t.inputs), str(t.outputs), str(sorted(t.kwargs.items())), str(t.trim)) for t in plan.tasks]
    return digest([layouts, tasks, sorted(plan.shared)])


def plain(value: Any) -> Any:
    """Return a small result as plain data, the same whether it comes from a task or out of a journal.

    Raises
    ------
    TypeError
        It holds something other than numbers, text, lists, dicts, None and small numpy arrays.
    """
    return json.loads(_dumps(value))


def _dumps(value: Any) -> str:
    def convert(item: Any) -> Any:
        if hasattr(item, "tolist"):  # numpy scalars and arrays
            return item.tolist()
        msg = f"a task's small result holds a {type(item).__name__}; expected numbers, text, lists and dicts"
        raise TypeError(msg)

    return json.dumps(value, default=convert)


class Journal:
    """Lines of JSON beside the hidden output: the call's fingerprint, then one line per finished task.

    Parameters
    ----------
    path
        The file.
    fingerprint
        Digest of command, version, arguments and the inputs' identities.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        self._fingerprint = fingerprint
        self._plans: list[str] = []
        self._results: dict[tuple[int, int], Any] = {}
        self.published: set[str] = set()
        self._whole = 0
        self._file: FileIO | None = None

    def load(self) -> bool:
        """Read what an interrupted run has left; return whether it was the same call."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return False
        # the last line of a killed process may be cut: the run continues after the whole ones
        self._whole = content.rfind(b"\n") + 1
        try:
            entries = [json.loads(line) for line in content[: self._whole].splitlines()]
            if not entries or entries[0].get("call") != self._fingerprint:
                return False
            for entry in entries:
                self._note(entry)
        except (ValueError, KeyError, AttributeError):
            return False  # not written by us, or damaged: nothing in it can be trusted
        return True

    def _note(self, entry: Mapping[str, Any]) -> None:
        if "digest" in entry:
            self._plans.append(entry["digest"])
        elif "task" in entry:
            self._results[entry["plan"], entry["task"]] = entry["result"]
        elif "published" in entry:
            self.published.add(entry["published"])

    def start(self, *, fresh: bool) -> None:
        """Open for writing; `fresh` forgets what was there."""
        if fresh:
            self._plans, self._results, self.published, self._whole = [], {}, set(), 0
        with disk_errors(self._path):
            # unbuffered: what a full disk has refused must not be written, and refused, once more when it is closed
            self._file = self._path.open("ab", buffering=0)
            if self._whole < os.fstat(self._file.fileno()).st_size:
                self._file.truncate(self._whole)
            if fresh:
                self._write({"call": self._fingerprint})

    def begin_plan(self, number: int, plan: Plan) -> dict[int, Any]:
        """Return the results of tasks of this plan that are already done.

        Raises
        ------
        JournalMismatchError
            The interrupted run had another plan at this place.
        """
        found = plan_digest(plan)
        if number < len(self._plans):
            if self._plans[number] != found:
                raise JournalMismatchError
            return {task: result for (n, task), result in self._results.items() if n == number}
        self._plans.append(found)
        self._write({"digest": found})
        return {}

    def task_done(self, plan: int, task: int, result: Any) -> None:
        """Note a finished task."""
        self._write({"plan": plan, "task": task, "result": result})

    def output_published(self, name: str) -> None:
        """Note that an output has taken its place."""
        self._write({"published": name})

    def _write(self, entry: Mapping[str, Any]) -> None:
        if self._file is None:
            msg = "the journal is not open"
            raise RuntimeError(msg)
        line = f"{_dumps(entry)}\n".encode()
        with disk_errors(self._path):
            if self._file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
