"""Clouds that are stored in parts, such as by raster chunk, as one array in any order."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Iterator, Sequence  # noqa: TC003 - the host reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

from moraine_core import (
    ALL,
    Array,
    Blocks1D,
    Chunk,
    ChunkTask,
    Input,
    Layout,
    MoraineError,
    Output,
    Plan,
    RawLayout,
    UsageError,
    command,
)
from moraine_points.layouts import column_chunks, column_parts, is_window
from moraine_points.spill import restore_tasks, spill_layout, spill_parts

if TYPE_CHECKING:
    from moraine_core.store import ZarrParts

log = logging.getLogger("moraine")

KEY_BYTES = 8
"""Bytes of the composed key per point, which all tasks share."""

PYRAMID = "moraine_pyramid"
"""Attribute that tells the levels of a pyramid, which are also named by numbers, from parts of a cloud."""

MANY_BLOCKS = 1000
"""Blocks of points that are worth a warning: each is a file for each image."""


@command("pc-concat", family="points", example="moraine_points.examples:pc_concat")
def pc_concat(
    pcs: Annotated[
        tuple[str, ...],
        Input(
            "directory of arrays 0.zarr, 1.zarr, ... for each pc; for a single pc also several arrays, in their order",
            kind="directory",
        ),
    ],
    pc: Annotated[tuple[str, ...], Output("data of all points, one for each of pcs", shape="(n_points, ...)")],
    key: Annotated[
        tuple[Array, ...] | None,
        Input(
            "place in the parts of each point; a further key reorders what the one before gives",
            shape="(n_points)",
            dtype="integer",
            unit="unitless",
        ),
    ] = None,
    chunks: Annotated[
        Blocks1D | None, "points in a chunk of the outputs; those of the first part by default (points)"
    ] = None,
) -> Generator[Plan, list[Any], None]:
    """Put the parts of a cloud one after another, and in order.

    Arrays of a directory follow one another in the order of their numbers, 10.zarr after 9.zarr. With keys K1, K2, ...
    the result is concatenated[K1[K2][...]]: the key of ras2pc-ras-chunk restores the order of the raster, and the
    key of pc-sort after it makes that the order of the sorted cloud. All parts of an output have the same dtype and
    the same images, all outputs the same number of points, and a key names each of them once.

    A task takes one image of all parts. Window arrays (two axes after the points that are stored whole) are decoded
    part by part into a temporary file, as large as the output, from which blocks of points take their rows.

    Examples
    --------
    moraine pc-concat --pcs ds_rslc ds_is_shp --pc rslc.zarr is_shp.zarr --key ds_key.zarr sort_key.zarr
    """
    keys = key or ()
    sources = _sources(pcs, pc)
    n_points = _n_points(sources, pc, keys)
    layouts = [_layout(parts, path, chunks) for parts, path in zip(sources, pc, strict=True)]
    windows = [number for number, parts in enumerate(sources) if is_window(parts.parts[0], 1)]
    columns = [number for number in range(len(sources)) if number not in windows]
    names = [f"key {array.path}" for array in keys]
    order: dict[str, Any] = {
        "inputs": [Chunk(array) for array in keys],
        "kwargs": {"n_points": n_points, "names": names},
    }
    if columns:
        yield Plan(
            [layouts[number] for number in columns],
            [task for number in columns for task in _concat_tasks(number, sources[number], layouts[number], keys)],
            shared={"parts": sources, "order": ChunkTask("moraine_points.part_tasks:compose", **order)},
        )
    if windows:
        yield from _window_plans([(sources[number], layouts[number]) for number in windows], order)


def _sources(pcs: Sequence[str], pc: Sequence[str]) -> list[ZarrParts]:
    """Return the parts of each output."""
    from moraine_core.store import ZarrParts, is_zarr, numbered_arrays

    if len(pc) > 1 and len(pcs) != len(pc):
        raise UsageError(f"pc-concat: pcs has {len(pcs)} paths and pc {len(pc)}; expected as many of each")
    folders = [path for path in pcs if not is_zarr(path)]
    if len(pc) == 1 and len(pcs) > 1 and folders:
        raise UsageError(
            f"pc-concat: pcs has {len(pcs)} paths for one pc, of which {folders[0]} is no array; "
            "expected one directory, or arrays only"
        )
    found = []
    for group in [pcs] if len(pc) == 1 else [[path] for path in pcs]:
        try:
            paths = numbered_arrays(group[0]) if group[0] in folders else group
            parts = ZarrParts([os.path.abspath(path) for path in paths])
        except MoraineError as error:
            raise type(error)(f"pc-concat: pcs {error}") from error
        if PYRAMID in parts.parts[0].attributes:
            raise UsageError(f"pc-concat: pcs {group[0]} is a pyramid; expected parts of a point cloud")
        found.append(parts)
    return found


def _n_points(sources: Sequence[ZarrParts], pc: Sequence[str], keys: Sequence[Array]) -> int:
    """Return the number of points of all outputs."""
    n_points = sources[0].shape[0]
    for parts, path in zip(sources, pc, strict=True):
        if parts.shape[0] != n_points:
            raise UsageError(
                f"pc-concat: pcs of {path} have {parts.shape[0]} points; expected {n_points}, as those of {pc[0]}"
            )
    if keys and keys[0].shape[0] != n_points:
        raise UsageError(
            f"pc-concat: key {keys[0].path} has shape {keys[0].shape}; expected ({n_points},), as pcs have points"
        )
    return n_points


def _layout(parts: ZarrParts, path: str, chunks: int | None) -> Layout:
    """Return the layout of an output; log where it would be cut into very many blocks."""
    block = chunks
    if block is None:
        block = next((part.shape[0] for part in parts.parts if part.shape[0]), 1)
        if parts.shape[0] > MANY_BLOCKS * block:
            log.warning(
                "pc-concat: %s has blocks of %d points, as the first part; %d points are better cut by --chunks",
                path,
                block,
                parts.shape[0],
            )
    first = parts.parts[0]
    return Layout(path, parts.shape, parts.dtype, (block, *column_chunks(first, 1)), attributes=first.meaning)


def _concat_tasks(number: int, parts: ZarrParts, layout: Layout, keys: Sequence[Array]) -> Iterator[ChunkTask]:
    """Yield the tasks that take an image each of all parts."""
    first, n_points = parts.parts[0], layout.shape[0]
    decoding = max(Chunk(part).stored_nbytes for part in parts.parts)
    for part in column_parts(first, 1, n_points, together=first.chunks[-1]):
        out = Chunk(layout, (ALL, *part))
        yield ChunkTask(
            "moraine_points.part_tasks:concat",
            outputs=[out],
            kwargs={"number": number, "trailing": out.box[1:]},
            # a part as it is decoded and as it is used, and all of them before they are in order
            scratch_bytes=2 * decoding + (out.nbytes + KEY_BYTES * n_points if keys else 0),
        )


def _window_plans(windows: Sequence[tuple[ZarrParts, Layout]], order: dict[str, Any]) -> Iterator[Plan]:
    """Yield the plan that spills the parts of window arrays, and that which puts their rows in order."""
    spills: list[RawLayout] = []
    spilling: list[ChunkTask] = []
    restoring: list[ChunkTask] = []
    sizes: list[list[int]] = []
    for which, (parts, layout) in enumerate(windows):
        sizes.append([part.shape[0] for part in parts.parts])
        spill = spill_layout(f"windows{which}", sizes[-1], layout)
        spilling += [
            ChunkTask(
                "moraine_points.part_tasks:pad",
                inputs=[Chunk(part)],
                outputs=[place],
                kwargs={"n_rows": place.box[0][1] - place.box[0][0]},
            )
            for part, place in zip(parts.parts, spill_parts(spill, sizes[-1]), strict=True)
            if part.shape[0]
        ]
        restoring += restore_tasks(spill, which, layout)
        spills.append(spill)
    yield Plan(spills, spilling, desc="pc-concat windows")
    kwargs = {**order["kwargs"], "sizes": sizes}
    places = ChunkTask("moraine_points.part_tasks:places_of_rows", inputs=order["inputs"], kwargs=kwargs)
    yield Plan([layout for _, layout in windows], restoring, shared={"places": places}, desc="pc-concat order")
