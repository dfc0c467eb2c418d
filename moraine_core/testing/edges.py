"""A command's example at the edges: inputs that are missing, broken, empty, tiny or without a single valid value.

Every case is a function that takes a command and the arguments of its example, changes copies of the inputs, and
returns the arguments of another call. `CASES` says of each whether the command must refuse it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_core import store
from moraine_core.declaration import Command, Input
from moraine_core.errors import MoraineError
from moraine_core.testing import running
from moraine_core.testing.data import read_array, write_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from moraine_core.testing.running import Arguments

    Values = np.ndarray[Any, Any]


class Case(NamedTuple):
    """One edge.

    Attributes
    ----------
    name
        What the inputs are.
    change
        Makes the call; yields several where several inputs can be so.
    refused
        The command must refuse it; otherwise it may give results or refuse.
    """

    name: str
    change: Callable[[Command, Arguments], Iterator[Arguments]]
    refused: bool


def outcome(command: Command, arguments: Mapping[str, Any]) -> str:
    """Run a call; return the error's sentence, or nothing where there are whole results.

    Raises
    ------
    AssertionError
        The error is not one raised on purpose, does not name the command, or something half-made was left.
    """
    outputs = running.output_paths(command, arguments)
    before = {path for path in outputs if path.exists()}
    try:
        running.run(command, arguments)
    except (MoraineError, ValueError) as error:
        text = str(error)
        expect(bool(text) and "Traceback" not in text, f"{command.name}: not a sentence: {text!r}")
        named = (command.name, *map(str, running.input_paths(command, arguments)))
        expect(any(name in text for name in named), f"{text!r} names neither {command.name} nor an input")
        left = [str(path) for path in outputs if path.exists() and path not in before]
        expect(not left, f"{command.name} refused the call and left {left}: {text}")
        return text
    for path in outputs:
        expect(path.exists(), f"{command.name} succeeded without {path}")
        for array in store.arrays_in(path, deep=True) if path.is_dir() else ():
            holes = store.missing_chunks(array)
            expect(not holes, f"{command.name}: {array} lacks chunks {holes}")
    return ""


def expect(holds: object, message: str) -> None:
    """Raise an `AssertionError` unless something holds."""
    if not holds:
        raise AssertionError(message)


# --------------------------------------------------------------------------------------------------- the inputs


def missing(command: Command, arguments: Arguments) -> Iterator[Arguments]:
    """Yield the call with each input in turn a path where nothing is."""
    for name, path in _inputs(command, arguments):
        yield _with(arguments, name, path, f"{path}.nowhere")


def unfinished(command: Command, arguments: Arguments) -> Iterator[Arguments]:
    """Yield the call with each array in turn marked as not finished."""
    for name, path, values in _arrays(command, arguments):
        copy = write_array(f"{path}.unfinished", values, store.open_array(path).chunks)
        store.set_attributes(copy, {store.UNFINISHED: "another command"})
        yield _with(arguments, name, path, copy)


def holed(command: Command, arguments: Arguments) -> Iterator[Arguments]:
    """Yield the call with each array in turn, made by moraine, without its last chunk."""
    for name, path, values in _arrays(command, arguments):
        copy = write_array(f"{path}.holed", values, store.open_array(path).chunks)
        store.set_attributes(copy, {store.PROVENANCE: {"command": "another"}})
        chunks = sorted(file for file in Path(copy).rglob("*") if file.is_file() and file.name != "zarr.json")
        if chunks:
            chunks[-1].unlink()
            yield _with(arguments, name, path, copy)


def broken_off(command: Command, arguments: Arguments) -> Iterator[Arguments]:
    """Yield the call with each array in turn of which half of each chunk is there, as after a copy that broke off."""
    for name, path, values in _arrays(command, arguments):
        if values.size:
            copy = write_array(f"{path}.broken", values, store.open_array(path).chunks)
            for file in Path(copy).rglob("*"):
                if file.is_file() and file.name != "zarr.json":
                    os.truncate(file, file.stat().st_size // 2)
            yield _with(arguments, name, path, copy)


def longer(command: Command, arguments: Arguments) -> Iterator[Arguments]:
    """Yield the call with each array in turn longer than another input says that it is."""
    lengths = [axes[0] for _, _, _, axes in _named(command, arguments) if axes]
    for name, path, values, axes in _named(command, arguments):
        if axes and lengths.count(axes[0]) > 1:
            copy = write_array(f"{path}.longer", np.concatenate((values, values[-1:])))
            yield _with(arguments, name, path, copy)


def output_is_input(command: Command, arguments: Arguments) -> Iterator[Arguments]:
    """Yield the call with each output in turn at the place of an input."""
    inputs = [path for _, path in _inputs(command, arguments)]
    for name, paths in _outputs(command, arguments):
        for source in inputs[:1]:
            yield _with(arguments, name, paths[0], source)


def foreign(command: Command, arguments: Arguments) -> Iterator[Arguments]:
    """Yield the call with each output in turn a directory that moraine did not make."""
    for name, paths in _outputs(command, arguments):
        theirs = Path(f"{paths[0]}.theirs")
        theirs.mkdir(exist_ok=True)
        (theirs / "thesis.txt").write_text("years of work")
        yield _with(arguments, name, paths[0], str(theirs))


# ------------------------------------------------------------------------------------------------- their values


def cut(*axes: str, size: int) -> Callable[[Command, Arguments], Iterator[Arguments]]:
    """Return the change that leaves `size` elements of the axes of these names, in all inputs alike."""

    def change(command: Command, arguments: Arguments) -> Iterator[Arguments]:
        def shorter(values: Values, names: Sequence[str]) -> Values:
            return values[tuple(slice(size) if name in axes else slice(None) for name in names)]

        if any(name in axes for _, _, _, names in _named(command, arguments) for name in names):
            yield _changed(command, arguments, f"cut{size}", shorter)

    return change


def all_missing(command: Command, arguments: Arguments) -> Iterator[Arguments]:
    """Yield the call with all floats and complex numbers missing."""

    def emptied(values: Values, _: Sequence[str]) -> Values:
        return np.full_like(values, store.missing_value(str(values.dtype))) if values.dtype.kind in "fc" else values

    if any(values.dtype.kind in "fc" for _, _, values in _arrays(command, arguments)):
        yield _changed(command, arguments, "missing", emptied)


def repeated(command: Command, arguments: Arguments) -> Iterator[Arguments]:
    """Yield the call with the last point of all inputs a copy of the first."""

    def twice(values: Values, names: Sequence[str]) -> Values:
        if not names or names[0] not in POINTS or len(values) < 2:
            return values
        return np.concatenate((values[:-1], values[:1]))

    if any(names[:1] and names[0] in POINTS for _, _, _, names in _named(command, arguments)):
        yield _changed(command, arguments, "repeated", twice)


def infinite(command: Command, arguments: Arguments) -> Iterator[Arguments]:
    """Yield the call with an infinite first element in every float or complex array."""

    def spoiled(values: Values, _: Sequence[str]) -> Values:
        if values.dtype.kind in "fc" and values.size:
            values = values.copy()
            values.flat[0] = np.inf
        return values

    if any(values.dtype.kind in "fc" for _, _, values in _arrays(command, arguments)):
        yield _changed(command, arguments, "infinite", spoiled)


POINTS = ("n_points", "n_points1", "n_points2", "n_points_in")
"""Names of axes that count points."""

RASTER = ("nlines", "width")
"""Names of axes of rasters."""

CASES = (
    Case("a missing input", missing, refused=True),
    Case("an unfinished input", unfinished, refused=True),
    Case("an input without its last chunk", holed, refused=True),
    Case("an input longer than another", longer, refused=True),
    Case("an input of which half is there", broken_off, refused=False),  # not all need all that they are given
    Case("an output that is an input", output_is_input, refused=True),
    Case("an output that is not ours", foreign, refused=True),
    Case("no points", cut(*POINTS, size=0), refused=False),
    Case("one point", cut(*POINTS, size=1), refused=False),
    Case("a point twice", repeated, refused=False),
    Case("an empty raster", cut(*RASTER, size=0), refused=False),
    Case("one pixel", cut(*RASTER, size=1), refused=False),
    Case("one line", cut("nlines", size=1), refused=False),
    Case("one column", cut("width", size=1), refused=False),
    Case("no images", cut("nimages", size=0), refused=False),
    Case("one image", cut("nimages", size=1), refused=False),
    Case("no valid value", all_missing, refused=False),
    Case("an infinite value", infinite, refused=False),
)


# -------------------------------------------------------------------------------------------------------- helpers


def _inputs(command: Command, arguments: Arguments) -> list[tuple[str, str]]:
    paths = command.paths(command.bind(arguments), Input)
    return [(name, path) for name, several in paths.items() for path in several]


def _outputs(command: Command, arguments: Arguments) -> list[tuple[str, list[str]]]:
    found = []
    for parameter in command.parameters:
        value = arguments.get(parameter.name)
        if parameter.role is not None and not isinstance(parameter.role, Input) and value is not None:
            found.append((parameter.name, list(value) if isinstance(value, list | tuple) else [value]))
    return found


def _arrays(command: Command, arguments: Arguments) -> Iterator[tuple[str, str, Values]]:
    """Yield argument, path and values of each input that is an array."""
    for name, path in _inputs(command, arguments):
        parameter = command.parameter(name)
        if parameter is not None and parameter.is_array and store.is_zarr(path):
            yield name, path, read_array(path)


def _named(command: Command, arguments: Arguments) -> Iterator[tuple[str, str, Values, list[str]]]:
    """Yield the same with the names of the axes, as far as they are declared."""
    for name, path, values in _arrays(command, arguments):
        parameter = command.parameter(name)
        role = parameter.role if parameter is not None else None
        shapes = (role.shape,) if role is not None and isinstance(role.shape, str) else role.shape if role else ()
        yield name, path, values, _axes(values.ndim, shapes)


def _axes(ndim: int, shapes: Sequence[str]) -> list[str]:
    for text in shapes:
        names = [part.strip() for part in text.strip("()").split(",") if part.strip()]
        if names[-1:] == ["..."]:
            names = (names[:-1] + [""] * ndim)[:ndim]
        if len(names) == ndim:
            return names
    return [""] * ndim


def _with(arguments: Arguments, name: str, old: str, new: str) -> Arguments:
    """Return the arguments with one path in the place of another."""
    value = arguments[name]
    if isinstance(value, list | tuple):
        return {**arguments, name: [new if path == old else path for path in value]}
    return {**arguments, name: new}


def _changed(
    command: Command, arguments: Arguments, suffix: str, change: Callable[[Values, Sequence[str]], Values]
) -> Arguments:
    """Return the call with all arrays replaced by changed copies."""
    call = dict(arguments)
    for name, path, values, axes in list(_named(command, arguments)):
        chunks = store.open_array(path).chunks
        call = _with(call, name, path, write_array(f"{path}.{suffix}", change(values, axes), chunks))
    return call
