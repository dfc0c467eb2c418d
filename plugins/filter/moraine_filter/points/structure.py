"""The part of a point cloud that results at some of its points depend on: which points, and who is whose neighbor.

Points are ranked along a Hilbert curve. Level 0 are all points, level 1 every fourth rank, and so on: coarser samples
of the cloud that are as dense where it is dense. Ranks are of the whole cloud, and neighbors are the nearest in it, so
what a point's result depends on does not change with the part of the cloud that is worked on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from moraine_filter.points import _cpu

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Real: TypeAlias = NDArray[np.float64]
    Rows: TypeAlias = NDArray[np.int64]

NEIGHBORS = 16
"""Nearest points of the same level that a step of the network looks at, besides the point itself."""

COARSER = 4
"""Nearest points of the level above that a point takes results from."""

STRIDE = 4
"""Ranks of a level between two points of the level above."""

REACH = 4.0
"""Units from a point of the finest level at which its neighbors are seen at most; of a coarser one twice as far."""

LEVELS = 4
"""Levels of the network."""

SPECTRA = 3
"""Levels, from the finest, on which slopes are estimated from local spectra."""

BEFORE = (1, 1, 0, 1)
"""Steps of the network on each level, from the finest, on the way up."""

AFTER = (2, 1, 1, 0)
"""Steps on each level on the way down."""


class Level(NamedTuple):
    """One level of a cloud: coordinates in the order of ranks, and a tree of boxes around them."""

    x: Real
    y: Real
    boxes: Real
    starts: Rows

    def nearest(self, x: Real, y: Real, k: int, skip: Rows | None = None) -> Rows:
        """Return the rows of the nearest points to places, shape ``(n, k)``, but for one row of each; -1 is none."""
        skip = np.full(x.size, _cpu.MISSING) if skip is None else skip
        rows: Rows = _cpu.nearest(*self, x, y, skip, k)
        return rows


class Cloud(NamedTuple):
    """A point cloud, ready to be asked for neighbors.

    Attributes
    ----------
    order
        Point of each rank.
    rank
        Rank of each point, shape ``(n_points,)``; -1 where a coordinate is missing.
    levels
        All points in the order of their ranks, and coarser and coarser samples.
    unit
        Length that coordinates are seen in: the median over points of the root mean square distance of their neighbors.
    """

    order: NDArray[Any]
    rank: NDArray[Any]
    levels: tuple[Level, ...]
    unit: float


SAMPLE = 4096
"""Points out of which the unit of length is taken."""


def cloud_of(x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> Cloud:
    """Rank points along a Hilbert curve and build the trees of all levels.

    Points of equal place on the curve are ranked by their coordinates and then by their number.

    Parameters
    ----------
    x, y
        Coordinates, shape ``(n_points,)``, in any unit of length. A point of which one is not finite has no rank and
        is nobody's neighbor.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    dtype: type[np.int32 | np.int64] = np.int32 if x.size < 2**31 else np.int64
    placed = np.flatnonzero(np.isfinite(x) & np.isfinite(y)).astype(dtype)
    rank = np.full(x.size, -1, dtype)
    x, y = x[placed], y[placed]
    if x.size:
        x, y = x - x.min(), y - y.min()
    along = np.lexsort((y, x, _cpu.hilbert_keys(x, y)))
    x, y, order = x[along], y[along], placed[along]
    rank[order] = np.arange(order.size, dtype=dtype)
    levels = []
    for level in range(LEVELS):
        xs, ys = (np.ascontiguousarray(values[:: STRIDE**level]) for values in (x, y))
        levels.append(Level(xs, ys, *_cpu.tree(xs, ys)))
    return Cloud(order, rank, tuple(levels), _unit(levels[0]))


def _unit(level: Level) -> float:
    """Return the median over points of the root mean square distance of neighbors; 1 where all are at one place."""
    some = np.arange(0, level.x.size, max(level.x.size // SAMPLE, 1))
    rows = level.nearest(level.x[some], level.y[some], NEIGHBORS, some)
    squares = (level.x[rows] - level.x[some, None]) ** 2 + (level.y[rows] - level.y[some, None]) ** 2
    squares[rows < 0] = 0
    apart = squares.sum(axis=1) > 0
    spread = np.sqrt(squares[apart].sum(axis=1) / (rows[apart] >= 0).sum(axis=1))
    return float(np.median(spread)) if spread.size else 1.0


class Table(NamedTuple):
    """Neighbors of points: their rows among the points of a level, how they lie, and their weights.

    Attributes
    ----------
    rows
        int64 ``(n, k)``, row of each neighbor; a neighbor that there is not has any row and the weight 0.
    toward
        float32 ``(n, k, 2)``, x and y of the neighbor relative to the point, in units of the cloud.
    sharpness
        float32 ``(n,)``, one over the root mean square distance of the neighbors, the point among them if it is one;
        0 if they are all at the point.
    weight
        float32 ``(n, k)``, one over the number of neighbors.
    """

    rows: Rows
    toward: NDArray[np.float32]
    sharpness: NDArray[np.float32]
    weight: NDArray[np.float32]


@dataclass
class Part:
    """One level of a structure.

    Attributes
    ----------
    members
        Rows of the level that are needed; the ones needed last come first.
    counts
        How many of the members, from the first, each step reads or writes: ``counts[0]`` the last step writes,
        ``counts[1]`` it reads, and so on.
    table
        Neighbors of members, the member itself first, among the members.
    up
        For the first members their nearest ones in the level above, for all whose slope is estimated. None on levels
        above which there are no slopes and features.
    down
        For each of the first members of the level above its row here. None on the highest level.
    """

    members: Rows
    counts: list[int]
    table: Table
    up: Table | None = None
    down: Rows | None = None


class _Growing:
    """Members of a level, to which neighbors are added."""

    def __init__(self, level: Level, reach: float) -> None:
        self.level, self.reach = level, reach
        self.place = np.full(level.x.size, -1, np.int32)
        self.members = np.empty(min(level.x.size, 1024), np.int64)
        self.rows = np.empty((0, NEIGHBORS + 1), np.int64)
        self.count = 0
        self.counts: list[int] = []

    def enter(self, rows: Rows) -> int:
        """Make rows members, in their order, if they are none; return the number of members."""
        if self.members.size < min(self.count + rows.size, self.place.size):
            self.members = np.concatenate([self.members[: self.count], np.empty(self.count + rows.size, np.int64)])
        self.count = int(_cpu.enter(rows, self.place, self.members, self.count))
        return self.count

    def grow(self) -> int:
        """Make the neighbors of all members members too; return the number of members."""
        new = self.members[len(self.rows) : self.count]
        x, y = self.level.x[new], self.level.y[new]
        rows = np.column_stack([new, self.level.nearest(x, y, NEIGHBORS, new)])
        self.rows = np.concatenate([self.rows, rows])
        return self.enter(rows)

    def above(self, count: int, higher: _Growing) -> Rows:
        """Make the nearest ones of the first members in the level above members there; return their rows there."""
        members = self.members[:count]
        rows = higher.level.nearest(self.level.x[members], self.level.y[members], COARSER)
        higher.enter(rows)
        return rows

    def table(self, rows: Rows, source: _Growing, unit: float) -> Table:
        """Return a table of the first members, given the rows of their neighbors in a level."""
        one, other, members = self.level, source.level, self.members[: len(rows)]
        edges = _cpu.edges(one.x[members], one.y[members], other.x, other.y, rows, unit, self.reach)
        return Table(np.where(rows >= 0, source.place[rows], 0).astype(np.int64), *edges)


def structure_of(cloud: Cloud, points: Rows) -> list[Part]:
    """Return what the results at some points depend on, level by level.

    Parameters
    ----------
    cloud
        All points.
    points
        Ranks of the points, each once.
    """
    levels = [_Growing(level, REACH * STRIDE ** (number / 2)) for number, level in enumerate(cloud.levels)]
    _follow(levels, 0, np.ascontiguousarray(points, dtype=np.int64))
    # slopes: wherever features begin, and for them where those of the level above are
    first = levels[0].counts[-2]
    up = []
    for number in range(LEVELS - 1):
        lower, higher = levels[number : number + 2]
        count = first if number == 0 else lower.count if number + 1 < SPECTRA else lower.counts[AFTER[number]]
        up.append(lower.above(count, higher))
    # spectra: of all members, out of those of neighbors in the level below
    for number in reversed(range(SPECTRA - 1)):
        levels[number].enter(levels[number + 1].members[: levels[number + 1].count] * STRIDE)
        levels[number].grow()
    levels[0].grow()
    parts = []
    for number, level in enumerate(levels):
        part = Part(level.members[: level.count].copy(), level.counts, level.table(level.rows, level, cloud.unit))
        if number + 1 < LEVELS:
            higher = levels[number + 1]
            part.up = level.table(up[number], higher, cloud.unit)
            read = higher.count if number + 1 < SPECTRA else higher.counts[-1]
            part.down = level.place[higher.members[:read] * STRIDE].astype(np.int64)
        parts.append(part)
    return parts


def _follow(levels: list[_Growing], number: int, wanted: Rows) -> None:
    """Follow the steps of the network backwards, from where its results are wanted on a level."""
    level = levels[number]
    level.counts.append(level.enter(wanted))
    for _ in range(AFTER[number]):
        level.counts.append(level.grow())
    if number + 1 < LEVELS:
        higher = levels[number + 1]
        level.above(level.count, higher)
        _follow(levels, number + 1, higher.members[: higher.count].copy())
        level.enter(higher.members[: higher.counts[-1]] * STRIDE)
        level.counts.append(level.grow())
    for _ in range(BEFORE[number]):
        level.counts.append(level.grow())
    if number == 0:
        level.counts.append(level.grow())
