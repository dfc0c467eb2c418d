"""Tiny commands for the tests of the command line and of running one command; workers import their kernels from here.

Kernels note each call in the folder ``RUN_CALLS``. ``RUN_STOP`` says what happens at which call, without being an
argument (other arguments would be another call): ``raise 3``, ``interrupt 3``, ``block 3`` or ``full 3``.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import sys
import time
import uuid
from collections.abc import Generator  # noqa: TC003 - the annotations are evaluated
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from moraine_core import (
    Array,
    Blocks1D,
    Blocks2D,
    Chunk,
    ChunkTask,
    Input,
    Layout,
    Output,
    Pairs,
    Plan,
    blocks,
    command,
)
from moraine_core.plugins import COMMANDS, PluginHost

NAMES = ("double", "center", "split", "detour", "echo", "noisy", "sum-all", "tidy", "planless", "listed", "cube")


def make_host(*names: str) -> PluginHost:
    """Return a host that knows commands of this module, by default all, and nothing else."""
    return PluginHost(
        [EntryPoint(n, f"run_commands:{n.replace('-', '_')}", COMMANDS) for n in names or NAMES], blocked=()
    )


def calls() -> int:
    """Return how often a kernel has been called so far."""
    return len(list(Path(os.environ["RUN_CALLS"]).iterdir()))


def _note() -> None:
    folder = os.environ.get("RUN_CALLS")
    if not folder:
        return
    (Path(folder) / uuid.uuid4().hex).touch()
    what, _, number = os.environ.get("RUN_STOP", "").partition(" ")
    if not what or calls() != int(number):
        return
    if what == "raise":
        msg = "the glacier melted"
        raise ValueError(msg)
    if what == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if what == "block":
        Path(folder).with_name("blocked").touch()
        time.sleep(60)


def twice(values, factor=2):
    _note()
    return values * np.float32(factor)


def total(values):
    _note()
    return float(values.sum(dtype=np.float64))


def shifted(values, shift):
    _note()
    return values - np.float32(shift)


def parts(values):
    _note()
    return values // 10, values % 10


def chatter(values):
    print("a kernel speaks")  # noqa: T201 - so that a test sees where it goes
    os.write(1, b"a library writes\n")
    ctypes.CDLL(None).puts(b"C prints")
    return values


def _tasks(kernel: str, source: Array, out: Layout, block: tuple[int, ...], **kwargs: Any) -> list[ChunkTask]:
    return [
        ChunkTask(f"run_commands:{kernel}", [Chunk(source, b)], [Chunk(out, b)], kwargs)
        for b in blocks(out.shape, block)
    ]


Source = Annotated[Array, Input("numbers", shape="(nlines, width)", dtype="float32")]
Result = Annotated[str, Output("numbers", shape="(nlines, width)", dtype="float32", unit="m")]
Chunks = Annotated[Blocks2D | None, "lines and pixels of a block; those of the input by default (pixels)"]


@command("double", family="test")
def double(
    source: Source,
    result: Result,
    factor: Annotated[float, "what to multiply with (unitless)"] = 2.0,
    chunks: Chunks = None,
) -> Plan:
    """Multiply numbers."""
    if factor == 0:
        msg = "factor is 0; expected anything else"
        raise ValueError(msg)
    out = Layout(result, source.shape, "float32", chunks or source.chunks)
    return Plan([out], _tasks("twice", source, out, out.chunks, factor=factor))


@command("double-apart", family="test")
def double_apart(source: Source, result: Result) -> Plan:
    """Multiply numbers; one task that fails does not stop the others."""
    out = Layout(result, source.shape, "float32", source.chunks)
    return Plan([out], _tasks("twice", source, out, out.chunks), keep_going=True)


@command("center", family="test")
def center(source: Source, result: Result, chunks: Chunks = None) -> Generator[Plan, list[Any], None]:
    """Subtract the mean: a generator whose second plan depends on the results of the first."""
    out = Layout(result, source.shape, "float32", chunks or source.chunks)
    sums = yield Plan(
        [], [ChunkTask("run_commands:total", [Chunk(source, b)]) for b in blocks(out.shape, out.chunks)], desc="sums"
    )
    mean = sum(sums) / (source.shape[0] * source.shape[1])
    yield Plan([out], _tasks("shifted", source, out, out.chunks, shift=mean))


@command("split", family="test")
def split(source: Source, tens: Result, ones: Result) -> Plan:
    """Write two outputs."""
    first, second = (Layout(path, source.shape, "float32", source.chunks) for path in (tens, ones))
    return Plan(
        [first, second],
        [
            ChunkTask("run_commands:parts", [Chunk(source, b)], [Chunk(first, b), Chunk(second, b)])
            for b in blocks(source.shape, source.chunks)
        ],
    )


@command("detour", family="test")
def detour(source: Source, result: Result) -> Generator[Plan, list[Any], None]:
    """Go by way of a temporary array."""
    stop = Layout("scratch:stop", source.shape, "float32", (4, 4))
    yield Plan([stop], _tasks("twice", source, stop, stop.chunks))
    out = Layout(result, source.shape, "float32", (4, 4))
    yield Plan(
        [out],
        [ChunkTask("run_commands:twice", [Chunk(stop, b)], [Chunk(out, b)]) for b in blocks(out.shape, out.chunks)],
    )


@command("cube", family="test")
def cube(source: Source, result: Annotated[str, Output("a folder", kind="directory")]) -> Plan:
    """Write a directory of two arrays and a text."""
    outs = [Layout(f"{result}/{n}.zarr", source.shape, "float32", source.shape) for n in range(2)]
    tasks = [ChunkTask("run_commands:twice", [Chunk(source)], [Chunk(out)]) for out in outs]
    return Plan(outs, tasks, texts={f"{result}/read.me": "two arrays\n"})


@command("sum-all", family="test")
def sum_all(
    ras: Annotated[list[Array], Input("numbers", shape="(nlines, width)", dtype="float32")], result: Result
) -> Plan:
    """Copy the last of several arrays."""
    out = Layout(result, ras[-1].shape, "float32", (4, 4))
    return Plan([out], _tasks("twice", ras[-1], out, out.chunks, factor=len(ras)))


@command("noisy", family="test")
def noisy(source: Source, result: Result) -> Plan:
    """Print everywhere."""
    print("a declaration speaks")  # noqa: T201 - so that a test sees where it goes
    out = Layout(result, source.shape, "float32", source.chunks)
    return Plan([out], _tasks("chatter", source, out, out.chunks))


@command("tidy", family="test", chunked=False)
def tidy(
    result: Annotated[str, Output("a text", kind="file")], mode: Annotated[str, "write or raise"] = "write"
) -> None:
    """Write a file by itself."""
    Path(result).write_text("half", encoding="utf-8")
    if mode == "raise":
        msg = "the glacier melted"
        raise ValueError(msg)


@command("planless", family="test", chunked=False)
def planless(result: Annotated[str, Output("a text", kind="file")]) -> None:
    """Forget to write."""


@command("listed", family="test")
def listed(source: Source, result: Result, pairs: Annotated[Pairs, "image pairs"]) -> Plan:
    """Multiply with the number of pairs, which are an argument file."""
    return double.function(source, result, float(len(pairs)))


@command("echo", family="test", chunked=False)
def echo(
    result: Annotated[str, Output("arguments as JSON", kind="file")],
    text: Annotated[str, "a text"] = "",
    is_shp_dir: Annotated[bool, "a switch"] = True,
    count: Annotated[int, "a number (count)"] = 1,
    scale: Annotated[float, "a number (m)"] = 1.5,
    chunks: Annotated[Blocks2D, "a block (pixels)"] = (1000, 1000),
    points: Annotated[Blocks1D, "a block (points)"] = 10,
    shape: Annotated[tuple[int, ...] | None, "any numbers (pixels)"] = None,
    extent: Annotated[tuple[float, float] | None, "two numbers (m)"] = None,
    method: Annotated[Literal["mean", "decimate"], "one of two"] = "mean",
    paths: Annotated[tuple[str, ...] | None, Input("paths", kind="file")] = None,
    pairs: Annotated[Pairs | None, "image pairs"] = None,
    **layers: Annotated[str, "any names"],
) -> None:
    """Write the arguments that arrive."""
    found = {name: value for name, value in locals().items() if name not in ("result", "layers")}
    Path(result).write_text(json.dumps({**found, **layers}), encoding="utf-8")


if __name__ == "__main__":
    sys.exit("this module is imported, not run")
