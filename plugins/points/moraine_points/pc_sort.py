"""Sorting of point clouds: by gix in the order of the raster, by hix along the Hilbert curve."""

from __future__ import annotations

from typing import Annotated

from moraine_core import Array, Chunk, ChunkTask, Input, Layout, Output, Plan, command
from moraine_core.plan import itemsize
from moraine_points.layouts import check_lists, check_shape, row_dtype
from moraine_points.picking import Picked, take_tasks
from moraine_points.roles import CheckedShape, index_input, index_output


@command("pc-sort", family="points", example="moraine_points.examples:pc_sort")
def pc_sort(
    idx_in: Annotated[Array, index_input("gix or hix of the points, in any order")],
    idx: Annotated[str, index_output("the same index, sorted")],
    pc_in: Annotated[tuple[Array, ...] | None, Input("data of the points", shape="(n_points, ...)")] = None,
    pc: Annotated[
        tuple[str, ...] | None, Output("the data, sorted; one for each pc_in", shape="(n_points, ...)")
    ] = None,
    shape: CheckedShape = None,
    chunks: Annotated[int | None, "points in a chunk of the outputs; the block of idx_in by default (points)"] = None,
    key: Annotated[
        str | None,
        Output("rows of the input in the order of the output", shape="(n_points)", dtype="int64", unit="unitless"),
    ] = None,
) -> Plan:
    """Sort a point cloud by its index, and its data with it.

    A gix is sorted as the raster runs, by ascending azimuth and then range; a hix is sorted ascending, along the
    Hilbert curve. A point that occurs twice is an error: a cloud is a set. Dtypes of data are kept; a gix is
    written as int32, a hix as int64. The key holds, for each row of the sorted cloud, its row in the unsorted one.

    A task sorts one image of the data; a window array or a gix among the data is sorted as one unit. So memory grows
    with the number of points, not with that of images.

    Examples
    --------
    moraine pc-sort --idx-in ps_hix.zarr --idx sorted_hix.zarr --pc-in ps_rslc.zarr --pc sorted_rslc.zarr
    """
    data, outputs = pc_in or (), pc or ()
    check_lists("pc-sort", "pc_in", data, "pc", outputs)
    if shape is not None:
        check_shape("pc-sort", shape)
    n_points = idx_in.shape[0]
    block = idx_in.chunks[0] if chunks is None else chunks
    arrays = [
        Picked.index(idx, idx_in),
        *(Picked.data(path, array) for array, path in zip(data, outputs, strict=True)),
    ]
    layouts = [array.layout(n_points, block) for array in arrays]
    tasks = [
        task for array, layout in zip(arrays, layouts, strict=True) for task in take_tasks(array.sources[0], layout)
    ]
    if key is not None:
        permutation = Layout(key, (n_points,), "int64", (block,))
        layouts.append(permutation)
        scratch_bytes = itemsize(row_dtype(n_points)) * n_points
        tasks.append(
            ChunkTask("moraine_points.tasks:permutation", outputs=[Chunk(permutation)], scratch_bytes=scratch_bytes)
        )
    rows = ChunkTask(
        "moraine_points.kernels:sort_key",
        inputs=[Chunk(idx_in)],
        kwargs={"shape": shape, "name": f"idx_in {idx_in.path}"},
    )
    return Plan(layouts, tasks, shared={"rows": rows})
