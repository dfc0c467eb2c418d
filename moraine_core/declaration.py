"""Commands as data: the `command` decorator, what its annotations mean, and the checks on arguments.

A command is a typed function that declares: from inputs seen as `Array` it returns a `Plan` (or yields plans, or, when
it has no chunks, writes one small file). The `Command` made from it is itself the plugin that pluggy registers.
"""

from __future__ import annotations

import difflib
import inspect
import os
import re
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from moraine_core.arguments import PATH, PATHS, Kind, convert, is_file, kind_of
from moraine_core.errors import LayoutError, MoraineError, UsageError
from moraine_core.hookspec import API, hookimpl
from moraine_core.options import RUN_NAMES, WORKER_NAMES, RunOptions, Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from moraine_core.plan import Array
    from moraine_core.run import Record


@dataclass(frozen=True)
class Input:
    """Marks a parameter that names what is read.

    Attributes
    ----------
    help
        What it is.
    shape
        Axes by name, such as ``"(nlines, width, nimages)"``; several alternatives as a tuple; ``...`` for any more
        axes. An axis of the same name has the same length in all inputs of a call.
    dtype
        numpy's name, or a family of them: ``float``, ``complex``, ``integer``; several as a tuple.
    unit
        Unit of the values.
    kind
        An array (opened and checked by the host), or the path of a file or directory.
    """

    help: str
    shape: str | tuple[str, ...] = ()
    dtype: str | tuple[str, ...] = ()
    unit: str = ""
    kind: Literal["array", "file", "directory"] = "array"


@dataclass(frozen=True)
class Output:
    """Marks a parameter that names what is written; fields as in `Input`."""

    help: str
    shape: str | tuple[str, ...] = ()
    dtype: str | tuple[str, ...] = ()
    unit: str = ""
    kind: Literal["array", "file", "directory"] = "array"


class _Blocks:
    """Marks the parameter that sizes the blocks of a command, which the host may lower to fit memory."""


Blocks2D: TypeAlias = Annotated[tuple[int, int], _Blocks]
"""Lines and pixels of the block a task works on; ``-1`` is the whole axis."""

Blocks1D: TypeAlias = Annotated[int, _Blocks]
"""Points of the block a task works on; ``-1`` is all of them."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a command, or one of the host's options.

    Attributes
    ----------
    name
        As in Python; on the command line also with hyphens.
    kind
        What values it takes.
    role
        `Input`, `Output`, or None for an option.
    help
        One line; for a number it ends in the unit in parentheses.
    default
        Value when it is not given.
    required
        It has no default.
    is_blocks
        It sizes the blocks a task works on.
    is_extra
        It stands for any further keywords (``--kw name=value``).
    """

    name: str
    kind: Kind
    role: Input | Output | None
    help: str
    default: Any = None
    required: bool = False
    is_blocks: bool = False
    is_extra: bool = False

    @property
    def option(self) -> str:
        """The option's name on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def is_array(self) -> bool:
        """The host opens what it names."""
        return isinstance(self.role, Input) and self.role.kind == "array"

    @property
    def full_help(self) -> str:
        """The help with role, shape, dtype and unit."""
        if self.role is None:
            return self.help
        role, shape, dtype = self.role, " or ".join(_words(self.role.shape)), "/".join(_words(self.role.dtype))
        facts = [type(role).__name__.lower(), shape, dtype, role.unit]
        return f"{self.help} [{', '.join(fact for fact in facts if fact)}]"


def _words(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def parameters_of(owner: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return the parameters that a command function or an options dataclass declares by its annotations."""
    hints = get_type_hints(owner, include_extras=True)
    if isinstance(owner, type) and is_dataclass(owner):
        return tuple(_parameter(f.name, hints[f.name], f.default, is_extra=False) for f in fields(owner))
    return tuple(
        _parameter(name, hints[name], p.default, is_extra=p.kind is inspect.Parameter.VAR_KEYWORD)
        for name, p in inspect.signature(owner).parameters.items()
    )


def _parameter(name: str, hint: Any, default: Any, *, is_extra: bool) -> Parameter:
    if get_origin(hint) is not Annotated:
        msg = f"parameter {name} needs Annotated[type, Input(...) or Output(...) or 'help']"
        raise TypeError(msg)
    annotation, *notes = get_args(hint)
    role = next((note for note in notes if isinstance(note, Input | Output)), None)
    help_text = role.help if role else next((note for note in notes if isinstance(note, str)), "")
    kind = kind_of(annotation)
    if role is not None and kind not in (PATH, PATHS):
        kind = PATHS if kind.many else PATH
    required = default in (inspect.Parameter.empty, MISSING) and not is_extra
    return Parameter(
        name=name,
        kind=kind,
        role=role,
        help=help_text,
        default=None if required or is_extra else default,
        required=required,
        is_blocks=any(_Blocks in get_args(part) for part in (hint, *get_args(annotation))),
        is_extra=is_extra,
    )


@dataclass(frozen=True, eq=False)
class Command:
    """A command of moraine: its declaration, and the plugin that brings it.

    Attributes
    ----------
    name
        As typed: lower case with hyphens.
    family
        The distribution it belongs to, such as ``ps``.
    function
        Declares the plan.
    parameters
        In the order of the function's signature.
    gpu
        It has a kernel for GPUs.
    chunked
        It returns plans; if not, it writes one small file by itself and returns None.
    example
        ``"module:function"`` that writes small inputs into a folder and returns the arguments of a call:
        ``function(folder: Path, scale: int) -> dict``. The conformance kit runs it.
    tolerance
        Largest relative difference between runs that a library behind the kernel makes unavoidable; 0 means every bit.
    api
        The interface number it was written for.
    """

    name: str
    family: str
    function: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    gpu: bool = False
    chunked: bool = True
    example: str = ""
    tolerance: float = 0.0
    api: int = API

    @property
    def help(self) -> str:
        """The function's whole docstring."""
        return inspect.getdoc(self.function) or ""

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return self.help.partition("\n")[0]

    @property
    def module(self) -> str:
        """Module that declares it."""
        return self.function.__module__

    @property
    def blocks_parameter(self) -> Parameter | None:
        """The parameter that sizes its blocks."""
        return next((p for p in self.parameters if p.is_blocks), None)

    @property
    def extra(self) -> Parameter | None:
        """The parameter that stands for any further keywords."""
        return next((p for p in self.parameters if p.is_extra), None)

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of that name; further keywords all have the extra one."""
        return next((p for p in self.parameters if p.name == name and not p.is_extra), self.extra)

    @hookimpl
    def moraine_commands(self) -> Iterable[Command]:
        """Bring itself: a command is a plugin."""
        return [self]

    def __call__(self, *, workers: Workers | None = None, **arguments: Any) -> Record:
        """Run the command and return its record.

        Parameters
        ----------
        workers
            Who runs the tasks.
        **arguments
            The command's parameters, and ``fresh``, ``dry_run``, ``scratch`` as on the command line.
        """
        from moraine_core.run import run_command

        options = {name: arguments.pop(name) for name in list(arguments) if name in RUN_NAMES and not self.takes(name)}
        return run_command(self, arguments, workers or Workers(), RunOptions(**options))

    def takes(self, name: str) -> bool:
        """Tell whether the command itself has a parameter of that name."""
        return any(p.name == name for p in self.parameters)

    def bind(self, given: Mapping[str, Any], *, late: bool = True) -> dict[str, Any]:
        """Return all arguments as the function takes them (paths still text), from what a caller gave.

        Parameters
        ----------
        given
            Text, TOML values or Python values by parameter name. None means not given.
        late
            Also read arguments that are files, such as image pairs; a check before the run leaves them.

        Raises
        ------
        UsageError
            Unknown, missing or ill-formed arguments; all that are missing are listed.
        """
        given = {name: value for name, value in given.items() if value is not None}
        names = [p.name for p in self.parameters if not p.is_extra]
        unknown = [name for name in given if name not in names]
        if unknown and self.extra is None:
            raise UsageError(unknown_argument(self.name, unknown[0], names))
        missing = [p.option for p in self.parameters if p.required and p.name not in given]
        if missing:
            msg = f"{self.name}: missing {', '.join(missing)}"
            raise UsageError(msg)
        bound = {p.name: p.default for p in self.parameters if not p.is_extra}
        for name, value in given.items():
            parameter = self.parameter(name)
            if parameter is not None and (late or not parameter.kind.late):
                bound[name] = convert(self.name, name, parameter.kind, value)
        return bound

    def paths(self, bound: Mapping[str, Any], role: type[Input] | type[Output]) -> dict[str, tuple[str, ...]]:
        """Return the paths among bound arguments that are read (`Input`) or written (`Output`), by argument name."""
        found = {}
        for name, value in bound.items():
            parameter = self.parameter(name)
            if parameter is not None and isinstance(parameter.role, role) and value is not None:
                found[name] = (value,) if isinstance(value, str) else tuple(value)
        return found

    def files(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Return the files among given arguments that are read when the command runs, such as image pairs, by name."""
        return {
            name: os.fspath(value)
            for name, value in given.items()
            if (parameter := self.parameter(name)) and parameter.kind.late and is_file(value)
        }

    def input_problems(self, arrays: Mapping[str, Sequence[Array]]) -> list[MoraineError]:
        """Return what is wrong with opened inputs: dtype, number of axes, and axes that must have equal lengths."""
        problems: list[MoraineError] = []
        axes: dict[str, tuple[int, str]] = {}
        for name, group in arrays.items():
            parameter = self.parameter(name)
            if parameter is None or parameter.role is None:
                continue
            role, dtypes = parameter.role, _words(parameter.role.dtype)
            for array in group:
                label = f"{self.name}: {name} {array.path}"
                if role.dtype and not any(_is_dtype(array.dtype, wanted) for wanted in dtypes):
                    problems.append(LayoutError(f"{label} is {array.dtype}; expected {' or '.join(dtypes)}"))
                if role.shape:
                    problems.extend(_shape_problems(label, array.shape, _words(role.shape), axes))
        return problems


def _is_dtype(found: str, wanted: str) -> bool:
    if wanted == "integer":
        return re.fullmatch(r"u?int\d+", found) is not None
    return found == wanted or re.fullmatch(rf"{wanted}\d+", found) is not None


def _shape_problems(
    label: str, shape: Sequence[int], wanted: Sequence[str], axes: dict[str, tuple[int, str]]
) -> list[LayoutError]:
    """Compare a shape with the declared alternatives, and remember the length of each named axis."""
    for text in wanted:
        names = [name.strip() for name in text.strip("()").split(",") if name.strip()]
        open_ended = bool(names) and names[-1] == "..."
        names = names[:-1] if open_ended else names
        if len(shape) == len(names) or (open_ended and len(shape) >= len(names)):
            break
    else:
        return [LayoutError(f"{label} has shape {tuple(shape)}; expected {' or '.join(wanted)}")]
    problems = []
    for name, length in zip(names, shape, strict=False):
        expected, where = (int(name), text) if name.isdigit() else axes.setdefault(name, (length, label))
        if length != expected:
            reason = text if name.isdigit() else f"{name} {expected}, as in {where.partition(': ')[2]}"
            problems.append(LayoutError(f"{label} has shape {tuple(shape)}; expected {reason}"))
    return problems


def unknown_argument(owner: str, name: str, known: Iterable[str]) -> str:
    """Return the sentence for an argument that does not exist, with the closest that does."""
    if re.search(r"worker|thread|process|memory_limit|cluster|dask|rmm|dashboard", name):
        return f"{owner}: unknown worker arguments: {name}; known are {', '.join(sorted(WORKER_NAMES))}"
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"{owner}: unknown argument {name}" + (f"; did you mean {close[0]}?" if close else "")


def command(
    name: str,
    *,
    family: str,
    gpu: bool = False,
    chunked: bool = True,
    example: str = "",
    tolerance: float = 0.0,
    api: int = API,
) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function that declares.

    Parameters
    ----------
    name, family, gpu, chunked, example, tolerance, api
        As the attributes of `Command`.

    Returns
    -------
    Callable
        Turns the function into a `Command`.
    """

    def wrap(function: Callable[..., Any]) -> Command:
        return Command(name, family, function, parameters_of(function), gpu, chunked, example, tolerance, api)

    return wrap
