"""The Executor: the only place where moraine runs anything in parallel.

Its names are loaded when they are asked for: a worker process imports this package and needs none of them.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it; importing typing would cost every new worker milliseconds
if TYPE_CHECKING:
    from typing import Any

    from moraine_core.executor.core import Executor
    from moraine_core.executor.worker import exit_if_unguarded

__all__ = ["Executor", "exit_if_unguarded"]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name == "Executor":
        from moraine_core.executor.core import Executor

        return Executor
    if name == "exit_if_unguarded":
        from moraine_core.executor.worker import exit_if_unguarded

        return exit_if_unguarded
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
