"""Compressors and shards: what is stored differs, what is read does not."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import run_commands
import zarr.storage

from moraine_core import store
from moraine_core.cli.main import run as run_line
from moraine_core.codecs import COMPRESSORS
from moraine_core.errors import LayoutError
from moraine_core.plan import Chunk, ChunkTask, Layout, Plan
from moraine_core.testing.data import read_array, speckle, write_array

SMOOTH = np.linspace(0, 1, 40_000, dtype=np.float32).reshape(200, 200)
HOLED = np.where(SMOOTH > 0.7, np.float32(np.nan), SMOOTH)


def size_of(path):
    return sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())


@pytest.mark.parametrize("compressor", COMPRESSORS)
@pytest.mark.parametrize(
    "values",
    [SMOOTH, speckle((30, 20)), SMOOTH > 0.5, np.arange(300).reshape(100, 3), np.zeros((0, 3), np.int32)],
    ids=lambda values: f"{values.dtype} {values.shape}",
)
def test_every_compressor_gives_back_every_bit(compressor, values, tmp_path):
    layout = Layout("x", values.shape, str(values.dtype), (64, 64))
    store.create(layout, tmp_path / "x.zarr", compressor=compressor)
    Chunk(str(tmp_path / "x.zarr")).write(values)
    np.testing.assert_array_equal(read_array(tmp_path / "x.zarr"), values)


def test_compressed_is_smaller_and_without_a_compressor_the_bytes_are_the_values(tmp_path):
    sizes = {}
    for compressor in COMPRESSORS:
        path = tmp_path / f"{compressor}.zarr"
        store.create(Layout("x", SMOOTH.shape, "float32", (200, 200)), path, compressor=compressor)
        Chunk(str(path)).write(SMOOTH)
        sizes[compressor] = size_of(path / "c")
    assert sizes["none"] == SMOOTH.nbytes
    assert all(sizes[name] < SMOOTH.nbytes for name in COMPRESSORS if name.endswith("shuffle"))
    assert (tmp_path / "none.zarr" / "c" / "0" / "0").read_bytes() == SMOOTH.tobytes()


def test_the_line_chooses_the_compressor(tmp_path):
    source = write_array(tmp_path / "x.zarr", SMOOTH, (100, 100))
    host = run_commands.make_host("double")
    sizes = {}
    for compressor in ("none", "zstd-shuffle"):
        out = tmp_path / f"{compressor}.zarr"
        words = ["double", "--source", source, "--result", str(out), "--compressor", compressor]
        assert run_line(words, host) == 0
        np.testing.assert_array_equal(read_array(out), 2 * SMOOTH)
        sizes[compressor] = size_of(out / "c")
    assert sizes["none"] == SMOOTH.nbytes
    assert sizes["zstd-shuffle"] < SMOOTH.nbytes


def test_an_unknown_compressor_is_refused_with_the_known_ones(tmp_path, capsys):
    source = write_array(tmp_path / "x.zarr", SMOOTH)
    words = ["double", "--source", source, "--result", str(tmp_path / "y.zarr"), "--compressor", "gzip"]
    assert run_line(words, run_commands.make_host("double")) == 2
    assert "lz4-bitshuffle" in capsys.readouterr().err
    assert not (tmp_path / "y.zarr").exists()


# -------------------------------------------------------------------------------------------------------- shards


def sharded(path, shape=(100, 90), chunks=(16, 16), shards=(48, 32)):
    return Layout(str(path), shape, "float32", chunks, shards=shards)


def test_shards_are_made_of_whole_chunks():
    with pytest.raises(LayoutError, match=r"x: shards \(40, 32\) are not made of whole chunks \(16, 16\)"):
        sharded("x", shards=(40, 32))


def test_a_task_must_write_whole_shards():
    """A23, A21."""
    layout = sharded("x")
    part = Plan([layout], [ChunkTask("a:b", outputs=[Chunk(layout, (slice(0, 16), slice(0, 90)))])])
    assert any("not made of whole chunks (48, 32)" in str(problem) for problem in part.problems())
    whole = [Chunk(layout, (slice(low, min(low + 48, 100)), slice(None))) for low in (0, 48, 96)]
    assert list(Plan([layout], [ChunkTask("a:b", outputs=[chunk]) for chunk in whole]).problems()) == []
    missing = Plan([layout], [ChunkTask("a:b", outputs=[chunk]) for chunk in whole[:2]])
    assert "no task writes 3 of its chunks" in str(next(missing.problems()))


def test_each_shard_is_written_once_and_no_byte_much_more_often(tmp_path, monkeypatch):
    """A23: bytes written are at most 1.2 times the final size."""
    values = np.random.default_rng(0).random((100, 90), dtype=np.float32)
    layout = sharded(tmp_path / "x.zarr")
    store.create(layout, layout.path)
    written = []
    original = zarr.storage.LocalStore.set

    async def counted(self, key, value):
        written.append(len(value))
        await original(self, key, value)

    monkeypatch.setattr(zarr.storage.LocalStore, "set", counted)
    for low in range(0, 100, 48):
        rows = slice(low, min(low + 48, 100))
        Chunk(layout, (rows, slice(None))).write(values[rows])
    np.testing.assert_array_equal(read_array(layout.path), values)
    assert len(written) == 9
    assert sum(written) <= 1.2 * size_of(Path(layout.path) / "c")
    assert store.describe(layout.path).chunks == (48, 32)
    assert store.missing_chunks(layout.path) == []
    np.testing.assert_array_equal(Chunk(layout.path, (slice(10, 70), slice(30, 31))).read(), values[10:70, 30:31])


# -------------------------------------------------------------------------------------------------- Rust codecs


@pytest.mark.skipif(not find_spec("zarrs"), reason="the extra zarrs is not installed")
def test_a_command_gives_the_same_with_the_rust_codecs(tmp_path):
    source = write_array(tmp_path / "x.zarr", HOLED, (64, 64))
    out = {}
    for name, variables in {
        "python": {},
        "rust": {"ZARR_CODEC_PIPELINE__PATH": "zarrs.ZarrsCodecPipeline", "ZARR_THREADING__MAX_WORKERS": "1"},
    }.items():
        path = tmp_path / f"{name}.zarr"
        code = f"from run_commands import double; double(source={source!r}, result={str(path)!r})"
        variables["PYTHONPATH"] = str(Path(run_commands.__file__).parent)
        subprocess.run([sys.executable, "-c", code], env={**os.environ, **variables}, check=True, timeout=60)
        out[name] = read_array(path)
    np.testing.assert_array_equal(out["rust"], out["python"])
    np.testing.assert_array_equal(out["rust"], 2 * HOLED)
