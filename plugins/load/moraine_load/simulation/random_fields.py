"""Random numbers that depend on what they are for and where they lie, never on who asks for them.

Rows of white noise come from a counter-based generator (Philox, Salmon et al. 2011): the seed is its key, and purpose,
image and line are its counter. Smooth fields are cubic B-splines over a lattice of the whole scene.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_load.simulation import _cpu

if TYPE_CHECKING:
    from numpy.typing import NDArray

Float32 = np.ndarray[Any, np.dtype[np.float32]]
Float64 = np.ndarray[Any, np.dtype[np.float64]]


class Purpose(IntEnum):
    """What random numbers are for."""

    TERRAIN = 0
    ATMOSPHERE = 1
    TOWN = 2
    WATER = 3
    COVER = 4
    PS = 5
    LASTING = 6
    CHANGING = 7
    NOISE = 8


def generator(seed: int, purpose: Purpose, image: int = 0, line: int = 0) -> np.random.Generator:
    """Return the generator of the random numbers of a line (or an octave) of an image for a purpose."""
    key = np.array([seed, 0], np.uint64)
    counter = np.array([0, line, image, purpose], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def white_lines(seed: int, purpose: Purpose, image: int, lines: range, width: int) -> Float32:
    """Return complex white noise of unit variance, each line of its own.

    Parameters
    ----------
    seed, purpose, image
        Whose noise.
    lines
        Numbers of the lines, not negative.
    width
        Samples of a line.

    Returns
    -------
    ndarray
        float32 ``(len(lines), 2 * width)``: real and imaginary parts in turn, unitless.
    """
    noise = np.empty((len(lines), 2 * width), np.float32)
    for row, line in zip(noise, lines, strict=True):
        generator(seed, purpose, image, line).standard_normal(dtype=np.float32, out=row)
    noise *= np.float32(0.5**0.5)
    return noise


@dataclass(frozen=True)
class Field:
    """A smooth random field of zero mean and unit variance.

    Attributes
    ----------
    weights
        Of the B-splines, float64 ``(rows, columns)``, unitless.
    top, left
        Where the second row and column of knots lie, m.
    spacing
        Of knots, m.
    """

    weights: Float64
    top: float
    left: float
    spacing: float

    def on_grid(self, y: Float64, x: Float64) -> Float64:
        """Return the values ``(len(y), len(x))`` at the crossings of lines and columns (m), float64, unitless."""
        values: Float64 = _cpu.spline_grid(self.weights, (y - self.top) / self.spacing, (x - self.left) / self.spacing)
        return values


def smooth_field(
    seed: int,
    purpose: Purpose,
    image: int,
    box: tuple[float, float, float, float],
    *,
    coarsest: float,
    finest: float,
    exponent: float,
) -> Field:
    """Return a random field whose power falls with the wave number k as ``k**-exponent``, between two scales.

    It is a sum of octaves. Each is a cubic B-spline with white weights on a lattice of half the spacing of the one
    before, and 2**(exponent - 2) times less variance, which gives a power of ``k**-exponent`` where an octave ends. All
    are refined to the finest lattice by the two-scale relation of B-splines, which is exact.

    Parameters
    ----------
    seed, purpose, image
        Whose field.
    box
        Top, left, bottom and right of where it is needed, m.
    coarsest, finest
        Spacing of the lattice of the first octave and, at most, of the last, m.
    exponent
        Of the two-dimensional power spectrum.
    """
    top, left, bottom, right = box
    rows, columns = (max(ceil(size / coarsest), 1) for size in (bottom - top, right - left))
    weights = np.zeros((rows + 5, columns + 5))
    variance, spacing, octave, share = 0.0, coarsest, 0, 1.0
    while True:
        weights += share**0.5 * generator(seed, purpose, image, octave).standard_normal(weights.shape)
        variance += share
        if spacing <= finest:
            break
        weights = _refined(_refined(weights).T).T
        spacing, octave, share = spacing / 2, octave + 1, share / 2 ** (exponent - 2)
    # the mean square of a cubic B-spline of unit white weights is 151/315 along each axis
    weights /= variance**0.5 * (151 / 315)
    return Field(np.ascontiguousarray(weights), top - spacing, left - spacing, spacing)


def _refined(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights of the same splines on a lattice twice as fine along axis 0, two knots beyond each end."""
    fine = np.empty((2 * len(weights) - 5, weights.shape[1]))
    fine[0::2] = (weights[:-2] + 6 * weights[1:-1] + weights[2:]) / 8
    fine[1::2] = (weights[1:-2] + weights[2:-1]) / 2
    return fine
