"""What the tasks of `moraine simulate` do: the map, the geometry, the ground, and all images of a band of lines."""

from __future__ import annotations

from itertools import pairwise
from math import pi
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_load.simulation import _cpu
from moraine_load.simulation.covers import COVERS, WATER
from moraine_load.simulation.ground import (
    coherence,
    coherent_parts,
    displacement,
    ground,
    ground_axes,
    remaining,
)
from moraine_load.simulation.random_fields import Field, Float64, Purpose, smooth_field, white_lines
from moraine_load.simulation.scene import AZIMUTH_BANDWIDTH, RANGE_BANDWIDTH, WAVELENGTH, Scene, meters_per_degree

if TYPE_CHECKING:
    from collections.abc import Iterator

HALF = 4
"""Half the length, without the middle, of the filters that limit the bandwidth, in pixels."""

TO_PHASE = 4 * pi / WAVELENGTH
"""Phase of a meter of range there and back, rad/m."""

Complex64 = np.ndarray[Any, np.dtype[np.complex64]]
Float32 = np.ndarray[Any, np.dtype[np.float32]]


def terrain(scene: Scene) -> tuple[Field, tuple[float, float, float, float]]:
    """Return the terrain as a field, and how degrees become its knots: north, west, knots per degree."""
    segment = scene.segment
    per_lat, per_lon = meters_per_degree(scene.lat)
    box = (0.0, 0.0, segment.nlines * segment.post * per_lat, segment.width * segment.post * per_lon)
    field = smooth_field(scene.seed, Purpose.TERRAIN, 0, box, coarsest=4000.0, finest=125.0, exponent=4.0)
    north = segment.north - field.top / per_lat
    west = segment.west + field.left / per_lon
    return field, (north, west, per_lat / field.spacing, per_lon / field.spacing)


def see_map(first: int, last: int, *, scene: Scene) -> tuple[Float32, Complex64, Float32, Float32]:
    """Return some lines of the map segment.

    Parameters
    ----------
    first, last
        Lines, the last one excluded.
    scene
        What is simulated.

    Returns
    -------
    hgt
        Heights above the ellipsoid, float32, m.
    pixel
        Where each post is in the reference image: range sample + 1j azimuth line, complex64.
    theta, phi
        Elevation and orientation of the sensor seen from the post, float32, rad.
    """
    field, knot = terrain(scene)
    segment = scene.segment
    lats = np.array([segment.lat(line) for line in range(first, last)])
    lons = np.array([segment.lon(column) for column in range(segment.width)])
    seen: tuple[Float32, Complex64, Float32, Float32] = _cpu.see_posts(
        scene.orbits[scene.reference],
        lats,
        lons,
        scene.time(0),
        scene.line_time,
        scene.near_range,
        scene.range_spacing,
        field.weights,
        knot,
        scene.mean_height,
        scene.strength.relief,
    )
    return seen


def see_ground(first: int, last: int, *, scene: Scene) -> list[Any]:
    """Return some lines of the reference geometry and of what lies there.

    Parameters
    ----------
    first, last
        Lines, the last one excluded.
    scene
        What is simulated.

    Returns
    -------
    lat, lon
        float64, degrees; nan where no ground is found (layover of steep terrain).
    hgt
        float32, m above the ellipsoid.
    theta, phi
        Elevation and orientation of the sensor seen from the ground, float32, rad.
    hgt
        The same once more, for the file in GAMMA format.
    cover
        Class of the ground, uint8.
    is_water, is_ps
        bool.
    ps_amplitude
        Amplitude of persistent scatterers, float32, nan where there is none.
    """
    field, knot = terrain(scene)
    lines = range(first, last)
    shape = (len(lines), scene.width)
    lat, lon = np.empty(shape), np.empty(shape)
    hgt, theta, phi = (np.empty(shape, np.float32) for _ in range(3))
    away = -(scene.nlines - 1) / 2, -(scene.width - 1) / 2
    guess = tuple(
        middle + away[0] * slope[0] + away[1] * slope[1]
        for middle, slope in ((scene.lat, scene.lat_slope), (scene.lon, scene.lon_slope))
    )
    _cpu.locate_pixels(
        scene.orbits[scene.reference],
        first,
        _times(scene, lines),
        scene.near_range + scene.range_spacing * np.arange(scene.width),
        (*guess, scene.lat_slope[0], scene.lon_slope[0], scene.lat_slope[1], scene.lon_slope[1]),
        field.weights,
        knot,
        scene.mean_height,
        scene.strength.relief,
        lat,
        lon,
        hgt,
        theta,
        phi,
    )
    here = ground(scene, lines)
    is_ps = here.ps != 0
    # rounded to what was drawn: the modulus of its complex number has lost a digit
    amplitude = np.where(is_ps, np.rint(np.abs(here.ps)), np.float32(np.nan)).astype(np.float32)
    return [lat, lon, hgt, theta, phi, hgt, here.cover, here.cover == WATER, is_ps, amplitude]


def cover_coherence(*, scene: Scene) -> Float32:
    """Return the coherence matrices of all covers; see `coherence`."""
    return coherence(scene)


def see_images(
    lat: Float64, lon: Float64, hgt: Float32, *, scene: Scene, first: int, image_format: str
) -> list[np.ndarray[Any, Any]]:
    """Return some lines of all images, and what their phases are made of.

    Parameters
    ----------
    lat, lon, hgt
        Of the pixels, ``(lines, width)``, degrees and m.
    scene
        What is simulated.
    first
        Number of the first line.
    image_format
        ``FCOMPLEX``, or ``SCOMPLEX`` for rounded int16 pairs.

    Returns
    -------
    images
        One array for each, complex64 ``(lines, width)`` or int16 ``(lines, width, 2)``: the phase is minus
        4 pi / lambda times the range, less that of the reference image.
    deformation, atmosphere, phase
        float32 ``(lines, width, nimages)``, rad: what motion (toward the satellite is positive) and what the air add
        to an image; and the phase of the flattened image relative to the reference, with what wrong orbits leave.
    """
    lines = range(first, first + lat.shape[0])
    shape = (scene.nimages, *lat.shape)
    deformation, atmosphere, phase = (np.empty(shape, np.float32) for _ in range(3))
    images: list[np.ndarray[Any, Any]] = []
    reference = scene.reference
    base = _air(scene, lines, reference)
    for number, (motion, air, true, told, image) in enumerate(_images(scene, lines, _cpu.positions(lat, lon, hgt))):
        deformation[number], atmosphere[number] = motion, air
        phase[number] = motion + (air - base) + TO_PHASE * (told - true)
        images.append(_stored(image, image_format))
    return [*images, *(np.moveaxis(stack, 0, 2) for stack in (deformation, atmosphere, phase))]


def _images(
    scene: Scene, lines: range, where: Float64
) -> Iterator[tuple[Float64, Float64, Float64, Float64, Complex64]]:
    """Yield for each image motion (rad), air (rad), true and told excess of range (m), and the image of some lines."""
    halo = range(max(lines.start - HALF, 0), min(lines.stop + HALF, scene.nlines))
    around = ground(scene, halo)
    inner = slice(lines.start - halo.start, lines.stop - halo.start)
    cover = around.cover[inner]
    filters = low_pass(AZIMUTH_BANDWIDTH), low_pass(RANGE_BANDWIDTH)
    steady = _spread(around.ps, lines.start - halo.start, halo.stop - lines.stop, filters)

    def speckle(purpose: Purpose, image: int) -> Complex64:
        rows = range(lines.start, lines.stop + 2 * HALF)
        noise = white_lines(scene.seed, purpose, image, rows, scene.width + 2 * HALF)
        values: Complex64 = _cpu.band_limited(noise, *filters).view(np.complex64)
        return values

    times = _times(scene, lines)
    base = _cpu.slant_ranges(scene.orbits[scene.reference], where, times)
    rate, swing = displacement(scene, lines)
    lasting, state = speckle(Purpose.LASTING, 0), np.zeros(cover.shape, np.complex64)
    tables = _tables(scene)
    for number, day in enumerate(scene.days):
        years = day / 365.25
        motion = TO_PHASE * (rate * years + swing * np.sin(2 * pi * years))
        air = _air(scene, lines, number)
        true = _cpu.slant_ranges(scene.orbits[number], where, times) - base
        told = true
        if scene.told[number] != scene.orbits[number]:
            told = _cpu.slant_ranges(scene.told[number], where, times) - base
        image = np.empty(cover.shape, np.complex64)
        _cpu.next_image(
            cover,
            state,
            speckle(Purpose.CHANGING, number),
            speckle(Purpose.NOISE, number),
            lasting,
            steady,
            motion + air - TO_PHASE * true,
            (tables[0][number], tables[1][number], tables[2][number]),
            image,
        )
        yield motion, air, true, told, image


def _tables(scene: Scene) -> tuple[Float32, Float32, Float32]:
    """Return for each image and cover how much of the scatterers is kept and renewed, and their parts in the image."""
    days, coherent = scene.days, coherent_parts(scene)
    keep = np.array([remaining(scene, day - before) for before, day in pairwise(days)])
    keep = np.vstack([np.zeros((1, len(COVERS))), keep.reshape(-1, len(COVERS))])
    amplitude = np.array([cover.amplitude for cover in COVERS])
    lasting = np.array([cover.lasting for cover in COVERS])
    parts = np.empty((scene.nimages, 3, len(COVERS)), np.float32)
    for number in range(scene.nimages):
        signal = amplitude * coherent[:, number]
        parts[number, 0] = signal * np.sqrt(lasting)
        parts[number, 1] = signal * np.sqrt(1 - lasting)
        parts[number, 2] = np.sqrt(np.maximum(amplitude**2 - signal**2, 0) + scene.strength.noise**2)
    return keep.astype(np.float32), np.sqrt(1 - keep**2).astype(np.float32), parts


def low_pass(bandwidth: float) -> Float32:
    """Return a low-pass filter of unit energy: a sinc under a Hann window.

    Parameters
    ----------
    bandwidth
        What passes, as a part of the sampling frequency.
    """
    lag = np.arange(-HALF, HALF + 1)
    taps = np.sinc(bandwidth * lag) * np.cos(pi * lag / (2 * HALF + 2)) ** 2
    return np.asarray(taps / np.sqrt(np.sum(taps**2)), dtype=np.float32)


def _spread(ps: Complex64, above: int, below: int, filters: tuple[Float32, Float32]) -> Complex64:
    """Return point scatterers as the radar shows them, with their amplitude in the middle of each."""
    padded = np.pad(ps, ((HALF - above, HALF - below), (HALF, HALF)))
    azimuth, range_ = (taps / taps[HALF] for taps in filters)
    spread: Complex64 = _cpu.band_limited(padded.view(np.float32), azimuth, range_).view(np.complex64)
    return spread


def _air(scene: Scene, lines: range, number: int) -> Float64:
    """Return the phase of the atmosphere of an image, rad: a power law of exponent 11/3 (Hanssen, 2001, below 2 km)."""
    field = smooth_field(
        scene.seed,
        Purpose.ATMOSPHERE,
        number,
        (0, 0, *scene.extent),
        coarsest=8000.0,
        finest=125.0,
        exponent=11 / 3,
    )
    return scene.strength.atmosphere * field.on_grid(*ground_axes(scene, lines))


def _times(scene: Scene, lines: range) -> Float64:
    return np.array([scene.time(line) for line in lines])


def _stored(image: Complex64, image_format: str) -> np.ndarray[Any, Any]:
    """Return an image in the numbers of its file."""
    if image_format == "FCOMPLEX":
        return image
    pairs = np.rint(image.view(np.float32)).clip(-32767, 32767).astype(np.int16)
    return pairs.reshape(*image.shape, 2)
