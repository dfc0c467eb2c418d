"""What the tests of the command line share: a line in a process of its own, installed plugins, folder digests."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HELPERS = Path(__file__).parent

X = np.arange(60, dtype=np.float32).reshape(6, 10)
"""The input of the fixture `folder`: six chunks of 4 x 4."""


def install(folder, name, *, commands=None, hooks=None, modules=None, version="1.0"):
    """Put a distribution into a folder that is then part of the path, as an installer would leave it."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = []
    for group, entries in (("moraine.commands", commands), ("moraine.plugins", hooks)):
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in (entries or {}).items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for module, text in (modules or {}).items():
        (folder / f"{module}.py").write_text(text)
    return folder


class Line:
    """The command line in a process of its own, with the commands of `run_commands` installed."""

    def __init__(self, folder):
        self.folder = folder
        self.site = folder / "site"
        self.environ = {}
        from run_commands import NAMES

        install(self.site, "run-tests", commands={n: f"run_commands:{n.replace('-', '_')}" for n in NAMES})

    def start(self, *words, **environ):
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.site), str(HELPERS)]),
            **self.environ,
            **environ,
        }
        return subprocess.Popen(
            [sys.executable, "-m", "moraine_core", *map(str, words)],
            cwd=self.folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words, **environ):
        process = self.start(*words, **environ)
        process.out, process.err = process.communicate(timeout=60)
        return process

    def json(self, *words, **environ):
        """Return exit code and the one object on standard output."""
        process = self.run(*words, "--json", **environ)
        assert process.out.endswith("\n")
        assert len(process.out.splitlines()) == 1, process.out
        return process.returncode, json.loads(process.out)


def wait_for(path, seconds=30):
    """Wait until a file is there."""
    deadline = time.monotonic() + seconds
    while not Path(path).exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


def tree(folder):
    """Return a digest of every file below a folder, and the names of all folders and links."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = str(path.readlink())
        else:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
    return found
