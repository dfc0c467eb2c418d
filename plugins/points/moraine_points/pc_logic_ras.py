"""Points from a raster by a condition, such as all pixels with a small amplitude dispersion."""

from __future__ import annotations

from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from typing import Annotated, Any

from moraine_core import Array, Input, Output, Plan, command
from moraine_points.conditions import chosen


@command("pc-logic-ras", family="points", example="moraine_points.examples:pc_logic_ras")
def pc_logic_ras(
    ras: Annotated[Array, Input("raster to choose from", shape=("(nlines, width)", "(nlines, width, 1)"))],
    gix: Annotated[
        str,
        Output("grid index (azimuth, range) of the chosen pixels", shape="(n_points, 2)", dtype="int32", unit="pixels"),
    ],
    operation: Annotated[str, "condition on the array ras, such as '(ras >= 0) & (ras < 0.3)'"],
    chunks: Annotated[int, "points in a chunk of gix (points)"] = 100_000,
) -> Generator[Plan, list[Any], None]:
    """Choose the pixels of a raster where a condition holds.

    The points come in the order of the raster, row by row. Comparisons with nan are false, so a missing value is not
    chosen unless the condition asks for it (isnan). The result of the operation must be bool, or integers that are 0
    or 1. Where no pixel is chosen the gix is empty, of shape (0, 2).

    The raster is read twice, or three times where most of it is chosen, in bands of whole chunks: once to count,
    then to write.

    Examples
    --------
    moraine pc-logic-ras --ras adi.zarr --gix ps_gix.zarr --operation 'ras < 0.3'
    """
    return chosen("pc-logic-ras", ras, "ras", operation, None, gix, chunks)
