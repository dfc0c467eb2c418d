"""One command from its arguments to published outputs: check, plan, admit, run, journal, publish."""

from __future__ import annotations

import inspect
import logging
import os
import shutil
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core import store
from moraine_core.command import Input, Output
from moraine_core.device import free_pools
from moraine_core.errors import (
    IncompleteError,
    LayoutError,
    MemoryBudgetError,
    MoraineError,
    StoreNotFoundError,
    UsageError,
    raise_problems,
)
from moraine_core.executor import Executor
from moraine_core.executor.memory import gib
from moraine_core.journal import Journal, JournalMismatchError, digest, plain
from moraine_core.options import RunOptions, Workers
from moraine_core.plan import SCRATCH, Array, ChunkTask, Plan
from moraine_core.store import PROVENANCE, UNFINISHED, Staging
from moraine_core.task import chunk_task

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from moraine_core.command import Command
    from moraine_core.plugins import PluginHost

log = logging.getLogger("moraine")

SMALLEST_BLOCK = 16
"""Blocks are not halved below this many elements along an axis to fit memory."""


@dataclass(frozen=True)
class TaskDone:
    """An event: one task of a running plan has ended well.

    Attributes
    ----------
    command, desc
        Name of the command, and of the plan.
    number, total
        Number of the task, counted from 0, and of all tasks of the plan.
    result
        Its small result.
    """

    command: str
    desc: str
    number: int
    total: int
    result: Any


@dataclass
class Record:
    """What came of running a command.

    Attributes
    ----------
    command
        Its name.
    seconds
        Time it took.
    outputs
        Paths it wrote.
    inputs
        Modification stamps, in nanoseconds, of what it read.
    peak_bytes
        Largest memory of the whole run, worker processes included.
    plans
        What was, or with a dry run would be, done: one mapping per plan known.
    error
        Why it failed; empty when it did not.
    """

    command: str
    seconds: float = 0.0
    outputs: list[str] = field(default_factory=list)
    inputs: dict[str, int] = field(default_factory=dict)
    peak_bytes: int = 0
    plans: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""


class ExecutorPool:
    """Keeps the executor of one command for the next that asks for the same workers."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._key: Any = None
        self._executor: Executor | None = None

    def get(self, workers: Workers, options: RunOptions, host: PluginHost | None) -> Executor:
        """Return a running executor for these workers."""
        key = (workers, options.scratch, options.progress)
        if self._executor is None or key != self._key:
            self.close()
            backend = host.backend(workers) if host is not None and workers.executor else None
            executor = Executor.of(workers, scratch=options.scratch, progress=options.progress, backend=backend)
            self._executor, self._key = self._stack.enter_context(executor), key
        return self._executor

    def __enter__(self) -> ExecutorPool:
        return self

    def __exit__(self, *error: object) -> None:
        executor, self._executor, self._key = self._executor, None, None
        if executor is not None:
            self._stack.__exit__(*error)  # type: ignore[arg-type]

    def close(self) -> None:
        """Stop the executor."""
        self.__exit__(None, None, None)


def run_command(
    command: Command,
    arguments: Mapping[str, Any],
    workers: Workers | None = None,
    options: RunOptions | None = None,
    *,
    pool: ExecutorPool | None = None,
    host: PluginHost | None = None,
) -> Record:
    """Run a command, or with ``dry_run`` only check it and say what it would do.

    Parameters
    ----------
    command
        What to run.
    arguments
        Its parameters by name, as text, TOML or Python values.
    workers, options
        Who runs the tasks, and how.
    pool
        Keeps the workers for the next command.
    host
        Plugins that observe runs or bring executors.

    Raises
    ------
    MoraineError
        Any fault of the call, found before work begins; several are reported together.
    Exception
        What a task raised.
    """
    workers, options = workers or Workers(), options or RunOptions()
    started = time.monotonic()
    record = Record(command.name)
    run = _CommandRun(command, arguments, workers, options, record, host)
    try:
        run.check()
        if options.dry_run:
            run.preview()
        elif pool is None:
            with ExecutorPool() as own:
                run.execute(own)
        else:
            run.execute(pool)
    except BaseException as error:
        record.error = f"{type(error).__name__}: {error}"
        raise
    finally:
        record.seconds = time.monotonic() - started
        if host is not None and not options.dry_run:
            host.hook.moraine_finished(record=record)
    return record


def check_command(
    command: Command, arguments: Mapping[str, Any], workers: Workers, *, expected: Mapping[str, Array | None]
) -> dict[str, Array | None]:
    """Check a call without running it; return what is known of its outputs.

    Parameters
    ----------
    command, arguments, workers
        The call.
    expected
        What earlier steps of a pipeline will have written, by absolute path: its metadata, or None if not known.

    Raises
    ------
    MoraineError
        All that is wrong.
    """
    run = _CommandRun(command, arguments, workers, RunOptions(dry_run=True), Record(command.name), None)
    return run.check(expected)


class _CommandRun:
    """One call of one command."""

    def __init__(
        self,
        command: Command,
        arguments: Mapping[str, Any],
        workers: Workers,
        options: RunOptions,
        record: Record,
        host: PluginHost | None,
    ) -> None:
        self._command = command
        self._given = {name: value for name, value in arguments.items() if value is not None}
        self._workers = workers
        self._options = options
        self._record = record
        self._host = host
        self._bound: dict[str, Any] = {}
        self._arrays: dict[str, list[Array]] = {}
        self._stagings: list[Staging] = []

    # ------------------------------------------------------------------------------------------ checking

    def check(self, expected: Mapping[str, Array | None] | None = None) -> dict[str, Array | None]:
        """Check arguments, inputs and outputs; raise all problems at once; return the outputs to be, if known."""
        command, expected = self._command, expected or {}
        # an argument file, such as image pairs, that an earlier step will write cannot be read yet
        files = [str(self._given[p.name]) for p in command.parameters if p.kind.late and p.name in self._given]
        pending = any(os.path.abspath(path) in expected for path in files)
        self._bound = command.bind(self._given, late=not pending)
        problems: list[MoraineError] = []
        if self._workers.cuda and not command.gpu:
            problems.append(UsageError(f"{command.name} has no GPU kernel; leave out --cuda"))
        inputs = command.paths(self._bound, Input)
        outputs = command.paths(self._bound, Output)
        unknown = self._open_inputs(inputs, expected, problems)
        problems += command.input_problems(self._arrays)
        problems += self._output_problems(inputs, outputs)
        raise_problems(problems)
        self._stagings = [Staging(Path(os.path.abspath(p))) for paths in outputs.values() for p in paths]
        known: dict[str, Array | None] = {str(staging.output): None for staging in self._stagings}
        if command.chunked and not (unknown or pending):
            plan = self._first_plan(self._bound)
            self._raise_plan_problems(plan)
            for layout in plan.outputs:
                if not layout.is_scratch:
                    known[os.path.abspath(layout.path)] = Array(
                        layout.path, layout.shape, layout.dtype, layout.chunks, layout.attributes
                    )
        return known

    def _open_inputs(
        self,
        inputs: Mapping[str, tuple[str, ...]],
        expected: Mapping[str, Array | None],
        problems: list[MoraineError],
    ) -> bool:
        """Describe all input arrays; return whether one of them is not known yet."""
        unknown = False
        for name, paths in inputs.items():
            parameter = self._command.parameter(name)
            is_array = parameter is not None and parameter.is_array
            if is_array:
                self._arrays[name] = []
            for path in paths:
                absolute = os.path.abspath(path)
                if absolute in expected:
                    array = expected[absolute]
                    unknown |= array is None
                    if is_array and array is not None:
                        self._arrays[name].append(replace(array, path=path))
                elif any(absolute.startswith(known + os.sep) for known in expected):
                    unknown = True
                else:
                    self._open_input(name, path, is_array, problems)
        return unknown

    def _open_input(self, name: str, path: str, is_array: bool, problems: list[MoraineError]) -> None:  # noqa: FBT001
        parameter = self._command.parameter(name)
        try:
            if is_array:
                array = store.describe(path)
                self._arrays[name].append(array)
                log.debug("%s: %s %s %s chunks %s", name, path, array.shape, array.dtype, array.chunks)
            elif parameter is not None and isinstance(parameter.role, Input):
                found = Path(path).is_dir() if parameter.role.kind == "directory" else Path(path).is_file()
                if not found:
                    raise StoreNotFoundError(f"{path} does not exist; expected a {parameter.role.kind}")
        except (StoreNotFoundError, IncompleteError) as error:
            problems.append(type(error)(f"{self._command.name}: {name}: {error}"))

    def _output_problems(
        self, inputs: Mapping[str, tuple[str, ...]], outputs: Mapping[str, tuple[str, ...]]
    ) -> Iterator[MoraineError]:
        read = {os.path.realpath(path): name for name, paths in inputs.items() for path in paths}
        written: dict[str, str] = {}
        for name, paths in outputs.items():
            for path in paths:
                label, real = f"{self._command.name}: {name} {path}", os.path.realpath(path)
                if not Path(path).name:
                    yield UsageError(f"{label} is not a name for an output")
                    continue
                if real in written:
                    yield UsageError(f"{label} is written by {written[real]} too")
                written[real] = name
                for other, role in read.items():
                    if real == other or other.startswith(real + os.sep) or real.startswith(other + os.sep):
                        yield UsageError(f"{label} is, or is inside, or holds {role} {other}, which is only read")
                yield from self._replace_problems(label, name, Path(path))

    def _replace_problems(self, label: str, name: str, path: Path) -> Iterator[MoraineError]:
        """Yield a problem where publishing would replace something that moraine did not make."""
        parameter = self._command.parameter(name)
        kind = parameter.role.kind if parameter is not None and parameter.role is not None else "array"
        if kind == "file":
            if path.is_dir():
                yield UsageError(f"{label} is a directory; expected a name for a file")
        elif path.is_file():
            yield UsageError(f"{label} is a file; expected a name for an array" if kind == "array" else f"{label} is a file")
        elif path.is_dir() and any(path.iterdir()):
            known = store.is_zarr(path) if kind == "array" else any(store.is_zarr(entry) for entry in path.iterdir())
            if not known:
                yield UsageError(f"{label} is a directory that moraine did not make; it is not replaced")

    def _raise_plan_problems(self, plan: Plan) -> None:
        problems: list[MoraineError] = [LayoutError(f"{self._command.name}: {problem}") for problem in plan.problems()]
        roots = [str(staging.output) for staging in self._stagings]
        for layout in plan.outputs:
            path = os.path.abspath(layout.path)
            if not layout.is_scratch and not any(path == root or path.startswith(root + os.sep) for root in roots):
                problems.append(LayoutError(f"{self._command.name}: layout {layout.path} is not a declared output"))
        raise_problems(problems)

    # ------------------------------------------------------------------------------------------ planning

    def _call(self, bound: Mapping[str, Any]) -> Any:
        """Call the command's function with arrays in the place of input paths."""
        values = dict(bound)
        for name, arrays in self._arrays.items():
            parameter = self._command.parameter(name)
            many = parameter is not None and parameter.kind.many
            values[name] = arrays if many else arrays[0]
        try:
            return self._command.function(**values)
        except ValueError as error:
            raise self._named(error) from error

    def _named(self, error: ValueError) -> ValueError:
        """Return an error of a declaration as one of the call: a usage error that names the command."""
        if isinstance(error, MoraineError) and str(error).startswith(self._command.name):
            return error
        return UsageError(f"{self._command.name}: {error}")

    def _plans(self, bound: Mapping[str, Any]) -> Generator[Plan, list[Any], None]:
        """Yield the command's plans; send back the small results of each."""
        returned = self._call(bound)
        if not inspect.isgenerator(returned):
            yield returned
            return
        results: list[Any] | None = None
        while True:
            try:
                plan = returned.send(results)
            except StopIteration:
                return
            except ValueError as error:
                raise self._named(error) from error
            results = yield plan

    def _first_plan(self, bound: Mapping[str, Any]) -> Plan:
        plans = self._plans(bound)
        plan = next(plans)
        plans.close()
        return plan

    def _fitted(self, fits: Callable[[int], bool]) -> dict[str, Any]:
        """Return the arguments with blocks small enough for one task to fit into memory."""
        bound = dict(self._bound)
        plan = self._first_plan(bound)
        need = plan.task_bytes
        if fits(need):
            return bound
        parameter = self._command.blocks_parameter
        block = self._block_in_use(plan)
        while parameter is not None and block and max(block) > SMALLEST_BLOCK:
            largest = block.index(max(block))
            block = tuple(-(-size // 2) if axis == largest else size for axis, size in enumerate(block))
            bound[parameter.name] = block if parameter.kind.many else block[0]
            if fits(self._first_plan(bound).task_bytes):
                break
        else:
            msg = f"{self._command.name}: one task needs {gib(need)}, more than the run may use; raise --max-memory"
            raise MemoryBudgetError(msg)
        text = " ".join(map(str, block))
        if parameter.name in self._given:
            msg = (
                f"{self._command.name}: {parameter.option} {' '.join(map(str, self._block_in_use(plan)))}: one task needs "
                f"{gib(need)}, more than the run may use; the largest that fits is {parameter.option} {text}"
            )
            raise MemoryBudgetError(msg)
        log.info("%s: blocks of %s, so that a task of %s fits into memory", self._command.name, text, gib(need))
        return bound

    def _block_in_use(self, plan: Plan) -> tuple[int, ...]:
        """Return the block sizes of a plan along the axes that the blocks parameter cuts."""
        parameter = self._command.blocks_parameter
        layout = next(iter(plan.outputs), None)
        if parameter is None or layout is None:
            return ()
        axes = len(layout.chunks) if not parameter.kind.many else 2
        return tuple(min(c, n) for c, n in zip(layout.chunks, layout.shape, strict=True))[: axes if parameter.kind.many else 1]

    # ------------------------------------------------------------------------------------------- running

    def preview(self) -> None:
        """Note what would be done, as far as that is known without doing it."""
        if self._command.chunked:
            self._record.plans = [_describe_plan(self._first_plan(self._bound))]
        self._record.outputs = [str(staging.output) for staging in self._stagings]

    def execute(self, pool: ExecutorPool) -> None:
        """Run the command."""
        name, record = self._command.name, self._record
        log.info("%s %s: %s", name, package_version(self._command), _text(self._given))
        for parameter, arrays in self._arrays.items():
            for array in arrays:
                log.info("%s: %s %s %s, chunks %s", parameter, array.path, array.shape, array.dtype, array.chunks)
        inputs = [path for paths in self._command.paths(self._bound, Input).values() for path in paths]
        record.inputs = {path: store.stamp(path) for path in inputs if os.path.exists(path)}
        executor = pool.get(self._workers, self._options, self._host) if self._command.chunked else None
        with ExitStack() as stack:
            for staging in self._stagings:
                lock = staging.folder / "lock"
                stack.enter_context(store.exclusive(lock, f"{name}: {staging.output}"))
                staging.prepare()
            if executor is not None:
                stack.callback(_release, executor)
                self._run_plans(executor)
                record.peak_bytes = executor.peak_bytes
            else:
                self._run_function()
            for staging in self._stagings:
                staging.close()
        record.outputs = [path for paths in self._command.paths(self._bound, Output).values() for path in paths]

    def _run_function(self) -> None:
        """Run a command without chunks: it writes its small files at the hidden place by itself."""
        moved = {str(staging.output): str(staging.data) for staging in self._stagings}
        bound = dict(self._bound)
        for name, paths in self._command.paths(bound, Output).items():
            hidden = [moved[os.path.abspath(path)] for path in paths]
            bound[name] = hidden if isinstance(bound[name], tuple) else hidden[0]
        for staging in self._stagings:
            staging.clear()
        self._call(bound)
        self._publish(None)

    def _run_plans(self, executor: Executor) -> None:
        bound = self._fitted(executor.fits)
        home = self._stagings[0].folder
        journal = Journal(home / "journal.jsonl", self._fingerprint())
        scratch = self._scratch_folder(home)
        try:
            continued = not self._options.fresh and journal.load()
            if continued and not scratch.exists():
                continued = False  # temporary arrays that finished tasks have written are gone
            try:
                self._run_journaled(executor, bound, journal, scratch, fresh=not continued)
            except JournalMismatchError:
                log.info("%s: the interrupted run had other blocks; starting over", self._command.name)
                self._run_journaled(executor, bound, journal, scratch, fresh=True)
        finally:
            journal.close()
            if scratch.parent != home:
                shutil.rmtree(scratch, ignore_errors=True)

    def _scratch_folder(self, home: Path) -> Path:
        """Return the folder of temporary arrays: beside the output, unless another place was asked for."""
        chosen = self._options.scratch or os.environ.get("MORAINE_SCRATCH")
        return Path(os.path.abspath(chosen)) / f"moraine-{os.getpid()}" if chosen else home / "scratch"

    def _run_journaled(
        self, executor: Executor, bound: Mapping[str, Any], journal: Journal, scratch: Path, *, fresh: bool
    ) -> None:
        if fresh:
            for staging in self._stagings:
                staging.clear()
            shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True, exist_ok=True)
        journal.start(fresh=fresh)
        move = self._mover(scratch)
        plans = self._plans(bound)
        results: list[Any] | None = None
        number = 0
        while True:
            try:
                plan = plans.send(results)  # type: ignore[arg-type]
            except StopIteration:
                break
            self._raise_plan_problems(plan)
            self._record.plans.append(_describe_plan(plan))
            results = self._run_plan(executor, plan, move, journal, number)
            number += 1
        self._publish(journal)

    def _mover(self, scratch: Path) -> Callable[[str], str]:
        """Return the function that finds the hidden place of a path, and makes all others absolute."""

        def move(path: str) -> str:
            if path.startswith(SCRATCH):
                return str(scratch / f"{path.removeprefix(SCRATCH)}.zarr")
            absolute = os.path.abspath(path)
            staging = self._staging_of(absolute)
            return absolute if staging is None else str(staging.data) + absolute[len(str(staging.output)) :]

        return move

    def _staging_of(self, path: str) -> Staging | None:
        """Return the staging of the output that a path is, or is inside of."""
        for staging in self._stagings:
            if path == str(staging.output) or path.startswith(f"{staging.output}{os.sep}"):
                return staging
        return None

    def _run_plan(
        self, executor: Executor, plan: Plan, move: Callable[[str], str], journal: Journal, number: int
    ) -> list[Any]:
        """Run the tasks of one plan that are not done yet; return all small results in order."""
        hidden = plan.relocated(move)
        done = journal.begin_plan(number, hidden)
        name = plan.desc or self._command.name
        if done:
            log.info("%s: continuing, %d of %d tasks are done", name, len(done), len(plan.tasks))
        shared = {key: executor.put(self._shared(value)) for key, value in hidden.shared.items()}
        self._create(plan, move, journal)
        host = self._host
        if host is not None:
            host.hook.moraine_plan_ready(plan=plan)
        todo = [n for n in range(len(plan.tasks)) if n not in done]

        def on_done(position: int, result: Any) -> None:
            task = todo[position]
            done[task] = plain(result)
            journal.task_done(number, task, done[task])
            if host is not None:
                event = TaskDone(self._command.name, name, task, len(plan.tasks), done[task])
                host.hook.moraine_task_done(event=event)

        executor.run_chunk_tasks(
            [hidden.tasks[n] for n in todo],
            desc=name,
            cuda=self._workers.cuda,
            shared=shared,
            task_bytes=plan.task_bytes,
            done=len(plan.tasks) - len(todo),
            on_done=on_done,
        )
        self._finish_plan(plan, move, journal)
        return [done[n] for n in range(len(plan.tasks))]

    def _shared(self, value: Any) -> Any:
        """Return a shared object: itself, or what the task that stands for it returns."""
        if not isinstance(value, ChunkTask):
            return value
        try:
            return chunk_task(value.kernel, value.inputs, (), kwargs=value.kwargs)
        except ValueError as error:
            raise self._named(error) from error

    def _create(self, plan: Plan, move: Callable[[str], str], journal: Journal) -> None:
        """Create the arrays of a plan that an interrupted run has not created, in the parent alone."""
        needed = sum(layout.nbytes for layout in plan.outputs)
        free = store.free_bytes(self._stagings[0].folder)
        if needed > free:
            log.warning("%s: outputs take up to %s, the disk has %s left", self._command.name, gib(needed), gib(free))
        notes = {UNFINISHED: self._command.name, PROVENANCE: self._provenance()}
        for layout in plan.outputs:
            path = move(layout.path)
            if not self._is_published(layout.path, journal) and not store.is_zarr(path):
                store.create(layout, path, {} if layout.is_scratch else notes)

    def _finish_plan(self, plan: Plan, move: Callable[[str], str], journal: Journal) -> None:
        """Write the attributes and small files that a plan adds when its tasks are done."""
        for path, attributes in plan.attributes.items():
            if not self._is_published(path, journal):
                store.set_attributes(move(path), attributes)
        for path, text in plan.texts.items():
            if not self._is_published(path, journal):
                store.write_text(Path(move(path)), text)

    def _is_published(self, path: str, journal: Journal) -> bool:
        """Tell whether an interrupted run has already published the output that holds a path."""
        staging = self._staging_of(os.path.abspath(path))
        return staging is not None and str(staging.output) in journal.published

    def _publish(self, journal: Journal | None) -> None:
        """Prove that all outputs are whole, and let them take their places."""
        todo = [s for s in self._stagings if journal is None or str(s.output) not in journal.published]
        for staging in todo:
            self._finish(staging)
        for staging in todo:
            staging.publish()
            if journal is not None:
                journal.output_published(str(staging.output))

    def _finish(self, staging: Staging) -> None:
        """Check that every array of an output has all its chunks, and mark it as finished."""
        if not staging.data.exists():
            msg = f"{self._command.name}: {staging.output} was not written"
            raise IncompleteError(msg)
        for array in store.arrays_in(staging.data):
            if holes := len(store.missing_chunks(array)):
                msg = f"{self._command.name}: {array.name}: {holes} chunks were not written"
                raise IncompleteError(msg)
            store.set_attributes(array, {}, remove=[UNFINISHED])

    # --------------------------------------------------------------------------------------- provenance

    def _provenance(self) -> dict[str, Any]:
        return {
            "command": self._command.name,
            "version": package_version(self._command),
            "arguments": plain({name: self._bound[name] for name in sorted(self._given)}),
            "inputs": dict(self._record.inputs),
        }

    def _fingerprint(self) -> str:
        return digest(self._provenance())


def _release(executor: Executor) -> None:
    """Let go of a command's shared objects and of the GPU memory that its kernels left in pools."""
    executor.release()
    if executor.cuda and sys.exc_info()[0] is None:
        executor.run_on_workers(free_pools)


def _describe_plan(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain data for people and for ``--dry-run --json``."""
    return {
        "outputs": [
            {
                "path": layout.path,
                "shape": list(layout.shape),
                "dtype": layout.dtype,
                "chunks": list(layout.chunks),
                "bytes": layout.nbytes,
            }
            for layout in plan.outputs
            if not layout.is_scratch
        ],
        "tasks": len(plan.tasks),
        "task_bytes": plan.task_bytes,
    }


def _text(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in given.items())


def package_version(command: Command) -> str:
    """Return the version of the distribution that brings a command; that of its module where it is not installed."""
    package = command.module.partition(".")[0]
    try:
        return version(package.replace("_", "-"))
    except PackageNotFoundError:
        return str(getattr(sys.modules.get(package), "__version__", "0"))
