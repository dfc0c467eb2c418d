"""The command group: built-ins by typer's own means, those of plugins found when they are called."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from moraine_core.cli import builtins
from moraine_core.cli.output import GLOBAL_HELP, VERSION_HELP, stdout_to_stderr

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moraine_core.plugins import PluginHost


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
    return with_signature(call, parameters)


class MoraineGroup(TyperGroup):
    """Finds commands among built-ins and plugins, and lets words be written as people write them."""

    plugins: PluginHost

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names."""
        return sorted({*super().list_commands(ctx), *self.plugins.names()})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; that of a plugin is made now."""
        name = cmd_name.replace("_", "-")
        own = super().get_command(ctx, name)
        if own is not None:
            return own
        from moraine_core.cli.declared import typer_command

        return typer_command(self.plugins.command(name), self.plugins)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names, and the other words in one spelling."""
        command = self.get_command(ctx, args[0])
        return command.name, command, spelled(args[1:], command.params)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List all commands by family, those that cannot be loaded with the reason."""
        own = [(name, (self.commands[name].help or "").partition("\n")[0]) for name in sorted(self.commands)]
        families: dict[str, list[tuple[str, str]]] = {"built in": own}
        for name, family, summary in self.plugins.overview():
            families.setdefault(family, []).append((name, summary))
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


def with_signature(call: Callable[..., Any], parameters: Sequence[inspect.Parameter]) -> Callable[..., Any]:
    """Return a function as one with these parameters: typer makes options of a function's signature."""
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    return call
