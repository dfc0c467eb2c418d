"""The command group: built-ins by typer's own means, plugin commands made from their declarations when called."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from moraine_core.cli import builtins
from moraine_core.cli.output import GLOBAL_HELP, VERSION_HELP, stdout_to_stderr
from moraine_core.command import Command, Parameter, parameters_of
from moraine_core.errors import PluginError, UsageError
from moraine_core.options import RUN_NAMES, WORKER_NAMES, RunOptions, Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moraine_core.cli.result import Result
    from moraine_core.plugins import PluginHost

HOST_PARAMETERS = (*parameters_of(Workers), *parameters_of(RunOptions))


def make_app(host: PluginHost) -> typer.Typer:
    """Return the typer application of all commands of a plugin host."""

    class Group(MoraineGroup):
        plugins = host

    app = typer.Typer(
        cls=Group,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="InSAR post-processing: from stacks of radar images to motion, one command a step.",
    )
    app.callback()(lambda: None)
    for function in builtins.FUNCTIONS:
        app.command(function.__name__.rstrip("_"), help=inspect.getdoc(function))(bound(function, host))
    return app


def bound(function: Callable[..., Any], host: PluginHost) -> Callable[..., Any]:
    """Return a built-in without its first parameter, the plugin host, with all that is printed on standard error."""

    def call(**values: Any) -> Any:
        with stdout_to_stderr():
            return function(host, **values)

    signature = inspect.signature(function, eval_str=True)
    parameters = list(signature.parameters.values())[1:]
    return _with_signature(call, parameters)


class MoraineGroup(TyperGroup):
    """Finds commands among built-ins and plugins, and lets words be written as people write them."""

    plugins: PluginHost

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names."""
        return sorted({*super().list_commands(ctx), *self.plugins.names()})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; that of a plugin is made now."""
        name = cmd_name.replace("_", "-")
        return super().get_command(ctx, name) or typer_command(self.plugins.command(name), self.plugins)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names, and the other words in one spelling."""
        command = self.get_command(ctx, args[0])
        return command.name, command, spelled(args[1:], command.params)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List all commands by family, those that cannot be loaded with the reason."""
        own = [(name, (self.commands[name].help or "").partition("\n")[0]) for name in sorted(self.commands)]
        families: dict[str, list[tuple[str, str]]] = {"built in": own}
        for name in self.plugins.names():
            try:
                command = self.plugins.command(name)
                families.setdefault(command.family, []).append((name, command.summary))
            except PluginError as error:
                families.setdefault("not usable", []).append((name, str(error)))
        for family in ["built in", *sorted(set(families) - {"built in", "not usable"}), "not usable"]:
            if family in families:
                with formatter.section(family):
                    formatter.write_dl(families[family])
        with formatter.section("instead of a command"):
            formatter.write_dl(VERSION_HELP)
        with formatter.section("anywhere on the line"):
            formatter.write_dl(GLOBAL_HELP)


def spelled(words: Sequence[str], options: Sequence[Any]) -> list[str]:
    """Return words in the spelling that typer knows.

    ``--is_shp_dir`` becomes ``--is-shp-dir``; an option of several values may have them in one go: ``--chunks 10 20``,
    ``--ras a.zarr b.zarr``, negative numbers included.
    """
    several = {name: option.metavar for option in options if _takes_several(option) for name in option.opts}
    done: list[str] = []
    open_option, taken = "", 0
    for position, word in enumerate(words):
        if word == "--":
            return [*done, *words[position:]]
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            name = name.replace("_", "-")
            done.append(name + equals + value)
            open_option, taken = (name, 0) if name in several and not equals else ("", 0)
        elif open_option and _continues(word, several[open_option], taken):
            # a negative number as a word of its own would be taken for an option
            if taken:
                done.append(f"{open_option}={word}")
            else:
                done[-1] += f"={word}"
            taken += 1
        elif word.startswith("-") and _is_number(word) and done and done[-1].startswith("--") and "=" not in done[-1]:
            done[-1] += f"={word}"
        else:
            done.append(word)
            open_option = ""
    return done


def _takes_several(option: Any) -> bool:
    """Tell whether an option may have several values behind it; others are repeated instead."""
    metavar = getattr(option, "metavar", None) or ""
    return bool(getattr(option, "multiple", False)) and (metavar.endswith("...") or " " in metavar)


def _continues(word: str, metavar: str, taken: int) -> bool:
    """Tell whether a word is one more value of an option; behind numbers, the first word that is none is not."""
    if word.startswith("-"):
        return _is_number(word)
    return not taken or not metavar.startswith(("INT", "NUMBER")) or word[:1] in "+.0123456789"


def _is_number(word: str) -> bool:
    return word[1:2].isdigit() or word[1:2] == "."


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
    single.command(command.name, help=text, epilog=epilog, context_settings=settings)(_with_signature(call, parameters))
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


def _with_signature(call: Callable[..., Any], parameters: Sequence[inspect.Parameter]) -> Callable[..., Any]:
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    return call


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
