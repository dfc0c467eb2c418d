"""How much memory a run may use, how many tasks fit, and watching that they keep to it."""

from __future__ import annotations

import os
import threading
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SHARE = 0.8
"""Share of the available memory that a run uses when nothing else is said."""

LIBRARY_BYTES = 150 * 2**20
"""What a worker process takes for Python, numpy, zarr and a kernel's library before its first task."""

SAMPLE_SECONDS = 0.1


def usable_cores() -> int:
    """Return the cores this process may use: its affinity, and the CPU quota of its cgroup."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *(ceil(quota) for quota in _cpu_quotas())]))


def share_of_cores(count: int) -> int:
    """Return how many threads each of so many workers may read and write with, at least one."""
    return max(usable_cores() // max(count, 1), 1)


def get_mem_avail(root: Path = Path("/sys/fs/cgroup"), process: Path = Path("/proc/self/cgroup")) -> int:
    """Return the memory, in bytes, that this machine and this process's cgroup still allow."""
    import psutil

    free: list[int] = [psutil.virtual_memory().available]
    for folder in _cgroup_folders(root, process):
        limit = _number(folder / "memory.max") or _number(folder / "memory.limit_in_bytes")
        used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes") or 0
        if limit is not None:
            # page cache counts as used but is given back when it is asked for
            free.append(max(limit - used + _inactive_file(folder / "memory.stat"), 0))
    return min(free)


def _cgroup_folders(root: Path, process: Path) -> list[Path]:
    """Return the folders of this process's cgroup and of all above it, of version 2 and of version 1."""
    folders = []
    try:
        lines = process.read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        base = root / controllers if controllers else root
        inner = base / path.lstrip("/")
        folders += [folder for folder in (inner, *inner.parents) if folder == base or base in folder.parents]
    return [*folders, root / "memory"]


def _cpu_quotas(root: Path = Path("/sys/fs/cgroup"), process: Path = Path("/proc/self/cgroup")) -> list[float]:
    quotas = []
    for folder in _cgroup_folders(root, process):
        try:
            quota, period = (folder / "cpu.max").read_text().split()
            if quota != "max":
                quotas.append(int(quota) / int(period))
        except (OSError, ValueError):
            quota_us, period_us = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
            if quota_us and period_us and quota_us > 0:
                quotas.append(quota_us / period_us)
    return quotas


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _inactive_file(path: Path) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    counts = {name: int(count) for name, count in (line.split() for line in lines)}
    # version 1 counts a folder alone under the plain name, and with those below it under the other
    return counts.get("total_inactive_file", counts.get("inactive_file", 0))


def resident(pid: int) -> tuple[int, int]:
    """Return the private and the shared resident bytes of a process; zeros when it is gone."""
    try:
        _, pages, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except (OSError, ValueError):
        return 0, 0
    size = os.sysconf("SC_PAGESIZE")
    return (int(pages) - int(shared)) * size, int(shared) * size


def tree_bytes(pids: list[int]) -> int:
    """Return the memory of several processes of one program, in bytes: what they map in common counts once."""
    parts = [resident(pid) for pid in pids]
    return sum(private for private, _ in parts) + max((shared for _, shared in parts), default=0)


class MemoryWatch:
    """Samples the memory of this process and its workers, keeps the peak, and notices when a limit is passed.

    Parameters
    ----------
    pids
        Returns the worker processes.
    limit
        Bytes the whole run may use.
    """

    def __init__(self, pids: Callable[[], list[int]], limit: int) -> None:
        self._pids = pids
        self._limit = limit
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="moraine-memory", daemon=True)
        self.peak_bytes = 0
        self.worker_peaks: dict[int, int] = {}
        self.over_limit = 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def renew(self) -> None:
        """Forget an excess of before: the work that made it is over."""
        self.over_limit = 0
        self.sample()

    def stop(self) -> None:
        """End."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            self.sample()

    def sample(self) -> None:
        """Take one sample."""
        workers = self._pids()
        for pid in workers:
            self.worker_peaks[pid] = max(self.worker_peaks.get(pid, 0), sum(resident(pid)))
        total = tree_bytes([os.getpid(), *workers])
        self.peak_bytes = max(self.peak_bytes, total)
        if total > self._limit:
            self.over_limit = max(self.over_limit, total)


def gib(count: float) -> str:
    """Return a size for people, such as ``1.5 GiB``, ``12 MiB`` or ``3 KiB``."""
    if count >= 2**30:
        return f"{count / 2**30:.1f} GiB"
    return f"{count / 2**20:.0f} MiB" if count >= 2**20 else f"{count / 2**10:.0f} KiB"
