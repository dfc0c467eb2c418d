"""The viewer in a notebook: a frame with the same page, from a server in the notebook's own process."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from moraine_view.web.answer import Site
from moraine_view.web.layers import find_layers
from moraine_view.web.reader import Reader
from moraine_view.web.serve import Server, start

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moraine_view.web.layers import Layer


class View:
    """What a cell shows: the page of a server that ends with the process.

    Parameters
    ----------
    server
        Answering.
    height
        Of the frame, in pixels.
    """

    def __init__(self, server: Server, height: int) -> None:
        self.server = server
        self.height = height

    def _repr_html_(self) -> str:
        # a notebook is at localhost mostly, and cookies are kept from frames of another place
        url = self.server.url.replace("127.0.0.1", "localhost")
        return (
            f'<iframe src="{escape(url)}" width="100%" height="{self.height}" style="border: 0" '
            'title="moraine view"></iframe>'
        )

    def close(self) -> None:
        """End the server."""
        self.server.shutdown()
        self.server.server_close()


def show(
    *paths: str,
    dates: Sequence[str] | None = None,
    image_pairs: Sequence[tuple[int, int]] | None = None,
    show: str | None = None,
    height: int = 800,
) -> View:
    """Show pyramids in a notebook.

    Parameters
    ----------
    *paths
        Pyramids, or folders with pyramids.
    dates
        One per image, ``YYYYMMDD``; None: those of the nearest ``meta.toml``.
    image_pairs
        Image pairs of stacks that count pairs and do not hold all of them.
    show
        As ``--show`` of ``moraine view``.
    height
        Of the frame, in pixels.

    Returns
    -------
    View
        For the notebook to draw. Where the notebook is not on this machine, the port has to be forwarded too.

    Raises
    ------
    ValueError
        There is no pyramid.
    """
    layers = find_layers(
        [Path(path) for path in paths], Reader(), list(dates) if dates else None, image_pairs, show=show
    )
    server = start(Site(layers, show=show, framed=True))
    Thread(target=server.serve_forever, daemon=True).start()
    return View(server, height)


def write_notebook(layers: Sequence[Layer], options: Mapping[str, Any]) -> Path:
    """Write a notebook with a cell for each pyramid.

    Parameters
    ----------
    layers
        The pyramids.
    options
        ``output``, ``overwrite``, ``show``, ``dates`` and ``image_pairs`` of ``moraine view``.

    Returns
    -------
    Path
        Of the notebook.

    Raises
    ------
    ValueError
        Its name does not end in ``.ipynb``, or it exists.
    """
    path = Path(options["output"])
    if path.suffix != ".ipynb":
        msg = f"the notebook {path} has no name that ends in .ipynb"
        raise ValueError(msg)
    if path.exists() and not options["overwrite"]:
        msg = f"the notebook {path} exists; --overwrite replaces it"
        raise ValueError(msg)
    chosen = "".join(
        f", {name}={options[name]!r}" for name in ("dates", "image_pairs", "show") if options[name] is not None
    )
    sources = [f"show({str(layer.path)!r}{chosen})" for layer in layers]
    cells = [_cell("imports", "from moraine_view.web.notebook import show")]
    cells += [_cell(f"view-{number}", source) for number, source in enumerate(sources)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook, indent=1) + "\n", encoding="utf-8")
    return path


def _cell(name: str, source: str) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "id": name, "metadata": {}, "outputs": [], "source": source}
