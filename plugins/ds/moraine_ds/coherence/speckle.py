"""How speckle is correlated from pixel to pixel, measured in one image; it tells how many looks pixels are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import uniform_filter

from moraine_core.device import array_module
from moraine_ds.coherence import _cpu

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

AZ_LAGS, R_LAGS = 4, 6
"""Largest lags of the table in azimuth and range, in pixels."""

TEXTURE_WINDOW = 15
"""Side of the window of the mean power that an image is divided by, in pixels."""

FEWEST_PRODUCTS = 100
"""Valid products of a pair of lines that count: with fewer, their correlation is mostly noise."""


def speckle_correlation(image: Array) -> Array:
    """Return the squared correlation of speckle at lags of up to 4 lines and 6 pixels.

    Each sample is divided by the root of the mean power around it, which takes the texture of the ground away. For
    each lag, ``|sum a conj(b)|**2 / (sum |a|**2 sum |b|**2) - 1 / m`` is taken for each pair of lines with m >= 100
    valid products, then averaged over these: along a pair, the phase ramps of TOPS images are constant. What is left
    at the outermost lags is bias of correlated pixels; its mean is subtracted from all lags.

    Parameters
    ----------
    image
        One SLC image or a part of it, complex, shape ``(nlines, width)``, numpy or cupy. Samples that are nan, infinite
        or of an amplitude below 1e-30 are missing.

    Returns
    -------
    ndarray
        Unitless, float64, shape ``(9, 13)``, numpy; lag 0 is in the center, and is 1. Values at large lags scatter
        about 0 and can be negative. All nan where the image is too small, or has too few valid samples, for one of
        the lags.

    References
    ----------
    Touzi, R., Lopes, A., Bruniquel, J., Vachon, P. W. (1999): Coherence estimation for SAR imagery. IEEE TGRS 37(1),
    135-149; its section on the number of independent samples.
    """
    image = np.asarray(on_host(image), np.complex64)
    if image.ndim != 2:
        msg = f"the image has shape {image.shape}; expected (nlines, width)"
        raise ValueError(msg)
    table = np.full((2 * AZ_LAGS + 1, 2 * R_LAGS + 1), np.nan)
    if image.size == 0:
        return table
    power = image.real.astype(np.float64) ** 2 + image.imag.astype(np.float64) ** 2
    is_valid = (power >= _cpu.TINY) & (power < np.inf)
    image, power = np.where(is_valid, image, 0), np.where(is_valid, power, 0)
    # sums run along the lines, so what is 0 may come out as a little more or less
    share = uniform_filter(is_valid.astype(np.float64), TEXTURE_WINDOW, mode="reflect")
    mean = uniform_filter(power, TEXTURE_WINDOW, mode="reflect")
    is_valid &= (mean > 0) & (share > 0)
    gain = np.sqrt(np.divide(share, mean, where=is_valid, out=np.zeros_like(mean)))
    re, im = ((part * gain).astype(np.float32) for part in (image.real, image.imag))
    _cpu.line_correlation(re, im, is_valid.astype(np.float32), FEWEST_PRODUCTS, table)
    if np.isnan(table).any():
        return np.full_like(table, np.nan)
    ring = np.ones(table.shape, bool)
    ring[1:-1, 1:-1] = False
    table -= table[ring].mean()
    table[AZ_LAGS, R_LAGS] = 1
    return table


def on_host(array: Any) -> Array:
    """Return an array in the memory of the host: what is too little work for a GPU is done there.

    Parameters
    ----------
    array
        Any array, numpy or cupy.

    Returns
    -------
    ndarray
        Its values, unchanged.
    """
    host: Array = array if array_module(array) is np else array.get()
    return host
