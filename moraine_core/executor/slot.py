"""A slot on another machine: one ordinary worker process, inside a worker of whatever engine brings it there.

The engine's worker passes bytes on and runs no task itself. A task that crashes, is killed for its memory or exits
takes the child with it, and not the engine's worker, whose death engines report late or never. Nothing here knows
which engine it is.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from pathlib import Path
from typing import NamedTuple

from moraine_core.errors import DeviceError, MoraineError, WorkerDiedError
from moraine_core.executor import memory
from moraine_core.executor.message import Outcome, raised
from moraine_core.executor.processes import ProcessBackend
from moraine_core.executor.worker import Settings

_NODE = ("SLURMD_NODENAME",)
_JOB = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "OAR_JOB_ID", "JOB_ID")

OOM_SCORE = 500
"""How much rather the kernel, when memory runs out, should end the child than the engine's worker."""


class Place(NamedTuple):
    """Where a slot is and what it has.

    Attributes
    ----------
    node
        Name of the machine.
    job
        Number of the batch job; empty outside of one.
    rank
        Number of the slot on its node.
    pid
        The engine's worker process.
    child
        The process that runs tasks; 0 if it could not be started.
    cores
        Cores that the job may use on this node.
    devices
        The GPUs that tasks see, as in ``CUDA_VISIBLE_DEVICES``.
    gpu, gpu_bytes
        Name and free memory, in bytes, of the GPU that was bound, if one was asked for.
    memory_bytes
        Memory that one task may use, in bytes.
    """

    node: str
    job: str
    rank: int
    pid: int
    child: int
    cores: int
    devices: str
    gpu: str
    gpu_bytes: int
    memory_bytes: int


class Slot:
    """One slot: starts its child when it is needed, and again when it has died.

    Parameters
    ----------
    rank
        Number of this slot on its node; the child gets entry ``rank % n`` of the job's n GPUs.
    slots_per_node
        Slots that share cores and memory of the node.
    cuda
        Bind and check the GPU.
    max_memory
        Bytes that all slots of the node may use; by default most of what is free.
    """

    def __init__(self, rank: int = 0, slots_per_node: int = 1, *, cuda: bool = False, max_memory: int = 0) -> None:
        self.node = _first(_NODE) or socket.gethostname()
        self.job = _first(_JOB)
        self._rank = rank
        self._cores = memory.usable_cores()
        room = int(memory.SHARE * memory.get_mem_avail())
        self._memory = min(room, max_memory or room) // slots_per_node - memory.LIBRARY_BYTES
        self._devices, self._lacking = "", None
        try:
            self._devices = _device(rank, checked=cuda)
        except DeviceError as error:
            where = f" of job {self.job}" if self.job else ""
            self._lacking = DeviceError(f"a slot on {self.node}{where} has no GPU to use: {error}")
        environ = {"MORAINE_IO_THREADS": str(max(self._cores // slots_per_node, 1))}
        if self._devices:
            environ["CUDA_VISIBLE_DEVICES"] = self._devices
        settings = Settings(1, write_behind=cuda, gpu=cuda)
        self._child = ProcessBackend([environ], settings, node=self.node, job=self.job)
        self._starting = threading.Lock()

    def call(self, task: bytes) -> bytes:
        """Run a packed task in the child; return its packed outcome, also when the child dies of it. Never raises."""
        if self._lacking is not None:
            return raised(self._lacking).pack()
        try:
            self._start()
        except WorkerDiedError as error:
            return Outcome("died", error).pack()
        except MoraineError as error:
            return raised(error).pack()
        return self._child.submit(task).result()

    def _start(self) -> None:
        with self._starting:
            before = self._child.pids()
            self._child.start()
            for pid in set(self._child.pids()) - set(before):
                with contextlib.suppress(OSError):  # it has died already, or this system has no such file
                    file = Path(f"/proc/{pid}/oom_score_adj")
                    file.write_text(str(min(int(file.read_text()) + OOM_SCORE, 1000)))

    def place(self) -> Place:
        """Return where this is and what it has; the child is not started for it."""
        child = next(iter(self._child.slots()), None)
        return Place(
            self.node,
            self.job,
            self._rank,
            os.getpid(),
            next(iter(self._child.pids()), 0),
            self._cores,
            self._devices,
            child.gpu if child else "",
            child.gpu_bytes if child else 0,
            max(self._memory, 1),
        )

    def stop(self) -> None:
        """End the child."""
        self._child.stop(now=True)


def _device(rank: int, *, checked: bool) -> str:
    """Return the GPU of a slot: an entry of the job's own list, which the scheduler has made; empty without one.

    Where GPUs are used, they are looked at; a scheduler that makes no list shows a job only the GPUs that are its own.
    """
    if checked:
        from moraine_core.device import visible_gpus

        listed = visible_gpus()
    else:
        listed = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    listed = [name.strip() for name in listed if name.strip()]
    return listed[rank % len(listed)] if listed else ""


def _first(names: tuple[str, ...]) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")
