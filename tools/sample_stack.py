"""Make a small sample stack: a town between hills and a lake, with ground that sinks, as `make demo` needs it.

    python tools/sample_stack.py FOLDER [--shape LINES WIDTH] [--images N] [--seed S]

Writes ``rslc.zarr`` (coregistered, flattened SLCs) and ``meta.toml`` with their dates. Every pixel is speckle that
decorrelates with time, or a persistent scatterer of steady brightness; the phase holds a bowl of subsidence that
deepens from date to date, and a smooth atmosphere.
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path
from typing import Any

import numpy as np

from moraine_core.testing.data import write_array

WAVELENGTH = 0.0554657
"""Meters; C band."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


def smooth_field(shape: tuple[int, int], exponent: float, rng: np.random.Generator) -> Floats:
    """Return a random field with a power-law spectrum, zero mean and unit standard deviation."""
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(shape[0]), np.fft.fftfreq(shape[1]), indexing="ij"))
    frequency[0, 0] = np.inf
    noise = np.fft.fft2(rng.normal(size=shape))
    field = np.fft.ifft2(noise * frequency ** (-exponent / 2)).real
    return np.asarray((field - field.mean()) / field.std())


def scene(shape: tuple[int, int], rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return the mean amplitude, the coherence of neighboring dates and the PS mask of every pixel."""
    line, sample = np.meshgrid(*(np.linspace(0, 1, n) for n in shape), indexing="ij")
    hills = smooth_field(shape, 3.0, rng)
    amplitude = np.exp(0.35 * hills)
    coherence = np.full(shape, 0.7) + 0.1 * np.tanh(hills)
    town = np.hypot((line - 0.45) / 0.30, (sample - 0.40) / 0.25) < 1 + 0.15 * smooth_field(shape, 3.5, rng)
    streets = ((np.arange(shape[0])[:, None] % 24) < 2) | ((np.arange(shape[1])[None, :] % 32) < 2)
    amplitude[town] *= 1.6
    coherence[town] = 0.92
    amplitude[town & streets] *= 0.4
    is_ps = (rng.random(shape) < np.where(town & ~streets, 0.12, 0.004)).astype(float)
    lake = (sample - 0.85) ** 2 / 0.012 + (line - 0.65) ** 2 / 0.08 < 1 + 0.1 * smooth_field(shape, 3.5, rng)
    canal = np.abs(line - 0.55 - 0.05 * np.sin(9 * sample)) < 0.008
    for water in (lake, canal):
        amplitude[water] = 0.12
        coherence[water] = 0.02
        is_ps[water] = 0
    return amplitude, coherence, is_ps


def make_stack(shape: tuple[int, int], n_images: int, seed: int) -> np.ndarray[Any, np.dtype[np.complex64]]:
    """Return the stack ``(nlines, width, nimages)``."""
    rng = np.random.default_rng(seed)
    amplitude, coherence, is_ps = scene(shape, rng)
    line, sample = np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij")
    bowl = 0.18 * np.exp(-((line + 0.1) ** 2 + (sample + 0.15) ** 2) / 0.12)  # meters at the last date
    brightness = 3.0 * np.exp(0.3 * rng.normal(size=shape))
    own_phase = rng.uniform(-np.pi, np.pi, size=shape)

    def noise() -> np.ndarray[Any, Any]:
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)) / np.sqrt(2)

    stack = np.empty((*shape, n_images), dtype=np.complex64)
    speckle = noise()
    for image in range(n_images):
        if image:
            speckle = coherence * speckle + np.sqrt(1 - coherence**2) * noise()
        motion = bowl * image / max(n_images - 1, 1)
        phase = -4 * np.pi / WAVELENGTH * motion + 0.4 * smooth_field(shape, 3.0, rng)
        steady = brightness * np.exp(1j * own_phase) + 0.25 * noise()
        stack[..., image] = amplitude * np.where(is_ps, steady, speckle) * np.exp(1j * phase)
    return stack


def main() -> None:
    """Write the sample."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", type=int, nargs=2, default=(600, 900), metavar=("LINES", "WIDTH"))
    parser.add_argument("--images", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    stack = make_stack(tuple(options.shape), options.images, options.seed)
    write_array(options.folder / "rslc.zarr", stack, chunks=(256, 256, 1))
    first = datetime.date(2023, 1, 6)
    dates = [f"{first + datetime.timedelta(days=12 * image):%Y%m%d}" for image in range(options.images)]
    meta = f"dates = {dates}\nradar_wavelength = {WAVELENGTH}\n".replace("'", '"')
    (options.folder / "meta.toml").write_text(meta, encoding="utf-8")
    print(f"{options.folder / 'rslc.zarr'}: {stack.shape} complex64")


if __name__ == "__main__":
    main()
