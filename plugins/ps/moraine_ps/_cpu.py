"""Serial numba kernels; `kernels` documents them."""

from __future__ import annotations

import numba as nb
import numpy as np

TINY = np.float32(1e-30)
"""An amplitude below this is a missing sample: zero is GAMMA's no-data, denormals are its shadow."""


@nb.njit(nogil=True, cache=True)
def valid_amplitude(sample):
    """Return the amplitude of a sample in float64; 0 where it is missing."""
    re, im = np.float64(sample.real), np.float64(sample.imag)
    amplitude = np.sqrt(re * re + im * im)
    return amplitude if np.isfinite(amplitude) and amplitude >= TINY else 0.0


@nb.njit(nogil=True, cache=True)
def add_image(image, gain, count, mean, squares):
    """Add one image to Welford's running count, mean and sum of squared deviations of each pixel, in place."""
    for i in range(image.size):
        amplitude = valid_amplitude(image[i])
        if amplitude > 0:
            amplitude *= gain
            count[i] += 1
            delta = amplitude - mean[i]
            mean[i] += delta / count[i]
            squares[i] += delta * (amplitude - mean[i])


@nb.njit(nogil=True, cache=True)
def dispersion(count, mean, squares, fewest, out):
    """Turn the running sums into the dispersion index, nan where too few images are valid."""
    for i in range(out.size):
        if count[i] >= fewest and mean[i] > 0:
            out[i] = np.sqrt(squares[i] / count[i]) / mean[i]
        else:
            out[i] = np.nan


@nb.njit(nogil=True, cache=True)
def amplitude_sum(image):
    """Return the sum of the valid amplitudes of an image in float64, and how many there are."""
    total, lost, count = 0.0, 0.0, 0
    for i in range(image.size):
        amplitude = valid_amplitude(image[i])
        if amplitude > 0:
            # Kahan: what rounding loses is carried on, so the sum hardly depends on how an image is cut into blocks
            term = amplitude - lost
            larger = total + term
            lost = (larger - total) - term
            total = larger
            count += 1
    return total, count
