"""What the tests of the core share: importable helpers, for tests and workers alike."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "helpers"))


@pytest.fixture
def project(tmp_path):
    """A pipeline of three steps in a folder of its own, with its data."""
    from pipeline_project import Project

    return Project(tmp_path)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with one input, as current directory; kernels of `run_commands` count their calls beside it."""
    from run_support import X

    from moraine_core.testing.data import write_array

    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "calls").mkdir()
    monkeypatch.setenv("RUN_CALLS", str(tmp_path / "calls"))
    monkeypatch.delenv("MORAINE_SCRATCH", raising=False)
    monkeypatch.chdir(work)
    write_array("x.zarr", X, chunks=(4, 4))
    return work
