"""Reading and writing parts of GAMMA's binary files; every call opens the file for itself, so tasks share no handle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from moraine_load.formats import FORMATS, ByteOrder, RasterError

LARGEST_SHORT = 32767


def read_block(
    path: str | Path,
    name: str,
    width: int,
    lines: tuple[int, int],
    samples: tuple[int, int] | None = None,
    byte_order: ByteOrder = "big",
) -> np.ndarray[Any, Any]:
    """Read a part of a raster.

    Parameters
    ----------
    path
        The file.
    name
        Its format, a key of `FORMATS`.
    width
        Samples in a line of the file.
    lines, samples
        First and last (exclusive) line and sample to read; all samples by default.
    byte_order
        Of the file.

    Returns
    -------
    array
        In native byte order: complex64 for FCOMPLEX and SCOMPLEX (the integers as they are, no scale), float32 for
        FLOAT, float64 (..., 2) for pairs. Shape (lines, samples).

    Raises
    ------
    RasterError
        The file ends before the part does.
    """
    fmt = FORMATS[name]
    first, last = samples or (0, width)
    dtype = np.dtype(fmt.dtype if byte_order == "big" else fmt.dtype.replace(">", "<"))
    raw = np.empty((lines[1] - lines[0], (last - first) * fmt.numbers), dtype)
    with Path(path).open("rb") as file:
        if last - first == width:
            file.seek(lines[0] * width * fmt.itemsize)
            read = file.readinto(raw.data.cast("B")) if raw.size else 0
        else:
            read = 0
            for row, line in enumerate(range(*lines)):
                file.seek((line * width + first) * fmt.itemsize)
                read += file.readinto(raw[row].data.cast("B"))
    if read != raw.nbytes:
        msg = f"{path} ends within lines {lines[0]}:{lines[1]}; expected {width} {name} samples in each"
        raise RasterError(msg)
    native = raw.astype(dtype.newbyteorder("="), copy=False)
    if name == "FCOMPLEX":
        return native.view(np.complex64)
    if name == "SCOMPLEX":
        return native.astype(np.float32).view(np.complex64)
    return native if fmt.numbers == 1 else native.reshape(len(native), -1, fmt.numbers)


def write_block(
    path: str | Path, values: np.ndarray[Any, Any], name: str, width: int, line: int, sample: int = 0
) -> None:
    """Write a part of a raster, big-endian; the file is made, or grows, where it ends before.

    Parameters
    ----------
    path
        The file.
    values
        Shape (lines, samples), or (lines, samples, 2) for pairs; real parts and imaginary parts of SCOMPLEX are
        rounded to whole numbers.
    name
        Format of the file, a key of `FORMATS`.
    width
        Samples in a line of the file.
    line, sample
        Where the part begins.

    Raises
    ------
    RasterError
        A number is beyond what a short integer holds.
    """
    fmt = FORMATS[name]
    if fmt.numbers == 2 and np.iscomplexobj(values):
        values = np.stack([values.real, values.imag], axis=-1)
    if name == "SCOMPLEX":
        values = np.rint(values)
        if not np.all(np.abs(values) <= LARGEST_SHORT):
            msg = f"{path}: a value is {np.abs(values).max():g} or missing; expected up to {LARGEST_SHORT} in SCOMPLEX"
            raise RasterError(msg)
    raw = np.ascontiguousarray(values, dtype=fmt.dtype).reshape(len(values), -1)
    file = Path(path)
    file.touch()
    with file.open("r+b") as handle:
        if raw.shape[1] == width * fmt.numbers:
            handle.seek(line * width * fmt.itemsize)
            handle.write(raw.tobytes())
            return
        for row in range(len(raw)):
            handle.seek(((line + row) * width + sample) * fmt.itemsize)
            handle.write(raw[row].tobytes())
