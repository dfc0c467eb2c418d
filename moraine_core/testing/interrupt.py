"""``python -m moraine_core.testing.interrupt``: run a command and be killed in the middle, for the conformance kit."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from moraine_core.hookspec import hookimpl
from moraine_core.options import Workers
from moraine_core.plugins import PluginHost
from moraine_core.run import run_command
from moraine_core.task import resolve

if TYPE_CHECKING:
    from moraine_core.run import TaskDone


class KilledAfter:
    """Kills this process when so many tasks are done."""

    def __init__(self, tasks: int) -> None:
        self._left = tasks

    @hookimpl
    def moraine_task_done(self, event: TaskDone) -> None:
        """Count a task, whichever it is."""
        self._left -= 1
        if self._left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


def observed_by(observer: Any) -> PluginHost:
    """Return a plugin host with one observer and nothing else."""
    host = PluginHost(entry_points=[], blocked=[])
    host.register(observer)
    return host


def main() -> None:
    """Run the call that standard input describes, until enough tasks are done."""
    call = json.load(sys.stdin)
    command: Any = resolve(call["command"])
    host = observed_by(KilledAfter(call["tasks"]))
    run_command(command, call["arguments"], Workers(n_workers=1), host=host)


if __name__ == "__main__":
    main()
