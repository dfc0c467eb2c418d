"""The main screens of `moraine view`, in light and dark, wide and narrow, as pictures for the eye.

They are kept where ``MORAINE_SCREENSHOTS`` says, for a person to look at, and compared with nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from web_pages import Viewer, dates, raster_pyramid, serving, site_of, slc_stack, write_dates

from moraine_core.testing.data import write_array
from moraine_view.pc_pyramid import pc_pyramid

if TYPE_CHECKING:
    from collections.abc import Iterator

SHAPE, N = (700, 600), 6
D = dates(N)
PAIR = f"l=rslc&show=intf&a={D[0]}&b={D[2]}"

SCREENS = {
    "pair": (f"{PAIR}&looks=2&ref=600,500,5&p=300,300;150,420", "#series-plot canvas"),
    "profile": (f"l=motion&show=value&k={D[4]}&line=100,100,600,500&width=5", "#profile-plot canvas"),
    "panes": (f"panes=2&{PAIR}&2.l=points&2.show=value", ""),
    "help": (PAIR, ""),
}
"""What the address says, and what must be there."""

SIZES = {"wide": (1280, 1500), "narrow": (320, 800)}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("data")
    stack = slc_stack(SHAPE, N)
    raster_pyramid(folder / "rslc_pyramid", stack)
    i, j = np.mgrid[: SHAPE[0], : SHAPE[1]]
    bowl = np.exp(-((i - 300) ** 2 + (j - 280) ** 2) / 2e4)[..., None] * np.arange(N) * -0.004
    raster_pyramid(folder / "motion_pyramid", bowl.astype(np.float32), "m")
    rng = np.random.default_rng(0)
    gix = np.stack(np.divmod(np.sort(rng.choice(SHAPE[0] * SHAPE[1], 20_000, replace=False)), SHAPE[1]), axis=1)
    values = rng.normal(0.1, 0.02, len(gix)).astype(np.float32)
    pc_pyramid(
        pc=write_array(folder / "pc.zarr", values, (20_000,)),
        yx=write_array(folder / "gix.zarr", gix.astype(np.int32), (20_000, 2)),
        out_dir=str(folder / "points_pyramid"),
        ras_resolution=8.0,
    )
    write_dates(folder, N)
    with serving(site_of(folder)) as url:
        yield url


@pytest.mark.parametrize("name", SCREENS)
def test_pictures_of_the_main_screens_are_taken(browser: Any, url: str, tmp_path: Path, name: str) -> None:
    folder = Path(os.environ.get("MORAINE_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    fragment, wanted = SCREENS[name]
    viewer = Viewer(browser, url, fragment, reduced_motion="reduce")
    if wanted:
        viewer.page.wait_for_selector(wanted)
    if name == "help":
        viewer.page.keyboard.press("?")
    for size, (width, height) in SIZES.items():
        viewer.page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            viewer.page.emulate_media(color_scheme=scheme)
            viewer.wait()
            taken = viewer.page.screenshot(path=folder / f"{name}-{size}-{scheme}.png", full_page=name != "help")
            assert len(taken) > 10_000
    assert viewer.errors == []
    viewer.close()
