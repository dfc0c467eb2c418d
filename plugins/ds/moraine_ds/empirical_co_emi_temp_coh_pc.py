"""Phase linking of distributed scatterers in one go: coherence, EMI and temporal coherence (Ferretti et al., 2011)."""

from __future__ import annotations

from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

from moraine_core import ALL, Array, Chunk, ChunkTask, Input, Output, Plan, UsageError, command
from moraine_ds.coherence.plans import (
    FINDING_BYTES,
    chunk_sizes,
    measuring_plan,
    median_correlation,
    parts_of,
    read_windows,
)
from moraine_ds.emi import MATRIX_BYTES
from moraine_ds.fused import BATCH_SIZE
from moraine_ds.fused.plans import Result, cut_into_bands, cutting_task, joining_tasks
from moraine_ds.phase_linking import BETA_MIN

if TYPE_CHECKING:
    from moraine_core import Layout
    from moraine_ds.coherence.plans import Windows
    from moraine_ds.fused.plans import Band

NAME = "empirical-co-emi-temp-coh-pc"

POINT_BYTES = 64
"""Bytes of a point while it is linked, besides its results: place, looks, all measures, and details of the linking."""

PAIR_BYTES = 512
"""Bytes of a pair of images: the lists of pairs, and all that is kept of one point."""


@command(NAME, family="ds", gpu=True, example="moraine_ds.examples:empirical_co_emi_temp_coh_pc")
def empirical_co_emi_temp_coh_pc(
    rslc: Annotated[Array, Input("SLC stack", shape="(nlines, width, nimages)", dtype="complex64")],
    is_shp_dir: Annotated[
        str, Input("homogeneous pixels of the points, one array for each raster chunk", kind="directory")
    ],
    gix: Annotated[
        Array,
        Input("grid index of the points, in its own order", shape="(n_points, 2)", dtype="integer", unit="pixels"),
    ],
    ph_dir: Annotated[
        str, Output("phase history as unit phasors, relative to ref, one array for each raster chunk", kind="directory")
    ],
    t_coh_dir: Annotated[str, Output("temporal coherence, 0 to 1, one array for each raster chunk", kind="directory")],
    t_coh_w_dir: Annotated[
        str | None,
        Output("temporal coherence with weights, 0 to 1, one array for each raster chunk", kind="directory"),
    ] = None,
    eff_n_pairs_dir: Annotated[
        str | None,
        Output("effective number of pairs behind it, one array for each raster chunk", kind="directory"),
    ] = None,
    n_components_dir: Annotated[
        str | None,
        Output("connected components of the images, one array for each raster chunk", kind="directory"),
    ] = None,
    ref: Annotated[int, "number of the image whose phase is 0, from 0 (unitless)"] = 0,
    regularize: Annotated[bool, "pull coherence that is no possible matrix toward the identity"] = True,  # noqa: FBT002
    beta_min: Annotated[float, "least share of the identity, from 0 to below 1 (unitless)"] = BETA_MIN,
    alpha: Annotated[float, "probability that noise connects all images, 1e-6 to 0.5 (unitless)"] = 1e-3,
    chunks: Annotated[
        tuple[int, int] | None,
        "lines and pixels of a raster chunk, as the directories were made with; the stack's by default (pixels)",
    ] = None,
    strict: Annotated[bool, "a pair with any missing sample in the homogeneous pixels is nan"] = False,  # noqa: FBT002
    batch_size: Annotated[int, "points whose coherence a GPU holds at once (points)"] = BATCH_SIZE,
) -> Generator[Plan, list[Any], None]:
    """Link the phases of distributed scatterers from their samples, and measure how well they fit.

    The same as empirical-co-pc of all pairs of images, then emi, then ds-temp-coh with the number of looks, to the last
    bit on a CPU, without storing the coherence: for 92 images that is 45 times as much as the phases. Those commands
    say what the options do, and what becomes of missing samples.

    The results of a raster chunk with n points are ph complex64 (n, nimages) and the others (n), in the order of gix:
    n_components int16, t_coh, t_coh_w and eff_n_pairs float32. Raster chunks without points have no array. A usual
    choice of distributed scatterers is n_components = 1 and t_coh_w >= 0.9.

    Formula: gamma = sum(s1 conj(s2)) / sqrt(sum(|s1|^2) sum(|s2|^2)) over the homogeneous pixels (Ferretti et al.,
    2011, IEEE TGRS 49(9)); phases from the eigenvector of the smallest eigenvalue of |G|^-1 o G, G the matrix of gamma
    (Ansari, De Zan and Bamler, 2018, IEEE TGRS 56(7)); t_coh = |sum exp(j psi)| / n_pairs, psi the phase of gamma less
    that of the linked phases.

    Examples
    --------
    moraine empirical-co-emi-temp-coh-pc --rslc rslc.zarr --is-shp-dir shp --gix gix.zarr --ph-dir ph --t-coh-dir t_coh
    """
    n_images = rslc.shape[2]
    if n_images < 2:
        raise UsageError(f"{NAME}: rslc {rslc.path} has {n_images} images; expected at least 2, to make pairs")
    if not 0 <= ref < n_images:
        raise UsageError(f"{NAME}: ref is {ref}; expected one of the {n_images} images of rslc {rslc.path}, from 0")
    if not 0 <= beta_min < 1:
        raise UsageError(f"{NAME}: beta_min is {beta_min}; expected at least 0 and below 1")
    if not 1e-6 <= alpha <= 0.5:
        raise UsageError(f"{NAME}: alpha is {alpha}; expected 1e-6 to 0.5")
    if batch_size < 1:
        raise UsageError(f"{NAME}: batch_size is {batch_size}; expected at least 1")
    sizes = chunk_sizes(NAME, rslc, chunks)
    windows = read_windows(NAME, "is_shp_dir", is_shp_dir)
    optional = {"t_coh_w": t_coh_w_dir, "eff_n_pairs": eff_n_pairs_dir, "n_components": n_components_dir}
    weighted = {name: folder for name, folder in optional.items() if folder is not None}
    measuring = measuring_plan(NAME, rslc, gix, sizes, with_correlation=bool(weighted))
    counting, *others = measuring.tasks
    counted, cuts, *tables = yield Plan([], [counting, cutting_task(rslc, gix, sizes), *others], desc=measuring.desc)
    correlation = median_correlation(tables)
    unit: dict[str, Any] = {"unit": "unitless"}
    known = {**unit, "speckle_correlation": correlation}
    results = [Result("ph", ph_dir, (n_images,), "complex64", unit), Result("t_coh", t_coh_dir, (), "float32", unit)]
    results += [
        Result(name, folder, (), "int16" if name == "n_components" else "float32", known)
        for name, folder in weighted.items()
    ]
    options = {
        "names": tuple(result.name for result in results),
        "ref": ref,
        "regularize": regularize,
        "beta_min": beta_min,
        "alpha": alpha,
        "strict": strict,
        "batch_size": batch_size,
    }
    parts = parts_of(NAME, rslc, gix, windows, sizes, counted)
    bands, joins = cut_into_bands(parts, cuts, results, windows, rslc)
    yield Plan(
        [layout for _, outputs in bands for layout in outputs] or [result.layout(None) for result in results],
        [_linking_task(rslc, gix, windows, band, outputs, options) for band, outputs in bands],
        shared={"correlation": correlation},
    )
    if joins:
        tasks = [task for whole, pieces in joins for task in joining_tasks(whole, pieces)]
        yield Plan([whole for whole, _ in joins], tasks, desc=f"{NAME} join")


def _linking_task(
    rslc: Array, gix: Array, windows: Windows, band: Band, outputs: list[Layout], options: dict[str, Any]
) -> ChunkTask:
    """Return the task that links the points of a band."""
    part, n_images = band.part, rslc.shape[2]
    n_pairs = n_images * (n_images - 1) // 2
    return ChunkTask(
        "moraine_ds.fused.tasks:link_band",
        # all images at once, not one after another: a GPU has them read while it works on the band before
        inputs=[
            Chunk(rslc, (*part.outer, ALL)),
            Chunk(gix, (part.rows, ALL)),
            Chunk(windows.arrays[part.number], (band.points, ALL, ALL)),
        ],
        outputs=[Chunk(layout) for layout in outputs],
        kwargs={
            "origin": (part.outer[0].start, part.outer[1].start),
            "pixels": (part.block[1].start, part.block[1].stop),
            **options,
        },
        scratch_bytes=FINDING_BYTES * (part.rows.stop - part.rows.start)
        + POINT_BYTES * part.n_points
        + (PAIR_BYTES + 8 * min(options["batch_size"], part.n_points)) * n_pairs
        + MATRIX_BYTES * (n_images + 16) ** 2,
    )
