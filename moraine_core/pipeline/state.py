"""What is remembered of a pipeline between runs: one record per step, in a file that is replaced as a whole."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import psutil

from moraine_core.errors import MoraineError
from moraine_core.store import write_text

if TYPE_CHECKING:
    from moraine_core.pipeline.file import Pipeline

Record: TypeAlias = dict[str, Any]
"""A step's record; while the step runs also ``process``: who runs it."""

CLOCK_SECONDS = 2.0
"""Start times of one process may seem to differ by this much, as the system's clock is adjusted."""


class State:
    """The records of a pipeline's steps and the folder they are in.

    Parameters
    ----------
    pipeline
        Whose; another file of the same name in the same work directory counts as the same pipeline.

    Raises
    ------
    MoraineError
        The file of the records cannot be understood.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.folder = Path(pipeline.workdir, ".moraine", pipeline.stem)
        self._file = self.folder / "state.json"
        self.records: dict[str, Record] = {}
        try:
            self.records = dict(json.loads(self._file.read_text(encoding="utf-8"))["steps"])
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{self._file} is not a record of steps: {error}; remove it to start over"
            raise MoraineError(msg) from error

    @property
    def lock(self) -> Path:
        """The file that one run at a time holds."""
        return self.folder / "lock"

    def log(self, step: str) -> Path:
        """Return the path of a step's log."""
        return self.folder / "logs" / f"{step}.log"

    def quicklook(self, step: str, output: str) -> Path:
        """Return the path of the picture of one of a step's outputs."""
        return self.folder / "quicklook" / f"{step}__{Path(output).name}.png"

    def put(self, record: Record) -> None:
        """Remember a step's record, on disk as well."""
        self.records[record["name"]] = record
        text = json.dumps({"version": 1, "steps": self.records}, indent=1, ensure_ascii=False, default=str)
        write_text(self._file, text + "\n")


def this_process() -> dict[str, Any]:
    """Return what tells this process from all others, also from later ones of the same number."""
    pid = os.getpid()
    return {"host": platform.node(), "pid": pid, "created": psutil.Process(pid).create_time()}


def is_alive(process: dict[str, Any]) -> bool:
    """Tell whether a process still runs; one of another machine cannot be seen and is taken to."""
    if process["host"] != platform.node():
        return True
    try:
        created: float = psutil.Process(process["pid"]).create_time()
    except psutil.NoSuchProcess:
        return False
    return abs(created - float(process["created"])) < CLOCK_SECONDS
