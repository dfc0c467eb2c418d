"""The table ``[executors.NAME]`` of a cluster: what the jobs ask the scheduler for, and where files are shared."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from moraine_core.arguments import Size  # noqa: TC001 - the annotations are evaluated
from moraine_core.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "": 1}

_FOREIGN = {
    "local": ("partition", "account", "exclusive", "options", "image", "namespace", "volumes"),
    "kubernetes": ("partition", "account", "exclusive", "options"),
}
"""Keys that mean nothing to a scheduler."""

_OF_PODS = ("image", "namespace", "volumes")


@dataclass(frozen=True)
class Jobs:
    """How many jobs.

    Attributes
    ----------
    start
        Jobs at the beginning.
    min, max
        Bounds of their number while there is work.
    idle
        How long a job may be without a task before it is given back, such as ``2m``.
    """

    start: Annotated[int, "jobs at the beginning (count)"] = 1
    min: Annotated[int, "fewest jobs (count)"] = 0
    max: Annotated[int, "most jobs (count)"] = 1
    idle: Annotated[str, "how long a job may be idle, such as 2m"] = "2m"

    def __post_init__(self) -> None:
        if not 0 <= self.min <= self.max or not 1 <= self.start <= self.max:
            msg = f"start {self.start}, min {self.min}, max {self.max}; expected 1 <= start <= max and 0 <= min <= max"
            raise UsageError(msg)
        _ = self.idle_seconds

    @property
    def idle_seconds(self) -> float:
        """Return `idle` in seconds."""
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([smh]?)\s*", self.idle)
        if match is None:
            msg = f"idle is {self.idle!r}; expected a time such as 90s, 2m or 1h"
            raise UsageError(msg)
        return float(match[1]) * _UNITS[match[2]]


@dataclass(frozen=True)
class ClusterConfig:
    """A cluster, and what of it a run may use.

    Attributes
    ----------
    scheduler
        ``slurm``, ``pbs``, ``torque``, ``lsf``, ``oar``, ``kubernetes``, or ``local`` for jobs that are processes of
        this machine.
    shared
        Folder that this machine and all nodes see under the same path: logs, certificates and objects for all tasks.
    jobs
        Their number.
    nodes_per_job
        Nodes of each; more than one with ``slurm`` only.
    slots_per_node
        Tasks at once on each node; with `gpus_per_node` one per GPU by default, else 1.
    gpus_per_node
        GPUs that a job asks for on each node.
    cores_per_slot
        Cores that a job asks for with each slot; tasks use more than one only to read and write chunks.
    walltime
        ``HH:MM:SS`` after which the scheduler ends a job, whatever happens here.
    partition, account
        As the scheduler knows them.
    exclusive
        Whole nodes, not shared with other jobs.
    options
        Further options of the scheduler, passed on as they are.
    setup
        Lines of the job script; one that fails ends the job.
    interface, address
        Network interface, or address, of this machine that the nodes can reach; by default that of its own name.
    max_memory_per_node
        Memory that a job asks for on each node, which its slots share.
    image, namespace, volumes
        For ``kubernetes``: what the pods run, where, and persistent volumes as ``CLAIM:FOLDER``.
    """

    scheduler: Annotated[Literal["slurm", "pbs", "torque", "lsf", "oar", "kubernetes", "local"], "who runs the jobs"]
    shared: Annotated[str, "folder that all nodes see"]
    jobs: Jobs = field(default_factory=Jobs)
    nodes_per_job: Annotated[int, "nodes of a job (count)"] = 1
    slots_per_node: Annotated[int, "tasks at once on a node (count)"] = 0
    gpus_per_node: Annotated[int, "GPUs of a node (count)"] = 0
    cores_per_slot: Annotated[int, "cores of a slot (count)"] = 1
    walltime: Annotated[str, "longest time of a job, HH:MM:SS"] = "01:00:00"
    partition: Annotated[str | None, "partition or queue"] = None
    account: Annotated[str | None, "account"] = None
    exclusive: Annotated[bool, "whole nodes only"] = False
    options: Annotated[tuple[str, ...], "further options of the scheduler"] = ()
    setup: Annotated[tuple[str, ...], "lines of the job script"] = ()
    interface: Annotated[str | None, "network interface of this machine"] = None
    address: Annotated[str | None, "address of this machine"] = None
    max_memory_per_node: Annotated[Size | None, "memory of a node, such as 200GiB"] = None
    image: Annotated[str | None, "image of the pods"] = None
    namespace: Annotated[str | None, "namespace of the pods"] = None
    volumes: Annotated[tuple[str, ...], "persistent volumes of the pods, CLAIM:FOLDER each"] = ()

    def __post_init__(self) -> None:
        for name, least in (("nodes_per_job", 1), ("slots_per_node", 0), ("gpus_per_node", 0), ("cores_per_slot", 1)):
            if getattr(self, name) < least:
                msg = f"{name} is {getattr(self, name)}; expected at least {least}"
                raise UsageError(msg)
        if not re.fullmatch(r"\d+:[0-5]\d:[0-5]\d", self.walltime) or not re.search("[1-9]", self.walltime):
            msg = f"walltime is {self.walltime!r}; expected HH:MM:SS, such as 02:00:00: jobs must end by themselves"
            raise UsageError(msg)
        if not Path(self.shared).is_absolute():
            msg = f"shared is {self.shared!r}; expected a whole path, which is the same on all nodes"
            raise UsageError(msg)
        if self.interface and self.address:
            msg = "interface and address are both given; expected one of them"
            raise UsageError(msg)
        if re.search(r"\s", self.shared):
            msg = f"shared is {self.shared!r}; expected a path without blanks, which scripts of jobs can name"
            raise UsageError(msg)
        self._check_scheduler()

    def _check_scheduler(self) -> None:
        """Refuse what the scheduler does not know, and ask for what it needs."""
        kind = self.scheduler
        for name in _FOREIGN.get(kind, _OF_PODS):
            if getattr(self, name):
                msg = f"{name} is given; scheduler {kind} has no such thing"
                raise UsageError(msg)
        if kind != "slurm" and self.nodes_per_job > 1:
            msg = f"nodes_per_job is {self.nodes_per_job}; with {kind} a job has one node: raise max of jobs"
            raise UsageError(msg)
        for name in ("image", "max_memory_per_node") if kind == "kubernetes" else ():
            if not getattr(self, name):
                msg = f"{name} is missing; scheduler kubernetes needs it"
                raise UsageError(msg)
        for volume in self.volumes:
            if not re.fullmatch(r"[^:/]+:/.*", volume):
                msg = f"volumes has {volume!r}; expected CLAIM:FOLDER, such as data:/data"
                raise UsageError(msg)

    @property
    def slots(self) -> int:
        """Return the slots of one node."""
        return self.slots_per_node or self.gpus_per_node or 1

    @property
    def walltime_seconds(self) -> int:
        """Return `walltime` in seconds."""
        hours, minutes, seconds = map(int, self.walltime.split(":"))
        return 3600 * hours + 60 * minutes + seconds
