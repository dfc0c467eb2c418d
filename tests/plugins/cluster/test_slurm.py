"""The cluster backend on a real Slurm of this machine: jobs that die, that cannot start, and that must not stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import executor_tasks as tasks
import numpy as np
import pytest
import slurm_here

from moraine_cluster import parsl_backend
from moraine_cluster.config import ClusterConfig, Jobs
from moraine_cluster.parsl_backend import ClusterError, ParslBackend
from moraine_core import Chunk, ChunkTask, Executor, blocks
from moraine_core.errors import TaskError, WorkerDiedError
from moraine_core.store import describe
from moraine_core.testing.data import read_array, write_array

pytestmark = pytest.mark.slurm

ROUNDS = int(os.environ.get("MORAINE_SLURM_ROUNDS", "1"))
"""How often each kill test is repeated."""

again = pytest.mark.parametrize("round_", range(ROUNDS))


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    if reason := slurm_here.missing():
        pytest.skip(f"NO TEST ON SLURM: {reason}")
    beside = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))  # one Slurm for each test process
    slurm = slurm_here.Slurm(tmp_path_factory.mktemp("slurm"), 26800 + 100 * beside)
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(slurm.conf)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()
        if before is None:
            del os.environ["SLURM_CONF"]
        else:
            os.environ["SLURM_CONF"] = before


def two_jobs(folder, **changes):
    usual = {"jobs": Jobs(start=2, max=2), "slots_per_node": 2, "walltime": "00:10:00", "interface": "lo"}
    return ClusterConfig(scheduler="slurm", shared=str(folder), **{**usual, **changes})


@pytest.fixture
def executor(slurm, tmp_path):
    """Four slots in two jobs; afterwards Slurm knows no job, and the shared folder is empty."""
    shared = tmp_path / "shared"
    shared.mkdir()
    with Executor(backend=ParslBackend(two_jobs(shared))) as executor:
        assert within(20, lambda: len(executor.backend.slots()) == 4)
        executor.run_on_workers(tasks.pid)
        yield executor
    assert within(10, lambda: slurm.jobs() == [])
    assert list(shared.iterdir()) == []


def within(seconds, condition):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def test_two_hundred_chunks_on_two_jobs(executor, tmp_path):
    values = np.arange(400 * 30, dtype="f4").reshape(400, 30)
    source = describe(write_array(tmp_path / "a.zarr", values, (2, 30)))
    out = describe(write_array(tmp_path / "b.zarr", np.zeros_like(values), (2, 30)))
    work = [ChunkTask("numpy:square", [Chunk(source, b)], [Chunk(out, b)]) for b in blocks((400, 30), (2, 30))]
    assert len(work) == 200
    executor.run_chunk_tasks(work, desc="square")
    np.testing.assert_array_equal(read_array(tmp_path / "b.zarr"), values**2)
    places = {(slot.node, slot.job) for slot in executor.backend.slots()}
    assert {node for node, _ in places} == {"n1", "n2"}
    assert len({job for _, job in places}) == 2
    assert len(set(executor.map(tasks.sleep, [(0.05,)] * 40))) == 4


@pytest.mark.timeout(600)
def test_a_busy_child_that_is_killed_has_its_task_done_again(executor):
    for round_ in range(ROUNDS):
        pid = executor.run_on_workers(tasks.pid)[round_ % 4]
        threading.Timer(0.4, os.kill, (pid, signal.SIGKILL)).start()
        assert executor.map(tasks.slow_double, [(i, 0.1) for i in range(60)]) == [2 * i for i in range(60)]


@pytest.mark.timeout(600)
def test_idle_children_that_are_killed_cost_nothing(executor):
    for _ in range(ROUNDS):
        for pid in executor.run_on_workers(tasks.pid):
            os.kill(pid, signal.SIGKILL)
        assert executor.map(tasks.double, [(i,) for i in range(40)]) == [2 * i for i in range(40)]


@pytest.mark.timeout(600)
def test_a_task_that_kills_its_worker_is_the_one_error(executor):
    for round_ in range(ROUNDS):
        poison = 7 * round_ % 30
        with pytest.raises(WorkerDiedError, match=rf"on n[12] of job \d+ ended with exit code 3 .*task {poison} of 30"):
            executor.map(tasks.end_at, [(i, poison) for i in range(30)])
        assert executor.map(tasks.double, [(i,) for i in range(30)]) == [2 * i for i in range(30)]


@again
@pytest.mark.parametrize("count", [1, 2])
def test_jobs_that_are_canceled_are_replaced_and_their_tasks_done_again(executor, slurm, count, round_):
    jobs = slurm.jobs()
    assert len(jobs) == 2
    threading.Timer(1.0, slurm.ask, ("scancel", *jobs[:count])).start()
    begin = time.monotonic()
    assert executor.map(tasks.slow_double, [(i, 0.1) for i in range(200)]) == [2 * i for i in range(200)]
    assert time.monotonic() - begin < 90
    assert set(slurm.jobs()) - set(jobs) or count == 1


def test_an_exception_keeps_its_type_and_one_that_cannot_be_rebuilt_is_told(executor):
    with pytest.raises(ValueError, match=r"^x") as caught:
        executor.map(tasks.fail_at, [(i, 5) for i in range(20)])
    assert "executor_tasks.py" in "".join(caught.value.__notes__)
    with pytest.raises(TaskError, match="TwoArgumentsError: a at b") as caught:
        executor.map(tasks.fail, [("two", "a", "b")])
    assert "executor_tasks.py" in caught.value.traceback
    assert executor.map(tasks.double, [(3,)]) == [6]


def starting(slurm, folder, **changes):
    begin = time.monotonic()
    with pytest.raises(ClusterError) as caught:
        Executor(backend=ParslBackend(two_jobs(folder, **changes))).__enter__()
    assert time.monotonic() - begin < 40
    assert within(10, lambda: slurm.jobs() == [])
    assert list(folder.iterdir()) == []
    return str(caught.value)


def test_a_partition_that_does_not_exist_is_told_in_the_words_of_slurm(slurm, tmp_path):
    assert "invalid partition specified: nosuch" in starting(slurm, tmp_path, partition="nosuch")


def test_a_setup_line_that_fails_is_told_in_its_own_words(slurm, tmp_path):
    assert "no such module" in starting(slurm, tmp_path, setup=("echo no such module >&2; false",))


@pytest.mark.parametrize(
    ("change", "back", "reason"),
    [("state=down", "state=up", "PartitionDown"), ("maxtime=1", "maxtime=unlimited", "PartitionTimeLimit")],
)
def test_why_jobs_wait_is_said_in_a_word_of_slurm(slurm, tmp_path, monkeypatch, caplog, change, back, reason):
    monkeypatch.setattr(parsl_backend, "SIGNS_OF_LIFE", (3.0, 1.0))
    caplog.set_level("INFO", "moraine")
    backend = ParslBackend(two_jobs(tmp_path, jobs=Jobs()))
    slurm.ask("scontrol", "update", "partitionname=main", change)
    starting = threading.Thread(target=backend.start)
    try:
        starting.start()
        assert within(30, lambda: f"({reason})" in caplog.text), caplog.text
        slurm.ask("scontrol", "update", "partitionname=main", back)
        starting.join(60)
        assert backend.slots()
    finally:
        slurm.ask("scontrol", "update", "partitionname=main", back)
        backend.stop(now=True)
    assert within(10, lambda: slurm.jobs() == [])


def test_two_runs_at_once_on_one_table_know_nothing_of_each_other(slurm, tmp_path):
    config = two_jobs(tmp_path, jobs=Jobs())
    with Executor(backend=ParslBackend(config)) as one:
        with Executor(backend=ParslBackend(config)) as two:
            results = [[], []]
            work = [(i, 0.02) for i in range(50)]
            threads = [
                threading.Thread(target=lambda e=e, r=r: r.extend(e.map(tasks.slow_double, work)))
                for e, r in zip((one, two), results, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert results == [[2 * i for i in range(50)]] * 2
            assert not {slot.job for slot in one.backend.slots()} & {slot.job for slot in two.backend.slots()}
            assert len(list(tmp_path.iterdir())) == 2
        assert one.map(tasks.double, [(4,)]) == [8]
        assert len(slurm.jobs()) == 1


def test_two_jobs_on_one_node_use_different_gpus(slurm, tmp_path):
    config = two_jobs(tmp_path, slots_per_node=1, gpus_per_node=1, options=("--nodelist=n1",))
    with Executor(backend=ParslBackend(config)) as executor:
        assert within(20, lambda: len(executor.backend.slots()) == 2)
        devices = executor.run_on_workers(os.getenv, "CUDA_VISIBLE_DEVICES")
        assert {slot.node for slot in executor.backend.slots()} == {"n1"}
    assert sorted(devices) == ["0", "1"]


def test_two_slots_of_one_job_use_different_gpus(slurm, tmp_path):
    config = two_jobs(tmp_path, jobs=Jobs(start=1, max=1), slots_per_node=2, gpus_per_node=2)
    with Executor(backend=ParslBackend(config)) as executor:
        assert sorted(executor.run_on_workers(os.getenv, "CUDA_VISIBLE_DEVICES")) == ["0", "1"]


SCRIPT = """
    import sys
    import executor_tasks as tasks
    from moraine_cluster.config import ClusterConfig, Jobs
    from moraine_cluster.parsl_backend import ParslBackend
    from moraine_core import Executor

    if __name__ == "__main__":
        config = ClusterConfig(
            scheduler="slurm", shared=sys.argv[1], jobs=Jobs(start=2, max=2), slots_per_node=2, interface="lo"
        )
        with Executor(backend=ParslBackend(config)) as executor:
            open(f"{sys.argv[1]}/started", "w").close()
            executor.map(tasks.sleep, [(60,)] * 8)
"""


@again
@pytest.mark.parametrize(("number", "seconds"), [(signal.SIGKILL, 30), (signal.SIGTERM, 15), (signal.SIGINT, 15)])
def test_no_job_outlives_its_head(slurm, tmp_path, number, seconds, round_):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    shared = tmp_path / "shared"
    shared.mkdir()
    with (tmp_path / "log").open("w") as log:
        head = subprocess.Popen([sys.executable, script, shared], stdout=log, stderr=log, start_new_session=True)
    try:
        assert within(40, (shared / "started").exists), (tmp_path / "log").read_text()
        time.sleep(1)
        assert len(slurm.jobs()) == 2
        if number == signal.SIGKILL:
            head.kill()
        else:
            os.killpg(head.pid, number)  # as a terminal does, and a batch system
        begin = time.monotonic()
        head.wait(20)
        assert within(seconds - (time.monotonic() - begin), lambda: slurm.jobs() == [])
    finally:
        head.kill()
        head.wait()
        slurm.ask("scancel", "-u", "root")
