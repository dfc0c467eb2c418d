"""Classes of the ground and brightnesses of persistent scatterers: constants, read before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cover:
    """A class of distributed scatterers, the same everywhere.

    Attributes
    ----------
    name
        What it is.
    amplitude
        Root mean square amplitude.
    initial
        Coherence of two images at the same time: what is lost at once, such as by wind.
    lasting
        The part of it that stays forever.
    days
        In which the changing part falls to 1/e.
    seasonal
        How much of the amplitude of what is coherent is lost in the middle of the year.
    """

    name: str
    amplitude: float
    initial: float
    lasting: float
    days: float
    seasonal: float = 0.0


COVERS = (
    Cover("water", 12, 0.0, 0.0, 1.0),
    Cover("buildings", 150, 0.95, 0.75, 300.0),
    Cover("streets", 45, 0.90, 0.60, 200.0),
    Cover("bare ground", 80, 0.90, 0.25, 90.0),
    Cover("fields", 100, 0.85, 0.10, 40.0, 0.7),
    Cover("forest", 115, 0.70, 0.03, 15.0),
)
"""Classes by their number."""

WATER, BUILDINGS, STREETS, BARE, FIELDS, FOREST = range(len(COVERS))

PS_SHARE = {WATER: 0.0, BUILDINGS: 0.06, STREETS: 0.004, BARE: 0.002, FIELDS: 0.0005, FOREST: 0.0}
"""Which part of the pixels of a cover holds a persistent scatterer."""

PS_AMPLITUDES = (250.0, 500.0, 1000.0, 2000.0)
"""How bright persistent scatterers are."""

PS_CHANCES = (0.45, 0.35, 0.15, 0.05)
"""How many of them are so bright."""

SUMMER = 196
"""Day of the year at which fields are least coherent."""
