"""Unwrapping of point clouds by GAMMA's program mcf_pt, one interferogram after another."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from typing import Annotated, Any

from moraine_core import ALL, Array, Chunk, ChunkTask, Input, MoraineError, Plan, RawLayout, UsageError, command
from moraine_unwrap.pairs import column_of, images_of, unwrapped_layouts
from moraine_unwrap.roles import (
    ImagePairs,
    PhaseHistory,
    RefPoint,
    UnwrappedPhase,
    check_ref_point,
    checked_network,
)

NAME = "gamma-mcf-pt"

CHECKED_BYTES = 64
"""Bytes per point of the check of coordinates: rounded and sorted."""

PAIR_BYTES = 96
"""Bytes per point of a pair: phases, what is written, what is read."""

log = logging.getLogger("moraine")


@command(NAME, family="unwrap", example="moraine_unwrap.examples:gamma_mcf_pt")
def gamma_mcf_pt(
    pc_x: Annotated[
        Array,
        Input("coordinate of the points in range", shape="(n_points)", dtype=("float", "integer"), unit="pixels or m"),
    ],
    pc_y: Annotated[
        Array,
        Input("coordinate of the points in azimuth", shape="(n_points)", dtype=("float", "integer"), unit="as pc_x"),
    ],
    ph: PhaseHistory,
    unw_ph: UnwrappedPhase,
    image_pairs: ImagePairs,
    weight: Annotated[
        Array | None,
        Input("weight of the points, 0 to 1; all alike by default", shape="(n_points)", dtype="float", unit="unitless"),
    ] = None,
    ref_point: RefPoint = 0,
    skip_failed: Annotated[bool, "let a pair that mcf_pt cannot unwrap be nan instead of an error"] = False,  # noqa: FBT002
    program: Annotated[str, "name or path of GAMMA's program"] = "mcf_pt",
    out_chunks: Annotated[int | None, "points in a chunk of the output; those of ph by default (points)"] = None,
) -> Generator[Plan, list[Any], None]:
    """Unwrap the interferograms of a point cloud by GAMMA's program mcf_pt.

    The program has to be licensed and installed; mcf-pc does the same without it. Each pair is a call of its own, and
    its files are gone when it is done: plist (coordinates), pint (phases) and pwgt (weights), big-endian.

    The program's lists hold whole numbers. Coordinates are rounded, and points that fall together are an error: scale
    coordinates that are fractions. Distances decide nothing else, so they can be in pixels or in meters, but in the
    same unit on both axes.

    The result is the wrapped phase of ref conj(sec) plus the whole cycles that mcf_pt found, less those of ref_point.
    A point that is missing in one of the images of a pair is not given to the program and is nan; where that is
    ref_point, the first other point keeps its wrapped phase. A point that mcf_pt leaves out, as some versions do with
    single ones, is nan, too; a warning and the attribute n_lost tell how many.

    The program's exit code and the size of its result are checked. If a pair fails, what the program said is kept in
    UNW_PH.mcf_pt-REF-SEC.log, the other pairs are done, and the same call tries only this one again. With skip_failed
    it is nan instead, and named in a warning and in the attribute failed_pairs.

    Examples
    --------
    moraine gamma-mcf-pt --pc-x x.zarr --pc-y y.zarr --ph ph.zarr --image-pairs pairs.txt --unw-ph unw.zarr
    """
    pairs = checked_network(NAME, image_pairs, ph).pairs
    n_points = ph.shape[0]
    check_ref_point(NAME, ref_point, n_points)
    if out_chunks is not None and out_chunks < 1:
        raise UsageError(f"{NAME}: out_chunks is {out_chunks}; expected at least 1 (points)")
    found = shutil.which(program)
    if found is None:
        raise UsageError(
            f"{NAME}: program {program} not found; expected mcf_pt of GAMMA on the PATH, or its path. The command "
            "mcf-pc needs no GAMMA"
        )
    # a raw file, as it lies among the temporary files where the pairs' own are put
    points = RawLayout("scratch:points", (n_points, 2), "int32", (-1, -1))
    weights = None if weight is None else Chunk(weight)
    inputs = [("pc_x", pc_x), ("pc_y", pc_y), ("weight", weight)]
    yield Plan(
        [points],
        [
            ChunkTask(
                "moraine_unwrap.gamma.tasks:point_list",
                inputs=[Chunk(pc_x), Chunk(pc_y), weights],
                outputs=[Chunk(points, (ALL, ALL))],
                kwargs={"names": [f"{NAME}: {name} {array.path}" if array else "" for name, array in inputs]},
                scratch_bytes=CHECKED_BYTES * n_points,
            )
        ]
        if n_points
        else [],
        desc=f"{NAME} points",
    )
    (out,) = unwrapped_layouts(unw_ph, None, n_points, pairs, out_chunks or ph.chunks[0])
    reports = yield Plan(
        [out],
        [
            ChunkTask(
                "moraine_unwrap.gamma.tasks:unwrap_pair",
                inputs=[Chunk(points), *images_of(ph, pair), weights],
                outputs=[column_of(out, number)],
                kwargs={
                    "pair": pair,
                    "program": os.path.abspath(found),
                    "ref_point": ref_point,
                    "place": Chunk(points),
                    "log_file": f"{os.path.abspath(unw_ph)}.mcf_pt-{pair[0]}-{pair[1]}.log",
                    "skip_failed": skip_failed,
                },
                scratch_bytes=PAIR_BYTES * n_points,
            )
            for number, pair in enumerate(pairs)
            if n_points
        ],
        keep_going=True,
    )
    failed = [pair for pair, report in zip(pairs, reports, strict=False) if report["error"]]
    if failed and len(failed) == len(pairs):
        # the journal holds that these tasks are done
        raise MoraineError(f"{NAME}: no pair could be unwrapped; try again with --fresh. {reports[0]['error']}")
    for report in reports:
        if report["error"]:
            log.warning("%s: nan in unw_ph: %s", NAME, report["error"])
    lost = [report["n_lost"] for report in reports]
    if any(lost):
        worst = pairs[lost.index(max(lost))]
        log.warning("%s: mcf_pt left out %d values, most in pair %d %d; they are nan", NAME, sum(lost), *worst)
    yield Plan([], [], attributes={unw_ph: {"failed_pairs": [list(pair) for pair in failed], "n_lost": lost}})
