"""Real positions for the tests of this family."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


@pytest.fixture(scope="session")
def scatterers(real_data: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return longitude and latitude of 2500 persistent scatterers in Amsterdam, in degrees."""
    with (real_data / "tsx-amsterdam-ps-cloud" / "example.csv").open(encoding="utf-8") as file:
        rows = [(float(row["pnt_lon"]), float(row["pnt_lat"])) for row in csv.DictReader(file)]
    lon, lat = np.array(rows).T
    return lon, lat
