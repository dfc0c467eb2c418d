"""Jobs of Slurm."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from parsl.launchers import SingleNodeLauncher, SrunLauncher
from parsl.providers import SlurmProvider

from moraine_cluster.providers.common import ASK_SECONDS, Usual, blocks, job_setup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moraine_cluster.config import ClusterConfig


def provider(config: ClusterConfig) -> Slurm:
    """Return the provider."""
    memory = [f"#SBATCH --mem={config.max_memory_per_node >> 20}M"] if config.max_memory_per_node else []
    return Slurm(
        **blocks(config),
        worker_init=job_setup(config),
        partition=config.partition,
        account=config.account,
        cores_per_node=config.slots * config.cores_per_slot,
        gpus_per_node=config.gpus_per_node or None,
        walltime=config.walltime,
        exclusive=config.exclusive,
        scheduler_options="\n".join([*memory, *(f"#SBATCH {option}" for option in config.options), ""]),
        launcher=SrunLauncher() if config.nodes_per_job > 1 else SingleNodeLauncher(),
        cmd_timeout=ASK_SECONDS,
    )


class Slurm(Usual, SlurmProvider):  # type: ignore[misc, unused-ignore]
    """The engine's own, asked more often."""

    help = "look with squeue, end them with scancel"

    def known(self, jobs: Sequence[str]) -> list[str]:
        """Return those that squeue lists."""
        listed = self._ask("%i", jobs)
        return list(jobs) if listed is None else [job for job in listed if job in jobs]

    def reasons(self, jobs: Sequence[str]) -> dict[str, str]:
        """Return why jobs wait, in a word of Slurm's."""
        rows = [line.split(None, 1) for line in self._ask("%i %r", jobs) or []]
        return {row[0]: row[1] for row in rows if len(row) == 2 and row[1] != "None"}

    def _ask(self, columns: str, jobs: Sequence[str]) -> list[str] | None:
        with contextlib.suppress(Exception):  # the question has a limit of time
            words = f"squeue --noheader --format='{columns}' --jobs={','.join(jobs)}"
            _, out, _ = self.call(words)  # it fails if it knows none of them
            return [line for line in out.splitlines() if line.strip()]
        return None
