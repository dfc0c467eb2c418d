"""Running a command's example in every way that must not matter, and comparing what came out."""

from __future__ import annotations

import hashlib
import itertools
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core import store
from moraine_core.declaration import Command, Input, Output
from moraine_core.executor import Executor
from moraine_core.executor.backend import Slot
from moraine_core.executor.worker import run_packed
from moraine_core.options import RunOptions, Workers
from moraine_core.run import ExecutorPool, Record, run_command
from moraine_core.task import resolve
from moraine_core.testing.data import read_array, write_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moraine_core.plugins import PluginHost

Arguments = dict[str, Any]


class SerialBackend:
    """Runs each task in the calling thread when it is handed out: the plainest meaning a plan can have."""

    repeats = 0
    patience = 0.0

    def start(self) -> None:
        """Do nothing."""

    def slots(self) -> list[Slot]:
        """Return one slot."""
        return [Slot(0)]

    def submit(self, task: bytes) -> Future[bytes]:
        """Run the task now."""
        future: Future[bytes] = Future()
        future.set_result(run_packed(task))
        return future

    def submit_to_all(self, task: bytes) -> list[Future[bytes]]:
        """Run the task now."""
        return [self.submit(task)]

    def put_dir(self) -> Path | None:
        """Return None: everything is in this process."""
        return None

    def pids(self) -> list[int]:
        """Return nothing: there are no other processes."""
        return []

    def stop(self, *, now: bool = False) -> None:
        """Do nothing."""


class RefusingBackend(SerialBackend):
    """Raises when anything is computed: planning must not."""

    def submit(self, task: bytes) -> Future[bytes]:
        """Refuse."""
        msg = "a task was handed out while nothing should be computed"
        raise AssertionError(msg)


class GivenPool(ExecutorPool):
    """Hands out one executor, whatever workers are asked for."""

    def __init__(self, executor: Executor) -> None:
        super().__init__()
        self._given = executor

    def get(self, workers: Workers, options: RunOptions, host: PluginHost | None) -> Executor:
        """Return the executor."""
        return self._given


def example(command: Command, folder: Path, scale: int = 1) -> Arguments:
    """Write a command's example inputs into a folder and return the arguments of the call.

    Raises
    ------
    ValueError
        The command has no example.
    """
    if not command.example:
        msg = f"{command.name} has no example; name one with @command(..., example='module:function')"
        raise ValueError(msg)
    folder.mkdir(parents=True, exist_ok=True)
    arguments: Arguments = resolve(command.example)(folder, scale)
    return arguments


def run(command: Command, arguments: Mapping[str, Any], workers: Workers | None = None, **options: Any) -> Record:
    """Run a command in worker threads or processes."""
    return run_command(command, arguments, workers or Workers(), RunOptions(**options))


def run_serially(command: Command, arguments: Mapping[str, Any]) -> Record:
    """Run a command task by task in this thread."""
    with Executor(backend=SerialBackend()) as executor:
        return run_command(command, arguments, pool=GivenPool(executor))


@contextmanager
def forgetting(command: Command, arguments: Mapping[str, Any]) -> Iterator[None]:
    """Remove a call's outputs before the block, so that what is there afterwards was made by it."""
    for path in output_paths(command, arguments):
        store.remove(path)
    yield


def output_paths(command: Command, arguments: Mapping[str, Any]) -> list[Path]:
    """Return the outputs of a call."""
    return [Path(p) for paths in command.paths(command.bind(arguments), Output).values() for p in paths]


def input_paths(command: Command, arguments: Mapping[str, Any]) -> list[Path]:
    """Return the inputs of a call."""
    return [Path(p) for paths in command.paths(command.bind(arguments), Input).values() for p in paths]


def contents(command: Command, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that a call has written, by name: arrays as values, other files as bytes."""
    found: dict[str, Any] = {}
    for path in output_paths(command, arguments):
        if path.is_file():
            found[path.name] = path.read_bytes()
            continue
        for entry in _entries(path):
            name = str(entry.relative_to(path.parent))
            found[name] = entry.read_bytes() if entry.is_file() else read_array(entry)
    return found


def _entries(path: Path) -> list[Path]:
    """Return the arrays and files of an output, but for the note of who made it."""
    if path.is_file() or store.is_zarr(path):
        return [path]
    return [found for entry in sorted(path.iterdir()) if entry.name != store.MADE_BY for found in _entries(entry)]


def differences(before: Mapping[str, Any], after: Mapping[str, Any], tolerance: float = 0.0) -> list[str]:
    """Return in what two runs differ: names, dtypes, shapes, and every bit of the values but for a tolerance."""
    found = [f"{name} is only in one of them" for name in sorted(set(before) ^ set(after))]
    for name in sorted(set(before) & set(after)):
        one, two = before[name], after[name]
        if isinstance(one, bytes) or isinstance(two, bytes):
            same = one == two
        elif one.dtype != two.dtype or one.shape != two.shape:
            found.append(f"{name}: {one.dtype} {one.shape} and {two.dtype} {two.shape}")
            continue
        elif tolerance and one.dtype.kind in "fc":
            same = np.allclose(one, two, rtol=tolerance, atol=0, equal_nan=True)
        else:
            same = one.tobytes() == two.tobytes()
        if not same:
            found.append(f"{name}: the values differ")
    return found


def other_blocks(command: Command, arguments: Mapping[str, Any]) -> list[Arguments]:
    """Return the call with its blocks sized in two other ways: one block for all, and smaller ragged ones."""
    parameter = command.blocks_parameter
    if parameter is None:
        return []
    if parameter.kind.many:
        return [{**arguments, parameter.name: sizes} for sizes in ((-1, -1), (7, 4))]
    # a power of two, which is what bands of pyramids must be
    return [{**arguments, parameter.name: size} for size in (-1, 8)]


def rechunked(command: Command, arguments: Mapping[str, Any]) -> Arguments:
    """Return the call with copies of its input arrays that are chunked differently: a reader accepts any chunks."""
    changed = dict(arguments)
    for name, paths in command.paths(command.bind(arguments), Input).items():
        parameter = command.parameter(name)
        if parameter is None or not parameter.is_array:
            continue
        copies = []
        for path in paths:
            array = store.open_array(path)
            chunks = [max(c // 2, 1) if axis < 2 else c for axis, c in enumerate(array.chunks)]
            copies.append(write_array(f"{path}.rechunked", read_array(path), chunks))
        changed[name] = copies if parameter.kind.many else copies[0]
    return changed


def tree_digest(paths: list[Path]) -> str:
    """Return a digest of all files under some paths: names and contents."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        for file in sorted(itertools.chain([path], path.rglob("*") if path.is_dir() else [])):
            digest.update(str(file).encode())
            if file.is_file():
                digest.update(file.read_bytes())
    return digest.hexdigest()


def command_words(command: Command, arguments: Mapping[str, Any]) -> list[str]:
    """Return a call as the words of a command line."""
    words = [command.name]
    for name, value in arguments.items():
        parameter = command.parameter(name)
        if parameter is None or parameter.is_extra:
            words += ["--kw", f"{name}={value}"]
        elif parameter.kind.flag:
            words.append(f"--{'' if value else 'no-'}{parameter.option[2:]}")
        elif isinstance(value, list | tuple):
            words += [parameter.option, *map(str, value)]
        else:
            words += [parameter.option, str(value)]
    return words
