"""The command line. Nothing is imported here: worker processes import this module when they find the main script."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``moraine`` with the given words, or those of the command line, and exit with its code."""
    from moraine_core.cli.main import run

    raise SystemExit(run(arguments))
