"""Every hook a plugin can implement, on one page.

A module with hooks is named in the entry-point group ``moraine.plugins``; its functions carry `hookimpl`. A command
needs no hook of its own: it is named in the group ``moraine.commands``, and the `Command` object is the plugin.
A module's ``MORAINE_API``, if it has one, is the interface number that it was written for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from typing import Any

    from moraine_core.declaration import Command
    from moraine_core.executor.backend import ExecutorSpec
    from moraine_core.plan import Plan
    from moraine_core.run import Record, TaskDone

API = 1
"""Number of the interface between host and plugins; a plugin made for a higher one is not loaded."""

hookspec = pluggy.HookspecMarker("moraine")
hookimpl = pluggy.HookimplMarker("moraine")


@hookspec
def moraine_commands() -> Iterable[Command]:  # type: ignore[empty-body]
    """Bring several commands from one module."""


@hookspec
def moraine_executors() -> Iterable[ExecutorSpec]:  # type: ignore[empty-body]
    """Bring named executor backends, chosen with ``--executor NAME``."""


@hookspec
def moraine_plan_ready(plan: Plan) -> None:
    """Hear that a plan has been checked and its tasks are about to run."""


@hookspec
def moraine_task_done(event: TaskDone) -> None:
    """Hear that one task of the running plan has ended well."""


@hookspec
def moraine_finished(record: Record) -> None:
    """Hear that a command has ended, well or not."""


@hookspec(firstresult=True)
def moraine_summary(path: Path) -> dict[str, Any] | None:
    """Say what is at a path, for ``moraine info``; ``None`` leaves it to the next plugin, and to moraine in the end."""


@hookspec(firstresult=True)
def moraine_quicklook(pyramid: Path, png: Path, options: dict[str, Any]) -> Path | None:
    """Draw a picture of a pyramid; `options` are those of `moraine_core.quicklook.OPTIONS`, the files of them read."""


@hookspec(firstresult=True)
def moraine_view(paths: Sequence[Path], options: dict[str, Any]) -> dict[str, Any] | None:
    """Let people look at pyramids; return fields for ``--json``.

    `options` are those of the command line, the files of dates and image pairs read, and ``say``: a function that takes
    what is to be told before the command ends.
    """
