"""CUDA twins of `_cpu`, through cupy; `kernels` documents them. The source is in kernels.cu."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

THREADS = 256

PLANES = 8
"""Images that are added together, as in the source: their sums go through memory once."""

SUM_BLOCKS = 1024
"""Blocks that sum amplitudes: the same order of sums whatever the GPU."""

_module = cp.RawModule(code=Path(__file__).with_name("kernels.cu").read_text(encoding="utf-8"))


def amp_disp(rslc: Any, fewest: int) -> Any:
    """Return the dispersion index of a complex64 stack ``(..., nimages)``."""
    n_images = rslc.shape[-1]
    out = cp.empty(rslc.shape[:-1], dtype=np.float32)
    samples, steps = cp.moveaxis(rslc, -1, 0), (1, out.size)  # images one after another
    if not samples.flags.c_contiguous:
        samples, steps = cp.ascontiguousarray(rslc), (n_images, 1)
    sizes = (np.int64(out.size), np.int32(n_images), np.int64(steps[0]), np.int64(steps[1]))
    _launch("amp_disp", out.size, (samples, *sizes, np.int32(fewest), out))
    return out


class Amplitudes:
    """Running count of every pixel's amplitudes, the first one, and sum and sum of squares of deviations from it."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._count = cp.zeros(shape, dtype=np.int32)
        self._sums = tuple(cp.zeros(shape, dtype=np.float64) for _ in range(3))
        self._waiting: list[tuple[Any, float]] = []

    def add(self, plane: Any, gain: float) -> None:
        """Add one image, its amplitudes times a factor."""
        self._waiting.append((_samples(plane), gain))
        if len(self._waiting) == PLANES:
            self._flush()

    def dispersion(self, fewest: int) -> Any:
        """Return the dispersion index; nan where fewer images are valid."""
        self._flush()
        out = cp.empty(self._count.shape, dtype=np.float32)
        sizes = (np.int64(out.size), np.int32(fewest))
        _launch("dispersion", out.size, (self._count, *self._sums, *sizes, out))
        return out

    def _flush(self) -> None:
        if not self._waiting:
            return
        planes, gains = zip(*self._waiting, strict=True)
        unused = (planes[0],) * (PLANES - len(planes))
        sizes = (np.int32(len(planes)), np.int64(self._count.size))
        _launch(
            "add_images",
            self._count.size,
            (*planes, *unused, cp.asarray(np.array(gains)), *sizes, self._count, *self._sums),
        )
        self._waiting = []


def amplitude_sum(image: Any) -> tuple[float, int]:
    """Return the sum of the valid amplitudes of an image in float64, and how many there are."""
    totals = cp.zeros(SUM_BLOCKS, dtype=np.float64)
    counts = cp.zeros(SUM_BLOCKS, dtype=np.int64)
    _module.get_function("amplitude_sums")(
        (SUM_BLOCKS,), (THREADS,), (_samples(image), np.int64(image.size), totals, counts)
    )
    return float(totals.sum()), int(counts.sum())


class Residuals:
    """Running sum and count of the residual phasors of every pixel."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._sums = cp.zeros(shape, dtype=np.complex128)
        self._count = cp.zeros(shape, dtype=np.int32)

    @staticmethod
    def phasors(plane: Any) -> Any:
        """Return an image as `add` takes it."""
        out = cp.empty(plane.shape, dtype=np.complex64)
        _launch("phasors", plane.size, (_samples(plane), np.int64(plane.size), out))
        return out

    def add(self, intf: Any, ref: Any, sec: Any) -> None:
        """Add one interferogram, given the phasors of its two images."""
        size = self._count.size
        _launch("add_pair", size, (_samples(intf), ref, sec, np.int64(size), self._sums, self._count))

    def coherence(self, fewest: int) -> Any:
        """Return the temporal coherence; nan where fewer pairs are valid."""
        out = cp.empty(self._count.shape, dtype=np.float32)
        _launch("coherence", out.size, (self._sums, self._count, np.int64(out.size), np.int32(fewest), out))
        return out


def _samples(plane: Any) -> Any:
    return cp.ascontiguousarray(plane, dtype=np.complex64)


def _launch(name: str, threads: int, args: tuple[Any, ...]) -> None:
    """Start one thread per pixel."""
    if threads:
        _module.get_function(name)((-(-threads // THREADS),), (THREADS,), args)
