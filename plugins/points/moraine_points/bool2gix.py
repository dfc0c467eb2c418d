"""Grid index of the points of a mask."""

from __future__ import annotations

from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from typing import Annotated, Any

from moraine_core import Array, Input, Output, Plan, command
from moraine_points.conditions import chosen


@command("bool2gix", family="points", example="moraine_points.examples:bool2gix")
def bool2gix(
    is_pc: Annotated[
        Array,
        Input("mask, true at points", shape="(nlines, width)", dtype=("bool", "integer", "float"), unit="unitless"),
    ],
    gix: Annotated[
        str,
        Output("grid index (azimuth, range) of the points", shape="(n_points, 2)", dtype="int32", unit="pixels"),
    ],
    chunks: Annotated[int, "points in a chunk of gix (points)"] = 100_000,
) -> Generator[Plan, list[Any], None]:
    """List the pixels where a mask is true.

    The points come in the order of the raster, row by row. In a mask of numbers every value but 0 is true; a missing
    value (nan) is no point. Where nothing is true the gix is empty, of shape (0, 2).

    The mask is read twice, or three times where most of it is true, in bands of whole chunks: once to count, then to
    write.

    Examples
    --------
    moraine bool2gix --is-pc is_ps.zarr --gix ps_gix.zarr
    """
    # false at nan, as != would not be
    operation = "is_pc" if is_pc.dtype == "bool" else "(is_pc < 0) | (is_pc > 0)"
    return chosen("bool2gix", is_pc, "is_pc", operation, None, gix, chunks)
