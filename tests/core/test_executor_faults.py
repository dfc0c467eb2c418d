"""Deaths, interrupts and scripts without a guard: nothing hangs, nothing stays, and the cause is named."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import executor_tasks as tasks
import numpy as np
import psutil
import pytest

from moraine_core import Chunk, ChunkTask, Executor
from moraine_core.errors import WorkerDiedError
from moraine_core.store import describe
from moraine_core.testing.data import write_array

HELPERS = Path(__file__).parent / "helpers"


@pytest.fixture
def executor():
    with Executor(processes=True, n_workers=2) as executor:
        yield executor


# ------------------------------------------------------------------------------------------------------- deaths


def test_an_exit_is_named_within_five_seconds(executor):
    """E7.4."""
    begin = time.monotonic()
    with pytest.raises(
        WorkerDiedError, match=r"worker \d \(process \d+\) ended with exit code 3 while it worked"
    ) as caught:
        executor.map(tasks.end, [(3,)] * 4, desc="step")
    assert time.monotonic() - begin < 5
    assert isinstance(caught.value, RuntimeError)
    assert caught.value.exitcode == 3


@pytest.mark.parametrize(
    ("number", "name", "usual"),
    [
        (signal.SIGKILL, "SIGKILL", "memory ran out"),
        (signal.SIGSEGV, "SIGSEGV", "compiled code"),
        (signal.SIGABRT, "SIGABRT", "compiled"),
    ],
)
def test_a_signal_is_named_with_what_it_usually_means(executor, number, name, usual):
    """A03."""
    with pytest.raises(WorkerDiedError) as caught:
        executor.map(tasks.kill_self, [(int(number),)], desc="step")
    text = str(caught.value)
    assert f"killed by signal {int(number)} ({name})" in text
    assert usual in text
    assert re.search(r"It used \d+ MiB\.", text)
    assert "step, task 0 of 1: kill_self" in text
    assert "Try --n-workers 1 or a lower --max-memory" in text


def test_a_real_crash_is_a_death_like_any_other(executor):
    with pytest.raises(WorkerDiedError, match="SIGSEGV"):
        executor.map(tasks.crash, [()])


def test_a_death_names_the_slices_of_its_task(executor, tmp_path):
    """A03."""
    source = describe(write_array(tmp_path / "a.zarr", np.zeros((6, 4)), (2, 4)))
    with pytest.raises(WorkerDiedError, match=r"on step, task 0 of 1: crash_kernel\(.*a\.zarr\[2:4, :\]\)"):
        executor.run_chunk_tasks(
            [ChunkTask("executor_tasks:crash_kernel", [Chunk(source, (slice(2, 4), None))])], desc="step"
        )


def test_with_one_worker_smaller_blocks_are_advised():
    with (
        Executor(processes=True, n_workers=1) as executor,
        pytest.raises(WorkerDiedError, match="Try smaller --chunks"),
    ):
        executor.map(tasks.end, [(1,)])


def test_a_busy_neighbor_does_not_delay_the_news(executor):
    """E4: the neighbor answers after two seconds, the death is known at once."""
    seen = {}
    run = executor.backend.submit

    def submit(task):
        future = run(task)
        future.add_done_callback(
            lambda done: seen.setdefault(b"ended with exit code" in done.result(), time.monotonic())
        )
        return future

    executor.backend.submit = submit
    executor.map(tasks.pid, [()] * 4)
    begin = time.monotonic()
    seen.clear()
    with pytest.raises(WorkerDiedError):
        executor.map(tasks.die_or_sleep, [(0,), (1,)])
    assert seen[True] - begin < 1


def test_a_program_that_a_task_has_started_does_not_hide_its_death(executor):
    """It would, if it held the pipe of the dead worker open."""
    begin = time.monotonic()
    with pytest.raises(WorkerDiedError, match="exit code 3"):
        executor.map(tasks.leave_child_and_end, [(0,)])
    assert time.monotonic() - begin < 5


def test_after_a_death_the_executor_is_whole_again(executor):
    for _ in range(3):
        with pytest.raises(WorkerDiedError):
            executor.map(tasks.end_at, [(i, 5) for i in range(20)])
        assert executor.map(tasks.double, [(i,) for i in range(20)]) == [2 * i for i in range(20)]
        assert len(executor.backend.pids()) == 2


def test_an_idle_worker_that_is_killed_is_replaced(executor):
    for _ in range(3):
        for pid in executor.backend.pids():
            os.kill(pid, signal.SIGKILL)
        assert _eventually(lambda: executor.map(tasks.double, [(1,), (2,), (3,)]) == [2, 4, 6])


def _eventually(work, tries=5):
    """A worker may die between being found alive and being given a task: that is an error, never a wrong answer."""
    for _ in range(tries):
        try:
            return work()
        except WorkerDiedError:
            continue
    return False


def test_workers_killed_one_after_another_never_lose_or_invent_a_result():
    """Twenty rounds of thirty tasks, one of which kills its worker."""
    with Executor(processes=True, n_workers=2) as executor:
        for round_ in range(20):
            poison = 7 * round_ % 30
            with pytest.raises(WorkerDiedError, match=f"task {poison} of 30"):
                executor.map(tasks.end_at, [(i, poison) for i in range(30)])
        assert executor.map(tasks.double, [(i,) for i in range(30)]) == [2 * i for i in range(30)]


def test_a_failure_in_set_up_of_a_dying_worker_is_raised(executor):
    with pytest.raises(WorkerDiedError, match="exit code 4"):
        executor.run_on_workers(tasks.end, 4)


# --------------------------------------------------------------------------------------------------- interrupts


SCRIPT = """
    import sys, time, numpy as np
    import executor_tasks as tasks
    from moraine_core import Executor
    if __name__ == "__main__":
        kind, folder, scratch, task = sys.argv[1:5]
        with Executor(processes=kind == "processes", n_workers=2, scratch=scratch) as executor:
            executor.put(np.ones(1000))
            if task == "hold":
                executor.run_on_workers(tasks.double, 1)
                open(f"{folder}/0", "w").close()
                executor.map(tasks.hold_interpreter, [(60,)] * 4)
            executor.map(tasks.mark_and_sleep, [(folder, i, 60) for i in range(8)])
"""


@pytest.fixture
def started(tmp_path):
    """Start a script that works, in a process group of its own; at the end nothing of it may be left."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    marks, scratch = tmp_path / "marks", tmp_path / "scratch"
    marks.mkdir()
    scratch.mkdir()
    everybody = []

    def start(kind, task="sleep"):
        parent = subprocess.Popen(
            [sys.executable, script, kind, marks, scratch, task],
            env=_environment(),
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        _wait_for(lambda: len(list(marks.iterdir())) >= 1 or parent.poll() is not None)
        time.sleep(0.3)
        everybody.extend([parent, *psutil.Process(parent.pid).children(recursive=True)])
        return parent, scratch

    yield start
    for process in everybody[1:]:
        if process.is_running():
            process.kill()
    everybody[0].kill()
    everybody[0].communicate()


def _environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(HELPERS), str(HELPERS.parents[2])])}


def _wait_for(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _session(parent):
    """Return what is left of a session, the dead that nobody has waited for left out."""
    return [
        process
        for process in psutil.process_iter(["status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE and _sid(process.pid) == parent.pid
    ]


def _sid(pid):
    try:
        return os.getsid(pid)
    except OSError:
        return 0


@pytest.mark.parametrize("kind", ["processes", "threads"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything_within_seconds(started, kind, number):
    """E4: Ctrl-C in a terminal reaches the whole group; TERM, as from a batch system, the parent."""
    parent, scratch = started(kind)
    assert len(_session(parent)) >= (3 if kind == "processes" else 1)
    if number == signal.SIGINT:
        os.killpg(parent.pid, number)
    else:
        parent.send_signal(number)
    _, errors = parent.communicate(timeout=10)
    assert parent.returncode not in (0, None)
    assert _wait_for(lambda: not _session(parent), 3)
    assert list(scratch.iterdir()) == []
    assert errors.count("Traceback") <= 1, errors  # none of a worker


@pytest.mark.parametrize("task", ["sleep", "hold"])
def test_workers_end_with_a_parent_that_is_killed(started, task):
    """No orphans, also where a task holds the interpreter lock and cannot look for itself."""
    parent, _ = started("processes", task)
    assert len(_session(parent)) >= 3
    parent.kill()
    parent.wait()
    assert _wait_for(lambda: not _session(parent), 10)


def test_a_worker_that_hears_nothing_is_killed_in_the_end():
    """Exit waits for running tasks, but not for ever."""
    with Executor(processes=True, n_workers=1) as executor:
        pids = executor.backend.pids()
        os.kill(pids[0], signal.SIGSTOP)
        executor.backend.stop(now=True)
    assert not psutil.pid_exists(pids[0])


def test_a_keyboard_interrupt_leaves_an_executor_that_can_go_on():
    def interrupt(_number, _result):
        raise KeyboardInterrupt

    for kind in ({"n_workers": 2}, {"processes": True, "n_workers": 2}):
        with Executor(**kind) as executor:
            with pytest.raises(KeyboardInterrupt):
                executor.run_chunk_tasks([ChunkTask("executor_tasks:pid")] * 6, desc="x", on_done=interrupt)
            assert executor.map(tasks.double, [(i,) for i in range(6)]) == [0, 2, 4, 6, 8, 10]


def test_handlers_of_the_program_stay_as_they_are():
    mine = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        handler = signal.getsignal(signal.SIGTERM)
        with Executor(n_workers=1):
            assert signal.getsignal(signal.SIGTERM) is handler
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with Executor(n_workers=1):
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, mine)


# ------------------------------------------------------------------------------------------------------- starting


UNGUARDED = """
    import os, sys
    with open(sys.argv[1], "a") as log:
        log.write(f"{os.getpid()}\\n")
    import executor_tasks as tasks
    from moraine_core import Executor
    with Executor(processes=True, n_workers=3) as executor:
        print(executor.map(tasks.double, [(1,), (2,)]))
"""

UNGUARDED_COMMAND = """
    import os, sys
    with open(sys.argv[1], "a") as log:
        log.write(f"{os.getpid()}\\n")
    import json
    from moraine_core import Workers
    from moraine_raster.math import math
    with open(sys.argv[2]) as file:
        math(**json.load(file), workers=Workers(processes=True, n_workers=3))
"""


@pytest.mark.parametrize("text", [UNGUARDED, UNGUARDED_COMMAND], ids=["executor", "command"])
def test_an_unguarded_script_gets_one_message_with_the_fix_and_no_more_processes_than_asked(tmp_path, text):
    """A08."""
    script, log, call = tmp_path / "bad.py", tmp_path / "log", tmp_path / "call.json"
    script.write_text(textwrap.dedent(text))
    call.write_text(json.dumps(pytest.importorskip("moraine_raster.examples").math(tmp_path, 1)))
    done = subprocess.run(
        [sys.executable, script, log, call], env=_environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("Traceback (most recent call last)") == 1, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert 'if __name__ == "__main__":' in last
    assert len(last) < 300
    assert 2 <= len(log.read_text().splitlines()) <= 4


def test_a_script_read_from_standard_input_can_have_worker_processes():
    """It has no file that a worker could import, and needs none while its functions come from modules."""
    text = (
        "import math\nfrom moraine_core import Executor\n"
        "with Executor(processes=True, n_workers=2) as executor:\n    print(executor.map(math.sqrt, [(4,), (9,)]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-"], input=text, env=_environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "[2.0, 3.0]\n", done.stderr


def test_a_worker_that_cannot_start_is_named_with_the_usual_reason(tmp_path):
    """E2: a script that fails while a worker imports it."""
    script = tmp_path / "bad.py"
    script.write_text(
        "import sys\nfrom moraine_core import Executor\n"
        "if __name__ == '__mp_main__':\n    sys.exit(5)\n"
        "if __name__ == '__main__':\n    Executor(processes=True, n_workers=2).__enter__()\n"
    )
    done = subprocess.run(
        [sys.executable, script], env=_environment(), capture_output=True, text=True, timeout=60, check=False
    )
    last = done.stderr.strip().splitlines()[-1]
    assert re.search(
        r'worker 0 \(process \d+\) ended with exit code 5 while it started.*if __name__ == "__main__":', last
    )


def test_workers_start_side_by_side():
    """A20: eight take at most two seconds more than one."""

    def start(count):
        begin = time.monotonic()
        with Executor(processes=True, n_workers=count):
            return time.monotonic() - begin

    one = start(1)
    assert start(8) < one + 2 * max(1, 8 / len(os.sched_getaffinity(0)))
