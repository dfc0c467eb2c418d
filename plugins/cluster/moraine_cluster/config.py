"""The table ``[executors.NAME]`` of a cluster: what the jobs ask the scheduler for, and where files are shared."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from moraine_core.arguments import Size  # noqa: TC001 - the annotations are evaluated
from moraine_core.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "": 1}


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
        ``slurm``, or ``local`` for jobs that are processes of this machine.
    shared
        Folder that this machine and all nodes see under the same path: logs, certificates and objects for all tasks.
    jobs
        Their number.
    nodes_per_job
        Nodes of each.
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
    """

    scheduler: Annotated[Literal["slurm", "local"], "who runs the jobs"]
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
        if self.scheduler == "local" and self.nodes_per_job > 1:
            msg = f"nodes_per_job is {self.nodes_per_job}; a local job has one"
            raise UsageError(msg)

    @property
    def slots(self) -> int:
        """Return the slots of one node."""
        return self.slots_per_node or self.gpus_per_node or 1
