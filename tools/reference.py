"""Write the command reference, docs/commands, and the catalog of commands, from what the packages declare.

    python tools/reference.py

A page says nothing by itself: synopsis, arrays and options are the declaration's, the prose is its docstring, the
memory is that of the plans which the command's example makes, and the failures are the sentences in its source.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
import sys
import tempfile
import textwrap
import tomllib
from math import prod
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from moraine_core import Chunk, Command, Stream, UsageError, hookimpl
from moraine_core.cli import builtins
from moraine_core.cli.declared import HOST_PARAMETERS
from moraine_core.cli.group import make_app
from moraine_core.cli.output import GLOBAL_HELP, VERSION_HELP
from moraine_core.executor import Executor
from moraine_core.plugins import BUILTINS, PluginHost
from moraine_core.run import run_command
from moraine_core.store import describe, is_zarr
from moraine_core.testing import running
from moraine_core.testing.interrupt import observed_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from moraine_core import ChunkTask, Plan
    from moraine_core.declaration import Parameter

ROOT = Path(__file__).parents[1]
PAGES = Path("docs/commands")
CATALOG = Path("moraine_core/catalog.py")
NOTE = "<!-- written by tools/reference.py from what the packages declare; change it there -->\n"


def files() -> dict[Path, str]:
    """Return every generated file of the repository: path from its root, and text."""
    distributions = declared_commands()
    host = PluginHost()
    commands = [host.command(name) for names in distributions.values() for name in names]
    made = {PAGES / f"{command.name}.md": page(command) for command in commands}
    made[PAGES / "built-ins.md"] = builtins_page(host)
    made[PAGES / "README.md"] = index(commands)
    made[CATALOG] = catalog(distributions, host)
    return made


def declared_commands() -> dict[str, list[str]]:
    """Return the commands of each distribution of this repository, as their pyproject.toml name them."""
    found = {}
    for file in sorted(ROOT.glob("plugins/*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        found[project["name"]] = sorted(project.get("entry-points", {}).get("moraine.commands", {}))
    return {name: commands for name, commands in found.items() if commands}


# ------------------------------------------------------------------------------------------------------------ pages


def page(command: Command) -> str:
    """Return the page of a command."""
    prose, examples = split_help(command.help)
    summary, _, rest = prose.partition("\n")
    parts = [
        f"# {command.name}",
        NOTE + f"\n{escaped(summary)}",
        fenced("text", synopsis(command)),
        escaped(rest.strip()),
        "## Arrays and files",
        table(("name", "role", "what", "shape", "dtype", "unit"), (array_row(p) for p in command.parameters if p.role)),
        *options_part([p for p in command.parameters if p.role is None]),
        "Besides, it takes the [options of every command](README.md#options-of-every-command); "
        + (
            "`--cuda` runs it on GPUs."
            if command.gpu
            else "it has no GPU kernel."
            if command.chunked
            else "as it has no tasks, of them only `--dry-run`."
        ),
        "## Example",
        fenced("bash", examples),
        *memory_part(command),
        "## How it fails",
        "\n".join(f"- {sentence}" for sentence in failures(command)),
        "Shapes, dtypes and lengths that do not fit the table above are reported before any work, all together. "
        "[How commands fail](README.md#how-commands-fail) has the exit codes.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def split_help(text: str) -> tuple[str, str]:
    """Return the prose of a docstring, and the lines of its section Examples.

    Raises
    ------
    ValueError
        It has no such section.
    """
    prose, found, examples = text.partition("\nExamples\n--------\n")
    if not found:
        msg = f"no section Examples in the docstring {text.partition(chr(10))[0]!r}"
        raise ValueError(msg)
    return prose.strip(), examples.strip()


def synopsis(command: Command) -> str:
    """Return the command line with all options of a command's own, those that may be left out in brackets."""
    words = []
    for parameter in command.parameters:
        word = "--kw NAME=VALUE ..." if parameter.is_extra else f"{parameter.option} {parameter.kind.metavar}".strip()
        words.append(word if parameter.required or parameter.is_extra else f"[{word}]")
    line = f"moraine {command.name} "
    # a word keeps its value beside it: breaking happens between words only
    glued = " ".join(word.replace(" ", "\0") for word in words)
    wrapped = textwrap.wrap(glued, 110, initial_indent=line, subsequent_indent=" " * len(line), break_on_hyphens=False)
    return "\n".join(wrapped).replace("\0", " ")


def array_row(parameter: Parameter) -> tuple[str, ...]:
    """Return the row of an input or output."""
    role = parameter.role
    name = "`--kw NAME=PATH`" if parameter.is_extra else f"`{parameter.option}`"
    optional = "" if parameter.required or parameter.is_extra else ", optional"
    if role is None or role.kind != "array":
        kind = "" if role is None else role.kind
        return name, f"{type(role).__name__.lower()} {kind}{optional}", parameter.help, "", "", ""
    shape, dtype = (
        " or ".join(f"`{word}`" for word in ((value,) if isinstance(value, str) else value) if word)
        for value in (role.shape, role.dtype)
    )
    return name, type(role).__name__.lower() + optional, parameter.help, shape, dtype or "any", role.unit


def options_part(parameters: Sequence[Parameter]) -> list[str]:
    """Return heading and table of a command's own options."""
    if not parameters:
        return []
    return ["## Options", options_table(parameters)]


def options_table(parameters: Iterable[Parameter]) -> str:
    """Return the table of some options."""
    rows = []
    for parameter in parameters:
        default = parameter.default
        given = "required" if parameter.required else "" if default in (None, False, ()) else f"`{words_of(default)}`"
        name = f"{parameter.option}`, `--no-{parameter.option[2:]}" if parameter.kind.flag else parameter.option
        rows.append((f"`{name}`", parameter.kind.metavar, given, parameter.help))
    return table(("option", "value", "default", "meaning"), rows)


def words_of(value: Any) -> str:
    """Return a default as it is typed."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


# ----------------------------------------------------------------------------------------------------------- memory


class PlanCollector:
    """Observes a run and keeps its plans."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []

    @hookimpl
    def moraine_plan_ready(self, plan: Plan) -> None:
        """Keep the plan."""
        self.plans.append(plan)


def example_plans(command: Command, folder: Path) -> tuple[dict[str, Any], list[Plan]]:
    """Run a command's example in this thread; return its arguments and the plans it made."""
    arguments = running.example(command, folder)
    collector = PlanCollector()
    with Executor(backend=running.SerialBackend()) as executor:
        run_command(command, arguments, pool=running.GivenPool(executor), host=observed_by(collector))
    return arguments, collector.plans


def memory_part(command: Command) -> list[str]:
    """Return heading, sentence and table of the memory that tasks need, from the plans of the command's example."""
    if not command.chunked:
        return []
    with tempfile.TemporaryDirectory() as folder:
        arguments, plans = example_plans(command, Path(folder))
        arrays = ", ".join(sorted(set(example_inputs(command, arguments))))
    shared = sorted({name for plan in plans for name in plan.shared})
    rows = []
    for plan in plans:
        largest = max(plan.tasks, key=lambda task: task.nbytes, default=None)
        if largest is not None:
            rows.append((plan.desc or command.name, str(len(plan.tasks)), *map(str, shares(largest))))
    sentence = (
        f"Projected bytes of the largest task of each plan, for the small example that the tests run ({arrays}); "
        "`--dry-run` says them for your data. *Stored chunk* is what reading or writing has decoded besides, "
        "*kernel* what the kernel allocates; *block* is the number of elements that the task works on."
    )
    besides = ", ".join(f"`{name}`" for name in shared)
    header = ("plan", "tasks", "inputs", "results", "stored chunk", "kernel", "sum", "block")
    return [
        "## Memory of a task",
        sentence,
        table(header, rows),
        f"Besides, each machine holds one copy of {besides} for all its tasks." if shared else "",
    ]


def example_inputs(command: Command, arguments: dict[str, Any]) -> Iterator[str]:
    """Yield name, shape and chunks of the input arrays of a call."""
    outputs = {str(path) for path in running.output_paths(command, arguments)}
    for name, value in arguments.items():
        for path in value if isinstance(value, list | tuple) else [value]:
            if isinstance(path, str) and path not in outputs and is_zarr(path):
                array = describe(path)
                yield f"`{name}` {array.shape} in chunks {array.chunks}"


def shares(task: ChunkTask) -> tuple[int, ...]:
    """Return of what the projected memory of a task consists, its sum, and the number of elements of its block."""
    results = sum(chunk.nbytes for chunk in task.outputs)
    coding = task.nbytes - task.input_bytes - results - task.scratch_bytes
    return task.input_bytes, results, coding, task.scratch_bytes, task.nbytes, block_elements(task)


def block_elements(task: ChunkTask) -> int:
    """Return the number of elements of a task's block: its first output, else its first input or a plane of it."""
    if task.outputs:
        return prod(stop - start for start, stop in task.outputs[0].box)
    for item in task.inputs:
        if isinstance(item, Stream):
            sizes = [stop - start for start, stop in item.chunk.box]
            return prod(sizes) // max(sizes[item.axis], 1)
        if isinstance(item, Chunk):
            return prod(stop - start for start, stop in item.box)
    return 0


# --------------------------------------------------------------------------------------------------------- failures


def failures(command: Command) -> list[str]:
    """Return the sentences with which a command fails: of missing arguments, and those in the source of its module."""
    found = []
    if any(parameter.required for parameter in command.parameters):
        try:
            command.bind({})
        except UsageError as error:
            found.append(str(error))
    source = ast.parse(inspect.getsource(sys.modules[command.module]))
    scopes = [node for node in ast.walk(source) if isinstance(node, ast.FunctionDef)]
    for scope in scopes:
        found += [sentence for sentence in raised_in(scope) if sentence not in found]
    return [f"`{sentence}`" for sentence in found]


def raised_in(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the texts of the errors that a function raises; what is filled in is named in angle brackets."""
    texts = {
        target.id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    raises = (node for node in ast.walk(function) if isinstance(node, ast.Raise))
    for node in sorted(raises, key=lambda node: node.lineno):
        if isinstance(node.exc, ast.Call) and node.exc.args:
            text: ast.expr = node.exc.args[0]
            if isinstance(text, ast.Name):
                text = texts.get(text.id, text)
            if isinstance(text, ast.JoinedStr | ast.Constant):
                yield template(text)


def template(text: ast.JoinedStr | ast.Constant) -> str:
    """Return a literal text, or an f-string with the names of its values."""
    if isinstance(text, ast.Constant):
        return str(text.value)
    parts = (
        str(part.value) if isinstance(part, ast.Constant) else f"<{ast.unparse(part.value)}>"  # type: ignore[attr-defined]
        for part in text.values
    )
    return "".join(parts)


# ------------------------------------------------------------------------------------------- built-ins, index, catalog


def builtins_page(host: PluginHost) -> str:
    """Return the page of the host's own commands."""
    import typer

    group: Any = typer.main.get_command(make_app(host))
    parts = ["# Built-in commands", NOTE + "\nThey come with the host and need no plugin."]
    for function in sorted(builtins.FUNCTIONS, key=lambda function: function.__name__):
        name = function.__name__.rstrip("_")
        hints = get_type_hints(function)
        arguments = [p for p in group.commands[name].params if p.param_type_name == "argument"]
        options = [p for p in group.commands[name].params if p.param_type_name == "option" and p.name in hints]
        line = " ".join(["moraine", name, *(p.name.upper() for p in arguments), *(["[options]"] if options else [])])
        parts += [f"## {name}", escaped(inspect.getdoc(function) or ""), fenced("text", line)]
        rows = [option_row(p, hints[p.name]) for p in (*arguments, *options)]
        parts += [table(("argument or option", "value", "default", "meaning"), rows)] if rows else []
    return "\n\n".join(parts) + "\n"


def option_row(parameter: Any, hint: Any) -> tuple[str, ...]:
    """Return the row of an argument or option of a built-in, which typer has made from an annotation."""
    is_argument = parameter.param_type_name == "argument"
    name = parameter.name.upper() if is_argument else "`, `".join(parameter.opts)
    default = parameter.default
    given = "required" if parameter.required else "" if default in (None, False, (), []) else f"`{default}`"
    return f"`{name}`", "" if is_argument else parameter.metavar or value_name(hint), given, parameter.help or ""


def value_name(hint: Any) -> str:
    """Return what stands for the value of an annotation: INT, TEXT, several of them with dots, nothing for a switch."""
    if get_origin(hint) in (Union, UnionType):
        hint = next(option for option in get_args(hint) if option is not NoneType)
    if get_origin(hint) is list:
        return f"{value_name(get_args(hint)[0])}..."
    return {int: "INT", float: "NUMBER", str: "TEXT", bool: ""}[hint]


def index(commands: Sequence[Command]) -> str:
    """Return the index of all pages, and what is common to all commands."""
    parts = ["# Command reference", NOTE + "\nOne page for each command; `moraine COMMAND --help` says it in short."]
    ordered = sorted(commands, key=lambda command: (command.family, command.name))
    for family, members in itertools.groupby(ordered, key=lambda command: command.family):
        rows = [(f"[{c.name}]({c.name}.md)", c.summary) for c in members]
        parts += [f"## {family}", table(("command", "what it does"), rows)]
    parts += [
        "## Built in",
        "[" + "](built-ins.md), [".join(sorted(BUILTINS)) + "](built-ins.md)",
        "## Options of every command",
        "They belong to the host. None of them changes a number that is computed.",
        options_table(HOST_PARAMETERS),
        "Instead of a command:",
        table(("option", "meaning"), [(f"`{name}`", text) for name, text in VERSION_HELP]),
        "Anywhere on the line:",
        table(("option", "meaning"), [(f"`{name}`", text) for name, text in GLOBAL_HELP]),
        "## How commands fail",
        "What can be known from arguments and metadata is checked before any work, and all problems are reported "
        "together, each with parameter, path, what was found and what was expected. Outputs appear whole or not at "
        "all; the same call continues where a run was cut off.",
        table(
            ("exit code", "meaning"),
            (
                ("0", "done"),
                ("1", "the work failed, or an input is not what it should be"),
                ("2", "the call is wrong: an unknown, missing or ill-formed argument"),
                ("130", "interrupted"),
            ),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def catalog(distributions: dict[str, list[str]], host: PluginHost) -> str:
    """Return the source of the catalog with the distribution, family and summary of each command."""
    owners = {command: name for name, commands in distributions.items() for command in commands}
    lines = ["COMMANDS: dict[str, Entry] = {"]
    for name in sorted(owners):
        command = host.command(name)
        fields = [json.dumps(text, ensure_ascii=False) for text in (owners[name], command.family, command.summary)]
        line = f'    "{name}": Entry({", ".join(fields)}),'
        if len(line) > 120:
            line = "\n".join([f'    "{name}": Entry(', *(f"        {field}," for field in fields), "    ),"])
        lines.append(line)
    source = (ROOT / CATALOG).read_text(encoding="utf-8")
    made = "\n".join([*lines, "}"])
    return re.sub(r"COMMANDS: [^\n]*\n.*?^}", lambda _: made, source, flags=re.DOTALL | re.MULTILINE)


# --------------------------------------------------------------------------------------------------------- markdown


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; columns that are empty in all rows are left out."""
    body = [[cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in rows]
    kept = [n for n in range(len(header)) if any(row[n] for row in body)]
    lines = [[header[n] for n in kept], ["---"] * len(kept), *([row[n] for n in kept] for row in body)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def fenced(language: str, text: str) -> str:
    """Return a code block."""
    return f"```{language}\n{text}\n```"


def escaped(text: str) -> str:
    """Return prose that markdown shows as it is."""
    return re.sub(r"([*<])", r"\\\1", text)


def main() -> None:
    """Write what is not as it should be, and remove pages of commands that are gone."""
    made = files()
    for path in sorted((ROOT / PAGES).glob("*.md")):
        if path.relative_to(ROOT) not in made:
            path.unlink()
            print(f"{path.relative_to(ROOT)} removed")
    for name, text in made.items():
        path = ROOT / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"{name} written")


if __name__ == "__main__":
    main()
