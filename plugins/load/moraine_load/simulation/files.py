"""The text files of a simulated stack: parameters of images, map and registration, and what the truth is made of."""

from __future__ import annotations

from math import atan2, ceil, cos, degrees, hypot, sin, sqrt
from typing import TYPE_CHECKING

from moraine_load.par import DemPar, DiffPar, SlcPar, StateVectors
from moraine_load.simulation.covers import COVERS, PS_AMPLITUDES, PS_CHANCES
from moraine_load.simulation.orbit import FLATTENING, SEMI_MAJOR, heading_of, state
from moraine_load.simulation.scene import AZIMUTH_BANDWIDTH, FREQUENCY, INCIDENCE, LIGHT, RANGE_BANDWIDTH, WAVELENGTH

if TYPE_CHECKING:
    from moraine_load.simulation.scene import Scene

INTERVAL = 10.0
"""Between state vectors, s."""

NOON = 61200.0
"""Time of day of the middle of the scene, s, to within what state vectors are out of step."""


def slc_par(scene: Scene, image: int, image_format: str) -> str:
    """Return the text of the parameter file of an image."""
    orbit = scene.told[image]
    # state vectors come at round times of the day, scenes do not
    center = NOON + (image * 0.7390625) % 1.0 * INTERVAL
    half = ceil((scene.nlines / 2 * scene.line_time + 2 * INTERVAL) / INTERVAL) + 1
    first = NOON - half * INTERVAL
    states = [state(orbit, first + n * INTERVAL - center) for n in range(2 * half + 2)]
    x, y, z = state(orbit, 0.0)[:3]
    below = atan2(z, hypot(x, y))
    radius = SEMI_MAJOR * (1 - FLATTENING) / sqrt((sin(below)) ** 2 + ((1 - FLATTENING) * cos(below)) ** 2)
    last = scene.width - 1
    return SlcPar(
        title=f"simulated by moraine, seed {scene.seed}",
        sensor="SIMULATED",
        date=scene.dates[image],
        start_time=center + scene.time(0),
        center_time=center,
        end_time=center + scene.time(scene.nlines - 1),
        azimuth_line_time=scene.line_time,
        line_header_size=0,
        range_samples=scene.width,
        azimuth_lines=scene.nlines,
        range_looks=1,
        azimuth_looks=1,
        image_format=image_format,
        image_geometry="SLANT_RANGE",
        range_scale_factor=1.0,
        azimuth_scale_factor=1.0,
        center_latitude=scene.lat,
        center_longitude=scene.lon,
        heading=heading_of(orbit, 0.0),
        range_pixel_spacing=scene.range_spacing,
        azimuth_pixel_spacing=scene.azimuth_spacing,
        near_range_slc=scene.near_range,
        center_range_slc=scene.near_range + last / 2 * scene.range_spacing,
        far_range_slc=scene.near_range + last * scene.range_spacing,
        incidence_angle=degrees(INCIDENCE),
        azimuth_deskew="ON",
        azimuth_angle=90.0,
        radar_frequency=FREQUENCY,
        adc_sampling_rate=LIGHT / (2 * scene.range_spacing),
        chirp_bandwidth=RANGE_BANDWIDTH * LIGHT / (2 * scene.range_spacing),
        prf=1 / scene.line_time,
        azimuth_proc_bandwidth=AZIMUTH_BANDWIDTH / scene.line_time,
        sar_to_earth_center=sqrt(x * x + y * y + z * z),
        earth_radius_below_sensor=radius,
        earth_semi_major_axis=SEMI_MAJOR,
        earth_semi_minor_axis=SEMI_MAJOR * (1 - FLATTENING),
        orbit=StateVectors(first, INTERVAL, tuple(s[:3] for s in states), tuple(s[3:] for s in states)),
    ).to_text()


def dem_par(scene: Scene) -> str:
    """Return the text of the parameter file of the map segment."""
    segment = scene.segment
    return DemPar(
        title="simulated by moraine",
        projection="EQA",
        data_format="REAL*4",
        hgt_offset=0.0,
        scale=1.0,
        width=segment.width,
        nlines=segment.nlines,
        corner_lat=segment.north,
        corner_lon=segment.west,
        post_lat=-segment.post,
        post_lon=segment.post,
        ellipsoid_name="WGS 84",
        ellipsoid_ra=SEMI_MAJOR,
        ellipsoid_reciprocal_flattening=1 / FLATTENING,
        datum_name="WGS 1984",
        datum_shift_dx=0.0,
        datum_shift_dy=0.0,
        datum_shift_dz=0.0,
        datum_scale_m=0.0,
        datum_rotation_alpha=0.0,
        datum_rotation_beta=0.0,
        datum_rotation_gamma=0.0,
    ).to_text()


def diff_par(scene: Scene) -> str:
    """Return the text of the registration of the reference image and its simulation from the map: they agree."""
    nothing = (0.0,) * 6
    return DiffPar(
        title="simulated by moraine",
        initial_range_offset=0.0,
        initial_azimuth_offset=0.0,
        range_samp_1=scene.width,
        az_samp_1=scene.nlines,
        range_pixel_spacing_1=scene.range_spacing,
        az_pixel_spacing_1=scene.azimuth_spacing,
        range_samp_2=scene.width,
        az_samp_2=scene.nlines,
        range_pixel_spacing_2=scene.range_spacing,
        az_pixel_spacing_2=scene.azimuth_spacing,
        range_offset_polynomial=nothing,
        azimuth_offset_polynomial=nothing,
    ).to_text()


def truth_toml(scene: Scene) -> str:
    """Return what the truth is made of, as TOML."""
    strength = scene.strength
    facts = {
        "dates": list(scene.dates),
        "reference": scene.dates[scene.reference],
        "seed": scene.seed,
        "radar_wavelength": WAVELENGTH,
        "relief": strength.relief,
        "subsidence": strength.subsidence,
        "seasonal": strength.seasonal,
        "atmosphere": strength.atmosphere,
        "noise": strength.noise,
        "range_bandwidth": RANGE_BANDWIDTH,
        "azimuth_bandwidth": AZIMUTH_BANDWIDTH,
        "ps_amplitudes": list(PS_AMPLITUDES),
        "ps_chances": list(PS_CHANCES),
    }
    lines = [f"{key} = {_toml(value)}" for key, value in facts.items()]
    for number, cover in enumerate(COVERS):
        lines += ["", "[[cover]]", f"class = {number}"]
        lines += [f"{key} = {_toml(value)}" for key, value in vars(cover).items()]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    return repr(value).replace("'", '"')
