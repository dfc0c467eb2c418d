"""Checks of commands from zarr to zarr with --cuda; this process does not use the GPU itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu.compare import add_gaps, expect_close, expect_same_phases
from gpu.registry import Setting, check, expect

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

SCALE = 8
"""Factor of the sizes of the examples."""


@check("commands: the examples of all that have a GPU kernel equal the CPU")
def examples(setting: Setting) -> str:
    """Run what the conformance kit runs; phases have a tolerance of their own."""
    from moraine_core import RunOptions, Workers
    from moraine_core.plugins import PluginHost
    from moraine_core.run import ExecutorPool, run_command
    from moraine_core.testing import running

    problems, names = [], []
    with ExecutorPool() as pool:
        for command in PluginHost().commands():
            if not command.gpu:
                continue
            arguments = running.example(command, setting.folder / command.name, SCALE)
            found = []
            for cuda in (False, True):
                try:
                    with running.forgetting(command, arguments):
                        run_command(command, arguments, Workers(cuda=cuda), RunOptions(), pool=pool)
                except Exception as error:  # noqa: BLE001 - the other commands are checked as well
                    problems.append(f"{command.name}: {type(error).__name__}: {error}")
                    break
                found.append(running.contents(command, arguments))
            else:
                problems += _differences(command.name, command.tolerance, *found)
            names.append(command.name)
    expect(not problems, "; ".join(problems))
    return ", ".join(names)


def _differences(command: str, tolerance: float, here: dict[str, Array], there: dict[str, Array]) -> list[str]:
    problems = []
    expect(here.keys() == there.keys(), f"{command}: other outputs")
    for name, values in here.items():
        try:
            if name.startswith("ph"):
                expect_same_phases(there[name], values, f"{command} {name}")
            else:
                # what follows from phases differs as these do
                atol = 1e-3 if "-emi-" in command else max(10 * tolerance, 1e-5)
                expect_close(there[name], values, f"{command} {name}", atol=atol, rtol=max(atol, 1e-5))
        except AssertionError as error:
            problems.append(str(error))
    return problems


@check("amp-disp: the command with every option equals the CPU, for rasters and points")
def amp_disp_options(setting: Setting) -> str:
    """Rasters are streamed image by image, points are not."""
    import numpy as np

    from moraine_core import RunOptions, Workers
    from moraine_core.run import ExecutorPool, run_command
    from moraine_core.testing.data import read_array, speckle, write_array
    from moraine_ps.amp_disp import amp_disp

    stack = add_gaps(speckle((setting.side, setting.side, 30), seed=3))
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
        expect_close(found[True, call], found[False, call], call)
        expect(np.isfinite(found[True, call]).any(), f"{call}: nothing but nan")
    return f"{len(calls)} calls; the last, {stack.nbytes / 1e6:.0f} MB: CPU {spent[0]:.2f} s, GPU {spent[1]:.2f} s"


@check("pools: freed between the commands of a kept executor")
def pools(setting: Setting) -> str:
    """A19: two commands share the worker, and neither leaves memory behind."""
    from gpu import work
    from moraine_core import RunOptions, Workers
    from moraine_core.run import ExecutorPool, run_command
    from moraine_core.testing.data import speckle, write_array
    from moraine_ps.amp_disp import amp_disp

    rslc = write_array(setting.folder / "small.zarr", speckle((200, 200, 5)), (200, 200, 1))
    workers, options = Workers(cuda=True), RunOptions()
    seen = []
    with ExecutorPool() as pool:
        for number in range(2):
            arguments = {"rslc": rslc, "adi": str(setting.folder / f"pooled-{number}.zarr")}
            run_command(amp_disp, arguments, workers, options, pool=pool)
            executor = pool.get(workers, options, None)
            left = executor.run_on_workers(work.pool_bytes)
            expect(not any(left), f"{left} bytes are left in pools")
            seen.append([answer["pid"] for answer in executor.run_on_workers(work.where)])
    expect(seen[0] == seen[1], f"other workers for the second command: {seen}")
    return f"{len(seen[0])} workers kept"
