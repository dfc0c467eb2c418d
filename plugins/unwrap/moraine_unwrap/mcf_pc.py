"""Unwrapping of interferograms of points, each by itself, by minimum cost flow (after Costantini and Rosen, 1999)."""

from __future__ import annotations

import logging
from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, Literal

from moraine_core import Array, Blocks1D, Chunk, ChunkTask, Input, Plan, UsageError, command
from moraine_unwrap.pairs import CLOUD_BYTES, PAIR_BYTES, column_of, images_of, noted, unwrapped_layouts
from moraine_unwrap.roles import (
    AzimuthSpacing,
    EarthCost,
    GridIndex,
    ImagePairs,
    Island,
    PhaseHistory,
    RangeSpacing,
    RefPoint,
    UnwrappedPhase,
    check_earth_cost,
    check_ref_point,
    checked_network,
    checked_spacing,
)
from moraine_unwrap.tiling.plans import TiledCloud
from moraine_unwrap.tiling.sizes import tile_sizes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moraine_core import Layout

NAME = "mcf-pc"

log = logging.getLogger("moraine")

LOADED_BYTES = 200 * 2**20
"""Bytes that the first tasks load and that stay: compiled loops and their library."""


@command(NAME, family="unwrap", example="moraine_unwrap.examples:mcf_pc")
def mcf_pc(
    gix: GridIndex,
    ph: PhaseHistory,
    unw_ph: UnwrappedPhase,
    image_pairs: ImagePairs,
    range_pixel_spacing: RangeSpacing,
    azimuth_pixel_spacing: AzimuthSpacing,
    spatial_cost: Annotated[
        Literal["statistical", "length", "constant"], "what a cycle on an edge costs"
    ] = "statistical",
    weight: Annotated[
        Array | None,
        Input("quality of the points, 0 to 1", shape="(n_points)", dtype="float", unit="unitless"),
    ] = None,
    variance: Annotated[
        Array | None,
        Input("variance of the phase noise of the points in a pair", shape="(n_points)", dtype="float", unit="rad^2"),
    ] = None,
    earth_cost: EarthCost = 1,
    ref_point: RefPoint = 0,
    island: Island = None,
    tile: Annotated[
        Blocks1D | None, "points that are unwrapped at a time; all by default, where memory allows (points)"
    ] = None,
    out_chunks: Annotated[int | None, "points in a chunk of the outputs; those of ph by default (points)"] = None,
) -> Generator[Plan, list[Any], None]:
    r"""Unwrap the interferograms of a point cloud, each by itself.

    The result is the wrapped phase of ref conj(sec) plus whole cycles, those that are the cheapest on the edges of a
    triangulation of all points. Each pair is solved exactly, and the solution is proven to be the cheapest.

    Costs: "statistical" ones come from the phase itself. Around each point the slope of the phase and the variance of
    its noise are estimated, and a cycle costs what it takes from the likelihood. So differences of more than half a
    cycle are right where the neighborhood shows them, and cycles are cheap where noise is strong. Where variance is
    given, it counts besides. With "constant" all edges cost the same, with "length" long ones cost less. A weight makes
    cycles cheap at points of low quality with any of the three; nan is 0. A variance that is nan is not known.

    A sample that is nan or 0 in one of both images is missing: the point is nan in this pair, and its island -1. Where
    missing points part the others, these are in several islands whose cycles nothing relates: ref_point keeps its
    wrapped phase in its own island, one point in every other. There is a warning then. If ref_point is missing, the
    first other point keeps its phase. Where more than a tenth of the points is missing, the others are triangulated
    anew, and edges up to four times as long as those of the cloud relate points, too.

    Points may be in any order; those at the same place are no more than half a cycle apart. The attributes of unw_ph
    say of each pair how many islands and valid points there are, and costs, the sum that was paid.

    Memory grows with the points, about 550 bytes of each. With tile, or where that does not fit, the cloud is cut into
    tiles with halos of about 20 points, which takes 250 bytes. Tiles are joined by the cycles of what they share; the
    result is the same but for hardly any points, unless long lines of discontinuity or gaps in the cloud cross tiles.

    References: Costantini (1998), IEEE TGRS 36(3); Costantini and Rosen (1999), IGARSS; Chen and Zebker (2001), JOSA A
    18(2), on statistical costs.

    Examples
    --------
    moraine mcf-pc --gix gix.zarr --ph ph.zarr --unw-ph unw.zarr --image-pairs pairs.txt --range-pixel-spacing 2.33 \
      --azimuth-pixel-spacing 13.95
    """
    spacing = checked_spacing(NAME, range_pixel_spacing, azimuth_pixel_spacing)
    pairs = checked_network(NAME, image_pairs, ph).pairs
    n_points = ph.shape[0]
    check_ref_point(NAME, ref_point, n_points)
    check_earth_cost(NAME, earth_cost)
    if variance is not None and spatial_cost != "statistical":
        raise UsageError(f"{NAME}: variance is given with spatial_cost {spatial_cost}; it counts in statistical alone")
    for name, value in (("tile", tile), ("out_chunks", out_chunks)):
        if value is not None and value < 1 and value != -1:
            raise UsageError(f"{NAME}: {name} is {value}; expected at least 1, or -1 for all (points)")
    block = out_chunks or ph.chunks[0]
    layouts = unwrapped_layouts(unw_ph, island, n_points, pairs, block)
    qualities = {"weight": weight, "variance": variance}
    given = {f"{name} {array.path}": array for name, array in qualities.items() if array is not None}
    costs = {"spacing": spacing, "spatial_cost": spatial_cost}
    last = {"ref_point": ref_point, "with_island": island is not None}
    tiles = None
    if tile is not None and 1 <= tile < n_points:
        tiles = TiledCloud(NAME, gix, ph, pairs, given, costs, tile_sizes(n_points, tile))
        tiles.check(tile)
    check = ChunkTask(
        "moraine_unwrap.qualities:problem_of_qualities",
        inputs=[Chunk(gix), *map(Chunk, given.values())],
        kwargs={"names": tuple(given)},
        # so the host finds at once whether all that follows fits, or smaller tiles
        scratch_bytes=LOADED_BYTES + (tiles.room_bytes if tiles else (CLOUD_BYTES + PAIR_BYTES) * n_points),
    )
    for problem in (yield Plan([], [check] if n_points else [], desc=f"{NAME} checks")):
        if problem:
            raise UsageError(f"{NAME}: {problem}")
    if tiles is None:
        facts = yield _whole(gix, ph, pairs, given, layouts, costs, {"earth_cost": earth_cost, **last})
    else:
        (size,) = yield tiles.measuring()
        log.info("%s: %d tiles of up to %d points with their halos", NAME, tiles.sizes.n_tiles, size)
        yield tiles.unwrapping(size, earth_cost)
        facts = yield tiles.joining(size, layouts, last)
    attributes = noted(NAME, pairs, facts, n_points, with_island=island is not None)
    if tiles is not None:
        del attributes["costs"]  # those of tiles overlap
    yield Plan([], [], attributes={unw_ph: attributes})


def _whole(
    gix: Array,
    ph: Array,
    pairs: Sequence[tuple[int, int]],
    qualities: Mapping[str, Array],
    layouts: Sequence[Layout],
    costs: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Plan:
    """Return the plan that unwraps the pairs on one network of all points."""
    n_points = ph.shape[0]
    cloud = ChunkTask(
        "moraine_unwrap.flow.tasks:shared_cloud",
        inputs=[Chunk(gix), *map(Chunk, qualities.values())],
        kwargs={**costs, "names": (f"gix {gix.path}", *qualities)},
    )
    tasks = [
        ChunkTask(
            "moraine_unwrap.flow.tasks:unwrap_pair",
            inputs=images_of(ph, pair),
            outputs=[column_of(layout, k) for layout in layouts],
            kwargs=options,
            scratch_bytes=PAIR_BYTES * n_points,
        )
        for k, pair in enumerate(pairs)
        if n_points
    ]
    return Plan(layouts, tasks, shared={"cloud": cloud} if n_points else {}, keep_going=True)
