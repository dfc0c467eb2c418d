"""Every line of the documentation that calls moraine is one that the command takes: no option that does not exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from moraine_core.cli import processing
from moraine_core.cli.group import make_app
from moraine_core.cli.main import run
from moraine_core.cli.output import VERSION_HELP, take_globals
from moraine_core.cli.result import Result
from moraine_core.plugins import BUILTINS, PluginHost

ROOT = Path(__file__).parents[2]
SHELL = re.compile(r"^```(?:bash|sh|shell|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ENDS = {"|", ">", ">>", "&&", "||", ";", "2>", "&"}

EXAMPLE_PLUGIN = "coh-mag"
"""The command that docs/writing-a-plugin.md builds: it is not installed here, its own test runs it."""


def lines_in(text: str) -> list[list[str]]:
    """Return the calls of moraine in the shell blocks of a page, as words after ``moraine``."""
    found = []
    for block in SHELL.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            starts = [n for n, word in enumerate(words) if word == "moraine" or word.endswith("/moraine")]
            if starts and all("=" in word or word in ENDS for word in words[: starts[0]]):
                call = words[starts[0] + 1 :]
                end = next((n for n, word in enumerate(call) if word in ENDS), len(call))
                found.append(call[:end])
    return found


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
CALLS = [(page, call) for page in PAGES for call in lines_in(page.read_text(encoding="utf-8"))]


def test_calls_are_found_with_variables_pipes_comments_and_continued_lines():
    text = "```bash\nX=1 .venv/bin/moraine list --json | head # all\nmoraine info \\\n  a.zarr\necho moraine\n```\n"
    assert lines_in(text) == [["list", "--json"], ["info", "a.zarr"]]


def test_every_command_page_has_a_call_of_its_command():
    pages = {page.stem for page, call in CALLS if page.parent.name == "commands" and call[0] == page.stem}
    assert pages == {page.stem for page in (ROOT / "docs" / "commands").glob("*.md")} - {"README", "built-ins"}


@pytest.mark.parametrize(("page", "call"), CALLS, ids=[f"{page.stem}: {' '.join(call)}" for page, call in CALLS])
def test_a_line_of_the_documentation_is_one_that_its_command_takes(
    page: Path, call: list[str], monkeypatch: pytest.MonkeyPatch
):
    """A42: a tutorial does not outlive what it tells."""
    host = PluginHost()
    _, words = take_globals(call)
    if not words or words[0].startswith("-"):
        assert set(words) <= {"--help", "-h", *(name for name, _ in VERSION_HELP)}
    elif words[0] in BUILTINS:
        group = typer.main.get_command(make_app(host))
        if "--help" not in words:
            context = typer.Context(group)
            name, command, rest = group.resolve_command(context, list(words))
            command.make_context(name, list(rest), parent=context)
    elif words[0] != EXAMPLE_PLUGIN:
        bound = []

        def bind(command, host, values):
            *_, arguments = processing.host_options(command, values)
            bound.append(command.bind(arguments, late=False))
            return Result()

        monkeypatch.setattr(processing, "run_processing", bind)
        assert run(call, host) == 0
        assert len(bound) == ("--help" not in words)
