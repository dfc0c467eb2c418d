"""What checks are: functions with the decorator `check` that return a note for the table, and fail by raising."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHECKS: list[Check] = []


@dataclass(frozen=True)
class Setting:
    """What the checks work with: a temporary folder, and the side of the square stack in pixels."""

    folder: Path
    side: int


@dataclass(frozen=True)
class Check:
    """One check: its name in the table, and the function that returns a note or raises."""

    name: str
    run: Callable[[Setting], str]


def check(name: str) -> Callable[[Callable[[Setting], str]], Callable[[Setting], str]]:
    """Add a function to the checks, which run in the order in which they are added."""

    def add(function: Callable[[Setting], str]) -> Callable[[Setting], str]:
        CHECKS.append(Check(name, function))
        return function

    return add


def expect(holds: object, message: str) -> None:
    """Fail the check with a message unless something holds."""
    if not holds:
        raise AssertionError(message)
