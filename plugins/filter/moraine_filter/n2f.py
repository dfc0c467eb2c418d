"""Learned filter of interferograms on rasters (after Ronneberger et al., 2015, and Lehtinen et al., 2018)."""

from __future__ import annotations

from typing import Annotated

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
from moraine_filter import weights
from moraine_filter.raster import tiles
from moraine_raster.networks import PAIR_SIGN, network_of, pairs_note


@command("n2f", family="filter", gpu=True, example="moraine_filter.examples:n2f", tolerance=1e-4)
def n2f(
    rslc: Annotated[Array, Input("SLC stack", shape="(nlines, width, nimages)", dtype="complex64")],
    intf: Annotated[
        str,
        Output(
            "filtered interferograms, phasors of modulus 1",
            shape="(nlines, width, n_pairs)",
            dtype="complex64",
            unit="unitless",
        ),
    ],
    image_pairs: Annotated[Pairs | None, "image pairs, a file or a list; all by default"] = None,
    trust: Annotated[
        str | None,
        Output(
            "how far a phasor can be trusted, 0 to 1",
            shape="(nlines, width, n_pairs)",
            dtype="float32",
            unit="unitless",
        ),
    ] = None,
    model: Annotated[str | None, "file of weights of n2f; those that come with moraine by default"] = None,
    chunks: Annotated[
        Blocks2D | None,
        "lines and pixels a task works on, rounded up to whole out_chunks; about 1024 by default (pixels)",
    ] = None,
    out_chunks: Annotated[
        Blocks2D | None, "lines and pixels of a chunk of the outputs; those of rslc by default (pixels)"
    ] = None,
) -> Plan:
    """Remove noise from interferograms, with a network that has learned what phase looks like.

    The network looks at each interferogram alone, at some hundred pixels around each one. It sees the phase, and how
    bright a sample is among its neighbors; only ratios of amplitudes matter, so a stack of phases will do, with a
    little more noise left. Fringes are kept down to about four pixels each. Flatten the stack first: the filter need
    not guess what is known.

    A sample that is nan, infinite or of amplitude below 1e-30 in either image is missing: it is nan in the result, and
    does not count for its neighbors. What lies beyond the image is missing too.

    The trust is the modulus of what the network gives, which a squared error in training drives to the expected cosine
    of the phase error: 1 where it is sure, near 0 where there is nothing but noise.

    A task reads 112 to 127 pixels more than its block on each side, so small blocks are slow; results depend on them by
    no more than rounding. The weights are trained on simulated interferograms (tools/train_n2f.py), never on data.

    Examples
    --------
    moraine n2f --rslc rslc.zarr --image-pairs pairs.txt --intf filtered.zarr --trust trust.zarr
    """
    *space, _ = rslc.shape
    pairs = network_of("n2f", image_pairs, "rslc", rslc).pairs
    path, checksum = weights.chosen("n2f", model)
    shape = (*space, len(pairs))
    noted = {"unit": "unitless", "model_sha256": checksum, **pairs_note(pairs)}
    layouts = [
        Layout(intf, shape, "complex64", (*(out_chunks or rslc.chunks[:2]), 1), attributes={**noted, "sign": PAIR_SIGN})
    ]
    if trust is not None:
        layouts.append(Layout(trust, shape, "float32", layouts[0].chunks, attributes=noted))
    stored = layouts[0].chunks[:2]
    wanted = [n if c == -1 else c for n, c in zip(space, chunks or (tiles.USUAL, tiles.USUAL), strict=True)]
    if min(wanted, default=1) < 1 and min(space) > 0:
        raise UsageError(f"n2f: chunks are {chunks}; expected sizes of at least 1, or -1 for a whole axis")
    block = [max(-(-want // chunk), 1) * chunk for want, chunk in zip(wanted, stored, strict=True)]
    tasks = []
    for lines, pixels in blocks(space, block):
        bounds = [tiles.outer(part.start, part.stop, n) for part, n in zip((lines, pixels), space, strict=True)]
        read = [slice(start, min(stop, n)) for (start, stop), n in zip(bounds, space, strict=True)]
        size = (lines.stop - lines.start) * (pixels.stop - pixels.start)
        for group in tiles.groups(len(pairs), 12 * size):
            images = [image for pair in pairs[group] for image in pair]
            used = slice(min(images), max(images) + 1)
            tasks.append(
                ChunkTask(
                    "moraine_filter.raster.kernels:n2f",
                    inputs=[Stream(Chunk(rslc, (*read, used)), axis=2)],
                    outputs=[Chunk(layout, (lines, pixels, group)) for layout in layouts],
                    kwargs={
                        "model": path,
                        "first": used.start,
                        "group": (group.start, group.stop),
                        "trim": [
                            (part.start - outer.start, part.stop - outer.start)
                            for part, outer in zip((lines, pixels), read, strict=True)
                        ],
                        "with_trust": trust is not None,
                    },
                    scratch_bytes=tiles.scratch_bytes([stop - start for start, stop in bounds], pairs[group]),
                )
            )
    return Plan(layouts, tasks, shared={"image_pairs": pairs})
