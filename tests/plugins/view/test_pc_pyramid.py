"""Pyramids of point clouds as the command builds them, against plain loops."""

from __future__ import annotations

import math
import tomllib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from pyramid_files import arrays, marker, same_bits

from moraine_core import MoraineError, Workers
from moraine_core.testing.data import read_array, write_array
from moraine_points.kernels import rtree_query
from moraine_view import pc_pyramid as declaration
from moraine_view.pc_pyramid import pc_pyramid
from moraine_view.pyramid import open_pyramid

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

SMALL = {"ras_chunks": (4, 5), "pc_chunks": 50}


@pytest.fixture
def _small_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw few cells per task, so that even small grids need several bands and stages."""
    monkeypatch.setattr(declaration, "BAND_CELLS", 200)


def cloud(dtype: str, n: int, stack: tuple[int, ...] = (), seed: int = 0) -> dict[str, NDArray[Any]]:
    """Make points at random places, several of them in some cells, with holes where the dtype has them."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(1_574_000, 1_574_470, n), rng.uniform(4_985_000, 4_985_610, n)
    values = rng.normal(5, 100, size=(n, *stack))
    if dtype == "bool":
        pc = values > 0
    elif dtype.startswith("int"):
        pc = values.astype(dtype)
    else:
        values = values + 1j * rng.normal(size=values.shape) if dtype.startswith("complex") else values
        values[rng.random(values.shape) < 0.2] = np.nan
        pc = values.astype(dtype)
    return {"pc": pc, "x": x, "y": y}


def build(folder: Path, data: dict[str, NDArray[Any]], workers: Workers | None = None, **options: Any) -> Path:
    for name, values in data.items():
        if not (folder / f"{name}.zarr").exists():
            write_array(folder / f"{name}.zarr", values, (37, *(1,) * (values.ndim - 1)))
    out = folder / f"pyramid{len(list(folder.iterdir()))}"
    pc_pyramid(**{name: str(folder / f"{name}.zarr") for name in data}, out_dir=str(out), workers=workers, **options)
    return out


def loop_index(x: NDArray[Any], y: NDArray[Any], res: float) -> list[NDArray[Any]]:
    """Put one point after another into its cell, then halve cell by cell."""
    rows = [round((float(v) - float(y.min())) / res) for v in y]
    cols = [round((float(v) - float(x.min())) / res) for v in x]
    index = np.full((max(rows) + 1, max(cols) + 1), -1)
    for p, (i, j) in enumerate(zip(rows, cols, strict=True)):
        index[i, j] = p
    levels = [index]
    for level in range(1, math.floor(math.log2(min(index.shape))) + 1):
        fine = levels[-1]
        coarse = np.full([math.ceil(n / 2**level) for n in index.shape], -1)
        for (i, j), _ in np.ndenumerate(coarse):
            quad = fine[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].ravel()
            coarse[i, j] = next((p for p in quad if p >= 0), -1)
        levels.append(coarse)
    return levels


def loop_values(pc: NDArray[Any], index: NDArray[Any]) -> NDArray[Any]:
    """Look up what each cell shows; nan where it is empty."""
    out = np.full(index.shape, complex(np.nan, np.nan) if pc.dtype.kind == "c" else np.nan, dtype=out_dtype(pc))
    for (i, j), p in np.ndenumerate(index):
        if p >= 0:
            out[i, j] = pc[p]
    return out


def loop_means(pc: NDArray[Any], index: NDArray[Any], level: int) -> NDArray[Any]:
    """Average the finite level-0 cells of each block."""
    fine, side = loop_values(pc, index).astype("complex128"), 1 << level
    out = np.full([math.ceil(n / side) for n in index.shape], np.nan, dtype="complex128")
    for (i, j), _ in np.ndenumerate(out):
        block = fine[i * side : (i + 1) * side, j * side : (j + 1) * side]
        if np.isfinite(block).any():
            out[i, j] = block[np.isfinite(block)].mean()
    return out


def out_dtype(pc: NDArray[Any]) -> Any:
    return pc.dtype if pc.dtype.kind in "fc" else np.dtype("float32")


# -- levels


@pytest.mark.usefixtures("_small_bands")
@pytest.mark.parametrize("method", ["first", "mean"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32", "bool"])
def test_every_level_is_what_a_loop_over_its_cells_gives(tmp_path: Path, dtype: str, method: str) -> None:
    data = cloud(dtype, 300)
    pyramid = build(tmp_path, data, ras_resolution=20, method=method, **SMALL)
    index = loop_index(data["x"], data["y"], 20)
    found = arrays(pyramid)
    assert len([name for name in found if name.startswith("idx_")]) == len(index) > 4
    for level, shown in enumerate(index):
        stored = zarr.open_array(pyramid / f"{level}.zarr", mode="r")
        assert (stored.dtype, stored.chunks) == (out_dtype(data["pc"]), (4, 5))
        assert found[f"idx_{level}.zarr"].dtype == np.int64
        np.testing.assert_array_equal(found[f"idx_{level}.zarr"], shown)
        if method == "first" or level == 0:
            np.testing.assert_array_equal(stored[...], loop_values(data["pc"], shown))
        else:
            expected = loop_means(data["pc"], index[0], level)
            np.testing.assert_allclose(stored[...], expected, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("method", ["first", "mean"])
def test_bits_depend_neither_on_bands_nor_on_chunks_nor_on_workers(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = cloud("complex64", 1300, (2,))
    whole = build(tmp_path, data, method=method)
    for cells, points, tile, block in (
        (1, 1, (4, 5), 256),  # three blocks of points
        (200, 1, (8, 8), 7),
        (500, 600, (3, -1), 128),
        (10**6, 10**6, (5, 5), -1),
    ):
        monkeypatch.setattr(declaration, "BAND_CELLS", cells)
        monkeypatch.setattr(declaration, "BLOCK_POINTS", points)
        options = {"method": method, "ras_chunks": tile, "pc_chunks": block}
        assert same_bits(build(tmp_path, data, Workers(n_workers=3), **options), whole)


@pytest.mark.parametrize("chunk", [1, 7, 512, 700, 65536, 65537, -1])
@pytest.mark.parametrize("n_points", [1, 511, 513, 3_000_000])
def test_blocks_of_points_are_whole_chunks_and_whole_pages(chunk: int, n_points: int) -> None:
    for stored in (1, 10**6):
        blocks = declaration._blocks(n_points, chunk, stored)
        assert [block.start for block in blocks[1:]] == [block.stop for block in blocks[:-1]]
        assert (blocks[0].start, blocks[-1].stop) == (0, n_points)
        for block in blocks[1:]:
            assert block.start % declaration.PAGE_SIZE == 0
            assert block.start % (n_points if chunk == -1 else chunk) == 0


@pytest.mark.usefixtures("_small_bands")
def test_points_in_any_order_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hilbert order makes reading fast, but no difference to what is seen."""
    monkeypatch.setattr(declaration, "BLOCK_POINTS", 1)
    data = cloud("float32", 1300)  # in random order
    found = arrays(build(tmp_path, data, pc_chunks=100, ras_chunks=(4, 4)))
    for level, index in enumerate(loop_index(data["x"], data["y"], 20)):
        np.testing.assert_array_equal(found[f"idx_{level}.zarr"], index)
        np.testing.assert_array_equal(found[f"{level}.zarr"], loop_values(data["pc"], index))


@pytest.mark.parametrize("method", ["first", "mean"])
def test_all_points_in_one_cell_show_the_last(tmp_path: Path, method: str) -> None:
    data = cloud("float32", 20)
    found = arrays(build(tmp_path, data, ras_resolution=10_000, method=method))
    assert found["idx_0.zarr"].tolist() == [[19]]
    np.testing.assert_array_equal(found["0.zarr"], data["pc"][19:, None])
    assert "1.zarr" not in found


def test_spawned_workers_give_the_same_bits(tmp_path: Path) -> None:
    data = cloud("float32", 100)
    assert same_bits(build(tmp_path, data, Workers(n_workers=2, processes=True)), build(tmp_path, data))


@pytest.mark.parametrize("method", ["first", "mean"])
def test_each_image_of_a_stack_has_the_rasters_it_has_alone(tmp_path: Path, method: str) -> None:
    data = cloud("float32", 200, (3,))
    stack = arrays(build(tmp_path, data, method=method))
    for k in range(3):
        (tmp_path / str(k)).mkdir()
        alone = arrays(build(tmp_path / str(k), {**data, "pc": data["pc"][:, k]}, method=method))
        for name in ("0.zarr", "1.zarr", "2.zarr", "pc.zarr"):
            assert stack[name][..., k].tobytes() == alone[name].tobytes()
        assert stack["stats.zarr"][k].tobytes() == alone["stats.zarr"].tobytes()


def test_the_later_of_two_points_in_a_cell_is_shown(tmp_path: Path) -> None:
    places = {"x": np.array([0.0, 30.0, 9.0, 30.0]), "y": np.array([0.0, 40.0, 9.0, 0.0])}
    found = arrays(build(tmp_path, {"pc": np.array([1.0, 2.0, 3.0, 4.0]), **places}, ras_resolution=20))
    # 30 lies between the centers 20 and 40: half to even, as numpy rounds, gives cell 2
    np.testing.assert_array_equal(found["idx_0.zarr"], [[2, -1, 3], [-1, -1, -1], [-1, -1, 1]])
    np.testing.assert_array_equal(found["0.zarr"], [[3, np.nan, 4], [np.nan] * 3, [np.nan, np.nan, 2]])


def test_a_missing_value_is_shown_missing_where_the_index_takes_its_point(tmp_path: Path) -> None:
    places = {"x": np.array([0.0, 1.0, 0.0, 1.0]), "y": np.array([0.0, 0.0, 1.0, 1.0])}
    pc = np.array([np.nan, 2.0, 4.0, 6.0])
    first = arrays(build(tmp_path, {"pc": pc, **places}, ras_resolution=1))
    assert first["idx_1.zarr"].tolist() == [[0]]
    assert np.isnan(first["1.zarr"]).all()
    assert arrays(build(tmp_path, {"pc": pc, **places}, ras_resolution=1, method="mean"))["1.zarr"].tolist() == [[4.0]]


# -- coordinates


@pytest.mark.parametrize("res", [1, 2, 3])
def test_a_gix_gives_the_places_of_its_columns(tmp_path: Path, res: int) -> None:
    rng = np.random.default_rng(4)
    gix = np.argwhere(rng.random((41, 23)) < 0.4).astype("int32")
    pc = rng.random(len(gix))
    pyramid = build(tmp_path, {"pc": pc, "yx": gix}, ras_resolution=res)
    for level, index in enumerate(loop_index(gix[:, 1], gix[:, 0], res)):
        np.testing.assert_array_equal(read_array(pyramid / f"idx_{level}.zarr"), index)
    np.testing.assert_array_equal(read_array(pyramid / "y.zarr"), gix[:, 0])
    np.testing.assert_array_equal(read_array(pyramid / "x.zarr"), gix[:, 1])
    assert read_array(pyramid / "x.zarr").dtype == np.int32
    assert open_pyramid(pyramid).crs == "grid"


def test_coordinates_and_points_are_copied_unchanged_each_with_its_dtype(tmp_path: Path) -> None:
    """x does not take the dtype of y."""
    data = cloud("int32", 120, (2,))
    data["x"] = data["x"].astype("float32")
    found = build(tmp_path, data, **SMALL)
    for name, values in data.items():
        stored = zarr.open_array(found / f"{name}.zarr", mode="r")
        assert stored.dtype == values.dtype
        assert stored.chunks == (50, *(1,) * (values.ndim - 1))
        assert np.asarray(stored[...]).tobytes() == values.tobytes()


def test_bounds_are_the_centers_of_the_corner_cells(tmp_path: Path) -> None:
    places = {"x": np.array([1005.0, 1024.9, 1071.0]), "y": np.array([-50.0, -12.0, 9.0])}
    pyramid = build(tmp_path, {"pc": np.arange(3.0), **places}, ras_resolution=20)
    text = tomllib.loads((pyramid / "bounds.toml").read_text())
    # the largest x is 66 from the least: nearest to the center of cell 3; the largest y 59: cell 3
    assert text == {"bounds": [1005.0, -50.0, 1065.0, 10.0], "resolution": 20.0}
    opened = open_pyramid(pyramid)
    assert (opened.x0, opened.y0, opened.cell, opened.level_shape) == (1005.0, -50.0, 20.0, (4, 4))


def test_one_point_is_one_cell_of_the_resolution_asked_for(tmp_path: Path) -> None:
    pyramid = build(
        tmp_path, {"pc": np.array([7.0]), "x": np.array([1e6 + 0.5]), "y": np.array([5e6])}, ras_resolution=30
    )
    found = arrays(pyramid)
    assert found["0.zarr"].tolist() == [[7.0]]
    assert found["idx_0.zarr"].tolist() == [[0]]
    assert found["rtree.zarr"].tolist() == [[1e6 + 0.5, 5e6, 1e6 + 0.5, 5e6]]
    assert "1.zarr" not in found
    assert open_pyramid(pyramid).cell == 30


def test_the_tree_finds_the_points_of_a_box(tmp_path: Path) -> None:
    data = cloud("float32", 1500)
    pyramid = build(tmp_path, data)
    tree = zarr.open_array(pyramid / "rtree.zarr", mode="r")
    assert (tree.attrs["page_size"], tree.attrs["n_points"]) == (512, 1500)
    assert tree.shape == (7, 4)  # three pages: four leaves
    box = (1_574_100.0, 4_985_100.0, 1_574_200.0, 4_985_300.0)
    inside = [
        p
        for p, (x, y) in enumerate(zip(data["x"], data["y"], strict=True))
        if box[0] <= x <= box[2] and box[1] <= y <= box[3]
    ]
    found = rtree_query(np.asarray(tree[...]), read_array(pyramid / "x.zarr"), read_array(pyramid / "y.zarr"), 512, box)
    assert found.tolist() == inside
    assert inside


# -- statistics and marker


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32"])
def test_statistics_are_of_the_points_not_of_the_cells(tmp_path: Path, dtype: str) -> None:
    data = cloud(dtype, 1300, (2,))
    pyramid = build(tmp_path, data, ras_resolution=200, method="mean")

    def expected(pc: NDArray[Any]) -> list[float]:
        values = pc[np.isfinite(pc)]
        values = (np.abs(values.astype("complex128")) if dtype == "complex64" else values).astype("float64")
        percentiles = np.percentile(values, [1, 50, 99])
        return [np.isnan(pc).mean(), values.min(), values.max(), values.mean(), values.std(), *percentiles]

    table = read_array(pyramid / "stats.zarr")
    np.testing.assert_allclose(table, [expected(data["pc"][:, k]) for k in range(2)], rtol=1e-12)
    found = marker(pyramid)
    assert (found["version"], found["kind"], found["method"]) == (1, "point cloud", "mean")
    assert found["stats"].pop("warnings") == []
    np.testing.assert_allclose(list(found["stats"].values()), expected(data["pc"]), rtol=5e-6)


def test_points_without_a_value_have_an_empty_picture_and_a_warning(tmp_path: Path) -> None:
    data = cloud("float32", 50)
    data["pc"][:] = np.nan
    pyramid = build(tmp_path, data)
    assert np.isnan(read_array(pyramid / "0.zarr")).all()
    assert (read_array(pyramid / "idx_0.zarr") >= 0).any()
    assert marker(pyramid)["stats"]["warnings"] == ["all values are nan"]


def test_an_interrupted_run_leaves_no_pyramid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = cloud("float32", 200)
    whole = build(tmp_path, data)
    call = {name: str(tmp_path / f"{name}.zarr") for name in data} | {"out_dir": str(tmp_path / "cut")}

    def fail(*_: object) -> None:
        msg = "the power went off"
        raise RuntimeError(msg)

    with monkeypatch.context() as patch:
        patch.setattr("moraine_view.kernels.finished_statistics", fail)
        with pytest.raises(RuntimeError, match="power"):
            pc_pyramid(**call)
    assert not (tmp_path / "cut").exists()
    hidden = tmp_path / ".cut.moraine" / "data" / "cut"
    assert "moraine_pyramid" not in zarr.open_array(hidden / "0.zarr", mode="r").attrs
    assert not (hidden / "bounds.toml").exists()
    pc_pyramid(**call)
    assert same_bits(tmp_path / "cut", whole)
    assert (tmp_path / "cut" / "bounds.toml").read_text() == (whole / "bounds.toml").read_text()


# -- errors


POINTS = {"pc": np.zeros(3), "x": np.array([0.0, 1.0, 2.0]), "y": np.array([5.0, 6.0, 7.0])}


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"x": None}, {}, "either as x and y, or as yx; found y"),
        ({"y": None}, {}, "found x"),
        ({"x": None, "y": None}, {}, "found none of them"),
        ({"yx": np.zeros((3, 2))}, {}, "found x and y and yx"),
        ({"x": np.zeros(4)}, {}, r"x .*shape \(4,\); expected n_points 3"),
        ({"x": np.zeros((3, 1))}, {}, r"x .*shape \(3, 1\)"),
        ({"x": None, "y": None, "yx": np.zeros((2, 2))}, {}, r"yx .*shape \(2, 2\)"),
        ({"x": None, "y": None, "yx": np.zeros((3, 3))}, {}, r"yx .*shape \(3, 3\)"),
        ({"x": np.zeros(3, "complex64")}, {}, "x .*complex64; expected integer or float"),
        ({name: np.zeros(0) for name in "xy"} | {"pc": np.zeros(0)}, {}, r"pc .*shape \(0,\); expected at least one"),
        ({"pc": np.zeros((3, 0))}, {}, r"pc .*shape \(3, 0\)"),
        ({}, {"ras_resolution": 0}, "ras_resolution is 0.0; expected a positive number"),
        ({}, {"ras_resolution": -20}, "ras_resolution is -20"),
        ({}, {"ras_resolution": float("nan")}, "ras_resolution is nan"),
        ({}, {"method": "decimate"}, "first, mean"),
        ({}, {"pc_chunks": 0}, "pc_chunks 0"),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_written(
    tmp_path: Path, changes: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    data = {name: values for name, values in (POINTS | changes).items() if values is not None}
    with pytest.raises(MoraineError, match=message):
        build(tmp_path, data, **options)
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(data)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_coordinates_that_are_no_numbers_are_counted_and_refused(tmp_path: Path, bad: float) -> None:
    data = cloud("float32", 20)
    data["x"][[3, 7]], data["y"][[7, 9]] = bad, bad
    with pytest.raises(MoraineError, match="3 of 20 points have coordinates that are nan or infinite"):
        build(tmp_path, data)
    assert not list(tmp_path.glob("pyramid*"))


def test_a_grid_too_large_names_a_resolution_that_is_not(tmp_path: Path) -> None:
    """A cell size in the wrong unit is found before the disk is full."""
    places = {"x": np.array([0.0, 1e6]), "y": np.array([0.0, 2e6])}
    with pytest.raises(MoraineError, match=r"grid of 2000001 x 1000001 cells.*ras_resolution of 31 or more"):
        build(tmp_path, {"pc": np.zeros(2), **places}, ras_resolution=1)
    assert 1e6 / 31 * 2e6 / 31 < 2**31 < 1e6 / 30 * 2e6 / 30
