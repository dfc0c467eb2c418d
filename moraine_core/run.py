"""One command from its arguments to published outputs: check, plan, admit, run, journal, publish."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core import store
from moraine_core.call import CommandCall
from moraine_core.device import free_pools
from moraine_core.errors import IncompleteError, UsageError
from moraine_core.executor import Executor, exit_if_unguarded
from moraine_core.executor.memory import gib
from moraine_core.journal import Journal, JournalMismatchError, digest, plain
from moraine_core.options import RunOptions, Workers
from moraine_core.plan import SCRATCH, ChunkTask, Plan, RawLayout
from moraine_core.provenance import made_by, note_in, package_version
from moraine_core.store import PROVENANCE, UNFINISHED
from moraine_core.task import chunk_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from moraine_core.declaration import Command
    from moraine_core.plan import Array
    from moraine_core.plugins import PluginHost
    from moraine_core.store import Staging

log = logging.getLogger("moraine")


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
        self._key: Any = None
        self._executor: Executor | None = None

    def get(self, workers: Workers, options: RunOptions, host: PluginHost | None) -> Executor:
        """Return a running executor for these workers.

        Raises
        ------
        UsageError
            An executor is named that no plugin offers, or nobody was given who could find it.
        """
        if workers.executor and host is None:
            msg = (
                f"executor {workers.executor} is named, but no plugin host was given to find it; pass host=PluginHost()"
            )
            raise UsageError(msg)
        key = (workers, options.scratch, options.progress)
        if self._executor is None or key != self._key:
            self.close()
            backend = host.backend(workers) if host and workers.executor else None
            executor = Executor.of(workers, scratch=options.scratch, progress=options.progress, backend=backend)
            self._executor, self._key = executor.__enter__(), key
        return self._executor

    def __enter__(self) -> ExecutorPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.__exit__(kind, error, trace)

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
    exit_if_unguarded()
    workers, options = workers or Workers(), options or RunOptions()
    started = time.monotonic()
    record = Record(command.name)
    call = CommandCall(command, arguments, workers)
    try:
        call.check()
        if options.dry_run:
            record.outputs = [str(staging.output) for staging in call.stagings]
            record.plans = [_describe_plan(call.first_plan)] if call.first_plan else []
        else:
            with nullcontext(pool) if pool is not None else ExecutorPool() as executors:
                _Run(call, workers, options, record, host).execute(executors)
    except BaseException as error:
        record.error = f"{type(error).__name__}: {error}"
        raise
    finally:
        record.seconds = time.monotonic() - started
        if host is not None and not options.dry_run:
            host.notify("moraine_finished", record=record)
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
    return CommandCall(command, arguments, workers).check(expected)


class _Run:
    """A checked call that is being run."""

    def __init__(
        self, call: CommandCall, workers: Workers, options: RunOptions, record: Record, host: PluginHost | None
    ) -> None:
        self._call = call
        self._workers = workers
        self._options = options
        self._record = record
        self._host = host
        self._name = call.command.name
        self._provenance: dict[str, Any] = {}
        # what lies hidden may be of an interrupted run, until it is known to be of no use
        self._keep = True

    def execute(self, pool: ExecutorPool) -> None:
        """Run the command and publish its outputs; remove what is hidden unless the same call can continue with it."""
        call, record = self._call, self._record
        given = ", ".join(f"{name}={value}" for name, value in call.given.items())
        log.info("%s %s: %s", self._name, package_version(call.command), given)
        for name, arrays in call.arrays.items():
            for array in arrays:
                log.info("%s: %s %s %s, chunks %s", name, array.path, array.shape, array.dtype, array.chunks)
        record.inputs = {path: store.stamp(path) for paths in call.inputs.values() for path in paths}
        self._provenance = {
            "command": self._name,
            "version": package_version(call.command),
            "arguments": plain({name: call.bound[name] for name in sorted(call.given)}),
            "inputs": dict(record.inputs),
        }
        with ExitStack() as stack:
            for staging in call.stagings:
                stack.callback(_remove_if_empty, staging.folder)
                stack.enter_context(store.exclusive(staging.folder / "lock", f"{self._name}: {staging.output}"))
            stack.callback(self._tidy)
            for staging in call.stagings:
                staging.prepare()
            if call.command.chunked:
                self._run_plans(pool.get(self._workers, self._options, self._host))
            else:
                self._run_function()
            self._keep = False
        record.outputs = [path for paths in call.outputs.values() for path in paths]

    def _tidy(self) -> None:
        """Remove the hidden folders, that of the journal last, or what is empty in them."""
        for staging in reversed(self._call.stagings):
            if self._keep:
                _remove_if_empty(staging.data.parent)
            else:
                staging.close()

    def _run_function(self) -> None:
        """Run a command without chunks: it writes its small files at the hidden place by itself."""
        self._clear()
        bound = dict(self._call.bound)
        for name, paths in self._call.outputs.items():
            hidden = [self._hidden(path) for path in paths]
            bound[name] = hidden if isinstance(bound[name], tuple) else hidden[0]
        self._call.call(bound)
        for staging in self._call.stagings:
            self._finish(staging)
        self._publish()

    def _clear(self) -> None:
        self._keep = False
        for staging in self._call.stagings:
            staging.clear()

    def _hidden(self, path: str) -> str:
        """Return the hidden place of an output or of something in it, and of any other path its absolute spelling."""
        absolute = os.path.abspath(path)
        staging = self._call.staging_of(absolute)
        return absolute if staging is None else str(staging.data) + absolute[len(str(staging.output)) :]

    # -------------------------------------------------------------------------------------------- plans

    def _run_plans(self, executor: Executor) -> None:
        """Run all plans, or what an interrupted run has left of them, and publish."""
        journal = Journal(self._call.stagings[0].folder / "journal.jsonl", digest(self._provenance))
        resumed = not self._options.fresh and journal.load()
        if resumed and all(self._is_written(staging, journal) for staging in self._call.stagings):
            log.info("%s: continuing, only publishing was left", self._name)
        else:
            try:
                with closing(journal), self._scratch() as scratch:
                    self._until_written(executor, journal, scratch, fresh=not resumed)
            finally:
                self._record.peak_bytes = executor.peak_bytes
                executor.release()
            if self._workers.cuda:
                executor.run_on_workers(free_pools)
        self._publish()

    def _is_written(self, staging: Staging, journal: Journal) -> bool:
        """Tell whether the interrupted run has come to publishing an output, and that one is still there."""
        place = staging.data if staging.data.exists() else staging.output
        return str(staging.output) in journal.published and made_by(place) == self._provenance

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        """Make the folder of temporary arrays: beside the output, unless another place was asked for."""
        chosen = self._options.scratch or os.environ.get("MORAINE_SCRATCH")
        if not chosen:
            # goes with the hidden folder: an interrupted run continues with it
            yield self._call.stagings[0].folder / "scratch"
            return
        with store.disk_errors(chosen):
            Path(chosen).mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix="moraine-", dir=os.path.abspath(chosen)))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _until_written(self, executor: Executor, journal: Journal, scratch: Path, *, fresh: bool) -> None:
        """Run all plans; from the start again if what was left is of another plan, or if blocks must be smaller."""
        bound: dict[str, Any] | None = self._call.fitted(executor.fits)
        while bound is not None:
            try:
                bound = self._run_once(executor, bound, journal, scratch, fresh=fresh)
            except JournalMismatchError:
                log.info("%s: the interrupted run had other blocks; starting over", self._name)
            fresh = True
        for staging in self._call.stagings:
            self._finish(staging)
        # all are noted before the first takes its place: whatever happens then, the rest can still follow
        for staging in self._call.stagings:
            journal.output_published(str(staging.output))

    def _run_once(
        self, executor: Executor, bound: dict[str, Any], journal: Journal, scratch: Path, *, fresh: bool
    ) -> dict[str, Any] | None:
        """Run all plans; return None, or the arguments to start over with where a later plan needs smaller blocks."""
        if fresh:
            self._clear()
            shutil.rmtree(scratch, ignore_errors=True)
        journal.close()
        journal.start(fresh=fresh)
        self._record.plans = []
        plans = self._call.plans(bound)
        results: list[Any] | None = None
        while True:
            try:
                plan = plans.send(results)  # type: ignore[arg-type]
            except StopIteration:
                return None
            self._call.check_plan(plan)
            if not executor.fits(plan.needed_bytes) and (smaller := self._smaller(bound, plan)):
                log.info("%s: a task of %s is too large; starting over with less", self._name, gib(plan.needed_bytes))
                return smaller
            results = self._run_plan(executor, plan, scratch, journal)

    def _smaller(self, bound: dict[str, Any], plan: Plan) -> dict[str, Any] | None:
        parameter = self._call.command.blocks_parameter
        is_given = parameter is not None and parameter.name in self._call.given
        return None if is_given else self._call.halved(bound, plan)

    def _run_plan(self, executor: Executor, plan: Plan, scratch: Path, journal: Journal) -> list[Any]:
        """Run the tasks of one plan that are not done yet; return all small results in order."""

        def move(path: str) -> str:
            if path.startswith(SCRATCH):
                return str(scratch / f"{path.removeprefix(SCRATCH)}.zarr")
            return self._hidden(path)

        number = len(self._record.plans)
        self._record.plans.append(_describe_plan(plan))
        hidden = plan.relocated(move)
        done = journal.begin_plan(number, hidden)
        name = plan.desc or self._name
        todo = [n for n in range(len(plan.tasks)) if n not in done]
        self._create(hidden, anew=not done)
        if done:
            self._keep = True
            log.info("%s: continuing, %d of %d tasks are done", name, len(done), len(plan.tasks))
        self._notify("moraine_plan_ready", plan=plan)

        def on_done(position: int, result: Any) -> None:
            task = todo[position]
            done[task] = plain(result)
            journal.task_done(number, task, done[task])
            self._keep = True
            self._notify("moraine_task_done", event=TaskDone(self._name, name, task, len(plan.tasks), done[task]))

        shared = {key: executor.put(self._shared(value), scratch) for key, value in hidden.shared.items() if todo}
        executor.run_chunk_tasks(
            [hidden.tasks[n] for n in todo],
            desc=name,
            cuda=self._workers.cuda,
            shared=shared,
            task_bytes=plan.task_bytes,
            done=len(plan.tasks) - len(todo),
            on_done=on_done,
            keep_going=plan.keep_going,
        )
        executor.release()  # the next plan may share as much
        for path, attributes in hidden.attributes.items():
            store.set_attributes(path, attributes)
        for path, text in hidden.texts.items():
            store.write_text(Path(path), text)
        return [done[n] for n in range(len(plan.tasks))]

    def _shared(self, value: Any) -> Any:
        """Return a shared object: itself, or what the task that stands for it returns."""
        if not isinstance(value, ChunkTask):
            return value
        try:
            return chunk_task(value.kernel, value.inputs, (), kwargs=value.kwargs)
        except ValueError as error:
            raise self._call.named(error) from error

    def _notify(self, hook: str, **facts: Any) -> None:
        if self._host is not None:
            self._host.notify(hook, **facts)

    # ------------------------------------------------------------------------------------------ outputs

    def _create(self, plan: Plan, *, anew: bool) -> None:
        """Create the arrays of a plan, in the parent alone; those of an interrupted run must still be there."""
        needed = sum(layout.nbytes for layout in plan.outputs)
        free = store.free_bytes(self._call.stagings[0].folder)
        if needed > free:
            log.warning("%s: outputs take up to %s, the disk has %s left", self._name, gib(needed), gib(free))
        units = {
            self._hidden(path): unit
            for name, paths in self._call.outputs.items()
            for path in paths
            if (unit := self._call.role(name).unit)
        }
        for layout in plan.outputs:
            if anew:
                notes = {UNFINISHED: self._name, PROVENANCE: self._provenance}
                if layout.path in units and "unit" not in layout.attributes:
                    notes["unit"] = units[layout.path]
                store.create(layout, layout.path, notes, compressor=self._options.compressor)
            elif isinstance(layout, RawLayout):
                if not store.is_created(layout, layout.path):
                    raise JournalMismatchError
            elif made_by(layout.path) != self._provenance:
                raise JournalMismatchError

    def _finish(self, staging: Staging) -> None:
        """Check that an output is there and every array of it has all its chunks, and mark it as finished."""
        if not staging.data.exists():
            msg = f"{self._name}: {staging.output} was not written"
            raise IncompleteError(msg)
        for array in store.arrays_in(staging.data, deep=True):
            if holes := len(store.missing_chunks(array)):
                msg = f"{self._name}: {staging.output}: {holes} chunks were not written"
                raise IncompleteError(msg)
            store.set_attributes(array, {PROVENANCE: self._provenance}, remove=[UNFINISHED])
        note_in(staging.data, self._provenance)

    def _publish(self) -> None:
        """Let all outputs take their places."""
        for staging in self._call.stagings:
            if staging.data.exists():
                staging.publish()


def _remove_if_empty(folder: Path) -> None:
    """Remove a folder that holds nothing, as after a run that ended before it began."""
    with suppress(OSError):
        folder.rmdir()


def _describe_plan(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain data for people and for ``--dry-run --json``."""
    return {
        "outputs": [
            {
                "path": layout.path,
                "shape": list(layout.shape),
                "dtype": layout.dtype,
                "chunks": list(layout.chunks),
                **({"shards": list(layout.shards)} if layout.shards else {}),
                "bytes": layout.nbytes,
            }
            for layout in plan.outputs
            if not layout.is_scratch
        ],
        "tasks": len(plan.tasks),
        "task_bytes": plan.task_bytes,
    }
