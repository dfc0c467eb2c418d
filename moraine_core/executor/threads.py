"""Tasks in threads of this process, for kernels that release the interpreter lock."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TYPE_CHECKING

from moraine_core.executor.backend import Slot
from moraine_core.executor.memory import share_of_cores
from moraine_core.executor.worker import SERIAL_LIBRARIES, STOP_SECONDS, run_packed

if TYPE_CHECKING:
    from pathlib import Path


class ThreadBackend:
    """One queue and one thread per slot.

    Parameters
    ----------
    count
        Number of threads.
    """

    repeats = 0
    patience = 0.0

    def __init__(self, count: int) -> None:
        self._count = count
        self._inboxes: list[queue.SimpleQueue[tuple[bytes, Future[bytes]] | None]] = []
        self._threads: list[threading.Thread] = []
        self._load: list[int] = []
        self._lock = threading.Lock()
        self._serial = ExitStack()

    def start(self) -> None:
        """Start the threads, and switch the threads of numerical libraries off for as long as they live."""
        if self._threads:
            return
        self._serial.enter_context(serial_libraries(io_threads=share_of_cores(self._count)))
        self._load = [0] * self._count
        for number in range(self._count):
            self._inboxes.append(queue.SimpleQueue())
            # daemon: a task that never ends must not keep a process alive that wants to exit
            thread = threading.Thread(target=self._serve, args=(number,), name=f"moraine-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, number: int) -> None:
        inbox = self._inboxes[number]
        while (item := inbox.get()) is not None:
            task, future = item
            answer = run_packed(task)
            with self._lock:
                self._load[number] -= 1
            future.set_result(answer)

    def slots(self) -> list[Slot]:
        """Return one slot per thread."""
        return [Slot(number) for number in range(self._count)]

    def submit(self, task: bytes) -> Future[bytes]:
        """Run a task in the least busy thread."""
        future: Future[bytes] = Future()
        with self._lock:
            number = min(range(self._count), key=self._load.__getitem__)
            self._load[number] += 1
        self._inboxes[number].put((task, future))
        return future

    def submit_to_all(self, task: bytes) -> list[Future[bytes]]:
        """Run a task once in every thread."""
        futures: list[Future[bytes]] = [Future() for _ in self._inboxes]
        with self._lock:
            self._load = [load + 1 for load in self._load]
        for inbox, future in zip(self._inboxes, futures, strict=True):
            inbox.put((task, future))
        return futures

    def put_dir(self) -> Path | None:
        """Return None: all threads see this process's objects."""
        return None

    def pids(self) -> list[int]:
        """Return nothing: there are no other processes."""
        return []

    def stop(self, *, now: bool = False) -> None:
        """Let the threads end; running tasks are waited for, 10 seconds at most, unless `now`."""
        for inbox in self._inboxes:
            inbox.put(None)
        deadline = time.monotonic() + (0 if now else STOP_SECONDS)
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0))
        self._threads, self._inboxes = [], []
        self._serial.close()


def serial_libraries(io_threads: int) -> ExitStack:
    """Switch the threads of BLAS and OpenMP off in this process until the returned stack is closed."""
    stack = ExitStack()
    # for libraries that are loaded by the first task; those already loaded are told below
    for name, value in {**SERIAL_LIBRARIES, "MORAINE_IO_THREADS": str(io_threads)}.items():
        if (before := os.environ.get(name)) is None:
            stack.callback(os.environ.pop, name, None)
        else:
            stack.callback(os.environ.__setitem__, name, before)
        os.environ[name] = value
    if "numpy" in sys.modules:
        from threadpoolctl import threadpool_limits

        stack.enter_context(threadpool_limits(1))
    return stack
