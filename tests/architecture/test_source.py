"""What the source may not contain."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*ROOT.glob("moraine_core/**/*.py"), *ROOT.glob("plugins/*/moraine_*/**/*.py")])
PROJECTS = [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]

PRINTS = {"moraine_core/cli/main.py"}
"""The one place where a result is printed."""

PARALLEL = re.compile(r"multiprocessing|threading|concurrent|asyncio|joblib|subprocess")
MAY_BE_PARALLEL = {
    "moraine_core/executor/": "all parallel work is its business",
    "moraine_core/store.py": "reads and writes the chunks of one part in threads",
    "moraine_core/cli/main.py": "asks whether this is the main thread, since only that one gets signals",
    "plugins/load/moraine_load/gamma.py": "runs the programs of GAMMA, where they are asked for",
    "plugins/cluster/moraine_cluster/parsl_backend.py": "is an executor's backend, and asks the scheduler for its jobs",
    "plugins/view/moraine_view/web/": "answers a browser's connections side by side; computes nothing for commands",
    "moraine_core/testing/": "makes a backend that is not parallel, and a process to be killed",
}
"""Where threads and processes may be made or looked at, and why."""

KNOWS_GPUS = ("moraine_core/device.py", "moraine_core/executor/")
"""Who reads or sets the variable that says which GPUs are visible."""

NEVER = re.compile(r"(dask|distributed|dask_cuda|rmm)(?![a-z])")


def where(file: Path) -> str:
    return str(file.relative_to(ROOT))


@functools.cache
def nodes() -> list[tuple[str, ast.AST]]:
    return [(where(file), node) for file in SOURCES for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return []


def is_forbidden(file: str, node: ast.AST) -> str:
    """Return why a node may not be there; empty if it may."""
    if isinstance(node, ast.Assert) and not file.startswith("moraine_core/testing/"):
        return "assert vanishes with -O"
    if isinstance(node, ast.ExceptHandler) and node.type is None:
        return "bare except"
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        return "star import"
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and file not in PRINTS
    ):
        return "print"
    if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).rpartition(".")[2] == "prange":
        return "prange: kernels are serial"
    if isinstance(node, ast.keyword) and node.arg == "parallel" and ast.unparse(node.value) == "True":
        return "parallel=True: kernels are serial"
    if isinstance(node, ast.Constant) and node.value == "CUDA_VISIBLE_DEVICES" and not file.startswith(KNOWS_GPUS):
        return "asks the environment for GPUs"
    return ""


def test_the_source_is_free_of_what_is_forbidden():
    found = [f"{file}:{getattr(node, 'lineno', '')}: {is_forbidden(file, node)}" for file, node in nodes()]
    assert [text for text in found if not text.endswith(": ")] == []


@pytest.mark.parametrize(
    "line",
    ["assert x", "try:\n    x\nexcept:\n    y", "from x import *", "print(x)", "nb.prange(3)", "njit(parallel=True)"],
)
def test_what_is_forbidden_is_recognized(line: str):
    assert [reason for node in ast.walk(ast.parse(line)) if (reason := is_forbidden("plugins/a.py", node))]


def test_only_the_executor_makes_threads_and_processes():
    wrong = [
        f"{file} imports {name}"
        for file, node in nodes()
        for name in imported(node)
        if PARALLEL.match(name) and not file.startswith(tuple(MAY_BE_PARALLEL))
    ]
    assert wrong == []
    for place in MAY_BE_PARALLEL:
        assert any(where(file).startswith(place) for file in SOURCES), f"{place} is gone"


def test_dask_and_memory_pools_are_neither_imported_nor_depended_on():
    assert [f"{file}: {name}" for file, node in nodes() for name in imported(node) if NEVER.match(name)] == []
    for file in PROJECTS:
        for name in dependency_names(file):
            assert not NEVER.match(name.replace("-", "_")), f"{where(file)} depends on {name}"


def test_a_plain_install_brings_no_gpu_library():
    """A57: CUDA comes as an extra, torch with the filter family."""
    for file in PROJECTS:
        plain = tomllib.loads(file.read_text(encoding="utf-8"))["project"]["dependencies"]
        heavy = [text for text in plain if re.match(r"cupy|torch|nvidia|cuda", text)]
        assert not heavy or file.parent.name == "filter", f"{where(file)} depends on {heavy}"


def test_torch_is_a_dependency_of_the_filter_family_alone():
    with_torch = {file.parent.name for file in PROJECTS if any(re.match(r"torch", n) for n in dependency_names(file))}
    assert with_torch <= {"filter"}
    importing = {
        file.split("/")[1] for file, node in nodes() for name in imported(node) if name.split(".")[0] == "torch"
    }
    assert importing <= {"filter"}


def dependency_names(file: Path) -> list[str]:
    """Return the distributions that a project names anywhere: dependencies, extras, groups."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    lists = [data["project"]["dependencies"], *data["project"].get("optional-dependencies", {}).values()]
    lists += data.get("dependency-groups", {}).values()
    return [re.match(r"[\w.-]+", text)[0] for texts in lists for text in texts]


# --------------------------------------------------------------------------------------------------------- spelling

MISSPELLINGS = {
    "emperical": "empirical",
    "homogenious": "homogeneous",
    "dimention": "dimension",
    "hillbert": "hilbert",
    "ajacent": "adjacent",
    "seperate": "separate",
    "recieve": "receive",
    "occured": "occurred",
    "neighbour": "neighbor",
    "colour": "color",
    "normalise": "normalize",
    "initialise": "initialize",
    "metre": "meter",
    r"master\b": "reference",
    r"slave\b": "secondary",
}
"""What is not written, and what is."""

SPELLED_BY_OTHERS = {"tools/bench/science_peer.py", "plugins/ds/pyproject.toml"}
"""Files that name what another package spells so, or an alias for its users."""

PLACES = ("moraine_core/**/*", "plugins/**/*", "tests/**/*", "tools/**/*", "pipelines/*", "docs/**/*", "*.md")


def test_words_are_spelled_as_in_the_glossary():
    wrong = re.compile(r"(?<![a-z])(" + "|".join(MISSPELLINGS) + ")", re.IGNORECASE)
    texts = [
        file
        for pattern in PLACES
        for file in ROOT.glob(pattern)
        if file.suffix in (".py", ".md", ".toml") and file != Path(__file__) and where(file) not in SPELLED_BY_OTHERS
    ]
    found = [
        f"{where(file)}:{number}: {match[0]}"
        for file in texts
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for match in wrong.finditer(line)
    ]
    assert found == []
