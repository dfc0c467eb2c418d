"""Feeding workers: one map of tasks, handed out within a window, its outcomes taken as they come and kept in order."""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import time
from typing import TYPE_CHECKING, Any

from moraine_core.errors import DiskFullError, MemoryBudgetError, TasksError, WorkerDiedError
from moraine_core.executor.memory import gib
from moraine_core.executor.message import Outcome, pack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from moraine_core.executor.core import Executor

log = logging.getLogger("moraine")

_OF_ALL = (MemoryError, DiskFullError)
"""Errors that other tasks of the same map would meet as well."""

LOOK_SECONDS = 1.0
"""How often a map looks whether there are more or fewer slots, and whether answers fail to come."""

SICK = 3
"""Tasks whose workers died on one node that are no accident: an error then names the node."""


class Feed:
    """One map of an executor.

    Parameters
    ----------
    executor
        Whose backend runs the tasks.
    calls
        The tasks.
    desc, done
        Name in progress lines, and the number of tasks done before.
    window
        Returns how many tasks may be handed out at once; asked again when slots come or go.
    on_done
        Called with number and result of each task as it ends.
    keep_going
        Whether a task that raises an error of its own leaves the others to be run.
    """

    def __init__(
        self,
        executor: Executor,
        calls: Sequence[Any],
        desc: str,
        window: Callable[[], int],
        done: int,
        on_done: Callable[[int, Any], None] | None,
        *,
        keep_going: bool = False,
    ) -> None:
        self._executor = executor
        self._calls = calls
        self._desc = desc
        self._ask_window = window
        self._slots = len(executor.backend.slots())
        self._window = max(window(), 1)
        self._on_done = on_done
        self._progress = executor.progress(desc, len(calls), done)
        self._answers: queue.SimpleQueue[tuple[int, Future[bytes]]] = queue.SimpleQueue()
        self._results: list[Any] = [None] * len(calls)
        self._repeats: dict[int, int] = {}
        self._out: dict[int, float] = {}
        """When each task that is under way was handed out, oldest first."""
        self._lost: set[int] = set()
        self._longest = 0.0
        self._now = self._looked = self._heard = time.monotonic()
        self._deaths: dict[str, set[int]] = {}
        self._error: BaseException | None = None
        self._keep_going = keep_going
        self._failures: dict[int, BaseException] = {}

    def results(self) -> list[Any]:
        """Run everything."""
        waiting = iter(range(len(self._calls)))
        try:
            for number in itertools.islice(waiting, self._window):
                self._hand_out(number)
            while self._out:
                with contextlib.suppress(queue.Empty):
                    self._take(*self._answers.get(timeout=1.0))
                self._watch_over()
                if self._error is None:
                    for number in itertools.islice(waiting, max(self._window - len(self._out), 0)):
                        self._hand_out(number)
        except BaseException as error:
            if not isinstance(error, Exception):
                self._executor.backend.stop(now=True)
                raise
            self._drain()
            raise
        if self._error is not None:
            raise self._error
        self._raise_failures()
        return self._results

    def _hand_out(self, number: int) -> None:
        message = pack(self._calls[number])
        self._out[number] = self._now
        future = self._executor.backend.submit(message)
        future.add_done_callback(lambda done: self._answers.put((number, done)))

    def _watch_over(self) -> None:
        """Be neither silent for long, nor beyond the memory limit."""
        self._progress.heartbeat()
        if self._error is None and (used := self._executor.over_limit()):
            running = ", ".join(map(str, sorted(self._out))) or "none"
            self._error = MemoryBudgetError(
                f"{self._desc}: the run used {gib(used)}, more than it may; tasks under way: {running} "
                f"of {len(self._calls)}; choose smaller blocks, fewer workers, or raise --max-memory"
            )
            # before the system ends something else; threads cannot be ended, their tasks are waited for
            self._executor.backend.stop(now=True)
        self._now = time.monotonic()
        if self._now - self._looked >= LOOK_SECONDS and self._error is None:
            self._looked = self._now
            self._count_slots()
            self._guard(self._now)

    def _count_slots(self) -> None:
        """Hand out more tasks at once when there are more slots than before, and fewer when some have gone."""
        slots = len(self._executor.backend.slots())
        if slots != self._slots:
            self._slots = slots
            self._window = max(self._ask_window(), 1)

    def _guard(self, now: float) -> None:
        """Send tasks once more from which nothing is heard, and give up when that does not help.

        A task writes chunks of its own only, and the same values each time: one that runs twice does no harm.
        """
        patience = self._executor.backend.patience
        if not patience or not self._slots or not self._out:
            self._heard = now
            return
        patience = max(patience, 10 * self._longest)
        if now - self._heard < patience:
            return
        self._heard = now
        silent = sorted(self._out)
        nodes = ", ".join(sorted({slot.node for slot in self._executor.backend.slots()}))
        text = f"{self._desc}: no answer for {patience:.0f} s from {nodes}; tasks under way: "
        text += ", ".join(map(str, silent))
        if self._lost.intersection(silent):
            self._error = WorkerDiedError(f"{text} of {len(self._calls)}; they were sent twice")
            self._executor.backend.stop(now=True)
            return
        log.warning("%s; the oldest are sent once more", text)
        for number in list(self._out)[: self._slots]:
            self._lost.add(number)
            self._hand_out(number)

    def _take(self, number: int, future: Future[bytes]) -> None:
        sent = self._out.pop(number, None)
        if sent is None:
            return  # it was sent twice, and the other answer has come already
        self._heard = self._now
        if self._now - sent > self._longest:
            self._longest = self._now - sent
        outcome = Outcome.unpack(future.result())
        if outcome.kind == "ok":
            self._results[number] = outcome.value
            self._progress.advance()
            if self._on_done is not None:
                self._on_done(number, outcome.value)
            return
        if self._error is not None:
            return
        backend = self._executor.backend
        if node := getattr(outcome.value, "node", ""):
            self._deaths.setdefault(node, set()).add(number)
        # a dropped task has not begun, so handing it out once more is no repeat of anything
        allowed = {"died": backend.repeats, "dropped": backend.repeats + 1}.get(outcome.kind, 0)
        tried = self._repeats.get(number, 0)
        if tried < allowed:
            self._repeats[number] = tried + 1
            log.warning("%s: task %d is tried again: %s", self._desc, number, outcome.value)
            backend.start()
            self._hand_out(number)
        elif self._keep_going and outcome.kind == "raised" and not isinstance(outcome.value, _OF_ALL):
            self._failures[number] = self._explain(number, outcome)
            log.warning("%s: task %d failed, the others go on: %s", self._desc, number, outcome.value)
        else:
            self._error = self._explain(number, outcome)

    def _raise_failures(self) -> None:
        """Raise the one error of a map that went on after it, or all of them together."""
        if len(self._failures) == 1:
            raise next(iter(self._failures.values()))
        if self._failures:
            texts = {n: f"{self._calls[n]}: {type(e).__name__}: {e}" for n, e in sorted(self._failures.items())}
            raise with_note(TasksError(texts, len(self._calls)), "", self._desc)

    def _explain(self, number: int, outcome: Outcome) -> BaseException:
        task = f"task {number} of {len(self._calls)}: {self._calls[number]}"
        error = outcome.value
        if isinstance(error, WorkerDiedError):
            sick = sorted(node for node, tasks in self._deaths.items() if len(tasks) >= SICK)
            advised = self._executor.death_advice(error, f"{self._desc}, {task}")
            if sick:
                advised.add_note(
                    f"workers of {SICK} tasks or more died on {', '.join(sick)}; leave it out, or have it seen to"
                )
            return advised
        if isinstance(error, ImportError) and self._executor.is_elsewhere():
            error.add_note(
                "workers elsewhere import the functions of tasks by name: install their package in the environment of "
                "the nodes, or put its folder into PYTHONPATH there"
            )
        return with_note(error, outcome.traceback, f"{self._desc}, {task}")

    def _drain(self) -> None:
        """Wait for the tasks that are still running, so that the next map finds no answers of this one."""
        while self._out:
            number, _ = self._answers.get()
            self._out.pop(number, None)


def with_note(error: BaseException, trace: str, where: str = "") -> BaseException:
    """Return an exception that also says where it happened, with the worker's traceback."""
    if where:
        error.add_note(f"in {where}")
    if trace:
        error.add_note(f"the worker's traceback:\n{trace}")
    return error
