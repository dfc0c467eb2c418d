"""Which of our distributions brings which command, so that a missing one can be named.

This is data, not a dependency: nothing here is imported or required. A test compares it with the packages.
"""

from __future__ import annotations

DISTRIBUTIONS: dict[str, tuple[str, ...]] = {
    "moraine-points": ("pc-hix", "pc-logic-ras", "pc-sort", "ras2pc"),
    "moraine-ps": ("amp-disp",),
    "moraine-raster": ("image-pairs", "math"),
    "moraine-view": ("pc-pyramid", "ras-pyramid"),
}


def distribution_of(command: str) -> str | None:
    """Return the distribution that brings a command of ours, or None."""
    return next((name for name, commands in DISTRIBUTIONS.items() if command in commands), None)
