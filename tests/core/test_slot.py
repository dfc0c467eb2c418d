"""A slot of another machine, without an engine: whatever a task does, bytes come back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import executor_tasks as tasks
import psutil
import pytest

from moraine_core import device
from moraine_core.errors import DeviceError, TaskError, WorkerDiedError
from moraine_core.executor import memory
from moraine_core.executor.message import Call, Outcome, pack
from moraine_core.executor.slot import Slot

HELPERS = Path(__file__).parent / "helpers"


def run(slot, fn, *args):
    return Outcome.unpack(slot.call(pack(Call(fn, args, {}))))


@pytest.fixture
def slot(monkeypatch):
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    slot = Slot()
    yield slot
    slot.stop()


def test_a_task_runs_in_a_child_and_its_result_comes_back(slot):
    outcome = run(slot, tasks.pid)
    assert (outcome.kind, outcome.value) == ("ok", slot.place().child)
    assert outcome.value != os.getpid()
    assert run(slot, tasks.pid).value == outcome.value


def test_a_death_by_signal_says_where_and_the_next_task_has_a_new_child(slot):
    before = run(slot, tasks.pid).value
    for number, name in ((signal.SIGKILL, "SIGKILL"), (signal.SIGSEGV, "SIGSEGV")):
        outcome = run(slot, tasks.kill_self, int(number))
        assert outcome.kind == "died"
        assert isinstance(outcome.value, WorkerDiedError)
        assert f"on n7 of job 4711 was killed by signal {int(number)} ({name})" in str(outcome.value)
        assert (outcome.value.node, outcome.value.exitcode) == ("n7", -number)
    assert run(slot, tasks.pid).value != before


def test_an_exit_is_a_death_with_its_code(slot):
    outcome = run(slot, tasks.end, 3)
    assert outcome.kind == "died"
    assert "ended with exit code 3" in str(outcome.value)


def test_a_crash_in_compiled_code_is_a_death(slot):
    assert "SIGSEGV" in str(run(slot, tasks.crash).value)


def test_an_idle_child_that_is_killed_costs_no_task(slot):
    for _ in range(5):
        child = run(slot, tasks.pid).value
        os.kill(child, signal.SIGKILL)
        deadline = time.monotonic() + 5
        while slot.place().child == child and time.monotonic() < deadline:
            time.sleep(0.01)
        assert run(slot, tasks.double, 4).value == 8


def test_an_exception_comes_back_as_itself_or_as_text(slot):
    outcome = run(slot, tasks.fail, "value", "x")
    assert (outcome.kind, type(outcome.value), str(outcome.value)) == ("raised", ValueError, "x")
    assert "executor_tasks.py" in outcome.traceback
    outcome = run(slot, tasks.fail, "two", "a", "b")
    assert outcome.kind == "raised"
    assert isinstance(outcome.value, TaskError)
    assert "a at b" in str(outcome.value)


def test_a_result_that_cannot_be_pickled_is_an_error_that_says_so(slot):
    outcome = run(slot, eval, "lambda: 0")
    assert outcome.kind == "raised"
    assert "cannot be pickled" in str(outcome.value)


def test_what_a_task_prints_does_not_go_to_standard_output(slot, capfd):
    assert run(slot, print, "hello").kind == "ok"
    assert run(slot, tasks.double, 1).value == 2
    assert capfd.readouterr().out == ""


def test_bytes_that_are_no_task_are_an_error(slot):
    assert Outcome.unpack(slot.call(b"nonsense")).kind == "raised"
    assert run(slot, tasks.double, 2).value == 4


@pytest.mark.parametrize(("rank", "device"), [(0, "3"), (1, "5"), (2, "3")])
def test_a_slot_has_its_own_gpu_out_of_the_list_of_the_job(monkeypatch, rank, device):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    slot = Slot(rank, slots_per_node=2)
    try:
        assert run(slot, os.getenv, "CUDA_VISIBLE_DEVICES").value == device
        assert slot.place().devices == device
    finally:
        slot.stop()


@pytest.mark.parametrize("value", ["", None])
def test_a_job_without_gpus_stays_without(monkeypatch, value):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if value is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    slot = Slot(1)
    try:
        assert run(slot, os.getenv, "CUDA_VISIBLE_DEVICES").value == value
    finally:
        slot.stop()


@pytest.mark.parametrize(
    ("listed", "driver", "sentence"),
    [
        (None, [], "has no GPU to use: no GPU: the NVIDIA driver reports none on this machine; leave out --cuda"),
        ("", ["GPU-a"], "has no GPU to use: no GPU: CUDA_VISIBLE_DEVICES is '', which hides all 1"),
        ("3", ["GPU-a"], "has no GPU to use: CUDA_VISIBLE_DEVICES names GPU 3, but the driver knows 1"),
        ("0", ["GPU-a"], "GPU 0"),  # what the child says of it, with or without cupy
    ],
)
def test_a_gpu_that_is_not_there_is_one_sentence_and_not_a_death(monkeypatch, listed, driver, sentence):
    monkeypatch.setattr(device, "driver_gpus", lambda: driver)
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if listed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    slot = Slot(cuda=True)
    try:
        for _ in range(2):
            outcome = run(slot, tasks.pid)
            assert outcome.kind == "raised"
            assert isinstance(outcome.value, DeviceError)
            assert sentence in str(outcome.value)
            assert "a slot on n7" in str(outcome.value) or (driver and listed == "0")
    finally:
        slot.stop()


@pytest.mark.parametrize(("listed", "devices"), [(None, ["0", "1", "0"]), ("1", ["1", "1", "1"])])
def test_a_job_without_a_list_uses_all_gpus_that_it_sees(monkeypatch, listed, devices):
    """Schedulers that hide the GPUs of others make no list, and without one all slots would use the first."""
    monkeypatch.setattr(device, "driver_gpus", lambda: ["GPU-a", "GPU-b"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if listed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert [Slot(rank, slots_per_node=3, cuda=True).place().devices for rank in range(3)] == devices


def test_libraries_are_serial_and_cores_are_shared(slot, monkeypatch):
    assert run(slot, os.getenv, "OMP_NUM_THREADS").value == "1"
    monkeypatch.setattr(memory, "usable_cores", lambda: 8)
    other = Slot(slots_per_node=4)
    try:
        assert run(other, os.getenv, "MORAINE_IO_THREADS").value == "2"
        assert other.place().cores == 8
    finally:
        other.stop()


def test_memory_of_a_node_is_shared_by_its_slots():
    share = Slot(slots_per_node=4, max_memory=4 * 2**30).place().memory_bytes
    assert share <= 2**30 - memory.LIBRARY_BYTES
    assert Slot(slots_per_node=4).place().memory_bytes <= Slot().place().memory_bytes


def test_the_kernel_takes_the_child_first_when_memory_runs_out(slot):
    child = run(slot, tasks.pid).value
    scores = [int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in (os.getpid(), child)]
    assert scores[1] == min(scores[0] + 500, 1000)


SCRIPT = """
import os, sys, time
import executor_tasks as tasks
from moraine_core.executor.message import Call, Outcome, pack
from moraine_core.executor.slot import Slot
slot = Slot()
print(Outcome.unpack(slot.call(pack(Call(tasks.pid, (), {})))).value, flush=True)
slot.call(pack(Call(tasks.hold_interpreter if sys.argv[1] == "hold" else tasks.sleep, (60,), {})))
"""


@pytest.mark.parametrize("task", ["sleep", "hold"])
def test_a_child_goes_when_the_worker_of_the_engine_is_killed(task):
    """The script has no main guard: it is an engine's, and the child does not import it."""
    path = os.pathsep.join([str(HELPERS), str(HELPERS.parents[2])])
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, task],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    child = int(parent.stdout.readline())
    time.sleep(0.3)
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 5
    while _alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _alive(child)


def _alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
