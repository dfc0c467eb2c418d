"""What tasks on the coherence of points do besides calling a kernel: find points, and turn images into pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.device import array_module
from moraine_ds.coherence import kernels
from moraine_ds.coherence.plans import PLANES
from moraine_ds.coherence.speckle import on_host
from moraine_points import kernels as points

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Array = np.ndarray[Any, Any]


def points_of_chunks(gix: Array, *, shape: tuple[int, int], chunks: tuple[int, int], name: str) -> dict[str, Any]:
    """Count the points of each raster chunk, and find the rows of the gix to look for them.

    Parameters
    ----------
    gix
        Grid index (azimuth, range), ``(n_points, 2)`` integers, in pixels.
    shape, chunks
        Lines and width of the raster, and of a chunk, in pixels.
    name
        What problems call `gix`.

    Returns
    -------
    dict
        ``problem``, a sentence, empty where all is well; ``chunks``, for each raster chunk with points, ascending, its
        number, its number of points, and first and last (exclusive) row of the gix in its lines.
    """
    gix = on_host(gix)
    try:
        groups = points.points_by_chunk(gix, shape, chunks)
        points.check_sorted(points.gix_key(gix, shape[1]), name)
    except ValueError as error:
        return {"problem": str(error), "chunks": []}
    across = -(-shape[1] // chunks[1])
    top = groups.chunk // across * chunks[0]
    rows = [np.searchsorted(gix[:, 0], line) for line in (top, top + chunks[0])]
    return {"problem": "", "chunks": np.stack([groups.chunk, np.diff(groups.offsets), *rows], axis=1).tolist()}


def correlation_of_part(image: Array) -> list[list[float]] | None:
    """Return the table of `speckle_correlation` for a part of one image, None where it cannot be known.

    Parameters
    ----------
    image
        Samples, complex, ``(nlines, width, 1)``.

    Returns
    -------
    list or None
        Squared correlation by lag, unitless.
    """
    table = kernels.speckle_correlation(image[:, :, 0])
    return None if np.isnan(table).any() else table.tolist()


def coherence_of_chunk(
    planes: Iterable[Array],
    gix: Array,
    is_shp: Array,
    *,
    origin: tuple[int, int],
    pixels: tuple[int, int],
    images: tuple[int, int],
    columns: tuple[int, int],
    strict: bool,
    with_looks: bool,
    image_pairs: Sequence[Sequence[int]],
    correlation: Sequence[Sequence[float]] | None,
) -> tuple[Array, ...]:
    """Return the coherence of the points of one raster chunk for some of the pairs, and their looks if asked for.

    Parameters
    ----------
    planes
        The images that the pairs need, on the chunk and its halo, complex64 ``(nlines, width)``.
    gix
        Grid index (azimuth, range) of all points in the lines of the chunk, ``(n, 2)``, in pixels of the raster.
    is_shp
        Homogeneous pixels of the points of the chunk, bool ``(n_points, az_win, r_win)``.
    origin
        First line and pixel of the planes in the raster.
    pixels
        First and last (exclusive) pixel of the chunk in the raster.
    images
        First and last (exclusive) of the images in the stack.
    columns
        First and last (exclusive) of `image_pairs` to take.
    strict, image_pairs
        As in `kernels.empirical_co_pc`.
    with_looks
        Return the effective number of looks too.
    correlation
        As `table` in `kernels.n_looks`.

    Returns
    -------
    tuple
        Coherence, complex64 ``(n_points, n_columns)``, and looks, float32 ``(n_points,)``.

    Raises
    ------
    ValueError
        There are as many points no longer.
    """
    here = points_of_chunk(gix, len(is_shp), origin, pixels)
    pairs = np.asarray(image_pairs[slice(*columns)]) - images[0]
    coh = kernels.empirical_co_pc(stack(planes, images[1] - images[0]), here, is_shp, pairs, strict=strict)
    return (coh, kernels.n_looks(is_shp, correlation)) if with_looks else (coh,)


def points_of_chunk(gix: Array, n_points: int, origin: tuple[int, int], pixels: tuple[int, int]) -> Array:
    """Return where the points of a raster chunk are in the images of its task.

    Parameters
    ----------
    gix
        Grid index (azimuth, range) of all points in the lines of the chunk, ``(n, 2)``, in pixels of the raster.
    n_points
        How many are in the chunk.
    origin, pixels
        As in `coherence_of_chunk`.

    Returns
    -------
    array
        Grid index, ``(n_points, 2)``, in pixels of the images.

    Raises
    ------
    ValueError
        There are as many points no longer.
    """
    xp: Any = array_module(gix)
    here = gix[(gix[:, 1] >= pixels[0]) & (gix[:, 1] < pixels[1])] - xp.asarray(origin, dtype=gix.dtype)
    if len(here) != n_points:
        msg = f"a raster chunk has {len(here)} points in gix and {n_points} in its directory; did one of them change?"
        raise ValueError(msg)
    return here  # type: ignore[no-any-return]


def stack(images: Iterable[Array], n_images: int) -> Array:
    """Return images as one array in which the samples of a pixel lie together.

    Parameters
    ----------
    images
        Images of one shape, complex64 ``(nlines, width)``, numpy or cupy.
    n_images
        How many there are, at least 1.

    Returns
    -------
    array
        Complex64, ``(nlines, width, n_images)``.
    """
    pixels: Any = None
    for number, image in enumerate(images):
        if pixels is None:
            xp: Any = array_module(image)
            pixels = xp.empty((*image.shape, n_images), dtype=xp.complex64)
            together = xp.empty((PLANES, *image.shape), dtype=xp.complex64) if xp is np else None
        if together is None:
            pixels[:, :, number] = image
            continue
        place = number % PLANES
        together[place] = image
        if place == PLANES - 1 or number == n_images - 1:
            # one image at a time would touch each cache line of the result once for each image
            from moraine_ds.coherence import _cpu

            _cpu.interleave(together.reshape(PLANES, -1), pixels.reshape(-1, n_images), number - place, place + 1)
    return pixels  # type: ignore[no-any-return]
