"""Tiny commands and hooks for the tests of pipelines; workers import their kernels from here."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Annotated

from moraine_core import Array, Chunk, ChunkTask, Input, Layout, Output, Pairs, Plan, blocks, command, hookimpl


def multiply(values, factor):
    return values * factor


def add(*arrays):
    return sum(arrays)


@command("scale", family="test", gpu=True)
def scale(
    source: Annotated[Array, Input("numbers", shape="(n)", dtype="float32")],
    result: Annotated[str, Output("multiplied numbers", shape="(n)", dtype="float32")],
    factor: Annotated[float, "what to multiply with (unitless)"] = 2.0,
) -> Plan:
    """Multiply numbers."""
    out = Layout(result, source.shape, "float32", source.chunks)
    tasks = [
        ChunkTask("pipeline_commands:multiply", [Chunk(source, b)], [Chunk(out, b)], {"factor": factor})
        for b in blocks(out.shape, out.chunks)
    ]
    return Plan([out], tasks)


@command("total", family="test")
def total(
    result: Annotated[str, Output("sum", shape="(n)", dtype="float32")],
    **arrays: Annotated[Array, Input("numbers", shape="(n)", dtype="float32")],
) -> Plan:
    """Add any arrays."""
    first = next(iter(arrays.values()))
    out = Layout(result, first.shape, "float32", first.chunks)
    tasks = [
        ChunkTask("pipeline_commands:add", [Chunk(a, b) for a in arrays.values()], [Chunk(out, b)])
        for b in blocks(out.shape, out.chunks)
    ]
    return Plan([out], tasks)


@command("chain-pairs", family="test", chunked=False)
def chain_pairs(
    result: Annotated[str, Output("pairs of neighbors", kind="file")], count: Annotated[int, "images (count)"] = 3
) -> None:
    """Write the pairs of neighboring images."""
    Path(result).write_text("".join(f"{i} {i + 1}\n" for i in range(count - 1)), encoding="utf-8")


@command("weigh", family="test")
def weigh(
    source: Annotated[Array, Input("numbers", shape="(n)", dtype="float32")],
    pairs: Annotated[Pairs, "image pairs"],
    result: Annotated[str, Output("numbers times the number of pairs", shape="(n)", dtype="float32")],
) -> Plan:
    """Multiply numbers with the number of pairs."""
    return scale.function(source, result, float(len(pairs)))


@command("pyramid", family="test")
def pyramid(
    source: Annotated[Array, Input("numbers", shape="(n)", dtype="float32")],
    result: Annotated[str, Output("a pyramid", kind="directory")],
) -> Plan:
    """Copy numbers into a pyramid of one level."""
    out = Layout(f"{result}/0.zarr", source.shape, "float32", source.chunks, attributes={"moraine_pyramid": {}})
    tasks = [
        ChunkTask("pipeline_commands:multiply", [Chunk(source, b)], [Chunk(out, b)], {"factor": 1})
        for b in blocks(out.shape, out.chunks)
    ]
    return Plan([out], tasks)


@command("note", family="test", chunked=False)
def note(
    result: Annotated[str, Output("a text", kind="file")],
    mode: Annotated[str, "write, raise, interrupt, nothing, program, touch or wait"] = "write",
    flag: Annotated[str, "file to wait for, or to touch"] = "",
) -> None:
    """Write the current directory into a file, or end in another way."""
    if mode == "raise":
        msg = "the glacier melted"
        raise RuntimeError(msg)
    if mode == "interrupt":
        raise KeyboardInterrupt
    if mode == "program":
        subprocess.run(["sh", "-c", "kill -9 $$"], check=True)
    if mode == "touch":
        os.utime(flag, ns=(time.time_ns(), time.time_ns()))
    while mode == "wait" and not os.path.exists(flag):
        time.sleep(0.02)
    if mode != "nothing":
        Path(result).write_text(str(Path.cwd()), encoding="utf-8")


PICTURES = []
"""Options of the pictures that were drawn, in order."""


@hookimpl
def moraine_quicklook(pyramid: Path, png: Path, options: dict) -> Path:
    if "broken" in pyramid.name:
        msg = "no colors left"
        raise ValueError(msg)
    png.parent.mkdir(parents=True, exist_ok=True)
    png.write_bytes(b"a picture")
    PICTURES.append(options)
    return png
