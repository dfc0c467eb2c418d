"""Small inputs for the commands of this family: what the conformance kit runs, and what a reader can try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.testing.data import speckle
from moraine_load.geometry import earth_fixed, ground, line_times, orbit_at, radar_coordinates
from moraine_load.par import DemPar, DiffPar, SlcPar, StateVectors, write_par
from moraine_load.rasters import write_block
from moraine_load.scene import Scene, scene_of

if TYPE_CHECKING:
    from pathlib import Path

DATES = ("20210101", "20210113", "20210125")
MAJOR, MINOR = 6378137.0, 6356752.3142


def circular_orbit(offset: float = 0.0, radius: float = 7.07e6) -> StateVectors:
    """Return seven state vectors of a great circle that climbs over 45 degrees north, 10 s apart.

    Parameters
    ----------
    offset
        Distance across the track, m, from the circle with offset 0.
    radius
        Of the circle, m.
    """
    up, north = np.array([1.0, 0.0, 1.0]) / np.sqrt(2), np.array([-1.0, 0.0, 1.0]) / np.sqrt(2)
    ahead = np.sqrt(1 - 0.2**2) * north - 0.2 * np.array([0.0, 1.0, 0.0])
    side = np.cross(ahead, up)
    rate, times = 7500.0 / radius, np.arange(-30.0, 31.0, 10.0)
    angles = rate * times[:, None]
    positions = radius * (np.cos(angles) * up + np.sin(angles) * ahead) + offset * side
    velocities = radius * rate * (np.cos(angles) * ahead - np.sin(angles) * up)
    return StateVectors(970.0, 10.0, tuple(map(tuple, positions.tolist())), tuple(map(tuple, velocities.tolist())))


def image_par(shape: tuple[int, int], date: str, offset: float = 0.0, image_format: str = "FCOMPLEX") -> SlcPar:
    """Return the header of an image whose middle is at 1000 s and 850 km, with an orbit as `circular_orbit`."""
    nlines, width = shape
    line_time, spacing = 2e-3, 4.0
    start, near = 1000.0 - (nlines - 1) / 2 * line_time, 850e3 - (width - 1) / 2 * spacing
    return SlcPar(
        title=f"example range_samples: 7 {date}",
        sensor="EXAMPLE",
        date=date,
        start_time=start,
        center_time=1000.0,
        end_time=2000.0 - start,
        azimuth_line_time=line_time,
        range_samples=width,
        azimuth_lines=nlines,
        range_looks=1,
        azimuth_looks=1,
        image_format=image_format,
        heading=-11.5,
        range_pixel_spacing=spacing,
        azimuth_pixel_spacing=13.5,
        near_range_slc=near,
        incidence_angle=39.0,
        azimuth_deskew="ON",
        azimuth_angle=90.0,
        radar_frequency=5.405e9,
        earth_semi_major_axis=MAJOR,
        earth_semi_minor_axis=MINOR,
        orbit=circular_orbit(offset),
    )


def example_heights(shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Return heights that rise from the sea, m, float32, with a few missing."""
    line, sample = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
    heights: np.ndarray[Any, Any] = np.maximum(0, 2 * sample + 1.5 * line - 20).astype(np.float32)
    heights[1, 2] = np.nan
    return heights


def write_stack(folder: Path, shape: tuple[int, int], image_format: str = "FCOMPLEX") -> dict[str, str]:
    """Write a small stack as GAMMA does: images, heights, map segment, lookup table and look vectors.

    Parameters
    ----------
    folder
        Where to write.
    shape
        Lines and width.
    image_format
        Of the images.

    Returns
    -------
    dict
        Paths by the names that the commands' parameters have.
    """
    rslc = folder / "rslc"
    rslc.mkdir(parents=True, exist_ok=True)
    width = shape[1]
    for number, date in enumerate(DATES):
        write_par(rslc / f"{date}.rslc.par", image_par(shape, date, 60.0 * number, image_format))
        image = 100 * speckle(shape, seed=number)
        image[0, 3] = 0
        write_block(rslc / f"{date}.rslc", image, image_format, width, 0)
    write_block(folder / "hgt", example_heights(shape), "FLOAT", width, 0)
    write_par(folder / "diff_par", DiffPar(range_samp_1=width, az_samp_1=shape[0]))
    scene = scene_of(image_par(shape, DATES[0]))
    dem = _segment(scene)
    write_par(folder / "dem_par", dem)
    _write_map(folder, scene, dem)
    paths = {name: str(folder / name) for name in ("hgt", "diff_par", "dem_par", "theta", "phi", "lt")}
    return {**paths, "rslc_dir": str(rslc), "rslc_par": str(rslc / f"{DATES[0]}.rslc.par")}


def _segment(scene: Scene) -> DemPar:
    """Return a map segment around a scene at sea level."""
    nlines, width = scene.shape
    corners = ground(scene, [0, nlines - 1], [0, width - 1], np.zeros((2, 2)))
    post = 4e-4
    west, south, east, north = corners.lon.min(), corners.lat.min(), corners.lon.max(), corners.lat.max()
    return DemPar(
        title="example",
        projection="EQA",
        data_format="REAL*4",
        width=int((east - west) / post) + 7,
        nlines=int((north - south) / post) + 7,
        corner_lat=float(north) + 3 * post,
        corner_lon=float(west) - 3 * post,
        post_lat=-post,
        post_lon=post,
        ellipsoid_name="WGS 84",
        ellipsoid_ra=MAJOR,
        ellipsoid_reciprocal_flattening=298.2572236,
    )


def _write_map(folder: Path, scene: Scene, dem: DemPar) -> None:
    """Write lookup table and look vectors of a segment at sea level."""
    rows, columns = np.mgrid[: dem.nlines or 0, : dem.width or 0]
    lon = (dem.corner_lon or 0.0) + columns * (dem.post_lon or 0.0)
    lat = (dem.corner_lat or 0.0) + rows * (dem.post_lat or 0.0)
    xyz = earth_fixed(lon, lat, 0.0, scene.semi_major, scene.semi_minor)
    line, sample = radar_coordinates(scene, xyz)
    write_block(folder / "lt", sample + 1j * line, "FCOMPLEX", lon.shape[1], 0)
    sensor, _ = orbit_at(scene.orbit, line_times(scene, line.ravel()))
    away = sensor.reshape(xyz.shape) - xyz
    lam, phi = np.radians(lon), np.radians(lat)
    east = -np.sin(lam) * away[..., 0] + np.cos(lam) * away[..., 1]
    outward = np.cos(lam) * away[..., 0] + np.sin(lam) * away[..., 1]
    north = np.cos(phi) * away[..., 2] - np.sin(phi) * outward
    up = np.cos(phi) * outward + np.sin(phi) * away[..., 2]
    write_block(folder / "theta", np.arctan2(up, np.hypot(east, north)), "FLOAT", lon.shape[1], 0)
    write_block(folder / "phi", np.arctan2(north, east), "FLOAT", lon.shape[1], 0)


def _shape(scale: int) -> tuple[int, int]:
    return 13 * scale, 17 * scale


def load_gamma_flatten_rslc(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack of three images."""
    paths = write_stack(folder, _shape(scale), "SCOMPLEX")
    return {
        "rslc_dir": paths["rslc_dir"],
        "reference": DATES[1],
        "hgt": paths["hgt"],
        "rslc": str(folder / "rslc.zarr"),
        "chunks": (5 * scale, 6 * scale),
        "engine": "native",
    }


def load_gamma_lat_lon_hgt(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack with heights and a map segment."""
    paths = write_stack(folder, _shape(scale))
    given = {name: paths[name] for name in ("diff_par", "rslc_par", "dem_par", "hgt")}
    outputs = {f"{name}_zarr": str(folder / f"{name}.zarr") for name in ("lat", "lon", "hgt")}
    return {**given, **outputs, "chunks": (5 * scale, 6 * scale), "engine": "native"}


def load_gamma_look_vector(folder: Path, scale: int) -> dict[str, Any]:
    """Write look vectors in map geometry and a lookup table."""
    paths = write_stack(folder, _shape(scale))
    given = {name: paths[name] for name in ("rslc_par", "theta", "phi", "lt", "dem_par")}
    outputs = {f"{name}_zarr": str(folder / f"{name}.zarr") for name in ("theta", "phi")}
    return {**given, **outputs, "chunks": (5 * scale, 6 * scale), "engine": "native"}


def load_gamma_range(folder: Path, scale: int) -> dict[str, Any]:
    """Write a header."""
    paths = write_stack(folder, _shape(scale))
    outputs = {"range_zarr": str(folder / "range.zarr"), "chunks": (5 * scale, 6 * scale)}
    return {"rslc_par": paths["rslc_par"], **outputs}


def load_gamma_metadata(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack with a map segment."""
    paths = write_stack(folder, _shape(scale))
    given = {name: paths[name] for name in ("rslc_dir", "dem_par")}
    return {**given, "reference": DATES[1], "meta_file": str(folder / "meta.toml"), "engine": "native"}


def simulate(folder: Path, scale: int) -> dict[str, Any]:
    """Name the options of a stack of few pixels with every effect."""
    return {
        "out": str(folder / "stack"),
        "shape": [20 + 6 * scale, 24 + 12 * scale],
        "nimages": 3,
        "orbit_error": 0.3,
        "post": 60.0,
        "lines": 10 + 2 * scale,
    }
