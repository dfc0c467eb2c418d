"""The JSON contract: exactly one object on standard output, with exactly these fields, whatever happens."""

from __future__ import annotations

import json
import math
import os
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from run_support import Line, install

from moraine_core import store
from moraine_core.cli.main import run
from moraine_core.cli.result import Result, to_json
from moraine_core.hookspec import hookimpl
from moraine_core.plugins import HOOKS, PluginHost
from moraine_core.testing.data import write_array

ALWAYS = {"version", "ok"}
FAILURE = {*ALWAYS, "error"}
PROCESSING = {*ALWAYS, "command", "seconds", "outputs", "inputs", "summaries"}


@pytest.fixture
def line(tmp_path, monkeypatch):
    """A command line in a folder with one input."""
    monkeypatch.chdir(tmp_path)
    write_array("x.zarr", np.arange(60, dtype=np.float32).reshape(6, 10), chunks=(4, 4))
    return Line(tmp_path)


@pytest.fixture
def invoke(line, capsys):
    """Run a line in this process; return exit code and the one object."""
    from run_commands import make_host

    def run_here(*words, host=None):
        code = run([*map(str, words)], host or make_host())
        out = capsys.readouterr().out
        assert len(out.splitlines()) == 1, out
        return code, json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    return run_here


@pytest.mark.parametrize("place", [0, 1, 3, 7])
def test_a_processing_command_has_exactly_its_fields_wherever_json_stands(invoke, place):
    words = ["double", "--source", "x.zarr", "--result", "y.zarr", "--n-workers", "1"]
    words.insert(place, "--json")
    code, found = invoke(*words)
    assert code == 0
    assert set(found) == PROCESSING
    assert (found["version"], found["ok"], found["command"]) == (1, True, "double")
    assert found["outputs"] == ["y.zarr"]
    assert found["inputs"] == {"x.zarr": store.stamp("x.zarr")}
    assert round(found["seconds"], 1) == found["seconds"] >= 0
    assert found["summaries"] == [
        {"path": "y.zarr", "kind": "array", "shape": [6, 10], "dtype": "float32", "chunks": [4, 4]}
    ]


def test_a_dry_run_adds_only_the_plan(invoke):
    code, found = invoke("double", "--source", "x.zarr", "--result", "y.zarr", "--dry-run", "--json")
    assert code == 0
    assert set(found) == {*PROCESSING, "plan"}
    assert (found["outputs"], found["summaries"]) == ([], []), "nothing was made"
    assert set(found["plan"][0]) == {"outputs", "tasks", "task_bytes"}


def test_list_names_commands_with_module_and_summary(invoke):
    code, found = invoke("list", "--json")
    assert code == 0
    assert set(found) == {*ALWAYS, "commands"}
    assert {tuple(sorted(entry)) for entry in found["commands"]} == {("module", "name", "summary")}
    assert {"name": "double", "module": "run_commands", "summary": "Multiply numbers."} in found["commands"]


def test_info_summarizes_each_path_and_a_failing_summary_is_no_failure(invoke):
    Path("notes.txt").write_text("12345")
    code, found = invoke("info", "x.zarr", "notes.txt", "none", "--json")
    assert code == 0
    assert set(found) == {*ALWAYS, "summaries"}
    assert found["summaries"][0]["shape"] == [6, 10]
    assert found["summaries"][1] == {"path": "notes.txt", "kind": "file", "bytes": 5}
    assert found["summaries"][2] == {"path": "none", "error": "FileNotFoundError: none does not exist"}


def test_check_and_plugins_have_an_error_where_they_fail(invoke):
    code, found = invoke("check", "x.zarr", "--json")
    assert (code, set(found)) == (0, {*ALWAYS, "checks"})
    Path("x.zarr/c/0/0").unlink()
    code, found = invoke("check", "x.zarr", "--json")
    assert (code, set(found), found["error"]) == (1, {*FAILURE, "checks"}, "not whole: x.zarr")
    code, found = invoke("plugins", "--strict", "--json")
    assert (code, set(found)) == (0, {*ALWAYS, "plugins"})


def test_a_pipeline_lists_plan_and_steps_and_its_state(invoke):
    Path("p.toml").write_text('[[step]]\nname = "a"\nrun = "double"\nsource = "x.zarr"\nresult = "y.zarr"\n')
    code, found = invoke("--json", "run", "p.toml", "--dry-run")
    assert code == 0
    assert set(found) == {*ALWAYS, "pipeline", "workdir", "plan", "steps"}
    assert found["plan"] == [{"name": "a", "command": "double", "action": "run (not run yet)"}]
    assert found["steps"] == []
    code, found = invoke("--json", "run", "--only", "a", "p.toml")
    assert code == 0
    assert found["steps"][0]["status"] == "done"
    code, found = invoke("--json", "status", "p.toml")
    assert (code, set(found)) == (0, {*ALWAYS, "pipeline", "workdir", "steps"})
    assert found["steps"][0]["status"] == "done"


def test_a_failed_pipeline_has_no_error_but_the_failed_step(invoke):
    Path("p.toml").write_text('[[step]]\nname = "a"\nrun = "tidy"\nmode = "raise"\nresult = "t.txt"\n')
    code, found = invoke("--json", "run", "p.toml")
    assert code == 1
    assert set(found) == {*ALWAYS, "pipeline", "workdir", "plan", "steps"}
    assert not found["ok"]
    assert found["steps"][0]["error"] == "ValueError: the glacier melted"


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        ([], 2, "no command"),
        (["duoble"], 2, "no command duoble; did you mean double?"),
        (["double"], 2, "double: missing --source, --result"),
        (["double", "--sourc", "x.zarr"], 2, "--sourc"),
        (["double", "--source"], 2, "--source"),
        (["double", "stray"], 2, "stray"),
        (["double", "--source", "none.zarr", "--result", "y.zarr"], 1, "double: source: none.zarr does not exist"),
        (["double", "--source", "x.zarr", "--result", "x.zarr"], 2, "double: result x.zarr is, or is inside"),
        (
            ["double", "--source", "x.zarr", "--result", "y.zarr", "--factor", "two"],
            2,
            "factor is 'two'; expected a number",
        ),
        (["double", "--source", "x.zarr", "--result", "y.zarr", "--max-memory", "1"], 1, "double: one task needs"),
        (["double", "--source", "x.zarr", "--result", "y.zarr", "--executor", "moon"], 2, "no executor moon"),
        (["double", "--source", "x.zarr", "--result", "y.zarr", "--n-workers", "0"], 2, "n_workers is 0"),
        (["tidy", "--result", "t.txt", "--mode", "raise"], 1, "ValueError: the glacier melted"),
        (["planless", "--result", "t.txt"], 1, "t.txt was not written"),
        (["info"], 2, "PATH..."),
        (["check", "none.zarr"], 1, "none.zarr does not exist"),
        (["run", "none.toml"], 2, "none.toml"),
        (["status", "none.toml"], 2, "none.toml"),
        (["list", "--log"], 2, "--log needs the name of a file"),
        (["list", "--log", "x.zarr"], 2, "--log x.zarr cannot be written"),
        (["quicklook", "none"], 1, "quicklook: none does not exist; expected a pyramid"),
        (["view", "none"], 1, "view: none does not exist; expected a pyramid, or a folder with pyramids"),
        (["view", "."], 2, "view: nothing installed shows pyramids; it comes with moraine-view"),
        (["pc-hix"], 2, "pc-hix is not installed; it comes with moraine-points: pip install moraine-points"),
    ],
)
def test_any_failure_is_one_object_with_an_error(invoke, words, code, error):
    found_code, found = invoke("--json", *words)
    assert set(found) == FAILURE
    assert (found["version"], found["ok"]) == (1, False)
    assert error in found["error"]
    assert found_code == code


def test_a_crash_in_a_kernel_names_the_task(line):
    """A12: of the failed chunk, the object and the exit code tell."""
    Path("calls").mkdir()
    code, found = line.json(
        "double", "--source", "x.zarr", "--result", "y.zarr", "--processes", "--n-workers", 1,
        RUN_CALLS=str(Path("calls").absolute()), RUN_STOP="raise 2",
    )  # fmt: skip
    assert code == 1
    assert set(found) == FAILURE
    assert found["error"].startswith("ValueError: the glacier melted\nin double, task 1 of 6: twice(")


def test_what_plugins_kernels_and_c_libraries_print_is_not_on_standard_output(line):
    site = line.folder / "loud"
    text = (
        "print('an import speaks')\nfrom run_commands import noisy as loud\nobject.__setattr__(loud, 'name', 'loud')\n"
    )
    install(site, "loud", commands={"loud": "loud_commands:loud"}, modules={"loud_commands": text})
    line.environ["PYTHONPATH"] = os.pathsep.join([str(site), str(Path(__file__).parent / "helpers")])
    for workers in ([], ["--processes", "--n-workers", "1"]):
        done = line.run("loud", "--source", "x.zarr", "--result", "y.zarr", "--json", *workers)
        assert len(done.out.splitlines()) == 1, done.out
        assert json.loads(done.out)["ok"]
        for said in ("an import speaks", "a declaration speaks", "a kernel speaks", "a library writes", "C prints"):
            assert said in done.err


def test_text_on_standard_output_is_the_result_alone(line):
    done = line.run("noisy", "--source", "x.zarr", "--result", "y.zarr")
    first, second = done.out.splitlines()
    assert first.startswith("noisy finished in ")
    assert first.endswith(" s")
    assert second == "y.zarr: array, shape (6, 10), dtype float32, chunks (4, 4)"


def test_what_is_not_finite_is_null():
    value = {"a": math.nan, "b": [math.inf, -math.inf, (1.5, math.nan)], 3: "NaN"}
    assert json.loads(to_json(value)) == {"a": None, "b": [None, None, [1.5, None]], "3": "NaN"}


def test_statistics_of_a_plugin_are_numbers_and_null_where_not_finite(invoke, monkeypatch):
    class Statistics:
        @staticmethod
        @hookimpl
        def moraine_summary(path):
            return {
                "kind": "array",
                "mean": math.nan,
                "min": np.float32("inf"),
                "max": np.float32(0.5),
                "n": np.int64(3),
            }

    monkeypatch.setitem(sys.modules, "statistics_plugin", Statistics)
    host = PluginHost([EntryPoint("statistics", "statistics_plugin", HOOKS)], blocked=())
    _, found = invoke("info", "x.zarr", "--json", host=host)
    assert found["summaries"] == [{"path": "x.zarr", "kind": "array", "mean": None, "min": None, "max": 0.5, "n": 3}]


def test_any_path_can_be_told(capfdbinary):
    """A name that is no valid text in any encoding must not break the object."""
    sys.stdout.write(Result(fields={"path": os.fsdecode(b"\xff.zarr")}).as_json())
    out = capfdbinary.readouterr().out
    assert os.fsencode(json.loads(out)["path"]) == b"\xff.zarr"
