"""Commands of plugins on the line: typer's options made from a declaration, and the call that they end in."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moraine_core.cli.group import with_signature
from moraine_core.cli.output import GLOBAL_HELP, stdout_to_stderr
from moraine_core.declaration import Command, Parameter, parameters_of
from moraine_core.errors import UsageError
from moraine_core.options import RUN_NAMES, WORKER_NAMES, RunOptions, Workers

if TYPE_CHECKING:
    from typer.core import TyperCommand

    from moraine_core.cli.result import Result
    from moraine_core.plugins import PluginHost

HOST_PARAMETERS = (*parameters_of(Workers), *parameters_of(RunOptions))


def typer_command(command: Command, host: PluginHost) -> TyperCommand:
    """Return the typer command that a declaration means."""
    parameters = [_option(p) for p in command.parameters] + [
        _option(p) for p in HOST_PARAMETERS if not command.takes(p.name) and _applies(p, command)
    ]

    def call(**values: Any) -> Result:
        return _run(command, host, {name: value for name, value in values.items() if value is not None})

    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    # the blank lines and examples of a docstring stay as they are
    text = "\n\n".join("\b\n" + part for part in command.help.split("\n\n"))
    settings = {"help_option_names": ["-h", "--help"]}
    epilog = "Anywhere on the line: " + ", ".join(name for name, _ in GLOBAL_HELP)
    single.command(command.name, help=text, epilog=epilog, context_settings=settings)(with_signature(call, parameters))
    made: TyperCommand = typer.main.get_command(single)  # type: ignore[assignment]
    return made


def _applies(parameter: Parameter, command: Command) -> bool:
    """Tell whether a host option means something for a command."""
    if not command.chunked:
        return parameter.name == "dry_run"
    return command.gpu or parameter.name not in ("cuda", "gpus")


def _option(parameter: Parameter) -> inspect.Parameter:
    """Return a declared parameter as typer's: text for its kind to convert, never required (we name all at once)."""
    help_text = parameter.full_help
    if parameter.required:
        help_text += " [required]"
    elif parameter.default not in (None, False, ()) and not parameter.is_extra:
        default = parameter.default
        help_text += f" [default: {' '.join(map(str, default)) if isinstance(default, tuple) else default}]"
    annotation: Any
    if parameter.is_extra:
        option = typer.Option("--kw", help=f"{help_text}, by name (may be repeated)", metavar="NAME=VALUE")
        annotation = list[str] | None
    elif parameter.kind.flag:
        option = typer.Option(f"{parameter.option}/--no-{parameter.option[2:]}", help=help_text, show_default=False)
        annotation = bool | None
    else:
        option = typer.Option(parameter.option, help=help_text, metavar=parameter.kind.metavar, show_default=False)
        annotation = list[str] | None if parameter.kind.many else str | None
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[annotation, option]
    )


def _run(command: Command, host: PluginHost, values: dict[str, Any]) -> Result:
    """Run a plugin's command with what the line gave."""
    from moraine_core.cli.processing import run_processing

    extra = command.extra
    for pair in values.pop(extra.name, []) if extra is not None else []:
        name, equals, value = pair.partition("=")
        name = name.replace("-", "_")
        if not equals or command.takes(name) or name in WORKER_NAMES | RUN_NAMES or name in values:
            msg = f"{command.name}: --kw {pair}; expected NAME=VALUE with a name that is not an option's, given once"
            raise UsageError(msg)
        values[name] = value
    with stdout_to_stderr():
        return run_processing(command, host, values)
