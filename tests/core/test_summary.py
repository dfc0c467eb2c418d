"""What ``info`` says of a path."""

from __future__ import annotations

import numpy as np
import zarr

from moraine_core import store
from moraine_core.plan import Layout
from moraine_core.provenance import made_by
from moraine_core.summary import describe, summarize
from moraine_core.testing.data import write_array


def test_an_array_is_told_from_its_metadata_alone(tmp_path):
    store.create(Layout("", (10**7, 10**6), "complex64", (1000, 1000)), tmp_path / "a.zarr")
    path = str(tmp_path / "a.zarr")
    assert summarize(path) == {
        "path": path, "kind": "array", "shape": [10**7, 10**6], "dtype": "complex64", "chunks": [1000, 1000]
    }  # fmt: skip
    assert describe(summarize(path)) == (
        f"{path}: array, shape (10000000, 1000000), dtype complex64, chunks (1000, 1000)"
    )


def test_an_array_of_format_2_is_told_alike(tmp_path):
    """A26."""
    zarr.create_array(str(tmp_path / "a.zarr"), shape=(3, 4), chunks=(2, 2), dtype=">f4", zarr_format=2)
    found = summarize(tmp_path / "a.zarr")
    assert (found["shape"], found["dtype"], found["chunks"]) == ([3, 4], "float32", [2, 2])


def test_a_group_names_its_members(tmp_path):
    group = zarr.open_group(str(tmp_path / "g"), mode="w")
    group.create_array("b", shape=(2,), dtype="f4")
    group.create_group("a")
    assert summarize(tmp_path / "g") == {"path": str(tmp_path / "g"), "kind": "group", "members": ["a", "b"]}


def test_a_directory_counts_its_stores_and_lists_the_first_twenty(tmp_path):
    for number in range(25):
        write_array(tmp_path / "deep" / f"{number:02}.zarr", np.zeros(2))
    write_array(tmp_path / "ras_adi", np.zeros(2))  # a store is known by what is in it, not by its name
    write_array(tmp_path / ".y.moraine" / "data" / "y.zarr", np.zeros(2))
    (tmp_path / "loop").symlink_to(tmp_path)
    found = summarize(tmp_path)
    assert found["kind"] == "directory"
    assert found["n_zarr"] == 26
    assert found["zarr"] == [f"deep/{number:02}.zarr" for number in range(20)]


def test_a_file_has_its_size(tmp_path):
    (tmp_path / "f").write_bytes(b"12345")
    assert summarize(tmp_path / "f") == {"path": str(tmp_path / "f"), "kind": "file", "bytes": 5}


def test_a_summary_that_fails_says_why(tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "zarr.json").write_text("{")
    store.create(Layout("", (2,), "float32", (2,)), tmp_path / "half", {store.UNFINISHED: "amp-disp"})
    for name, reason in (("none", "does not exist"), ("bad", ""), ("half", "is unfinished: amp-disp stopped")):
        found = summarize(tmp_path / name)
        assert set(found) == {"path", "error"}
        assert reason in found["error"]
        assert describe(found).startswith(f"{tmp_path / name}: error: ")


def test_who_made_an_output_is_known_where_one_call_made_all_of_it(tmp_path):
    notes = [{"command": "cube", "arguments": {"n": n}} for n in (1, 2)]
    for name, note in (("one/0.zarr", 0), ("one/1.zarr", 0), ("two/0.zarr", 0), ("two/1.zarr", 1)):
        store.create(Layout("", (2,), "float32", (2,)), tmp_path / name, {store.PROVENANCE: notes[note]})
    write_array(tmp_path / "three" / "0.zarr", np.zeros(2))
    assert made_by(tmp_path / "one" / "0.zarr") == made_by(tmp_path / "one") == notes[0]
    assert made_by(tmp_path / "two") == made_by(tmp_path / "three") == made_by(tmp_path / "none") == {}
