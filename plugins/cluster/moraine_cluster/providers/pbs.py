"""Jobs of PBS Professional and OpenPBS."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from parsl.jobs.states import JobState

from moraine_cluster.providers.programs import Programs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moraine_cluster.config import ClusterConfig


def provider(config: ClusterConfig) -> Pbs:
    """Return the provider."""
    return Pbs(config)


class Pbs(Programs):
    """PBS."""

    help = "look with qstat, end them with qdel"
    mark = "#PBS"
    submitting = "qsub"
    number = r"^\s*(\d\S*)\s*$"
    canceling = "qdel"
    states: ClassVar = {
        **dict.fromkeys("QWTM", JobState.PENDING),
        **dict.fromkeys("HSU", JobState.HELD),
        **dict.fromkeys("RBE", JobState.RUNNING),
        **dict.fromkeys("CFX", JobState.COMPLETED),
    }

    def lines(self, output: str) -> Iterator[str]:
        """Yield what a job asks for."""
        yield from ("-S /bin/bash", "-N moraine", "-m n")
        yield f"-o {output}.stdout"
        yield f"-e {output}.stderr"
        yield f"-l walltime={self.walltime}"
        yield from self.resources_of_a_node()
        if self.config.partition:
            yield f"-q {self.config.partition}"
        if self.config.account:
            yield f"-A {self.config.account}"

    def resources_of_a_node(self) -> Iterator[str]:
        """Yield what a job asks for on its node."""
        config = self.config
        gpus = f":ngpus={config.gpus_per_node}" if config.gpus_per_node else ""
        memory = f":mem={config.max_memory_per_node >> 20}mb" if config.max_memory_per_node else ""
        yield f"-l select=1:ncpus={self.cores}{gpus}{memory}"
        if config.exclusive:
            yield "-l place=excl"

    def question(self, jobs: Sequence[str]) -> str:
        """Return the call of qstat; without -x, which fails where no history is kept."""
        return f"qstat {' '.join(jobs)}"

    def read(self, answer: str) -> dict[str, str]:
        """Return the letters of a table: number, name, user, time, state, queue."""
        rows = [line.split() for line in answer.splitlines()]
        return {row[0]: row[-2] for row in rows if len(row) >= 6 and row[0][0].isdigit()}
