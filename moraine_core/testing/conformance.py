"""The conformance kit: what every command must keep to, run on the small example that it ships.

Use it in the tests of a plugin package::

    from moraine_core.plugins import PluginHost
    from moraine_core.testing.conformance import ConformanceSuite

    class TestMine(ConformanceSuite):
        commands = [PluginHost().command("my-command")]

Each test runs once per command. A command may declare a `tolerance`; without one, every bit counts.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from moraine_core import store
from moraine_core.executor import Executor
from moraine_core.hookspec import hookimpl
from moraine_core.options import RunOptions, Workers
from moraine_core.run import run_command
from moraine_core.testing import edges, running
from moraine_core.testing.interrupt import observed_by
from moraine_core.testing.memory import measured_growth

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from moraine_core.declaration import Command
    from moraine_core.plan import Plan

MEMORY_SCALE = 40
"""Factor of the example's sizes when memory is measured: enough to stand out against what Python itself needs."""

MEMORY_ALLOWANCE = 8 * 2**20
"""Bytes a task may use beyond its projection: the interpreter, threads' stacks, what a library loads late."""


class ConformanceSuite:
    """Tests of commands; subclass it and set `commands`.

    Attributes
    ----------
    commands
        What to test.
    variants
        Functions that make another call of an example's, by command: with an optional input left out, or another one
        given. Each takes the example's arguments and may write further inputs beside the example's.
    """

    commands: ClassVar[Sequence[Command]] = ()
    variants: ClassVar[Mapping[str, Sequence[Callable[[running.Arguments], running.Arguments]]]] = {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each test for each command."""
        if "command" in metafunc.fixturenames:
            metafunc.parametrize("command", self.commands, ids=[c.name for c in self.commands])

    @pytest.fixture
    def arguments(self, command: Command, tmp_path: Path) -> running.Arguments:
        """Arguments of the example, its inputs written."""
        return running.example(command, tmp_path / "example")

    @pytest.fixture
    def expected(self, command: Command, arguments: running.Arguments) -> dict[str, Any]:
        """Return what the example gives when its tasks run one after another in one thread."""
        running.run_serially(command, arguments)
        return running.contents(command, arguments)

    # ------------------------------------------------------------------------------------- the same numbers

    @pytest.mark.parametrize(
        "workers",
        [Workers(n_workers=1), Workers(n_workers=4), Workers(processes=True, n_workers=2)],
        ids=["1 thread", "4 threads", "2 processes"],
    )
    def test_results_do_not_depend_on_the_workers(
        self, command: Command, arguments: running.Arguments, expected: dict[str, Any], workers: Workers
    ) -> None:
        """A10: threads, processes and their number change nothing."""
        with running.forgetting(command, arguments):
            running.run(command, arguments, workers)
        assert running.differences(expected, running.contents(command, arguments), command.tolerance) == []

    def test_variants_do_not_depend_on_the_workers(self, command: Command, arguments: running.Arguments) -> None:
        """A10: each optional input present and absent, in threads and processes as one after another."""
        for variant in self.variants.get(command.name, ()):
            changed = variant(arguments)
            running.run_serially(command, changed)
            expected = running.contents(command, changed)
            for workers in (Workers(n_workers=4), Workers(processes=True, n_workers=2)):
                with running.forgetting(command, changed):
                    running.run(command, changed, workers)
                assert running.differences(expected, running.contents(command, changed), command.tolerance) == []

    def test_results_do_not_depend_on_the_blocks(
        self, command: Command, arguments: running.Arguments, expected: dict[str, Any]
    ) -> None:
        """One block for everything and small ragged blocks give the same values."""
        for changed in running.other_blocks(command, arguments):
            with running.forgetting(command, changed):
                running.run(command, changed)
            assert running.differences(expected, running.contents(command, changed), command.tolerance) == []

    def test_results_do_not_depend_on_the_chunks_of_the_inputs(
        self, command: Command, arguments: running.Arguments, expected: dict[str, Any]
    ) -> None:
        """A reader accepts any chunks."""
        changed = running.rechunked(command, arguments)
        with running.forgetting(command, changed):
            running.run(command, changed)
        assert running.differences(expected, running.contents(command, changed), command.tolerance) == []

    # ------------------------------------------------------------------------------ what is declared is true

    def test_what_is_written_is_what_was_declared(self, command: Command, arguments: running.Arguments) -> None:
        """Shape, dtype and chunks of every output are those of its layout, and nothing is missing (A24)."""
        record = running.run(command, arguments)
        declared = {layout["path"]: layout for plan in record.plans for layout in plan["outputs"]}
        for path in running.output_paths(command, arguments):
            for array in store.arrays_in(path, deep=True):
                described = store.describe(array)
                layout = declared[str(array)]
                assert list(described.shape) == layout["shape"]
                assert described.dtype == layout["dtype"]
                assert list(described.chunks) == layout.get("shards", layout["chunks"])
                assert store.missing_chunks(array) == []
                assert described.attributes[store.PROVENANCE]["command"] == command.name

    def test_a_dry_run_changes_and_computes_nothing(self, command: Command, arguments: running.Arguments) -> None:
        """Everything is checked, nothing is written, no task runs."""
        folder = [path.parent for path in running.output_paths(command, arguments)]
        before = running.tree_digest(folder)
        with Executor(backend=running.RefusingBackend()) as executor:
            record = run_command(command, arguments, options=RunOptions(dry_run=True), pool=running.GivenPool(executor))
        assert running.tree_digest(folder) == before
        assert record.outputs

    def test_inputs_are_only_read(self, command: Command, arguments: running.Arguments) -> None:
        """A27: the files of the inputs are the same before and after."""
        inputs = running.input_paths(command, arguments)
        before = running.tree_digest(inputs)
        running.run(command, arguments)
        assert running.tree_digest(inputs) == before

    def test_the_line_prints_one_json_object(self, command: Command, arguments: running.Arguments) -> None:
        """The contract's fields and no others, for success and for failure."""
        from moraine_core.cli.main import run as run_line

        words = running.command_words(command, arguments)
        host = host_of(command)
        for line, code, fields in (
            ([*words, "--json"], 0, {"command", "seconds", "outputs", "inputs", "summaries"}),
            ([*words, "--no-such-option", "--json"], 2, {"error"}),
        ):
            out = io.StringIO()
            with redirect_stdout(out), redirect_stderr(io.StringIO()):
                assert run_line(line, host) == code
            answer = json.loads(out.getvalue())
            assert set(answer) == {"version", "ok"} | fields
            assert answer["version"] == 1
            assert answer["ok"] is (code == 0)

    # ----------------------------------------------------------------------------------------------- at the edges

    @pytest.mark.parametrize("case", edges.CASES, ids=lambda case: case.name)
    def test_at_the_edges_there_are_results_or_a_sentence(
        self, command: Command, arguments: running.Arguments, case: edges.Case
    ) -> None:
        """Missing, broken, empty, tiny or invalid inputs: whole results or one clear error, and nothing half-made."""
        for changed in case.change(command, arguments):
            said = edges.outcome(command, changed)
            assert said or not case.refused, f"{command.name} accepts {case.name}: {changed}"

    # -------------------------------------------------------------------------------- kill, continue, memory

    def test_a_killed_run_continues(
        self, command: Command, arguments: running.Arguments, expected: dict[str, Any], tmp_path: Path
    ) -> None:
        """A54: after SIGKILL in the middle there is no output; the same call goes on and repeats no finished task."""
        record = running.run(command, arguments)
        total = sum(plan["tasks"] for plan in record.plans)
        if total < 2:
            pytest.skip("the example has a single task: there is no middle")
        with running.forgetting(command, arguments):
            call = {
                "command": f"{command.module}:{command.function.__name__}",
                "arguments": arguments,
                "tasks": (total + 1) // 2,
            }
            killed = subprocess.run(
                [sys.executable, "-m", "moraine_core.testing.interrupt"],
                input=json.dumps(call),
                text=True,
                capture_output=True,
                timeout=60,
                check=False,
            )
        assert killed.returncode == -9, killed.stderr
        assert not any(path.exists() for path in running.output_paths(command, arguments))
        counter = _Counter()
        run_command(command, json.loads(json.dumps(arguments)), Workers(n_workers=1), host=observed_by(counter))
        assert 0 < counter.tasks < total
        assert running.differences(expected, running.contents(command, arguments), command.tolerance) == []
        assert not list((tmp_path / "example").glob(".*.moraine"))

    def test_a_task_uses_no_more_memory_than_projected(self, command: Command, tmp_path: Path) -> None:
        """A04: the peak of a worker process stays within the projection of the plan it ran."""
        if not command.chunked:
            pytest.skip("the command has no tasks")
        small = running.example(command, tmp_path / "small")
        large = running.example(command, tmp_path / "large", MEMORY_SCALE)
        observer = _Projection()
        growth = measured_growth(command, small, large, observed_by(observer))
        assert growth <= observer.nbytes + MEMORY_ALLOWANCE


class _Counter:
    """Counts the tasks that ran."""

    def __init__(self) -> None:
        self.tasks = 0

    @hookimpl
    def moraine_task_done(self, event: Any) -> None:
        self.tasks += 1


class _Projection:
    """Notes what the plans of a run said they need: their largest task, and the inputs of the next one."""

    def __init__(self) -> None:
        self.nbytes = 0

    @hookimpl
    def moraine_plan_ready(self, plan: Plan) -> None:
        ahead = max((task.input_bytes + task.reading_bytes() for task in plan.tasks), default=0)
        self.nbytes = max(self.nbytes, plan.task_bytes + ahead)


def host_of(command: Command) -> Any:
    """Return a plugin host that knows one command, besides all that is installed."""
    from moraine_core.plugins import PluginHost

    host = PluginHost()
    host._commands[command.name] = command
    return host
