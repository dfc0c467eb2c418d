"""The files of the page: whose they are, that nothing in them points elsewhere, and their colors."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
import zlib
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moraine_view.palette import color_table
from moraine_view.web.answer import page_files

STATIC = Path(str(files("moraine_view.web"))) / "static"
VENDORED = [STATIC / "vendor", Path(__file__).parent / "vendor"]
TABLES = ("cyclic", "diverging", "sequential", "gray")


@pytest.mark.parametrize("folder", VENDORED, ids=["page", "tests"])
def test_files_of_others_are_named_with_version_license_and_hash(folder: Path) -> None:
    listed = tomllib.loads((folder / "vendor.toml").read_text())["file"]
    assert {entry["name"] for entry in listed} == {path.name for path in folder.iterdir()} - {"vendor.toml"}
    for entry in listed:
        assert set(entry) == {"name", "package", "version", "license", "source", "sha256"}
        assert hashlib.sha256((folder / entry["name"]).read_bytes()).hexdigest() == entry["sha256"], entry["name"]


def test_nothing_of_ours_points_to_another_place() -> None:
    """Only the name of the format of drawings is one that looks like an address."""
    for path in STATIC.iterdir():
        if path.is_file():
            found = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`]*", path.read_text(encoding="utf-8"))
            assert {text for text in found if not text.startswith("http://www.w3.org/2000/svg")} == set(), path.name


def test_the_page_has_no_script_or_style_inside() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"\sstyle=|<style|\son\w+=", page) == []
    assert "innerHTML" not in "".join(path.read_text(encoding="utf-8") for path in STATIC.glob("*.js"))


def test_all_that_the_page_loads_is_there() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    names = set(re.findall(r'(?:src|href)="s/([^"]+)"', page))
    modules = "".join(path.read_text(encoding="utf-8") for path in STATIC.glob("*.js"))
    names |= set(re.findall(r'from "\./([^"]+)"', modules))
    assert names <= set(page_files())
    assert {path.name for path in STATIC.glob("*.js")} <= names  # and nothing is there for nobody


def test_what_is_added_to_an_install_is_small() -> None:
    data = "".join(path.read_text(encoding="utf-8") for path in STATIC.rglob("*") if path.is_file()).encode()
    assert len(zlib.compress(data)) < 400_000


def test_looking_is_not_loaded_by_commands_that_compute() -> None:
    """A52: no server, no page and no plotting library in the process of a command."""
    code = """if True:
        import sys
        from moraine_core.plugins import PluginHost
        PluginHost().commands()
        heavy = ("http.server", "matplotlib", "moraine_view.web", "webbrowser", "numpy", "zarr")
        found = [name for name in sys.modules if name.startswith(heavy)]
        sys.exit(" ".join(found) or 0)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# -- colors


def test_the_page_has_the_color_tables_of_pictures() -> None:
    found = json.loads((STATIC / "tables.json").read_text())
    expected = {name: color_table(name)[:255, :3].tobytes().hex() for name in TABLES}  # type: ignore[arg-type]
    assert found == expected


def lab(rgb: Any) -> Any:
    """CIE L*a*b* (D65) of sRGB colors, ``(..., 3)`` from 0 to 1."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((np.clip(rgb, 0, 1) + 0.055) / 1.055) ** 2.4)
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = linear @ matrix.T / [0.9505, 1, 1.089]
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1)


def seen_with(kind: str, rgb: Any) -> Any:
    """Colors as people without one kind of cone see them (Viénot, Brettel and Mollon, 1999), linear matrices."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    matrix = {
        "protan": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
        "deutan": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
    }[kind]
    out = np.clip(linear @ np.array(matrix).T, 0, 1)
    return np.where(out <= 0.0031308, 12.92 * out, 1.055 * out ** (1 / 2.4) - 0.055)


def table(name: Any) -> Any:
    return color_table(name)[:255, :3] / 255


def test_the_ends_of_the_cycle_are_as_near_as_neighbors() -> None:
    colors = lab(table("cyclic"))
    steps = np.linalg.norm(colors - np.roll(colors, 1, axis=0), axis=1)
    assert steps[0] <= steps[1:].max()


def test_sequences_get_lighter_and_diverging_ones_darker_to_both_sides() -> None:
    for name in ("sequential", "gray"):
        assert np.diff(lab(table(name))[:, 0]).min() > -0.3
    light = lab(table("diverging"))[:, 0]
    assert abs(int(light.argmax()) - 127) <= 4
    assert np.diff(light[:122]).min() > -0.5
    assert np.diff(light[132:]).max() < 0.5


@pytest.mark.parametrize("kind", ["protan", "deutan"])
@pytest.mark.parametrize("name", TABLES)
def test_an_eighth_of_the_range_is_seen_with_any_eyes(name: str, kind: str) -> None:
    colors = lab(seen_with(kind, table(name)))
    distance = np.linalg.norm(colors[32:] - colors[:-32], axis=1)
    assert distance.min() > 5


@pytest.mark.parametrize(("scheme", "start"), [("light", 0), ("dark", 1)])
def test_text_is_told_from_what_is_behind_it(scheme: str, start: int) -> None:
    style = (STATIC / "style.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    colors = dict(re.findall(r"--([\w-]+): (#\w{6});", blocks[0])) | dict(
        re.findall(r"--([\w-]+): (#\w{6});", blocks[start])
    )

    def light(name: str) -> float:
        rgb = np.array([int(colors[name][k : k + 2], 16) for k in (1, 3, 5)]) / 255
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    pairs = [("text", "back"), ("text", "card"), ("quiet", "card"), ("on-accent", "accent"), ("warn-text", "warn-back")]
    pairs += [(f"mark-{k}", "card") for k in range(6)]
    for one, two in pairs:
        low, high = sorted((light(one), light(two)))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (scheme, one, two)
    low, high = sorted((light("edge"), light("card")))
    assert (high + 0.05) / (low + 0.05) >= 3


def test_marks_of_places_differ_by_shape() -> None:
    script = (STATIC / "marks.js").read_text()
    shapes = re.findall(r'^  (\w+): "(M[^"]+)",$', script, re.MULTILINE)
    assert len({path for _, path in shapes}) == len(shapes) == 6
    assert all(one[0] != two[0] for one, two in pairwise(shapes))
