"""GAMMA's binary files, as far as metadata go: formats, sizes, and whether the bytes seem to be in the wrong order.

Files have no header, are row-major and big-endian. Nothing here loads numpy: declarations look at files before work.
"""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass
from math import isfinite, log10
from pathlib import Path
from typing import Literal, TypeAlias

from moraine_core import MoraineError
from moraine_core.errors import StoreNotFoundError

ByteOrder: TypeAlias = Literal["big", "little"]

SAMPLED_LINES = 3
"""Lines of a file that are looked at for the order of its bytes."""

SAMPLED_VALUES = 4096
"""Numbers of a line that are looked at."""

ABSURD = 12.0
"""Typical distance of a magnitude from 1, in powers of ten, that no radar image and no height has."""

SWAPPED_EXCESS = 16
"""Integers whose mean square falls by this factor when their bytes are swapped were stored the other way round."""


class RasterError(MoraineError, ValueError):
    """A binary file is not what its parameter file says; the message names file, found and expected."""


@dataclass(frozen=True)
class Format:
    """How the samples of a file are stored.

    Attributes
    ----------
    name
        As in parameter files.
    dtype
        Big-endian numpy name of one number.
    numbers
        Numbers of a sample: 2 for real and imaginary part.
    itemsize
        Bytes of a sample.
    """

    name: str
    dtype: str
    numbers: int
    itemsize: int


FORMATS = {
    f.name: f
    for f in (
        Format("FCOMPLEX", ">f4", 2, 8),
        Format("SCOMPLEX", ">i2", 2, 4),
        Format("FLOAT", ">f4", 1, 4),
        Format("DOUBLE_PAIR", ">f8", 2, 16),  # longitude and latitude, as pt2geo writes them
    )
}
"""By name; ``FLOAT`` and ``REAL*4`` of parameter files are the same."""


def check_size(path: str | Path, name: str, width: int, nlines: int) -> None:
    """Check that a file holds a raster of a shape.

    Parameters
    ----------
    path
        The file.
    name
        Its format, a key of `FORMATS`.
    width, nlines
        Samples in a line, and lines.

    Raises
    ------
    StoreNotFoundError
        There is no such file.
    RasterError
        It has another size.
    """
    file = Path(path)
    if not file.is_file():
        msg = f"{file} does not exist; expected a {name} file of {nlines} lines of {width} samples"
        raise StoreNotFoundError(msg)
    found, item = file.stat().st_size, FORMATS[name].itemsize
    if found != nlines * width * item:
        lines, rest = divmod(found, width * item)
        held = f"{lines} lines" + (f" and {rest} bytes" if rest else "")
        msg = (
            f"{file} has {found} bytes, {held} of {width} {name} samples; "
            f"expected {nlines * width * item} bytes, {nlines} lines"
        )
        raise RasterError(msg)


def check_byte_order(path: str | Path, name: str, width: int, nlines: int) -> None:
    """Check that a file of the right size does not look as if its bytes were in the wrong order.

    A few lines are read. Floating-point numbers look swapped when their magnitudes are typically absurd and those of
    the swapped bytes are not; integers when swapping makes them much smaller. Zeros and nan say nothing.

    Parameters
    ----------
    path, name, width, nlines
        As in `check_size`.

    Raises
    ------
    RasterError
        The file seems to be little-endian.
    """
    fmt = FORMATS[name]
    big, little = _sample(path, fmt, width, nlines)
    is_swapped = _is_smaller(little, big) if fmt.dtype == ">i2" else _is_absurd(big) and not _is_absurd(little)
    if is_swapped:
        msg = f"{path} seems to be little-endian; expected big-endian {name}, or the option byte-order little"
        raise RasterError(msg)


def check_raster(path: str | Path, name: str, shape: tuple[int, int], byte_order: ByteOrder | None) -> None:
    """Check the size of a raster of (nlines, width), and, unless it is given, the order of its bytes."""
    nlines, width = shape
    check_size(path, name, width, nlines)
    if byte_order is None:
        check_byte_order(path, name, width, nlines)


def check_heights(path: str | Path, shape: tuple[int, int], byte_order: ByteOrder | None) -> None:
    """Check size and byte order of heights, float, of an image of (nlines, width)."""
    check_raster(path, "FLOAT", shape, byte_order)


def _sample(path: str | Path, fmt: Format, width: int, nlines: int) -> tuple[array[float], array[float]]:
    """Return numbers out of a few lines, read as big-endian and as little-endian."""
    code = {">f4": "f", ">i2": "h", ">f8": "d"}[fmt.dtype]
    numbers = min(width * fmt.numbers, SAMPLED_VALUES)
    native: array[float] = array(code)
    with Path(path).open("rb") as file:
        for part in range(1, SAMPLED_LINES + 1):
            line = nlines * part // (SAMPLED_LINES + 1)
            begin = (width * fmt.numbers - numbers) // 2
            file.seek((line * width * fmt.numbers + begin) * native.itemsize)
            native.frombytes(file.read(numbers * native.itemsize))
    swapped = array(code, native)
    swapped.byteswap()
    return (swapped, native) if sys.byteorder == "little" else (native, swapped)


def _is_absurd(values: array[float]) -> bool:
    """Tell whether at least half of the numbers are not finite, or as large or small as no measurement is."""
    told = [value for value in values if value != 0]
    odd = sum(1 for value in told if not isfinite(value) or abs(log10(abs(value))) > ABSURD)
    return bool(told) and 2 * odd >= len(told)


def _is_smaller(values: array[float], others: array[float]) -> bool:
    """Tell whether integers are much smaller than others, on average of their squares."""
    mine, theirs = (sum(float(v) * v for v in group) for group in (values, others))
    return SWAPPED_EXCESS * mine < theirs
