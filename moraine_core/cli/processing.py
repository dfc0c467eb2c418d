"""A processing command of the line: host options apart from arguments, run, record, summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moraine_core.arguments import convert
from moraine_core.cli.result import Result
from moraine_core.declaration import Command, parameters_of
from moraine_core.executor.memory import gib
from moraine_core.options import RUN_NAMES, WORKER_NAMES, RunOptions, Workers
from moraine_core.run import Record, run_command
from moraine_core.summary import describe, summarize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moraine_core.plugins import PluginHost


def host_options(command: Command, values: Mapping[str, Any]) -> tuple[Workers, RunOptions, dict[str, Any]]:
    """Return workers and run options out of named values, and the arguments that are the command's own."""
    parsed: dict[str, Any] = {}
    for parameter in (*parameters_of(Workers), *parameters_of(RunOptions)):
        if parameter.name in values and not command.takes(parameter.name):
            parsed[parameter.name] = convert(command.name, parameter.name, parameter.kind, values[parameter.name])
    workers = Workers(**{name: value for name, value in parsed.items() if name in WORKER_NAMES})
    options = RunOptions(**{name: value for name, value in parsed.items() if name in RUN_NAMES})
    return workers, options, {name: value for name, value in values.items() if name not in parsed}


def run_processing(command: Command, host: PluginHost, values: Mapping[str, Any]) -> Result:
    """Run a command and return its result for the line."""
    workers, options, arguments = host_options(command, values)
    record = run_command(command, arguments, workers, options, host=host)
    if options.dry_run:
        fields = _fields(record, [], [])
        return Result(_plan_text(command, record), {**fields, "plan": record.plans})
    summaries = [summarize(path, host) for path in record.outputs]
    lines = [f"{command.name} finished in {record.seconds:.1f} s", *map(describe, summaries)]
    return Result("\n".join(lines), _fields(record, record.outputs, summaries))


def _fields(record: Record, outputs: list[str], summaries: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "command": record.command,
        "seconds": round(record.seconds, 1),
        "outputs": outputs,
        "inputs": record.inputs,
        "summaries": summaries,
    }


def _plan_text(command: Command, record: Record) -> str:
    """Return what would be done, for people."""
    lines = [f"{command.name} would write " + ", ".join(record.outputs)]
    for plan in record.plans:
        lines += [
            f"  {layout['path']}: {tuple(layout['shape'])} {layout['dtype']}, chunks {tuple(layout['chunks'])}, "
            f"{gib(layout['bytes'])}"
            for layout in plan["outputs"]
        ]
        lines.append(f"  tasks: {plan['tasks']}, of at most {gib(plan['task_bytes'])} memory each")
    lines.append("nothing was done (--dry-run)")
    return "\n".join(lines)
