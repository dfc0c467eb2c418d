"""Array functions of the PS family: numpy in, numpy out; cupy in, cupy out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.device import array_module
from moraine_raster.networks import TempNet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Array = np.ndarray[Any, Any]

# -- amplitude ---------------------------------------------------------------------------------------------------------


def rslc2amp(rslc: Array) -> Array:
    """Return the amplitude of complex images.

    Parameters
    ----------
    rslc
        Complex images of any shape, numpy or cupy.

    Returns
    -------
    array
        ``|rslc|`` in the unit of the images, float32; nan where a part of a sample is nan.
    """
    xp: Any = array_module(rslc)
    return xp.where(xp.isnan(rslc), np.nan, xp.abs(rslc)).astype(np.float32)  # type: ignore[no-any-return]


def calamp(amp: Array) -> Array:
    """Return the amplitude of one image over its mean: the relative brightness of the image is taken out.

    Parameters
    ----------
    amp
        Amplitude of one image of any shape, numpy or cupy. Samples that are nan, infinite or below 1e-30 are missing.

    Returns
    -------
    array
        Unitless, shape of `amp`, float32; its mean is 1 over the valid samples. Missing samples are nan.

    References
    ----------
    Ferretti, A., Prati, C., Rocca, F. (2001): Permanent scatterers in SAR interferometry. IEEE TGRS 39(1), 8-20.
    """
    xp: Any = array_module(amp)
    valid = xp.isfinite(amp) & (amp >= np.float32(1e-30))
    count = int(xp.count_nonzero(valid))
    mean = float(xp.sum(xp.where(valid, amp, 0), dtype=np.float64)) / count if count else 1.0
    return xp.where(valid, amp / mean, np.nan).astype(np.float32)  # type: ignore[no-any-return]


def amplitude_sums(planes: Iterable[Array]) -> list[tuple[float, int]]:
    """Return sum and number of the valid amplitudes of each image, in float64.

    Parameters
    ----------
    planes
        Complex images; missing samples as in `amp_disp`.

    Returns
    -------
    list
        Sum, in the unit of the images, and number for each image.
    """
    return [_side(plane).amplitude_sum(plane.ravel()) for plane in planes]


def amp_disp(rslc: Array, *, min_images: int = 2, strict: bool = False) -> Array:
    """Return the amplitude dispersion index of an image stack.

    ``D = sigma / m`` with ``m = mean(|s|)`` and ``sigma**2 = mean((|s| - m)**2)`` over the images of a pixel.

    Parameters
    ----------
    rslc
        Complex images, shape ``(..., nimages)``, numpy or cupy. Samples that are nan, infinite or of an amplitude below
        1e-30 are missing and do not count.
    min_images
        Fewest valid images of a pixel that is not nan.
    strict
        A pixel with any missing image is nan as well.

    Returns
    -------
    array
        Unitless, shape ``(...)``, float32; nan where too few images are valid.

    Raises
    ------
    ValueError
        There is no image, or `min_images` is below 1.

    References
    ----------
    Ferretti, A., Prati, C., Rocca, F. (2001): Permanent scatterers in SAR interferometry. IEEE TGRS 39(1), 8-20.
    """
    n_images = rslc.shape[-1]
    if n_images == 0:
        msg = "the stack has no images"
        raise ValueError(msg)
    fewest = _fewest("min_images", min_images, n_images, strict=strict)
    return _side(rslc).amp_disp(rslc.astype(np.complex64, copy=False), fewest)  # type: ignore[no-any-return]


def amp_disp_stream(
    planes: Iterable[Array], *, min_images: int = 2, strict: bool = False, gain: Sequence[float | None] | None = None
) -> Array:
    """Return the amplitude dispersion index of images that come one at a time; as `amp_disp` otherwise.

    Parameters
    ----------
    planes
        Complex images of one shape. On a GPU up to eight are held, to be added together: each needs memory of its own.
    min_images, strict
        As in `amp_disp`.
    gain
        Factor of each image's amplitude; None leaves an image as it is. What is missing is decided before.

    Returns
    -------
    array
        Unitless, shape of an image, float32.
    """
    state: Any = None
    n_images = 0
    for image, plane in enumerate(planes):
        if state is None:
            state = _side(plane).Amplitudes(plane.shape)
        factor = gain[image] if gain is not None else None
        state.add(plane, 1.0 if factor is None else factor)
        n_images += 1
    if state is None:
        msg = "the stack has no images"
        raise ValueError(msg)
    fewest = _fewest("min_images", min_images, n_images, strict=strict)
    return state.dispersion(fewest)  # type: ignore[no-any-return]


# -- phase -------------------------------------------------------------------------------------------------------------


def temp_coh(
    intf: Array,
    rslc: Array,
    *,
    image_pairs: Iterable[Sequence[int]] | Array | None = None,
    min_pairs: int = 1,
    strict: bool = False,
) -> Array:
    """Return the temporal coherence of filtered interferograms: how well the images themselves fit them.

    ``t = |sum_k u_k conj(r_a) r_b| / K`` over the pairs ``k = (a, b)`` of a pixel, with the phasors `u` of the
    interferograms and `r` of the images. Random phases have about ``0.886 / sqrt(K)``.

    Parameters
    ----------
    intf
        Filtered interferograms, ``(..., n_pairs)`` complex64; only their phase matters.
    rslc
        Images, ``(..., nimages)`` complex64. Samples that are nan, infinite or of a modulus below 1e-30 are missing,
        here and in `intf`; a pair counts where its interferogram and both images are there.
    image_pairs
        Pairs of images in the order of `intf`, ``(n_pairs, 2)``; by default all, row by row of the upper triangle.
    min_pairs
        Fewest valid pairs of a pixel that is not nan.
    strict
        A pixel with any missing pair is nan as well.

    Returns
    -------
    array
        Unitless, 0 to 1, shape ``(...)``, float32; nan where too few pairs are valid.

    Raises
    ------
    ValueError
        Shapes do not fit each other or the pairs, there is no pair, or `min_pairs` is below 1.

    References
    ----------
    Hooper, A., Zebker, H., Segall, P., Kampes, B. (2004): A new method for measuring deformation on volcanoes and
    other natural terrains using InSAR persistent scatterers. Geophysical Research Letters 31, L23611 (there with a
    correction of the look angle error).
    """
    nimages = rslc.shape[-1]
    network = TempNet.chosen(image_pairs, nimages)
    if intf.shape != (*rslc.shape[:-1], len(network.pairs)):
        msg = f"intf has shape {intf.shape}; expected {(*rslc.shape[:-1], len(network.pairs))}, by rslc and the pairs"
        raise ValueError(msg)
    return temp_coh_stream(
        (intf[..., pair] for pair in range(intf.shape[-1])),
        (rslc[..., image] for image in range(nimages)),
        image_pairs=network.pairs,
        min_pairs=min_pairs,
        strict=strict,
    )


def temp_coh_stream(
    intf: Iterable[Array],
    rslc: Iterable[Array],
    *,
    image_pairs: Sequence[tuple[int, int]],
    min_pairs: int = 1,
    strict: bool = False,
) -> Array:
    """Return the temporal coherence of interferograms and images that come one at a time; as `temp_coh` otherwise.

    Images are held from when they come until their last pair: two of them at a time where pairs are those of neighbors
    in sequence, and all where all are paired.

    Parameters
    ----------
    intf
        Filtered interferograms, in the order of the pairs.
    rslc
        Images, in the order of their numbers.
    image_pairs
        Pairs of images.
    min_pairs, strict
        As in `temp_coh`.

    Returns
    -------
    array
        Unitless, shape of an image, float32.
    """
    fewest = _fewest("min_pairs", min_pairs, len(image_pairs), strict=strict)
    last_pair = {image: number for number, pair in enumerate(image_pairs) for image in pair}
    state: Any = None
    images = enumerate(rslc)
    held: dict[int, Any] = {}
    for number, (plane, (ref, sec)) in enumerate(zip(intf, image_pairs, strict=True)):
        if state is None:
            state = _side(plane).Residuals(plane.shape)
        while ref not in held or sec not in held:
            image, samples = next(images)
            if last_pair.get(image, -1) >= number:
                held[image] = state.phasors(samples)
        state.add(plane, held[ref], held[sec])
        for image in {ref, sec}:
            if last_pair[image] == number:
                del held[image]
    if state is None:
        msg = "there are no image pairs"
        raise ValueError(msg)
    return state.coherence(fewest)  # type: ignore[no-any-return]


def _fewest(name: str, least: int, count: int, *, strict: bool) -> int:
    """Return how many of `count` images or pairs must be valid."""
    if least < 1:
        msg = f"{name} is {least}; expected at least 1"
        raise ValueError(msg)
    return max(count, least) if strict else least


def _side(array: Array) -> Any:
    """Return the module with the kernels for the device that an array is on."""
    if array_module(array) is np:
        from moraine_ps import _cpu

        return _cpu
    from moraine_ps import _gpu

    return _gpu
