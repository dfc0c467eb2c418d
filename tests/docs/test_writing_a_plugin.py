"""The package of docs/writing-a-plugin.md, taken from the page as it stands: it installs, runs and keeps to the kit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from moraine_core import Command, Layout
from moraine_core.plan import Array
from moraine_core.testing.data import read_array, write_array

PAGE = Path(__file__).parents[2] / "docs" / "writing-a-plugin.md"
FILES = re.compile(r'^```\w+ title="(?P<name>[^"]+)"\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)
FRAGMENTS = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Installed:
    """The package: where its sources are, and where it is installed."""

    sources: Path
    target: Path

    def run(self, *words: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "PYTHONPATH": str(self.target), **environment}
        line = [sys.executable, *words]
        return subprocess.run(line, cwd=cwd, env=variables, text=True, capture_output=True, timeout=110, check=False)

    def moraine(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "moraine_core", *words, **environment)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("plugin")
    made = Installed(folder / "moraine-coh", folder / "site")
    for block in FILES.finditer(PAGE.read_text(encoding="utf-8")):
        file = made.sources / block["name"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block["text"], encoding="utf-8")
    # nothing is fetched: the build back end is among the tools of the tests, the dependencies are installed
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    done = made.run("-m", "pip", "install", *options, "--target", str(made.target), str(made.sources))
    assert done.returncode == 0, done.stderr
    return made


def test_the_tree_on_the_page_names_the_files_that_the_page_holds():
    text = PAGE.read_text(encoding="utf-8")
    tree = re.search(r"```text\nmoraine-coh/\n(.*?)```", text, re.DOTALL)
    assert tree is not None
    named = {Path(word).name for word in re.findall(r"[\w./]+\.(?:py|toml)\b", tree[1])}
    assert named == {Path(block["name"]).name for block in FILES.finditer(text)}


def test_the_installed_command_gives_the_coherence_of_two_images(package: Installed, tmp_path: Path):
    # in a window of 3 pixels of equal brightness where k of them agree and 3 - k are opposed, it is |2k - 3| / 3
    ref = np.ones((4, 9), np.complex64)
    sec = np.ones((4, 9), np.complex64)
    sec[:, 4] = -1
    paths = [write_array(tmp_path / f"{name}.zarr", image, (2, 4)) for name, image in (("ref", ref), ("sec", sec))]
    coh = tmp_path / "coh.zarr"
    ledger = tmp_path / "ledger.tsv"
    words = ["--ref", paths[0], "--sec", paths[1], "--coh", str(coh), "--az-half-win", "0", "--r-half-win", "1"]
    done = package.moraine("coh-mag", *words, "--json", COH_LEDGER=str(ledger))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outputs"] == [str(coh)]
    expected = np.ones((4, 9), np.float32)
    expected[:, 3:6] = 1 / 3
    np.testing.assert_allclose(read_array(coh), expected, rtol=1e-6)
    name, _, peak, outcome = ledger.read_text(encoding="utf-8").rstrip("\n").split("\t")
    assert (name, outcome) == ("coh-mag", "ok")
    assert int(peak) > 0


def test_wrong_calls_of_the_command_are_usage_errors_that_say_what_was_found(package: Installed, tmp_path: Path):
    ref = write_array(tmp_path / "ref.zarr", np.ones((4, 9), np.complex64))
    sec = write_array(tmp_path / "sec.zarr", np.ones((4, 8), np.complex64))
    sizes = package.moraine("coh-mag", "--ref", ref, "--sec", sec, "--coh", str(tmp_path / "coh.zarr"))
    assert sizes.returncode != 0
    assert "sec.zarr has shape (4, 8); expected width 9" in sizes.stderr
    window = package.moraine("coh-mag", "--ref", ref, "--sec", ref, "--coh", "c.zarr", "--r-half-win=-1", "--dry-run")
    assert window.returncode == 2
    assert "(2, -1); expected 0 or more" in window.stderr


def test_the_host_lists_the_command_and_its_owner(package: Installed):
    listed = json.loads(package.moraine("list", "--json").stdout)["commands"]
    assert "moraine_coh.coh_mag" in [c["module"] for c in listed if c["name"] == "coh-mag"]
    states = json.loads(package.moraine("plugins", "--json").stdout)["plugins"]
    mine = {p["name"]: (p["version"], p["status"]) for p in states if p["distribution"] == "moraine-coh"}
    assert mine == {"coh-mag": ("1.0.0", "ok"), "coh": ("1.0.0", "ok")}


@pytest.mark.parametrize("blocked", ["coh-mag", "moraine-coh"])
def test_a_blocked_plugin_is_refused_and_nothing_else(package: Installed, blocked: str):
    """A56: it is not even imported."""
    refused = package.moraine("coh-mag", "--help", MORAINE_BLOCK=blocked)
    assert refused.returncode == 1
    assert "coh-mag of moraine-coh 1.0.0 cannot be used: blocked" in refused.stderr
    code = "import sys; from moraine_core.plugins import PluginHost; print(*[c.name for c in PluginHost().commands()])"
    names, modules = package.run("-c", f"{code}; print(*sys.modules)", MORAINE_BLOCK=blocked).stdout.splitlines()
    assert "amp-disp" in names.split()
    assert "coh-mag" not in names.split()
    assert "moraine_coh.coh_mag" not in modules.split()


def test_the_tests_of_the_package_pass(package: Installed):
    # the tests of the page run against what is installed, so the sources are not on the path
    options = ["-q", "-W", "error", "-p", "no:cacheprovider", "-p", "no:randomly", "--import-mode=importlib"]
    done = package.run("-m", "pytest", *options, str(package.sources / "tests"), cwd=package.target)
    assert done.returncode == 0, done.stdout
    assert " skipped" not in done.stdout


def test_the_package_is_tidy(package: Installed):
    for check in (["check", "--select", "E,F,W,I,B,UP"], ["format", "--check"]):
        tidy = [*check, "--isolated", "--no-cache", "--line-length", "120", str(package.sources)]
        done = package.run("-m", "ruff", *tidy, cwd=package.sources)
        assert done.returncode == 0, done.stdout


def test_the_fragments_of_the_page_declare_what_they_say():
    space: dict[str, object] = {}
    fragments = FRAGMENTS.findall(PAGE.read_text(encoding="utf-8"))
    for fragment in fragments:
        exec(compile(fragment, str(PAGE), "exec"), space)
    rslc = Array("rslc.zarr", (10, 8, 3), "complex64", (5, 8, 1))
    tasks = space["mean_tasks"](rslc, out := Layout("m.zarr", (10, 8), "float32", (5, 8)))
    assert [str(task.outputs[0]) for task in tasks] == ["m.zarr[0:5, 0:8]", "m.zarr[5:10, 0:8]"]
    index = Array("gix.zarr", (10, 2), "int32", (10, 2))
    assert list(space["plan_with_order"](index, [out], tasks).problems()) == []
    generator = space["coh_points"]
    assert isinstance(generator, Command)
    coh = Array("coh.zarr", (10, 8), "float32", (5, 8))
    plans = generator.function(coh, "gix.zarr", 0.5)
    first = next(plans)
    assert len(first.tasks) == 2
    second = plans.send([3, 4])
    assert [layout.shape for layout in second.outputs] == [(7, 2)]
    assert list(second.problems()) == []
