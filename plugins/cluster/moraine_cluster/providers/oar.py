"""Jobs of OAR."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from parsl.jobs.states import JobState

from moraine_cluster.providers.programs import Programs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moraine_cluster.config import ClusterConfig


def provider(config: ClusterConfig) -> Oar:
    """Return the provider."""
    return Oar(config)


class Oar(Programs):
    """OAR."""

    help = "look with oarstat, end them with oardel"
    mark = "#OAR"
    submitting = "oarsub -S"
    number = r"^OAR_JOB_ID=(\d+)"
    canceling = "oardel"
    states: ClassVar = {
        **dict.fromkeys(("Waiting", "toLaunch", "Launching", "toAckReservation", "Resuming"), JobState.PENDING),
        **dict.fromkeys(("Hold", "Suspended"), JobState.HELD),
        **dict.fromkeys(("Running", "Finishing"), JobState.RUNNING),
        **dict.fromkeys(("Terminated", "Error", "toError"), JobState.COMPLETED),
    }

    def lines(self, output: str) -> Iterator[str]:
        """Yield what a job asks for; a node without more is a whole one."""
        config = self.config
        part = f"/gpu={config.gpus_per_node}" if config.gpus_per_node else f"/core={self.cores}"
        yield "-n moraine"
        yield f"-O {output}.stdout"
        yield f"-E {output}.stderr"
        yield f"-l /nodes=1{'' if config.exclusive else part},walltime={self.walltime}"
        if config.partition:
            yield f"-q {config.partition}"
        if config.account:
            yield f"--project {config.account}"

    def question(self, jobs: Sequence[str]) -> str:
        """Return the calls of oarstat, one for each job."""
        return "; ".join(f"oarstat -s -j {job}" for job in jobs)

    def read(self, answer: str) -> dict[str, str]:
        """Return the words behind the numbers."""
        return dict(re.findall(r"^\s*(\d+)\s*:\s*(\w+)", answer, re.MULTILINE))
