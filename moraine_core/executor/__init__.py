"""The Executor: the only place where moraine runs anything in parallel."""

from __future__ import annotations

from moraine_core.executor.core import Executor

__all__ = ["Executor"]
