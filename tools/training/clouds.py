"""Synthetic interferograms on point clouds, for training n2ft and for measuring it.

Clean phases and coherences come from a pool of the grids of `scenes`, each seen through a random similarity, so that a
few grids give many interferograms. Clouds are evenly spread, clustered, or pixels of a stretched raster.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor
from training.scenes import MAKERS, clean_phase, coherence, fractal, speckle, uniform

SIDE = 160
"""Lines and pixels of a grid of the pool."""

TURNED = 2**-0.5 * 0.98
"""Side of a square that fits into a square of side 1 at any angle."""


@dataclass(frozen=True)
class CloudScenes:
    """Interferograms on one cloud.

    Attributes
    ----------
    xy
        Coordinates, float64 ``(n_points, 2)``.
    z
        Interferograms, complex64 ``(n_points, batch)``; missing samples are 0.
    clean
        Phasors without noise, complex64, the same shape.
    """

    xy: Tensor
    z: Tensor
    clean: Tensor


class Pool:
    """Grids of clean phase and of coherence, a few of which are made anew whenever a batch is drawn.

    Parameters
    ----------
    size
        Number of grids of each.
    gen
        Where random numbers come from.
    """

    def __init__(self, size: int, gen: torch.Generator) -> None:
        self.gen = gen
        self.kinds = (*MAKERS, "mix", "mix", "mix")
        self.phase = torch.empty(size, SIDE, SIDE)
        self.coh, self.texture = torch.empty_like(self.phase), torch.empty_like(self.phase)
        self.next = 0
        for _ in range(size):
            self.renew()

    def renew(self) -> None:
        """Make one grid of each anew."""
        i = self.next % len(self.phase)
        self.phase[i] = clean_phase(self.kinds[self.next % len(self.kinds)], 1, SIDE, self.gen)[0]
        self.coh[i] = coherence(1, SIDE, self.gen)[0]
        self.texture[i] = fractal(1, SIDE, uniform((1,), 1, 3, self.gen), self.gen)[0]
        self.next += 1

    def batch(self, n_points: int, n: int) -> CloudScenes:
        """Return a cloud of about `n_points` points with `n` interferograms."""
        gen = self.gen
        self.renew()
        xy, grid = cloud(n_points, gen)
        phase = self.seen(self.phase, xy, n)
        mixed = uniform((n,), 0, 1, gen) < 0.3
        phase = phase + self.seen(self.phase, xy, n) * uniform((n,), -1, 1, gen) * mixed
        phase = phase * uniform((n,), 0.1, 1, gen)
        phase = phase + uniform((n,), -pi, pi, gen)
        coh = self.seen(self.coh, xy, n)
        fixed = uniform((n,), 0, 1, gen)
        coh = torch.where(fixed < 0.4, 0.95 * uniform((n,), 0, 1, gen) ** 1.5, coh)
        spread = uniform((n,), 0, 0.5, gen) * (fixed < 0.6)  # points differ from their neighbors
        coh = (coh + spread * torch.randn(coh.shape, generator=gen)).clamp(0, 0.98)
        z = noisy(coh, grid, gen) * torch.polar(torch.ones_like(phase), phase)
        texture = self.seen(self.texture, xy, n) * uniform((n,), 0, 1.5, gen)
        texture = texture + uniform((n,), 0, 3, gen) * (coh > 0.8)
        z = z * torch.exp(torch.where(uniform((n,), 0, 1, gen) < 0.4, 0, texture))
        z = torch.where(uniform((n,), 0, 1, gen) < 0.35, z / z.abs().clamp(min=1e-12), z)
        share = uniform((n,), 0, 0.4, gen) * (uniform((n,), 0, 1, gen) < 0.2)
        z = torch.where(uniform(z.shape, 0, 1, gen) < share, 0, z)
        return CloudScenes(xy, z, torch.polar(torch.ones_like(phase), phase))

    def seen(self, grids: Tensor, xy: Tensor, n: int) -> Tensor:
        """Return `n` grids of the pool at points of the unit square, each seen through a similarity; (points, n)."""
        gen = self.gen
        chosen = torch.randint(0, len(grids), (n,), generator=gen)
        size = TURNED * uniform((n, 1, 1), 0.35, 1, gen)
        turn = uniform((n,), 0, 2 * pi, gen)
        c, s = torch.cos(turn), torch.sin(turn)
        rotation = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)
        places = (2 * xy.float() - 1)[None] @ rotation * size
        places = places + uniform((n, 1, 2), -1, 1, gen) * (1 - size / TURNED)
        return at_points(grids[chosen], places).T


def at_points(grids: Tensor, places: Tensor) -> Tensor:
    """Return values of grids ``(n, side, side)`` at places ``(n, n_points, 2)`` of -1 to 1, bilinear: (n, n_points)."""
    return torch.nn.functional.grid_sample(grids[:, None], places[:, None], align_corners=True)[:, 0, 0]


def cloud(n_points: int, gen: torch.Generator) -> tuple[Tensor, Tensor | None]:
    """Return points of the unit square, turned at random, and their pixels if they are those of a raster.

    Parameters
    ----------
    n_points
        About how many.
    gen
        Where random numbers come from.

    Returns
    -------
    xy, pixels
        float64 ``(n, 2)``, and line and pixel int64 ``(n, 2)`` or None.
    """
    kind = float(uniform((1,), 0, 1, gen))
    contrast = float(uniform((1,), 0, 2, gen)) if kind > 0.25 else 0.0
    stretch = float(torch.exp(uniform((1,), 0, 1.4, gen)))
    pixels = None
    if kind < 0.6:
        weight = torch.exp(fractal(1, 64, 3, gen)[0] * contrast)
        cell = torch.multinomial(weight.flatten(), n_points, replacement=True, generator=gen)
        xy = torch.stack([cell % 64, cell // 64], -1) + uniform((n_points, 2), 0, 1, gen)
        xy = xy.double() / 64
    else:
        share = float(uniform((1,), 0.1, 1, gen))
        lines = max(round((n_points / share / stretch) ** 0.5), 2)
        width = max(round(n_points / share / lines), 2)
        side = max(lines, width)
        weight = torch.exp(fractal(1, side, 3, gen)[0, :lines, :width] * contrast)
        most = min(n_points, lines * width)
        chosen = torch.multinomial(weight.flatten(), most, generator=gen)
        pixels = torch.stack([chosen // width, chosen % width], -1)
        xy = (pixels.double() + 0.5) / torch.tensor([lines, width])
    turn = uniform((1,), 0, 2 * pi, gen).double()
    c, s = torch.cos(turn), torch.sin(turn)
    rotation = torch.cat([torch.stack([c, -s], -1), torch.stack([s, c], -1)])
    return (xy - 0.5) @ rotation * TURNED + 0.5, pixels


def noisy(coh: Tensor, pixels: Tensor | None, gen: torch.Generator) -> Tensor:
    """Return interferograms of phase 0 and a given coherence, with noise as single-look images have it.

    Parameters
    ----------
    coh
        Coherence, shape ``(n_points, batch)``.
    pixels
        Line and pixel of each point, whose speckle is then that of an oversampled raster; None where it is white.
    gen
        Where random numbers come from.
    """
    if pixels is None:
        common, own = (torch.randn(coh.shape, dtype=torch.complex64, generator=gen) for _ in range(2))
    else:
        lines, width = (int(most) + 1 for most in pixels.max(0).values)
        n = coh.shape[1]
        band = torch.where(uniform((2, n), 0, 1, gen) < 0.3, 1.0, uniform((2, n), 0.6, 1, gen))
        common, own = (speckle((n, lines, width), band, gen)[:, pixels[:, 0], pixels[:, 1]].T for _ in range(2))
    return common * (coh * common + torch.sqrt(1 - coh**2) * own).conj()
