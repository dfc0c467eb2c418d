"""Union of two point clouds, with the data of both."""

from __future__ import annotations

from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from typing import Annotated, Any

from moraine_core import Array, Input, Output, Plan, UsageError, command
from moraine_points.layouts import check_lists
from moraine_points.picking import Picked, matched
from moraine_points.promotion import common_dtype
from moraine_points.roles import BlockOfFirst, CheckedShape, FirstIndex, SecondIndex, index_output


@command("pc-union", family="points", example="moraine_points.examples:pc_union")
def pc_union(
    idx1: FirstIndex,
    idx2: SecondIndex,
    idx: Annotated[str, index_output("index of the points of both")],
    pc1: Annotated[tuple[Array, ...] | None, Input("data of the first cloud", shape="(n_points1, ...)")] = None,
    pc2: Annotated[
        tuple[Array, ...] | None, Input("data of the second cloud, one for each pc1", shape="(n_points2, ...)")
    ] = None,
    pc: Annotated[
        tuple[str, ...] | None, Output("data of the points of both, one for each pc1", shape="(n_points, ...)")
    ] = None,
    shape: CheckedShape = None,
    chunks: BlockOfFirst = None,
) -> Generator[Plan, list[Any], None]:
    """Join two point clouds into one that has the points of both.

    Both are sorted, as pc-sort leaves them, and so is the result. A point of both appears once, with the data of the
    first cloud. Data of the two clouds must have the same axes after the points. Where their dtypes differ, the
    result has the smallest one that holds the values of both exactly; where there is none, as for int64 and
    float32, that is an error.

    The indices are held in memory, up to 32 bytes a point while they are compared and 4 afterwards. Data are read and
    written in blocks of points of one image.

    Examples
    --------
    moraine pc-union --idx1 ps_hix.zarr --idx2 ds_hix.zarr --idx hix.zarr --pc1 ps_ph.zarr --pc2 ds_ph.zarr --pc ph.zarr
    """
    first, second, outputs = pc1 or (), pc2 or (), pc or ()
    check_lists("pc-union", "pc1", first, "pc2", second)
    check_lists("pc-union", "pc1", first, "pc", outputs)
    arrays = [Picked.index(idx, idx1, idx2), *map(_joined, first, second, outputs)]
    return matched(
        "pc-union",
        "moraine_points.tasks:union_rows",
        {"idx1": idx1, "idx2": idx2},
        arrays,
        n_rows=idx1.shape[0] + idx2.shape[0],
        block=idx1.chunks[0] if chunks is None else chunks,
        shape=shape,
    )


def _joined(one: Array, two: Array, path: str) -> Picked:
    """Return the output that holds rows of two arrays, if there can be one."""
    names = f"pc1 {one.path}", f"pc2 {two.path}"
    if one.shape[1:] != two.shape[1:]:
        expected = ", ".join(map(str, ("n_points2", *one.shape[1:])))
        msg = f"pc-union: {names[1]} has shape {two.shape}; expected ({expected}), as {names[0]}"
        raise UsageError(msg)
    dtype = common_dtype(one.dtype, two.dtype)
    if dtype is None:
        msg = (
            f"pc-union: {names[1]} is {two.dtype}, {names[0]} is {one.dtype}; expected dtypes that fit into one exactly"
        )
        raise UsageError(msg)
    return Picked.data(path, one, two, dtype=dtype)
