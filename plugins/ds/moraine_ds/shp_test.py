"""Statistically homogeneous pixels: which neighbors of a pixel have its distribution of amplitudes (DespecKS)."""

from __future__ import annotations

from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from math import prod
from typing import Annotated, Any, Literal

from moraine_core import (
    ALL,
    Array,
    Block,
    Blocks2D,
    Chunk,
    ChunkTask,
    Input,
    Layout,
    Output,
    Plan,
    UsageError,
    blocks,
    command,
    with_halo,
)
from moraine_ds.homogeneity.ks import FEWEST_IMAGES, significance
from moraine_ps.calibration import gains, images_of

PADDING = 31
"""Most pixels that a line of series is longer than a line of the block."""


@command("shp-test", family="ds", gpu=True, example="moraine_ds.examples:shp_test")
def shp_test(
    rslc: Annotated[Array, Input("SLC stack", shape="(nlines, width, nimages)", dtype="complex64")],
    is_shp: Annotated[
        str,
        Output(
            "True where a pixel of the window is homogeneous with its center",
            shape="(nlines, width, az_win, r_win)",
            dtype="bool",
        ),
    ],
    shp_num: Annotated[
        str,
        Output(
            "number of homogeneous pixels of a window, its center among them",
            shape="(nlines, width)",
            dtype="int32",
            unit="pixels",
        ),
    ],
    az_half_win: Annotated[int, "half window in azimuth; the window has 2 az_half_win + 1 lines (pixels)"],
    r_half_win: Annotated[int, "half window in range; the window has 2 r_half_win + 1 columns (pixels)"],
    alpha: Annotated[float, "level of significance, between 0 and 1; pixels differ below it (unitless)"] = 0.05,
    pvalue: Annotated[
        str | None,
        Output("p values of the test", shape="(nlines, width, az_win, r_win)", dtype="float32", unit="unitless"),
    ] = None,
    method: Annotated[Literal["ks"], "the test: ks is Kolmogorov's and Smirnov's of two samples"] = "ks",
    min_images: Annotated[
        int | None, "fewest valid images of a pixel that is tested; half of them and at least 5 by default (images)"
    ] = None,
    calibrate: Annotated[bool, "divide each image by its mean amplitude first"] = False,  # noqa: FBT002
    chunks: Annotated[
        Blocks2D | None, "lines and pixels a task works on; the stack's chunks by default (pixels)"
    ] = None,
) -> Generator[Plan, list[Any], None]:
    """Find the statistically homogeneous pixels (SHP) of each pixel's window.

    The amplitudes of two pixels over time are compared by the Kolmogorov-Smirnov (KS) test of two samples. Where it
    does not tell them apart, they are homogeneous: the center of the window always is.

    Missing samples (nan, infinite, or 0 and what is next to it) do not count: two pixels are compared by the samples
    that each has. A pixel with fewer valid images than min_images is not tested: it is homogeneous with none, and its
    shp_num is 0. With min_images as large as the stack, only pixels valid in all images are. p values are nan where
    there is no test.

    The outputs need one byte, the p values four, for each pixel of each window; the windows of a pixel lie in one
    chunk. Leave p values out if you only need the choice: it takes a fraction of the time.

    Formula: D = max |F_x - F_y| of the empirical distributions, p = Q((s + 0.12 + 0.11 / s) D) with
    s = sqrt(n_x n_y / (n_x + n_y)) and Q(x) = 2 sum_i (-1)^(i-1) exp(-2 i^2 x^2); homogeneous if p >= alpha (Ferretti
    et al., 2011, IEEE TGRS 49(9); Stephens, 1970, J. R. Stat. Soc. B 32(1)).

    Examples
    --------
    moraine shp-test --rslc rslc.zarr --is-shp is_shp.zarr --shp-num shp_num.zarr --az-half-win 5 --r-half-win 5
    """
    *space, n_images = rslc.shape
    half_win = (az_half_win, r_half_win)
    _check(rslc, half_win, alpha, min_images)
    block = tuple(chunks or rslc.chunks[:2])
    gain = (yield from gains("shp-test", rslc, block)) if calibrate else None
    window = tuple(2 * half + 1 for half in half_win)
    outputs = [
        Layout(is_shp, (*space, *window), "bool", (*block, *window)),
        Layout(shp_num, tuple(space), "int32", block),
    ]
    if pvalue is not None:
        outputs.append(Layout(pvalue, (*space, *window), "float32", (*block, *window)))
    options = {
        "n_images": n_images,
        "az_half_win": az_half_win,
        "r_half_win": r_half_win,
        "alpha": alpha,
        "min_images": min_images,
        "gain": gain,
        "with_pvalue": pvalue is not None,
    }
    tasks = []
    for b in blocks(space, block):
        outer, trim = with_halo(b, half_win, space)
        tasks.append(
            ChunkTask(
                "moraine_ds.homogeneity.kernels:shp_test_stream",
                inputs=[images_of(rslc, outer)],
                outputs=[Chunk(out, (*b, ALL, ALL)[: len(out.shape)]) for out in outputs],
                kwargs=options,
                trim=trim,
                scratch_bytes=_scratch_bytes(b, outer, n_images, prod(window), with_pvalue=pvalue is not None),
            )
        )
    yield Plan(outputs, tasks)


def _check(rslc: Array, half_win: tuple[int, int], alpha: float, min_images: int | None) -> None:
    """Refuse what cannot be tested, or would find everything homogeneous."""
    n_images = rslc.shape[2]
    if n_images < FEWEST_IMAGES:
        raise UsageError(
            f"shp-test: rslc {rslc.path} has {n_images} images; expected at least {FEWEST_IMAGES}: "
            "series of fewer never differ significantly"
        )
    if min(half_win) < 0:
        raise UsageError(f"shp-test: az_half_win and r_half_win are {half_win}; expected 0 or more")
    if not 0 < alpha < 1:
        raise UsageError(f"shp-test: alpha is {alpha}; expected a level between 0 and 1")
    if min_images is not None and not FEWEST_IMAGES <= min_images <= n_images:
        raise UsageError(
            f"shp-test: min_images is {min_images}; expected {FEWEST_IMAGES} to {n_images}, the images of rslc"
        )
    n = n_images if min_images is None else min_images
    least = significance(n * n, n, n)
    if least >= alpha:
        raise UsageError(
            f"shp-test: alpha is {alpha}, which the p value of {n} images is never below: all pixels would be "
            f"homogeneous; expected more than {least:.2g}"
        )


def _size(block: Block) -> int:
    return prod(part.stop - part.start for part in block)


def _scratch_bytes(block: Block, outer: Block, n_images: int, cells: int, *, with_pvalue: bool) -> int:
    """Return the bytes of sorted amplitudes, of their numbers, and of results in the halo."""
    nlines, width = (part.stop - part.start for part in outer)
    series: int = 4 * n_images * nlines * (width + PADDING)
    results = (5 if with_pvalue else 1) * cells + 4
    on_gpu = cells // 8 + 4  # the choice of half a window in words of 32 bits
    return series + (4 + on_gpu) * _size(outer) + results * (_size(outer) - _size(block))
