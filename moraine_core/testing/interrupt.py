"""``python -m moraine_core.testing.interrupt``: run a command and be killed in the middle, for the conformance kit."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from moraine_core.hookspec import hookimpl
from moraine_core.options import Workers
from moraine_core.run import run_command
from moraine_core.task import resolve

if TYPE_CHECKING:
    from moraine_core.run import TaskDone


class KilledAfter:
    """Kills this process when so many tasks are done."""

    def __init__(self, tasks: int) -> None:
        self._left = tasks

    @hookimpl
    def moraine_task_done(self, event: TaskDone) -> None:  # noqa: ARG002 - any task counts
        self._left -= 1
        if self._left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


class ObservedHost:
    """A plugin host with one observer and nothing else."""

    def __init__(self, observer: Any) -> None:
        import pluggy

        from moraine_core import hookspec

        manager = pluggy.PluginManager("moraine")
        manager.add_hookspecs(hookspec)
        manager.register(observer)
        self.hook = manager.hook


def main() -> None:
    """Run the call that standard input describes, until enough tasks are done."""
    call = json.load(sys.stdin)
    command: Any = resolve(call["command"])
    host: Any = ObservedHost(KilledAfter(call["tasks"]))
    run_command(command, call["arguments"], Workers(n_workers=1), host=host)


if __name__ == "__main__":
    main()
