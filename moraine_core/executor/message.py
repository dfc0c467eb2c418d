"""Tasks and answers as bytes: the whole protocol between an executor and the workers of any backend."""

from __future__ import annotations

import pickle
import traceback

from moraine_core.errors import TaskError, UsageError

TYPE_CHECKING = False  # as type checkers know it; importing typing would cost every new worker milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

MESSAGE_LIMIT = 64 * 1024
"""Largest task in bytes: paths, slices and options fit easily, an array does not."""


class Call:
    """A plain function call as a task: nothing to load, nothing to store.

    It lives here, and not with the chunk tasks, so that a worker that only calls functions loads no more than this.
    """

    __slots__ = ("args", "fn", "kwargs", "result")

    result: Any

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.fn, self.args, self.kwargs = fn, args, kwargs

    def __reduce__(self) -> tuple[Any, ...]:
        return Call, (self.fn, self.args, self.kwargs)

    def load(self) -> None:
        """Do nothing: the function reads for itself."""

    def compute(self) -> None:
        """Call the function."""
        self.result = self.fn(*self.args, **self.kwargs)

    def store(self) -> Any:
        """Return the function's result."""
        return self.result

    def __str__(self) -> str:
        return f"{getattr(self.fn, '__name__', self.fn)}{self.args!r}"[:500]


def pack(task: Any) -> bytes:
    """Return a task as bytes.

    Raises
    ------
    UsageError
        It cannot be pickled, or is larger than `MESSAGE_LIMIT`.
    """
    try:
        message = pickle.dumps(task, protocol=5)
    except Exception as error:  # pickling runs anybody's code
        msg = f"task {task}: {error}; a task is an importable function with arguments that can be pickled"
        raise UsageError(msg) from error
    if len(message) > MESSAGE_LIMIT:
        msg = (
            f"task {str(task)[:200]} is {len(message) // 1024} KiB, at most {MESSAGE_LIMIT // 1024} KiB travel "
            "to a worker; hand large objects over with put(), or store them as zarr"
        )
        raise UsageError(msg)
    return message


class Outcome:
    """How a task ended.

    Attributes
    ----------
    kind
        ``ok``; ``raised`` an exception; its worker ``died``; or it was ``dropped`` unstarted when its worker died.
    value
        The result, or the exception.
    traceback
        The worker's traceback of an exception.
    """

    __slots__ = ("kind", "traceback", "value")

    def __init__(self, kind: Literal["ok", "raised", "died", "dropped"], value: Any, traceback: str = "") -> None:
        self.kind, self.value, self.traceback = kind, value, traceback

    def pack(self) -> bytes:
        """Return the outcome as bytes; a result that cannot be pickled becomes an error that says so."""
        try:
            return pickle.dumps((self.kind, self.value, self.traceback), protocol=5)
        except Exception as error:  # noqa: BLE001 - pickling runs anybody's code
            return raised(TaskError(type(error).__name__, f"the task's result cannot be pickled: {error}")).pack()

    @staticmethod
    def unpack(answer: bytes) -> Outcome:
        """Return the outcome that `pack` wrote."""
        return Outcome(*pickle.loads(answer))


def raised(error: BaseException) -> Outcome:
    """Return the outcome of a task that raised: its own exception where that survives pickling, else a `TaskError`.

    A task that calls ``sys.exit`` has failed like any other: it must not end the run as if all were well.
    """
    text = "".join(traceback.format_exception(error))
    try:
        same = isinstance(error, Exception) and type(pickle.loads(pickle.dumps(error, protocol=5))) is type(error)
    except Exception:  # noqa: BLE001 - pickling runs anybody's code
        same = False
    return Outcome("raised", error if same else TaskError(type(error).__name__, str(error), text), text)
