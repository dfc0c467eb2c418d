"""Mask of the pixels of a raster that are points."""

from __future__ import annotations

from typing import Annotated

from moraine_core import Array, Blocks2D, Chunk, ChunkTask, Input, Layout, Output, Plan, blocks, command
from moraine_points.layouts import check_shape

SHARED_BYTES = 8
"""Bytes per point that all tasks share: its gix, in the order of the chunks of the raster."""

PLACE_BYTES = 16
"""Bytes per point of a chunk while it is marked: its place in the chunk, in two integers of int64."""


@command("gix2bool", family="points", example="moraine_points.examples:gix2bool")
def gix2bool(
    gix: Annotated[
        Array, Input("grid index (azimuth, range) of the points", shape="(n_points, 2)", dtype="integer", unit="pixels")
    ],
    is_pc: Annotated[str, Output("mask, true at points", shape="(nlines, width)", dtype="bool")],
    shape: Annotated[tuple[int, int], "lines and width of the raster (pixels)"],
    chunks: Annotated[Blocks2D, "lines and pixels a task works on (pixels)"] = (1000, 1000),
) -> Plan:
    """Mark the pixels of a raster that are points.

    The points may be in any order, and one that occurs twice does no harm. A point outside the raster is an error
    that names its row; nothing is wrapped.

    Examples
    --------
    moraine gix2bool --gix ps_gix.zarr --is-pc is_ps.zarr --shape 2500 1834
    """
    check_shape("gix2bool", shape)
    out = Layout(is_pc, shape, "bool", chunks)
    points = ChunkTask(
        "moraine_points.tasks:bucket",
        inputs=[Chunk(gix)],
        kwargs={"shape": shape, "chunks": out.chunks, "name": f"gix {gix.path}"},
    )
    tasks = []
    for number, (lines, pixels) in enumerate(blocks(shape, out.chunks)):
        size = (lines.stop - lines.start, pixels.stop - pixels.start)
        tasks.append(
            ChunkTask(
                "moraine_points.tasks:mark",
                outputs=[Chunk(out, (lines, pixels))],
                kwargs={"number": number, "corner": (lines.start, pixels.start), "size": size},
                scratch_bytes=SHARED_BYTES * gix.shape[0] + PLACE_BYTES * min(gix.shape[0], size[0] * size[1]),
            )
        )
    return Plan([out], tasks, shared={"points": points})
