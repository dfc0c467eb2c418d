"""Two real radar images of Amsterdam through 02_ps: docs/real-data.md is run as it stands.

What must come out is known from the data's own description (coherence, mean phase), from their geolocation (where the
canals are) and from formulas, not from moraine.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from moraine_core.testing.data import read_array

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "real-data.md"
PAIR = "s1-amsterdam-slc-pair"
SHAPE = (84, 338)

LINE_BORDERS = (40, 80)  # of the chunks of 40 x 100 pixels
SAMPLE_BORDERS = (100, 200, 256, 300)  # 256: of the tiles of the pyramid

WATER = {  # center lines as (latitude, longitude), named after the city map
    "Singel": [(52.3690, 4.8878), (52.3735, 4.8888), (52.3752, 4.8902)],
    "Kloveniersburgwal": [(52.3690, 4.8972), (52.3718, 4.8995)],
    "Oude Schans": [(52.3703, 4.9025), (52.3714, 4.9047)],
    "Amstel": [(52.3674, 4.8965), (52.3675, 4.8985)],
}


class Work(NamedTuple):
    """Where the page was run, and the raw layers it started from."""

    folder: Path
    pair: Path

    def layer(self, date: str, name: str) -> np.ndarray:
        return np.fromfile(self.pair / f"{date}-coreg.znap" / name / "0.0", dtype=">f4").reshape(SHAPE).astype(float)

    def slc(self, date: str, day: str) -> np.ndarray:
        return self.layer(date, f"i_VV_{day}") + 1j * self.layer(date, f"q_VV_{day}")

    @property
    def reference(self) -> np.ndarray:
        return self.slc("20230331", "31Mar2023")

    @property
    def secondary(self) -> np.ndarray:
        return self.slc("20230319", "19Mar2023")

    def moraine(self, *words: str) -> None:
        call = [sys.executable, "-m", "moraine_core", *words]
        done = subprocess.run(call, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def work(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Work:
    """The page's program saved, and all its lines run."""
    pair = real_data / PAIR
    if not pair.is_dir():
        pytest.skip(f"no {PAIR} in {real_data}")
    text = PAGE.read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (lines,) = re.findall(r"^```bash\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    made = Work(tmp_path_factory.mktemp("amsterdam"), pair)
    (made.folder / "read_pair.py").write_text(program, encoding="utf-8")
    (made.folder / PAIR).symlink_to(pair)
    (made.folder / "pipelines").symlink_to(ROOT / "pipelines")
    for name, *words in map(shlex.split, lines.replace("\\\n", " ").splitlines()):
        if name == "python":
            subprocess.run([sys.executable, *words], cwd=made.folder, check=True)
        else:
            assert name == "moraine"
            made.moraine(*words)
    return made


@pytest.fixture(scope="module")
def stack(work: Work) -> np.ndarray:
    """Level 0 of the stack's pyramid, which is what the pictures are drawn from."""
    return read_array(work.folder / "amsterdam/raw/rslc_pyramid/0.zarr")


@pytest.fixture(scope="module")
def interferogram(stack: np.ndarray) -> np.ndarray:
    return stack[..., 0] * np.conj(stack[..., 1])


def boxcar(values: np.ndarray, lines: int, samples: int) -> np.ndarray:
    """Sum over every window that lies within."""
    windows = np.lib.stride_tricks.sliding_window_view(values, (lines, samples))
    return windows.sum(axis=(2, 3))


# ------------------------------------------------------------------------------------------------ the numbers


def test_the_pyramid_holds_the_raw_layers_with_zeros_as_nan(work: Work, stack: np.ndarray):
    for image, raw in enumerate((work.reference, work.secondary)):
        np.testing.assert_array_equal(np.isnan(stack[..., image]), raw == 0)
        np.testing.assert_array_equal(stack[..., image][raw != 0], raw[raw != 0].astype(np.complex64))
    assert np.isnan(stack).sum() == 3  # "one zero pixel in one date, two in the other"


def test_the_interferogram_is_coherent_around_minus_1_2_rad(stack: np.ndarray, interferogram: np.ndarray):
    assert abs(np.angle(np.nansum(interferogram)) - -1.2) < 0.2
    power = np.nan_to_num(np.abs(stack) ** 2)
    sums = [boxcar(part, 3, 11) for part in (np.nan_to_num(interferogram), power[..., 0], power[..., 1])]
    coherence = np.abs(sums[0]) / np.sqrt(sums[1] * sums[2])
    # measured by those who prepared the data: median 0.82, 5 % 0.32, 95 % 0.96
    np.testing.assert_allclose(np.quantile(coherence, [0.05, 0.5, 0.95]), [0.32, 0.82, 0.96], atol=0.03)


def test_in_order_of_dates_the_phase_has_the_other_sign(work: Work):
    in_order = work.secondary * np.conj(work.reference)  # image 0 is the earlier one
    assert abs(np.angle(in_order.sum()) - 1.2) < 0.2


def test_the_dispersion_of_two_images_is_their_difference_over_their_sum(work: Work):
    a, b = np.abs(work.reference), np.abs(work.secondary)
    expected = np.where((a > 0) & (b > 0), np.abs(a - b) / np.where(a + b > 0, a + b, 1), np.nan)
    adi = read_array(work.folder / "amsterdam/ps/ras_adi.zarr")
    np.testing.assert_allclose(adi, expected, atol=1e-6)
    gix = read_array(work.folder / "amsterdam/ps/ps_can_gix.zarr")
    chosen = np.zeros(SHAPE, bool)
    chosen[tuple(gix.T)] = True
    np.testing.assert_array_equal(chosen, adi < 0.25)
    assert (np.diff(read_array(work.folder / "amsterdam/ps/ps_can_hix.zarr")) > 0).all()
    np.testing.assert_array_equal(read_array(work.folder / "amsterdam/ps/ps_can_adi.zarr"), adi[tuple(gix.T)])


@pytest.mark.parametrize("name", WATER)
@pytest.mark.parametrize("image", [0, 1])
def test_canals_are_darker_than_their_banks(work: Work, name: str, image: int):
    amplitude = read_array(work.folder / "amsterdam/raw/db_pyramid/0.zarr")[..., image]
    away = meters_from(work, WATER[name])
    water, banks = amplitude[away < 8], amplitude[(away > 35) & (away < 60)]
    assert min(water.size, banks.size) > 20
    assert np.nanmedian(water) < np.nanmedian(banks) - 5  # decibels


@pytest.mark.parametrize("name", WATER)
def test_water_is_less_coherent_than_its_banks(work: Work, interferogram: np.ndarray, name: str):
    away = meters_from(work, WATER[name])
    unit = np.exp(1j * np.angle(interferogram))
    water, banks = (abs(np.nanmean(unit[part])) for part in (away < 8, (away > 35) & (away < 60)))
    assert water < banks - 0.15


def meters_from(work: Work, line: list[tuple[float, float]]) -> np.ndarray:
    """Distance of every pixel beside a line through places; infinite for those beyond its ends."""

    def on_plane(latitude, longitude):
        east = (np.asarray(longitude) - 4.896) * 111_320 * np.cos(np.radians(52.371))
        return np.stack([east, (np.asarray(latitude) - 52.371) * 111_200], axis=-1)

    pixels = on_plane(work.layer("20230331", "latitude_VV"), work.layer("20230331", "longitude_VV"))
    nearest = np.full(SHAPE, np.inf)
    places = [on_plane(*place) for place in line]
    for start, stop in pairwise(places):
        length = np.hypot(*(stop - start))
        ahead = (stop - start) / length
        along = (pixels - start) @ ahead
        aside = np.abs((pixels - start) @ (ahead[1], -ahead[0]))
        nearest = np.where((along >= 0) & (along <= length), np.minimum(nearest, aside), nearest)
    return nearest


# -------------------------------------------------------------------------------------------------- the seams


def steps(values: np.ndarray, axis: int) -> np.ndarray:
    """How much neighboring lines (or samples) differ, one number per neighborhood: an offset, and scatter."""
    if np.iscomplexobj(values):
        values = np.angle(values)
        differences = np.angle(np.exp(1j * np.diff(values, axis=axis)))
    else:
        differences = np.diff(values, axis=axis)
    other = 1 - axis
    return np.maximum(np.abs(np.nanmean(differences, axis=other)), np.nanmedian(np.abs(differences), axis=other))


def seams(values: np.ndarray) -> list[tuple[int, int]]:
    """Borders (axis, index) of chunks or tiles where neighbors differ more than anywhere else.

    Speckle hides small steps; that values are those of the raw layers, pixel by pixel, is tested above.
    """
    found = []
    for axis, borders in enumerate((LINE_BORDERS, SAMPLE_BORDERS)):
        measured = steps(values, axis)
        at_border = np.isin(np.arange(measured.size) + 1, borders)
        limit = measured[~at_border].max()
        found += [(axis, border) for border in borders if measured[border - 1] > limit]
    return found


def test_amplitude_and_phase_have_no_seam_at_borders_of_chunks(work: Work, interferogram: np.ndarray):
    amplitude = read_array(work.folder / "amsterdam/raw/db_pyramid/0.zarr")
    assert seams(amplitude[..., 0]) == []
    assert seams(amplitude[..., 1]) == []
    assert seams(interferogram) == []
    assert seams(read_array(work.folder / "amsterdam/ps/ras_n2f_intf.zarr")[..., 0]) == []
    assert seams(read_array(work.folder / "amsterdam/ps/ras_adi.zarr")) == []


def test_a_seam_would_be_seen(work: Work, interferogram: np.ndarray):
    amplitude = read_array(work.folder / "amsterdam/raw/db_pyramid/0.zarr")[..., 0]
    brighter, turned = amplitude.copy(), interferogram.copy()
    brighter[:, 100:200] += 10  # decibels
    turned[40:80] *= np.exp(1j)
    assert seams(brighter) == [(1, 100), (1, 200)]
    assert seams(turned) == [(0, 40), (0, 80)]


# ----------------------------------------------------------------------------------------------- the pictures


def test_pictures_are_there(work: Work):
    folder = work.folder / "amsterdam"
    drawn = {path.name for path in (folder / ".moraine/02_ps/quicklook").iterdir()}
    rasters = ("adi_pyramid__ras_adi", "n2f_pyramid__ras_n2f_intf", "temp_coh_pyramid__ras_temp_coh")
    assert drawn == {f"{name}_pyramid.png" for name in (*rasters, "ps_can_pyramid__ps_can_adi")}
    for name in ("amplitude.png", "interferogram.png", "filtered.png"):
        assert picture(folder / name).std() > 10


def test_the_picture_shows_the_phase_pixel_by_pixel_and_without_a_seam(work: Work, interferogram: np.ndarray):
    png = work.folder / "one-to-one.png"
    words = ("quicklook", "amsterdam/raw/rslc_pyramid", "--show", "intf_seq", "--output", str(png))
    work.moraine(*words, "--width", str(SHAPE[1]))
    pixels = picture(png)
    assert pixels.shape == (*SHAPE, 3)
    colors = np.rint(255 * np.loadtxt(Path(find_spec("cmcrameri").origin).parent / "cmaps" / "romaO.txt"))
    nearest = np.abs(pixels[..., None, :] - colors).sum(axis=-1).argmin(axis=-1)
    shown = np.exp(1j * ((nearest + 0.5) / 256 * 2 * np.pi - np.pi))
    known = ~np.isnan(interferogram)
    off = np.angle(shown[known] * np.conj(interferogram[known]))
    assert np.abs(off).max() < 0.06  # two color steps of 0.025 rad
    assert abs(np.angle(shown[known].mean()) - -1.2) < 0.2
    assert seams(np.where(known, shown, np.nan)) == []


def picture(png: Path) -> np.ndarray:
    """The data area of a picture as ``(rows, cols, 3)``: what is inside the dark frame one pixel wide."""
    from matplotlib.image import imread

    rgb = np.round(imread(png)[..., :3] * 255).astype(int)
    is_frame = (rgb == 51).all(axis=-1)  # a gray of 20 %
    rows = np.flatnonzero(is_frame.sum(axis=1) > 300)
    cols = np.flatnonzero(is_frame[rows[0] : rows[-1] + 1].mean(axis=0) > 0.9)  # marks of the axes cross it
    return rgb[rows[0] + 1 : rows[-1], cols[0] + 1 : cols[-1]]
