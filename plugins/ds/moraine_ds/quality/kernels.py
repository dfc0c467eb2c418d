"""Array functions of the quality of distributed scatterers: numpy in, numpy out; cupy in, cupy out."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_core.device import array_module
from moraine_ds.quality.random_graph import edge_probability
from moraine_raster.networks import TempNet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Array = np.ndarray[Any, Any]


class TempCoh(NamedTuple):
    """Measures of how well phase histories fit coherence; each ``(n_points,)``.

    Attributes
    ----------
    t_coh
        Temporal coherence, 0 to 1, unitless, float32.
    t_coh_w
        The same with weights, float32.
    eff_n_pairs
        Number of pairs that carry the weights, float32.
    n_components
        Connected components of the images, int16.
    """

    t_coh: Array
    t_coh_w: Array
    eff_n_pairs: Array
    n_components: Array


def ds_temp_coh(
    coh: Array,
    ph: Array,
    *,
    n_looks: Array | float | None = None,
    image_pairs: Iterable[Sequence[int]] | Array | None = None,
    alpha: float = 1e-3,
) -> TempCoh:
    """Return the temporal coherence of phase histories, and the components of what carries it.

    With the residual phase ``psi_k = arg(coh_k conj(ph_a) ph_b)`` of the pair ``k = (a, b)``,
    ``t_coh = |sum exp(j psi_k)| / n_pairs``. With L looks, pairs have the weights
    ``w_k = (|coh_k|**2 - 1/L) / (1 - 1/L)``, at least 0: squared coherence without what noise alone has. Then
    ``t_coh_w = |sum w_k exp(j psi_k)| / sum w_k`` and ``eff_n_pairs = (sum w_k)**2 / sum w_k**2``.

    Images are connected by pairs of ``|coh_k|**2 > 1 - p**(1 / (L - 1))``. A pair of pure noise exceeds that with
    probability `p`, which is such that noise connects all images with probability `alpha`
    (`random_graph.edge_probability`).

    Parameters
    ----------
    coh
        Coherence of the pairs, ``(n_points, n_pairs)`` complex64, unitless. Pairs of which it is nan, infinite or of a
        modulus below 1e-30 are missing: no terms of the sums, and no connection.
    ph
        Phase history, ``(n_points, nimages)`` complex64; its modulus does not matter. The pairs of an image that is
        nan, infinite or of a modulus below 1e-30 are missing.
    n_looks
        Looks of the coherence, ``(n_points,)`` or one number, unitless; without them `t_coh` is the same, and the
        other results are those of points without looks (1, 0 or nan).
    image_pairs
        Pairs of images in the order of `coh`, ``(n_pairs, 2)``; by default all pairs, row by row of the upper triangle.
    alpha
        Probability that noise connects all images, 1e-6 to 0.5.

    Returns
    -------
    TempCoh
        `t_coh` is nan where all pairs are missing; `t_coh_w` nan and `eff_n_pairs` 0 where no weight is positive or
        there are no looks. Without looks every image is a component of its own.

    Raises
    ------
    ValueError
        Shapes do not fit each other or the pairs, or `alpha` is out of its range.

    References
    ----------
    Ferretti, A., Fumagalli, A., Novali, F., Prati, C., Rocca, F., Rucci, A. (2011): A new algorithm for processing
    interferometric data-stacks: SqueeSAR. IEEE TGRS 49(9), 3460-3470 (temporal coherence, there of the real part).
    Gilbert, E. N. (1959): Random graphs. The Annals of Mathematical Statistics 30(4), 1141-1144.
    """
    n_points, nimages = ph.shape
    network = TempNet.chosen(image_pairs, nimages)
    if coh.shape != (n_points, len(network.pairs)):
        msg = (
            f"coh has shape {coh.shape} and ph {ph.shape}; expected coh {(n_points, len(network.pairs))}, one row per "
            f"point and one column per pair"
        )
        raise ValueError(msg)
    xp: Any = array_module(coh)
    looks = xp.full(n_points, np.nan) if n_looks is None else xp.asarray(n_looks, dtype=np.float64)
    looks = xp.ascontiguousarray(xp.broadcast_to(looks, (n_points,)))
    results = TempCoh(
        *(xp.empty(n_points, dtype=dtype) for dtype in (np.float32, np.float32, np.float32, np.int16)),
    )
    log_p = log(edge_probability(nimages, alpha))
    coh, ph = (xp.ascontiguousarray(array, dtype=np.complex64) for array in (coh, ph))
    if xp is np:
        from moraine_ds.quality import _cpu

        _cpu.points(coh, ph, looks, log_p, rows_of(network), *results)
    else:
        from moraine_ds.quality import _gpu

        _gpu.points(coh, ph, looks, log_p, network.image_pairs, *results)
    return results


def measures(
    coh: Array,
    ph: Array,
    n_looks: Array | None = None,
    *,
    names: Sequence[str],
    image_pairs: Iterable[Sequence[int]] | None = None,
    alpha: float = 1e-3,
) -> tuple[Array, ...]:
    """Return some of the measures of `ds_temp_coh`, in the order of their names.

    Parameters
    ----------
    coh, ph, n_looks, image_pairs, alpha
        As in `ds_temp_coh`: ``(n_points, n_pairs)`` complex64, ``(n_points, nimages)`` complex64, ``(n_points,)``,
        image pairs, and a probability; all unitless.
    names
        Names of attributes of `TempCoh`.

    Returns
    -------
    tuple
        One array ``(n_points,)``, unitless, for each name.
    """
    results = ds_temp_coh(coh, ph, n_looks=n_looks, image_pairs=image_pairs, alpha=alpha)
    return tuple(getattr(results, name) for name in names)


def rows_of(network: TempNet) -> NDArray[np.int64]:
    """Return the rows of a network: pairs that follow each other, of one reference and of secondaries in sequence.

    Parameters
    ----------
    network
        Image pairs.

    Returns
    -------
    ndarray
        Reference, first secondary, first pair, number of pairs; ``(n_rows, 4)`` int64, unitless.
    """
    rows: list[list[int]] = []
    for pair, (ref, sec) in enumerate(network.pairs):
        if rows and rows[-1][0] == ref and rows[-1][1] + rows[-1][3] == sec:
            rows[-1][3] += 1
        else:
            rows.append([ref, sec, pair, 1])
    return np.array(rows, dtype=np.int64).reshape(-1, 4)
