"""Values of rasters at points."""

from __future__ import annotations

from typing import Annotated

from moraine_core import (
    ALL,
    Array,
    Block,
    Blocks1D,
    Chunk,
    ChunkTask,
    Input,
    Layout,
    Output,
    Plan,
    UsageError,
    blocks,
    command,
)
from moraine_points.layouts import check_lists, column_chunks

SHARED_BYTES = 16
"""Bytes per point that all tasks share: its gix, and its place among the groups by raster chunk."""

GROUP_BYTES = 48
"""Bytes per point of a group while its values are taken: rows and pixels, in int64."""


@command("ras2pc", family="points", example="moraine_points.examples:ras2pc")
def ras2pc(
    idx: Annotated[
        Array,
        Input(
            "gix or hix of the points",
            shape=("(n_points, 2)", "(n_points)"),
            dtype="integer",
            unit="pixels or unitless",
        ),
    ],
    ras: Annotated[tuple[Array, ...], Input("rasters, all of one size", shape="(nlines, width, ...)")],
    pc: Annotated[tuple[str, ...], Output("values at the points, one for each raster", shape="(n_points, ...)")],
    chunks: Annotated[Blocks1D | None, "points in a chunk of the outputs; the block of idx by default (points)"] = None,
) -> Plan:
    """Take the values of rasters at points.

    Points may be in any order and keep it; a hix is decoded with the size of the rasters. Values keep their dtype, and
    a missing value (nan) stays one. A point outside the raster is an error that names its row.

    A task takes one image of a raster, and reads only the chunks that hold points. Of a window array (two axes
    after lines and width that are stored whole) a task takes all values of one block of points.

    Examples
    --------
    moraine ras2pc --idx ps_gix.zarr --ras rslc.zarr hgt.zarr --pc ps_rslc.zarr ps_hgt.zarr
    """
    check_lists("ras2pc", "ras", ras, "pc", pc)
    size = (ras[0].shape[0], ras[0].shape[1])
    if min(size) == 0:
        raise UsageError(f"ras2pc: ras {ras[0].path} has shape {ras[0].shape}; expected at least one pixel")
    block = idx.chunks[0] if chunks is None else chunks
    layouts: list[Layout] = []
    tasks: list[ChunkTask] = []
    grids: set[tuple[int, int]] = set()
    for raster, path in zip(ras, pc, strict=True):
        columns = column_chunks(raster, 2)
        layout = Layout(path, (idx.shape[0], *raster.shape[2:]), raster.dtype, (block, *columns))
        layouts.append(layout)
        if len(columns) == 2 and columns == raster.shape[2:]:
            tasks += [_gather(raster, layout, part) for part in blocks(layout.shape, layout.chunks)]
        else:
            grids.add(_grid(raster))
            tasks += [_gather(raster, layout, (ALL, *column)) for column in blocks(raster.shape[2:], columns)]
    points = ChunkTask(
        "moraine_points.tasks:locate",
        inputs=[Chunk(idx)],
        kwargs={"shape": size, "grids": sorted(grids), "name": f"idx {idx.path}"},
    )
    return Plan(layouts, tasks, shared={"points": points})


def _grid(raster: Array) -> tuple[int, int]:
    return raster.chunks[0], raster.chunks[1]


def _gather(raster: Array, layout: Layout, part: Block) -> ChunkTask:
    """Return the task that takes one column, or one block of points of a window array."""
    out = Chunk(layout, part)
    source = Chunk(raster, (ALL, ALL, *part[1:]))
    n_points = out.box[0][1] - out.box[0][0]
    return ChunkTask(
        "moraine_points.tasks:gather",
        outputs=[out],
        kwargs={
            "ras": source,
            "grid": _grid(raster),
            "rows": None if part[0] == ALL else (part[0].start, part[0].stop),
        },
        # a chunk of the raster as it is decoded and as it is used, and the values of a group, at most all of them
        scratch_bytes=2 * source.stored_nbytes + out.nbytes + GROUP_BYTES * n_points + SHARED_BYTES * layout.shape[0],
    )
