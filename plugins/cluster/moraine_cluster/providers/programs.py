"""Jobs of a scheduler that is asked by its programs: a script with its own lines, and programs to submit and to ask.

The engine has providers for some of these. They say nothing when a job is refused, count a suspended job or one that
has reached its walltime as broken, or cannot ask for cores; so only their base is used.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from parsl.jobs.states import JobState, JobStatus
from parsl.launchers import SimpleLauncher
from parsl.providers.cluster_provider import ClusterProvider

from moraine_cluster.providers.common import ASK_SECONDS, Usual, blocks, job_setup
from moraine_core.errors import MoraineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moraine_cluster.config import ClusterConfig


class Programs(Usual, ClusterProvider):  # type: ignore[misc, unused-ignore]
    """A scheduler; its kinds say how it is spoken to.

    Parameters
    ----------
    config
        What its jobs ask for.
    """

    help: ClassVar[str]
    mark: ClassVar[str]
    """Begins a line of the script that is meant for the scheduler."""

    submitting: ClassVar[str]
    """The program that submits a script."""

    number: ClassVar[str]
    """Pattern of the number that it prints."""

    canceling: ClassVar[str]
    """The program that ends jobs."""

    states: ClassVar[dict[str, JobState]]
    """The scheduler's words for the states of a job; whether one that has ended had failed does not matter."""

    def __init__(self, config: ClusterConfig) -> None:
        super().__init__(  # type: ignore[no-untyped-call, unused-ignore]
            config.scheduler,
            **blocks(config),
            parallelism=1,
            walltime=config.walltime,
            launcher=SimpleLauncher(),
            cmd_timeout=ASK_SECONDS,
        )
        self.config = config
        self._submitted = 0

    @property
    def cores(self) -> int:
        """Cores of a job."""
        return self.config.slots * self.config.cores_per_slot

    @abstractmethod
    def lines(self, output: str) -> Iterator[str]:
        """Yield what a job asks for, for a script that writes to `output` with the endings .stdout and .stderr."""

    @abstractmethod
    def question(self, jobs: Sequence[str]) -> str:
        """Return the command line that asks for the states of jobs."""

    @abstractmethod
    def read(self, answer: str) -> dict[str, str]:
        """Return the scheduler's word for the state of each job that an answer names."""

    def submit(self, command: str, tasks_per_node: int, job_name: str = "moraine") -> str:
        """Submit a job that runs a command line once.

        Raises
        ------
        MoraineError
            The scheduler refuses it; with its own words.
        """
        self._submitted += 1
        output = f"{self.script_dir}/job-{self._submitted}"
        script = Path(f"{output}.sh")
        wanted = [f"{self.mark} {line}" for line in (*self.lines(output), *self.config.options)]
        call = self.launcher(command, tasks_per_node, self.nodes_per_block, self.script_dir)
        script.write_text("\n".join(["#!/bin/bash", *wanted, "", job_setup(self.config), call, ""]), encoding="utf-8")
        script.chmod(0o700)
        words = f"{self.submitting} {shlex.quote(str(script))}"
        code, out, err = self.call(words)
        found = re.search(self.number, out, re.MULTILINE)
        if code != 0 or found is None:
            msg = f"{self.submitting.split()[0]} refuses a job: {' '.join((err or out).split())}"
            raise MoraineError(msg)
        self.resources[found[1]] = {"job_id": found[1], "status": _status(JobState.PENDING, output), "output": output}
        return found[1]

    def cancel(self, job_ids: Sequence[Any]) -> list[bool]:
        """End jobs; return for each whether the scheduler was told."""
        code, _, _ = self.call(f"{self.canceling} {' '.join(job_ids)}")
        for job in job_ids if code == 0 else ():
            self.resources[job]["status"] = JobStatus(JobState.CANCELLED)
        return [code == 0] * len(job_ids)

    def _status(self) -> None:
        rows: dict[Any, Any] = self.resources
        for job, state in self._ask([job for job in rows if not rows[job]["status"].terminal]).items():
            rows[job]["status"] = _status(state, rows[job]["output"])

    def _ask(self, jobs: Sequence[str]) -> dict[str, JobState]:
        """Return the states of those jobs of which the scheduler says something.

        A job that it does not know any more has ended: either it says nothing of it at all, or complains of its number.
        A complaint without the number is one of the scheduler's own troubles.
        """
        if not jobs:
            return {}
        code, out, err = self.call(self.question(jobs))
        said = {_short(job): word for job, word in self.read(out).items()}
        states = {}
        for job in jobs:
            if _short(job) in said:
                states[job] = self.states.get(said[_short(job)], JobState.UNKNOWN)
            elif code == 0 or re.search(rf"\b{re.escape(_short(job))}\b", err):
                states[job] = JobState.COMPLETED
        return states

    def known(self, jobs: Sequence[str]) -> list[str]:
        """Return those that have not ended."""
        states: dict[str, JobState] = {}
        with contextlib.suppress(Exception):  # the question has a limit of time
            states = self._ask(jobs)
        return [job for job in jobs if states.get(job) != JobState.COMPLETED]


def _short(job: str) -> str:
    """Return the number of a job without its server, which some answers cut."""
    return job.partition(".")[0]


def _status(state: JobState, output: str) -> JobStatus:
    return JobStatus(state, stdout_path=f"{output}.stdout", stderr_path=f"{output}.stderr")
