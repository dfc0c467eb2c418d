"""CUDA twins of `_cpu`, through cupy; `kernels` documents them. One thread per pixel, one image at a time."""

from __future__ import annotations

from typing import Any

import cupy as cp

_VALID = """
    // |s| in double, as on the CPU; below 1e-30 is missing, and the comparison is false for nan
    double re = s.real(), im = s.imag();
    double amplitude = sqrt(re * re + im * im) * gain;
    bool valid = isfinite(amplitude) && amplitude >= (double)1e-30f;
"""

_add_image = cp.ElementwiseKernel(
    "complex64 s, float64 gain",
    "int32 count, float64 mean, float64 squares",
    _VALID
    + """
    if (valid) {
        count += 1;
        double delta = amplitude - mean;
        mean += delta / count;
        squares += delta * (amplitude - mean);
    }
    """,
    "moraine_add_image",
)

_dispersion = cp.ElementwiseKernel(
    "int32 count, float64 mean, float64 squares, int32 fewest",
    "float32 out",
    "out = (count >= fewest && mean > 0) ? (float)(sqrt(squares / count) / mean) : nanf(\"\")",
    "moraine_dispersion",
)

_amplitude = cp.ElementwiseKernel(
    "complex64 s, float64 gain", "float64 amplitude_out, int64 valid_out", _VALID + """
    amplitude_out = valid ? amplitude : 0.0;
    valid_out = valid;
    """, "moraine_amplitude"
)


def add_image(image: Any, gain: float, count: Any, mean: Any, squares: Any) -> None:
    """Add one image to the running count, mean and sum of squared deviations of each pixel, in place."""
    _add_image(image, gain, count, mean, squares)


def dispersion(count: Any, mean: Any, squares: Any, fewest: int, out: Any) -> None:
    """Turn the running sums into the dispersion index, nan where too few images are valid."""
    _dispersion(count, mean, squares, fewest, out)


def amplitude_sum(image: Any) -> tuple[float, int]:
    """Return the sum of the valid amplitudes of an image in float64, and how many there are."""
    amplitude, valid = _amplitude(image, 1.0)
    return float(amplitude.sum()), int(valid.sum())
