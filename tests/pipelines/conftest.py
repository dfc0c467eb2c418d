"""A simulated stack that has gone through the pipelines, for all tests of what came out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moraine_core.cli.main import run
from moraine_core.testing.data import read_array

PIPELINES = Path(__file__).parents[2] / "pipelines"
VARIABLES = {
    "01_load.toml": {},
    "02_ps.toml": {"shape": "240,320", "adi_max": "0.25", "ps_t_coh_min": "0.9"},
    "03_ds.toml": {"shape": "240,320", "block": "100,130"},
    "04_refine.toml": {"shape": "240,320"},
    "05_unwrap.toml": {"shape": "240,320"},
}


@dataclass(frozen=True)
class Scatterers:
    """The work directory, and what is known of the stack in it."""

    work: Path

    def run(self, pipeline: str, *words: str) -> int:
        variables = [word for pair in VARIABLES[pipeline].items() for word in ("--var", "=".join(pair))]
        return run(["run", str(PIPELINES / pipeline), "--workdir", str(self.work), *variables, *words])

    def read(self, name: str) -> np.ndarray[Any, Any]:
        return read_array(self.work / f"{name}.zarr")

    def truth(self, name: str) -> np.ndarray[Any, Any]:
        return self.read(f"gamma/truth/{name}")

    def errors(self, ph: np.ndarray[Any, Any], gix: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Give the phases of phasors relative to the first image less the true ones, of the other images, rad."""
        truth = self.truth("phase")[tuple(gix.T)]
        return np.angle(ph * np.exp(-1j * (truth - truth[:, :1])))[:, 1:]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the first test of a machine, in which all kernels are compiled, the time for that."""
    for item in items:
        if "scatterers" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def scatterers(tmp_path_factory: pytest.TempPathFactory) -> Scatterers:
    """Twenty images in several raster chunks; so little motion that the phase of a window is that of its center."""
    made = Scatterers(tmp_path_factory.mktemp("scatterers"))
    words = ["--shape", "240", "320", "--nimages", "20", "--subsidence", "0.05"]
    assert run(["simulate", "--out", str(made.work / "gamma"), *words, "--quiet"]) == 0
    for pipeline in VARIABLES:
        assert made.run(pipeline, "--quiet", "--no-quicklook") == 0
    return made
