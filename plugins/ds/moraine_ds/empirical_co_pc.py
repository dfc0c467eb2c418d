"""Coherence of points over their homogeneous pixels (Ferretti et al., 2011), and the looks these are worth."""

from __future__ import annotations

from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from typing import Annotated, Any

from moraine_core import ALL, Array, Chunk, ChunkTask, Input, Output, Pairs, Plan, UsageError, command
from moraine_ds.coherence.plans import (
    Part,
    chunk_sizes,
    layout_of,
    measuring_plan,
    median_correlation,
    parts_of,
    read_windows,
    window_bytes,
    window_inputs,
)
from moraine_raster.networks import network_of

RESULT_BYTES = 256 * 2**20
"""Coherence of a raster chunk that one task may hold anyway; more only if the images it needs take more."""

PAIR_BYTES = 512
"""Bytes per pair: the list of pairs, and the rows of the points that are computed together."""


@command("empirical-co-pc", family="ds", gpu=True, example="moraine_ds.examples:empirical_co_pc")
def empirical_co_pc(
    rslc: Annotated[Array, Input("SLC stack", shape="(nlines, width, nimages)", dtype="complex64")],
    is_shp_dir: Annotated[
        str, Input("homogeneous pixels of the points, one array for each raster chunk", kind="directory")
    ],
    gix: Annotated[
        Array,
        Input("grid index of the points, in its own order", shape="(n_points, 2)", dtype="integer", unit="pixels"),
    ],
    coh_dir: Annotated[str, Output("coherence of the points, one array for each raster chunk", kind="directory")],
    n_looks_dir: Annotated[
        str | None, Output("effective number of looks of the points, one array for each raster chunk", kind="directory")
    ] = None,
    image_pairs: Annotated[Pairs | None, "image pairs, a file or a list; all by default"] = None,
    chunks: Annotated[
        tuple[int, int] | None,
        "lines and pixels of a raster chunk, as the directories were made with; the stack's by default (pixels)",
    ] = None,
    strict: Annotated[bool, "a pair with any missing sample in the homogeneous pixels is nan"] = False,  # noqa: FBT002
) -> Generator[Plan, list[Any], None]:
    """Estimate the coherence matrix of each point over its statistically homogeneous pixels.

    The result of a raster chunk with n points is complex64 (n, n_pairs), in the order of gix: the upper triangle of the
    matrix row by row, or the pairs given. Raster chunks without points have no array.

    Missing samples (nan, infinite, or 0 and what is next to it) do not count: each pair is estimated over the pixels
    that both images have, and is nan if they are less than two. A point without homogeneous pixels is nan; with a
    single one every coherence is 1 in modulus and says nothing.

    The effective number of looks accounts for the correlation of neighboring pixels. This is measured once, in up to
    three images and nine parts of the raster, and noted as the attribute speckle_correlation; in a raster too small for
    that, the number of looks is that of pixels.

    Formula: gamma = sum(s1 conj(s2)) / sqrt(sum(|s1|^2) sum(|s2|^2)) over the homogeneous pixels
    (Ferretti et al., 2011, IEEE TGRS 49(9)); looks = n^2 / sum(rho^2(p - q)) over all pairs of the n pixels, rho the
    correlation of speckle.

    Examples
    --------
    moraine empirical-co-pc --rslc rslc.zarr --is-shp-dir is_shp --gix ds_gix.zarr --coh-dir coh --n-looks-dir n_looks
    """
    n_images = rslc.shape[2]
    network = network_of("empirical-co-pc", image_pairs, "rslc", rslc)
    try:
        pairs = network.in_order().pairs
    except ValueError as error:
        raise UsageError(f"empirical-co-pc: image_pairs: {error}") from None
    sizes = chunk_sizes("empirical-co-pc", rslc, chunks)
    windows = read_windows("empirical-co-pc", "is_shp_dir", is_shp_dir)
    counted, *tables = yield measuring_plan(
        "empirical-co-pc", rslc, gix, sizes, with_correlation=n_looks_dir is not None
    )
    parts = parts_of("empirical-co-pc", rslc, gix, windows, sizes, counted)
    correlation = median_correlation(tables)
    unit = {"unit": "unitless"}
    layouts, tasks = [], []
    for part in (*parts, *(() if parts else (None,))):  # without points, an array that holds none
        coh = layout_of(coh_dir, part, (len(pairs),), "complex64", unit)
        layouts.append(coh)
        looks = []
        if n_looks_dir is not None:
            looks = [layout_of(n_looks_dir, part, (), "float32", {**unit, "speckle_correlation": correlation})]
            layouts += looks
        for columns in _groups(part, pairs, n_images) if part else []:
            first = min(ref for ref, _ in pairs[columns])
            images = slice(first, max(sec for _, sec in pairs[columns]) + 1)
            with_looks = bool(looks) and columns.start == 0
            tasks.append(
                ChunkTask(
                    "moraine_ds.coherence.tasks:coherence_of_chunk",
                    inputs=window_inputs(rslc, images, gix, windows, part),
                    outputs=[Chunk(coh, (ALL, columns)), *(map(Chunk, looks) if with_looks else [])],
                    kwargs={
                        "origin": (part.outer[0].start, part.outer[1].start),
                        "pixels": (part.block[1].start, part.block[1].stop),
                        "images": (images.start, images.stop),
                        "columns": (columns.start, columns.stop),
                        "strict": strict,
                        "with_looks": with_looks,
                    },
                    scratch_bytes=window_bytes(part, images) + PAIR_BYTES * len(pairs),
                )
            )
    yield Plan(layouts, tasks, shared={"image_pairs": pairs, "correlation": correlation})


def _groups(part: Part, pairs: Pairs, n_images: int) -> list[slice]:
    """Return the pairs that tasks of a raster chunk take: all, unless they need more memory than its images."""
    most = max(max(RESULT_BYTES, 8 * part.n_pixels * n_images) // (8 * part.n_points), 1)
    count = -(-len(pairs) // most)
    return [slice(len(pairs) * k // count, len(pairs) * (k + 1) // count) for k in range(count)]
