"""Pictures behind points on the map: archives written here by the specification of PMTiles, version 3."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from web_pages import Viewer, chromium, serving, site_of

from moraine_core.cli.main import run
from moraine_core.testing.data import write_array
from moraine_view.pc_pyramid import pc_pyramid
from moraine_view.web.answer import Request, answer
from moraine_view.web.basemap import NOTHING, open_basemap, tile_number

if TYPE_CHECKING:
    from pathlib import Path


def varint(value: int) -> bytes:
    out = b""
    while value >= 128:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def directory(entries: list[tuple[int, int, int, int]]) -> bytes:
    """Write entries of tile, run, length and offset; an offset that follows the entry before is 0."""
    out, last = varint(len(entries)), 0
    for tile, *_ in entries:
        out, last = out + varint(tile - last), tile
    for column in (1, 2):
        out += b"".join(varint(entry[column]) for entry in entries)
    end = None
    for _, _, length, offset in entries:
        out, end = out + varint(0 if offset == end else offset + 1), offset + length
    return gzip.compress(out)


def archive(path: Path, tiles: dict[int, bytes], kind: int = 2, *, leaf: bool = False) -> Path:
    """Write an archive of png tiles, all of them in a leaf directory if asked for."""
    data, entries = b"", []
    for tile in sorted(tiles):
        entries.append((tile, 1, len(tiles[tile]), len(data)))
        data += tiles[tile]
    root, leaves = directory(entries), b""
    if leaf:
        leaves = root
        root = directory([(entries[0][0], 0, len(leaves), 0)])
    about = gzip.compress(json.dumps({"attribution": "<b>Somebody</b>"}).encode())
    at = [127]
    for part in (root, about, leaves):
        at.append(at[-1] + len(part))
    sizes = [
        at[0],
        len(root),
        at[1],
        len(about),
        at[2],
        len(leaves),
        at[3],
        len(data),
        len(tiles),
        len(tiles),
        len(tiles),
    ]
    head = b"PMTiles\x03" + b"".join(size.to_bytes(8, "little") for size in sizes)
    head += bytes([1, 2, 1, kind, 0, 18]) + bytes(25)
    path.write_bytes(head + root + about + leaves + data)
    return path


def test_tiles_are_numbered_along_the_curve_of_the_specification() -> None:
    assert [
        tile_number(*place) for place in [(0, 0, 0), (1, 0, 0), (1, 0, 1), (1, 1, 1), (1, 1, 0), (2, 0, 0)]
    ] == list(range(6))
    assert tile_number(12, 3423, 1763) == 19078479
    for zoom in range(1, 5):
        cells = {tile_number(zoom, x, y): (x, y) for x in range(2**zoom) for y in range(2**zoom)}
        assert sorted(cells) == list(range((4**zoom - 1) // 3, (4 ** (zoom + 1) - 1) // 3))
        path = np.array([cells[k] for k in sorted(cells)])
        assert (np.abs(np.diff(path, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("leaf", [False, True])
def test_tiles_are_found_and_others_are_transparent(tmp_path: Path, leaf: bool) -> None:
    tiles = {tile_number(3, x, y): f"tile {x} {y}".encode() for x, y in [(1, 1), (1, 2), (7, 0), (5, 5)]}
    basemap = open_basemap(archive(tmp_path / "b.pmtiles", tiles, leaf=leaf))
    assert basemap.tile(3, 1, 2) == ("image/png", b"tile 1 2")
    assert basemap.tile(3, 5, 5) == ("image/png", b"tile 5 5")
    assert basemap.tile(3, 0, 0) == ("image/png", NOTHING)
    assert basemap.tile(2, 0, 0) == ("image/png", NOTHING)
    assert basemap.tile(20, 0, 0) == ("image/png", NOTHING)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: b"nothing" + data[7:], "no PMTiles archive"),
        (lambda data: data[:7] + b"\x02" + data[8:], "no PMTiles archive"),
        (lambda data: data[:99] + b"\x01" + data[100:], "vector"),
        (lambda data: data[:97] + b"\x04" + data[98:], "neither plain nor gzip"),
        (lambda data: data[:50], "cut short"),
    ],
)
def test_files_that_are_no_basemap_are_said(tmp_path: Path, change: Any, said: str) -> None:
    path = archive(tmp_path / "b.pmtiles", {0: b"x"})
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=said):
        open_basemap(path)


def test_a_file_that_is_not_there_ends_the_command(points: Path, capsys: Any) -> None:
    assert run(["view", str(points), "--basemap", str(points / "none.pmtiles")]) == 2
    assert "none.pmtiles cannot be read" in capsys.readouterr().err


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("points")
    rng = np.random.default_rng(0)
    pc_pyramid(
        pc=write_array(folder / "pc.zarr", rng.normal(size=200).astype(np.float32), (200,)),
        x=write_array(folder / "x.zarr", rng.uniform(5e5, 5.02e5, 200), (200,)),
        y=write_array(folder / "y.zarr", rng.uniform(6e6, 6.002e6, 200), (200,)),
        out_dir=str(folder / "p_pyramid"),
        ras_resolution=20.0,
    )
    return folder


def test_requests_for_tiles_have_bounds(points: Path, tmp_path: Path) -> None:
    basemap = open_basemap(archive(tmp_path / "b.pmtiles", {tile_number(3, 1, 2): b"tile"}))
    site = replace(site_of(points), basemap=basemap)

    def ask(target: str) -> Any:
        return answer(site, Request("GET", target, {"host": "localhost", "cookie": f"{site.name}={site.token}"}))

    assert ask("/basemap/3/1/2").body == b"tile"
    for target in (
        "/basemap/3/8/0",
        "/basemap/99/0/0",
        "/basemap/-1/0/0",
        "/basemap/3/1/..",
        "/basemap/3/1",
        "/basemap",
    ):
        assert ask(target).status == 404
    basemap.path.unlink()
    assert ask("/basemap/3/1/2").status == 503
    assert answer(site_of(points), Request("GET", "/basemap/0/0/0", {"host": "localhost"})).status == 403


def test_the_basemap_lies_behind_the_points_and_its_maker_is_named(points: Path, tmp_path: Path) -> None:
    from PIL import Image

    picture = io.BytesIO()
    Image.new("RGB", (256, 256), (10, 120, 200)).save(picture, "png")
    world = 2 * 20037508.342789244
    zoom = 14
    col, row = int((5.01e5 + world / 2) / world * 2**zoom), int((world / 2 - 6.001e6) / world * 2**zoom)
    tiles = {tile_number(zoom, col + a, row + b): picture.getvalue() for a in (-1, 0, 1) for b in (-1, 0, 1)}
    path = archive(tmp_path / "b.pmtiles", tiles)
    data = bytearray(path.read_bytes())
    data[100:102] = bytes([zoom, zoom])
    path.write_bytes(bytes(data))
    with (
        chromium() as browser,
        serving(replace(site_of(points), basemap=open_basemap(path))) as url,
    ):
        viewer = Viewer(browser, url)
        assert viewer.text(".credit") == "Basemap: <b>Somebody</b>"
        viewer.until("[...document.querySelectorAll('.leaflet-basemap-pane img')].some((i) => i.naturalWidth === 256)")
        image = Image.open(io.BytesIO(viewer.page.screenshot())).convert("RGB")
        box = viewer.page.locator(".map").bounding_box()
        center = image.getpixel((int(box["x"] + box["width"] / 2), int(box["y"] + box["height"] / 4)))
        assert center[2] > center[0] + 50  # blue, or a point at worst
        assert all(request.startswith((url.split("/?")[0], "data:")) for request in viewer.requests)
        viewer.close()
