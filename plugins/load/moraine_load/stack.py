"""A folder of co-registered SLCs: which dates it has, and all that is wrong with it, from names, sizes and headers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from moraine_core import MoraineError, UsageError
from moraine_core.errors import StoreNotFoundError, raise_problems
from moraine_load.formats import ByteOrder, check_raster
from moraine_load.par import ParError, SlcPar, read_slc_par

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = re.compile(r"(\d{8})\.rslc")
DATE = re.compile(r"(?<!\d)\d{8}(?!\d)")
COMPLEX = ("FCOMPLEX", "SCOMPLEX")

SAME_FREQUENCY = 1e-6
"""Relative difference of radar frequencies that are one."""


@dataclass(frozen=True)
class Image:
    """One image of a stack.

    Attributes
    ----------
    date
        ``YYYYMMDD``.
    path
        The file of samples.
    par
        Its header.
    """

    date: str
    path: str
    par: SlcPar

    @property
    def shape(self) -> tuple[int, int]:
        """Lines and width."""
        return self.par.azimuth_lines or 0, self.par.range_samples or 0


@dataclass(frozen=True)
class Stack:
    """The images of a folder in the order of their dates.

    Attributes
    ----------
    images
        All of them.
    reference
        The one whose geometry they have.
    """

    images: tuple[Image, ...]
    reference: Image

    @property
    def dates(self) -> list[str]:
        """``YYYYMMDD`` of all images."""
        return [image.date for image in self.images]

    @property
    def shape(self) -> tuple[int, int]:
        """Lines and width that all images have."""
        nlines, widths = zip(*(image.shape for image in self.images), strict=True)
        return min(nlines), min(widths)


def read_stack(folder: str, reference: str, *, crop: bool = False, byte_order: ByteOrder | None = None) -> Stack:
    """Read the headers of all ``YYYYMMDD.rslc`` of a folder and check them against each other.

    Parameters
    ----------
    folder
        The folder; files that are neither images nor headers of images are passed over.
    reference
        Date of the image whose geometry the others have.
    crop
        Images of different sizes are allowed; they begin at the same pixel.
    byte_order
        Of the samples; None for big-endian, and checked.

    Raises
    ------
    MoraineError
        All that is wrong with the folder.
    """
    files = _by_date(folder)
    if not files:
        msg = f"{folder} has no image; expected files YYYYMMDD.rslc with YYYYMMDD.rslc.par beside them"
        raise StoreNotFoundError(msg)
    if reference not in files:
        msg = f"reference is {reference}; expected one of the dates in {folder}: {', '.join(files)}"
        raise UsageError(msg)
    images, problems = [], []
    for date, file in files.items():
        try:
            images.append(Image(date, str(file), _header(date, file)))
        except MoraineError as error:
            problems.append(error)
    raise_problems(problems)
    stack = Stack(tuple(images), next(image for image in images if image.date == reference))
    raise_problems([*_shape_problems(stack, crop=crop), *_header_problems(stack), *_file_problems(stack, byte_order)])
    return stack


def _by_date(folder: str) -> dict[str, Path]:
    """Return the images of a folder by date, in order; each in a file of the right name, with its header."""
    found: dict[str, Path] = {}
    problems: list[MoraineError] = []
    entries = sorted(Path(folder).iterdir())
    names = {entry.name for entry in entries}
    for file in entries:
        if file.suffix.lower() == ".rslc":
            if match := NAME.fullmatch(file.name):
                found[match[1]] = file
        elif file.name.lower().endswith(".rslc.par") and file.name[:-4] not in names:
            problems.append(StoreNotFoundError(f"{file} has no image; expected {file.name[:-4]} beside it"))
    for file in entries:
        if file.suffix.lower() != ".rslc" or NAME.fullmatch(file.name):
            continue
        date = next((d for d in DATE.findall(file.name) if d in found), None)
        reason = f"is a second file for {date}" if date else "is an image without a date for a name"
        problems.append(UsageError(f"{file} {reason}; expected one YYYYMMDD.rslc for each date"))
    problems += [
        StoreNotFoundError(f"{file} has no header; expected {file.name}.par beside it")
        for file in found.values()
        if f"{file.name}.par" not in names
    ]
    raise_problems(problems)
    return found


def _header(date: str, file: Path) -> SlcPar:
    """Read the header of an image and check what it says by itself."""
    par = read_slc_par(f"{file}.par")
    par.need("range_samples", "azimuth_lines", "image_format")
    if min(par.range_samples or 0, par.azimuth_lines or 0) < 1:
        msg = f"{par.path}: the image has {par.azimuth_lines} lines of {par.range_samples} samples; expected at least 1"
        raise ParError(msg)
    if par.image_format not in COMPLEX:
        msg = f"{par.path}: image_format is {par.image_format}; expected {' or '.join(COMPLEX)}"
        raise ParError(msg)
    if par.date and par.date != date:
        msg = f"{par.path}: date is {par.date}; expected {date}, as the name of the file says"
        raise ParError(msg)
    return par


def _shape_problems(stack: Stack, *, crop: bool) -> Iterator[MoraineError]:
    nlines, width = stack.reference.shape
    for image in stack.images:
        if image.shape != (nlines, width) and not crop:
            found = f"{image.shape[0]} lines of {image.shape[1]} samples"
            yield ParError(
                f"{image.par.path}: the image has {found}; expected {nlines} lines of {width} samples, as the "
                f"reference {stack.reference.date} has, or the option crop"
            )


def _header_problems(stack: Stack) -> Iterator[MoraineError]:
    frequency = stack.reference.par.radar_frequency
    for image in stack.images:
        if frequency and abs((image.par.radar_frequency or 0) - frequency) > SAME_FREQUENCY * frequency:
            yield ParError(
                f"{image.par.path}: radar_frequency is {image.par.radar_frequency} Hz; expected {frequency} Hz, as the "
                f"reference {stack.reference.date} has"
            )


def _file_problems(stack: Stack, byte_order: ByteOrder | None) -> Iterator[MoraineError]:
    for image in stack.images:
        try:
            check_raster(image.path, image.par.image_format, image.shape, byte_order)
        except MoraineError as error:
            yield error
