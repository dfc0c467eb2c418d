"""The command line: options from declarations, spellings, streams, logs and exit codes."""

from __future__ import annotations

import json
import logging
import re
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
import run_commands
from run_support import Line, tree

from moraine_core import __version__, store
from moraine_core.cli.main import run
from moraine_core.cli.output import take_globals
from moraine_core.errors import UsageError
from moraine_core.plugins import COMMANDS, PluginHost
from moraine_core.testing.data import read_array, write_array

X = np.arange(60, dtype=np.float32).reshape(6, 10)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with one input, as current directory."""
    monkeypatch.chdir(tmp_path)
    write_array("x.zarr", X, chunks=(4, 4))
    return tmp_path


@pytest.fixture
def invoke(folder, capsys):
    """Run a line in this process; return exit code, standard output and standard error."""

    def run_here(*words, host=None):
        code = run([*map(str, words)], host or run_commands.make_host())
        out, err = capsys.readouterr()
        return code, out, err

    return run_here


@pytest.fixture
def echo(invoke):
    """Return the arguments with which a command arrives."""

    def arrive(*words):
        code, _, err = invoke("echo", "--result", "e.json", *words)
        assert code == 0, err
        return json.loads(Path("e.json").read_text())

    return arrive


# ------------------------------------------------------------------------------------------------ arguments


def test_options_have_their_declared_defaults(echo):
    assert echo() == {
        "text": "", "is_shp_dir": True, "count": 1, "scale": 1.5, "chunks": [1000, 1000], "points": 10, "shape": None,
        "extent": None, "method": "mean", "paths": None, "pairs": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--text", "a b"], "text", "a b"),
        (["--text=-x"], "text", "-x"),
        (["--text", ""], "text", ""),
        (["--is-shp-dir"], "is_shp_dir", True),
        (["--is_shp_dir"], "is_shp_dir", True),
        (["--no-is-shp-dir"], "is_shp_dir", False),
        (["--no-is_shp_dir"], "is_shp_dir", False),
        (["--no_is_shp_dir"], "is_shp_dir", False),
        (["--count", "-3"], "count", -3),
        (["--count=-3"], "count", -3),
        (["--scale", "-.5"], "scale", -0.5),
        (["--scale", "1e3"], "scale", 1000),
        (["--chunks", "10", "20"], "chunks", [10, 20]),
        (["--chunks", "10,20"], "chunks", [10, 20]),
        (["--chunks", "(10,20)"], "chunks", [10, 20]),
        (["--chunks", "(10,", "20)"], "chunks", [10, 20]),
        (["--chunks", "[10, 20]"], "chunks", [10, 20]),
        (["--chunks=10,20"], "chunks", [10, 20]),
        (["--chunks=-1,-1"], "chunks", [-1, -1]),
        (["--chunks", "-1,-1"], "chunks", [-1, -1]),
        (["--chunks", "-1", "-1"], "chunks", [-1, -1]),
        (["--chunks", "-1", "5"], "chunks", [-1, 5]),
        (["--chunks", "5", "-1"], "chunks", [5, -1]),
        (["--chunks", "5", "--chunks", "6"], "chunks", [5, 6]),
        (["--points", "20000"], "points", 20000),
        (["--points", "-1"], "points", -1),
        (["--shape", "7"], "shape", [7]),
        (["--shape", "7", "8", "9"], "shape", [7, 8, 9]),
        (["--extent", "-1.5", "2"], "extent", [-1.5, 2]),
        (["--extent", "-1.5,2e1"], "extent", [-1.5, 20]),
        (["--method", "decimate"], "method", "decimate"),
        (["--pairs", "[[0,1],[1,2]]"], "pairs", [[0, 1], [1, 2]]),
        (["--kw", "layer-name=5", "--kw", "other=a=b"], "layer_name", "5"),
        (["--kw", "x=1", "--kw", "other=a=b"], "other", "a=b"),
    ],
)
def test_every_kind_of_argument_in_every_spelling(echo, words, name, value):
    assert echo(*words)[name] == value
    assert echo("--no-is-shp-dir", *words, "--text", "t")[name] in (value, "t"), "whatever stands around it"


@pytest.mark.parametrize(
    "words", [["--paths", "a", "b c"], ["--paths", "a", "--paths", "b c"], ["--paths=a", "--paths=b c"]]
)
def test_a_list_has_one_or_more_paths(echo, words):
    for name in ("a", "b c"):
        Path(name).touch()
    assert echo(*words)["paths"] == ["a", "b c"]
    assert echo("--paths", "a")["paths"] == ["a"]
    assert echo("--paths", "a", "b c", "--count", "2")["count"] == 2


def test_a_pairs_file_is_opened_only_when_the_command_runs(invoke, echo):
    Path("pairs.txt").write_text("0 1\n1 2\n")
    assert echo("--pairs", "pairs.txt")["pairs"] == [[0, 1], [1, 2]]
    code, _, err = invoke("echo", "--result", "e.json", "--pairs", "none.txt")
    assert (code, err.splitlines()[-1]) == (2, "moraine: echo: pairs: No such file or directory: none.txt")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--chunks", "5"], "echo: chunks is ['5']; expected 2 whole numbers"),
        (["--chunks", "1", "2", "3"], "echo: chunks is ['1', '2', '3']; expected 2 whole numbers"),
        (["--count", "1.5"], "echo: count is '1.5'; expected a whole number"),
        (["--method", "median"], "echo: method is 'median'; expected one of mean, decimate"),
        (
            ["--kw", "novalue"],
            "echo: --kw novalue; expected NAME=VALUE with a name that is not an option's, given once",
        ),
        (["--kw", "count=1"], "echo: --kw count=1; expected NAME=VALUE"),
        (["--kw", "n_workers=1"], "echo: --kw n_workers=1; expected NAME=VALUE"),
        (["--kw", "fresh=1"], "echo: --kw fresh=1; expected NAME=VALUE"),
        (["--kw", "a=1", "--kw", "a=2"], "echo: --kw a=2; expected NAME=VALUE"),
        (["--kw", "is-shp-dir=1"], "echo: --kw is-shp-dir=1; expected NAME=VALUE"),
        (["--pairs", "[[0,1,2]]"], "echo: pairs is '[[0,1,2]]'; expected a file or list"),
        (["--cout", "1"], "--count"),
        (["--n-workers", "2"], "--n-workers"),
        (["stray"], "stray"),
        (["--paths", "none"], "echo: paths: none does not exist; expected a file"),
    ],
)
def test_a_line_that_is_wrong_says_how(invoke, words, sentence):
    before = tree(".")
    code, out, err = invoke("echo", "--result", "e.json", *words)
    assert code == (1 if "does not exist" in sentence else 2)
    assert out == ""
    assert sentence in err.splitlines()[-1]
    assert tree(".") == before


def test_keywords_are_only_for_commands_that_take_them(invoke):
    code, _, err = invoke("double", "--source", "x.zarr", "--result", "y.zarr", "--kw", "a=1")
    assert code == 2
    assert "--kw" in err


def test_all_that_is_missing_is_listed_and_close_names_are_suggested(invoke):
    assert invoke("split", "--tens", "t")[::2] == (2, "moraine: split: missing --source, --ones\n")
    code, _, err = invoke("double", "--resutl", "y.zarr")
    assert code == 2
    assert "--result" in err
    assert invoke("duoble")[::2] == (2, "moraine: no command duoble; did you mean double?\n")


def test_a_command_may_be_written_with_underscores(invoke):
    code, out, _ = invoke("sum_all", "--ras", "x.zarr", "x.zarr", "--result", "y.zarr")
    assert code == 0
    assert out.startswith("sum-all finished")
    np.testing.assert_array_equal(read_array("y.zarr"), 2 * X)


def test_options_of_a_pipeline_take_one_word_so_that_the_file_may_follow(invoke):
    Path("p.toml").write_text('[[step]]\nname = "a"\nrun = "tidy"\nresult = "${out}"\n')
    code, _, err = invoke("run", "--var", "out=t.txt", "--only", "a", "p.toml")
    assert code == 0, err
    assert Path("t.txt").exists()
    code, out, _ = invoke("status", "--var", "out=t.txt", "p.toml")
    assert (code, out) == (0, "a  tidy: done\n")
    code, _, err = invoke("run", "--var", "out", "p.toml")
    assert (code, err) == (2, "moraine: --var out; expected NAME=VALUE\n")


# ----------------------------------------------------------------------------------------------------- help


def test_help_says_role_shape_dtype_unit_and_default(invoke):
    code, out, err = invoke("echo", "--help")
    assert (code, err) == (0, "")
    text = " ".join(out.split())
    assert "--chunks INT INT a block (pixels) [default: 1000 1000]" in text
    assert "--is-shp-dir / --no-is-shp-dir a switch" in text
    assert "--result PATH arguments as JSON [output] [required]" in text
    assert "--kw NAME=VALUE any names, by name (may be repeated)" in text
    assert "--n-workers" not in text, "a command without tasks has no workers"
    assert "Anywhere on the line: --json" in text
    _, out, _ = invoke("double", "-h")
    text = " ".join(out.split())
    assert "--source PATH numbers [input, (nlines, width), float32] [required]" in text
    assert "--result PATH numbers [output, (nlines, width), float32, m] [required]" in text
    assert "--max-memory SIZE" in text
    assert "--cuda" not in text, "a command without a GPU kernel has no GPUs"


def test_the_list_of_commands_names_families_and_what_cannot_be_used(invoke):
    host = PluginHost(
        [EntryPoint("double", "run_commands:double", COMMANDS), EntryPoint("lost", "no_such_module:x", COMMANDS)],
        blocked=(),
    )
    for words in ([], ["--help"], ["list"]):
        code, out, _ = invoke(*words, host=host)
        assert code == 0
        assert re.search(r"double +Multiply numbers", out)
        assert "no_such_module" in out
    code, _, err = invoke("lost", "--help", host=host)
    assert code == 1
    assert err.startswith("moraine: lost of no_such_module:x cannot be used: broken: ModuleNotFoundError")
    code, out, _ = invoke("plugins", host=host)
    assert code == 0
    assert "Traceback (most recent call last)" in out
    assert invoke("plugins", "--strict", host=host)[0] == 1


# -------------------------------------------------------------------------------------------------- streams


@pytest.mark.parametrize("place", [0, 1, 5])
@pytest.mark.parametrize("flag", ["--quiet", "-q"])
def test_quiet_leaves_warnings_and_errors_wherever_it_stands(invoke, place, flag):
    words = ["double", "--source", "x.zarr", "--result", "y.zarr"]
    code, out, err = invoke(*words)
    assert code == 0
    assert out.splitlines()[1] == "y.zarr: array, shape (6, 10), dtype float32, chunks (4, 4)"
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ - double - INFO - double: 6/6 done", err, re.MULTILINE)
    words.insert(place, flag)
    code, out, err = invoke(*words)
    assert (code, err) == (0, "")
    assert out.startswith("double finished in ")
    assert invoke("double", flag)[2] == "moraine: double: missing --source, --result\n"


def test_a_log_file_gets_what_standard_error_gets_and_the_error(invoke):
    words = ["double", "--source", "x.zarr", "--result", "y.zarr", "--log", "logs/run.log"]
    _, _, err = invoke(*words)
    assert Path("logs/run.log").read_text() == err
    assert invoke(*words, "--factor", "0")[0] == 2
    last = Path("logs/run.log").read_text().splitlines()[-1]
    assert re.fullmatch(r"[-\d:, ]+ - double - ERROR - UsageError: double: factor is 0; expected anything else", last)
    assert invoke("list", "--log=logs/run.log")[0] == 0


def test_log_lines_may_be_json(invoke):
    """A11."""
    _, _, err = invoke("double", "--source", "x.zarr", "--result", "y.zarr", "--log-json")
    lines = [json.loads(line) for line in err.splitlines()]
    assert {tuple(line) for line in lines} == {("time", "command", "level", "message")}
    assert {line["command"] for line in lines} == {"double"}
    assert any("6/6 done" in line["message"] for line in lines)


def test_traceback_is_shown_only_where_asked_for(invoke):
    words = ["tidy", "--result", "t.txt", "--mode", "raise"]
    code, out, err = invoke(*words)
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == "moraine: ValueError: the glacier melted"
    assert "Traceback" not in err
    code, out, err = invoke("--traceback", *words)
    assert (code, out) == (1, "")
    assert "Traceback (most recent call last)" in err
    assert 'run_commands.py", line' in err


def test_the_log_is_as_it_was_before_when_a_line_has_ended(invoke):
    log = logging.getLogger("moraine")
    before = (log.level, log.propagate, list(log.handlers))
    invoke("double", "--quiet", "--log", "l.txt")
    assert (log.level, log.propagate, list(log.handlers)) == before


def test_global_options_end_at_two_dashes():
    options, rest = take_globals(["info", "--json", "--", "--quiet", "--log"])
    assert options.json
    assert not options.quiet
    assert rest == ["info", "--", "--quiet", "--log"]
    with pytest.raises(UsageError, match="--log needs the name of a file"):
        take_globals(["list", "--log"])


# ------------------------------------------------------------------------------------------------ built-ins


def test_info_tells_who_made_an_array(invoke):
    invoke("double", "--source", "x.zarr", "--result", "y.zarr", "--factor", "3")
    code, out, _ = invoke("info", "x.zarr", "y.zarr")
    assert code == 0
    first, second, third = out.splitlines()
    assert first == "x.zarr: array, shape (6, 10), dtype float32, chunks (4, 4)"
    assert second.startswith("y.zarr: array")
    assert re.fullmatch(r"  made by double \S+: factor=3.0, result=y.zarr, source=x.zarr", third)


def test_check_exits_1_where_a_store_is_not_whole(invoke):
    assert invoke("check", "x.zarr", "--n-workers", "1")[:2] == (0, "x.zarr: whole, 1 arrays, 6 chunks\n")
    Path("x.zarr/c/1/1").unlink()
    assert invoke("check", "x.zarr")[:2] == (
        1, "x.zarr: NOT whole, 1 arrays, 6 chunks\n  missing: x.zarr: chunk (1, 1)\n"
    )  # fmt: skip


def test_a_dry_run_changes_nothing_and_says_what_would_be_done(invoke):
    before = tree(".")
    code, out, _ = invoke("double", "--source", "x.zarr", "--result", "new/y.zarr", "--dry-run")
    assert code == 0
    assert "new/y.zarr: (6, 10) float32, chunks (4, 4), 0 KiB" in out
    assert "tasks: 6, of at most" in out
    assert out.endswith("nothing was done (--dry-run)\n")
    assert invoke("tidy", "--result", "t.txt", "--dry-run")[0] == 0
    assert invoke("detour", "--source", "x.zarr", "--result", "y.zarr", "--dry-run", "--scratch", "s")[0] == 0
    assert tree(".") == before


@pytest.mark.parametrize("option", ["--n-workers", "--threads-per-worker"])
def test_worker_options_are_recorded_as_effective(invoke, option):
    """A55."""
    _, _, err = invoke("double", "--source", "x.zarr", "--result", "y.zarr", "--n-workers", "1", option, "3")
    assert "workers: 3 threads" in err


def test_max_memory_is_recorded_as_effective(invoke):
    """A55."""
    _, _, err = invoke("double", "--source", "x.zarr", "--result", "y.zarr", "--max-memory", "3GiB")
    assert "memory for the run 3.0 GiB" in err


def test_fresh_is_an_option_of_the_line(invoke):
    hidden = store.Staging(Path("y.zarr").absolute()).folder
    hidden.mkdir()
    (hidden / "journal.jsonl").write_text("rubbish")
    assert invoke("double", "--source", "x.zarr", "--result", "y.zarr", "--fresh")[0] == 0
    assert not hidden.exists()


def test_a_reader_that_stops_reading_is_no_error(folder):
    """``moraine list | head`` ends without a complaint."""
    line = Line(folder)
    process = line.start("list")
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait()


def test_the_version_and_what_changed_with_it_can_be_asked_for(invoke):
    """A42."""
    assert invoke("--version") == (0, f"moraine-core {__version__}\n", "")
    code, out, _ = invoke("--version-notes")
    assert code == 0
    assert __version__ in out.splitlines()
    assert json.loads(invoke("--version", "--json")[1]) == {"version": 1, "ok": True, "moraine": __version__}
