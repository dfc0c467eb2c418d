"""Makers of small data: speckle, and zarr arrays written the way moraine lays them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.plan import Layout
from moraine_core.store import create, open_array

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def speckle(shape: Sequence[int], seed: int = 0) -> np.ndarray[Any, Any]:
    """Return circular complex Gaussian noise of unit power, complex64, the same for the same seed."""
    rng = np.random.default_rng(seed)
    parts = rng.normal(scale=np.sqrt(0.5), size=(2, *shape)).astype(np.float32)
    return np.asarray(parts[0] + 1j * parts[1], dtype=np.complex64)


def write_array(path: Path | str, values: np.ndarray[Any, Any], chunks: Sequence[int] | None = None) -> str:
    """Write an array as zarr in whole chunks and return its path."""
    values = np.asarray(values)
    layout = Layout(str(path), values.shape, values.dtype.name, tuple(chunks or (max(n, 1) for n in values.shape)))
    create(layout, path)
    array = open_array(path, writable=True)
    if values.size:
        array[...] = values
    return str(path)


def read_array(path: Path | str) -> np.ndarray[Any, Any]:
    """Return all values of a zarr array."""
    return np.asarray(open_array(path)[...])
