"""The child side: what runs inside a worker process.

Three kinds of threads, one direction: a receiver takes tasks from the pipe and reads their inputs ahead, compute
threads (the main thread is the first) call the kernels, and on a GPU a writer stores results behind them. The
receiver also notices when the parent is gone, whatever happened to it, and ends the process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import queue
import signal
import threading
from multiprocessing.process import current_process, parent_process

from moraine_core.executor.message import Outcome, raised

TYPE_CHECKING = False  # as type checkers know it; importing typing would cost every new worker milliseconds
if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from typing import Any

SERIAL_LIBRARIES = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)
"""Environment that keeps numerical libraries from starting threads of their own: the Executor owns the cores."""

ALLOCATOR = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(256 * 2**20),
}
"""Environment that keeps glibc from holding a heap of freed chunks per thread, and from returning each to the system.

The threads of a worker, and those in which zarr decodes, pass chunks on to each other: with a heap of its own for each,
a freed chunk is of use to none of the others. Measured with chunks of 16 MiB: a third less memory, at equal speed.
"""

UNGUARDED = 87
"""Exit code of a worker that found itself importing a script without a main guard."""

STOP = b""
"""The message that ends a worker."""

STOP_SECONDS = 10.0
"""How long running tasks may take to end before their worker is terminated."""


class Settings:
    """How a worker works.

    Attributes
    ----------
    threads
        Tasks computed at once.
    write_behind
        Store results while the next task computes.
    gpu
        Bind and check the GPU that the environment names.
    """

    def __init__(self, threads: int = 1, *, write_behind: bool = False, gpu: bool = False) -> None:
        self.threads, self.write_behind, self.gpu = threads, write_behind, gpu


def run_packed(message: bytes) -> bytes:
    """Run a packed task from beginning to end in this thread; return its packed outcome."""
    try:
        task = pickle.loads(message)
        task.load()
        task.compute()
        outcome = Outcome("ok", task.store())
    except BaseException as error:  # noqa: BLE001 - whatever a task raises is its outcome
        outcome = raised(error)
    return outcome.pack()


def main(connection: Connection, settings: Settings) -> None:
    """Serve tasks from a connection until it says stop or closes.

    The first answer tells that the worker is ready, or why not; each later one is ``(task number, outcome)``.
    """
    # a Ctrl-C in the terminal reaches every process of the group; only the parent decides what it means
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _end_with_parent()
    _keep_pipes()
    # standard output belongs to the result of the command; what libraries print goes the way of the log
    os.dup2(2, 1)
    try:
        if settings.gpu:
            from moraine_core.device import bind_gpu

            ready: dict[str, Any] = bind_gpu()
        else:
            ready = {}
    except BaseException as error:  # noqa: BLE001 - told to the parent
        connection.send_bytes(raised(error).pack())
        return
    connection.send_bytes(Outcome("ok", ready).pack())
    _Worker(connection, settings).serve()


def _end_with_parent() -> None:
    """Have the kernel end this process when its parent is gone, even while a task holds the interpreter lock."""
    parent = parent_process()
    if parent is None or not hasattr(os, "O_ASYNC"):
        return  # the receiver notices it as well, as soon as it can run
    # the parent holds the other end of this pipe; when it closes, SIGIO comes, which nobody handles
    pipe = parent.sentinel
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


def _keep_pipes() -> None:
    """Let no program that a task starts inherit the pipes: they must end when this process does."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):  # the one that listed them
                os.set_inheritable(int(name), False)  # noqa: FBT003 - its own signature


class _Worker:
    """One worker process at work."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection = connection
        self._settings = settings
        # tasks and whether their inputs have been read
        self._received: queue.SimpleQueue[tuple[int, Any, bool] | None] = queue.SimpleQueue()
        # one result may wait to be written; a second one makes the GPU wait, so host memory stays bounded
        self._computed: queue.Queue[tuple[int, Any] | None] = queue.Queue(maxsize=1)
        self._held = 0
        self._counting = threading.Lock()
        self._sending = threading.Lock()

    def serve(self) -> None:
        threads = [
            threading.Thread(target=self._compute, name=f"compute-{n}", daemon=True)
            for n in range(1, self._settings.threads)
        ]
        if self._settings.write_behind:
            threads.append(threading.Thread(target=self._write, name="write-behind", daemon=True))
        for thread in [*threads, threading.Thread(target=self._receive, name="receive", daemon=True)]:
            thread.start()
        self._compute()
        for thread in threads:
            thread.join()

    def _hold(self, change: int) -> int:
        with self._counting:
            self._held += change
            return self._held

    def _receive(self) -> None:
        """Take tasks, and read the inputs of one that has to wait; end the process when the parent is gone."""
        while True:
            try:
                message = self._connection.recv_bytes()
            except (EOFError, OSError):
                os._exit(1)
            if message == STOP:
                for _ in range(self._settings.threads):
                    self._received.put(None)
                return
            number = int.from_bytes(message[:8], "little")
            # a compute thread that is free reads for itself, beside the others
            ahead = self._hold(+1) > self._settings.threads
            task: Any = None
            try:
                task = pickle.loads(memoryview(message)[8:])
                if ahead:
                    task.load()
            except BaseException as error:  # noqa: BLE001 - the task's outcome
                self._hold(-1)
                self._answer(number, raised(error))
            else:
                self._received.put((number, task, ahead))
            del task, message

    def _compute(self) -> None:
        while (item := self._received.get()) is not None:
            number, task, loaded = item
            del item
            try:
                if not loaded:
                    task.load()
                task.compute()
            except BaseException as error:  # noqa: BLE001 - the task's outcome
                self._answer(number, raised(error))
            else:
                if self._settings.write_behind:
                    self._computed.put((number, task))
                else:
                    self._store(number, task)
            del task
            self._hold(-1)
        if self._settings.write_behind:
            self._computed.put(None)

    def _write(self) -> None:
        left = self._settings.threads
        while left:
            item = self._computed.get()
            if item is None:
                left -= 1
            else:
                self._store(*item)
            del item

    def _store(self, number: int, task: Any) -> None:
        try:
            outcome = Outcome("ok", task.store())
        except BaseException as error:  # noqa: BLE001 - the task's outcome
            outcome = raised(error)
        self._answer(number, outcome)

    def _answer(self, number: int, outcome: Outcome) -> None:
        with self._sending:
            self._connection.send_bytes(number.to_bytes(8, "little") + outcome.pack())


def exit_if_unguarded() -> None:
    """End this process, quietly, if it is a worker that is still importing the user's script.

    `multiprocessing` imports the main script in every new process; one that starts an executor at its top level,
    without ``if __name__ == "__main__":``, would start processes without end. The parent sees the exit code.
    """
    if getattr(current_process(), "_inheriting", False):
        os._exit(UNGUARDED)
