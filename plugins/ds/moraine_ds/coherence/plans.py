"""What commands on points by raster chunk share while they declare: their inputs, and the plan that measures these."""

from __future__ import annotations

from math import prod
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from moraine_core import ALL, Chunk, ChunkTask, Layout, Plan, Stream, UsageError, with_halo
from moraine_core.errors import MoraineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moraine_core import Array, Block

CORRELATION_IMAGES = 3
"""Images in which the correlation of speckle is measured; from image to image it differs by a few percent."""

CORRELATION_SIDE = 512
"""Lines and pixels of a part in which it is measured; parts are up to three along each axis."""

COUNTING_BYTES = 64
"""Bytes per point while the points of raster chunks are counted."""

PLANES = 8
"""Images that are turned into pixels together: as many samples as a cache line holds."""

FINDING_BYTES = 128
"""Bytes per point in the lines of a raster chunk while those of the chunk are found."""

MEASURING_BYTES = 128
"""Bytes per pixel of a part while the correlation of speckle is measured."""


class Part(NamedTuple):
    """A raster chunk with points."""

    number: int
    n_points: int
    rows: slice
    """Rows of the gix in its lines."""
    block: Block
    """Its lines and pixels."""
    outer: Block
    """Its lines and pixels with the halo of a window."""

    @property
    def n_pixels(self) -> int:
        """Pixels with the halo."""
        return size_of(self.outer)


class Windows(NamedTuple):
    """A directory of window arrays of points."""

    path: str
    arrays: dict[int, Array]
    """The arrays by number of raster chunk, without those that have no point."""
    shape: tuple[int, int]
    """Lines and pixels of a window."""


def chunk_sizes(command: str, rslc: Array, chunks: tuple[int, int] | None) -> tuple[int, int]:
    """Return lines and pixels of a raster chunk, by default those of the stack.

    Raises
    ------
    UsageError
        A size is neither positive nor -1.
    """
    sizes = chunks or rslc.chunks[:2]
    if any(size == 0 or size < -1 for size in sizes):
        raise UsageError(f"{command}: chunks are {chunks}; expected positive sizes, or -1 for a whole axis")
    lines, width = (max(n if size == -1 else min(size, n), 1) for size, n in zip(sizes, rslc.shape, strict=False))
    return lines, width


def read_windows(command: str, name: str, path: str) -> Windows:
    """Return what is known of a directory of flags in windows, one array for each raster chunk.

    Raises
    ------
    MoraineError
        An array is missing or incomplete, or is not what it should be.
    """
    from moraine_core import store

    try:
        arrays = store.ZarrDir(path).parts
    except MoraineError as error:
        raise type(error)(f"{command}: {name}: {error}") from None
    array = arrays[0]
    if array.dtype != "bool" or array.ndim != 3 or array.shape[1] % 2 == 0 or array.shape[2] % 2 == 0:
        raise UsageError(
            f"{command}: {name}: {array.path} is {array.dtype} {array.shape}; expected bool (n_points, az_win, r_win) "
            "with odd windows"
        )
    known = {int(Path(array.path).stem): array for array in arrays if array.shape[0]}
    return Windows(path, known, (array.shape[1], array.shape[2]))


def measuring_plan(
    command: str, rslc: Array, gix: Array, chunks: tuple[int, int], *, with_correlation: bool = True
) -> Plan:
    """Return the plan that counts points and measures how speckle is correlated; it writes nothing.

    The parts that are measured depend on the size of the raster alone, so what depends on them does not depend on
    chunks. The results are for `parts_of` (the first) and `median_correlation` (the others).
    """
    nlines, width, n_images = rslc.shape
    counting = ChunkTask(
        "moraine_ds.coherence.tasks:points_of_chunks",
        inputs=[Chunk(gix)],
        kwargs={"shape": (nlines, width), "chunks": chunks, "name": f"gix {gix.path}"},
        scratch_bytes=COUNTING_BYTES * gix.shape[0],
    )
    count = min(n_images, CORRELATION_IMAGES)
    measuring = [
        ChunkTask(
            "moraine_ds.coherence.tasks:correlation_of_part",
            inputs=[Chunk(rslc, (*place, slice(image, image + 1)))],
            scratch_bytes=MEASURING_BYTES * size_of(place),
        )
        for image in ((2 * k + 1) * n_images // (2 * count) for k in range(count))
        for place in ((lines, pixels) for lines in _places(nlines) for pixels in _places(width))
    ]
    return Plan([], [counting, *(measuring if with_correlation else [])], desc=f"{command} measure")


def _places(side: int) -> list[slice]:
    """Return where parts begin and end along an axis: few, spread evenly."""
    size = min(side, CORRELATION_SIDE)
    count = min(-(-side // CORRELATION_SIDE), 3)
    starts = [(side - size) * (2 * k + 1) // (2 * count) for k in range(count)]
    return [slice(start, start + size) for start in starts]


def median_correlation(tables: Sequence[Sequence[Sequence[float]] | None]) -> list[list[float]] | None:
    """Return the median of tables from `kernels.speckle_correlation`, the one to use for a stack.

    Parameters
    ----------
    tables
        Of several images or parts of them; None for one that is not known.

    Returns
    -------
    list or None
        Squared correlation of speckle, unitless, by lag; None where no table is known.
    """
    known = [table for table in tables if table is not None]
    if not known:
        return None
    return [[median(values) for values in zip(*rows, strict=True)] for rows in zip(*known, strict=True)]


def parts_of(
    command: str, rslc: Array, gix: Array, windows: Windows, chunks: tuple[int, int], counted: dict[str, Any]
) -> list[Part]:
    """Return the raster chunks with points, those with the most first: nobody waits for them in the end.

    Parameters
    ----------
    command, rslc, gix, windows, chunks
        What `measuring_plan` was made of, and the windows of the same points.
    counted
        Its first result.

    Raises
    ------
    UsageError
        The gix is not one of points in the raster and its order, or the windows are not of its points in these chunks.
    """
    if counted["problem"]:
        raise UsageError(f"{command}: {counted['problem']}")
    wanted = {number: n_points for number, n_points, _, _ in counted["chunks"]}
    found = {number: array.shape[0] for number, array in windows.arrays.items()}
    wrong = sorted(number for number in wanted.keys() | found.keys() if wanted.get(number) != found.get(number))
    if wrong:
        raise UsageError(
            f"{command}: {windows.path} has {found.get(wrong[0], 'no')} points in raster chunk {wrong[0]}, "
            f"gix {gix.path} has {wanted.get(wrong[0], 'no')} there ({len(wrong)} chunks differ); expected the gix and "
            f"the chunks that the directory was made with, not chunks {chunks[0]} {chunks[1]}"
        )
    shape = (rslc.shape[0], rslc.shape[1])
    across = -(-shape[1] // chunks[1])
    parts = []
    for number, n_points, start, stop in counted["chunks"]:
        corner = (number // across * chunks[0], number % across * chunks[1])
        low, high = zip(*((a, min(a + size, n)) for a, size, n in zip(corner, chunks, shape, strict=True)), strict=True)
        block = tuple(map(slice, low, high))
        outer, _ = with_halo(block, [side // 2 for side in windows.shape], shape)
        parts.append(Part(number, n_points, slice(start, stop), block, outer))
    return sorted(parts, key=lambda part: -part.n_points)


def layout_of(folder: str, part: Part | None, columns: Sequence[int], dtype: str, attributes: dict[str, Any]) -> Layout:
    """Lay out the array of a raster chunk: all its points in a chunk, one for each column; without a part, no point."""
    number, n_points = (part.number, part.n_points) if part else (0, 0)
    shape, chunks = (n_points, *columns), (max(n_points, 1), *(1 for _ in columns))
    return Layout(f"{folder}/{number}.zarr", shape, dtype, chunks, attributes=attributes)


def window_inputs(rslc: Array, images: slice, gix: Array, windows: Windows, part: Part) -> list[Any]:
    """Return what a task on a raster chunk reads: images with the halo, the gix of its lines, and its windows."""
    return [
        Stream(Chunk(rslc, (*part.outer, images)), axis=2),
        Chunk(gix, (part.rows, ALL)),
        Chunk(windows.arrays[part.number]),
    ]


def window_bytes(part: Part, images: slice) -> int:
    """Return the scratch of a task with `window_inputs`: the images pixel by pixel, and what finding points takes."""
    n_images: int = images.stop - images.start
    n_points: int = part.rows.stop - part.rows.start
    return 8 * part.n_pixels * (n_images + PLANES) + FINDING_BYTES * n_points


def size_of(block: Block) -> int:
    """Return the number of elements of a block."""
    return prod(side.stop - side.start for side in block)
