"""How statistics are planned: what the first reading of the data notes, and the plans that finish it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from moraine_core import ALL, Chunk, ChunkTask, Layout, Plan
from moraine_core.plan import SCRATCH, itemsize
from moraine_view.levels import channels

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from moraine_core import Block

N_MEASURES = 6
"""Numbers that describe a line: see `kernels.measure_lines`."""

SAMPLE_SIZE = 1 << 23
"""The regular sample for the percentiles holds about this many values."""


@dataclass(frozen=True)
class Notes:
    """What the tasks that read the data first note of it: the measures of its lines, and regular samples.

    Lines are runs of a fixed number of values of an image in C order, so that nothing depends on how the data are cut
    into blocks: those of a raster, or as many points of a cloud. A sample of every value is not kept: the data are.

    Attributes
    ----------
    stack
        Lengths of the axes that count images.
    size
        Values of an image.
    line
        Values of a line.
    blocks
        Parts of an image's values that tasks work on, each of whole lines.
    dtype
        Of the data.
    """

    stack: tuple[int, ...]
    size: int
    line: int
    blocks: Sequence[range]
    dtype: str

    @property
    def image_step(self) -> int:
        """Every which finite value of an image is in the image's sample."""
        return sample_step(self.size)

    @property
    def step(self) -> int:
        """Every which finite value of all data is in the sample of all data."""
        return sample_step(self.size * prod(self.stack))

    @cached_property
    def lines(self) -> Layout:
        """The temporary array of the measures of all lines."""
        ones = (1,) * len(self.stack)
        shape = (-(-self.size // self.line), *self.stack, N_MEASURES)
        return Layout(f"{SCRATCH}lines", shape, "float64", (self._lines(self.blocks[0]), *ones, N_MEASURES))

    @cached_property
    def samples(self) -> dict[int, Layout]:
        """The temporary arrays of the samples, by their steps; rows are filled up with nan."""
        tallest = max(len(block) for block in self.blocks)
        ones = (1,) * len(self.stack)
        made = {}
        for step in sorted({self.image_step, self.step} - {1}):
            room = -(-tallest // step)
            shape = (len(self.blocks), *self.stack, room)
            made[step] = Layout(f"{SCRATCH}sample-{step}", shape, sample_dtype(self.dtype), (1, *ones, room))
        return made

    def _lines(self, block: range) -> int:
        return -(-len(block) // self.line)

    def outputs(self) -> list[Layout]:
        """Return the temporary arrays."""
        return [self.lines, *self.samples.values()]

    def chunks(self, number: int, channel: Block) -> list[Chunk]:
        """Return what the task of a block of one image writes, in the order of `kwargs`."""
        block = self.blocks[number]
        first = block.start // self.line
        return [
            Chunk(self.lines, (slice(first, first + self._lines(block)), *channel, ALL)),
            *(Chunk(sample, (slice(number, number + 1), *channel, ALL)) for sample in self.samples.values()),
        ]

    def kwargs(self, number: int, image: int) -> dict[str, Any]:
        """Return what `tasks.noted` must know of a block of one image."""
        start = self.blocks[number].start
        before = {step: start if step == self.image_step else image * self.size + start for step in self.samples}
        return {
            "line": self.line,
            "steps": list(before),
            "before": list(before.values()),
            "rooms": [sample.shape[-1] for sample in self.samples.values()],
            "n_axes": len(self.stack),
        }

    def scratch_bytes(self) -> int:
        """Return the memory that measuring a block takes besides its results."""
        return 8 * self.line + 8 * N_MEASURES * self._lines(self.blocks[0])


def sample_step(size: int) -> int:
    """Say which finite values the sample takes: every ``ceil(size / 2**23)``-th of data with ``size`` values."""
    return max(1, -(-size // SAMPLE_SIZE))


def sample_dtype(dtype: str) -> str:
    """Return the dtype that holds measured values without loss: single precision where it can."""
    return "float32" if dtype in ("bool", "int8", "uint8", "int16", "uint16", "float16", "float32") else "float64"


def statistics_plans(data: Layout, space: int, notes: Notes, path: str) -> Generator[Plan, list[Any], dict[str, Any]]:
    """Yield the plans that finish a pyramid's statistics; return the record of all data.

    Parameters
    ----------
    data
        The data as copied into the pyramid, space first, stack behind.
    space
        How many axes are space.
    notes
        Of the data, finished.
    path
        Of the table of the images' statistics.
    """
    from moraine_view.kernels import COLUMNS

    images = channels(notes.stack)
    samples = notes.samples
    of_image = samples.get(notes.image_step)
    found = yield Plan(
        [],
        [
            ChunkTask(
                "moraine_view.tasks:image_statistics",
                inputs=[
                    Chunk(notes.lines, (ALL, *channel, ALL)),
                    Chunk(data, (*(ALL,) * space, *channel))
                    if of_image is None
                    else Chunk(of_image, (ALL, *channel, ALL)),
                ],
                kwargs={"count": notes.size, "dtype": data.dtype},
                scratch_bytes=_percentile_bytes(data.dtype if of_image is None else of_image.dtype, notes.size)
                + 4 * 8 * N_MEASURES * notes.lines.shape[0],
            )
            for channel in images
        ],
        desc="statistics of each image",
    )
    # one image is all data: its percentiles are known
    of_all = [] if len(images) == 1 else [samples.get(notes.step, data)]
    table = Layout(
        path,
        (*notes.stack, len(COLUMNS)),
        "float64",
        (-1,) * (len(notes.stack) + 1),
        attributes={"columns": list(COLUMNS)},
    )
    (record,) = yield Plan(
        [table],
        [
            ChunkTask(
                "moraine_view.tasks:all_statistics",
                inputs=[Chunk(layout) for layout in of_all],
                outputs=[Chunk(table)],
                kwargs={"shape": table.shape},
                scratch_bytes=sum(_percentile_bytes(layout.dtype, prod(layout.shape)) for layout in of_all)
                + 2000 * len(images),
            )
        ],
        shared={"images": found},
        desc="statistics of all data",
    )
    return dict(record)


def _percentile_bytes(dtype: str, size: int) -> int:
    """Return the memory of the percentiles of values that are in memory: a copy of those that are known."""
    return itemsize(sample_dtype(dtype)) * min(size, 2 * SAMPLE_SIZE)
