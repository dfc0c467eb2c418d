"""The twin of `_cpu` for a GPU: the kernels of the three steps, one after another for a batch of points.

The coherence of a batch stays on the device; that of a thousand points of 92 images (34 MB) stays in its cache. Even
without one, some passes of 34 KB are 0.05 microseconds per point of a memory that reads 4 TB/s. One kernel for all
steps would save them, but keep twice the shared memory for each point while it is linked. That step takes most of the
time, and shared memory is what limits how many points a multiprocessor works on at once: four of 92 images, which would
become two.
"""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from moraine_ds.coherence import _gpu as coherence
from moraine_ds.coherence.kernels import pair_rows
from moraine_ds.phase_linking import _gpu as linking
from moraine_ds.quality import _gpu as quality


def points(
    rslc: Any,
    gix: Any,
    is_shp: Any,
    looks: Any,
    network: Any,
    strict: bool,  # noqa: FBT001 - as `_cpu`
    ref: int,
    regularize: bool,  # noqa: FBT001 - as `_cpu`
    beta_min: float,
    log_p: float,
    batch_size: int,
    ph: Any,
    *measures: Any,
) -> None:
    """Fill in the phasors and the four measures of each point."""
    n_points, n_images = ph.shape
    pairs = coherence.pairs_on_device(*pair_rows(network.pairs, n_images))
    image_pairs = network.image_pairs
    coh = cp.empty((min(batch_size, n_points), len(image_pairs)), dtype=np.complex64)
    details = cp.empty((2, len(coh)), dtype=np.float64)
    for start in range(0, n_points, batch_size):
        batch = slice(start, min(start + batch_size, n_points))
        here = coh[: batch.stop - start]
        coherence.launch(rslc, gix[batch], is_shp[batch], pairs, strict, here, (1, len(image_pairs)))
        linking.link_all(here, ref, regularize, beta_min, ph[batch], *details[:, : len(here)])
        quality.points(here, ph[batch], looks[batch], log_p, image_pairs, *(array[batch] for array in measures))
