"""A folder with a pipeline file, its data and a host that knows the commands of `pipeline_commands`."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np

from moraine_core import pipeline
from moraine_core.plugins import COMMANDS, HOOKS, PluginHost
from moraine_core.testing.data import read_array, write_array

NAMES = ("scale", "total", "chain-pairs", "weigh", "pyramid", "note")

CHAIN = """
[[step]]
name = "a"
run = "scale"
source = "x.zarr"
result = "a.zarr"

[[step]]
name = "b"
run = "scale"
source = "a.zarr"
result = "b.zarr"

[[step]]
name = "c"
run = "note"
result = "c.txt"
"""
"""Two steps that depend on each other, and one that depends on nothing."""


def step(name, run, **arguments):
    """Return the text of a step; JSON writes these values as TOML does."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in {"name": name, "run": run, **arguments}.items()]
    return "\n".join(["[[step]]", *lines]) + "\n"


def make_host():
    """Return a host that knows the commands and the hook of `pipeline_commands`, and nothing else."""
    commands = [EntryPoint(name, f"pipeline_commands:{name.replace('-', '_')}", COMMANDS) for name in NAMES]
    return PluginHost([*commands, EntryPoint("pictures", "pipeline_commands", HOOKS)], blocked=())


class Project:
    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "chain.toml"
        self.host = make_host()
        self.x = np.arange(7, dtype=np.float32)
        self.put("x.zarr", self.x)
        self.write(CHAIN)

    def put(self, name, values):
        write_array(self.folder / name, np.asarray(values, dtype=np.float32), chunks=(3,))

    def get(self, name):
        return read_array(self.folder / name)

    def write(self, text):
        self.file.write_text(text, encoding="utf-8")

    def load(self, variables=None, workdir=None):
        return pipeline.load(self.file, variables or {}, workdir)

    def run(self, variables=None, workdir=None, **options):
        return pipeline.run(self.load(variables, workdir), self.host, **options)

    def in_another_process(self, options="", **popen):
        """Start a process that runs the pipeline and prints its plan."""
        code = (
            f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "from pipeline_project import actions, make_host, pipeline\n"
            f"print(actions(pipeline.run(pipeline.load({str(self.file)!r}), make_host(), {options})))\n"
        )
        return subprocess.Popen([sys.executable, "-c", code], **popen)

    def status(self):
        return {s["name"]: s for s in pipeline.status(self.load(), self.host)["steps"]}

    def actions(self, **options):
        return actions(self.run(dry_run=True, **options))


def actions(result):
    return {row["name"]: row["action"] for row in result.plan}


def ran(result):
    return [record["name"] for record in result.steps]
