"""A small stack: what the conformance kit runs, and what a reader can try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def simulate(folder: Path, scale: int) -> dict[str, Any]:
    """Simulate three images of few pixels, with every effect."""
    return {
        "out": str(folder / "stack"),
        "shape": [20 + 6 * scale, 24 + 12 * scale],
        "nimages": 3,
        "orbit_error": 0.3,
        "post": 60.0,
        "lines": 10 + 2 * scale,
    }
