"""`moraine view --export`: the same tiles in files, and the same page without a server that knows anything."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread, current_thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from web_pages import Viewer, axe, dates, files_of, raster_pyramid, site_of, slc_stack, write_dates

from moraine_core import store
from moraine_core.cli.main import run
from moraine_core.testing.data import read_array, write_array
from moraine_view.palette import color_index, color_table
from moraine_view.pc_pyramid import pc_pyramid
from moraine_view.web.answer import content, page_files
from moraine_view.web.export import Folder
from moraine_view.web.selection import choose
from moraine_view.web.sizes import require_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SHAPE, N = (300, 280), 4
D = dates(N)


@pytest.fixture(scope="module")
def stack() -> NDArray[np.complex64]:
    return slc_stack(SHAPE, N)


@pytest.fixture(scope="module")
def gix() -> NDArray[np.int32]:
    rng = np.random.default_rng(4)
    return np.stack(np.divmod(np.sort(rng.choice(300 * 280, 6000, replace=False)), 280), axis=1).astype(np.int32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, stack: Any, gix: Any) -> Path:
    folder = tmp_path_factory.mktemp("data")
    raster_pyramid(folder / "rslc_pyramid", stack)
    raster_pyramid(folder / "motion_pyramid", np.angle(stack)[..., :3].astype(np.float32) / 1000, "m")
    coh = np.stack([stack[..., a] * np.conj(stack[..., b]) for a in range(N) for b in range(a + 1, N)], axis=-1)
    raster_pyramid(folder / "coh_pyramid", (0.6 * np.exp(1j * np.angle(coh[:50, :60]))).astype(np.complex64))
    values = (gix.sum(axis=1)[:, None] * np.array([1.0, 0.5])).astype(np.float32)
    values[11] = np.nan
    pc_pyramid(
        pc=write_array(folder / "pc.zarr", values, (4000, 1)),
        yx=write_array(folder / "gix.zarr", gix, (4000, 2)),
        out_dir=str(folder / "points_pyramid"),
        ras_resolution=4.0,
    )
    write_dates(folder, N)
    return folder


@pytest.fixture(scope="module")
def exported(folder: Path) -> Path:
    out = folder / "out" / "site"
    assert run(["view", str(folder), "--export", str(out), "-q"]) == 0
    return out


@pytest.fixture(scope="module")
def url(browser: Any, exported: Path) -> Iterator[str]:
    with files_of(exported.parent) as url:
        yield f"{url}site/"  # in a folder, as on most servers


# -- the files


def test_every_tile_is_that_of_the_server_byte_for_byte(folder: Path, exported: Path) -> None:
    layers = site_of(folder).layers
    found = [path for path in exported.glob("z/*/*/[0-9]*/c/*/*/*") if path.is_file()]
    assert len(found) > 100
    for path in found:
        served = content(layers, f"/{path.relative_to(exported)}", {})
        assert path.read_bytes() == served.body, path


def test_all_arrays_open_with_zarr_and_series_hold_the_finest_level(exported: Path, stack: Any) -> None:
    layers = {layer["name"]: layer for layer in json.loads((exported / "meta.json").read_text())["layers"]}
    place = exported / "z" / str(layers["rslc"]["id"]) / "phase"
    phases = color_index(np.angle(stack), -math.pi, math.pi)
    np.testing.assert_array_equal(zarr.open_array(place / "0", mode="r")[...], phases)
    np.testing.assert_array_equal(zarr.open_array(place / "series", mode="r")[...], phases)
    np.testing.assert_array_equal(zarr.open_array(place / "2", mode="r")[...], phases[::4, ::4])


def test_points_are_exported_with_their_places(exported: Path, folder: Path, gix: Any) -> None:
    layer = next(
        found for found in json.loads((exported / "meta.json").read_text())["layers"] if found["name"] == "points"
    )
    place = exported / "z" / str(layer["id"])
    np.testing.assert_array_equal(zarr.open_array(place / "y", mode="r")[...], gix[:, 0] + 0.5)
    told = layer["products"]["value"]
    codes = zarr.open_array(place / "value" / "series", mode="r")[...]
    values = np.where(codes == told["nothing"], np.nan, told["offset"] + told["step"] * codes)
    np.testing.assert_allclose(values, read_array(folder / "pc.zarr"), atol=told["step"])


def test_no_path_of_this_machine_is_in_an_export(exported: Path, folder: Path) -> None:
    for path in exported.rglob("*"):
        if path.is_file() and path.suffix in (".json", ".html"):
            assert str(folder) not in path.read_text()


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_too_large_an_export_is_refused_with_levels_and_dates_that_would_fit(
    folder: Path, tmp_path: Path, capsys: Any
) -> None:
    most = (sum(map(len, page_files([]).values())) >> 10) + 607
    line = ["view", str(folder / "rslc_pyramid"), "-q", "--max-size", f"{most}kB"]
    assert run([*line, "--export", str(tmp_path / "all")]) == 2
    said = capsys.readouterr().err
    found = re.search(
        r"would take about [0-9.]+ MiB, more than --max-size [0-9.]+ MiB; --export-levels (\S+) would take .* MiB "
        r"or --export-dates (\S+) \((\d) dates\) would take .* MiB$",
        said,
    )
    levels, some, n = found.groups()
    assert (levels, some, n) == ("1..", f"{D[1]}..", "3")
    assert list(tmp_path.iterdir()) == []
    for name, words in (("levels", ["--export-levels", levels]), ("dates", ["--export-dates", some])):
        assert run([*line, "--export", str(tmp_path / name), *words]) == 0
        assert size_of(tmp_path / name) < most * 1024
    capsys.readouterr()
    assert run(["view", str(folder), "-q", "--export", str(tmp_path / "no"), "--max-size", "50kB"]) == 2
    assert "neither fewer levels nor fewer dates would fit" in capsys.readouterr().err
    assert run(["view", str(folder), "-q", "--export", str(tmp_path / "no"), "--max-size", "much"]) == 2
    assert "max_size is 'much'" in capsys.readouterr().err


def test_what_is_expected_of_the_size_is_about_what_it_becomes(folder: Path, exported: Path) -> None:
    layers = site_of(folder).layers
    expected = require_size(layers, choose(layers, "0..", None), 1 << 40)
    assert expected == pytest.approx(size_of(exported), rel=0.1)


def test_an_export_never_grows_beyond_its_size(folder: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr("moraine_view.web.export.require_size", lambda *_: 0.0)
    line = ["view", str(folder / "rslc_pyramid"), "-q", "--max-size", "700kB", "--export", str(tmp_path / "a" / "b")]
    assert run(line) == 2
    assert "takes more than --max-size 0.684 MiB" in capsys.readouterr().err
    assert list((tmp_path / "a").iterdir()) == []


def test_an_export_replaces_nothing_but_an_export_and_only_when_told(folder: Path, tmp_path: Path, capsys: Any) -> None:
    source = str(folder / "motion_pyramid")
    (tmp_path / "mine").mkdir()
    assert run(["view", source, "--export", str(tmp_path / "mine"), "--overwrite"]) == 2
    assert "is no export of moraine view" in capsys.readouterr().err
    out = str(tmp_path / "out")
    assert run(["view", source, "--export", out, "-q"]) == 0
    assert run(["view", source, "--export", out, "-q"]) == 2
    assert run(["view", source, "--export", out, "-q", "--overwrite"]) == 0


def test_only_the_levels_and_dates_that_are_asked_for_are_written(folder: Path, tmp_path: Path, stack: Any) -> None:
    """Single dates and ranges, with hyphens or without; pairs need both of their dates."""
    out = tmp_path / "some"
    chosen = f"{D[0]},2023-01-30.."
    line = ["view", str(folder), "-q", "--export", str(out), "--export-levels", "1..3", "--export-dates", chosen]
    assert run(line) == 0
    layers = {layer["name"]: layer for layer in json.loads((out / "meta.json").read_text())["layers"]}
    rslc, coh = layers["rslc"], layers["coh"]
    assert rslc["dates"] == [D[0], D[2], D[3]]
    assert (rslc["finest"], len(rslc["levels"])) == (1, 4)
    place = out / "z" / str(rslc["id"]) / "phase"
    assert sorted(path.name for path in place.iterdir()) == ["1", "2", "3", "series"]
    phases = color_index(np.angle(stack[..., [0, 2, 3]]), -math.pi, math.pi)
    np.testing.assert_array_equal(zarr.open_array(place / "1", mode="r")[...], phases[::2, ::2])
    np.testing.assert_array_equal(zarr.open_array(place / "series", mode="r")[...], phases[::2, ::2])
    assert coh["pairs"] == [[0, 1], [0, 2], [1, 2]]
    assert coh["items"][1] == "2023-01-06 – 2023-02-11"
    pairs = zarr.open_array(out / "z" / str(coh["id"]) / "coh" / "1", mode="r")
    assert pairs.shape == (25, 30, 9)
    truth = color_index(np.angle(stack[:50:2, :60:2, 0] * np.conj(stack[:50:2, :60:2, 3])), -math.pi, math.pi)
    away = np.abs(pairs[..., 2].astype(int) - truth) % 254
    assert away[truth < 255].max() <= 1
    assert (pairs[..., 3] == 255).all()
    # three images are no dates of ours: such a stack is whole, as are single rasters
    assert len(layers["motion"]["items"]) == 3


@pytest.mark.parametrize(
    ("dates_", "said"),
    [
        ("20230107", "'20230107' has none of the 4 dates, 20230106 to 20230211"),
        ("20230106,,20230118", "'' has none of"),
        ("..", "'..' has none of"),
        ("20230211..20230106", "has none of"),
        ("20230106", "coh has none of these dates, or no pair of two of them"),
    ],
)
def test_dates_that_are_not_there_are_said(folder: Path, tmp_path: Path, capsys: Any, dates_: str, said: str) -> None:
    assert run(["view", str(folder), "-q", "--export", str(tmp_path / "x"), "--export-dates", dates_]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_fails_leaves_nothing(tmp_path: Path, capsys: Any) -> None:
    raster_pyramid(tmp_path / "x_pyramid", np.zeros((50, 3000), np.float32))
    (tmp_path / "x_pyramid" / "0.zarr" / "c" / "0" / "7").unlink()
    assert run(["view", str(tmp_path), "--export", str(tmp_path / "out"), "-q"]) == 1
    assert "view: chunk (0, 7) of x_pyramid/0.zarr is missing" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


def test_data_made_again_meanwhile_are_not_mixed(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    source = raster_pyramid(tmp_path / "x_pyramid", np.zeros((50, 50), np.float32))
    put = Folder.put

    def late(folder: Folder, name: str, data: bytes) -> None:
        put(folder, name, data)
        if name.endswith("series/zarr.json"):
            shutil.rmtree(source)
            raster_pyramid(source, np.ones((50, 50), np.float32))

    monkeypatch.setattr(Folder, "put", late)
    assert run(["view", str(tmp_path), "--export", str(tmp_path / "out"), "-q"]) == 1
    assert "view: x: made again while it was exported" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["x_pyramid"]


def test_a_full_disk_is_said_in_a_sentence_and_the_old_export_stays(
    folder: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["view", str(folder / "motion_pyramid"), "--export", str(tmp_path / "out"), "-q", "--overwrite"]
    assert run(line) == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    write = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if "series" in path.parts:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    assert run(line) == 1
    said = f"{tmp_path / 'out'} cannot be written: no space left on device; nothing is changed"
    assert capsys.readouterr().err == f"moraine: view: {said}\n"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    monkeypatch.setattr("moraine_core.store.free_bytes", lambda _: 1000)
    assert run(line) == 2
    assert "would take about" in (found := capsys.readouterr().err)
    assert "are free there" in found


def test_a_folder_that_cannot_be_made_is_said_in_a_sentence(folder: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "file").write_text("")
    assert run(["view", str(folder / "motion_pyramid"), "--export", str(tmp_path / "file" / "out"), "-q"]) == 1
    assert re.search(r"moraine: view: .*out cannot be written: not a directory; nothing", capsys.readouterr().err)


def test_an_interrupt_while_threads_start_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool does not know yet of a thread during whose start the signal comes, and does not wait for it."""
    start, started = Thread.start, list[Thread]()

    def interrupted(thread: Thread) -> None:
        start(thread)
        if thread.name.startswith("ThreadPoolExecutor"):
            started.append(thread)
            if len(started) == 2:
                raise KeyboardInterrupt

    put = Folder.put

    def late(to: Folder, name: str, data: bytes) -> None:
        time.sleep(0.5 if current_thread() in started[1:] else 0)
        put(to, name, data)

    monkeypatch.setattr(Thread, "start", interrupted)
    monkeypatch.setattr(Folder, "put", late)
    assert run(["view", str(folder), "--export", str(tmp_path / "out"), "-q"]) == 130
    for thread in started:
        thread.join(30)
    assert not any(thread.is_alive() for thread in started)
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_is_killed_leaves_the_old_one_and_the_next_clears_up(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    line = ["view", str(folder), "--export", str(out), "-q", "--overwrite"]
    assert run(line) == 0
    before = (out / "meta.json").stat().st_mtime_ns
    for number, code in ((signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)):
        with subprocess.Popen(
            [sys.executable, "-m", "moraine_core", *line], stderr=subprocess.PIPE, text=True
        ) as killed:
            for _ in range(2000):
                if list(tmp_path.glob(".out.moraine/data/out/z/*/*/0/c")):
                    break
                time.sleep(0.005)
            killed.send_signal(number)
            said = killed.stderr.read()
        assert killed.returncode == code, said
        assert "Traceback" not in said
        assert (out / "meta.json").stat().st_mtime_ns == before
        assert {path.name for path in tmp_path.iterdir()} == ({".out.moraine", "out"} if code < 0 else {"out"})
    assert run(line) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (out / "meta.json").stat().st_mtime_ns > before


def test_two_exports_to_one_folder_do_not_mix(folder: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "out"
    with store.exclusive(tmp_path / ".out.moraine" / "lock", "the other"):
        assert run(["view", str(folder / "motion_pyramid"), "--export", str(out), "-q"]) == 1
    assert "out is in use by another moraine" in capsys.readouterr().err
    assert not out.exists()


def test_an_export_follows_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "there")
    line = ["view", str(folder / "motion_pyramid"), "--export", str(tmp_path / "link"), "-q", "--overwrite"]
    for _ in range(2):
        assert run(line) == 0
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "there" / "meta.json").is_file()


# -- the page


def test_pairs_are_formed_in_the_page(view: Any, stack: Any) -> None:
    """Two phases of 8 bits: 1.5 degrees at most from the truth, and no bias."""
    viewer = view(f"l=rslc&show=intf&a={D[1]}&b={D[3]}&v=149.5,139.5,0")
    truth = np.angle(stack[..., 1] * np.conj(stack[..., 3]))
    table = color_table("cyclic")
    index = color_index(truth, -math.pi, math.pi)
    found = viewer.pixels()
    near = [
        (found == table[np.where(index == 255, 255, (index.astype(int) + k) % 255)]).all(axis=-1) for k in (-1, 0, 1)
    ]
    assert np.any(near, axis=0).all()
    away = []
    for i, j in [(int(i), int(j)) for i, j in np.random.default_rng(0).integers((61, 0), SHAPE, (60, 2))]:
        told = viewer.page.evaluate(f"moraine.panes[0].valueAt({j + 0.5}, {i + 0.5})")
        away.append(math.remainder(told - truth[i, j], 2 * math.pi))
    assert np.abs(away).max() < math.radians(1.5)
    assert abs(np.mean(away)) < math.radians(0.3)


def test_reference_series_and_limits_need_no_server(view: Any, stack: Any, url: str) -> None:
    viewer = view(f"l=rslc&show=intf&a={D[0]}&b={D[2]}&v=149.5,139.5,0")
    viewer.click(130, 128)  # at the corner of four blocks
    viewer.page.wait_for_selector("#series-plot canvas")
    viewer.requests.clear()
    viewer.page.click("text=Set at last place")
    viewer.until("moraine.panes[0].constants !== null")
    viewer.page.keyboard.press("]")
    viewer.wait()
    viewer.page.keyboard.press("[")
    viewer.wait()
    assert all("/series/" not in request for request in viewer.requests)
    window = np.exp(1j * np.angle(stack[128:133, 126:131].astype(complex)))
    expected = np.angle((window[..., 0] * np.conj(window[..., 2])).sum())
    assert viewer.page.evaluate("moraine.panes[0].zero") == pytest.approx(expected, abs=0.02)
    viewer.page.click("#series-details summary")
    cells = viewer.page.locator("#series-table tbody td").all_inner_texts()
    constants = np.angle((window[..., 0, None] * np.conj(window)).sum(axis=(0, 1)))
    expected = np.angle(np.exp(1j * (np.angle(stack[130, 128, 0] * np.conj(stack[130, 128])) - constants)))
    found = np.array([float(cell.replace("−", "-")) for cell in cells])
    assert np.abs(np.angle(np.exp(1j * (found - expected)))).max() < 0.05
    assert all(request.startswith((url, "data:")) for request in viewer.requests)


def test_coherences_of_turned_pairs_and_of_an_image_with_itself(view: Any, stack: Any) -> None:
    told = []
    for a, b in ((0, 2), (2, 0)):
        viewer = view(f"l=coh&show=coh&a={D[a]}&b={D[b]}&v=25,30,0")
        told.append(viewer.page.evaluate("moraine.panes[0].valueAt(10.5, 10.5)"))
    assert told[0] == pytest.approx(np.angle(stack[10, 10, 0] * np.conj(stack[10, 10, 2])), abs=0.02)
    assert told[1] == pytest.approx(-told[0], abs=1e-6)
    viewer = view(f"l=coh&show=coh&a={D[1]}&b={D[1]}&v=25,30,0")
    assert viewer.page.evaluate("moraine.panes[0].valueAt(10.5, 10.5)") is None


def test_points_of_an_export_are_found_and_their_values_told(view: Any, gix: Any, folder: Path) -> None:
    i, j = map(int, gix[4500])  # in the second block
    viewer = view(f"l=points&show=value&k=1&v={i},{j},1")
    viewer.click(i, j)
    viewer.page.wait_for_selector("#series-plot canvas")
    assert viewer.fragment()["p"] == f"{i},{j}"
    viewer.page.click("#series-details summary")
    cells = viewer.page.locator("#series-table tbody td").all_inner_texts()
    np.testing.assert_allclose([float(c) for c in cells], read_array(folder / "pc.zarr")[4500], atol=0.3)


def test_a_profile_is_found_in_the_tiles(view: Any, stack: Any) -> None:
    viewer = view("l=motion&show=value&k=1&line=100,10,100,200&v=149.5,139.5,0")
    viewer.page.wait_for_selector("#profile-plot canvas")
    found = viewer.page.evaluate("moraine.panel.profile.found.values")
    np.testing.assert_allclose(found, np.angle(stack[100, 10:201, 1]) / 1000, atol=1e-5)


def test_what_an_export_cannot_do_is_disabled_with_the_reason(view: Any) -> None:
    viewer = view("l=rslc&show=intf&v=149.5,139.5,0")
    assert viewer.page.locator("label:has-text('Looks') + select").is_disabled()
    assert "averaging" in viewer.page.locator(".row:has(label:has-text('Looks'))").get_attribute("title")
    assert viewer.page.locator("label:has-text('Width (samples)') + input").is_disabled()
    assert axe(viewer) == []


def test_zoomed_in_beyond_the_finest_exported_level_pixels_grow(browser: Any, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "coarse"
    assert run(["view", str(folder / "motion_pyramid"), "--export", str(out), "-q", "--export-levels", "1.."]) == 0
    with files_of(out) as url:
        viewer = Viewer(browser, url, "v=100,100,2&k=1")
        assert viewer.pixels().shape[:2] != SHAPE
        viewer.click(101, 101)
        viewer.page.wait_for_selector("#series-plot canvas")
        viewer.close()
