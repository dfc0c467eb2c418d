"""Headerless files as outputs: written row by row by tasks, whole, and with a note of who made their folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest

from moraine_core import ALL, Chunk, ChunkTask, Layout, Output, Plan, RawLayout, UsageError, Workers, blocks, command
from moraine_core.errors import LayoutError
from moraine_core.options import RunOptions
from moraine_core.provenance import made_by
from moraine_core.run import run_command
from moraine_core.store import MADE_BY, create, describe
from moraine_core.testing.data import read_array

SHAPE = (7, 5)


def ramp(first: int, *, nlines: int) -> np.ndarray:
    """Return lines of a ramp in range and azimuth; a worker imports it from here, as a thread."""
    line, sample = np.meshgrid(np.arange(first, first + nlines), np.arange(SHAPE[1]), indexing="ij")
    return np.asarray(line + 100j * sample, dtype=np.complex64)


@command("write-raw", family="test")
def write_raw(
    out: Annotated[str, Output("a folder", kind="directory")],
    lines: Annotated[int, "lines of a task (lines)"] = 3,
    skip: Annotated[int, "task that is left out (unitless)"] = -1,
):
    """Write a ramp as a file beside an array that lies deeper."""
    raw = RawLayout(f"{out}/slc/one.slc", SHAPE, "complex64", (lines, -1))
    deep = Layout(f"{out}/truth/ramp.zarr", SHAPE, "complex64", (lines, -1))
    tasks = [
        ChunkTask(
            f"{__name__}:ramp",
            inputs=[block[0].start],
            outputs=[Chunk(layout, block)],
            kwargs={"nlines": block[0].stop - block[0].start},
        )
        for layout in (raw, deep)
        for block in blocks(SHAPE, (lines, -1))
    ]
    return Plan(
        [raw, deep], [task for n, task in enumerate(tasks) if n != skip], texts={f"{out}/slc/one.par": "a: 1\n"}
    )


def run(**arguments):
    return run_command(write_raw, arguments, Workers(n_workers=2), RunOptions())


def test_a_raw_file_is_big_endian_and_has_the_values_of_the_tasks(tmp_path):
    run(out=str(tmp_path / "out"))
    stored = np.fromfile(tmp_path / "out" / "slc" / "one.slc", dtype=">c8").reshape(SHAPE)
    np.testing.assert_array_equal(stored, ramp(0, nlines=7))
    assert (tmp_path / "out" / "slc" / "one.par").read_text() == "a: 1\n"


def test_arrays_that_lie_deeper_are_finished_too(tmp_path):
    run(out=str(tmp_path / "out"))
    array = tmp_path / "out" / "truth" / "ramp.zarr"
    assert describe(array).attributes["moraine"]["command"] == "write-raw"
    np.testing.assert_array_equal(read_array(array), ramp(0, nlines=7))


def test_a_folder_of_raw_files_tells_who_made_it_and_is_replaced_only_then(tmp_path):
    out = tmp_path / "out"
    run(out=str(out))
    assert made_by(out)["command"] == "write-raw"
    run(out=str(out), lines=2)
    assert made_by(out)["arguments"]["lines"] == 2
    (out / MADE_BY).write_text(json.dumps([]))
    with pytest.raises(UsageError, match="did not make"):
        run(out=str(out))


def test_bands_nobody_writes_are_found_before_work(tmp_path):
    with pytest.raises(LayoutError, match="no task writes 1 of its chunks"):
        run(out=str(tmp_path / "out"), skip=1)
    assert not (tmp_path / "out").exists()


def test_rows_are_not_cut():
    with pytest.raises(LayoutError, match="cut rows"):
        RawLayout("x", (4, 6), "float32", (2, 3))


def test_a_part_is_read_back_and_a_short_file_is_named(tmp_path):
    layout = RawLayout(str(tmp_path / "x.bin"), (6, 4), "int16", (2, -1), byteorder="little")
    create(layout, layout.path)
    rows = Chunk(layout, (slice(2, 4), ALL))
    values = np.arange(8, dtype=np.int16).reshape(2, 4)
    rows.write(values)
    np.testing.assert_array_equal(rows.read(), values)
    assert np.fromfile(layout.path, dtype="<i2").tolist() == [0] * 8 + list(range(8)) + [0] * 8
    with pytest.raises(LayoutError, match="expected"):
        rows.write(values[:1])
    with pytest.raises(LayoutError, match="whole rows"):
        Chunk(layout, (ALL, slice(0, 2))).read()
    Path(layout.path).write_bytes(b"12")
    with pytest.raises(LayoutError, match="ends at byte"):
        rows.read()
