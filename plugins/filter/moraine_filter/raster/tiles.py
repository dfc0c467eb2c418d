"""Geometry of tiles for a network with coarse levels, and what filtering a tile costs: integers only."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

GRID = 16
"""Pixels of a block of the network's coarsest level; tiles begin on multiples of it."""

HALO = 112
"""Pixels around a block that its values may depend on, rounded up to the grid."""

USUAL = 1024
"""Lines and pixels of a block that wastes little on its halo."""

RESULT_BYTES = 2**28
"""Bytes of results of one task at most, where it has more than one pair: enough tasks for all cores, while an image is
read again only for pairs of another task."""

PIXEL_BYTES = 360
"""Bytes that the network holds per pixel of a tile."""

FIXED_BYTES = 64 * 2**20
"""Bytes of the network and of what its convolutions keep between calls, whatever the tile."""


def outer(start: int, stop: int, n: int) -> tuple[int, int]:
    """Return the range that is read to filter a range of an axis.

    It begins and ends on multiples of `GRID`, at least `HALO` away, or at the edges of the image; the last block of the
    grid may reach beyond the image.

    Parameters
    ----------
    start, stop
        Lines or pixels to filter.
    n
        Length of the axis.

    Examples
    --------
    >>> outer(1000, 2000, 4160), outer(0, 1000, 4160), outer(4000, 4160, 4160), outer(0, 30, 30)
    ((880, 2112), (0, 1120), (3888, 4160), (0, 32))
    """
    return max((start - HALO) // GRID * GRID, 0), min(-(-(stop + HALO) // GRID), -(-n // GRID)) * GRID


def groups(n_pairs: int, pair_bytes: int) -> list[slice]:
    """Return as few groups of pairs in sequence, of about one size, as keep results within `RESULT_BYTES`."""
    count = min(-(-n_pairs * pair_bytes // RESULT_BYTES), n_pairs) or 1
    return [slice(n_pairs * k // count, n_pairs * (k + 1) // count) for k in range(count)]


def last_use(pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Return, for each image, the image with whose arrival its last pair is complete, when images come in order."""
    last: dict[int, int] = {}
    for pair in pairs:
        for image in pair:
            last[image] = max(last.get(image, image), *pair)
    return last


def most_held(pairs: Sequence[tuple[int, int]]) -> int:
    """Return how many images are held at a time, when they come in order and each stays until its last pair."""
    last = last_use(pairs)
    return max(sum(image <= come <= end for image, end in last.items()) for come in last)


def scratch_bytes(tile: Sequence[int], pairs: Sequence[tuple[int, int]]) -> int:
    """Return what filtering a tile needs besides its inputs and results."""
    return FIXED_BYTES + prod(tile) * (PIXEL_BYTES + 12 * most_held(pairs))
