"""Task functions that worker processes import by name, and the strange things tasks do."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np


class TwoArgumentsError(Exception):
    """Cannot be rebuilt from its ``args``, as pickle would."""

    def __init__(self, what, where):
        super().__init__(f"{what} at {where}")


class LockedError(Exception):
    """Holds what no pickle can carry."""

    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


class PlainError(ValueError):
    """An exception of the user's own that travels well."""


def double(x):
    return 2 * x


def slow_double(x, seconds=0.02):
    time.sleep(seconds * (x % 3))
    return 2 * x


def sleep(seconds):
    time.sleep(seconds)
    return os.getpid()


def pid(*_):
    return os.getpid()


def where(*_):
    return os.getpid(), threading.get_native_id()


def fail(kind, *args):
    kinds = {
        "value": ValueError,
        "plain": PlainError,
        "two": TwoArgumentsError,
        "locked": LockedError,
        "exit": SystemExit,
        "memory": MemoryError,
    }
    raise kinds[kind](*args)


def fail_at(x, bad):
    if x == bad:
        raise ValueError("x")
    return x


def fail_at_some(x, bad, kind="value"):
    """Raise an error at some numbers."""
    if x in bad:
        fail(kind, f"number {x} is bad")
    return x


def unpicklable(_):
    return threading.Lock()


def end(code):
    os._exit(code)


def end_at(x, bad, code=3):
    if x == bad:
        os._exit(code)
    return x


def kill_self(number):
    os.kill(os.getpid(), number)
    time.sleep(30)


def crash(_=None):
    ctypes.string_at(0)


def crash_kernel(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def leave_child_and_end(_):
    """End while a program that was started through the shell lives on."""
    os.system("sleep 20 >/dev/null 2>&1 &")
    os._exit(3)


def die_or_sleep(x):
    """Task 0 dies at once, the others keep their worker busy."""
    if x == 0:
        os._exit(3)
    time.sleep(2)
    return x


def die_once(folder, x):
    """Die the first time, answer the second."""
    mark = Path(folder) / str(x)
    if x == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def mark_and_sleep(folder, x, seconds):
    """Say that the task has begun, by a file, and take its time."""
    (Path(folder) / f"{x}").touch()
    time.sleep(seconds)
    return x


def mark_and_fail_at(folder, x, bad):
    (Path(folder) / f"{x}").touch()
    if x == bad:
        raise ValueError("x")
    time.sleep(0.2)
    return x


def hold_interpreter(seconds):
    """Keep the interpreter lock, as a careless extension module would."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


def allocate(mib, seconds):
    block = np.ones(mib * 2**17)
    time.sleep(seconds)
    return block.size


def total(array, *rest):
    return float(array.sum()) + len(rest)


def nested_total(box):
    return float(box["arrays"][0].sum() + box["arrays"][1]["deep"].sum())


def write_into(array):
    array[0] = 7


def writeable(box):
    return box["a"].flags.writeable


def private_bytes(array):
    """Touch all of an array; return the memory of this process alone that no file backs, copies of arrays among it."""
    assert float(array.sum()) == array.size
    rollup = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in rollup if line.startswith("Anonymous:"))


_ONE_LOOKS = threading.Lock()


def threads_of_libraries(*_):
    # looking at loaded libraries while another thread loads one can lock up the dynamic loader
    with _ONE_LOOKS:
        import numba
        import numpy.linalg  # noqa: F401 - loads BLAS
        from threadpoolctl import threadpool_info

        return [pool["num_threads"] for pool in threadpool_info()] + [numba.get_num_threads()]


def blas(*_):
    a = np.ones((64, 64))
    return float((a @ a).sum())


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    os.write(1, f"{text} raw\n".encode())
    subprocess.run(["echo", f"{text} child"], check=True)


def start_method():
    import multiprocessing

    return multiprocessing.current_process().__class__.__module__


def environment(name):
    return os.environ.get(name)


def imported_with():
    """The variable as the fake cupy saw it when it was imported."""
    import cupy

    return cupy.SEEN


def stop_me_in(array, seconds):
    """A kernel that takes a while."""
    time.sleep(seconds)
    return array


def add_one(array):
    return array + 1


def sleepy_sum(array, seconds, folder, number):
    """A kernel that says when it has begun, and then takes its time."""
    (Path(folder) / str(number)).touch()
    time.sleep(seconds)
    return float(array.sum())


def too_few(array):
    return [array]


def refuse(_array):
    raise PlainError("the kernel refuses")


def open_often(path, times):
    from moraine_core import store

    return sum(store.open_array(path).shape[0] for _ in range(times))


def numba_sum(values):
    from numba_kernel import kernel

    return kernel(values)


def run(fn: Any, *args: Any) -> Any:
    return fn(*args)


def ones_of(mebibytes):
    return np.ones(mebibytes * 2**17)


def mean_of(number, large):
    return np.full(1, number * large[:: 2**9].mean())
