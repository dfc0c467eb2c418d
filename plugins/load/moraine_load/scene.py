"""The geometry of one image: when its lines were taken, how far its samples are, and along which orbit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moraine_core.errors import raise_problems
from moraine_load.par import ParError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moraine_core import Block, MoraineError
    from moraine_load.par import SlcPar, StateVectors

SPEED_OF_LIGHT = 299792458.0
"""m/s."""

FEWEST_VECTORS = 4
"""State vectors that the interpolation of an orbit is made of."""

BAND_LINES = 32
"""Lines of a block whose geometry a task has in memory at a time."""

BAND_BYTES = 96
"""Bytes that a pixel of these lines takes: coordinates, phase, heights and samples, raw and converted."""

_NEEDED = (
    "start_time",
    "azimuth_line_time",
    "range_samples",
    "azimuth_lines",
    "near_range_slc",
    "range_pixel_spacing",
    "radar_frequency",
    "earth_semi_major_axis",
    "earth_semi_minor_axis",
)


@dataclass(frozen=True)
class Scene:
    """What the geometry of an image needs; small, and the same for equal parameter files.

    Attributes
    ----------
    shape
        Lines and width.
    start_time, line_time
        Time of the center of line 0, and from line to line, s.
    near_range, range_spacing
        Slant range of the center of sample 0, and from sample to sample, m.
    wavelength
        m.
    side
        1 for right looking, -1 for left looking.
    semi_major, semi_minor
        Axes of the ellipsoid, m.
    orbit
        State vectors.
    """

    shape: tuple[int, int]
    start_time: float
    line_time: float
    near_range: float
    range_spacing: float
    wavelength: float
    side: int
    semi_major: float
    semi_minor: float
    orbit: StateVectors


def scene_of(par: SlcPar) -> Scene:
    """Return the geometry of an image from its parameter file.

    Raises
    ------
    ParError
        The file lacks something, has too few state vectors, none around the image, or lines not at zero Doppler.
    """
    par.need(*_NEEDED)
    check_slant_range(par)
    if par.azimuth_deskew not in ("", "ON"):
        msg = f"{par.path}: azimuth_deskew is {par.azimuth_deskew}; expected ON, an image with zero-Doppler lines"
        raise ParError(msg)
    orbit = par.orbit
    if orbit is None or orbit.count < FEWEST_VECTORS:
        count = 0 if orbit is None else orbit.count
        msg = f"{par.path}: number_of_state_vectors is {count}; expected at least {FEWEST_VECTORS}"
        raise ParError(msg)
    if orbit.interval <= 0:
        msg = f"{par.path}: state_vector_interval is {orbit.interval}; expected a positive time in s"
        raise ParError(msg)
    frequency, lines, width = _positive(par, "radar_frequency", "azimuth_lines", "range_samples")
    line_time, spacing = _positive(par, "azimuth_line_time", "range_pixel_spacing")
    start = _number(par, "start_time")
    end = start + (lines - 1) * line_time
    if start < orbit.first_time or end > orbit.last_time:
        msg = (
            f"{par.path}: the image lasts from {start} to {end:.6f} s, its state vectors from {orbit.first_time} to "
            f"{orbit.last_time} s; expected state vectors before and after the image"
        )
        raise ParError(msg)
    return Scene(
        shape=(int(lines), int(width)),
        start_time=start,
        line_time=line_time,
        near_range=_number(par, "near_range_slc"),
        range_spacing=spacing,
        wavelength=SPEED_OF_LIGHT / frequency,
        side=-1 if (par.azimuth_angle or 90.0) < 0 else 1,
        semi_major=_number(par, "earth_semi_major_axis"),
        semi_minor=_number(par, "earth_semi_minor_axis"),
        orbit=orbit,
    )


def check_slant_range(par: SlcPar) -> None:
    """Check that the samples of an image are equally far apart in slant range.

    Raises
    ------
    ParError
        They are in ground range.
    """
    if par.image_geometry not in ("", "SLANT_RANGE"):
        msg = f"{par.path}: image_geometry is {par.image_geometry}; expected SLANT_RANGE"
        raise ParError(msg)


def scenes_of(pars: Mapping[str, SlcPar]) -> dict[str, Scene]:
    """Return the geometry of several images by name; what is wrong with any of them is raised together."""
    scenes: dict[str, Scene] = {}
    problems: list[MoraineError] = []
    for name, par in pars.items():
        try:
            scenes[name] = scene_of(par)
        except ParError as error:
            problems.append(error)
    raise_problems(problems)
    return scenes


def band_bytes(block: Block) -> int:
    """Return the memory in bytes, besides its results, of a task that computes the geometry of a block."""
    width: int = block[1].stop - block[1].start
    return BAND_LINES * width * BAND_BYTES


def spans(block: Block) -> dict[str, tuple[int, int]]:
    """Return the keywords ``lines`` and ``samples`` of a block, each first and last (exclusive)."""
    return {name: (part.start, part.stop) for name, part in zip(("lines", "samples"), block, strict=True)}


def _number(par: SlcPar, name: str) -> float:
    return float(getattr(par, name))


def _positive(par: SlcPar, *names: str) -> list[float]:
    values = [_number(par, name) for name in names]
    for name, value in zip(names, values, strict=True):
        if not value > 0:
            msg = f"{par.path}: {name} is {value:g}; expected a positive number"
            raise ParError(msg)
    return values
