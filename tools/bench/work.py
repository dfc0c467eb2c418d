"""What the workers do in the benchmarks: importable, and light before the first call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


def nothing(value: int) -> int:
    """Return the argument."""
    return value


def add(a: Array, b: Array) -> Array:
    """Return the sum of two arrays."""
    return a + b


def total(a: Array) -> float:
    """Return the sum of all values."""
    return float(a.sum())


def subtract(a: Array, mean: float) -> Array:
    """Return an array less a number."""
    return a - mean


def bare_add(a: str, b: str, out: str, start: int, stop: int) -> None:
    """Write rows of ``a[1:] + b[1:]``."""
    _write(out, start, stop, _read(a, start + 1, stop + 1) + _read(b, start + 1, stop + 1))


def bare_total(a: str, start: int, stop: int) -> float:
    """Return the sum of rows of an array."""
    return float(_read(a, start, stop).sum())


def bare_subtract(a: str, out: str, mean: float, start: int, stop: int) -> None:
    """Write rows of ``a[1:] - mean``."""
    _write(out, start, stop, _read(a, start + 1, stop + 1) - mean)


def _read(path: str, start: int, stop: int) -> Any:
    import zarr

    return zarr.open_array(path, mode="r")[start:stop]


def _write(path: str, start: int, stop: int, values: Array) -> None:
    import zarr

    zarr.open_array(path, mode="r+")[start:stop] = values


def double_chunk(source: str, out: str, begin: int, end: int) -> None:
    """Read a part of a zarr array and write twice of it to another."""
    import zarr

    zarr.open_array(out)[begin:end] = 2 * zarr.open_array(source, mode="r")[begin:end]
