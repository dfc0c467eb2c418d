"""Dependencies point one way: read from the source, nothing is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import moraine_core

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
CORE = ROOT / "moraine_core"

ROOMS = {
    "errors": "",
    "blocks": "errors",
    "plan": "blocks errors",
    "arguments": "errors plan",
    "codecs": "plan",
    "blosc": "",
    "options": "arguments codecs",
    "tables": "arguments errors",
    "hookspec": "",
    "declaration": "arguments errors hookspec options plan",
    "catalog": "",
    "cache": "",
    "device": "errors",
    "store": "blocks blosc codecs errors plan",
    "task": "device errors plan",
    "executor": "cache errors options task",
    "journal": "errors store",
    "provenance": "errors journal store",
    "call": "blocks declaration errors executor plan provenance store",
    "run": "call declaration device errors executor journal options plan provenance store task",
    "summary": "journal provenance store",
    "quicklook": "arguments errors store",
    "plugins": "catalog declaration errors hookspec",
    "check": "blocks errors store",
    "pipeline": "arguments call declaration device errors journal options plugins quicklook run store summary",
    "cli": "arguments declaration errors executor options plugins provenance quicklook run summary",
    "testing": "declaration errors executor hookspec options plan plugins run store task",
}
"""What each room of the core may import: rooms above it in this table only, so that there are no circles."""

WHEN_CALLED = {
    "plan": "store",  # an Array or a Chunk reads itself: in a worker, or for a small index
    "declaration": "run",  # a command is also a Python call
    "executor": "device plan store",  # loaded in the worker, or where a GPU was asked for
    "plugins": "tables task",  # the class of an executor is named as text, like a kernel, and its settings are a table
    "task": "store",
    "cli": "check pipeline tables",
    "testing": "cli",
}
"""What may be imported inside functions besides: nothing that merely declares is made heavier by it."""

IMPORT_NAMES = {"cupy-cuda12x": "cupy"}
"""Distributions whose module has another name."""

OPTIONAL = {
    "cupy",  # `device` uses it where an array or a worker is on a GPU; the families offer it as an extra
    "pytest",  # `testing.conformance` is for tests
}
"""What the core imports without depending on it, each only where it is there anyway."""


@dataclass(frozen=True)
class Imported:
    """One import statement's target."""

    where: str
    module: str
    name: str
    in_function: bool

    def __str__(self) -> str:
        return f"{self.where} imports {self.module}" + (f" ({self.name})" if self.name else "")


def imports_of(file: Path) -> Iterator[Imported]:
    """Yield what a file imports, without what only its annotations need."""

    def walk(node: ast.AST, *, in_function: bool) -> Iterator[Imported]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                yield from (Imported(where, alias.name, "", in_function) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{where} imports relatively"
                yield from (Imported(where, child.module or "", alias.name, in_function) for alias in child.names)
            yield from walk(child, in_function=in_function or isinstance(child, ast.FunctionDef))

    where = str(file.relative_to(ROOT))
    yield from walk(ast.parse(file.read_text(encoding="utf-8")), in_function=False)


def room_of(module: str, name: str) -> str:
    """Return the room of the core that an import reaches into; empty for the front door."""
    parts = module.split(".")[1:] or ([name] if (CORE / f"{name}.py").exists() or (CORE / name).is_dir() else [""])
    return parts[0]


def families() -> dict[str, Path]:
    """Return the packages of the families by name."""
    return {package.name: package for package in sorted(ROOT.glob("plugins/*/moraine_*"))}


def project_of(package: Path) -> dict[str, object]:
    return tomllib.loads((package.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def distributions_in(project: dict[str, object], *, extras: bool) -> set[str]:
    """Return the names of the distributions a project depends on."""
    texts = list(project["dependencies"])
    if extras:
        texts += [text for group in project.get("optional-dependencies", {}).values() for text in group]
    return {re.match(r"[\w.-]+", text)[0] for text in texts}


def test_the_table_of_rooms_has_no_circles_and_names_every_room():
    rooms = list(ROOMS)
    for number, room in enumerate(rooms):
        assert set(ROOMS[room].split()) <= set(rooms[:number]), f"{room} may only import rooms above it in the table"
    found = {path.stem for path in CORE.glob("*.py")} | {path.parent.name for path in CORE.glob("*/__init__.py")}
    assert found - {"__init__", "__main__"} == set(rooms)


def test_rooms_of_the_core_import_only_what_the_table_allows():
    wrong = []
    for file in sorted(CORE.rglob("*.py")):
        room = file.relative_to(CORE).parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue
        for found in imports_of(file):
            if not re.match(r"moraine_core\b", found.module) or found.name == "__version__":
                continue
            target = room_of(found.module, found.name)
            allowed = {room, *ROOMS[room].split()}
            if found.in_function:
                allowed |= set(WHEN_CALLED.get(room, "").split())
            if target not in allowed:
                wrong.append(str(found))
    assert wrong == []


def test_the_core_names_no_family():
    wrong = [
        str(found)
        for file in sorted(CORE.rglob("*.py"))
        for found in imports_of(file)
        if found.module.split(".")[0] in families()
    ]
    assert wrong == []


def test_families_import_other_families_only_where_they_depend_on_them():
    wrong = []
    for name, package in families().items():
        allowed = {text.replace("-", "_") for text in distributions_in(project_of(package), extras=False)} | {name}
        for file in sorted(package.rglob("*.py")):
            wrong += [
                str(found)
                for found in imports_of(file)
                if found.module.split(".")[0] in families() and found.module.split(".")[0] not in allowed
            ]
    assert wrong == []


def public_names() -> dict[str, set[str]]:
    """Return the public modules of the core and their names, as docs/writing-a-plugin.md lists them; empty for all."""
    page = (ROOT / "docs" / "writing-a-plugin.md").read_text(encoding="utf-8")
    section = page.partition("## What you may import")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(moraine_core[\w.]*)` \| (.*) \|$", section, re.MULTILINE)
    names = {module: set(re.findall(r"`(\w+)`", text)) for module, text in rows}
    assert names["moraine_core"] == {"__all__"}
    return names | {"moraine_core": set(moraine_core.__all__)}


def test_families_import_only_public_names_of_the_core():
    public = public_names()
    wrong = []
    for package in families().values():
        for file in sorted(package.rglob("*.py")):
            for found in imports_of(file):
                module, name = found.module, found.name
                if module == "moraine_core" and name not in public[module] and room_of(module, name):
                    module, name = f"moraine_core.{name}", ""
                if module.split(".")[0] == "moraine_core" and (
                    module not in public or (name and public[module] and name not in public[module])
                ):
                    wrong.append(str(found))
    assert wrong == []


def test_public_names_exist():
    for module, names in public_names().items():
        __import__(module)
        assert [name for name in names if not hasattr(sys.modules[module], name)] == []


def test_every_import_of_another_package_is_a_dependency():
    packages = {"moraine_core": (CORE, tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])}
    packages |= {name: (package, project_of(package)) for name, package in families().items()}
    wrong = []
    for name, (package, project) in packages.items():
        known = distributions_in(project, extras=name != "moraine_core")
        allowed = {IMPORT_NAMES.get(text, text).replace("-", "_") for text in known} | sys.stdlib_module_names | {name}
        if name == "moraine_core":
            allowed |= OPTIONAL
        for file in sorted(package.rglob("*.py")):
            wrong += [str(found) for found in imports_of(file) if found.module.split(".")[0] not in allowed]
    assert wrong == []
