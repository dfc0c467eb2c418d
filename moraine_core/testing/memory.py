"""Measuring the memory of one worker process while it runs the tasks of a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core.executor import Executor
from moraine_core.run import run_command
from moraine_core.testing.running import GivenPool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moraine_core.declaration import Command


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
    with Executor(processes=True, n_workers=1) as executor:
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
