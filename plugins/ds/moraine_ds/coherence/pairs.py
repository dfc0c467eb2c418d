"""Checks of image pairs that need only integers, for the commands as they declare and for the array functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Pairs = tuple[tuple[int, int], ...]


def checked_pairs(image_pairs: Sequence[Sequence[int]] | None, n_images: int) -> Pairs:
    """Return image pairs as they are stored, all of a stack by default.

    Parameters
    ----------
    image_pairs
        Pairs (reference, secondary), numbers of images, sorted and without duplicates; None for the
        ``n_images (n_images - 1) / 2`` of the upper triangle, row by row.
    n_images
        Images of the stack.

    Returns
    -------
    tuple
        The pairs.

    Raises
    ------
    ValueError
        A pair is not (reference, secondary) of two images with ``reference < secondary``, or not after the one before.
    """
    if image_pairs is None:
        return tuple((ref, sec) for ref in range(n_images) for sec in range(ref + 1, n_images))
    pairs: list[tuple[int, int]] = []
    for number, pair in enumerate(image_pairs):
        ref, sec = (int(image) for image in pair)
        if not 0 <= ref < sec < n_images:
            msg = f"image_pairs: pair {number} is ({ref}, {sec}); expected 0 <= reference < secondary < {n_images}"
            raise ValueError(msg)
        if pairs and (ref, sec) <= pairs[-1]:
            msg = f"image_pairs: pair {number}, ({ref}, {sec}), follows {pairs[-1]}; expected them sorted, none twice"
            raise ValueError(msg)
        pairs.append((ref, sec))
    return tuple(pairs)
