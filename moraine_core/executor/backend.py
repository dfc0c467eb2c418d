"""What any backend promises to the Executor: bytes in, bytes out. The local ones keep it too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path


@dataclass(frozen=True)
class Slot:
    """A place where tasks run.

    Attributes
    ----------
    number
        Its number in this backend.
    threads
        Tasks that run there at once.
    read_ahead
        Tasks more that may wait there with their inputs read.
    node
        Name of the machine, for logs; empty for this one.
    job
        Number of the batch job that it belongs to, for logs.
    gpu
        Name of its GPU, if it has one.
    gpu_bytes
        Free memory of that GPU when the slot started, in bytes.
    memory_bytes
        Memory that one task may use there, in bytes; 0 where it shares the memory of this machine.
    """

    number: int
    threads: int = 1
    read_ahead: int = 0
    node: str = ""
    job: str = ""
    gpu: str = ""
    gpu_bytes: int = 0
    memory_bytes: int = 0


class Backend(Protocol):
    """Runs packed tasks. Order, feeding, admission, repeats and error texts are the Executor's business."""

    repeats: int
    """How often a task may be tried again when its worker died; 0 on this machine, where a death has a cause."""

    patience: float
    """Seconds without any answer after which tasks count as lost; 0 on this machine, where no answer can be lost."""

    def start(self) -> None:
        """Bring up what is not running; return when a first slot answers, or raise with the reason."""

    def slots(self) -> list[Slot]:
        """Return the slots that are alive; on a cluster they come and go."""

    def submit(self, task: bytes) -> Future[bytes]:
        """Run a task in the least busy slot; the future holds a packed `Outcome`, never an error."""

    def submit_to_all(self, task: bytes) -> list[Future[bytes]]:
        """Run a task once in every slot, in the order of `slots`."""

    def put_dir(self) -> Path | None:
        """Return a folder in which all slots see files; None where slots share this process's memory."""

    def pids(self) -> list[int]:
        """Return the local worker processes, whose memory counts as this run's."""

    def stop(self, *, now: bool = False) -> None:
        """End all workers within 10 seconds and remove what was made; with `now`, without waiting for tasks.

        Every future that was given out is done afterwards.
        """


@dataclass(frozen=True)
class ExecutorSpec:
    """A named backend that a plugin offers.

    Attributes
    ----------
    name
        As in ``--executor NAME``.
    load
        ``"module:factory"``; the factory is called with `Workers` and returns a `Backend`.
    help
        One line.
    schema
        ``"module:dataclass"`` of a kind that needs settings. The user then names executors in tables
        ``[executors.NAME]`` with ``kind = "..."``, and the factory is called with `Workers` and the checked table.
    """

    name: str
    load: str
    help: str = ""
    schema: str = ""
