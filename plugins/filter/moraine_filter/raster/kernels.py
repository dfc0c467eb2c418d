"""The array functions of n2f: images in, filtered interferograms out, on the device that the images are on."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from moraine_core.device import array_module
from moraine_filter.loading import loaded
from moraine_filter.raster.network import N2F
from moraine_filter.raster.tiles import GRID, last_use

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np

    Array = np.ndarray[Any, Any]

SMALLEST = 1e-30
"""Amplitudes below this are missing samples."""


@torch.inference_mode()
def n2f(
    images: Iterable[Array],
    *,
    image_pairs: Sequence[tuple[int, int]],
    model: str,
    first: int = 0,
    group: tuple[int, int] | None = None,
    trim: tuple[tuple[int, int], tuple[int, int]] | None = None,
    with_trust: bool = False,
) -> Array | tuple[Array, Array]:
    """Return filtered interferograms of pairs of images.

    Parameters
    ----------
    images
        Images of a tile one after another, complex64, shape ``(nlines, width)``, numpy or cupy; nan, infinite or of an
        amplitude below 1e-30 where missing.
    image_pairs
        Numbers of the reference and secondary images, ``(n_pairs, 2)``.
    model
        File of weights.
    first
        Number of the first of `images`.
    group
        First of the pairs to filter, and the one after the last; all by default.
    trim
        Lines and pixels of the tile to return; all by default.
    with_trust
        Return the trust too.

    Returns
    -------
    intf
        Phasors of modulus 1 with the filtered phase of ``s_ref conj(s_sec)``, complex64, shape
        ``(nlines, width, n_pairs)``; nan where a sample of either image is missing.
    trust
        Expected cosine of the phase error, unitless, 0 to 1, float32, the same shape.

    Notes
    -----
    An image is held from when it comes until its last pair is complete. The network is that of
    `moraine_filter.raster.network`.
    """
    torch.set_num_threads(1)  # the Executor has one task for each core
    number = slice(*group) if group else slice(len(image_pairs))
    pairs = list(image_pairs[number])
    last = last_use(pairs)
    held: dict[int, tuple[Any, Any]] = {}
    results: list[Any] = []
    for image, plane in enumerate(images, first):
        if image not in last:
            continue
        if not results:
            xp: Any = array_module(plane)
            lines, pixels = trim or tuple((0, n) for n in plane.shape)
            shape = (len(pairs), lines[1] - lines[0], pixels[1] - pixels[0])
            results = [xp.empty(shape, dtype) for dtype in ("complex64", "float32")[: 1 + with_trust]]
        held[image] = parts(torch.as_tensor(plane).to(torch.complex64))
        for k, pair in enumerate(pairs):
            if max(pair) == image:
                found = filtered(held[pair[0]], held[pair[1]], model)
                for result, values in zip(results, found, strict=False):
                    torch.as_tensor(result[k]).copy_(values[slice(*lines), slice(*pixels)])
        held = {i: kept for i, kept in held.items() if last[i] > image}
    moved = tuple(result.transpose(1, 2, 0) for result in results)
    return moved if with_trust else moved[0]


def parts(image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return phasors and the logarithm of the amplitude of an image; both are 0 where it is missing."""
    amplitude = image.abs()
    valid = (amplitude >= SMALLEST) & (amplitude < torch.inf)
    unit = torch.where(valid, image / amplitude, 0)
    return unit, torch.where(valid, amplitude, 1).log_()


def filtered(
    ref: tuple[torch.Tensor, torch.Tensor], sec: tuple[torch.Tensor, torch.Tensor], model: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the filtered interferogram of two images in parts, and its trust; both are nan where it is missing."""
    unit = ref[0] * sec[0].conj()
    lines, pixels = unit.shape
    border = (0, -pixels % GRID, 0, -lines % GRID)
    planes = functional.pad(torch.view_as_real(unit).permute(2, 0, 1), border)
    level = functional.pad(ref[1] + sec[1], border)
    found = network(model, str(unit.device))(planes[None], level[None, None])[0, :, :lines, :pixels]
    phasor = torch.complex(found[0], found[1])
    modulus = phasor.abs()
    is_clear = modulus > SMALLEST  # else the network says nothing, and the sample stays as it is
    phasor = torch.where(is_clear, phasor / modulus, unit)
    missing = unit == 0
    return phasor.masked_fill_(missing, complex("nan+nanj")), modulus.clamp_(max=1).masked_fill_(missing, torch.nan)


@lru_cache(maxsize=2)
def network(model: str, device: str) -> N2F:
    """Return the network with the weights of a file, ready to run; a worker makes it once."""
    net = N2F()
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return loaded(net, "n2f", model, device)
