"""Pools of slots for the tests of this package."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
HELPERS = TESTS / "core" / "helpers"
sys.path[:0] = [str(HELPERS), str(Path(__file__).parent), str(TESTS / "conformance")]

import slurm_here  # noqa: E402 - lies beside this file


@pytest.fixture(scope="session", autouse=True)
def _importable_tasks():
    """Let the children of slots import the task functions of the executor's tests."""
    path = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HELPERS), *filter(None, [path])])
    yield
    os.environ["PYTHONPATH"] = path


def pytest_terminal_summary(terminalreporter):
    """Say loudly that nothing was tested on Slurm."""
    if reason := slurm_here.missing():
        terminalreporter.write_line(f"NO TEST ON SLURM: {reason}", red=True)
