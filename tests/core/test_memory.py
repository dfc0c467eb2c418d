"""Memory: what is admitted, what is measured, and what happens beyond the limit."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator  # noqa: TC003 - the annotations are evaluated
from pathlib import Path
from typing import Annotated

import executor_tasks as tasks
import numpy as np
import psutil
import pytest

from moraine_core import Array, Chunk, ChunkTask, Executor, Layout, Output, Plan, blocks, command
from moraine_core.errors import MemoryBudgetError
from moraine_core.executor import memory
from moraine_core.executor.memory import get_mem_avail, gib, usable_cores
from moraine_core.executor.processes import ProcessBackend
from moraine_core.executor.worker import Settings
from moraine_core.options import Workers
from moraine_core.plan import SCRATCH
from moraine_core.run import run_command
from moraine_core.store import create, describe
from moraine_core.task import ChunkCall
from moraine_core.testing.data import read_array, write_array
from moraine_core.testing.memory import EXACT

MIB, GIB = 2**20, 2**30


# ------------------------------------------------------------------------------------------ cores and cgroups


def test_affinity_is_obeyed():
    """The cores that this process may use, not those of the machine."""
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from moraine_core import Executor\n"
        "from moraine_core.executor.memory import usable_cores\n"
        "print(usable_cores())\n"
        "with Executor() as e: print(len(e.backend.slots()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert done.stdout.split() == ["1", "1"]


def fake(tmp_path, lines, files):
    process = tmp_path / "cgroup"
    process.write_text(lines)
    root = tmp_path / "sys"
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root, process


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        # version 2: the tightest of the folder and those above it; page cache can be given back
        (
            "0::/job/step\n",
            {
                "job/step/memory.max": "max\n",
                "job/memory.max": f"{300 * MIB}\n",
                "job/memory.current": f"{100 * MIB}\n",
            },
            200,
        ),
        (
            "0::/job\n",
            {
                "job/memory.max": f"{300 * MIB}\n",
                "job/memory.current": f"{250 * MIB}\n",
                "job/memory.stat": f"anon 5\ninactive_file {40 * MIB}\nactive_file 7\n",
            },
            90,
        ),
        ("0::/job\n", {"job/memory.max": f"{100 * MIB}\n", "job/memory.current": f"{120 * MIB}\n"}, 0),
        # in a container the folder seen from outside does not exist, the limit is at the root
        ("0::/docker/abc\n", {"memory.max": f"{500 * MIB}\n", "memory.current": f"{100 * MIB}\n"}, 400),
        # version 1
        (
            "4:memory:/job\n3:cpu,cpuacct:/job\n",
            {
                "memory/job/memory.limit_in_bytes": f"{200 * MIB}\n",
                "memory/job/memory.usage_in_bytes": f"{50 * MIB}\n",
                "memory/job/memory.stat": f"inactive_file 0\ntotal_inactive_file {10 * MIB}\n",
            },
            160,
        ),
        (
            "4:memory:/docker/abc\n",
            {"memory/memory.limit_in_bytes": f"{100 * MIB}\n", "memory/memory.usage_in_bytes": "0\n"},
            100,
        ),
    ],
    ids=["v2 parent", "v2 page cache", "v2 full", "v2 container", "v1", "v1 container"],
)
def test_the_memory_limit_of_a_cgroup_is_obeyed(tmp_path, lines, files, expected):
    """A04."""
    assert get_mem_avail(*fake(tmp_path, lines, files)) == expected * MIB


def test_without_a_cgroup_limit_the_machine_counts(tmp_path):
    root, process = fake(tmp_path, "0::/\n", {"memory.max": "max\n"})
    assert get_mem_avail(root, process) == pytest.approx(psutil.virtual_memory().available, rel=0.2)
    assert get_mem_avail(tmp_path / "none", tmp_path / "none") > 0


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        ("0::/job\n", {"job/cpu.max": "150000 100000\n"}, [1.5]),
        ("0::/job\n", {"job/cpu.max": "max 100000\n"}, []),
        ("0::/a/b\n", {"a/cpu.max": "300000 100000\n", "a/b/cpu.max": "max 100000\n"}, [3.0]),
        (
            "3:cpu,cpuacct:/job\n",
            {"cpu,cpuacct/job/cpu.cfs_quota_us": "50000\n", "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n"},
            [0.5],
        ),
        (
            "3:cpu,cpuacct:/job\n",
            {"cpu,cpuacct/job/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n"},
            [],
        ),
    ],
)
def test_the_cpu_quota_of_a_cgroup_is_read(tmp_path, lines, files, expected):
    assert memory._cpu_quotas(*fake(tmp_path, lines, files)) == expected


@pytest.mark.parametrize(("quotas", "expected"), [([], 8), ([1.5], 2), ([0.5], 1), ([4.0, 2.0], 2), ([100.0], 8)])
def test_part_of_a_core_counts_as_one(monkeypatch, quotas, expected):
    monkeypatch.setattr(memory, "_cpu_quotas", lambda: quotas)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert usable_cores() == expected


def test_sizes_are_written_for_people():
    assert [gib(3 * MIB), gib(1.5 * GIB)] == ["3 MiB", "1.5 GiB"]


# --------------------------------------------------------------------------------------------------- admission


class Counter:
    """Wraps a backend; remembers how many tasks it had at once."""

    repeats = 0

    def __init__(self, inner):
        self.inner, self.now, self.most = inner, 0, 0
        self.lock = threading.Lock()

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def submit(self, task):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        future = self.inner.submit(task)
        future.add_done_callback(lambda _: self.less())
        return future

    def less(self):
        with self.lock:
            self.now -= 1


@pytest.mark.parametrize(
    ("kind", "room", "most"),
    [
        ({"n_workers": 4}, 10.0, 4),
        ({"n_workers": 4}, 2.5, 2),
        ({"n_workers": 4}, 1.2, 1),
        ({"processes": True, "n_workers": 2}, 10.0, 4),  # with read-ahead
        ({"processes": True, "n_workers": 2}, 2.7, 3),  # one read-ahead of half a task fits
        ({"processes": True, "n_workers": 2}, 2.2, 2),  # none fits
        ({"processes": True, "n_workers": 2}, 1.5, 1),
    ],
)
def test_as_many_tasks_run_as_fit(kind, room, most, monkeypatch):
    """E3, A01: fewer tasks at once, and the read-ahead is the first to go."""
    task_bytes = 1000 * MIB
    source = Layout("a", (500 * MIB // 8,), "float64", (-1,))
    counter = Counter(Executor(**kind).backend)
    with Executor(backend=counter) as executor:
        monkeypatch.setattr(executor, "task_budget", lambda: int(room * task_bytes))
        plain = [ChunkTask("executor_tasks:sleep", [0.01]) for _ in range(20)]
        # inputs count half of a task; nothing is read here
        monkeypatch.setattr(ChunkTask, "input_bytes", Chunk(source).nbytes)
        executor.run_chunk_tasks(plain, desc="x", task_bytes=task_bytes)
    assert counter.most == most


def test_what_many_threads_read_at_once_counts_and_is_no_reason_to_refuse(monkeypatch):
    """Of eight cores each of two workers reads four chunks of 100 MiB at once: 600 MiB more than a task projects."""
    monkeypatch.setattr(memory, "usable_cores", lambda: 8)
    source = Chunk(Array("a", (4, 100 * MIB), "uint8", (1, 100 * MIB)))
    tasks = [ChunkTask("executor_tasks:sleep", [source])] * 6
    monkeypatch.setattr(ChunkCall, "load", lambda call: setattr(call, "values", [0.01]))
    for room, most in ((3000, 2), (2300, 1), (700, 1)):
        counter = Counter(Executor(n_workers=2).backend)
        with Executor(backend=counter) as executor:
            monkeypatch.setattr(executor, "task_budget", lambda room=room: room * MIB)
            executor.run_chunk_tasks(tasks, desc="x", task_bytes=tasks[0].nbytes)
        assert counter.most == most


def test_the_number_of_tasks_is_logged_when_memory_lowers_it(monkeypatch, caplog):
    with Executor(n_workers=4) as executor, caplog.at_level(logging.INFO, "moraine"):
        monkeypatch.setattr(executor, "task_budget", lambda: 5 * MIB)
        executor.run_chunk_tasks([ChunkTask("executor_tasks:pid")] * 3, desc="x", task_bytes=2 * MIB)
    assert "memory: 2 tasks at once instead of 4, each 2 MiB" in caplog.messages


@pytest.mark.parametrize("kind", [{"n_workers": 2}, {"processes": True, "n_workers": 2}])
def test_a_task_that_does_not_fit_is_refused_with_the_sizes(kind):
    limit = 2 * GIB + memory.tree_bytes([os.getpid()])  # what the tests before have left in this process counts too
    with Executor(**kind, max_memory=limit) as executor:
        assert executor.fits(100 * MIB)
        assert not executor.fits(9 * GIB)
        with pytest.raises(
            MemoryBudgetError, match=r"one task needs 9\.0 GiB, the run may use \d\.\d GiB \(of \d\.\d GiB\)"
        ) as caught:
            executor.run_chunk_tasks([ChunkTask("executor_tasks:pid")], desc="x", task_bytes=9 * GIB)
    assert isinstance(caught.value, MemoryError)


def test_the_limit_is_of_the_whole_run_not_of_a_worker():
    """A04: what the parent and the workers' libraries take is taken off."""
    ours = memory.tree_bytes([os.getpid()])
    limit = 4 * GIB + ours
    with Executor(processes=True, n_workers=2, max_memory=limit) as executor:
        taken = limit - ours - executor.task_budget()
    assert taken + 100 * MIB >= 2 * memory.LIBRARY_BYTES  # this process may have let go of some meanwhile
    assert taken < 2 * GIB


# ------------------------------------------------------------------------------------------------ what is shared


@pytest.mark.parametrize("kind", [{"n_workers": 2}, {"processes": True, "n_workers": 2}])
def test_what_tasks_share_is_taken_off_until_it_is_released(kind):
    """Processes have mapped nothing of it yet when their tasks are admitted."""
    with Executor(**kind) as executor:
        before = executor.task_budget()
        executor.put(np.ones(400 * MIB // 8))
        assert before - executor.task_budget() == pytest.approx(400 * MIB, abs=100 * MIB)
        executor.release()
        assert before - executor.task_budget() == pytest.approx(0, abs=100 * MIB)


@command("share-twice", family="test")
def share_twice(
    result: Annotated[str, Output("numbers", shape="(n)", dtype="float64")],
    mebibytes: Annotated[int, "size of what is shared (count)"] = 1,
) -> Iterator[Plan]:
    """Fill an array by two plans, all tasks of which share an object that a task makes."""
    for path in (f"{SCRATCH}first", result):
        out = Layout(path, (3,), "float64", (1,))
        large = ChunkTask("executor_tasks:ones_of", [mebibytes], scratch_bytes=mebibytes * MIB)
        yield Plan(
            [out],
            [ChunkTask("executor_tasks:mean_of", [n], [Chunk(out, (slice(n, n + 1),))]) for n in range(3)],
            shared={"large": large},
        )


@pytest.mark.parametrize("workers", [Workers(n_workers=2), Workers(processes=True, n_workers=1)])
def test_a_plan_lets_go_of_what_the_plan_before_shared(workers, tmp_path):
    """Otherwise a command of many plans would hold all of it until its end."""
    small = run_command(share_twice, {"result": str(tmp_path / "a.zarr")}, workers)
    large = run_command(share_twice, {"result": str(tmp_path / "b.zarr"), "mebibytes": 400}, workers)
    assert read_array(tmp_path / "b.zarr").tolist() == [0, 1, 2]
    # a process maps a file that the parent has just written from its own copy
    copies = 2 if workers.processes else 1
    assert large.peak_bytes - small.peak_bytes < (copies + 0.5) * 400 * MIB


def test_a_shared_object_that_does_not_fit_is_refused(tmp_path):
    limit = GIB + memory.tree_bytes([os.getpid()])
    with pytest.raises(MemoryBudgetError, match=r"share-twice: one task needs 4\.0 GiB, more than the run may use"):
        run_command(
            share_twice, {"result": str(tmp_path / "a.zarr"), "mebibytes": 4096}, Workers(max_memory=limit, n_workers=1)
        )
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------ measuring, watching


@pytest.mark.parametrize("kind", [{"n_workers": 2}, {"processes": True, "n_workers": 2}])
def test_a_run_beyond_the_limit_is_stopped_and_named(kind):
    """A02: also while answers keep coming."""
    with Executor(**kind) as executor:
        executor.map(tasks.pid, [()] * 4)
        executor._watch._limit = memory.tree_bytes([os.getpid(), *executor.backend.pids()]) + 150 * MIB
        begin = time.monotonic()
        with pytest.raises(
            MemoryBudgetError,
            match=r"step: the run used .* more than it may; tasks under way: [\d, ]+ of 50; choose smaller",
        ):
            executor.map(tasks.allocate, [(300, 0.4)] * 50, desc="step")
        assert time.monotonic() - begin < 10
        executor._watch._limit = 100 * GIB
        assert executor.map(tasks.double, [(1,), (2,)]) == [2, 4]


def test_workers_of_a_stopped_run_end_at_once():
    """A02: a task that takes the memory of the machine is not waited for."""
    with Executor(processes=True, n_workers=1) as executor:
        before = executor.backend.pids()
        executor._watch._limit = memory.tree_bytes([os.getpid(), *before]) + 100 * MIB
        begin = time.monotonic()
        with pytest.raises(MemoryBudgetError):
            executor.map(tasks.allocate, [(300, 60)])
        assert time.monotonic() - begin < 10
        assert not any(psutil.pid_exists(pid) for pid in before)


def test_the_reported_peak_counts_the_workers_and_agrees_with_an_observer_outside():
    """A04: within 15 % of the proportional share that the kernel counts."""
    seen = []
    done = threading.Event()

    def observe(pids):
        while not done.wait(0.03):
            seen.append(sum(_pss(pid) for pid in pids))

    with Executor(processes=True, n_workers=2) as executor:
        executor.run_on_workers(tasks.threads_of_libraries)
        observer = threading.Thread(target=observe, args=([os.getpid(), *executor.backend.pids()],))
        observer.start()
        executor.map(tasks.allocate, [(300, 0.4)] * 4)
        done.set()
        observer.join()
        peak = executor.peak_bytes
    assert peak == pytest.approx(max(seen), rel=0.15)
    assert executor.peak_bytes == peak


def _pss(pid):
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


@pytest.mark.parametrize("kind", [{"n_workers": 2}, {"processes": True, "n_workers": 2}])
def test_memory_does_not_grow_with_the_number_of_tasks(kind, tmp_path):
    """A01, A05: eight times the chunks take no more memory, neither in the workers nor in the parent."""
    chunk = 2 * MIB // 8
    source = describe(write_array(tmp_path / "a.zarr", np.zeros(512 * chunk), (chunk,)))
    peaks, here = [], []
    for count in (64, 512):  # with fewer it is over before its peak is seen
        out = Layout(str(tmp_path / f"{count}.zarr"), (count * chunk,), "float64", (chunk,))
        create(out, out.path)
        # processes without the holes of their heaps, which are as chance will have it
        backend = ProcessBackend([EXACT] * 2, Settings()) if "processes" in kind else None
        with Executor(**kind, backend=backend) as executor:
            work = [
                ChunkTask("executor_tasks:add_one", [Chunk(source, b)], [Chunk(out, b)])
                for b in blocks(out.shape, out.chunks)
            ]
            executor.run_chunk_tasks(work, desc="x", task_bytes=work[0].nbytes)
            peaks.append(executor.peak_bytes)
        here.append(sum(memory.resident(os.getpid())))
    assert peaks[1] < 1.1 * peaks[0] + 20 * MIB  # 896 MiB went through
    assert here[1] < here[0] + 50 * MIB


def test_the_parent_of_processes_stays_small():
    """A05."""
    code = (
        "import numpy as np, os\nimport executor_tasks as t\nfrom moraine_core import Executor\n"
        "from moraine_core.executor.memory import resident\n"
        "if __name__ == '__main__':\n"
        "    with Executor(processes=True, n_workers=2) as e:\n"
        "        e.map(t.allocate, [(200, 0.0)] * 8)\n"
        "        print(sum(resident(os.getpid())))\n"
    )
    helpers = Path(__file__).parent / "helpers"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(helpers), str(helpers.parents[2])])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 500 * MIB
