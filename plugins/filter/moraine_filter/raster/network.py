"""The network of n2f: a small U-Net (after Ronneberger et al., 2015) on phasors, made for a pixel grid that is cut up.

It differs from the usual ones in what cutting and missing samples need. Nothing in it depends on the size of what it is
given: there is no normalization over the image, and coarse levels are made and undone by blocks of pixels, so that a
tile gives the values of the whole image if it begins on the grid of the coarsest level and has a halo (see `tiles`).
Samples that are missing are zeros beside a mask, and what lies beyond the image is missing.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (32, 64, 96, 128)
"""Channels of levels whose pixels are 2, 4, 8 and 16 wide."""

BLOCK = 8
"""Pixels of the blocks in which the usual amplitude is taken."""


class Unit(nn.Module):
    """A 3 x 3 convolution and a mixing of channels; what comes in is added where it has as many channels."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.spread = nn.Conv2d(n_in, n_out, 3, padding=1)
        self.mix = nn.Conv2d(n_out, n_out, 1)
        self.adds = n_in == n_out
        if self.adds:
            nn.init.normal_(self.mix.weight, std=0.3 * n_out**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the same size."""
        y = mixed(self.mix, functional.relu(self.spread(x), inplace=True))
        return y.add_(x) if self.adds else y  # in place: on a CPU, memory is what takes the time


class N2F(nn.Module):
    """The filter: noisy phasors in, estimates of the clean ones out.

    Parameters
    ----------
    widths
        Channels by level, the finest first; its pixels are two wide.
    """

    def __init__(self, widths: tuple[int, ...] = WIDTHS) -> None:
        super().__init__()
        self.widths = widths
        steps = list(pairwise(widths))
        self.stem = Unit(4 * 6, widths[0])
        self.encode = nn.ModuleList(Unit(n, n) for n in widths)
        self.down = nn.ModuleList(nn.Conv2d(fine, coarse, 2, 2) for fine, coarse in steps)
        self.up = nn.ModuleList(nn.Conv2d(coarse, fine, 1) for fine, coarse in steps)
        self.decode = nn.ModuleList(nn.Sequential(Unit(n, n), Unit(n, n)) for n in widths)
        self.head = nn.Conv2d(widths[0], 4 * 3, 3, padding=1)

    def forward(self, unit: Tensor, level: Tensor) -> Tensor:
        """Return the expected clean phasors.

        Parameters
        ----------
        unit
            Noisy phasors, real and imaginary parts, float32, shape ``(n, 2, h, w)``; 0 where missing. Lines and pixels
            are multiples of 16.
        level
            Logarithm of the amplitude, any unit, float32, shape ``(n, 1, h, w)``; of missing samples anything finite.

        Returns
        -------
        Tensor
            Real and imaginary parts, float32, shape ``(n, 2, h, w)``. The angle is the filtered phase. The modulus,
            about 0 to 1, is the cosine of its error to be expected, since the squared error was minimized.
        """
        valid = ((unit[:, :1] != 0) | (unit[:, 1:] != 0)).to(unit.dtype)
        weight = reliability(level, valid)
        x = self.stem(halved(torch.cat([unit, unit * weight, weight, valid], 1)))
        skips = []
        for number, encode in enumerate(self.encode):
            x = encode(x)
            if number < len(self.down):
                skips.append(x)
                x = self.down[number](x)
        x = self.decode[-1](x)
        for number in reversed(range(len(self.down))):
            x = self.decode[number](added(skips.pop(), mixed(self.up[number], x)))
        y = functional.pixel_shuffle(self.head(x).float().contiguous(), 2)
        return y[:, :2] + torch.sigmoid(y[:, 2:]) * unit  # a good sample needs little change


def reliability(level: Tensor, valid: Tensor) -> Tensor:
    """Return how bright samples are among those around them: 1/2 is usual, 0 dark or missing, 1 very bright.

    A bright sample has less noise. Only ratios of amplitudes matter.

    Parameters
    ----------
    level, valid
        Logarithm of amplitude, and 1 or 0 for samples that are there or missing, shape ``(n, 1, h, w)``.
    """
    total = functional.avg_pool2d(level * valid, BLOCK)
    count = functional.avg_pool2d(valid, BLOCK)
    total, count = (functional.avg_pool2d(x, 3, stride=1, padding=1) for x in (total, count))
    return torch.sigmoid(added(level, -total / count.clamp(min=1e-6))) * valid


def mixed(conv: nn.Module, x: Tensor) -> Tensor:
    """Return a 1 x 1 convolution of channels that lie together in memory.

    Lines are given as images of their own: of many images, torch on one CPU thread makes good use of oneDNN, while of
    few it copies everything twice. For gradients the plain way is the faster one.
    """
    if torch.is_grad_enabled():
        plain: Tensor = conv(x)
        return plain
    n, c, h, w = x.shape
    lines = x.permute(0, 2, 3, 1).reshape(n * h, 1, w, c).permute(0, 3, 1, 2)
    y = functional.conv2d(lines, conv.get_parameter("weight"), conv.get_parameter("bias"))
    return y.permute(0, 2, 3, 1).reshape(n, h, w, -1).permute(0, 3, 1, 2)


def halved(x: Tensor) -> Tensor:
    """Return the four samples of each 2 x 2 pixels as channels that lie together in memory."""
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2).permute(0, 2, 4, 1, 3, 5)
    return blocks.reshape(n, h // 2, w // 2, 4 * c).permute(0, 3, 1, 2)


def added(fine: Tensor, coarse: Tensor) -> Tensor:
    """Return values plus those of coarser pixels that they lie in; for gradients too, each in its faster way."""
    if torch.is_grad_enabled():
        return fine + functional.interpolate(coarse, scale_factor=fine.shape[2] / coarse.shape[2], mode="nearest")
    fine, coarse = fine.permute(0, 2, 3, 1), coarse.permute(0, 2, 3, 1)
    (n, h, w, c), side = fine.shape, fine.shape[1] // coarse.shape[1]
    total = fine.reshape(n, h // side, side, w // side, side, c) + coarse[:, :, None, :, None]
    return total.reshape(n, h, w, c).permute(0, 3, 1, 2)
