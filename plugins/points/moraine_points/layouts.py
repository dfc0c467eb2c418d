"""What the commands on points share while they declare: layouts of point arrays, and the checks that need no data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moraine_core import Layout, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moraine_core import Array

LONGEST_SIDE = 2**31
"""Lines or pixels of the largest raster whose coordinates fit into int32."""


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


def index_layout(path: str, idx: Array, block: int) -> Layout:
    """Return the layout of an index of the kind of `idx` for the same points: gix int32, hix int64."""
    if idx.ndim == 2:
        return Layout(path, idx.shape, "int32", (block, 2))
    return Layout(path, idx.shape, "int64", (block,))


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
