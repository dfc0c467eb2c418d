"""What `gpu_check` lets the workers do: importable, and light before the first call."""

from __future__ import annotations

import os
import time
from typing import Any

Array = Any
"""Of numpy or of cupy."""

_failed_once = False


def where() -> dict[str, Any]:
    """Return what this worker knows of its GPU."""
    import cupy

    return {
        "pid": os.getpid(),
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "count": cupy.cuda.runtime.getDeviceCount(),
        "name": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "memory": cupy.cuda.runtime.memGetInfo(),
    }


def pool_bytes() -> int:
    """Return the bytes that cupy keeps on the GPU, in use or for later."""
    import cupy

    return int(cupy.get_default_memory_pool().total_bytes())


def kinds(*values: Any) -> list[str]:
    """Return from which library each argument is."""
    return [type(value).__module__.partition(".")[0] for value in values]


def scaled(array: Array, table: Array, factor: float) -> Array:
    """Return something that is the same to the last bit wherever it is computed."""
    return (array + table[: array.shape[0], None]) * factor


def stage_seconds(source: Any, target: Any) -> tuple[float, float]:
    """Return how long reading and writing one chunk takes here."""
    start = time.perf_counter()
    values = source.read()
    middle = time.perf_counter()
    target.write(values)
    return middle - start, time.perf_counter() - middle


def busy(array: Array, seconds: float) -> Array:
    """Keep the GPU busy for a while; return the array as it came."""
    import cupy

    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        cupy.sqrt(array)
        cupy.cuda.Device().synchronize()
    return array


def hungry(nbytes: int) -> int:
    """Ask for device memory; return how much there was."""
    import cupy

    return int(cupy.empty(nbytes, dtype=cupy.uint8).nbytes)


def hungry_once(nbytes: int) -> int:
    """Ask for device memory twice over at the first call, holding the first half, and once at the next."""
    global _failed_once  # noqa: PLW0603 - the call is to know that it is repeated
    import cupy

    held = cupy.empty(nbytes, dtype=cupy.uint8)
    if not _failed_once:
        _failed_once = True
        held = [held, cupy.empty(nbytes, dtype=cupy.uint8)]
    return nbytes


def die() -> None:
    """End this worker."""
    os._exit(3)
