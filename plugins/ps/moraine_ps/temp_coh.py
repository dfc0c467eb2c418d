"""Temporal coherence of filtered interferograms: how well the images fit them (after Hooper et al., 2004)."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Annotated

from moraine_core import (
    Array,
    Blocks2D,
    Chunk,
    ChunkTask,
    Input,
    Layout,
    Output,
    Pairs,
    Plan,
    Stream,
    UsageError,
    blocks,
    command,
)
from moraine_raster.networks import network_of

if TYPE_CHECKING:
    from moraine_raster.networks import TempNet


@command("temp-coh", family="ps", gpu=True, example="moraine_ps.examples:temp_coh")
def temp_coh(
    intf: Annotated[
        Array,
        Input(
            "filtered interferograms; only their phase matters",
            shape=("(nlines, width, n_pairs)", "(n_points, n_pairs)"),
            dtype="complex64",
        ),
    ],
    rslc: Annotated[
        Array, Input("SLC stack", shape=("(nlines, width, nimages)", "(n_points, nimages)"), dtype="complex64")
    ],
    t_coh: Annotated[
        str,
        Output("temporal coherence, 0 to 1", shape=("(nlines, width)", "(n_points)"), dtype="float32", unit="unitless"),
    ],
    image_pairs: Annotated[Pairs | None, "image pairs of intf, a file or a list; all by default"] = None,
    chunks: Annotated[
        Blocks2D | None, "lines and pixels a task works on; the chunks of intf by default (pixels)"
    ] = None,
    min_pairs: Annotated[int, "fewest valid pairs of a pixel that is not nan (pairs)"] = 1,
    strict: Annotated[bool, "a pixel with any missing pair is nan"] = False,  # noqa: FBT002
) -> Plan:
    """Measure how well a stack fits its filtered interferograms, which is how little noise a pixel has.

    It is 1 where each interferogram has the phase that its two images have; for K pairs of random phase it is about
    0.886 / sqrt(K). A constant phase of all interferograms does not matter.

    A pair counts where its interferogram and its two images are neither nan, infinite nor 0; a pixel with fewer valid
    pairs than min_pairs is nan. Interferograms and images are read one by one, and an image is held until its last
    pair: of pairs in sequence, such as those of image-pairs with a small bandwidth, few images are held at a time.

    Formula: t = |sum u conj(r_ref) r_sec| / K over the K pairs of a pixel, u and r phasors of interferograms and
    images (after Hooper et al., 2004, GRL 31, without a search for the height error).

    Examples
    --------
    moraine temp-coh --intf filtered.zarr --rslc rslc.zarr --t-coh t_coh.zarr --image-pairs pairs.txt
    """
    *space, nimages = rslc.shape
    if min_pairs < 1:
        raise UsageError(f"temp-coh: min_pairs is {min_pairs}; expected at least 1")
    network = network_of("temp-coh", image_pairs, "rslc", rslc)
    if intf.shape[-1] != len(network.pairs):
        of = f"all pairs of the {nimages} images of rslc {rslc.path}" if image_pairs is None else "image_pairs"
        raise UsageError(f"temp-coh: intf {intf.path} has {intf.shape[-1]} pairs; expected {len(network.pairs)}, {of}")
    block = tuple(chunks[: len(space)] if chunks else intf.chunks[:-1])
    out = Layout(t_coh, shape=tuple(space), dtype="float32", chunks=block)
    pixel_bytes = 20 + 8 * most_held(network)  # sum and count of a pixel, and images
    tasks = [
        ChunkTask(
            "moraine_ps.kernels:temp_coh_stream",
            inputs=[Stream(Chunk(array, (*b, slice(None))), axis=array.ndim - 1) for array in (intf, rslc)],
            outputs=[Chunk(out, b)],
            kwargs={"min_pairs": min_pairs, "strict": strict},
            scratch_bytes=pixel_bytes * prod(part.stop - part.start for part in b),
        )
        for b in blocks(space, out.chunks)
    ]
    return Plan([out], tasks, shared={"image_pairs": network.pairs})


def most_held(network: TempNet) -> int:
    """Return how many images are held at a time, when they come in order and each stays until its last pair."""
    last_pair = {image: number for number, pair in enumerate(network.pairs) for image in pair}
    most, held, come = 0, set[int](), 0
    for number, pair in enumerate(network.pairs):
        held.update(image for image in range(come, max(pair) + 1) if last_pair.get(image, -1) >= number)
        come = max(come, max(pair) + 1)
        most = max(most, len(held))
        held.difference_update(image for image in pair if last_pair[image] == number)
    return most
