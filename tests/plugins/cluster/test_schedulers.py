"""PBS, Torque, LSF and OAR by stand-ins for their programs: what jobs ask for, and the whole way of a job.

The stand-ins run a job's script as it is, without the environment of the one who submitted it. Nothing here shows that
a real scheduler understands the scripts.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from pathlib import Path

import executor_tasks as tasks
import fake_scheduler
import pytest
from parsl.jobs.states import JobState, JobStatus

from moraine_cluster.config import ClusterConfig, Jobs
from moraine_cluster.parsl_backend import ClusterError, ParslBackend
from moraine_cluster.providers import common, provider_for
from moraine_core import Executor
from moraine_core.errors import MoraineError

FOUR = ("pbs", "torque", "lsf", "oar")
HELPERS = Path(tasks.__file__).parent
GIB = 2**30


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Put the stand-ins first in PATH; return their folder."""
    folder = tmp_path / "scheduler"
    monkeypatch.setenv("PATH", f"{fake_scheduler.install(folder)}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SCHEDULER", str(folder))
    monkeypatch.setattr(common, "POLL_SECONDS", 1)
    yield folder
    for job in fake_scheduler.jobs(folder):
        fake_scheduler.end(folder, job)


def table(scheduler, tmp_path, **changes):
    shared = tmp_path / "shared"
    shared.mkdir(exist_ok=True)
    setup = (f"export PYTHONPATH={HELPERS}", *changes.pop("setup", ()))
    usual = {"jobs": Jobs(start=2, max=2), "slots_per_node": 2, "address": "127.0.0.1", "setup": setup}
    return ClusterConfig(scheduler=scheduler, shared=str(shared), **{**usual, **changes})


def submitted(scheduler, tmp_path, command="sleep 60", **changes):
    """Return a provider and the number of a job that it has submitted."""
    provider = provider_for(table(scheduler, tmp_path, **changes))
    provider.script_dir = str(tmp_path)
    return provider, provider.submit(command, 1)


def state(provider, job):
    return provider.status([job])[0].state.name


def within(seconds, condition):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def asked(programs):
    """Return the lines for the scheduler in the script of the only job, without those of files and name."""
    (job,) = fake_scheduler.jobs(programs).values()
    return [line for line in job["lines"] if line[:3] not in ("-o ", "-e ", "-O ", "-E ") and "moraine" not in line]


PLAIN = {
    "pbs": ["-S /bin/bash", "-m n", "-l walltime=01:00:00", "-l select=1:ncpus=2"],
    "torque": ["-S /bin/bash", "-m n", "-l walltime=01:00:00", "-l nodes=1:ppn=2"],
    "lsf": ["-W 60", "-n 2", '-R "span[hosts=1]"'],
    "oar": ["-l /nodes=1/core=2,walltime=01:00:00"],
}

FULL = {
    "pbs": [
        *("-S /bin/bash", "-m n", "-l walltime=10:30:00", "-l select=1:ncpus=12:ngpus=4:mem=204800mb"),
        *("-l place=excl", "-q main", "-A insar", "-r n"),
    ],
    "torque": [
        *("-S /bin/bash", "-m n", "-l walltime=10:30:00", "-l nodes=1:ppn=12:gpus=4", "-l mem=204800mb", "-n"),
        *("-q main", "-A insar", "-r n"),
    ],
    "lsf": [
        *("-W 630", "-n 12", '-R "span[hosts=1]"', '-R "rusage[mem=204800MB]"', '-gpu "num=4"', "-x"),
        *("-q main", "-P insar", "-r n"),
    ],
    "oar": ["-l /nodes=1,walltime=10:30:00", "-q main", "--project insar", "-r n"],
}


@pytest.mark.parametrize("scheduler", FOUR)
def test_a_job_asks_for_what_the_table_says_and_for_nothing_else(programs, tmp_path, scheduler):
    submitted(scheduler, tmp_path, "true")
    assert asked(programs) == PLAIN[scheduler]


@pytest.mark.parametrize("scheduler", FOUR)
def test_every_key_of_a_table_is_a_line_of_the_script(programs, tmp_path, scheduler):
    everything = {"walltime": "10:30:00", "partition": "main", "account": "insar", "exclusive": True}
    everything |= {"gpus_per_node": 4, "slots_per_node": 4, "cores_per_slot": 3, "max_memory_per_node": 200 * GIB}
    submitted(scheduler, tmp_path, "true", **everything, options=("-r n",))
    assert asked(programs) == FULL[scheduler]


def test_oar_gives_gpus_with_the_cores_that_belong_to_them(programs, tmp_path):
    submitted("oar", tmp_path, "true", gpus_per_node=2)
    assert asked(programs) == ["-l /nodes=1/gpu=2,walltime=01:00:00"]


@pytest.mark.parametrize("scheduler", FOUR)
def test_a_job_runs_until_it_is_canceled(programs, tmp_path, scheduler):
    provider, job = submitted(scheduler, tmp_path)
    assert state(provider, job) == "RUNNING"
    assert provider.known([job]) == [job]
    assert provider.cancel([job]) == [True]
    assert state(provider, job) == "CANCELLED"
    assert within(5, lambda: provider.known([job]) == [])


@pytest.mark.parametrize("scheduler", FOUR)
def test_a_job_that_somebody_else_ends_is_complete_and_has_not_failed(programs, tmp_path, scheduler):
    """The engine counts failures, and gives up after some; a job at its walltime is none."""
    provider, job = submitted(scheduler, tmp_path)
    fake_scheduler.end(programs, job)
    assert within(5, lambda: state(provider, job) == "COMPLETED")


@pytest.mark.parametrize("scheduler", FOUR)
def test_a_job_that_ends_leaves_what_it_wrote(programs, tmp_path, scheduler):
    provider, job = submitted(scheduler, tmp_path, "echo out; echo oh no >&2; exit 3")
    assert within(5, lambda: state(provider, job) == "COMPLETED")
    status = provider.status([job])[0]
    assert (status.stdout.strip(), status.stderr.strip()) == ("out", "oh no")


@pytest.mark.parametrize("scheduler", FOUR)
def test_a_scheduler_that_gives_no_answer_changes_nothing(programs, tmp_path, scheduler):
    provider, job = submitted(scheduler, tmp_path)
    assert state(provider, job) == "RUNNING"
    (programs / "down").touch()
    assert state(provider, job) == "RUNNING"
    assert provider.known([job]) == [job]
    assert provider.cancel([job]) == [False]
    (programs / "down").unlink()
    assert state(provider, job) == "RUNNING"


@pytest.mark.parametrize("scheduler", FOUR)
def test_a_queue_that_does_not_exist_is_told_in_the_words_of_the_scheduler(programs, tmp_path, scheduler):
    words = "No such queue" if scheduler == "lsf" else "Unknown queue nosuch"
    with pytest.raises(MoraineError, match=f"refuses a job: .*{words}"):
        submitted(scheduler, tmp_path, partition="nosuch")


ANSWERS = {
    "pbs": [
        ("12.long-server.  moraine          somebody                 0 Q main", "PENDING"),
        ("12.server        moraine          somebody          00:00:01 R main", "RUNNING"),
        ("12.server        moraine          somebody          00:00:01 H main", "HELD"),
        ("12.server        moraine          somebody          00:00:01 S main", "HELD"),
        ("12.server        moraine          somebody          00:00:01 E main", "RUNNING"),
        ("12.server        moraine          somebody          00:00:01 C main", "COMPLETED"),
    ],
    "lsf": [
        ("12 PEND", "PENDING"),
        ("12 RUN", "RUNNING"),
        ("12 SSUSP", "HELD"),
        ("12 DONE", "COMPLETED"),
        ("12 EXIT", "COMPLETED"),
    ],
    "oar": [
        ("12: Waiting", "PENDING"),
        ("12 : toLaunch", "PENDING"),
        ("12: Running", "RUNNING"),
        ("12: Suspended", "HELD"),
        ("12: Finishing", "RUNNING"),
        ("12: Error", "COMPLETED"),
    ],
}


@pytest.mark.parametrize(
    ("scheduler", "answer", "expected"), [(s, *row) for s, rows in ANSWERS.items() for row in rows]
)
def test_the_words_for_states_are_understood(tmp_path, scheduler, answer, expected):
    provider = provider_for(table(scheduler, tmp_path))
    provider.execute_wait = lambda words: (0, f"some heading of 1 line\n{answer}\n", "")
    job = "12.long-server.example.org" if scheduler == "pbs" else "12"
    provider.resources[job] = {"status": pending(), "output": str(tmp_path / "x")}
    assert state(provider, job) == expected
    assert provider.known([job]) == ([] if expected == "COMPLETED" else [job])


def pending():
    return JobStatus(JobState.PENDING)


def test_a_job_of_which_nothing_is_said_any_more_has_ended(tmp_path):
    provider = provider_for(table("pbs", tmp_path))
    provider.resources = {n: {"status": pending(), "output": "x"} for n in ("1.s", "12.s")}
    provider.execute_wait = lambda words: (153, "", "qstat: Unknown Job Id 12.s")
    assert [status.state.name for status in provider.status(["1.s", "12.s"])] == ["PENDING", "COMPLETED"]


def test_what_a_pbs_job_writes_is_the_error_when_its_setup_fails(programs, tmp_path):
    config = table("pbs", tmp_path, setup=("echo no such module >&2; false",))
    with pytest.raises(ClusterError, match="no such module"):
        Executor(backend=ParslBackend(config)).__enter__()
    assert list((tmp_path / "shared").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide a folder from a process")
def test_a_shared_folder_that_the_nodes_do_not_see_is_asked_about(programs, tmp_path, monkeypatch):
    config = table("pbs", tmp_path, jobs=Jobs())
    monkeypatch.setenv("FAKE_HIDES", config.shared)
    with pytest.raises(ClusterError, match=f"wrote nothing here; do its nodes see {config.shared}"):
        Executor(backend=ParslBackend(config)).__enter__()


def test_a_function_that_the_nodes_cannot_import_is_told_with_what_to_do(programs, tmp_path):
    """The job has next to no environment, so what PYTHONPATH says here does not reach it."""
    config = dataclasses.replace(table("pbs", tmp_path, jobs=Jobs()), setup=())
    with Executor(backend=ParslBackend(config)) as executor:
        with pytest.raises(ModuleNotFoundError, match="No module named 'executor_tasks'") as caught:
            executor.map(tasks.double, [(1,)])
        assert "workers elsewhere import the functions of tasks by name" in "".join(caught.value.__notes__)
        assert executor.map(pow, [(2, 3)]) == [8]


def test_a_submission_that_is_refused_is_the_error_of_the_run(programs, tmp_path):
    with pytest.raises(ClusterError, match="No such queue"):
        Executor(backend=ParslBackend(table("lsf", tmp_path, partition="nosuch"))).__enter__()


@pytest.mark.parametrize("scheduler", ["pbs", *(pytest.param(name, marks=pytest.mark.slow) for name in FOUR[1:])])
def test_tasks_run_in_the_slots_of_two_jobs_and_no_job_is_left(programs, tmp_path, scheduler):
    with Executor(backend=ParslBackend(table(scheduler, tmp_path))) as executor:
        assert within(30, lambda: len(executor.backend.slots()) == 4)
        assert len(set(executor.run_on_workers(tasks.pid))) == 4
        assert executor.map(tasks.double, [(i,) for i in range(40)]) == [2 * i for i in range(40)]
        assert {slot.job for slot in executor.backend.slots()} == {"101", "102"}
    assert not any(fake_scheduler.lives(programs, job) for job in fake_scheduler.jobs(programs))
    assert list((tmp_path / "shared").iterdir()) == []


@pytest.mark.slow
def test_jobs_that_are_ended_by_somebody_are_replaced(programs, tmp_path):
    with Executor(backend=ParslBackend(table("lsf", tmp_path, slots_per_node=1))) as executor:
        assert within(30, lambda: len(executor.backend.slots()) == 2)
        for job in ("101", "102"):
            fake_scheduler.end(programs, job)
        assert executor.map(tasks.slow_double, [(i, 0.1) for i in range(60)]) == [2 * i for i in range(60)]
    assert {"103", "104"} <= set(fake_scheduler.jobs(programs))
    assert not any(fake_scheduler.lives(programs, job) for job in fake_scheduler.jobs(programs))


def test_this_environment_comes_first_in_the_path_of_a_job(programs, tmp_path):
    provider, job = submitted("oar", tmp_path, "command -v python")
    assert within(5, lambda: state(provider, job) == "COMPLETED")
    assert provider.status([job])[0].stdout.strip().startswith(str(Path(sys.executable).parent))
