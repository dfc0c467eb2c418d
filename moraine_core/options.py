"""Options that belong to the host and exist once for all commands: the workers, and how a command is run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from moraine_core.arguments import Size  # noqa: TC001 - the annotations are evaluated
from moraine_core.codecs import DEFAULT, Compressor


@dataclass(frozen=True)
class Workers:
    """Who runs a command's tasks.

    Attributes
    ----------
    cuda
        One process per GPU, for commands that have a GPU kernel.
    gpus
        The GPUs to use, by number or UUID; all visible ones by default.
    n_workers
        Worker threads, or processes with `processes` or `cuda`. By default the cores (or GPUs) this process may use,
        fewer where memory asks for it. Results never depend on it.
    threads_per_worker
        Tasks that run at once in a worker; 1 by default.
    processes
        Spawned processes instead of threads, for work that holds the interpreter lock.
    max_memory
        Memory the whole run may use, in bytes or as ``4GiB``; by default most of what is available.
    executor
        A named backend of a plugin, instead of this machine.
    """

    cuda: Annotated[bool, "run on GPUs, one process each"] = False
    gpus: Annotated[tuple[str, ...], "GPUs to use, by number or UUID; all visible ones by default"] = ()
    n_workers: Annotated[int | None, "workers; by default the usable cores or GPUs (count)"] = None
    threads_per_worker: Annotated[int | None, "tasks at once in a worker; 1 by default (count)"] = None
    processes: Annotated[bool, "workers are spawned processes instead of threads"] = False
    max_memory: Annotated[Size | None, "memory of the whole run, such as 4GiB; most of what is free by default"] = None
    executor: Annotated[str | None, "a named executor of a plugin instead of this machine"] = None


@dataclass(frozen=True)
class RunOptions:
    """How one command is run.

    Attributes
    ----------
    fresh
        Start over, even where an interrupted run of the same call could be continued.
    dry_run
        Check everything, say what would be done, and do nothing.
    scratch
        Folder of temporary arrays; beside the output by default.
    compressor
        How arrays are compressed; values are the same with each.
    progress
        Draw a progress bar if standard error is a terminal.
    """

    fresh: Annotated[bool, "start over instead of continuing an interrupted run"] = False
    dry_run: Annotated[bool, "check everything and print the plan, but do nothing"] = False
    scratch: Annotated[str | None, "folder of temporary files; beside the output by default"] = None
    compressor: Annotated[Compressor, "how outputs are compressed"] = DEFAULT
    progress: Annotated[bool, "draw a progress bar on a terminal"] = False


WORKER_NAMES = frozenset(field.name for field in fields(Workers))
RUN_NAMES = frozenset(field.name for field in fields(RunOptions))

STEP_NAMES = WORKER_NAMES | {"scratch", "compressor"}
"""Options that a step of a pipeline may set; the rest is for the run as a whole."""
