"""Jobs that are processes of this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from parsl.providers import LocalProvider

from moraine_cluster.providers.common import Usual, blocks, job_setup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moraine_cluster.config import ClusterConfig


def provider(config: ClusterConfig) -> Local:
    """Return the provider."""
    return Local(worker_init=job_setup(config), **blocks(config))  # type: ignore[no-untyped-call, unused-ignore]


class Local(Usual, LocalProvider):  # type: ignore[misc, unused-ignore]
    """The engine's own, asked more often."""

    help = "look with ps, end them with kill"

    @property
    def status_polling_interval(self) -> int:
        """Seconds between two looks."""
        return 1

    def known(self, jobs: Sequence[str]) -> list[str]:
        """Return those whose processes are there."""
        return [job for job in jobs if _group_lives(int(job))]


def _group_lives(pid: int) -> bool:
    try:
        os.killpg(os.getpgid(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
