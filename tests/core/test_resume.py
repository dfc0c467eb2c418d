"""The same call after a crash, a kill or an interrupt continues; any other starts over."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import run_commands
from run_support import Line, X, tree, wait_for

from moraine_core import Workers, store
from moraine_core.plan import Layout
from moraine_core.store import Staging
from moraine_core.testing.data import read_array, write_array

ONE = Workers(n_workers=1)


@pytest.fixture
def stopped(monkeypatch):
    """Run a command that fails at its n-th kernel call, counted from now."""

    def run(command, at, **arguments):
        monkeypatch.setenv("RUN_STOP", f"raise {run_commands.calls() + at}")
        with pytest.raises(ValueError, match="the glacier melted"):
            command(source="x.zarr", workers=ONE, **arguments)
        monkeypatch.delenv("RUN_STOP")

    return run


@pytest.fixture
def calls_of():
    """Return how many kernel calls a run makes."""

    def count(command, **arguments):
        before = run_commands.calls()
        command(source="x.zarr", workers=ONE, **arguments)
        return run_commands.calls() - before

    return count


def test_the_same_call_continues_with_the_tasks_that_are_left(folder, stopped, calls_of):
    """A54."""
    stopped(run_commands.double, 4, result="y.zarr")
    assert not Path("y.zarr").exists()
    assert calls_of(run_commands.double, result="y.zarr") == 6 - 3
    np.testing.assert_array_equal(read_array("y.zarr"), 2 * X)
    assert sorted(os.listdir(folder)) == ["x.zarr", "y.zarr"]
    assert calls_of(run_commands.double, result="y.zarr") == 6, "a run that has ended is done anew"


def test_a_plan_that_goes_on_leaves_only_what_failed_to_the_same_call(folder, stopped, calls_of):
    """A12, A44: one task that fails neither loses the others nor lets an output appear."""
    stopped(run_commands.double_apart, 2, result="y.zarr")
    assert not Path("y.zarr").exists()
    assert calls_of(run_commands.double_apart, result="y.zarr") == 1
    np.testing.assert_array_equal(read_array("y.zarr"), 2 * X)


def test_it_continues_as_often_as_it_is_stopped(folder, stopped, calls_of):
    for _ in range(3):
        stopped(run_commands.double, 2, result="y.zarr")  # one task done each time, the second fails
    assert calls_of(run_commands.double, result="y.zarr") == 6 - 3
    np.testing.assert_array_equal(read_array("y.zarr"), 2 * X)


def test_other_spellings_of_the_same_arguments_are_the_same_call(folder, stopped, calls_of):
    stopped(run_commands.double, 4, result="y.zarr", chunks=(4, 4))
    assert calls_of(run_commands.double, result="y.zarr", chunks="4,4") == 3


@pytest.mark.parametrize("change", ["argument", "input", "version", "fresh"])
def test_another_call_starts_over(folder, stopped, calls_of, monkeypatch, change):
    stopped(run_commands.double, 4, result="y.zarr")
    arguments, x = {}, X
    if change == "argument":
        arguments = {"factor": 2.0}  # given where it was not: what is noted of the call differs
    elif change == "input":
        x = X + 1
        write_array("x.zarr", x, chunks=(4, 4))
    elif change == "version":
        monkeypatch.setattr("moraine_core.run.package_version", lambda _: "99")
    else:
        arguments = {"fresh": True}
    assert calls_of(run_commands.double, result="y.zarr", **arguments) == 6
    np.testing.assert_array_equal(read_array("y.zarr"), 2 * x)


def test_a_generator_continues_with_the_results_of_its_first_plan(folder, stopped, calls_of):
    stopped(run_commands.center, 6 + 3, result="y.zarr")
    assert calls_of(run_commands.center, result="y.zarr") == 6 - 2
    np.testing.assert_array_equal(read_array("y.zarr"), X - np.float32(29.5))


def test_a_generator_continues_within_its_first_plan(folder, stopped, calls_of):
    stopped(run_commands.center, 3, result="y.zarr")
    assert calls_of(run_commands.center, result="y.zarr") == (6 - 2) + 6
    np.testing.assert_array_equal(read_array("y.zarr"), X - np.float32(29.5))


def test_temporary_arrays_beside_the_output_serve_again(folder, stopped, calls_of):
    stopped(run_commands.detour, 6 + 3, result="y.zarr")
    assert calls_of(run_commands.detour, result="y.zarr") == 6 - 2
    np.testing.assert_array_equal(read_array("y.zarr"), 4 * X)


def test_without_its_temporary_arrays_a_run_starts_over(folder, stopped, calls_of, tmp_path):
    """A28: a scratch folder elsewhere is emptied by every end of a run."""
    elsewhere = {"result": "y.zarr", "scratch": str(tmp_path / "scratch")}
    stopped(run_commands.detour, 6 + 3, **elsewhere)
    assert calls_of(run_commands.detour, **elsewhere) == 12
    np.testing.assert_array_equal(read_array("y.zarr"), 4 * X)


def test_a_scratch_folder_elsewhere_keeps_no_run_from_continuing_that_has_no_temporary_arrays(
    folder, stopped, calls_of, tmp_path, monkeypatch
):
    monkeypatch.setenv("MORAINE_SCRATCH", str(tmp_path / "scratch"))
    stopped(run_commands.double, 4, result="y.zarr")
    assert calls_of(run_commands.double, result="y.zarr") == 3


def test_other_blocks_start_over(folder, stopped, calls_of, monkeypatch):
    """What fits into memory may change between two runs; blocks that the host has chosen are no argument."""
    write_array("x.zarr", np.zeros((64, 64), dtype=np.float32))
    limit = [10**9]
    monkeypatch.setattr("moraine_core.executor.Executor.fits", lambda _, need: need <= limit[0])
    limit[0] = run_commands.double(source="x.zarr", result="y.zarr", dry_run=True).plans[0]["task_bytes"] * 4 // 5
    stopped(run_commands.double, 2, result="y.zarr")
    limit[0] *= 2
    before = run_commands.calls()
    run_commands.double(source="x.zarr", result="y.zarr", workers=ONE)
    chunks = store.describe("y.zarr").chunks
    assert run_commands.calls() - before == 64 * 64 // (chunks[0] * chunks[1])
    assert not read_array("y.zarr").any()


@pytest.mark.parametrize("stage", ["before the first", "between the two", "after both", "in the middle of an exchange"])
@pytest.mark.parametrize("previous", [False, True])
def test_a_run_that_was_cut_while_publishing_only_publishes(folder, calls_of, monkeypatch, stage, previous):
    if previous:
        run_commands.split(source="x.zarr", tens="a.zarr", ones="b.zarr", workers=ONE)
        write_array("x.zarr", X + 1, chunks=(4, 4))
    x = read_array("x.zarr")
    original, published = Staging.publish, []

    def publish(staging):
        if len(published) == {"before the first": 0, "between the two": 1}.get(stage, 2):
            raise KeyboardInterrupt
        if stage == "in the middle of an exchange" and previous:
            staging.output.rename(staging.previous)
            raise KeyboardInterrupt
        original(staging)
        published.append(staging)
        if stage == "after both" and len(published) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Staging, "publish", publish)
    if stage != "in the middle of an exchange" or previous:
        with pytest.raises(KeyboardInterrupt):
            run_commands.split(source="x.zarr", tens="a.zarr", ones="b.zarr", workers=ONE)
    monkeypatch.setattr(Staging, "publish", original)
    calls = calls_of(run_commands.split, tens="a.zarr", ones="b.zarr")
    assert calls == (6 if stage == "in the middle of an exchange" and not previous else 0)
    np.testing.assert_array_equal(read_array("a.zarr"), x // 10)
    np.testing.assert_array_equal(read_array("b.zarr"), x % 10)
    assert sorted(os.listdir(folder)) == ["a.zarr", "b.zarr", "x.zarr"]


def test_an_output_that_was_removed_while_publishing_was_cut_is_made_again(folder, calls_of, monkeypatch):
    def publish(staging):
        original(staging)
        raise KeyboardInterrupt

    original = Staging.publish
    monkeypatch.setattr(Staging, "publish", publish)
    with pytest.raises(KeyboardInterrupt):
        run_commands.split(source="x.zarr", tens="a.zarr", ones="b.zarr", workers=ONE)
    monkeypatch.setattr(Staging, "publish", original)
    store.remove(Path("a.zarr"))
    assert calls_of(run_commands.split, tens="a.zarr", ones="b.zarr") == 6
    np.testing.assert_array_equal(read_array("a.zarr"), X // 10)
    np.testing.assert_array_equal(read_array("b.zarr"), X % 10)


def test_another_command_may_take_over_what_lies_hidden(folder, stopped, calls_of):
    """The second output's hidden data are removed, or replaced by another command's: the first must not trust them."""
    stopped(run_commands.split, 4, tens="a.zarr", ones="b.zarr")
    run_commands.double(source="x.zarr", result="b.zarr", workers=ONE)
    assert calls_of(run_commands.split, tens="a.zarr", ones="b.zarr") == 6
    np.testing.assert_array_equal(read_array("b.zarr"), X % 10)

    stopped(run_commands.split, 4, tens="a.zarr", ones="b.zarr")
    stopped(run_commands.double, 6, result="b.zarr")
    assert calls_of(run_commands.split, tens="a.zarr", ones="b.zarr") == 6
    np.testing.assert_array_equal(read_array("b.zarr"), X % 10)


def test_a_journal_whose_last_line_was_cut_serves_up_to_there_again_and_again(folder, stopped, calls_of):
    stopped(run_commands.double, 4, result="y.zarr")
    journal = folder / ".y.zarr.moraine" / "journal.jsonl"
    journal.write_text(journal.read_text()[:-5])
    stopped(run_commands.double, 2, result="y.zarr")  # two tasks are known; the third is done, the fourth fails
    assert calls_of(run_commands.double, result="y.zarr") == 3
    np.testing.assert_array_equal(read_array("y.zarr"), 2 * X)


@pytest.mark.parametrize("text", ["", "garbage\n", "{}\n", "[1]\n", "null\n", '{"call": 5}\n'])
def test_a_journal_that_makes_no_sense_is_started_over(folder, stopped, calls_of, text):
    stopped(run_commands.double, 4, result="y.zarr")
    (folder / ".y.zarr.moraine" / "journal.jsonl").write_text(text)
    assert calls_of(run_commands.double, result="y.zarr") == 6
    np.testing.assert_array_equal(read_array("y.zarr"), 2 * X)


def test_a_killed_process_leaves_the_previous_output_and_the_same_line_continues(folder, tmp_path):
    """A54: ``kill -9`` in the middle of a task."""
    line = Line(folder)
    words = ("double", "--source", "x.zarr", "--result", "y.zarr", "--n-workers", 1)
    store.create(Layout("y.zarr", (2,), "float32", (2,)), "y.zarr", {store.PROVENANCE: {"command": "double"}})
    before = tree(folder / "y.zarr")
    process = line.start(*words, RUN_STOP="block 4")
    wait_for(tmp_path / "blocked")
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert tree(folder / "y.zarr") == before
    calls = run_commands.calls()
    assert line.run(*words).returncode == 0
    assert run_commands.calls() - calls == 3
    np.testing.assert_array_equal(read_array("y.zarr"), 2 * X)
    assert sorted(os.listdir(folder)) == ["site", "x.zarr", "y.zarr"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", [("--n-workers", 1), ("--n-workers", 1, "--processes")])
def test_an_interrupt_ends_everything_and_the_same_line_continues(folder, tmp_path, number, workers):
    line = Line(folder)
    scratch = tmp_path / "scratch"
    words = ("double", "--source", "x.zarr", "--result", "y.zarr", *workers, "--scratch", scratch)
    process = line.start(*words, "--json", RUN_STOP="block 4")
    wait_for(tmp_path / "blocked")
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert out == '{"version": 1, "ok": false, "error": "interrupted"}\n'
    assert "moraine: interrupted" in err
    assert os.listdir(scratch) == []
    assert not Path("y.zarr").exists()
    calls = run_commands.calls()
    assert line.run(*words).returncode == 0
    assert 3 <= run_commands.calls() - calls <= 4
    np.testing.assert_array_equal(read_array("y.zarr"), 2 * X)
