"""Public array functions say what they take and what they give in sections of their docstrings."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = sorted(ROOT.glob("plugins/*/moraine_*/**/kernels.py"))


def array_functions(file: Path) -> list[ast.FunctionDef]:
    """Return the public functions of a module that take or return an array: their annotations name one."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    return [function for function in functions if re.search(r"[aA]rray", signature_of(function))]


def signature_of(function: ast.FunctionDef) -> str:
    return f"{ast.unparse(function.args)} -> {ast.unparse(function.returns) if function.returns else ''}"


def section(docstring: str, title: str) -> str:
    """Return the text of a numpydoc section; empty where there is none."""
    found = re.search(rf"^{title}\n-{{{len(title)}}}\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", docstring, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


def problems_of(function: ast.FunctionDef) -> list[str]:
    """Return what the docstring of a function leaves out."""
    docstring = ast.get_docstring(function) or ""
    documented = {
        name.strip(" *")
        for line in section(docstring, "Parameters").splitlines()
        if re.match(r"\S", line)
        for name in line.partition(":")[0].split(",")
    }
    arguments = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    found = [f"{name} is not in Parameters" for name in arguments if name not in documented]
    returned = ast.unparse(function.returns) if function.returns else ""
    results = "Yields" if re.match(r"Iterator|Generator", returned) else "Returns"
    if returned != "None" and not section(docstring, results):
        found.append(f"no section {results}")
    return [f"{function.name}: {problem}" for problem in found]


@pytest.mark.parametrize("file", KERNELS, ids=[file.parent.name for file in KERNELS])
def test_public_kernels_document_every_parameter_and_the_result(file: Path):
    functions = array_functions(file)
    assert functions
    assert [problem for function in functions for problem in problems_of(function)] == []


def test_a_parameter_or_a_result_that_is_left_out_is_found():
    source = 'def f(a, b) -> int:\n    """Do.\n\n    Parameters\n    ----------\n    a\n        One.\n    """\n'
    assert problems_of(ast.parse(source).body[0]) == ["f: b is not in Parameters", "f: no section Returns"]
