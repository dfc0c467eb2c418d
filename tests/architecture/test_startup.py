"""Declaring is light: help, lists, checks and plans load none of the libraries that compute."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from moraine_core.plugins import PluginHost
from moraine_core.testing.running import example

if TYPE_CHECKING:
    from pathlib import Path

DECLARING_LOADS_NONE_OF = ("numpy", "zarr", "numba", "scipy", "cupy", "torch", "dask", "rich", "matplotlib")
PLANNING_LOADS_NONE_OF = ("numba", "scipy", "cupy", "torch", "dask", "matplotlib")

GENEROUS_SECONDS = 5.0
"""What `moraine --help` may take on a busy machine; what it should take is measured elsewhere."""


def run_python(code: str, text: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], input=text, text=True, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_loading_every_command_and_every_hook_loads_no_library_that_computes():
    """A52: and none that draws."""
    code = """
import json, sys
from moraine_core.cli.group import make_app
from moraine_core.plugins import PluginHost
host = PluginHost()
make_app(host)
states = [record.status for record in host.records()]
print(json.dumps([states, sorted(sys.modules)]))
"""
    states, modules = json.loads(run_python(code))
    assert states
    assert set(states) == {"ok"}
    assert [name for name in DECLARING_LOADS_NONE_OF if name in modules] == []


def test_help_of_the_whole_and_of_one_command_is_there_in_time():
    for words in (["--help"], ["amp-disp", "--help"]):
        taken = []
        for _ in range(3):
            started = time.monotonic()
            subprocess.run([sys.executable, "-m", "moraine_core", *words], capture_output=True, timeout=60, check=True)
            taken.append(time.monotonic() - started)
            if taken[-1] < GENEROUS_SECONDS:
                break
        assert min(taken) < GENEROUS_SECONDS


def test_planning_hands_out_no_task_and_loads_no_kernel(tmp_path: Path):
    # the examples are written here, since making their inputs may need the kernels
    calls = {c.name: example(c, tmp_path / c.name) for c in PluginHost().commands() if c.chunked}
    code = """
import json, sys
from moraine_core.executor import Executor
from moraine_core.options import RunOptions
from moraine_core.plugins import PluginHost
from moraine_core.run import run_command
from moraine_core.testing.running import GivenPool, RefusingBackend
host, tasks = PluginHost(), {}
for name, arguments in json.load(sys.stdin).items():
    with Executor(backend=RefusingBackend()) as executor:
        record = run_command(host.command(name), arguments, options=RunOptions(dry_run=True), pool=GivenPool(executor))
    tasks[name] = sum(plan["tasks"] for plan in record.plans)
print(json.dumps([tasks, sorted(sys.modules)]))
"""
    tasks, modules = json.loads(run_python(code, json.dumps(calls)))
    assert set(tasks) == set(calls)
    assert min(tasks.values()) > 0
    kernels = [name for name in modules if name.startswith("moraine_") and name.split(".")[-1] in ("_cpu", "_gpu")]
    assert [name for name in PLANNING_LOADS_NONE_OF if name in modules] + kernels == []
