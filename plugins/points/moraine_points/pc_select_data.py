"""Data of the points of a subset, taken from the cloud that holds them."""

from __future__ import annotations

from typing import Annotated

from moraine_core import Array, Blocks1D, Chunk, ChunkTask, Input, Output, Plan, UsageError, command
from moraine_points.layouts import check_lists, check_shape
from moraine_points.picking import Picked, pick_tasks, take_tasks
from moraine_points.roles import index_input


@command("pc-select-data", family="points", example="moraine_points.examples:pc_select_data")
def pc_select_data(
    idx_in: Annotated[Array, index_input("gix or hix of the cloud", "n_points_in")],
    idx: Annotated[Array, index_input("gix or hix of the subset, sorted")],
    pc_in: Annotated[tuple[Array, ...], Input("data of the cloud", shape="(n_points_in, ...)")],
    pc: Annotated[
        tuple[str, ...], Output("data at the points of the subset, one for each pc_in", shape="(n_points, ...)")
    ],
    shape: Annotated[
        tuple[int, int] | None,
        "lines and width of the raster; needed where one index is a gix and the other a hix (pixels)",
    ] = None,
    chunks: Annotated[Blocks1D | None, "points in a chunk of the outputs; the block of idx by default (points)"] = None,
) -> Plan:
    """Take the data of some points of a cloud.

    The result follows the points of idx, which all must be in idx_in; those that are not are an error that says how
    many they are and names the first. Dtypes of data are kept.

    Indices of one kind must both be sorted. A gix can be selected from by hix, and a hix by gix, when the
    shape of the raster is given; then idx_in may be in any order.

    Memory: 4 to 40 bytes a point for the indices. Of data in the order of idx a task reads and writes blocks of
    points of one image; where the kinds differ, all points of one image.

    Examples
    --------
    moraine pc-select-data --idx-in ps_hix.zarr --idx good_hix.zarr --pc-in ps_ph.zarr --pc good_ph.zarr
    """
    check_lists("pc-select-data", "pc_in", pc_in, "pc", pc)
    if shape is not None:
        check_shape("pc-select-data", shape)
    elif idx_in.ndim != idx.ndim:
        msg = (
            f"pc-select-data: idx_in {idx_in.path} has shape {idx_in.shape}, idx {idx.path} has {idx.shape}; "
            "expected two gix or two hix, or --shape, the lines and width of the raster, to convert one"
        )
        raise UsageError(msg)
    block = idx.chunks[0] if chunks is None else chunks
    layouts, tasks = [], []
    for array, path in zip(pc_in, pc, strict=True):
        layout = Picked.data(path, array).layout(idx.shape[0], block)
        layouts.append(layout)
        tasks += pick_tasks([array], layout) if idx_in.ndim == idx.ndim else take_tasks(array, layout)
    rows = ChunkTask(
        "moraine_points.tasks:subset_rows",
        inputs=[Chunk(idx_in), Chunk(idx)],
        kwargs={"shape": shape, "names": (f"idx_in {idx_in.path}", f"idx {idx.path}")},
    )
    return Plan(layouts, tasks, shared={"rows": rows})
