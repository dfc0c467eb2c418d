"""Real clouds and maps from their files to pictures: every pixel looked at is where and what the data say."""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from pyramid_files import marker
from real_rasters import read_floats, read_half_floats

from moraine_core.testing.data import read_array, write_array
from moraine_raster.transform import transform
from moraine_view.palette import BACKGROUND, Palette, color_table
from moraine_view.pc_pyramid import pc_pyramid
from moraine_view.quicklook import LEFT, quicklook
from moraine_view.ras_pyramid import ras_pyramid

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

FRAME = 51
"""Gray of the line around a picture."""


def picture_of(png: Path, rows: int, cols: int) -> NDArray[Any]:
    """Cut the picture out of its file, by the line above it."""
    from PIL import Image

    image = np.asarray(Image.open(png).convert("RGB")).astype(int)
    is_line = (image[:, LEFT : LEFT + cols] == FRAME).all(axis=(1, 2))
    top = int(is_line.argmax()) + 1
    assert is_line[top - 1]
    assert not is_line[top]
    return image[top : top + rows, LEFT : LEFT + cols]


def values_of(picture: NDArray[Any], palette: Palette, low: float, high: float) -> NDArray[Any]:
    """Read values off their colors, give or take two colors since neighbors may be alike; nan for the background."""
    colors = color_table(palette)[:255, :3].tolist()
    known = {tuple(color): low + (k + 0.5) * (high - low) / 255 for k, color in enumerate(colors)}
    known[tuple(int(BACKGROUND[k : k + 2], 16) for k in (1, 3, 5))] = math.nan
    return np.array([[known[tuple(color)] for color in line] for line in picture.tolist()])


def cloud(folder: Path, lon: NDArray[Any], lat: NDArray[Any], pc: NDArray[Any], **options: Any) -> Path:
    """Build the pyramid of points that are given in degrees."""
    for name, values in (("lon", lon), ("lat", lat), ("pc", pc)):
        write_array(folder / f"{name}.zarr", values, (500, *(1,) * (values.ndim - 1)))
    path = {name: str(folder / f"{name}.zarr") for name in ("lon", "lat", "e", "n", "pc")}
    transform(xx_in=path["lon"], yy_in=path["lat"], xx_out=path["e"], yy_out=path["n"])
    pc_pyramid(pc=path["pc"], x=path["e"], y=path["n"], out_dir=str(folder / "pyramid"), **options)
    return folder / "pyramid"


def northing(degrees: float) -> float:
    """Return the web mercator northing of a latitude, on a sphere of radius 1."""
    return math.log(math.tan(math.pi / 4 + math.radians(degrees) / 2))


def displacements(real_data: Path) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Read longitudes, latitudes and displacements of scatterers."""
    with (real_data / "tsx-amsterdam-ps-cloud" / "example.csv").open() as file:
        table = list(csv.DictReader(file))
    dates = sorted(name for name in table[0] if name.startswith("d_"))
    lon, lat = (np.array([float(row[f"pnt_{name}"]) for row in table]) for name in ("lon", "lat"))
    return lon, lat, np.array([[float(row[date]) for date in dates] for row in table], dtype=np.float32)


def places_of(
    picture: NDArray[Any], extent: tuple[float, float, float, float], lon: NDArray[Any], lat: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows and columns of places on the map, from the upper left corner of a picture. North is up."""
    west, south, east, north = extent
    below_top = northing(north) - np.array([northing(degrees) for degrees in lat])
    row = below_top / (northing(north) - northing(south)) * picture.shape[0]
    return row, (lon - west) / (east - west) * picture.shape[1]


def shape_of(extent: tuple[float, float, float, float], width: int) -> tuple[int, int]:
    """Return rows and columns of a picture of a small part of the map: its pixels are square."""
    west, south, east, north = extent
    return round(width * math.degrees(northing(north) - northing(south)) / (east - west)), width


def test_displacements_of_scatterers_in_amsterdam_lie_where_they_belong(real_data: Path, tmp_path: Path) -> None:
    """Zoomed in, every point has the color of its displacement, or of that of the last one whose disk covers it."""
    lon, lat, pc = displacements(real_data)
    pyramid = cloud(tmp_path, lon, lat, pc, ras_resolution=2, method="mean")
    stats = marker(pyramid)["stats"]
    assert stats["mean"] == pytest.approx(pc.mean(dtype="float64"), rel=1e-4)
    extent = (4.9095, 52.3457, 4.9105, 52.3461)
    quicklook(pyramid, tmp_path / "p.png", index=(10,), extent=extent, width=1000)
    picture = picture_of(tmp_path / "p.png", *shape_of(extent, 1000))
    low, high = stats["p01"], stats["p99"]
    seen = values_of(picture, "sequential", low, high)
    row, col = places_of(picture, extent, lon, lat)
    pixel = math.radians(extent[2] - extent[0]) * 6378137 / 1000
    n_seen = 0
    for i, j in zip(np.floor(row).astype(int), np.floor(col).astype(int), strict=True):
        if 0 <= i < picture.shape[0] and 0 <= j < picture.shape[1]:
            covering = np.flatnonzero(np.hypot(row - i - 0.5, col - j - 0.5) <= 0.4 * 2 / pixel)
            expected = np.clip(pc[covering[-1], 10], low, high)
            assert seen[i, j] == pytest.approx(expected, abs=(high - low) / 127)
            n_seen += 1
    assert n_seen > 300


def test_displacements_zoomed_out_are_means_of_the_cells(real_data: Path, tmp_path: Path) -> None:
    lon, lat, pc = displacements(real_data)
    pyramid = cloud(tmp_path, lon, lat, pc, ras_resolution=2, method="mean")
    stats = marker(pyramid)["stats"]
    low, high = stats["p01"], stats["p99"]
    e, n = read_array(tmp_path / "e.zarr"), read_array(tmp_path / "n.zarr")
    shown = {}  # the last point of each cell of 2 m
    for k in range(len(e)):
        shown[round((n[k] - n.min()) / 2), round((e[k] - e.min()) / 2)] = pc[k, 10]
    n_rows, n_cols = (max(cell[axis] for cell in shown) + 1 for axis in (0, 1))
    level = math.ceil(math.log2(n_cols / 100))
    blocks: dict[tuple[int, int], list[float]] = {}
    for (i, j), value in shown.items():
        blocks.setdefault((i >> level, j >> level), []).append(float(value))

    quicklook(pyramid, tmp_path / "p.png", index=(10,), width=100)
    rows = round(100 * n_rows / n_cols)
    seen = np.flipud(values_of(picture_of(tmp_path / "p.png", rows, 100), "sequential", low, high))  # south first
    expected = np.full((rows, 100), np.nan)
    for i, j in np.ndindex(rows, 100):
        cell = int((i + 0.5) * n_rows / rows) >> level, int((j + 0.5) * n_cols / 100) >> level
        expected[i, j] = np.clip(np.mean(blocks[cell]), low, high) if cell in blocks else np.nan
    np.testing.assert_allclose(seen, expected, atol=(high - low) / 127)
    assert np.isfinite(seen).sum() > 500


def test_interferometric_phases_in_amsterdam_have_their_color(real_data: Path, tmp_path: Path) -> None:
    source = real_data / "s1-amsterdam-ps-complex" / "stm_sparse.zarr"
    lon, lat, pc = (np.asarray(zarr.open_array(source / n, mode="r")[...]) for n in ("lon", "lat", "complex"))
    pyramid = cloud(tmp_path, lon.astype(float), lat.astype(float), pc, ras_resolution=200)
    assert marker(pyramid)["stats"]["amplitude_max"] == pytest.approx(np.abs(pc).max(), rel=1e-5)
    extent = (4.86, 52.34, 4.92, 52.38)
    quicklook(pyramid, tmp_path / "p.png", show="intf_0", index=(9,), extent=extent, width=800)
    picture = picture_of(tmp_path / "p.png", *shape_of(extent, 800))
    row, col = places_of(picture, extent, lon, lat)
    inside = (row >= 0) & (row < picture.shape[0]) & (col >= 0) & (col < picture.shape[1])
    assert inside.sum() > 10
    seen = values_of(picture, "cyclic", -math.pi, math.pi)[row[inside].astype(int), col[inside].astype(int)]
    expected = np.angle(pc[:, 0] * np.conj(pc[:, 9]))[inside]
    np.testing.assert_allclose(seen, expected, atol=math.pi / 127)


def test_the_unwrapped_network_of_mexico_city_and_its_missing_corner(real_data: Path, tmp_path: Path) -> None:
    paths = sorted((real_data / "s1-mexico-gamma-network" / "geotiffs").glob("*_unw.tif"))
    stack = np.stack([read_floats(path) for path in paths], axis=-1)
    source = write_array(tmp_path / "unw.zarr", stack, (60, 100, 1))
    ras_pyramid(ras=source, out_dir=str(tmp_path / "p"), method="mean")
    stats = marker(tmp_path / "p")["stats"]
    assert stats["nan_fraction"] == pytest.approx(np.isnan(stack).mean(), rel=1e-5)
    quicklook(tmp_path / "p", tmp_path / "p.png", width=100)
    low, high = np.nanpercentile(stack[..., 0].astype("float64"), [1, 99])
    assert high - low < (stats["p99"] - stats["p01"]) / 4  # each pair has its own constant, so the image its own range
    picture = picture_of(tmp_path / "p.png", 60, 100)
    seen = values_of(picture, "sequential", low, high)
    np.testing.assert_allclose(seen, np.clip(stack[..., 0], low, high), atol=(high - low) / 127)
    # the corner without data is at high azimuth and low range: down on the left
    assert np.isnan(stack[50:, :5, 0]).mean() > 0.5
    assert (picture[59, 0] == int(BACKGROUND[1:3], 16)).all()


@pytest.mark.parametrize("place", ["s1-westtexas-displacement", "s1-hawaii-displacement"])
def test_displacement_maps_zoomed_out_are_means(real_data: Path, tmp_path: Path, place: str) -> None:
    paths = sorted((real_data / place).glob("displacement_*.tif"))
    stack = np.stack([read_half_floats(path) for path in paths], axis=-1)
    last = stack.shape[-1] - 1
    source = write_array(tmp_path / "d.zarr", stack, (100, 100, 1))
    ras_pyramid(ras=source, out_dir=str(tmp_path / "p"), method="mean")
    stats = marker(tmp_path / "p")["stats"]
    known = stack[np.isfinite(stack)].astype("float64")
    names = ("min", "max", "mean", "std", "p01", "p50", "p99")
    expected = [known.min(), known.max(), known.mean(), known.std(), *np.percentile(known, [1, 50, 99])]
    np.testing.assert_allclose([stats[name] for name in names], expected, rtol=1e-5)
    assert stats["warnings"] == []

    width = -(-stack.shape[1] // 4)
    quicklook(tmp_path / "p", tmp_path / "p.png", index=(last,), width=width)
    picture = picture_of(tmp_path / "p.png", round(stack.shape[0] * width / stack.shape[1]), width)
    low, high = stats["p01"], stats["p99"]
    seen = values_of(picture, "sequential", low, high)
    for i in range(1, picture.shape[0] - 1, 7):
        for j in range(1, width - 1, 7):
            # the cell of level 2 under the center of the pixel
            places = zip((i, j), stack.shape, picture.shape, strict=False)
            line, sample = (int((k + 0.5) * n / n_pixels) // 4 * 4 for k, n, n_pixels in places)
            block = stack[line : line + 4, sample : sample + 4, last].astype("float64")
            mean = block[np.isfinite(block)].mean() if np.isfinite(block).any() else np.nan
            assert seen[i, j] == pytest.approx(np.clip(mean, low, high), abs=(high - low) / 127, nan_ok=True)
