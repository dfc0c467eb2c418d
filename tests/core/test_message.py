"""Tasks and answers as bytes: what travels, what does not, and what is said then."""

from __future__ import annotations

import pickle

import executor_tasks as tasks
import numpy as np
import pytest

from moraine_core.errors import TaskError, UsageError
from moraine_core.executor.message import MESSAGE_LIMIT, Call, Outcome, pack, raised
from moraine_core.plan import Array, Chunk, ChunkTask, Layout
from moraine_core.task import ChunkCall


def test_a_task_on_a_huge_array_is_a_small_message():
    """A09: paths, slices and options travel, never data."""
    source = Array("/data/" + "x" * 200 + "/rslc.zarr", (10**6, 10**6, 10**4), "complex64", (1000, 1000, 1))
    output = Layout("/data/adi.zarr", (10**6, 10**6), "float32", (1000, 1000))
    block = (slice(999_000, 10**6), slice(999_000, 10**6))
    task = ChunkTask("package.kernels:f", [Chunk(source, (*block, None))], [Chunk(output, block)], {"min_images": 3})
    assert len(pack(ChunkCall(task))) < 2000


@pytest.mark.parametrize("size", [MESSAGE_LIMIT + 1, 10 * MESSAGE_LIMIT])
def test_a_large_argument_is_refused_with_advice(size):
    """A09."""
    with pytest.raises(UsageError, match=r"at most 64 KiB travel.*put\(\)"):
        pack(Call(tasks.double, (np.zeros(size, "u1"),), {}))


def test_the_limit_is_64_kib():
    """A09."""
    assert MESSAGE_LIMIT == 64 * 1024
    overhead = len(pack(Call(tasks.double, (b"",), {})))
    pack(Call(tasks.double, (bytes(MESSAGE_LIMIT - overhead - 16),), {}))


@pytest.mark.parametrize("thing", [lambda x: x, open, (i for i in ())], ids=["lambda", "builtin is fine", "generator"])
def test_what_cannot_be_pickled_is_refused_by_name_of_the_task(thing):
    """A07: a function must be importable."""
    if thing is open:
        assert pack(Call(thing, (), {}))
        return
    with pytest.raises(UsageError, match="importable function with arguments that can be pickled"):
        pack(Call(tasks.double, (thing,), {}))


def test_an_exception_keeps_its_type_arguments_and_attributes():
    error = tasks.PlainError("x", 3)
    error.detail = {"a": 1}
    again = Outcome.unpack(raised(error).pack())
    assert again.kind == "raised"
    assert type(again.value) is tasks.PlainError
    assert again.value.args == ("x", 3)
    assert again.value.detail == {"a": 1}


@pytest.mark.parametrize("error", [tasks.TwoArgumentsError("hole", "row 3"), tasks.LockedError("locked")])
def test_an_exception_that_pickle_cannot_rebuild_becomes_a_task_error(error):
    """Both that fail while pickling and those that fail only at the other end."""
    try:
        raise error
    except type(error) as caught:
        outcome = Outcome.unpack(raised(caught).pack())
    assert type(outcome.value) is TaskError
    assert outcome.value.type_name == type(error).__name__
    assert str(error) in str(outcome.value)
    assert "raise error" in outcome.value.traceback


@pytest.mark.parametrize("error", [SystemExit(0), KeyboardInterrupt()])
def test_what_would_end_the_program_is_an_error_of_the_task(error):
    """A12, A14: a task that calls sys.exit(0) must not make the run exit with 0."""
    outcome = raised(error)
    assert type(outcome.value) is TaskError
    assert outcome.value.type_name == type(error).__name__


def test_a_result_that_cannot_be_pickled_is_an_error_that_says_so():
    outcome = Outcome.unpack(Outcome("ok", (i for i in ())).pack())
    assert outcome.kind == "raised"
    assert isinstance(outcome.value, TaskError)
    assert "result cannot be pickled" in str(outcome.value)


def test_a_task_error_survives_pickling_itself():
    error = TaskError("OddError", "odd", "trace")
    again = pickle.loads(pickle.dumps(error))
    assert (again.type_name, again.message, again.traceback, str(again)) == (
        "OddError",
        "odd",
        "trace",
        "OddError: odd",
    )
