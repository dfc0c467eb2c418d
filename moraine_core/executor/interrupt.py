"""Signals that ask this process to end are heeded like Ctrl-C: workers stop and temporary files go."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def orderly_end() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP inside the block into a `SystemExit`, unless the program handles them itself."""
    ours = [
        number
        for number in _ENDING
        if threading.current_thread() is threading.main_thread() and signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in ours:
        signal.signal(number, _exit)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _exit(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)
