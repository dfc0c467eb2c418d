"""What the host hears from this family through its hooks."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr

from moraine_core import UsageError
from moraine_core.cli.main import run as run_line
from moraine_core.testing.data import write_array
from moraine_view import summary
from moraine_view.hooks import moraine_quicklook, moraine_summary
from moraine_view.pc_pyramid import pc_pyramid
from moraine_view.ras_pyramid import ras_pyramid

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


@pytest.fixture
def raster(tmp_path: Path) -> Path:
    data = np.arange(60 * 40, dtype="float32").reshape(60, 40)
    data[:3] = np.nan
    write_array(tmp_path / "ras.zarr", data)
    ras_pyramid(ras=str(tmp_path / "ras.zarr"), out_dir=str(tmp_path / "raster"))
    return tmp_path / "raster"


@pytest.fixture
def cloud(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    data = {"pc": np.arange(300, dtype="int16").reshape(100, 3), "x": rng.random(100) * 1e3, "y": rng.random(100) * 500}
    paths = {name: write_array(tmp_path / f"{name}.zarr", values) for name, values in data.items()}
    pc_pyramid(**paths, out_dir=str(tmp_path / "cloud"), method="mean")
    return tmp_path / "cloud"


def mark(pyramid: Path, **changes: Any) -> None:
    """Change the marker; None removes it."""
    array = zarr.open_array(pyramid / "0.zarr", mode="r+")
    old: dict[str, Any] = dict(array.attrs["moraine_pyramid"])  # type: ignore[arg-type]
    kept = {key: value for key, value in (old | changes).items() if value is not None}
    array.attrs.put({"moraine_pyramid": kept} if kept else {})


def forget(pyramid: Path) -> None:
    mark(pyramid, version=None, kind=None, method=None, stats=None)


def percentiles(values: NDArray[Any]) -> dict[str, float]:
    return dict(zip(("p01", "p50", "p99"), np.percentile(values, [1, 50, 99]), strict=True))


def test_a_raster_pyramid_is_summarized_from_its_marker(raster: Path) -> None:
    values = np.arange(120, 2400)
    found = moraine_summary(raster)
    assert found == {
        "path": str(raster),
        "kind": "raster pyramid",
        "shape": [60, 40],
        "dtype": "float32",
        "levels": 6,
        "method": "decimate",
        "stats_level": 0,
        "nan_fraction": 0.05,
        "min": 120.0,
        "max": 2399.0,
        "mean": pytest.approx(values.mean(), rel=1e-5),
        "std": pytest.approx(values.std(), rel=1e-5),
        **{name: pytest.approx(value, rel=1e-5) for name, value in percentiles(values).items()},
        "warnings": [],
    }
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_point_pyramid_has_the_shape_of_its_raster_and_the_dtype_of_its_points(cloud: Path) -> None:
    found = moraine_summary(cloud)
    assert found is not None
    level0 = zarr.open_array(cloud / "0.zarr", mode="r")
    assert (found["kind"], found["shape"], found["dtype"]) == ("point cloud pyramid", list(level0.shape), "int16")
    assert (found["method"], found["min"], found["max"], found["mean"]) == ("mean", 0.0, 299.0, 149.5)


def test_a_cloud_in_degrees_has_a_summary_though_no_picture(tmp_path: Path) -> None:
    data = {"pc": np.arange(4.0), "x": np.array([14.1, 14.2, 14.3, 14.4]), "y": np.array([40.1, 40.2, 40.3, 40.4])}
    paths = {name: write_array(tmp_path / f"{name}.zarr", values) for name, values in data.items()}
    pc_pyramid(**paths, out_dir=str(tmp_path / "cloud"), ras_resolution=0.1)
    found = moraine_summary(tmp_path / "cloud")
    assert found is not None
    assert found["max"] == 3.0
    with pytest.raises(ValueError, match="degrees"):
        moraine_quicklook(tmp_path / "cloud", tmp_path / "p.png", {})


def test_anything_else_is_left_to_others(tmp_path: Path, raster: Path) -> None:
    (tmp_path / "file").write_text("x")
    write_array(tmp_path / "parts" / "0.zarr", np.zeros((5, 2)))
    write_array(tmp_path / "parts" / "1.zarr", np.zeros((4, 2)))
    write_array(tmp_path / "points" / "0.zarr", np.zeros(5))
    others = ("file", "absent", "ras.zarr", "parts", "points", ".")
    assert [moraine_summary(tmp_path / name) for name in others] == [None] * 6
    shutil.rmtree(raster / "0.zarr")
    assert moraine_summary(raster) is None


def test_an_old_pyramid_without_a_marker_is_measured(raster: Path) -> None:
    known = moraine_summary(raster)
    assert known is not None
    forget(raster)
    found = moraine_summary(raster)
    assert found == {key: value for key, value in known.items() if key != "method"}


def test_a_coarser_level_is_measured_where_level_0_is_large(raster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forget(raster)
    monkeypatch.setattr(summary, "MOST_BYTES", 4 * 15 * 10)
    found = moraine_summary(raster)
    assert found is not None
    assert found["stats_level"] == 2
    assert (found["min"], found["max"]) == (160.0, 40 * 56 + 36)  # lines 4 and 56, every fourth sample


def test_statistics_of_means_are_named_as_such(raster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark(raster, method="mean", stats=None)
    monkeypatch.setattr(summary, "MOST_BYTES", 4 * 15 * 10)
    found = moraine_summary(raster)
    assert found is not None
    assert found["warnings"] == ["statistics are of the means of level 2"]


def test_empty_cells_of_an_old_point_pyramid_do_not_count(cloud: Path) -> None:
    forget(cloud)
    found = moraine_summary(cloud)
    assert found is not None
    assert found["kind"] == "point cloud pyramid"
    shown = np.unique(np.asarray(zarr.open_array(cloud / "idx_0.zarr", mode="r")[...]))[1:]
    values = np.arange(300).reshape(100, 3)[shown]
    assert (found["nan_fraction"], found["min"]) == (0.0, values.min())
    assert found["mean"] == pytest.approx(values.mean(), rel=1e-5)


def test_a_pyramid_of_a_later_version_is_not_guessed_at(raster: Path) -> None:
    mark(raster, version=2)
    with pytest.raises(ValueError, match="version 2; this moraine reads versions up to 1"):
        moraine_summary(raster)


def test_pictures_are_drawn_of_what_the_commands_write(tmp_path: Path, raster: Path, cloud: Path) -> None:
    from PIL import Image

    options = {"show": None, "index": None, "width": 60, "extent": [0.0, 10.0, 20.0, 30.0], "dates": None}
    assert moraine_quicklook(raster, tmp_path / "a" / "r.png", options) == tmp_path / "a" / "r.png"
    with Image.open(tmp_path / "a" / "r.png") as picture:
        assert picture.width > 60
    options = {"show": None, "index": [2], "width": 50, "extent": None, "dates": ["20200101", "20200113", "20200125"]}
    moraine_quicklook(cloud, tmp_path / "c.png", options)
    with Image.open(tmp_path / "c.png") as picture:
        found = np.asarray(picture.convert("RGB")).reshape(-1, 3)
    assert len(np.unique(found, axis=0)) > 50


def test_what_is_no_pyramid_is_told_how_to_become_one(tmp_path: Path, raster: Path) -> None:
    source = raster.parent / "ras.zarr"
    with pytest.raises(UsageError, match=r"^quicklook: .*moraine ras-pyramid"):
        moraine_quicklook(source, tmp_path / "p.png", {})


def test_pairs_of_a_coherence_come_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A network that is not full: of three images the pairs (0, 1) and (1, 2)."""
    write_array(tmp_path / "coh.zarr", np.full((4, 4, 2), 0.5j, "complex64"))
    ras_pyramid(ras=str(tmp_path / "coh.zarr"), out_dir=str(tmp_path / "coh"))
    (tmp_path / "pairs.txt").write_text("# reference secondary\n0 1\n1 2\n")
    line = ["quicklook", str(tmp_path / "coh"), "--show", "coh_abs", "--width", "20"]
    assert run_line([*line, "--quiet"]) == 2
    assert "2 pairs are not all pairs of any number of images; give the image pairs" in capsys.readouterr().err
    assert run_line([*line, "--image-pairs", str(tmp_path / "pairs.txt"), "--index", "2", "1"]) == 0
    assert (tmp_path / "coh.png").exists()
    assert run_line([*line, "--image-pairs", str(tmp_path / "coh.png")]) == 2
