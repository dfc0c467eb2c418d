"""Points into rasters: values at their pixels, and a fill value everywhere else."""

from __future__ import annotations

import math
import struct
from typing import Annotated

from moraine_core import (
    ALL,
    Array,
    Blocks2D,
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
from moraine_core.plan import itemsize
from moraine_points.gathering import GROUP_BYTES, SHARED_BYTES, Grid, locate
from moraine_points.layouts import check_lists, check_shape, column_chunks, column_parts, is_window


@command("pc2ras", family="points", example="moraine_points.examples:pc2ras")
def pc2ras(
    idx: Annotated[
        Array,
        Input(
            "gix or hix of the points",
            shape=("(n_points, 2)", "(n_points)"),
            dtype="integer",
            unit="pixels or unitless",
        ),
    ],
    pc: Annotated[tuple[Array, ...], Input("data of the points", shape="(n_points, ...)")],
    ras: Annotated[tuple[str, ...], Output("rasters of the data, one for each pc", shape="(nlines, width, ...)")],
    shape: Annotated[tuple[int, int], "lines and width of the rasters (pixels)"],
    chunks: Annotated[Blocks2D, "lines and pixels of a chunk of the outputs (pixels)"] = (1000, 1000),
    fill: Annotated[
        float | None,
        "value of pixels without a point; nan by default, 0 (false) of a mask, none of integers (unit of the data)",
    ] = None,
) -> Plan:
    """Put values of points into rasters.

    Pixels without a point are filled: with nan where the data are float or complex, with false where they are bool;
    integers have no missing value, so theirs has to be given. Values keep their dtype. Of points that
    share a pixel the last one counts. A point outside the raster is an error that names its row.

    A task fills a row of chunks of one image, or one chunk of a window array (two axes after the points that are stored
    whole), and reads only the blocks of points of which some lie there.

    Examples
    --------
    moraine pc2ras --idx ps_hix.zarr --pc ps_vel.zarr --ras ras_vel.zarr --shape 2500 1834
    """
    check_lists("pc2ras", "pc", pc, "ras", ras)
    check_shape("pc2ras", shape)
    layouts, tasks, grids = [], [], []
    for array, path in zip(pc, ras, strict=True):
        _check_fill(array, fill)
        windows = is_window(array, 1)
        columns = column_chunks(array, 1) if windows else (1,) * (array.ndim - 1)
        layout = Layout(path, (*shape, *array.shape[1:]), array.dtype, (*chunks, *columns), attributes=array.meaning)
        lines, width = layout.chunks[:2]
        grid = (lines, width if windows else shape[1])
        layouts.append(layout)
        grids.append(grid)
        parts = list(column_parts(array, 1, lines * grid[1], together=array.chunks[-1]))
        tasks += [
            _scatter(array, Chunk(layout, (*block, *part)), grid, number, fill)
            for number, block in enumerate(blocks(shape, grid))
            for part in parts
        ]
    return Plan(layouts, tasks, shared={"points": locate(idx, "idx", shape, grids)})


def _check_fill(pc: Array, fill: float | None) -> None:
    """Refuse a fill value that the dtype of the data cannot hold."""
    name, expected = f"pc2ras: fill of pc {pc.path}, which is {pc.dtype},", ""
    if pc.dtype == "bool":
        expected = "" if fill in (None, 0, 1) else "0 or 1"
    elif "int" in pc.dtype:
        bits = 8 * itemsize(pc.dtype)
        low, high = (0, 2**bits - 1) if pc.dtype.startswith("uint") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        is_held = fill is not None and math.isfinite(fill) and fill == int(fill) and low <= int(fill) <= high
        expected = "" if is_held else f"a whole number from {low} to {high}, such as {max(low, -1)}"
    elif fill is not None and math.isfinite(fill):
        part = itemsize(pc.dtype) // (2 if pc.dtype.startswith("complex") else 1)
        try:
            struct.pack({2: "<e", 4: "<f", 8: "<d"}[part], fill)
        except OverflowError:
            expected = "a number in its range"
    if expected:
        raise UsageError(f"{name} is {'not given' if fill is None else fill}; expected {expected}")


def _scatter(pc: Array, out: Chunk, grid: Grid, number: int, fill: float | None) -> ChunkTask:
    """Return the task that fills one block of an image, or of all windows."""
    (top, bottom), (left, right), *trailing = out.box
    source = Chunk(pc, (ALL, *(slice(*bounds) for bounds in trailing)))
    n_points = min(pc.shape[0], (bottom - top) * (right - left))
    return ChunkTask(
        "moraine_points.raster_tasks:scatter",
        outputs=[out],
        kwargs={
            "pc": source,
            "corner": (top, left),
            "sizes": (bottom - top, right - left),
            "grid": grid,
            "number": number,
            "fill": fill,
        },
        # a block of points as it is decoded and as it is used
        scratch_bytes=2 * source.stored_nbytes + GROUP_BYTES * n_points + SHARED_BYTES * pc.shape[0],
    )
