"""Running pipelines: order, failures, interruption, logs, pictures, and what is remembered."""

import json
import logging
import re
import shutil
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pipeline_commands
import pytest
from pipeline_project import CHAIN, actions, ran, step

from moraine_core import Layout, pipeline, store
from moraine_core.errors import (
    BusyError,
    DeviceError,
    LayoutError,
    MoraineError,
    ProblemsError,
    StoreNotFoundError,
    UsageError,
)
from moraine_core.pipeline.state import State

STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


def state(project):
    return json.loads((project.folder / ".moraine" / "chain" / "state.json").read_text(encoding="utf-8"))["steps"]


def failing(mode):
    return CHAIN.replace(
        '[[step]]\nname = "b"', step("bad", "note", result="bad.txt", mode=mode) + '[[step]]\nname = "b"'
    )


# --------------------------------------------------------------------------------------------------- running


def test_steps_run_in_order_and_give_what_their_commands_compute(project):
    result = project.run()
    assert result.ok
    assert (project.get("b.zarr") == 4 * project.x).all()
    assert result.fields == {
        "pipeline": str(project.file),
        "workdir": str(project.folder),
        "plan": result.plan,
        "steps": result.steps,
    }


def test_a_record_says_what_ran_when_and_what_came_of_it(project):
    record = project.run().steps[0]
    assert {key: record[key] for key in ("name", "command", "args", "status", "outputs", "log")} == {
        "name": "a",
        "command": "scale",
        "args": {"source": "x.zarr", "result": "a.zarr"},
        "status": "done",
        "outputs": ["a.zarr"],
        "log": ".moraine/chain/logs/a.log",
    }
    assert re.fullmatch(STAMP, record["started"])
    assert re.fullmatch(STAMP, record["finished"])
    assert record["inputs"] == {"x.zarr": store.stamp(project.folder / "x.zarr")}
    assert record["summaries"] == [{"path": "a.zarr", "kind": "array", "shape": [7], "dtype": "float32", "chunks": [3]}]
    assert set(record) == {
        *("name", "command", "hash", "args", "started", "finished", "log", "status"),
        *("seconds", "outputs", "inputs", "summaries"),
    }
    assert record == state(project)["a"]


def test_steps_run_in_the_work_directory_which_is_made_and_left_again(project):
    here = Path.cwd()
    project.write(step("n", "note", result="n.txt"))
    result = project.run(workdir=str(project.folder / "new" / "place"))
    assert result.ok
    assert (project.folder / "new" / "place" / "n.txt").read_text() == str(project.folder / "new" / "place")
    assert Path.cwd() == here


def test_workers_are_kept_between_steps_that_ask_for_the_same(project):
    third = step("d", "scale", source="x.zarr", result="d.zarr", n_workers=2)
    project.write("[defaults]\nn_workers = 1\n" + CHAIN + third)
    project.run()
    logs = {name: (project.folder / f".moraine/chain/logs/{name}.log").read_text() for name in "abd"}
    assert "workers: 1 threads" in logs["a"]
    assert "workers: " not in logs["b"]
    assert "workers: 2 threads" in logs["d"]


def test_scratch_and_fresh_reach_the_command(project, monkeypatch):
    """A55: both change how the command is run."""
    seen = []
    run_command = pipeline.runner.run_command

    def spy(command, arguments, workers, options, **kwargs):
        seen.append((options.scratch, options.fresh))
        return run_command(command, arguments, workers, options, **kwargs)

    monkeypatch.setattr(pipeline.runner, "run_command", spy)
    project.write(step("a", "scale", source="x.zarr", result="a.zarr", scratch="tmp"))
    project.run(fresh=True)
    project.run(force=True)
    assert seen == [("tmp", True), ("tmp", False)]


# -------------------------------------------------------------------------------------------------- failures


def test_the_first_failure_stops_the_run_and_is_recorded(project):
    """A13, A54: no later step runs on what is not there."""
    here = Path.cwd()
    project.write(failing("raise"))
    result = project.run()
    assert not result.ok
    assert ran(result) == ["a", "bad"]
    record = result.steps[-1]
    assert record["status"] == "failed"
    assert record["error"] == "RuntimeError: the glacier melted"
    assert "outputs" not in record
    assert "bad failed: RuntimeError: the glacier melted; its log is .moraine/chain/logs/bad.log" in result.text
    assert Path.cwd() == here
    assert not (project.folder / "b.zarr").exists()
    assert project.actions() == {
        "a": "skip (done)",
        "bad": "run (previous run failed)",
        "b": "run (not run yet)",
        "c": "run (not run yet)",
    }


def test_an_outside_program_that_is_killed_stops_the_run_with_its_command_and_signal(project):
    """A13."""
    project.write(failing("program"))
    result = project.run()
    assert ran(result) == ["a", "bad"]
    assert "kill -9" in result.steps[-1]["error"]
    assert "SIGKILL" in result.steps[-1]["error"]


def test_a_step_that_ends_quietly_without_its_output_has_failed(project):
    """A54."""
    project.write(step("n", "note", result="n.txt", mode="nothing"))
    result = project.run()
    assert not result.ok
    assert result.steps[0]["error"].startswith("IncompleteError: ")
    assert "n.txt" in result.steps[0]["error"]


def test_a_missing_input_fails_its_step_in_the_run(project):
    shutil.rmtree(project.folder / "x.zarr")
    result = project.run()
    assert ran(result) == ["a"]
    assert "x.zarr does not exist" in result.steps[0]["error"]


def test_gpus_that_are_not_there_are_told_before_the_first_step_runs(project, monkeypatch):
    """A35: not after the hours of the steps before."""
    monkeypatch.setattr("moraine_core.device.driver_gpus", list)
    project.write(CHAIN.replace('result = "b.zarr"', 'result = "b.zarr"\ncuda = true'))
    for options in ({}, {"check": True}):
        with pytest.raises(DeviceError, match=f"{project.file}: step b: no GPU"):
            project.run(**options)
    assert not (project.folder / "a.zarr").exists()
    assert project.run(only=["a", "c"]).ok


# ---------------------------------------------------------------------------------------------- interruption


def test_an_interrupted_step_has_no_done_record_and_runs_again(project):
    here = Path.cwd()
    project.write(failing("interrupt"))
    with pytest.raises(KeyboardInterrupt):
        project.run()
    assert Path.cwd() == here
    found = {name: s["status"] for name, s in project.status().items()}
    assert found == {"a": "done", "bad": "interrupted", "b": "pending", "c": "pending"}
    assert project.actions()["bad"] == "run (not run yet)"
    project.write(failing("write"))
    assert ran(project.run()) == ["bad", "b", "c"]


def test_an_interrupted_rerun_forgets_that_the_step_was_done(project):
    project.write(step("n", "note", result="n.txt"))
    project.run()
    project.write(step("n", "note", result="n.txt", mode="interrupt"))
    with pytest.raises(KeyboardInterrupt):
        project.run()
    project.write(step("n", "note", result="n.txt"))
    assert project.actions() == {"n": "run (not run yet)"}


def test_a_running_pipeline_is_locked_and_a_killed_one_is_not(project):
    flag = project.folder / "flag"
    project.write(failing("wait").replace('mode = "wait"', f'mode = "wait"\nflag = "{flag}"'))
    process = project.in_another_process()
    try:
        deadline = time.monotonic() + 60
        while not (project.folder / ".moraine").exists() or project.status()["bad"]["status"] == "pending":
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert project.status()["bad"]["status"] == "running"
        with pytest.raises(BusyError, match=str(process.pid)):
            project.run()
        assert project.actions()["a"] == "skip (done)"
    finally:
        process.kill()
        process.wait()
    assert project.status()["bad"]["status"] == "interrupted"
    flag.touch()
    result = project.run()
    assert result.ok
    assert ran(result) == ["bad", "b", "c"]


def test_another_process_finds_what_is_done_whatever_the_order_of_the_arguments(project):
    """Resuming tomorrow must find the steps of today."""
    project.write(step("n", "note", mode="write", result="n.txt"))
    project.run()
    project.write(step("n", "note", result="n.txt", mode="write"))
    with project.in_another_process(options="dry_run=True", stdout=subprocess.PIPE, text=True) as process:
        printed, _ = process.communicate(timeout=60)
    assert printed.strip() == "{'n': 'skip (done)'}"


def test_a_process_of_another_machine_is_taken_to_run(project):
    project.run()
    record = {**state(project)["a"], "status": "running", "process": {"host": "elsewhere", "pid": 1, "created": 0.0}}
    State(project.load()).put(record)
    assert project.status()["a"]["status"] == "running"


def test_a_state_that_cannot_be_written_leaves_the_one_before_whole(project):
    """A54: the record is replaced as a whole or not at all."""
    project.run()
    before = state(project)
    in_the_way = project.folder / ".moraine" / "chain" / ".state.json.part"
    in_the_way.mkdir()
    with pytest.raises(IsADirectoryError):
        project.run(force=True)
    assert state(project) == before
    in_the_way.rmdir()
    assert project.actions() == dict.fromkeys("abc", "skip (done)")


def test_a_state_that_is_not_one_is_named(project):
    project.run()
    file = project.folder / ".moraine" / "chain" / "state.json"
    file.write_text("[]", encoding="utf-8")
    with pytest.raises(MoraineError, match=re.escape(str(file))):
        project.run()


# ---------------------------------------------------------------------------------------------------- status


def test_status_tells_each_step_and_changes_nothing(project):
    before = sorted(project.folder.rglob("*"))
    assert project.status() == {
        name: {"name": name, "command": command, "status": "pending"}
        for name, command in (("a", "scale"), ("b", "scale"), ("c", "note"))
    }
    assert sorted(project.folder.rglob("*")) == before
    project.write(failing("raise"))
    project.run()
    found = project.status()
    assert found["bad"]["status"] == "failed"
    assert found["bad"]["error"] == "RuntimeError: the glacier melted"
    assert set(found["a"]) == {"name", "command", "status", "seconds", "finished", "log", "outputs"}
    project.write(CHAIN)
    project.run()
    project.put("x.zarr", project.x)
    found = {name: s["status"] for name, s in project.status().items()}
    assert found == {
        "a": "outdated, will run (input changed: x.zarr)",
        "b": "outdated, will run (input will change: a.zarr)",
        "c": "done",
    }


# ------------------------------------------------------------------------------------------------------ logs


def test_each_step_has_a_log_of_its_own_from_info_on_even_if_the_logger_is_quiet(project):
    log = logging.getLogger("moraine")
    log.setLevel(logging.WARNING)
    try:
        project.run()
        assert log.level == logging.WARNING
    finally:
        log.setLevel(logging.NOTSET)
    assert log.handlers == []
    logs = {name: (project.folder / f".moraine/chain/logs/{name}.log").read_text() for name in "abc"}
    assert re.search(rf"^{STAMP},\d+ - scale - INFO - scale .*result=a\.zarr", logs["a"], re.MULTILINE)
    assert "result=b.zarr" in logs["b"]
    assert "result=b.zarr" not in logs["a"] + logs["c"]


def test_the_log_of_a_failed_step_ends_in_the_traceback(project):
    project.write(failing("raise"))
    project.run()
    text = (project.folder / ".moraine/chain/logs/bad.log").read_text()
    assert "Traceback" in text
    assert text.endswith("RuntimeError: the glacier melted\n")


# -------------------------------------------------------------------------------------------------- pictures

PICTURE = ".moraine/chain/quicklook/p__pyr.png"


def test_pyramids_among_the_outputs_are_drawn_and_nothing_else(project):
    project.write(
        step("s", "scale", source="x.zarr", result="s.zarr") + step("p", "pyramid", source="s.zarr", result="pyr")
    )
    result = project.run()
    assert "quicklooks" not in result.steps[0]
    assert result.steps[1]["quicklooks"] == [PICTURE]
    assert (project.folder / PICTURE).read_bytes() == b"a picture"
    assert project.status()["p"]["quicklooks"] == [PICTURE]


@pytest.mark.parametrize(
    ("head", "in_step", "asked", "drawn"),
    [
        ("", {}, True, True),
        ("", {}, False, False),
        ("", {"quicklook": False}, True, False),
        ("[pipeline]\nquicklook = false\n", {}, True, False),
        ("[pipeline]\nquicklook = false\n", {"quicklook": True}, True, True),
        ("", {"quicklook": True}, False, False),
    ],
)
def test_pictures_can_be_left_out_by_the_run_the_step_or_the_pipeline(project, head, in_step, asked, drawn):
    """A55."""
    project.write(head + step("p", "pyramid", source="x.zarr", result="pyr", **in_step))
    assert project.run(quicklook=asked).ok
    assert (project.folder / PICTURE).exists() == drawn


def test_a_step_says_how_its_pictures_are_drawn(project):
    """A55: each option reaches whoever draws; what is not given has the default."""
    (project.folder / "meta.toml").write_text('dates = ["20230106", "20230118"]\n')
    (project.folder / "pairs.txt").write_text("0 1\n1 3\n")
    table = '[step.quicklook]\nshow = "intf_all"\nindex = "${pair}"\ndates = "meta.toml"\nextent = [0, 1.5, 2, 3]\n'
    table += 'image_pairs = "pairs.txt"\n'
    project.write("[vars]\npair = '0,3'\n" + step("p", "pyramid", source="x.zarr", result="pyr") + table)
    pipeline_commands.PICTURES.clear()
    assert project.run().ok
    assert pipeline_commands.PICTURES == [
        {
            "show": "intf_all",
            "index": (0, 3),
            "width": 1000,
            "extent": (0.0, 1.5, 2.0, 3.0),
            "dates": ["20230106", "20230118"],
            "image_pairs": ((0, 1), (1, 3)),
        }
    ]


def test_a_picture_that_cannot_be_drawn_is_only_warned_of(project, caplog):
    project.write(step("p", "pyramid", source="x.zarr", result="broken"))
    result = project.run()
    assert result.ok
    assert "quicklooks" not in result.steps[0]
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == ["no quicklook of broken: ValueError: no colors left"]


# ----------------------------------------------------------------------------------------------------- check


def test_a_check_validates_each_step_with_what_earlier_ones_will_write_and_does_nothing(project):
    """A35."""
    before = sorted(project.folder.rglob("*"))
    result = project.run(check=True)
    assert result.ok
    assert result.steps == []
    assert actions(result) == dict.fromkeys("abc", "run (not run yet)")
    assert sorted(project.folder.rglob("*")) == before


def test_a_check_tells_all_problems_of_all_steps_and_no_echoes_of_them(project):
    """A35: missing inputs and inputs of another dtype or shape, in one go."""
    project.put("flat.zarr", project.x[:5])
    store.create(Layout("whole.zarr", (7,), "int32", (7,)), project.folder / "whole.zarr")
    project.write(
        step("missing", "scale", source="no.zarr", result="m.zarr")
        + step("echo", "scale", source="m.zarr", result="e.zarr")
        + step("made", "scale", source="x.zarr", result="made.zarr")
        + step("shape", "total", result="t.zarr")
        + "[step.kw]\nleft = 'made.zarr'\nright = 'flat.zarr'\n"
        + step("dtype", "scale", source="whole.zarr", result="d.zarr")
    )
    with pytest.raises(ProblemsError) as caught:
        project.run(check=True)
    lines = [str(problem) for problem in caught.value.problems]
    assert [type(problem) for problem in caught.value.problems] == [StoreNotFoundError, LayoutError, LayoutError]
    assert lines[0].startswith(f"{project.file}: step missing: scale: source: no.zarr does not exist")
    assert "step shape: total: right flat.zarr has shape (5,); expected n 7" in lines[1]
    assert "step dtype: scale: source whole.zarr is int32; expected float32" in lines[2]


def test_a_check_reads_argument_files_that_are_there_and_expects_those_that_will_be_written(project):
    pairs = step("p", "chain-pairs", result="pairs.txt")
    weigh = step("w", "weigh", source="a.zarr", pairs="pairs.txt", result="w.zarr")
    first = step("a", "scale", source="x.zarr", result="a.zarr")
    project.write(first + pairs + weigh)
    assert project.run(check=True).ok
    project.write(first + weigh)
    with pytest.raises(UsageError, match=r"step w: weigh: pairs: No such file or directory: pairs\.txt"):
        project.run(check=True)
    (project.folder / "pairs.txt").write_text("0 1 2\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"step w: weigh: pairs is 'pairs\.txt'"):
        project.run(check=True)


def test_a_check_of_the_selected_steps_needs_what_the_others_would_have_written(project):
    with pytest.raises(StoreNotFoundError, match=r"step b: .*a\.zarr does not exist"):
        project.run(check=True, only=["b"])


def test_a_check_of_many_steps_on_a_large_stack_takes_seconds(project):
    """A35: under 10 s for 100 dates; metadata only, so the stack needs no values."""
    store.create(Layout("big", (10**8,), "float32", (10**6,)), project.folder / "big.zarr")
    names = ["big", *(f"s{n}" for n in range(15))]
    project.write("".join(step(b, "scale", source=f"{a}.zarr", result=f"{b}.zarr") for a, b in pairwise(names)))
    started = time.monotonic()
    assert project.run(check=True).ok
    assert time.monotonic() - started < 10


def test_a_check_in_a_work_directory_that_does_not_exist_is_a_usage_error(project):
    with pytest.raises(UsageError, match="nowhere does not exist"):
        project.run(check=True, workdir=str(project.folder / "nowhere"))


def test_a_step_that_writes_what_it_wrote_before_still_counts_as_changed_input(project):
    """Stamps decide, not values: a rewrite with the same values is a rewrite."""
    project.run()
    result = project.run(start="a", only=["a"])
    assert ran(result) == ["a"]
    assert np.array_equal(project.get("a.zarr"), 2 * project.x)
    assert project.actions()["b"] == "run (input changed: a.zarr)"
