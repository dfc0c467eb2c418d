"""Every error moraine raises on purpose: one root, and each kind is a builtin error as well.

A message is one sentence that names the parameter, the path, what was found and what was expected.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it; importing typing would cost every new worker milliseconds
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class MoraineError(Exception):
    """Root of all errors raised on purpose."""


class UsageError(MoraineError, ValueError):
    """A call is wrong in itself: an unknown or missing argument, a value that does not fit (exit code 2)."""


class LayoutError(MoraineError, ValueError):
    """Shape, dtype, chunks or alignment of an array are not what a command declared."""


class StoreNotFoundError(MoraineError, FileNotFoundError):
    """A path that should be read does not exist or holds nothing that can be read."""


class IncompleteError(MoraineError, ValueError):
    """An array was never finished: the command that wrote it stopped before its last chunk."""


class UnreadableError(MoraineError, OSError):
    """A stored chunk is there, but is not what its array's metadata say: cut short, or damaged."""


class BusyError(MoraineError, RuntimeError):
    """Another process is writing the same output or running the same pipeline."""


class MemoryBudgetError(MoraineError, MemoryError):
    """Not even one task fits into the memory that may be used."""


class DiskFullError(MoraineError, OSError):
    """The file system of an output or of the scratch folder has no room left."""

    def __str__(self) -> str:
        return self.strerror or super().__str__()


class DeviceError(MoraineError, RuntimeError):
    """A GPU was asked for that cannot be used."""


class TaskError(MoraineError, RuntimeError):
    """Stands in for an exception of a task that cannot be pickled.

    Parameters
    ----------
    type_name
        Name of the original exception's type.
    message
        Its text.
    traceback
        The worker's traceback as text.
    """

    def __init__(self, type_name: str, message: str, traceback: str = "") -> None:
        super().__init__(type_name, message, traceback)
        self.type_name = type_name
        self.message = message
        self.traceback = traceback

    def __str__(self) -> str:
        return f"{self.type_name}: {self.message}"


class WorkerDiedError(MoraineError, RuntimeError):
    """A worker process ended while it held tasks.

    Attributes
    ----------
    pid
        The process that is gone.
    exitcode
        Its exit code; the negative number of the signal that killed it; None if that is not known.
    node
        The other machine that it ran on; empty for this one.
    """

    pid: int = 0
    exitcode: int | None = None
    node: str = ""


class TasksError(MoraineError, RuntimeError):
    """Several tasks of a plan that goes on after failures have failed.

    Parameters
    ----------
    failures
        Text of each failure by the number of its task.
    total
        Number of all tasks.
    """

    def __init__(self, failures: Mapping[int, str], total: int) -> None:
        super().__init__(dict(failures), total)
        self.failures = dict(failures)
        self.total = total

    def __str__(self) -> str:
        count = f"{len(self.failures)} of {self.total} tasks failed; the others are done"
        return "\n".join([count, *(f"task {number}: {text}" for number, text in self.failures.items())])


class PluginError(MoraineError, ImportError):
    """A plugin cannot be loaded, or a command is not installed."""


class ProblemsError(MoraineError, ValueError):
    """Several faults found before any work began, reported together.

    Parameters
    ----------
    problems
        The faults, in the order they were found.
    """

    def __init__(self, problems: Sequence[Exception]) -> None:
        super().__init__(list(problems))
        self.problems = list(problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


def raise_problems(problems: Sequence[Exception]) -> None:
    """Raise what was found: nothing, the one problem itself, or all of them as one `ProblemsError`."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise ProblemsError(problems)
