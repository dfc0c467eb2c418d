"""The memory of a process and all its descendants, sampled from outside."""

from __future__ import annotations

import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Sequence

SAMPLE_SECONDS = 0.02


@dataclass(frozen=True)
class Used:
    """What a command used.

    Attributes
    ----------
    seconds
        From its start to its end.
    peak_mib
        Largest sum over the process tree of the proportional set size (private pages, and a share of shared ones), MiB.
    """

    seconds: float
    peak_mib: float


def run(command: Sequence[str], folder: Path | None = None) -> Used:
    """Run a command in a folder to its end and return what its process tree used.

    Raises
    ------
    RuntimeError
        It failed.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    peak, done = [0.0], threading.Event()

    def sample() -> None:
        while not done.wait(SAMPLE_SECONDS):
            peak[0] = max(peak[0], tree_mib(process.pid))

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        code = process.wait()
    finally:
        done.set()
        sampler.join()
    if code:
        msg = f"{' '.join(command)} ended with exit code {code}"
        raise RuntimeError(msg)
    return Used(time.perf_counter() - start, peak[0])


def tree_mib(pid: int) -> float:
    """Return the proportional set size of a process and its descendants, in MiB."""
    try:
        pids = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.NoSuchProcess:
        return 0.0
    return sum(map(_pss_kib, pids)) / 1024


def _pss_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has just ended
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
