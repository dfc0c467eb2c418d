"""Arrays on CPU or GPU: which module works on an array, which GPUs there are, and moving arrays between them.

The parent process never touches CUDA: GPUs are counted by asking the driver's management library (NVML), which makes
no context on any device.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import TYPE_CHECKING, Any

from moraine_core.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType


def array_module(array: Any) -> ModuleType:
    """Return cupy for an array on a GPU, numpy for any other; cupy is never imported for it."""
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(array, cupy.ndarray):
        return cupy
    import numpy as np

    return np


def to_device(value: Any) -> Any:
    """Return a numpy array as a cupy array on the process's GPU."""
    import cupy

    return cupy.asarray(value)


def to_host(value: Any) -> Any:
    """Return a cupy array as a numpy array of the same order in memory; anything else as it is."""
    # reordering on the way would take longer than the way, and what is written column by column wants columns
    return value.get(order="A") if array_module(value).__name__ == "cupy" else value


def driver_gpus() -> list[str]:
    """Return the UUIDs of all GPUs of this machine in bus order; an empty list where there is no driver."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return []
    if nvml.nvmlInit_v2() != 0:
        return []
    try:
        count = ctypes.c_uint()
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return []
        uuids = []
        for index in range(count.value):
            handle, text = ctypes.c_void_p(), ctypes.create_string_buffer(96)
            if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0:
                nvml.nvmlDeviceGetUUID(handle, text, 96)
            uuids.append(text.value.decode())
        return uuids
    finally:
        nvml.nvmlShutdown()


def visible_gpus(
    wanted: Sequence[str] = (), *, environ: Mapping[str, str] | None = None, driver: Sequence[str] | None = None
) -> list[str]:
    """Return the GPUs to use, as values of ``CUDA_VISIBLE_DEVICES``, one per worker.

    Parameters
    ----------
    wanted
        Numbers or UUIDs from ``--gpus``; empty for all that are visible.
    environ, driver
        The environment, and the UUIDs that the driver knows; those of this machine by default.

    Raises
    ------
    DeviceError
        There is no GPU, or one that was asked for is not there or not visible.
    """
    environ = os.environ if environ is None else environ
    driver = driver_gpus() if driver is None else driver
    if not driver:
        msg = "no GPU: the NVIDIA driver reports none on this machine; leave out --cuda to run on the CPU"
        raise DeviceError(msg)
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    visible = [str(i) for i in range(len(driver))] if listed is None else _entries(listed.split(","))
    if not visible:
        msg = f"no GPU: CUDA_VISIBLE_DEVICES is {listed!r}, which hides all {len(driver)}"
        raise DeviceError(msg)
    visible_uuids = [_uuid(entry, driver, "CUDA_VISIBLE_DEVICES") for entry in visible]
    chosen = {}
    for entry in _entries(",".join(wanted).split(",")) or visible:
        uuid = _uuid(entry, driver, "--gpus")
        if uuid not in visible_uuids:
            msg = f"--gpus names {entry}, which CUDA_VISIBLE_DEVICES={listed} hides"
            raise DeviceError(msg)
        if uuid in chosen:
            msg = f"GPU {entry} is named twice; each worker needs one of its own"
            raise DeviceError(msg)
        chosen[uuid] = entry
    return list(chosen.values())


def _entries(words: Sequence[str]) -> list[str]:
    """Return the entries up to the first invalid one, as CUDA itself reads the variable."""
    entries: list[str] = []
    for word in (w.strip() for w in words):
        if word == "-1":
            break
        if word:
            entries.append(word)
    return entries


def _uuid(entry: str, driver: Sequence[str], source: str) -> str:
    """Return the UUID of a GPU given by number or by (the beginning of its) UUID."""
    if entry.startswith("MIG-"):
        return entry
    matches = [driver[int(entry)]] if entry.isdecimal() and int(entry) < len(driver) else []
    matches = matches or [uuid for uuid in driver if entry.startswith("GPU-") and uuid.startswith(entry)]
    if len(matches) != 1:
        msg = f"{source} names GPU {entry}, but the driver knows {len(driver)}: 0 to {len(driver) - 1}"
        raise DeviceError(msg)
    return matches[0]


def bind_gpu() -> dict[str, Any]:
    """Check, in a worker whose environment already names one GPU, that it works; return its name and free memory.

    Raises
    ------
    DeviceError
        cupy is not installed, or the GPU cannot be used.
    """
    where = f"GPU {os.environ.get('CUDA_VISIBLE_DEVICES')}"
    try:
        import cupy
    except ImportError as error:
        msg = f"{where}: cupy cannot be imported ({error}); install cupy-cuda12x or the one for your CUDA version"
        raise DeviceError(msg) from None
    try:
        cupy.cuda.Device(0).use()
        cupy.ones(1).sum().item()
        free, total = cupy.cuda.runtime.memGetInfo()
        name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    except Exception as error:  # noqa: BLE001 - cupy and CUDA have many
        msg = f"{where} cannot be used: {error}"
        raise DeviceError(msg) from None
    return {"gpu": name, "free_bytes": free, "total_bytes": total}


def free_pools() -> None:
    """Give the GPU memory that cupy keeps for later back to the device."""
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()
