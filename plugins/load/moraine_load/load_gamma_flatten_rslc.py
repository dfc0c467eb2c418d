"""Co-registered SLCs of GAMMA into one stack, without the phase of the flat Earth and of topography."""

from __future__ import annotations

import os
from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

from moraine_core import Blocks2D, Chunk, ChunkTask, Input, Layout, Output, Plan, blocks, command
from moraine_load.engine import ENGINE_HELP, SCRATCH_HELP, THREADS_HELP, Engine, default_threads, scratch_folder
from moraine_load.formats import ByteOrder, check_heights
from moraine_load.scene import band_bytes, scenes_of, spans
from moraine_load.stack import read_stack

if TYPE_CHECKING:
    from moraine_load.stack import Stack

PROGRAMS = ("create_offset", "phase_sim_orb")

IMAGES = 8
"""Images that a task works on: where a pixel is on the ground is computed once for them."""


@command("load-gamma-flatten-rslc", family="load", example="moraine_load.examples:load_gamma_flatten_rslc")
def load_gamma_flatten_rslc(
    rslc_dir: Annotated[str, Input("folder with YYYYMMDD.rslc and YYYYMMDD.rslc.par", kind="directory")],
    reference: Annotated[str, "date of the image whose geometry all have, YYYYMMDD"],
    hgt: Annotated[str, Input("heights above the ellipsoid in radar geometry, float, m", kind="file")],
    rslc: Annotated[str, Output("flattened SLC stack", shape="(nlines, width, nimages)", dtype="complex64")],
    scratch_dir: Annotated[str | None, SCRATCH_HELP] = None,
    chunks: Annotated[Blocks2D, "lines and pixels a task works on (pixels)"] = (1000, 1000),
    engine: Annotated[Engine, ENGINE_HELP] = "auto",
    gamma_threads: Annotated[int | None, THREADS_HELP] = None,
    byte_order: Annotated[ByteOrder | None, "of images and heights; big, and checked, by default"] = None,
    crop: Annotated[bool, "cut images of different sizes to what all have"] = False,  # noqa: FBT002
) -> Generator[Plan, list[Any], None]:
    """Load co-registered SLCs of GAMMA and remove the phase of flat Earth and topography.

    All images are in the geometry of the reference. The phase that geometry alone gives an interferogram with the
    reference, phi = 4 pi / lambda (r_k - r_ref), is computed for each pixel from its height and the orbits in the
    headers, in float64, and taken out: s exp(+j phi). Interferograms s_i conj(s_k) of the result have no fringes but
    those of displacement, atmosphere, and errors of heights and orbits.

    Samples of amplitude 0 are nan in both parts. A height of 0 m is a height; only nan is none. SCOMPLEX numbers are
    loaded as they are, without a scale. Images are in the order of their dates, which the array's attributes tell.

    With engine gamma, create_offset and phase_sim_orb make the phase; where it is exactly 0, pixels are nan.

    Examples
    --------
    moraine load-gamma-flatten-rslc --rslc-dir rslc --reference 20210101 --hgt 20210101.hgt --rslc rslc.zarr
    """
    scratch = scratch_folder(engine, PROGRAMS, scratch_dir)
    heights = os.path.abspath(hgt)
    stack = read_stack(os.path.abspath(rslc_dir), reference, crop=crop, byte_order=byte_order)
    check_heights(heights, stack.reference.shape, byte_order)
    attributes = {"flattened": True, "reference": reference, "dates": stack.dates}
    out = Layout(rslc, (*stack.shape, len(stack.images)), "complex64", (*chunks, 1), attributes=attributes)
    keywords: dict[str, Any] = {"byte_order": byte_order or "big"}
    shared: dict[str, Any] = {}
    phases: dict[str, str] = {}
    if scratch:
        kernel = "moraine_load.kernels:flatten_block_by_phase"
        keywords["phase_width"] = stack.reference.shape[1]
        phases = {date: os.path.join(scratch, f"{date}.sim") for date in stack.dates if date != reference}
        yield _simulation(stack, heights, phases, gamma_threads or default_threads())
    else:
        kernel = "moraine_load.kernels:flatten_block"
        keywords |= {"hgt": heights, "hgt_width": stack.reference.shape[1], "reference": reference}
        shared["scenes"] = scenes_of({image.date: image.par for image in stack.images})
    tasks = []
    for start in range(0, len(stack.images), IMAGES):
        images = stack.images[start : start + IMAGES]
        sources = [(image.date, image.path, image.par.image_format, image.shape[1]) for image in images]
        own = {"phases": [phases.get(image.date) for image in images]} if scratch else {}
        tasks += [
            ChunkTask(
                kernel,
                outputs=[Chunk(out, (*block, slice(start, start + len(images))))],
                kwargs={"images": sources, **spans(block), **keywords, **own},
                scratch_bytes=band_bytes(block),
            )
            for block in blocks(stack.shape, chunks)
        ]
    yield Plan([out], tasks, shared=shared)


def _simulation(stack: Stack, heights: str, phases: dict[str, str], threads: int) -> Plan:
    """Return the plan whose tasks let GAMMA make the phase of each image but the reference."""
    return Plan(
        [],
        [
            ChunkTask(
                "moraine_load.gamma:simulate_phase",
                kwargs={
                    "reference_par": stack.reference.par.path,
                    "par": image.par.path,
                    "hgt": heights,
                    "phase": phases[image.date],
                    "shape": stack.reference.shape,
                    "threads": threads,
                },
            )
            for image in stack.images
            if image is not stack.reference
        ],
        desc="load-gamma-flatten-rslc phase_sim_orb",
    )
