"""Quicklooks of tiny pyramids written by hand: which values, where, in which color."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_view import palette, render, show
from moraine_view.pyramid import open_pyramid
from moraine_view.quicklook import Coloring, axis_marks, choose_coloring, compose, degrees, mercator, quicklook

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

PI = math.pi


def store(path: Path, data: NDArray[Any], **attributes: Any) -> None:
    array = zarr.create_array(str(path), shape=data.shape, dtype=data.dtype, chunks=data.shape)
    array[...] = data
    array.attrs.update(attributes)


def marker(kind: str, **stats: float) -> dict[str, Any]:
    return {"version": 1, "kind": kind, "method": "decimate", "stats": stats}


def raster(path: Path, data: NDArray[Any], **stats: float) -> Path:
    for level in range(math.floor(math.log2(min(data.shape[:2]))) + 1):
        attributes = {} if level else {"moraine_pyramid": marker("raster", **stats)}
        store(path / f"{level}.zarr", data[:: 2**level, :: 2**level], **attributes)
    return path


def cloud(path: Path, x: NDArray[Any], y: NDArray[Any], pc: NDArray[Any], level0: NDArray[Any], res: float) -> Path:
    """Write a cloud in one cell level; its R-tree is one page, so one box around all points."""
    path.mkdir()
    x0, y0 = float(x.min()), float(y.min())
    bounds = [x0, y0, x0 + (level0.shape[1] - 1) * res, y0 + (level0.shape[0] - 1) * res]
    (path / "bounds.toml").write_text(f"bounds = {bounds}\n")
    for name, data in (("x", x), ("y", y), ("pc", pc)):
        store(path / f"{name}.zarr", data)
    box = np.array([[x.min(), y.min(), x.max(), y.max()]], dtype=np.float64)
    store(path / "rtree.zarr", box, page_size=512, n_points=len(x))
    store(path / "0.zarr", level0, moraine_pyramid=marker("point cloud", p01=0.0, p99=254.0))
    return path


def pixels(png: Path, corner: tuple[int, int], rows: int, cols: int) -> NDArray[np.uint8]:
    """Cut the data area out of a picture, given its upper left corner."""
    from PIL import Image

    image = np.asarray(Image.open(png).convert("RGB"))
    return image[corner[0] : corner[0] + rows, corner[1] : corner[1] + cols]


def colors(name: palette.Palette, index: Any) -> NDArray[np.uint8]:
    """Look colors up, with the background showing through the transparent one."""
    table = palette.color_table(name)
    table[255] = (0xF4, 0xF4, 0xF4, 255)
    return table[np.asarray(index), :3]


# -- colors


def test_phases_have_the_indices_of_the_specification() -> None:
    phases = [0.0, -PI, np.nextafter(PI, 0), PI, np.nan]
    np.testing.assert_array_equal(palette.color_index(np.array(phases), -PI, PI), [127, 0, 254, 254, 255])
    single = np.array([0, -PI, np.nextafter(np.float32(PI), np.float32(0)), PI, np.nan], dtype=np.float32)
    np.testing.assert_array_equal(palette.color_index(single, -PI, PI), [127, 0, 254, 254, 255])


def test_values_beyond_the_range_take_its_end_colors() -> None:
    values = np.array([-np.inf, -1.0, 0.0, 0.5, 1.0, 7.0, np.inf, np.nan])
    np.testing.assert_array_equal(palette.color_index(values, 0.0, 1.0), [0, 0, 0, 127, 254, 254, 254, 255])
    np.testing.assert_array_equal(palette.color_index(np.array([False, True]), 0.0, 1.0), [0, 254])


def lightness(rgb: NDArray[np.uint8]) -> NDArray[np.float64]:
    """CIE L* of sRGB colors."""
    c = rgb / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    y = linear @ [0.2126, 0.7152, 0.0722]
    return np.where(y > 0.008856, 116 * np.cbrt(y) - 16, 903.3 * y)


def test_the_cycle_closes_without_a_seam() -> None:
    table = palette.color_table("cyclic")[:255, :3]
    steps = np.abs(table.astype(int) - np.roll(table, -1, axis=0)).sum(axis=1)
    assert steps[-1] <= steps[:-1].max()
    assert np.abs(np.diff(lightness(table))).max() < 2


def test_the_sequence_only_gets_lighter() -> None:
    steps = np.diff(lightness(palette.color_table("sequential")[:255, :3]))
    assert steps.min() > -0.3  # rounding to 8 bit
    assert steps.sum() > 70


@pytest.mark.parametrize("name", ["cyclic", "sequential"])
def test_only_the_missing_index_is_transparent_and_no_color_is_like_the_background(name: palette.Palette) -> None:
    table = palette.color_table(name)
    assert (table[:255, 3] == 255).all()
    assert table[255, 3] == 0
    assert np.abs(table[:255, :3].astype(int) - 0xF4).sum(axis=1).min() > 60


# -- what --show means


def shown_value(stack: NDArray[Any], how: str | None, *index: int, pairs: Any = None) -> float:
    """Show one pixel whose stack axes hold ``stack``."""
    plan = show.plan_show(how, stack.dtype, stack.shape, index, pairs)
    return float(plan.combine(*[stack[channel] for channel in plan.channels]))


PHASES = np.array([0.1, 0.4, 1.1, -1.5])
SLC = 2 * np.exp(1j * PHASES)


@pytest.mark.parametrize(
    ("how", "index", "expected"),
    [
        (None, (), 0.1),
        (None, (2,), 1.1),
        ("phase", (3,), -1.5),
        ("intf_0", (2,), 0.1 - 1.1),
        ("intf_0", (), 0.0),
        ("intf_seq", (1,), 0.4 - 1.1),
        ("intf_all", (), 0.1 - 0.4),
        ("intf_all", (2, 1), 1.1 - 0.4),
        ("intf_all", (2,), 1.1 - 0.4),
    ],
)
def test_interferograms_are_reference_times_conjugate_of_secondary(
    how: str | None, index: tuple[int, ...], expected: float
) -> None:
    assert shown_value(SLC, how, *index) == pytest.approx(expected)


def test_real_stacks_show_differences_without_wrapping_integers() -> None:
    heights = np.array([3, 5, 250], dtype=np.uint8)
    assert shown_value(heights, None, 2) == 250
    assert shown_value(heights, "intf_0", 2) == -247
    assert shown_value(heights, "intf_seq", 1) == -245
    assert shown_value(heights, "intf_all", 2, 0) == 247


def test_a_full_matrix_shows_its_elements() -> None:
    matrix = np.outer(SLC, SLC.conj())
    assert shown_value(matrix, "intf_all", 1, 3) == pytest.approx(0.4 + 1.5)
    assert shown_value(matrix, "intf_0", 2) == pytest.approx(0.1 - 1.1)
    assert shown_value(matrix, "intf_seq", 2) == pytest.approx(1.1 + 1.5)


def test_compressed_coherence_is_a_hermitian_matrix() -> None:
    ref, sec = np.triu_indices(4, 1)
    compressed = SLC[ref] * SLC[sec].conj() / 8
    for i in range(4):
        for j in range(4):
            expected = np.angle(SLC[i] * SLC[j].conj())
            assert shown_value(compressed, "coh", i, j) == pytest.approx(expected, abs=1e-12)
            assert shown_value(compressed, "coh_abs", i, j) == pytest.approx(1.0 if i == j else 0.5)


def test_a_pair_that_is_not_in_the_network_is_missing() -> None:
    compressed, pairs = np.array([0.5j, 0.25j]), [(0, 1), (1, 2)]
    assert shown_value(compressed, "coh_abs", 2, 1, pairs=pairs) == 0.25
    assert shown_value(compressed, "coh", 2, 1, pairs=pairs) == pytest.approx(-PI / 2)
    assert math.isnan(shown_value(compressed, "coh", 0, 2, pairs=pairs))


@pytest.mark.parametrize(
    ("how", "stack", "index", "message"),
    [
        ("phase", (4,), (4,), r"image = 4 .* 0 to 3"),
        (None, (4,), (-1,), r"image = -1 .* 0 to 3"),
        ("intf_seq", (4,), (3,), r"image = 3 .* 0 to 2"),
        ("intf_all", (4,), (0, 4), r"sec = 4 .* 0 to 3"),
        (None, (), (0,), "takes 0"),
        ("intf_seq", (1,), (), "two images"),
        ("intf_0", (), (), "one stack axis"),
        ("coh", (5,), (), "5 pairs are not all pairs"),
        ("coherence", (3,), (), "expected one of phase"),
        ("phase", (3, 3), (), "at most one stack axis"),
        ("intf_0", (2, 2, 2), (), "one stack axis, or two"),
        ("coh_abs", (3, 3), (), "one stack axis"),
    ],
)
def test_wrong_shows_and_indices_name_what_was_expected(
    how: str | None, stack: tuple[int, ...], index: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        show.plan_show(how, np.dtype(np.complex64), stack, index)


def test_a_stack_of_one_image_can_be_compared_only_with_itself() -> None:
    assert shown_value(SLC[:1], "intf_all") == 0
    assert shown_value(SLC[:1], "intf_0") == 0


def test_a_masked_pixel_has_no_coherence_with_itself_either() -> None:
    assert math.isnan(shown_value(np.array([complex(np.nan, np.nan)]), "coh_abs", 0, 0))
    assert math.isnan(shown_value(np.array([complex(np.nan, np.nan)]), "coh", 1, 1))


def test_real_data_with_two_stack_axes_have_a_slider_for_each() -> None:
    plan = show.plan_show(None, np.dtype("float32"), (3, 4), (2,))
    assert [(slider.name, slider.n, slider.value) for slider in plan.sliders] == [("index 1", 3, 2), ("index 2", 4, 0)]
    assert plan.channels == ((2, 0),)


def test_only_complex_data_have_a_phase() -> None:
    with pytest.raises(ValueError, match="needs complex data"):
        show.plan_show("phase", np.dtype(np.float32), (3,))


# -- pixels


@pytest.mark.parametrize(
    ("pixel", "level"), [(0.01, 0), (1.0, 0), (1.01, 1), (2.0, 1), (2.01, 2), (4.0000000001, 2), (900.0, 5)]
)
def test_the_level_is_the_finest_whose_cells_are_a_pixel(pixel: float, level: int) -> None:
    assert render.level_for(pixel, 1.0, 6) == level
    assert render.level_for(pixel * 20, 20.0, 6) == level


@settings(max_examples=60, deadline=None)
@given(w=st.floats(1e-3, 1e6), h=st.floats(1e-3, 1e6), width=st.integers(1, 2000))
def test_a_picture_is_no_wider_than_asked_and_no_taller_than_four_times_that(w: float, h: float, width: int) -> None:
    view = render.frame((-5.0, 7.0, w - 5.0, h + 7.0), width, is_y_down=True)
    assert 1 <= view.cols <= width
    assert 1 <= view.rows <= 4 * width
    assert view.cols == width or view.rows == 4 * width


def test_a_picture_of_one_pixel_per_cell_repeats_the_raster(tmp_path: Path) -> None:
    data = np.arange(24, dtype=np.float32).reshape(4, 6)
    data[2, 3] = np.nan
    quicklook(raster(tmp_path / "p", data, p01=0.0, p99=23.0), tmp_path / "new" / "p.png", width=6)
    seen = pixels(tmp_path / "new" / "p.png", (85, 85), 4, 6)
    # azimuth points down: line 0 is the top row
    np.testing.assert_array_equal(seen, colors("sequential", palette.color_index(data, 0.0, 23.0)))
    assert seen[2, 3].tolist() == [0xF4] * 3


def test_phases_appear_in_the_colors_of_the_cycle(tmp_path: Path) -> None:
    data = np.exp(1j * np.array([[0.0, -PI / 2], [PI / 2, np.nan]]))[..., None].astype(np.complex64)
    quicklook(raster(tmp_path / "p", data), tmp_path / "p.png", width=20)
    seen = pixels(tmp_path / "p.png", (104, 85), 20, 20)[5::10, 5::10]
    np.testing.assert_array_equal(seen, colors("cyclic", [[127, 63], [191, 255]]))


def test_outside_the_data_nothing_is_drawn(tmp_path: Path) -> None:
    source = open_pyramid(raster(tmp_path / "p", np.ones((4, 4), dtype=np.float32)))
    view = render.frame((-2.5, 1.5, 1.5, 5.5), 4, is_y_down=True)
    seen = render.sample_level(source, show.plan_show(None, source.dtype, ()), view, 0)
    expected = np.full((4, 4), np.nan)
    expected[:2, 2:] = 1  # ranges 0 and 1, azimuths 2 and 3
    np.testing.assert_array_equal(seen, expected)


def test_a_coarser_level_covers_the_cells_below_it(tmp_path: Path) -> None:
    data = np.arange(35, dtype=np.float32).reshape(5, 7)
    source = open_pyramid(raster(tmp_path / "p", data))
    plan = show.plan_show(None, source.dtype, ())
    view = render.frame(source.extent, 7, is_y_down=True)
    for level in range(source.n_levels):
        step = 2**level
        expected = np.repeat(np.repeat(data[::step, ::step], step, axis=0), step, axis=1)[:5, :7]
        np.testing.assert_array_equal(render.sample_level(source, plan, view, level), expected)


def test_only_the_needed_level_is_read(tmp_path: Path) -> None:
    path = raster(tmp_path / "p", np.zeros((64, 64), dtype=np.float32))
    for level in (0, 1, 3):  # reading one of these levels would fail
        for chunk in (path / f"{level}.zarr" / "c").rglob("*"):
            if chunk.is_file():
                chunk.write_bytes(b"broken")
    quicklook(path, tmp_path / "p.png", width=16)


def test_a_level_of_which_half_is_there_is_an_error(tmp_path: Path) -> None:
    """Blosc by itself would draw what lies behind the chunk in memory, or end the process."""
    noise = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    path = raster(tmp_path / "p", noise)
    attributes = dict(zarr.open_array(path / "0.zarr", mode="r").attrs)
    shutil.rmtree(path / "0.zarr")
    codec = zarr.codecs.BloscCodec(cname="lz4")
    array = zarr.create_array(str(path / "0.zarr"), data=noise, chunks=(64, 64), compressors=codec)
    array.attrs.update(attributes)
    chunk = path / "0.zarr" / "c" / "0" / "0"
    os.truncate(chunk, chunk.stat().st_size // 2)
    with pytest.raises(ValueError, match="cut short"):
        quicklook(path, tmp_path / "p.png", width=64)


def test_north_is_up_on_a_map(tmp_path: Path) -> None:
    e, n = mercator(14.14, 40.82)
    x, y = e + np.array([0.0, 20.0, 0.0]), n + np.array([0.0, 0.0, 20.0])
    level0 = np.array([[0.0, 127.0], [254.0, np.nan]], dtype=np.float32)  # row 0 is the south
    path = cloud(tmp_path / "p", x, y, np.array([0, 127, 254], dtype=np.float32), level0, 20.0)
    quicklook(path, tmp_path / "p.png", width=2)
    expected = colors("sequential", palette.color_index(np.flipud(level0), 0.0, 254.0))
    # the place line is longer than the narrowest title and takes two lines
    np.testing.assert_array_equal(pixels(tmp_path / "p.png", (104, 85), 2, 2), expected)


def test_azimuth_of_grid_points_points_down(tmp_path: Path) -> None:
    level0 = np.array([[0.0, np.nan], [np.nan, 9.0]], dtype=np.float32)
    path = cloud(tmp_path / "p", np.array([3, 4]), np.array([7, 8]), np.array([0.0, 9.0]), level0, 1.0)
    source = open_pyramid(path)
    assert (source.crs, source.extent) == ("grid", (2.5, 6.5, 4.5, 8.5))
    view = render.frame(source.extent, 2, is_y_down=True)
    seen = render.sample_level(source, show.plan_show(None, source.dtype, ()), view, 0)
    np.testing.assert_array_equal(seen, level0)


def test_points_are_disks_when_zoomed_in_and_later_ones_lie_on_top(tmp_path: Path) -> None:
    pytest.importorskip("moraine_points.kernels")
    x, y = np.array([0, 0, 2, 2]), np.array([0, 0, 0, 2])
    pc = np.array([1.0, 2.0, 3.0, np.nan])
    level0 = np.array([[2.0, np.nan, 3.0], [np.nan] * 3, [np.nan] * 3])
    source = open_pyramid(cloud(tmp_path / "p", x, y, pc, level0, 1.0))
    view = render.frame(source.extent, 30, is_y_down=True)  # ten pixels a cell: radius 4
    seen = render.draw_points(source, show.plan_show(None, source.dtype, ()), view)
    i, j = np.mgrid[:30, :30] + 0.5
    expected = np.full((30, 30), np.nan)
    expected[np.hypot(i - 5, j - 5) <= 4] = 2.0
    expected[np.hypot(i - 5, j - 25) <= 4] = 3.0
    np.testing.assert_array_equal(seen, expected)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 99), n=st.integers(0, 12), radius=st.floats(1, 4))
def test_disks_agree_with_painting_one_after_the_other(seed: int, n: int, radius: float) -> None:
    row, col = np.random.default_rng(seed).uniform(-3, 18, (2, n))
    expected = np.full((12, 15), -1)
    for k in range(n):
        for i in range(12):
            for j in range(15):
                if np.hypot(i + 0.5 - row[k], j + 0.5 - col[k]) <= radius:
                    expected[i, j] = k
    np.testing.assert_array_equal(render.disks(row, col, radius, (12, 15)), expected)


# -- colors of values


def test_values_are_colored_between_the_percentiles_of_all_data(tmp_path: Path) -> None:
    data = np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4)
    source = open_pyramid(raster(tmp_path / "p", data, p01=-3.0, p99=8.0))
    coloring = choose_coloring(show.plan_show(None, source.dtype, ()), source, data)
    assert coloring[:3] == ("sequential", -3.0, 8.0)


@pytest.mark.parametrize(
    ("data", "expected"), [(np.full((2, 2), np.nan), (0.0, 1.0)), (np.full((2, 2), 7.0), (6.5, 7.5))]
)
def test_data_without_a_range_still_have_one_in_color(
    tmp_path: Path, data: NDArray[Any], expected: tuple[float, float]
) -> None:
    source = open_pyramid(raster(tmp_path / "p", data))
    assert choose_coloring(show.plan_show(None, source.dtype, ()), source, data)[1:3] == expected


def coloring_of(path: Path, *index: int, values: Any = (0.0, 1.0)) -> Coloring:
    source = open_pyramid(path)
    return choose_coloring(show.plan_show(None, source.dtype, source.stack, index), source, np.array([values]))


def test_images_of_a_stack_have_the_same_colors_unless_one_would_have_hardly_any(tmp_path: Path) -> None:
    path = raster(tmp_path / "p", np.zeros((2, 2, 5), dtype=np.float32), p01=0.0, p99=100.0)
    ranges = np.array([[0.0, 80.0], [40.0, 60.0], [95.0, 200.0], [3.0, 3.0], [np.nan, np.nan]])
    store(path / "stats.zarr", np.column_stack([np.zeros((5, 5)), ranges[:, 0], np.zeros(5), ranges[:, 1]]))
    found = [coloring_of(path, k) for k in range(5)]
    assert [(c.low, c.high) for c in found] == [(0, 100), (40, 60), (95, 200), (0, 100), (0, 100)]
    assert ["range of this image" in c.label for c in found] == [False, True, True, False, False]


@pytest.mark.parametrize(
    ("unit", "high", "label", "factor"),
    [("m", 0.02, "p (mm)", 1000.0), ("m", 0.5, "p (m)", 1.0), ("rad", 0.02, "p (rad)", 1.0), ("", 0.02, "p", 1.0)],
)
def test_small_lengths_are_given_in_millimeters(
    tmp_path: Path, unit: str, high: float, label: str, factor: float
) -> None:
    path = raster(tmp_path / "p", np.zeros((2, 2), dtype=np.float32), p01=-0.01, p99=high)
    zarr.open_array(path / "0.zarr", mode="r+").attrs["unit"] = unit
    found = coloring_of(path)
    assert (found.label, found.low, found.high, found.factor) == (label, -0.01, high, factor)


@pytest.mark.parametrize(
    ("low", "high", "whole", "expected"),
    [
        (4.9084, 4.9125, False, [4.909, 4.91, 4.911, 4.912]),
        (-155.36, -155.23, False, [-155.35, -155.3, -155.25]),
        (-0.5, 5.5, True, [0, 2, 4]),
        (-0.5, 0.5, True, [0]),
    ],
)
def test_axes_are_marked_at_round_numbers(low: float, high: float, whole: bool, expected: list[float]) -> None:
    assert axis_marks(low, high, 5, whole=whole) == pytest.approx(expected)


def test_the_axes_of_a_map_are_in_degrees(tmp_path: Path) -> None:
    """So that what is read off a picture can be given as its extent."""
    e, n = mercator(4.905, 52.345)
    side = 1000.0
    view = render.Frame(e - side, n - side, e + side, n + side, 900, 900, 2 * side / 900, is_y_down=False)
    figure = compose(np.zeros((900, 900)), Coloring("sequential", 0, 1, "x"), view, ["x"], is_map=True)
    axes = figure.axes[1]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("longitude (°)", "latitude (°)")
    for k, axis in enumerate((axes.xaxis, axes.yaxis)):
        places, names = axis.get_ticklocs(), [label.get_text() for label in axis.get_ticklabels()]
        assert len(places) >= 3
        for place, name in zip(places, names, strict=True):
            at = degrees(place, n) if k == 0 else degrees(e, place)
            assert at[k] == pytest.approx(float(name), abs=1e-9)
        assert len({len(name) for name in names}) == 1


# -- what is a pyramid


@pytest.mark.parametrize("what", ["nothing", "a file", "an empty directory", "an array", "an unfinished pyramid"])
def test_what_is_not_a_pyramid_says_how_to_build_one(tmp_path: Path, what: str) -> None:
    path = tmp_path / "p"
    if what == "a file":
        path.write_text("no")
    elif what == "an empty directory":
        path.mkdir()
    elif what == "an array":
        store(path, np.zeros((4, 4)))
    elif what == "an unfinished pyramid":
        store(path / "0.zarr", np.zeros((4, 4)))
    with pytest.raises(ValueError, match=r"moraine ras-pyramid.*moraine pc-pyramid"):
        quicklook(path, tmp_path / "p.png")
    assert not (tmp_path / "p.png").exists()


def test_an_old_pyramid_without_marker_is_known_by_its_second_level(tmp_path: Path) -> None:
    for level, shape in enumerate([(5, 7), (3, 4)]):
        store(tmp_path / "p" / f"{level}.zarr", np.zeros(shape, dtype=np.float32))
    assert quicklook(tmp_path / "p", tmp_path / "p.png", width=50).exists()


def test_a_pyramid_of_a_later_version_is_refused(tmp_path: Path) -> None:
    later = marker("raster") | {"version": 2}
    store(tmp_path / "p" / "0.zarr", np.zeros((1, 1)), moraine_pyramid=later)
    with pytest.raises(ValueError, match="version 2"):
        quicklook(tmp_path / "p", tmp_path / "p.png")


def test_degrees_are_refused_with_the_way_out(tmp_path: Path) -> None:
    x, y = np.array([14.14, 14.15]), np.array([40.82, 40.82])
    path = cloud(tmp_path / "p", x, y, np.zeros(2), np.zeros((1, 2)), 0.01)
    with pytest.raises(ValueError, match=r"look like degrees.*moraine transform"):
        quicklook(path, tmp_path / "p.png")


@pytest.mark.parametrize(
    ("x", "y", "crs"),
    [
        ([0.0, 7.0], [3.0, 9.0], "grid"),
        ([14.0, 15.0], [40.0, 41.0], "grid"),  # whole numbers from 0
        ([-20.0, 14.0], [40.0, 41.0], None),
        ([14.5, 200.25], [-80.0, 41.0], None),
        ([546_400.5, 546_800.5], [6_862_850.0, 6_862_950.0], "web_mercator"),
        ([5.5, 900.5], [6.0, 7.0], "web_mercator"),  # close to the equator at Greenwich
        ([0.5, 3e7], [0.0, 1.0], None),
    ],
)
def test_coordinates_tell_what_they_are(tmp_path: Path, x: list[float], y: list[float], crs: str | None) -> None:
    path = cloud(tmp_path / "p", np.array(x), np.array(y), np.zeros(2), np.zeros((1, 2)), x[1] - x[0])
    if crs is None:
        with pytest.raises(ValueError, match="moraine transform"):
            open_pyramid(path)
    else:
        assert open_pyramid(path).crs == crs


@pytest.mark.parametrize(
    ("extent", "message"),
    [
        ((4.9, 52.3, 4.8, 52.4), "expected west, south, east, north with min < max"),
        ((4.8, 52.3, 4.9, 91.0), "not on the map"),
        ((math.nan, 52.3, 4.9, 52.4), "is empty"),
        ((4.8, 52.3, math.inf, 52.4), "not on the map"),
    ],
)
def test_an_extent_on_a_map_is_in_degrees(
    tmp_path: Path, extent: tuple[float, float, float, float], message: str
) -> None:
    x, y = np.array([546_400.5, 546_800.5]), np.array([6_862_850.0, 6_862_950.0])
    path = cloud(tmp_path / "p", x, y, np.zeros(2), np.zeros((1, 2)), 400.0)
    with pytest.raises(ValueError, match=message):
        quicklook(path, tmp_path / "p.png", extent=extent)


def test_outside_of_a_cloud_there_is_an_empty_picture(tmp_path: Path) -> None:
    x, y = np.array([546_400.5, 546_800.5]), np.array([6_862_850.0, 6_862_950.0])
    path = cloud(tmp_path / "p", x, y, np.zeros(2), np.zeros((1, 2)), 400.0)
    assert quicklook(path, tmp_path / "p.png", extent=(5.0, 50.0, 5.0001, 50.0001), width=20).exists()
    assert (pixels(tmp_path / "p.png", (104, 85), 20, 20) == 0xF4).all()


def test_an_extent_must_not_be_empty(tmp_path: Path) -> None:
    path = raster(tmp_path / "p", np.zeros((4, 4), dtype=np.float32))
    with pytest.raises(ValueError, match="min < max"):
        quicklook(path, tmp_path / "p.png", extent=(3.0, 0.0, 1.0, 2.0))


def test_the_map_projection_has_its_known_values() -> None:
    assert mercator(14.14, 40.82) == pytest.approx((1574057.5998, 4985827.8482), abs=1e-3)


def test_a_quicklook_needs_neither_a_screen_nor_pyplot(tmp_path: Path) -> None:
    path = raster(tmp_path / "p", np.zeros((2, 2), dtype=np.complex64))
    code = (
        "import sys, pathlib; from moraine_view.quicklook import quicklook; "
        f"quicklook(pathlib.Path({str(path)!r}), pathlib.Path({str(tmp_path / 'p.png')!r}), width=10); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "MPLBACKEND")}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=60)
