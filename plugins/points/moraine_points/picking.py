"""What the commands that reorder clouds share while they declare: tasks that pick the data of points, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from moraine_core import ALL, Chunk, ChunkTask, Layout, Plan, UsageError, blocks
from moraine_core.plan import SCRATCH, itemsize
from moraine_points.layouts import WINDOW_POINTS, check_shape, column_chunks, column_parts, row_dtype

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from moraine_core import Array, Block

TASK_BYTES = 2**26
"""Blocks of points are joined into tasks of about so many bytes: a smaller one is not worth its start."""

MATCH_BYTES = 24
"""Bytes per point of both clouds while they are matched: keys, rows, and where these are chosen from."""

CONVERTED_BYTES = 16
"""Bytes more per point where an index is not stored in the dtype of the contract."""

ROWS_CHUNK = 2**20
"""Rows in a chunk of the temporary array between matching and picking."""


@dataclass(frozen=True)
class Picked:
    """An array to be made of rows of one or two others.

    Attributes
    ----------
    path
        Where it will be.
    sources
        What the rows come from: data of the first cloud, and maybe of the second.
    dtype
        Of the result.
    columns
        Its chunks along the axes after the points.
    """

    path: str
    sources: tuple[Array, ...]
    dtype: str
    columns: tuple[int, ...]

    @classmethod
    def data(cls, path: str, *sources: Array, dtype: str = "") -> Picked:
        """Return data of points to be, in the dtype of the first source unless another is given."""
        return cls(path, sources, dtype or sources[0].dtype, column_chunks(sources[0], 1))

    @classmethod
    def index(cls, path: str, *sources: Array) -> Picked:
        """Return an index to be: gix int32, hix int64."""
        return cls(path, sources, "int32", (2,)) if sources[0].ndim == 2 else cls(path, sources, "int64", ())

    def layout(self, n_points: int, block: int) -> Layout:
        """Return the layout for so many points."""
        first, *others = [source.meaning for source in self.sources]
        shared = {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
        shape = (n_points, *self.sources[0].shape[1:])
        return Layout(self.path, shape, self.dtype, (block, *self.columns), attributes=shared)


# -- clouds in any order -----------------------------------------------------------------------------------------------


def take_tasks(array: Array, layout: Layout) -> list[ChunkTask]:
    """Return the tasks that put rows of an array into any order, a whole column each."""
    return [
        ChunkTask(
            "moraine_points.tasks:take",
            inputs=[Chunk(array, (ALL, *part))],
            outputs=[Chunk(layout, (ALL, *part))],
            kwargs={"dtype": layout.dtype},
            scratch_bytes=_rows_bytes(layout) + WINDOW_POINTS * (_row_bytes(layout, part) + itemsize("int64")),
        )
        for part in _parts(array, layout, max(array.shape[0], layout.shape[0]))
    ]


# -- sorted clouds -----------------------------------------------------------------------------------------------------


def pick_tasks(sources: Sequence[Array], layout: Layout) -> list[ChunkTask]:
    """Return the tasks that pick rows of sorted clouds: of one column each, or of some blocks of its points."""
    block, tasks = layout.chunks[0], []
    for part in _parts(sources[0], layout, block):
        points = block * max(TASK_BYTES // (block * _row_bytes(layout, part)), 1)
        for (rows,) in blocks(layout.shape[:1], (points,)):
            columns = [Chunk(source, (ALL, *part)) for source in sources]
            tasks.append(
                ChunkTask(
                    "moraine_points.tasks:pick",
                    outputs=[Chunk(layout, (rows, *part))],
                    kwargs={
                        "first": columns[0],
                        "second": columns[1] if len(columns) == 2 else None,
                        "points": (rows.start, rows.stop),
                        "dtype": layout.dtype,
                    },
                    scratch_bytes=_rows_bytes(layout) + sum(_window_bytes(source, layout, part) for source in sources),
                )
            )
    return tasks


def matched(
    command: str,
    kernel: str,
    clouds: Mapping[str, Array],
    arrays: Sequence[Picked],
    *,
    n_rows: int,
    block: int,
    shape: tuple[int, int] | None,
) -> Generator[Plan, list[Any], None]:
    """Yield the plans of a set of points: which rows of two clouds make it, then the data of these rows.

    Parameters
    ----------
    command
        Its name.
    kernel
        What finds the rows: of the indices of both clouds, which it gets, or of the first.
    clouds
        Indices of both clouds, by the parameter that names them.
    arrays
        The outputs.
    n_rows
        Most rows there can be.
    block
        Points in a chunk of the outputs.
    shape
        Lines and width of the raster, in pixels, if points are to be checked against it.
    """
    _check_clouds(command, clouds, shape)
    n_points = sum(idx.shape[0] for idx in clouds.values())
    rows = Layout(f"{SCRATCH}rows", (n_rows,), row_dtype(n_points), (ROWS_CHUNK,))
    is_converted = any(idx.dtype != ("int32" if idx.ndim == 2 else "int64") for idx in clouds.values())
    match = ChunkTask(
        kernel,
        inputs=[Chunk(idx) for idx in clouds.values()],
        outputs=[Chunk(rows)],
        kwargs={"shape": shape, "names": tuple(f"{command}: {name} {idx.path}" for name, idx in clouds.items())},
        scratch_bytes=n_points * (MATCH_BYTES + CONVERTED_BYTES * is_converted),
    )
    (n_found,) = yield Plan([rows], [match], desc=f"{command} match")
    layouts = [array.layout(n_found, block) for array in arrays]
    found = ChunkTask("moraine_points.tasks:as_stored", inputs=[Chunk(rows, (slice(0, n_found),))])
    yield Plan(
        layouts,
        [task for array, layout in zip(arrays, layouts, strict=True) for task in pick_tasks(array.sources, layout)],
        shared={"rows": found},
    )


def _check_clouds(command: str, clouds: Mapping[str, Array], shape: tuple[int, int] | None) -> None:
    """Refuse a gix together with a hix, and a shape that is none."""
    (name1, idx1), (name2, idx2) = clouds.items()
    if idx1.ndim != idx2.ndim:
        msg = (
            f"{command}: {name2} {idx2.path} has shape {idx2.shape}, {name1} {idx1.path} has {idx1.shape}; "
            "expected two gix (n_points, 2), or two hix (n_points)"
        )
        raise UsageError(msg)
    if shape is not None:
        check_shape(command, shape)


def _parts(array: Array, layout: Layout, n_points: int) -> Iterator[Block]:
    """Return the parts of the axes after the points that a task works on.

    An index or a window is one part. Images that are stored in one chunk are taken together, so that it is decoded
    once, unless the values of so many points are too large.
    """
    columns = layout.chunks[1:]
    if max(columns, default=1) > 1:
        return blocks(layout.shape[1:], columns)
    return column_parts(array, 1, n_points, array.chunks[-1] if array.ndim > 1 else 1)


def _row_bytes(layout: Layout, part: Block) -> int:
    width: int = prod(columns.stop - columns.start for columns in part)
    return itemsize(layout.dtype) * width


def _rows_bytes(layout: Layout) -> int:
    """Return the bytes of the row numbers, which all tasks share."""
    return itemsize(row_dtype(layout.shape[0])) * layout.shape[0]


def _window_bytes(source: Array, layout: Layout, part: Block) -> int:
    """Return the bytes of what a task holds of a source: a stored chunk, and the window as it is read and as used."""
    points = min(source.shape[0], source.chunks[0] + WINDOW_POINTS)
    return Chunk(source).stored_nbytes + 2 * points * _row_bytes(layout, part)
