"""The parent side of worker processes, with or without a GPU: starting, feeding, listening, burying.

Each worker has a pipe of its own, so one that is killed while it sends blocks nobody else. A listener thread waits on
all pipes and on the processes themselves: an answer or a death is seen at once.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import selectors
import signal
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from moraine_core.errors import WorkerDiedError
from moraine_core.executor import worker
from moraine_core.executor.backend import Slot
from moraine_core.executor.memory import share_of_cores
from moraine_core.executor.message import Outcome
from moraine_core.executor.worker import ALLOCATOR, SERIAL_LIBRARIES, STOP, STOP_SECONDS, UNGUARDED, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_environment = threading.Lock()


class _Process:
    """One worker process as the parent sees it."""

    def __init__(
        self, number: int, settings: Settings, environ: Mapping[str, str], node: str = "", job: str = ""
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self.number = number
        self.node, self.job = node, job
        self.connection, theirs = context.Pipe(duplex=True)
        self.tasks: OrderedDict[int, Future[bytes]] = OrderedDict()
        self.info: dict[str, Any] = {}
        self.process = context.Process(
            target=worker.main, args=(theirs, settings), name=f"moraine-{number}", daemon=True
        )
        with _child_environment(environ), _no_main() if node else _importable_main():
            self.process.start()
        theirs.close()  # so that the pipe ends when the worker does

    def await_ready(self) -> None:
        """Wait for the first answer, or raise what kept the worker from starting."""
        try:
            outcome = Outcome.unpack(self.connection.recv_bytes())
        except (EOFError, OSError):
            self.process.join()
            raise self.obituary(
                "while it started; its reason is above, or it is that the calls of a script are not under "
                'if __name__ == "__main__":'
            ) from None
        if outcome.kind == "raised":
            raise outcome.value
        self.info = outcome.value

    def obituary(self, when: str) -> WorkerDiedError:
        """Return how the process ended."""
        code = self.process.exitcode
        if code == UNGUARDED:
            return WorkerDiedError(
                "worker processes import the script that starts them, and this one starts them at its top level; "
                'put the calls under  if __name__ == "__main__":  and run it again'
            )
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in signal.valid_signals() else str(-code)
            how = f"was killed by signal {-code} ({name})"
        else:
            how = f"ended with exit code {code}"
        who = f"worker {self.number} (process {self.process.pid})"
        if self.node:
            who = f"worker process {self.process.pid} on {self.node}" + (f" of job {self.job}" if self.job else "")
        error = WorkerDiedError(f"{who} {how} {when}")
        error.pid, error.exitcode, error.node = self.process.pid or 0, code, self.node
        return error


@contextlib.contextmanager
def _child_environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Start a process with other environment variables, and with Ctrl-C held back until it ignores it."""
    with _environment:
        before = {name: os.environ.get(name) for name in changes}
        os.environ.update(changes)
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


@contextlib.contextmanager
def _importable_main() -> Iterator[None]:
    """Let no worker look for the file of a main script that was read from standard input and has none."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if file is None or os.path.exists(file):
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = file


@contextlib.contextmanager
def _no_main() -> Iterator[None]:
    """Let no worker import the main script: it is an engine's, and the tasks know nothing of it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class ProcessBackend:
    """Spawned worker processes on this machine.

    Parameters
    ----------
    environs
        One mapping of environment variables per worker, such as its GPU.
    settings
        How each of them works.
    scratch
        Folder in which shared objects are written; the system's temporary folder by default.
    node, job
        Where they are, for the news of a death, if this is a slot of another backend. The main script is then that of
        an engine, and not imported.
    """

    repeats = 0
    patience = 0.0

    def __init__(
        self,
        environs: Sequence[Mapping[str, str]],
        settings: Settings,
        scratch: str | Path | None = None,
        *,
        node: str = "",
        job: str = "",
    ) -> None:
        allocator = {name: value for name, value in ALLOCATOR.items() if name not in os.environ}
        io_threads = {"MORAINE_IO_THREADS": str(share_of_cores(len(environs)))}
        self._environs = [{**SERIAL_LIBRARIES, **allocator, **io_threads, **environ} for environ in environs]
        self._settings = settings
        self._scratch = scratch
        self._node, self._job = node, job
        self._workers: dict[int, _Process] = {}
        self._lock = threading.Lock()
        self._numbers = 0
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._listener: threading.Thread | None = None

    # ------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Start the workers that are not running, side by side, and wait until all of them answer."""
        missing = [n for n in range(len(self._environs)) if n not in self._workers]
        if not missing:
            return
        fresh: list[_Process] = []
        try:
            fresh.extend(
                _Process(number, self._settings, self._environs[number], self._node, self._job) for number in missing
            )
            for process in fresh:
                process.await_ready()
        except BaseException:
            for process in fresh:
                process.process.kill()
                process.process.join()
            self.stop(now=True)
            raise
        with self._lock:
            for process in fresh:
                self._workers[process.number] = process
                self._selector.register(process.connection, selectors.EVENT_READ, process)
                self._selector.register(process.process.sentinel, selectors.EVENT_READ, process)
        if self._listener is None:
            self._listener = threading.Thread(target=self._listen, name="moraine-listener", daemon=True)
            self._listener.start()

    def stop(self, *, now: bool = False) -> None:
        """End all workers: asked, then terminated after 10 seconds, then killed. Idempotent."""
        with self._lock:
            workers = list(self._workers.values())
        for process in workers:
            if now:
                process.process.terminate()
            else:
                with contextlib.suppress(OSError):
                    process.connection.send_bytes(STOP)
        deadline = time.monotonic() + (1.0 if now else STOP_SECONDS)
        for process in workers:
            process.process.join(max(deadline - time.monotonic(), 0))
        for process in workers:
            if process.process.is_alive():
                process.process.terminate()
                process.process.join(1)
            if process.process.is_alive():
                process.process.kill()
                process.process.join()
        if self._listener is not None:
            os.write(self._wake_write, b"x")
            self._listener.join()
            self._listener = None
        for process in workers:
            self._bury(process)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._selector.close()
            os.close(self._wake_read)
            os.close(self._wake_write)

    # ------------------------------------------------------------------------------------------------ work

    def slots(self) -> list[Slot]:
        """Return the living workers."""
        with self._lock:
            return [
                Slot(
                    number,
                    threads=self._settings.threads,
                    read_ahead=1,
                    gpu=process.info.get("gpu", ""),
                    gpu_bytes=process.info.get("free_bytes", 0),
                )
                for number, process in sorted(self._workers.items())
            ]

    def submit(self, task: bytes) -> Future[bytes]:
        """Send a task to the least busy worker."""
        return self._send(task, None)

    def submit_to_all(self, task: bytes) -> list[Future[bytes]]:
        """Send a task to every worker."""
        return [self._send(task, slot.number) for slot in self.slots()]

    def _send(self, task: bytes, slot: int | None) -> Future[bytes]:
        future: Future[bytes] = Future()
        with self._lock:
            if slot is None and self._workers:
                slot = min(self._workers, key=lambda n: len(self._workers[n].tasks))
            process = self._workers.get(-1 if slot is None else slot)
            if process is not None:
                self._numbers += 1
                number = self._numbers
                process.tasks[number] = future
        if process is None:
            future.set_result(Outcome("dropped", WorkerDiedError("no worker is left")).pack())
            return future
        # a worker that has just died is buried by the listener, and this task with it
        with contextlib.suppress(OSError):
            process.connection.send_bytes(number.to_bytes(8, "little") + task)
        return future

    def put_dir(self) -> Path | None:
        """Return the scratch folder."""
        folder = Path(self._scratch or tempfile.gettempdir())
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def pids(self) -> list[int]:
        """Return the worker processes."""
        with self._lock:
            return [process.process.pid for process in self._workers.values() if process.process.pid is not None]

    # ------------------------------------------------------------------------------------------- listening

    def _listen(self) -> None:
        """Take answers and deaths until woken by `stop`."""
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    os.read(self._wake_read, 1)
                    return
                process = key.data
                if not self._take_answers(process):
                    process.process.join()
                    self._bury(process)
                    break  # the events still in hand may be of the same worker

    def _take_answers(self, process: _Process) -> bool:
        """Complete the futures of all answers that have arrived; return False when the worker is gone."""
        try:
            while process.connection.poll():
                answer = process.connection.recv_bytes()
                with self._lock:
                    future = process.tasks.pop(int.from_bytes(answer[:8], "little"), None)
                if future is not None:
                    future.set_result(answer[8:])
        except (EOFError, OSError):
            return False
        return process.process.is_alive()

    def _bury(self, process: _Process) -> None:
        """Forget a dead worker and answer for the tasks it held: those that ran died, the one waiting is dropped."""
        with self._lock:
            if self._workers.get(process.number) is not process:
                return
            del self._workers[process.number]
            tasks = list(process.tasks.values())
            process.tasks.clear()
        for source in (process.connection, process.process.sentinel):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(source)
        process.connection.close()
        for position, future in enumerate(tasks):
            kind: Literal["died", "dropped"] = "died" if position < self._settings.threads else "dropped"
            future.set_result(Outcome(kind, process.obituary("while it worked")).pack())
