"""What runs inside a worker: a task is loaded, computed and stored, in that order and maybe in different threads."""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from moraine_core import device
from moraine_core.errors import MemoryBudgetError
from moraine_core.plan import Chunk, ChunkTask, Device, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


@lru_cache(maxsize=256)
def resolve(name: str) -> Callable[..., Any]:
    """Return the function that ``"module:function"`` names."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)  # type: ignore[no-any-return]


class ChunkCall:
    """A chunk task in its three phases: read the inputs, call the kernel, write the results.

    Parameters
    ----------
    task
        What to do.
    cuda
        Move the inputs to this process's GPU and the results back.
    shared
        Keywords of the plan that every kernel call receives.
    """

    __slots__ = ("cuda", "results", "shared", "small", "task", "values")

    values: list[Any]
    results: list[Any]
    small: Any

    def __init__(self, task: ChunkTask, *, cuda: bool = False, shared: Mapping[str, Any] | None = None) -> None:
        self.task, self.cuda, self.shared = task, cuda, shared or {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _chunk_call, (self.task, self.cuda, self.shared)

    def load(self) -> None:
        """Read the inputs into host memory."""
        self.values = [item.read() if isinstance(item, Chunk) else item for item in self.task.inputs]

    def compute(self) -> None:
        """Call the kernel; on a GPU, once more after freeing its pools if memory ran out."""
        self.small = None
        returned = self._call_on_gpu() if self.cuda else self._call()
        self.values = []  # the inputs' memory is free again before the results are encoded
        outputs = len(self.task.outputs)
        if outputs == 0:
            self.results, self.small = [], device.to_host(returned)
            return
        results = list(returned) if isinstance(returned, tuple | list) else [returned]
        if not outputs <= len(results) <= outputs + 1:
            msg = (
                f"{self.task.kernel} returned {len(results)} results for {outputs} outputs; "
                "expected one per output, and at most one small result more"
            )
            raise ValueError(msg)
        self.results = [device.to_host(result) for result in results[:outputs]]
        self.small = device.to_host(results[outputs]) if len(results) > outputs else None

    def _call(self) -> Any:
        return resolve(self.task.kernel)(*map(self._argument, self.values), **self.task.kwargs, **self.shared)

    def _call_on_gpu(self) -> Any:
        """Call the kernel; if memory runs out, once more with all that the first call and the pools held free again."""
        try:
            return self._call()
        except MemoryError:
            pass  # only when its traceback is gone are the arrays of the failed call let go
        device.free_pools()
        try:
            return self._call()
        except MemoryError as error:
            # our own type: the original would load CUDA's library where it is unpickled, in the parent
            msg = f"{self.task.kernel}: the GPU's memory is used up: {error} Choose smaller blocks"
            raise MemoryBudgetError(msg) from error

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Stream):
            return map(device.to_device, _ahead(read_stream(value))) if self.cuda else read_stream(value)
        if isinstance(value, Device):
            return device.to_device(value.value) if self.cuda else value.value
        # what was read ahead; plain values, numpy's scalars among them, stay as they are
        return device.to_device(value) if self.cuda and hasattr(value, "__array_interface__") and value.ndim else value

    def store(self) -> Any:
        """Write the results, and return the small result."""
        for number, chunk in enumerate(self.task.outputs):
            result = self.results[number]
            self.results[number] = None
            if result is not None:
                chunk.write(result if self.task.trim is None else result[self.task.trim])
        return self.small

    def __str__(self) -> str:
        return str(self.task)


def _chunk_call(task: ChunkTask, cuda: bool, shared: Mapping[str, Any]) -> ChunkCall:  # noqa: FBT001 - pickle's door
    return ChunkCall(task, cuda=cuda, shared=shared)


def _ahead(planes: Iterator[Any]) -> Iterator[Any]:
    """Return planes of which the next is read while a GPU works on this one: it must not wait for the disk."""
    from moraine_core import store

    return store.ahead(planes)


def read_stream(stream: Stream) -> Iterator[Any]:
    """Yield the planes of a stream one after another; those of one stored chunk are read together."""
    from moraine_core import store

    array = store.open_array(stream.chunk.path)
    box = stream.chunk.box
    start, stop = box[stream.axis]
    first = start
    while first < stop:
        last = min(first - first % stream.step + stream.step, stop)  # up to the border of a stored chunk
        block = [slice(low, high) for low, high in box]
        block[stream.axis] = slice(first, last)
        slab = store.parallel_read_zarr(array, block)
        for plane in range(last - first):
            yield slab.take(plane, stream.axis) if last - first > 1 else slab.squeeze(stream.axis)
        first = last


def chunk_task(
    fn: Callable[..., Any] | str,
    inputs: Sequence[Any],
    outputs: Sequence[Chunk],
    cuda: bool = False,  # noqa: FBT001, FBT002 - the contract's signature
    kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """Read the `Chunk` inputs, call `fn`, write its results to the `Chunk` outputs; return what it returned besides.

    Parameters
    ----------
    fn
        An importable function or its name ``"module:function"``.
    inputs, outputs, kwargs
        As in `ChunkTask`.
    cuda
        Compute on this process's GPU.
    """
    call = ChunkCall(ChunkTask(kernel_name(fn), tuple(inputs), tuple(outputs), dict(kwargs or {})), cuda=cuda)
    call.load()
    call.compute()
    return call.store()


def kernel_name(fn: Callable[..., Any] | str) -> str:
    """Return the name under which a worker can import a function."""
    return fn if isinstance(fn, str) else f"{fn.__module__}:{fn.__qualname__}"
