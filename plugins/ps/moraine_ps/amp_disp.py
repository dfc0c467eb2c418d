"""Amplitude dispersion index: how steady a pixel's amplitude is over time (Ferretti et al., 2001)."""

from __future__ import annotations

from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from math import prod
from typing import Annotated, Any

from moraine_core import (
    Array,
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
)
from moraine_ps.calibration import gains, images_of

PIXEL_BYTES = 28 + 7 * 8
"""Bytes of the running sums of a pixel, and of the images that a GPU keeps until it adds eight of them together."""


@command("amp-disp", family="ps", gpu=True, example="moraine_ps.examples:amp_disp")
def amp_disp(
    rslc: Annotated[
        Array, Input("SLC stack", shape=("(nlines, width, nimages)", "(n_points, nimages)"), dtype="complex64")
    ],
    adi: Annotated[
        str,
        Output("amplitude dispersion index", shape=("(nlines, width)", "(n_points)"), dtype="float32", unit="unitless"),
    ],
    chunks: Annotated[
        Blocks2D | None, "lines and pixels a task works on; the stack's chunks by default (pixels)"
    ] = None,
    calibrate: Annotated[bool, "divide each image by its mean amplitude first"] = False,  # noqa: FBT002
    min_images: Annotated[int, "fewest valid images of a pixel that is not nan (images)"] = 2,
    strict: Annotated[bool, "a pixel with any missing image is nan"] = False,  # noqa: FBT002
) -> Generator[Plan, list[Any], None]:
    """Compute the amplitude dispersion index, standard deviation over mean of a pixel's amplitude.

    Low values mark candidates for persistent scatterers: below about 0.25 the index is close to the standard deviation
    of the phase in radians, and pure speckle has 0.52.

    Missing samples (nan, infinite, or 0 and what is next to it) do not count; a pixel with fewer valid images than
    min_images is nan. The stack is read image by image, so memory does not grow with the number of images.

    Formula: D = sigma / m with m = mean(|s|), sigma^2 = mean((|s| - m)^2) over the images of a pixel
    (Ferretti, Prati and Rocca, 2001, IEEE TGRS 39(1)).

    Examples
    --------
    moraine amp-disp --rslc rslc.zarr --adi adi.zarr
    """
    *space, n_images = rslc.shape
    if n_images == 0:
        raise UsageError(f"amp-disp: rslc {rslc.path} has no images")
    if min_images < 1:
        raise UsageError(f"amp-disp: min_images is {min_images}; expected at least 1")
    block = tuple(chunks[: len(space)] if chunks else rslc.chunks[:-1])
    gain = (yield from gains("amp-disp", rslc, block)) if calibrate else None
    out = Layout(adi, shape=tuple(space), dtype="float32", chunks=block)
    options = {"min_images": min_images, "strict": strict, "gain": gain}
    yield Plan(
        [out],
        [
            ChunkTask(
                "moraine_ps.kernels:amp_disp_stream",
                inputs=[images_of(rslc, b)],
                outputs=[Chunk(out, b)],
                kwargs=options,
                scratch_bytes=PIXEL_BYTES * _size(b),
            )
            for b in blocks(space, block)
        ],
    )


def _size(block: tuple[slice, ...]) -> int:
    return prod(part.stop - part.start for part in block)
