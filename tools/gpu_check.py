"""Runs every GPU path on a machine with a GPU, compares with the CPU, and prints a table with times.

    pip install -e . -e plugins/ps "cupy-cuda12x[ctk]"    # or the cupy of your CUDA version
    python tools/gpu_check.py

It installs nothing, takes less than 5 minutes, and exits with 1 if a check failed. A check is a function with the
decorator `check`: it returns a note for the table, and fails by raising.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from moraine_core import Executor

    Array = np.ndarray[Any, Any]

LIMIT_SECONDS = 290
"""Whatever hangs is ended then, with a traceback of all threads."""

CHECKS: list[Check] = []


@dataclass(frozen=True)
class Setting:
    """What the checks work with: a temporary folder, and the side of the square stack in pixels."""

    folder: Path
    side: int


@dataclass(frozen=True)
class Check:
    """One check: its name in the table, and the function that returns a note or raises."""

    name: str
    run: Callable[[Setting], str]


def check(name: str) -> Callable[[Callable[[Setting], str]], Callable[[Setting], str]]:
    """Add a function to the checks, which run in the order of this file."""

    def add(function: Callable[[Setting], str]) -> Callable[[Setting], str]:
        CHECKS.append(Check(name, function))
        return function

    return add


def expect(holds: object, message: str) -> None:
    """Fail the check with a message unless something holds."""
    if not holds:
        raise AssertionError(message)


def main() -> int:
    """Run the checks and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="WORD", default="", help="run only checks whose name holds this word")
    parser.add_argument("--side", type=int, default=1000, help="lines and pixels of the simulated stack (pixels)")
    parser.add_argument("--list", action="store_true", help="print the names of the checks")
    chosen = parser.parse_args()
    checks = [one for one in CHECKS if chosen.only in one.name]
    if chosen.list:
        print("\n".join(one.name for one in checks))
        return 0
    if problem := unusable():
        sys.exit(f"gpu_check: {problem}")
    faulthandler.dump_traceback_later(LIMIT_SECONDS, exit=True)
    print("| check | result | seconds | note |\n| --- | --- | --- | --- |")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="moraine-gpu-") as folder:
        for one in checks:
            start = time.perf_counter()
            try:
                note, result = one.run(Setting(Path(folder), chosen.side)), "ok"
            except Exception as error:  # noqa: BLE001 - one failing check must not stop the others
                traceback.print_exc()
                note, result = f"{type(error).__name__}: {error}".replace("\n", " ").replace("|", "/"), "FAILED"
                failed += 1
            print(f"| {one.name} | {result} | {time.perf_counter() - start:.2f} | {note} |", flush=True)
    return 1 if failed else 0


def unusable() -> str:
    """Return why nothing can be checked here, or nothing."""
    from importlib.util import find_spec

    from moraine_core.device import visible_gpus
    from moraine_core.errors import DeviceError

    try:
        visible_gpus()
    except DeviceError as error:
        return str(error)
    return "" if find_spec("cupy") else "cupy is not installed; see the top of this file"


# --------------------------------------------------------------------------------------- devices and binding


@check("devices: the driver lists them")
def devices(_: Setting) -> str:
    """Ask the management library for unique identifiers."""
    from moraine_core.device import driver_gpus, visible_gpus

    uuids = driver_gpus()
    expect(uuids and len(set(uuids)) == len(uuids), f"no unique identifiers: {uuids}")
    expect(all(uuid.startswith("GPU-") for uuid in uuids), f"not identifiers of GPUs: {uuids}")
    return f"{len(uuids)} in this machine, {len(visible_gpus())} visible"


@check("executor: each worker is bound to one GPU, the parent to none")
def binding(_: Setting) -> str:
    """A16: the device is fixed before CUDA is loaded, in the workers only."""
    import gpu_kernels

    from moraine_core import Executor
    from moraine_core.device import visible_gpus

    with Executor(cuda=True) as executor:
        answers = executor.run_on_workers(gpu_kernels.where)
        slots = executor.backend.slots()
    expect(not has_context(), "the parent has a context on a GPU")
    expect([answer["visible"] for answer in answers] == visible_gpus(), f"bound to {answers}")
    expect(all(answer["count"] == 1 for answer in answers), f"a worker sees several GPUs: {answers}")
    expect([slot.gpu for slot in slots] == [answer["name"] for answer in answers], f"slots are {slots}")
    for slot, answer in zip(slots, answers, strict=True):
        expect(0 < slot.gpu_bytes <= answer["memory"][1], f"free memory is told as {slot.gpu_bytes}")
    return ", ".join(f"{slot.gpu} with {slot.gpu_bytes / 2**30:.1f} GiB free" for slot in slots)


@check("executor: a GPU by number and by UUID")
def chosen_gpu(_: Setting) -> str:
    """A17: the user says which."""
    import gpu_kernels

    from moraine_core import Executor
    from moraine_core.device import driver_gpus, visible_gpus

    number = visible_gpus()[-1]
    names = [number, driver_gpus()[int(number)]] if number.isdecimal() else [number]
    for name in names:
        with Executor(cuda=True, gpus=(name,)) as executor:
            (answer,) = executor.run_on_workers(gpu_kernels.where)
        expect((answer["visible"], answer["count"]) == (name, 1), f"--gpus {name} gives {answer}")
    return " = ".join(names)


@check("executor: a GPU that is absent is an error at once")
def absent(_: Setting) -> str:
    """A17: in under 5 seconds, with a sentence."""
    from moraine_core import Executor
    from moraine_core.device import visible_gpus
    from moraine_core.errors import DeviceError

    sentences = []
    for arguments in ({"gpus": ("99",)}, {"n_workers": len(visible_gpus()) + 1}):
        start = time.perf_counter()
        try:
            with Executor(cuda=True, **arguments):  # type: ignore[arg-type]
                pass
        except DeviceError as error:
            sentences.append(str(error))
        else:
            expect(False, f"Executor(cuda=True, {arguments}) starts")  # noqa: FBT003
        expect(time.perf_counter() - start < 5, "it took 5 s or more")
    return "; ".join(sentences)


# ----------------------------------------------------------------------------------------------- chunk tasks


@check("chunk tasks: chunks, Device and put arguments arrive on the GPU")
def arguments(setting: Setting) -> str:
    """Arrays are moved, plain values are not, and without cuda nothing is."""
    import gpu_kernels
    import numpy as np

    from moraine_core import Chunk, Device, Executor
    from moraine_core.testing.data import write_array

    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    chunk = Chunk(write_array(setting.folder / "arguments.zarr", values))
    with Executor(cuda=True) as executor:
        arrays = [chunk, Device(values), Device(executor.put(values))]
        (on_gpu,) = executor.map_chunks(gpu_kernels.kinds, [([*arrays, 3.0], [])])
        (on_cpu,) = executor.map_chunks(gpu_kernels.kinds, [([*arrays, 3.0], [])], cuda=False)
    expect(on_gpu == ["cupy"] * 3 + ["builtins"], f"with cuda they are {on_gpu}")
    expect(on_cpu == ["numpy"] * 3 + ["builtins"], f"without cuda they are {on_cpu}")
    return ""


@check("chunk tasks: map_chunks on the GPU equals the CPU, bit for bit")
def map_chunks(setting: Setting) -> str:
    """From zarr to zarr, ragged chunks included."""
    import gpu_kernels
    import numpy as np

    from moraine_core import Chunk, Device, Executor, Layout, blocks
    from moraine_core.store import create
    from moraine_core.testing.data import read_array, write_array

    rng = np.random.default_rng(1)
    values, table = rng.random((103, 57), dtype=np.float32), rng.random(103, dtype=np.float32)
    source = write_array(setting.folder / "values.zarr", values, (20, 30))
    results = []
    for cuda in (False, True):
        out = Layout(str(setting.folder / f"scaled-{cuda}.zarr"), values.shape, "float32", (20, 30))
        create(out, out.path)
        tasks = [
            ([Chunk(source, block), Device(table[block[0]])], [Chunk(out, block)])
            for block in blocks(values.shape, (20, 30))
        ]
        with Executor(cuda=cuda) as executor:
            executor.map_chunks(gpu_kernels.scaled, tasks, factor=1.5)
        results.append(read_array(out.path))
    expect(np.array_equal(*results), "GPU and CPU differ")
    expect(np.array_equal(results[0], (values + table[:, None]) * np.float32(1.5)), "the result is wrong")
    return f"{len(tasks)} tasks"


@check("chunk tasks: reading ahead, computing and writing behind overlap")
def overlap(setting: Setting) -> str:
    """Compare the wall time of a pipeline with the sum of its stages."""
    import gpu_kernels
    import numpy as np

    from moraine_core import Chunk, Layout, blocks
    from moraine_core.store import create
    from moraine_core.testing.data import write_array

    count, side = 12, 2048
    shape, size = (count * side, side), (side, side)
    values = np.random.default_rng(1).random(shape, dtype=np.float32)
    source = write_array(setting.folder / "pipeline.zarr", values, size)
    del values
    out = Layout(str(setting.folder / "pipeline-out.zarr"), shape, "float32", size)
    create(out, out.path)
    parts = list(blocks(shape, size))
    with one_gpu() as executor:
        # the first call pays for imports, the others tell the time
        stages = executor.map(gpu_kernels.stage_seconds, [(Chunk(source, b), Chunk(out, b)) for b in parts[:4]])[1:]
        transfer = float(np.mean([read + write for read, write in stages]))
        compute = max(transfer, 0.05)
        tasks = [([Chunk(source, b)], [Chunk(out, b)]) for b in parts]
        executor.map_chunks(gpu_kernels.busy, tasks[:1], seconds=0.0)
        start = time.perf_counter()
        executor.map_chunks(gpu_kernels.busy, tasks, seconds=compute)
        wall = time.perf_counter() - start
    total = count * (transfer + compute)
    expect(wall < 0.8 * total, f"{wall:.2f} s for stages of {total:.2f} s in sum")
    return f"{wall:.2f} s for stages of {total:.2f} s in sum"


# ---------------------------------------------------------------------------------------------------- memory


@check("memory: a GPU that is full gives an error with sizes, and the worker lives on")
def out_of_memory(_: Setting) -> str:
    """A19: pools freed, tried once more, then the sizes are told."""
    import gpu_kernels

    with one_gpu() as executor:
        (before,) = executor.run_on_workers(gpu_kernels.where)
        free, total = before["memory"]
        try:
            executor.map_chunks(gpu_kernels.hungry, [([4 * total], [])])
        except MemoryError as error:
            message = str(error)
        else:
            expect(False, "it fits")  # noqa: FBT003
        expect(any(unit in message for unit in ("bytes", "GiB", "MiB")), f"no sizes in: {message}")
        expect(not has_context(), "the error brings a context into the parent")
        (got,) = executor.map_chunks(gpu_kernels.hungry, [([int(0.6 * free)], [])])
        (after,) = executor.run_on_workers(gpu_kernels.where)
    expect(got == int(0.6 * free), f"then {got} bytes")
    expect(after["pid"] == before["pid"], "the worker was replaced")
    return message


@check("memory: the second try finds what the first one held free again")
def second_try(_: Setting) -> str:
    """A19: the arrays of the failed call, which its traceback knows, are let go before."""
    import gpu_kernels

    with one_gpu() as executor:
        (answer,) = executor.run_on_workers(gpu_kernels.where)
        share = int(0.6 * answer["memory"][0])
        (got,) = executor.map_chunks(gpu_kernels.hungry_once, [([share], [])])
    expect(got == share, f"{got} bytes instead of {share}")
    return f"{share / 2**30:.1f} GiB"


@check("memory: a task that cannot fit is refused before it runs")
def admission(_: Setting) -> str:
    """Admission knows the GPU's free memory."""
    with one_gpu() as executor:
        size = executor.backend.slots()[0].gpu_bytes
        expect(executor.fits(2**20), "1 MiB does not fit")
        expect(not executor.fits(size), "the whole free memory fits")
    return f"{size / 2**30:.1f} GiB"


@check("workers: one that dies is told of, and replaced")
def death(_: Setting) -> str:
    """Bind the GPU again in a new process."""
    import gpu_kernels

    from moraine_core.errors import WorkerDiedError

    with one_gpu() as executor:
        try:
            executor.map(gpu_kernels.die, [()])
        except WorkerDiedError as error:
            message = str(error)
        else:
            expect(False, "nobody died")  # noqa: FBT003
        (answer,) = executor.map(gpu_kernels.where, [()])
    expect("exit code 3" in message, message)
    expect(answer["count"] == 1, f"the new worker sees {answer}")
    return message


# -------------------------------------------------------------------------------------------------- amp-disp


@check("amp-disp: the command from zarr to zarr equals the CPU")
def amp_disp_command(setting: Setting) -> str:
    """Run it with every option, for rasters and points."""
    import numpy as np

    from moraine_core import RunOptions, Workers
    from moraine_core.run import ExecutorPool, run_command
    from moraine_core.testing.data import read_array, write_array
    from moraine_ps.amp_disp import amp_disp

    stack = simulated_stack(setting.side, 30)
    half = -(-setting.side // 2)
    points = write_array(setting.folder / "points.zarr", stack[0], (300, 1))
    raster = write_array(setting.folder / "rslc.zarr", stack, (half, half, 1))
    found: dict[tuple[bool, str], Array] = {}
    spent = []
    for cuda in (False, True):
        with ExecutorPool() as pool:
            for rslc in (points, raster):
                for options in ({}, {"calibrate": True}, {"strict": True}, {"min_images": 20}):
                    arguments = {"rslc": rslc, "adi": str(setting.folder / "adi.zarr"), **options}
                    record = run_command(amp_disp, arguments, Workers(cuda=cuda), RunOptions(fresh=True), pool=pool)
                    found[cuda, f"{rslc} {options}"] = read_array(arguments["adi"])
        spent.append(record.seconds)
    calls = [call for cuda, call in found if cuda]
    for call in calls:
        np.testing.assert_allclose(found[True, call], found[False, call], rtol=1e-5, err_msg=call)
        expect(np.isfinite(found[True, call]).any(), f"{call}: nothing but nan")
    return f"{len(calls)} calls; the last, {stack.nbytes / 1e6:.0f} MB: CPU {spent[0]:.2f} s, GPU {spent[1]:.2f} s"


@check("pools: freed between the commands of a kept executor")
def pools(setting: Setting) -> str:
    """A19: two commands share the worker, and neither leaves memory behind."""
    import gpu_kernels

    from moraine_core import RunOptions, Workers
    from moraine_core.run import ExecutorPool, run_command
    from moraine_core.testing.data import write_array
    from moraine_ps.amp_disp import amp_disp

    rslc = write_array(setting.folder / "small.zarr", simulated_stack(200, 5), (200, 200, 1))
    workers, options = Workers(cuda=True), RunOptions()
    seen = []
    with ExecutorPool() as pool:
        for number in range(2):
            arguments = {"rslc": rslc, "adi": str(setting.folder / f"pooled-{number}.zarr")}
            run_command(amp_disp, arguments, workers, options, pool=pool)
            executor = pool.get(workers, options, None)
            left = executor.run_on_workers(gpu_kernels.pool_bytes)
            expect(not any(left), f"{left} bytes are left in pools")
            seen.append([answer["pid"] for answer in executor.run_on_workers(gpu_kernels.where)])
    expect(seen[0] == seen[1], f"other workers for the second command: {seen}")
    return f"{len(seen[0])} workers kept"


@check("kernels: amp-disp on cupy arrays equals numpy")
def amp_disp_kernel(setting: Setting) -> str:
    """Array functions take either kind and return the same; from here on this process uses the GPU itself."""
    import cupy
    import numpy as np

    from moraine_ps import kernels

    stack = simulated_stack(setting.side, 30)
    device = cupy.asarray(stack)
    for options in ({}, {"strict": True}, {"min_images": 20}):
        found = kernels.amp_disp(device, **options)
        expect(isinstance(found, cupy.ndarray) and found.dtype == np.float32, f"it returns {type(found)}")
        np.testing.assert_allclose(found.get(), kernels.amp_disp(stack, **options), rtol=1e-5, err_msg=str(options))
    for mine, theirs in zip(
        kernels.amplitude_sums([device[..., 0]]), kernels.amplitude_sums([stack[..., 0]]), strict=True
    ):
        expect(mine[1] == theirs[1], f"{mine[1]} valid samples instead of {theirs[1]}")
        np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-12)
    double = kernels.amp_disp(device[:50].astype(np.complex128))
    np.testing.assert_allclose(double.get(), kernels.amp_disp(stack[:50]), rtol=1e-5)
    expect(kernels.amp_disp(device[:0]).shape == (0, setting.side), "an empty stack has another shape")
    return f"{stack.shape} with missing samples"


@check("kernels: speed of amp-disp, planes on the GPU")
def amp_disp_speed(setting: Setting) -> str:
    """Time the kernel alone, without transfers; the CPU's is serial."""
    import cupy

    from moraine_ps import kernels

    stack = simulated_stack(setting.side, 30)
    planes = [stack[..., image].copy() for image in range(stack.shape[-1])]
    on_gpu = [cupy.asarray(plane) for plane in planes]
    rates = []
    for arrays in (planes, on_gpu):
        kernels.amp_disp_stream(arrays)  # compiled
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(3):
            kernels.amp_disp_stream(arrays)
        cupy.cuda.Device().synchronize()
        rates.append(3 * stack.nbytes / (time.perf_counter() - start) / 1e9)
    return f"CPU {rates[0]:.2f} GB/s, GPU {rates[1]:.0f} GB/s of stack"


@check("executor: works after a GPU call in the parent process")
def after_parent(setting: Setting) -> str:
    """A18: nothing is forked, so a context in the parent does no harm."""
    import cupy

    expect(int(cupy.arange(10).sum()) == 45, "the parent's own GPU call is wrong")
    cupy.get_default_memory_pool().free_all_blocks()
    return map_chunks(setting)


# ---------------------------------------------------------------------------------------------------- helpers


def has_context() -> bool:
    """Tell whether this process uses a GPU; asking changes nothing."""
    cuda = ctypes.CDLL("libcuda.so.1")
    count, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
    if cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return False  # CUDA has not even been initialized
    for number in range(count.value):
        cuda.cuDevicePrimaryCtxGetState(number, ctypes.byref(flags), ctypes.byref(active))
        if active.value:
            return True
    return False


def one_gpu() -> Executor:
    """Return an executor with one worker."""
    from moraine_core import Executor
    from moraine_core.device import visible_gpus

    return Executor(cuda=True, gpus=tuple(visible_gpus()[:1]))


def simulated_stack(side: int, n_images: int) -> Array:
    """Return speckle, in its right half with every kind of missing sample."""
    import numpy as np

    from moraine_core.testing.data import speckle

    stack = speckle((side, side, n_images), seed=3)
    right = stack[:, side // 2 :]
    rng = np.random.default_rng(4)
    for value in (np.nan, np.inf, 0, 1e-38):
        right[rng.random(right.shape) < 0.02] = value
    right[1, 2] = np.nan
    right[3, 4] = 0
    return stack


if __name__ == "__main__":
    sys.exit(main())
