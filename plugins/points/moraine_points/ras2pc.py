"""Values of rasters at points."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence  # noqa: TC003 - the host reads the annotations
from dataclasses import replace
from typing import Annotated, Any

from moraine_core import ALL, Array, Blocks1D, Chunk, ChunkTask, Input, Layout, Output, Plan, RawLayout, command
from moraine_points.gathering import gather_block_task, gather_task, grid_of, locate, raster_shape
from moraine_points.layouts import check_lists, column_chunks, column_parts, is_window
from moraine_points.spill import restore_tasks, spill_layout, spill_parts


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
) -> Generator[Plan, list[Any], None]:
    """Take the values of rasters at points.

    Points may be in any order and keep it; a hix is decoded with the size of the rasters. Values keep their dtype, and
    a missing value (nan) stays one. A point outside the raster is an error that names its row.

    Only raster chunks that hold points are read. A task takes one image of a raster, or the images that are stored
    in one chunk. Of a window array (two axes after lines and width that are stored whole) each chunk is read once,
    and the values of its points wait in a temporary file, as large as the output, for the order of the points.

    Examples
    --------
    moraine ras2pc --idx ps_gix.zarr --ras rslc.zarr hgt.zarr --pc ps_rslc.zarr ps_hgt.zarr
    """
    check_lists("ras2pc", "ras", ras, "pc", pc)
    shape, n_points = raster_shape("ras2pc", ras[0]), idx.shape[0]
    block = idx.chunks[0] if chunks is None else chunks
    columns: list[Layout] = []
    windows: list[tuple[Array, Layout]] = []
    tasks: list[ChunkTask] = []
    for raster, path in zip(ras, pc, strict=True):
        layout = Layout(
            path,
            (n_points, *raster.shape[2:]),
            raster.dtype,
            (block, *column_chunks(raster, 2)),
            attributes=raster.meaning,
        )
        if is_window(raster, 2):
            windows.append((raster, layout))
        else:
            columns.append(layout)
            parts = column_parts(raster, 2, n_points, together=raster.chunks[-1])
            tasks += [gather_task(raster, part, Chunk(layout, (ALL, *part))) for part in parts]
    counting = [
        ChunkTask(
            "moraine_points.raster_tasks:points_per_chunk",
            kwargs={"grid": grid_of(raster)},
            # what the tasks that follow decode: if that is too much, it is known before any work
            scratch_bytes=2 * Chunk(raster).stored_nbytes,
        )
        for raster, _ in windows
    ]
    points = locate(idx, "idx", shape, [grid_of(raster) for raster in ras])
    results = yield Plan(columns, [*tasks, *counting], shared={"points": points})
    if windows:
        yield from _window_plans(windows, results[len(tasks) :], points)


def _window_plans(
    windows: Sequence[tuple[Array, Layout]], counts: Sequence[Sequence[Sequence[int]]], points: ChunkTask
) -> Iterator[Plan]:
    """Yield the plan that spills the windows of all points, raster chunk by raster chunk, and that of their order."""
    spills: list[RawLayout] = []
    spilling: list[ChunkTask] = []
    restoring: list[ChunkTask] = []
    for (raster, layout), (numbers, sizes) in zip(windows, counts, strict=True):
        spill = spill_layout(f"windows{len(spills)}", sizes, layout)
        whole, grid = (ALL,) * (raster.ndim - 2), grid_of(raster)
        spilling += [
            gather_block_task(raster, whole, part, grid, number, layout.shape[0])
            for number, part in zip(numbers, spill_parts(spill, sizes), strict=True)
        ]
        restoring += restore_tasks(spill, grid, layout)
        spills.append(spill)
    yield Plan(spills, spilling, shared={"points": points}, desc="ras2pc windows")
    places = replace(points, kernel="moraine_points.raster_tasks:places_of_points")
    yield Plan([layout for _, layout in windows], restoring, shared={"places": places}, desc="ras2pc order")
