"""GAMMA parameter files: reading and writing those of SLC and MLI images, of DEM segments and of registrations (DIFF).

A parameter file is a heading and lines ``key: value[ value ...][ unit ...]``. A key is the whole text before the first
colon, so a title that happens to contain a key does no harm. Keys this module has no name for are kept as text, and
written back. Reading loads neither numpy nor anything else that is heavy: declarations need these files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from moraine_core import MoraineError
from moraine_core.errors import StoreNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Triple = tuple[float, float, float]
"""x, y, z in an Earth-fixed frame."""


class ParError(MoraineError, ValueError):
    """A parameter file does not say what it should; the message names file, key, found and expected."""


@dataclass(frozen=True)
class StateVectors:
    """Orbit of a sensor at equal time steps, Earth-fixed.

    Attributes
    ----------
    first_time
        Time of the first vector, seconds of the day of the image.
    interval
        Time between vectors, s.
    positions
        m, one triple for each vector.
    velocities
        m/s, one triple for each vector.
    """

    first_time: float
    interval: float
    positions: tuple[Triple, ...]
    velocities: tuple[Triple, ...]

    @property
    def count(self) -> int:
        """Number of vectors."""
        return len(self.positions)

    @property
    def last_time(self) -> float:
        """Time of the last vector, seconds of the day of the image."""
        return self.first_time + (self.count - 1) * self.interval


@dataclass(frozen=True)
class _Key:
    """How a field is called in the file, with its unit and number format."""

    name: str
    kind: type | str
    unit: str = ""


def _key(kind: type | str, unit: str = "", *, name: str = "", default: Any = None) -> Any:
    """Return a dataclass field that is read from a key of a parameter file."""
    return field(default=default, metadata={"key": name, "kind": kind, "unit": unit})


_SELF = TypeVar("_SELF", bound="_Par")


@dataclass(frozen=True, kw_only=True)
class _Par:
    """What all parameter files share: a file they were read from, a title, and keys kept as text."""

    HEADING: ClassVar[str] = ""

    path: str = field(default="", compare=False)
    title: str = _key("text", default="")
    others: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def keys(cls) -> dict[str, _Key]:
        """Return the keys of the file by field, in the order in which they are written."""
        return {
            f.name: _Key(f.metadata["key"] or f.name, f.metadata["kind"], f.metadata["unit"])
            for f in fields(cls)
            if "kind" in f.metadata
        }

    @classmethod
    def _from_entries(cls: type[_SELF], path: str, entries: dict[str, str]) -> _SELF:
        values: dict[str, Any] = {}
        for name, key in cls.keys().items():
            if key.name in entries:
                values[name] = _value(path, key, entries.pop(key.name))
        return cls(path=path, others=entries, **values)

    def need(self, *names: str) -> None:
        """Check that the file has these fields.

        Raises
        ------
        ParError
            Some are missing; all of them are named.
        """
        keys = self.keys()
        missing = [keys[name].name if name in keys else name for name in names if getattr(self, name) in (None, "")]
        if missing:
            msg = f"{self.path}: {', '.join(missing)} not found; expected a line 'key: value' for each"
            raise ParError(msg)

    def to_text(self) -> str:
        """Return the text of a parameter file that says the same."""
        lines = [self.HEADING, "", *self._lines(), *(f"{key}: {text}" for key, text in self.others.items())]
        return "\n".join(line.rstrip() for line in lines) + "\n"

    def _lines(self) -> list[str]:
        return [_line(key, getattr(self, name)) for name, key in self.keys().items() if getattr(self, name) is not None]


@dataclass(frozen=True, kw_only=True)
class SlcPar(_Par):
    """Parameter file of an image in slant range, SLC or MLI; what a short form leaves out is None.

    Attributes
    ----------
    date
        ``YYYYMMDD``; the time of day that some files add is dropped.
    start_time, center_time, end_time
        Of the centers of the first, middle and last line, seconds of the day.
    azimuth_line_time
        Time between lines, s.
    range_samples, azimuth_lines
        Width and lines.
    range_looks, azimuth_looks
        Looks of the pixels.
    image_format
        ``FCOMPLEX``, ``SCOMPLEX`` or ``FLOAT``.
    range_pixel_spacing, azimuth_pixel_spacing
        m, in slant range and on the ground.
    near_range_slc, center_range_slc, far_range_slc
        Slant range of the centers of the first, middle and last sample, m.
    center_latitude, center_longitude, heading, incidence_angle
        degrees; heading of the flight, clockwise from north.
    azimuth_deskew
        ``ON`` where lines are at zero Doppler.
    azimuth_angle
        90 for right looking, -90 for left looking, degrees.
    radar_frequency
        Hz.
    prf
        Pulses per second, Hz.
    sar_to_earth_center, earth_radius_below_sensor, earth_semi_major_axis, earth_semi_minor_axis
        m.
    orbit
        State vectors; None where the file has none.
    others
        Further keys, as text.
    """

    HEADING: ClassVar[str] = "Gamma Interferometric SAR Processor (ISP) - Image Parameter File"

    sensor: str = _key("text", default="")
    date: str = _key("date", default="")
    start_time: float | None = _key(float, "s")
    center_time: float | None = _key(float, "s")
    end_time: float | None = _key(float, "s")
    azimuth_line_time: float | None = _key(float, "s")
    line_header_size: int | None = _key(int)
    range_samples: int | None = _key(int)
    azimuth_lines: int | None = _key(int)
    range_looks: int | None = _key(int)
    azimuth_looks: int | None = _key(int)
    image_format: str = _key("text", default="")
    image_geometry: str = _key("text", default="")
    range_scale_factor: float | None = _key(float)
    azimuth_scale_factor: float | None = _key(float)
    center_latitude: float | None = _key(float, "degrees")
    center_longitude: float | None = _key(float, "degrees")
    heading: float | None = _key(float, "degrees")
    range_pixel_spacing: float | None = _key(float, "m")
    azimuth_pixel_spacing: float | None = _key(float, "m")
    near_range_slc: float | None = _key(float, "m")
    center_range_slc: float | None = _key(float, "m")
    far_range_slc: float | None = _key(float, "m")
    incidence_angle: float | None = _key(float, "degrees")
    azimuth_deskew: str = _key("text", default="")
    azimuth_angle: float | None = _key(float, "degrees")
    radar_frequency: float | None = _key(float, "Hz")
    adc_sampling_rate: float | None = _key(float, "Hz")
    chirp_bandwidth: float | None = _key(float, "Hz")
    prf: float | None = _key(float, "Hz")
    azimuth_proc_bandwidth: float | None = _key(float, "Hz")
    receiver_gain: float | None = _key(float, "dB")
    calibration_gain: float | None = _key(float, "dB")
    sar_to_earth_center: float | None = _key(float, "m")
    earth_radius_below_sensor: float | None = _key(float, "m")
    earth_semi_major_axis: float | None = _key(float, "m")
    earth_semi_minor_axis: float | None = _key(float, "m")
    orbit: StateVectors | None = None

    @classmethod
    def _from_entries(cls, path: str, entries: dict[str, str]) -> SlcPar:
        orbit = _orbit_of(path, entries)
        return replace(super()._from_entries(path, entries), orbit=orbit)

    def _lines(self) -> list[str]:
        return [*super()._lines(), *(_orbit_lines(self.orbit) if self.orbit else ())]


@dataclass(frozen=True, kw_only=True)
class DemPar(_Par):
    """Parameter file of a DEM or map segment.

    Attributes
    ----------
    projection
        ``EQA`` for geographic coordinates.
    width, nlines
        Columns and lines of the segment.
    corner_lat, corner_lon
        Of the center of the upper left pixel, degrees; None where the projection has none.
    post_lat, post_lon
        From one pixel to the next, degrees; post_lat is negative.
    ellipsoid_ra, ellipsoid_reciprocal_flattening
        Semi-major axis, m, and 1/f.
    others
        Further keys, as text; the datum is among them.
    """

    HEADING: ClassVar[str] = "Gamma DIFF&GEO DEM/MAP parameter file"

    projection: str = _key("text", name="DEM_projection", default="")
    data_format: str = _key("text", default="")
    hgt_offset: float | None = _key(float, name="DEM_hgt_offset")
    scale: float | None = _key(float, name="DEM_scale")
    width: int | None = _key(int)
    nlines: int | None = _key(int)
    corner_lat: float | None = _key(float, "decimal degrees")
    corner_lon: float | None = _key(float, "decimal degrees")
    post_lat: float | None = _key(float, "decimal degrees")
    post_lon: float | None = _key(float, "decimal degrees")
    ellipsoid_name: str = _key("text", default="")
    ellipsoid_ra: float | None = _key(float, "m")
    ellipsoid_reciprocal_flattening: float | None = _key(float)
    datum_name: str = _key("text", default="")
    datum_shift_dx: float | None = _key(float, "m")
    datum_shift_dy: float | None = _key(float, "m")
    datum_shift_dz: float | None = _key(float, "m")
    datum_scale_m: float | None = _key(float)
    datum_rotation_alpha: float | None = _key(float, "arc-sec")
    datum_rotation_beta: float | None = _key(float, "arc-sec")
    datum_rotation_gamma: float | None = _key(float, "arc-sec")


@dataclass(frozen=True, kw_only=True)
class DiffPar(_Par):
    """Parameter file of the registration between an image and its simulation from a DEM.

    Attributes
    ----------
    range_samp_1, az_samp_1, range_samp_2, az_samp_2
        Width and lines of both images.
    range_pixel_spacing_1, az_pixel_spacing_1
        m.
    range_offset_polynomial, azimuth_offset_polynomial
        Offset of the second image, samples and lines, as coefficients of ``1, x, y, x y, x^2, y^2`` with range x and
        azimuth y.
    others
        Further keys, as text.
    """

    HEADING: ClassVar[str] = "Gamma DIFF&GEO Processing Parameters"

    initial_range_offset: float | None = _key(float)
    initial_azimuth_offset: float | None = _key(float)
    range_samp_1: int | None = _key(int)
    az_samp_1: int | None = _key(int)
    range_pixel_spacing_1: float | None = _key(float)
    az_pixel_spacing_1: float | None = _key(float)
    range_samp_2: int | None = _key(int)
    az_samp_2: int | None = _key(int)
    range_pixel_spacing_2: float | None = _key(float)
    az_pixel_spacing_2: float | None = _key(float)
    range_offset_polynomial: tuple[float, ...] | None = _key("numbers")
    azimuth_offset_polynomial: tuple[float, ...] | None = _key("numbers")


def read_slc_par(path: str | Path) -> SlcPar:
    """Read the parameter file of an SLC or MLI.

    Parameters
    ----------
    path
        The file; short forms that lack most keys are read as well.

    Raises
    ------
    StoreNotFoundError
        There is no such file.
    ParError
        It is no parameter file, or a value is not what its key takes.
    """
    return SlcPar._from_entries(str(path), read_entries(path))


def read_dem_par(path: str | Path) -> DemPar:
    """Read the parameter file of a DEM segment; errors as `read_slc_par`."""
    return DemPar._from_entries(str(path), read_entries(path))


def read_diff_par(path: str | Path) -> DiffPar:
    """Read the parameter file of a registration; errors as `read_slc_par`."""
    return DiffPar._from_entries(str(path), read_entries(path))


def write_par(path: str | Path, par: SlcPar | DemPar | DiffPar) -> None:
    """Write a parameter file; reading it gives an equal `par`, to the last bit of every number."""
    Path(path).write_text(par.to_text(), encoding="utf-8")


def read_entries(path: str | Path) -> dict[str, str]:
    """Return what follows each key of any parameter file, as text; lines without a colon are passed over.

    Raises
    ------
    StoreNotFoundError
        There is no such file.
    ParError
        It has no key at all, is not text, or says two different things under one key.
    """
    file = Path(path)
    if not file.is_file():
        msg = f"{file} does not exist; expected a GAMMA parameter file"
        raise StoreNotFoundError(msg)
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        msg = f"{file} is not text; expected a GAMMA parameter file with lines 'key: value'"
        raise ParError(msg) from None
    entries: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        name, rest = name.strip(), rest.strip()
        if not colon or not name or name.startswith("#"):
            continue
        if entries.setdefault(name, rest) != rest:
            msg = f"{file}: {name} is both {entries[name]!r} and {rest!r}; expected one value"
            raise ParError(msg)
    if not entries:
        msg = f"{file} has no line 'key: value'; expected a GAMMA parameter file"
        raise ParError(msg)
    return entries


# ------------------------------------------------------------------------------------------------ single values

_EXPECTED = {int: "a whole number", float: "a number", "date": "year month day", "numbers": "numbers"}


def _value(path: str, key: _Key, text: str) -> Any:
    """Return the value of a key from its text."""
    readers: dict[Any, Callable[[str], Any]] = {
        int: lambda words: int(words.split()[0]),
        float: lambda words: float(words.split()[0]),
        "text": str,
        "date": _date,
        "numbers": _numbers,
    }
    try:
        return readers[key.kind](text)
    except (ValueError, IndexError):
        msg = f"{path}: {key.name} is {text!r}; expected {_EXPECTED[key.kind]}"
        raise ParError(msg) from None


def _date(text: str) -> str:
    year, month, day = (int(word) for word in text.split()[:3])
    if not (1900 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= 31):
        raise ValueError
    return f"{year:04d}{month:02d}{day:02d}"


def _numbers(text: str) -> tuple[float, ...]:
    """Return the numbers at the beginning of a line; units follow."""
    numbers: list[float] = []
    for word in text.split():
        try:
            numbers.append(float(word))
        except ValueError:
            break
    if not numbers:
        raise ValueError
    return tuple(numbers)


def _line(key: _Key, value: Any) -> str:
    if key.kind == "date":
        value = f"{value[:4]} {value[4:6]} {value[6:]}" if value else ""
    elif key.kind == "numbers":
        value = "  ".join(map(repr, value))
    elif key.kind is float:
        value = repr(float(value))
    elif key.kind == "text":
        return f"{key.name + ':':<10} {value}"  # no unit may follow
    return f"{key.name + ':':<32} {value}   {key.unit}"


# ------------------------------------------------------------------------------------------------- state vectors


def _orbit_of(path: str, entries: dict[str, str]) -> StateVectors | None:
    """Take the state vectors out of the entries."""
    if "number_of_state_vectors" not in entries:
        return None
    count = _value(path, _Key("number_of_state_vectors", int), entries.pop("number_of_state_vectors"))
    times = {}
    for name in ("time_of_first_state_vector", "state_vector_interval"):
        if name not in entries:
            msg = f"{path}: {name} not found; expected it beside number_of_state_vectors"
            raise ParError(msg)
        times[name] = _value(path, _Key(name, float), entries.pop(name))
    triples = {
        part: tuple(_triple(path, f"state_vector_{part}_{number}", entries) for number in range(1, count + 1))
        for part in ("position", "velocity")
    }
    extra = [key for key in entries if re.fullmatch(r"state_vector_(position|velocity)_\d+", key)]
    if extra:
        msg = f"{path}: number_of_state_vectors is {count}, but there is {extra[0]}"
        raise ParError(msg)
    first, interval = times.values()
    return StateVectors(first, interval, triples["position"], triples["velocity"])


def _triple(path: str, name: str, entries: dict[str, str]) -> Triple:
    if name not in entries:
        msg = f"{path}: {name} not found; expected as many as number_of_state_vectors says"
        raise ParError(msg)
    x_y_z = _value(path, _Key(name, "numbers"), entries.pop(name))
    if len(x_y_z) != 3:
        msg = f"{path}: {name} has {len(x_y_z)} numbers; expected x, y and z"
        raise ParError(msg)
    return x_y_z  # type: ignore[no-any-return]


def _orbit_lines(orbit: StateVectors) -> Iterable[str]:
    yield f"{'number_of_state_vectors:':<32} {orbit.count}"
    yield _line(_Key("time_of_first_state_vector", float, "s"), orbit.first_time)
    yield _line(_Key("state_vector_interval", float, "s"), orbit.interval)
    for number, (position, velocity) in enumerate(zip(orbit.positions, orbit.velocities, strict=True), 1):
        yield _line(_Key(f"state_vector_position_{number}", "numbers", "m   m   m"), position)
        yield _line(_Key(f"state_vector_velocity_{number}", "numbers", "m/s m/s m/s"), velocity)
