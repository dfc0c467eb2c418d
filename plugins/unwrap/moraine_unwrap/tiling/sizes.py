"""How large tiles are; known before anything is read, and so without numpy."""

from __future__ import annotations

from math import ceil, isqrt
from typing import NamedTuple

CELL = 32
"""Vertices of a cell: those of `moraine_unwrap.flow.slopes`, which are never cut, so that costs stay what they are."""

HALO = 4
"""Cells by which a tile is larger on each side: about 20 points."""


class Sizes(NamedTuple):
    """Sizes of tiles.

    Attributes
    ----------
    n_tiles
        Number of tiles.
    vertices
        Most vertices of a tile with its halo.
    """

    n_tiles: int
    vertices: int


def tile_sizes(n_points: int, tile: int) -> Sizes:
    """Return into how many tiles points are cut, and how large these are at most.

    Parameters
    ----------
    n_points
        Number of points.
    tile
        Points of a tile, without halo.
    """
    n_tiles = max(ceil(n_points / tile), 1)
    n_cells = ceil(n_points / CELL)
    core = min(ceil(n_cells / n_tiles) + 2, n_cells)  # the shares of two halves are rounded at every cut
    return Sizes(n_tiles, CELL * min(core + 4 * halo_cells(core), n_cells))


def halo_cells(n_cells: int) -> int:
    """Return how many cells of a halo lie on one side of a tile of so many cells."""
    return HALO * (isqrt(n_cells) + 1 + HALO)
