"""What the plans of the two pyramid commands have in common: layouts of levels, and the plans of later stages."""

from __future__ import annotations

import logging
from math import prod
from typing import TYPE_CHECKING, Any, Literal

from moraine_core import ALL, Chunk, ChunkTask, Layout, Plan
from moraine_core.plan import SCRATCH
from moraine_view.levels import PIECE_DEPTH, channels, piece_lines

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from moraine_core import Array, Block
    from moraine_view.levels import Stage

log = logging.getLogger("moraine")

SHARD_CELLS = 1 << 22
"""Cells of a shard, about: few files, and little memory to encode one."""


def level_layouts(
    name: str,
    shapes: Sequence[tuple[int, int]],
    cuts: Sequence[Stage],
    stack: Sequence[int],
    dtypes: Sequence[str],
    tile: tuple[int, int],
    meaning: Mapping[str, Any],
) -> list[Layout]:
    """Lay out the levels of a pyramid: tiles in space, one image of a stack per chunk, many tiles in a shard.

    Parameters
    ----------
    name
        Path of a level, with ``{}`` for its number.
    shapes
        Of the levels.
    cuts
        The stages that write them: a shard is what a band becomes, or a part of its width.
    stack
        Lengths of the axes behind the spatial ones.
    dtypes
        Of the levels.
    tile
        Lines and samples of a tile.
    meaning
        Unit and sign of the data, for level 0.
    """
    ones = (1,) * len(stack)
    layouts = []
    for stage in cuts:
        for level in stage.levels:
            chunk = tuple(n if size == -1 else size for n, size in zip(shapes[level], tile, strict=True))
            part = stage.part(stage.bands[0], level)
            shard = _shard(part.stop - part.start, shapes[level][1], chunk)
            layouts.append(
                Layout(
                    name.format(level),
                    (*shapes[level], *stack),
                    dtypes[level],
                    (*chunk, *ones),
                    attributes={} if level else meaning,
                    shards=None if shard == chunk else (*shard, *ones),
                )
            )
    return layouts


def _shard(lines: int, width: int, tile: Sequence[int]) -> tuple[int, int]:
    """Return the size of a shard in whole tiles: as high as a band, and about `SHARD_CELLS` cells."""
    down, across = -(-lines // tile[0]), -(-width // tile[1])
    most = max(SHARD_CELLS // (down * tile[0] * tile[1]), 1)
    return down * tile[0], min(across, most) * tile[1]


def sums_layouts(level: Layout, number: int) -> list[Layout]:
    """Lay out the temporary sums under the cells of a level, and the numbers of pixels in them."""
    wide = "complex128" if level.dtype.startswith("complex") else "float64"
    return [
        Layout(f"{SCRATCH}{name}-{number}", level.shape, dtype, level.unit)
        for name, dtype in (("total", wide), ("number", "int64"))
    ]


def band_parts(
    layouts: Sequence[Layout], levels: Sequence[int], stage: Stage, band: slice, channel: Block = ()
) -> list[Chunk]:
    """Return the parts of levels that a band of one image becomes."""
    return [Chunk(layouts[level], (stage.part(band, level), ALL, *channel)) for level in levels]


def kept_sums(layouts: Sequence[Layout], stage: Stage, band: slice, channel: Block) -> list[Chunk]:
    """Return the parts of the temporary sums that a band becomes; none where no stage follows."""
    level = stage.levels[-1]
    if level == len(layouts) - 1:
        return []
    return [Chunk(kept, (stage.part(band, level), ALL, *channel)) for kept in sums_layouts(layouts[level], level)]


def stage_outputs(layouts: Sequence[Layout], stage: Stage, *, keep_sums: bool) -> list[Layout]:
    """Return what the tasks of a stage write."""
    level = stage.levels[-1]
    sums = sums_layouts(layouts[level], level) if keep_sums and level < len(layouts) - 1 else []
    return [*(layouts[level] for level in stage.levels), *sums]


def means_plans(layouts: Sequence[Layout], later: Sequence[Stage], dtype: str) -> Generator[Plan, list[Any], None]:
    """Yield the plans of all stages but the first of a pyramid of means, each from the sums the one before has kept.

    Parameters
    ----------
    layouts
        Of all levels.
    later
        The stages.
    dtype
        Of the data.
    """
    for stage in later:
        tasks = []
        for channel in channels(layouts[0].shape[2:]):
            for band in stage.bands:
                sums = [Chunk(kept, (band, ALL, *channel)) for kept in sums_layouts(layouts[stage.base], stage.base)]
                keep = kept_sums(layouts, stage, band, channel)
                tasks.append(
                    ChunkTask(
                        "moraine_view.tasks:next_means",
                        inputs=sums,
                        outputs=[*band_parts(layouts, stage.levels, stage, band, channel), *keep],
                        kwargs={"dtype": dtype, "n": stage.depth, "keep_sums": bool(keep)},
                        scratch_bytes=2 * sum(chunk.nbytes for chunk in sums),
                    )
                )
        yield Plan(stage_outputs(layouts, stage, keep_sums=True), tasks, desc=_desc(stage))


def coarser_plans(kernel: str, layouts: Sequence[Layout], later: Sequence[Stage]) -> Generator[Plan, list[Any], None]:
    """Yield the plans of all stages but the first where the finer level is all a coarser one needs.

    Parameters
    ----------
    kernel
        Takes a band of the finer level and ``n``, and returns the next ``n`` levels.
    layouts
        Of all levels.
    later
        The stages.
    """
    for stage in later:
        tasks = []
        for channel in channels(layouts[0].shape[2:]):
            for band in stage.bands:
                (base,) = band_parts(layouts, [stage.base], stage, band, channel)
                tasks.append(
                    ChunkTask(
                        kernel,
                        inputs=[base],
                        outputs=band_parts(layouts, stage.levels, stage, band, channel),
                        kwargs={"n": stage.depth},
                        scratch_bytes=2 * base.nbytes,
                    )
                )
        yield Plan(stage_outputs(layouts, stage, keep_sums=False), tasks, desc=_desc(stage))


def _desc(stage: Stage) -> str:
    first, last = stage.levels[0], stage.levels[-1]
    return f"level {first}" if first == last else f"levels {first} to {last}"


def mean_bytes(lines: int, width: int, depth: int) -> int:
    """Return the memory of taking a band down by means, besides its levels: the sums of a piece, and those left."""
    piece = min(lines, piece_lines(width)) * width
    left = lines * width >> 2 * min(depth, PIECE_DEPTH)
    # a sum and a number take 24 bytes at most; a quarter of the cells each, and a third more for what comes after
    return 12 * piece + 64 * left


def finished(
    out_dir: str,
    kind: Literal["raster", "point cloud"],
    method: str,
    stats: dict[str, Any],
    texts: dict[str, str] | None = None,
) -> Plan:
    """Return the last plan of a pyramid: no task, but the marker that says it is complete."""
    marker = {"version": 1, "kind": kind, "method": method, "stats": stats}
    return Plan([], [], attributes={f"{out_dir}/0.zarr": {"moraine_pyramid": marker}}, texts=texts or {})


def warn_of_chunks(name: str, array: Array, space: int) -> None:
    """Log that reading image by image is slow where a chunk holds several images."""
    held = prod(min(c, n) for c, n in zip(array.chunks[space:], array.shape[space:], strict=True))
    if held > 1:
        log.warning(
            "%s %s keeps %d images in a chunk, and all are decoded for each of them; "
            "chunks of one image would be read %d times faster",
            name,
            array.path,
            held,
            held,
        )
