"""One command from declaration to published outputs."""

from __future__ import annotations

import errno
import logging
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
import run_commands
import zarr
from run_support import X, tree

from moraine_core import RunOptions, Workers, store
from moraine_core.blocks import blocks
from moraine_core.errors import (
    BusyError,
    DiskFullError,
    IncompleteError,
    LayoutError,
    MemoryBudgetError,
    ProblemsError,
    StoreNotFoundError,
    UsageError,
)
from moraine_core.executor.threads import ThreadBackend
from moraine_core.plan import Layout
from moraine_core.run import ExecutorPool, check_command, run_command
from moraine_core.testing.data import read_array, write_array

ONE = Workers(n_workers=1)


def double(**arguments):
    return run_commands.double(workers=ONE, **{"source": "x.zarr", "result": "y.zarr", **arguments})


# ------------------------------------------------------------------------------------------------- outputs


def test_an_output_is_whole_and_nothing_else_is_left(folder):
    before = tree(folder / "x.zarr")
    record = double()
    np.testing.assert_array_equal(read_array("y.zarr"), 2 * X)
    assert sorted(os.listdir(folder)) == ["x.zarr", "y.zarr"]
    assert tree(folder / "x.zarr") == before, "A27: inputs are only read"
    assert record.outputs == ["y.zarr"]
    assert record.inputs == {"x.zarr": store.stamp("x.zarr")}
    assert record.error == ""
    assert store.missing_chunks("y.zarr") == []


@pytest.mark.parametrize(
    ("workers", "chunks"),
    [
        (ONE, (1, 3)),
        (ONE, (-1, -1)),
        (Workers(n_workers=3), (4, 4)),
        (Workers(n_workers=3), (100, 100)),
        (Workers(n_workers=2, processes=True), (2, 5)),
    ],
)
def test_numbers_do_not_depend_on_blocks_or_workers(folder, workers, chunks):
    run_commands.center(source="x.zarr", result="y.zarr", chunks=chunks, workers=workers)
    np.testing.assert_array_equal(read_array("y.zarr"), X - np.float32(29.5))


def test_provenance_and_unit_are_attributes_of_the_output(folder):
    """A42."""
    double(factor="3", chunks="2,5")
    attributes = dict(store.open_array("y.zarr").attrs)
    noted = attributes[store.PROVENANCE]
    assert noted["command"] == "double"
    assert noted["arguments"] == {"source": "x.zarr", "result": "y.zarr", "factor": 3.0, "chunks": [2, 5]}
    assert noted["inputs"] == {"x.zarr": store.stamp("x.zarr")}
    assert set(noted) == {"command", "version", "arguments", "inputs"}
    assert attributes["unit"] == "m"
    assert store.UNFINISHED not in attributes


def test_a_directory_output_has_all_its_arrays_and_texts(folder):
    run_commands.cube(source="x.zarr", result="out", workers=ONE)
    assert sorted(os.listdir("out")) == ["0.zarr", "1.zarr", "read.me"]
    assert Path("out/read.me").read_text() == "two arrays\n"
    run_commands.cube(source="x.zarr", result="out", workers=ONE)  # what one run has made, another may replace


def test_temporary_arrays_are_gone_when_the_run_is_over(folder):
    run_commands.detour(source="x.zarr", result="y.zarr", workers=ONE)
    np.testing.assert_array_equal(read_array("y.zarr"), 4 * X)
    assert sorted(os.listdir(folder)) == ["x.zarr", "y.zarr"]


@pytest.mark.parametrize("way", ["option", "environment"])
@pytest.mark.parametrize("stop", ["", "raise 8", "interrupt 8"])
def test_a_scratch_folder_is_used_and_left_empty_after_success_failure_and_interrupt(
    folder, tmp_path, monkeypatch, way, stop
):
    """A28."""
    scratch = tmp_path / "scratch"
    seen = []
    original = store.create

    def create(layout, path, *rest, **options):
        seen.append(Path(path).parent.parent)
        original(layout, path, *rest, **options)

    monkeypatch.setattr(store, "create", create)
    if way == "environment":
        monkeypatch.setenv("MORAINE_SCRATCH", str(scratch))
    options = {"scratch": str(scratch)} if way == "option" else {}

    class Host:
        def notify(self, hook, **facts):
            if stop.startswith("interrupt") and hook == "moraine_task_done" and run_commands.calls() == 8:
                raise KeyboardInterrupt

    monkeypatch.setenv("RUN_STOP", stop if stop.startswith("raise") else "")
    arguments = {"source": "x.zarr", "result": "y.zarr"}
    kind = {"": None, "raise 8": ValueError, "interrupt 8": KeyboardInterrupt}[stop]
    if kind is None:
        run_command(run_commands.detour, arguments, ONE, RunOptions(**options), host=Host())
    else:
        with pytest.raises(kind):
            run_command(run_commands.detour, arguments, ONE, RunOptions(**options), host=Host())
    assert seen[0] == scratch
    assert os.listdir(scratch) == []


def test_the_previous_output_stays_until_the_end_and_is_kept_by_a_failure(folder, monkeypatch):
    double()
    before = tree(folder / "y.zarr")
    monkeypatch.setenv("RUN_STOP", "raise 8")
    with pytest.raises(ValueError, match="the glacier melted"):
        double(factor=5)
    assert tree(folder / "y.zarr") == before
    monkeypatch.delenv("RUN_STOP")
    double(factor=5)
    np.testing.assert_array_equal(read_array("y.zarr"), 5 * X)


def test_a_failure_says_which_task_it_was_and_keeps_its_type(folder, monkeypatch):
    """A12, A14."""
    monkeypatch.setenv("RUN_STOP", "raise 3")
    with pytest.raises(ValueError, match=r"^the glacier melted") as caught:
        double()
    assert str(caught.value) == "the glacier melted"
    notes = "\n".join(caught.value.__notes__)
    assert "in double, task 2 of 6: twice(y.zarr[0:4, 8:10]" in notes.replace(f"{folder}/.y.zarr.moraine/data/", "")
    assert "the worker's traceback" in notes
    assert not Path("y.zarr").exists()


def test_a_failure_before_the_first_task_is_done_leaves_nothing(folder, monkeypatch):
    monkeypatch.setenv("RUN_STOP", "raise 1")
    with pytest.raises(ValueError, match="melted"):
        double()
    with pytest.raises(ValueError, match="melted"):
        run_commands.tidy(result="t.txt", mode="raise")
    assert os.listdir(folder) == ["x.zarr"]


def test_a_command_without_chunks_writes_whole_or_not_at_all(folder):
    Path("t.txt").write_text("of before")
    with pytest.raises(ValueError, match=r"^the glacier melted$"):
        run_commands.tidy(result="t.txt", mode="raise")
    assert Path("t.txt").read_text() == "of before"
    assert run_commands.tidy(result="t.txt").outputs == ["t.txt"]
    assert Path("t.txt").read_text() == "half"


def test_a_command_that_forgets_its_output_has_failed(folder):
    """A54."""
    with pytest.raises(IncompleteError, match=r"planless: .*/t.txt was not written"):
        run_commands.planless(result="t.txt")
    assert os.listdir(folder) == ["x.zarr"]


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "result", ["x.zarr", "./x.zarr", "../work/x.zarr", "x.zarr/", "x.zarr/inside", "..", "link.zarr", "link/x.zarr"]
)
def test_an_output_that_is_or_is_inside_or_holds_an_input_is_refused(folder, result):
    """A27."""
    Path("link.zarr").symlink_to("x.zarr")
    Path("link").symlink_to(".")
    before = tree(folder.parent)
    with pytest.raises(UsageError, match=r"is, or is inside, or holds source x.zarr, which is only read"):
        double(result=result)
    assert tree(folder.parent) == before


def test_an_output_that_is_an_input_through_the_inputs_link_is_refused(folder):
    Path("link.zarr").symlink_to("x.zarr")
    with pytest.raises(UsageError, match="which is only read"):
        double(source="link.zarr", result="x.zarr")


def test_an_output_that_is_an_argument_file_is_refused(folder):
    Path("pairs.txt").write_text("0 1\n")
    with pytest.raises(UsageError, match=r"pairs pairs.txt, which is only read"):
        run_commands.listed(source="x.zarr", pairs="pairs.txt", result="pairs.txt")


@pytest.mark.parametrize("ones", ["y.zarr", "./y.zarr", "y.zarr/ones"])
def test_two_outputs_at_one_place_are_refused(folder, ones):
    with pytest.raises(UsageError, match="which is written too"):
        run_commands.split(source="x.zarr", tens="y.zarr", ones=ones)


@pytest.mark.parametrize("make", ["directory", "file", "foreign array", "mixed directory", "array for a directory"])
def test_what_moraine_did_not_make_is_never_replaced(folder, make):
    command = run_commands.cube if "directory" in make else run_commands.double
    if make == "directory":
        Path("y.zarr").mkdir()
        Path("y.zarr/thesis.tex").write_text("years of work")
    elif make == "file":
        Path("y.zarr").write_text("years of work")
    elif make == "foreign array":
        write_array("y.zarr", X)
    elif make == "mixed directory":
        for name in ("a.zarr", "b.zarr"):
            double(result=f"y.zarr/{name}")
    else:
        double()
    before = tree(folder)
    with pytest.raises(UsageError, match=r"y.zarr is a (file; expected|directory that moraine did not make)"):
        command(source="x.zarr", result="y.zarr", workers=ONE)
    assert tree(folder) == before


def test_a_file_output_does_not_replace_a_directory(folder):
    Path("t.txt").mkdir()
    with pytest.raises(UsageError, match=r"t.txt is a directory; expected a name for a file"):
        run_commands.tidy(result="t.txt")


def test_an_empty_directory_may_become_an_output(folder):
    Path("y.zarr").mkdir()
    double()
    np.testing.assert_array_equal(read_array("y.zarr"), 2 * X)


def test_an_output_below_a_file_is_refused(folder):
    Path("notes").write_text("text")
    with pytest.raises(UsageError, match=r"notes is a file, expected a folder"):
        double(result="notes/y.zarr")


def test_a_folder_without_write_permission_is_told_before_work():
    """Root may write anywhere, so it lets go of its rights for a moment."""
    rights = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        write_array(f"{name}/x.zarr", X)
        Path(name).chmod(0o555)
        try:
            os.seteuid(rights or 65534)
            with pytest.raises(
                UsageError, match=f"^double: result {name}/y.zarr cannot be written: no permission to write"
            ):
                run_commands.double(source=f"{name}/x.zarr", result=f"{name}/y.zarr")
        finally:
            os.seteuid(rights)
            Path(name).chmod(0o755)


def test_all_problems_are_told_at_once(folder):
    """A34."""
    write_array("long.zarr", np.zeros(3, dtype=np.float32))
    write_array("wide.zarr", np.zeros((2, 3), dtype=np.float64))
    with pytest.raises(ProblemsError) as caught:
        run_commands.sum_all(ras=["x.zarr", "none.zarr", "long.zarr", "wide.zarr"], result="x.zarr")
    text = str(caught.value)
    assert "sum-all: ras: none.zarr does not exist; expected a zarr array" in text
    assert "sum-all: ras long.zarr has shape (3,); expected (nlines, width)" in text
    assert "sum-all: ras wide.zarr is float64; expected float32" in text
    assert "sum-all: ras wide.zarr has shape (2, 3); expected nlines 6, as in ras x.zarr" in text
    assert "result x.zarr is, or is inside, or holds ras x.zarr" in text
    assert run_commands.calls() == 0


def test_an_unfinished_input_is_refused(folder):
    """A24."""
    store.create(Layout("half.zarr", X.shape, "float32", (4, 4)), "half.zarr", {store.UNFINISHED: "amp-disp"})
    with pytest.raises(IncompleteError, match=r"double: source: half.zarr is unfinished: amp-disp stopped"):
        double(source="half.zarr")


def test_an_input_that_has_lost_a_chunk_is_refused(folder):
    """A24: what moraine wrote has a file for every chunk; without one, a hole would be read as data."""
    double(result="z.zarr")
    next(Path("z.zarr").glob("c/*/*")).unlink()
    with pytest.raises(IncompleteError, match=r"double: source: z.zarr lacks 1 of its chunks, the first at \(\d, \d\)"):
        double(source="z.zarr", result="y.zarr")
    assert not Path("y.zarr").exists()


def test_an_array_of_another_program_may_leave_chunks_to_the_fill_value(folder):
    zarr.create_array("other.zarr", shape=X.shape, chunks=(4, 4), dtype="float32", fill_value=3.0)
    double(source="other.zarr", result="y.zarr")
    assert (read_array("y.zarr") == 6.0).all()


def test_a_missing_input_is_a_file_not_found(folder):
    with pytest.raises(StoreNotFoundError, match=r"double: source: none.zarr does not exist"):
        double(source="none.zarr")


def test_a_value_that_a_declaration_refuses_is_a_usage_error(folder):
    with pytest.raises(UsageError, match=r"^double: factor is 0; expected anything else$"):
        double(factor=0)


def test_cuda_without_a_gpu_kernel_is_refused(folder):
    """A55."""
    with pytest.raises(UsageError, match=r"double has no GPU kernel; leave out --cuda"):
        run_commands.double(source="x.zarr", result="y.zarr", workers=Workers(cuda=True))


def test_two_runs_at_once_are_refused_with_a_sentence(folder):
    double()
    before = tree(folder)
    with (
        store.exclusive(folder / ".y.zarr.moraine" / "lock", "test"),
        pytest.raises(BusyError, match=rf"double: .*/y.zarr is in use by another moraine \(process {os.getpid()}\)"),
    ):
        double()
    (folder / ".y.zarr.moraine").rmdir()
    assert tree(folder) == before


def test_a_busy_second_output_leaves_nothing_beside_the_first(folder):
    with store.exclusive(folder / ".b.zarr.moraine" / "lock", "test"), pytest.raises(BusyError):
        run_commands.split(source="x.zarr", tens="a.zarr", ones="b.zarr", workers=ONE)
    assert not Path(".a.zarr.moraine").exists()


# ---------------------------------------------------------------------------------------------------- disk


def test_a_full_disk_is_named_and_the_finished_tasks_are_kept(folder, monkeypatch):
    """A28."""
    original = store.parallel_write_zarr
    written = []

    def write(array, *rest, **options):
        with store.disk_errors("y.zarr"):
            if len(written) == 4:
                raise OSError(errno.ENOSPC, "No space left on device")
        written.append(1)
        original(array, *rest, **options)

    monkeypatch.setattr(store, "parallel_write_zarr", write)
    with pytest.raises(DiskFullError, match=r"^y.zarr: no space left on the device; what was done so far is kept"):
        double()
    monkeypatch.setattr(store, "parallel_write_zarr", original)
    calls = run_commands.calls()
    double()
    assert run_commands.calls() - calls == 2
    np.testing.assert_array_equal(read_array("y.zarr"), 2 * X)


# ------------------------------------------------------------------------------------------------- dry run


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (run_commands.double, {"source": "x.zarr", "result": "new/y.zarr"}),
        (run_commands.center, {"source": "x.zarr", "result": "new/y.zarr"}),
        (run_commands.detour, {"source": "x.zarr", "result": "new/y.zarr", "scratch": "elsewhere"}),
        (run_commands.tidy, {"result": "t.txt"}),
    ],
)
def test_a_dry_run_changes_nothing_on_disk(folder, command, arguments):
    before = tree(folder)
    record = command(**arguments, dry_run=True)
    assert tree(folder) == before
    assert run_commands.calls() == 0
    assert record.outputs == [str(folder / arguments["result"])]


def test_a_dry_run_tells_outputs_bytes_tasks_and_memory(folder):
    (plan,) = double(dry_run=True).plans
    assert plan["outputs"] == [
        {"path": "y.zarr", "shape": [6, 10], "dtype": "float32", "chunks": [4, 4], "bytes": 6 * 10 * 4}
    ]
    assert plan["tasks"] == 2 * 3
    assert plan["task_bytes"] >= 2 * 4 * 4 * 4, "input and result of the largest task"


def test_a_dry_run_finds_the_same_faults(folder):
    with pytest.raises(StoreNotFoundError):
        double(source="none.zarr", dry_run=True)


# -------------------------------------------------------------------------------------------------- memory


class TightExecutor:
    """Lets a task have so many bytes at most."""

    def __init__(self, monkeypatch, limit):
        monkeypatch.setattr("moraine_core.executor.Executor.fits", lambda _, need: need <= limit)


def plan_bytes(command, **arguments):
    return command(source="x.zarr", result="y.zarr", dry_run=True, **arguments).plans[0]["task_bytes"]


@pytest.fixture
def large(folder):
    """An input of one chunk, 64 x 96."""
    x = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    write_array("x.zarr", x)
    return x


@pytest.mark.parametrize("command", [run_commands.double, run_commands.center])
def test_blocks_are_lowered_to_fit_memory_when_they_were_not_given(large, monkeypatch, command, caplog):
    command(source="x.zarr", result="whole.zarr", workers=ONE)
    TightExecutor(monkeypatch, plan_bytes(command, chunks=(32, 48)))
    with caplog.at_level(logging.INFO, logger="moraine"):
        command(source="x.zarr", result="y.zarr", workers=ONE)
    chunks = store.describe("y.zarr").chunks
    assert chunks[0] * chunks[1] < 64 * 96
    assert min(chunks) >= 16
    np.testing.assert_array_equal(read_array("y.zarr"), read_array("whole.zarr"))
    assert "so that a task of" in caplog.text


def test_blocks_that_were_given_are_refused_with_the_largest_that_fits(large, monkeypatch):
    limit = plan_bytes(run_commands.double, chunks=(64, 30))
    TightExecutor(monkeypatch, limit)
    with pytest.raises(
        MemoryBudgetError, match=r"--chunks 64 96: one task needs .* the largest that fits is --chunks"
    ) as e:
        double(chunks=(64, 96))
    named = tuple(map(int, str(e.value).rpartition("--chunks ")[2].split()))
    assert plan_bytes(run_commands.double, chunks=named) <= limit
    longer = [(named[0] + 1, named[1]), (named[0], named[1] + 1)]
    assert any(plan_bytes(run_commands.double, chunks=chunks) > limit for chunks in longer)
    double(chunks=named)
    np.testing.assert_array_equal(read_array("y.zarr"), 2 * large)


def test_a_refusal_for_memory_leaves_nothing(folder, monkeypatch):
    TightExecutor(monkeypatch, 1)
    with pytest.raises(MemoryBudgetError, match=r"double: one task needs .*; raise --max-memory"):
        double()
    assert os.listdir(folder) == ["x.zarr"]


def test_a_later_plan_that_does_not_fit_starts_over_with_smaller_blocks(large, monkeypatch):
    """A generator's second plan is known only when its first is done."""
    first = plan_bytes(run_commands.center)  # reads only; the second plan writes as well
    TightExecutor(monkeypatch, first)
    run_commands.center(source="x.zarr", result="y.zarr", workers=ONE)
    chunks = store.describe("y.zarr").chunks
    assert chunks[0] * chunks[1] < 64 * 96
    np.testing.assert_array_equal(read_array("y.zarr"), large - np.float32(large.mean(dtype=np.float64)))


# --------------------------------------------------------------------------------------------- logs, events


def test_the_log_names_parameters_arrays_workers_and_progress(folder, caplog):
    with caplog.at_level(logging.INFO, logger="moraine"):
        double(factor=3)
    text = caplog.text
    assert "source=x.zarr, result=y.zarr, factor=3" in text
    assert "source: x.zarr (6, 10) float32, chunks (4, 4)" in text
    assert "workers: 1 threads" in text
    assert all(f"double: {n}/6 done" in text for n in range(1, 7))
    assert "workers: stopped, peak memory" in text


class Listener:
    def __init__(self):
        self.heard = []

    def notify(self, hook, **facts):
        self.heard.append((hook, facts))


def test_observers_hear_of_plans_tasks_and_the_end(folder):
    host = Listener()
    record = run_command(run_commands.center, {"source": "x.zarr", "result": "y.zarr"}, ONE, host=host)
    hooks = [hook for hook, _ in host.heard]
    assert hooks == ["moraine_plan_ready", *["moraine_task_done"] * 6] * 2 + ["moraine_finished"]
    events = [facts["event"] for hook, facts in host.heard if hook == "moraine_task_done"]
    assert [event.number for event in events] == [*range(6)] * 2
    assert {event.total for event in events} == {6}
    assert sum(event.result for event in events[:6]) == X.sum()
    assert host.heard[-1][1]["record"] is record
    assert record.peak_bytes > 2**20


def test_observers_hear_the_end_of_a_failure_and_nothing_of_a_dry_run(folder, monkeypatch):
    host = Listener()
    run_command(run_commands.double, {"source": "x.zarr", "result": "y.zarr"}, ONE, RunOptions(dry_run=True), host=host)
    assert host.heard == []
    monkeypatch.setenv("RUN_STOP", "raise 2")
    with pytest.raises(ValueError, match="melted"):
        run_command(run_commands.double, {"source": "x.zarr", "result": "y.zarr"}, ONE, host=host)
    hook, facts = host.heard[-1]
    assert hook == "moraine_finished"
    assert facts["record"].error == "ValueError: the glacier melted"


def test_a_pool_keeps_its_workers_for_the_next_command(folder):
    processes = Workers(n_workers=1, processes=True)
    with ExecutorPool() as pool:
        arguments = {"source": "x.zarr", "result": "y.zarr"}
        run_command(run_commands.double, arguments, processes, pool=pool)
        first = pool.get(processes, RunOptions(), None).backend.pids()
        run_command(run_commands.double, {**arguments, "factor": 5}, processes, pool=pool)
        assert pool.get(processes, RunOptions(), None).backend.pids() == first
        run_command(run_commands.double, arguments, ONE, pool=pool)
        assert pool.get(ONE, RunOptions(), None).backend.pids() == []
    assert not any(Path(f"/proc/{pid}").exists() for pid in first)


def test_a_named_executor_runs_the_tasks_and_is_never_passed_over_in_silence(folder):
    """A55."""
    backends = []

    class Host(Listener):
        def backend(self, workers):
            backends.append(ThreadBackend(2))
            return backends[-1]

    arguments = {"source": "x.zarr", "result": "y.zarr"}
    run_command(run_commands.double, arguments, Workers(executor="moon"), host=Host())
    assert len(backends) == 1
    np.testing.assert_array_equal(read_array("y.zarr"), 2 * X)
    with pytest.raises(UsageError, match=r"executor moon is named, but no plugin host was given to find it"):
        run_commands.double(**arguments, workers=Workers(executor="moon"))


# ------------------------------------------------------------------------------------ checking for pipelines


def test_a_check_knows_the_outputs_to_be(folder):
    before = tree(folder)
    known = check_command(run_commands.double, {"source": "x.zarr", "result": "y.zarr"}, ONE, expected={})
    array = known[str(folder / "y.zarr")]
    assert (array.shape, array.dtype, array.chunks) == ((6, 10), "float32", (4, 4))
    known = check_command(run_commands.double, {"source": "y.zarr", "result": "z.zarr"}, ONE, expected=known)
    assert known[str(folder / "z.zarr")].shape == (6, 10)
    assert tree(folder) == before


def test_a_check_believes_what_is_expected_rather_than_what_is_there(folder):
    write_array("y.zarr", np.zeros((2, 2), dtype=np.float64))
    known = check_command(run_commands.double, {"source": "x.zarr", "result": "z.zarr"}, ONE, expected={})
    expected = {str(folder / "y.zarr"): known[str(folder / "z.zarr")]}
    check_command(run_commands.double, {"source": "y.zarr", "result": "w.zarr"}, ONE, expected=expected)


def test_a_check_leaves_open_what_nobody_can_know_yet(folder):
    expected = {str(folder / "new.zarr"): None, str(folder / "pairs.txt"): None}
    known = check_command(run_commands.double, {"source": "new.zarr", "result": "z.zarr"}, ONE, expected=expected)
    assert known == {str(folder / "z.zarr"): None}
    arguments = {"source": "x.zarr", "result": "z.zarr", "pairs": "pairs.txt"}
    assert check_command(run_commands.listed, arguments, ONE, expected=expected) == {str(folder / "z.zarr"): None}


def test_a_check_reads_argument_files_that_are_there(folder):
    Path("pairs.txt").write_text("0 1\n")
    arguments = {"source": "x.zarr", "result": "z.zarr", "pairs": "pairs.txt"}
    known = check_command(run_commands.listed, arguments, ONE, expected={str(folder / "other.zarr"): None})
    assert known[str(folder / "z.zarr")].shape == (6, 10)


def test_argument_files_are_inputs_of_the_record(folder):
    Path("pairs.txt").write_text("0 1\n1 2\n2 3\n")
    record = run_commands.listed(source="x.zarr", result="y.zarr", pairs="pairs.txt", workers=ONE)
    assert set(record.inputs) == {"x.zarr", "pairs.txt"}
    np.testing.assert_array_equal(read_array("y.zarr"), 3 * X)
    record = run_commands.listed(source="x.zarr", result="y.zarr", pairs="[[0, 1]]", workers=ONE)
    assert set(record.inputs) == {"x.zarr"}


def test_a_plan_that_is_wrong_is_refused_before_any_task(folder, monkeypatch):
    """A21."""
    monkeypatch.setattr(run_commands, "blocks", lambda shape, _: blocks(shape, (2, 4)))
    with pytest.raises((LayoutError, ProblemsError), match=r"double: task 0 writes .* not made of whole chunks"):
        double()
    assert run_commands.calls() == 0
    assert os.listdir(folder) == ["x.zarr"]
