"""The hooks of this family: what a pyramid is, a picture of it, and the viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moraine_core import UsageError, hookimpl
from moraine_core.errors import MoraineError

if TYPE_CHECKING:
    from collections.abc import Sequence
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


@hookimpl
def moraine_view(paths: Sequence[Path], options: dict[str, Any]) -> dict[str, Any]:
    """Show pyramids in a browser, or write a notebook that does.

    Parameters
    ----------
    paths
        Pyramids, or folders with pyramids.
    options
        Of ``moraine view``.

    Returns
    -------
    dict
        ``pyramids``, the paths shown; ``notebook`` and ``export``, the paths written or None.

    Raises
    ------
    UsageError
        There is no pyramid, or the options do not fit.
    MoraineError
        Data are missing on disk that were to be exported.
    """
    from moraine_view.web.command import view
    from moraine_view.web.reader import IncompleteError

    try:
        return view(paths, options)
    except IncompleteError as error:
        msg = f"view: {error}"
        raise MoraineError(msg) from error
    except ValueError as error:
        msg = f"view: {error}"
        raise UsageError(msg) from error
