"""Slant range of the pixels of a radar image."""

from __future__ import annotations

from typing import Annotated, Literal

from moraine_core import Blocks2D, Chunk, ChunkTask, Input, Layout, Output, Plan, blocks, command
from moraine_load.par import read_slc_par
from moraine_load.scene import check_slant_range, spans


@command("load-gamma-range", family="load", example="moraine_load.examples:load_gamma_range")
def load_gamma_range(
    rslc_par: Annotated[str, Input("header of the reference image", kind="file")],
    range_zarr: Annotated[str, Output("slant range", shape="(nlines, width)", dtype=("float32", "float64"), unit="m")],
    chunks: Annotated[Blocks2D, "lines and pixels a task works on (pixels)"] = (1000, 1000),
    dtype: Annotated[Literal["float32", "float64"], "of the output; float32 resolves 0.06 m at 850 km"] = "float32",
) -> Plan:
    """Load the slant range of each pixel of a radar image.

    The range of sample j is near_range_slc + j range_pixel_spacing, the same on all lines. No program of GAMMA has a
    part in it.

    Examples
    --------
    moraine load-gamma-range --rslc-par rslc/20210101.rslc.par --range-zarr range.zarr
    """
    par = read_slc_par(rslc_par)
    par.need("azimuth_lines", "range_samples", "near_range_slc", "range_pixel_spacing")
    check_slant_range(par)
    out = Layout(range_zarr, (par.azimuth_lines or 0, par.range_samples or 0), dtype, chunks)
    keywords = {"near_range": par.near_range_slc, "spacing": par.range_pixel_spacing, "dtype": dtype}
    kernel = "moraine_load.kernels:slant_range"
    return Plan(
        [out],
        [
            ChunkTask(kernel, outputs=[Chunk(out, block)], kwargs={**spans(block), **keywords})
            for block in blocks(out.shape, chunks)
        ],
    )
