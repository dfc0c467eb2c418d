"""Pyramids of rasters as the command builds them, against plain loops and numpy on the whole array."""

from __future__ import annotations

import itertools
import logging
import math
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from pyramid_files import arrays, marker, same_bits

from moraine_core import Executor, MoraineError, RunOptions, UsageError, Workers
from moraine_core.run import run_command
from moraine_core.testing.data import read_array, write_array
from moraine_view import kernels, statistics
from moraine_view.levels import level_shapes, stages
from moraine_view.pyramid import open_pyramid
from moraine_view.ras_pyramid import ras_pyramid

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

SMALL = {"chunks": (4, 5), "rows": 8}
"""Bands of two tiles, so that even small rasters need several bands and stages."""


def raster(dtype: str, shape: tuple[int, ...], seed: int = 0) -> NDArray[Any]:
    """Make random values, with holes and infinities where the dtype has them."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.3
    if dtype.startswith(("int", "uint")):
        return rng.integers(0, 200, shape).astype(dtype)
    values = rng.normal(5, 100, size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.normal(size=shape)
    values[rng.random(shape) < 0.3] = np.nan
    values[rng.random(shape) < 0.02] = np.inf
    return values.astype(dtype)


def build(folder: Path, data: NDArray[Any], workers: Workers | None = None, **options: Any) -> Path:
    source = folder / "ras.zarr"
    if not source.exists():
        write_array(source, data, (7, 6, *(1,) * (data.ndim - 2)))
    out = folder / f"pyramid{len(list(folder.iterdir()))}"
    ras_pyramid(ras=str(source), out_dir=str(out), workers=workers, **options)
    return out


def task_bytes(ras: Path, **options: Any) -> int:
    """Say what a dry run projects for a task of the first plan."""
    call = {"ras": str(ras), "out_dir": str(ras.parent / "dry"), **options}
    return int(run_command(ras_pyramid, call, options=RunOptions(dry_run=True)).plans[0]["task_bytes"])


def loop_level(data: NDArray[Any], level: int, method: str) -> NDArray[Any]:
    """Make a level of one image cell by cell from level 0."""
    if level == 0:
        return data
    side = 1 << level
    rows, cols = (math.ceil(n / side) for n in data.shape)
    means = "float32" if data.dtype.kind in "iub" else data.dtype
    out = np.empty((rows, cols), dtype=data.dtype if method == "decimate" else means)
    for i in range(rows):
        for j in range(cols):
            block = data[i * side : (i + 1) * side, j * side : (j + 1) * side]
            if method == "decimate":
                out[i, j] = block[0, 0]
            elif np.isfinite(block).any():
                out[i, j] = (
                    block[np.isfinite(block)].astype("complex128" if out.dtype.kind == "c" else "float64").mean()
                )
            else:
                out[i, j] = complex(np.nan, np.nan) if out.dtype.kind == "c" else np.nan
    return out


# -- levels


@pytest.mark.parametrize("method", ["decimate", "mean"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int16", "uint8", "bool"])
def test_every_level_is_what_a_loop_over_its_cells_gives(tmp_path: Path, dtype: str, method: str) -> None:
    data = raster(dtype, (37, 29))
    pyramid = build(tmp_path, data, method=method, **SMALL)
    shapes = [(37, 29), (19, 15), (10, 8), (5, 4), (3, 2)]
    assert sorted(path.name for path in pyramid.iterdir()) == [*(f"{k}.zarr" for k in range(5)), "stats.zarr"]
    for level, shape in enumerate(shapes):
        stored = zarr.open_array(pyramid / f"{level}.zarr", mode="r")
        expected = loop_level(data, level, method)
        assert (stored.shape, stored.dtype, stored.chunks) == (shape, expected.dtype, (4, 5))
        tolerance = 0 if method == "decimate" or level == 0 else 1e-6
        np.testing.assert_allclose(stored[...], expected, rtol=tolerance, atol=100 * tolerance)


@pytest.mark.parametrize("method", ["decimate", "mean"])
def test_each_image_of_a_stack_has_the_pyramid_it_has_alone(tmp_path: Path, method: str) -> None:
    data = raster("complex64", (21, 18, 2, 2))
    pyramid = arrays(build(tmp_path, data, method=method, **SMALL))
    for k, channel in enumerate(np.ndindex(2, 2)):
        (tmp_path / str(k)).mkdir()
        alone = arrays(build(tmp_path / str(k), data[:, :, *channel], method=method, **SMALL))
        for name in alone:
            index = channel if name == "stats.zarr" else (slice(None), slice(None), *channel)
            assert pyramid[name][index].tobytes() == alone[name].tobytes()


@pytest.mark.parametrize("method", ["decimate", "mean"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_bits_depend_neither_on_rows_nor_on_tiles_nor_on_workers(tmp_path: Path, dtype: str, method: str) -> None:
    data = raster(dtype, (53, 31, 2)) + np.asarray(1e4, dtype=dtype)
    whole = build(tmp_path, data, method=method)  # one band, one tile
    for options in (
        SMALL,
        {"chunks": (8, 8), "rows": 1},
        {"chunks": (-1, 3), "rows": 4},
        {"chunks": (5, -1), "rows": 64},
    ):
        assert same_bits(build(tmp_path, data, Workers(n_workers=3), method=method, **options), whole)


def test_spawned_workers_give_the_same_bits(tmp_path: Path) -> None:
    data = raster("float32", (20, 20))
    threads = build(tmp_path, data, method="mean", **SMALL)
    assert same_bits(build(tmp_path, data, Workers(n_workers=2, processes=True), method="mean", **SMALL), threads)


@pytest.mark.parametrize("shape", [(1, 1), (1, 23), (23, 1), (2, 23), (3, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex128", "uint16"])
@pytest.mark.parametrize("method", ["decimate", "mean"])
def test_thin_rasters_have_the_levels_of_their_shorter_side(
    tmp_path: Path, shape: tuple[int, int], dtype: str, method: str
) -> None:
    data = raster(dtype, shape)
    pyramid = build(tmp_path, data, method=method, **SMALL)
    assert len(arrays(pyramid)) - 1 == math.floor(math.log2(min(shape))) + 1
    for level in range(math.floor(math.log2(min(shape))) + 1):
        found = read_array(pyramid / f"{level}.zarr")
        tolerance = 1e-3 if dtype == "float16" else 1e-6
        np.testing.assert_allclose(found, loop_level(data, level, method), rtol=tolerance)


def test_stages_write_every_level_once_in_whole_tiles() -> None:
    for shape, tile, lines in [((1000, 700), 7, 64), ((1000, 700), 256, 1024), ((9, 5000), 4, 1), ((300, 300), -1, 8)]:
        shapes = level_shapes(*shape)
        made = stages(shapes, tile, lines)
        assert [level for stage in made for level in stage.levels] == list(range(len(shapes)))
        for stage in made:
            for level in stage.levels:
                parts = [stage.part(band, level) for band in stage.bands]
                assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]
                assert (parts[0].start, parts[-1].stop) == (0, shapes[level][0])
                assert all(part.start % (shape[0] if tile == -1 else tile) == 0 for part in parts)
        for before, after in itertools.pairwise(made):
            assert after.base == before.levels[-1]


def test_a_band_keeps_to_the_lines_asked_for_where_two_tiles_fit() -> None:
    # 1024 lines are 4 tiles of 256: levels 0, 1 and 2 get 4, 2 and 1 tile rows of each band
    first = stages(level_shapes(5000, 5000), 256, 1024)[0]
    assert list(first.levels) == [0, 1, 2]
    assert first.bands[0] == slice(0, 1024)
    assert stages(level_shapes(5000, 5000), 256, 1)[0].bands[0] == slice(0, 512)


def test_means_are_weighted_by_pixels_across_stages(tmp_path: Path) -> None:
    # the only pixel of its block that is not 0, handed on through five stages
    data = np.zeros((64, 64), dtype="float64")
    data[:, 32:] = np.nan
    data[0, 0] = 2048.0
    pyramid = build(tmp_path, data, method="mean", chunks=(4, 4), rows=8)
    np.testing.assert_array_equal(read_array(pyramid / "5.zarr"), [[2.0, np.nan], [0.0, np.nan]])
    assert marker(pyramid)["stats"]["mean"] == 1.0


# -- statistics


def expected_statistics(data: NDArray[Any]) -> list[float]:
    """Measure all data at once with numpy, in the order of the table."""
    values = data[np.isfinite(data)]
    values = np.abs(values.astype("complex128")) if data.dtype.kind == "c" else values.astype("float64")
    percentiles = np.percentile(values, [1, 50, 99])
    return [np.isnan(data).mean(), values.min(), values.max(), values.mean(), values.std(), *percentiles]


@pytest.mark.parametrize("method", ["decimate", "mean"])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int16"])
def test_statistics_are_those_of_the_whole_array(tmp_path: Path, dtype: str, method: str) -> None:
    data = raster(dtype, (37, 29, 3))
    pyramid = build(tmp_path, data, method=method, **SMALL)
    table = zarr.open_array(pyramid / "stats.zarr", mode="r")
    names = ["nan_fraction", "min", "max", "mean", "std", "p01", "p50", "p99"]
    assert table.attrs["columns"] == names
    assert (table.shape, table.dtype) == ((3, 8), np.float64)
    np.testing.assert_allclose(table[...], [expected_statistics(data[..., k]) for k in range(3)], rtol=1e-12)
    stats = dict(marker(pyramid)["stats"])
    infinite = int(np.isinf(data).sum())
    assert stats.pop("warnings") == ([f"{infinite} infinite values"] if infinite else [])
    shown = [f"amplitude_{name}" if dtype == "complex64" and name != "nan_fraction" else name for name in names]
    assert list(stats) == shown
    np.testing.assert_allclose(list(stats.values()), expected_statistics(data), rtol=5e-6)


def test_an_image_has_one_row_of_statistics_without_channels(tmp_path: Path) -> None:
    data = raster("float32", (9, 9))
    np.testing.assert_allclose(read_array(build(tmp_path, data) / "stats.zarr"), expected_statistics(data), rtol=1e-12)


def test_a_large_mean_leaves_the_spread_its_digits(tmp_path: Path) -> None:
    data = np.add.outer(np.arange(40.0), np.arange(30.0)) * 1e-3 + 1e7
    assert read_array(build(tmp_path, data, **SMALL) / "stats.zarr")[4] == pytest.approx(data.std(), rel=1e-6)


@pytest.mark.parametrize("size", [50, 400, 900])
def test_percentiles_are_of_every_nth_finite_value_of_the_lines(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers of a line's values begin where they would if nothing before it were missing."""
    monkeypatch.setattr(statistics, "SAMPLE_SIZE", size)
    data = raster("float32", (37, 29, 2))
    pyramid = build(tmp_path, data, **SMALL)

    def percentiles(lines: NDArray[Any], step: int) -> NDArray[Any]:
        sample = []
        for i, line in enumerate(lines):
            known = enumerate(line[np.isfinite(line)], start=29 * i)
            sample += [float(value) for number, value in known if number % step == 0]
        return np.percentile(sample, [1, 50, 99])

    table = read_array(pyramid / "stats.zarr")
    for k in range(2):
        expected = percentiles(data[..., k], math.ceil(37 * 29 / size))
        np.testing.assert_allclose(table[k, 5:], expected, rtol=1e-12)
    stats = marker(pyramid)["stats"]
    one_after_another = np.concatenate([data[..., k] for k in range(2)])
    np.testing.assert_allclose(
        [stats[p] for p in ("p01", "p50", "p99")],
        percentiles(one_after_another, math.ceil(2 * 37 * 29 / size)),
        rtol=5e-6,
    )


def test_the_sample_of_complete_data_is_every_nth_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "SAMPLE_SIZE", 100)
    data = np.random.default_rng(0).normal(size=(37, 29))
    expected = np.percentile(data.ravel()[:: math.ceil(37 * 29 / 100)], [1, 50, 99])
    np.testing.assert_allclose(read_array(build(tmp_path, data, **SMALL) / "stats.zarr")[5:], expected, rtol=1e-12)


def test_bools_have_only_a_fraction_of_true(tmp_path: Path) -> None:
    data = raster("bool", (10, 10))
    pyramid = build(tmp_path, data)
    assert marker(pyramid)["stats"] == {"true_fraction": pytest.approx(data.mean()), "warnings": []}
    assert read_array(pyramid / "stats.zarr")[3] == pytest.approx(data.mean())


@pytest.mark.parametrize("method", ["decimate", "mean"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_raster_of_nothing_has_a_pyramid_of_nothing(tmp_path: Path, dtype: str, method: str) -> None:
    pyramid = build(tmp_path, np.full((11, 12), np.nan, dtype=dtype), method=method, **SMALL)
    found = arrays(pyramid)
    assert all(np.isnan(found[f"{level}.zarr"]).all() for level in range(4))
    np.testing.assert_array_equal(found["stats.zarr"], [1.0, *[np.nan] * 7])
    stats = marker(pyramid)["stats"]
    assert stats["warnings"] == ["all values are nan"]
    assert stats["nan_fraction"] == 1.0


def test_dull_images_are_warned_of(tmp_path: Path) -> None:
    data = raster("float32", (12, 12, 3))
    data[np.isinf(data)] = 0
    data[..., 1], data[..., 2] = np.nan, 2.5
    warnings = marker(build(tmp_path, data))["stats"]["warnings"]
    assert warnings == ["image 1: all values are nan", "image 2: all values are 2.5"]


def test_unit_amplitudes_are_not_called_equal_values(tmp_path: Path) -> None:
    data = np.array([[1, 1j], [-1, -1j]], dtype="complex64")
    assert marker(build(tmp_path, data))["stats"]["warnings"] == ["all amplitudes are 1"]


# -- the directory


def test_the_marker_says_what_was_built_and_the_pyramid_opens(tmp_path: Path) -> None:
    write_array(tmp_path / "ras.zarr", raster("float32", (20, 30, 2)))
    zarr.open_array(tmp_path / "ras.zarr", mode="r+").attrs["unit"] = "rad"
    pyramid = build(tmp_path, raster("float32", (20, 30, 2)), method="mean")
    found = marker(pyramid)
    assert (found["version"], found["kind"], found["method"]) == (1, "raster", "mean")
    opened = open_pyramid(pyramid)
    assert (opened.shape, opened.stack, opened.n_levels, opened.unit) == ((20, 30, 2), (2,), 5, "rad")


def test_the_tiles_of_a_band_lie_in_shards(tmp_path: Path) -> None:
    """Tiles are what readers see; files are few, whatever the size of a tile."""
    pyramid = build(tmp_path, raster("float32", (300, 200, 2)), chunks=(16, 16), rows=64)
    for level, height in ((0, 64), (1, 32), (2, 16)):
        array = zarr.open_array(pyramid / f"{level}.zarr", mode="r")
        assert array.chunks == (16, 16, 1)
        width = -(-array.shape[1] // 16) * 16
        assert (array.shards or array.chunks) == (height, width, 1)
        files = [path for path in (pyramid / f"{level}.zarr").rglob("*") if path.is_file()]
        assert len(files) == 2 * math.ceil(300 / 64) + 1


@pytest.mark.parametrize("method", ["decimate", "mean"])
def test_bands_become_lower_where_memory_is_short(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    data = raster("float32", (600, 40))
    whole = build(tmp_path, data, method=method, chunks=(8, 8))
    too_large = task_bytes(tmp_path / "ras.zarr", method=method, chunks=(8, 8))
    monkeypatch.setattr(Executor, "fits", lambda _, task_bytes: task_bytes < too_large)
    with caplog.at_level(logging.INFO, "moraine"):
        assert same_bits(build(tmp_path, data, method=method, chunks=(8, 8)), whole)
    assert any("blocks of 512, so that a task" in message for message in caplog.messages)
    with pytest.raises(MoraineError, match=r"--rows 1024: one task needs .*the largest that fits is --rows 512"):
        build(tmp_path, data, method=method, chunks=(8, 8), rows=1024)


def test_a_tiny_raster_needs_tiny_memory(tmp_path: Path) -> None:
    write_array(tmp_path / "ras.zarr", raster("float32", (20, 30)))
    for method in ("decimate", "mean"):
        assert task_bytes(tmp_path / "ras.zarr", method=method, chunks=(16, 16)) < 40 * 20 * 30


def test_default_tiles_are_square_and_hold_one_image(tmp_path: Path) -> None:
    pyramid = build(tmp_path, raster("float32", (20, 30, 2)))
    assert {zarr.open_array(pyramid / f"{k}.zarr", mode="r").chunks for k in range(5)} == {(256, 256, 1)}


def test_an_interrupted_run_leaves_no_marker_and_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pyramid that is not complete is never taken for one."""
    data = raster("float32", (37, 29))
    whole = build(tmp_path, data, method="mean", **SMALL)
    call = {"ras": str(tmp_path / "ras.zarr"), "out_dir": str(tmp_path / "cut"), "method": "mean", **SMALL}

    def fail(*_: object) -> None:
        msg = "the power went off"
        raise RuntimeError(msg)

    with monkeypatch.context() as patch:
        patch.setattr(kernels, "finished_statistics", fail)
        with pytest.raises(RuntimeError, match="power"):
            ras_pyramid(**call)
    assert not (tmp_path / "cut").exists()
    hidden = tmp_path / ".cut.moraine" / "data" / "cut"
    assert "moraine_pyramid" not in zarr.open_array(hidden / "0.zarr", mode="r").attrs
    with pytest.raises(ValueError, match="not a finished pyramid"):
        open_pyramid(tmp_path / ".cut.moraine")

    read = []
    measure = kernels.measure_lines

    def counted(*arguments: Any) -> Any:
        read.append(arguments)
        return measure(*arguments)

    monkeypatch.setattr(kernels, "measure_lines", counted)
    ras_pyramid(**call)
    assert not read  # the bands were done
    assert same_bits(tmp_path / "cut", whole)
    assert marker(tmp_path / "cut") == marker(whole)
    ras_pyramid(**call)
    assert read


def test_the_old_pyramid_is_replaced_as_a_whole(tmp_path: Path) -> None:
    out = build(tmp_path, raster("float32", (40, 40)))
    assert (out / "5.zarr").exists()
    write_array(tmp_path / "small.zarr", raster("float32", (8, 8)))
    ras_pyramid(ras=str(tmp_path / "small.zarr"), out_dir=str(out))
    assert sorted(path.name for path in out.iterdir()) == ["0.zarr", "1.zarr", "2.zarr", "3.zarr", "stats.zarr"]


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((8, 8), {"rows": 1000}, "rows is 1000; expected a power of two"),
        ((8, 8), {"rows": 0}, "rows is 0"),
        ((8, 8), {"rows": -4}, "rows is -4"),
        ((8, 8), {"method": "median"}, "decimate, mean"),
        ((8, 8), {"chunks": (0, 5)}, r"chunks are \(0, 5\)"),
        ((8,), {}, r"shape \(8,\); expected \(nlines, width, ...\)"),
        ((0, 8), {}, r"shape \(0, 8\); expected at least one pixel"),
        ((8, 8, 0), {}, r"shape \(8, 8, 0\); expected at least one pixel"),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_written(
    tmp_path: Path, shape: tuple[int, ...], options: dict[str, Any], message: str
) -> None:
    source = write_array(tmp_path / "ras.zarr", np.zeros(shape, "float32"))
    with pytest.raises(MoraineError, match=message):
        ras_pyramid(ras=source, out_dir=str(tmp_path / "out"), **options)
    assert [path.name for path in tmp_path.iterdir()] == ["ras.zarr"]


def test_an_input_is_not_replaced(tmp_path: Path) -> None:
    source = write_array(tmp_path / "ras.zarr", np.zeros((8, 8), "float32"))
    for out in ("ras.zarr", "ras.zarr/inside", "."):
        with pytest.raises(UsageError, match="is, or is inside, or holds ras"):
            ras_pyramid(ras=source, out_dir=str(tmp_path / out))


def test_a_directory_of_other_things_is_not_replaced(tmp_path: Path) -> None:
    source = write_array(tmp_path / "ras.zarr", np.zeros((8, 8), "float32"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").touch()
    with pytest.raises(UsageError, match="did not make"):
        ras_pyramid(ras=source, out_dir=str(tmp_path / "out"))


def test_chunks_of_several_images_are_named_as_slow(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = write_array(tmp_path / "ras.zarr", np.ones((8, 8, 3), "float32"), (8, 8, 3))
    ras_pyramid(ras=source, out_dir=str(tmp_path / "out"))
    assert any("keeps 3 images in a chunk" in message for message in caplog.messages)


def test_declaring_loads_no_numerics() -> None:
    code = (
        "import sys, moraine_view.ras_pyramid, moraine_view.pc_pyramid, moraine_view.hooks\n"
        "heavy = {'numpy', 'zarr', 'numba', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
