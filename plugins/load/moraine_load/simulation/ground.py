"""What is on the ground: a town by a river and a lake, covers with their scattering, and persistent scatterers."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, exp, pi
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_load.simulation.covers import (
    BARE,
    BUILDINGS,
    COVERS,
    FIELDS,
    FOREST,
    PS_AMPLITUDES,
    PS_CHANCES,
    PS_SHARE,
    STREETS,
    SUMMER,
    WATER,
)
from moraine_load.simulation.random_fields import Purpose, generator, smooth_field

if TYPE_CHECKING:
    from moraine_load.simulation.random_fields import Float32, Float64
    from moraine_load.simulation.scene import Scene


@dataclass(frozen=True)
class Ground:
    """What lies on some lines.

    Attributes
    ----------
    cover
        Class of every pixel, uint8 ``(lines, width)``.
    ps
        Complex amplitude of the persistent scatterer of every pixel, complex64 ``(lines, width)``; 0 where is none.
    """

    cover: np.ndarray[Any, np.dtype[np.uint8]]
    ps: np.ndarray[Any, np.dtype[np.complex64]]


def ground(scene: Scene, lines: range) -> Ground:
    """Return what lies on some lines of a scene."""
    y, x = ground_axes(scene, lines)
    height, width = scene.extent
    line, sample = np.meshgrid(y / height, x / width, indexing="ij")

    def field(purpose: Purpose, number: int) -> Float64:
        size = max(scene.extent)
        found = smooth_field(
            scene.seed, purpose, number, (0, 0, height, width), coarsest=size / 5, finest=size / 100, exponent=3.5
        )
        return found.on_grid(y, x)

    growth = field(Purpose.COVER, 0)
    cover = np.full(line.shape, BARE, np.uint8)
    cover[growth > 0.5] = FOREST
    cover[growth < -0.1] = FIELDS
    town = np.hypot((line - 0.45) / 0.30, (sample - 0.40) / 0.25) < 1 + 0.15 * field(Purpose.TOWN, 0)
    is_street = (np.mod(y, 336.0) < 28.0)[:, None] | (np.mod(x, 120.0) < 9.0)[None, :]
    cover[town] = np.where(is_street, STREETS, BUILDINGS)[town]
    shore = field(Purpose.WATER, 0)
    lake = (sample - 0.85) ** 2 / 0.012 + (line - 0.65) ** 2 / 0.08 < 1 + 0.15 * shore
    canal = np.abs(line - 0.55 - 0.05 * np.sin(9 * sample)) < 0.006
    river = np.abs(sample - 0.10 - 0.05 * np.sin(7 * line) - 0.02 * shore) < 0.012
    cover[lake | canal | river] = WATER
    return Ground(cover, _persistent(scene, lines, cover))


def _persistent(scene: Scene, lines: range, cover: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.complex64]]:
    """Return the persistent scatterers of some lines, drawn line by line."""
    share = np.array([PS_SHARE[c] for c in range(len(COVERS))])
    levels = np.cumsum(PS_CHANCES)[:-1]
    ps = np.zeros(cover.shape, np.complex64)
    for row, line in enumerate(lines):
        chance, level, turn = generator(scene.seed, Purpose.PS, 0, line).random((3, scene.width))
        bright = np.asarray(PS_AMPLITUDES)[np.searchsorted(levels, level)]
        ps[row] = np.where(chance < share[cover[row]], bright * np.exp(2j * pi * turn), 0)
    return ps


def ground_axes(scene: Scene, lines: range) -> tuple[Float64, Float64]:
    """Return where the centers of some lines and of all samples lie on the ground, from the first corner, m."""
    y = np.arange(lines.start, lines.stop, dtype=np.float64) + 0.5
    x = np.arange(scene.width, dtype=np.float64) + 0.5
    return y * np.float64(scene.azimuth_spacing), x * np.float64(scene.ground_spacing)


def displacement(scene: Scene, lines: range) -> tuple[Float64, Float64]:
    """Return the displacement of pixels toward the satellite: the steady rate (m/yr), and the amplitude of a year (m).

    The ground sinks in a bowl, a Gaussian around the town, and swings in another one beside it.
    """
    y, x = ground_axes(scene, lines)
    line, sample = (2 * a / size - 1 for a, size in zip((y, x), scene.extent, strict=True))
    bowl = np.exp(-((line[:, None] + 0.1) ** 2 + (sample[None, :] + 0.15) ** 2) / 0.12)
    swing = np.exp(-((line[:, None] - 0.2) ** 2 + (sample[None, :] - 0.3) ** 2) / 0.2)
    return -scene.strength.subsidence * bowl, scene.strength.seasonal * swing


def coherent_parts(scene: Scene) -> Float64:
    """Return the coherent part of the amplitude of each cover in each image, ``(covers, nimages)``, unitless."""
    if not scene.strength.decorrelation:
        return np.ones((len(COVERS), scene.nimages))
    season = np.array([(1 + cos(2 * pi * (day - SUMMER) / 365.25)) / 2 for day in scene.days_of_year])
    return np.array([c.initial**0.5 * (1 - c.seasonal * season) for c in COVERS])


def remaining(scene: Scene, days: float) -> Float64:
    """Return how much of the changing scatterers of each cover is the same after some days, ``(covers,)``, unitless."""
    if not scene.strength.decorrelation:
        return np.ones(len(COVERS))
    return np.array([exp(-abs(days) / c.days) for c in COVERS])


def coherence(scene: Scene) -> Float32:
    """Return the coherence of the distributed scatterers, receiver's noise included, ``(covers, nimages, nimages)``.

    For two images i, j of a cover: a_i a_j (g + (1 - g) exp(-|t_i - t_j| / tau)) A^2 / (A^2 + N^2), with the coherent
    parts a of the amplitude, the lasting part g, the time tau, the amplitude A, and the amplitude N of the noise.
    """
    parts, days = coherent_parts(scene), scene.days
    out = np.empty((len(COVERS), scene.nimages, scene.nimages), np.float32)
    for c, cover in enumerate(COVERS):
        signal = cover.amplitude**2 / (cover.amplitude**2 + scene.strength.noise**2)
        for i in range(scene.nimages):
            for j in range(scene.nimages):
                stays = remaining(scene, days[i] - days[j])[c]
                out[c, i, j] = parts[c, i] * parts[c, j] * (cover.lasting + (1 - cover.lasting) * stays) * signal
        np.fill_diagonal(out[c], 1)
    return out
