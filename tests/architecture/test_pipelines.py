"""The pipelines of the repository are sound: every step is checked, as `moraine run --check` does, on a small stack."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from moraine_core.cli.main import run
from moraine_core.testing.data import write_array

ROOT = Path(__file__).parents[2]
PIPELINES = sorted(ROOT.glob("pipelines/*.toml"))


@pytest.mark.parametrize("file", PIPELINES, ids=[file.stem for file in PIPELINES])
def test_all_steps_of_a_pipeline_are_valid(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    spec = importlib.util.spec_from_file_location("sample_stack", ROOT / "tools" / "sample_stack.py")
    sample = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sample)
    shape = (48, 64)
    (tmp_path / "raw").mkdir()
    write_array(tmp_path / "raw" / "rslc.zarr", sample.make_stack(shape, 3, seed=1), chunks=(16, 16, 1))
    words = ["run", str(file), "--check", "--json", "--workdir", str(tmp_path)]
    code = run([*words, "--var", f"shape={shape[0]},{shape[1]}"])
    out = capsys.readouterr()
    assert code == 0, out.err
    assert json.loads(out.out)["ok"] is True
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != ".moraine") == ["raw"]


def test_a_wrong_step_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    text = (ROOT / "pipelines" / "demo.toml").read_text(encoding="utf-8")
    file = tmp_path / "demo.toml"
    file.write_text(text.replace("ras_resolution", "ras_resolutoin"), encoding="utf-8")
    assert run(["run", str(file), "--check"]) == 2
    assert "did you mean ras_resolution?" in capsys.readouterr().err
