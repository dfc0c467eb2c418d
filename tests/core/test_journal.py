"""The journal of a run: what an interrupted call continues with."""

from __future__ import annotations

import json

import numpy as np
import pytest

from moraine_core.errors import DiskFullError
from moraine_core.journal import Journal, JournalMismatchError, digest, plain, plan_digest
from moraine_core.plan import Chunk, ChunkTask, Layout, Plan


def plan(rows=4, block=2):
    out = Layout("o.zarr", (rows,), "float32", (block,))
    return Plan([out], [ChunkTask("m:f", (), [Chunk(out, (slice(i, i + block),))]) for i in range(0, rows, block)])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def begun(path, call="call"):
    journal = Journal(path, call)
    journal.start(fresh=True)
    journal.begin_plan(0, plan())
    return journal


def test_finished_tasks_and_their_results_are_found_again(path):
    """A54."""
    journal = begun(path)
    journal.task_done(0, 1, {"count": 3})
    journal.close()
    again = Journal(path, "call")
    assert again.load()
    again.start(fresh=False)
    assert again.begin_plan(0, plan()) == {1: {"count": 3}}
    again.close()


def test_another_call_finds_nothing(path):
    begun(path).close()
    assert not Journal(path, "other call").load()


def test_no_journal_is_no_error(path):
    assert not Journal(path, "call").load()


def test_another_plan_is_noticed(path):
    begun(path).close()
    again = Journal(path, "call")
    assert again.load()
    again.start(fresh=False)
    with pytest.raises(JournalMismatchError):
        again.begin_plan(0, plan(block=1))
    again.close()


def test_a_fresh_start_forgets_everything(path):
    journal = begun(path)
    journal.task_done(0, 0, None)
    journal.close()
    again = Journal(path, "call")
    again.load()
    again.start(fresh=True)
    assert again.begin_plan(0, plan()) == {}
    again.close()
    assert path.read_text().count("\n") == 2


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_line_cut_by_a_kill_costs_its_own_task_only_also_two_kills_later(path, cut):
    """A54: what a second interrupted run adds after a cut line is found by the third."""
    journal = begun(path)
    journal.task_done(0, 0, "first")
    journal.close()
    whole = path.read_bytes()
    journal = Journal(path, "call")
    journal.load()
    journal.start(fresh=False)
    journal.begin_plan(0, plan())
    journal.task_done(0, 1, "second")
    journal.close()
    line = path.read_bytes()[len(whole) :]
    path.write_bytes(whole + line[: min(cut, len(line) - 1)])

    second = Journal(path, "call")
    assert second.load()
    second.start(fresh=False)
    assert second.begin_plan(0, plan()) == {0: "first"}
    second.task_done(0, 1, "again")
    second.close()

    third = Journal(path, "call")
    assert third.load()
    third.start(fresh=False)
    assert third.begin_plan(0, plan()) == {0: "first", 1: "again"}
    third.close()


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"garbage\n", b'["call"]\n', b'{"call": "call"', b"\xff\xfe\n", b"{}\n"]
)
def test_a_damaged_journal_means_starting_over(path, content):
    path.write_bytes(content)
    journal = Journal(path, "call")
    assert not journal.load()
    journal.start(fresh=True)
    assert journal.begin_plan(0, plan()) == {}
    journal.close()
    assert [*json.loads(path.read_text().splitlines()[0])] == ["call"]


def test_published_outputs_are_remembered(path):
    journal = begun(path)
    journal.output_published("/x/o.zarr")
    journal.close()
    again = Journal(path, "call")
    again.load()
    assert again.published == {"/x/o.zarr"}


def test_a_full_disk_is_named(tmp_path):
    """A28."""
    path = tmp_path / "journal.jsonl"
    path.symlink_to("/dev/full")
    journal = Journal(path, "call")
    with pytest.raises(DiskFullError, match=r"journal\.jsonl: no space left"):
        journal.start(fresh=True)
    journal.close()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(3), 3),
        (np.array([[1, 2]]), [[1, 2]]),
        ((1, "a", None), [1, "a", None]),
        ({"n": np.float32(0.5)}, {"n": 0.5}),
        (True, True),
    ],
)
def test_a_small_result_is_the_same_from_a_task_and_from_a_journal(value, expected):
    assert plain(value) == expected
    assert plain(plain(value)) == expected


def test_a_result_that_is_not_plain_is_refused():
    with pytest.raises(TypeError, match="small result holds a set"):
        plain({1, 2})


def test_the_digest_of_a_plan_sees_every_part_of_it():
    base = plan()
    task = base.tasks[0]
    others = [
        plan(block=4),
        Plan([Layout("p.zarr", (4,), "float32", (2,))], base.tasks),
        Plan([Layout("o.zarr", (4,), "float64", (2,))], base.tasks),
        Plan([Layout("o.zarr", (4,), "float32", (2,), fill=0)], base.tasks),
        Plan(base.outputs, base.tasks[:1]),
        Plan(base.outputs, [ChunkTask("m:g", (), task.outputs), base.tasks[1]]),
        Plan(base.outputs, [ChunkTask("m:f", (3,), task.outputs), base.tasks[1]]),
        Plan(base.outputs, [ChunkTask("m:f", (), task.outputs, {"k": 1}), base.tasks[1]]),
        Plan(base.outputs, [ChunkTask("m:f", (), task.outputs, trim=(slice(1, 2),)), base.tasks[1]]),
        Plan(base.outputs, base.tasks, shared={"index": 1}),
    ]
    assert plan_digest(base) == plan_digest(plan())
    assert len({plan_digest(p) for p in [base, *others]}) == len(others) + 1


def test_a_digest_does_not_depend_on_the_order_of_keys():
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})
