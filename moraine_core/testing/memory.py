"""Measuring the memory of one worker process while it runs the tasks of a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core.executor import Executor
from moraine_core.executor.processes import ProcessBackend
from moraine_core.executor.worker import Settings
from moraine_core.run import run_command
from moraine_core.testing.running import GivenPool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moraine_core.declaration import Command

EXACT = {
    "MALLOC_MMAP_THRESHOLD_": str(64 * 2**10),
    "MALLOC_TRIM_THRESHOLD_": str(128 * 2**10),
    "MORAINE_IO_THREADS": "1",
}
"""Environment of a worker whose memory is that of its tasks.

What is freed goes back to the system at once: otherwise the holes of the heap, some 10 to 30 MiB that depend on which
thread was first, hide what the tasks hold. Inputs are read by one thread, as a task's own projection counts; the
Executor counts the others.
"""


def measured_growth(command: Command, small: Mapping[str, Any], large: Mapping[str, Any], host: Any) -> int:
    """Return by how many bytes a worker grows over its idle state while it runs a call.

    Parameters
    ----------
    command
        What to run.
    small, large
        A call that loads libraries and compiles kernels, and the call that is measured.
    host
        Observes the second call.
    """
    with Executor(backend=ProcessBackend([EXACT], Settings())) as executor:
        run_command(command, small, pool=GivenPool(executor))
        (idle,) = executor.run_on_workers(forget_peak)
        run_command(command, large, pool=GivenPool(executor), host=host)
        (highest,) = executor.run_on_workers(peak)
    return int(highest - idle)


def forget_peak() -> int:
    """Reset this process's peak memory to what it holds now, and return that in bytes."""
    import gc

    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def peak() -> int:
    """Return this process's peak memory in bytes since it was reset."""
    return _status("VmHWM")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    msg = f"/proc/self/status has no {name}"
    raise RuntimeError(msg)
