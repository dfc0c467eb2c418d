"""A typer hello-world with 40 lazy commands: what start-up is measured against."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

NAMES = [f"hello-{number:02}" for number in range(40)]


def hello(name: Annotated[str, typer.Option(help="who is greeted")] = "world") -> None:
    """Say hello."""
    print(f"hello {name}")


class Lazy(TyperGroup):
    """Makes a command when it is asked for, and lists all of them without making any."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names."""
        return NAMES

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Make a command."""
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(cmd_name)(hello)
        return typer.main.get_command(single)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List all commands."""
        with formatter.section("commands"):
            formatter.write_dl([(name, "Say hello.") for name in NAMES])


if __name__ == "__main__":
    app = typer.Typer(cls=Lazy, add_completion=False, rich_markup_mode=None, help="Hello.")
    app.callback()(lambda: None)
    app()
