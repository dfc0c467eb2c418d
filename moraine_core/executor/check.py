"""Trying a named executor: one task in each slot, which says where it is and what it has there."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core import __version__
from moraine_core.executor import memory
from moraine_core.executor.core import Executor
from moraine_core.executor.memory import gib
from moraine_core.options import Workers

if TYPE_CHECKING:
    from moraine_core.plugins import PluginHost

LIBRARIES = ("moraine-core", "numpy", "zarr")


def look_around(folder: str, secret: str) -> dict[str, Any]:
    """Return what a task finds in its worker: versions, processors, memory, GPU, and whether a file can be seen."""
    seen = False
    with contextlib.suppress(OSError):
        seen = Path(folder, "seen").read_text(encoding="utf-8") == secret
    return {
        "pid": os.getpid(),
        "python": platform.python_version(),
        **{name: _version(name) for name in LIBRARIES},
        "cores": memory.usable_cores(),
        "free_bytes": memory.get_mem_avail(),
        "gpus": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
        "shared": seen,
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def check_executor(host: PluginHost, name: str, *, cuda: bool = False) -> dict[str, Any]:
    """Start a named executor, run one task in each of its slots, and stop it.

    Returns
    -------
    dict
        ``slots``: one row each. ``problems``: sentences, none if all is well.
    """
    begin = time.monotonic()
    workers = Workers(executor=name, cuda=cuda)
    secret = secrets.token_hex()
    with Executor.of(workers, backend=host.backend(workers)) as executor:
        ready = time.monotonic() - begin
        folder = executor.backend.put_dir()
        if folder is not None:
            (folder / "seen").write_text(secret, encoding="utf-8")
        found = executor.run_on_workers(look_around, str(folder or ""), secret)
        slots = executor.backend.slots()
        if folder is not None:
            (folder / "seen").unlink(missing_ok=True)
    rows = [
        {"node": slot.node, "job": slot.job, "gpu": slot.gpu, "memory_bytes": slot.memory_bytes, **row}
        for slot, row in zip(slots, found, strict=False)
    ]
    problems = []
    for row in rows:
        if folder is not None and not row["shared"]:
            problems.append(f"{row['node']} does not see {folder}: shared must be a folder that all nodes share")
        here = {"python": platform.python_version(), **{name: _version(name) for name in LIBRARIES}}
        problems += [f"{row['node']} has {k} {row[k]}, this machine {v}" for k, v in here.items() if row[k] != v]
    return {
        "executor": name,
        "seconds_to_first_slot": round(ready, 1),
        "moraine": __version__,
        "slots": rows,
        "problems": list(dict.fromkeys(problems)),
    }


def describe(found: dict[str, Any]) -> str:
    """Return the result of `check_executor` for people."""
    lines = [f"{found['executor']}: first slot after {found['seconds_to_first_slot']} s, {len(found['slots'])} slots"]
    for row in found["slots"]:
        gpu = row["gpu"] or (f"GPU {row['gpus']}" if row["gpus"] else "no GPU")
        lines.append(
            f"  {row['node'] or 'here'}, job {row['job'] or '-'}: Python {row['python']}, numpy {row['numpy']}, "
            f"zarr {row['zarr']}, {row['cores']} cores, {gib(row['memory_bytes'] or row['free_bytes'])} a task, {gpu}"
        )
    return "\n".join([*lines, *(f"  problem: {problem}" for problem in found["problems"])])
