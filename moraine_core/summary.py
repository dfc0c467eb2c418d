"""What ``moraine info`` says of a path, and what a finished command says of its outputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core import store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moraine_core.plugins import PluginHost

LISTED = 20
"""Arrays of a directory that are listed by name."""


def summarize(path: str | Path, host: PluginHost | None = None) -> dict[str, Any]:
    """Return a record of what is at a path: a plugin's if one knows it better, else kind, shape, dtype or size.

    A path that cannot be summarized gives ``path`` and ``error``: a summary never fails.

    Parameters
    ----------
    path
        An array, group, directory or file.
    host
        Plugins that may know more, such as of pyramids.
    """
    try:
        found = host.hook.moraine_summary(path=Path(path)) if host is not None else None
        record = dict(found) if found is not None else _plain_summary(Path(path))
    except Exception as error:  # noqa: BLE001 - a summary is a courtesy; its failure is told in its place
        return {"path": str(path), "error": f"{type(error).__name__}: {error}"}
    return {"path": str(path), **{key: value for key, value in record.items() if key != "path"}}


def _plain_summary(path: Path) -> dict[str, Any]:
    if not path.exists():
        msg = f"{path} does not exist"
        raise FileNotFoundError(msg)
    if path.is_file():
        return {"kind": "file", "bytes": path.stat().st_size}
    if not store.is_zarr(path):
        arrays = sorted(str(entry.relative_to(path)) for entry in _stores_in(path))
        return {"kind": "directory", "n_zarr": len(arrays), "zarr": arrays[:LISTED]}
    if store.is_group(path):
        return {"kind": "group", "members": sorted(entry.name for entry in path.iterdir() if store.is_zarr(entry))}
    array = store.describe(path)
    return {"kind": "array", "shape": list(array.shape), "dtype": array.dtype, "chunks": list(array.chunks)}


def _stores_in(folder: Path) -> Iterator[Path]:
    """Yield the zarr arrays and groups below a folder, but not their members, nor what lies hidden."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.name.startswith("."):
            if store.is_zarr(entry):
                yield entry
            elif not entry.is_symlink():
                yield from _stores_in(entry)


def describe(summary: dict[str, Any]) -> str:
    """Return a summary as one line of text."""
    facts = [f"{key} {_text(value)}" for key, value in summary.items() if key not in ("path", "kind", "error")]
    what = f"error: {summary['error']}" if "error" in summary else str(summary["kind"])
    return f"{summary['path']}: " + ", ".join([what, *facts])


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "(" + ", ".join(map(str, value)) + ")"
    return str(value)
