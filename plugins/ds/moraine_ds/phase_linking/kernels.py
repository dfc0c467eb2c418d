"""Array functions of phase linking: numpy in, numpy out; cupy in, cupy out."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.device import array_module
from moraine_ds.phase_linking import BETA_MIN
from moraine_raster.networks import nimages_of

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]


def emi(coh: Array, ref: int = 0, regularize: bool = True, beta_min: float = BETA_MIN) -> Array:  # noqa: FBT001, FBT002
    """Link the phases of points: the phase history of each that explains its coherence matrix best.

    The history is the eigenvector of the smallest eigenvalue of ``|G|**-1 o G``, with G the coherence matrix, ``|G|``
    its elementwise modulus and o the elementwise product: the eigendecomposition-based maximum-likelihood estimator of
    interferometric phase (EMI). The eigenvalue is 1 where all phases close.

    Estimated moduli often make no positive definite matrix, and then the eigenvector follows the noise. So G is
    replaced by ``(1 - b) G + b I``. b is the least for which (1) the smallest eigenvalue of the modulus, where it is
    -d < 0, becomes (1 - b) d, so ``b >= 2 d / (1 + 2 d)``; (2) its condition number is at most 1e5; (3) ``b >=
    beta_min``. Phases that close are exact with any b.

    Parameters
    ----------
    coh
        Coherence of all pairs of images, upper triangle row by row ((0, 1), (0, 2), ..., (1, 2), ...), unitless,
        complex64, shape ``(..., n_pairs)`` with ``n_pairs = nimages (nimages - 1) / 2``, numpy or cupy. What is not
        finite is missing.
    ref
        Number of the image whose phase is 0.
    regularize
        False leaves the coherence as it is, whatever comes of it.
    beta_min
        Least regularization b, from 0 to below 1.

    Returns
    -------
    array
        Unit phasors ``exp(j (phase - phase of ref))``, unitless, complex64, shape ``(..., nimages)``. An image without
        any pair is nan, and the others are as if it were not there; other missing pairs count as coherence 0. Without
        image `ref`, or with fewer than two images, all are nan. Where the eigenvector has no component, the phase is
        that of the coherence with `ref`, 0 if there is none.

    Raises
    ------
    ValueError
        `n_pairs` are not all pairs of some number of images, `ref` is not one of them, or `beta_min` is out of range.

    References
    ----------
    Ansari, H., De Zan, F., Bamler, R. (2018): Efficient phase estimation for interferogram stacks. IEEE TGRS 56(7),
    4109-4125.
    Guarnieri, A. M., Tebaldini, S. (2008): On the exploitation of target statistics for SAR interferometry
    applications. IEEE TGRS 46(11), 3436-3443.
    """
    n_images = nimages_of(coh.shape[-1])
    if not 0 <= ref < n_images:
        raise ValueError(f"ref is {ref}; expected one of {n_images} images, from 0")
    if not 0 <= beta_min < 1:
        raise ValueError(f"beta_min is {beta_min}; expected at least 0 and below 1")
    xp: Any = array_module(coh)
    points = xp.ascontiguousarray(coh, dtype=xp.complex64).reshape(prod(coh.shape[:-1]), coh.shape[-1])
    ph = xp.empty((len(points), n_images), dtype=xp.complex64)
    details = xp.empty((2, len(points)))
    _side(coh).link_all(points, ref, regularize, float(beta_min), ph, details[0], details[1])
    return ph.reshape(*coh.shape[:-1], n_images)  # type: ignore[no-any-return]


def _side(array: Array) -> Any:
    """Return the module with the kernels for the device that an array is on."""
    if array_module(array) is np:
        from moraine_ds.phase_linking import _cpu

        return _cpu
    from moraine_ds.phase_linking import _gpu

    return _gpu
