"""Where compiled kernels are kept."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from moraine_core.cache import CACHE_VARIABLES, cache_dir, prepare_caches


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in (*CACHE_VARIABLES, "MORAINE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_one_variable_moves_every_cache(tmp_path, monkeypatch):
    """A57."""
    monkeypatch.setenv("MORAINE_CACHE_DIR", str(tmp_path / "c"))
    for name in CACHE_VARIABLES:
        monkeypatch.setenv(name, "")  # so that monkeypatch restores them
        os.environ.pop(name)
    prepare_caches()
    assert {"NUMBA_CACHE_DIR", "CUPY_CACHE_DIR", "MPLCONFIGDIR"} <= set(CACHE_VARIABLES)
    assert all(Path(os.environ[name]).is_relative_to(tmp_path / "c") for name in CACHE_VARIABLES)


def test_what_the_user_has_set_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("MORAINE_CACHE_DIR", str(tmp_path))
    for name in CACHE_VARIABLES:
        monkeypatch.setenv(name, "/mine")
    prepare_caches()
    assert {os.environ[name] for name in CACHE_VARIABLES} == {"/mine"}


def test_the_users_cache_folder_is_the_default(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "moraine"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_dir() == tmp_path / "home" / ".cache" / "moraine"


def test_a_home_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch):
    """A57: also where the chosen folder lies below a file."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MORAINE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert cache_dir().is_relative_to(tempfile.gettempdir())
