"""How a raster chunk is cut into tasks, so that all workers have some, and how its parts are put together.

The array of a raster chunk has one chunk of points, which one task has to write. A raster chunk with many points is
therefore computed in bands of lines, into temporary arrays, which are joined in the end: a few percent of the work.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from moraine_core import ALL, Chunk, ChunkTask, Layout, blocks, with_halo
from moraine_core.plan import SCRATCH, itemsize
from moraine_ds.coherence.plans import layout_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moraine_core import Array
    from moraine_ds.coherence.plans import Part, Windows

TASKS = 32
"""Bands that a data set is cut into where its raster chunks are few: each reads the images of its lines from whole
stored chunks, so more than are needed cost time."""

PIXELS_PER_POINT = 64
"""Most pixels of a raster chunk for each point of a band: with fewer points, reading the images would be the work."""

BAND_POINTS = 1000
"""Fewest points that are worth a band, with its temporary arrays."""

JOINING_BYTES = 64 * 2**20
"""Values that a task joins."""

CUTTING_BYTES = 64
"""Bytes per point while bands are cut."""


class Result(NamedTuple):
    """What is stored of the points: a directory with an array for each raster chunk."""

    name: str
    """As the kernel calls it."""
    folder: str
    columns: tuple[int, ...]
    """Length of the axes behind that of the points."""
    dtype: str
    attributes: dict[str, Any]

    def layout(self, part: Part | None) -> Layout:
        """Return the layout for a raster chunk, or for no point."""
        return layout_of(self.folder, part, self.columns, self.dtype, self.attributes)

    def piece(self, band: Band, number: int) -> Layout:
        """Return the temporary array of one band of a raster chunk."""
        return replace(self.layout(band.part), path=f"{SCRATCH}{self.name}_{band.part.number}_{number}")


class Band(NamedTuple):
    """Lines of a raster chunk with some of its points."""

    part: Part
    """These lines, as if they were a raster chunk; its number is that of the chunk."""
    points: slice
    """Which of the points of the chunk."""


def cutting_task(rslc: Array, gix: Array, chunks: tuple[int, int]) -> ChunkTask:
    """Return the task that cuts raster chunks into bands; its result is for `bands_of`."""
    return ChunkTask(
        "moraine_ds.fused.tasks:bands_of_chunks",
        inputs=[Chunk(gix)],
        kwargs={
            "shape": rslc.shape[:2],
            "chunks": chunks,
            "n_tasks": TASKS,
            "pixels_per_point": PIXELS_PER_POINT,
            "fewest": BAND_POINTS,
        },
        scratch_bytes=CUTTING_BYTES * gix.shape[0],
    )


def bands_of(part: Part, cuts: Sequence[Sequence[int]], windows: Windows, rslc: Array) -> list[Band]:
    """Return the bands of a raster chunk, in the order of its points.

    Parameters
    ----------
    part
        The raster chunk.
    cuts
        The result of `cutting_task`.
    windows
        The homogeneous pixels of all points.
    rslc
        The stack.
    """
    bands, first = [], 0
    for number, n_points, top, bottom, start, stop in cuts:
        if number == part.number:
            block = (slice(top, bottom), part.block[1])
            outer, _ = with_halo(block, [side // 2 for side in windows.shape], rslc.shape[:2])
            lines = part._replace(n_points=n_points, rows=slice(start, stop), block=block, outer=outer)
            bands.append(Band(lines, slice(first, first + n_points)))
            first += n_points
    return bands


def cut_into_bands(
    parts: Sequence[Part], cuts: Sequence[Sequence[int]], results: Sequence[Result], windows: Windows, rslc: Array
) -> tuple[list[tuple[Band, list[Layout]]], list[tuple[Layout, tuple[Layout, ...]]]]:
    """Return what there is to do for raster chunks with points.

    Parameters
    ----------
    parts
        The raster chunks.
    cuts
        The result of `cutting_task`.
    results
        What is stored.
    windows, rslc
        The homogeneous pixels of all points, and the stack.

    Returns
    -------
    bands
        Each with the arrays to write, those with most points first: nobody waits for them in the end.
    joins
        Each array that is joined, with the temporary arrays it is made of.
    """
    work: list[tuple[Band, list[Layout]]] = []
    joins: list[tuple[Layout, tuple[Layout, ...]]] = []
    for part in parts:
        whole = [result.layout(part) for result in results]
        bands = bands_of(part, cuts, windows, rslc)
        if len(bands) == 1:
            work.append((bands[0], whole))
            continue
        pieces = [[result.piece(band, number) for result in results] for number, band in enumerate(bands)]
        work += zip(bands, pieces, strict=True)
        joins += zip(whole, zip(*pieces, strict=True), strict=True)
    return sorted(work, key=lambda item: -item[0].part.n_points), joins


def joining_tasks(layout: Layout, pieces: Sequence[Layout]) -> Iterator[ChunkTask]:
    """Yield the tasks that put the array of a raster chunk together, some columns each."""
    columns = max(JOINING_BYTES // (itemsize(layout.dtype) * layout.shape[0]), 1)
    width: int = prod(layout.shape[1:])
    for (some,) in blocks((width,), (columns,)):
        part = (ALL, some) if layout.shape[1:] else (ALL,)
        yield ChunkTask(
            "moraine_ds.fused.tasks:joined",
            inputs=[Chunk(piece, part) for piece in pieces],
            outputs=[Chunk(layout, part)],
        )
