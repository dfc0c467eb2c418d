"""A pipeline file: from TOML to steps with variables put in, checked as far as the file alone can tell."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core.arguments import convert
from moraine_core.declaration import parameters_of
from moraine_core.errors import UsageError, raise_problems
from moraine_core.options import STEP_NAMES, RunOptions, Workers
from moraine_core.quicklook import quicklook_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

VERSION = 1
"""Newest version of the file format that is understood."""

OPTIONS = {
    parameter.name: parameter.kind
    for parameter in (*parameters_of(Workers), *parameters_of(RunOptions))
    if parameter.name in STEP_NAMES
}
"""Keys of steps and defaults that are the host's and not a command's, with the values they take."""

TABLES = ("pipeline", "vars", "defaults", "step")
PIPELINE_KEYS = {"version": (int, "a whole number"), "workdir": (str, "a path"), "quicklook": (bool, "true or false")}
STEP_KEYS = ("name", "run", "quicklook", "kw")

VARIABLE = re.compile(r"\$\{([^}]*)\}")
VARIABLE_NAME = re.compile(r"[A-Za-z0-9_]+")
STEP_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Step:
    """One step, as the file has it.

    Attributes
    ----------
    name
        Its name, unique in the file; also that of its log.
    command
        Name of the command it runs.
    args
        Arguments of the command, with variables put in.
    kw
        Further keywords, for commands that take them.
    options
        Worker options, ``scratch`` and ``compressor``, as the host takes them.
    quicklook
        Whether pictures of its pyramids are drawn; None leaves it to the pipeline.
    picture
        How they are drawn.
    """

    name: str
    command: str
    args: Mapping[str, Any] = field(default_factory=dict)
    kw: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    quicklook: bool | None = None
    picture: Mapping[str, Any] = field(default_factory=lambda: quicklook_options("", {}))


@dataclass(frozen=True)
class Pipeline:
    """A pipeline, as its file has it.

    Attributes
    ----------
    file
        Absolute path of the file.
    workdir
        Absolute path of the work directory: paths of arguments are relative to it.
    quicklook
        Whether pictures of pyramids are drawn.
    defaults, options
        Arguments and worker options for every step whose command takes them.
    steps
        In the order of the file.
    """

    file: str
    workdir: str
    quicklook: bool
    defaults: Mapping[str, Any]
    options: Mapping[str, Any]
    steps: tuple[Step, ...]

    @property
    def stem(self) -> str:
        """Name of the file without its ending: the pipeline's name."""
        return Path(self.file).stem


def load(file: str | Path, variables: Mapping[str, str] | None = None, workdir: str | None = None) -> Pipeline:
    """Read a pipeline file.

    Parameters
    ----------
    file
        A TOML file.
    variables
        Values of variables, instead of those of the file.
    workdir
        Work directory, instead of that of the file.

    Raises
    ------
    UsageError
        The file cannot be read or is not a pipeline.
    ProblemsError
        Several things are wrong with it.
    """
    path = os.path.abspath(file)
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"{path}: {error.strerror}; expected a pipeline file"
        raise UsageError(msg) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"{path} is not valid TOML: {error}"
        raise UsageError(msg) from error
    return _Reader(path, data, variables or {}).pipeline(workdir)


def one_of(found: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the closest known one, or all of them."""
    known = list(known)
    close = difflib.get_close_matches(found, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known) or 'none'}"


class _Reader:
    """Reads one file and collects all that is wrong with it."""

    def __init__(self, file: str, data: Mapping[str, Any], variables: Mapping[str, str]) -> None:
        self._file = file
        self._data = data
        self._problems: list[str] = []
        self._used: set[str] = set()
        self._variables = {**self._declared(), **variables}
        self._given = variables

    def pipeline(self, workdir: str | None) -> Pipeline:
        """Return the pipeline, or raise all problems."""
        for name in self._data:
            if name not in TABLES:
                self._problem(f"unknown table [{name}]; {one_of(name, TABLES)}")
        head = self._head()
        args, options = self._split("[defaults]", self._table("defaults"))
        steps = self._steps()
        for name in self._given:
            if name not in self._used and name not in self._table("vars"):
                self._problem(f"variable {name} is given but used nowhere; {one_of(name, self._variable_names())}")
        raise_problems([UsageError(f"{self._file}: {problem}") for problem in dict.fromkeys(self._problems)])
        folder = os.path.dirname(self._file)
        return Pipeline(
            file=self._file,
            workdir=os.path.abspath(workdir or os.path.join(folder, head.get("workdir", "."))),
            quicklook=head.get("quicklook", True),
            defaults=args,
            options=options,
            steps=tuple(steps),
        )

    def _problem(self, text: str) -> None:
        self._problems.append(text)

    def _table(self, name: str) -> dict[str, Any]:
        """Return a table of the file, empty where there is none."""
        table = self._data.get(name, {})
        if isinstance(table, dict):
            return table
        self._problem(f"{name} is {table!r}; expected a table [{name}]")
        return {}

    def _head(self) -> dict[str, Any]:
        head = self._table("pipeline")
        for key, value in head.items():
            if key not in PIPELINE_KEYS:
                self._problem(f"[pipeline]: unknown key {key}; {one_of(key, PIPELINE_KEYS)}")
            elif type(value) is not PIPELINE_KEYS[key][0]:
                self._problem(f"[pipeline]: {key} is {value!r}; expected {PIPELINE_KEYS[key][1]}")
        version = head.get("version", 1)
        if type(version) is int and not 1 <= version <= VERSION:
            self._problem(f"[pipeline]: version is {version}; this moraine reads version {VERSION}")
        return head

    # ---------------------------------------------------------------------------------------- variables

    def _declared(self) -> dict[str, str]:
        """Return the variables of the file as text."""
        found = {}
        for name, value in self._table("vars").items():
            if not VARIABLE_NAME.fullmatch(name):
                self._problem(f"[vars]: name {name!r}; expected letters, digits and _")
            elif isinstance(value, bool):
                found[name] = str(value).lower()
            elif isinstance(value, str | int | float):
                found[name] = str(value)
            else:
                self._problem(f"[vars]: {name} is {value!r}; expected text, a number, true or false")
        return found

    def _variable_names(self) -> list[str]:
        return sorted({*self._table("vars"), *self._used})

    def _filled(self, where: str, value: Any) -> Any:
        """Return a value with variables put into all its strings."""
        if isinstance(value, str):
            return VARIABLE.sub(lambda match: self._variable(where, match[1]), value)
        if isinstance(value, list):
            return [self._filled(where, item) for item in value]
        if isinstance(value, dict):
            return {key: self._filled(where, item) for key, item in value.items()}
        return value

    def _variable(self, where: str, name: str) -> str:
        if name not in self._variables:
            known = ", ".join(sorted(self._variables)) or "none"
            self._problem(f"{where}: unknown variable {name}; known are {known}")
            return ""
        self._used.add(name)
        return self._variables[name]

    # -------------------------------------------------------------------------------------------- steps

    def _steps(self) -> list[Step]:
        tables = self._data.get("step", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._problem("step is not a list of tables; write [[step]] before each")
            return []
        if not tables:
            self._problem("no steps; expected at least one [[step]]")
        steps = [self._step(number, table) for number, table in enumerate(tables, start=1)]
        names = [step.name for step in steps]
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                self._problem(f"step {name}: {names.count(name)} steps have this name")
        return steps

    def _step(self, number: int, table: Mapping[str, Any]) -> Step:
        name, command = table.get("name"), table.get("run")
        where = f"step {name}" if isinstance(name, str) and name else f"step number {number}"
        if name is None:
            self._problem(f"{where}: name is missing")
        elif not isinstance(name, str) or not STEP_NAME.fullmatch(name):
            self._problem(f"{where}: name is {name!r}; expected letters, digits, '_', '-' and '.'")
        if command is None:
            self._problem(f"{where}: run is missing; expected the name of a command")
        elif not isinstance(command, str):
            self._problem(f"{where}: run is {command!r}; expected the name of a command")
        kw = table.get("kw", {})
        if not isinstance(kw, dict):
            self._problem(f"{where}: kw is {kw!r}; expected a table [step.kw]")
            kw = {}
        args, options = self._split(where, {key: table[key] for key in table if key not in STEP_KEYS})
        return Step(
            name=name if isinstance(name, str) else str(number),
            command=str(command),
            args=args,
            kw=self._filled(where, kw),
            options=options,
            **self._quicklook(where, table.get("quicklook")),
        )

    def _quicklook(self, where: str, value: Any) -> dict[str, Any]:
        """Return whether, and how, a step's pyramids are drawn: true, false, or a table of options."""
        if value is None or isinstance(value, bool):
            return {"quicklook": value}
        if not isinstance(value, dict):
            self._problem(f"{where}: quicklook is {value!r}; expected true, false or a table of options")
            return {}
        try:
            return {"quicklook": True, "picture": quicklook_options(f"{where}: quicklook", self._filled(where, value))}
        except UsageError as error:
            self._problem(str(error))
            return {}

    def _split(self, where: str, table: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return arguments with variables put in, and the host's options among them as the host takes them."""
        args, options = {}, {}
        for key, value in self._filled(where, table).items():
            if key not in OPTIONS:
                args[key] = value
                continue
            try:
                options[key] = convert(where, key, OPTIONS[key], value)
            except UsageError as error:
                self._problem(str(error))
        return args, options
