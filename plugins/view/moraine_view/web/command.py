"""What ``moraine view`` does with its options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_view.show import SHOWS
from moraine_view.web.layers import find_layers
from moraine_view.web.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def view(paths: Sequence[Path], options: Mapping[str, Any]) -> dict[str, Any]:
    """Show pyramids until interrupted, or write what shows them.

    Parameters
    ----------
    paths
        Pyramids, or folders with pyramids.
    options
        As `moraine_core.hookspec.moraine_view` describes them.

    Returns
    -------
    dict
        ``pyramids``, ``notebook`` and ``export``.

    Raises
    ------
    ValueError
        There is no pyramid, or the options do not fit.
    """
    show = options["show"]
    if show is not None and show not in SHOWS:
        msg = f"show {show!r} is unknown; expected one of {', '.join(SHOWS)}"
        raise ValueError(msg)
    if options["export"] is None and (options["export_levels"] != "0.." or options["export_dates"] is not None):
        msg = "export_levels and export_dates choose what an export holds; it needs --export"
        raise ValueError(msg)
    layers = find_layers(paths, Reader(), options["dates"], options["image_pairs"], show=show)
    found: dict[str, Any] = {"pyramids": [str(layer.path) for layer in layers], "notebook": None, "export": None}
    if options["output"] is not None:
        from moraine_view.web.notebook import write_notebook

        found["notebook"] = str(write_notebook(layers, options))
        return found
    if options["export"] is not None:
        from moraine_view.web.export import export

        out = export(
            layers,
            Path(options["export"]),
            levels=options["export_levels"],
            dates=options["export_dates"],
            most_bytes=size_in_bytes(options["max_size"]),
            show=show,
            overwrite=options["overwrite"],
        )
        found["export"] = str(out)
        return found
    from moraine_view.web.answer import Site
    from moraine_view.web.basemap import open_basemap
    from moraine_view.web.serve import run

    basemap = open_basemap(Path(options["basemap"])) if options["basemap"] is not None else None
    run(Site(layers, show=show, basemap=basemap), options["port"], options["say"], browser=options["browser"])
    return found


def size_in_bytes(text: str) -> int:
    """Return the bytes that a size such as ``2GB`` or ``500MB`` means.

    Raises
    ------
    ValueError
        It is no size.
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([kMGT]?)i?B?", text.strip())
    if found is None:
        msg = f"max_size is {text!r}; expected a number with kB, MB, GB or TB, such as 2GB"
        raise ValueError(msg)
    return int(float(found[1]) * 1024 ** " kMGT".index(found[2] or " "))
