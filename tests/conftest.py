"""Fixtures of all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of real radar data: ``MORAINE_TEST_DATA``, or ``shared/data`` beside the checkout; skips where absent."""
    folder = Path(os.environ.get("MORAINE_TEST_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep compiled kernels of this session together, away from the user's cache, and on the next run again."""
    os.environ.setdefault("MORAINE_CACHE_DIR", str(Path(__file__).parents[1] / ".cache"))
