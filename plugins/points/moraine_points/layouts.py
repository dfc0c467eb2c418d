"""What the commands on points share while they declare: layouts of point arrays, and the checks that need no data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moraine_core import UsageError, blocks
from moraine_core.plan import itemsize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moraine_core import Array, Block

LONGEST_SIDE = 2**31
"""Lines or pixels of the largest raster whose coordinates fit into int32."""

WINDOW_POINTS = 2**18
"""Points whose data a task handles together: small chunks are read so many at a time, row numbers widened."""

VALUES_BYTES = 2**26
"""Several images are taken together only as long as their values at the points of a task take no more."""


def check_shape(command: str, shape: tuple[int, int]) -> None:
    """Refuse what is not the shape of a raster that int32 coordinates can reach."""
    if not all(1 <= side <= LONGEST_SIDE for side in shape):
        msg = f"{command}: shape is {shape}; expected two sides from 1 to {LONGEST_SIDE} (pixels)"
        raise UsageError(msg)


def check_lists(command: str, name_in: str, inputs: Sequence[object], name_out: str, outputs: Sequence[object]) -> None:
    """Refuse two lists that go position by position and are not of one length."""
    if len(inputs) != len(outputs):
        msg = f"{command}: {name_in} has {len(inputs)} arrays and {name_out} {len(outputs)}; expected as many of each"
        raise UsageError(msg)


def column_chunks(array: Array, space: int) -> tuple[int, ...]:
    """Return the chunks, along the axes after the `space` spatial ones, of what is made of an array.

    They are one image each, but for a window array (two trailing axes that its chunks cover whole) and for a gix,
    which are never cut. They are also what one task works on.
    """
    trailing = array.shape[space:]
    whole = all(chunk >= size for chunk, size in zip(array.chunks[space:], trailing, strict=True))
    is_gix = space == 1 and trailing == (2,) and array.dtype.startswith(("int", "uint"))
    if whole and (len(trailing) == 2 or is_gix):
        return tuple(max(size, 1) for size in trailing)
    return (1,) * len(trailing)


def is_window(array: Array, space: int) -> bool:
    """Tell whether an array holds a window for each pixel or point: two axes after the spatial ones, stored whole."""
    return array.ndim == space + 2 and column_chunks(array, space) == tuple(max(n, 1) for n in array.shape[space:])


def column_parts(array: Array, space: int, n_points: int, together: int) -> Iterator[Block]:
    """Yield the parts of the axes after the `space` spatial ones that a task takes at so many points.

    Parameters
    ----------
    array
        The data.
    space
        Number of spatial axes.
    n_points
        Points of a task.
    together
        Most images in a part. There are fewer where the values of that many would take more than `VALUES_BYTES`, and a
        whole number of stored chunks where that is possible.
    """
    trailing, columns = array.shape[space:], column_chunks(array, space)
    if columns and max(columns) == 1:
        most = min(together, VALUES_BYTES // max(n_points * itemsize(array.dtype), 1))
        stored = array.chunks[-1]
        columns = (*columns[:-1], max(most - most % stored if most > stored else most, 1))
    yield from blocks(trailing, columns)


def row_dtype(n_rows: int) -> str:
    """Return the smallest dtype, int32 or int64, that numbers so many rows."""
    return "int32" if n_rows < 2**31 else "int64"
