"""Points from a raster by a condition, such as all pixels with a small amplitude dispersion."""

from __future__ import annotations

from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from itertools import accumulate
from typing import Annotated, Any

from moraine_core import ALL, Array, Chunk, ChunkTask, Input, Layout, Output, Plan, UsageError, blocks, command
from moraine_core.plan import itemsize
from moraine_raster.expression import Expression

BAND_PIXELS = 2**22
"""Rows of chunks are joined into bands of at least so many pixels."""

COORDINATE_BYTES = 16
"""Bytes of a point while it is picked out of a band, in int64."""


@command("pc-logic-ras", family="points", example="moraine_points.examples:pc_logic_ras")
def pc_logic_ras(
    ras: Annotated[Array, Input("raster to choose from", shape=("(nlines, width)", "(nlines, width, 1)"))],
    gix: Annotated[
        str,
        Output("grid index (azimuth, range) of the chosen pixels", shape="(n_points, 2)", dtype="int32", unit="pixels"),
    ],
    operation: Annotated[str, "condition on the array ras, such as '(ras >= 0) & (ras < 0.3)'"],
    chunks: Annotated[int, "points in a chunk of gix (points)"] = 100_000,
) -> Generator[Plan, list[Any], None]:
    """Choose the pixels of a raster where a condition holds.

    The points come in the order of the raster, row by row. Comparisons with nan are false, so a missing value is not
    chosen unless the condition asks for it (isnan). The result of the operation must be bool, or integers that are 0
    or 1. Where no pixel is chosen the gix is empty, of shape (0, 2).

    The raster is read twice, or three times where most of it is chosen, in bands of whole chunks: once to count,
    then to write.

    Examples
    --------
    moraine pc-logic-ras --ras adi.zarr --gix ps_gix.zarr --operation 'ras < 0.3'
    """
    condition = Expression(operation)
    dtype, temporary = condition.probe({"ras": ras.dtype})
    if dtype != "bool" and "int" not in dtype:
        raise UsageError(f"pc-logic-ras: operation {operation!r} gives {dtype} for ras {ras.path}; expected bool")
    lines = _band_lines(ras)
    bands = [rows for (rows,) in blocks(ras.shape[:1], (lines,))]
    evaluating = (temporary + itemsize("bool")) * min(lines, ras.shape[0]) * ras.shape[1]
    counts = yield Plan(
        [],
        [
            ChunkTask(
                "moraine_points.tasks:count",
                inputs=[_rows(ras, rows)],
                kwargs={"operation": operation, "name": f"ras {ras.path}"},
                scratch_bytes=evaluating,
            )
            for rows in bands
        ],
        desc="pc-logic-ras count",
    )
    offsets = list(accumulate(counts, initial=0))
    out = Layout(gix, (offsets[-1], 2), "int32", (chunks, 2))
    size = out.chunks[0]
    tasks = []
    for rows, start, stop in zip(bands, offsets, offsets[1:], strict=False):
        # a task owns the chunks of gix whose first point is in its band; the last one may need the bands below too
        first, last = -(-start // size) * size, min(-(-stop // size) * size, offsets[-1])
        if first < stop:
            band = _rows(ras, bands[0])
            tasks.append(
                ChunkTask(
                    "moraine_points.tasks:select",
                    outputs=[Chunk(out, (slice(first, last), ALL))],
                    kwargs={
                        "ras": Chunk(ras),
                        "operation": operation,
                        "first_line": rows.start,
                        "lines": lines,
                        "skip": first - start,
                        "n_points": last - first,
                    },
                    scratch_bytes=band.nbytes + band.stored_nbytes + evaluating + COORDINATE_BYTES * max(counts),
                )
            )
    yield Plan([out], tasks)


def _band_lines(ras: Array) -> int:
    """Return the lines of a band: whole rows of chunks, as many as make it worth a task."""
    lines = ras.chunks[0]
    return lines * max(BAND_PIXELS // max(lines * ras.shape[1], 1), 1)


def _rows(ras: Array, rows: slice) -> Chunk:
    return Chunk(ras, (rows, *(ALL,) * (ras.ndim - 1)))
