"""Pyramid of a raster: coarser and coarser versions for pictures, and exact statistics."""

from __future__ import annotations

from collections.abc import Generator  # noqa: TC003 - annotations are read at run time
from typing import Annotated, Any, Literal

from moraine_core import ALL, Array, Block, Blocks1D, Chunk, ChunkTask, Input, Layout, Output, Plan, UsageError, command
from moraine_view.levels import Stage, channels, level_shapes, mean_dtype, stages
from moraine_view.plans import (
    band_parts,
    coarser_plans,
    finished,
    kept_sums,
    level_layouts,
    mean_bytes,
    means_plans,
    stage_outputs,
    warn_of_chunks,
)
from moraine_view.statistics import Notes, statistics_plans


@command("ras-pyramid", family="view", example="moraine_view.examples:ras_pyramid")
def ras_pyramid(
    ras: Annotated[
        Array, Input("raster or stack", shape="(nlines, width, ...)", dtype=("bool", "integer", "float", "complex"))
    ],
    out_dir: Annotated[str, Output("pyramid: 0.zarr, 1.zarr, ... and stats.zarr", kind="directory")],
    chunks: Annotated[tuple[int, int], "lines and samples of a tile; -1 is the whole axis (pixels)"] = (256, 256),
    rows: Annotated[
        Blocks1D, "lines held at a time, a power of two, -1 for all; at least two rows of tiles are (lines)"
    ] = 1024,
    method: Annotated[Literal["decimate", "mean"], "keep every second pixel, or average"] = "decimate",
) -> Generator[Plan, list[Any], None]:
    """Build the pyramid of a raster: coarser and coarser versions for pictures, and exact statistics.

    Level l has a cell for each 2^l x 2^l pixels, as long as these fit into the shorter side; level 0 is the raster
    itself. Method decimate keeps the first pixel of a cell. Method mean averages the finite pixels of a cell, nan if
    there is none: right for real values and for phases relative to a reference, wrong for raw SLC pixels.

    Statistics are of all pixels: fraction of nan, min, max, mean and population standard deviation of the finite ones,
    and percentiles of a regular sample of them; of the amplitude where the raster is complex. Neither pixels nor
    statistics depend on chunks, rows or workers.

    Examples
    --------
    moraine ras-pyramid --ras adi.zarr --out-dir adi_pyramid
    """
    if 0 in ras.shape:
        raise UsageError(f"ras-pyramid: ras {ras.path} has shape {ras.shape}; expected at least one pixel and image")
    if rows != -1 and (rows < 1 or rows & (rows - 1)):
        raise UsageError(f"ras-pyramid: rows is {rows}; expected a power of two, or -1 for all lines")
    if any(size == 0 or size < -1 for size in chunks):
        raise UsageError(f"ras-pyramid: chunks are {chunks}; expected positive sizes, or -1 for a whole axis")
    nlines, width, *stack = ras.shape
    shapes = level_shapes(nlines, width)
    coarse = mean_dtype(ras.dtype) if method == "mean" else ras.dtype
    dtypes = [ras.dtype] + [coarse] * (len(shapes) - 1)
    cuts = stages(shapes, chunks[0], nlines if rows == -1 else rows)
    first, *later = cuts
    layouts = level_layouts(out_dir + "/{}.zarr", shapes, cuts, stack, dtypes, chunks, ras.meaning)
    blocks = [range(band.start * width, band.stop * width) for band in first.bands]
    notes = Notes(tuple(stack), nlines * width, width, blocks, ras.dtype)

    yield Plan(
        [*stage_outputs(layouts, first, keep_sums=method == "mean"), *notes.outputs()],
        [
            _first_task(ras, layouts, notes, first, (number, image), channel, method)
            for image, channel in enumerate(channels(stack))
            for number in range(len(first.bands))
        ],
    )
    warn_of_chunks("ras", ras, 2)
    if method == "mean":
        yield from means_plans(layouts, later, ras.dtype)
    else:
        yield from coarser_plans("moraine_view.tasks:next_strides", layouts, later)
    stats = yield from statistics_plans(layouts[0], 2, notes, f"{out_dir}/stats.zarr")
    yield finished(out_dir, "raster", method, stats)


def _first_task(
    ras: Array,
    layouts: list[Layout],
    notes: Notes,
    stage: Stage,
    numbers: tuple[int, int],
    channel: Block,
    method: str,
) -> ChunkTask:
    """Return the task that reads a band of an image, by their numbers; it is the only time it is read."""
    number, image = numbers
    band = stage.bands[number]
    sums = kept_sums(layouts, stage, band, channel) if method == "mean" else []
    return ChunkTask(
        "moraine_view.tasks:first_levels",
        inputs=[Chunk(ras, (band, ALL, *channel))],
        outputs=[
            *band_parts(layouts, stage.levels, stage, band, channel),
            *sums,
            *notes.chunks(number, channel),
        ],
        kwargs={"method": method, "n": stage.depth, "keep_sums": bool(sums), **notes.kwargs(number, image)},
        scratch_bytes=notes.scratch_bytes()
        + (mean_bytes(band.stop - band.start, ras.shape[1], stage.depth) if method == "mean" else 0),
    )
