"""Fixtures of all tests."""

from __future__ import annotations

import os
import signal
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "cuda_emulation"))  # a module that tests of kernels import

# what a shell has started in the background ignores Ctrl-C, and so would the programs that tests start and interrupt
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of real radar data: ``MORAINE_TEST_DATA``, or ``shared/data`` beside the checkout; skips where absent."""
    folder = Path(os.environ.get("MORAINE_TEST_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep compiled kernels of this session together, away from the user's cache, and on the next run again."""
    os.environ.setdefault("MORAINE_CACHE_DIR", str(Path(__file__).parents[1] / ".cache"))


@pytest.fixture
def emulate_cupy(monkeypatch):
    """Return a function that puts a stand-in for cupy in its place, whose CUDA kernels run on the CPU.

    Modules named ``_gpu`` are imported with it. Its argument: whether threads take turns from the last to the first.
    """
    from emulate import cupy_on_cpu, has_compiler

    if not has_compiler():
        pytest.skip("g++ is not installed")

    def put(*, reversed_threads: bool = False):
        cupy = cupy_on_cpu(reversed_threads=reversed_threads)
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        _forget_gpu_modules()
        return cupy

    yield put
    _forget_gpu_modules()


@pytest.fixture(params=["threads forward", "threads backward"])
def emulated_cupy(request, emulate_cupy):
    """Return the stand-in for cupy of `emulate_cupy`.

    A test that asks for it runs twice: a result that depends on which thread comes first shows a missing barrier.
    """
    return emulate_cupy(reversed_threads=request.param == "threads backward")


@pytest.fixture(params=["numpy", "cupy, threads forward", "cupy, threads backward"])
def to_device(request):
    """Return what makes arrays of an array function's device: on the CPU, or for kernels that `emulate_cupy` runs."""
    if request.param == "numpy":
        return np.asarray
    return request.getfixturevalue("emulate_cupy")(reversed_threads=request.param.endswith("backward")).asarray


def _forget_gpu_modules():
    """Let the next import of a module with kernels for the GPU find the cupy of its time."""
    for name in [name for name in sys.modules if name.startswith("moraine_") and name.endswith("._gpu")]:
        del sys.modules[name]
        package, _, stem = name.rpartition(".")
        if hasattr(sys.modules.get(package), stem):
            delattr(sys.modules[package], stem)


def read_tiff(path):
    """Return the one image of a simple TIFF: strips, plain or packed bits."""
    raw = Path(path).read_bytes()
    order = {b"II": "<", b"MM": ">"}[raw[:2]]
    (start,) = struct.unpack(f"{order}I", raw[4:8])
    (count,) = struct.unpack(f"{order}H", raw[start : start + 2])
    tags = {}
    for k in range(count):
        at = start + 2 + 12 * k
        tag, kind, number = struct.unpack(f"{order}HHI", raw[at : at + 8])
        if kind not in (3, 4):
            continue
        code, size = {3: ("H", 2), 4: ("I", 4)}[kind]
        place = at + 8 if size * number <= 4 else struct.unpack(f"{order}I", raw[at + 8 : at + 12])[0]
        tags[tag] = struct.unpack(f"{order}{number}{code}", raw[place : place + size * number])
    width, nlines, bits, form = tags[256][0], tags[257][0], tags[258][0], tags.get(339, (1,))[0]
    strips = [raw[begin : begin + size] for begin, size in zip(tags[273], tags[279], strict=True)]
    data = b"".join(map(unpacked, strips) if tags[259][0] == 32773 else strips)
    name = {1: "u", 2: "i", 3: "f", 5: "i"}[form]
    size = bits // 16 if form == 5 else bits // 8
    values = np.frombuffer(data, f"{order}{name}{size}").reshape(nlines, -1)
    if form == 5:
        return values[:, ::2] + 1j * values[:, 1::2]
    assert values.shape[1] == width
    return values


def unpacked(strip):
    """Return the bytes of a strip with packed bits."""
    out, at = bytearray(), 0
    while at < len(strip):
        head, at = strip[at], at + 1
        if head < 128:
            out += strip[at : at + head + 1]
            at += head + 1
        elif head > 128:
            out += strip[at : at + 1] * (257 - head)
            at += 1
    return bytes(out)


@pytest.fixture(scope="session")
def tiff():
    """Return the reader of simple TIFF files."""
    return read_tiff
