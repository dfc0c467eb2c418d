"""Grid index of points: their pixels, from their places along the Hilbert curve."""

from __future__ import annotations

from typing import Annotated

from moraine_core import ALL, Array, Blocks1D, Chunk, ChunkTask, Input, Layout, Output, Plan, blocks, command
from moraine_points.layouts import check_shape


@command("pc-gix", family="points", example="moraine_points.examples:pc_gix")
def pc_gix(
    hix: Annotated[Array, Input("Hilbert index of the points", shape="(n_points)", dtype="integer", unit="unitless")],
    gix: Annotated[
        str,
        Output("grid index (azimuth, range) of the same points", shape="(n_points, 2)", dtype="int32", unit="pixels"),
    ],
    shape: Annotated[tuple[int, int], "lines and width of the raster that hix was made for (pixels)"],
    chunks: Annotated[Blocks1D | None, "points a task works on; the block of hix by default (points)"] = None,
) -> Plan:
    """Compute the grid index of points from their Hilbert index: the inverse of pc-hix.

    The points stay in their order. The shape must be the one that pc-hix was given: with another one the same numbers
    mean other pixels. An index that is negative or beyond the end of the curve, or whose pixel is outside the raster,
    is an error that names its row.

    Formula: J. Skilling, "Programming the Hilbert curve", AIP Conf. Proc. 707 (2004), azimuth as the first axis.

    Examples
    --------
    moraine pc-gix --hix ps_hix.zarr --gix ps_gix.zarr --shape 2500 1834
    """
    check_shape("pc-gix", shape)
    block = hix.chunks[0] if chunks is None else chunks
    out = Layout(gix, shape=(hix.shape[0], 2), dtype="int32", chunks=(block, 2))
    return Plan(
        [out],
        [
            ChunkTask(
                "moraine_points.kernels:pc_gix",
                inputs=[Chunk(hix, (points,))],
                outputs=[Chunk(out, (points, ALL))],
                kwargs={"shape": shape, "name": f"pc-gix: hix {hix.path}", "first_row": points.start},
                scratch_bytes=16 * (points.stop - points.start),  # a hix that is not int64, and what checks leave
            )
            for (points,) in blocks(hix.shape, out.chunks[:1])
        ],
    )
