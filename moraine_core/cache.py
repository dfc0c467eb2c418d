"""Where compiled kernels are kept between runs: one variable moves all of them, and a read-only home is no obstacle."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

CACHE_VARIABLES = {"NUMBA_CACHE_DIR": "numba", "CUPY_CACHE_DIR": "cupy", "MPLCONFIGDIR": "matplotlib"}


def cache_dir() -> Path:
    """Return the folder of all caches: ``MORAINE_CACHE_DIR``, else the user's cache folder, else a temporary one."""
    chosen = os.environ.get("MORAINE_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - does not fail without a home
    folder = Path(chosen) if chosen else Path(home) / "moraine"
    return folder if _writable(folder) else Path(tempfile.gettempdir()) / f"moraine-{os.getuid()}"


def prepare_caches() -> None:
    """Tell the libraries that compile or cache where to do so; what the user has set stays."""
    if all(name in os.environ for name in CACHE_VARIABLES):
        return
    folder = cache_dir()
    for name, part in CACHE_VARIABLES.items():
        os.environ.setdefault(name, str(folder / part))


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)
