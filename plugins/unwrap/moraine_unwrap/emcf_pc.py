"""Unwrapping of a network of interferograms in time and space: extended minimum cost flow (Pepe and Lanari, 2006)."""

from __future__ import annotations

import logging
from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from moraine_core import ALL, Array, Chunk, ChunkTask, Input, Layout, Plan, UsageError, blocks, command
from moraine_core.plan import SCRATCH
from moraine_unwrap.mcf_pc import mcf_pc
from moraine_unwrap.pairs import CLOUD_BYTES, PAIR_BYTES, column_of, images_of, noted, unwrapped_layouts
from moraine_unwrap.roles import (
    AzimuthSpacing,
    EarthCost,
    GridIndex,
    ImagePairs,
    Island,
    PhaseHistory,
    RangeSpacing,
    UnwrappedPhase,
    check_earth_cost,
    check_ref_point,
    checked_network,
    checked_spacing,
)
from moraine_unwrap.temporal.dates import length_costs, read_dates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moraine_raster.networks import TempNet

NAME = "emcf-pc"

log = logging.getLogger("moraine")

MOST_EDGES = 3
"""Edges per point that a triangulation has at most."""

BLOCK = 2**14
"""Points whose edges a task in time works on, unless the cycles of their pairs take more than `BLOCK_BYTES`."""

BLOCK_BYTES = 2**26
"""Cycles that a task in time works on, in bytes."""


@command(NAME, family="unwrap", example="moraine_unwrap.examples:emcf_pc")
def emcf_pc(
    gix: GridIndex,
    ph: PhaseHistory,
    unw_ph: UnwrappedPhase,
    image_pairs: ImagePairs,
    range_pixel_spacing: RangeSpacing,
    azimuth_pixel_spacing: AzimuthSpacing,
    temporal_cost: Annotated[
        Literal["constant", "length"], "what a cycle of a pair costs in time; length needs dates"
    ] = "constant",
    dates: Annotated[str | None, Input("TOML file with dates, one for each image, YYYYMMDD", kind="file")] = None,
    spatial_cost: Annotated[
        Literal["statistical", "length", "constant"], "what a cycle on an edge costs in space"
    ] = "statistical",
    weight: Annotated[
        Array | None,
        Input("quality of the points, 0 to 1", shape="(n_points)", dtype="float", unit="unitless"),
    ] = None,
    earth_cost: EarthCost = 1,
    ref_point: Annotated[int, "point whose phase stays the difference of its images, from 0 (unitless)"] = 0,
    island: Island = None,
    out_chunks: Annotated[int | None, "points in a chunk of the outputs; those of ph by default (points)"] = None,
) -> Generator[Plan, list[Any], None]:
    r"""Unwrap the interferograms of a point cloud together, in time and in space.

    Points are linked by a triangulation. Along each edge every pair has a phase difference, known up to whole cycles.
    In time, edge by edge: where the differences of pairs that form a loop do not add up to 0, as few cycles as possible
    are added so that they do. In space, pair by pair: the corrected differences are made free of contradictions around
    all triangles at the least cost, and summed. Errors of single pairs that mcf-pc cannot see are so avoided; any
    network of pairs will do, such as each image with the next three. A last step, unwrap-correct-closure-pc, makes the
    loops of every point close.

    In time, a cycle costs 1; with temporal-cost length round(4 median(span) / span), from 1 to 20, so that rather the
    pairs of long spans are changed. dates is a TOML file with dates = ["YYYYMMDD", ...], such as meta.toml.

    In space, a cycle costs 1 (constant) or 1 + round(99 a w) with a = min(median length / length, 1), length being that
    of the edge, and w the smaller weight of its ends (length; constant has a = 1, and weight 1 if none is given).
    statistical asks two witnesses: the cycles found in time, each cycle off which costs 50, and the local statistics of
    the phase with the costs that mcf-pc has (100 for a cycle where the noise is 1 rad). The cheapest cycles are the
    start, and costs are those of leaving it, multiplied by a w / (1 + n), with n the number of pairs that were
    corrected on the edge: so edges are cheap where the two disagree, and where many loops do not close. Before that,
    in time, the cycles of a difference are those nearest to the local slope of the phase; else those that wrap it.

    Result: the phase of ref conj(sec) plus whole cycles. At ref-point it is the phase of ref less that of sec, not
    wrapped, so that all loops close there; if that point is missing, the first that is not is taken instead.

    A sample that is nan or 0 is missing: pairs with it are nan at that point and say nothing in time. Missing points
    may part others into islands, between which the cycles are not known: each then has a reference of its own, a
    warning names the pairs, and island numbers them. Points at one place are within half a cycle of each other. The
    attributes of unw_ph hold costs, n_islands and n_valid of each pair.

    Memory: in space as mcf-pc without tiles, for each pair that is unwrapped at a time; in time a fixed amount, however
    large the cloud. Temporary arrays take up to 6 bytes per point and pair on the disk, before compression.

    If the pairs form no loop, there is nothing to correct in time: there is a warning, and the result is that of
    mcf-pc.

    References: Pepe and Lanari (2006), IEEE TGRS 44(9); Costantini and Rosen (1999), IGARSS.

    Examples
    --------
    moraine emcf-pc --gix gix.zarr --ph ph.zarr --unw-ph unw.zarr --image-pairs pairs.txt --range-pixel-spacing 2.33 \
      --azimuth-pixel-spacing 13.95
    """
    spacing = checked_spacing(NAME, range_pixel_spacing, azimuth_pixel_spacing)
    network = checked_network(NAME, image_pairs, ph)
    n_points = ph.shape[0]
    check_ref_point(NAME, ref_point, n_points)
    check_earth_cost(NAME, earth_cost)
    if out_chunks is not None and out_chunks < 1:
        raise UsageError(f"{NAME}: out_chunks is {out_chunks}; expected at least 1 (points)")
    time_costs = _time_costs(temporal_cost, dates, ph, network)
    has_loops = len(network.pairs) - network.nimages + len(set(network.components())) > 0
    if not has_loops:
        log.warning("%s: the pairs of image_pairs form no loop, so each is unwrapped by itself as by mcf-pc", NAME)
    if not (has_loops and n_points):
        yield from mcf_pc.function(
            gix,
            ph,
            unw_ph,
            image_pairs,
            range_pixel_spacing,
            azimuth_pixel_spacing,
            spatial_cost=spatial_cost,
            weight=weight,
            earth_cost=earth_cost,
            ref_point=ref_point,
            island=island,
            out_chunks=out_chunks,
        )
        return
    gradients = _gradients(ph, network, gix, spacing, spatial_cost)
    yield gradients
    in_time = _in_time(gradients.outputs[0], network, time_costs)
    n_corrected = sum((yield in_time))
    log.info("%s: loops of pairs did not close on %d edges and were corrected", NAME, n_corrected)
    block = out_chunks or ph.chunks[0]
    layouts = unwrapped_layouts(unw_ph, island, n_points, network.pairs, block)
    facts = yield _in_space(
        layouts,
        gix=gix,
        ph=ph,
        weight=weight,
        corrections=in_time.outputs,
        network=network,
        of_cloud={"spacing": spacing, "spatial_cost": spatial_cost},
        of_pair={"earth_cost": earth_cost, "ref_point": ref_point, "with_island": island is not None},
    )
    yield Plan([], [], attributes={unw_ph: noted(NAME, network.pairs, facts, n_points, with_island=island is not None)})


def _gradients(ph: Array, network: TempNet, gix: Array, spacing: tuple[float, float], spatial_cost: str) -> Plan:
    """Find the cycles of all gradients by themselves, one pair per task."""
    n_points, n_pairs = ph.shape[0], len(network.pairs)
    n_rows = MOST_EDGES * n_points
    block = MOST_EDGES * max(min(n_points, BLOCK, BLOCK_BYTES // (MOST_EDGES * n_pairs)), 1)
    cycles = Layout(f"{SCRATCH}wrapped", (n_rows, n_pairs), "int8", (block, 1))
    net = ChunkTask(
        "moraine_unwrap.flow.tasks:shared_network",
        inputs=[Chunk(gix)],
        kwargs={"spacing": spacing, "name": f"{NAME}: gix {gix.path}"},
    )
    return Plan(
        [cycles],
        [
            ChunkTask(
                "moraine_unwrap.temporal.tasks:gradient_cycles",
                inputs=images_of(ph, pair),
                outputs=[column_of(cycles, k)],
                kwargs={"spatial_cost": spatial_cost, "n_rows": n_rows},
                scratch_bytes=(CLOUD_BYTES + PAIR_BYTES) * n_points,
            )
            for k, pair in enumerate(network.pairs)
        ],
        shared={"net": net},
        desc=f"{NAME} gradients",
    )


def _in_time(gradients: Layout, network: TempNet, costs: tuple[int, ...] | None) -> Plan:
    """Make all loops of pairs close, one block of edges per task."""
    n_rows, block = gradients.shape[0], gradients.chunks[0]
    cycles = replace(gradients, path=f"{SCRATCH}cycles")
    counts = Layout(f"{SCRATCH}counts", (n_rows,), "uint16", (block,))
    graph = ChunkTask(
        "moraine_unwrap.pair_fit.kernels:pair_graph",
        kwargs={"image_pairs": network.pairs, "nimages": network.nimages},
    )
    return Plan(
        [cycles, counts],
        [
            ChunkTask(
                "moraine_unwrap.temporal.tasks:close_loops",
                inputs=[Chunk(gradients, (edges, ALL))],
                outputs=[Chunk(cycles, (edges, ALL)), Chunk(counts, (edges,))],
                kwargs={"costs": costs, "first_edge": edges.start},
            )
            for (edges,) in blocks(counts.shape, counts.chunks)
        ],
        shared={"graph": graph},
        desc=f"{NAME} in time",
    )


def _in_space(
    layouts: Sequence[Layout],
    *,
    gix: Array,
    ph: Array,
    weight: Array | None,
    corrections: Sequence[Layout],
    network: TempNet,
    of_cloud: Mapping[str, Any],
    of_pair: Mapping[str, Any],
) -> Plan:
    """Unwrap each pair from its corrected gradients."""
    cycles, counts = corrections
    given = {"gix": gix} if weight is None else {"gix": gix, "weight": weight}
    cloud = ChunkTask(
        "moraine_unwrap.temporal.tasks:shared_cloud",
        inputs=[Chunk(counts), *map(Chunk, given.values())],
        kwargs={**of_cloud, "names": tuple(f"{name} {array.path}" for name, array in given.items())},
    )
    return Plan(
        layouts,
        [
            ChunkTask(
                "moraine_unwrap.temporal.tasks:unwrap_pair",
                inputs=[*images_of(ph, pair), column_of(cycles, k)],
                outputs=[column_of(layout, k) for layout in layouts],
                kwargs=of_pair,
                scratch_bytes=(CLOUD_BYTES + PAIR_BYTES) * ph.shape[0],
            )
            for k, pair in enumerate(network.pairs)
        ],
        shared={"cloud": cloud},
        desc=f"{NAME} in space",
        keep_going=True,
    )


def _time_costs(temporal_cost: str, dates: str | None, ph: Array, network: TempNet) -> tuple[int, ...] | None:
    """Return the temporal cost of every pair; None where all are 1.

    Raises
    ------
    UsageError
        Dates are missing, or given in vain, or are not one for each image.
    """
    if temporal_cost == "constant":
        if dates is not None:
            raise UsageError(f"{NAME}: dates is given with temporal_cost constant; it counts in length alone")
        return None
    if dates is None:
        raise UsageError(f"{NAME}: temporal_cost is length, which needs dates; none is given")
    found = read_dates(dates)
    if len(found) != network.nimages:
        raise UsageError(
            f"{NAME}: dates {dates} has {len(found)} dates; expected {network.nimages}, one for each image of "
            f"ph {ph.path}"
        )
    return length_costs(found, network.pairs)
