"""Objects that every task can reach: one copy, read-only, gone in the end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import executor_tasks as tasks
import numpy as np
import pytest

from moraine_core import Executor
from moraine_core.errors import DiskFullError, UsageError
from moraine_core.executor.shared import Shelf, fetch

MIB = 2**20


def test_one_hundred_megabytes_are_in_memory_once(tmp_path):
    """E7.5: neither per task nor per worker; private memory of the workers does not grow by the array."""
    array = np.ones(100 * MIB // 8)
    with Executor(processes=True, n_workers=2, scratch=str(tmp_path)) as executor:
        small = executor.put(np.ones(1))
        before = max(executor.map(tasks.private_bytes, [(small,)] * 8))
        handle = executor.put(array)
        after = max(executor.map(tasks.private_bytes, [(handle,)] * 8))
        files = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert after - before < 50 * MIB
    assert files < 1.01 * array.nbytes
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("processes", [False, True])
def test_an_object_is_read_only_wherever_its_arrays_are(processes):
    with Executor(processes=processes, n_workers=2) as executor:
        array = np.arange(4)
        handle = executor.put(array)
        with pytest.raises(ValueError, match=r"read-only"):
            executor.map(tasks.write_into, [(handle,)])
        assert executor.map(tasks.writeable, [(executor.put({"a": array}),)]) == [False]
        assert array.flags.writeable
        assert array.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("processes", [False, True])
def test_a_handle_may_lie_anywhere_in_the_arguments(processes):
    with Executor(processes=processes, n_workers=2) as executor:
        a, b = executor.put(np.arange(3)), executor.put(np.arange(5))
        box = {"arrays": [a, {"deep": b}]}
        assert executor.map(tasks.nested_total, [(box,)] * 3) == [13, 13, 13]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(20)[::3],
        np.arange(24).reshape(4, 6)[:, 1:3],
        np.asfortranarray(np.arange(24).reshape(4, 6)),
        np.zeros((0, 3), "f4"),
        np.array(3.5),
        np.arange(5, dtype=">i2"),
        np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    ],
    ids=["stride", "window", "fortran", "empty", "scalar", "big-endian", "record"],
)
def test_any_array_comes_back_equal_and_mapped(array, tmp_path):
    shelf = Shelf()
    handle = shelf.put(array, tmp_path)
    mapped = fetch(handle.key, handle.path)
    assert mapped.dtype == array.dtype
    np.testing.assert_array_equal(mapped, array)
    assert not mapped.flags.writeable
    assert not mapped.flags.owndata
    shelf.release()


def test_what_is_not_an_array_can_be_shared_too():
    with Executor(processes=True, n_workers=1) as executor:
        handle = executor.put({"x": (1, "two", None)})
        assert executor.map(tasks.run, [(dict, handle)]) == [{"x": (1, "two", None)}]


@pytest.mark.parametrize("processes", [False, True])
def test_what_cannot_be_pickled_is_refused(processes):
    with (
        Executor(processes=processes, n_workers=1) as executor,
        pytest.raises(UsageError, match="generator cannot be shared"),
    ):
        executor.put(i for i in ())


@pytest.mark.parametrize("processes", [False, True])
def test_a_released_object_is_named_and_a_new_one_is_not_mistaken_for_it(processes):
    with Executor(processes=processes, n_workers=1) as executor:
        old = executor.put(np.zeros(3))
        executor.release()
        with pytest.raises(UsageError, match="released"):
            executor.map(tasks.total, [(old,)])
        assert executor.map(tasks.total, [(executor.put(np.ones(3)),)]) == [3.0]


def test_nothing_stays_on_disk_after_an_error(tmp_path):
    """E7.3."""

    def run():
        with Executor(processes=True, n_workers=1, scratch=str(tmp_path)) as executor:
            executor.put(np.ones(1000))
            assert len(list(tmp_path.iterdir())) == 1
            executor.map(tasks.fail, [("value", "x")])

    with pytest.raises(ValueError, match=r"^x"):
        run()
    assert list(tmp_path.iterdir()) == []


def test_nothing_stays_on_disk_after_a_keyboard_interrupt(tmp_path):

    def run():
        with Executor(processes=True, n_workers=1, scratch=str(tmp_path)) as executor:
            executor.put(np.ones(1000))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_has_left_goes_at_the_next_start_and_what_lives_stays(tmp_path):
    """A28."""
    script = (
        "import sys, time, numpy, pathlib\n"
        "from moraine_core.executor.shared import Shelf\n"
        "Shelf().put(numpy.ones(9), pathlib.Path(sys.argv[1]))\n"
        "print('ready', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, tmp_path], stdout=subprocess.PIPE) as victim:
        assert victim.stdout.readline() == b"ready\n"
        mine = Shelf()
        mine.put(np.ones(3), tmp_path)
        assert len(list(tmp_path.iterdir())) == 2
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    other = Shelf()
    other.put(np.ones(3), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    mine.release()
    other.release()
    assert list(tmp_path.iterdir()) == []


def test_the_scratch_folder_can_be_chosen_by_the_environment(tmp_path, monkeypatch):
    """A28."""
    monkeypatch.setenv("MORAINE_SCRATCH", str(tmp_path / "new"))
    with Executor(processes=True, n_workers=1) as executor:
        handle = executor.put(np.ones(5))
        assert Path(handle.path).is_relative_to(tmp_path / "new")
        assert executor.map(tasks.total, [(handle,)]) == [5.0]


def test_a_full_scratch_disk_is_named(tmp_path, monkeypatch):
    """A28: every byte written to /dev/full meets a full disk."""
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix, dir: _folder_of_full_files(tmp_path))
    with (
        Executor(processes=True, n_workers=1, scratch=str(tmp_path)) as executor,
        pytest.raises(DiskFullError, match="no space left"),
    ):
        executor.put(np.ones(10))


def _folder_of_full_files(tmp_path):
    folder = tmp_path / "full"
    folder.mkdir()
    (folder / "0-0").symlink_to("/dev/full")
    return str(folder)


def test_workers_do_not_keep_what_was_released_for_ever(tmp_path):
    """A worker that maps an object of the next generation lets go of those before."""
    with Executor(processes=True, n_workers=1, scratch=str(tmp_path)) as executor:
        for _ in range(3):
            handle = executor.put(np.ones(1000))
            (worker,) = set(executor.map(tasks.pid, [(handle,)]))
            maps = Path(f"/proc/{worker}/maps").read_text()
            assert maps.count(str(tmp_path)) == 1
            executor.release()


def test_threads_share_the_callers_own_memory():
    array = np.zeros(10)
    with Executor(n_workers=2) as executor:
        handle = executor.put(array)
        array[3] = 5
        assert executor.map(tasks.total, [(handle,)]) == [5.0]
