"""Plain frozen data about arrays, outputs to be and chunk tasks, and the checks that need only integers.

Everything here is light (no numpy, no zarr), small when pickled, and can be printed: it is what a command hands to the
host, what the host proves before work, and what travels to a worker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any, Literal

from moraine_core.blocks import ALL, Block, Box, Shape, box_shape, chunks_of, grid_shape, is_aligned, resolve_chunks
from moraine_core.blocks import to_box as _to_box
from moraine_core.errors import LayoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np

SCRATCH = "scratch:"
"""What the path of a temporary array begins with."""

JOINED_BYTES = 2**22
"""Chunks smaller than this are read and written several at a time."""

KERNEL_PATTERN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def itemsize(dtype: str) -> int:
    """Return the bytes of one element of a numpy dtype name such as ``float32``, ``complex64`` or ``bool``."""
    if dtype == "bool":
        return 1
    match = re.fullmatch(r"(?:u?int|float|complex)(\d+)", dtype)
    if not match:
        msg = f"dtype {dtype!r} is not one moraine writes: expected bool, (u)int, float or complex with its bits"
        raise LayoutError(msg)
    return int(match[1]) // 8


def join_count(nbytes: int) -> int:
    """Return how many chunks of so many bytes are read or written in one call."""
    return max(JOINED_BYTES // max(nbytes, 1), 1)


@dataclass(frozen=True)
class Array:
    """An input array as a command sees it: metadata, and its values only where they are few.

    Attributes
    ----------
    path
        Where it lies.
    shape, dtype, chunks
        As stored; `dtype` is numpy's name.
    attributes
        The attributes stored with it.
    """

    path: str
    shape: Shape
    dtype: str
    chunks: Shape
    attributes: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of all values in bytes."""
        return prod(self.shape) * itemsize(self.dtype)

    @property
    def meaning(self) -> dict[str, Any]:
        """What the attributes say of the values: unit, sign, and image pairs. Who only moves values hands it on."""
        return {key: self.attributes[key] for key in ("unit", "sign", "image_pairs") if key in self.attributes}

    def read(self, block: Sequence[slice | None] | None = None) -> np.ndarray[Any, Any]:
        """Return the values of a part. For small indices only: large arrays are the tasks' business."""
        return Chunk(self, block).read()


@dataclass(frozen=True)
class Layout:
    """An output array to be.

    Attributes
    ----------
    path
        The declared output's path, a path inside it where the output is a directory, or ``scratch:NAME`` for a
        temporary array of this run, gone when the run is over.
    shape, dtype, chunks
        What will be stored; ``-1`` in `chunks` is a whole axis.
    fill
        Value of what is never written; ``None`` means missing (nan) for floats and complex, 0 or False otherwise.
    attributes
        Stored with the array.
    shards
        Whole numbers of chunks that lie in one file, where chunks are so small that files would be too many. A shard
        is then what one task writes.
    """

    path: str
    shape: Shape
    dtype: str
    chunks: Shape
    fill: float | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    shards: Shape | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        object.__setattr__(self, "chunks", resolve_chunks(self.shape, self.chunks))
        itemsize(self.dtype)
        if self.shards is not None:
            shards = resolve_chunks(self.shape, self.shards)
            if any(shard % chunk for shard, chunk in zip(shards, self.chunks, strict=True)):
                msg = f"{self.path}: shards {shards} are not made of whole chunks {self.chunks}"
                raise LayoutError(msg)
            object.__setattr__(self, "shards", shards)

    @property
    def unit(self) -> Shape:
        """What one task alone may write: a shard, or a chunk where there are none."""
        return self.shards or self.chunks

    @property
    def is_scratch(self) -> bool:
        """Whether it is a temporary array."""
        return self.path.startswith(SCRATCH)

    @property
    def nbytes(self) -> int:
        """Size of all values in bytes, before compression."""
        return prod(self.shape) * itemsize(self.dtype)


@dataclass(frozen=True)
class RawLayout(Layout):
    """A headerless binary file to be, row after row, as programs beside us read it.

    Its chunks are whole rows, bands along the first axis, so that tasks write apart from each other. `fill` and
    `attributes` have no place in it.

    Attributes
    ----------
    byteorder
        ``big`` or ``little``, of what is stored; values in memory have the order of the machine.
    """

    byteorder: Literal["big", "little"] = "big"

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(c < n for n, c in zip(self.shape[1:], self.chunks[1:], strict=True)):
            msg = f"{self.path}: chunks {self.chunks} of {self.shape} cut rows; expected only the first axis to be cut"
            raise LayoutError(msg)


class Chunk:
    """A part of an array: what a task reads or writes.

    Parameters
    ----------
    source
        The array: an `Array`, a `Layout`, or just a path.
    block
        One slice per axis (``None`` or ``slice(None)`` for a whole axis); ``None`` for the whole array.
    """

    __slots__ = ("block", "byteorder", "chunks", "dtype", "path", "shape")

    def __init__(self, source: Array | Layout | str, block: Sequence[slice | None] | None = None) -> None:
        self.block: Block | None = None if block is None else tuple(ALL if part is None else part for part in block)
        self.path: str
        self.shape: Shape | None
        self.byteorder = source.byteorder if isinstance(source, RawLayout) else ""  # empty for what zarr keeps
        if isinstance(source, str):
            self.path, self.shape, self.dtype, self.chunks = source, None, "", None
        else:
            self.path, self.shape, self.dtype = source.path, source.shape, source.dtype
            self.chunks = source.unit if isinstance(source, Layout) else source.chunks

    def __repr__(self) -> str:
        part = "" if self.block is None else f"[{self.where}]"
        return f"{self.path}{part}"

    @property
    def where(self) -> str:
        """The part as text, such as ``0:1000, 1000:1834, :``."""
        return ", ".join(
            ":" if part == ALL else f"{part.start or 0}:{'' if part.stop is None else part.stop}"
            for part in self.block or ()
        )

    @property
    def box(self) -> Box:
        """Bounds of the part; known only where the chunk was made from an array or a layout."""
        if self.shape is None:
            msg = f"{self.path}: the shape is not known before the array is opened"
            raise LayoutError(msg)
        return _to_box(self.block, self.shape)

    @property
    def nbytes(self) -> int:
        """Size of the part's values in bytes."""
        return prod(box_shape(self.box)) * itemsize(self.dtype)

    @property
    def stored_nbytes(self) -> int:
        """Bytes that reading or writing the part decodes at a time: a stored chunk, or several that are small."""
        return self._chunk_nbytes * min(join_count(self._chunk_nbytes), (self._touched or (1,))[0])

    @property
    def n_pieces(self) -> int:
        """How many reads of `stored_nbytes` the part is made of; 1 where its chunks are not known."""
        rows, *others = self._touched or (1,)
        return -(-rows // join_count(self._chunk_nbytes)) * prod(others)

    @property
    def _chunk_nbytes(self) -> int:
        return prod(self.chunks or ()) * itemsize(self.dtype)

    @property
    def _touched(self) -> Shape:
        """Stored chunks that the part touches along each axis; nothing where they are not known."""
        if not self.chunks or not self.shape:
            return ()
        box = zip(self.box, self.chunks, strict=True)
        return tuple(max(-(-stop // size) - start // size, 1) for (start, stop), size in box)

    def at(self, path: str) -> Chunk:
        """Return the same part of an array that lies elsewhere."""
        other = Chunk(path, self.block)
        other.shape, other.dtype, other.chunks = self.shape, self.dtype, self.chunks
        other.byteorder = self.byteorder
        return other

    def read(self) -> np.ndarray[Any, Any]:
        """Return the part's values; the pieces of several chunks are read in threads."""
        from moraine_core import store

        if self.byteorder:
            return store.read_raw(self)
        return store.parallel_read_zarr(store.open_array(self.path), self.block)

    def write(self, data: np.ndarray[Any, Any]) -> None:
        """Store the part's values.

        Raises
        ------
        LayoutError
            The part is not made of whole chunks, or `data` has another shape.
        """
        from moraine_core import store

        if self.byteorder:
            store.write_raw(self, data)
        else:
            store.parallel_write_zarr(store.open_array(self.path, writable=True), data, self.block)


@dataclass(frozen=True)
class Stream:
    """A task input that the kernel iterates over: a chunk's planes along one axis, few of them in memory at a time.

    Attributes
    ----------
    chunk
        The part.
    axis
        The axis that is iterated; a plane has the shape of the part without it.
    """

    chunk: Chunk
    axis: int

    @property
    def step(self) -> int:
        """Planes that are read together: as many as a stored chunk holds, which is decoded once."""
        return self.chunk.chunks[self.axis] if self.chunk.chunks else 1

    @property
    def nbytes(self) -> int:
        """Bytes in memory at once: the planes in use, and the next ones that are read meanwhile."""
        box = self.chunk.box
        planes = max(box[self.axis][1] - box[self.axis][0], 1)
        return min(2 * self.step, planes) * self.chunk.nbytes // planes


@dataclass(frozen=True)
class Device:
    """A task argument that is moved to the task's device; passed as it is on a CPU."""

    value: Any


@dataclass(frozen=True)
class ChunkTask:
    """One chunk's work: read the inputs, call the kernel, write its results to the outputs.

    Attributes
    ----------
    kernel
        ``"package.module:function"``, imported in the worker. It takes the inputs in order and `kwargs`, and returns
        one array per output (``None`` to leave an output alone), plus at most one small result more, which goes
        back to the command. With no outputs, all it returns is that small result.
    inputs
        `Chunk` (read and passed as an array), `Stream` (passed as an iterator of arrays), `Device`, or plain values.
    outputs
        Whole chunks of the plan's layouts.
    kwargs
        Keywords of the kernel. A `Chunk` in here is passed unread, for kernels that choose what to read.
    trim
        The part of the kernel's results to write, where the inputs carried a halo.
    scratch_bytes
        Memory the kernel needs besides its inputs and results, in bytes.
    """

    kernel: str
    inputs: Sequence[Any] = ()
    outputs: Sequence[Chunk] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    trim: Block | None = None
    scratch_bytes: int = 0

    @property
    def input_bytes(self) -> int:
        """Bytes of the inputs in memory, decoded: what a worker that reads ahead holds for its next task."""
        return sum(item.nbytes for item in self.inputs if isinstance(item, Chunk | Stream))

    def reading_bytes(self, threads: int = 1) -> int:
        """Return the bytes that reading takes besides the inputs: a stored chunk, packed and decoded, in each thread.

        Parameters
        ----------
        threads
            Read at once from one input; the inputs are read one after another.
        """
        reads = [c.chunk if isinstance(c, Stream) else c for c in self.inputs if isinstance(c, Chunk | Stream)]
        return max((2 * chunk.stored_nbytes * min(threads, chunk.n_pieces) for chunk in reads), default=0)

    @property
    def nbytes(self) -> int:
        """Projected memory of the task in bytes.

        Inputs and results once; besides them the larger of what reading takes at a time and of what writing encodes at
        a time; and the kernel's own scratch. On a GPU the same sum counts as device memory.
        """
        encoding = max((chunk.stored_nbytes for chunk in self.outputs), default=0)
        results = sum(chunk.nbytes for chunk in self.outputs)
        return self.input_bytes + results + max(self.reading_bytes(), 2 * encoding) + self.scratch_bytes

    def relocated(self, move: Callable[[str], str]) -> ChunkTask:
        """Return the task with every path passed through `move`."""

        def place(item: Any) -> Any:
            if isinstance(item, Chunk):
                return item.at(move(item.path))
            if isinstance(item, Stream):
                return replace(item, chunk=place(item.chunk))
            return item

        return replace(
            self,
            inputs=tuple(place(item) for item in self.inputs),
            outputs=tuple(place(item) for item in self.outputs),
            kwargs={name: place(value) for name, value in self.kwargs.items()},
        )

    def __str__(self) -> str:
        parts = ", ".join(str(c) for c in (*self.outputs, *(i for i in self.inputs if isinstance(i, Chunk))))
        return f"{self.kernel.rpartition(':')[2]}({parts})"


@dataclass(frozen=True)
class Plan:
    """What a command wants done: arrays to create, and the tasks that fill them.

    Attributes
    ----------
    outputs
        The arrays that the tasks of this plan write, each completely.
    tasks
        In any order; no task waits for another.
    shared
        Objects every task needs, by the keyword under which kernels receive them; each worker machine holds one copy. A
        `ChunkTask` without outputs stands for what it returns: the host runs it just before the plan, so that declaring
        reads nothing.
    desc
        Name in progress lines; the command's name by default.
    attributes
        Attributes to add, when the plan is done, to arrays of this plan or of earlier ones, by path.
    texts
        Small text files to write into directory outputs when the plan is done, by path.
    keep_going
        A task that raises an error leaves the others to be run. The plan fails all the same, in the end, and names all
        tasks that did; the same call goes on with these. For tasks of which one may fail by itself, such as pairs.
    """

    outputs: Sequence[Layout]
    tasks: Sequence[ChunkTask]
    shared: Mapping[str, Any] = field(default_factory=dict)
    desc: str = ""
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    keep_going: bool = False

    @property
    def task_bytes(self) -> int:
        """Projected memory of the largest task, in bytes."""
        return max((task.nbytes for task in self.tasks), default=0)

    @property
    def needed_bytes(self) -> int:
        """Projected memory of one task and of what all tasks share, as far as tasks make that, in bytes."""
        return self.task_bytes + sum(value.nbytes for value in self.shared.values() if isinstance(value, ChunkTask))

    def relocated(self, move: Callable[[str], str]) -> Plan:
        """Return the plan with every path of outputs and tasks passed through `move`."""
        return replace(
            self,
            outputs=[replace(layout, path=move(layout.path)) for layout in self.outputs],
            tasks=[task.relocated(move) for task in self.tasks],
            shared={
                name: value.relocated(move) if isinstance(value, ChunkTask) else value
                for name, value in self.shared.items()
            },
            attributes={move(path): value for path, value in self.attributes.items()},
            texts={move(path): value for path, value in self.texts.items()},
        )

    def problems(self) -> Iterator[LayoutError]:
        """Yield what makes the plan wrong.

        Each chunk of each output must be written by exactly one task, each write must be made of whole chunks,
        no task may read what another task of the same plan writes, and a kernel must be named.
        """
        layouts = {layout.path: layout for layout in self.outputs}
        if len(layouts) < len(self.outputs):
            yield LayoutError(f"the plan lists an output twice: {[layout.path for layout in self.outputs]}")
        written: dict[str, set[Shape]] = {path: set() for path in layouts}
        for number, task in enumerate(self.tasks):
            if not KERNEL_PATTERN.fullmatch(task.kernel):
                yield LayoutError(f"task {number}: kernel {task.kernel!r} is not of the form 'package.module:function'")
            for item in task.inputs:
                chunk = item.chunk if isinstance(item, Stream) else item
                if isinstance(chunk, Chunk) and chunk.path in layouts:
                    yield LayoutError(f"task {number} reads {chunk}, which this plan writes")
            for chunk in task.outputs:
                yield from _write_problems(number, chunk, layouts, written)
        for path, layout in layouts.items():
            missing = prod(grid_shape(layout.shape, layout.unit)) - len(written[path])
            if missing:
                yield LayoutError(f"{path}: no task writes {missing} of its chunks")


def _write_problems(
    number: int, chunk: Chunk, layouts: Mapping[str, Layout], written: Mapping[str, set[Shape]]
) -> Iterator[LayoutError]:
    """Yield what is wrong with one write, and note the chunks it covers."""
    layout = layouts.get(chunk.path)
    if layout is None:
        yield LayoutError(f"task {number} writes {chunk}, which is not an output of the plan")
        return
    try:
        box = _to_box(chunk.block, layout.shape)
    except LayoutError as error:
        yield LayoutError(f"task {number} writes {chunk}: {error}")
        return
    if not is_aligned(box, layout.shape, layout.unit):
        yield LayoutError(f"task {number} writes {chunk}, which is not made of whole chunks {layout.unit}")
        return
    indices = set(chunks_of(box, layout.unit))
    if not indices.isdisjoint(written[chunk.path]):
        yield LayoutError(f"task {number} writes {chunk}, of which another task writes a chunk too")
    written[chunk.path].update(indices)
