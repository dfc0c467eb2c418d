"""Homogeneous pixels by their p values: the choice that shp-test makes, at another level."""

from __future__ import annotations

from typing import Annotated

from moraine_core import (
    ALL,
    Array,
    Blocks2D,
    Chunk,
    ChunkTask,
    Input,
    Layout,
    Output,
    Plan,
    UsageError,
    blocks,
    command,
)


@command("select-shp", family="ds", gpu=True, example="moraine_ds.examples:select_shp")
def select_shp(
    pvalue: Annotated[
        Array,
        Input(
            "p values of shp-test",
            shape=("(nlines, width, az_win, r_win)", "(n_points, az_win, r_win)"),
            dtype="float32",
            unit="unitless",
        ),
    ],
    is_shp: Annotated[
        str,
        Output(
            "True where a pixel of the window is homogeneous with its center",
            shape=("(nlines, width, az_win, r_win)", "(n_points, az_win, r_win)"),
            dtype="bool",
        ),
    ],
    shp_num: Annotated[
        str,
        Output(
            "number of homogeneous pixels of a window, its center among them",
            shape=("(nlines, width)", "(n_points)"),
            dtype="int32",
            unit="pixels",
        ),
    ],
    alpha: Annotated[float, "level of significance, between 0 and 1; pixels differ below it (unitless)"] = 0.05,
    chunks: Annotated[
        Blocks2D | None, "lines and pixels a task works on; those of the p values by default (pixels)"
    ] = None,
) -> Plan:
    """Choose the homogeneous pixels of each window by p values.

    A pixel is homogeneous where its p value is at least alpha, which nan is not. The result is what shp-test gives at
    this level; so p values are of use where several levels are to be compared.

    Examples
    --------
    moraine select-shp --pvalue pvalue.zarr --is-shp is_shp.zarr --shp-num shp_num.zarr --alpha 0.1
    """
    if not 0 < alpha < 1:
        raise UsageError(f"select-shp: alpha is {alpha}; expected a level between 0 and 1")
    space, window = pvalue.shape[:-2], pvalue.shape[-2:]
    block = tuple(chunks[: len(space)] if chunks else pvalue.chunks[:-2])
    marks = Layout(is_shp, pvalue.shape, "bool", (*block, *window))
    counts = Layout(shp_num, space, "int32", block)
    tasks = [
        ChunkTask(
            "moraine_ds.homogeneity.kernels:select_shp",
            inputs=[Chunk(pvalue, (*b, ALL, ALL))],
            outputs=[Chunk(marks, (*b, ALL, ALL)), Chunk(counts, b)],
            kwargs={"alpha": alpha},
        )
        for b in blocks(space, block)
    ]
    return Plan([marks, counts], tasks)
