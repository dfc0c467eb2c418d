"""The engine's ways to the schedulers, a module for each."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from moraine_cluster.config import ClusterConfig


class Provider(Protocol):
    """What the backend needs of a scheduler, besides what the engine needs of a provider."""

    resources: dict[str, Any]
    """The jobs by number, as the engine keeps them."""

    help: str
    """How a person looks after jobs and ends them."""

    def cancel(self, jobs: Sequence[str]) -> Any:
        """End some jobs."""

    def known(self, jobs: Sequence[str]) -> list[str]:
        """Return those of some jobs that have not ended; all of them if the scheduler gives no answer."""

    def reasons(self, jobs: Sequence[str]) -> dict[str, str]:
        """Return why jobs wait, where the scheduler says so."""


def provider_for(config: ClusterConfig) -> Provider:
    """Return the way to the scheduler of a table.

    Raises
    ------
    UsageError
        A package that this scheduler needs is missing.
    """
    provider: Provider = import_module(f"{__name__}.{config.scheduler}").provider(config)
    return provider
