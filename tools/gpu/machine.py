"""Checks of the machine and the executor: devices, binding, transfers, overlap, memory, workers that die."""

from __future__ import annotations

import ctypes
import time
from typing import TYPE_CHECKING

from gpu.registry import Setting, check, expect

if TYPE_CHECKING:
    from moraine_core import Executor

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
    from gpu import work
    from moraine_core import Executor
    from moraine_core.device import visible_gpus

    with Executor(cuda=True) as executor:
        answers = executor.run_on_workers(work.where)
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
    from gpu import work
    from moraine_core import Executor
    from moraine_core.device import driver_gpus, visible_gpus

    number = visible_gpus()[-1]
    names = [number, driver_gpus()[int(number)]] if number.isdecimal() else [number]
    for name in names:
        with Executor(cuda=True, gpus=(name,)) as executor:
            (answer,) = executor.run_on_workers(work.where)
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
    import numpy as np

    from gpu import work
    from moraine_core import Chunk, Device, Executor
    from moraine_core.testing.data import write_array

    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    chunk = Chunk(write_array(setting.folder / "arguments.zarr", values))
    with Executor(cuda=True) as executor:
        arrays = [chunk, Device(values), Device(executor.put(values))]
        (on_gpu,) = executor.map_chunks(work.kinds, [([*arrays, 3.0], [])])
        (on_cpu,) = executor.map_chunks(work.kinds, [([*arrays, 3.0], [])], cuda=False)
    expect(on_gpu == ["cupy"] * 3 + ["builtins"], f"with cuda they are {on_gpu}")
    expect(on_cpu == ["numpy"] * 3 + ["builtins"], f"without cuda they are {on_cpu}")
    return ""


@check("chunk tasks: map_chunks on the GPU equals the CPU, bit for bit")
def map_chunks(setting: Setting) -> str:
    """From zarr to zarr, ragged chunks included."""
    import numpy as np

    from gpu import work
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
            executor.map_chunks(work.scaled, tasks, factor=1.5)
        results.append(read_array(out.path))
    expect(np.array_equal(*results), "GPU and CPU differ")
    expect(np.array_equal(results[0], (values + table[:, None]) * np.float32(1.5)), "the result is wrong")
    return f"{len(tasks)} tasks"


@check("chunk tasks: reading ahead, computing and writing behind overlap")
def overlap(setting: Setting) -> str:
    """Compare the wall time of a pipeline with the sum of its stages."""
    import numpy as np

    from gpu import work
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
        stages = executor.map(work.stage_seconds, [(Chunk(source, b), Chunk(out, b)) for b in parts[:4]])[1:]
        transfer = float(np.mean([read + write for read, write in stages]))
        compute = max(transfer, 0.05)
        tasks = [([Chunk(source, b)], [Chunk(out, b)]) for b in parts]
        executor.map_chunks(work.busy, tasks[:1], seconds=0.0)
        start = time.perf_counter()
        executor.map_chunks(work.busy, tasks, seconds=compute)
        wall = time.perf_counter() - start
    total = count * (transfer + compute)
    expect(wall < 0.8 * total, f"{wall:.2f} s for stages of {total:.2f} s in sum")
    return f"{wall:.2f} s for stages of {total:.2f} s in sum"


# ---------------------------------------------------------------------------------------------------- memory


@check("memory: a GPU that is full gives an error with sizes, and the worker lives on")
def out_of_memory(_: Setting) -> str:
    """A19: pools freed, tried once more, then the sizes are told."""
    from gpu import work

    with one_gpu() as executor:
        (before,) = executor.run_on_workers(work.where)
        free, total = before["memory"]
        try:
            executor.map_chunks(work.hungry, [([4 * total], [])])
        except MemoryError as error:
            message = str(error)
        else:
            expect(False, "it fits")  # noqa: FBT003
        expect(any(unit in message for unit in ("bytes", "GiB", "MiB")), f"no sizes in: {message}")
        expect(not has_context(), "the error brings a context into the parent")
        (got,) = executor.map_chunks(work.hungry, [([int(0.6 * free)], [])])
        (after,) = executor.run_on_workers(work.where)
    expect(got == int(0.6 * free), f"then {got} bytes")
    expect(after["pid"] == before["pid"], "the worker was replaced")
    return message


@check("memory: the second try finds what the first one held free again")
def second_try(_: Setting) -> str:
    """A19: the arrays of the failed call, which its traceback knows, are let go before."""
    from gpu import work

    with one_gpu() as executor:
        (answer,) = executor.run_on_workers(work.where)
        share = int(0.6 * answer["memory"][0])
        (got,) = executor.map_chunks(work.hungry_once, [([share], [])])
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
    from gpu import work
    from moraine_core.errors import WorkerDiedError

    with one_gpu() as executor:
        try:
            executor.map(work.die, [()])
        except WorkerDiedError as error:
            message = str(error)
        else:
            expect(False, "nobody died")  # noqa: FBT003
        (answer,) = executor.map(work.where, [()])
    expect("exit code 3" in message, message)
    expect(answer["count"] == 1, f"the new worker sees {answer}")
    return message


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
