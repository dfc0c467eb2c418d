"""The Executor: the only place where moraine runs anything in parallel."""

from __future__ import annotations

from moraine_core.executor.core import Executor
from moraine_core.executor.worker import exit_if_unguarded

__all__ = ["Executor", "exit_if_unguarded"]
