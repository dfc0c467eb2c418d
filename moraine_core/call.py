"""One call of a command before anything is done: its arguments, inputs and outputs checked, its plans made."""

from __future__ import annotations

import inspect
import logging
import os
from bisect import bisect_left
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core import store
from moraine_core.blocks import box_shape
from moraine_core.declaration import Input, Output
from moraine_core.errors import (
    LayoutError,
    MemoryBudgetError,
    MoraineError,
    StoreNotFoundError,
    UsageError,
    raise_problems,
)
from moraine_core.executor.memory import gib
from moraine_core.plan import Array, Chunk, Plan, RawLayout, Stream
from moraine_core.provenance import made_by
from moraine_core.store import Staging

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from moraine_core.declaration import Command, Parameter
    from moraine_core.options import Workers

log = logging.getLogger("moraine")

SMALLEST_BLOCK = 16
"""Blocks are not halved below this many elements along an axis to fit memory."""


class CommandCall:
    """One call of one command.

    Parameters
    ----------
    command
        What is called.
    arguments
        Its parameters by name, as text, TOML or Python values.
    workers
        Who is to run the tasks.

    Attributes
    ----------
    given
        The arguments that were given.
    bound
        All arguments as the function takes them, input paths still text; after `check`.
    arrays
        The opened inputs by argument; after `check`.
    inputs, outputs
        Paths that are read and written, by argument; after `check`.
    stagings
        Where the outputs are written until they are published; after `check`.
    first_plan
        The plan to begin with; after `check`, for a command with chunks whose inputs are all known.
    """

    def __init__(self, command: Command, arguments: Mapping[str, Any], workers: Workers) -> None:
        self.command = command
        self.given = {name: value for name, value in arguments.items() if value is not None}
        self.bound: dict[str, Any] = {}
        self.arrays: dict[str, list[Array]] = {}
        self.inputs: dict[str, tuple[str, ...]] = {}
        self.outputs: dict[str, tuple[str, ...]] = {}
        self.stagings: list[Staging] = []
        self.first_plan: Plan | None = None
        self._workers = workers

    # ------------------------------------------------------------------------------------------ checking

    def check(self, expected: Mapping[str, Array | None] | None = None) -> dict[str, Array | None]:
        """Check arguments, inputs, outputs and the first plan; all problems of inputs and outputs are raised together.

        Parameters
        ----------
        expected
            What earlier steps of a pipeline will have written, by absolute path: its metadata, or None if not known.

        Returns
        -------
        dict
            The outputs to be, by absolute path: their metadata, or None if not known.
        """
        command, expected = self.command, expected or {}
        files = command.files(self.given)
        is_known = not any(_near(path, expected) for path in files.values())
        self.bound = command.bind(self.given, late=is_known)
        self.inputs = command.paths(self.bound, Input)
        self.outputs = command.paths(self.bound, Output)
        problems: list[MoraineError] = []
        if self._workers.cuda and not command.gpu:
            problems.append(UsageError(f"{command.name} has no GPU kernel; leave out --cuda"))
        for name, paths in self.inputs.items():
            for path in paths:
                is_known &= self._open(name, path, expected, problems)
        self.inputs |= {name: (path,) for name, path in files.items()}
        problems += command.input_problems(self.arrays)
        problems += self._output_problems()
        raise_problems(problems)
        self.stagings = [Staging(Path(os.path.abspath(p))) for paths in self.outputs.values() for p in paths]
        known: dict[str, Array | None] = {str(staging.output): None for staging in self.stagings}
        if command.chunked and is_known:
            self.first_plan = self.plan(self.bound)
            self.check_plan(self.first_plan)
            for layout in self.first_plan.outputs:
                if not layout.is_scratch and not isinstance(layout, RawLayout):
                    known[os.path.abspath(layout.path)] = Array(
                        layout.path, layout.shape, layout.dtype, layout.unit, layout.attributes
                    )
        return known

    def _open(self, name: str, path: str, expected: Mapping[str, Array | None], problems: list[MoraineError]) -> bool:
        """Describe an input, or find out that it is not there; return False where it is known only later."""
        kind = self.role(name).kind
        is_array = kind == "array"
        group = self.arrays.setdefault(name, []) if is_array else []
        array = expected.get(os.path.abspath(path))
        if array is not None:
            group.append(replace(array, path=path))
            return True
        if _near(path, expected):
            return False
        try:
            if is_array:
                group.append(store.describe_whole(path))
            elif not (Path(path).is_dir() if kind == "directory" else Path(path).is_file()):
                raise StoreNotFoundError(f"{path} does not exist; expected a {kind}")
        except MoraineError as error:
            problems.append(type(error)(f"{self.command.name}: {name}: {error}"))
        return True

    def role(self, name: str) -> Input | Output:
        """Return the role of an argument that is an input or output."""
        parameter = self.command.parameter(name)
        if parameter is None or parameter.role is None:
            raise KeyError(name)
        return parameter.role

    def _output_problems(self) -> Iterator[MoraineError]:
        taken = {os.path.realpath(p): f"{name} {p}, which is only read" for name, ps in self.inputs.items() for p in ps}
        if self.command.chunked and not self.outputs:
            yield UsageError(f"{self.command.name}: no output is named")
        for name, paths in self.outputs.items():
            for path in paths:
                label, real = f"{self.command.name}: {name} {path}", os.path.realpath(path)
                if not Path(path).name:
                    yield UsageError(f"{label} is not a name for an output")
                    continue
                clashes = [what for other, what in taken.items() if _is_within(real, other) or _is_within(other, real)]
                yield from (UsageError(f"{label} is, or is inside, or holds {what}") for what in clashes)
                taken[real] = f"{name} {path}, which is written too"
                if not clashes and (problem := _place_problem(Path(path), self.role(name).kind)):
                    yield UsageError(f"{label} {problem}")

    def check_plan(self, plan: Plan) -> None:
        """Raise all that is wrong with a plan."""
        problems: list[MoraineError] = [LayoutError(f"{self.command.name}: {problem}") for problem in plan.problems()]
        problems += [
            LayoutError(f"{self.command.name}: layout {layout.path} is not a declared output")
            for layout in plan.outputs
            if not layout.is_scratch and self.staging_of(os.path.abspath(layout.path)) is None
        ]
        raise_problems(problems)

    def staging_of(self, path: str) -> Staging | None:
        """Return the staging of the output that an absolute path is, or is inside of."""
        return next((staging for staging in self.stagings if _is_within(path, str(staging.output))), None)

    # ------------------------------------------------------------------------------------------ planning

    def call(self, bound: Mapping[str, Any]) -> Any:
        """Call the command's function with arrays in the place of input paths."""
        values = dict(bound)
        for name, arrays in self.arrays.items():
            values[name] = arrays if isinstance(values[name], tuple) else arrays[0]
        return self.command.function(**values)

    def plans(self, bound: Mapping[str, Any]) -> Generator[Plan, list[Any], None]:
        """Yield the command's plans; send back the small results of each."""
        try:
            returned = self.call(bound)
            if inspect.isgenerator(returned):
                yield from returned
            else:
                yield returned
        except ValueError as error:
            raise self.named(error) from error

    def plan(self, bound: Mapping[str, Any]) -> Plan:
        """Return the first plan for arguments; one without tasks where the command has none."""
        plans = self.plans(bound)
        plan = next(plans, Plan([], []))
        plans.close()
        return plan

    def named(self, error: ValueError) -> ValueError:
        """Return an error of a declaration as one that names the command; a bare one is the caller's fault."""
        if isinstance(error, MoraineError) and str(error).startswith(self.command.name):
            return error
        kind = type(error) if isinstance(error, LayoutError) else UsageError
        return kind(f"{self.command.name}: {error}")

    # ------------------------------------------------------------------------------------- blocks and memory

    def fitted(self, fits: Callable[[int], bool]) -> dict[str, Any]:
        """Return the arguments, with blocks so small that a task of the first plan fits into memory.

        Raises
        ------
        MemoryBudgetError
            Blocks that were given are too large, with the largest that fit; or no blocks are small enough.
        """
        plan = self.first_plan or self.plan(self.bound)
        need, bound, before = plan.needed_bytes, self.bound, self.bound
        while not fits(plan.needed_bytes):
            before, smaller = bound, self.halved(bound, plan)
            if smaller is None:
                msg = f"{self.command.name}: one task needs {gib(need)}, more than the run may use; raise --max-memory"
                raise MemoryBudgetError(msg)
            bound = smaller
            plan = self.plan(bound)
        parameter = self.command.blocks_parameter
        if bound is self.bound or parameter is None:
            return bound
        if parameter.name in self.given:
            largest = self._largest(parameter, before, bound, fits)
            msg = (
                f"{self.command.name}: {parameter.option} {_words(self.bound[parameter.name])}: one task needs "
                f"{gib(need)}, more than the run may use; the largest that fits is {parameter.option} {_words(largest)}"
            )
            raise MemoryBudgetError(msg)
        text = _words(bound[parameter.name])
        log.info("%s: blocks of %s, so that a task of %s fits into memory", self.command.name, text, gib(need))
        return bound

    def halved(self, bound: Mapping[str, Any], plan: Plan) -> dict[str, Any] | None:
        """Return the arguments with half the block along its longest axis; None where blocks cannot be smaller."""
        parameter = self.command.blocks_parameter
        block = self._block(bound, plan)
        longest = max(block, default=0)
        if parameter is None or longest <= SMALLEST_BLOCK:
            return None
        axis = block.index(longest)
        return self._with_block(bound, parameter, (*block[:axis], -(-longest // 2), *block[axis + 1 :]))

    def _block(self, bound: Mapping[str, Any], plan: Plan) -> tuple[int, ...]:
        """Return the block in use: as the arguments say, else as the first task shows."""
        parameter = self.command.blocks_parameter
        if parameter is None:
            return ()
        n_axes = 2 if parameter.kind.many else 1
        items = (item for task in plan.tasks for item in (*task.outputs, *task.inputs))
        chunk = next((i.chunk if isinstance(i, Stream) else i for i in items if isinstance(i, Chunk | Stream)), None)
        shown = box_shape(chunk.box) if chunk is not None else ()
        said = bound[parameter.name] or -1
        sizes = (said,) * n_axes if isinstance(said, int) else said
        shown = (*shown, *(-1,) * n_axes)[:n_axes]
        return tuple(size if size > 0 else seen for size, seen in zip(sizes, shown, strict=True))

    def _with_block(self, bound: Mapping[str, Any], parameter: Parameter, block: tuple[int, ...]) -> dict[str, Any]:
        return {**bound, parameter.name: block if parameter.kind.many else block[0]}

    def _largest(
        self, parameter: Parameter, large: Mapping[str, Any], small: Mapping[str, Any], fits: Callable[[int], bool]
    ) -> Any:
        """Return the largest block that fits, between one that does not and its half that does."""
        low, high = self._block(small, Plan([], [])), self._block(large, self.plan(large))
        axis = next(axis for axis, (a, b) in enumerate(zip(low, high, strict=True)) if a != b)

        def with_size(size: int) -> dict[str, Any]:
            return self._with_block(small, parameter, (*low[:axis], size, *low[axis + 1 :]))

        def is_too_large(size: int) -> bool:
            try:
                return not fits(self.plan(with_size(size)).needed_bytes)
            except UsageError:
                return True  # a size that the command does not take, such as one that is no power of two

        sizes = range(low[axis], high[axis])
        return with_size(sizes[bisect_left(sizes, True, lo=1, key=is_too_large) - 1])[parameter.name]  # noqa: FBT003


def _near(path: str, expected: Mapping[str, Any]) -> bool:
    """Tell whether a path is, is inside, or holds one that is yet to be written."""
    absolute = os.path.abspath(path)
    return any(_is_within(absolute, other) or _is_within(other, absolute) for other in expected)


def _is_within(path: str, other: str) -> bool:
    """Tell whether an absolute path is another, or lies inside it."""
    return path == other or path.startswith(other.rstrip(os.sep) + os.sep)


def _words(block: Any) -> str:
    return str(block) if isinstance(block, int) else " ".join(map(str, block))


def _place_problem(path: Path, kind: str) -> str:
    """Return why an output cannot appear at a path: no folder that can be written, or something not made by moraine."""
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        return f"cannot be written: {folder} is a file, expected a folder"
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        return f"cannot be written: no permission to write in {folder}"
    if path.is_file():
        return "" if kind == "file" else f"is a file; expected a name for a new {kind}"
    if path.is_dir() and kind == "file":
        return "is a directory; expected a name for a file"
    if not path.is_dir() or not any(path.iterdir()):
        return ""
    if store.is_zarr(path) != (kind == "array") or not made_by(path):
        return f"is a directory that moraine did not make as one {kind}; it is not replaced"
    return ""
