"""A typer hello-world with 40 lazy commands, as typer makes it: what start-up is measured against.

With the variable HELLO_BARE it is stripped to the least: no rich, and a list of names that makes none of its commands.
"""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

NAMES = [f"hello-{number:02}" for number in range(40)]
BARE = bool(os.environ.get("HELLO_BARE"))
MARKUP: dict[str, Any] = {"rich_markup_mode": None} if BARE else {}


def hello(name: Annotated[str, typer.Option(help="who is greeted")] = "world") -> None:
    """Say hello."""
    print(f"hello {name}")


class Lazy(TyperGroup):
    """Makes a command when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names."""
        return NAMES

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Make a command."""
        single = typer.Typer(add_completion=False, **MARKUP)
        single.command(cmd_name)(hello)
        return typer.main.get_command(single)


class Bare(Lazy):
    """Lists its commands without making any."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List all commands."""
        with formatter.section("commands"):
            formatter.write_dl([(name, "Say hello.") for name in NAMES])


if __name__ == "__main__":
    app = typer.Typer(cls=Bare if BARE else Lazy, add_completion=False, help="Hello.", **MARKUP)
    app.callback()(lambda: None)
    app()
