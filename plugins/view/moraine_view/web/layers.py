"""What there is to look at: pyramids, found by their markers, with the dates that belong to them."""

from __future__ import annotations

import logging
import math
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from moraine_view.pyramid import HALF_WORLD, Pyramid, open_pyramid, read_marker
from moraine_view.web.ground import Ground, Spacing, array_stamp, find_ground, spacing_of
from moraine_view.web.reader import IncompleteError, Reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import zarr
    from numpy.typing import NDArray

log = logging.getLogger("moraine")

DEPTH = 6
"""Folders below a given one that are looked into."""

TILE = 256
"""Side of a tile in pixels."""

GRID_ZOOM = 6
"""Points on a radar grid are drawn at up to 2**6 pixels per cell of that grid."""

MAP_ZOOM = 22
"""Finest level of a map: the world is 2**22 tiles wide."""

MAP_UNIT = 2 * HALF_WORLD / TILE / 2**MAP_ZOOM
"""Side of a pixel of that level, in meters."""

COHERENCE = ("coh", "coh_abs")

Axis = Literal["none", "images", "pairs", "other"]


@dataclass(frozen=True)
class CachedPyramid(Pyramid):
    """A pyramid whose arrays are opened once and read through the cache."""

    reader: Reader = field(kw_only=True)
    stamp: str = field(kw_only=True)
    is_whole: bool = field(kw_only=True)
    """A chunk without a file means that data are missing, not that they are fill values."""

    @cached_property
    def _opened(self) -> dict[str, zarr.Array[Any]]:
        return {}

    def array(self, name: str) -> zarr.Array[Any]:
        """Open one of the arrays, or return it."""
        if (found := self._opened.get(name)) is None:
            try:
                found = super().array(name)
            except (OSError, ValueError, KeyError) as error:
                msg = f"{self.path.name}/{name}.zarr cannot be opened"
                raise IncompleteError(msg) from error
            self._opened[name] = found
        return found

    def read(self, name: str, part: tuple[slice, ...], channel: tuple[int, ...] = ()) -> NDArray[Any]:
        """Read a spatial part of one channel of an array."""
        folder = self.path / f"{name}.zarr" if self.is_whole else None
        return self.reader.read((self.stamp, name), self.array(name), part, channel, folder)


@dataclass(frozen=True)
class LevelGrid:
    """The tiles of one level: a raster of `shape` pixels that begins at a tile of the plane."""

    shape: tuple[int, int]
    origin: tuple[int, int]
    """Row and column of the first tile."""
    pixel: float
    """Side of a pixel: in pixels of the radar grid, or in meters."""


@dataclass
class Layer:
    """One pyramid in the viewer."""

    number: int
    name: str
    path: Path
    dates: list[str]
    """Of the images; empty if not known."""
    pairs: list[tuple[int, int]]
    """What the stack counts, if it counts image pairs."""
    wavelength: float | None
    reader: Reader
    grid: str = ""
    """Layers with the same name of a grid lie in the same plane."""
    spacing: Spacing | str = ""
    """Of the pixels of a radar grid, or why it is not known."""
    ground: Ground | None = None
    """Longitude and latitude of these pixels."""
    _lock: Lock = field(default_factory=Lock, repr=False)
    _source: CachedPyramid | None = field(default=None, repr=False)

    def stamp(self) -> str:
        """Return what changes when the data are made again; empty if they are gone."""
        return array_stamp(self.path / "0.zarr")

    def source(self) -> CachedPyramid:
        """Return the pyramid as it is now.

        Raises
        ------
        IncompleteError
            It is gone, or no pyramid any more.
        """
        stamp = f"{self.path} {self.stamp()}"
        with self._lock:
            if self._source is None or self._source.stamp != stamp:
                self._source = _open(self.path, self.reader, stamp, self.name)
            return self._source

    @property
    def n_items(self) -> int:
        """Count the images, pairs or other channels."""
        return math.prod(self.source().stack)

    @property
    def axis(self) -> Axis:
        """Say what the stack counts."""
        stack = self.source().stack
        if not stack:
            return "none"
        if len(stack) > 1:
            return "other"
        return "pairs" if len(self.pairs) == stack[0] else "images"

    def channel(self, item: int) -> tuple[int, ...]:
        """Return the indices of an item on the axes of the stack."""
        return tuple(int(k) for k in np.unravel_index(item, self.source().stack)) if self.source().stack else ()

    @property
    def is_direct(self) -> bool:
        """Tell whether tiles are parts of the levels as they are: rasters of the radar grid."""
        return self.source().kind == "raster"

    def levels(self) -> list[LevelGrid]:
        """List the levels that tiles are asked of, finest first."""
        source = self.source()
        if self.is_direct:
            shapes = [(-(-source.level_shape[0] >> k), -(-source.level_shape[1] >> k)) for k in range(source.n_levels)]
            return [LevelGrid(shape, (0, 0), float(2**k)) for k, shape in enumerate(shapes)]
        unit = 2.0**-GRID_ZOOM if source.crs == "grid" else MAP_UNIT
        x_min, y_min, x_max, y_max = self.plane_extent()
        found = []
        for level in range(MAP_ZOOM + 1):
            pixel = unit * 2**level
            side = TILE * pixel
            top, left = math.floor(y_min / side), math.floor(x_min / side)
            rows, cols = math.floor(y_max / side) + 1 - top, math.floor(x_max / side) + 1 - left
            found.append(LevelGrid((rows * TILE, cols * TILE), (top, left), pixel))
            if rows == cols == 1 and pixel >= source.cell:
                break
        return found

    def plane_extent(self) -> tuple[float, float, float, float]:
        """Return the edges in the plane, x to the right and y down from its corner.

        Of the radar grid these are pixels, with a pixel's center at a half; of a map, meters from its north-west
        corner.
        """
        source = self.source()
        x_min, y_min, x_max, y_max = source.extent
        if source.crs == "grid":
            return x_min + 0.5, y_min + 0.5, x_max + 0.5, y_max + 0.5
        return HALF_WORLD + x_min, HALF_WORLD - y_max, HALF_WORLD + x_max, HALF_WORLD - y_min


def _open(path: Path, reader: Reader, stamp: str, name: str) -> CachedPyramid:
    try:
        found = open_pyramid(path)
    except (ValueError, OSError, KeyError) as error:
        msg = f"{name} is no finished pyramid any more"
        raise IncompleteError(msg) from error
    fields = {key: getattr(found, key) for key in Pyramid.__dataclass_fields__}
    fields["stats"] = found.stats or _measured(path)
    is_whole = "moraine_pyramid" in found.array("0").attrs
    return CachedPyramid(**fields, reader=reader, stamp=stamp, is_whole=is_whole)


def _measured(path: Path) -> dict[str, Any]:
    """Return statistics of a pyramid that keeps none, from a coarser level: finer ones may reach further."""
    from moraine_view.summary import summarize

    found = summarize(path) or {}
    stats = {name: found[name] for name in found if name.removeprefix("amplitude_") in ("min", "max", "p01", "p99")}
    low, high = stats.get("min"), stats.get("max")
    if low is not None and high is not None:
        margin = (high - low) / 2 or max(abs(low), 1.0)
        stats |= {"min": low - margin, "max": high + margin}
    return stats


def find_layers(
    paths: Sequence[Path],
    reader: Reader,
    dates: list[str] | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    *,
    show: str | None = None,
) -> list[Layer]:
    """Find the pyramids at paths and below them, with dates and grids.

    Parameters
    ----------
    paths
        Pyramids, or folders with pyramids.
    reader
        Reads them.
    dates
        Of the images of all stacks; None: those of the ``meta.toml`` nearest to each pyramid, if their numbers agree.
    pairs
        Image pairs of the stacks that are as long.
    show
        ``coh`` and ``coh_abs`` say that complex stacks count all pairs of images.

    Returns
    -------
    list of Layer
        In the order of the paths, below each by name.

    Raises
    ------
    ValueError
        A path does not exist or there is no pyramid, or a pyramid cannot be used.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            msg = f"{path} does not exist; expected a pyramid, or a folder with pyramids"
            raise ValueError(msg)
        here = [place for place in _pyramids(path, DEPTH) if place == path or _has_marker(place)]
        if not here:
            msg = (
                f"there is no pyramid in {path}; build one with `moraine ras-pyramid` (rasters) or "
                "`moraine pc-pyramid` (point clouds)"
            )
            raise ValueError(msg)
        for pyramid in here:
            if _can_be_shown(pyramid, is_asked_for=pyramid == path or len(here) == 1):
                found.setdefault(pyramid.resolve(), path.resolve())
    if not found:
        msg = f"none of the pyramids in {', '.join(map(str, paths))} can be shown; the reasons are above"
        raise ValueError(msg)
    places = list(found)
    layers, metas = [], []
    for number, (name, (place, root)) in enumerate(zip(_names(places), found.items(), strict=True)):
        meta = _meta(place, root)
        metas.append(meta)
        own = [str(date) for date in meta.get("dates") or []] if dates is None else dates
        wavelength = meta.get("radar_wavelength")
        layer = Layer(
            number, name, place, [], [], float(wavelength) if isinstance(wavelength, int | float) else None, reader
        )
        _identify_stack(layer, own, pairs, is_coherence=show in COHERENCE)
        layers.append(layer)
    shapes = _assign_grids(layers)
    _place_grids(layers, metas, shapes)
    return layers


def _pyramids(path: Path, depth: int) -> Iterator[Path]:
    if (path / "0.zarr").is_dir():
        yield path
    elif depth and path.is_dir() and not path.name.endswith(".zarr"):
        for entry in sorted(path.iterdir()):
            if entry.is_dir() and not entry.name.startswith("."):
                yield from _pyramids(entry, depth - 1)


def _has_marker(path: Path) -> bool:
    """Tell a pyramid from a cloud by raster chunk, whose arrays have numbers for names, too."""
    try:
        return read_marker(path) is not None
    except ValueError:
        return True  # one that is newer than this code


def _can_be_shown(path: Path, *, is_asked_for: bool) -> bool:
    """Tell whether a pyramid can be opened; one among others is left out, with the reason in the log."""
    try:
        open_pyramid(path)
    except (ValueError, OSError, KeyError) as error:
        if is_asked_for:
            raise
        log.warning("%s is left out: %s", path, error)
        return False
    return True


def _names(places: Sequence[Path]) -> list[str]:
    """Return short names that differ: of each place so many of its last parts as are needed."""
    for n_parts in range(1, 20):
        names = [".".join(place.parts[-n_parts:]).removesuffix("_pyramid").strip("/.") for place in places]
        if len(set(names)) == len(names):
            return names
    return [f"layer-{number}" for number in range(len(places))]


def _meta(place: Path, root: Path) -> dict[str, Any]:
    """Read the nearest ``meta.toml``: in a folder above, or the only one below the folder that was given."""
    above = [folder / "meta.toml" for folder in place.parents[:4]]
    near = [file for file in above if file.is_file()][:1] or sorted(root.glob("*/meta.toml"))
    if len(near) != 1:
        return {}
    try:
        return tomllib.loads(near[0].read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _identify_stack(
    layer: Layer, dates: list[str], pairs: Sequence[tuple[int, int]] | None, *, is_coherence: bool
) -> None:
    """Find out whether a stack counts images or image pairs, and of which dates."""
    stack = layer.source().stack
    if len(stack) != 1:
        return
    n, n_dates = stack[0], len(dates)
    if pairs is None or len(pairs) != n:
        pairs = _stored_pairs(layer)
    n_all = (1 + math.isqrt(1 + 8 * n)) // 2  # images, if these are all their pairs
    if pairs is not None and len(pairs) == n:
        layer.pairs = [(int(ref), int(sec)) for ref, sec in pairs]
        n_images = max((max(pair) for pair in layer.pairs), default=0) + 1
        layer.dates = dates if n_dates >= n_images else []
    elif n == n_dates:
        layer.dates = dates
    if not layer.pairs and n == n_all * (n_all - 1) // 2 > 0:
        is_complex = layer.source().dtype.kind == "c"
        if n_dates == n_all > 1 and not layer.dates:
            layer.dates = dates
        elif not (is_coherence and is_complex):
            return
        layer.pairs = [(ref, sec) for ref in range(n_all) for sec in range(ref + 1, n_all)]
        if len(layer.dates) != n_all:
            layer.dates = []


def _stored_pairs(layer: Layer) -> Sequence[tuple[int, int]] | None:
    """Return the image pairs that the array of a pyramid says its stack is of, if it does."""
    stored = layer.source().array("0").attrs.get("image_pairs")
    if not isinstance(stored, list):
        return None
    pairs = [tuple(pair) for pair in stored if isinstance(pair, list) and len(pair) == 2]
    whole = all(isinstance(image, int) and image >= 0 for pair in pairs for image in pair)
    return pairs if whole and len(pairs) == len(stored) else None


def _assign_grids(layers: Sequence[Layer]) -> dict[str, tuple[int, int]]:
    """Name the plane of each layer; points on a radar grid lie in that of the smallest raster around them.

    Returns the shapes of the radar grids.
    """
    shapes = sorted({layer.source().level_shape for layer in layers if layer.is_direct}, key=math.prod)
    named = {"radar {}x{}".format(*shape): shape for shape in shapes}
    for layer in layers:
        source = layer.source()
        if source.crs == "web_mercator":
            layer.grid = "map"
        elif layer.is_direct:
            layer.grid = "radar {}x{}".format(*source.level_shape)
        else:
            _, _, x_max, y_max = (math.ceil(edge - source.cell / 2) for edge in source.extent)
            around = (name for name, shape in named.items() if y_max < shape[0] + 1 and x_max < shape[1] + 1)
            layer.grid = next(around, "radar")
    return named


def _place_grids(
    layers: Sequence[Layer], metas: Sequence[Mapping[str, Any]], shapes: Mapping[str, tuple[int, int]]
) -> None:
    """Find spacings and coordinates of radar grids: what is told beside one layer holds for all of its grid."""
    for grid in {layer.grid for layer in layers} - {"map"}:
        mine = [layer for layer in layers if layer.grid == grid]
        shape = shapes.get(grid)
        told = [spacing_of(metas[layer.number], shape) for layer in mine]
        spacing = next((found for found in told if isinstance(found, Spacing)), told[0])
        folders = dict.fromkeys(layer.path.parent for layer in mine)
        ground = find_ground(folders, shape, mine[0].reader) if shape else None
        for layer in mine:
            layer.spacing, layer.ground = spacing, ground
