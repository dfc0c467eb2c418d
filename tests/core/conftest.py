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
