"""Every command is declared, named, tested and documented the same way."""

from __future__ import annotations

import importlib.util
import inspect
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moraine_core.cli.builtins import FUNCTIONS
from moraine_core.cli.declared import HOST_PARAMETERS
from moraine_core.plan import KERNEL_PATTERN, itemsize
from moraine_core.plugins import BUILTINS, PluginHost
from moraine_core.task import resolve

if TYPE_CHECKING:
    from moraine_core.declaration import Command, Parameter

ROOT = Path(__file__).parents[2]

AXES = {
    "nlines",  # azimuth
    "width",  # range
    "nimages",
    "n_pairs",
    "n_points",
    "n_points1",  # of the first and second of two clouds
    "n_points2",
    "n_points_in",  # of the cloud that points are chosen from
    "az_win",
    "r_win",
    "1",
    "2",
    "...",
}
"""The names of axes that a declaration may use."""

DTYPE_FAMILIES = {"bool", "integer", "float", "complex"}


def declared() -> dict[str, tuple[Path, str]]:
    """Return project file and value of the entry point of each command of this repository."""
    found = {}
    for file in sorted(ROOT.glob("plugins/*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        for name, value in project.get("entry-points", {}).get("moraine.commands", {}).items():
            assert name not in found, f"{name} is declared by {found[name][0]} and {file}"
            found[name] = (file, value)
    return found


DECLARED = declared()
COMMANDS = [command for command in PluginHost().commands() if command.name in DECLARED]

each_command = pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])


@each_command
def test_a_command_has_one_name_everywhere(command: Command):
    file, value = DECLARED[command.name]
    stem = command.name.replace("-", "_")
    family = file.parent.name
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", command.name)
    assert command.name not in BUILTINS
    assert value == f"moraine_{family}.{stem}:{stem}"
    assert (command.module, command.function.__name__, command.family) == (f"moraine_{family}.{stem}", stem, family)
    assert command.example == f"moraine_{family}.examples:{stem}"
    assert (ROOT / "docs" / "commands" / f"{command.name}.md").is_file()
    assert (ROOT / "tests" / "plugins" / family / f"test_{stem}.py").is_file()


def test_every_command_that_a_project_declares_is_installed_and_can_be_loaded():
    assert sorted(set(DECLARED) - {command.name for command in COMMANDS}) == [], "run: make test, or pip install -e"


def test_kernels_that_are_named_in_text_are_public_functions():
    names = {
        name
        for file in ROOT.glob("plugins/*/moraine_*/*.py")
        for name in re.findall(r'"([\w.]+:\w+)"', file.read_text(encoding="utf-8"))
        if KERNEL_PATTERN.fullmatch(name) and name.startswith("moraine_")
    }
    assert {name for command in COMMANDS for name in [command.example]} <= names
    wrong = [name for name in sorted(names) if name.split(":")[1].startswith("_") or not callable(resolve(name))]
    assert wrong == []


def test_there_is_a_kernel_in_the_source_of_every_command_with_tasks():
    for command in COMMANDS:
        package = Path(inspect.getfile(command.function)).parent
        sources = "".join(file.read_text(encoding="utf-8") for file in package.glob("*.py"))
        assert not command.chunked or re.search(rf'"{package.name}\.[\w.]*:\w+"', sources)


# -------------------------------------------------------------------------------------------------- options, arrays


def problem_of_option(parameter: Parameter) -> str:
    """Return what is wrong with the help of an option."""
    if not parameter.help:
        return f"{parameter.option} has no help"
    if re.fullmatch(r"(INT|NUMBER)[ .INTUMBER]*", parameter.kind.metavar) and not re.search(
        r"\([^()]+\)$", parameter.help
    ):
        return f"{parameter.option} is a number; its help should end with the unit in parentheses: {parameter.help}"
    return ""


@each_command
def test_options_have_help_and_numbers_a_unit(command: Command):
    found = [problem_of_option(parameter) for parameter in command.parameters if parameter.role is None]
    assert [problem for problem in found if problem] == []


def test_options_of_the_host_have_help_and_numbers_a_unit():
    assert [problem for problem in map(problem_of_option, HOST_PARAMETERS) if problem] == []


def test_arguments_of_built_ins_have_help():
    assert {function.__name__.rstrip("_") for function in FUNCTIONS} == set(BUILTINS)
    for function in FUNCTIONS:
        assert inspect.getdoc(function)
        for name, parameter in list(inspect.signature(function, eval_str=True).parameters.items())[1:]:
            assert parameter.annotation.__metadata__[0].help, f"{function.__name__}: {name} has no help"


def words(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def problems_of_array(parameter: Parameter) -> list[str]:
    """Return what the declaration of an array leaves open: axes, dtype, unit."""
    role = parameter.role
    found = [] if role.help else ["no help"]
    if not role.shape:
        found.append("no shape")
    for text in words(role.shape):
        if not re.fullmatch(r"\([^()]+\)", text):
            found.append(f"shape {text} is not in parentheses")
        found += [f"axis {axis} is not in the list" for axis in re.split(r", *", text.strip("()")) if axis not in AXES]
    dtypes = [word for word in words(role.dtype) if word]
    found += [f"no dtype {word}" for word in dtypes if word not in DTYPE_FAMILIES and not itemsize(word)]
    # a complex SLC or a mask says it by itself; what may have any dtype may have any unit
    is_number = bool(dtypes) and all(re.match(r"u?int|float", word) for word in dtypes)
    if is_number and not role.unit:
        found.append("no unit; a number without one is 'unitless'")
    return [f"{parameter.option}: {problem}" for problem in found]


@each_command
def test_arrays_are_declared_with_axes_dtype_and_unit(command: Command):
    arrays = [p for p in command.parameters if p.role is not None and p.role.kind == "array"]
    assert [problem for parameter in arrays for problem in problems_of_array(parameter)] == []


@each_command
def test_the_docstring_is_a_sentence_then_prose_then_an_example(command: Command):
    assert re.fullmatch(r"[A-Z].*\.", command.summary)
    prose, found, example = command.help.partition("\nExamples\n--------\n")
    assert found
    assert len(prose.split("\n\n")) > 1
    assert example.startswith(f"moraine {command.name} ")


# ------------------------------------------------------------------------------------------------------ conformance


def test_the_conformance_kit_runs_for_every_command():
    file = ROOT / "tests" / "conformance" / "test_conformance.py"
    spec = importlib.util.spec_from_file_location("conformance_of_all", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tested = {command.name for command in module.TestInstalledCommands.commands}
    assert set(DECLARED) <= tested
