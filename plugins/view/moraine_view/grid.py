"""The grid under a point cloud: where its cells lie and how many there are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_CELLS = 1 << 31
"""Largest grid: its index takes 16 GiB."""

FAR = 1e300
"""No span is longer, so that nothing computed of it is infinite."""


class PointGrid(NamedTuple):
    """A grid under a point cloud; cell ``(i, j)`` is centered at ``(x0 + j * res, y0 + i * res)``."""

    x0: float
    y0: float
    res: float
    """Cell size, unit of the coordinates."""
    nrows: int
    """Cells along y; rows grow with y."""
    ncols: int
    """Cells along x."""

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Centers of the corner cells ``(x0, y0, xm, ym)``, unit of the coordinates."""
        return self.x0, self.y0, self.x0 + (self.ncols - 1) * self.res, self.y0 + (self.nrows - 1) * self.res


def point_grid(low: Sequence[float], high: Sequence[float], res: float) -> PointGrid:
    """Lay a grid under points, cut to the largest cell used.

    Parameters
    ----------
    low, high
        Least and largest x and y of the points, finite.
    res
        Cell size, unit of the coordinates, positive.

    Returns
    -------
    PointGrid
        With its first cell centered at the least x and y.

    Raises
    ------
    ValueError
        The grid would have more than 2^31 cells; the message names a cell size that is large enough.
    """
    width, height = (min(b - a, FAR) for a, b in zip(low, high, strict=True))
    nrows, ncols = _cells(height, res), _cells(width, res)
    if nrows * ncols > MOST_CELLS:
        msg = (
            f"ras_resolution {res:g} makes a grid of {nrows} x {ncols} cells; expected at most {MOST_CELLS}, "
            f"take a ras_resolution of {_large_enough(width, height):g} or more"
        )
        raise ValueError(msg)
    return PointGrid(float(low[0]), float(low[1]), float(res), nrows, ncols)


def _cells(span: float, res: float) -> int:
    """Count the cells from the one around the first center to the one that holds the far end."""
    # a point goes to the nearest center; half way to the even one, as numpy rounds
    return round(min(span / res, FAR)) + 1


def _large_enough(width: float, height: float) -> float:
    """Return about the least cell size that keeps the grid small enough, in two digits."""
    least = max(math.sqrt(width / MOST_CELLS) * math.sqrt(height), (width + height) / MOST_CELLS)
    unit = 10.0 ** (math.floor(math.log10(least)) - 1)
    tens = math.ceil(least / unit)
    while _cells(width, tens * unit) * _cells(height, tens * unit) > MOST_CELLS:
        tens += 1
    return tens * unit
