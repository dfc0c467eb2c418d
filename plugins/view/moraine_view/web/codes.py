"""From values to the small numbers of a tile, and how the page gets values back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_view.palette import color_index

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

STEPS = 2000
"""Codes between the 1st and the 99th percentile, unless the range of the data needs them all."""


class Coding(NamedTuple):
    """How values become codes.

    Of a code k below `nothing`, the value is ``offset + step * k``: with 16 bits exactly, with 8 bits it is the middle
    of those that have this code.
    """

    dtype: str
    offset: float
    step: float
    nothing: int
    """The code of missing values."""
    low: float = 0.0
    """With 8 bits: where the first code begins."""
    high: float = 1.0
    """With 8 bits: where the last code ends."""

    def encode(self, values: NDArray[Any]) -> NDArray[Any]:
        """Code real values of any shape; nan is missing, what lies beyond the range takes its ends."""
        if self.dtype == "uint8":
            return color_index(values, self.low, self.high)
        position = np.array(values, dtype=np.float64)
        position -= self.offset
        position /= self.step
        is_missing = np.isnan(position)
        np.rint(position, out=position)
        np.clip(position, 0, self.nothing - 1, out=position)
        position[is_missing] = self.nothing
        return position.astype("<u2")


def eight_bits(low: float, high: float) -> Coding:
    """Return the coding of 255 equal intervals: those of `moraine_view.palette.color_index`."""
    step = (high - low) / 255
    return Coding("uint8", low + step / 2, step, 255, low, high)


PHASE = eight_bits(-math.pi, math.pi)
"""Phases in radians."""

SHARE = eight_bits(0.0, 1.0)
"""Magnitudes of coherence."""


def value_coding(stats: Mapping[str, Any], dtype: np.dtype[Any]) -> Coding:
    """Choose the 16-bit coding of real data.

    Parameters
    ----------
    stats
        Of all data: ``min max p01 p99``, any of them None or left out.
    dtype
        Of the data.

    Returns
    -------
    Coding
        Integers one by one where their range allows it; else the finer of what the range allows and `STEPS` between
        the percentiles, since finer numbers are noise that does not compress.
    """
    if dtype.kind == "b":
        return Coding("uint16", 0.0, 1 / STEPS, 65535)  # coarser cells hold shares
    low, high = _number(stats.get("min")), _number(stats.get("max"))
    if low is None or high is None:
        return Coding("uint16", 0.0, 1.0, 65535)
    # statistics are kept with six digits
    margin = 1e-5 * max(abs(low), abs(high), high - low)
    if dtype.kind in "iu" and high - low <= 60000:
        parts = 16  # of one: coarser cells hold means
        while parts > 1 and (high - low) * parts > 60000:
            parts //= 2
        return Coding("uint16", float(math.floor(low - margin)), 1 / parts, 65535)
    low, high = low - margin, high + margin
    p01, p99 = _number(stats.get("p01")), _number(stats.get("p99"))
    typical = (p99 - p01) / STEPS if p01 is not None and p99 is not None else 0.0
    step = max((high - low) / 65533, typical)
    if step <= 0:
        return Coding("uint16", low, 1.0, 65535)
    return Coding("uint16", math.floor(low / step) * step, step, 65535)  # so that zero comes back as zero


def decibel_coding(stats: Mapping[str, Any]) -> Coding:
    """Return the coding of amplitudes in decibels, between the percentiles of all data."""
    p01, p99 = (_number(stats.get(f"amplitude_{name}")) for name in ("p01", "p99"))
    if p99 is None or p99 <= 0:
        return eight_bits(-30.0, 0.0)
    high = 20 * math.log10(p99)
    low = 20 * math.log10(p01) if p01 is not None and p01 > 0 else high - 30
    return eight_bits(low, max(high, low + 1))


def decibels(values: NDArray[Any]) -> NDArray[Any]:
    """Give the amplitude of complex values in decibels; of zero it is minus infinity."""
    with np.errstate(divide="ignore"):
        found: NDArray[Any] = 20 * np.log10(np.abs(values).astype(np.float64))
    return found


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
