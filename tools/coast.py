"""Make the coastline of `moraine view` from the land of Natural Earth, as the npm package world-atlas has it.

    npm pack world-atlas@2.0.2 && tar -xzf world-atlas-2.0.2.tgz
    python tools/coast.py package/land-50m.json plugins/view/moraine_view/web/static/coast.json

The coast is drawn at 300 m a pixel at most, so it is simplified (Douglas and Peucker, 1973, Cartographica 10(2)) and
put on a grid of 0.005 degrees. It weighs a quarter less then.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHA256 = "619477ff690c086885e45cb91707d783805561bd75ae8e437b7d4694b0204e0f"
"""Of the file that this was made for."""

GRID = 0.005
"""Degrees."""

TOLERANCE = 0.005
"""Degrees of a great circle that a point left out may be off."""

SOURCE = "Natural Earth 1:50m land (public domain), from world-atlas 2.0.2 (ISC), simplified by tools/coast.py"


def coast(topology: dict[str, Any]) -> list[NDArray[np.int64]]:
    """Return the lines of the coast from the arcs of TopoJSON.

    Where land was cut, at 180 degrees and the south pole, there is no coast.

    Parameters
    ----------
    topology
        ``arcs`` of steps in whole numbers, and the ``transform`` to degrees.

    Returns
    -------
    list of ndarray
        ``(n, 2)`` longitude and latitude, in units of `GRID`.
    """
    scale, shift = (np.array(topology["transform"][name]) for name in ("scale", "translate"))
    lines = []
    for arc in topology["arcs"]:
        points = np.cumsum(arc, axis=0) * scale + shift
        is_cut = (np.abs(points[:, 0]) > 179.99) | (points[:, 1] < -85)
        for part in np.split(points, np.flatnonzero(is_cut[1:] & is_cut[:-1]) + 1):
            line = np.rint(part[simplified(part)] / GRID).astype(np.int64)
            line = line[np.r_[True, (np.diff(line, axis=0) != 0).any(axis=1)]]
            if len(line) > 1:
                lines.append(line)
    return lines


def simplified(points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which points of a line in degrees are needed: no other is off by more than `TOLERANCE`."""
    plane = points * [np.cos(np.radians(points[:, 1].mean())), 1]
    is_needed = np.zeros(len(points), bool)
    is_needed[[0, -1]] = True
    parts = [(0, len(points) - 1)]
    while parts:
        first, last = parts.pop()
        if last - first < 2:
            continue
        along, away = plane[last] - plane[first], plane[first + 1 : last] - plane[first]
        length = np.hypot(*along)
        off = np.abs(along[0] * away[:, 1] - along[1] * away[:, 0]) / length if length else np.hypot(*away.T)
        farthest = first + 1 + int(off.argmax())
        if off.max() > TOLERANCE:
            is_needed[farthest] = True
            parts += [(first, farthest), (farthest, last)]
    return is_needed


def main(source: Path, out: Path) -> None:
    """Write each line as its first point and the steps from point to point, all in one list."""
    data = source.read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256:
        sys.exit(f"{source} is not land-50m.json of world-atlas 2.0.2")
    lines = [np.diff(line, axis=0, prepend=0).ravel().tolist() for line in coast(json.loads(data))]
    out.write_text(
        json.dumps({"source": SOURCE, "grid": GRID, "lines": lines}, separators=(",", ":")), encoding="utf-8"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
