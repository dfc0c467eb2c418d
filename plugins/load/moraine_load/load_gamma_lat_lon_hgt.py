"""Where on Earth the pixels of a radar image are: latitude, longitude and height."""

from __future__ import annotations

import os
from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from math import isnan, prod
from typing import TYPE_CHECKING, Annotated, Any

from moraine_core import Blocks2D, Chunk, ChunkTask, Input, Layout, Output, Plan, UsageError, blocks, command
from moraine_load.engine import ENGINE_HELP, SCRATCH_HELP, THREADS_HELP, Engine, default_threads, scratch_folder
from moraine_load.formats import ByteOrder, check_heights
from moraine_load.maps import check_datum, crs_of, read_map
from moraine_load.par import read_diff_par, read_slc_par
from moraine_load.registration import Offsets, shift_of
from moraine_load.scene import band_bytes, scene_of, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = ("mkgrid", "pt2geo")

RASTER = "(nlines, width)"


@command("load-gamma-lat-lon-hgt", family="load", example="moraine_load.examples:load_gamma_lat_lon_hgt")
def load_gamma_lat_lon_hgt(
    diff_par: Annotated[str, Input("DIFF par of the geocoding", kind="file")],
    rslc_par: Annotated[str, Input("header of the reference image", kind="file")],
    dem_par: Annotated[str, Input("DEM par of the map segment", kind="file")],
    hgt: Annotated[str, Input("heights above the ellipsoid in radar geometry, float, m", kind="file")],
    lat_zarr: Annotated[str, Output("latitude", shape=RASTER, dtype="float64", unit="degrees")],
    lon_zarr: Annotated[str, Output("longitude", shape=RASTER, dtype="float64", unit="degrees")],
    hgt_zarr: Annotated[str, Output("height above the ellipsoid", shape=RASTER, dtype="float32", unit="m")],
    scratch_dir: Annotated[str | None, SCRATCH_HELP] = None,
    chunks: Annotated[Blocks2D, "lines and pixels a task works on (pixels)"] = (1000, 1000),
    engine: Annotated[Engine, ENGINE_HELP] = "auto",
    offsets: Annotated[
        Offsets,
        "what the native engine does with offsets in the DIFF par: refuse or ignore them, or add them to, or subtract "
        "them from, the coordinates of pixels",
    ] = "refuse",
    gamma_threads: Annotated[int | None, THREADS_HELP] = None,
    byte_order: Annotated[ByteOrder | None, "of the heights; big, and checked, by default"] = None,
) -> Generator[Plan, list[Any], None]:
    """Load latitude, longitude and height of the pixels of a radar image.

    A pixel is where the sphere of its slant range around the sensor, the zero-Doppler plane of its line and the surface
    of its height above the ellipsoid meet. Coordinates are those of pixel centers, on the ellipsoid of the header.

    A height of 0 m is a height, as over open water. Pixels without a height (nan), or whose range does not reach it,
    are nan in all three outputs.

    With engine gamma, mkgrid and pt2geo do the same; pixels whose latitude and longitude are both 0 are nan.

    Examples
    --------
    moraine load-gamma-lat-lon-hgt --diff-par 20210101.diff_par --rslc-par rslc/20210101.rslc.par \
      --dem-par dem_seg_par --hgt 20210101.hgt --lat-zarr lat.zarr --lon-zarr lon.zarr --hgt-zarr hgt.zarr
    """
    scratch = scratch_folder(engine, PROGRAMS, scratch_dir)
    heights, header = os.path.abspath(hgt), read_slc_par(os.path.abspath(rslc_par))
    header.need("azimuth_lines", "range_samples")
    shape = (header.azimuth_lines or 0, header.range_samples or 0)
    check_heights(heights, shape, byte_order)
    dem = read_map(os.path.abspath(dem_par))
    layouts = [
        Layout(path, shape, dtype, chunks, attributes={"crs": crs_of(dem)})
        for path, dtype in ((lat_zarr, "float64"), (lon_zarr, "float64"), (hgt_zarr, "float32"))
    ]
    keywords: dict[str, Any]
    if scratch:
        kernel = "moraine_load.kernels:lat_lon_hgt_from_files"
        ((coordinates, located),) = yield Plan(
            [],
            [
                ChunkTask(
                    "moraine_load.gamma:locate_pixels",
                    kwargs={
                        "rslc_par": header.path,
                        "hgt": heights,
                        "dem_par": dem.path,
                        "diff_par": os.path.abspath(diff_par),
                        "folder": scratch,
                        "shape": shape,
                        "threads": gamma_threads or default_threads(),
                    },
                )
            ],
            desc="load-gamma-lat-lon-hgt pt2geo",
        )
        keywords = {"coordinates": coordinates, "heights": located, "width": shape[1]}
    else:
        kernel, scene = "moraine_load.kernels:lat_lon_hgt_block", scene_of(header)
        check_datum(dem, scene)
        shift = shift_of(read_diff_par(os.path.abspath(diff_par)), shape, offsets)
        keywords = {"hgt": heights, "byte_order": byte_order or "big", "scene": scene, "shift": shift}
    extents = yield Plan(
        layouts,
        [
            ChunkTask(
                kernel,
                outputs=[Chunk(layout, block) for layout in layouts],
                kwargs={**spans(block), **keywords},
                scratch_bytes=band_bytes(block) + 24 * prod(part.stop - part.start for part in block),
            )
            for block in blocks(shape, chunks)
        ],
    )
    _check_extent(extents, shape, heights)


def _check_extent(extents: Sequence[Sequence[float]], shape: tuple[int, int], heights: str) -> None:
    """Refuse coordinates that are missing everywhere or the same everywhere."""
    known = [extent for extent in extents if not isnan(extent[0])]
    if not known:
        raise UsageError(f"no pixel could be located with the heights of {heights}; expected heights in m")
    south, west = (min(extent[axis] for extent in known) for axis in (0, 2))
    north, east = (max(extent[axis] for extent in known) for axis in (1, 3))
    if prod(shape) > 1 and south == north and west == east:
        raise UsageError(f"all pixels are at latitude {south:g} and longitude {west:g}; expected different coordinates")
