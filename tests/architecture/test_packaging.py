"""The distributions are one set: one version, pinned to each other, and named in every list that names them all."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

from moraine_core.cli.notes import NOTES

ROOT = Path(__file__).parents[2]
CORE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FAMILIES = {
    file.parent.name: tomllib.loads(file.read_text(encoding="utf-8"))
    for file in sorted(ROOT.glob("plugins/*/pyproject.toml"))
}
VERSION = CORE["project"]["version"]


def test_every_folder_of_plugins_is_a_family_with_a_distribution_and_a_package_of_its_name():
    folders = sorted(path.name for path in (ROOT / "plugins").iterdir() if path.is_dir() and path.name != "__pycache__")
    assert folders == list(FAMILIES)
    for family, project in FAMILIES.items():
        assert project["project"]["name"] == f"moraine-{family}"
        assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [f"moraine_{family}"]
        assert (ROOT / "plugins" / family / f"moraine_{family}" / "__init__.py").is_file()


def test_all_versions_are_equal():
    assert {family: project["project"]["version"] for family, project in FAMILIES.items()} == dict.fromkeys(
        FAMILIES, VERSION
    )
    for file in (ROOT / "moraine_core" / "__init__.py", *ROOT.glob("plugins/*/moraine_*/__init__.py")):
        told = re.findall(r'^__version__ = "(.*)"$', file.read_text(encoding="utf-8"), re.MULTILINE)
        assert told in ([], [VERSION]), f"{file} says {told}"
    assert importlib.metadata.version("moraine-core") == VERSION


def test_distributions_of_the_set_pin_each_other_to_that_version():
    for family, project in FAMILIES.items():
        pins = [text for text in project["project"]["dependencies"] if text.startswith("moraine-")]
        assert f"moraine-core=={VERSION}" in pins, f"{family} does not pin the core"
        assert [pin for pin in pins if not pin.endswith(f"=={VERSION}")] == []


def test_all_share_back_end_license_and_python():
    for family, project in FAMILIES.items():
        assert project["build-system"] == CORE["build-system"], family
        for key in ("license", "requires-python"):
            assert project["project"][key] == CORE["project"][key], f"{family}: {key}"


def test_lists_of_all_distributions_name_all():
    names = [f"moraine-{family}" for family in FAMILIES]
    folders = [f"plugins/{family}" for family in FAMILIES]
    packages = [f"moraine_{family}" for family in FAMILIES]
    lines = (ROOT / "requirements-all.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == ["-e .", *(f"-e ./{f}" for f in folders)]
    assert CORE["project"]["optional-dependencies"]["all"] == [f"{name}=={VERSION}" for name in names]
    assert list(CORE["tool"]["uv"]["sources"]) == ["moraine-core", *names]
    assert CORE["tool"]["ruff"]["src"] == [".", *folders]
    assert CORE["tool"]["mypy"]["mypy_path"] == folders
    assert CORE["tool"]["mypy"]["packages"] == ["moraine_core", *packages]


def test_development_groups_that_pip_reads_name_no_distribution_of_the_set():
    assert [text for text in CORE["dependency-groups"]["dev"] if text.startswith("moraine")] == []


def test_zarr_is_bounded_on_both_sides_wherever_it_is_a_dependency():
    """A26: a new major release does not break an install overnight."""
    texts = [text for project in (CORE, *FAMILIES.values()) for text in project["project"]["dependencies"]]
    bounds = {text for text in texts if re.match(r"zarr\b", text)}
    assert len(bounds) == 1, "all say the same"
    assert re.fullmatch(r"zarr>=[\d.]+,<\d+", bounds.pop())


def test_the_version_has_notes_on_what_numbers_mean():
    """A42: a changed default, unit or sign is told by --version-notes."""
    assert next(iter(NOTES)) == VERSION


def test_the_top_of_the_changelog_is_this_version():
    """A42: what changed is told."""
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == VERSION
    assert sorted(headings, key=lambda text: tuple(map(int, text.split("."))), reverse=True) == headings
