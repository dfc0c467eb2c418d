"""What the engine's worker calls on a node: hands the bytes of a task to the slot of its process."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from moraine_core.executor.slot import Slot

if TYPE_CHECKING:
    from moraine_core.executor.slot import Place

HOLD_SECONDS = 0.1
"""How long a slot that has done an errand stays busy, so that the others of it go to other slots."""


class Answer(NamedTuple):
    """What comes back from a node.

    Attributes
    ----------
    manager
        The engine's name of the node's pool of workers.
    place
        Where the slot is.
    outcome
        The packed outcome; empty if the slot had done this errand before.
    """

    manager: str
    place: Place
    outcome: bytes


class _State:
    slot: Slot | None = None
    errand = ""


def run(task: bytes, slots: int, max_memory: int, errand: str = "", *, cuda: bool = False) -> Answer:
    """Run a packed task in this process's slot.

    Parameters
    ----------
    task
        The task.
    slots
        Slots of this node.
    max_memory
        Bytes that they may use together; 0 for most of what is free.
    errand
        Name of an errand, which every slot does once.
    cuda
        Whether the slot binds its GPU.
    """
    if _State.slot is None:
        rank = int(os.environ.get("PARSL_WORKER_RANK", "0"))
        _State.slot = Slot(rank, slots, cuda=cuda, max_memory=max_memory)
    again = bool(errand) and errand == _State.errand
    outcome = b"" if again else _State.slot.call(task)
    if errand:
        _State.errand = errand
        time.sleep(HOLD_SECONDS)
    return Answer(os.environ.get("PARSL_WORKER_POOL_ID", ""), _State.slot.place(), outcome)
