"""Points of one cloud that another lacks, with their data."""

from __future__ import annotations

from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from typing import Annotated, Any

from moraine_core import Array, Input, Output, Plan, command
from moraine_points.layouts import check_lists
from moraine_points.picking import Picked, matched
from moraine_points.roles import BlockOfFirst, CheckedShape, FirstIndex, SecondIndex, index_output


@command("pc-diff", family="points", example="moraine_points.examples:pc_diff")
def pc_diff(
    idx1: FirstIndex,
    idx2: SecondIndex,
    idx: Annotated[str, index_output("index of the points of the first cloud that are not in the second")],
    pc1: Annotated[tuple[Array, ...] | None, Input("data of the first cloud", shape="(n_points1, ...)")] = None,
    pc: Annotated[
        tuple[str, ...] | None, Output("data of the points left, one for each pc1", shape="(n_points, ...)")
    ] = None,
    shape: CheckedShape = None,
    chunks: BlockOfFirst = None,
) -> Generator[Plan, list[Any], None]:
    """Take the points of one cloud that are not in another.

    Both are sorted, as pc-sort leaves them, and so is the result, which may be empty. Dtypes of data are kept.

    The indices are held in memory, up to 32 bytes a point while they are compared and 4 afterwards. Data are read and
    written in blocks of points of one image.

    Examples
    --------
    moraine pc-diff --idx1 ds_hix.zarr --idx2 ps_hix.zarr --idx hix.zarr --pc1 ds_ph.zarr --pc ph.zarr
    """
    data, outputs = pc1 or (), pc or ()
    check_lists("pc-diff", "pc1", data, "pc", outputs)
    arrays = [
        Picked.index(idx, idx1),
        *(Picked.data(path, array) for array, path in zip(data, outputs, strict=True)),
    ]
    return matched(
        "pc-diff",
        "moraine_points.tasks:diff_rows",
        {"idx1": idx1, "idx2": idx2},
        arrays,
        n_rows=idx1.shape[0],
        block=idx1.chunks[0] if chunks is None else chunks,
        shape=shape,
    )
