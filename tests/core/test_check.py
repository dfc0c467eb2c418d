"""``moraine check``: are all chunks there, and can they be read? (A24)"""

from __future__ import annotations

import numpy as np
import pytest
import zarr

from moraine_core import Executor, store
from moraine_core.check import check_store, is_whole
from moraine_core.errors import StoreNotFoundError
from moraine_core.plan import Layout
from moraine_core.testing.data import write_array

X = np.arange(60, dtype=np.float32).reshape(6, 10)


@pytest.fixture
def check():
    with Executor(n_workers=2) as executor:
        yield lambda path: check_store(path, executor)


def test_a_whole_array_is_whole(check, tmp_path):
    path = write_array(tmp_path / "x.zarr", np.zeros_like(X), chunks=(4, 4))
    found = check(path)
    assert is_whole(found)
    assert found == {"path": path, "arrays": 1, "chunks": 6, "missing": [], "unreadable": [], "unfinished": []}


def test_missing_and_garbage_chunks_are_listed(check, tmp_path):
    path = write_array(tmp_path / "x.zarr", X, chunks=(4, 4))
    (tmp_path / "x.zarr/c/0/1").unlink()
    (tmp_path / "x.zarr/c/1/2").write_bytes(b"garbage")
    (tmp_path / "x.zarr/c/1/0").write_bytes((tmp_path / "x.zarr/c/1/0").read_bytes()[:9])
    found = check(path)
    assert not is_whole(found)
    assert found["missing"] == [f"{path}: chunk (0, 1)"]
    assert [text.partition(": chunk ")[2][:6] for text in found["unreadable"]] == ["(1, 0)", "(1, 2)"]


def test_an_unfinished_array_is_not_whole(check, tmp_path):
    path = write_array(tmp_path / "x.zarr", X)
    store.set_attributes(path, {store.UNFINISHED: "amp-disp"})
    assert check(path)["unfinished"] == [f"{path}: amp-disp has not ended"]


@pytest.mark.parametrize("published", [False, True])
def test_what_a_stopped_run_has_left_is_told_with_what_to_do(check, tmp_path, published):
    path = tmp_path / "x.zarr"
    if published:
        write_array(path, X)
    hidden = store.Staging(path).folder
    hidden.mkdir()
    lines = ['{"call": "a"}', '{"digest": "b"}', *(f'{{"plan": 0, "task": {n}, "result": null}}' for n in range(3))]
    (hidden / "journal.jsonl").write_text("\n".join(lines) + '\n{"plan": 0, "ta')
    sentence = f"{path}: a run stopped after 3 tasks; the same call continues it, --fresh starts over"
    assert check(path)["unfinished"] == [sentence]
    assert check(tmp_path)["unfinished"] == [sentence], "also seen from the folder that holds it"


def test_a_directory_is_checked_through_and_through(check, tmp_path):
    for name in ("0.zarr", "deep/1.zarr"):
        write_array(tmp_path / "p" / name, X, chunks=(3, 5))
    zarr.open_group(str(tmp_path / "p" / "g"), mode="w").create_array("a", data=X + 1, chunks=(6, 5))
    found = check(tmp_path / "p")
    assert (found["arrays"], found["chunks"]) == (3, 4 + 4 + 2)
    assert is_whole(found)
    (tmp_path / "p/deep/1.zarr/c/1/1").unlink()
    assert check(tmp_path / "p")["missing"] == [f"{tmp_path}/p/deep/1.zarr: chunk (1, 1)"]


def test_an_array_of_format_2_is_checked_too(check, tmp_path):
    """A26."""
    array = zarr.create_array(str(tmp_path / "x.zarr"), shape=(6, 10), chunks=(4, 4), dtype="f4", zarr_format=2)
    array[:] = X + 1
    assert is_whole(check(tmp_path / "x.zarr"))
    (tmp_path / "x.zarr" / "1.1").unlink()
    assert check(tmp_path / "x.zarr")["missing"] == [f"{tmp_path}/x.zarr: chunk (1, 1)"]


def test_shards_count_as_chunks(check, tmp_path):
    array = zarr.create_array(str(tmp_path / "x.zarr"), shape=(6, 10), chunks=(1, 5), shards=(3, 10), dtype="f4")
    array[:] = X + 1
    assert is_whole(check(tmp_path / "x.zarr"))
    (tmp_path / "x.zarr/c/1/0").unlink()
    assert check(tmp_path / "x.zarr")["missing"] == [f"{tmp_path}/x.zarr: chunk (1, 0)"]


def test_an_empty_array_is_whole(check, tmp_path):
    store.create(Layout("", (0, 5), "float32", (1, 5)), tmp_path / "x.zarr")
    assert is_whole(check(tmp_path / "x.zarr"))


def test_nothing_to_check_is_an_error(check, tmp_path):
    (tmp_path / "f").write_text("")
    for name in ("none", "f", "."):
        with pytest.raises(StoreNotFoundError, match=r"does not exist|holds no zarr array"):
            check(tmp_path / name)
