"""The child side: what runs inside a worker process.

Three kinds of threads, one direction: a receiver takes tasks from the pipe and reads their inputs ahead, compute
threads (the main thread is the first) call the kernels, and on a GPU a writer stores results behind them. The
receiver also notices when the parent is gone, whatever happened to it, and ends the process.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from moraine_core.executor.message import Outcome, raised

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

UNGUARDED = 87
"""Exit code of a worker that found itself importing a script without a main guard."""

STOP = b""
"""The message that ends a worker."""


@dataclass(frozen=True)
class Settings:
    """How a worker works.

    Attributes
    ----------
    threads
        Tasks computed at once.
    read_ahead
        Read the inputs of the next task while others compute.
    write_behind
        Store results while the next task computes.
    gpu
        Bind and check the GPU that the environment names.
    io_threads
        Threads that read or write the pieces of one part.
    """

    threads: int = 1
    read_ahead: bool = True
    write_behind: bool = False
    gpu: bool = False
    io_threads: int = 1
    path: list[str] = field(default_factory=list)


def run_packed(message: bytes) -> bytes:
    """Run a packed task from beginning to end in this thread; return its packed outcome."""
    try:
        task = pickle.loads(message)  # noqa: S301 - from our own parent
        task.load()
        task.compute()
        outcome = Outcome("ok", task.store())
    except BaseException as error:  # noqa: BLE001 - whatever a task raises is its outcome
        outcome = raised(error)
    return outcome.pack()


def peak_bytes() -> int:
    """Return the largest resident memory of this process so far, in bytes."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main(connection: Connection, settings: Settings) -> None:
    """Serve tasks from a connection until it says stop or closes.

    The first answer tells that the worker is ready, or why not; each later one is ``(task number, outcome)``.
    """
    # a Ctrl-C in the terminal reaches every process of the group; only the parent decides what it means
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
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


class _Worker:
    """One worker process at work."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection = connection
        self._settings = settings
        self._loaded: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
        # one result may wait to be written; a second one makes the GPU wait, so host memory stays bounded
        self._computed: queue.Queue[tuple[int, Any] | None] = queue.Queue(maxsize=1)
        self._sending = threading.Lock()
        self._io_set = False

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

    def _receive(self) -> None:
        """Take tasks and read their inputs; end the process at once when the parent is gone."""
        while True:
            try:
                message = self._connection.recv_bytes()
            except (EOFError, OSError):
                os._exit(1)
            if message == STOP:
                for _ in range(self._settings.threads):
                    self._loaded.put(None)
                return
            number = int.from_bytes(message[:8], "little")
            task: Any = None
            try:
                task = pickle.loads(memoryview(message)[8:])  # noqa: S301 - from our own parent
                if self._settings.read_ahead:
                    task.load()
            except BaseException as error:  # noqa: BLE001 - the task's outcome
                self._answer(number, raised(error))
                continue
            self._loaded.put((number, task))

    def _compute(self) -> None:
        while (item := self._loaded.get()) is not None:
            number, task = item
            del item
            try:
                if not self._settings.read_ahead:
                    task.load()
                task.compute()
            except BaseException as error:  # noqa: BLE001 - the task's outcome
                self._answer(number, raised(error))
                continue
            if self._settings.write_behind:
                self._computed.put((number, task))
            else:
                self._store(number, task)
            del task
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

    def _store(self, number: int, task: Any) -> None:
        try:
            outcome = Outcome("ok", task.store())
        except BaseException as error:  # noqa: BLE001 - the task's outcome
            outcome = raised(error)
        self._answer(number, outcome)

    def _answer(self, number: int, outcome: Outcome) -> None:
        outcome.peak_bytes = peak_bytes()
        with self._sending:
            self._connection.send_bytes(number.to_bytes(8, "little") + outcome.pack())


def exit_if_unguarded() -> None:
    """End this process, quietly, if it is a worker that is still importing the user's script.

    `multiprocessing` imports the main script in every new process; one that starts an executor at its top level, without
    ``if __name__ == "__main__":``, would start processes without end. The parent sees the exit code and says so.
    """
    from multiprocessing import process

    if getattr(process.current_process(), "_inheriting", False):
        sys.stderr.flush()
        time.sleep(0)
        os._exit(UNGUARDED)
