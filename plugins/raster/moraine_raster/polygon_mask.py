"""Masks from polygons drawn on a map or in radar geometry."""

from __future__ import annotations

import logging
from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from math import prod
from typing import Annotated, Any, Literal

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
from moraine_raster import polygons as geojson

log = logging.getLogger("moraine")

EDGE_BYTES = 128
"""Bytes per vertex of the polygons, which all tasks share: the edges, and the lists of those in each band."""

POSITION_BYTES = 16
"""Bytes per position besides the input: x and y in float64."""


@command("polygon-mask", family="raster", example="moraine_raster.examples:polygon_mask")
def polygon_mask(
    polygons: Annotated[str, Input("GeoJSON with polygons", kind="file")],
    mask: Annotated[str, Output("where data are to be kept", shape="(...)", dtype="bool")],
    x: Annotated[
        Array | None,
        Input(
            "x of the data: longitude, or range", shape="(...)", dtype=("float", "integer"), unit="degrees or pixels"
        ),
    ] = None,
    y: Annotated[
        Array | None,
        Input(
            "y of the data: latitude, or azimuth", shape="(...)", dtype=("float", "integer"), unit="degrees or pixels"
        ),
    ] = None,
    gix: Annotated[
        Array | None,
        Input("grid index (azimuth, range) of points", shape="(n_points, 2)", dtype="integer", unit="pixels"),
    ] = None,
    shape: Annotated[
        tuple[int, int] | None, "lines and width of a raster, each pixel of which is masked (pixels)"
    ] = None,
    keep: Annotated[Literal["inside", "outside"], "mark what is in a polygon, or what is in none"] = "inside",
    chunks: Annotated[Blocks2D, "lines and pixels of a block of the mask, where shape is given (pixels)"] = (
        1000,
        1000,
    ),
) -> Generator[Plan, list[Any], None]:
    """Mark the data that lie inside polygons, or outside of all of them.

    Polygons are in longitude and latitude (degrees), as GeoJSON has it, unless the file's member moraine_coordinates
    is radar_grid: then x is range and y azimuth in pixels, and the center of a pixel has whole numbers. Data are
    placed by x and y, by gix, or, with shape, as the pixels of a raster; the last two need polygons of the
    radar grid. The mask has the shape and the chunks of x, one value per point of gix, or the shape that is given.

    The region is the union of all polygons and multipolygons. Holes do not count, and other geometries are skipped; the
    log tells of both. Data without a position (nan) are outside. What lies exactly on an edge may go either way.

    A position is inside a polygon if a ray from it crosses the boundary an odd number of times (Shimrat, 1962,
    CACM 5(8), algorithm 112).

    Examples
    --------
    moraine polygon-mask --polygons region.geojson --mask mask.zarr --x lon.zarr --y lat.zarr
    """
    given = [name for name, value in {"x": x, "y": y, "gix": gix, "shape": shape}.items() if value is not None]
    if given not in (["x", "y"], ["gix"], ["shape"]):
        found = f"{', '.join(given)} given" if given else "none of x, y, gix and shape given"
        raise UsageError(f"polygon-mask: {found}; expected x and y, or gix, or shape")
    region = geojson.read(polygons)
    if region.coordinates == "lonlat" and x is None:
        placed = "in longitude and latitude; expected x and y with them"
        raise UsageError(f"polygon-mask: polygons {polygons} are {placed}, not {given[0]}")
    arrays: list[Array] = []
    if x is not None and y is not None:
        if x.shape != y.shape:
            raise UsageError(f"polygon-mask: y {y.path} has shape {y.shape}; expected {x.shape}, as x {x.path}")
        kernel, arrays, out = "moraine_raster.inside:inside", [x, y], Layout(mask, x.shape, "bool", x.chunks)
    elif gix is not None:
        out = Layout(mask, gix.shape[:1], "bool", gix.chunks[:1])
        kernel, arrays = "moraine_raster.inside:inside_gix", [gix]
    elif shape is not None:
        if min(shape) < 1:
            raise UsageError(f"polygon-mask: shape is {shape}; expected at least one line and one pixel")
        kernel, out = "moraine_raster.inside:inside_grid", Layout(mask, shape, "bool", chunks)
    edge_bytes = EDGE_BYTES * sum(map(len, region.rings))
    tasks = []
    for block in blocks(out.shape, out.chunks):
        chunk = Chunk(out, block)
        place = {} if arrays else {"rows": chunk.box[0], "columns": chunk.box[1]}
        tasks.append(
            ChunkTask(
                kernel,
                inputs=[Chunk(array, (*block, *(ALL,) * (array.ndim - len(block)))) for array in arrays],
                outputs=[chunk],
                kwargs={"value": keep == "inside", **place},
                scratch_bytes=edge_bytes + (POSITION_BYTES * chunk.nbytes if arrays else 0),
            )
        )
    edges = ChunkTask("moraine_raster.inside:read_edges", kwargs={"path": polygons})
    n_missing = sum((yield Plan([out], tasks, shared={"edges": edges})))
    if region.n_holes or region.n_skipped:
        found = f"holes ignored: {region.n_holes}, other geometries skipped: {region.n_skipped}"
        log.warning("polygon-mask: polygons %s: %s", polygons, found)
    if n_missing:
        log.warning("polygon-mask: %d of %d positions are nan and count as outside", n_missing, prod(out.shape))
