"""Whoever looks at a result is told what its sign means: from the command that made it to the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import zarr
from web_pages import Viewer, chromium, dates, raster_pyramid, serving, site_of, slc_stack, write_dates

from moraine_core.testing.data import read_array, write_array
from moraine_unwrap.mcf_pc import mcf_pc
from moraine_unwrap.unwrap_correct_closure_pc import unwrap_correct_closure_pc
from moraine_view.pc_pyramid import pc_pyramid
from moraine_view.ras_pyramid import ras_pyramid
from moraine_view.web.layers import find_layers
from moraine_view.web.products import item_labels
from moraine_view.web.reader import Reader

if TYPE_CHECKING:
    from pathlib import Path

N = 3
WAVELENGTH = 0.0554657  # m, as `write_dates` has it
PAIRS = "[[0, 1], [0, 2], [1, 2]]"
SPACING = {"range_pixel_spacing": 3.0, "azimuth_pixel_spacing": 14.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Points on the ground that sink, more from date to date and from line to line: the satellite sees them go away."""
    folder = tmp_path_factory.mktemp("signs")
    gix = np.stack(np.unravel_index(np.arange(0, 900, 3), (30, 30)), axis=1).astype(np.int32)
    away = 1e-3 * gix[:, :1] * np.arange(N)  # m
    ph = np.exp(-4j * np.pi / WAVELENGTH * away).astype(np.complex64)
    common = {
        "gix": write_array(folder / "gix.zarr", gix, (300, 2)),
        "ph": write_array(folder / "ph.zarr", ph, (300, 1)),
        "image_pairs": PAIRS,
        **SPACING,
    }
    mcf_pc(**common, unw_ph=str(folder / "unw.zarr"))
    unwrap_correct_closure_pc(**common, unw_ph=str(folder / "unw.zarr"), ts=str(folder / "ts.zarr"))
    for name in ("unw", "ts"):
        pc_pyramid(
            pc=str(folder / f"{name}.zarr"),
            yx=str(folder / "gix.zarr"),
            out_dir=str(folder / f"{name}_pyramid"),
            ras_resolution=1.0,
        )
    pairs = np.stack([ph[:, a] * np.conj(ph[:, b]) for a, b in ((0, 1), (0, 2), (1, 2))], axis=-1)
    raster_pyramid(folder / "coh_pyramid", pairs[:300].reshape(30, 10, 3))
    write_dates(folder, N)
    return folder


def test_the_signs_that_are_told_are_those_of_the_numbers(folder: Path) -> None:
    """As docs/data-conventions.md has them: away is more in a pair of images, and less in a time series."""
    last = 299
    assert read_array(folder / "unw.zarr")[last, 1] - read_array(folder / "unw.zarr")[0, 1] > 0
    assert read_array(folder / "ts.zarr")[last, 2] - read_array(folder / "ts.zarr")[0, 2] < 0


def test_the_page_tells_the_sign_of_unwrapped_phases_and_time_series(folder: Path) -> None:
    with chromium() as browser, serving(site_of(folder, show="coh")) as url:
        viewer = Viewer(browser, url, f"l=unw&show=value&k={'-'.join(dates(N)[:2])}")
        expected = "phase of reference · conj(secondary): more is away from the satellite, if the reference is earlier"
        assert viewer.text(".bar-text") == f"unw (radians); {expected}"
        viewer.page.select_option("label:has-text('Layer') + select", "ts")
        viewer.wait()
        assert viewer.text(".bar-text") == "ts (radians); more is toward the satellite"
        viewer.page.select_option("label:has-text('Layer') + select", "coh")
        viewer.wait()
        expected = "interferometric phase (rad); more: away from the satellite, a fringe is 27.7 mm"
        assert viewer.text(".bar-text") == expected
        viewer.close()


def test_a_stack_that_begins_with_a_later_image_is_told_the_other_way_round(tmp_path: Path) -> None:
    raster_pyramid(tmp_path / "rslc_pyramid", slc_stack((20, 30), 2))
    first, second = dates(2)
    (tmp_path / "meta.toml").write_text(f'dates = ["{second}", "{first}"]\n')
    with chromium() as browser, serving(site_of(tmp_path)) as url:
        viewer = Viewer(browser, url, f"l=rslc&show=intf&a={second}&b={first}")
        assert viewer.text(".bar-text").endswith("later image first: more is toward the satellite")
        viewer.page.evaluate("moraine.set({a: 1, b: 0})")
        assert viewer.text(".bar-text").endswith("more: away from the satellite")
        viewer.close()


@pytest.mark.parametrize(
    ("stored", "axis"),
    [([[0, 1], [2, 1]], "pairs"), ([[0, 1]], "images"), ([[0, -1], [2, 1]], "images"), ("?", "images")],
)
def test_a_stack_says_itself_of_which_pairs_it_is(tmp_path: Path, stored: object, axis: str) -> None:
    """As filters and unwrapping write it; what cannot be is as if it were not there."""
    ras = write_array(tmp_path / "intf.zarr", slc_stack((20, 30), 2), (10, 15, 1))
    zarr.open_array(ras, mode="r+").attrs["image_pairs"] = stored
    ras_pyramid(ras=ras, out_dir=str(tmp_path / "intf_pyramid"))
    write_dates(tmp_path, 3)
    (layer,) = find_layers([tmp_path], reader=Reader())
    assert layer.axis == axis
    if axis == "pairs":
        assert layer.pairs == [(0, 1), (2, 1)]
        assert item_labels(layer) == ["2023-01-06 – 2023-01-18", "2023-01-30 – 2023-01-18"]
