"""Which GPUs there are, who gets which, and that the parent touches none: with drivers and cupy made up."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import executor_tasks as tasks
import numpy as np
import pytest

from moraine_core import Executor, device
from moraine_core.device import array_module, to_host, visible_gpus
from moraine_core.errors import DeviceError

DRIVER = ["GPU-aaaa1111", "GPU-bbbb2222", "GPU-bbcc3333"]


def gpus(wanted=(), visible=None, driver=DRIVER):
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return visible_gpus(wanted, environ=environ, driver=driver)


@pytest.mark.parametrize(
    ("wanted", "visible", "expected"),
    [
        ((), None, ["0", "1", "2"]),
        ((), "1", ["1"]),
        ((), "2,0", ["2", "0"]),
        ((), " 2 , 0 ", ["2", "0"]),
        ((), "GPU-bbbb2222,GPU-aaaa1111", ["GPU-bbbb2222", "GPU-aaaa1111"]),
        ((), "GPU-aaaa", ["GPU-aaaa"]),
        ((), "1,-1,2", ["1"]),
        (("1", "2"), None, ["1", "2"]),
        (("1,2",), None, ["1", "2"]),
        (("GPU-bbcc3333",), None, ["GPU-bbcc3333"]),
        (("2",), "GPU-bbcc3333", ["2"]),
        (("GPU-aaaa1111",), "0,1", ["GPU-aaaa1111"]),
    ],
)
def test_gpus_are_listed_as_the_user_says(wanted, visible, expected):
    """A17: by --gpus and CUDA_VISIBLE_DEVICES, by number and UUID."""
    assert gpus(wanted, visible) == expected


@pytest.mark.parametrize(
    ("wanted", "visible", "driver", "message"),
    [
        ((), None, [], "no GPU: the NVIDIA driver reports none"),
        ((), "0", [], "no GPU: the NVIDIA driver reports none"),
        ((), "", DRIVER, "CUDA_VISIBLE_DEVICES is '', which hides all 3"),
        ((), "-1", DRIVER, "hides all 3"),
        ((), "3", DRIVER, "CUDA_VISIBLE_DEVICES names GPU 3, but the driver knows 3: 0 to 2"),
        ((), "GPU-bb", DRIVER, "CUDA_VISIBLE_DEVICES names GPU GPU-bb"),
        (("7",), None, DRIVER, "--gpus names GPU 7, but the driver knows 3"),
        (("GPU-zzzz",), None, DRIVER, "--gpus names GPU GPU-zzzz"),
        (("0",), "1,2", DRIVER, "--gpus names 0, which CUDA_VISIBLE_DEVICES=1,2 hides"),
        (("1", "GPU-bbbb2222"), None, DRIVER, "GPU GPU-bbbb2222 is named twice"),
    ],
)
def test_a_gpu_that_is_not_there_is_an_error(wanted, visible, driver, message):
    """A17: empty means none, and what is named must be there."""
    with pytest.raises(DeviceError, match=message):
        gpus(wanted, visible, driver)


def test_without_a_driver_cuda_fails_quickly_with_a_sentence(monkeypatch):
    """A17: on a machine with no GPU, under five seconds."""
    monkeypatch.setattr(device, "driver_gpus", list)
    begin = time.monotonic()
    with pytest.raises(DeviceError, match="leave out --cuda to run on the CPU"):
        Executor(cuda=True)
    assert time.monotonic() - begin < 5


def test_a_variable_alone_makes_no_gpu(monkeypatch):
    """E2: the driver is asked."""
    monkeypatch.setattr(device, "driver_gpus", list)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(DeviceError, match="driver reports none"):
        Executor(cuda=True)


def test_asking_the_driver_is_harmless_anywhere():
    assert all(uuid.startswith(("GPU-", "MIG-")) for uuid in device.driver_gpus())


@pytest.fixture
def two_gpus(tmp_path, monkeypatch):
    """A driver with two GPUs, and a cupy that remembers the environment in which it was imported."""
    (tmp_path / "cupy.py").write_text(
        textwrap.dedent("""
        import os, types
        SEEN = os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("CUDA_DEVICE_ORDER")
        if SEEN[0] == os.environ.get("BROKEN"):
            raise_at_use = RuntimeError("cudaErrorDevicesUnavailable")
        else:
            raise_at_use = None
        class Device:
            def __init__(self, number): self.number = number
            def use(self):
                assert self.number == 0
                if raise_at_use: raise raise_at_use
        class ndarray: pass
        class _Sum:
            def sum(self): return self
            def item(self): return 1.0
        def ones(n): return _Sum()
        runtime = types.SimpleNamespace(
            memGetInfo=lambda: (100 * 2**20, 200 * 2**20),
            getDeviceProperties=lambda n: {"name": b"Fake " + SEEN[0].encode()})
        cuda = types.SimpleNamespace(Device=Device, runtime=runtime)
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(device, "driver_gpus", lambda: DRIVER[:2])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    monkeypatch.delenv("BROKEN", raising=False)


@pytest.mark.usefixtures("two_gpus")
def test_each_worker_has_one_gpu_before_anything_imports_cuda():
    """A16, A18: spawned, one device each, and the parent has imported nothing."""
    with Executor(cuda=True) as executor:
        assert executor.run_on_workers(tasks.imported_with) == [("0", "PCI_BUS_ID"), ("1", "PCI_BUS_ID")]
        assert [slot.gpu for slot in executor.backend.slots()] == ["Fake 0", "Fake 1"]
        assert set(executor.run_on_workers(tasks.start_method)) == {"multiprocessing.context"}
    assert "cupy" not in sys.modules


@pytest.mark.usefixtures("two_gpus")
def test_the_users_choice_of_gpus_reaches_the_workers(monkeypatch):
    """A17."""
    with Executor(cuda=True, gpus=["1"]) as executor:
        assert [seen for seen, _ in executor.run_on_workers(tasks.imported_with)] == ["1"]
    with Executor(cuda=True, n_workers=1) as executor:
        assert [seen for seen, _ in executor.run_on_workers(tasks.imported_with)] == ["0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-bbbb2222")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    with Executor(cuda=True) as executor:
        assert executor.run_on_workers(tasks.imported_with) == [("GPU-bbbb2222", "FASTEST_FIRST")]


@pytest.mark.usefixtures("two_gpus")
def test_more_workers_than_gpus_are_refused():
    """E2."""
    with pytest.raises(DeviceError, match="3 workers asked for, but there are 2 GPUs: 0, 1"):
        Executor(cuda=True, n_workers=3)


@pytest.mark.usefixtures("two_gpus")
def test_a_gpu_that_cannot_be_used_stops_everything_at_the_start(monkeypatch):
    """E4: raised on entering, and all started workers are gone."""
    monkeypatch.setenv("BROKEN", "1")
    executor = Executor(cuda=True)
    with pytest.raises(DeviceError, match="GPU 1 cannot be used: cudaErrorDevicesUnavailable"):
        executor.__enter__()
    assert executor.backend.pids() == []


@pytest.mark.usefixtures("two_gpus")
def test_a_task_larger_than_a_gpu_does_not_fit():
    with Executor(cuda=True) as executor:
        assert executor.fits(80 * 2**20)
        assert not executor.fits(95 * 2**20)


def test_cupy_that_is_not_installed_is_named(monkeypatch, tmp_path):
    (tmp_path / "cupy.py").write_text("raise ImportError('libcublas.so.12 is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(device, "driver_gpus", lambda: DRIVER[:1])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with pytest.raises(DeviceError, match=r"GPU 0: cupy cannot be imported \(libcublas\.so\.12 is missing\)"):
        Executor(cuda=True).__enter__()


def test_numpy_arrays_are_numpys():
    array = np.ones(3)
    assert array_module(array) is np
    assert to_host(array) is array


def test_arrays_of_a_gpu_keep_their_order_in_memory(emulated_cupy):
    """Columns that lie together on the GPU do so on the host."""
    values = emulated_cupy.asarray(np.arange(6.0).reshape(2, 3))
    for there in (values, values.T):
        here = to_host(there)
        assert type(here) is np.ndarray
        assert here.strides == there.strides
        np.testing.assert_array_equal(here, np.asarray(there))


def test_device_code_does_not_import_cuda_by_itself():
    code = "import sys, moraine_core.device, moraine_core.executor, moraine_core.task; assert 'cupy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
