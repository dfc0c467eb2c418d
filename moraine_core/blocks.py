"""Geometry of chunk grids on integers: blocks of a shape, halos and their trims, alignment.

A *box* is one half-open ``(start, stop)`` pair per axis. Users write blocks as tuples of slices, since those also
index arrays; `to_box` turns them into boxes.
"""

from __future__ import annotations

from itertools import product
from math import ceil, prod

from moraine_core.errors import LayoutError

TYPE_CHECKING = False  # as type checkers know it; importing typing would cost every new worker milliseconds
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

Shape: TypeAlias = tuple[int, ...]
Block: TypeAlias = tuple[slice, ...]
Box: TypeAlias = tuple[tuple[int, int], ...]

ALL = slice(None)
"""The whole of an axis."""


def resolve_chunks(shape: Sequence[int], chunks: Sequence[int]) -> Shape:
    """Return the chunk sizes that `chunks` means for `shape`: ``-1`` is the whole axis, and no chunk is empty.

    Raises
    ------
    LayoutError
        The number of axes differs, or a size is zero or below -1.
    """
    if len(chunks) != len(shape):
        msg = f"chunks {tuple(chunks)} have {len(chunks)} axes, the shape {tuple(shape)} has {len(shape)}"
        raise LayoutError(msg)
    if any(c == 0 or c < -1 for c in chunks):
        msg = f"chunks {tuple(chunks)}: expected positive sizes, or -1 for a whole axis"
        raise LayoutError(msg)
    return tuple(max(n, 1) if c == -1 else int(c) for n, c in zip(shape, chunks, strict=True))


def grid_shape(shape: Sequence[int], chunks: Sequence[int]) -> Shape:
    """Return the number of chunks along each axis; an empty axis has none."""
    return tuple(ceil(n / c) for n, c in zip(shape, resolve_chunks(shape, chunks), strict=True))


def n_blocks(shape: Sequence[int], chunks: Sequence[int]) -> int:
    """Return the number of blocks that `blocks` yields."""
    return prod(grid_shape(shape, chunks))


def blocks(shape: Sequence[int], chunks: Sequence[int]) -> Iterator[Block]:
    """Yield the blocks of a shape in row-major order; the last one of an axis may be shorter.

    Examples
    --------
    >>> list(blocks((5,), (2,)))
    [(slice(0, 2, None),), (slice(2, 4, None),), (slice(4, 5, None),)]
    """
    sizes = resolve_chunks(shape, chunks)
    axes = [
        [slice(start, min(start + size, n)) for start in range(0, n, size)]
        for n, size in zip(shape, sizes, strict=True)
    ]
    yield from product(*axes)


def with_halo(block: Block, halo: Sequence[int], shape: Sequence[int]) -> tuple[Block, Block]:
    """Widen a block by a halo, clipped at the edges of the array.

    Parameters
    ----------
    block
        The block a task writes.
    halo
        Elements read beyond the block on both sides, one number per axis.
    shape
        Shape of the array that is read.

    Returns
    -------
    outer, trim
        The block to read, and the part of what was read (or of a result of that shape) that is the block itself.

    Examples
    --------
    >>> with_halo((slice(2, 4),), (3,), (6,))
    ((slice(0, 6, None),), (slice(2, 4, None),))
    """
    outer, trim = [], []
    for (start, stop), h, n in zip(to_box(block, shape), halo, shape, strict=True):
        low = max(start - h, 0)
        outer.append(slice(low, min(stop + h, n)))
        trim.append(slice(start - low, stop - low))
    return tuple(outer), tuple(trim)


def to_box(block: Sequence[slice | None] | None, shape: Sequence[int]) -> Box:
    """Return the half-open bounds of a block within `shape`; ``None`` is a whole axis, or the whole array.

    Raises
    ------
    LayoutError
        Another number of axes, a step, or bounds outside the array: nothing is clipped or wrapped in silence.
    """
    if block is None:
        return tuple((0, n) for n in shape)
    if len(block) != len(shape):
        msg = f"a part with {len(block)} axes was asked of an array with shape {tuple(shape)}"
        raise LayoutError(msg)
    box = []
    for axis, (part, n) in enumerate(zip(block, shape, strict=True)):
        part = ALL if part is None else part
        if part.step not in (None, 1):
            msg = f"axis {axis}: step {part.step}, expected 1"
            raise LayoutError(msg)
        start = 0 if part.start is None else part.start
        stop = n if part.stop is None else part.stop
        if not 0 <= start <= stop <= n:
            msg = f"axis {axis}: part {start}:{stop} is not within 0:{n}"
            raise LayoutError(msg)
        box.append((start, stop))
    return tuple(box)


def to_block(box: Box) -> Block:
    """Return a box as slices."""
    return tuple(slice(start, stop) for start, stop in box)


def box_shape(box: Box) -> Shape:
    """Return the shape of what a box encloses."""
    return tuple(stop - start for start, stop in box)


def is_aligned(box: Box, shape: Sequence[int], chunks: Sequence[int]) -> bool:
    """Tell whether a box is made of whole chunks: every axis whole, or cut on chunk borders or the array's end."""
    return all(
        (start, stop) == (0, n) or (start % c == 0 and (stop % c == 0 or stop == n))
        for (start, stop), n, c in zip(box, shape, resolve_chunks(shape, chunks), strict=True)
    )


def chunks_of(box: Box, chunks: Sequence[int]) -> Iterator[Shape]:
    """Yield the grid indices of all chunks that a box touches, in row-major order."""
    axes = zip(box, chunks, strict=True)
    yield from product(*(range(start // c, -(-stop // c)) if stop > start else () for (start, stop), c in axes))


def split(box: Box, chunks: Sequence[int]) -> Iterator[Box]:
    """Yield the pieces of a box that lie in one chunk each, in row-major order."""
    for index in chunks_of(box, chunks):
        yield tuple(
            (max(start, i * c), min(stop, (i + 1) * c)) for (start, stop), i, c in zip(box, index, chunks, strict=True)
        )
