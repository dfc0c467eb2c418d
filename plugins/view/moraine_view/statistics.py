"""The plans that turn counted lines into statistics: samples, one image after another, all data."""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any

from moraine_core import ALL, Chunk, ChunkTask, Layout, Plan
from moraine_core.plan import SCRATCH, itemsize
from moraine_view.levels import channels

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

N_MEASURES = 7
"""Numbers that describe a line: see `kernels.line_statistics`."""


def lines_layout(n_lines: int, stack: Sequence[int], band: int) -> Layout:
    """Lay out the temporary array of the statistics of all lines, written in bands of one image."""
    ones = (1,) * len(stack)
    return Layout(f"{SCRATCH}lines", (n_lines, *stack, N_MEASURES), "float64", (band, *ones, N_MEASURES))


def statistics_plans(
    data: Layout, space: int, bands: Sequence[slice], lines: Layout, counts: Sequence[int], path: str
) -> Generator[Plan, list[Any], dict[str, Any]]:
    """Yield the plans that finish a pyramid's statistics; return the record of all data.

    Parameters
    ----------
    data
        The data as copied into the pyramid, space first, stack behind.
    space
        How many axes are space.
    bands
        Parts of the first axis that tasks work on.
    lines
        The statistics of all lines, finished.
    counts
        Numbers of finite values, band by band, one image after another.
    path
        Of the table of the images' statistics.
    """
    from moraine_view.kernels import COLUMNS, sample_step

    stack, ones = data.shape[space:], (1,) * (len(data.shape) - space)
    width = prod(data.shape[1:space])
    size = data.shape[0] * width
    images = channels(stack)
    befores = list(accumulate(counts, initial=0))

    # one sample of each image, and one of all data; where both would take every value, they are the same
    steps = sorted({sample_step(size), sample_step(size * len(images))})
    tallest = max(band.stop - band.start for band in bands)
    rooms = [-(-tallest * width // step) for step in steps]
    samples = [
        Layout(f"{SCRATCH}sample-{step}", (len(bands), *stack, room), "float64", (1, *ones, room))
        for step, room in zip(steps, rooms, strict=True)
    ]
    tasks = []
    for image, channel in enumerate(images):
        for number, band in enumerate(bands):
            place = image * len(bands) + number
            starts = (befores[place] - befores[image * len(bands)], befores[place])
            tasks.append(
                ChunkTask(
                    "moraine_view.tasks:sample_block",
                    inputs=[Chunk(data, (band, *(ALL,) * (space - 1), *channel))],
                    outputs=[Chunk(sample, (slice(number, number + 1), *channel, ALL)) for sample in samples],
                    kwargs={
                        "picks": [
                            (step, before, room, len(stack) + 2)
                            for step, before, room in zip(steps, starts, rooms, strict=False)
                        ]
                    },
                    scratch_bytes=(itemsize(data.dtype) + 1) * tallest * width + 40 * rooms[0],
                )
            )
    yield Plan(samples, tasks, desc="samples for percentiles")

    found = yield Plan(
        [],
        [
            ChunkTask(
                "moraine_view.tasks:image_statistics",
                inputs=[Chunk(lines, (ALL, *channel, ALL)), Chunk(samples[0], (ALL, *channel, ALL))],
                kwargs={"count": size, "dtype": data.dtype},
                scratch_bytes=4 * 8 * len(bands) * rooms[0] + 4 * 8 * N_MEASURES * lines.shape[0],
            )
            for channel in images
        ],
        desc="statistics of each image",
    )

    columns = {"columns": list(COLUMNS)}
    table = Layout(path, (*stack, len(COLUMNS)), "float64", (-1,) * (len(stack) + 1), attributes=columns)
    (record,) = yield Plan(
        [table],
        [
            ChunkTask(
                "moraine_view.tasks:all_statistics",
                inputs=[Chunk(samples[-1])],
                outputs=[Chunk(table)],
                kwargs={"shape": table.shape},
                scratch_bytes=4 * samples[-1].nbytes + 2000 * len(images),
            )
        ],
        shared={"images": found},
        desc="statistics of all data",
    )
    return dict(record)
