"""Array functions on the coherence of points: numpy in, numpy out; cupy in, cupy out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.device import array_module
from moraine_ds.coherence.speckle import speckle_correlation
from moraine_raster.networks import TempNet

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray[Any, Any]
    Pairs = Sequence[Sequence[int]] | Array

__all__ = [
    "ad_intf_pc",
    "empirical_co",
    "empirical_co_pc",
    "n_looks",
    "pair_rows",
    "speckle_correlation",
]

N_LOOKS_BATCH = 1 << 16
"""Points whose looks are counted together on a GPU: enough to fill it."""


def empirical_co_pc(
    rslc: Array, gix: Array, is_shp: Array, image_pairs: Pairs | None = None, *, strict: bool = False
) -> Array:
    """Return the complex coherence of points, each estimated over its statistically homogeneous pixels (SHP).

    ``gamma_ij = sum(s_i conj(s_j)) / sqrt(sum(|s_i|**2) sum(|s_j|**2))``, the sums over the SHPs of the point whose
    samples are valid in both images. Sums are in float32 of samples scaled to unit power, and powers in float64: the
    result is within 1e-6 of exact, whatever the unit of the amplitudes.

    Parameters
    ----------
    rslc
        Complex images, shape ``(nlines, width, nimages)``, numpy or cupy. Samples that are nan, infinite or of an
        amplitude below 1e-30 are missing.
    gix
        Grid index (azimuth, range) of the points in `rslc`, integers, shape ``(n_points, 2)``, in pixels.
    is_shp
        True for the SHPs of a point, bool, shape ``(n_points, az_win, r_win)``, both sides odd, the point in the
        center. Cells outside `rslc` do not count.
    image_pairs
        Pairs (reference, secondary), integers, shape ``(n_pairs, 2)``, sorted; by default all of the upper triangle,
        row by row.
    strict
        A pair is nan if a sample of either image is missing in any SHP.

    Returns
    -------
    array
        Unitless, complex64, shape ``(n_points, n_pairs)``; the values of one pair lie together in memory. A point
        without SHP is nan in all pairs. Where samples are missing, a pair with less than two common ones is nan.
        With one SHP, the modulus is 1.

    Raises
    ------
    ValueError
        Shapes that do not fit, a point outside `rslc`, or pairs that are not sorted or not of the stack.

    References
    ----------
    Ferretti, A., Fumagalli, A., Novali, F., Prati, C., Rocca, F., Rucci, A. (2011): A new algorithm for processing
    interferometric data-stacks: SqueeSAR. IEEE TGRS 49(9), 3460-3470.
    """
    check_shapes(rslc, gix, is_shp)
    pairs = TempNet.chosen(image_pairs, rslc.shape[2]).in_order().pairs
    xp: Any = array_module(rslc)
    out = xp.empty((len(pairs), len(gix)), dtype=xp.complex64)
    if out.size:
        arguments = [
            xp.ascontiguousarray(array, dtype=dtype)
            for array, dtype in ((rslc, np.complex64), (gix, np.int32), (is_shp, np.bool_))
        ]
        side = _side(rslc)
        side.coherence_of_points(*arguments, *pair_rows(pairs, rslc.shape[2]), strict, out)
    return out.T  # type: ignore[no-any-return]


def pair_rows(pairs: Sequence[Sequence[int]], n_images: int) -> tuple[Array, Array]:
    """Return sorted image pairs row by row of the coherence matrix.

    Parameters
    ----------
    pairs
        Pairs (reference, secondary), sorted.
    n_images
        Images of the stack.

    Returns
    -------
    first
        Number of the first pair of each reference image, int64, shape ``(n_images + 1,)``; the last one is n_pairs.
    sec
        Secondary image of each pair, int64, shape ``(n_pairs,)``.
    """
    table = np.asarray(pairs, np.int64).reshape(-1, 2)
    return np.searchsorted(table[:, 0], np.arange(n_images + 1)), np.ascontiguousarray(table[:, 1])


def ad_intf_pc(ref: Array, sec: Array, gix: Array, is_shp: Array) -> Array:
    """Return the coherence of two images at points: interferograms, adaptively multilooked over homogeneous pixels.

    Parameters
    ----------
    ref, sec
        Complex images, shape ``(nlines, width)``, numpy or cupy; missing samples as in `empirical_co_pc`.
    gix, is_shp
        The points and their SHPs, as in `empirical_co_pc`.

    Returns
    -------
    array
        Unitless, complex64, shape ``(n_points,)``: the column (ref, sec) of `empirical_co_pc`.
    """
    xp: Any = array_module(ref)
    coh: Array = empirical_co_pc(xp.stack([ref, sec], axis=2), gix, is_shp)[:, 0]
    return coh


def empirical_co(rslc: Array, is_shp: Array, *, strict: bool = False) -> tuple[Array, Array]:
    """Return covariance and coherence matrices of every pixel of a small scene.

    They take ``16 nimages**2`` bytes per pixel: for tests and studies.

    Parameters
    ----------
    rslc
        Complex images, shape ``(nlines, width, nimages)``, numpy or cupy; missing samples as in `empirical_co_pc`.
    is_shp
        True for the SHPs of a pixel, bool, shape ``(nlines, width, az_win, r_win)``.
    strict
        As in `empirical_co_pc`.

    Returns
    -------
    covariance
        ``E[s_i conj(s_j)]``: coherence times the root of the mean powers of the valid samples of each image. In the
        unit of `rslc` squared, complex64, shape ``(nlines, width, nimages, nimages)``.
    coherence
        Unitless, of the same shape and dtype, with a diagonal of 1; nan as in `empirical_co_pc`.
    """
    xp: Any = array_module(rslc)
    nlines, width, n_images = rslc.shape
    gix = xp.stack(xp.meshgrid(xp.arange(nlines), xp.arange(width), indexing="ij"), axis=2).reshape(-1, 2)
    packed = empirical_co_pc(rslc, gix, is_shp.reshape(-1, *is_shp.shape[2:]), strict=strict)
    power = _mean_power(rslc, is_shp)
    coherence = xp.full((nlines * width, n_images, n_images), xp.nan, dtype=xp.complex64)
    refs, secs = map(xp.asarray, np.triu_indices(n_images, 1))
    coherence[:, refs, secs] = packed
    coherence[:, secs, refs] = packed.conj()
    diagonal = xp.arange(n_images)
    coherence[:, diagonal, diagonal] = xp.where(power.reshape(-1, n_images) > 0, 1, xp.nan)
    coherence = coherence.reshape(nlines, width, n_images, n_images)
    root = xp.sqrt(power)
    covariance = (coherence * root[..., :, None] * root[..., None, :]).astype(xp.complex64)
    return covariance, coherence


def _mean_power(rslc: Array, is_shp: Array) -> Array:
    """Return the mean power of the valid samples over the SHPs of each pixel and image, float64; nan where none is."""
    from moraine_ds.coherence import _cpu

    xp: Any = array_module(rslc)
    nlines, width, n_images = rslc.shape
    az_win, r_win = is_shp.shape[2:]
    power = rslc.real.astype(xp.float64) ** 2 + rslc.imag.astype(xp.float64) ** 2
    is_valid = (power >= _cpu.TINY) & (power < xp.inf)
    border = ((az_win // 2, az_win // 2), (r_win // 2, r_win // 2), (0, 0))
    power, is_valid = xp.pad(xp.where(is_valid, power, 0), border), xp.pad(is_valid, border)
    total, count = xp.zeros((nlines, width, n_images)), xp.zeros((nlines, width, n_images))
    for az in range(az_win):
        for rg in range(r_win):
            flag = is_shp[:, :, az, rg, None]
            total += flag * power[az : az + nlines, rg : rg + width]
            count += flag * is_valid[az : az + nlines, rg : rg + width]
    return xp.where(count > 0, total / xp.maximum(count, 1), xp.nan)  # type: ignore[no-any-return]


def n_looks(is_shp: Array, table: Array | Sequence[Sequence[float]] | None) -> Array:
    """Return how many independent looks the homogeneous pixels (SHP) of each point are worth.

    ``n**2 / sum(rho2(p - q))``, the sum over all ordered pairs of the n SHPs, with rho2 the squared correlation of
    speckle at their lag: n for white speckle, 1 for pixels that all say the same.

    Parameters
    ----------
    is_shp
        True for the SHPs of a point, bool, shape ``(n_points, az_win, r_win)``, numpy or cupy.
    table
        Squared correlation of speckle by lag (azimuth, range), unitless, with odd sides and lag 0 in the center, as the
        median of several from `speckle_correlation`; a negative value counts as 0, a lag outside the table as well.
        None: all pixels are independent.

    Returns
    -------
    array
        Unitless, float32, shape ``(n_points,)``: from 1 to the number of SHPs; 0 where there is none.

    Raises
    ------
    ValueError
        A side of the table is even, or a value is nan.
    """
    xp: Any = array_module(is_shp)
    rho2 = np.array([[1.0]]) if table is None else np.array(table, np.float64)
    if rho2.ndim != 2 or 0 in (rho2.shape[0] % 2, rho2.shape[1] % 2) or np.isnan(rho2).any():
        msg = f"the table of correlations has shape {rho2.shape}, or holds nan; expected two odd sides, and numbers"
        raise ValueError(msg)
    rho2 = np.clip(rho2, 0, 1)
    rho2[rho2.shape[0] // 2, rho2.shape[1] // 2] = 1
    if xp is np:
        from moraine_ds.coherence import _cpu

        out = np.empty(len(is_shp), np.float32)
        _cpu.n_looks(np.ascontiguousarray(is_shp, np.bool_), rho2, out)
        return out
    parts = [_n_looks(is_shp[k : k + N_LOOKS_BATCH], rho2) for k in range(0, len(is_shp), N_LOOKS_BATCH)]
    return xp.concatenate(parts) if parts else xp.empty(0, dtype=xp.float32)  # type: ignore[no-any-return]


def _n_looks(is_shp: Array, rho2: Array) -> Array:
    """Count pairs of SHPs lag by lag, in whole arrays."""
    xp: Any = array_module(is_shp)
    _, az_win, r_win = is_shp.shape
    az_lags, r_lags = rho2.shape[0] // 2, rho2.shape[1] // 2
    number = is_shp.sum(axis=(1, 2))
    total = number.astype(xp.float64)
    for az in range(min(az_lags + 1, az_win)):
        for rg in range(max(-r_lags, 1 - r_win) if az else 1, min(r_lags, r_win - 1) + 1):
            weight = float(rho2[az_lags + az, r_lags + rg] + rho2[az_lags - az, r_lags - rg])
            if weight > 0:
                one = is_shp[:, : az_win - az, max(-rg, 0) : r_win - max(rg, 0)]
                other = is_shp[:, az:, max(rg, 0) : r_win - max(-rg, 0)]
                total += weight * (one & other).sum(axis=(1, 2))
    return xp.where(number > 0, number * number.astype(xp.float64) / xp.maximum(total, 1), 0).astype(xp.float32)  # type: ignore[no-any-return]


def check_shapes(rslc: Array, gix: Array, is_shp: Array) -> None:
    """Refuse images, points and homogeneous pixels that are not as `empirical_co_pc` takes them.

    Parameters
    ----------
    rslc, gix, is_shp
        As in `empirical_co_pc`.

    Raises
    ------
    ValueError
        A shape or dtype is another, or a point lies outside the images; the first such row is named.
    """
    if rslc.ndim != 3:
        msg = f"rslc has shape {rslc.shape}; expected (nlines, width, nimages)"
        raise ValueError(msg)
    if gix.ndim != 2 or gix.shape[1] != 2 or gix.dtype.kind not in "iu":
        msg = f"gix is {gix.dtype} {gix.shape}; expected integers (n_points, 2)"
        raise ValueError(msg)
    if (
        is_shp.ndim != 3
        or is_shp.dtype != np.bool_
        or len(is_shp) != len(gix)
        or 0 in [n % 2 for n in is_shp.shape[1:]]
    ):
        msg = f"is_shp is {is_shp.dtype} {is_shp.shape}; expected bool ({len(gix)}, az_win, r_win) with odd windows"
        raise ValueError(msg)
    outside = (gix[:, 0] < 0) | (gix[:, 0] >= rslc.shape[0]) | (gix[:, 1] < 0) | (gix[:, 1] >= rslc.shape[1])
    if outside.any():
        row = int(outside.argmax())
        msg = f"gix: row {row} is (azimuth, range) = ({int(gix[row, 0])}, {int(gix[row, 1])}), outside {rslc.shape[:2]}"
        raise ValueError(msg)


def _side(array: Array) -> Any:
    """Return the module with the kernels for the device that an array is on."""
    if array_module(array) is np:
        from moraine_ds.coherence import _cpu

        return _cpu
    from moraine_ds.coherence import _gpu

    return _gpu
