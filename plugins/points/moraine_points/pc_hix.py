"""Hilbert index of points: their order along a curve that keeps neighbors in the plane close in memory."""

from __future__ import annotations

from typing import Annotated

from moraine_core import ALL, Array, Blocks1D, Chunk, ChunkTask, Input, Layout, Output, Plan, blocks, command
from moraine_points.layouts import check_shape


@command("pc-hix", family="points", example="moraine_points.examples:pc_hix")
def pc_hix(
    gix: Annotated[
        Array, Input("grid index (azimuth, range) of the points", shape="(n_points, 2)", dtype="integer", unit="pixels")
    ],
    hix: Annotated[str, Output("Hilbert index of the same points", shape="(n_points)", dtype="int64", unit="unitless")],
    shape: Annotated[tuple[int, int], "lines and width of the raster (pixels)"],
    chunks: Annotated[Blocks1D | None, "points a task works on; the block of gix by default (points)"] = None,
) -> Plan:
    """Compute the Hilbert index of points from their grid index.

    The points stay in their order, so the result ascends only if they were sorted along the curve before. An index has
    a meaning only together with the raster shape it was made for. A point outside the raster is an error that names
    its row.

    Formula: J. Skilling, "Programming the Hilbert curve", AIP Conf. Proc. 707 (2004), azimuth as the first axis.

    Examples
    --------
    moraine pc-hix --gix ps_gix.zarr --hix ps_hix.zarr --shape 2500 1834
    """
    check_shape("pc-hix", shape)
    block = gix.chunks[0] if chunks is None else chunks
    out = Layout(hix, shape=gix.shape[:1], dtype="int64", chunks=(block,))
    return Plan(
        [out],
        [
            ChunkTask(
                "moraine_points.kernels:pc_hix",
                inputs=[Chunk(gix, (points, ALL))],
                outputs=[Chunk(out, (points,))],
                kwargs={"shape": shape, "name": f"pc-hix: gix {gix.path}", "first_row": points.start},
                scratch_bytes=16 * (points.stop - points.start),  # a gix that is not int32 is taken as int64
            )
            for (points,) in blocks(out.shape, out.chunks)
        ],
    )
