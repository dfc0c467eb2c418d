"""The plans of the correction by closure: points, then pairs of regions, then points again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moraine_core import ALL, Array, Chunk, ChunkTask, Layout, Plan, blocks
from moraine_core.plan import SCRATCH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moraine_raster.networks import TempNet

COLUMN_BYTES = 2**26
"""Corrections that one task on pairs reads, in bytes, unless a single pair has more."""

REGION_BYTES = 300
"""Bytes of a point while regions are looked for: its triangles and their edges."""

PHASES_BYTES = 2**22
"""Bytes of the phases that are computed at a time."""

ORDER_BYTES = 8
"""Bytes of a point in the order of regions."""

SERIES_SIGN = "more is toward the satellite"
"""What the sign of a time series of the phase means (docs/data-conventions.md)."""


@dataclass(frozen=True)
class Correction:
    """What is corrected, in blocks of points, and the arrays that pass from plan to plan.

    Attributes
    ----------
    command
        Name of the command.
    gix, ph, unw_ph
        Its inputs.
    network
        Network of the pairs.
    block
        Points of a block.
    region
        Path of the regions; None for a temporary array.
    """

    command: str
    gix: Array
    ph: Array
    unw_ph: Array
    network: TempNet
    block: int
    region: str | None

    def loops(
        self, misclosure_fraction: str | None, spacing: tuple[float, float], max_edge_factor: float, min_points: int
    ) -> Plan:
        """Return the first plan: points by themselves, and regions, whose number is the result of its first task."""
        outputs = [self._offsets, self._cycles]
        if misclosure_fraction is not None:
            outputs.append(Layout(misclosure_fraction, self.ph.shape[:1], "float32", (self.block,)))
        regions = ChunkTask(
            "moraine_unwrap.closure.tasks:label_regions",
            inputs=[Chunk(self.gix)],
            outputs=[Chunk(self._regions)],
            kwargs={
                "spacing": spacing,
                "max_edge_factor": max_edge_factor,
                "min_region_points": min_points,
                "name": f"{self.command}: gix {self.gix.path}",
            },
            scratch_bytes=REGION_BYTES * self.ph.shape[0],
        )
        by_point = [
            ChunkTask(
                "moraine_unwrap.closure.tasks:correct_loops",
                inputs=[_rows(self.ph, points), _rows(self.unw_ph, points)],
                outputs=[_rows(layout, points) for layout in outputs],
                kwargs={"with_fraction": len(outputs) > 2, "first_point": points.start, "name": self._name},
                scratch_bytes=PHASES_BYTES,
            )
            for points in self._points
        ]
        return Plan(
            [self._regions, *outputs],
            [regions, *by_point] if by_point else [],
            shared={"graph": self._graph},
            desc=f"{self.command} loops",
        )

    def medians(self, n_regions: int) -> Plan:
        """Return the second plan: the corrections of regions, pair by pair."""
        regions = ChunkTask(
            "moraine_unwrap.closure.kernels:by_region",
            inputs=[Chunk(self._regions)],
            scratch_bytes=ORDER_BYTES * self.ph.shape[0],
        )
        layout = self._medians(n_regions)
        return Plan(
            [layout],
            [
                ChunkTask(
                    "moraine_unwrap.closure.tasks:median_offsets",
                    inputs=[Chunk(self._offsets, (ALL, pairs))],
                    outputs=[Chunk(layout, (ALL, pairs))],
                )
                for (pairs,) in blocks(layout.shape[1:], layout.chunks[1:])
                if n_regions
            ],
            shared={"regions": regions} if n_regions else {},
            desc=f"{self.command} regions",
        )

    def series(self, n_regions: int, paths: Mapping[str, str | None], ref: int) -> Plan:
        """Return the last plan: points again, and those of its results that have a path."""
        layouts = {
            "ts": Layout(
                paths["ts"] or "", self.ph.shape, "float32", (self.block, 1), attributes={"sign": SERIES_SIGN}
            ),
            "change_fraction": Layout(paths["change_fraction"] or "", self.ph.shape[:1], "float32", (self.block,)),
            "correction": Layout(paths["correction"] or "", self.unw_ph.shape, "int16", (self.block, 1)),
        }
        outputs = {name: layout for name, layout in layouts.items() if layout.path}
        medians = ChunkTask("moraine_unwrap.closure.tasks:as_stored", inputs=[Chunk(self._medians(n_regions))])
        return Plan(
            list(outputs.values()),
            [
                ChunkTask(
                    "moraine_unwrap.closure.tasks:correct_regions",
                    inputs=[_rows(source, points) for source in (self.ph, self._offsets, self._cycles, self._regions)],
                    outputs=[_rows(layout, points) for layout in outputs.values()],
                    kwargs={"results": tuple(outputs), "ref": ref, "first_point": points.start, "name": self._name},
                    scratch_bytes=PHASES_BYTES,
                )
                for points in self._points
            ],
            shared={"graph": self._graph, "region_offsets": medians} if self.ph.shape[0] else {},
            desc=f"{self.command} points",
        )

    @property
    def _points(self) -> list[slice]:
        return [points for (points,) in blocks(self.ph.shape[:1], (self.block,))]

    @property
    def _name(self) -> str:
        return f"{self.command}: unw_ph {self.unw_ph.path}"

    @property
    def _graph(self) -> ChunkTask:
        kwargs = {"image_pairs": self.network.pairs, "nimages": self.network.nimages}
        return ChunkTask("moraine_unwrap.pair_fit.kernels:pair_graph", kwargs=kwargs)

    @property
    def _columns(self) -> int:
        """Pairs in a chunk of what is read pair by pair."""
        n_points, n_pairs = self.unw_ph.shape
        return min(max(COLUMN_BYTES // (2 * max(n_points, 1)), 1), n_pairs)

    @property
    def _offsets(self) -> Layout:
        return Layout(f"{SCRATCH}offsets", self.unw_ph.shape, "int16", (self.block, self._columns))

    @property
    def _cycles(self) -> Layout:
        return Layout(f"{SCRATCH}cycles", self.ph.shape, "int32", (self.block, -1))

    @property
    def _regions(self) -> Layout:
        return Layout(self.region or f"{SCRATCH}region", self.ph.shape[:1], "int32", (self.block,))

    def _medians(self, n_regions: int) -> Layout:
        return Layout(f"{SCRATCH}medians", (n_regions, self.unw_ph.shape[1]), "int16", (-1, self._columns))


def _rows(source: Array | Layout, points: slice) -> Chunk:
    """Return some points of an array, with all that they have."""
    return Chunk(source, (points, *(ALL,) * (len(source.shape) - 1)))
