"""Interferograms of two images: phase, and coherence over boxes; numpy in, numpy out; cupy in, cupy out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moraine_core.device import array_module

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

TINY = 1e-30
"""A sample of a smaller amplitude is missing: zero is GAMMA's no-data."""


def intf(ref: Array, sec: Array) -> Array:
    """Return the interferogram of two images, ``ref conj(sec) / |ref sec|``.

    Parameters
    ----------
    ref, sec
        Complex images of one shape, or of shapes that broadcast. Samples that are nan, infinite or of an amplitude
        below 1e-30 are missing.

    Returns
    -------
    array
        Unit phasors, complex64; the angle is the phase of `ref` minus that of `sec`, in radians. Missing (nan in
        both parts) where a sample is missing in either image.
    """
    xp: Any = array_module(ref)
    product = xp.asarray(_phasor(xp, ref) * xp.conj(_phasor(xp, sec)), dtype=xp.complex64)
    product[xp.isnan(product)] = complex(xp.nan, xp.nan)  # a product with nan may be nan in one part alone
    return product  # type: ignore[no-any-return]


def multi_look(ref: Array, sec: Array, looks: tuple[int, int]) -> Array:
    """Return the complex coherence of two images over boxes side by side.

    ``sum(ref conj(sec)) / sqrt(sum(|ref|**2) sum(|sec|**2))``, the sums over the samples of a box that are valid in
    both images, in float64.

    Parameters
    ----------
    ref, sec
        Complex images, ``(nlines, width, ...)``, of one shape. Missing samples as in `intf`.
    looks
        Lines and pixels of a box: azimuth, then range.

    Returns
    -------
    array
        Unitless, of modulus up to 1, ``(nlines // looks[0], width // looks[1], ...)`` complex64; lines and pixels that
        fill no box are left out. Missing where a box has no valid sample.

    Raises
    ------
    ValueError
        The images differ in shape, or a number of looks is below 1.

    References
    ----------
    Touzi, R., Lopes, A., Bruniquel, J., Vachon, P. W. (1999): Coherence estimation for SAR imagery. IEEE TGRS 37(1),
    135-149.
    """
    if ref.shape != sec.shape or ref.ndim < 2:
        msg = f"the images have shapes {ref.shape} and {sec.shape}; expected one (nlines, width, ...)"
        raise ValueError(msg)
    if min(looks) < 1:
        msg = f"looks are {tuple(looks)}; expected at least 1 line and 1 pixel"
        raise ValueError(msg)
    xp: Any = array_module(ref)
    valid = _is_valid(xp, ref) & _is_valid(xp, sec)
    first, second = (xp.where(valid, image, 0).astype(xp.complex128) for image in (ref, sec))
    cross = _box_sums(first * xp.conj(second), looks)
    power = _box_sums(_power(first), looks) * _box_sums(_power(second), looks)
    coh = xp.full(cross.shape, complex(xp.nan, xp.nan), dtype=xp.complex64)
    has_any = power > 0
    coh[has_any] = cross[has_any] / xp.sqrt(power[has_any])
    return coh  # type: ignore[no-any-return]


def _is_valid(xp: Any, image: Array) -> Any:
    return xp.isfinite(image) & (xp.abs(image) >= TINY)


def _power(image: Any) -> Any:
    return image.real * image.real + image.imag * image.imag


def _phasor(xp: Any, image: Array) -> Any:
    """Return samples of modulus 1 in double precision, nan where they are missing."""
    valid = _is_valid(xp, image)
    wide = xp.where(valid, image, 1).astype(xp.complex128)
    return xp.where(valid, wide / xp.abs(wide), complex(xp.nan, xp.nan))


def _box_sums(values: Any, looks: tuple[int, int]) -> Any:
    lines, pixels = values.shape[0] // looks[0], values.shape[1] // looks[1]
    cut = values[: lines * looks[0], : pixels * looks[1]]
    return cut.reshape(lines, looks[0], pixels, looks[1], *values.shape[2:]).sum(axis=(1, 3))
