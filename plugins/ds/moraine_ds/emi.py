"""EMI: eigendecomposition-based maximum-likelihood estimator of interferometric phase (Ansari et al., 2018)."""

from __future__ import annotations

from typing import Annotated

from moraine_core import (
    ALL,
    Array,
    Blocks1D,
    Chunk,
    ChunkTask,
    Input,
    Layout,
    Output,
    Plan,
    UsageError,
    blocks,
    command,
)
from moraine_ds.phase_linking import BETA_MIN
from moraine_raster.networks import nimages_of

MATRIX_BYTES = 4 * 264
"""Bytes that the kernel holds per square of the number of images: on a CPU hardly any; on a GPU half a complex matrix
for each point of those that are worked on at once."""

POINT_BYTES = 16
"""Bytes that the kernel keeps of each point besides its phases: eigenvalue and regularization."""


@command("emi", family="ds", gpu=True, example="moraine_ds.examples:emi")
def emi(
    coh: Annotated[
        Array,
        Input(
            "coherence of all pairs of images, upper triangle row by row",
            shape="(n_points, n_pairs)",
            dtype="complex64",
            unit="unitless",
        ),
    ],
    ph: Annotated[
        str,
        Output(
            "phase history as unit phasors, relative to ref",
            shape="(n_points, nimages)",
            dtype="complex64",
            unit="unitless",
        ),
    ],
    ref: Annotated[int, "number of the image whose phase is 0, from 0 (unitless)"] = 0,
    regularize: Annotated[bool, "pull coherence that is no possible matrix toward the identity"] = True,  # noqa: FBT002
    beta_min: Annotated[float, "least share of the identity, from 0 to below 1 (unitless)"] = BETA_MIN,
    chunks: Annotated[Blocks1D | None, "points a task works on; those of coh by default (points)"] = None,
) -> Plan:
    """Link the phases of distributed scatterers: one phase per image out of the coherence of all pairs.

    The phase of image j relative to ref, in radians, is the angle of ph[:, j]; that of the coherence of a pair (i, j)
    is phase i less phase j. A pair that is nan is missing: it counts as coherence 0. An image without any pair is nan
    and does not disturb the others; without the image ref the whole point is nan.

    Coherence is estimated from few pixels, and its moduli are then often no positive definite matrix. So all of it is
    multiplied by 1 - b, with b the least for which the moduli are safely definite, and at least beta_min. With
    beta-min 0 phases follow the estimated coherence most closely; with 0.5 they are less noisy.

    Formula: eigenvector of the smallest eigenvalue of |G|^-1 o G, G the coherence matrix, o the elementwise product
    (Ansari, De Zan and Bamler, 2018, IEEE TGRS 56(7)).

    Examples
    --------
    moraine emi --coh coh.zarr --ph ph.zarr
    """
    try:
        n_images = nimages_of(coh.shape[1])
    except ValueError as error:
        raise UsageError(f"emi: coh {coh.path} has shape {coh.shape}; {error}") from None
    if not 0 <= ref < n_images:
        raise UsageError(f"emi: ref is {ref}; expected one of the {n_images} images of coh {coh.path}, from 0")
    if not 0 <= beta_min < 1:
        raise UsageError(f"emi: beta_min is {beta_min}; expected at least 0 and below 1")
    block = coh.chunks[0] if chunks is None else chunks
    out = Layout(ph, (coh.shape[0], n_images), "complex64", (block, 1))
    options = {"ref": ref, "regularize": regularize, "beta_min": beta_min}
    tasks = [
        ChunkTask(
            "moraine_ds.phase_linking.kernels:emi",
            inputs=[Chunk(coh, (*points, ALL))],
            outputs=[Chunk(out, (*points, ALL))],
            kwargs=options,
            scratch_bytes=POINT_BYTES * (points[0].stop - points[0].start) + MATRIX_BYTES * (n_images + 16) ** 2,
        )
        for points in blocks(out.shape[:1], out.chunks[:1])
    ]
    return Plan([out], tasks)
