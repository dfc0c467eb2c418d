"""Points of a cloud by a condition on their data, such as all with a high temporal coherence."""

from __future__ import annotations

from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from typing import Annotated, Any

from moraine_core import Array, Input, Plan, command
from moraine_points.conditions import chosen
from moraine_points.roles import index_input, index_output


@command("pc-logic-pc", family="points", example="moraine_points.examples:pc_logic_pc")
def pc_logic_pc(
    idx_in: Annotated[Array, index_input("gix or hix of the points, in any order")],
    pc_in: Annotated[Array, Input("data to choose by", shape=("(n_points)", "(n_points, 1)"))],
    idx: Annotated[str, index_output("index of the chosen points")],
    operation: Annotated[str, "condition on the array pc_in, such as '(pc_in > 0.7) & (pc_in <= 1)'"],
    chunks: Annotated[int | None, "points in a chunk of idx; the block of idx_in by default (points)"] = None,
) -> Generator[Plan, list[Any], None]:
    """Choose the points of a cloud at which a condition on their data holds.

    The points keep their order and their kind of index. Comparisons with nan are false, so a point whose value is
    missing is not chosen unless the condition asks for it (isnan). The result of the operation must be bool, or
    integers that are 0 or 1. Where no point is chosen the index is empty. pc-select-data brings other data of the
    cloud to the chosen points.

    The data are read twice, or three times where most points are chosen, in blocks of whole chunks: once to count,
    then to write.

    Examples
    --------
    moraine pc-logic-pc --idx-in ps_hix.zarr --pc-in t_coh.zarr --idx good_hix.zarr --operation 'pc_in > 0.7'
    """
    block = idx_in.chunks[0] if chunks is None else chunks
    return chosen("pc-logic-pc", pc_in, "pc_in", operation, idx_in, idx, block)
