"""The levels of a pyramid and how the work on them is cut: whole numbers only.

A band of lines that starts at a multiple of ``2**k`` can be taken ``k`` levels down on its own, but it may write a
level only in whole tiles. So a pyramid is made in *stages*: the first cuts level 0 into bands tall enough for whole
tiles of the next few levels; the coarsest of these is what the next stage cuts into bands, until one band is all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moraine_core import blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moraine_core import Block


PIECE = 1 << 18
"""Cells that are worked on at a time where several wide temporary arrays are needed."""

PIECE_DEPTH = 4
"""Levels that a piece is taken down; below that little is left of it."""


@dataclass(frozen=True)
class Stage:
    """Levels that are made together, band by band.

    Attributes
    ----------
    base
        The level that is cut into bands.
    levels
        The levels written: those after the base, and the base itself if it is level 0.
    bands
        Lines of the base.
    """

    base: int
    levels: range
    bands: tuple[slice, ...]

    @property
    def depth(self) -> int:
        """How many levels a band is taken down."""
        return self.levels[-1] - self.base

    def part(self, band: slice, level: int) -> slice:
        """Return the lines of a level that a band becomes."""
        return slice(band.start >> level - self.base, -(-band.stop >> level - self.base))


def n_levels(nlines: int, width: int) -> int:
    """Count the levels of a raster's pyramid, the full raster included.

    Parameters
    ----------
    nlines, width
        Shape of the raster in pixels, both at least 1.

    Returns
    -------
    int
        ``floor(log2(min(nlines, width))) + 1``.

    Raises
    ------
    ValueError
        The raster has no pixels.
    """
    if min(nlines, width) < 1:
        msg = f"a pyramid needs at least one line and one sample, found shape ({nlines}, {width})"
        raise ValueError(msg)
    return min(nlines, width).bit_length()


def level_shapes(nlines: int, width: int) -> list[tuple[int, int]]:
    """List the shape of every level.

    Parameters
    ----------
    nlines, width
        Shape of level 0 in pixels.

    Returns
    -------
    list of (int, int)
        ``(ceil(nlines / 2**l), ceil(width / 2**l))`` for each level ``l``, finest first.

    Raises
    ------
    ValueError
        The raster has no pixels.
    """
    return [(-(-nlines >> level), -(-width >> level)) for level in range(n_levels(nlines, width))]


def stages(shapes: Sequence[tuple[int, int]], tile_lines: int, lines: int) -> list[Stage]:
    """Cut the making of a pyramid into stages.

    Parameters
    ----------
    shapes
        Of the levels, from `level_shapes`.
    tile_lines
        Lines of a tile; -1 is the whole axis.
    lines
        Lines of a band. What is taken is the tile times the largest power of two within, and at least two tiles, so
        that every stage has a next level to write.

    Returns
    -------
    list of Stage
        Each reads the last level of the one before; every level is written by one of them.
    """
    if tile_lines == -1:
        tile_lines = shapes[0][0]
    depth = max((lines // tile_lines).bit_length() - 1, 1)
    last = len(shapes) - 1
    made: list[Stage] = []
    base, first = 0, 0
    while not made or made[-1].levels[-1] < last:
        nlines = shapes[base][0]
        in_one = nlines <= tile_lines << depth
        end = last if in_one else min(base + depth, last)
        bands = blocks((nlines,), (nlines if in_one else tile_lines << depth,))
        made.append(Stage(base, range(first, end + 1), tuple(band for (band,) in bands)))
        base, first = end, end + 1
    return made


def piece_lines(width: int) -> int:
    """Say how many lines make a piece: a multiple of ``2**PIECE_DEPTH``, about `PIECE` cells."""
    unit = 1 << PIECE_DEPTH
    return max(PIECE // (width * unit), 1) * unit


def channels(stack: Sequence[int]) -> list[Block]:
    """List the images of a stack, as parts of the axes behind the spatial ones; one empty part if there are none."""
    return list(blocks(stack, (1,) * len(stack)))


def mean_dtype(dtype: str) -> str:
    """Return the dtype of means and of what can be missing: that of float and complex data, float32 for others."""
    return dtype if dtype.startswith(("float", "complex")) else "float32"
