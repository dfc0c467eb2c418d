"""The Executor: in-order map over workers of any backend, with bounded feeding and admission by memory."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from moraine_core.cache import prepare_caches
from moraine_core.errors import DeviceError, MemoryBudgetError, UsageError, WorkerDiedError
from moraine_core.executor import memory
from moraine_core.executor.feed import Feed, with_note
from moraine_core.executor.interrupt import orderly_end
from moraine_core.executor.memory import MemoryWatch, gib
from moraine_core.executor.message import Call, Outcome, pack
from moraine_core.executor.progress import Progress
from moraine_core.executor.shared import Handle, Shelf
from moraine_core.executor.threads import ThreadBackend
from moraine_core.executor.worker import exit_if_unguarded
from moraine_core.options import Workers
from moraine_core.task import ChunkCall, kernel_name, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from moraine_core.executor.backend import Backend, Slot
    from moraine_core.plan import Chunk, ChunkTask

log = logging.getLogger("moraine")

_USUAL_CAUSE = {
    -signal.SIGKILL: "; usually the system ended it because memory ran out",
    -signal.SIGSEGV: "; usually a crash in compiled code",
    -signal.SIGABRT: "; usually a crash in compiled code",
    -signal.SIGBUS: "; usually a mapped file was cut, or memory ran out",
}

GPU_SHARE = 0.9
"""Share of a GPU's free memory that tasks may use: cupy and kernels need some besides."""


class Executor:
    """Runs tasks in threads, spawned processes, or one process per GPU; use it as a context manager.

    Parameters
    ----------
    cuda
        One process per GPU.
    n_workers
        Worker threads or processes; by default the usable cores or GPUs.
    threads_per_worker
        Tasks at once in a worker; 1 by default.
    processes
        Spawned processes instead of threads.
    gpus
        GPUs to use, by number or UUID; all visible ones by default.
    max_memory
        Bytes the whole run may use; by default 80 % of what is available.
    scratch
        Folder for shared objects; by default ``MORAINE_SCRATCH`` or the system's temporary folder.
    progress
        Draw a bar on a terminal.
    backend
        Another backend than those of this machine.

    Raises
    ------
    UsageError
        Unknown worker arguments, or counts below 1.
    DeviceError
        A GPU was asked for that is not there.
    """

    def __init__(
        self,
        cuda: bool = False,  # noqa: FBT001, FBT002 - the contract's signature
        n_workers: int | None = None,
        threads_per_worker: int | None = None,
        processes: bool | None = None,  # noqa: FBT001 - the contract's signature
        *,
        gpus: Sequence[str] = (),
        max_memory: int | None = None,
        scratch: str | None = None,
        progress: bool = False,
        backend: Backend | None = None,
        **unknown: Any,
    ) -> None:
        exit_if_unguarded()
        if unknown:
            known = ", ".join(f.name for f in fields(Workers))
            msg = f"unknown worker arguments: {', '.join(unknown)}; known are {known}"
            raise UsageError(msg)
        for name, count in (("n_workers", n_workers), ("threads_per_worker", threads_per_worker)):
            if count is not None and count < 1:
                msg = f"{name} is {count}; expected at least 1"
                raise UsageError(msg)
        self.cuda = cuda
        self.max_memory = max_memory
        self._progress = progress
        self._backend = backend or _local_backend(
            cuda=cuda,
            n_workers=n_workers,
            threads=threads_per_worker or 1,
            processes=bool(processes),
            gpus=gpus,
            scratch=scratch or os.environ.get("MORAINE_SCRATCH") or None,
        )
        self._limit = 0
        self._started = 0
        self._watch: MemoryWatch | None = None
        self._shelf = Shelf()
        self._life = contextlib.ExitStack()

    @classmethod
    def of(cls, workers: Workers, **options: Any) -> Executor:
        """Return the executor that worker options ask for."""
        asked = {f.name: getattr(workers, f.name) for f in fields(workers) if f.name != "executor"}
        return cls(**asked, **options)

    # ------------------------------------------------------------------------------------------------ life

    def __enter__(self) -> Executor:
        prepare_caches()
        with contextlib.ExitStack() as life:
            life.enter_context(orderly_end())
            life.callback(self._shelf.release)
            self._backend.start()
            self._started = len(self._backend.slots())
            here = memory.tree_bytes([os.getpid()])
            self._limit = self.max_memory or here + int(memory.SHARE * memory.get_mem_avail())
            self._watch = MemoryWatch(self._backend.pids, self._limit)
            self._watch.start()
            life.callback(self._watch.stop)
            self._life = life.pop_all()
        log.info("workers: %s, memory for the run %s", self._describe(), gib(self._limit))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._life:
            self._backend.stop(now=kind is not None and not issubclass(kind, Exception))
        log.info("workers: stopped, peak memory %s", gib(self.peak_bytes))

    def _describe(self) -> str:
        slots = self._backend.slots()
        if self.cuda and not any(slot.node for slot in slots):
            return f"{len(slots)} GPU processes ({', '.join(slot.gpu for slot in slots)})"
        if isinstance(self._backend, ThreadBackend):
            return f"{len(slots)} threads"
        if nodes := {slot.node for slot in slots if slot.node}:
            return f"{len(slots)} slot{'s' * (len(slots) > 1)} on {', '.join(sorted(nodes))}"
        return f"{len(slots)} processes with {slots[0].threads} threads each"

    @property
    def peak_bytes(self) -> int:
        """Largest memory of this process and all workers so far, in bytes."""
        if self._watch is None:
            return 0
        self._watch.sample()
        return self._watch.peak_bytes

    # -------------------------------------------------------------------------------------------- mapping

    def map(self, fn: Callable[..., Any], tasks: Iterable[Sequence[Any]], desc: str = "") -> list[Any]:
        """Run ``fn(*task)`` for each task; return the results in the order of the tasks.

        Parameters
        ----------
        fn
            An importable function that releases the interpreter lock or is worth a process.
        tasks
            Arguments of each call, under 64 KiB pickled; large objects go by `put`.
        desc
            Name in progress lines.

        Raises
        ------
        Exception
            The first exception of a task, with its own type where that can be pickled, else a `TaskError`; it carries
            the worker's traceback. Tasks not yet started are dropped; the executor stays usable.
        WorkerDiedError
            A worker process ended while it held a task.
        """
        if getattr(fn, "__module__", "") == "__main__" and self.is_elsewhere():
            msg = (
                f"{fn.__name__} is a function of the script itself, which workers elsewhere do not import; "
                "put it into a module that they can import"
            )
            raise UsageError(msg)
        return self.run([Call(fn, tuple(args), {}) for args in tasks], desc or getattr(fn, "__name__", "map"))

    def map_chunks(
        self,
        fn: Callable[..., Any] | str,
        tasks: Iterable[tuple[Sequence[Any], Sequence[Chunk]]],
        cuda: bool | None = None,  # noqa: FBT001 - the contract's signature
        desc: str = "",
        **kwargs: Any,
    ) -> list[Any]:
        """Run a kernel as a chunk task for each ``(inputs, outputs)``; return the small results in order.

        Parameters
        ----------
        fn
            The kernel, or its name ``"module:function"``.
        tasks
            Inputs and outputs, as in `ChunkTask`.
        cuda
            Compute on the worker's GPU; by default if the executor has GPUs.
        desc
            Name in progress lines.
        **kwargs
            Keywords of every kernel call.
        """
        from moraine_core.plan import ChunkTask

        name = kernel_name(fn)
        chunk_tasks = [ChunkTask(name, tuple(i), tuple(o), kwargs) for i, o in tasks]
        return self.run_chunk_tasks(chunk_tasks, desc=desc or name.rpartition(":")[2], cuda=cuda)

    def run_chunk_tasks(
        self,
        tasks: Sequence[ChunkTask],
        *,
        desc: str,
        cuda: bool | None = None,
        shared: Mapping[str, Any] | None = None,
        task_bytes: int = 0,
        done: int = 0,
        on_done: Callable[[int, Any], None] | None = None,
        keep_going: bool = False,
    ) -> list[Any]:
        """Run the tasks of a plan; return their small results in order.

        Parameters
        ----------
        tasks
            What to do.
        desc, done
            Name in progress lines, and the number of tasks done before.
        cuda
            As in `map_chunks`.
        shared
            Keywords, handles among them, of every kernel call.
        task_bytes
            Projected memory of the largest task; as many run at once as fit.
        on_done
            Called with number and small result of each task as it ends, in this thread.
        keep_going
            Whether a task that raises an error leaves the others to be run; then all errors are raised at the end.
        """
        for name in {task.kernel for task in tasks}:
            resolve(name)  # a kernel that cannot be imported is known before any task is sent
        cuda = self.cuda if cuda is None else cuda
        calls = [ChunkCall(task, cuda=cuda, shared=shared) for task in tasks]
        ahead = reading = 0
        if task_bytes:
            readers = memory.share_of_cores(len(self._backend.slots()))
            ahead = max((task.input_bytes + task.reading_bytes(readers) for task in tasks), default=0)
            if readers > 1:
                reading = max((task.reading_bytes(readers) - task.reading_bytes() for task in tasks), default=0)
        return self.run(
            calls,
            desc,
            window=lambda: self._window(task_bytes, ahead, reading),
            done=done,
            on_done=on_done,
            keep_going=keep_going,
        )

    def run(
        self,
        calls: Sequence[Any],
        desc: str,
        *,
        window: Callable[[], int] | None = None,
        done: int = 0,
        on_done: Callable[[int, Any], None] | None = None,
        keep_going: bool = False,
    ) -> list[Any]:
        """Run packed calls, at most `window()` of them handed out at once; return the results in order."""
        if not calls:
            return []
        if self._watch is None:
            msg = "an Executor works inside a with statement only: with Executor(...) as executor"
            raise UsageError(msg)
        self._backend.start()  # brings back workers that an earlier error cost
        self._watch.renew()
        size = window or (lambda: self._window(0))
        return Feed(self, calls, desc, size, done, on_done, keep_going=keep_going).results()

    def run_on_workers(self, fn: Callable[..., Any], *args: Any) -> list[Any]:
        """Run ``fn(*args)`` once in every worker; return the results in the order of the workers.

        Raises
        ------
        Exception
            The first failure.
        """
        self._backend.start()
        futures = self._backend.submit_to_all(pack(Call(fn, args, {})))
        outcomes = [Outcome.unpack(future.result()) for future in futures]
        for outcome in outcomes:
            if outcome.kind != "ok":
                raise with_note(outcome.value, outcome.traceback, getattr(fn, "__name__", str(fn)))
        return [outcome.value for outcome in outcomes]

    # ----------------------------------------------------------------------------------------- sharing

    def put(self, obj: Any, folder: Path | None = None) -> Handle:
        """Make one object reachable from every task, at the cost of one copy per machine.

        Parameters
        ----------
        obj
            Anything that can be pickled. Its arrays are read-only in the tasks.
        folder
            Where the file that worker processes map is made; the executor's scratch folder by default.

        Returns
        -------
        Handle
            Use it anywhere in a task's arguments; the task receives the object.

        Raises
        ------
        UsageError
            It cannot be pickled.
        DiskFullError
            The scratch folder has no room for it.
        """
        default = self._backend.put_dir()
        if default is None:
            return self._shelf.put(obj, None)
        from moraine_core.store import disk_errors

        folder = folder or default
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            return self._shelf.put(obj, folder)

    def release(self) -> None:
        """Let go of all objects that were `put` so far."""
        self._shelf.release()

    # --------------------------------------------------------------------------------------- admission

    def task_budget(self) -> int:
        """Return the bytes that all running tasks together may use, besides what they share."""
        pids = self._backend.pids()
        workers = [sum(memory.resident(pid)) for pid in pids]
        to_come = sum(max(memory.LIBRARY_BYTES - size, 0) for size in workers)
        return self._limit - memory.tree_bytes([os.getpid(), *pids]) - to_come - self._shelf.file_bytes

    def fits(self, task_bytes: int) -> bool:
        """Tell whether at least one task of that size fits into memory, and on every GPU."""
        slots = self._backend.slots()
        if self.cuda and any(task_bytes > GPU_SHARE * slot.gpu_bytes for slot in slots):
            return False
        return task_bytes <= (_smallest_memory(slots) or self.task_budget())

    def _window(self, task_bytes: int, ahead_bytes: int = 0, reading_bytes: int = 0) -> int:
        """Return how many tasks may be handed out at once: as many as run, and one read-ahead each if that fits too.

        A task needs `reading_bytes` more where it reads with all the threads it may: that lowers the number of tasks,
        and is no reason to refuse one.
        """
        slots = self._backend.slots()
        running = sum(self._gpu_threads(slot, task_bytes) for slot in slots)
        ahead = sum(slot.read_ahead for slot in slots)
        if elsewhere := _smallest_memory(slots):
            if task_bytes > elsewhere:
                node = min(slots, key=lambda slot: slot.memory_bytes).node
                msg = (
                    f"one task needs {gib(task_bytes)}, a slot of {node} has {gib(elsewhere)}; "
                    "choose smaller blocks, or fewer slots on each node"
                )
                raise MemoryBudgetError(msg)
            return running + ahead
        if not task_bytes:
            return running + ahead
        budget = self.task_budget()
        if task_bytes > budget:
            msg = (
                f"one task needs {gib(task_bytes)}, the run may use {gib(max(budget, 0))} "
                f"(of {gib(self._limit)}); choose smaller blocks or raise --max-memory"
            )
            raise MemoryBudgetError(msg)
        each_bytes = task_bytes + reading_bytes
        admitted = min(running, max(budget // each_bytes, 1))
        if admitted < running:
            log.info("memory: %d tasks at once instead of %d, each %s", admitted, running, gib(each_bytes))
            return admitted
        return running + min(ahead, max(budget - running * each_bytes, 0) // max(ahead_bytes, 1))

    def _gpu_threads(self, slot: Slot, task_bytes: int) -> int:
        if not (self.cuda and task_bytes):
            return slot.threads
        return max(1, min(slot.threads, int(GPU_SHARE * slot.gpu_bytes) // task_bytes))

    def over_limit(self) -> int:
        """Return the memory in bytes by which the run was seen above its limit, or 0."""
        return self._watch.over_limit if self._watch else 0

    # ------------------------------------------------------------------------- what a run of tasks needs

    @property
    def backend(self) -> Backend:
        """The backend that runs the tasks."""
        return self._backend

    def is_elsewhere(self) -> bool:
        """Tell whether tasks run on other machines, which know nothing of the script that runs here."""
        return any(slot.node for slot in self._backend.slots())

    def progress(self, desc: str, total: int, done: int) -> Progress:
        """Return the progress of a map."""
        return Progress(desc, total + done, done=done, bar=self._progress)

    def death_advice(self, error: WorkerDiedError, task: str) -> WorkerDiedError:
        """Return the error of a dead worker with its task, what usually ends one, its memory, and what to try."""
        peak = self._watch.worker_peaks.get(error.pid, 0) if self._watch else 0
        usual = _USUAL_CAUSE.get(error.exitcode or 0, "")
        used = f" It used {gib(peak)}." if peak else ""
        if error.exitcode is None:  # no process is known to have ended
            advice = ""
        elif error.node:
            advice = " Try smaller --chunks or fewer slots on each node."
        elif self._started > 1:
            advice = f" Try --n-workers {self._started - 1} or a lower --max-memory."
        else:
            advice = " Try smaller --chunks or a lower --max-memory."
        advised = WorkerDiedError(f"{error}, on {task}{usual}.{used}{advice}")
        advised.pid, advised.exitcode, advised.node = error.pid, error.exitcode, error.node
        return advised


def _smallest_memory(slots: Sequence[Slot]) -> int:
    """Return the memory, in bytes, of the smallest slot that has some of its own; 0 where all share this machine's."""
    return min((slot.memory_bytes for slot in slots if slot.memory_bytes), default=0)


def _local_backend(
    *, cuda: bool, n_workers: int | None, threads: int, processes: bool, gpus: Sequence[str], scratch: str | None
) -> Backend:
    """Return the backend of this machine that the arguments ask for."""
    from moraine_core.executor.processes import ProcessBackend
    from moraine_core.executor.worker import Settings

    cores = memory.usable_cores()
    if cuda:
        from moraine_core.device import visible_gpus

        devices = visible_gpus(gpus)
        if n_workers is not None and n_workers > len(devices):
            msg = f"{n_workers} workers asked for, but there are {len(devices)} GPUs: {', '.join(devices)}"
            raise DeviceError(msg)
        devices = devices[: n_workers or len(devices)]
        # the driver's tools count GPUs in bus order; CUDA is told to do the same
        order = {} if "CUDA_DEVICE_ORDER" in os.environ else {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        environs = [{"CUDA_VISIBLE_DEVICES": device, **order} for device in devices]
        return ProcessBackend(environs, Settings(threads, write_behind=True, gpu=True), scratch)
    if gpus:
        msg = "--gpus is given without --cuda"
        raise UsageError(msg)
    if processes:
        return ProcessBackend([{}] * (n_workers or cores), Settings(threads), scratch)
    return ThreadBackend((n_workers or cores) * threads)
