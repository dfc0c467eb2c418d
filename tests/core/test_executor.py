"""The Executor's contract: order, progress, feeding, errors and what tasks find in their worker."""

from __future__ import annotations

import logging
import math
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import executor_tasks as tasks
import numpy as np
import pytest

from moraine_core import ALL, Array, Chunk, ChunkTask, Device, Executor, Layout, Stream, Workers, blocks
from moraine_core.errors import (
    MemoryBudgetError,
    StoreNotFoundError,
    TaskError,
    TasksError,
    UsageError,
    WorkerDiedError,
)
from moraine_core.executor import feed as feed_module
from moraine_core.executor import progress as progress_module
from moraine_core.executor.backend import Slot
from moraine_core.executor.message import Call, Outcome
from moraine_core.executor.worker import run_packed
from moraine_core.store import ahead, create, describe, parallel_read_zarr
from moraine_core.task import ChunkCall, chunk_task, read_stream
from moraine_core.testing.data import read_array, write_array
from moraine_core.testing.running import SerialBackend

HELPERS = Path(__file__).parent / "helpers"

KINDS = [
    pytest.param({"n_workers": 1}, id="1 thread"),
    pytest.param({"n_workers": 4}, id="4 threads"),
    pytest.param({"processes": True, "n_workers": 2, "threads_per_worker": 2}, id="2x2 processes"),
]


@pytest.fixture(scope="module", params=KINDS)
def executor(request):
    """One executor for many tests: that they do not disturb each other is part of the contract."""
    with Executor(**request.param) as executor:
        yield executor


@pytest.fixture(scope="module")
def processes():
    with Executor(processes=True, n_workers=2) as executor:
        yield executor


# ------------------------------------------------------------------------------------------- order and progress


def test_results_come_in_the_order_of_the_tasks(executor):
    """E7.2: however long each of them takes."""
    assert executor.map(tasks.slow_double, [(i,) for i in range(25)]) == [2 * i for i in range(25)]


def test_an_empty_map_is_empty(executor):
    assert executor.map(tasks.double, []) == []
    assert executor.map_chunks(tasks.double, []) == []


def test_progress_is_logged_after_the_first_each_tenth_and_the_last(executor, caplog):
    """E5, E7.2, A11."""
    with caplog.at_level(logging.INFO, "moraine"):
        executor.map(tasks.double, [(i,) for i in range(25)], desc="halves")
    lines = [m for m in caplog.messages if m.startswith("halves: ")]
    assert [int(re.match(r"halves: (\d+)/25 done, \d+\.\d s", line)[1]) for line in lines] == [
        1, 3, 6, 9, 12, 15, 18, 21, 24, 25,
    ]  # fmt: skip


def test_progress_says_rate_and_time_left(caplog):
    """A11: ten equal tasks of 50 ms."""
    with Executor(n_workers=1) as executor, caplog.at_level(logging.INFO, "moraine"):
        executor.map(tasks.sleep, [(0.05,)] * 10, desc="naps")
    half = next(m for m in caplog.messages if m.startswith("naps: 5/10"))
    rate, left = re.search(r"([\d.]+) tasks/s, (\d+) s left", half).groups()
    assert 8 < float(rate) <= 20.5
    assert int(left) <= 1


def test_a_continued_run_counts_what_was_done_before(caplog):
    with Executor(n_workers=1) as executor, caplog.at_level(logging.INFO, "moraine"):
        executor.run_chunk_tasks([ChunkTask("executor_tasks:pid")] * 5, desc="rest", done=15)
    assert [m.split(" ")[1] for m in caplog.messages if m.startswith("rest")] == ["16/20", "18/20", "20/20"]


@pytest.mark.parametrize("kind", [{"n_workers": 1}, {"processes": True, "n_workers": 1}])
def test_a_long_task_does_not_make_the_run_silent(kind, caplog, monkeypatch):
    """A02."""
    monkeypatch.setattr(progress_module, "HEARTBEAT_SECONDS", 0.3)
    with Executor(**kind) as executor, caplog.at_level(logging.INFO, "moraine"):
        executor.map(tasks.sleep, [(2.5,)], desc="long")
    assert sum(m.startswith("long: 0/1 done") for m in caplog.messages) >= 2


def test_many_short_tasks_do_not_make_the_run_silent_either(caplog, monkeypatch):
    """A02: each task answers quickly, but a tenth of them takes long."""
    monkeypatch.setattr(progress_module, "HEARTBEAT_SECONDS", 0.3)
    with Executor(n_workers=1) as executor, caplog.at_level(logging.INFO, "moraine"):
        executor.map(tasks.sleep, [(0.1,)] * 20, desc="short")
    times = [r.created for r in caplog.records if r.getMessage().startswith("short")]
    assert max(np.diff(times)) < 0.45


def test_a_minute_is_the_longest_silence():
    assert progress_module.HEARTBEAT_SECONDS + 1 <= 60


def test_start_and_stop_are_logged(caplog):
    with caplog.at_level(logging.INFO, "moraine"), Executor(processes=True, n_workers=2, max_memory=2**40):
        pass
    assert caplog.messages[0] == "workers: 2 processes with 1 threads each, memory for the run 1024.0 GiB"
    assert caplog.messages[-1].startswith("workers: stopped, peak memory ")


# -------------------------------------------------------------------------------------------------- arguments


def test_unknown_worker_arguments_are_refused():
    with pytest.raises(UsageError, match="unknown worker arguments: workers; known are cuda"):
        Executor(workers=3)


@pytest.mark.parametrize("name", ["n_workers", "threads_per_worker"])
@pytest.mark.parametrize("count", [0, -1])
def test_worker_counts_begin_at_one(name, count):
    with pytest.raises(UsageError, match=f"{name} is {count}; expected at least 1"):
        Executor(**{name: count})


def test_gpus_without_cuda_are_refused():
    with pytest.raises(UsageError, match="--gpus is given without --cuda"):
        Executor(gpus=["0"])


def test_an_executor_outside_a_with_statement_says_so():
    with pytest.raises(UsageError, match="inside a with statement"):
        Executor(n_workers=1).map(tasks.double, [(1,)])


def test_worker_options_ask_for_an_executor():
    with Executor.of(Workers(n_workers=2, threads_per_worker=3)) as executor:
        assert len(executor.run_on_workers(tasks.where)) == 6


# --------------------------------------------------------------------------------------------- what tasks find


def test_threads_are_of_this_process_and_processes_are_not(executor):
    found = set(executor.run_on_workers(tasks.pid))
    assert (found == {os.getpid()}) is (not executor.backend.pids())
    assert found == (set(executor.backend.pids()) or {os.getpid()})


def test_each_worker_runs_a_function_once():
    with Executor(n_workers=3) as executor:
        assert len({thread for _, thread in executor.run_on_workers(tasks.where)}) == 3
    with Executor(processes=True, n_workers=3) as executor:
        assert len(set(executor.run_on_workers(tasks.pid))) == 3


def test_a_failure_in_a_worker_set_up_is_raised(executor):
    with pytest.raises(ValueError, match=r"^no licence"):
        executor.run_on_workers(tasks.fail, "value", "no licence")
    assert executor.map(tasks.double, [(1,)]) == [2]


def test_workers_are_spawned_never_forked(processes):
    """A06, A18."""
    assert set(processes.run_on_workers(tasks.start_method)) == {"multiprocessing.context"}
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in processes.backend.pids()]
    assert all(b"spawn_main" in command for command in commands)


def test_no_code_of_ours_forks():
    """A06."""
    root = Path(__file__).parents[2] / "moraine_core"
    found = [str(p) for p in root.rglob("*.py") if re.search(r"os\.fork|[\"']fork|forkserver|\bpty\.", p.read_text())]
    assert found == []


@pytest.mark.parametrize("arguments", ["n_workers=1", "n_workers=4", "processes=True, n_workers=2"])
@pytest.mark.parametrize("loaded", ["", "import numpy"], ids=["loaded by the tasks", "numpy loaded before"])
def test_numerical_libraries_have_one_thread(arguments, loaded):
    """Design: the Executor owns the cores, whatever the environment says of BLAS, OpenMP and numba."""
    code = f"""
        {loaded or "pass"}
        import executor_tasks as tasks
        from moraine_core import Executor
        if __name__ == "__main__":
            with Executor({arguments}) as executor:
                for _ in range(2):
                    for counts in executor.map(tasks.threads_of_libraries, [()] * 8):
                        assert len(counts) >= 2
                        assert set(counts) == {{1}}, counts
    """
    env = environment(OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2", NUMBA_NUM_THREADS="2")
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=env, timeout=100, check=True)


def test_the_library_threads_of_this_process_come_back(monkeypatch):
    from threadpoolctl import threadpool_info

    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = [pool["num_threads"] for pool in threadpool_info()]
    with Executor(n_workers=2) as executor:
        executor.map(tasks.blas, [()] * 2)
        assert (os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"]) == ("1", "1")
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "MKL_NUM_THREADS" not in os.environ
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_what_tasks_print_does_not_reach_standard_output(tmp_path):
    """A3 of the command line: standard output is for results."""
    script = tmp_path / "talk.py"
    script.write_text(
        "import executor_tasks as t\nfrom moraine_core import Executor\n"
        "if __name__ == '__main__':\n"
        "    with Executor(processes=True, n_workers=1) as e:\n"
        "        e.map(t.say, [('hello',)])\n"
        "    print('result')\n"
    )
    done = subprocess.run(
        [sys.executable, script], env=environment(), capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "result\n"
    assert {"hello", "hello raw", "hello child"} <= set(done.stderr.splitlines())


def environment(**changes):
    path = os.pathsep.join([str(HELPERS), str(HELPERS.parents[2])])
    return {**os.environ, "PYTHONPATH": path, **changes}


def test_serial_kernels_in_eight_threads_do_not_abort():
    """A43: plain workqueue layer, 200 tasks; the values are those of the loop."""
    code = """
        import os
        import numpy as np
        os.environ["NUMBA_THREADING_LAYER"] = "workqueue"
        import executor_tasks as tasks
        from moraine_core import Executor
        with Executor(n_workers=8) as executor:
            found = executor.map(tasks.numba_sum, [(np.full(1000, i, float),) for i in range(200)])
        assert np.allclose(found, [1000 * i**0.5 for i in range(200)])
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment(), timeout=100, check=True)


def test_memory_that_threads_of_a_worker_have_freed_serves_the_others():
    """The allocator of glibc is told so before a worker begins; what the user has set stays."""
    with Executor(processes=True, n_workers=1) as executor:
        assert executor.run_on_workers(tasks.environment, "MALLOC_ARENA_MAX") == ["1"]
    code = (
        "import executor_tasks as t\nfrom moraine_core import Executor\n"
        "if __name__ == '__main__':\n"
        "    with Executor(processes=True, n_workers=1) as e:\n"
        "        print(e.run_on_workers(t.environment, 'MALLOC_ARENA_MAX'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(MALLOC_ARENA_MAX="3"), capture_output=True, text=True, check=True
    )
    assert done.stdout == "['3']\n"


# ------------------------------------------------------------------------------------------------------ feeding


class Recorder:
    """A backend that holds tasks back and remembers how many it had at once."""

    repeats = 0

    def __init__(self, inner):
        self.inner, self.now, self.most = inner, 0, 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def submit(self, task):
        self.now += 1
        self.most = max(self.most, self.now)
        future = self.inner.submit(task)
        future.add_done_callback(lambda _: self._less())
        return future

    def _less(self):
        self.now -= 1


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        ({"n_workers": 1}, 1),
        ({"n_workers": 4}, 4),
        ({"processes": True, "n_workers": 2}, 4),
        ({"processes": True, "n_workers": 2, "threads_per_worker": 2}, 6),
    ],
)
def test_tasks_in_flight_are_what_the_workers_run_and_one_read_ahead_each(kind, most):
    """A01, E3."""
    recorder = Recorder(Executor(**kind).backend)
    with Executor(backend=recorder) as executor:
        executor.map(tasks.sleep, [(0.005,)] * 40)
    assert recorder.most == most


@pytest.fixture
def pair(tmp_path):
    """A stored array of 8 blocks of 2 rows, and the layout of a result."""
    values = np.arange(16 * 5, dtype="float64").reshape(16, 5)
    source = describe(write_array(tmp_path / "a.zarr", values, (2, 5)))
    out = Layout(str(tmp_path / "b.zarr"), (16, 5), "float64", (2, 5))
    create(out, out.path)
    return values, source, out


def chunk_tasks(source, out, kernel="executor_tasks:add_one"):
    return [ChunkTask(kernel, [Chunk(source, b)], [Chunk(out, b)]) for b in blocks(out.shape, out.chunks)]


def test_chunk_tasks_read_compute_and_write(executor, pair):
    values, source, out = pair
    assert executor.run_chunk_tasks(chunk_tasks(source, out), desc="x") == [None] * 8
    np.testing.assert_array_equal(read_array(out.path), values + 1)


def test_map_chunks_takes_a_function_or_its_name(executor, pair):
    values, source, out = pair
    both = [([t.inputs[0]], [t.outputs[0]]) for t in chunk_tasks(source, out)]
    for kernel in (tasks.add_one, "executor_tasks:add_one"):
        create(out, out.path)
        executor.map_chunks(kernel, both)
        np.testing.assert_array_equal(read_array(out.path), values + 1)


def test_an_input_is_read_ahead_while_its_worker_computes(tmp_path):
    """E3: the second task has read its input before the first has ended, so a change made then comes too late."""
    sources = [write_array(tmp_path / f"{n}.zarr", np.full(3, n, "f8")) for n in range(4)]
    kernel = [
        ChunkTask("executor_tasks:sleepy_sum", [Chunk(describe(p)), 1.5 if n == 0 else 0.0, str(tmp_path), n])
        for n, p in enumerate(sources)
    ]
    with Executor(processes=True, n_workers=1) as executor:

        def change():
            while not (tmp_path / "0").exists():
                time.sleep(0.01)
            time.sleep(0.9)  # the read-ahead of task 1 has long been done, and task 0 is still computing
            for n in (1, 2, 3):
                write_array(tmp_path / f"{n}.zarr", np.full(3, 100 + n, "f8"))

        changer = threading.Thread(target=change)
        changer.start()
        sums = executor.run_chunk_tasks(kernel, desc="x")
        changer.join()
    assert sums == [0, 3, 306, 309]  # task 1 alone was read before: one read-ahead, not more


def test_tasks_of_one_worker_read_side_by_side(tmp_path):
    """Four threads in one process: the reading of one does not wait for the computing of another."""
    with Executor(processes=True, n_workers=1, threads_per_worker=4) as executor:
        executor.map(tasks.sleep, [(0.0,)] * 4)
        begin = time.monotonic()
        executor.map(tasks.sleep, [(0.5,)] * 4)
        assert time.monotonic() - begin < 1.5


def test_a_kernel_that_cannot_be_imported_is_known_before_any_task_is_sent(executor):
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        executor.run_chunk_tasks([ChunkTask("no_such_package.kernels:f")] * 3, desc="x")
    with pytest.raises(AttributeError, match="no_such_kernel"):
        executor.run_chunk_tasks([ChunkTask("executor_tasks:no_such_kernel")], desc="x")


def test_small_results_come_back_and_are_noted_as_tasks_end(executor, pair):
    _, source, _ = pair
    noted = {}
    found = executor.run_chunk_tasks(
        [ChunkTask("executor_tasks:total", [Chunk(source, (slice(i, i + 1), None))]) for i in range(4)],
        desc="x",
        on_done=noted.__setitem__,
    )
    assert found == [10.0, 35.0, 60.0, 85.0]
    assert noted == dict(enumerate(found))


def test_a_stream_gives_plane_by_plane(executor, tmp_path):
    stack = np.arange(24.0).reshape(2, 3, 4)
    source = describe(write_array(tmp_path / "s.zarr", stack, (2, 3, 1)))
    part = Chunk(source, (slice(1, 2), slice(0, 3), slice(1, 3)))
    found = executor.run_chunk_tasks([ChunkTask("builtins:list", [Stream(part, 2)])], desc="x")
    np.testing.assert_array_equal(found[0], [stack[1:2, :, 1], stack[1:2, :, 2]])


def test_a_stream_decodes_a_stored_chunk_of_several_planes_once(tmp_path, monkeypatch):
    """The planes of one chunk are read together, up to its border, and handed out one by one."""
    stack = np.arange(24.0).reshape(2, 3, 4)
    stack = np.concatenate([stack, stack + 100], axis=2)  # 8 planes in chunks of 3
    source = describe(write_array(tmp_path / "s.zarr", stack, (2, 3, 3)))
    reads = []

    def counted(array, block=None, **options):
        reads.append((block[2].start, block[2].stop))
        return parallel_read_zarr(array, block, **options)

    monkeypatch.setattr("moraine_core.store.parallel_read_zarr", counted)
    planes = list(read_stream(Stream(Chunk(source, (ALL, ALL, slice(1, 8))), 2)))
    np.testing.assert_array_equal(np.stack(planes, axis=2), stack[:, :, 1:8])
    assert reads == [(1, 3), (3, 6), (6, 8)]


def test_reading_ahead_keeps_the_order_and_is_one_item_ahead():
    made = []

    def make():
        for number in range(4):
            made.append(number)
            yield number

    taken = []
    for item in ahead(make()):
        taken.append(item)
        assert len(made) <= item + 2
    assert taken == [0, 1, 2, 3]


def test_an_error_while_reading_ahead_is_raised():
    def make():
        yield 1
        raise OSError("the disk is gone")

    items = ahead(make())
    assert next(items) == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(items)


def test_device_arguments_are_passed_as_they_are_on_a_cpu(executor):
    assert executor.map_chunks(tasks.double, [([Device(21)], [])]) == [42]


def test_a_chunk_task_can_be_run_by_hand(pair):
    values, source, out = pair
    for block in blocks(out.shape, out.chunks):
        assert chunk_task(tasks.add_one, [Chunk(source, block)], [Chunk(out, block)]) is None
    np.testing.assert_array_equal(read_array(out.path), values + 1)


def test_a_halo_is_trimmed_from_the_results(pair):
    values, source, out = pair
    task = ChunkTask(
        "executor_tasks:add_one",
        [Chunk(source, (slice(1, 5), None))],
        [Chunk(out, (slice(2, 4), None))],
        trim=(slice(1, 3), slice(0, 5)),
    )
    call = ChunkCall(task)
    call.load()
    call.compute()
    call.store()
    np.testing.assert_array_equal(read_array(out.path)[2:4], values[2:4] + 1)


@pytest.mark.parametrize("count", [0, 2])
def test_a_wrong_number_of_results_is_an_error(executor, pair, count):
    _, source, out = pair
    outputs = [Chunk(out, (slice(0, 2), None)), Chunk(out, (slice(2, 4), None))][:count]
    if not outputs:
        np.testing.assert_array_equal(
            executor.map_chunks(tasks.too_few, [([Chunk(source, (slice(0, 2), None))], [])])[0],
            [read_array(source.path)[:2]],
        )
        return
    with pytest.raises(ValueError, match="returned 1 results for 2 outputs"):
        executor.map_chunks(tasks.too_few, [([Chunk(source, (slice(0, 2), None))], outputs)])


@pytest.mark.parametrize("processes", [False, True])
def test_the_same_bits_whatever_runs_the_tasks(processes, pair):
    """E7.7."""
    _, source, out = pair
    with Executor(processes=processes, n_workers=2) as executor:
        executor.run_chunk_tasks(chunk_tasks(source, out, "numpy:sqrt"), desc="x")
    expected = [[math.sqrt(v) for v in row] for row in read_array(source.path).tolist()]
    assert read_array(out.path).tolist() == expected


# ------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(("kind", "error"), [("value", ValueError), ("plain", tasks.PlainError)])
def test_an_exception_comes_with_its_own_type_and_the_workers_traceback(executor, kind, error):
    """E7.3."""
    with pytest.raises(error) as caught:
        executor.map(tasks.fail, [(kind, "x")], desc="step")
    assert type(caught.value) is error
    assert str(caught.value) == "x"
    notes = "\n".join(caught.value.__notes__)
    assert "in step, task 0 of 1: fail" in notes
    assert "executor_tasks.py" in notes
    assert "ValueError: x" in notes or "PlainError: x" in notes


@pytest.mark.parametrize(
    ("arguments", "name", "text"),
    [(("two", "hole", "row 3"), "TwoArgumentsError", "hole at row 3"), (("locked", "stuck"), "LockedError", "stuck")],
)
def test_an_exception_that_cannot_travel_becomes_a_task_error(executor, arguments, name, text):
    """E7.3."""
    with pytest.raises(TaskError) as caught:
        executor.map(tasks.fail, [arguments])
    assert (caught.value.type_name, caught.value.message) == (name, text)
    assert "executor_tasks.py" in caught.value.traceback
    assert executor.map(tasks.double, [(1,)]) == [2]


def test_a_result_that_cannot_travel_is_an_error(executor):
    with pytest.raises(TaskError, match="result cannot be pickled"):
        executor.map(tasks.unpicklable, [(1,)])
    assert executor.map(tasks.double, [(1,)]) == [2]


def test_a_task_that_calls_exit_does_not_end_the_run_quietly(executor):
    """A12, A14."""
    with pytest.raises(TaskError, match="SystemExit: 0"):
        executor.map(tasks.fail, [("exit", 0)])


def test_the_error_names_the_task_and_its_slices(executor, pair):
    """A03, A12."""
    _, source, out = pair
    with pytest.raises(tasks.PlainError, match="the kernel refuses") as caught:
        executor.run_chunk_tasks(chunk_tasks(source, out, "executor_tasks:refuse")[3:4], desc="step")
    assert re.search(
        r"step, task 0 of 1: refuse\(.*b\.zarr\[6:8, 0:5\], .*a\.zarr\[6:8, 0:5\]\)", caught.value.__notes__[0]
    )


def test_an_error_of_reading_is_raised_never_swallowed(executor, pair):
    """E4, A14."""
    _, source, out = pair
    gone = Array("/no/such.zarr", source.shape, source.dtype, source.chunks)
    with pytest.raises(StoreNotFoundError, match=r"/no/such\.zarr does not exist"):
        executor.run_chunk_tasks(chunk_tasks(gone, out), desc="x")


def test_after_an_error_no_more_tasks_are_begun_and_running_ones_end(tmp_path):
    """E4."""
    for number, kind in enumerate([{"n_workers": 2}, {"processes": True, "n_workers": 2}]):
        folder = tmp_path / str(number)
        folder.mkdir()
        with Executor(**kind) as executor:
            with pytest.raises(ValueError, match=r"^x"):
                executor.map(tasks.mark_and_fail_at, [(str(folder), i, 3) for i in range(100)])
            begun = len(list(folder.iterdir()))
            assert 4 <= begun <= 10
            time.sleep(0.3)
            assert len(list(folder.iterdir())) == begun  # nothing goes on behind the caller's back


def test_a_map_that_goes_on_runs_every_task_and_names_all_that_failed(executor):
    """A12, A44."""
    done = {}
    calls = [ChunkTask("executor_tasks:fail_at_some", [x], kwargs={"bad": (3, 17)}) for x in range(30)]
    with pytest.raises(TasksError) as caught:
        executor.run_chunk_tasks(calls, desc="x", keep_going=True, on_done=done.__setitem__)
    assert sorted(done) == [x for x in range(30) if x not in (3, 17)]
    assert str(caught.value).splitlines()[0] == "2 of 30 tasks failed; the others are done"
    assert [line.partition(": ")[0] for line in str(caught.value).splitlines()[1:]] == ["task 3", "task 17"]
    assert "ValueError: number 17 is bad" in str(caught.value)


def test_a_map_that_goes_on_raises_a_single_error_as_it_is(executor):
    done = {}
    calls = [ChunkTask("executor_tasks:fail_at_some", [x], kwargs={"bad": (3,)}) for x in range(30)]
    with pytest.raises(ValueError, match="number 3 is bad"):
        executor.run_chunk_tasks(calls, desc="x", keep_going=True, on_done=done.__setitem__)
    assert len(done) == 29


def test_what_all_tasks_would_meet_ends_a_map_that_goes_on():
    done = {}
    calls = [ChunkTask("executor_tasks:fail_at_some", [x], kwargs={"bad": (3,), "kind": "memory"}) for x in range(30)]
    with Executor(n_workers=1) as executor, pytest.raises(MemoryError, match="number 3 is bad"):
        executor.run_chunk_tasks(calls, desc="x", keep_going=True, on_done=done.__setitem__)
    assert len(done) < 10


def test_the_next_map_finds_no_answers_of_one_that_failed(executor):
    """E4."""
    for _ in range(3):
        with pytest.raises(ValueError, match=r"^x"):
            executor.map(tasks.fail_at, [(i, 7) for i in range(40)])
        assert executor.map(tasks.slow_double, [(i, 0.001) for i in range(20)]) == [2 * i for i in range(20)]


def test_an_unsuitable_task_in_the_middle_does_not_leave_others_behind(executor):
    with pytest.raises(UsageError, match="at most 64 KiB"):
        executor.map(tasks.double, [(1,), (2,), (np.zeros(100_000),), (3,)])
    assert executor.map(tasks.double, [(i,) for i in range(5)]) == [0, 2, 4, 6, 8]


def test_an_observer_that_fails_ends_the_run_with_its_error(executor, pair):
    _, source, out = pair

    def observe(number, result):
        raise RuntimeError("full")

    with pytest.raises(RuntimeError, match="full"):
        executor.run_chunk_tasks(chunk_tasks(source, out), desc="x", on_done=observe)
    assert executor.map(tasks.double, [(i,) for i in range(5)]) == [0, 2, 4, 6, 8]


# ---------------------------------------------------------------------------------------------- other backends


class Unreliable:
    """A backend of another kind: every task's worker dies a given number of times before the task runs."""

    def __init__(self, repeats, deaths, kind="died"):
        self.inner, self.repeats, self.deaths, self.kind = SerialBackend(), repeats, deaths, kind
        self.seen: dict[bytes, int] = {}
        self.starts = 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def start(self):
        self.starts += 1

    def submit(self, task):
        self.seen[task] = self.seen.get(task, 0) + 1
        if self.seen[task] > self.deaths:
            return self.inner.submit(task)
        future: Future[bytes] = Future()
        future.set_result(Outcome(self.kind, WorkerDiedError("node n1 went away")).pack())
        return future


def test_a_backend_may_have_died_tasks_tried_again(caplog):
    backend = Unreliable(repeats=2, deaths=2)
    with Executor(backend=backend) as executor:
        assert executor.map(tasks.double, [(i,) for i in range(4)]) == [0, 2, 4, 6]
    assert set(backend.seen.values()) == {3}
    assert any("task 0 is tried again: node n1 went away" in m for m in caplog.messages)


def test_a_task_that_always_dies_is_an_error_in_the_end():
    with (
        Executor(backend=Unreliable(repeats=2, deaths=99)) as executor,
        pytest.raises(WorkerDiedError, match="node n1 went away, on double, task 0 of 4"),
    ):
        executor.map(tasks.double, [(i,) for i in range(4)])


def test_an_exception_is_never_tried_again():
    backend = Unreliable(repeats=5, deaths=0)
    with Executor(backend=backend) as executor, pytest.raises(ValueError, match=r"^x"):
        executor.map(tasks.fail, [("value", "x")])
    assert set(backend.seen.values()) == {1}


def test_a_task_that_never_began_is_handed_out_again_or_reported_but_never_lost():
    """A14: its result must not be None by accident."""
    with Executor(backend=Unreliable(repeats=0, deaths=1, kind="dropped")) as executor:
        assert executor.map(tasks.double, [(1,), (2,)]) == [2, 4]
    with (
        Executor(backend=Unreliable(repeats=0, deaths=99, kind="dropped")) as executor,
        pytest.raises(WorkerDiedError),
    ):
        executor.map(tasks.double, [(1,), (2,)])


def test_sixteen_processes_open_one_array_at_once_fifty_times(tmp_path):
    """A22."""
    path = write_array(tmp_path / "a.zarr", np.zeros((4, 3), "f4"), (2, 3))
    with Executor(processes=True, n_workers=16) as executor:
        assert executor.run_on_workers(tasks.open_often, path, 50) == [200] * 16


class Growing:
    """Slots of other machines, more of them after every answer; holds answers back until a test lets them go."""

    repeats, patience = 2, 0.0

    def __init__(self, slots, silent=()):
        self.inner, self.alive, self.silent = SerialBackend(), slots, list(silent)
        self.held, self.most, self.sent, self.stopped = [], 0, [], []

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def slots(self):
        return self.alive

    def submit(self, task):
        self.sent.append(task)
        future: Future[bytes] = Future()
        if self.silent and self.silent.pop(0):
            self.held.append(future)
            return future
        threading.Timer(0.01, lambda: future.set_result(run_packed(task))).start()
        return future

    def stop(self, *, now=False):
        self.stopped.append(now)
        for future in self.held:
            future.set_result(Outcome("died", WorkerDiedError("stopped")).pack())
        self.held = []


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(feed_module, "LOOK_SECONDS", 0.0)


def nodes(count, memory=2**30):
    return [Slot(n, read_ahead=1, node=f"n{n % 2}", memory_bytes=memory) for n in range(count)]


def test_more_is_handed_out_when_slots_come(impatient):
    backend = Growing(nodes(1))
    out = []
    with Executor(backend=backend) as executor:

        def more(number, result):
            out.append(len(backend.sent) - len(out))
            backend.alive = nodes(4)

        executor.run([Call(tasks.double, (i,), {}) for i in range(30)], "x", on_done=more)
    assert out[0] <= 2
    assert max(out) == 8


def test_less_is_handed_out_when_slots_go(impatient):
    backend = Growing(nodes(4))

    def fewer(number, result):
        backend.alive = nodes(1)

    with Executor(backend=backend) as executor:
        assert executor.run([Call(tasks.double, (i,), {}) for i in range(30)], "x", on_done=fewer) == [
            2 * i for i in range(30)
        ]


def test_the_smallest_slot_says_what_a_task_may_need():
    backend = Growing([*nodes(3, 2**30), Slot(3, node="small", memory_bytes=2**28)])
    with Executor(backend=backend, max_memory=2**50) as executor:
        assert executor.fits(2**28)
        assert not executor.fits(2**28 + 1)
        with pytest.raises(MemoryBudgetError, match=r"one task needs 1\.0 GiB, a slot of small has 256 MiB"):
            executor.run_chunk_tasks([ChunkTask("executor_tasks:pid")], desc="x", task_bytes=2**30)


def test_tasks_without_an_answer_are_sent_once_more(impatient, caplog):
    """The backend loses the second task; nothing hangs and nothing is lost."""
    backend = Growing(nodes(2), silent=[False, True])
    backend.patience = 0.3
    with Executor(backend=backend) as executor:
        assert executor.map(tasks.double, [(i,) for i in range(6)], desc="step") == [0, 2, 4, 6, 8, 10]
    assert len(backend.sent) == 7
    assert any("step: no answer for 0 s from n0, n1; tasks under way: 1; the oldest" in m for m in caplog.messages)


def test_tasks_that_are_lost_twice_are_an_error_with_their_numbers(impatient):
    backend = Growing(nodes(2), silent=[False, True, False, True, True, True])
    backend.patience = 0.3
    with (
        Executor(backend=backend) as executor,
        pytest.raises(WorkerDiedError, match=r"no answer .* tasks under way: 1, 3 of 4; they were sent twice"),
    ):
        executor.map(tasks.double, [(i,) for i in range(4)])
    assert backend.stopped[0] is True


def test_an_answer_that_comes_after_its_second_one_changes_nothing(impatient):
    backend = Growing(nodes(1), silent=[True, False, True])
    backend.patience = 0.2
    seen = []

    def late(number, result):
        seen.append((number, result))
        if number == 0:  # answered the second time: now comes the first answer, then that of the other silent task
            for value, future in zip(("late", 4), backend.held, strict=True):
                future.set_result(Outcome("ok", value).pack())
            backend.held = []

    with Executor(backend=backend) as executor:
        assert executor.run([Call(tasks.double, (i,), {}) for i in range(3)], "x", on_done=late) == [0, 2, 4]
    assert sorted(seen) == [(0, 0), (1, 2), (2, 4)]


def test_while_no_slot_is_there_nothing_counts_as_lost(impatient):
    """Jobs may wait in the queue for hours."""
    backend = Growing(nodes(1), silent=[True])
    backend.patience = 0.1
    with Executor(backend=backend) as executor:
        backend.alive = []
        threading.Timer(1.5, lambda: backend.held.pop().set_result(Outcome("ok", 7).pack())).start()
        assert executor.map(tasks.double, [(1,)]) == [7]
    assert len(backend.sent) == 1


def test_a_node_on_which_workers_keep_dying_is_named():
    class Dying(Growing):
        exitcode = -9

        def submit(self, task):
            error = WorkerDiedError("worker was killed")
            error.node, error.exitcode = "n7", self.exitcode
            future: Future[bytes] = Future()
            future.set_result(Outcome("died", error).pack())
            return future

    with Executor(backend=Dying(nodes(2))) as executor, pytest.raises(WorkerDiedError) as caught:
        executor.map(tasks.double, [(i,) for i in range(4)])
    assert "Try smaller --chunks or fewer slots on each node" in str(caught.value)
    assert "n7" in "".join(caught.value.__notes__)
    Dying.exitcode = None  # of a node that is lost nobody knows that memory had to do with it
    with Executor(backend=Dying(nodes(2))) as executor, pytest.raises(WorkerDiedError) as caught:
        executor.map(tasks.double, [(i,) for i in range(4)])
    assert "Try" not in str(caught.value)
    with Executor(backend=Dying(nodes(1))) as executor, pytest.raises(WorkerDiedError) as caught:
        executor.map(tasks.double, [(1,)])  # the fault of one task, and not of the node
    assert not hasattr(caught.value, "__notes__")
