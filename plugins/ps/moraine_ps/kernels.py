"""Array functions of the PS family: numpy in, numpy out; cupy in, cupy out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.device import array_module

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Array = np.ndarray[Any, Any]


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
    planes = (rslc[..., image] for image in range(rslc.shape[-1]))
    return amp_disp_stream(planes, min_images=min_images, strict=strict)


def amp_disp_stream(
    planes: Iterable[Array], *, min_images: int = 2, strict: bool = False, gain: Sequence[float | None] | None = None
) -> Array:
    """Return the amplitude dispersion index of images that come one at a time; as `amp_disp` otherwise.

    Parameters
    ----------
    planes
        Complex images of one shape.
    min_images, strict
        As in `amp_disp`.
    gain
        Factor of each image's amplitude; None leaves an image as it is. What is missing is decided before.

    Returns
    -------
    array
        Unitless, shape of an image, float32.
    """
    if min_images < 1:
        msg = f"min_images is {min_images}; expected at least 1"
        raise ValueError(msg)
    state: Any = None
    n_images = 0
    for image, plane in enumerate(planes):
        if state is None:
            state = _Welford(plane)
        factor = gain[image] if gain is not None else None
        state.add(plane, 1.0 if factor is None else factor)
        n_images += 1
    if state is None:
        msg = "the stack has no images"
        raise ValueError(msg)
    return state.dispersion(max(n_images, min_images) if strict else min_images)  # type: ignore[no-any-return]


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


class _Welford:
    """Running count, mean and sum of squared deviations of every pixel: exact in one pass over the images."""

    def __init__(self, like: Array) -> None:
        xp: Any = array_module(like)
        self._shape = like.shape
        self._count = xp.zeros(like.size, dtype=xp.int32)
        self._mean = xp.zeros(like.size, dtype=xp.float64)
        self._squares = xp.zeros(like.size, dtype=xp.float64)

    def add(self, plane: Array, gain: float) -> None:
        _side(plane).add_image(plane.ravel(), gain, self._count, self._mean, self._squares)

    def dispersion(self, fewest: int) -> Array:
        xp: Any = array_module(self._mean)
        out = xp.empty(self._mean.size, dtype=xp.float32)
        _side(out).dispersion(self._count, self._mean, self._squares, fewest, out)
        return out.reshape(self._shape)  # type: ignore[no-any-return]


def _side(array: Array) -> Any:
    """Return the module with the kernels for the device that an array is on."""
    if array_module(array) is np:
        from moraine_ps import _cpu

        return _cpu
    from moraine_ps import _gpu

    return _gpu
