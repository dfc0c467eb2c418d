"""What changed from version to version in what numbers mean: defaults, units, signs. Shown by ``--version-notes``."""

from __future__ import annotations

NOTES: dict[str, tuple[str, ...]] = {
    "0.1.0": (
        "first version; from here on a changed default, unit or sign is named in this list",
        "phases are in radians; an interferogram is reference times conjugated secondary image",
        "lengths are in meters; displacements are positive toward the satellite",
        "missing values are nan in floating point and complex arrays",
    ),
}
"""By version, the newest first."""


def text() -> str:
    """Return all notes as text."""
    lines = []
    for version, notes in NOTES.items():
        lines += [version, *(f"  {note}" for note in notes)]
    return "\n".join(lines)
