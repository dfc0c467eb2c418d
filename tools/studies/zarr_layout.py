"""How zarr arrays are best compressed, read and written: time and size of every compressor on data as moraine writes.

    .venv/bin/python tools/studies/zarr_layout.py                 # the table of compressors, then that of shards
    .venv/bin/pip install zarrs && .venv/bin/python ...           # with the Rust codec pipeline beside zarr's own

Each line is one kind of data under one compressor and one codec pipeline. Times are ratios to no compression at all,
medians of runs in turn, in one thread, chunk by chunk as a task reads and writes; files are in the page cache, so that
the codecs are compared and not the disk. The decision that came of it is docs/decisions/0024.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr

from moraine_core.codecs import COMPRESSORS, codecs_of
from moraine_core.testing.data import speckle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

PIPELINES = {
    "zarr-python": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "zarrs": "zarrs.ZarrsCodecPipeline",
}


def smooth(side: int, seed: int, rounds: int = 6) -> NDArray[np.float64]:
    """Return a random field whose neighbors are alike, of mean 0 and variance 1."""
    field = np.random.default_rng(seed).standard_normal((side, side))
    for _ in range(rounds):
        for axis in (0, 1):
            field = (field + np.roll(field, 1, axis) + np.roll(field, -1, axis)) / 3
    return (field - field.mean()) / field.std()


def samples(side: int) -> Iterator[tuple[str, NDArray[Any], tuple[int, ...]]]:
    """Yield kinds of data as they occur in the chain: name, values and chunks."""
    block = side // 2
    power = np.exp(smooth(side, 1))
    slc = speckle((side, side, 2), seed=2) * np.sqrt(power)[..., None].astype(np.float32)
    yield "complex64 SLC stack", slc.astype(np.complex64), (block, block, 1)
    yield "float32 amplitude dispersion", np.abs(slc).std(-1) / np.abs(slc).mean(-1), (block, block)
    yield "float32 heights", (300 + 80 * smooth(side, 3, 40)).astype(np.float32), (block, block)
    history = np.exp(1j * 2 * smooth(side, 4, 20)).astype(np.complex64)
    yield "complex64 filtered phase", history, (block, block)
    masked = history.copy()
    masked[smooth(side, 5) > 0.3] = np.nan
    yield "complex64 phase, a third missing", masked, (block, block)
    patch = side // 4
    ground = smooth(patch + 10, 6, 3)
    windows = np.lib.stride_tricks.sliding_window_view(ground, (11, 11))
    homogeneous = np.abs(windows - ground[5:-5, 5:-5, None, None]) < 1
    yield "bool windows of homogeneous pixels", homogeneous, (patch // 2, patch // 2, 11, 11)
    gix = np.stack(np.nonzero(smooth(side, 7) > 0.8), axis=1).astype(np.int32)
    yield "int32 gix", gix, (100_000, 2)
    yield "int64 hix", np.sort(np.random.default_rng(8).integers(0, side * side, len(gix))), (100_000,)
    yield "int64 permutation", np.random.default_rng(9).permutation(len(gix)), (100_000,)


def measure(folder: Path, values: NDArray[Any], chunks: tuple[int, ...], name: str, **layout: Any) -> dict[str, float]:
    """Write and read an array chunk by chunk; return both times in seconds, and the size in bytes."""
    array = zarr.create_array(
        f"{folder}/{name}.zarr",
        shape=values.shape,
        dtype=values.dtype,
        chunks=chunks,
        overwrite=True,
        config={"write_empty_chunks": True},
        **layout,
    )
    unit = layout.get("shards") or chunks
    parts = list(_parts(values.shape, unit))
    start = time.perf_counter()
    for part in parts:
        array[part] = values[part]
    middle = time.perf_counter()
    for part in parts:
        array[part]
    end = time.perf_counter()
    size = sum(file.stat().st_size for file in Path(f"{folder}/{name}.zarr").rglob("*") if file.is_file())
    return {"write": middle - start, "read": end - middle, "size": size}


def _parts(shape: tuple[int, ...], unit: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    from moraine_core.blocks import blocks

    yield from blocks(shape, unit)


def compressors(folder: Path, side: int, runs: int) -> None:
    """Print the table of compressors."""
    pipelines = [name for name in PIPELINES if name != "zarrs" or find_spec("zarrs")]
    print("| data | compressor | pipeline | size | write | read |\n| --- | --- | --- | --- | --- | --- |")
    total: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for data, values, chunks in samples(side):
        found: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
        for _ in range(runs + 1):
            for pipeline in pipelines:
                zarr.config.set({"codec_pipeline.path": PIPELINES[pipeline], "threading.max_workers": 1})
                for compressor in COMPRESSORS:
                    codecs = codecs_of(compressor, str(values.dtype))
                    found[compressor, pipeline].append(measure(folder, values, chunks, "a", compressors=codecs))
        base = found["none", "zarr-python"][1:]
        for key, times in found.items():
            ratio = {n: median(t[n] / b[n] for t, b in zip(times[1:], base, strict=True)) for n in base[0]}
            ratio["size"] = median(t["size"] for t in times) / values.nbytes
            total[key].append((ratio["size"], ratio["write"], ratio["read"]))
            print(
                f"| {data} | {key[0]} | {key[1]} | {ratio['size']:.2f} | {ratio['write']:.2f} | {ratio['read']:.2f} |",
                flush=True,
            )
    for (compressor, pipeline), rows in total.items():
        means = " | ".join(f"{np.exp(np.mean(np.log(column))):.2f}" for column in zip(*rows, strict=True))
        print(f"| **geometric mean** | {compressor} | {pipeline} | {means} |")


def shards(folder: Path, side: int, runs: int) -> None:
    """Print what it costs to keep small tiles in files of their own, against shards of 1024 lines."""
    values = smooth(2 * side, 10).astype(np.float32)
    height = min(1024, values.shape[0])
    ways = {
        "a file per tile": {},
        "shards of 4 x 4 tiles": {"shards": (height, 1024)},
        "a shard per band of 1024 lines": {"shards": (height, -(-values.shape[1] // 256) * 256)},
    }
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for _ in range(runs + 1):
        for name, layout in ways.items():
            found[name].append(measure(folder, values, (256, 256), "tiles", **layout))
    print("\n| 256 x 256 tiles of float32 | write | read | size |\n| --- | --- | --- | --- |")
    base = found["a file per tile"][1:]
    for name, times in found.items():
        ratio = [median(t[n] / b[n] for t, b in zip(times[1:], base, strict=True)) for n in ("write", "read", "size")]
        print(f"| {name} | " + " | ".join(f"{value:.2f}" for value in ratio) + " |")


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--side", type=int, default=1600, help="lines and pixels of the rasters (pixels)")
    parser.add_argument("--runs", type=int, default=5, help="measured runs of each way (count)")
    chosen = parser.parse_args()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="moraine-study-", dir=memory if memory.is_dir() else None) as folder:
        compressors(Path(folder), chosen.side, chosen.runs)
        shards(Path(folder), chosen.side, chosen.runs)


if __name__ == "__main__":
    main()
