"""What a stack is about, in one small file: dates, wavelength, spacings, extent on the map, baselines."""

from __future__ import annotations

import os
from math import log, pi, radians, tan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from moraine_core import Input, Output, command
from moraine_load.engine import ENGINE_HELP, SCRATCH_HELP, Engine, scratch_folder
from moraine_load.maps import lonlat_bbox, read_map
from moraine_load.scene import SPEED_OF_LIGHT, scenes_of
from moraine_load.stack import read_stack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moraine_load.stack import Stack

PROGRAMS = ("base_calc",)

NEEDED = (
    "radar_frequency",
    "range_pixel_spacing",
    "azimuth_pixel_spacing",
    "near_range_slc",
    "heading",
    "incidence_angle",
)
"""What the header of the reference must tell."""

MERCATOR_RADIUS = 6378137.0
"""Of web mercator, m."""

META_VERSION = 1
"""Number of the layout of the file."""


@command("load-gamma-metadata", family="load", chunked=False, example="moraine_load.examples:load_gamma_metadata")
def load_gamma_metadata(
    rslc_dir: Annotated[str, Input("folder with YYYYMMDD.rslc and YYYYMMDD.rslc.par", kind="directory")],
    dem_par: Annotated[str, Input("DEM par of the map segment", kind="file")],
    reference: Annotated[str, "date of the image whose geometry all have, YYYYMMDD"],
    meta_file: Annotated[str, Output("TOML file", kind="file")],
    scratch_dir: Annotated[str | None, SCRATCH_HELP] = None,
    engine: Annotated[Engine, ENGINE_HELP] = "auto",
    crop: Annotated[bool, "cut images of different sizes to what all have"] = False,  # noqa: FBT002
) -> None:
    """Write the metadata of a stack of GAMMA as TOML.

    Keys: dates; radar_wavelength, range_pixel_spacing, azimuth_pixel_spacing (m); lonlat_bbox and merca_bbox, west,
    south, east and north of the pixel centers at the corners of the map segment (degrees, and m of web mercator);
    perpendicular_baseline (m), one for each date, relative to the reference, at the middle of the image; heading and
    incidence (degrees); near_range (m); reference, shape, image_format and moraine_meta_version.

    A perpendicular baseline is positive where the other sensor is farther out than the reference, to the side the radar
    looks to. It is computed from the orbits in the headers; with engine gamma, base_calc does it.

    Examples
    --------
    moraine load-gamma-metadata --rslc-dir rslc --dem-par dem_seg_par --reference 20210101 --meta-file meta.toml
    """
    scratch = scratch_folder(engine, PROGRAMS, scratch_dir)
    dem = read_map(dem_par)
    stack = read_stack(os.path.abspath(rslc_dir), reference, crop=crop)
    stack.reference.par.need(*NEEDED)
    if scratch:
        from moraine_load.gamma import baselines

        files = {image.date: image.path for image in stack.images}
        found = baselines(files, reference, scratch)
    else:
        found = _baselines(stack)
    Path(meta_file).write_text(_toml(_metadata(stack, lonlat_bbox(dem), found)), encoding="utf-8")


def web_mercator(lon: float, lat: float) -> tuple[float, float]:
    """Return easting and northing, m, of a longitude and latitude in degrees (EPSG:3857)."""
    return MERCATOR_RADIUS * radians(lon), MERCATOR_RADIUS * log(tan(pi / 4 + radians(lat) / 2))


def _metadata(stack: Stack, bbox: tuple[float, float, float, float], baselines: Mapping[str, float]) -> dict[str, Any]:
    """Return the keys and values of the file."""
    par = stack.reference.par
    west, south, east, north = bbox
    return {
        "moraine_meta_version": META_VERSION,
        "dates": stack.dates,
        "reference": stack.reference.date,
        "shape": list(stack.shape),
        "image_format": par.image_format,
        "radar_wavelength": SPEED_OF_LIGHT / float(par.radar_frequency or 1.0),
        "range_pixel_spacing": par.range_pixel_spacing,
        "azimuth_pixel_spacing": par.azimuth_pixel_spacing,
        "near_range": par.near_range_slc,
        "incidence": par.incidence_angle,
        "heading": par.heading,
        "lonlat_bbox": [west, south, east, north],
        "merca_bbox": [*web_mercator(west, south), *web_mercator(east, north)],
        "perpendicular_baseline": [baselines[date] for date in stack.dates],
    }


def _baselines(stack: Stack) -> dict[str, float]:
    """Return the perpendicular baselines at the middle of the reference, m, by date."""
    from moraine_load.geometry import perpendicular_baseline

    scenes = scenes_of({image.date: image.par for image in stack.images})
    reference = scenes[stack.reference.date]
    line, sample = ((n - 1) / 2 for n in reference.shape)
    return {
        date: 0.0 if scene is reference else perpendicular_baseline(reference, scene, line, sample)
        for date, scene in scenes.items()
    }


def _toml(values: Mapping[str, Any]) -> str:
    """Return plain values as TOML, numbers to the last digit."""
    return "".join(f"{key} = {_toml_value(value)}\n" for key, value in values.items())


def _toml_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
