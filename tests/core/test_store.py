"""Zarr and files: clear errors, whole chunks, outputs that appear at once, locks."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numcodecs
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_core import Array, Chunk, Layout, store
from moraine_core.errors import (
    BusyError,
    DiskFullError,
    IncompleteError,
    LayoutError,
    StoreNotFoundError,
    UnreadableError,
)
from moraine_core.store import (
    Staging,
    ZarrDir,
    ZarrParts,
    check_aligned,
    create,
    describe,
    exclusive,
    missing_chunks,
    open_array,
    parallel_read_zarr,
    parallel_write_zarr,
    stamp,
)
from moraine_core.testing.data import read_array, write_array

VALUES = np.arange(35, dtype="float32").reshape(5, 7)


@pytest.fixture
def path(tmp_path):
    """A 5 x 7 array with chunks (2, 3)."""
    return write_array(tmp_path / "a.zarr", VALUES, (2, 3))


def tree(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# ------------------------------------------------------------------------------------------ reading and writing


@pytest.mark.parametrize(
    ("rows", "columns", "aligned"),
    [
        ((0, 2), (3, 7), True),
        ((0, 3), (0, 3), False),
        ((4, 5), (0, 7), True),
        ((0, 5), (0, 7), True),
        ((0, 5), (0, 3), True),
    ],
)
def test_alignment_is_checked_on_writing(path, rows, columns, aligned):
    """E7.1."""
    array, block = open_array(path), (slice(*rows), slice(*columns))
    if aligned:
        assert check_aligned(array, block, path) == (rows, columns)
    else:
        with pytest.raises(LayoutError, match=r"a\.zarr: part 0:3, 0:3 is not made of whole chunks \(2, 3\)"):
            check_aligned(array, block, path)


def test_wrong_shape_misaligned_part_and_missing_array_are_three_errors(path, tmp_path):
    """E7.6, E1: too large data is not cut in silence, and nothing is written."""
    before = tree(tmp_path)
    part = Chunk(describe(path), (slice(0, 2), slice(0, 3)))
    with pytest.raises(LayoutError, match=r"a\.zarr: data of shape \(3, 3\) for part 0:2, 0:3; expected \(2, 3\)"):
        part.write(np.zeros((3, 3), "f4"))
    with pytest.raises(LayoutError, match=r"a\.zarr: part 0:3, 0:3 is not made of whole chunks"):
        Chunk(describe(path), (slice(0, 3), slice(0, 3))).write(np.zeros((3, 3), "f4"))
    with pytest.raises(StoreNotFoundError, match=r"gone\.zarr does not exist; expected a zarr array") as caught:
        Chunk(str(tmp_path / "gone.zarr")).write(np.zeros((2, 3), "f4"))
    assert isinstance(caught.value, FileNotFoundError)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("dtype", ["complex64", "U3"])
def test_a_dtype_that_would_lose_information_is_refused(path, dtype):
    with pytest.raises(LayoutError, match=r"data of dtype .* cannot be stored as float32"):
        Chunk(path).write(VALUES.astype(dtype))


def test_a_wider_float_is_rounded(path):
    Chunk(path).write(VALUES.astype("f8") * (1 + 1e-12))
    np.testing.assert_array_equal(read_array(path), VALUES)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_any_part_reads_like_numpy(data):
    """E6: whatever the chunks, the part and the number of threads."""
    shape = tuple(data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=3)))
    chunks = tuple(data.draw(st.integers(1, 7)) for _ in shape)
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    array = zarr.create_array(zarr.storage.MemoryStore(), shape=shape, chunks=chunks, dtype=values.dtype)
    if values.size:
        array[...] = values
    block = []
    for n in shape:
        start = data.draw(st.integers(0, n))
        block.append(slice(start, data.draw(st.integers(start, n))))
    found = parallel_read_zarr(array, block, threads=data.draw(st.sampled_from([1, 3])))
    np.testing.assert_array_equal(found, values[tuple(block)])
    assert found.flags.writeable


def test_parts_written_in_threads_make_the_whole(tmp_path):
    layout = Layout("x", (6, 9), "int32", (2, 3))
    create(layout, tmp_path / "x.zarr")
    values = np.arange(54, dtype="int32").reshape(6, 9)
    array = open_array(tmp_path / "x.zarr", writable=True)
    parallel_write_zarr(array, values[:4], (slice(0, 4), None), threads=4)
    parallel_write_zarr(array, values[4:], (slice(4, 6), None), threads=1)
    np.testing.assert_array_equal(read_array(tmp_path / "x.zarr"), values)


def test_an_array_without_axes_and_an_empty_one(tmp_path):
    path = write_array(tmp_path / "s.zarr", np.array(3.5))
    assert parallel_read_zarr(open_array(path)) == 3.5
    empty = write_array(tmp_path / "e.zarr", np.zeros((0, 4), "f4"))
    assert parallel_read_zarr(open_array(empty)).shape == (0, 4)
    assert parallel_read_zarr(open_array(empty), (slice(0, 0), slice(1, 3))).shape == (0, 2)
    parallel_write_zarr(open_array(empty, writable=True), np.zeros((0, 4), "f4"))
    assert missing_chunks(empty) == []


@pytest.mark.parametrize("block", [(slice(0, 6), None), (slice(-2, None), None), (slice(0, 4, 2), None), (None,)])
def test_a_part_outside_the_array_is_refused(path, block):
    """E6."""
    with pytest.raises(LayoutError):
        Chunk(path, block).read()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("order", ["<", ">"])
def test_both_formats_and_byte_orders_are_read(tmp_path, version, order):
    """A26, A31."""
    path = tmp_path / "x.zarr"
    array = zarr.create_array(str(path), shape=(5, 7), chunks=(2, 3), dtype=f"{order}f4", zarr_format=version)
    array[...] = VALUES
    found = describe(path)
    assert (found.shape, found.dtype, found.chunks) == ((5, 7), "float32", (2, 3))
    read = Chunk(found, (slice(1, 4), slice(2, 7))).read()
    assert read.dtype.isnative
    np.testing.assert_array_equal(read, VALUES[1:4, 2:7])
    whole = Chunk(found, (slice(0, 2), slice(0, 3))).read()
    assert whole.dtype.isnative
    assert missing_chunks(path) == []


def test_a_foreign_array_with_compression_of_its_own_is_read(tmp_path):
    path = tmp_path / "x.zarr"
    zarr.create_array(str(path), data=VALUES, chunks=(3, 3), compressors=zarr.codecs.GzipCodec(), fill_value=9)
    np.testing.assert_array_equal(Chunk(str(path)).read(), VALUES)


def _stored(path, codec, version):
    noise = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)
    form = {"chunks": (300, 100), "zarr_format": version, "shape": noise.shape, "dtype": noise.dtype}
    if codec == "shards":
        form |= {"chunks": (100, 50), "shards": (300, 100)}
    elif codec == "none":
        form["compressors"] = None
    elif version == 2:
        form["compressors"] = numcodecs.Blosc() if codec == "blosc" else numcodecs.GZip()
    else:
        form["compressors"] = zarr.codecs.BloscCodec() if codec == "blosc" else zarr.codecs.ZstdCodec()
    zarr.create_array(str(path), **form)[...] = noise
    return noise


@pytest.mark.parametrize("keep", [0, 7, 0.01, 0.5, 0.999])
@pytest.mark.parametrize(
    ("codec", "version"), [("blosc", 3), ("blosc", 2), ("zstd", 3), ("gzip", 2), ("none", 3), ("shards", 3)]
)
def test_a_chunk_that_was_cut_short_is_an_error_that_names_the_path(tmp_path, codec, version, keep):
    """Blosc by itself reads on behind the end of a chunk: to noise, or to the end of the process."""
    path = tmp_path / "a.zarr"
    noise = _stored(path, codec, version)
    chunk = path / ("0.1" if version == 2 else "c/0/1")
    os.truncate(chunk, keep if isinstance(keep, int) else int(chunk.stat().st_size * keep))
    array = open_array(path)
    np.testing.assert_array_equal(parallel_read_zarr(array, (None, slice(200, 300))), noise[:, 200:])
    if codec == "shards" and not keep:  # zarr takes it for one full of the fill value
        assert missing_chunks(path) == [(0, 1)]
        return
    for block in (None, (None, slice(120, 180))):
        with pytest.raises(UnreadableError, match=rf"{path}: part .* cannot be read: .*; moraine check lists"):
            parallel_read_zarr(array, block)


def test_a_shard_is_the_unit_that_one_task_writes(tmp_path):
    """A23."""
    path = tmp_path / "x.zarr"
    zarr.create_array(str(path), shape=(8, 8), chunks=(2, 2), shards=(4, 8), dtype="f4", fill_value=np.nan)
    assert describe(path).chunks == (4, 8)
    array = open_array(path, writable=True)
    with pytest.raises(LayoutError, match=r"whole chunks \(4, 8\)"):
        parallel_write_zarr(array, np.zeros((2, 8), "f4"), (slice(0, 2), None))
    parallel_write_zarr(array, np.ones((4, 8), "f4"), (slice(0, 4), None))
    assert missing_chunks(path) == [(1, 0)]
    parallel_write_zarr(array, np.ones((4, 8), "f4"), (slice(4, 8), None))
    assert missing_chunks(path) == []


def test_inputs_are_opened_read_only(path, tmp_path):
    """A27."""
    before, mtime = tree(tmp_path), stamp(path)
    with pytest.raises(ValueError, match=r"read-only"):
        open_array(path)[0, 0] = 5
    describe(path), Chunk(path).read(), missing_chunks(path)
    assert tree(tmp_path) == before
    assert stamp(path) == mtime


def test_many_threads_read_one_array_to_the_same_bytes(path):
    """A29."""
    array = open_array(path)
    wrong = []

    def read():
        wrong.extend(1 for _ in range(60) if not np.array_equal(parallel_read_zarr(array, threads=2), VALUES))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_share_of_the_cores_is_told_by_the_executor(monkeypatch):
    monkeypatch.setenv("MORAINE_IO_THREADS", "3")
    assert store.io_threads() == 3
    monkeypatch.delenv("MORAINE_IO_THREADS")
    assert store.io_threads() == len(os.sched_getaffinity(0))


# ------------------------------------------------------------------------------------------------ what is there


def test_what_is_no_array_is_described(tmp_path, path):
    (tmp_path / "file").write_text("x")
    zarr.create_group(str(tmp_path / "group"))
    (tmp_path / "empty").mkdir()
    for name, message in [
        ("gone", "gone does not exist; expected a zarr array"),
        ("file", "file is a file; expected a zarr array"),
        ("empty", "empty holds no zarr array"),
        ("group", "group holds no zarr array"),
        ("", r"holds 2 arrays or groups \(a\.zarr, group, \.\.\.\); expected one zarr array"),
    ]:
        with pytest.raises(StoreNotFoundError, match=message):
            describe(tmp_path / name)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"garbage",
        b"[]",
        b"null",
        b"3",
        b"{}",
        b'{"zarr_format": 3}',
        b"\xff\xfe\x00",
        b'{"zarr_format": 7, "node_type": "array"}',
    ],
)
def test_broken_metadata_are_an_error_that_names_the_path(path, content):
    """A22: a half-written file among them."""
    (Path(path) / "zarr.json").write_bytes(content)
    with pytest.raises(StoreNotFoundError, match=r"a\.zarr"):
        describe(path)


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.95])
def test_half_of_the_metadata_is_an_error_that_names_the_path(path, keep):
    """A22."""
    file = Path(path) / "zarr.json"
    text = file.read_bytes()
    file.write_bytes(text[: int(keep * len(text))])
    with pytest.raises(StoreNotFoundError, match=r"a\.zarr: its zarr metadata cannot be read"):
        describe(path)


@pytest.mark.parametrize(
    "change", [{"shape": "x"}, {"data_type": "weird"}, {"codecs": []}, {"chunk_grid": {"name": "x"}}]
)
def test_metadata_of_another_kind_are_an_error_that_names_the_path(path, change):
    file = Path(path) / "zarr.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(StoreNotFoundError, match=r"a\.zarr"):
        describe(path)


def test_an_unfinished_array_is_refused(tmp_path):
    """A24."""
    create(Layout("x", (4,), "float32", (2,)), tmp_path / "x.zarr", {store.UNFINISHED: "amp-disp"})
    with pytest.raises(IncompleteError, match="is unfinished: amp-disp stopped before its last chunk; run it again"):
        describe(tmp_path / "x.zarr")
    store.set_attributes(tmp_path / "x.zarr", {"unit": "m"}, remove=[store.UNFINISHED])
    assert describe(tmp_path / "x.zarr").attributes["unit"] == "m"


def test_missing_chunks_are_named(path):
    """A24: a hole is not mistaken for data."""
    assert missing_chunks(path) == []
    (Path(path) / "c" / "1" / "2").unlink()
    (Path(path) / "c" / "2" / "0").unlink()
    assert missing_chunks(path) == [(1, 2), (2, 0)]


@pytest.mark.parametrize(
    ("dtype", "missing"), [("float32", np.nan), ("int16", 0), ("bool", False), ("complex64", complex(np.nan, np.nan))]
)
def test_a_chunk_full_of_the_fill_value_has_a_file(tmp_path, dtype, missing):
    """A24, A38: what is missing on disk was never computed."""
    layout = Layout("x", (4,), dtype, (2,))
    create(layout, tmp_path / "x.zarr")
    assert missing_chunks(tmp_path / "x.zarr") == [(0,), (1,)]
    np.testing.assert_array_equal(read_array(tmp_path / "x.zarr"), np.full(4, missing, dtype))
    Chunk(layout, (slice(0, 2),)).at(str(tmp_path / "x.zarr")).write(np.full(2, missing, dtype))
    assert missing_chunks(tmp_path / "x.zarr") == [(1,)]


def test_a_stamp_sees_a_chunk_that_was_rewritten(path):
    """REF-BUG of the specification: the metadata stay as they are."""
    before = stamp(path)
    time.sleep(0.02)
    Chunk(path, (slice(0, 2), slice(0, 3))).write(np.zeros((2, 3), "f4"))
    assert stamp(path) > before
    file = Path(path).parent / "f.txt"
    file.write_text("x")
    assert stamp(file) == file.stat().st_mtime_ns


def test_an_array_added_later_is_seen(tmp_path):
    """A25: nothing is cached in a consolidated index."""
    assert store.arrays_in(tmp_path) == []
    write_array(tmp_path / "1.zarr", VALUES)
    write_array(tmp_path / "0.zarr", VALUES)
    assert [p.name for p in store.arrays_in(tmp_path)] == ["0.zarr", "1.zarr"]
    assert store.arrays_in(tmp_path / "0.zarr") == [tmp_path / "0.zarr"]
    assert store.arrays_in(tmp_path / "none") == []


# ------------------------------------------------------------------------------------------------- directories


def parts(folder, sizes, tail=(3,), dtype="f4", chunk=None):
    start = 0
    for number, size in sizes.items():
        values = (np.arange(size * int(np.prod(tail))) + start).reshape(size, *tail).astype(dtype)
        write_array(folder / f"{number}.zarr", values, (chunk or max(size, 1), *tail))
        start += values.size
    return start


def test_a_chunk_directory_is_one_array_in_the_order_of_the_numbers(tmp_path):
    """E6: 10 after 9, gaps are normal, an empty part counts nothing, other files are left alone."""
    total = parts(tmp_path, {0: 2, 9: 1, 10: 3, 11: 0})
    (tmp_path / "notes.txt").write_text("x")
    write_array(tmp_path / "extra.zarr", VALUES)
    found = ZarrDir(tmp_path)
    assert (found.shape, found.dtype) == ((6, 3), "float32")
    np.testing.assert_array_equal(found.read(), np.arange(total).reshape(6, 3))
    np.testing.assert_array_equal(found.read((slice(1, 3),)), np.arange(total).reshape(6, 3)[:, 1:3])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"tail": (4,)}, r"1\.zarr has shape \(2, 4\) and dtype float32; expected trailing shape \(3,\) and float32"),
        ({"dtype": "f8"}, r"1\.zarr has shape \(2, 3\) and dtype float64; expected"),
        ({"chunk": 1}, r"1\.zarr has chunks of 1 along axis 0; expected one chunk of 2"),
    ],
)
def test_parts_that_disagree_are_named(tmp_path, more, message):
    """E6."""
    parts(tmp_path, {0: 2})
    parts(tmp_path, {1: 2}, **more)
    with pytest.raises(LayoutError, match=message):
        ZarrDir(tmp_path)


def test_arrays_of_any_chunks_are_read_as_one_in_the_order_given(tmp_path):
    parts(tmp_path, {7: 5}, chunk=2)
    write_array(tmp_path / "b.zarr", np.zeros((3, 3), "f4"))
    found = ZarrParts([tmp_path / "b.zarr", tmp_path / "7.zarr"])
    assert (found.shape, found.dtype) == ((8, 3), "float32")
    np.testing.assert_array_equal(found.read(), np.concatenate([np.zeros((3, 3)), np.arange(15).reshape(5, 3)]))


def test_a_number_without_axes_is_no_part(tmp_path):
    write_array(tmp_path / "0.zarr", np.float32(1))
    with pytest.raises(LayoutError, match=r"0\.zarr has shape \(\); expected at least one axis"):
        ZarrDir(tmp_path)


def test_a_part_that_lost_a_chunk_is_an_error(tmp_path):
    """A54: a hole is never read as a value."""
    parts(tmp_path, {0: 2, 1: 3})
    store.set_attributes(tmp_path / "1.zarr", {store.PROVENANCE: {"command": "made-by-us"}})
    next(file for file in (tmp_path / "1.zarr" / "c").rglob("*") if file.is_file()).unlink()
    with pytest.raises(IncompleteError, match=r"1\.zarr lacks 1 of its chunks"):
        ZarrDir(tmp_path)


def test_a_directory_without_parts_is_an_error(tmp_path):
    with pytest.raises(StoreNotFoundError, match="no chunks"):
        ZarrDir(tmp_path)
    with pytest.raises(StoreNotFoundError, match="no chunks"):
        ZarrDir(tmp_path / "gone")


# ------------------------------------------------------------------------------------------------- a full disk


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB; only root can make one."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", folder], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("cannot mount a small file system here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_disk_that_runs_full_is_named_and_leaves_no_half_chunk(small_disk):
    """A28, E4."""
    values = np.random.default_rng(0).random((2, 100_000))
    layout = Layout("x", values.shape, "float64", (1, 100_000))
    path = small_disk / "x.zarr"
    create(layout, path)
    with pytest.raises(
        DiskFullError, match=r"x\.zarr: no space left on the device; what was done so far is kept"
    ) as caught:
        Chunk(str(path)).write(values)
    assert caught.value.errno == errno.ENOSPC
    assert isinstance(caught.value, OSError)
    assert missing_chunks(path) == [(0, 0), (1, 0)]
    assert not list(path.rglob("*.partial"))


@pytest.mark.parametrize(
    ("number", "words"), [(errno.ENOSPC, "no space left"), (errno.EDQUOT, "the disk quota is used up")]
)
def test_a_full_disk_and_a_used_up_quota_are_told_apart(number, words):
    """A28."""
    with pytest.raises(DiskFullError, match=f"/x: {words}"), store.disk_errors("/x"):
        raise OSError(number, "")


def test_other_errors_of_files_stay_what_they_are():
    with pytest.raises(PermissionError), store.disk_errors("/x"):
        raise PermissionError(errno.EACCES, "no")


def test_a_text_file_is_written_whole_or_not_at_all(tmp_path):
    file = tmp_path / "d" / "note.txt"
    store.write_text(file, "one")
    part = file.with_name(".note.txt.part")
    part.symlink_to("/dev/full")
    with pytest.raises(DiskFullError):
        store.write_text(file, "two")
    assert file.read_text() == "one"


# ------------------------------------------------------------------------------------------------- publishing


@pytest.fixture
def staging(tmp_path):
    return Staging(tmp_path / "out.zarr")


def test_an_output_appears_whole_and_the_one_before_stays_until_then(staging, tmp_path):
    write_array(staging.output, np.zeros(3))
    staging.prepare()
    write_array(staging.data, np.ones(3))
    assert read_array(staging.output).tolist() == [0, 0, 0]
    staging.publish()
    assert read_array(staging.output).tolist() == [1, 1, 1]
    staging.close()
    assert [p.name for p in staging.folder.iterdir()] == []


def test_files_and_links_are_replaced_too(staging, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "precious").write_text("x")
    staging.output.symlink_to(other)
    staging.prepare()
    staging.data.write_text("new")
    staging.publish()
    assert staging.output.read_text() == "new"
    assert (other / "precious").exists()  # the link is gone, not what it pointed to


def test_an_exchange_cut_between_its_two_renames_is_undone_and_can_be_repeated(staging):
    write_array(staging.output, np.zeros(3))
    staging.prepare()
    write_array(staging.data, np.ones(3))
    code = (
        "import os, pathlib, sys\nfrom moraine_core.store import Staging\n"
        "s = Staging(pathlib.Path(sys.argv[1])); rename = pathlib.Path.rename\n"
        "def cut(path, target):\n"
        "    if path == s.data: os.kill(os.getpid(), 9)\n"
        "    return rename(path, target)\n"
        "pathlib.Path.rename = cut\ns.publish()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, staging.output], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not staging.output.exists()
    staging.prepare()
    assert read_array(staging.output).tolist() == [0, 0, 0]
    staging.publish()
    assert read_array(staging.output).tolist() == [1, 1, 1]


def test_what_a_kill_has_left_of_a_chunk_goes_before_the_run_continues(staging):
    staging.prepare()
    write_array(staging.data, np.ones(3))
    cut = staging.data / "c" / "0.0123.partial"
    cut.write_text("half")
    staging.prepare()
    assert not cut.exists()
    assert read_array(staging.data).tolist() == [1, 1, 1]


def test_clearing_leaves_what_is_published(staging):
    write_array(staging.output, np.zeros(3))
    staging.prepare()
    write_array(staging.data, np.ones(3))
    staging.clear()
    assert not staging.data.exists()
    assert read_array(staging.output).tolist() == [0, 0, 0]


# ------------------------------------------------------------------------------------------------------ locks


HOLD = (
    "import pathlib, sys, time\nfrom moraine_core.store import exclusive\n"
    "with exclusive(pathlib.Path(sys.argv[1]), 'it'):\n"
    "    print('held', flush=True); time.sleep(60)\n"
)


def test_two_processes_do_not_write_one_output(tmp_path):
    lock = tmp_path / "hidden" / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, lock], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(BusyError, match=rf"out is in use by another moraine \(process {holder.pid}\)"),
            exclusive(lock, "out"),
        ):
            pass
        holder.kill()
        holder.wait()
    with exclusive(lock, "out"):  # the lock of a dead process holds nobody up
        assert lock.read_text() == str(os.getpid())
    assert not lock.exists()


def test_a_lock_is_never_held_twice_nor_taken_from_its_holder(tmp_path):
    """Six threads take, remove and make anew the folder with the lock, as runs of one output do."""
    lock = tmp_path / "hidden" / "lock"
    inside, most, taken, errors = 0, 0, 0, []

    def work():
        nonlocal inside, most, taken
        while time.monotonic() < end:
            try:
                with exclusive(lock, "x"):
                    inside += 1
                    most = max(most, inside)
                    assert lock.exists()
                    time.sleep(0.0005)
                    taken += 1
                    inside -= 1
            except BusyError:
                time.sleep(0)
            except Exception as error:
                errors.append(error)
                raise
            with contextlib.suppress(OSError):
                lock.parent.rmdir()

    end = time.monotonic() + 1.0
    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert most == 1
    assert taken > 20


def test_free_room_is_that_of_the_nearest_folder_there_is(tmp_path):
    assert store.free_bytes(tmp_path / "a" / "b" / "c") == pytest.approx(store.free_bytes(tmp_path), rel=0.1)


def test_a_mere_description_reads_no_values(path, monkeypatch):
    monkeypatch.setattr(zarr.Array, "__getitem__", lambda *_: pytest.fail("values were read"))
    assert describe(path) == Array(path, (5, 7), "float32", (2, 3))
