"""CUDA twins of `_cpu`, through cupy; `kernels` documents them. One thread per pixel, one image at a time."""

from __future__ import annotations

from typing import Any

import cupy as cp

_VALID_AMPLITUDE = """
template <typename T> __device__ double valid_amplitude(const complex<T>& sample) {
    double re = sample.real(), im = sample.imag();
    double amplitude = sqrt(re * re + im * im);
    return isfinite(amplitude) && amplitude >= (double)1e-30f ? amplitude : 0.0;
}
"""

# the outputs of this kernel are read as well: they are references to the arrays that are passed for them
_add_image = cp.ElementwiseKernel(
    "T sample, float64 gain",
    "int32 count, float64 mean, float64 squares",
    """
    double amplitude = valid_amplitude(sample);
    if (amplitude > 0) {
        amplitude *= gain;
        count += 1;
        double delta = amplitude - mean;
        mean += delta / count;
        squares += delta * (amplitude - mean);
    }
    """,
    "moraine_add_image",
    preamble=_VALID_AMPLITUDE,
)

_dispersion = cp.ElementwiseKernel(
    "int32 count, float64 mean, float64 squares, int32 fewest",
    "float32 out",
    'out = count >= fewest && mean > 0 ? (float)(sqrt(squares / count) / mean) : nanf("")',
    "moraine_dispersion",
)

_amplitude = cp.ElementwiseKernel(
    "T sample",
    "float64 amplitude",
    "amplitude = valid_amplitude(sample)",
    "moraine_amplitude",
    preamble=_VALID_AMPLITUDE,
)


def add_image(image: Any, gain: float, count: Any, mean: Any, squares: Any) -> None:
    """Add one image to the running count, mean and sum of squared deviations of each pixel, in place."""
    _add_image(image, gain, count, mean, squares)


def dispersion(count: Any, mean: Any, squares: Any, fewest: int, out: Any) -> None:
    """Turn the running sums into the dispersion index, nan where too few images are valid."""
    _dispersion(count, mean, squares, fewest, out)


def amplitude_sum(image: Any) -> tuple[float, int]:
    """Return the sum of the valid amplitudes of an image in float64, and how many there are."""
    amplitude = _amplitude(image)
    return float(amplitude.sum()), int(cp.count_nonzero(amplitude))
