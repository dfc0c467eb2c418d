"""What is in a pyramid's directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import zarr

from moraine_core.testing.data import read_array

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def arrays(pyramid: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of a pyramid."""
    return {path.name: read_array(path) for path in sorted(pyramid.glob("*.zarr"))}


def marker(pyramid: Path) -> dict[str, Any]:
    """Read the marker of a pyramid."""
    return dict(zarr.open_array(pyramid / "0.zarr", mode="r").attrs["moraine_pyramid"])  # type: ignore[arg-type]


def same_bits(a: Path, b: Path) -> bool:
    """Tell whether two pyramids hold the same arrays, bit for bit."""
    one, two = arrays(a), arrays(b)
    return one.keys() == two.keys() and all(one[name].tobytes() == two[name].tobytes() for name in one)
