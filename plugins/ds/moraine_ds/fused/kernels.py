"""The array function that takes points from SLC samples to phases: numpy in, numpy out; cupy in, cupy out."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_core.device import array_module
from moraine_ds.coherence.kernels import check_shapes, pair_rows
from moraine_ds.fused import BATCH_SIZE
from moraine_ds.phase_linking import BETA_MIN
from moraine_ds.quality.kernels import rows_of
from moraine_ds.quality.random_graph import edge_probability
from moraine_raster.networks import TempNet

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]


class LinkedPoints(NamedTuple):
    """Phase histories of points, and how well they fit the coherence that they were linked from.

    Attributes
    ----------
    ph
        Unit phasors relative to the image `ref`, ``(n_points, nimages)`` complex64, unitless.
    t_coh, t_coh_w, eff_n_pairs, n_components
        As in `moraine_ds.quality.kernels.TempCoh`, each ``(n_points,)``.
    """

    ph: Array
    t_coh: Array
    t_coh_w: Array
    eff_n_pairs: Array
    n_components: Array


def empirical_co_emi_temp_coh_pc(
    rslc: Array,
    gix: Array,
    is_shp: Array,
    n_looks: Array | None = None,
    *,
    ref: int = 0,
    regularize: bool = True,
    beta_min: float = BETA_MIN,
    alpha: float = 1e-3,
    strict: bool = False,
    batch_size: int = BATCH_SIZE,
) -> LinkedPoints:
    """Estimate the coherence of points, link their phases and measure how well these fit, in one go.

    Exactly what `coherence.kernels.empirical_co_pc`, `phase_linking.kernels.emi` and `quality.kernels.ds_temp_coh`
    give one after another, with the coherence of all pairs of images; the coherence itself is not kept.

    Parameters
    ----------
    rslc
        Complex images, shape ``(nlines, width, nimages)``, numpy or cupy. Samples that are nan, infinite or of an
        amplitude below 1e-30 are missing.
    gix
        Grid index (azimuth, range) of the points in `rslc`, integers, shape ``(n_points, 2)``, in pixels.
    is_shp
        True for the homogeneous pixels of a point, bool, shape ``(n_points, az_win, r_win)``, both sides odd.
    n_looks
        Effective number of looks of each point, unitless, ``(n_points,)``, as `coherence.kernels.n_looks` gives it;
        without it the measures with weights, and the components, are those of points without looks.
    ref, regularize, beta_min
        As in `phase_linking.kernels.emi`.
    alpha
        As in `quality.kernels.ds_temp_coh`.
    strict
        As in `coherence.kernels.empirical_co_pc`.
    batch_size
        Points whose coherence a GPU holds at once; results do not depend on it.

    Returns
    -------
    LinkedPoints
        Phase histories and measures; nan where a point has no homogeneous pixels, or image `ref` no pair.

    Raises
    ------
    ValueError
        Shapes do not fit, a point is outside `rslc`, there are fewer than two images, or a parameter is out of its
        range.

    References
    ----------
    Ferretti, A., Fumagalli, A., Novali, F., Prati, C., Rocca, F., Rucci, A. (2011): A new algorithm for processing
    interferometric data-stacks: SqueeSAR. IEEE TGRS 49(9), 3460-3470.
    Ansari, H., De Zan, F., Bamler, R. (2018): Efficient phase estimation for interferogram stacks. IEEE TGRS 56(7),
    4109-4125.
    """
    check_shapes(rslc, gix, is_shp)
    n_points, n_images = len(gix), rslc.shape[2]
    if n_images < 2:
        raise ValueError(f"rslc has {n_images} images; expected at least 2, to make pairs")
    if not 0 <= ref < n_images:
        raise ValueError(f"ref is {ref}; expected one of {n_images} images, from 0")
    if not 0 <= beta_min < 1:
        raise ValueError(f"beta_min is {beta_min}; expected at least 0 and below 1")
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; expected at least 1")
    log_p = log(edge_probability(n_images, alpha))
    xp: Any = array_module(rslc)
    looks = xp.full(n_points, np.nan) if n_looks is None else xp.ascontiguousarray(n_looks, dtype=np.float64)
    if looks.shape != (n_points,):
        raise ValueError(f"n_looks has shape {looks.shape}; expected {(n_points,)}, one number for each point")
    results = LinkedPoints(
        xp.empty((n_points, n_images), dtype=np.complex64),
        *(xp.empty(n_points, dtype=dtype) for dtype in (np.float32, np.float32, np.float32, np.int16)),
    )
    arrays = [
        xp.ascontiguousarray(array, dtype=dtype)
        for array, dtype in ((rslc, np.complex64), (gix, np.int32), (is_shp, np.bool_))
    ]
    network = TempNet.from_bandwidth(n_images)
    options = (strict, ref, regularize, float(beta_min), log_p)
    if xp is np:
        first, sec = pair_rows(network.pairs, n_images)
        _side(rslc).points(*arrays, looks, first, sec, *options, rows_of(network), *results)
    elif n_points:
        _side(rslc).points(*arrays, looks, network, *options, batch_size, *results)
    return results


def _side(array: Array) -> Any:
    """Return the module with the kernels for the device that an array is on."""
    if array_module(array) is np:
        from moraine_ds.fused import _cpu

        return _cpu
    from moraine_ds.fused import _gpu

    return _gpu
