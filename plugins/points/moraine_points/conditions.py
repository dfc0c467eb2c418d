"""What the commands that choose by a condition share while they declare: count in bands, then fill the index."""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any

from moraine_core import ALL, Array, Chunk, ChunkTask, Layout, Plan, UsageError, blocks
from moraine_core.plan import itemsize
from moraine_raster.expression import Expression

if TYPE_CHECKING:
    from collections.abc import Generator

BAND_VALUES = 2**22
"""Rows of chunks are joined into bands of at least so many values."""

PLACE_BYTES = 16
"""Bytes of a place, two axes in int64: of pixels that are picked out of a band, and of an index that is checked."""


def chosen(
    command: str, data: Array, variable: str, operation: str, idx: Array | None, path: str, chunks: int
) -> Generator[Plan, list[Any], None]:
    """Yield the plans that write the index of the pixels or points where a condition holds.

    Parameters
    ----------
    command
        Its name.
    data, variable
        A raster ``(nlines, width)`` or data of points ``(n_points,)``, maybe with one axis of length 1 more, and the
        parameter's name, which is also that of the array in the condition.
    operation
        The condition.
    idx
        Index of the points; None for a raster, whose pixels are written as gix.
    path, chunks
        The output, and points in a chunk of it.
    """
    dtype, temporary = Expression(operation).probe({variable: data.dtype})
    if dtype != "bool" and "int" not in dtype:
        msg = f"{command}: operation {operation!r} gives {dtype} for {variable} {data.path}; expected bool"
        raise UsageError(msg)
    row_values = prod(data.shape[1:])
    band = data.chunks[0] * max(BAND_VALUES // max(data.chunks[0] * row_values, 1), 1)
    bands = [rows for (rows,) in blocks(data.shape[:1], (band,))]
    evaluating = (temporary + itemsize("bool")) * min(band, data.shape[0]) * row_values
    condition = {"variable": variable, "operation": operation}
    counts = yield Plan(
        [],
        [
            ChunkTask(
                "moraine_points.tasks:count",
                inputs=[_rows(data, rows)],
                kwargs={**condition, "name": f"{command}: {variable} {data.path}"},
                scratch_bytes=evaluating,
            )
            for rows in bands
        ],
        desc=f"{command} count",
    )
    offsets = list(accumulate(counts, initial=0))
    n_points = offsets[-1]
    if idx is None or idx.ndim == 2:
        out = Layout(path, (n_points, 2), "int32", (chunks, 2))
    else:
        out = Layout(path, (n_points,), "int64", (chunks,))
    size, tasks = out.chunks[0], []
    for rows, start, stop in zip(bands, offsets, offsets[1:], strict=False):
        # a task owns the chunks of the index whose first point is in its band; the last may need the bands after it too
        first, last = -(-start // size) * size, min(-(-stop // size) * size, n_points)
        if first < stop:
            reading = [_rows(array, bands[0]) for array in (data, idx) if array is not None]
            tasks.append(
                ChunkTask(
                    "moraine_points.tasks:select",
                    outputs=[Chunk(out, (slice(first, last), *(ALL,) * (len(out.shape) - 1)))],
                    kwargs={
                        "data": Chunk(data),
                        "idx": None if idx is None else Chunk(idx),
                        **condition,
                        "start": rows.start,
                        "band": band,
                        "skip": first - start,
                        "n_points": last - first,
                        "name": "" if idx is None else f"{command}: idx_in {idx.path}",
                    },
                    scratch_bytes=sum(part.nbytes + part.stored_nbytes for part in reading)
                    + evaluating
                    + PLACE_BYTES * (2 * max(counts) + (0 if idx is None else band)),
                )
            )
    yield Plan([out], tasks)


def _rows(array: Array, rows: slice) -> Chunk:
    return Chunk(array, (rows, *(ALL,) * (array.ndim - 1)))
