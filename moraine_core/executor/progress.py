"""Progress on standard error: every tenth of the tasks, and a sign of life at least once a minute."""

from __future__ import annotations

import logging
import sys
import time
from math import ceil

HEARTBEAT_SECONDS = 55.0

log = logging.getLogger("moraine")


class Progress:
    """Logs how far a map of tasks has come.

    Parameters
    ----------
    desc
        What is being done.
    total
        Number of tasks, those already done included.
    done
        Tasks that were done before, by an interrupted run.
    bar
        Draw a bar as well, if standard error is a terminal.
    """

    def __init__(self, desc: str, total: int, *, done: int = 0, bar: bool = False) -> None:
        self._desc, self._total, self._done, self._before = desc, total, done, done
        self._step = max(ceil(total / 10), 1)
        self._bar = bar and sys.stderr.isatty()
        self._start = self._spoken = time.monotonic()

    def advance(self) -> None:
        """Count one task; log after the first, each tenth and the last."""
        self._done += 1
        if self._bar:
            self._draw()
        elif self._done in (1, self._total) or self._done % self._step == 0:
            self._say()

    @property
    def silence(self) -> float:
        """Seconds until a sign of life is due."""
        return max(self._spoken + HEARTBEAT_SECONDS - time.monotonic(), 0.0)

    def heartbeat(self) -> None:
        """Log that the work goes on, if nothing was logged for a minute."""
        if self.silence == 0:
            self._say()

    def _say(self) -> None:
        self._spoken = time.monotonic()
        elapsed = self._spoken - self._start
        line = f"{self._desc}: {self._done}/{self._total} done, {elapsed:.1f} s"
        fresh = self._done - self._before
        if fresh and elapsed > 0 and self._done < self._total:
            rate = fresh / elapsed
            line += f", {rate:.3g} tasks/s, {(self._total - self._done) / rate:.0f} s left"
        log.info(line)

    def _draw(self) -> None:
        filled = 30 * self._done // self._total
        end = "\n" if self._done == self._total else ""
        sys.stderr.write(f"\r{self._desc}: [{'#' * filled:<30}] {self._done}/{self._total}{end}")
        sys.stderr.flush()
        self._spoken = time.monotonic()
