"""The cluster backend with jobs that are processes of this machine: the contract, deaths, and every command."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time

import executor_tasks as tasks
import numpy as np
import psutil
import pytest
from test_conformance import VARIANTS

from moraine_cluster.config import ClusterConfig
from moraine_cluster.parsl_backend import ClusterError, ParslBackend
from moraine_core import Executor, store
from moraine_core.cli.main import run as run_line
from moraine_core.errors import DiskFullError, TaskError, UsageError, WorkerDiedError
from moraine_core.plugins import PluginHost
from moraine_core.run import run_command
from moraine_core.testing import running


def jobs_config(folder, **changes):
    return ClusterConfig(scheduler="local", shared=str(folder), **{"slots_per_node": 2, **changes})


@pytest.fixture(scope="session")
def pool(tmp_path_factory):
    """One pool of two slots for all tests; at the end nothing of it may be left."""
    shared = tmp_path_factory.mktemp("shared")
    mine = psutil.Process()
    with Executor(backend=ParslBackend(jobs_config(shared))) as executor:
        yield executor
    assert list(shared.iterdir()) == []
    assert _wait_for(lambda: not [p for p in mine.children(recursive=True) if "interchange" in " ".join(p.cmdline())])


def _wait_for(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_results_come_in_the_order_of_the_tasks(pool):
    assert pool.map(tasks.slow_double, [(i,) for i in range(60)]) == [2 * i for i in range(60)]
    assert pool.map(tasks.double, []) == []


def test_each_slot_does_an_errand_once(pool):
    pids = pool.run_on_workers(tasks.pid)
    assert len(set(pids)) == 2
    assert set(pool.map(tasks.sleep, [(0.05,)] * 8)) == set(pids)


def test_slots_say_where_they_are_and_what_they_have(pool):
    pool.run_on_workers(tasks.pid)
    slots = pool.backend.slots()
    assert [slot.number for slot in slots] == [0, 1]
    assert all(slot.node and slot.memory_bytes > 2**20 and slot.read_ahead == 1 for slot in slots)


def test_put_is_one_file_that_all_slots_map(pool):
    values = np.arange(1000.0)
    handle = pool.put({"a": [values]})
    assert pool.map(tasks.pid, [(handle,)] * 3)
    pool.release()


def test_an_exception_is_raised_with_its_type_and_its_traceback(pool):
    with pytest.raises(ValueError, match=r"^x") as caught:
        pool.map(tasks.fail_at, [(i, 5) for i in range(20)])
    assert "executor_tasks.py" in "".join(caught.value.__notes__)
    with pytest.raises(TaskError, match="a at b"):
        pool.map(tasks.fail, [("two", "a", "b")])
    assert pool.map(tasks.double, [(3,)]) == [6]


def test_a_task_that_kills_its_worker_is_the_one_error_and_nothing_else_is_lost(pool):
    for round_ in range(5):
        poison = 7 * round_ % 30
        with pytest.raises(WorkerDiedError, match=f"ended with exit code 3 .*task {poison} of 30"):
            pool.map(tasks.end_at, [(i, poison) for i in range(30)])
    assert pool.map(tasks.double, [(i,) for i in range(30)]) == [2 * i for i in range(30)]


def test_an_idle_child_that_is_killed_costs_nothing(pool):
    for _ in range(5):
        for pid in pool.run_on_workers(tasks.pid):
            os.kill(pid, signal.SIGKILL)
        assert pool.map(tasks.double, [(i,) for i in range(8)]) == [2 * i for i in range(8)]


def test_a_busy_child_that_is_killed_has_its_task_done_again(pool, caplog):
    pid = pool.run_on_workers(tasks.pid)[0]
    threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
    assert len(pool.map(tasks.sleep, [(0.1,)] * 16)) == 16
    assert any("is tried again: worker process" in m and "SIGKILL" in m for m in caplog.messages)


@pytest.mark.parametrize("stopped", [0.0, 2.5], ids=["at once", "with questions unanswered"])
def test_an_interchange_that_is_killed_is_brought_up_again(tmp_path, stopped):
    """The engine waits without end for answers: those to questions asked shortly before a death never come."""
    with Executor(backend=ParslBackend(jobs_config(tmp_path))) as executor:
        executor.map(tasks.double, [(1,)])
        process = executor.backend._interchange()
        if stopped:
            threading.Timer(0.5, process.send_signal, [signal.SIGSTOP]).start()
        threading.Timer(0.5 + stopped, process.kill).start()
        assert len(executor.map(tasks.sleep, [(0.1,)] * 40)) == 40
    assert list(tmp_path.iterdir()) == []


COMMANDS = {command.name: command for command in PluginHost().commands()}
CALLS = [(name, variant) for name in COMMANDS for variant in (None, *VARIANTS.get(name, ()))]


@pytest.mark.timeout(300)  # the first run on a machine compiles the kernels
@pytest.mark.parametrize(
    ("name", "variant"), CALLS, ids=[name if variant is None else f"{name}-variant" for name, variant in CALLS]
)
def test_every_command_gives_the_same_bits_as_one_thread(pool, name, variant, tmp_path):
    """A10: its example, and all variants of it that the kit knows."""
    command = COMMANDS[name]
    arguments = running.example(command, tmp_path / "example")
    arguments = variant(arguments) if variant else arguments
    running.run_serially(command, arguments)
    expected = running.contents(command, arguments)
    with running.forgetting(command, arguments):
        run_command(command, arguments, pool=running.GivenPool(pool))
    assert running.differences(expected, running.contents(command, arguments), command.tolerance) == []


def test_a_setup_line_that_fails_is_an_error_with_its_words(tmp_path):
    backend = ParslBackend(jobs_config(tmp_path, setup=("echo no such module >&2; false",)))
    with pytest.raises(ClusterError, match="no such module"):
        Executor(backend=backend).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder_with_a_long_name_is_no_obstacle(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    with Executor(backend=ParslBackend(jobs_config(tmp_path))) as executor:
        assert executor.map(tasks.double, [(1,)]) == [2]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small disk")
@pytest.mark.parametrize("room", [0, 3])
def test_a_shared_disk_that_is_full_is_named(tmp_path, room):
    """Either nothing can begin, or a large object finds no room."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", tmp_path], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        if not room:
            with contextlib.suppress(OSError), (tmp_path / "fill").open("wb", buffering=0) as file:
                while file.write(bytes(1024)):
                    pass
        with (
            pytest.raises(DiskFullError, match=f"{tmp_path}/moraine-run-.*: no space left"),
            Executor(backend=ParslBackend(jobs_config(tmp_path))) as executor,
        ):
            executor.put(np.ones(2**20))
        assert [path.name for path in tmp_path.iterdir() if path.name != "fill"] == []
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)


@pytest.mark.slow
def test_jobs_that_can_be_replaced_no_more_end_the_run(tmp_path):
    """One has worked, and those in its place do not: without an end, one job would be submitted after the other."""
    flag, shared = tmp_path / "flag", tmp_path / "shared"
    flag.touch()
    shared.mkdir()
    config = jobs_config(shared, setup=(f"test -e {flag} || {{ echo no such module >&2; exit 1; }}",))
    with Executor(backend=ParslBackend(config)) as executor:
        executor.map(tasks.double, [(1,)])
        flag.unlink()
        (job,) = executor.backend._provider.resources
        os.killpg(os.getpgid(int(job)), signal.SIGKILL)
        with pytest.raises((ClusterError, WorkerDiedError), match="no such module") as caught:
            executor.map(tasks.slow_double, [(i, 0.1) for i in range(20)])
        assert str(caught.value).count("no such module") == 1
        assert len(executor.backend._provider.resources) < 30  # about one a second until the first counts as lost


def test_an_executor_is_checked_from_the_line(tmp_path, monkeypatch, capsys):
    file = tmp_path / "executors.toml"
    shared = tmp_path / "shared"
    shared.mkdir()
    file.write_text(f'[executors.here]\nkind = "cluster"\nscheduler = "local"\nshared = "{shared}"\n')
    monkeypatch.setenv("MORAINE_EXECUTORS", str(file))
    assert run_line(["executors", "check", "here", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["problems"] == []
    assert [row["shared"] for row in found["slots"]] == [True]
    assert set(found) == {"version", "ok", "executor", "seconds_to_first_slot", "moraine", "slots", "problems"}
    known = {"node", "job", "gpu", "memory_bytes", "pid", "python", "moraine-core", "numpy", "zarr"}
    assert set(found["slots"][0]) == {*known, "cores", "free_bytes", "gpus", "shared"}
    assert list(shared.iterdir()) == []


def test_a_pipeline_runs_on_a_named_executor(tmp_path, monkeypatch, capfd):
    command = PluginHost().command("amp-disp")
    arguments = running.example(command, tmp_path / "example")
    running.run_serially(command, arguments)
    expected = running.contents(command, arguments)
    for path in running.output_paths(command, arguments):
        store.remove(path)
    file = tmp_path / "executors.toml"
    file.write_text(f'[executors.here]\nkind = "cluster"\nscheduler = "local"\nshared = "{tmp_path}"\n')
    monkeypatch.setenv("MORAINE_EXECUTORS", str(file))
    lines = [f"{name} = {json.dumps(value)}" for name, value in arguments.items()]
    chain = tmp_path / "chain.toml"
    chain.write_text("\n".join(["[[step]]", 'name = "a"', 'run = "amp-disp"', *lines]))
    assert run_line(["run", str(chain), "--executor", "here"]) == 0
    assert running.differences(expected, running.contents(command, arguments)) == []
    assert "workers: 1 slot on" in capfd.readouterr().err


def test_a_function_of_the_script_itself_is_refused(pool, monkeypatch):
    monkeypatch.setattr(tasks.double, "__module__", "__main__")
    with pytest.raises(UsageError, match="double is a function of the script itself, which workers elsewhere"):
        pool.map(tasks.double, [(1,)])
