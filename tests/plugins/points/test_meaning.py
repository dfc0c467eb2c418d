"""Unit and sign of values go with them, whatever moves them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr

from moraine_core.testing.data import write_array
from moraine_points.pc2ras import pc2ras
from moraine_points.pc_concat import pc_concat
from moraine_points.pc_select_data import pc_select_data
from moraine_points.pc_union import pc_union
from moraine_points.ras2pc import ras2pc
from moraine_points.ras2pc_ras_chunk import ras2pc_ras_chunk

if TYPE_CHECKING:
    from pathlib import Path

MEANING = {"unit": "mm", "sign": "more is up"}


def stored(path: Path, values: Any, **attributes: str) -> str:
    write_array(path, np.asarray(values), chunks=tuple(max(n // 2, 1) for n in np.shape(values)))
    zarr.open_array(path, mode="r+").attrs.update(attributes)
    return str(path)


def meaning(path: Path | str) -> dict[str, Any]:
    attributes = dict(zarr.open_array(path, mode="r").attrs)
    return {key: attributes[key] for key in MEANING if key in attributes}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a raster, and points of it by both indices, and their values."""
    stored(tmp_path / "ras.zarr", np.arange(20.0).reshape(4, 5), **MEANING)
    stored(tmp_path / "gix.zarr", np.array([[0, 1], [2, 3], [3, 0]], np.int32))
    stored(tmp_path / "hix.zarr", np.array([1, 4, 9]))
    stored(tmp_path / "pc.zarr", np.arange(3.0), **MEANING)
    return tmp_path


def test_from_rasters_to_points_and_back(folder: Path):
    ras, gix, pc = (str(folder / f"{name}.zarr") for name in ("ras", "gix", "pc"))
    ras2pc(idx=gix, ras=[ras], pc=[str(folder / "a.zarr")])
    pc2ras(idx=gix, pc=[pc], ras=[str(folder / "b.zarr")], shape=(4, 5))
    ras2pc_ras_chunk(gix=gix, ras=[ras], pc=[str(folder / "c")], key=str(folder / "key.zarr"), chunks=(4, 5))
    pc_concat(pcs=[str(folder / "c")], pc=[str(folder / "d.zarr")])
    for name in ("a.zarr", "b.zarr", "c/0.zarr", "d.zarr"):
        assert meaning(folder / name) == MEANING, name
    assert meaning(folder / "key.zarr").get("sign") is None


def test_from_points_to_a_choice_of_them(folder: Path):
    hix, pc = str(folder / "hix.zarr"), str(folder / "pc.zarr")
    some = stored(folder / "some.zarr", np.array([4, 9]))
    pc_select_data(idx_in=hix, idx=some, pc_in=[pc], pc=[str(folder / "a.zarr")])
    assert meaning(folder / "a.zarr") == MEANING


def test_of_two_clouds_only_what_both_say(folder: Path):
    other = stored(folder / "other.zarr", np.arange(3.0), unit="mm", sign="more is down")
    hix = str(folder / "hix.zarr")
    found = {}
    for name, second in (("same", str(folder / "pc.zarr")), ("other", other)):
        out = folder / f"{name}_union.zarr"
        pc_union(
            idx1=hix, idx2=hix, idx=str(folder / f"{name}_hix.zarr"), pc1=[str(folder / "pc.zarr")], pc2=[second],
            pc=[str(out)], shape=(4, 5),
        )  # fmt: skip
        found[name] = meaning(out)
    assert found == {"same": MEANING, "other": {"unit": "mm"}}
