"""What ``moraine status`` tells of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moraine_core.pipeline.job import make_jobs
from moraine_core.pipeline.plan import Action, make_plan, select
from moraine_core.pipeline.state import Record, State, is_alive

if TYPE_CHECKING:
    from moraine_core.pipeline.file import Pipeline
    from moraine_core.plugins import PluginHost

TOLD = ("seconds", "finished", "error", "log", "outputs", "quicklooks")
"""Fields of a record that the status of a step repeats."""


def status(pipeline: Pipeline, host: PluginHost) -> dict[str, Any]:
    """Return the state of every step: ``pipeline``, ``workdir`` and ``steps``.

    A step is ``pending``, ``running``, ``interrupted``, ``failed``, ``done``, or ``outdated, will run (reason)``.

    Parameters
    ----------
    pipeline
        The steps.
    host
        Knows their commands.

    Raises
    ------
    UsageError
        A step does not fit its command.
    """
    jobs = make_jobs(pipeline, host)
    records = State(pipeline).records
    plan = make_plan(jobs, records, pipeline.workdir, select(pipeline))
    steps = []
    for job, action in zip(jobs, plan, strict=True):
        record = records.get(job.name)
        told = {key: record[key] for key in TOLD if key in record} if record is not None else {}
        steps.append({"name": job.name, "command": job.command.name, "status": _status(record, action), **told})
    return {"pipeline": pipeline.file, "workdir": pipeline.workdir, "steps": steps}


def _status(record: Record | None, action: Action) -> str:
    if record is None:
        return "pending"
    if record["status"] == "running":
        return "running" if is_alive(record["process"]) else "interrupted"
    if record["status"] == "done" and action.runs:
        return f"outdated, will run ({action.reason})"
    return str(record["status"])
