"""Pictures of pyramids: which options they take, for the command line and for pipelines alike, and who shows them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core import store
from moraine_core.arguments import INTEGER, INTEGERS, PAIRS, PATH, TEXT, Kind, convert, fixed_numbers
from moraine_core.errors import StoreNotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moraine_core.plugins import PluginHost

PYRAMID = "moraine_pyramid"
"""Attribute of the finest level of a pyramid; it is written last."""

OPTIONS: dict[str, tuple[Kind, Any]] = {
    "show": (TEXT, None),
    "index": (INTEGERS, ()),
    "width": (INTEGER, 1000),
    "extent": (fixed_numbers(4), None),
    "dates": (PATH, None),
    "image_pairs": (PATH, None),
}
"""Kind and default of each option of a picture."""


def quicklook_options(owner: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a picture, those that are given converted.

    Raises
    ------
    UsageError
        An option is unknown or has a wrong value; the message begins with `owner`.
    """
    unknown = [name for name in given if name not in OPTIONS]
    if unknown:
        msg = f"{owner}: unknown option {unknown[0]} of a picture; known are {', '.join(OPTIONS)}"
        raise UsageError(msg)
    return {
        name: default if given.get(name) is None else convert(owner, name, kind, given[name])
        for name, (kind, default) in OPTIONS.items()
    }


def is_pyramid(path: str | Path) -> bool:
    """Tell whether a path is a finished pyramid."""
    level0 = Path(path, "0.zarr")
    return store.is_zarr(level0) and PYRAMID in store.open_array(level0).attrs


def draw(host: PluginHost, pyramid: str | Path, png: Path, options: Mapping[str, Any]) -> Path:
    """Draw a picture of a pyramid and return its path.

    Parameters
    ----------
    host
        One of its plugins draws.
    pyramid
        What to draw.
    png
        The picture; its folder is made.
    options
        As `quicklook_options` returns them.

    Raises
    ------
    StoreNotFoundError
        There is no such pyramid.
    UsageError
        No plugin draws pictures, or the file of dates or of image pairs cannot be read.
    """
    if not Path(pyramid).exists():
        msg = f"quicklook: {pyramid} does not exist; expected a pyramid"
        raise StoreNotFoundError(msg)
    dates = read_dates(options["dates"]) if options["dates"] else None
    pairs = convert("quicklook", "image_pairs", PAIRS, options["image_pairs"]) if options["image_pairs"] else None
    options = {**options, "dates": dates, "image_pairs": pairs}
    drawn: Path | None = host.hook.moraine_quicklook(pyramid=Path(pyramid), png=png, options=options)
    if drawn is None:
        msg = "quicklook: nothing installed draws pictures; they come with moraine-view: pip install moraine-view"
        raise UsageError(msg)
    return drawn


def view(host: PluginHost, paths: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Let people look at pyramids, and return what is told when they are done.

    Parameters
    ----------
    host
        One of its plugins shows.
    paths
        Pyramids, or folders with pyramids.
    options
        As `moraine_core.hookspec.moraine_view` describes them, ``dates`` and ``image_pairs`` still as given.

    Raises
    ------
    StoreNotFoundError
        A path does not exist.
    UsageError
        No plugin shows pyramids, or the file of dates or of image pairs cannot be read.
    """
    for path in paths:
        if not Path(path).exists():
            msg = f"view: {path} does not exist; expected a pyramid, or a folder with pyramids"
            raise StoreNotFoundError(msg)
    dates = read_dates(options["dates"]) if options["dates"] else None
    pairs = convert("view", "image_pairs", PAIRS, options["image_pairs"]) if options["image_pairs"] else None
    options = {**options, "dates": dates, "image_pairs": pairs}
    found: dict[str, Any] | None = host.hook.moraine_view(paths=[Path(path) for path in paths], options=options)
    if found is None:
        msg = "view: nothing installed shows pyramids; it comes with moraine-view: pip install moraine-view"
        raise UsageError(msg)
    return found


def read_dates(path: str) -> list[str]:
    """Return the dates of a ``meta.toml``.

    Raises
    ------
    UsageError
        It cannot be read or has no list of dates.
    """
    try:
        dates = tomllib.loads(Path(path).read_text(encoding="utf-8")).get("dates")
    except (OSError, tomllib.TOMLDecodeError) as error:
        msg = f"dates: {path} cannot be read as TOML: {error}"
        raise UsageError(msg) from error
    if not isinstance(dates, list):
        msg = f"dates: {path} has no list of dates"
        raise UsageError(msg)
    return [str(date) for date in dates]
