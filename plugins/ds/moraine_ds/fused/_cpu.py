"""Serial numba kernel: coherence, phase linking and its quality, point by point; `kernels` documents it.

The three steps are the functions of the separate commands, so results are the same to the last bit. The coherence of a
point stays in the cache of the processor.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from moraine_ds.coherence import _cpu as coherence
from moraine_ds.phase_linking import _cpu as linking
from moraine_ds.phase_linking.layout._cpu import workspace
from moraine_ds.quality import _cpu as quality


@njit(nogil=True, cache=True)
def points(
    block,
    gix,
    is_shp,
    looks,
    first,
    sec,
    strict,
    ref,
    regularize,
    beta_min,
    log_p,
    rows,
    ph,
    t_coh,
    t_coh_w,
    eff_n_pairs,
    n_components,
):
    """Fill in the phasors and the four measures of each point."""
    _, az_win, r_win = is_shp.shape
    n_images = block.shape[2]
    samples = coherence.workspace(az_win * r_win, n_images)
    matrices = workspace(n_images)
    phasors, pairs, edge, sets = quality.workspace(n_images, len(sec))
    coh = np.empty(len(sec), np.complex64)
    for i in range(len(gix)):
        coherence.coherence_of_point(block, gix[i, 0], gix[i, 1], is_shp[i], first, sec, strict, samples, coh)
        linking.link(coh, ref, regularize, beta_min, matrices, ph[i])
        plain, weighted, effective, components = quality.point(
            coh, ph[i], looks[i], log_p, rows, phasors, pairs, edge, sets
        )
        t_coh[i], t_coh_w[i], eff_n_pairs[i], n_components[i] = plain, weighted, effective, components
