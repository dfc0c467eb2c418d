"""What tasks of the fused step do besides calling its kernel: cut raster chunks into bands, and join these."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.device import array_module
from moraine_ds.coherence import kernels as coherence
from moraine_ds.coherence.speckle import on_host
from moraine_ds.coherence.tasks import points_of_chunk
from moraine_ds.fused import kernels
from moraine_points import kernels as points

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray[Any, Any]


def bands_of_chunks(
    gix: Array, *, shape: tuple[int, int], chunks: tuple[int, int], n_tasks: int, pixels_per_point: int, fewest: int
) -> list[list[int]]:
    """Cut raster chunks into bands of lines with about equally many points.

    Parameters
    ----------
    gix
        Grid index (azimuth, range), ``(n_points, 2)`` integers, in pixels, in its own order.
    shape, chunks
        Lines and width of the raster, and of a chunk, in pixels.
    n_tasks
        How many bands there should be in all; more where there are more chunks.
    pixels_per_point
        Most pixels of a chunk for each point of a band.
    fewest
        Points of a band at least, if there are so many in the chunk.

    Returns
    -------
    list
        For each band, in the order of chunks and lines: number of its raster chunk, number of points, first and last
        (exclusive) line with a point, first and last (exclusive) row of the gix in these lines. Empty where the gix is
        not one of the raster.
    """
    gix = on_host(gix)
    try:
        groups = points.points_by_chunk(gix, shape, chunks)
    except ValueError:  # told by `points_of_chunks`
        return []
    n_pixels = min(chunks[0], shape[0]) * min(chunks[1], shape[1])
    fewest = max(fewest, len(gix) // n_tasks, n_pixels // pixels_per_point, 1)
    bands = []
    for chunk, (first, last) in zip(groups.chunk, pairwise(groups.offsets), strict=True):
        lines = gix[groups.order[first:last], 0]
        n_points = last - first
        count = max(n_points // fewest, 1)
        starts = lines[n_points * np.arange(count) // count]
        borders = np.append(np.unique(np.searchsorted(lines, starts)), n_points)
        for start, stop in pairwise(borders):
            top, bottom = lines[start], lines[stop - 1] + 1
            rows = np.searchsorted(gix[:, 0], [top, bottom])
            bands.append([int(value) for value in (chunk, stop - start, top, bottom, *rows)])
    return bands


def link_band(
    rslc: Array,
    gix: Array,
    is_shp: Array,
    *,
    origin: tuple[int, int],
    pixels: tuple[int, int],
    names: Sequence[str],
    correlation: Sequence[Sequence[float]] | None,
    **options: Any,
) -> tuple[Array, ...]:
    """Return what is asked for of the points of a band.

    Parameters
    ----------
    rslc
        The images in the lines of the band and its halo, complex64 ``(nlines, width, nimages)``.
    gix
        Grid index (azimuth, range) of all points in the lines of the band, ``(n, 2)``, in pixels of the raster.
    is_shp
        Homogeneous pixels of the points of the band, bool ``(n_points, az_win, r_win)``.
    origin
        First line and pixel of the images in the raster.
    pixels
        First and last (exclusive) pixel of the band in the raster.
    names
        Names of attributes of `kernels.LinkedPoints`.
    correlation
        As `table` in `coherence.kernels.n_looks`.
    **options
        Keywords of `kernels.empirical_co_emi_temp_coh_pc`.

    Returns
    -------
    tuple
        One array for each name.

    Raises
    ------
    ValueError
        There are as many points no longer.
    """
    here = points_of_chunk(gix, len(is_shp), origin, pixels)
    looks = coherence.n_looks(is_shp, correlation)
    results = kernels.empirical_co_emi_temp_coh_pc(rslc, here, is_shp, looks, **options)
    return tuple(getattr(results, name) for name in names)


def joined(*pieces: Array) -> Array:
    """Return the arrays of the bands of a raster chunk as one.

    Parameters
    ----------
    *pieces
        Arrays that differ in the length of their first axis alone.

    Returns
    -------
    array
        All their rows.
    """
    return array_module(pieces[0]).concatenate(pieces)  # type: ignore[no-any-return]
