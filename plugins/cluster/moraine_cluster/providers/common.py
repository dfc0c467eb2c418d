"""What the jobs of all schedulers have in common."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parsl.jobs.states import JobState, JobStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moraine_cluster.config import ClusterConfig

POLL_SECONDS = 10
"""How often a scheduler is asked for the state of the jobs."""

ASK_SECONDS = 60
"""How long it may take to answer."""


SHORT_TMPDIR = "if [ ${#TMPDIR} -gt 70 ]; then export TMPDIR=/tmp; fi"
"""Sockets lie in TMPDIR, and the system takes no more than 107 characters for the path of one."""


def blocks(config: ClusterConfig) -> dict[str, Any]:
    """Return how many jobs there may be, in the engine's words."""
    return {
        "nodes_per_block": config.nodes_per_job,
        "init_blocks": config.jobs.start,
        "min_blocks": config.jobs.min,
        "max_blocks": config.jobs.max,
    }


def job_setup(config: ClusterConfig) -> str:
    """Return the first lines of the job script: this environment's programs first, then the user's own lines."""
    folder = shlex.quote(str(Path(sys.executable).parent))
    return "\n".join(["set -e", f"export PATH={folder}:$PATH", SHORT_TMPDIR, *config.setup, ""])


class Usual:
    """What most ways to a scheduler share; comes before the engine's class among the bases."""

    def status(self, job_ids: Sequence[str]) -> list[JobStatus]:
        """Return the states of some jobs.

        The engine gives up when all jobs so far have failed. One that was ended by somebody, for its memory or for its
        walltime is no reason to; one that ends before it has reported is, and of that the engine keeps count itself.
        """
        found: list[JobStatus] = super().status(job_ids)  # type: ignore[misc]
        for status in found:
            if status.state == JobState.FAILED:
                status.state = JobState.COMPLETED
            if status.terminal and status.message is None:
                status.message = "a job ended before any slot of it had answered"
        return found

    @property
    def status_polling_interval(self) -> int:
        """Seconds between two questions for the state of the jobs."""
        return POLL_SECONDS

    def call(self, words: str) -> tuple[int, str, str]:
        """Run a program of the scheduler; return its exit code, and what it says."""
        answer: tuple[int, str, str] = self.execute_wait(words)  # type: ignore[attr-defined]
        return answer

    def reasons(self, jobs: Sequence[str]) -> dict[str, str]:
        """Return why jobs wait: nothing is asked."""
        del jobs
        return {}
