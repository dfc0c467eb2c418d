"""Real clouds of Amsterdam: sorted, split and joined again, selected; a point keeps its own data throughout.

2500 points of a TerraSAR-X result (a table), and 156 points of Sentinel-1 with their complex samples (zarr, format 2).
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from moraine_core.store import open_array
from moraine_core.testing.data import read_array, write_array
from moraine_points.bool2gix import bool2gix
from moraine_points.gix2bool import gix2bool
from moraine_points.pc_diff import pc_diff
from moraine_points.pc_gix import pc_gix
from moraine_points.pc_hix import pc_hix
from moraine_points.pc_intersect import pc_intersect
from moraine_points.pc_logic_pc import pc_logic_pc
from moraine_points.pc_select_data import pc_select_data
from moraine_points.pc_sort import pc_sort
from moraine_points.pc_union import pc_union

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

TSX_SHAPE = (4000, 7000)
S1_SHAPE = (2000, 3200)


class Table(NamedTuple):
    """The TerraSAR-X points, in the order of the table, which is that of the raster."""

    pixels: list[tuple[int, int]]
    coherence: list[float]
    displacement: NDArray[np.float32]

    def own(self) -> dict[tuple[int, int], list[float]]:
        """Return the displacements by pixel."""
        return dict(zip(self.pixels, self.displacement.tolist(), strict=True))


@pytest.fixture(scope="module")
def table(real_data: Path) -> Table:
    with (real_data / "tsx-amsterdam-ps-cloud" / "example.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    dates = [name for name in rows[0] if name.startswith("d_")]
    return Table(
        [(int(row["pnt_line"]), int(row["pnt_pixel"])) for row in rows],
        [float(row["pnt_enscoh"]) for row in rows],
        np.array([[float(row[date]) for date in dates] for row in rows], np.float32),
    )


@pytest.fixture
def cloud(table: Table, tmp_path: Path) -> dict[str, str]:
    """Paths of the points in no order, their Hilbert index, displacement and coherence."""
    order = np.random.default_rng(1).permutation(2500)
    gix = write_array(tmp_path / "gix_in.zarr", np.array(table.pixels, np.int32)[order], (400, 2))
    pc_hix(gix=gix, hix=str(tmp_path / "hix_in.zarr"), shape=TSX_SHAPE)
    return {
        "gix": gix,
        "hix": str(tmp_path / "hix_in.zarr"),
        "displacement": write_array(tmp_path / "d_in.zarr", table.displacement[order], (400, 1)),
        "coherence": write_array(tmp_path / "coh_in.zarr", np.array(table.coherence, np.float32)[order], (400,)),
    }


def pixels(path: Path | str) -> list[tuple[int, int]]:
    """Return the pixels of a stored gix."""
    return [(azimuth, range_) for azimuth, range_ in read_array(path).tolist()]


def test_the_table_sorted_by_pixel_is_the_table(table: Table, cloud: dict[str, str], tmp_path: Path) -> None:
    pc_sort(
        idx_in=cloud["gix"], idx=str(tmp_path / "gix.zarr"), pc_in=cloud["displacement"], pc=str(tmp_path / "d.zarr")
    )
    assert pixels(tmp_path / "gix.zarr") == table.pixels
    np.testing.assert_array_equal(read_array(tmp_path / "d.zarr"), table.displacement)
    assert open_array(tmp_path / "d.zarr").chunks == (400, 1)


def test_along_the_hilbert_curve_neighbors_stay_together_with_their_data(
    table: Table, cloud: dict[str, str], tmp_path: Path
) -> None:
    pc_sort(
        idx_in=cloud["hix"], idx=str(tmp_path / "hix.zarr"), pc_in=cloud["displacement"], pc=str(tmp_path / "d.zarr")
    )
    pc_gix(hix=str(tmp_path / "hix.zarr"), gix=str(tmp_path / "gix.zarr"), shape=TSX_SHAPE)
    order = pixels(tmp_path / "gix.zarr")
    own = table.own()
    assert sorted(order) == table.pixels
    assert read_array(tmp_path / "d.zarr").tolist() == [own[pixel] for pixel in order]
    # the way from point to point is shorter than line by line
    length = [float(np.hypot(*np.diff(np.array(way), axis=0).T).sum()) for way in (order, table.pixels)]
    assert length[0] < length[1] / 2


def test_two_overlapping_halves_join_to_the_whole(table: Table, cloud: dict[str, str], tmp_path: Path) -> None:
    """Lines up to 3255 and from 3248 on: what they share is not doubled, and what is cut away comes back."""
    whole = {name: str(tmp_path / f"{name}.zarr") for name in ("idx", "pc")}
    pc_sort(idx_in=cloud["gix"], idx=whole["idx"], pc_in=cloud["displacement"], pc=whole["pc"])
    line = read_array(whole["idx"])[:, 0]
    halves: list[dict[str, str]] = []
    for number, inside in (("1", line <= 3255), ("2", line >= 3248)):
        idx = write_array(tmp_path / f"idx{number}.zarr", read_array(whole["idx"])[inside], (300, 2))
        pc_select_data(idx_in=whole["idx"], idx=idx, pc_in=whole["pc"], pc=str(tmp_path / f"pc{number}.zarr"))
        halves.append({f"idx{number}": idx, f"pc{number}": str(tmp_path / f"pc{number}.zarr")})
    both = {**halves[0], **halves[1]}

    def result(name: str) -> dict[str, str]:
        return {"idx": str(tmp_path / f"{name}_idx.zarr"), "pc": str(tmp_path / f"{name}_pc.zarr")}

    pc_union(**both, **result("union"), shape=TSX_SHAPE)
    pc_intersect(**both, **result("common"))
    pc_diff(idx1=both["idx1"], idx2=both["idx2"], pc1=both["pc1"], **result("rest"))
    assert pixels(result("union")["idx"]) == table.pixels
    np.testing.assert_array_equal(read_array(result("union")["pc"]), table.displacement)
    for name, lines in (("common", range(3248, 3256)), ("rest", range(3248))):
        rows = [k for k, (azimuth, _) in enumerate(table.pixels) if azimuth in lines]
        assert pixels(result(name)["idx"]) == [table.pixels[row] for row in rows]
        np.testing.assert_array_equal(read_array(result(name)["pc"]), table.displacement[rows])
        assert rows


def test_coherent_points_are_chosen_and_get_their_displacements(
    table: Table, cloud: dict[str, str], tmp_path: Path
) -> None:
    """In each kind of index: the data follow in the order of the index that was asked for."""
    coherent = {pixel for pixel, value in zip(table.pixels, table.coherence, strict=True) if value > 0.9}
    own = table.own()
    assert 0 < len(coherent) < 2500
    for kind in ("gix", "hix"):
        idx, coherence, data = (str(tmp_path / f"{kind}{name}.zarr") for name in ("", "_coh", "_d"))
        good, result = str(tmp_path / f"good_{kind}.zarr"), str(tmp_path / f"good_{kind}_d.zarr")
        pc_sort(idx_in=cloud[kind], idx=idx, pc_in=[cloud["coherence"], cloud["displacement"]], pc=[coherence, data])
        pc_logic_pc(idx_in=idx, pc_in=coherence, idx=good, operation="pc_in > 0.9")
        pc_select_data(idx_in=idx, idx=good, pc_in=data, pc=result)
        if kind == "gix":
            order = pixels(good)
        else:
            pc_gix(hix=good, gix=str(tmp_path / "order.zarr"), shape=TSX_SHAPE)
            order = pixels(tmp_path / "order.zarr")
        assert set(order) == coherent
        assert read_array(result).tolist() == [own[pixel] for pixel in order]
        # from the cloud without order too, where it is known by the other index
        other = cloud["hix" if kind == "gix" else "gix"]
        pc_select_data(idx_in=other, idx=good, pc_in=cloud["displacement"], pc=result, shape=TSX_SHAPE)
        assert read_array(result).tolist() == [own[pixel] for pixel in order]


def test_a_mask_of_the_points_gives_them_back(table: Table, cloud: dict[str, str], tmp_path: Path) -> None:
    gix2bool(gix=cloud["gix"], is_pc=str(tmp_path / "is_pc.zarr"), shape=TSX_SHAPE, chunks=(1000, 2000))
    bool2gix(is_pc=str(tmp_path / "is_pc.zarr"), gix=str(tmp_path / "gix.zarr"))
    assert pixels(tmp_path / "gix.zarr") == table.pixels


def test_samples_of_sentinel_1_are_merged_and_selected_with_their_phases(tmp_path: Path, real_data: Path) -> None:
    """The arrays are read where they lie, in format 2, ten images in a chunk; phase is stored beside the samples."""
    store = next((real_data / "s1-amsterdam-ps-complex").rglob(".zgroup")).parent
    gix = np.stack([read_array(store / "azimuth"), read_array(store / "range")], axis=1).astype(np.int32)
    idx_in = write_array(tmp_path / "gix.zarr", gix, (50, 2))
    pc_hix(gix=idx_in, hix=str(tmp_path / "hix_in.zarr"), shape=S1_SHAPE)
    names = ("complex", "phase", "lat")
    stored = [str(store / name) for name in names]
    whole = [str(tmp_path / f"{name}.zarr") for name in names]
    hix = str(tmp_path / "hix.zarr")
    pc_sort(idx_in=str(tmp_path / "hix_in.zarr"), idx=hix, pc_in=stored, pc=whole, shape=S1_SHAPE)
    assert open_array(whole[0]).chunks == (50, 1)

    clouds: dict[str, Any] = {}
    for number, part in (("1", slice(0, 100)), ("2", slice(60, 156))):
        clouds[f"idx{number}"] = write_array(tmp_path / f"hix{number}.zarr", read_array(hix)[part], (40,))
        clouds[f"pc{number}"] = [str(tmp_path / f"{name}{number}.zarr") for name in names]
        pc_select_data(idx_in=hix, idx=clouds[f"idx{number}"], pc_in=whole, pc=clouds[f"pc{number}"])
    joined = [str(tmp_path / f"{name}_joined.zarr") for name in names]
    pc_union(**clouds, idx=str(tmp_path / "joined.zarr"), pc=joined)
    np.testing.assert_array_equal(read_array(tmp_path / "joined.zarr"), read_array(hix))
    for path, before in zip(joined, whole, strict=True):
        np.testing.assert_array_equal(read_array(path), read_array(before))

    # back in the order in which they are stored, by the other kind of index
    order = np.lexsort(gix.T[::-1])
    by_pixel = write_array(tmp_path / "by_pixel.zarr", gix[order], (156, 2))
    back = [str(tmp_path / f"{name}_back.zarr") for name in names]
    pc_select_data(idx_in=str(tmp_path / "joined.zarr"), idx=by_pixel, pc_in=joined, pc=back, shape=S1_SHAPE)
    samples, phase, lat = (read_array(path) for path in back)
    for values, path in ((samples, stored[0]), (phase, stored[1]), (lat, stored[2])):
        np.testing.assert_array_equal(values, read_array(path)[order])
    np.testing.assert_allclose(np.angle(samples), phase, atol=1e-5)
