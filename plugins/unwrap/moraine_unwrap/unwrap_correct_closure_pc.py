"""Errors of unwrapping found by loops of pairs that do not close, and corrected (after Yunjun et al., 2019)."""

from __future__ import annotations

import logging
from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from typing import Annotated, Any

from moraine_core import Array, Blocks1D, Input, Output, Pairs, Plan, UsageError, command
from moraine_raster.networks import TempNet, network_of
from moraine_unwrap.closure.plans import Correction
from moraine_unwrap.roles import AzimuthSpacing, GridIndex, PhaseHistory, RangeSpacing, checked_spacing

NAME = "unwrap-correct-closure-pc"

log = logging.getLogger("moraine")


@command(NAME, family="unwrap", example="moraine_unwrap.examples:unwrap_correct_closure_pc")
def unwrap_correct_closure_pc(
    gix: GridIndex,
    ph: PhaseHistory,
    unw_ph: Annotated[
        Array,
        Input("unwrapped phase of the pairs", shape="(n_points, n_pairs)", dtype="float32", unit="radians"),
    ],
    image_pairs: Annotated[Pairs, "image pairs of unw_ph, a file or a list; they connect all images, in any order"],
    ts: Annotated[
        str,
        Output("phase of the images relative to ref", shape="(n_points, nimages)", dtype="float32", unit="radians"),
    ],
    range_pixel_spacing: RangeSpacing,
    azimuth_pixel_spacing: AzimuthSpacing,
    ref: Annotated[int, "image that the time series is relative to, from 0 (unitless)"] = 0,
    misclosure_fraction: Annotated[
        str | None,
        Output(
            "share of the pairs of a point that its own loops correct",
            shape="(n_points)",
            dtype="float32",
            unit="unitless",
        ),
    ] = None,
    change_fraction: Annotated[
        str | None,
        Output("share of the pairs of a point that were changed", shape="(n_points)", dtype="float32", unit="unitless"),
    ] = None,
    correction: Annotated[
        str | None,
        Output("whole cycles that were added to a pair", shape="(n_points, n_pairs)", dtype="int16", unit="cycles"),
    ] = None,
    region: Annotated[
        str | None,
        Output("number of the region of a point, -1 for none", shape="(n_points)", dtype="int32", unit="unitless"),
    ] = None,
    max_edge_factor: Annotated[
        float, "edges longer than this many times the median do not connect a region, above 1 (unitless)"
    ] = 4.0,
    min_region_points: Annotated[int, "fewest points of a region, at least 1 (points)"] = 30,
    out_chunks: Annotated[
        Blocks1D | None, "points that a task works on, a chunk of the outputs; those of ph by default (points)"
    ] = None,
) -> Generator[Plan, list[Any], None]:
    r"""Correct unwrapped pairs so that all their loops close, and write the time series of the phase.

    Each unwrapped pair is the phase of ref conj(sec) plus whole cycles. Where a loop of pairs does not close, some of
    its cycles are wrong. Three steps correct them. First each point by itself gets the smallest corrections, summed
    over its pairs, with which all loops close. Then each region of connected points and each pair gets the median of
    these, for errors of unwrapping come in connected areas; points of no region keep their own. Last, each point by
    itself is corrected once more, which gives the cycles of its images.

    Of several smallest corrections it takes the one that changes the first pair the least, then the second, and so on.
    The median between two values is their mean, a half rounded to the even number.

    ts is arg(ph) less that of image ref, plus whole cycles: 0 for ref, and its differences close all loops.
    correction says by how many cycles each pair was changed: a mask of what was wrong, pair by pair. The corrected
    pairs are unw_ph + 2 pi correction. misclosure_fraction is the share of pairs that step 1 changes, change_fraction
    the share that all steps together do. Both are high where the correction is not to be trusted.

    It takes the majority for right. What closes all loops is not found, nor an offset of a whole region in all pairs
    of an image: there is no reference in space here.

    A pair that is nan at a point, or of an image that is missing there (nan or 0), says nothing: it counts in no
    median and no share, and its correction is 0. ts is nan for images that no other pairs connect with ref. The shares
    are nan for points without any pair.

    image_pairs must connect all images. Without loops nothing can be found: there is a warning, and ts is summed along
    the pairs. A value of unw_ph more than 0.1 cycles from the phase of ph plus whole cycles is an error. Interferograms
    that were multilooked or flattened one by one are such: their wrapped phases do not close, whatever the cycles.

    References: Yunjun, Fattahi, Amelung (2019), Computers & Geosciences 133; Costantini (1998), IEEE TGRS 36(3).

    Examples
    --------
    moraine unwrap-correct-closure-pc --gix gix.zarr --ph ph.zarr --unw-ph unw.zarr --image-pairs pairs.txt \
      --ts ts.zarr --range-pixel-spacing 2.33 --azimuth-pixel-spacing 13.95
    """
    spacing = checked_spacing(NAME, range_pixel_spacing, azimuth_pixel_spacing)
    network = network_of(NAME, image_pairs, "ph", ph)
    _check(network, ph, unw_ph, ref, max_edge_factor, min_region_points)
    if out_chunks is not None and out_chunks < 1 and out_chunks != -1:
        raise UsageError(f"{NAME}: out_chunks is {out_chunks}; expected at least 1 (points), or -1 for all")
    if len(network.pairs) < network.nimages:
        log.warning("%s: the %d pairs of image_pairs make no loop, so nothing is corrected", NAME, len(network.pairs))
    plans = Correction(NAME, gix, ph, unw_ph, network, out_chunks or ph.chunks[0], region)
    found = yield plans.loops(misclosure_fraction, spacing, max_edge_factor, min_region_points)
    n_regions = found[0] if found else 0
    yield plans.medians(n_regions)
    paths = {"ts": ts, "change_fraction": change_fraction, "correction": correction}
    yield plans.series(n_regions, paths, ref)


def _check(
    network: TempNet, ph: Array, unw_ph: Array, ref: int, max_edge_factor: float, min_region_points: int
) -> None:
    n_pairs = len(network.pairs)
    if unw_ph.shape[1] != n_pairs:
        raise UsageError(
            f"{NAME}: unw_ph {unw_ph.path} has {unw_ph.shape[1]} pairs; expected {n_pairs}, those of image_pairs"
        )
    if not network.is_connected:
        alone = next(image for image, part in enumerate(network.components()) if part)
        raise UsageError(
            f"{NAME}: image_pairs do not connect image {alone} of ph {ph.path} with image 0; expected a network that "
            f"connects all {network.nimages} images"
        )
    if not 0 <= ref < network.nimages:
        raise UsageError(f"{NAME}: ref is {ref}; expected 0 to {network.nimages - 1}, one of the images")
    if not max_edge_factor > 1:
        raise UsageError(f"{NAME}: max_edge_factor is {max_edge_factor:g}; expected more than 1")
    if min_region_points < 1:
        raise UsageError(f"{NAME}: min_region_points is {min_region_points}; expected at least 1")
