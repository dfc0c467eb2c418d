"""The command reference is what the packages declare now, and its examples are lines that the commands take."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moraine_core import catalog
from moraine_core.plugins import PluginHost

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_and_catalog_are_those_that_the_declarations_give(reference: ModuleType):
    made = reference.files()
    stale = [
        str(name)
        for name, text in made.items()
        if not (ROOT / name).exists() or (ROOT / name).read_text("utf-8") != text
    ]
    left = [p.name for p in (ROOT / reference.PAGES).glob("*.md") if p.relative_to(ROOT) not in made]
    assert stale + left == [], "run: python tools/reference.py"


def test_the_catalog_names_each_installed_command_with_the_distribution_that_brings_it():
    records = [
        r
        for r in PluginHost().records()
        if r.group == "moraine.commands" and r.distribution in {e.distribution for e in catalog.COMMANDS.values()}
    ]
    assert {r.name: r.distribution for r in records} == {n: e.distribution for n, e in catalog.COMMANDS.items()}


def test_a_docstring_without_an_example_is_refused(reference: ModuleType):
    with pytest.raises(ValueError, match=r"no section Examples in the docstring 'Do it\.'"):
        reference.split_help("Do it.\n\nMore of it.")


def test_sentences_of_failures_name_what_is_filled_in(reference: ModuleType):
    function = ast.parse(
        'def f(n):\n    if n:\n        raise ValueError(f"n is {n}; expected {n + 1}")\n'
        '    msg = "never"\n    raise KeyError(msg)\n'
    ).body[0]
    assert list(reference.raised_in(function)) == ["n is <n>; expected <n + 1>", "never"]


def test_cells_of_a_table_cannot_break_it(reference: ModuleType):
    assert reference.table(("a", "empty", "b"), [("x|y", "", "<z>")]) == "| a | b |\n| --- | --- |\n| x\\|y | &lt;z> |"
