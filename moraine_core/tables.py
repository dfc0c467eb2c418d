"""Named executors: tables of a file of the user's, each checked against the dataclass that its kind declares."""

from __future__ import annotations

import difflib
import os
import tomllib
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from moraine_core.arguments import convert, kind_of
from moraine_core.errors import StoreNotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "MORAINE_EXECUTORS"
"""Environment variable that names the file."""


def file() -> Path:
    """Return the file of the tables: ``MORAINE_EXECUTORS``, or ``moraine/executors.toml`` of the user's settings."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "moraine" / "executors.toml"


def tables() -> dict[str, dict[str, Any]]:
    """Return all tables ``[executors.NAME]`` by name; none where there is no file.

    Raises
    ------
    StoreNotFoundError
        The environment names a file that is not there.
    UsageError
        The file is no TOML, or has something else in it.
    """
    path = file()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if os.environ.get(VARIABLE):
            msg = f"{VARIABLE} names {path}, which does not exist"
            raise StoreNotFoundError(msg) from None
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"{path}: {error}"
        raise UsageError(msg) from None
    found = content.pop("executors", {})
    wrong = [*content, *(name for name, table in found.items() if not isinstance(table, dict))]
    if wrong:
        msg = f"{path}: found {', '.join(wrong)}; expected tables [executors.NAME] only"
        raise UsageError(msg)
    return dict(found)


def _is_lines(hint: Any) -> bool:
    """Tell whether a field holds texts, each taken as it is; on a command line it would be words."""
    return get_args(hint)[:1] == (tuple[str, ...],)


def _lines(value: Any, name: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(line, str) for line in value):
        msg = f'{where}: {name} is {value!r}; expected a list of texts such as ["..."]'
        raise UsageError(msg)
    return tuple(value)


def read_table(schema: type, table: Mapping[str, Any], where: str) -> Any:
    """Return a table as the dataclass that says which keys there are; a field may be a dataclass, for a table within.

    Parameters
    ----------
    schema
        Its fields are annotated like parameters of commands.
    table
        What the file says, without ``kind``.
    where
        Begins the sentence of an error.

    Raises
    ------
    UsageError
        A key is unknown or missing, or a value is none that its field can have.
    """
    known = [field.name for field in fields(schema)]
    for name in table:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else f"; known are {', '.join(known)}"
            msg = f"{where}: no key {name}{hint}"
            raise UsageError(msg)
    hints = get_type_hints(schema, include_extras=True)
    values = {}
    for field in fields(schema):
        if field.name in table:
            value, hint = table[field.name], hints[field.name]
            if _is_lines(hint):
                values[field.name] = _lines(value, field.name, where)
            elif not is_dataclass(hint):
                values[field.name] = convert(where, field.name, kind_of(hint), value)
            elif isinstance(value, dict):
                values[field.name] = read_table(hint, value, f"{where}: {field.name}")  # type: ignore[arg-type]
            else:
                msg = f"{where}: {field.name} is {value!r}; expected a table such as {{ start = 1 }}"
                raise UsageError(msg)
        elif field.default is MISSING and field.default_factory is MISSING:
            msg = f"{where}: {field.name} is missing"
            raise UsageError(msg)
    try:
        return schema(**values)
    except UsageError as error:
        msg = f"{where}: {error}"
        raise UsageError(msg) from None
