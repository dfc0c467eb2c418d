"""The tasks that take values of rasters at points: what `ras2pc` and `ras2pc-ras-chunk` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moraine_core import ALL, Chunk, ChunkTask, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moraine_core import Array, Block

Grid = tuple[int, int]

SHARED_BYTES = 16
"""Bytes per point that all tasks share: its gix, and its place among the groups by raster chunk."""

GROUP_BYTES = 48
"""Bytes per point of a task while its values are taken: rows and pixels, in int64."""


def raster_shape(command: str, ras: Array) -> Grid:
    """Return lines and width of a raster.

    Raises
    ------
    UsageError
        It has no pixel.
    """
    shape = (ras.shape[0], ras.shape[1])
    if min(shape) == 0:
        msg = f"{command}: ras {ras.path} has shape {ras.shape}; expected at least one pixel"
        raise UsageError(msg)
    return shape


def grid_of(raster: Array) -> Grid:
    """Return lines and width of the chunks of a raster."""
    return raster.chunks[0], raster.chunks[1]


def locate(idx: Array, name: str, shape: Grid, grids: Sequence[Grid], *, is_sorted: bool = False) -> ChunkTask:
    """Return the task that stands for the points, grouped by each grid, which others share as ``points``."""
    return ChunkTask(
        "moraine_points.raster_tasks:locate",
        inputs=[Chunk(idx)],
        kwargs={"shape": shape, "grids": sorted(set(grids)), "name": f"{name} {idx.path}", "is_sorted": is_sorted},
    )


def gather_task(raster: Array, part: Block, out: Chunk) -> ChunkTask:
    """Return the task that takes a part of the further axes of a raster at all points."""
    n_points = out.box[0][1]
    return ChunkTask(
        "moraine_points.raster_tasks:gather",
        outputs=[out],
        kwargs={"ras": Chunk(raster, (ALL, ALL, *part))},
        scratch_bytes=_bytes(raster, out, n_points, n_points),
    )


def gather_block_task(raster: Array, part: Block, out: Chunk, grid: Grid, number: int, n_points: int) -> ChunkTask:
    """Return the task that takes a part of the further axes of a raster at the points of one block of a grid.

    It fills the rows of `out`, of which there may be more than points; `n_points` are those of all blocks.
    """
    start, stop = out.box[0]
    return ChunkTask(
        "moraine_points.raster_tasks:gather_block",
        outputs=[out],
        kwargs={
            "ras": Chunk(raster, (ALL, ALL, *part)),
            "grid": grid,
            "number": number,
            "n_rows": stop - start,
        },
        scratch_bytes=_bytes(raster, out, stop - start, n_points),
    )


def _bytes(raster: Array, out: Chunk, n_here: int, n_points: int) -> int:
    # a chunk of the raster as it is decoded and as it is used, and the values of a group, at most all of them
    return 2 * Chunk(raster).stored_nbytes + out.nbytes + GROUP_BYTES * n_here + SHARED_BYTES * n_points
