"""Kinds of arguments: how the words of a command line, a TOML value or a Python value become what a command takes.

All three doors use the same kinds, so that ``--chunks 1000,1000``, ``chunks = [1000, 1000]`` and
``chunks=(1000, 1000)`` mean the same and fail with the same sentence.
"""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from moraine_core.errors import UsageError
from moraine_core.plan import Array

if TYPE_CHECKING:
    from collections.abc import Callable

Pairs: TypeAlias = tuple[tuple[int, int], ...]
"""Image pairs ``(reference, secondary)``, given as a file (text or ``.npy``) or as a literal list."""

_DECIMAL_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_UNITS = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
SIZE_UNITS = {**_DECIMAL_UNITS, **_BINARY_UNITS}


@dataclass(frozen=True)
class Kind:
    """One kind of argument.

    Attributes
    ----------
    metavar
        What stands for the value in help texts.
    expected
        What a value must be, as the end of the sentence "expected ...".
    parse
        From text or value to the argument; raises `ValueError` or `TypeError` where it does not fit.
    many
        Takes several words on the command line.
    flag
        A switch: ``--name`` or ``--no-name``.
    late
        Parsed when the command runs and not before, since it may be a file that an earlier step writes.
    choices
        The words allowed, where there are only a few.
    """

    metavar: str
    expected: str
    parse: Callable[[Any], Any]
    many: bool = False
    flag: bool = False
    late: bool = False
    choices: tuple[str, ...] = ()


def parse_text(value: Any) -> str:
    """Return a string or path as text; nothing else is taken for one."""
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    raise TypeError


def parse_integer(value: Any) -> int:
    """Return a whole number, also from text; a bool or a fraction is none."""
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise TypeError
    return int(value.strip()) if isinstance(value, str) else int(value)


def parse_number(value: Any) -> float:
    """Return a number, also from text; a bool is none."""
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def parse_boolean(value: Any) -> bool:
    """Return true or false, as a value or as exactly that word; other text and numbers are neither."""
    if isinstance(value, str):
        return {"true": True, "false": False}[value]
    if isinstance(value, bool):
        return value
    raise TypeError


def items_of(value: Any) -> list[Any]:
    """Return the items of ``"1,2"``, ``"(1, 2)"`` or ``"1 2"``, of a line's words, of a sequence, or of one number."""
    if not isinstance(value, str) and not hasattr(value, "__iter__"):
        return [value]
    items = [value] if isinstance(value, str) else list(value)
    if not items or not all(isinstance(item, str) for item in items):
        return items
    text = " ".join(items).strip()
    if text[:1] + text[-1:] in ("()", "[]"):
        text = text[1:-1]
    text = text.strip().removesuffix(",").rstrip()
    return re.split(r"\s*,\s*|\s+", text) if text else []


def parse_integers(value: Any) -> tuple[int, ...]:
    """Return whole numbers, one or more, from what `items_of` takes."""
    numbers = tuple(parse_integer(item) for item in items_of(value))
    if not numbers:
        raise ValueError
    return numbers


def parse_words(value: Any) -> tuple[str, ...]:
    """Return one or more words from what `items_of` takes; whole numbers count as words."""
    words = tuple(str(item) if type(item) is int else parse_text(item) for item in items_of(value))
    if not words:
        raise ValueError
    return words


def parse_paths(value: Any) -> tuple[str, ...]:
    """Return one or several paths; a single one counts as a list of one."""
    items = [value] if isinstance(value, str | os.PathLike) else list(value)
    if not items:
        raise ValueError
    return tuple(parse_text(item) for item in items)


def is_file(value: Any) -> bool:
    """Tell whether an argument that is a file or a literal list is a file."""
    return isinstance(value, os.PathLike) or (isinstance(value, str) and not value.lstrip().startswith("["))


def parse_pairs(value: Any) -> Pairs:
    """Return image pairs from a literal list, or from a file of two integer columns (text with ``#`` notes, or npy)."""
    if is_file(value):
        if Path(value).suffix == ".npy":
            import numpy as np

            value = np.load(value, allow_pickle=False).tolist()
        else:
            lines = (line.partition("#")[0].split() for line in Path(value).read_text(encoding="utf-8").splitlines())
            value = [words for words in lines if words]
    elif isinstance(value, str):
        value = ast.literal_eval(value.strip())
    pairs = tuple(tuple(parse_integer(item) for item in row) for row in value)
    if any(len(row) != 2 for row in pairs):
        raise ValueError
    return pairs  # type: ignore[return-value]


def parse_size(value: Any) -> int:
    """Return a size in bytes, at least 1, from a number or text such as ``4GiB``, ``500 MB`` or ``2g``."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?i?)b?\s*", str(value).lower())
    if not match or match[2] == "i":
        raise ValueError
    size = int(float(match[1]) * SIZE_UNITS[match[2]])
    if size < 1:
        raise ValueError
    return size


class Size(int):
    """Marks a parameter that is a number of bytes and may be written as ``4GiB``."""


TEXT = Kind("TEXT", "text", parse_text)
PATH = Kind("PATH", "a path", parse_text)
PATHS = Kind("PATH...", "one or more paths", parse_paths, many=True)
INTEGER = Kind("INT", "a whole number", parse_integer)
NUMBER = Kind("NUMBER", "a number", parse_number)
BOOLEAN = Kind("", "true or false", parse_boolean, flag=True)
INTEGERS = Kind("INT...", "whole numbers", parse_integers, many=True)
WORDS = Kind("TEXT...", "one or more words", parse_words, many=True)
PAIRS = Kind("PAIRS", "a file or list of (reference, secondary) image numbers", parse_pairs, late=True)
SIZE = Kind("SIZE", "a size such as 4GiB", parse_size)

_SIMPLE: dict[Any, Kind] = {
    str: TEXT,
    int: INTEGER,
    float: NUMBER,
    bool: BOOLEAN,
    Array: PATH,
    Size: SIZE,
    Pairs: PAIRS,
    list[Array]: PATHS,
    tuple[Array, ...]: PATHS,
    tuple[str, ...]: WORDS,
    tuple[int, ...]: INTEGERS,
}


def fixed_integers(count: int) -> Kind:
    """Return the kind of exactly `count` whole numbers."""

    def parse(value: Any) -> tuple[int, ...]:
        numbers = parse_integers(value)
        if len(numbers) != count:
            raise ValueError
        return numbers

    return Kind(" ".join(["INT"] * count), f"{count} whole numbers", parse, many=True)


def fixed_numbers(count: int) -> Kind:
    """Return the kind of exactly `count` numbers, written like whole ones."""

    def parse(value: Any) -> tuple[float, ...]:
        numbers = tuple(parse_number(item) for item in items_of(value))
        if len(numbers) != count:
            raise ValueError
        return numbers

    return Kind(" ".join(["NUMBER"] * count), f"{count} numbers", parse, many=True)


def one_of(choices: tuple[str, ...]) -> Kind:
    """Return the kind of one word out of a few."""

    def parse(value: Any) -> str:
        text = parse_text(value)
        if text not in choices:
            raise ValueError
        return text

    return Kind("|".join(choices), "one of " + ", ".join(choices), parse, choices=choices)


def kind_of(annotation: Any) -> Kind:
    """Return the kind that a parameter's annotation means.

    Raises
    ------
    TypeError
        The annotation is none that a command's parameter can have.
    """
    if get_origin(annotation) is Annotated:
        return kind_of(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        options = [option for option in get_args(annotation) if option is not NoneType]
        # "a number or several" is read as several; a single number is a tuple of one
        return kind_of(next((o for o in options if get_origin(o) is tuple), options[0]))
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    items = get_args(annotation)
    if get_origin(annotation) is Literal:
        return one_of(tuple(str(item) for item in items))
    if get_origin(annotation) is tuple and all(item is int for item in items):
        return fixed_integers(len(items))
    if get_origin(annotation) is tuple and all(item is float for item in items):
        return fixed_numbers(len(items))
    msg = f"a command's parameter cannot be annotated {annotation!r}"
    raise TypeError(msg)


def convert(owner: str, name: str, kind: Kind, value: Any) -> Any:
    """Return `value` as its kind says, or raise a `UsageError` naming owner, parameter, expected and found."""
    try:
        return kind.parse(value)
    except UsageError:
        raise
    except OSError as error:
        msg = f"{owner}: {name}: {error.strerror}: {error.filename}"
        raise UsageError(msg) from None
    except (ValueError, TypeError, KeyError, SyntaxError, AttributeError):
        msg = f"{owner}: {name} is {value!r}; expected {kind.expected}"
        raise UsageError(msg) from None
