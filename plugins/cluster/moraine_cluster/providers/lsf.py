"""Jobs of LSF."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from parsl.jobs.states import JobState
from parsl.utils import wtime_to_minutes

from moraine_cluster.providers.programs import Programs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moraine_cluster.config import ClusterConfig


def provider(config: ClusterConfig) -> Lsf:
    """Return the provider."""
    return Lsf(config)


class Lsf(Programs):
    """LSF."""

    help = "look with bjobs, end them with bkill"
    mark = "#BSUB"
    submitting = "bsub <"
    number = r"^Job <(\d+)> is submitted"
    canceling = "bkill"
    states: ClassVar = {
        **dict.fromkeys(("PEND", "WAIT", "PROV"), JobState.PENDING),
        **dict.fromkeys(("PSUSP", "USUSP", "SSUSP"), JobState.HELD),
        **dict.fromkeys(("RUN", "UNKWN"), JobState.RUNNING),
        **dict.fromkeys(("DONE", "EXIT", "ZOMBI"), JobState.COMPLETED),
    }

    def lines(self, output: str) -> Iterator[str]:
        """Yield what a job asks for."""
        config = self.config
        yield "-J moraine"
        yield f"-o {output}.stdout"
        yield f"-e {output}.stderr"
        yield f"-W {wtime_to_minutes(self.walltime)}"
        yield f"-n {self.cores}"
        yield '-R "span[hosts=1]"'
        if config.max_memory_per_node:
            yield f'-R "rusage[mem={config.max_memory_per_node >> 20}MB]"'
        if config.gpus_per_node:
            yield f'-gpu "num={config.gpus_per_node}"'
        if config.exclusive:
            yield "-x"
        if config.partition:
            yield f"-q {config.partition}"
        if config.account:
            yield f"-P {config.account}"

    def question(self, jobs: Sequence[str]) -> str:
        """Return the call of bjobs."""
        return f"bjobs -noheader -o 'jobid stat' {' '.join(jobs)}"

    def read(self, answer: str) -> dict[str, str]:
        """Return the words beside the numbers."""
        rows = [line.split() for line in answer.splitlines()]
        return {row[0]: row[1] for row in rows if len(row) == 2 and row[0].isdecimal()}
