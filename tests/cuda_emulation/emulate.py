"""Compile CUDA C with g++ and launch its kernels on numpy arrays, with the calls of cupy; README.md describes it."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import types
from pathlib import Path
from typing import Any

import numpy as np

HEADER = Path(__file__).with_name("cuda_on_cpu.h")
GUARD = 256
"""Bytes around each array that a kernel must not write, and that read as nan or -1."""

_KERNEL = re.compile(r"(?<!>)(?<!> )__global__\s+(?:static\s+)?void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(")
_DYNAMIC_SHARED = re.compile(
    r"extern\s+__shared__\s+(?:__align__\s*\(\s*\d+\s*\)\s*)?((?:\w+\s+)*?\w+)\s+(\w+)\s*\[\s*\]\s*;"
)
_UNKNOWN_TO_NVRTC = re.compile(
    r"^[ \t]*#[ \t]*include\b.*|\bu?int(?:8|16|32|64)_t\b|\bstd::\w*|\bFLT_\w+|\bDBL_\w+", re.M
)

_launching = threading.Lock()


class EmulationError(Exception):
    """A kernel does not compile, was called with the wrong arguments, or broke a rule of CUDA."""


def has_compiler() -> bool:
    """Return whether kernels can be emulated on this machine."""
    return shutil.which("g++") is not None


class EmulatedModule:
    """CUDA C source as `cupy.RawModule` takes it, whose kernels run on the CPU.

    Parameters
    ----------
    code
        The source.
    options
        Options of the compiler; those that define macros (``-DN=3``) are used, the others ignored.
    name_expressions
        Kernels that are templates, such as ``"kernel<32>"``.
    reversed_threads
        Let the threads of a block take turns from the last to the first: a result that changes shows a missing barrier.
    """

    def __init__(
        self,
        code: str,
        *,
        options: tuple[str, ...] = (),
        name_expressions: tuple[str, ...] | None = None,
        reversed_threads: bool = False,
        **_: Any,
    ) -> None:
        names = list(name_expressions or _KERNEL.findall(_without_comments(code)))
        if not names:
            raise EmulationError("the source has no kernel: no __global__ void NAME(...)")
        library = ctypes.CDLL(str(_compile(code, names, tuple(o for o in options if o.startswith(("-D", "-U"))))))
        library.launch_kernel.restype = ctypes.c_char_p
        library.parameters_of_kernel.restype = ctypes.c_char_p
        self._kernels = {name: EmulatedKernel(library, index, name) for index, name in enumerate(names)}
        for kernel in self._kernels.values():
            kernel.reversed_threads = reversed_threads

    def get_function(self, name: str) -> EmulatedKernel:
        """Return a kernel by its name, or by one of the name expressions."""
        if name not in self._kernels:
            raise EmulationError(f"no kernel {name!r} in the source; it has {', '.join(self._kernels)}")
        return self._kernels[name]

    __getitem__ = get_function


class EmulatedKernel:
    """One kernel; call it as a `cupy.RawKernel`: ``kernel(grid, block, args, shared_mem=0)``."""

    def __init__(self, library: ctypes.CDLL, index: int, name: str) -> None:
        self._library, self._index, self.name = library, index, name
        self._parameters = library.parameters_of_kernel(index).decode().split()
        self.max_dynamic_shared_size_bytes = 48 << 10
        self.reversed_threads = False

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...], *, shared_mem: int = 0, **_: Any
    ) -> None:
        """Run all blocks; raise `EmulationError` for what a GPU would not do, or not say."""
        sizes = [(*map(int, given), 1, 1)[:3] for given in (grid, block)]
        self._check_sizes(*sizes, shared_mem)
        if len(args) != len(self._parameters):
            raise EmulationError(f"{self.name} has {len(self._parameters)} parameters; it was called with {len(args)}")
        guarded = _Guarded()
        try:
            values = [
                self._argument(number, parameter, value, guarded)
                for number, (parameter, value) in enumerate(zip(self._parameters, args, strict=True))
            ]
            pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
            dimensions = [(ctypes.c_uint * 3)(*size) for size in sizes]
            with _launching:
                message = self._library.launch_kernel(
                    self._index, pointers, *dimensions, ctypes.c_size_t(shared_mem), int(self.reversed_threads)
                )
        finally:
            broken = guarded.copy_back()
        if message is not None:
            raise EmulationError(f"{self.name}: {message.decode()}")
        if broken:
            raise EmulationError(f"{self.name} wrote {broken}")

    def _check_sizes(self, grid: tuple[int, ...], block: tuple[int, ...], shared_mem: int) -> None:
        if min(*grid, *block) < 1:
            raise EmulationError(f"{self.name}: grid {grid} and block {block}; no size may be below 1")
        if block[0] * block[1] * block[2] > 1024 or block[2] > 64:
            raise EmulationError(f"{self.name}: block {block}; a block has at most 1024 threads")
        if grid[0] >= 2**31 or max(grid[1:]) > 65535:
            raise EmulationError(f"{self.name}: grid {grid}; expected up to 2**31 - 1 and twice 65535")
        if shared_mem > self.max_dynamic_shared_size_bytes:
            raise EmulationError(
                f"{self.name}: {shared_mem} bytes of dynamic shared memory; max_dynamic_shared_size_bytes of the "
                f"kernel is {self.max_dynamic_shared_size_bytes}"
            )
        if shared_mem > 227 << 10:
            raise EmulationError(f"{self.name}: {shared_mem} bytes of dynamic shared memory; no GPU has over 227 KiB")

    def _argument(self, number: int, parameter: str, value: Any, guarded: _Guarded) -> Any:
        """Return one argument as ctypes holds it; a numpy scalar must have the very type of its parameter."""
        where = f"{self.name}, argument {number}"
        if "*" in parameter:
            if value is None:
                return ctypes.c_void_p(None)
            if not isinstance(value, np.ndarray):
                raise EmulationError(f"{where} is a pointer; found {type(value).__name__}")
            _check_array(where, parameter, value)
            return ctypes.c_void_p(guarded.address(value, written="c" not in parameter))
        kind, size = parameter[0], int(parameter[1:])
        if kind == "v":
            if not isinstance(value, np.generic | np.ndarray) or value.nbytes != size:
                raise EmulationError(f"{where} is a structure of {size} bytes; found {value!r}")
            return ctypes.create_string_buffer(value.tobytes(), size)
        if isinstance(value, np.generic):
            if value.dtype.itemsize != size or (value.dtype.kind == "f") != (kind == "f"):
                raise EmulationError(f"{where} is {_type_name(kind, size)}; found {value.dtype}")
        elif isinstance(value, float) != (kind == "f") or (kind == "f" and size != 8):
            # cupy passes a float as 8 bytes and an int as 8; only the int is read rightly as 4
            raise EmulationError(f"{where} is {_type_name(kind, size)}; found {type(value).__name__} {value!r}")
        dtype = np.dtype(f"{kind}{size}" if kind != "u" or size > 1 else "u1")
        try:
            exact = np.array(value, dtype=dtype)
        except OverflowError:
            raise EmulationError(f"{where} is {_type_name(kind, size)}; {value} does not fit") from None
        return ctypes.create_string_buffer(exact.tobytes(), size)


def cupy_on_cpu(*, reversed_threads: bool = False) -> types.ModuleType:
    """Return a stand-in for cupy: numpy, with RawKernel, RawModule and an ndarray of its own.

    Put it into ``sys.modules["cupy"]`` before a module with kernels is imported; make its arrays with ``asarray``. What
    numpy does not have by the same name is missing here as well. The fixture ``emulated_cupy`` of the tests does this.
    """

    class RawModule(EmulatedModule):
        def __init__(self, code: str, **options: Any) -> None:
            super().__init__(code, reversed_threads=reversed_threads, **options)

    class Cupy(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            attribute = getattr(np, name)
            if isinstance(attribute, type) or not callable(attribute):
                return attribute

            def function(*args: Any, **kwargs: Any) -> Any:
                result = attribute(*args, **kwargs)
                return result.view(ndarray) if type(result) is np.ndarray else result

            return function

    class ndarray(np.ndarray):  # noqa: N801 - cupy's name
        def get(self, order: str = "C") -> Any:
            return np.array(self, subok=False, order=order)  # type: ignore[call-overload]

    class RawKernel(EmulatedKernel):
        def __new__(cls, code: str, name: str, options: tuple[str, ...] = (), **_: Any) -> Any:
            return RawModule(code, options=options)[name]

    cupy = Cupy("cupy")
    cupy.ndarray, cupy.RawModule, cupy.RawKernel = ndarray, RawModule, RawKernel  # type: ignore[attr-defined]
    cupy.asnumpy = lambda array: np.array(array, subok=False)  # type: ignore[attr-defined]
    return cupy


class _Guarded:
    """Copies of arrays with guards around them; one copy for arrays at the same place."""

    def __init__(self) -> None:
        self._copies: dict[tuple[int, int], tuple[Any, Any, Any, bool]] = {}

    def address(self, array: Any, *, written: bool) -> int:
        for other in [copy[0] for copy in self._copies.values()]:
            same = (array.ctypes.data, array.nbytes) == (other.ctypes.data, other.nbytes)
            if not same and np.may_share_memory(array, other):
                return int(array.ctypes.data)  # overlaps another argument: cannot be copied apart from it
        key = (array.ctypes.data, array.nbytes)
        if key not in self._copies:
            memory = np.full(array.nbytes + 3 * GUARD, 0xFF, dtype=np.uint8)
            begin = GUARD + -memory.ctypes.data % GUARD
            inner = memory[begin : begin + array.nbytes]
            inner[:] = array.reshape(-1).view(np.uint8)
            self._copies[key] = array, memory, inner, False
        array, memory, inner, before = self._copies[key]
        self._copies[key] = array, memory, inner, before or written
        return int(inner.ctypes.data)

    def copy_back(self) -> str:
        """Copy what was written into the arrays; return where a guard was written, else nothing."""
        broken = ""
        for array, memory, inner, written in self._copies.values():
            begin = inner.ctypes.data - memory.ctypes.data
            spoilt = np.flatnonzero(memory != 0xFF)
            spoilt = spoilt[(spoilt < begin) | (spoilt >= begin + array.nbytes)]
            if spoilt.size:
                broken = f"byte {spoilt[0] - begin} of an array of {array.nbytes} bytes, {array.dtype} {array.shape}"
            if written:
                array.reshape(-1).view(np.uint8)[:] = inner
            elif array.nbytes and not np.array_equal(array.reshape(-1).view(np.uint8), inner):
                broken = f"to an array it is given as constant, {array.dtype} {array.shape}"
        return broken


def _check_array(where: str, parameter: str, array: Any) -> None:
    constant, pointed = parameter.split("*")
    kind, size = pointed[0], int(pointed[1:])
    if not array.flags.c_contiguous:
        raise EmulationError(f"{where}: the array {array.dtype} {array.shape} is not contiguous")
    if not constant and not array.flags.writeable:
        raise EmulationError(f"{where}: the array is read-only and the pointer is not to constants")
    same = array.dtype.kind in {"f": "f", "i": "iub", "u": "iub", "v": ""}[kind] and array.itemsize == size
    parts = kind == "f" and array.dtype.kind == "c" and array.itemsize == 2 * size
    if not (same or parts or (kind == "v" and array.nbytes % size == 0)):
        raise EmulationError(f"{where} points to {_type_name(kind, size)}; found an array of {array.dtype}")


def _type_name(kind: str, size: int) -> str:
    name = {"f": "float", "i": "int", "u": "uint", "v": "structure"}[kind]
    return f"{name}{8 * size}"


def _without_comments(code: str) -> str:
    """Return the source with comments blanked, lines kept."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match[0]), code, flags=re.S)


def _compile(code: str, names: list[str], options: tuple[str, ...]) -> Path:
    """Return the library of a source, from the cache where it has been compiled before."""
    if not has_compiler():
        raise EmulationError("g++ is not installed")
    plain = _without_comments(code)
    unknown = _UNKNOWN_TO_NVRTC.search(plain)
    if unknown:
        line = plain.count("\n", 0, unknown.start()) + 1
        raise EmulationError(
            f"line {line}: NVRTC brings no standard headers, so it does not know {unknown[0].strip()!r}"
        )
    # kernels are called by the library alone: a name such as connect must not be that of the C library
    plain = re.sub(r'extern\s+"C"', "", re.sub(r'extern\s+"C"\s*\{', "namespace {", plain))
    plain = _DYNAMIC_SHARED.sub(r"\1* \2 = reinterpret_cast<\1*>(cuda_on_cpu::dynamic_shared);", plain)
    table = "".join(
        f"    case {index}: return cuda_on_cpu::launch([](void** _args) {{ cuda_on_cpu::apply(&{name}, _args); }}, "
        f"_args, _grid, _block, _shared, _reversed);\n"
        for index, name in enumerate(names)
    )
    parameters = "".join(
        f"    case {index}: _text = cuda_on_cpu::describe_kernel(&{name}); break;\n" for index, name in enumerate(names)
    )
    text = f"""#include "{HEADER}"
namespace {{
#line 1 "kernel"
{plain}
}}
#line 1 "launches"
extern "C" const char* launch_kernel(
    int _number, void** _args, const unsigned* _grid, const unsigned* _block, size_t _shared, int _reversed) {{
    switch (_number) {{
{table}    }}
    return "no such kernel";
}}
extern "C" const char* parameters_of_kernel(int _number) {{
    static std::string _text;
    switch (_number) {{
{parameters}    }}
    return _text.c_str();
}}
"""
    key = hashlib.sha256("\0".join([text, HEADER.read_text(), *options]).encode()).hexdigest()[:24]
    folder = Path(os.environ.get("MORAINE_CACHE_DIR") or tempfile.gettempdir()) / "cuda_emulation"
    library = folder / f"{key}.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        source, built = Path(work) / "kernel.cpp", Path(work) / "kernel.so"
        source.write_text(text)
        command = ["g++", "-std=c++20", "-O1", "-w", "-fPIC", "-shared", "-ffp-contract=off", "-U_FORTIFY_SOURCE"]
        found = subprocess.run(
            [*command, *options, str(source), "-o", str(built)], capture_output=True, text=True, check=False
        )
        if found.returncode:
            raise EmulationError(f"the source does not compile:\n{found.stderr[-4000:]}")
        built.replace(library)
    return library
