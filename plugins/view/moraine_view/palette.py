"""From values to colors: 255 colors and one index that means nothing is there.

Phases take romaO, one of the scientific color maps of F. Crameri (2018). Of the cyclic maps at hand it has the most
even steps (0.95 to 0.98 in L*a*b* between neighbors, the seam at +-pi included; twilight: 0.4 to 1.8) and stays
farthest from the light gray behind the picture, where twilight's near-white would pass for missing data. Other values
take viridis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Palette = Literal["cyclic", "sequential", "diverging", "gray"]

N_COLORS = 255
TRANSPARENT = 255
"""The color index of missing values."""
BACKGROUND = "#f4f4f4"
FILES = {"cyclic": "romaO", "diverging": "vik", "gray": "grayC"}
"""The color maps that are F. Crameri's."""


def color_index(values: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    """Code values as color indices.

    Parameters
    ----------
    values
        Any shape, real or bool; nan is missing.
    low, high
        The values where the first color begins and the last one ends, ``low < high``; what lies beyond takes the
        nearest color. For phases these are -pi and pi.

    Returns
    -------
    ndarray
        Same shape, uint8: ``floor(255 (v - low) / (high - low))`` cut to 0 ... 254, and 255 (transparent) for nan.
    """
    # in double precision: float32 cannot tell the phase just below pi from pi
    position = np.array(values, dtype=np.float64)
    # in place: fresh memory for each step would take longer than the steps
    position -= low
    position *= N_COLORS / (high - low)
    is_missing = np.isnan(position)
    np.clip(position, 0, N_COLORS - 1, out=position)  # what is behind the point is cut off with the type
    position[is_missing] = TRANSPARENT
    index: NDArray[np.uint8] = position.astype(np.uint8)
    return index


def color_table(palette: Palette) -> NDArray[np.uint8]:
    """Give the colors of the indices.

    Parameters
    ----------
    palette
        ``"cyclic"`` (romaO), ``"sequential"`` (viridis), ``"diverging"`` (vik) or ``"gray"`` (grayC, dark to light).

    Returns
    -------
    ndarray
        ``(256, 4)`` uint8, red, green, blue, alpha; row 255 is transparent.
    """
    fine = _viridis() if palette == "sequential" else _of_crameri(FILES[palette])
    n = len(fine)
    # color k stands for the middle of its interval, so that the steps are equal, across the seam of a cycle too
    at = (np.arange(N_COLORS) + 0.5) * (n / N_COLORS) - 0.5
    if palette == "cyclic":
        fine, at = np.concatenate([fine, fine[:1]]), at % n
    table = np.zeros((N_COLORS + 1, 4), dtype=np.uint8)
    table[:N_COLORS, 3] = 255
    for channel in range(3):
        table[:N_COLORS, channel] = np.rint(255 * np.interp(at, np.arange(len(fine)), fine[:, channel]))
    return table


def _viridis() -> NDArray[np.float64]:
    from matplotlib import colormaps

    return np.asarray(colormaps["viridis"](np.arange(256)))[:, :3]


def _of_crameri(name: str) -> NDArray[np.float64]:
    from importlib.util import find_spec
    from pathlib import Path

    # the table is read beside the package: importing cmcrameri would import pyplot
    package = find_spec("cmcrameri")
    if package is None or not package.submodule_search_locations:
        msg = "pictures need the color maps of the distribution cmcrameri; install it"
        raise ModuleNotFoundError(msg)
    return np.loadtxt(Path(package.submodule_search_locations[0]) / "cmaps" / f"{name}.txt")
