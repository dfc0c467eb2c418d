"""Temporal coherence of distributed scatterers: how well linked phases fit the coherence (Ferretti et al., 2011)."""

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
    Pairs,
    Plan,
    UsageError,
    blocks,
    command,
)
from moraine_raster.networks import network_of

POINT_BYTES = 22
"""Bytes of a point while it is computed: all four measures, and its looks in float64."""

PAIR_BYTES = 256
"""Bytes of a pair while points are computed: the list of pairs, and the terms of one point."""


@command("ds-temp-coh", family="ds", gpu=True, example="moraine_ds.examples:ds_temp_coh")
def ds_temp_coh(
    coh: Annotated[
        Array, Input("coherence of the image pairs", shape="(n_points, n_pairs)", dtype="complex64", unit="unitless")
    ],
    ph: Annotated[
        Array,
        Input("phase history as phasors", shape="(n_points, nimages)", dtype="complex64", unit="unitless"),
    ],
    t_coh: Annotated[
        str | None, Output("temporal coherence, 0 to 1", shape="(n_points)", dtype="float32", unit="unitless")
    ] = None,
    t_coh_w: Annotated[
        str | None,
        Output("temporal coherence with weights, 0 to 1", shape="(n_points)", dtype="float32", unit="unitless"),
    ] = None,
    eff_n_pairs: Annotated[
        str | None,
        Output("effective number of pairs behind it", shape="(n_points)", dtype="float32", unit="unitless"),
    ] = None,
    n_components: Annotated[
        str | None,
        Output("connected components of the images", shape="(n_points)", dtype="int16", unit="unitless"),
    ] = None,
    n_looks: Annotated[
        Array | None,
        Input(
            "effective number of looks of the coherence; all outputs but t_coh need it",
            shape="(n_points)",
            dtype=("float", "integer"),
            unit="unitless",
        ),
    ] = None,
    image_pairs: Annotated[Pairs | None, "image pairs of coh, a file or a list; all by default"] = None,
    alpha: Annotated[float, "probability that noise connects all images, 1e-6 to 0.5 (unitless)"] = 1e-3,
    chunks: Annotated[Blocks1D | None, "points a task works on; those of coh by default (points)"] = None,
) -> Plan:
    """Measure how well phase histories fit the coherence that they were linked from.

    t_coh is 1 where all residual phases are 0. With n_looks, pairs are weighted by their squared coherence beyond that
    of noise, and images are connected by pairs whose coherence is not that of noise. A usual choice of distributed
    scatterers is n_components = 1 and t_coh_w >= 0.9. eff_n_pairs, up to the number of pairs, says how many pairs carry
    t_coh_w.

    A pair of nan or zero coherence, or of an image without phase, is missing. Without any pair t_coh is nan; t_coh_w is
    nan and eff_n_pairs 0 where no weight is positive or looks are 1 or less. An image without connections is a
    component of its own.

    Formula: psi = arg(coh conj(ph_ref) ph_sec); t_coh = |sum exp(j psi)| / n_pairs;
    w = max(0, (|coh|^2 - 1/L) / (1 - 1/L)); t_coh_w = |sum w exp(j psi)| / sum w;
    eff_n_pairs = (sum w)^2 / sum w^2 (Ferretti et al., 2011, IEEE TGRS 49(9)); an edge of the graph of images has
    |coh|^2 > 1 - p^(1/(L-1)), at which noise connects all images with probability alpha (Gilbert, 1959).

    Examples
    --------
    moraine ds-temp-coh --coh coh.zarr --ph ph.zarr --t-coh t_coh.zarr
    """
    outputs = {"t_coh": t_coh, "t_coh_w": t_coh_w, "eff_n_pairs": eff_n_pairs, "n_components": n_components}
    paths = {name: path for name, path in outputs.items() if path is not None}
    if n_looks is None and list(paths) != ["t_coh"]:
        asked = next(name for name in paths if name != "t_coh")
        raise UsageError(f"ds-temp-coh: {asked} is asked for without n_looks, which it needs")
    if not 1e-6 <= alpha <= 0.5:
        raise UsageError(f"ds-temp-coh: alpha is {alpha}; expected 1e-6 to 0.5")
    network = network_of("ds-temp-coh", image_pairs, "ph", ph, may_be_empty=True)
    if coh.shape[1] != len(network.pairs):
        of = f"all pairs of the {ph.shape[1]} images of ph {ph.path}" if image_pairs is None else "image_pairs"
        raise UsageError(f"ds-temp-coh: coh {coh.path} has {coh.shape[1]} pairs; expected {len(network.pairs)}, {of}")
    block = coh.chunks[0] if chunks is None else chunks
    layouts = [
        Layout(path, coh.shape[:1], "int16" if name == "n_components" else "float32", (block,))
        for name, path in paths.items()
    ]
    tasks = [
        ChunkTask(
            "moraine_ds.quality.kernels:measures",
            inputs=[
                Chunk(coh, (*points, ALL)),
                Chunk(ph, (*points, ALL)),
                *([Chunk(n_looks, points)] if n_looks else []),
            ],
            outputs=[Chunk(layout, points) for layout in layouts],
            kwargs={"names": tuple(paths), "alpha": alpha},
            scratch_bytes=POINT_BYTES * (points[0].stop - points[0].start) + PAIR_BYTES * coh.shape[1],
        )
        for points in blocks(coh.shape[:1], layouts[0].chunks)
    ]
    return Plan(layouts, tasks, shared={} if image_pairs is None else {"image_pairs": network.pairs})
