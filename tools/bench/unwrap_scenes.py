"""Point clouds whose unwrapped phases are known: made scenes for the benchmark of unwrapping, and how to score results.

Phases of images are sums of smooth signals and noise, never wrapped; what a program gets is their phasors. A scene has
the truth of every point, noise included, so that the whole cycles of any result are right or wrong without doubt.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import gaussian_filter

from moraine_raster.networks import TempNet

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray[Any, Any]

TWO_PI = 2 * np.pi
LOST = 10.0
"""Noise of a sample without coherence: its cycles cannot be known, and do not count (rad)."""

REPEAT_DAYS = 14
HOP = 3
"""Interferograms of every image with this many following ones."""

CLUSTER_SIZE, AIR_SIZE, HEIGHT_SIZE = 12, 40, 40
"""Sizes of what is smooth in clusters, atmosphere and errors of heights, in pixels: of five choices the one with which
costs by length get about as much wrong as published for a scene of this description."""


@dataclass(frozen=True)
class Scene:
    """Points, and the phases of their images before they were wrapped.

    Attributes
    ----------
    gix
        Places in pixels, ``(n_points, 2)`` int32, in the order of rows.
    phase
        True phases with noise, ``(n_points, nimages)`` float64, in radians.
    noise
        Standard deviation of the noise in `phase`, of the same shape or one that broadcasts to it, in radians.
    dates
        Day of every image, ``(nimages,)``.
    """

    gix: Array
    phase: Array
    noise: Array
    dates: Array

    @cached_property
    def pairs(self) -> Array:
        """Interferograms of every image with the next three, ``(n_pairs, 2)`` int32."""
        nimages = self.phase.shape[1]
        return TempNet.from_bandwidth(nimages, min(HOP, nimages)).image_pairs

    @property
    def ph(self) -> Array:
        """Phasors, as the commands read them, ``(n_points, nimages)`` complex64."""
        return np.exp(1j * self.phase).astype(np.complex64)

    @property
    def reference(self) -> int:
        """Point to which cycles are relative: of those with the least noise the one nearest to the middle.

        Published shares are relative to point 0, which lies at the edge and may be a bad one: then they are larger.
        """
        noise = np.mean(self.noise**2, axis=1)
        best = np.flatnonzero(noise <= noise.min())
        from_middle = np.sum((self.gix[best] - np.median(self.gix, axis=0)) ** 2, axis=1)
        return int(best[from_middle.argmin()])

    @property
    def counts(self) -> Array:
        """Whether the cycles of a point and pair count, ``(n_points, n_pairs)`` bool."""
        is_known = self.noise < LOST
        return is_known[:, self.pairs[:, 0]] & is_known[:, self.pairs[:, 1]]

    def true_pairs(self) -> Array:
        """Return the unwrapped interferograms, ``(n_points, n_pairs)`` float64, in radians."""
        return self.phase[:, self.pairs[:, 0]] - self.phase[:, self.pairs[:, 1]]

    def wrapped_pairs(self) -> Array:
        """Return the wrapped interferograms, ``(n_points, n_pairs)`` float64, in radians."""
        true = self.true_pairs()
        wrapped: Array = true - TWO_PI * cycles_of(true)
        return wrapped


def cycles_of(phase: Array) -> Array:
    """Return the nearest whole cycles."""
    return np.rint(phase / TWO_PI).astype(np.int64)


def wrong_cycles(scene: Scene, unwrapped: Array) -> float:
    """Share of points and pairs whose whole cycles relative to the reference point are wrong."""
    cycles = cycles_of(unwrapped - scene.true_pairs())
    return float(np.mean((cycles != cycles[scene.reference])[scene.counts]))


def wrong_edges(scene: Scene, unwrapped: Array, edges: Array) -> float:
    """Share of edges, ``(n_edges, 2)``, and pairs along which the whole cycles are wrong."""
    cycles = cycles_of(unwrapped - scene.true_pairs())
    first, second = edges.T
    return float(np.mean((cycles[first] != cycles[second])[scene.counts[first] & scene.counts[second]]))


def wrong_points(scene: Scene, unwrapped: Array) -> float:
    """Share of points of the first interferogram that differ in their cycles from most of the others."""
    cycles = cycles_of(unwrapped - scene.true_pairs()[:, 0])
    return 1 - float(np.unique(cycles, return_counts=True)[1].max() / cycles.size)


def uniform(n_points: int, noise: float, seed: int, *, steepest: float = 1.0, is_even: bool = True) -> Scene:
    """Random points and two images, whose difference is a bowl on a wavy plane.

    Parameters
    ----------
    n_points
        Number of points, about one per 100 pixels.
    noise
        Standard deviation of the noise of the interferogram, in radians.
    seed
        Of the random numbers.
    steepest
        Largest slope, in radians per mean distance of points.
    is_even
        False for noise that differs from point to point: its variance is exponentially distributed, of this mean.
    """
    rng = np.random.default_rng(seed)
    side = round((100 * n_points) ** 0.5)
    pixels = np.unique(rng.integers(0, side * side, n_points + n_points // 20))
    pixels = pixels[np.sort(rng.permutation(len(pixels))[:n_points])]
    gix = np.stack(np.divmod(pixels, side), axis=1).astype(np.int32)
    y, x = (gix / side).T
    signal = 10 * np.exp(-((x - 0.5) ** 2 + (y - 0.45) ** 2) / (2 * 0.15**2)) + 3 * x + 2 * y
    signal += np.sin(5 * x) * np.cos(4 * y)
    per_side = 10 / 0.15 * np.exp(-0.5) + 13**0.5  # slope of the bowl at its steepest, and of the plane
    signal *= steepest * n_points**0.5 / per_side
    sigma = np.full(n_points, noise) if is_even else noise * np.sqrt(rng.exponential(size=n_points))
    phase = np.stack([signal + sigma * rng.normal(size=n_points), np.zeros(n_points)], axis=1)
    return Scene(gix, phase, np.stack([sigma, np.zeros(n_points)], axis=1), np.arange(2) * REPEAT_DAYS)


def clusters(seed: int, *, side: int = 400, n_season: int = 8) -> Scene:
    """Benchmark A: dense clusters with sparse bridges between them; two seasons of images with a long gap.

    A bowl of 12 rad/yr on a ramp, a seasonal signal of 1.5 rad, heights off by what makes 0.02 rad per meter of
    baseline, baselines of 70 m, 1 rad of smooth atmosphere per image, and noise of ``0.6 (1.4 - quality)`` rad, twice
    as much in the images next to the gap.
    """
    rng = np.random.default_rng(seed)
    quality = np.clip(smooth(rng, (side, side), CLUSTER_SIZE), 0, 1)
    draw = rng.random((side, side))
    gix = np.argwhere(((quality > 0.3) & (draw < 0.5)) | (draw < 0.004)).astype(np.int32)
    season = np.arange(n_season) * REPEAT_DAYS
    dates = np.concatenate([season, season[-1] + 224 + season])
    years = dates / 365.25
    at = tuple(gix.T)
    y, x = (gix / side).T
    rate = 12 * np.exp(-((x - 0.5) ** 2 + (y - 0.5) ** 2) / (2 * 0.15**2)) + 2 * x
    heights = 0.02 * smooth(rng, (side, side), HEIGHT_SIZE)[at]
    signal = np.outer(rate, years) + np.outer(heights, rng.normal(0, 70, len(dates)))
    signal += np.outer(x, 1.5 * np.sin(TWO_PI * years))
    signal += np.stack([smooth(rng, (side, side), AIR_SIZE)[at] for _ in dates], axis=1)
    sigma = np.repeat(0.6 * (1.4 - quality[at])[:, None], len(dates), axis=1)
    sigma[:, n_season - 1 : n_season + 1] *= 2
    return Scene(gix, signal + sigma * rng.normal(size=sigma.shape), sigma, dates)


def islands(seed: int, *, side: int = 300, nimages: int = 12) -> Scene:
    """Benchmark B: islands with water between them, on which there are no points, and samples without any coherence.

    Each point is decorrelated in a share of the images of its own, of 10 % on average.
    """
    rng = np.random.default_rng(seed)
    land = smooth(rng, (side, side), 15) > 0.3
    gix = np.argwhere(land & (rng.random((side, side)) < 0.5)).astype(np.int32)
    at, years = tuple(gix.T), np.arange(nimages) * REPEAT_DAYS / 365.25
    y, x = (gix / side).T
    rate = 12 * np.exp(-((x - 0.5) ** 2 + (y - 0.45) ** 2) / (2 * 0.15**2)) + 3 * x
    signal = np.outer(rate, years)
    signal += np.stack([smooth(rng, (side, side), AIR_SIZE)[at] for _ in range(nimages)], axis=1)
    is_lost = rng.random(signal.shape) < 0.2 * rng.random((len(gix), 1))
    sigma = np.where(is_lost, LOST, 0.4)
    return Scene(gix, signal + sigma * rng.normal(size=sigma.shape), sigma, np.arange(nimages) * REPEAT_DAYS)


def grid(noise: float, seed: int, *, side: int = 120, nimages: int = 12) -> Scene:
    """Benchmark C: a regular grid with 10 % gaps and slopes below 2.5 rad from pixel to pixel, diagonally too.

    Parameters
    ----------
    noise
        Standard deviation of the noise of the interferograms, in radians.
    seed
        Of the random numbers.
    side, nimages
        Pixels of a side and images.
    """
    rng = np.random.default_rng(seed)
    gix = np.argwhere(rng.random((side, side)) >= 0.1).astype(np.int32)
    y, x = (gix / side).T
    radius = 0.15
    bowl = np.exp(-((x - 0.5) ** 2 + (y - 0.45) ** 2) / (2 * radius**2))
    steepest = np.exp(-0.5) / (radius * side)  # of the bowl, per pixel
    # along the diagonals of pixels, in pairs of images that are three apart
    signal = np.outer(bowl * 2.4 / 2**0.5 / steepest / HOP, np.arange(nimages))
    sigma = np.full((1, nimages), noise / 2**0.5)
    phase = signal + sigma * rng.normal(size=signal.shape)
    return Scene(gix, phase, np.broadcast_to(sigma, phase.shape), np.arange(nimages) * REPEAT_DAYS)


def smooth(rng: np.random.Generator, shape: Sequence[int], size: float) -> Array:
    """Return a random field of mean 0 and variance 1 that is smooth over `size` pixels."""
    field = gaussian_filter(rng.normal(size=tuple(shape)), size, mode="wrap")
    standard: Array = (field - field.mean()) / field.std()
    return standard
