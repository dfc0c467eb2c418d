"""Synthetic interferograms with known truth, for training the filters and for measuring them.

A scene is a clean phase and a coherence on a grid. Two circular complex Gaussian images are drawn with that coherence,
oversampled as SAR images are, and multiplied. Everything is made with torch from one generator, in batches, so that a
seed repeats it and a GPU can make it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = ("bowls", "ramp", "turbulence", "dem error", "discontinuities", "mix")
"""Kinds of clean phase; ``mix`` is a sum of the others with random shares."""

STEEPEST = 1.6
"""Largest usual gradient of the clean phase, in radians per pixel: a fringe of four pixels."""


@dataclass(frozen=True)
class Scenes:
    """A batch of interferograms.

    Attributes
    ----------
    z
        Single-look interferograms, complex64, shape ``(n, h, w)``; missing samples are 0.
    clean
        Phasors without noise, complex64, the same shape; 0 where there is nothing but noise.
    coh
        Coherence, 0 to 1, float32, the same shape.
    """

    z: Tensor
    clean: Tensor
    coh: Tensor


def uniform(shape: tuple[int, ...], low: float, high: float, gen: torch.Generator) -> Tensor:
    """Return uniform random numbers."""
    return torch.rand(shape, generator=gen, device=gen.device) * (high - low) + low


def fractal(n: int, side: int, slope: Tensor | float, gen: torch.Generator) -> Tensor:
    """Return random fields of a power-law spectrum with mean 0 and standard deviation 1.

    Parameters
    ----------
    n, side
        Number of fields, and lines and pixels of each. Fields are quarters of larger ones, so they are not periodic.
    slope
        Exponent of the two-dimensional power spectrum, one for all or one each, of which every fourth counts.
    gen
        Where random numbers come from.

    Returns
    -------
    Tensor
        float32, shape ``(n, side, side)``.
    """
    full, larger = 2 * side, -(-n // 4)
    fy = torch.fft.fftfreq(full, device=gen.device)[:, None]
    fx = torch.fft.rfftfreq(full, device=gen.device)[None]
    f = torch.hypot(fy, fx)
    f[0, 0] = 1
    power = torch.as_tensor(slope, dtype=torch.float32, device=gen.device).reshape(-1, 1, 1)[::4] / -2
    gain = f**power
    gain[..., 0, 0] = 0
    spectrum = torch.randn((larger, *f.shape), dtype=torch.complex64, generator=gen, device=gen.device) * gain
    field = torch.fft.irfft2(spectrum, s=(full, full))
    field = field.unfold(1, side, side).unfold(2, side, side).reshape(-1, side, side)[:n]
    field = field - field.mean((1, 2), keepdim=True)
    return field / field.std((1, 2), keepdim=True)


def grid(side: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return line and pixel coordinates from -1/2 to 1/2, each of shape ``(1, side, side)``."""
    axis = (torch.arange(side, device=device) + 0.5) / side - 0.5
    return axis[None, :, None].expand(1, side, side), axis[None, None, :].expand(1, side, side)


def bowls(n: int, side: int, gen: torch.Generator) -> Tensor:
    """Return sums of one to four bowls, Gaussian or of the Mogi kind, of random size and depth, in radians."""
    y, x = grid(side, gen.device)
    phase = torch.zeros((n, side, side), device=gen.device)
    for number in range(4):
        cy, cx = uniform((2, n, 1, 1), -0.6, 0.6, gen)
        radius = torch.exp(uniform((n, 1, 1), -3.2, -0.7, gen))
        stretch, turn = uniform((n, 1, 1), 0.5, 1, gen), uniform((n, 1, 1), 0, pi, gen)
        u = (x - cx) * torch.cos(turn) + (y - cy) * torch.sin(turn)
        v = (y - cy) * torch.cos(turn) - (x - cx) * torch.sin(turn)
        r2 = ((u / stretch) ** 2 + v**2) / radius**2
        gaussian = uniform((n, 1, 1), 0, 1, gen) < 0.5
        shape = torch.where(gaussian, torch.exp(-r2), (1 + r2) ** -1.5)
        steepest = 0.86 / (radius * side * stretch)  # of either shape of depth 1, radians per pixel
        depth = uniform((n, 1, 1), -1, 1, gen) * STEEPEST / steepest
        there = uniform((n, 1, 1), 0, 1, gen) < (1, 0.6, 0.4, 0.2)[number]
        phase += there * depth * shape
    return phase


def ramp(n: int, side: int, gen: torch.Generator) -> Tensor:
    """Return planes of a random direction and steepness with a little curvature, in radians."""
    y, x = grid(side, gen.device)
    turn = uniform((n, 1, 1), 0, 2 * pi, gen)
    slope = uniform((n, 1, 1), 0, 1, gen) ** 1.5 * STEEPEST * side
    bend = uniform((3, n, 1, 1), -0.25, 0.25, gen) * slope
    plane = slope * (x * torch.cos(turn) + y * torch.sin(turn))
    return plane + bend[0] * x * x + bend[1] * y * y + bend[2] * x * y


def turbulence(n: int, side: int, gen: torch.Generator) -> Tensor:
    """Return the delay of a turbulent atmosphere, spectrum with power 8/3, in radians."""
    strength = torch.exp(uniform((n, 1, 1), -0.7, 1.6, gen))
    return fractal(n, side, 8 / 3 + 1, gen) * strength


def dem_error(n: int, side: int, gen: torch.Generator) -> Tensor:
    """Return residual topography: rough relief, and blocks of constant height, in radians."""
    rough = fractal(n, side, uniform((n,), 2.6, 4, gen), gen) * torch.exp(uniform((n, 1, 1), -0.7, 1.2, gen))
    return rough + blocks(n, side, gen, 12) * (uniform((n, 1, 1), 0, 1, gen) < 0.5)


def blocks(n: int, side: int, gen: torch.Generator, most: int) -> Tensor:
    """Return rectangles of constant phase, such as buildings that a height model lacks, in radians."""
    y, x = grid(side, gen.device)
    phase = torch.zeros((n, side, side), device=gen.device)
    for _ in range(most):
        cy, cx = uniform((2, n, 1, 1), -0.5, 0.5, gen)
        h, w = torch.exp(uniform((2, n, 1, 1), -3.7, -1.7, gen))
        phase += ((y - cy).abs() < h) * ((x - cx).abs() < w) * uniform((n, 1, 1), -2, 2, gen)
    return phase


def discontinuities(n: int, side: int, gen: torch.Generator) -> Tensor:
    """Return smooth fields that jump across one or two curves, such as faults, in radians."""
    phase = fractal(n, side, 4.5, gen) * torch.exp(uniform((n, 1, 1), -1, 2.3, gen))
    for number in range(2):
        level = fractal(n, side, 5, gen) + uniform((n, 1, 1), -0.7, 0.7, gen)
        jump = uniform((n, 1, 1), -pi, pi, gen) * (1 if number == 0 else uniform((n, 1, 1), 0, 1, gen) < 0.4)
        phase += jump * (level > 0)
    return phase


MAKERS = {
    "bowls": bowls,
    "ramp": ramp,
    "turbulence": turbulence,
    "dem error": dem_error,
    "discontinuities": discontinuities,
}


def clean_phase(kind: str, n: int, side: int, gen: torch.Generator) -> Tensor:
    """Return clean phases of a kind with a random offset, in radians, unwrapped, float32, ``(n, side, side)``."""
    if kind != "mix":
        phase = MAKERS[kind](n, side, gen)
    else:
        phase = torch.zeros((n, side, side), device=gen.device)
        for maker in MAKERS.values():
            share = uniform((n, 1, 1), 0, 1, gen) * (uniform((n, 1, 1), 0, 1, gen) < 0.5)
            phase += share * maker(n, side, gen)
    return phase + uniform((n, 1, 1), -pi, pi, gen)


def coherence(n: int, side: int, gen: torch.Generator) -> Tensor:
    """Return coherences of 0.05 to 0.95 that are constant, smooth or in patches, with bright points in some."""
    low, high = uniform((2, n, 1, 1), 0, 1, gen).sort(0).values
    field = fractal(n, side, uniform((n,), 2, 4.5, gen), gen)
    smooth = low + (high - low) * torch.sigmoid(2 * field)
    level = uniform((n, 1, 1), -1, 1, gen)
    patches = torch.where(field > level, low, high) + torch.where(field > level + 0.8, uniform((n, 1, 1), 0, 1, gen), 0)
    choice = uniform((n, 1, 1), 0, 1, gen)
    coh = torch.where(choice < 0.3, high, torch.where(choice < 0.65, smooth, patches))
    share = 10 ** uniform((n, 1, 1), -3, -1, gen) * (uniform((n, 1, 1), 0, 1, gen) < 0.3)
    points = uniform((n, side, side), 0, 1, gen) < share
    return torch.where(points, 1.0, coh).clamp(0, 1) * 0.9 + 0.05


def speckle(shape: tuple[int, int, int], band: Tensor, gen: torch.Generator) -> Tensor:
    """Return circular complex Gaussian fields of mean power 1 that fill a share of the spectrum.

    Parameters
    ----------
    shape
        ``(n, h, w)``.
    band
        Bandwidth over sampling rate in azimuth and range, shape ``(2, n)``; 1 is white.
    gen
        Where random numbers come from.
    """
    _, h, w = shape
    spectrum = torch.randn(shape, dtype=torch.complex64, generator=gen, device=gen.device)
    gains = []
    for size, share in zip((h, w), band, strict=True):
        f = torch.fft.fftfreq(size, device=gen.device)[None] / share[:, None]
        gains.append(torch.where(f.abs() <= 0.5, 0.75 + 0.25 * torch.cos(2 * pi * f), 0))  # a mild Hamming window
    gain = gains[0][:, :, None] * gains[1][:, None, :]
    gain = gain / gain.square().mean((1, 2), keepdim=True).sqrt()
    return torch.fft.ifft2(spectrum * gain, norm="ortho")


@dataclass(frozen=True)
class Targets:
    """Small bright targets such as buildings, in a batch of scenes.

    Attributes
    ----------
    inside
        Where they are, bool, shape ``(n, side, side)``.
    offset
        Phase that each has besides that of its surroundings, in radians; 0 for half of them.
    gain
        Logarithm of how much brighter each is.
    """

    inside: Tensor
    offset: Tensor
    gain: Tensor


def targets(n: int, side: int, gen: torch.Generator) -> Targets:
    """Return targets of one to five pixels in each direction, in two scenes of five."""
    share = 10 ** uniform((n, 1, 1), -4, -2.3, gen) * (uniform((n, 1, 1), 0, 1, gen) < 0.4)
    shape = (n, side, side)
    seeds = uniform(shape, 0.1, 1, gen) * (uniform(shape, 0, 1, gen) < share)
    h, w = torch.randint(1, 6, (2,), generator=gen, device=gen.device).tolist()
    score, index = max_pool2d(seeds, (h, w), 1, (h // 2, w // 2), return_indices=True)
    score, index = score[:, :side, :side], index[:, :side, :side]
    has_offset = uniform(shape, 0, 1, gen) < 0.5
    fields = (uniform(shape, -pi, pi, gen) * has_offset, uniform(shape, 0, 4, gen))
    flat = index.reshape(n, -1)
    offset, gain = (field.reshape(n, -1).gather(1, flat).reshape(shape) for field in fields)
    return Targets(score > 0, offset, gain)


def interferogram(phase: Tensor, coh: Tensor, gen: torch.Generator, *, textured: bool = True) -> Tensor:
    """Return single-look interferograms of two images with a given phase and coherence.

    Parameters
    ----------
    phase, coh
        Clean phase in radians and coherence, shape ``(n, side, side)``.
    gen
        Where random numbers come from.
    textured
        Let the backscatter vary from place to place too, and points of high coherence be bright, in most of them.

    Returns
    -------
    Tensor
        complex64; a reference image times the conjugate of a secondary one.
    """
    n, side = phase.shape[:2]
    band = torch.where(uniform((2, n), 0, 1, gen) < 0.2, 1.0, uniform((2, n), 0.6, 1, gen))
    common, own = (speckle((n, side, side), band, gen) for _ in range(2))
    z = common * (coh * common + torch.sqrt(1 - coh**2) * own).conj()
    z = z * torch.polar(torch.ones_like(phase), phase)
    if textured:
        texture = fractal(n, side, uniform((n,), 1, 3, gen), gen) * uniform((n, 1, 1), 0, 1.5, gen)
        bright = uniform((n, 1, 1), 0, 4, gen) * (coh > 0.9)
        plain = uniform((n, 1, 1), 0, 1, gen) < 0.3
        z = z * torch.exp(torch.where(plain, 0, texture + bright))
    return z


def raster_batches(n: int, side: int, gen: torch.Generator, uses: int, share_lost: float = 0) -> Iterator[Scenes]:
    """Yield training batches: scenes of all kinds, some with missing samples, some of unit modulus.

    Parameters
    ----------
    n, side
        Number of interferograms in a batch, and lines and pixels of each.
    gen
        Where random numbers come from.
    uses
        Number of batches, which share their clean phases and coherences: each time they are turned or mirrored, paired
        anew, and have noise of their own. That halves the time that scenes take.
    share_lost
        Share of interferograms with areas without any coherence, such as water. What phase the ground would have there
        is not asked for: a lake is not to be filled in from its shores.
    """
    single = n // 2
    phase = torch.cat(
        [clean_phase("mix", n - single, side, gen)]
        + [
            clean_phase(kind, count, side, gen)
            for number, kind in enumerate(MAKERS)
            if (count := single // len(MAKERS) + (number < single % len(MAKERS)))
        ]
    )
    coh = coherence(n, side, gen)
    for _ in range(uses):
        turns, mirror, shift = torch.randint(0, 840, (3,), generator=gen, device=gen.device).tolist()
        phase = torch.rot90(phase, turns % 4, (1, 2)) * (1 if turns % 3 else -1)
        phase = phase.flip(1) if mirror % 2 else phase
        coh = coh.roll(1 + shift % (n - 1) if n > 1 else 0, 0)
        bright = targets(n, side, gen)
        seen = torch.where(bright.inside, phase + bright.offset, phase)
        sure = torch.where(bright.inside, coh.clamp(min=0.9), coh)
        gain = torch.where(bright.inside, bright.gain.exp(), 1)
        if share_lost:
            water, dark = lost(n, side, gen, share_lost)
            sure, gain = torch.where(water, 0, sure), torch.where(water, dark, gain)
        z = interferogram(seen, sure, gen) * gain
        # phase-only stacks are filtered too
        z = torch.where(uniform((n, 1, 1), 0, 1, gen) < 0.15, z / z.abs().clamp(min=1e-12), z)
        turn = uniform((n, 1, 1), -pi, pi, gen)
        clean = torch.polar((sure > 0).float(), seen + turn)
        z = torch.where(missing(n, side, gen), 0, z * torch.polar(torch.ones_like(turn), turn))
        yield Scenes(z, clean, sure)


def lost(n: int, side: int, gen: torch.Generator, share: float) -> tuple[Tensor, Tensor]:
    """Return where a share of the images have no coherence, in areas of any size, such as water, and how bright."""
    area = fractal(n, side, uniform((n,), 2.5, 4.5, gen), gen) > uniform((n, 1, 1), -2.5, 1.5, gen)
    dark = torch.exp(-uniform((n, 1, 1), 0, 3, gen) * (uniform((n, 1, 1), 0, 1, gen) < 0.5))
    return area & (uniform((n, 1, 1), 0, 1, gen) < share), dark


def missing(n: int, side: int, gen: torch.Generator) -> Tensor:
    """Return where samples are missing, bool: patches and single samples in a quarter, ends of images in a fifth."""
    y, x = grid(side, gen.device)
    patches = fractal(n, side, 3, gen) > uniform((n, 1, 1), 0.5, 2.5, gen)
    single = uniform((n, side, side), 0, 1, gen) < uniform((n, 1, 1), 0, 0.3, gen)
    gone = (patches | single) & (uniform((n, 1, 1), 0, 1, gen) < 0.25)
    for axis in (y, x):
        gone |= (axis > uniform((n, 1, 1), 0.1, 0.5, gen)) & (uniform((n, 1, 1), 0, 1, gen) < 0.1)
    return gone
