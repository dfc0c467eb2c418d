"""Who made an output: what is noted with its arrays, and reading that back."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core import store
from moraine_core.errors import StoreNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moraine_core.declaration import Command


def package_version(command: Command) -> str:
    """Return the version of the distribution that brings a command; that of its module where it is not installed."""
    package = command.module.partition(".")[0]
    try:
        return version(package.replace("_", "-"))
    except PackageNotFoundError:
        return str(getattr(sys.modules.get(package), "__version__", "0"))


def made_by(path: str | Path) -> dict[str, Any]:
    """Return command, version, arguments and inputs of the one call that made an array, or all arrays of a directory.

    A directory may have a note of its own instead (`note_in`). Empty where neither note nor array is, or where not all
    arrays were made by the same call of a command.
    """
    found: dict[str, Any] = {}
    note = Path(path) / store.MADE_BY
    if note.is_file():
        with suppress(ValueError):
            found = json.loads(note.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    for number, array in enumerate(store.arrays_in(Path(path))):
        try:
            noted = dict(store.open_array(array).attrs).get(store.PROVENANCE)
        except StoreNotFoundError:
            return {}
        if not isinstance(noted, dict) or (number and noted != found):
            return {}
        found = noted
    return found


def note_in(folder: Path, provenance: Mapping[str, Any]) -> None:
    """Note who made a directory whose arrays, if any, do not tell: they lie deeper, or all its data are raw files."""
    if folder.is_dir() and not store.is_zarr(folder) and made_by(folder) != provenance:
        store.write_text(folder / store.MADE_BY, json.dumps(provenance, indent=2) + "\n")
