"""Qualities of points: weights and variances, checked; only numpy is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MOST_VARIANCE = 40.0
"""Variance, in rad^2, that stands for one that is not known: a phase says nothing long before."""


def problem_of_qualities(gix: NDArray[Any], *qualities: NDArray[Any], names: Sequence[str]) -> str:
    """Return what is wrong with the qualities of points, in a sentence; nothing where they are right.

    Parameters
    ----------
    gix
        Grid index of the points; it is read so that the plan of this task knows how many there are.
    *qualities, names
        As in `checked_qualities`.
    """
    try:
        checked_qualities(qualities, names)
    except ValueError as error:
        return str(error)
    return ""


def checked_qualities(
    qualities: Sequence[NDArray[Any]], names: Sequence[str]
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Return weight and variance of the points, None for what there is not.

    Parameters
    ----------
    qualities
        Weight, unitless, and variance, in rad^2, ``(n_points,)``, those that there are. A variance that is nan or
        infinite is not known, and becomes the largest that costs tell from others.
    names
        What errors call them; they begin with "weight" or "variance".

    Raises
    ------
    ValueError
        A variance is 0 or less; the first such point is named.
    """
    weight = variance = None
    for values, name in zip(qualities, names, strict=True):
        if name.startswith("weight"):
            weight = values.astype(np.float64)
            continue
        is_wrong = values <= 0
        if is_wrong.any():
            point = int(is_wrong.argmax())
            raise ValueError(f"{name} is {values[point]:g} at point {point}; expected more than 0 (rad^2)")
        variance = np.where(np.isfinite(values), values, MOST_VARIANCE).astype(np.float64)
    return weight, variance
