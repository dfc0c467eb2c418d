"""Points that two clouds share, with their data."""

from __future__ import annotations

from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from typing import Annotated, Any

from moraine_core import Array, Input, Output, Plan, command
from moraine_points.layouts import check_lists
from moraine_points.picking import Picked, matched
from moraine_points.roles import BlockOfFirst, CheckedShape, FirstIndex, SecondIndex, index_output


@command("pc-intersect", family="points", example="moraine_points.examples:pc_intersect")
def pc_intersect(
    idx1: FirstIndex,
    idx2: SecondIndex,
    idx: Annotated[str, index_output("index of the common points")],
    pc1: Annotated[tuple[Array, ...] | None, Input("data of the first cloud", shape="(n_points1, ...)")] = None,
    pc2: Annotated[tuple[Array, ...] | None, Input("data of the second cloud", shape="(n_points2, ...)")] = None,
    pc: Annotated[
        tuple[str, ...] | None, Output("data of the common points, one for each pc1 or pc2", shape="(n_points, ...)")
    ] = None,
    prefer_1: Annotated[  # noqa: FBT002 - options are keywords
        bool, "where data of both clouds are given, take those of the first"
    ] = True,
    shape: CheckedShape = None,
    chunks: BlockOfFirst = None,
) -> Generator[Plan, list[Any], None]:
    """Find the points that two clouds share.

    Both are sorted, as pc-sort leaves them, and so is the result, which may be empty. Data come from one cloud: the
    one whose data are given or, where both are, the first one, or with --no-prefer-1 the second. Dtypes of data are
    kept.

    The indices are held in memory, up to 32 bytes a point while they are compared and 4 afterwards. Data are read and
    written in blocks of points of one image.

    Examples
    --------
    moraine pc-intersect --idx1 a_hix.zarr --idx2 b_hix.zarr --idx hix.zarr --pc1 a_coh.zarr --pc coh.zarr
    """
    outputs = pc or ()
    for name, data in (("pc1", pc1), ("pc2", pc2)):
        if data is not None:
            check_lists("pc-intersect", name, data, "pc", outputs)
    second = pc2 is not None and (pc1 is None or not prefer_1)
    sources = (pc2 if second else pc1) or ()
    check_lists("pc-intersect", "pc2" if second else "pc1", sources, "pc", outputs)
    arrays = [
        Picked.index(idx, idx2 if second else idx1),
        *(Picked.data(path, array) for array, path in zip(sources, outputs, strict=True)),
    ]
    clouds = {"idx1": idx1, "idx2": idx2}
    return matched(
        "pc-intersect",
        "moraine_points.tasks:intersect_rows",
        dict(reversed(clouds.items())) if second else clouds,
        arrays,
        n_rows=min(idx1.shape[0], idx2.shape[0]),
        block=idx1.chunks[0] if chunks is None else chunks,
        shape=shape,
    )
