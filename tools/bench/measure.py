"""Timing two ways of doing the same in turn, and the rows of the table that comes of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HEADER = "| measured | moraine | peer | ratio | bar | met |\n| --- | --- | --- | --- | --- | --- |"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    name
        What was measured, and against what.
    ours, peer
        One number per run, in turn; `peer` may be empty.
    unit
        Of the numbers.
    bar
        Largest ratio (largest median of ours where there is no peer) that is good enough; None for orientation only.
    """

    name: str
    ours: Sequence[float]
    peer: Sequence[float]
    unit: str
    bar: float | None = None

    @property
    def value(self) -> float:
        """Median ratio of the pairs; without a peer the median of ours."""
        if not self.peer:
            return median(self.ours)
        return median(a / b for a, b in zip(self.ours, self.peer, strict=True))

    @property
    def met(self) -> bool:
        """Whether the bar is met; always where there is none."""
        return self.bar is None or self.value <= self.bar

    def __str__(self) -> str:
        peer = f"{median(self.peer):.3g} {self.unit}" if self.peer else ""
        ratio = f"{self.value:.2f}" if self.peer else ""
        bar = "" if self.bar is None else f"{self.bar:g}" if self.peer else f"{self.bar:g} {self.unit}"
        met = "" if self.bar is None else "yes" if self.met else "**no**"
        return f"| {self.name} | {median(self.ours):.3g} {self.unit} | {peer} | {ratio} | {bar} | {met} |"


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turn(ours: Callable[[], float], peer: Callable[[], float], pairs: int) -> tuple[list[float], list[float]]:
    """Measure both once unseen, then in pairs; who is first alternates, so that neither profits from the other."""
    ours()
    peer()
    of_ours, of_peer = [], []
    for number in range(pairs):
        if number % 2:
            of_peer.append(peer())
            of_ours.append(ours())
        else:
            of_ours.append(ours())
            of_peer.append(peer())
    return of_ours, of_peer
