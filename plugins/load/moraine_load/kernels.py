"""Array functions of the load family: from files of GAMMA and the geometry of images to blocks of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_load import _cpu, geometry
from moraine_load.rasters import read_block
from moraine_load.scene import BAND_LINES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moraine_load.formats import ByteOrder
    from moraine_load.scene import Scene

    Array = np.ndarray[Any, Any]
    Span = tuple[int, int]
    Source = tuple[str, str, str, int]

TINY = 1e-30
"""An amplitude below this is a missing sample: zero is GAMMA's no-data, denormals are its shadow."""


def flatten(image: Array, phase: Array) -> Array:
    """Return an SLC without the phase that geometry makes, ``s exp(+j phi)``.

    Parameters
    ----------
    image
        SLC, (nlines, width), complex; zero, denormal, infinite or nan is missing.
    phase
        Simulated phase of ``s_ref conj(s)``, radians, same shape, float64; nan is missing, 0 is a phase.

    Returns
    -------
    array
        (nlines, width), complex64; nan + nan j where either is missing.
    """
    out = np.empty(image.shape, np.complex64)
    _cpu.rotate(image, phase, TINY, out)
    return out


def flatten_block(
    *,
    images: Sequence[Source],
    byte_order: ByteOrder,
    lines: Span,
    samples: Span,
    hgt: str,
    hgt_width: int,
    reference: str,
    scenes: Mapping[str, Scene],
) -> Array:
    """Read a block of several images and of the heights, and flatten it with the geometry of the orbits.

    Parameters
    ----------
    images
        Date, file, format and samples in a line of each image.
    byte_order
        Of all files.
    lines, samples
        The block, pixels.
    hgt, hgt_width
        File of heights, float, m above the ellipsoid, and its samples in a line; nan is missing, 0 is a height.
    reference
        Date of the reference, which is only copied.
    scenes
        Geometry of the images by date.

    Returns
    -------
    array
        (lines, samples, images), complex64; nan + nan j where missing.
    """
    out = np.empty((lines[1] - lines[0], samples[1] - samples[0], len(images)), np.complex64)
    for band in _bands(lines):
        where = (np.arange(*band), np.arange(*samples))
        xyz: Array | None = None
        for number, (date, path, image_format, width) in enumerate(images):
            image = read_block(path, image_format, width, band, samples, byte_order)
            if date == reference:
                phase = np.zeros(image.shape)
            else:
                if xyz is None:
                    heights = read_block(hgt, "FLOAT", hgt_width, band, samples, byte_order)
                    xyz = geometry.ground_points(scenes[reference], *where, heights)
                phase = geometry.simulated_phase(scenes[reference], scenes[date], *where, xyz)
            out[band[0] - lines[0] : band[1] - lines[0], :, number] = flatten(image, phase)
    return out


def flatten_block_by_phase(
    *,
    images: Sequence[Source],
    byte_order: ByteOrder,
    lines: Span,
    samples: Span,
    phases: Sequence[str | None],
    phase_width: int,
) -> Array:
    """Read a block of several images and of their simulated phases, and flatten it.

    Parameters
    ----------
    images, byte_order, lines, samples
        As in `flatten_block`.
    phases, phase_width
        Big-endian file of the phase of each image, float, radians, and samples in a line; exactly 0 is missing there.
        None for the reference, which is only copied.

    Returns
    -------
    array
        (lines, samples, images), complex64; nan + nan j where missing.
    """
    out = np.empty((lines[1] - lines[0], samples[1] - samples[0], len(images)), np.complex64)
    for band in _bands(lines):
        for number, ((_, path, image_format, width), phase) in enumerate(zip(images, phases, strict=True)):
            image = read_block(path, image_format, width, band, samples, byte_order)
            angle = np.zeros(image.shape)
            if phase is not None:
                angle = read_block(phase, "FLOAT", phase_width, band, samples).astype(np.float64)
                angle[angle == 0] = np.nan
            out[band[0] - lines[0] : band[1] - lines[0], :, number] = flatten(image, angle)
    return out


def lat_lon_hgt_block(
    *, hgt: str, byte_order: ByteOrder, lines: Span, samples: Span, scene: Scene, shift: tuple[float, float]
) -> tuple[Array, Array, Array, list[float]]:
    """Return where on Earth a block of pixels is, from its heights and the orbit.

    Parameters
    ----------
    hgt, byte_order
        File of heights, float, m above the ellipsoid, and the order of its bytes; nan is missing, 0 is a height.
    lines, samples
        The block, pixels.
    scene
        Geometry of the image.
    shift
        Lines and samples to add to the coordinates of pixels before they are located.

    Returns
    -------
    lat, lon, hgt, extent
        degrees, degrees (float64) and m (float32), each (lines, samples), nan where missing; least and greatest
        latitude and longitude, nan where all are missing.
    """
    height = read_block(hgt, "FLOAT", scene.shape[1], lines, samples, byte_order)
    lat, lon = np.empty(height.shape), np.empty(height.shape)
    for band in _bands(lines):
        rows = slice(band[0] - lines[0], band[1] - lines[0])
        found = geometry.ground(scene, np.arange(*band) + shift[0], np.arange(*samples) + shift[1], height[rows])
        lat[rows], lon[rows] = found.lat, found.lon
    return _located(lat, lon, height)


def lat_lon_hgt_from_files(
    *, coordinates: str, heights: str, width: int, lines: Span, samples: Span
) -> tuple[Array, Array, Array, list[float]]:
    """Return where on Earth a block of pixels is, as GAMMA's pt2geo has written it.

    Parameters
    ----------
    coordinates, heights
        Big-endian files of (longitude, latitude) pairs in float64, degrees, and of heights in float32, m.
    width
        Samples in a line.
    lines, samples
        The block, pixels.

    Returns
    -------
    lat, lon, hgt, extent
        As `lat_lon_hgt_block`; nan where both coordinates are 0.
    """
    pairs = read_block(coordinates, "DOUBLE_PAIR", width, lines, samples)
    lon, lat = pairs[..., 0].copy(), pairs[..., 1].copy()
    nowhere = (lon == 0) & (lat == 0)
    lon[nowhere] = lat[nowhere] = np.nan
    return _located(lat, lon, read_block(heights, "FLOAT", width, lines, samples))


def look_vector_block(
    *, hgt: str, byte_order: ByteOrder, lines: Span, samples: Span, scene: Scene
) -> tuple[Array, Array]:
    """Return the direction from a block of pixels to the sensor, from heights and the orbit.

    Parameters
    ----------
    hgt, byte_order, lines, samples, scene
        As in `lat_lon_hgt_block`.

    Returns
    -------
    theta, phi
        Elevation above the horizon and orientation (0 east, pi/2 north), radians, (lines, samples), float32; nan where
        the height is missing.
    """
    height = read_block(hgt, "FLOAT", scene.shape[1], lines, samples, byte_order)
    theta, phi = np.empty(height.shape, np.float32), np.empty(height.shape, np.float32)
    for band in _bands(lines):
        rows, these = slice(band[0] - lines[0], band[1] - lines[0]), np.arange(*band)
        points = geometry.ground(scene, these, np.arange(*samples), height[rows])
        theta[rows], phi[rows] = geometry.look_angles(scene, these, points)
    return theta, phi


def lookup_extent(*, lt: str, width: int, lines: Span) -> list[float]:
    """Return the part of the radar image that lines of a lookup table point into.

    Parameters
    ----------
    lt, width
        Lookup table, complex: range in the real and azimuth in the imaginary part; and its width.
    lines
        Lines of the table.

    Returns
    -------
    list
        First and last azimuth, first and last range, pixels; nan where the lines point nowhere.
    """
    azimuth, distance = _lookup(lt, width, lines)
    if not np.any(np.isfinite(azimuth)):
        return [float("nan")] * 4
    extremes = (np.nanmin(azimuth), np.nanmax(azimuth), np.nanmin(distance), np.nanmax(distance))
    return [float(value) for value in extremes]


def look_vector_from_map(
    *, theta: str, phi: str, lt: str, width: int, bands: Sequence[Span], lines: Span, samples: Span
) -> tuple[Array, Array]:
    """Resample look vectors from map to radar geometry with a lookup table.

    The table puts the pixels of the map at points of the radar image; each cell of the map is two triangles there, in
    which values are interpolated linearly. The orientation is interpolated by its cosine and sine, so that its step
    from pi to -pi does no harm. Where slopes fold the map onto itself, the cell later in the map counts.

    Parameters
    ----------
    theta, phi
        Map-geometry files of elevation and orientation, float, radians. Elevation 0 is missing; orientation 0 is east.
    lt, width
        Lookup table as in `lookup_extent`, and the width of all three files.
    bands
        Lines of the map that may reach the block, first and last (exclusive); a band ends with the first line of the
        next.
    lines, samples
        The block of the radar image, pixels.

    Returns
    -------
    theta, phi
        radians, (lines, samples), float32; nan where no cell reaches or a corner of it is missing.
    """
    found = np.full((lines[1] - lines[0], samples[1] - samples[0], 3), np.nan)
    for band in bands:
        azimuth, distance = _lookup(lt, width, band)
        elevation = read_block(theta, "FLOAT", width, band).astype(np.float64)
        orientation = read_block(phi, "FLOAT", width, band).astype(np.float64)
        elevation[np.abs(elevation) < TINY] = np.nan
        values = np.stack([elevation, np.cos(orientation), np.sin(orientation)], axis=-1)
        missing = ~np.all(np.isfinite(values), axis=-1)
        azimuth[missing] = np.nan
        _cpu.rasterize(azimuth, distance, values, lines[0], samples[0], found)
    return found[..., 0].astype(np.float32), np.arctan2(found[..., 2], found[..., 1]).astype(np.float32)


def look_vector_from_files(
    *, theta: str, cosine: str, sine: str, width: int, lines: Span, samples: Span
) -> tuple[Array, Array]:
    """Return a block of look vectors that GAMMA's geocode has resampled.

    Parameters
    ----------
    theta, cosine, sine
        Big-endian radar-geometry files of the elevation, radians, and of cosine and sine of the orientation; float.
    width
        Samples in a line.
    lines, samples
        The block, pixels.

    Returns
    -------
    theta, phi
        radians, (lines, samples), float32; nan where theta is 0.
    """
    elevation = read_block(theta, "FLOAT", width, lines, samples)
    east, north = (read_block(path, "FLOAT", width, lines, samples) for path in (cosine, sine))
    elevation[np.abs(elevation) < TINY] = np.nan
    orientation = np.arctan2(north, east)
    orientation[np.isnan(elevation)] = np.nan
    return elevation, orientation


def slant_range(*, near_range: float, spacing: float, lines: Span, samples: Span, dtype: str) -> Array:
    """Return the slant range of a block of pixels, ``near_range + j spacing``.

    Parameters
    ----------
    near_range, spacing
        m.
    lines, samples
        The block, pixels.
    dtype
        float32 or float64.

    Returns
    -------
    array
        m, (lines, samples); computed in float64.
    """
    row = near_range + np.arange(*samples, dtype=np.float64) * spacing
    return np.broadcast_to(row.astype(dtype), (lines[1] - lines[0], len(row))).copy()


def _bands(lines: Span) -> list[Span]:
    return [(start, min(start + BAND_LINES, lines[1])) for start in range(*lines, BAND_LINES)]


def _lookup(lt: str, width: int, lines: Span) -> tuple[Array, Array]:
    """Return azimuth and range of lines of a lookup table, float64; nan where it is 0 or not finite."""
    table = read_block(lt, "FCOMPLEX", width, lines)
    azimuth, distance = table.imag.astype(np.float64), table.real.astype(np.float64)
    nowhere = ~(np.isfinite(azimuth) & np.isfinite(distance)) | ((azimuth == 0) & (distance == 0))
    azimuth[nowhere] = distance[nowhere] = np.nan
    return azimuth, distance


def _located(lat: Array, lon: Array, height: Array) -> tuple[Array, Array, Array, list[float]]:
    """Return coordinates and heights, the heights nan where there are no coordinates, and the extent."""
    is_known = np.isfinite(lat) & np.isfinite(lon)
    height = np.where(is_known, height, np.float32(np.nan)).astype(np.float32)
    if not is_known.any():
        return lat, lon, height, [float("nan")] * 4
    extremes = (np.nanmin(lat), np.nanmax(lat), np.nanmin(lon), np.nanmax(lon))
    return lat, lon, height, [float(value) for value in extremes]
