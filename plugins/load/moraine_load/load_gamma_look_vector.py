"""Direction from the pixels of a radar image to the sensor."""

from __future__ import annotations

import os
from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from math import prod
from typing import TYPE_CHECKING, Annotated, Any

from moraine_core import Blocks2D, Chunk, ChunkTask, Input, Layout, Output, Plan, UsageError, blocks, command
from moraine_load.engine import ENGINE_HELP, SCRATCH_HELP, THREADS_HELP, Engine, default_threads, scratch_folder
from moraine_load.formats import ByteOrder, check_heights, check_size
from moraine_load.maps import read_map
from moraine_load.par import read_slc_par
from moraine_load.scene import band_bytes, scene_of, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moraine_load.par import SlcPar

PROGRAMS = ("geocode",)

RASTER = "(nlines, width)"

THETA_SIGN = "elevation of the direction to the sensor: π/2 is up"

PHI_SIGN = "orientation of the direction to the sensor: 0 is east, π/2 north"

MAP_BYTES = 96
"""Bytes that a pixel of a band of the map takes in a task."""

MAP_LINES = 64
"""Lines of the map in a band."""


@command("load-gamma-look-vector", family="load", example="moraine_load.examples:load_gamma_look_vector")
def load_gamma_look_vector(
    rslc_par: Annotated[str, Input("header of the reference image", kind="file")],
    theta_zarr: Annotated[
        str, Output("elevation of the direction to the sensor", shape=RASTER, dtype="float32", unit="rad")
    ],
    phi_zarr: Annotated[
        str, Output("orientation of the direction to the sensor", shape=RASTER, dtype="float32", unit="rad")
    ],
    theta: Annotated[str | None, Input("elevation in map geometry (lv_theta), float, rad", kind="file")] = None,
    phi: Annotated[str | None, Input("orientation in map geometry (lv_phi), float, rad", kind="file")] = None,
    lt: Annotated[str | None, Input("lookup table from map to radar, complex float", kind="file")] = None,
    dem_par: Annotated[str | None, Input("DEM par of the map segment", kind="file")] = None,
    hgt: Annotated[
        str | None, Input("heights in radar geometry, float, m, instead of the four of the map", kind="file")
    ] = None,
    scratch_dir: Annotated[str | None, SCRATCH_HELP] = None,
    chunks: Annotated[Blocks2D, "lines and pixels a task works on (pixels)"] = (1000, 1000),
    engine: Annotated[Engine, ENGINE_HELP] = "auto",
    gamma_threads: Annotated[int | None, THREADS_HELP] = None,
    byte_order: Annotated[ByteOrder | None, "of the heights; big, and checked, by default"] = None,
) -> Generator[Plan, list[Any], None]:
    """Load the look vectors of a radar image: from GAMMA's, in map geometry, or from heights and the orbit.

    The vector points from the ground to the sensor. Theta is its elevation, pi/2 up; phi its orientation, 0 east and
    pi/2 north, both in radians.

    Given theta, phi, lt and dem_par, vectors are resampled from map to radar geometry: the cells of the map are
    triangles there, in which values are interpolated linearly, phi by its cosine and sine. Pixels that no cell
    reaches are nan; so are those of cells where theta or the lookup table is 0. A phi of 0 is a direction. Given hgt
    instead, the vectors are computed for each pixel from its height and the orbit in the header, and no program of
    GAMMA is used.

    With engine gamma, geocode does the resampling; pixels whose theta is 0 are nan.

    Examples
    --------
    moraine load-gamma-look-vector --rslc-par rslc/20210101.rslc.par --theta-zarr theta.zarr --phi-zarr phi.zarr \
      --theta lv_theta --phi lv_phi --lt lt_fine --dem-par dem_seg_par
    """
    par = read_slc_par(os.path.abspath(rslc_par))
    par.need("azimuth_lines", "range_samples")
    shape = (par.azimuth_lines or 0, par.range_samples or 0)
    layouts = [
        Layout(path, shape, "float32", chunks, attributes={"sign": sign})
        for path, sign in ((theta_zarr, THETA_SIGN), (phi_zarr, PHI_SIGN))
    ]
    files = {"theta": theta, "phi": phi, "lt": lt, "dem_par": dem_par}
    missing = [name for name, value in files.items() if value is None]
    if len(missing) not in (0, 4) or (hgt is None) == bool(missing):
        given = [name for name, value in {**files, "hgt": hgt}.items() if value is not None]
        raise UsageError(f"{', '.join(given) or 'nothing'} given; expected theta, phi, lt and dem_par, or hgt")
    if hgt is not None:
        yield _from_heights(par, os.path.abspath(hgt), byte_order, layouts, chunks)
        return
    maps = {name: os.path.abspath(value or "") for name, value in files.items()}
    dem = read_map(maps.pop("dem_par"))
    map_shape = (dem.nlines or 0, dem.width or 0)
    for name, path in maps.items():
        check_size(path, "FCOMPLEX" if name == "lt" else "FLOAT", map_shape[1], map_shape[0])
    scratch = scratch_folder(engine, PROGRAMS, scratch_dir)
    if scratch:
        ((elevation, cosine, sine),) = yield Plan(
            [],
            [
                ChunkTask(
                    "moraine_load.gamma:geocode_look_vectors",
                    kwargs={
                        **maps,
                        "map_shape": map_shape,
                        "folder": scratch,
                        "shape": shape,
                        "threads": gamma_threads or default_threads(),
                    },
                )
            ],
            desc="load-gamma-look-vector geocode",
        )
        keywords = {"theta": elevation, "cosine": cosine, "sine": sine, "width": shape[1]}
        yield _plan("moraine_load.kernels:look_vector_from_files", layouts, chunks, keywords)
        return
    # a band has the first line of the next: the cells between them belong to it
    bands = [(start, min(start + MAP_LINES + 1, map_shape[0])) for start in range(0, map_shape[0], MAP_LINES)]
    extents = yield Plan(
        [],
        [
            ChunkTask(
                "moraine_load.kernels:lookup_extent",
                kwargs={"lt": maps["lt"], "width": map_shape[1], "lines": band},
                scratch_bytes=MAP_BYTES * MAP_LINES * map_shape[1],
            )
            for band in bands
        ],
        desc="load-gamma-look-vector lookup table",
    )
    yield Plan(
        layouts,
        [
            ChunkTask(
                "moraine_load.kernels:look_vector_from_map",
                outputs=[Chunk(layout, block) for layout in layouts],
                kwargs={
                    **maps,
                    "width": map_shape[1],
                    "bands": [b for b, e in zip(bands, extents, strict=True) if _meets(e, block)],
                    **spans(block),
                },
                scratch_bytes=MAP_BYTES * MAP_LINES * map_shape[1] + 40 * prod(p.stop - p.start for p in block),
            )
            for block in blocks(shape, chunks)
        ],
    )


def _from_heights(
    par: SlcPar, hgt: str, byte_order: ByteOrder | None, layouts: list[Layout], chunks: tuple[int, int]
) -> Plan:
    """Return the plan that computes look vectors from heights and the orbit."""
    check_heights(hgt, (layouts[0].shape[0], layouts[0].shape[1]), byte_order)
    keywords = {"hgt": hgt, "byte_order": byte_order or "big", "scene": scene_of(par)}
    return _plan("moraine_load.kernels:look_vector_block", layouts, chunks, keywords)


def _plan(kernel: str, layouts: list[Layout], chunks: tuple[int, int], keywords: dict[str, Any]) -> Plan:
    return Plan(
        layouts,
        [
            ChunkTask(
                kernel,
                outputs=[Chunk(layout, block) for layout in layouts],
                kwargs={**spans(block), **keywords},
                scratch_bytes=band_bytes(block) + 16 * prod(part.stop - part.start for part in block),
            )
            for block in blocks(layouts[0].shape, chunks)
        ],
    )


def _meets(extent: Sequence[float], block: tuple[slice, ...]) -> bool:
    """Tell whether lines of the map reach into a block; nan, where they point nowhere, does not."""
    top, bottom, near, far = extent
    return bool(top < block[0].stop and bottom >= block[0].start and near < block[1].stop and far >= block[1].start)
