"""Spills: temporary files that hold window arrays part by part, so that points in any order find their rows.

A part (what a raster chunk gives, or one array of a directory) is decoded once and written as plain rows. A block of
points then reads just its own rows, wherever they are. No order of the points makes that slow or large.
"""

from __future__ import annotations

import sys
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from moraine_core import ALL, Chunk, ChunkTask, RawLayout, blocks
from moraine_core.plan import SCRATCH

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from moraine_core import Layout

UNIT_ROWS = 32
"""Parts begin at multiples of so many rows: the unit that two tasks must not share."""

PLACE_BYTES = 32
"""Bytes per point of a task that restores rows: their places and runs, in int64."""


def padded(n_rows: int) -> int:
    """Return the rows that a part of `n_rows` takes in a spill."""
    return -(-n_rows // UNIT_ROWS) * UNIT_ROWS


def spill_layout(name: str, sizes: Sequence[int], layout: Layout) -> RawLayout:
    """Return the layout of a spill for parts of `sizes` rows, from which `layout` will be filled."""
    shape = (sum(map(padded, sizes)), *layout.shape[1:])
    chunks = (UNIT_ROWS, *(-1 for _ in shape[1:]))
    # of the machine's own byte order: rows are read straight into place
    return RawLayout(f"{SCRATCH}{name}", shape, layout.dtype, chunks, byteorder=sys.byteorder)


def spill_parts(spill: RawLayout, sizes: Sequence[int]) -> Iterator[Chunk]:
    """Yield the place of each part, padding included."""
    trailing = (ALL,) * (len(spill.shape) - 1)
    for start, stop in pairwise(accumulate(map(padded, sizes), initial=0)):
        yield Chunk(spill, (slice(start, stop), *trailing))


def restore_tasks(spill: RawLayout, which: Hashable, layout: Layout) -> Iterator[ChunkTask]:
    """Yield the tasks that fill a layout, block by block of points, when its spill is whole."""
    for part in blocks(layout.shape, layout.chunks):
        rows = part[0]
        yield ChunkTask(
            "moraine_points.part_tasks:restore",
            outputs=[Chunk(layout, part)],
            kwargs={
                "spill": Chunk(spill),
                "dtype": layout.dtype,
                "rows": (rows.start, rows.stop),
                "which": which,
            },
            scratch_bytes=PLACE_BYTES * (rows.stop - rows.start) + 8 * layout.shape[0],
        )
