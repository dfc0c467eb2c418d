"""Running a pipeline: step after step in the work directory, each remembered as soon as it has ended."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core import store
from moraine_core.device import visible_gpus
from moraine_core.errors import MoraineError, ProblemsError, UsageError, raise_problems
from moraine_core.pipeline.job import Job, make_jobs
from moraine_core.pipeline.log import step_log
from moraine_core.pipeline.plan import Action, decide, make_plan, select
from moraine_core.pipeline.state import Record, State, this_process
from moraine_core.quicklook import draw, is_pyramid
from moraine_core.run import ExecutorPool, check_command, run_command
from moraine_core.summary import describe, summarize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moraine_core.pipeline.file import Pipeline
    from moraine_core.plan import Array
    from moraine_core.plugins import PluginHost

log = logging.getLogger("moraine")


@dataclass
class RunResult:
    """What came of running a pipeline.

    Attributes
    ----------
    pipeline, workdir
        Absolute paths of the file and of the work directory.
    plan
        ``name``, ``command`` and ``action`` of every step.
    steps
        Records of the steps that ran.
    ok
        None of them failed.
    """

    pipeline: str
    workdir: str
    plan: list[dict[str, str]]
    steps: list[Record] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether no step failed."""
        return all(step["status"] == "done" for step in self.steps)

    @property
    def fields(self) -> dict[str, Any]:
        """The result as plain data."""
        return {"pipeline": self.pipeline, "workdir": self.workdir, "plan": self.plan, "steps": self.steps}

    @property
    def text(self) -> str:
        """The result for people."""
        width = max((len(step["name"]) for step in self.plan), default=0)
        lines = [f"{step['name']:<{width}}  {step['command']}: {step['action']}" for step in self.plan]
        for step in self.steps:
            if step["status"] == "failed":
                lines.append(f"{step['name']} failed: {step['error']}; its log is {step['log']}")
            else:
                lines.append(f"{step['name']} finished in {step['seconds']:.1f} s")
                lines += [f"  {describe(summary)}" for summary in step["summaries"]]
        return "\n".join(lines)


def run(
    pipeline: Pipeline,
    host: PluginHost,
    *,
    only: Sequence[str] = (),
    start: str | None = None,
    force: bool = False,
    dry_run: bool = False,
    check: bool = False,
    quicklook: bool = True,
    fresh: bool = False,
    executor: str | None = None,
) -> RunResult:
    """Run the steps of a pipeline that are not done; the first that fails is the last that runs.

    Parameters
    ----------
    pipeline
        The steps.
    host
        Knows their commands.
    only
        Just these steps.
    start
        This step and all later ones run in any case.
    force
        All steps run in any case.
    dry_run
        Say what would run and why, and do nothing.
    check
        Check each step's inputs, with what earlier steps will have written, and do nothing else.
    quicklook
        Draw pictures of pyramids.
    fresh
        Interrupted steps start over instead of continuing.
    executor
        A named executor for all steps, whatever the file says.

    Returns
    -------
    RunResult
        With the record of a failed step, if one failed.

    Raises
    ------
    UsageError
        A step does not fit its command, or there is no step of a name.
    BusyError
        The pipeline is being run by another process.
    ProblemsError
        Several things are wrong.
    """
    jobs = make_jobs(pipeline, host)
    if executor is not None:
        jobs = [replace(job, workers=replace(job.workers, executor=executor)) for job in jobs]
    selection = select(pipeline, only, start, force=force)
    if check:
        _check([job for job in jobs if job.name in selection.selected], pipeline)
    if check or dry_run:
        return _planned(pipeline, jobs, make_plan(jobs, State(pipeline).records, pipeline.workdir, selection))
    Path(pipeline.workdir).mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(store.exclusive(State(pipeline).lock, f"pipeline {pipeline.file}"))
        stack.enter_context(contextlib.chdir(pipeline.workdir))
        state = State(pipeline)
        plan = make_plan(jobs, state.records, pipeline.workdir, selection)
        raise_problems(list(_device_problems([job for job, a in zip(jobs, plan, strict=True) if a.runs])))
        result = _planned(pipeline, jobs, plan)
        steps = _Steps(pipeline, host, state, stack.enter_context(ExecutorPool()), quicklook=quicklook, fresh=fresh)
        for number, job in enumerate(jobs):
            # an earlier step, or anybody else, may have rewritten an input since the plan was made
            action = decide(job, state.records.get(job.name), pipeline.workdir, selection)
            if action.runs != plan[number].runs:
                result.plan[number]["action"] = str(action)
            log.info("step %d of %d, %s: %s", number + 1, len(jobs), job.name, result.plan[number]["action"])
            if action.runs:
                result.steps.append(steps.run(job))
                if not result.ok:
                    break
    return result


def _planned(pipeline: Pipeline, jobs: Sequence[Job], plan: Sequence[Action]) -> RunResult:
    """Return the result of a run in which nothing has run yet."""
    rows = [
        {"name": job.name, "command": job.command.name, "action": str(action)}
        for job, action in zip(jobs, plan, strict=True)
    ]
    return RunResult(pipeline.file, pipeline.workdir, rows)


# ------------------------------------------------------------------------------------------------- checking


def _check(jobs: Sequence[Job], pipeline: Pipeline) -> None:
    """Check all jobs, each with what is known of the outputs of those before; raise all problems at once."""
    if not os.path.isdir(pipeline.workdir):
        msg = f"{pipeline.file}: work directory {pipeline.workdir} does not exist"
        raise UsageError(msg)
    problems = list(_device_problems(jobs))
    expected: dict[str, Array | None] = {}
    with contextlib.chdir(pipeline.workdir):
        for job in jobs:
            # what a step with a problem would write is not known, but later steps need not complain of it
            known: dict[str, Array | None] = {os.path.abspath(path): None for path in job.outputs}
            try:
                known |= check_command(job.command, job.arguments, job.workers, expected=expected)
            except (MoraineError, OSError) as error:
                problems += _in_step(job, error)
            expected |= known
    raise_problems(problems)


def _device_problems(jobs: Sequence[Job]) -> Iterator[Exception]:
    """Yield a problem for each job that needs GPUs which are not there: better now than after the steps before."""
    for job in jobs:
        if job.workers.cuda and job.workers.executor is None:
            try:
                visible_gpus(job.workers.gpus)
            except MoraineError as error:
                yield from _in_step(job, error)


def _in_step(job: Job, error: Exception) -> list[Exception]:
    """Return an error's problems as ones that name file and step."""
    problems = error.problems if isinstance(error, ProblemsError) else [error]
    return [type(problem)(f"{job.where}: {problem}") for problem in problems]


# -------------------------------------------------------------------------------------------------- running


class _Steps:
    """Runs single steps and remembers what came of them."""

    def __init__(
        self, pipeline: Pipeline, host: PluginHost, state: State, pool: ExecutorPool, *, quicklook: bool, fresh: bool
    ) -> None:
        self._pipeline = pipeline
        self._host = host
        self._state = state
        self._pool = pool
        self._quicklook = quicklook
        self._fresh = fresh

    def run(self, job: Job) -> Record:
        """Run one step and return its record."""
        path = self._state.log(job.name)
        record: Record = {
            "name": job.name,
            "command": job.command.name,
            "hash": job.hash,
            "args": dict(job.arguments),
            "started": _now(),
            "log": self._relative(path),
        }
        self._state.put({**record, "status": "running", "process": this_process()})
        try:
            with step_log(path, job.command.name):
                record |= self._outcome(job)
        except Exception as error:  # noqa: BLE001 - whatever ends a step is told in its record
            record |= {"status": "failed", "error": f"{type(error).__name__}: {error}"}
            log.error("step %s failed: %s", job.name, record["error"])  # noqa: TRY400 - the traceback is in the step's log
        except BaseException:
            self._state.put({**record, "status": "interrupted"})
            raise
        record["finished"] = _now()
        self._state.put(record)
        return record

    def _outcome(self, job: Job) -> Record:
        """Run the command of a step; return the fields of a step that is done."""
        options = replace(job.options, fresh=self._fresh)
        done = run_command(job.command, job.arguments, job.workers, options, pool=self._pool, host=self._host)
        fields: Record = {
            "status": "done",
            "seconds": round(done.seconds, 1),
            "outputs": done.outputs,
            "inputs": done.inputs,
            "summaries": [summarize(path, self._host) for path in done.outputs],
        }
        wanted = self._pipeline.quicklook if job.step.quicklook is None else job.step.quicklook
        if self._quicklook and wanted and (pictures := self._pictures(job, done.outputs)):
            fields["quicklooks"] = pictures
        return fields

    def _pictures(self, job: Job, outputs: Sequence[str]) -> list[str]:
        """Draw the pyramids among a step's outputs; one that cannot be drawn is only warned of."""
        drawn = []
        for output in outputs:
            try:
                if is_pyramid(output):
                    png = self._state.quicklook(job.name, output)
                    draw(self._host, output, png, job.step.picture)
                    drawn.append(self._relative(png))
            except Exception as error:  # noqa: BLE001 - a picture is a courtesy
                log.warning("no quicklook of %s: %s: %s", output, type(error).__name__, error)
        return drawn

    def _relative(self, path: Path) -> str:
        return os.path.relpath(path, self._pipeline.workdir)


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")
