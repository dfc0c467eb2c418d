"""Array functions on statistically homogeneous pixels (SHP): numpy in, numpy out; cupy in, cupy out."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.device import array_module
from moraine_ds.homogeneity import ks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Array = np.ndarray[Any, Any]


def stride_of(width: int) -> int:
    """Return the elements from one image of a line of series to the next.

    An odd number of cache lines: with a power of two, all images of a pixel would compete for one place in the cache.
    """
    return 16 * (-(-width // 16) | 1)


def shp_test(
    rslc: Array,
    *,
    az_half_win: int,
    r_half_win: int,
    alpha: float = 0.05,
    min_images: int | None = None,
    gain: Sequence[float | None] | None = None,
    with_pvalue: bool = False,
) -> tuple[Array, ...]:
    """Test each pixel's amplitudes against those of every pixel of its window (Kolmogorov-Smirnov, KS).

    ``D = max |F_x - F_y|`` of the empirical distributions of two pixels, ``p = Q((s + 0.12 + 0.11 / s) D)`` with
    ``s = sqrt(n_x n_y / (n_x + n_y))`` and Kolmogorov's distribution Q. A pixel is homogeneous with the center of the
    window if ``p >= alpha``, both in float32: the test does not tell them apart.

    Parameters
    ----------
    rslc
        Complex images, shape ``(nlines, width, nimages)``, numpy or cupy. Samples that are nan, infinite or of an
        amplitude below 1e-30 are missing; two pixels are compared by the samples that each has.
    az_half_win, r_half_win
        Half windows in azimuth and range, in pixels; a window has ``2 * half + 1``.
    alpha
        Level of significance, in (0, 1).
    min_images
        Fewest valid images of a pixel that is tested; half of them, but at least 5 (or all, of 3 or 4), by default.
    gain
        Factor of each image's amplitude; None leaves an image as it is. What is missing is decided before.
    with_pvalue
        Return p values too. This takes longer: else, a test only has to know on which side of alpha it is.

    Returns
    -------
    is_shp
        True for homogeneous pixels, bool, shape ``(nlines, width, az_win, r_win)``. The center of a tested pixel is
        True; cells outside the raster, and of pixels that are not tested, are False.
    shp_num
        Number of homogeneous pixels, the center among them, int32, shape ``(nlines, width)``; 0 for a pixel that is
        not tested.
    pvalue
        Unitless, float32, shape of `is_shp`, if asked for; 1 in the center of a tested pixel, nan where there is no
        test.

    Raises
    ------
    ValueError
        Fewer than 3 images, or a parameter out of its range.

    References
    ----------
    Ferretti, A., Fumagalli, A., Novali, F., Prati, C., Rocca, F., Rucci, A. (2011): A new algorithm for processing
    interferometric data-stacks: SqueeSAR. IEEE TGRS 49(9), 3460-3470.

    Stephens, M. A. (1970): Use of the Kolmogorov-Smirnov, Cramer-von Mises and related statistics without extensive
    tables. Journal of the Royal Statistical Society B 32(1), 115-122.
    """
    fewest = _fewest(rslc.shape[-1], min_images)
    limit = ks_limits(rslc.shape[-1], alpha)
    series, n_valid = _sorted_series([rslc], rslc.shape[-1], gain)
    return _tested(series, n_valid, (az_half_win, r_half_win), limit, fewest, with_pvalue=with_pvalue)


def shp_test_stream(
    planes: Iterable[Array],
    *,
    n_images: int,
    az_half_win: int,
    r_half_win: int,
    alpha: float = 0.05,
    min_images: int | None = None,
    gain: Sequence[float | None] | None = None,
    with_pvalue: bool = False,
) -> tuple[Array, ...]:
    """Test as `shp_test` does, with images that come one at a time: only amplitudes are kept.

    Parameters
    ----------
    planes
        Complex images, shape ``(nlines, width)``.
    n_images
        How many they are.
    az_half_win, r_half_win, alpha, min_images, gain, with_pvalue
        As in `shp_test`.

    Returns
    -------
    tuple
        `is_shp`, `shp_num` and, if asked for, `pvalue`, as of `shp_test`.
    """
    fewest = _fewest(n_images, min_images)
    limit = ks_limits(n_images, alpha)
    series, n_valid = _sorted_series((plane[:, :, None] for plane in planes), n_images, gain)
    return _tested(series, n_valid, (az_half_win, r_half_win), limit, fewest, with_pvalue=with_pvalue)


def sorted_amplitudes(rslc: Array, *, gain: Sequence[float | None] | None = None) -> tuple[Array, Array]:
    """Return the amplitudes of each pixel in ascending order.

    Parameters
    ----------
    rslc
        Complex images, shape ``(nlines, width, nimages)``, numpy or cupy; missing samples as in `shp_test`.
    gain
        As in `shp_test`.

    Returns
    -------
    amplitude
        In the unit of `rslc`, float32, shape of `rslc`, a view in which pixels lie side by side; inf stands for
        missing samples, behind all others. Amplitudes that float32 cannot hold are its largest number.
    n_valid
        Number of valid samples of each pixel, int32, shape ``(nlines, width)``.
    """
    series, n_valid = _sorted_series([rslc], rslc.shape[-1], gain)
    return series.swapaxes(1, 2)[:, : rslc.shape[1]], n_valid


def select_shp(pvalue: Array, *, alpha: float = 0.05) -> tuple[Array, Array]:
    """Choose homogeneous pixels by their p values.

    Parameters
    ----------
    pvalue
        p values of each pixel's window, unitless, float32, shape ``(..., az_win, r_win)``, numpy or cupy; nan where
        there is no test.
    alpha
        Level of significance, in (0, 1); taken in float32, as p values are.

    Returns
    -------
    is_shp
        ``pvalue >= alpha``, bool, shape of `pvalue`; False for nan.
    shp_num
        Number of them in each window, int32, shape ``(...)``.

    Raises
    ------
    ValueError
        `alpha` is out of its range.
    """
    _check_alpha(alpha)
    xp: Any = array_module(pvalue)
    is_shp = xp.empty(pvalue.shape, dtype=bool)
    shp_num = xp.empty(pvalue.shape[:-2], dtype=xp.int32)
    _side(pvalue).select_shp(pvalue, np.float32(alpha), is_shp, shp_num)
    return is_shp, shp_num


def ks_pvalue(distance: Array, n_x: int, n_y: int) -> Array:
    """Return p values of KS distances; `ks.significance` says what both are.

    Parameters
    ----------
    distance
        Integers of any shape: the KS statistic in units of ``1 / (n_x n_y)``.
    n_x, n_y
        Numbers of samples, 1 or more.

    Returns
    -------
    array
        Unitless, float32, shape of `distance`.
    """
    p = [ks.significance(int(one), n_x, n_y) for one in np.ravel(distance)]
    return np.array(p, np.float32).reshape(np.shape(distance))


def ks_threshold(n: int, alpha: float) -> int:
    """Return the largest k for which two series of n samples with ``D = k / n`` are taken as homogeneous.

    Parameters
    ----------
    n
        Samples of each series, 1 or more.
    alpha
        Level of significance, in (0, 1).

    Returns
    -------
    int
        ``p(k) >= alpha``, but not ``p(k + 1)``, in float32; at most n.

    Raises
    ------
    ValueError
        `alpha` is out of its range.

    Examples
    --------
    >>> ks_threshold(30, 0.05)
    10
    """
    return int(ks_limits(n, alpha)[n, n]) // n


@lru_cache(maxsize=8)
def ks_limits(n_images: int, alpha: float) -> Array:
    """Return the largest distance that is not significant, for each two numbers of samples.

    Parameters
    ----------
    n_images
        Largest number of samples.
    alpha
        Level of significance, in (0, 1).

    Returns
    -------
    array
        In units of ``1 / (n_x n_y)``, int32, shape ``(n_images + 1, n_images + 1)``, read-only; 0 for no samples.

    Raises
    ------
    ValueError
        `alpha` is out of its range.
    """
    _check_alpha(alpha)
    level = np.float32(alpha)
    low, high = 0.0, 20.0  # Q(20) is 0 in float32
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if np.float32(ks.kolmogorov(middle)) >= level else (low, middle)
    n = np.arange(n_images + 1, dtype=np.float64)
    product = n[:, None] * n
    with np.errstate(divide="ignore", invalid="ignore"):
        s = np.sqrt(product / (n[:, None] + n))
        limit = np.minimum(low * product / (s + 0.12 + 0.11 / s), product)
    limit[0], limit[:, 0] = 0, 0
    result = limit.astype(np.int32)
    result.flags.writeable = False
    return result


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        msg = f"alpha is {alpha}; expected a level between 0 and 1"
        raise ValueError(msg)


def _fewest(n_images: int, min_images: int | None) -> int:
    """Return the fewest valid images of a tested pixel."""
    if n_images < ks.FEWEST_IMAGES:
        msg = f"the stack has {n_images} images; expected at least {ks.FEWEST_IMAGES}: fewer never differ significantly"
        raise ValueError(msg)
    if min_images is None:
        return min(max(5, -(-n_images // 2)), n_images)
    if not ks.FEWEST_IMAGES <= min_images <= n_images:
        msg = f"min_images is {min_images}; expected {ks.FEWEST_IMAGES} to {n_images}, the number of images"
        raise ValueError(msg)
    return min_images


def _sorted_series(parts: Iterable[Array], n_images: int, gain: Sequence[float | None] | None) -> tuple[Array, Array]:
    """Return the sorted amplitudes of each pixel, ``(nlines, n_images, stride)``, and how many are valid.

    `parts` are some images each, ``(nlines, width, images)``; pixels beyond the width are padding.
    """
    factors = np.array([1.0 if one is None else one for one in ([None] * n_images if gain is None else gain)])
    series: Any = None
    n_valid: Any = None
    first = 0
    for part in parts:
        xp: Any = array_module(part)
        if series is None:
            nlines, width = part.shape[:2]
            series = xp.empty((nlines, n_images, stride_of(width)), dtype=xp.float32)
            series[:, :, width:] = xp.inf
            n_valid = xp.zeros((nlines, width), dtype=xp.int32)
        images = xp.ascontiguousarray(part, dtype=xp.complex64)
        _side(part).add_images(images, factors, first, series, n_valid)
        first += part.shape[2]
    _side(series).sort_series(series)
    return series, n_valid


def _tested(
    series: Array, n_valid: Array, half_win: tuple[int, int], limit: Array, fewest: int, *, with_pvalue: bool
) -> tuple[Array, ...]:
    """Test sorted series; the results are those of `shp_test`."""
    if min(half_win) < 0:
        msg = f"az_half_win and r_half_win are {half_win}; expected 0 or more"
        raise ValueError(msg)
    xp: Any = array_module(series)
    shape = (*n_valid.shape, *(2 * half + 1 for half in half_win))
    is_shp = xp.zeros(shape, dtype=bool)
    shp_num = xp.empty(n_valid.shape, dtype=xp.int32)
    pvalue = xp.full(shape if with_pvalue else (0, 0, 0, 0), xp.nan, dtype=xp.float32)
    _side(series).shp_test(series, n_valid, half_win, limit, fewest, is_shp, shp_num, pvalue)
    return (is_shp, shp_num, pvalue) if with_pvalue else (is_shp, shp_num)


def _side(array: Array) -> Any:
    """Return the module with the kernels for the device that an array is on."""
    if array_module(array) is np:
        from moraine_ds.homogeneity import _cpu

        return _cpu
    from moraine_ds.homogeneity import _gpu

    return _gpu
