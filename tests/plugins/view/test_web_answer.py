"""What the server of `moraine view` answers: numbers against numpy, and requests that nobody should send."""

from __future__ import annotations

import gzip
import http.client
import json
import logging
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from web_pages import dates, raster_pyramid, serving, site_of, slc_stack, write_dates
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, ZstdCodec

from moraine_core.testing.data import write_array
from moraine_view.palette import color_index
from moraine_view.ras_pyramid import ras_pyramid
from moraine_view.web import codes
from moraine_view.web.answer import Request, answer
from moraine_view.web.chunks import plain
from moraine_view.web.layers import find_layers
from moraine_view.web.reader import IncompleteError, Reader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from moraine_view.web.answer import Site

SHAPE, N = (300, 520), 4


@pytest.fixture(scope="module")
def stack() -> NDArray[np.complex64]:
    return slc_stack(SHAPE, N)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, stack: NDArray[np.complex64]) -> Path:
    folder = tmp_path_factory.mktemp("data")
    raster_pyramid(folder / "rslc_pyramid", stack)
    raster_pyramid(folder / "hgt_pyramid", np.where(np.isnan(stack[..., 0]), np.nan, np.abs(stack[..., 0]) * 100), "m")
    write_dates(folder, N)
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> Site:
    return site_of(folder)


def ask(site: Site, target: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    given = {"host": "localhost:1234", "cookie": f"{site.name}={site.token}"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    response = answer(site, Request(method, target, given))
    return response.status, response.body, dict(response.headers)


def tile(site: Site, address: str, dtype: str = "uint8") -> NDArray[Any]:
    status, body, _ = ask(site, f"/z/{address}")
    assert status == 200, body
    return np.frombuffer(gzip.decompress(body), dtype).reshape(256, 256)


def number_of(site: Site, name: str) -> int:
    return next(layer.number for layer in site.layers if layer.name == name)


# -- values


def test_tiles_of_a_pair_are_the_colors_of_a_quicklook(site: Site, stack: NDArray[np.complex64]) -> None:
    number = number_of(site, "rslc")
    for level in (0, 1, 3):
        part = stack[:: 2**level, :: 2**level]
        rows, cols = part.shape[:2]
        expected = color_index(np.angle(part[..., 1] * np.conj(part[..., 3])), -math.pi, math.pi)
        for row in range(-(-rows // 256)):
            for col in range(-(-cols // 256)):
                found = tile(site, f"{number}/intf/{level}/c/{row}/{col}/{1 * N + 3}")
                wanted = np.full((256, 256), 255)
                piece = expected[row * 256 : (row + 1) * 256, col * 256 : (col + 1) * 256]
                wanted[: piece.shape[0], : piece.shape[1]] = piece
                np.testing.assert_array_equal(found, wanted)


def test_phases_have_the_codes_of_the_specification() -> None:
    single = np.float32(math.pi)
    phases = np.array([0.0, -math.pi, np.nextafter(math.pi, 0), math.pi, np.nan])
    np.testing.assert_array_equal(codes.PHASE.encode(phases), [127, 0, 254, 254, 255])
    np.testing.assert_array_equal(codes.PHASE.encode(np.array([np.nextafter(single, np.float32(0))])), [254])
    assert codes.PHASE.offset + codes.PHASE.step * 127 == pytest.approx(0, abs=1e-12)


def test_looks_average_in_complex_numbers(site: Site, stack: NDArray[np.complex64]) -> None:
    """Every pixel of the tile has the angle of the sum of its block, as plain loops find it."""
    number = number_of(site, "rslc")
    intf = stack[..., 0].astype(complex) * np.conj(stack[..., 2])
    found = tile(site, f"{number}/intf4/0/c/1/1/2")
    for i in range(0, 44, 5):
        for j in range(0, 256, 17):
            block = intf[(256 + i) // 4 * 4 :, (256 + j) // 4 * 4 :][:4, :4]
            known = block[np.isfinite(block)]
            expected = math.atan2(known.sum().imag, known.sum().real)
            away = codes.PHASE.offset + codes.PHASE.step * int(found[i, j]) - expected
            assert abs(math.remainder(away, 2 * math.pi)) <= codes.PHASE.step / 2 + 1e-6
    # at a coarser level the samples are those of the level two below
    fine = stack[::2, ::2]
    intf = fine[..., 0].astype(complex) * np.conj(fine[..., 2])
    found = tile(site, f"{number}/intf4/3/c/0/0/2")
    expected = np.angle(intf[40:44, 80:84].sum())
    assert abs(codes.PHASE.offset + codes.PHASE.step * int(found[10, 20]) - expected) <= codes.PHASE.step
    hole = tile(site, f"{number}/intf4/0/c/0/0/2")
    assert (hole[20:60, 32:80] == 255).all()


def test_amplitudes_are_decibels_between_their_percentiles(site: Site, stack: NDArray[np.complex64]) -> None:
    number = number_of(site, "rslc")
    found = tile(site, f"{number}/amp/0/c/0/0/2")
    low, high = 20 * np.log10(np.nanquantile(np.abs(stack[np.isfinite(stack)]), [0.01, 0.99]))
    expected = color_index(20 * np.log10(np.abs(stack[:256, :256, 2]).astype(float)), low, high).astype(int)
    assert np.abs(found.astype(int) - expected).max() <= 1


def test_values_come_back_within_a_step(site: Site, folder: Path) -> None:
    number = number_of(site, "hgt")
    described = json.loads(ask(site, f"/z/{number}/value/0/zarr.json")[1])
    told = described["attributes"]
    data = zarr.open_array(folder / "hgt_pyramid" / "0.zarr", mode="r")[:256, :256]
    found = tile(site, f"{number}/value/0/c/0/0/0", "<u2")
    assert ((found == told["nothing"]) == np.isnan(data)).all()
    known = ~np.isnan(data)
    away = told["offset"] + told["step"] * found[known] - data[known]
    assert np.abs(away).max() <= told["step"] * 0.501
    p01, p99 = np.nanpercentile(data, [1, 99])
    assert told["step"] <= (p99 - p01) / 1000


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-40000, 40000), min_size=1, max_size=50), st.sampled_from(["int16", "int32", "uint8"]))
def test_integers_are_coded_without_loss_where_there_are_codes_enough(values: list[int], dtype: str) -> None:
    data = np.array(values).astype(dtype).astype(float)
    if data.max() - data.min() > 60000:
        return
    stats = {"min": data.min(), "max": data.max(), "p01": data.min(), "p99": data.max()}
    coding = codes.value_coding({k: float(f"{v:.6g}") for k, v in stats.items()}, np.dtype(dtype))
    np.testing.assert_array_equal(coding.offset + coding.step * coding.encode(data), data)


@settings(max_examples=60, deadline=None)
@given(st.floats(-1e30, 1e30), st.floats(0, 1e30), st.floats(0, 1))
def test_any_range_of_values_is_coded_without_cutting_it(low: float, width: float, share: float) -> None:
    high = low + width
    stats = {"min": low, "max": high, "p01": low, "p99": low + share * width}
    coding = codes.value_coding(stats, np.dtype("float32"))
    ends = coding.encode(np.array([low, high, np.nan, np.inf, -np.inf]))
    assert ends[2] == 65535
    assert ends[[0, 1, 3, 4]].max() < 65535
    back = coding.offset + coding.step * ends[:2].astype(float)
    np.testing.assert_allclose(back, [low, high], atol=coding.step + 1e-12)


def test_zero_comes_back_as_zero() -> None:
    stats = {"min": -0.0123, "max": 0.0456, "p01": -0.01, "p99": 0.03}
    coding = codes.value_coding(stats, np.dtype("float32"))
    assert coding.offset + coding.step * int(coding.encode(np.zeros(1))[0]) == pytest.approx(0, abs=1e-15)


def test_the_series_of_a_pixel_and_the_constants_of_its_window(site: Site, stack: NDArray[np.complex64]) -> None:
    number = number_of(site, "rslc")
    found = json.loads(ask(site, f"/series?layer={number}&x=300.7&y=100.2&r=3&a=1")[1])
    assert (found["y"], found["x"]) == (100, 300)
    np.testing.assert_allclose(found["phase"], np.angle(stack[100, 300]), atol=1e-5)
    np.testing.assert_allclose(found["amplitude"], np.abs(stack[100, 300]), rtol=1e-6)
    window = stack[97:104, 297:304].reshape(-1, N).astype(complex)
    expected = np.angle((window[:, 1, None] * np.conj(window)).sum(axis=0))
    np.testing.assert_allclose(found["ref"], expected, atol=1e-4)
    assert json.loads(ask(site, f"/ref?layer={number}&x=300.7&y=100.2&r=3&a=1")[1])["ref"] == found["ref"]


def test_the_constant_of_real_data_is_the_median_and_missing_pixels_do_not_count(site: Site, folder: Path) -> None:
    number = number_of(site, "hgt")
    data = zarr.open_array(folder / "hgt_pyramid" / "0.zarr", mode="r")[...]
    found = json.loads(ask(site, f"/series?layer={number}&x=30.5&y=20.5&r=2")[1])
    assert found["values"] == [None]
    assert found["ref"][0] == pytest.approx(np.nanmedian(data[18:23, 28:33]), rel=1e-6)
    inside = json.loads(ask(site, f"/series?layer={number}&x=50.5&y=40.5&r=2")[1])
    assert inside["ref"] == [None]
    assert "outside" in json.loads(ask(site, f"/series?layer={number}&x=520.5&y=1")[1])["nothing"]


def test_a_profile_follows_its_line(site: Site, folder: Path) -> None:
    number = number_of(site, "hgt")
    data = zarr.open_array(folder / "hgt_pyramid" / "0.zarr", mode="r")[...]
    target = f"/profile?layer={number}&product=value&item=0&level=0&width={{}}&line=100.5,200.5,400.5,200.5"
    found = json.loads(ask(site, target.format(1))[1])
    np.testing.assert_allclose(found["distance"], np.arange(301))
    np.testing.assert_allclose(found["values"], data[200, 100:401], atol=0.2)
    swath = json.loads(ask(site, target.format(5))[1])
    quartiles = np.quantile(data[198:203, 100:401], [0.5, 0.25, 0.75], axis=0)
    np.testing.assert_allclose([swath["values"], swath["low"], swath["high"]], quartiles, atol=0.2)
    across_the_hole = json.loads(
        ask(site, target.format(1).replace("100.5,200.5,400.5,200.5", "0.5,40.5,100.5,40.5"))[1]
    )
    assert across_the_hole["values"][50] is None
    leaving = json.loads(ask(site, target.format(1).replace("100.5,200.5,400.5,200.5", "-5,-5,10,10"))[1])
    assert leaving["values"][0] is None
    assert leaving["values"][-1] is not None


def test_a_virtual_array_is_a_zarr_array_for_any_reader(
    site: Site, stack: NDArray[np.complex64], tmp_path: Path
) -> None:
    """What the server says of a level, written to files, opens with zarr."""
    number = number_of(site, "rslc")
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / "zarr.json").write_bytes(ask(site, f"/z/{number}/phase/1/zarr.json")[1])
    for col in (0, 1):
        place = tmp_path / "a.zarr" / "c" / "0" / str(col)
        place.mkdir(parents=True)
        (place / "2").write_bytes(ask(site, f"/z/{number}/phase/1/c/0/{col}/2")[1])
    found = zarr.open_array(tmp_path / "a.zarr", mode="r")
    assert found.shape == (150, 260, N)
    np.testing.assert_array_equal(found[..., 2], color_index(np.angle(stack[::2, ::2, 2]), -math.pi, math.pi))


def test_a_compressed_coherence_is_looked_up_by_its_images(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    n = 4
    coh = (rng.uniform(0, 0.7, (40, 50, 6)) * np.exp(1j * rng.uniform(-3, 3, (40, 50, 6)))).astype(np.complex64)
    coh[3, 4] = np.nan
    raster_pyramid(tmp_path / "coh_pyramid", coh)
    write_dates(tmp_path, n)
    site = site_of(tmp_path)
    place = {(a, b): k for k, (a, b) in enumerate([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])}
    for a, b in [(1, 3), (3, 1), (2, 2)]:
        value = coh[..., place[min(a, b), max(a, b)]] if a != b else np.where(np.isnan(coh[..., 0]), np.nan, 1)
        value = np.conj(value) if a > b else value
        phase = tile(site, f"0/coh/0/c/0/0/{a * n + b}")[:40, :50]
        np.testing.assert_array_equal(phase, color_index(np.angle(value), -math.pi, math.pi))
        magnitude = tile(site, f"0/coh_abs/0/c/0/0/{a * n + b}")[:40, :50]
        np.testing.assert_array_equal(magnitude, color_index(np.abs(value), 0, 1))


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (257, 3)])
def test_rasters_of_a_pixel_or_a_line_have_tiles(tmp_path: Path, shape: tuple[int, int]) -> None:
    data = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    raster_pyramid(tmp_path / "p", data)
    site = site_of(tmp_path / "p")
    layer = json.loads(ask(site, "/meta.json")[1])["layers"][0]
    coding = layer["products"]["value"]
    found = tile(site, "0/value/0/c/0/0/0", "<u2")[: shape[0], : min(shape[1], 256)]
    np.testing.assert_allclose(coding["offset"] + coding["step"] * found, data[:256, :256], atol=coding["step"])


# -- layers, dates, changes


def test_layers_have_short_names_dates_and_one_plane_for_each_shape(site: Site) -> None:
    found = json.loads(ask(site, "/meta.json")[1])["layers"]
    assert [layer["name"] for layer in found] == ["hgt", "rslc"]
    assert found[1]["dates"] == dates(N)
    assert found[1]["images"][1] == "2023-01-18"
    assert found[0]["grid"] == found[1]["grid"] == "radar 300x520"
    assert found[1]["wavelength"] == 0.0554657
    assert str(os.sep) not in found[0]["name"]


def test_dates_of_another_number_are_left_out(tmp_path: Path, stack: NDArray[np.complex64]) -> None:
    raster_pyramid(tmp_path / "rslc_pyramid", stack[:20, :30])
    write_dates(tmp_path, N + 1)
    (layer,) = json.loads(ask(site_of(tmp_path), "/meta.json")[1])["layers"]
    assert layer["dates"] == []
    assert layer["images"][2] == "image 2"


def test_pyramids_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for name in ("ps", "ds"):
        raster_pyramid(tmp_path / name / "adi_pyramid", np.ones((4, 4), np.float32))
    assert [layer.name for layer in find_layers([tmp_path], Reader())] == ["ds.adi", "ps.adi"]


def test_a_pyramid_without_statistics_is_measured(tmp_path: Path) -> None:
    values = np.linspace(0.1, 0.4, 60 * 70).reshape(60, 70).astype(np.float32)
    raster_pyramid(tmp_path / "p", values)
    del zarr.open_array(tmp_path / "p" / "0.zarr", mode="r+").attrs["moraine_pyramid"]
    site = site_of(tmp_path)
    told = json.loads(ask(site, "/z/0/value/0/zarr.json")[1])["attributes"]
    found = told["offset"] + told["step"] * tile(site, "0/value/0/c/0/0/0", "<u2")[:60, :70]
    np.testing.assert_allclose(found, values, atol=1e-3)


def test_clouds_by_raster_chunk_are_passed_over_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their arrays have numbers for names, as the levels of a pyramid have."""
    monkeypatch.setattr(logging.getLogger("moraine"), "propagate", True)
    raster_pyramid(tmp_path / "a_pyramid", np.ones((4, 4), np.float32))
    for shape in ((7,), (7, 3)):
        write_array(tmp_path / f"cloud{len(shape)}" / "0.zarr", np.ones(shape, np.float32), shape)
    assert [layer.name for layer in find_layers([tmp_path], Reader())] == ["a"]
    assert caplog.text == ""
    with pytest.raises(ValueError, match="not a finished pyramid"):
        find_layers([tmp_path / "cloud1"], Reader())


def test_pyramids_in_shards_with_small_tiles_are_read(tmp_path: Path, stack: NDArray[np.complex64]) -> None:
    ras = write_array(tmp_path / "ras.zarr", stack[..., :2], (300, 520, 1))
    ras_pyramid(ras=ras, out_dir=str(tmp_path / "p_pyramid"), chunks=(50, 60), rows=4)
    assert zarr.open_array(tmp_path / "p_pyramid" / "0.zarr", mode="r").shards is not None
    expected = color_index(np.angle(stack[..., 0] * np.conj(stack[..., 1])), -math.pi, math.pi)
    found = tile(site_of(tmp_path), "0/intf/0/c/1/1/1")
    np.testing.assert_array_equal(found[:44, :256], expected[256:300, 256:512])


def test_a_pyramid_that_cannot_be_shown_is_left_out_of_a_folder_but_not_if_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("moraine"), "propagate", True)
    for name in ("a_pyramid", "b_pyramid"):
        raster_pyramid(tmp_path / name, np.ones((4, 4), np.float32))
    level0 = zarr.open_array(tmp_path / "a_pyramid" / "0.zarr", mode="r+")
    level0.attrs["moraine_pyramid"] = {"version": 99, "kind": "raster"}
    assert [layer.name for layer in find_layers([tmp_path], Reader())] == ["b"]
    assert "a_pyramid is left out" in caplog.text
    with pytest.raises(ValueError, match="version 99"):
        find_layers([tmp_path / "a_pyramid"], Reader())


def test_nothing_to_show_is_said_with_what_builds_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no pyramid in .*ras-pyramid"):
        find_layers([tmp_path], Reader())
    with pytest.raises(ValueError, match="does not exist"):
        find_layers([tmp_path / "x"], Reader())


def test_a_tile_of_data_made_again_is_refused_until_the_page_knows(tmp_path: Path) -> None:
    raster_pyramid(tmp_path / "p", np.zeros((10, 10), np.float32))
    site = site_of(tmp_path / "p")
    before = json.loads(ask(site, "/meta.json")[1])["layers"][0]["stamp"]
    assert ask(site, f"/z/0/value/0/c/0/0/0?v={before}")[0] == 200
    shutil.rmtree(tmp_path / "p")
    raster_pyramid(tmp_path / "p", np.full((10, 10), 7, np.float32))
    assert ask(site, f"/z/0/value/0/c/0/0/0?v={before}")[0] == 409
    layer = json.loads(ask(site, "/meta.json")[1])["layers"][0]
    assert layer["stamp"] != before
    assert json.loads(ask(site, "/series?layer=0&x=3&y=3")[1])["values"] == [7]
    shutil.rmtree(tmp_path / "p")
    status, body, _ = ask(site, "/z/0/value/0/c/0/0/0")
    assert (status, str(tmp_path).encode() in body) == (503, False)
    assert "no finished pyramid" in json.loads(ask(site, "/meta.json")[1])["layers"][0]["error"]


def test_arrays_are_opened_once_while_the_data_stay(site: Site) -> None:
    layer = site.layers[0]
    assert layer.source() is layer.source()
    assert layer.source().array("0") is layer.source().array("0")


def test_a_missing_chunk_is_said_and_does_not_look_empty(tmp_path: Path) -> None:
    raster_pyramid(tmp_path / "p", np.ones((10, 300), np.float32))
    (tmp_path / "p" / "0.zarr" / "c" / "0" / "1").unlink()
    site = site_of(tmp_path / "p")
    assert ask(site, "/z/0/value/0/c/0/0/0")[0] == 200
    status, body, _ = ask(site, "/z/0/value/0/c/0/1/0")
    assert status == 503
    assert b"incomplete: chunk (0, 1) of p/0.zarr is missing" in body
    assert ask(site, "/series?layer=0&x=290&y=3")[0] == 503


def test_the_first_view_of_a_very_large_stack_reads_one_level(tmp_path: Path) -> None:
    """A51: 30,000 x 30,000 x 100, of which only one coarse level has chunks; any other would be missing."""
    side, drawn = 30_000, 6
    for level in range(side.bit_length()):
        shape = (-(-side >> level), -(-side >> level), 100)
        array = zarr.create_array(str(tmp_path / f"p/{level}.zarr"), shape=shape, chunks=(256, 256, 1), dtype="c8")
        if level == drawn:
            array[:, :, 0] = array[:, :, 1] = 1j
        if level == 0:
            marker = {"version": 1, "kind": "raster", "stats": {"amplitude_p01": 0.5, "amplitude_p99": 2.0}}
            array.attrs["moraine_pyramid"] = marker
    start = time.perf_counter()
    site = site_of(tmp_path)
    (layer,) = json.loads(ask(site, "/meta.json")[1])["layers"]
    rows, cols, _ = json.loads(ask(site, f"/z/0/intf/{drawn}/zarr.json")[1])["shape"]
    assert (tile(site, f"0/intf/{drawn}/c/0/0/1") == 127).all()
    assert time.perf_counter() - start < 3
    assert layer["levels"][drawn]["shape"] == [rows, cols] == [469, 469]
    assert site.layers[0].reader.nbytes < 2 << 20
    assert ask(site, f"/z/0/intf/{drawn - 1}/c/0/0/1")[0] == 503


def test_a_pyramid_that_goes_while_it_is_looked_at_is_said_and_comes_back(tmp_path: Path) -> None:
    raster_pyramid(tmp_path / "p", np.zeros((300, 300), np.float32))
    site = site_of(tmp_path)
    stamp = json.loads(ask(site, "/meta.json")[1])["layers"][0]["stamp"]
    (tmp_path / "p").rename(tmp_path / "elsewhere")
    assert ask(site, f"/z/0/value/0/c/0/0/0?v={stamp}")[:2] == (503, b"incomplete: p is no finished pyramid any more\n")
    (layer,) = json.loads(ask(site, "/meta.json")[1])["layers"]
    assert layer["error"] == "p is no finished pyramid any more"
    assert ask(site, "/series?layer=0&x=3&y=3")[0] == 503
    (tmp_path / "elsewhere").rename(tmp_path / "p")
    assert ask(site, f"/z/0/value/0/c/0/0/0?v={stamp}")[0] == 200


def test_a_chunk_that_was_cut_short_is_said_wherever_it_is_needed(tmp_path: Path) -> None:
    raster_pyramid(tmp_path / "p", np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32))
    file = tmp_path / "p" / "0.zarr" / "c" / "0" / "0"
    file.write_bytes(file.read_bytes()[:1000])
    site = site_of(tmp_path)
    assert ask(site, "/z/0/value/0/c/0/0/0")[:2] == (503, b"incomplete: chunk (0, 0) of p/0.zarr cannot be read\n")
    for question in ("series?layer=0&x=3&y=3", "profile?layer=0&product=value&item=0&level=0&line=1,1,9,9"):
        status, body, _ = ask(site, f"/{question}")
        assert status == 503, question
        assert b"of p/0.zarr cannot be read" in body
    assert ask(site, "/z/0/value/1/c/0/0/0")[0] == 200


# -- the cache


def test_of_many_who_want_a_block_one_reads(tmp_path: Path) -> None:
    raster_pyramid(tmp_path / "p", np.ones((300, 300), np.float32))
    array = zarr.open_array(tmp_path / "p" / "0.zarr", mode="r")
    reader, reads, gate = Reader(), [], threading.Event()

    class Slow:
        shape, chunks, dtype = array.shape, array.chunks, array.dtype

        def __getitem__(self, part: Any) -> Any:
            reads.append(part)
            gate.wait(10)
            return array[part]

    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(reader.read("a", Slow(), (slice(0, 5), slice(0, 5)))))  # type: ignore[arg-type]
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()
    assert len(found) == 5
    assert len(reads) == 1


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_parts_read_through_the_cache_are_those_of_the_array(data: st.DataObject) -> None:
    shape = (data.draw(st.integers(1, 700)), data.draw(st.integers(1, 700)))
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    values = np.arange(math.prod(shape)).reshape(shape)
    array = zarr.create_array(
        zarr.storage.MemoryStore(),
        data=values,
        chunks=tuple(max(c, n // 3) for c, n in zip(chunks, shape, strict=True)),
    )
    reader = Reader(budget=data.draw(st.sampled_from([1, 1 << 20])))
    for _ in range(3):
        spans = [sorted(data.draw(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)))) for n in shape]
        part = tuple(slice(low, high + 1) for low, high in spans)
        np.testing.assert_array_equal(reader.read("a", array, part), values[part])
    assert reader.nbytes <= max(reader.budget, values.nbytes)


@pytest.mark.parametrize("compressor", [None, BloscCodec(cname="lz4", shuffle="bitshuffle"), ZstdCodec(), GzipCodec()])
@pytest.mark.parametrize("chunks", [(64, 64, 1), (256, 256, 3), (300, 300, 4)])
@pytest.mark.parametrize(("dtype", "order"), [("complex64", "little"), ("int16", "big")])
def test_chunks_decoded_without_zarr_are_those_of_zarr_and_damaged_ones_are_told(
    tmp_path: Path, dtype: str, chunks: tuple[int, ...], compressor: Any, order: Any
) -> None:
    """Damaged: cut short, a byte too much, empty. A missing one is missing, or a fill value where that may be."""
    data = np.random.default_rng(0).normal(0, 50, (300, 280, 4)).astype(dtype)
    place = tmp_path / "p" / "0.zarr"
    array = zarr.create_array(
        str(place),
        shape=data.shape,
        dtype=data.dtype,
        chunks=chunks,
        compressors=compressor,
        serializer=BytesCodec(endian=order),
        fill_value=7,
        config={"write_empty_chunks": True},
    )
    array[...] = data
    array = zarr.open_array(place, mode="r")
    assert plain(array) is not None
    for part in ((slice(0, 300), slice(0, 280)), (slice(255, 257), slice(250, 280))):
        found = Reader().read("a", array, part, (2,), place)
        np.testing.assert_array_equal(found, data[(*part, 2)])
    file = place / array.metadata.encode_chunk_key((0, 0, 0))
    whole = file.read_bytes()
    corner = (slice(0, 5), slice(0, 5))
    for damaged in (whole[:-7], whole[: len(whole) // 3], b""):
        file.write_bytes(damaged)
        with pytest.raises(IncompleteError, match=r"^chunk \(0, 0, 0\) of p/0.zarr cannot be read$"):
            Reader().read("a", array, corner, (0,), place)
    file.unlink()
    with pytest.raises(IncompleteError, match=r"^chunk \(0, 0, 0\) of p/0.zarr is missing$"):
        Reader().read("a", array, corner, (0,), place)
    assert (Reader().read("a", array, corner, (0,)) == 7).all()


def test_what_is_stored_in_another_way_is_read_by_zarr(tmp_path: Path) -> None:
    data = np.arange(300 * 280, dtype=np.float32).reshape(300, 280)
    sharded = zarr.create_array(str(tmp_path / "s"), data=data, chunks=(50, 50), shards=(150, 150))
    older = zarr.create_array(str(tmp_path / "o"), data=data, chunks=(64, 64), zarr_format=2)
    memory = zarr.create_array(zarr.storage.MemoryStore(), data=data, chunks=(64, 64))
    for array in (sharded, older, memory):
        assert plain(array) is None
        np.testing.assert_array_equal(Reader().read("a", array, (slice(3, 290), slice(0, 280))), data[3:290])
    for file in (tmp_path / "o").rglob("[0-9]*"):
        file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(IncompleteError, match="cannot be read"):
        Reader().read("a", zarr.open_array(tmp_path / "o", mode="r"), (slice(0, 5), slice(0, 5)))


def test_pages_of_blocks_are_used_again_and_never_while_somebody_looks(tmp_path: Path) -> None:
    data = np.arange(256 * 256 * 12, dtype=np.float32).reshape(256, 256, 12)
    array = zarr.create_array(str(tmp_path / "a"), data=data, chunks=(256, 256, 1))
    reader = Reader(budget=2 * 256 * 256 * 4)
    held = [reader.read("a", array, (slice(0, 99), slice(5, 6)), (k,)) for k in range(0, 12, 3)]
    for k in range(12):
        np.testing.assert_array_equal(reader.read("a", array, (slice(0, 256), slice(0, 256)), (k,)), data[..., k])
    for number, part in enumerate(held):
        np.testing.assert_array_equal(part, data[:99, 5:6, 3 * number])
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 0


def test_the_cache_forgets_what_was_used_longest_ago(tmp_path: Path) -> None:
    raster_pyramid(tmp_path / "p", np.ones((256, 256 * 5), np.float32))
    array = zarr.open_array(tmp_path / "p" / "0.zarr", mode="r")
    reader = Reader(budget=3 * 256 * 256 * 4)
    for k in range(5):
        reader.read("a", array, (slice(0, 1), slice(256 * k, 256 * k + 1)))
    assert reader.nbytes == reader.budget


def test_chunks_too_large_to_look_at_are_refused(tmp_path: Path) -> None:
    array = zarr.create_array(str(tmp_path / "a.zarr"), shape=(9000, 9000), dtype="f4", chunks=(9000, 9000))
    with pytest.raises(IncompleteError, match="too large"):
        Reader().read("a", array, (slice(0, 1), slice(0, 1)))


# -- who may see it


HARMFUL = [
    "/../../etc/passwd",
    "/s/../answer.py",
    "/s/..%2f..%2fetc%2fpasswd",
    "/s/%2e%2e/answer.py",
    "/s//etc/passwd",
    "/s/index.html%00",
    "/etc/passwd",
    "//etc/passwd",
    "/z/-1/intf/0/c/0/0/0",
    "/z/99/intf/0/c/0/0/0",
    "/z/0/../0/c/0/0/0",
    "/z/0/value/0/c/0/0/999999999",
    "/z/0/value/0/c/99999999999999999999/0/0",
    "/z/0/value/0/c/0/0/-1",
    "/z/0/value/0/c/٣/0/0",
    "/z/0/value/99/zarr.json",
    "/z/0/__class__/0/zarr.json",
    "/z/0/value/0/c/0/0/0/0",
    "/z/1/intf/0/c/0/0/1e3",
    "/series?layer=1&x=nan&y=1",
    "/series?layer=1&x=inf&y=1",
    "/series?layer=1&x=1&y=1&r=99999",
    "/series?layer=1",
    "/series?layer=1&x=1&y=1&a=77",
    "/profile?layer=0&product=value&level=0&line=1,2,3",
    "/profile?layer=0&product=value&level=0&line=1,2,3,4&width=1000000",
    "/profile?layer=0&product=../../x&level=0&line=1,2,3,4",
    "/meta.json/",
    "/?t=wrong",
    "/?" + "&".join(f"a{k}=1" for k in range(99)),
    "/?t=%ff%fe",
    "/" + "a" * 3000,
    "*",
    "http://localhost/meta.json",
    "",
]


@pytest.mark.parametrize("target", HARMFUL)
def test_harmful_requests_get_a_short_refusal(site: Site, target: str, folder: Path) -> None:
    status, body, headers = ask(site, target)
    assert 400 <= status < 500
    assert len(body) < 200
    assert b"Traceback" not in body
    assert str(folder).encode() not in body
    assert headers["X-Content-Type-Options"] == "nosniff"


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=80),
        st.from_regex(r"/(z|s|series|ref|profile|meta\.json)[/?=&a-z0-9.%-]{0,60}", fullmatch=True),
    )
)
def test_no_address_at_all_makes_the_server_stumble(site: Site, target: str) -> None:
    status, body, _ = ask(site, target)
    assert status in (200, 400, 403, 404, 409, 414)
    assert b"Traceback" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "MOVE"])
def test_the_server_only_shows(site: Site, method: str) -> None:
    status, _, headers = ask(site, "/meta.json", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
        "10.0.0.1:80",
        "localhost:1234@evil",
        "127.1",
    ],
)
def test_other_hosts_are_refused_so_that_names_cannot_be_rebound(site: Site, host: str) -> None:
    assert ask(site, "/meta.json", host=host)[0] == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:65535", "[::1]:8080", "LOCALHOST:80"])
def test_any_port_of_this_machine_will_do_since_forwarding_changes_it(site: Site, host: str) -> None:
    assert ask(site, "/meta.json", host=host)[0] == 200


def test_nothing_is_shown_without_the_cookie(site: Site) -> None:
    for cookie in ("", f"{site.name}=", f"{site.name}=wrong", f"other={site.token}", f"{site.name}={site.token}x"):
        for target in ("/", "/meta.json", "/s/main.js", "/z/0/value/0/c/0/0/0", "/nothing"):
            assert ask(site, target, cookie=cookie)[0] == 403


def test_the_token_gives_a_cookie_that_scripts_cannot_read_and_a_clean_address(site: Site) -> None:
    status, _, headers = ask(site, f"/?t={site.token}", cookie="")
    assert (status, headers["Location"]) == (303, "/")
    assert headers["Set-Cookie"] == f"{site.name}={site.token}; HttpOnly; SameSite=Strict; Path=/"
    assert len(site.token) >= 22  # 128 bits
    # from a page of another place the browser would keep a strict cookie back through a redirect
    status, body, headers = ask(site, f"/?t={site.token}", cookie="", sec_fetch_site="cross-site")
    assert status == 200
    assert b'content="0;url=./"' in body
    assert site.token.encode() not in body


def test_every_answer_says_what_a_browser_may_do_with_it(site: Site) -> None:
    for target in ("/", "/meta.json", "/s/main.js", "/nothing", "/z/0/value/0/c/0/0/0"):
        headers = ask(site, target)[2]
        assert headers["Content-Security-Policy"].startswith("default-src 'self'; img-src 'self' blob: data:;")
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "Access-Control-Allow-Origin" not in headers


def test_an_error_inside_is_logged_and_not_told(site: Site, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setattr("moraine_view.web.answer.meta", lambda *_: 1 / 0)
    status, body, _ = ask(site, "/meta.json")
    assert (status, body) == (500, b"internal error\n")


def test_files_of_the_page_are_sent_once(site: Site) -> None:
    status, _, headers = ask(site, "/s/leaflet.js", accept_encoding="gzip, br")
    assert (status, headers["Content-Encoding"]) == (200, "gzip")
    assert ask(site, "/s/leaflet.js", if_none_match=headers["ETag"])[0] == 304


# -- the server itself


@pytest.fixture
def place(site: Site) -> Iterator[tuple[str, int]]:
    with serving(site) as url:
        parts = urlsplit(url)
        yield str(parts.hostname), int(parts.port or 0)


def raw(place: tuple[str, int], sent: bytes) -> bytes:
    with socket.create_connection(place, timeout=20) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while part := connection.recv(65536):
            found += part
        return found


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /meta.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n0123456789",
        b"PROPFIND / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % k for k in range(300)) + b"\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"rubbish\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"",
    ],
    ids=range(11),
)
def test_a_server_outlives_what_is_no_request(place: tuple[str, int], sent: bytes, site: Site) -> None:
    found = raw(place, sent)
    assert b"Traceback" not in found
    assert b"root:" not in found
    if found.startswith(b"HTTP/"):
        assert int(found.split()[1]) >= 400
    connection = http.client.HTTPConnection(*place, timeout=20)
    connection.request("GET", "/meta.json", headers={"Cookie": f"{site.name}={site.token}"})
    assert connection.getresponse().status == 200
    connection.close()


def test_a_connection_serves_many_requests_and_heads_have_no_body(place: tuple[str, int], site: Site) -> None:
    connection = http.client.HTTPConnection(*place, timeout=20)
    for method in ("GET", "HEAD", "GET"):
        connection.request(method, "/z/0/value/0/c/0/0/0", headers={"Cookie": f"{site.name}={site.token}"})
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200
        assert int(response.headers["Content-Length"]) > 0
        assert bool(body) == (method == "GET")
    connection.close()


def test_more_connections_than_threads_are_all_answered(place: tuple[str, int], site: Site) -> None:
    connections = [http.client.HTTPConnection(*place, timeout=60) for _ in range(20)]
    for connection in connections:
        connection.request("GET", "/meta.json", headers={"Cookie": f"{site.name}={site.token}"})
    assert [connection.getresponse().status for connection in connections] == [200] * 20
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("said", [b"", b"GET /meta.json HTTP/1.1\r\nHost:"], ids=["nothing", "half a request"])
def test_a_hundred_connections_that_keep_still_do_not_keep_others_out(
    place: tuple[str, int], site: Site, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moraine_view.web.serve.HEAD_PATIENCE", 0.5)
    idle = [socket.create_connection(place, timeout=20) for _ in range(60 if said else 100)]
    for connection in idle:
        connection.sendall(said)
    start = time.perf_counter()
    connection = http.client.HTTPConnection(*place, timeout=60)
    connection.request("GET", "/meta.json", headers={"Cookie": f"{site.name}={site.token}"})
    assert connection.getresponse().status == 200
    assert time.perf_counter() - start < 20
    for each in (*idle, connection):
        each.close()


def test_a_client_that_reads_nothing_does_not_keep_others_out(place: tuple[str, int], site: Site) -> None:
    asked = f"GET /z/0/value/0/c/0/0/0 HTTP/1.1\r\nHost: localhost\r\nCookie: {site.name}={site.token}\r\n\r\n"
    deaf = []
    for _ in range(12):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(place)
        connection.sendall(asked.encode() * 60)
        deaf.append(connection)
    for _ in range(3):
        connection = http.client.HTTPConnection(*place, timeout=20)
        connection.request("GET", "/meta.json", headers={"Cookie": f"{site.name}={site.token}"})
        assert connection.getresponse().status == 200
        connection.close()
    for each in deaf:
        each.close()


def test_the_server_listens_on_this_machine_only(place: tuple[str, int]) -> None:
    assert place[0] == "127.0.0.1"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_prints_the_address_and_ends_well(folder: Path, number: int) -> None:
    """A52: it works with no screen, and nothing is printed on standard output before the end."""
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    command = [sys.executable, "-m", "moraine_core", "view", str(folder), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        # libraries may warn before
        first = next(line for line in process.stderr if "http://" in line)
        second = process.stderr.readline()
        url = urlsplit(re.search(r"http://\S+", first)[0])
        assert f"ssh -N -L {url.port}:127.0.0.1:{url.port} " in second
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
        connection.request("GET", f"/?{url.query}")
        assert connection.getresponse().status == 303
        connection.close()
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    found = json.loads(out)
    assert found["pyramids"] == [str(folder / "hgt_pyramid"), str(folder / "rslc_pyramid")]
    assert found["notebook"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--export-levels", "3..1", "--export", "x", "{folder}"], "export_levels is '3..1'; expected levels such as"),
        (["--export-levels", "..", "--export", "x", "{folder}"], "export_levels is '..'"),
        (["--export-levels", "1..", "{folder}"], "export_levels and export_dates choose what an export holds"),
        (["--export-dates", "2019..2020", "--export", "x", "{folder}"], "'2019..2020' has none of the 4 dates, 2023"),
        (["--show", "colors", "{folder}"], "show 'colors' is unknown"),
        (["--port", "99999", "{folder}"], "port 99999 cannot be used"),
        (["--dates", "{folder}/none.toml", "{folder}"], "none.toml cannot be read"),
    ],
)
def test_wrong_options_are_said_in_a_sentence(folder: Path, capsys: Any, words: list[str], said: str) -> None:
    from moraine_core.cli.main import run

    assert run(["view", *(word.format(folder=folder) for word in words)]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err
