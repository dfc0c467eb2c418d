"""The hooks of this family: what a pyramid is, and a picture of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moraine_core import UsageError, hookimpl

if TYPE_CHECKING:
    from pathlib import Path


@hookimpl
def moraine_summary(path: Path) -> dict[str, Any] | None:
    """Summarize a pyramid; None for anything else.

    Parameters
    ----------
    path
        Anything.

    Returns
    -------
    dict or None
        Kind, shape of level 0, dtype, number of levels, method, statistics and warnings.
    """
    if not (path / "0.zarr").is_dir():
        return None
    from moraine_view.summary import summarize

    return summarize(path)


@hookimpl
def moraine_quicklook(pyramid: Path, png: Path, options: dict[str, Any]) -> Path:
    """Draw a picture of a pyramid.

    Parameters
    ----------
    pyramid
        Its directory.
    png
        The file to write.
    options
        Keywords of `moraine_view.quicklook.quicklook`; None is the default.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    UsageError
        It is no pyramid, or the options do not fit it.
    """
    from moraine_view.quicklook import quicklook

    chosen = {name: value for name, value in options.items() if value is not None}
    for name in ("index", "extent"):
        if name in chosen:
            chosen[name] = tuple(chosen[name])
    try:
        return quicklook(pyramid, png, **chosen)
    except ValueError as error:
        msg = f"quicklook: {error}"
        raise UsageError(msg) from error
