"""What this package brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moraine_core import hookimpl
from moraine_core.executor.backend import ExecutorSpec

if TYPE_CHECKING:
    from collections.abc import Iterable


@hookimpl
def moraine_executors() -> Iterable[ExecutorSpec]:
    """Bring the kind ``cluster``, which the user's tables configure."""
    return [
        ExecutorSpec(
            "cluster",
            "moraine_cluster.parsl_backend:make_backend",
            "jobs of a batch scheduler",
            schema="moraine_cluster.config:ClusterConfig",
        )
    ]
