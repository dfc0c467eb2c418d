"""Values of rasters at points, stored by raster chunk: one array for each chunk that holds points."""

from __future__ import annotations

import logging
from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from typing import Annotated, Any

from moraine_core import ALL, Array, Chunk, ChunkTask, Input, Layout, Output, Plan, UsageError, command
from moraine_points.gathering import Grid, gather_block_task, locate, raster_shape
from moraine_points.layouts import check_lists, column_chunks, column_parts

log = logging.getLogger("moraine")

KEY_BYTES = 8
"""Bytes of the key per point."""


@command("ras2pc-ras-chunk", family="points", example="moraine_points.examples:ras2pc_ras_chunk")
def ras2pc_ras_chunk(
    gix: Annotated[
        Array,
        Input(
            "grid index (azimuth, range) of the points, in the order of the raster",
            shape="(n_points, 2)",
            dtype="integer",
            unit="pixels",
        ),
    ],
    ras: Annotated[tuple[Array, ...], Input("rasters, all of one size", shape="(nlines, width, ...)")],
    pc: Annotated[
        tuple[str, ...],
        Output("directory of values at the points, one array a raster chunk, one for each raster", kind="directory"),
    ],
    key: Annotated[
        str,
        Output(
            "place of each point when the arrays follow one another", shape="(n_points)", dtype="int64", unit="unitless"
        ),
    ],
    chunks: Annotated[
        tuple[int, int] | None,
        "lines and width of the raster chunks, -1 is the whole axis; those of the first raster by default (pixels)",
    ] = None,
) -> Generator[Plan, list[Any], None]:
    """Take the values of rasters at points, and store them by raster chunk.

    Chunk (i, j) of a raster with n chunks across has the number c = i n + j. The values at its points are in the array
    c.zarr, one chunk of all its points, in the order of the raster; chunks without points have no array. Where there is
    no point at all, 0.zarr is empty and tells shape and dtype. The key restores the order of the points: with
    all arrays one after another in ascending order of their numbers, concatenated[key] is in that of gix.

    Commands that work on such directories together need the same chunks. Where these are not multiples of a
    raster's own, its chunks are read several times.

    Examples
    --------
    moraine ras2pc-ras-chunk --gix ds_gix.zarr --ras is_shp.zarr --pc ds_is_shp --key ds_key.zarr
    """
    check_lists("ras2pc-ras-chunk", "ras", ras, "pc", pc)
    shape, n_points = raster_shape("ras2pc-ras-chunk", ras[0]), gix.shape[0]
    grid = _grid(chunks, ras[0])
    for raster in ras:
        _warn_of_chunks(raster, grid)
    points = locate(gix, "gix", shape, [grid], is_sorted=True)
    ((numbers, sizes),) = yield Plan(
        [],
        [ChunkTask("moraine_points.raster_tasks:points_per_chunk", kwargs={"grid": grid})],
        shared={"points": points},
        desc="ras2pc-ras-chunk count",
    )
    layouts = [Layout(key, (n_points,), "int64", (gix.chunks[0],))]
    tasks = [
        ChunkTask(
            "moraine_points.raster_tasks:chunk_key",
            outputs=[Chunk(layouts[0])],
            kwargs={"grid": grid},
            scratch_bytes=KEY_BYTES * n_points,
        )
    ]
    for raster, folder in zip(ras, pc, strict=True):
        for number, size in zip(numbers or [0], sizes or [0], strict=True):
            columns = column_chunks(raster, 2)
            path, shape = f"{folder}/{number}.zarr", (size, *raster.shape[2:])
            layout = Layout(path, shape, raster.dtype, (max(size, 1), *columns), attributes=raster.meaning)
            layouts.append(layout)
            if size:
                tasks += [
                    gather_block_task(raster, part, Chunk(layout, (ALL, *part)), grid, number, n_points)
                    for part in column_parts(raster, 2, size, together=raster.shape[-1])
                ]
    yield Plan(layouts, tasks, shared={"points": points})


def _grid(chunks: Grid | None, ras: Array) -> Grid:
    """Return lines and width of the raster chunks, of which none is longer than the raster."""
    sizes = ras.chunks[:2] if chunks is None else chunks
    if any(size == 0 or size < -1 for size in sizes):
        raise UsageError(f"ras2pc-ras-chunk: chunks are {chunks}; expected positive sizes, or -1 for a whole axis")
    lines, width = (n if size == -1 else min(size, n) for size, n in zip(sizes, ras.shape[:2], strict=True))
    return lines, width


def _warn_of_chunks(ras: Array, grid: Grid) -> None:
    """Log that chunks of a raster are read several times where blocks cut them."""
    if any(block < n and block % own for block, own, n in zip(grid, ras.chunks, ras.shape, strict=False)):
        log.warning(
            "ras2pc-ras-chunk: chunks %s are no multiples of the chunks %s of ras %s, which are read several times",
            grid,
            ras.chunks[:2],
            ras.path,
        )
