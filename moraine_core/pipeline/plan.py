"""What of a pipeline has to run, and why: by the content of arguments and the stamps of inputs, never by time alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moraine_core import store
from moraine_core.errors import UsageError, raise_problems
from moraine_core.pipeline.file import one_of
from moraine_core.pipeline.job import is_within, located

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moraine_core.pipeline.file import Pipeline
    from moraine_core.pipeline.job import Job
    from moraine_core.pipeline.state import Record


@dataclass(frozen=True)
class Action:
    """What is done with a step.

    Attributes
    ----------
    runs
        It runs; if not, it is skipped.
    reason
        Why.
    """

    runs: bool
    reason: str

    def __str__(self) -> str:
        return f"{'run' if self.runs else 'skip'} ({self.reason})"


DONE = Action(runs=False, reason="done")
NOT_SELECTED = Action(runs=False, reason="not selected")
FORCED = Action(runs=True, reason="forced")


@dataclass(frozen=True)
class Selection:
    """Which steps are looked at, and which of them run in any case.

    Attributes
    ----------
    selected, forced
        Names of steps.
    """

    selected: frozenset[str]
    forced: frozenset[str] = frozenset()


def select(pipeline: Pipeline, only: Sequence[str] = (), start: str | None = None, *, force: bool = False) -> Selection:
    """Return the selection that a user asked for.

    Parameters
    ----------
    pipeline
        The steps.
    only
        Just these; all where empty.
    start
        This one and all later ones are forced.
    force
        All are forced.

    Raises
    ------
    UsageError
        There is no step of a name.
    """
    names = [step.name for step in pipeline.steps]
    unknown = [name for name in (*only, *([start] if start is not None else [])) if name not in names]
    raise_problems([UsageError(f"{pipeline.file}: no step {name}; {one_of(name, names)}") for name in unknown])
    forced = names if force else names[names.index(start) :] if start is not None else []
    return Selection(frozenset(only or names), frozenset(forced))


def make_plan(jobs: Sequence[Job], records: Mapping[str, Record], workdir: str, selection: Selection) -> list[Action]:
    """Return what is done with each job, in order."""
    actions: list[Action] = []
    coming: list[str] = []
    for job in jobs:
        actions.append(decide(job, records.get(job.name), workdir, selection, coming))
        if actions[-1].runs:
            coming += [located(workdir, path) for path in job.outputs]
    return actions


def decide(job: Job, record: Record | None, workdir: str, selection: Selection, coming: Iterable[str] = ()) -> Action:
    """Return what is done with one job.

    Parameters
    ----------
    job, record
        The step, and what is remembered of its last run.
    workdir
        What its paths are relative to.
    selection
        What the user asked for.
    coming
        True absolute paths that earlier steps of the same run will write.
    """
    if job.name not in selection.selected:
        return NOT_SELECTED
    if job.name in selection.forced:
        return FORCED
    reason = _outdated(job, record, workdir, list(coming))
    return Action(runs=True, reason=reason) if reason else DONE


def _outdated(job: Job, record: Record | None, workdir: str, coming: Sequence[str]) -> str:
    """Return why a step is not done; empty if it is."""
    if record is not None and record["status"] == "failed":
        return "previous run failed"
    if record is None or record["status"] != "done":
        return "not run yet"
    if record["hash"] != job.hash:
        return "arguments changed"
    for path in record["outputs"]:
        if not os.path.exists(os.path.join(workdir, path)):
            return f"output missing: {path}"
    for path, stamp in record["inputs"].items():
        place = located(workdir, path)
        if any(is_within(place, other) or is_within(other, place) for other in coming):
            return f"input will change: {path}"
        if stamp_of(place) != stamp:
            return f"input changed: {path}"
    return ""


def stamp_of(path: str) -> int | None:
    """Return the modification stamp of a path in nanoseconds; None where there is nothing."""
    return store.stamp(path) if os.path.exists(path) else None
