"""Learned filter of interferograms on point clouds (after Lehtinen et al., 2018, and Qi et al., 2017)."""

from __future__ import annotations

from typing import Annotated

from moraine_core import (
    Array,
    Blocks1D,
    Chunk,
    ChunkTask,
    Device,
    Input,
    Layout,
    Output,
    Pairs,
    Plan,
    UsageError,
    blocks,
    command,
)
from moraine_filter import weights
from moraine_filter.points import limits
from moraine_raster.networks import PAIR_SIGN, network_of, pairs_note


@command("n2ft", family="filter", gpu=True, example="moraine_filter.examples:n2ft", tolerance=1e-3)
def n2ft(
    x: Annotated[
        Array, Input("first coordinate of the points, such as e", shape="(n_points)", dtype="float", unit="m")
    ],
    y: Annotated[
        Array, Input("second coordinate of the points, such as n", shape="(n_points)", dtype="float", unit="m")
    ],
    rslc: Annotated[
        Array, Input("SLC stack or phase history of the points", shape="(n_points, nimages)", dtype="complex64")
    ],
    intf: Annotated[
        str,
        Output(
            "filtered interferograms, phasors of modulus 1",
            shape="(n_points, n_pairs)",
            dtype="complex64",
            unit="unitless",
        ),
    ],
    image_pairs: Annotated[Pairs | None, "image pairs, a file or a list; all by default"] = None,
    trust: Annotated[
        str | None,
        Output(
            "how far a phasor can be trusted, 0 to 1", shape="(n_points, n_pairs)", dtype="float32", unit="unitless"
        ),
    ] = None,
    model: Annotated[str | None, "file of weights of n2ft; those that come with moraine by default"] = None,
    chunks: Annotated[Blocks1D, "points that are filtered together; results do not depend on it (points)"] = (
        limits.AT_ONCE
    ),
    out_chunks: Annotated[int | None, "points in a chunk of the outputs; those of rslc by default (points)"] = None,
) -> Plan:
    """Remove noise from interferograms on irregular points, with a network that has learned it.

    The network weighs some hundred points around each one by how they lie and by what it takes their noise and the
    slope of the phase to be. A constant added to the phase is added to the result, exactly; where the cloud lies and in
    which unit does not matter. Neighborhoods are those of the whole cloud, whatever the chunks.

    Give coordinates in which distances are true in all directions: easting and northing, such as e and n of
    load-gamma-lat-lon-hgt, or pixels times their spacing. Longitude and latitude are not: away from the equator they
    shrink one axis, and neighbors are then looked for in a stretched window. Points in Hilbert order (pc-sort by a hix)
    make fast tasks; any order gives the same results.

    A sample that is nan, infinite or of amplitude below 1e-30 in either image is missing: it is nan in the result, and
    does not count for its neighbors. So is a point of which a coordinate is not finite. Only ratios of amplitudes of
    neighbors matter, so a phase history will do, with a little more noise left.

    The weights are trained on simulated interferograms (tools/train_n2ft.py). The trust is the modulus of what the
    network gives, which squared error drives to the expected cosine of its phase error.

    Examples
    --------
    moraine n2ft --x pc_e.zarr --y pc_n.zarr --rslc pc_rslc.zarr --image-pairs pairs.txt --intf pc_intf.zarr
    """
    n_points, nimages = rslc.shape
    pairs = network_of("n2ft", image_pairs, "rslc", rslc).pairs
    path, checksum = weights.chosen("n2ft", model)
    block = rslc.chunks[0] if out_chunks is None else out_chunks
    at_once = max(n_points, 1) if chunks == -1 else chunks
    if at_once < 1:
        raise UsageError(f"n2ft: chunks is {chunks}; expected at least 1, or -1 for all points")
    shape = (n_points, len(pairs))
    noted = {"unit": "unitless", "model_sha256": checksum, **pairs_note(pairs)}
    layouts = [Layout(intf, shape, "complex64", (block, 1), attributes={**noted, "sign": PAIR_SIGN})]
    if trust is not None:
        layouts.append(Layout(trust, shape, "float32", (block, 1), attributes=noted))
    count = -(-len(pairs) * min(layouts[0].chunks[0], n_points) * 12 // limits.RESULTS) or 1
    groups = [slice(len(pairs) * k // count, len(pairs) * (k + 1) // count) for k in range(count)]
    tasks = [
        ChunkTask(
            "moraine_filter.points.tasks:filter_block",
            inputs=[Device((points.start, points.stop))],
            outputs=[Chunk(layout, (points, group)) for layout in layouts],
            kwargs={
                "rslc": Chunk(rslc),
                "columns": (group.start, group.stop),
                "at_once": at_once,
                "model": path,
                "with_trust": trust is not None,
            },
            scratch_bytes=limits.task_bytes(
                n_points, points.stop - points.start, at_once, min(nimages, 2 * (group.stop - group.start)), rslc.chunks
            ),
        )
        for (points,) in blocks((n_points,), layouts[0].chunks[:1])
        for group in groups
        if group.stop > group.start
    ]
    cloud = ChunkTask(
        "moraine_filter.points.tasks:cloud", inputs=[Chunk(x), Chunk(y)], scratch_bytes=limits.CLOUD_BYTES * n_points
    )
    return Plan(layouts, tasks, shared={"cloud": cloud, "image_pairs": pairs})
