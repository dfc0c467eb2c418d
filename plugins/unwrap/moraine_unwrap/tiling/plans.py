"""The plans of unwrapping in tiles: how large tiles are, pairs in each tile, each pair out of its tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moraine_core import Array, Chunk, ChunkTask, Layout, Plan, UsageError
from moraine_core.plan import SCRATCH
from moraine_unwrap.pairs import CLOUD_BYTES, PAIR_BYTES, column_of, images_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moraine_unwrap.tiling.sizes import Sizes

MOST_TILES = 10**4
"""Most tiles of a cloud."""

GROUP = 8
"""Pairs that one task unwraps in a tile, which is triangulated once for them."""

GROUP_BYTES = 8 * (2 * GROUP)
"""Bytes of a point of a tile in the images of its pairs."""

WINDOW_BYTES = 24 * 2**20
"""Bytes of points that are read at a time, of which a tile takes its own."""

TILING_BYTES = 100
"""Bytes of a point while the cloud is cut into tiles."""

KEPT_BYTES = 100
"""Bytes of a point that stay in memory once the cloud is cut: what all tiles share, and what was used for it."""

JOIN_BYTES = 80
"""Bytes of a point while the tiles of a pair are joined, besides its phases and its results in tiles."""

JOINED_BYTES = 40
"""Bytes of a point in phases and results of a pair that is joined."""


@dataclass(frozen=True)
class TiledCloud:
    """Points and pairs that are unwrapped in tiles.

    Attributes
    ----------
    command
        Name of the command.
    gix, ph
        Its inputs.
    pairs
        The pairs.
    qualities
        Weight and variance, those that there are, by what errors call them.
    costs
        ``spacing`` and ``spatial_cost``, as in `moraine_unwrap.flow.clouds`.
    sizes
        How many tiles there are, and how large.
    """

    command: str
    gix: Array
    ph: Array
    pairs: Sequence[tuple[int, int]]
    qualities: Mapping[str, Array]
    costs: Mapping[str, Any]
    sizes: Sizes

    def check(self, tile: int) -> None:
        """Check the number of tiles.

        Raises
        ------
        UsageError
            There are too many.
        """
        if self.sizes.n_tiles > MOST_TILES:
            raise UsageError(
                f"{self.command}: tile is {tile}, which makes {self.sizes.n_tiles} tiles of {self._n_points} points; "
                f"expected at most {MOST_TILES} tiles, so a tile of at least {-(-self._n_points // MOST_TILES)} points"
            )

    @property
    def room_bytes(self) -> int:
        """Memory that the plans need besides what their tasks read and write."""
        joining = (JOIN_BYTES + JOINED_BYTES) * self._n_points
        return KEPT_BYTES * self._n_points + max(TILING_BYTES * self._n_points, joining, self._tile_bytes)

    def measuring(self) -> Plan:
        """Return the plan whose only result is the number of points of the largest tile with its halo."""
        task = ChunkTask(
            "moraine_unwrap.tiling.tasks:largest_tile",
            inputs=[Chunk(self.gix)],
            kwargs={"spacing": self.costs["spacing"], "n_tiles": self.sizes.n_tiles},
            scratch_bytes=TILING_BYTES * self._n_points,
        )
        return Plan([], [task], desc=f"{self.command} tiling")

    def unwrapping(self, size: int, earth_cost: int) -> Plan:
        """Return the plan that unwraps pairs in tiles of at most `size` points, to temporary arrays."""
        found = self._found(size)
        n_pairs = len(self.pairs)
        groups = [slice(k, min(k + GROUP, n_pairs)) for k in range(0, n_pairs, GROUP)]
        tasks = [
            ChunkTask(
                "moraine_unwrap.tiling.tasks:unwrap_tile",
                outputs=[Chunk(layout, (slice(k * size, (k + 1) * size), group)) for layout in found],
                kwargs={
                    "tile": k,
                    "size": size,
                    "pairs": self.pairs[group],
                    "gix": Chunk(self.gix),
                    "ph": Chunk(self.ph),
                    "qualities": {name: Chunk(array) for name, array in self.qualities.items()},
                    "earth_cost": earth_cost,
                    **self.costs,
                },
                scratch_bytes=self._tile_bytes,
            )
            for group in groups
            for k in range(self.sizes.n_tiles)
        ]
        return Plan(found, tasks, shared={"tiling": self._tiling}, desc=f"{self.command} tiles", keep_going=True)

    def joining(self, size: int, layouts: Sequence[Layout], options: Mapping[str, Any]) -> Plan:
        """Return the plan that joins the tiles of each pair, with what is noted of it as results."""
        tasks = [
            ChunkTask(
                "moraine_unwrap.tiling.tasks:join_pair",
                inputs=[*images_of(self.ph, pair), *(column_of(layout, k) for layout in self._found(size))],
                outputs=[column_of(layout, k) for layout in layouts],
                kwargs={"size": size, **options},
                scratch_bytes=JOIN_BYTES * self._n_points,
            )
            for k, pair in enumerate(self.pairs)
        ]
        return Plan(layouts, tasks, shared={"tiling": self._tiling}, desc=f"{self.command} joining", keep_going=True)

    @property
    def _n_points(self) -> int:
        return self.ph.shape[0]

    @property
    def _tile_bytes(self) -> int:
        return (CLOUD_BYTES + PAIR_BYTES + GROUP_BYTES) * self.sizes.vertices + WINDOW_BYTES

    @property
    def _tiling(self) -> ChunkTask:
        kwargs = {"spacing": self.costs["spacing"], "n_tiles": self.sizes.n_tiles}
        return ChunkTask("moraine_unwrap.tiling.kernels:tiling", inputs=[Chunk(self.gix)], kwargs=kwargs)

    def _found(self, size: int) -> list[Layout]:
        """Return the temporary arrays of cycles and islands, tile after tile."""
        shape = (self.sizes.n_tiles * size, len(self.pairs))
        return [Layout(f"{SCRATCH}{name}", shape, "int32", (size, 1)) for name in ("cycles", "island")]
