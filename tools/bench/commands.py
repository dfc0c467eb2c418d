"""Commands against reading their input once, for orientation: a command that streams is bound by its reads."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row, in_turn, seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

THREADS = 2


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--side", type=int, default=1000, help="lines and pixels of the stack (pixels)")
    parser.add_argument("--images", type=int, default=30, help="images of the stack (count)")
    parser.add_argument("--command-runs", type=int, default=5, help="pairs of runs (count)")


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure."""
    from moraine_core import Workers
    from moraine_core.testing.data import speckle, write_array
    from moraine_ps.amp_disp import amp_disp

    block = -(-chosen.side // 2)
    with tempfile.TemporaryDirectory(prefix="moraine-bench-", dir=Path(__file__).parents[3]) as folder:
        stack = speckle((chosen.side, chosen.side, chosen.images))
        rslc = write_array(f"{folder}/rslc.zarr", stack, (block, block, 1))
        del stack
        times = in_turn(
            lambda: seconds(lambda: amp_disp(rslc=rslc, adi=f"{folder}/adi.zarr", workers=Workers(n_workers=THREADS))),
            lambda: seconds(lambda: _read_once(rslc)),
            chosen.command_runs,
        )
    size = f"{chosen.side} x {chosen.side} x {chosen.images} complex64"
    yield Row(f"amp-disp of {size} in {THREADS} threads against reading it once", *times, "s")


def _read_once(path: str) -> None:
    import zarr

    array = zarr.open_array(path, mode="r")
    height, width, _ = array.chunks
    blocks = [
        (slice(line, line + height), slice(pixel, pixel + width), image)
        for line in range(0, array.shape[0], height)
        for pixel in range(0, array.shape[1], width)
        for image in range(array.shape[2])
    ]
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(array.__getitem__, blocks):
            pass
