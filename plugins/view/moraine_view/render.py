"""The pixels of a picture: its frame, the level drawn, nearest sampling and points as disks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moraine_view.pyramid import Pyramid
    from moraine_view.show import Shown


DISK_CELLS = 1 << 18
"""Pixels of disks that are looked at together."""


@dataclass(frozen=True)
class Frame:
    """A picture's place and size; row 0 is its top."""

    x_min: float
    y_min: float
    x_max: float
    y_max: float
    rows: int
    cols: int
    pixel: float
    """Side of a pixel, in the unit of the coordinates."""
    is_y_down: bool
    """True: y grows downward (azimuth); False: upward (north)."""

    def x(self) -> NDArray[np.float64]:
        """Give the coordinates of the pixel centers of a row, ``(cols,)``."""
        return self.x_min + (np.arange(self.cols, dtype=np.float64) + 0.5) * ((self.x_max - self.x_min) / self.cols)

    def y(self) -> NDArray[np.float64]:
        """Give the coordinates of the pixel centers of a column from the top, ``(rows,)``."""
        from_edge = (np.arange(self.rows, dtype=np.float64) + 0.5) * ((self.y_max - self.y_min) / self.rows)
        return self.y_min + from_edge if self.is_y_down else self.y_max - from_edge

    def to_pixels(
        self, x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give positions ``(n,)`` as rows and columns from the upper left corner, pixel centers at halves."""
        from_edge = y - self.y_min if self.is_y_down else self.y_max - y
        row = from_edge * (self.rows / (self.y_max - self.y_min))
        col = (x - self.x_min) * (self.cols / (self.x_max - self.x_min))
        return row, col


def frame(extent: tuple[float, float, float, float], width: int, *, is_y_down: bool) -> Frame:
    """Fit a picture to an extent.

    Parameters
    ----------
    extent
        ``(x_min, y_min, x_max, y_max)``, min < max.
    width
        Largest width in pixels; the height may be four times as much.
    is_y_down
        See :class:`Frame`.

    Returns
    -------
    Frame
        With square pixels, at least one each way.
    """
    x_min, y_min, x_max, y_max = extent
    if not (x_min < x_max and y_min < y_max and all(map(math.isfinite, extent))):
        msg = f"the extent {extent} is empty; expected (x_min, y_min, x_max, y_max) with min < max"
        raise ValueError(msg)
    if width < 1:
        msg = f"the width must be at least 1 pixel; found {width}"
        raise ValueError(msg)
    pixel = max((x_max - x_min) / width, (y_max - y_min) / (4 * width))
    rows, cols = (max(1, round(side / pixel)) for side in (y_max - y_min, x_max - x_min))
    return Frame(x_min, y_min, x_max, y_max, rows, cols, pixel, is_y_down)


def level_for(pixel: float, cell: float, n_levels: int) -> int:
    """Choose the finest level whose cells are at least one pixel.

    Parameters
    ----------
    pixel, cell
        Side of a pixel and of a level-0 cell, in the same unit.
    n_levels
        How many levels there are.

    Returns
    -------
    int
        ``ceil(log2(pixel / cell))`` within the levels.
    """
    # the tolerance: a cell size found by dividing bounds may miss a power of two by one rounding
    return min(max(math.ceil(math.log2(pixel / cell) - 1e-9), 0), n_levels - 1)


def nearest_cells(centers: NDArray[np.float64], first: float, cell: float, n: int) -> NDArray[np.int64]:
    """Find the level-0 cell under each pixel along one axis.

    Parameters
    ----------
    centers
        ``(n_pixels,)`` coordinates of pixel centers.
    first, cell
        Center of cell 0 and cell size, same unit.
    n
        Number of cells.

    Returns
    -------
    ndarray
        ``(n_pixels,)`` int64 cell numbers, -1 outside the data.
    """
    cells = np.floor((centers - first) / cell + 0.5)
    return np.where((cells >= 0) & (cells < n), cells, -1).astype(np.int64)


def sample_level(pyramid: Pyramid, shown: Shown, view: Frame, level: int) -> NDArray[Any]:
    """Draw one level by nearest sampling.

    Returns
    -------
    ndarray
        ``(rows, cols)`` float64 values of the frame's pixels, nan outside the data and where they are missing.
    """
    n_rows, n_cols = pyramid.level_shape
    # a cell of level l covers 2**l cells of level 0, whichever of their values it shows
    i = nearest_cells(view.y(), pyramid.y0, pyramid.cell, n_rows) >> level
    j = nearest_cells(view.x(), pyramid.x0, pyramid.cell, n_cols) >> level
    picture = np.full((view.rows, view.cols), np.nan)
    i_in, j_in = i >= 0, j >= 0
    if not (i_in.any() and j_in.any()):
        return picture
    i, j = i[i_in], j[j_in]
    i0, j0 = int(i.min()), int(j.min())
    box = (slice(i0, int(i.max()) + 1), slice(j0, int(j.max()) + 1))
    parts = [pyramid.read(str(level), box, channel) for channel in shown.channels]
    picture[np.ix_(i_in, j_in)] = shown.combine(*parts)[np.ix_(i - i0, j - j0)]
    return picture


def draw_points(pyramid: Pyramid, shown: Shown, view: Frame, largest: float = math.inf) -> NDArray[Any]:
    """Draw the points themselves as disks, later ones over earlier ones.

    Parameters
    ----------
    pyramid, shown, view
        Which points, which of their values, and where they are drawn.
    largest
        Radius that no disk exceeds, in pixels.

    Returns
    -------
    ndarray
        ``(rows, cols)`` float64 values, nan where there is no point. A missing value is not drawn, so it hides
        nothing.
    """
    from moraine_points.kernels import rtree_ranges

    radius = min(max(1.0, 0.4 * pyramid.cell / view.pixel), largest)
    # the disk of a point outside may reach into the picture
    reach = (radius + 1) * view.pixel
    box = (view.x_min - reach, view.y_min - reach, view.x_max + reach, view.y_max + reach)
    tree = pyramid.read("rtree", (slice(None), slice(None)))
    page_size = int(str(pyramid.array("rtree").attrs["page_size"]))
    # whole pages are read, with what they hold beside the box
    pages = [slice(int(start), int(stop)) for start, stop in rtree_ranges(tree, pyramid.shape[0], page_size, box)]
    if not pages:
        return np.full((view.rows, view.cols), np.nan)
    x, y = (_read_pages(pyramid, axis, pages).astype(np.float64) for axis in "xy")
    parts = [_read_pages(pyramid, "pc", pages, channel) for channel in shown.channels]
    values = np.asarray(shown.combine(*parts), dtype=np.float64)
    row, col = view.to_pixels(x, y)
    around = radius + 1
    seen = (row > -around) & (row < view.rows + around) & (col > -around) & (col < view.cols + around)
    seen &= ~np.isnan(values)
    row, col, values = row[seen], col[seen], values[seen]
    owner = disks(row, col, radius, (view.rows, view.cols))
    return np.where(owner >= 0, np.append(values, np.nan)[owner], np.nan)


def _read_pages(pyramid: Pyramid, name: str, pages: list[slice], channel: tuple[int, ...] = ()) -> NDArray[Any]:
    return np.concatenate([pyramid.read(name, (page,), channel) for page in pages])


def disks(row: NDArray[np.float64], col: NDArray[np.float64], radius: float, shape: tuple[int, int]) -> NDArray[Any]:
    """Say which disk each pixel shows.

    Parameters
    ----------
    row, col
        ``(n,)`` centers in pixels from the picture's upper left corner; pixel ``(i, j)`` is centered at
        ``(i + 0.5, j + 0.5)``.
    radius
        In pixels, at least 1, so that every disk covers a pixel.
    shape
        Rows and columns of the picture.

    Returns
    -------
    ndarray
        ``shape`` int64: number of the last disk that holds the pixel's center, -1 where there is none.
    """
    owner = np.full(shape, -1, dtype=np.int64)
    number = np.arange(row.size, dtype=np.int64)
    steps = np.arange(-math.ceil(radius), math.ceil(radius) + 1)
    down, right = (offsets.ravel() for offsets in np.meshgrid(steps, steps, indexing="ij"))
    n_together = max(1, DISK_CELLS // down.size)
    for start in range(0, row.size, n_together):
        some = slice(start, start + n_together)
        i = np.floor(row[some, None]).astype(np.int64) + down
        j = np.floor(col[some, None]).astype(np.int64) + right
        inside = np.hypot(i + 0.5 - row[some, None], j + 0.5 - col[some, None]) <= radius
        inside &= (i >= 0) & (i < shape[0]) & (j >= 0) & (j < shape[1])
        np.maximum.at(owner, (i[inside], j[inside]), np.broadcast_to(number[some, None], i.shape)[inside])
    return owner
