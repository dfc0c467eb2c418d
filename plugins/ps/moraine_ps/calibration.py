"""What the commands that compare amplitudes of images share while they declare: images one by one, and their gains."""

from __future__ import annotations

from math import fsum, prod
from typing import TYPE_CHECKING, Any

from moraine_core import ALL, Chunk, ChunkTask, Plan, Stream, blocks

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from moraine_core import Array, Block

AMPLITUDE_BYTES = 8
"""Bytes of the amplitude of a pixel while a GPU sums it."""


def images_of(stack: Array, block: Block) -> Stream:
    """Return the images of a block of a stack, one after another."""
    return Stream(Chunk(stack, (*block, ALL)), axis=stack.ndim - 1)


def gains(command: str, stack: Array, block: Sequence[int]) -> Generator[Plan, list[Any], list[float | None]]:
    """Yield the plan that sums the amplitudes of a stack; return 1 / mean amplitude of each image.

    An image without a valid sample has None. Nine digits are kept: what rounding leaves of the order of the sums,
    which the blocks decide, does not show.

    Parameters
    ----------
    command
        Name of the command.
    stack
        Images, ``(..., nimages)``.
    block
        Size of the blocks, along the axes before the images.
    """
    sums = yield Plan(
        [],
        [
            ChunkTask(
                "moraine_ps.kernels:amplitude_sums",
                inputs=[images_of(stack, part)],
                scratch_bytes=AMPLITUDE_BYTES * prod(side.stop - side.start for side in part),
            )
            for part in blocks(stack.shape[:-1], block)
        ],
        desc=f"{command} calibration",
    )
    found: list[float | None] = []
    for image in range(stack.shape[-1]):
        total = fsum(part[image][0] for part in sums)
        count = sum(part[image][1] for part in sums)
        found.append(float(f"{count / total:.9g}") if total > 0 else None)
    return found
