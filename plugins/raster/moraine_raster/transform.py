"""Coordinates of pixels or points in another reference system."""

from __future__ import annotations

import importlib.util
from typing import Annotated

from moraine_core import Array, Chunk, ChunkTask, Input, Layout, Output, Plan, UsageError, blocks, command

CLOSED = (4326, 3857)
"""EPSG codes with closed formulas."""

ELEMENT_BYTES = 64
"""Memory of an element while it is transformed, besides input and output: float64 copies, and temporary values."""


@command("transform", family="raster", example="moraine_raster.examples:transform")
def transform(
    xx_in: Annotated[
        Array, Input("x: longitude or easting", shape="(...)", dtype=("float", "integer"), unit="degrees or m")
    ],
    yy_in: Annotated[
        Array, Input("y: latitude or northing", shape="(...)", dtype=("float", "integer"), unit="degrees or m")
    ],
    xx_out: Annotated[str, Output("x in the other system", shape="(...)", dtype="float64", unit="degrees or m")],
    yy_out: Annotated[str, Output("y in the other system", shape="(...)", dtype="float64", unit="degrees or m")],
    epsg_in: Annotated[int, "EPSG code of what is given (unitless)"] = 4326,
    epsg_out: Annotated[int, "EPSG code of what is wanted (unitless)"] = 3857,
) -> Plan:
    """Transform coordinates, by default longitude and latitude to web mercator.

    x comes first, whatever the order of axes in a system's definition; y grows to the north. They are in degrees
    for geographic systems, and in the system's own unit, mostly m, for others. Results are always float64, since
    float32 has steps of 1 to 2 m in web mercator; they have the shape and the chunks of xx_in.

    Where either coordinate is missing (nan), or the result would be infinite, both are nan. Latitudes beyond 85.06
    degrees are not clipped.

    Between EPSG:4326 and EPSG:3857: e = R lon, n = R ln tan(pi/4 + lat/2), R = 6378137 m. Other codes need pyproj:
    pip install moraine-raster[crs].

    Examples
    --------
    moraine transform --xx-in lon.zarr --yy-in lat.zarr --xx-out e.zarr --yy-out n.zarr
    """
    if xx_in.shape != yy_in.shape:
        raise UsageError(
            f"transform: yy_in {yy_in.path} has shape {yy_in.shape}; expected {xx_in.shape}, as xx_in {xx_in.path}"
        )
    _check_codes(epsg_in, epsg_out)
    x, y = (Layout(path, xx_in.shape, "float64", xx_in.chunks) for path in (xx_out, yy_out))
    return Plan(
        [x, y],
        [
            ChunkTask(
                "moraine_raster.coordinates:transform",
                inputs=[Chunk(xx_in, block), Chunk(yy_in, block)],
                outputs=outputs,
                kwargs={"epsg_in": epsg_in, "epsg_out": epsg_out},
                scratch_bytes=ELEMENT_BYTES * outputs[0].nbytes // 8,
            )
            for block in blocks(x.shape, x.chunks)
            for outputs in [[Chunk(x, block), Chunk(y, block)]]
        ],
    )


def _check_codes(epsg_in: int, epsg_out: int) -> None:
    """Check that there is a way from one system to the other."""
    if epsg_in == epsg_out or {epsg_in, epsg_out} <= set(CLOSED):
        return
    if importlib.util.find_spec("pyproj") is None:
        raise UsageError(
            f"transform: from EPSG:{epsg_in} to EPSG:{epsg_out} pyproj is needed, which is not installed; "
            "pip install pyproj, or moraine-raster[crs]"
        )
    from moraine_raster.coordinates import transformer

    transformer(epsg_in, epsg_out)
