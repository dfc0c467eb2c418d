"""Sorting of point clouds: by gix in the order of the raster, by hix along the Hilbert curve."""

from __future__ import annotations

from typing import Annotated

from moraine_core import ALL, Array, Chunk, ChunkTask, Input, Layout, Output, Plan, blocks, command
from moraine_points.layouts import check_lists, check_shape, column_chunks, index_layout

KEY_BYTES = 8
"""Bytes of the permutation per point, which all tasks share."""


@command("pc-sort", family="points", example="moraine_points.examples:pc_sort")
def pc_sort(
    idx_in: Annotated[
        Array,
        Input(
            "gix or hix of the points, in any order",
            shape=("(n_points, 2)", "(n_points)"),
            dtype="integer",
            unit="pixels or unitless",
        ),
    ],
    idx: Annotated[
        str,
        Output(
            "the same index, sorted",
            shape=("(n_points, 2)", "(n_points)"),
            dtype=("int32", "int64"),
            unit="pixels or unitless",
        ),
    ],
    pc_in: Annotated[tuple[Array, ...] | None, Input("data of the points", shape="(n_points, ...)")] = None,
    pc: Annotated[
        tuple[str, ...] | None, Output("the data, sorted; one for each pc_in", shape="(n_points, ...)")
    ] = None,
    shape: Annotated[
        tuple[int, int] | None, "lines and width of the raster, if the points are to be checked against it (pixels)"
    ] = None,
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
    sorted_idx = index_layout(idx, idx_in, block)
    layouts = [sorted_idx]
    tasks = [_take(idx_in, sorted_idx, (ALL,) * idx_in.ndim)]
    if key is not None:
        rows = Layout(key, (n_points,), "int64", (block,))
        layouts.append(rows)
        tasks.append(ChunkTask("moraine_points.tasks:permutation", outputs=[Chunk(rows)]))
    for array, path in zip(data, outputs, strict=True):
        columns = column_chunks(array, 1)
        layout = Layout(path, array.shape, array.dtype, (block, *columns))
        layouts.append(layout)
        tasks += [_take(array, layout, (ALL, *column)) for column in blocks(array.shape[1:], columns)]
    order = ChunkTask(
        "moraine_points.kernels:sort_key",
        inputs=[Chunk(idx_in)],
        kwargs={"shape": shape, "name": f"idx_in {idx_in.path}"},
    )
    return Plan(layouts, tasks, shared={"order": order})


def _take(array: Array, layout: Layout, part: tuple[slice, ...]) -> ChunkTask:
    """Return the task that sorts one column."""
    return ChunkTask(
        "moraine_points.tasks:take",
        inputs=[Chunk(array, part)],
        outputs=[Chunk(layout, part)],
        kwargs={"dtype": layout.dtype},
        # the order, and an index once more where its dtype changes
        scratch_bytes=KEY_BYTES * array.shape[0] * (1 if array.dtype == layout.dtype else 3),
    )
