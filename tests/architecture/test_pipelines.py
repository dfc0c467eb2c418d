"""The pipelines of the repository are sound: every step is checked, as `moraine run --check` does, on a small stack."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from moraine_core.cli.main import run
from moraine_core.testing.data import speckle, write_array
from moraine_load.simulate import simulate

ROOT = Path(__file__).parents[2]
PIPELINES = sorted(ROOT.glob("pipelines/*.toml"))

CLOUDS = {
    "04_refine": [
        *("ps/ps_can_hix.zarr", "ps/ps_can_rslc.zarr"),
        *("ds/ds_can_hix.zarr", "ds/ds_can_t_coh.zarr", "ds/ds_hix.zarr", "ds/ds_ph.zarr"),
    ],
    "05_unwrap": ["pc/pc_hix.zarr", "pc/pc_ph.zarr", "pc/pc_e.zarr", "pc/pc_n.zarr"],
}
"""What pipelines start from besides the arrays of 01_load."""


def write_cloud(path: Path) -> None:
    """Write an array of four points: Hilbert indices, images, or numbers, as its name says."""
    path.parent.mkdir(exist_ok=True)
    stem = path.stem.rpartition("_")[2]
    values = {"hix": np.arange(4), "ph": speckle((4, 8)), "rslc": speckle((4, 8))}.get(stem, np.arange(4.0))
    write_array(path, values, chunks=(3, *(1,) * (values.ndim - 1)))


@pytest.mark.parametrize("file", PIPELINES, ids=[file.stem for file in PIPELINES])
def test_all_steps_of_a_pipeline_are_valid(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    shape = (48, 64)
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    if "gamma" not in data["vars"]:  # starts from what 01_load makes
        (tmp_path / "raw").mkdir()
        write_array(tmp_path / "raw" / "rslc.zarr", speckle((*shape, 8)), chunks=(16, 16, 1))
        for name in ("lon", "lat", "e", "n", "hgt", "theta", "phi", "range"):
            write_array(tmp_path / "raw" / f"{name}.zarr", np.zeros(shape), chunks=(16, 16))
        for path in CLOUDS.get(file.stem, ()):
            write_cloud(tmp_path / path)
    elif all(step["run"] != "simulate" for step in data["step"]):
        simulate(out=str(tmp_path / "gamma"), shape=shape, nimages=3)
    words = ["--var", f"shape={shape[0]},{shape[1]}"] if "shape" in data["vars"] else []
    before = sorted(tmp_path.iterdir())
    code = run(["run", str(file), "--check", "--json", "--workdir", str(tmp_path), *words])
    out = capsys.readouterr()
    assert code == 0, out.err
    assert json.loads(out.out)["ok"] is True
    assert sorted(p for p in tmp_path.iterdir() if p.name != ".moraine") == before


def test_a_wrong_step_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    text = (ROOT / "pipelines" / "demo.toml").read_text(encoding="utf-8")
    file = tmp_path / "demo.toml"
    file.write_text(text.replace("ras_resolution", "ras_resolutoin"), encoding="utf-8")
    assert run(["run", str(file), "--check"]) == 2
    assert "did you mean ras_resolution?" in capsys.readouterr().err


def test_the_demo_takes_the_steps_of_the_pipelines_for_ones_own_images():
    demo, *parts = (
        tomllib.loads((ROOT / "pipelines" / f"{name}.toml").read_text(encoding="utf-8"))
        for name in ("demo", "01_load", "02_ps", "03_ds", "04_refine", "05_unwrap")
    )
    assert demo["step"][0]["run"] == "simulate"
    assert demo["step"][1:] == [step for part in parts for step in part["step"]]
    assert demo["defaults"] == parts[0]["defaults"]
