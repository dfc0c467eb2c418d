"""Offsets between an image and its simulation, as a DIFF par tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from moraine_load.par import ParError

if TYPE_CHECKING:
    from moraine_load.par import DiffPar

Offsets: TypeAlias = Literal["refuse", "ignore", "add", "subtract"]

NEGLIGIBLE = 0.01
"""An offset below this, in pixels, is none."""


def shift_of(par: DiffPar, shape: tuple[int, int], offsets: Offsets) -> tuple[float, float]:
    """Return the lines and samples to add to coordinates of the image before they are located.

    The polynomials say where a pixel of one image is in the other; which of the two is the simulated one depends on how
    the par was made, and the par does not tell. So an offset is used only as the caller says, and only a constant one.

    Parameters
    ----------
    par
        The DIFF par.
    shape
        Lines and width of the image.
    offsets
        What to do with an offset.

    Raises
    ------
    ParError
        There is an offset and `offsets` is refuse, or it is to be used and is not constant or of another image.
    """
    if par.az_samp_1 is not None and (par.az_samp_1, par.range_samp_1) != shape:
        msg = (
            f"{par.path}: az_samp_1 and range_samp_1 are {par.az_samp_1} and {par.range_samp_1}; expected {shape[0]} "
            f"and {shape[1]}, the image in 1 x 1 looks"
        )
        raise ParError(msg)
    constants = []
    for name in ("azimuth_offset_polynomial", "range_offset_polynomial"):
        coefficients = getattr(par, name) or (0.0,)
        largest = sum(abs(c) * t for c, t in zip(coefficients, _largest_terms(shape), strict=False))
        slope = largest - abs(coefficients[0])
        if offsets == "refuse" and largest > NEGLIGIBLE:
            msg = (
                f"{par.path}: {name} reaches {largest:.3f} pixels; expected 0, or the option offsets: ignore, add or "
                "subtract"
            )
            raise ParError(msg)
        if offsets in ("add", "subtract") and slope > NEGLIGIBLE:
            msg = f"{par.path}: {name} changes by {slope:.3f} pixels in the image; expected a constant, or engine gamma"
            raise ParError(msg)
        constants.append(coefficients[0])
    sign = {"add": 1.0, "subtract": -1.0}.get(offsets, 0.0)
    return sign * constants[0], sign * constants[1]


def _largest_terms(shape: tuple[int, int]) -> tuple[float, ...]:
    """Return the largest values of 1, x, y, x y, x^2 and y^2 in an image."""
    y, x = shape
    return 1.0, x, y, x * y, x * x, y * y
