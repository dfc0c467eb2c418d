"""Jobs: the steps of a pipeline fitted to the commands they run; all that does not fit is told at once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moraine_core.arguments import convert
from moraine_core.declaration import Command, Input, Output, unknown_argument
from moraine_core.errors import MoraineError, ProblemsError, UsageError, raise_problems
from moraine_core.journal import digest
from moraine_core.options import RUN_NAMES, WORKER_NAMES, RunOptions, Workers
from moraine_core.pipeline.file import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moraine_core.pipeline.file import Pipeline, Step
    from moraine_core.plugins import PluginHost


@dataclass(frozen=True)
class Job:
    """A step that is ready to run.

    Attributes
    ----------
    step
        As in the file.
    where
        File and step, for messages.
    command
        What it runs.
    arguments
        As written, with variables put in, defaults and further keywords added.
    workers
        Who runs its tasks.
    options
        How it is run: the folder of temporary arrays, the compressor.
    inputs, outputs
        Paths among the arguments that are read, argument files such as image pairs included, and that are written.
    """

    step: Step
    where: str
    command: Command
    arguments: Mapping[str, Any]
    workers: Workers
    options: RunOptions
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the step."""
        return self.step.name

    @property
    def hash(self) -> str:
        """Digest of all that decides the result; who runs the tasks does not."""
        return digest([self.command.name, self.arguments])


def make_jobs(pipeline: Pipeline, host: PluginHost) -> list[Job]:
    """Return the jobs of a pipeline, in its order.

    Raises
    ------
    UsageError
        A step does not fit its command.
    ProblemsError
        Several things are wrong, in one step or in many.
    """
    problems: list[Exception] = []
    jobs, commands = [], []
    for step in pipeline.steps:
        where = f"{pipeline.file}: step {step.name}"
        try:
            command = host.command(step.command)
            commands.append(command)
            jobs.append(_make_job(pipeline, step, command, where))
        except MoraineError as error:
            found = error.problems if isinstance(error, ProblemsError) else [error]
            problems += [UsageError(f"{where}: {problem}") for problem in found]
    if len(commands) == len(pipeline.steps):
        problems += _dead_defaults(pipeline, commands)
    problems += [UsageError(problem) for problem in _order_problems(jobs, pipeline.workdir)]
    raise_problems(problems)
    return jobs


def _make_job(pipeline: Pipeline, step: Step, command: Command, where: str) -> Job:
    names = _names(command)
    defaults = {name: value for name, value in pipeline.defaults.items() if name in names}
    arguments = {**defaults, **step.args, **step.kw}
    options = _options(pipeline, step, command)
    files = command.files(arguments)
    problems = [
        *_keyword_problems(step, command, names),
        *_value_problems(command, {name: arguments[name] for name in arguments if name not in files}),
        *_option_problems(step, command, options),
    ]
    missing = [p.name for p in command.parameters if p.required and p.name not in arguments]
    if missing:
        problems.append(f"{command.name}: missing {', '.join(missing)}")
    raise_problems([UsageError(problem) for problem in problems])
    bound = command.bind(arguments, late=False)
    inputs = [path for paths in command.paths(bound, Input).values() for path in paths]
    outputs = [path for paths in command.paths(bound, Output).values() for path in paths]
    return Job(
        step=step,
        where=where,
        command=command,
        arguments=arguments,
        workers=Workers(**{name: value for name, value in options.items() if name in WORKER_NAMES}),
        options=RunOptions(**{name: value for name, value in options.items() if name in RUN_NAMES}),
        inputs=(*inputs, *files.values()),
        outputs=tuple(outputs),
    )


def _names(command: Command) -> list[str]:
    return [parameter.name for parameter in command.parameters if not parameter.is_extra]


def _options(pipeline: Pipeline, step: Step, command: Command) -> dict[str, Any]:
    """Return the worker options of a step: its own, and the defaults that mean something for its command."""
    options = {**pipeline.options, **step.options}
    if "cuda" not in step.options and not command.gpu:
        options.pop("cuda", None)
    if "gpus" not in step.options and not options.get("cuda"):
        options.pop("gpus", None)
    return options


def _keyword_problems(step: Step, command: Command, names: Sequence[str]) -> Iterator[str]:
    for name in step.args:
        if name not in names:
            hint = "; further keywords belong into [step.kw]" if command.extra else ""
            yield unknown_argument(command.name, name, [*names, *OPTIONS]) + hint
    for name in step.kw:
        if command.extra is None:
            yield f"{command.name} takes no further keywords; found kw {name}"
        elif name in names:
            yield f"{command.name}: kw {name} is a parameter of its own; write it beside name and run"


def _value_problems(command: Command, arguments: Mapping[str, Any]) -> Iterator[str]:
    for name, value in arguments.items():
        parameter = command.parameter(name)
        if parameter is not None:
            try:
                convert(command.name, name, parameter.kind, value)
            except UsageError as error:
                yield str(error)


def _option_problems(step: Step, command: Command, options: Mapping[str, Any]) -> Iterator[str]:
    if step.options.get("cuda") and not command.gpu:
        yield f"{command.name} has no GPU kernel; leave out cuda"
    if "gpus" in step.options and not options.get("cuda"):
        yield f"{command.name}: gpus is given without cuda"
    for name in ("n_workers", "threads_per_worker"):
        if options.get(name, 1) < 1:
            yield f"{command.name}: {name} is {options[name]}; expected at least 1"


def _dead_defaults(pipeline: Pipeline, commands: Sequence[Command]) -> Iterator[UsageError]:
    """Yield a problem for each default that no step takes: it would be accepted and change nothing."""
    names = list(dict.fromkeys(name for command in commands for name in _names(command)))
    for name in pipeline.defaults:
        if name not in names:
            sentence = unknown_argument("[defaults]", name, [*names, *OPTIONS])
            yield UsageError(f"{pipeline.file}: {sentence}; no step takes it")


def _order_problems(jobs: Sequence[Job], workdir: str) -> Iterator[str]:
    """Yield what can be told of steps that write the same, or read what only a later step writes."""
    writers: list[tuple[str, int]] = []
    for number, job in enumerate(jobs):
        for path in job.outputs:
            place = located(workdir, path)
            for other, writer in writers:
                if writer != number and (is_within(place, other) or is_within(other, place)):
                    yield f"{job.where}: {path} is, is in, or holds what step {jobs[writer].name} writes"
            writers.append((place, number))
    for number, job in enumerate(jobs):
        for path in job.inputs:
            found = [writer for other, writer in writers if is_within(located(workdir, path), other)]
            if found and min(found) > number:
                yield f"{job.where}: {path} is written by the later step {jobs[found[0]].name}; put that one before"


def located(workdir: str, path: str) -> str:
    """Return the true absolute path of one that is relative to the work directory."""
    return os.path.realpath(os.path.join(workdir, path))


def is_within(path: str, other: str) -> bool:
    """Tell whether an absolute path is another, or lies inside it."""
    return path == other or path.startswith(other.rstrip(os.sep) + os.sep)
