"""The array functions behind the pyramids, against plain loops and known values."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_view import kernels, levels
from moraine_view.grid import PointGrid, point_grid
from moraine_view.statistics import sample_step

if TYPE_CHECKING:
    from numpy.typing import NDArray

quick = settings(max_examples=40, deadline=None)


def image(seed: int, shape: tuple[int, ...], dtype: str = "float32", missing: float = 0.3) -> NDArray[Any]:
    """Make random values with holes."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.4
    if dtype.startswith("int"):
        return rng.integers(-1000, 1000, shape).astype(dtype)
    values = rng.normal(size=shape) * 100
    if dtype.startswith("complex"):
        values = values + 1j * rng.normal(size=shape)
    values[rng.random(shape) < missing] = np.nan
    return values.astype(dtype)


def loop_mean(data: NDArray[Any], level: int) -> NDArray[Any]:
    """Average the finite pixels of each block, one block at a time."""
    side = 1 << level
    rows, cols = (math.ceil(n / side) for n in data.shape)
    out = np.full((rows, cols), np.nan, dtype=np.complex128)
    for i in range(rows):
        for j in range(cols):
            block = data[i * side : (i + 1) * side, j * side : (j + 1) * side]
            if np.isfinite(block).any():
                out[i, j] = block[np.isfinite(block)].astype(np.complex128).mean()
    return out


# -- levels


@pytest.mark.parametrize(
    ("shape", "n"), [((1, 1), 1), ((1, 900), 1), ((2, 3), 2), ((4, 4), 3), ((5, 900), 3), ((981, 4160), 10)]
)
def test_levels_end_where_halving_the_shorter_side_does(shape: tuple[int, int], n: int) -> None:
    assert levels.n_levels(*shape) == n
    assert n == math.floor(math.log2(min(shape))) + 1


def test_level_shapes_are_halves_rounded_up() -> None:
    assert levels.level_shapes(5, 9) == [(5, 9), (3, 5), (2, 3)]


def test_a_raster_without_pixels_has_no_levels() -> None:
    with pytest.raises(ValueError, match="at least one line"):
        levels.n_levels(0, 5)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int16", "bool"])
def test_decimated_levels_are_strides_of_the_data(dtype: str) -> None:
    data = image(1, (21, 13), dtype)
    for level, coarse in enumerate(kernels.strided_levels(data, 3), start=1):
        np.testing.assert_array_equal(coarse, data[:: 2**level, :: 2**level])
        assert coarse.dtype == data.dtype


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float32", "float32"),
        ("float64", "float64"),
        ("complex64", "complex64"),
        ("int16", "float32"),
        ("bool", "float32"),
    ],
)
def test_mean_levels_average_the_finite_pixels_of_each_block(dtype: str, expected: str) -> None:
    data = image(2, (21, 13), dtype)
    for level, coarse in enumerate(kernels.mean_levels(data, 3)[0], start=1):
        assert coarse.dtype == expected
        np.testing.assert_allclose(coarse, loop_mean(data, level), rtol=2e-7, atol=1e-5)


def test_mean_is_weighted_by_level_zero_pixels_not_by_cells() -> None:
    # one finite pixel beside four: the mean of means would be 5
    data = np.full((4, 4), np.nan)
    data[0, 0] = 10.0
    data[:2, 2:] = 0.0
    assert kernels.mean_levels(data, 2)[0][1][0, 0] == 2.0


def test_infinite_pixels_do_not_enter_a_mean() -> None:
    data = np.array([[1.0, np.inf], [3.0, -np.inf]])
    assert kernels.mean_levels(data, 1)[0][0][0, 0] == 2.0


def test_a_complex_pixel_with_one_part_missing_does_not_enter_a_mean() -> None:
    data = np.array([[1 + 1j, complex(np.nan, 5)], [complex(5, np.nan), 3 + 3j]], dtype=np.complex64)
    assert kernels.mean_levels(data, 1)[0][0][0, 0] == 2 + 2j


def test_a_block_without_finite_complex_pixels_is_nan_in_both_parts() -> None:
    cell = kernels.mean_levels(np.full((2, 2), np.nan + 0j), 1)[0][0][0, 0]
    assert np.isnan(cell.real)
    assert np.isnan(cell.imag)


@quick
@given(
    seed=st.integers(0, 99),
    nlines=st.integers(1, 40),
    width=st.integers(1, 20),
    n=st.integers(1, 3),
    blocks=st.integers(1, 4),
    method=st.sampled_from(["decimate", "mean"]),
    dtype=st.sampled_from(["float32", "complex64", "int16", "bool"]),
)
def test_bands_give_the_bits_of_the_whole_image(
    seed: int, nlines: int, width: int, n: int, blocks: int, method: Literal["decimate", "mean"], dtype: str
) -> None:
    data = image(seed, (nlines, width), dtype)
    rows = blocks * 2**n

    def coarser(band: NDArray[Any]) -> list[NDArray[Any]]:
        return kernels.strided_levels(band, n) if method == "decimate" else kernels.mean_levels(band, n)[0]

    bands = [coarser(data[i : i + rows]) for i in range(0, nlines, rows)]
    for level, whole in enumerate(coarser(data)):
        assert np.concatenate([band[level] for band in bands]).tobytes() == whole.tobytes()


@quick
@given(seed=st.integers(0, 99), nlines=st.integers(1, 40), width=st.integers(1, 20))
def test_a_mean_resumed_from_kept_sums_gives_the_bits_of_the_whole_image(seed: int, nlines: int, width: int) -> None:
    data = image(seed, (nlines, width))
    kept = [kernels.pixel_sums(data[i : i + 2]) for i in range(0, nlines, 2)]
    sums = kernels.BlockSums(np.concatenate([s.total for s in kept]), np.concatenate([s.n for s in kept]))
    resumed = kernels.block_means(kernels.halve_sums(sums), data.dtype)
    assert resumed.tobytes() == kernels.mean_levels(data, 2)[0][1].tobytes()


# -- statistics


def part_of(data: NDArray[Any]) -> kernels.PartialStatistics:
    """Measure data as one line."""
    lines, _ = kernels.measure_lines(data, max(data.size, 1))
    return kernels.join_lines(lines, data.size, data.dtype)


def percentiles(data: NDArray[Any]) -> list[float]:
    return kernels.percentiles_of(kernels.measured(data))


def finished(data: NDArray[Any], n_blocks: int = 1) -> dict[str, Any]:
    parts = [part_of(block) for block in np.array_split(data, n_blocks)]
    return kernels.finished_statistics(kernels.merge_statistics(parts), percentiles(data))


def test_statistics_of_a_known_set() -> None:
    data = np.array([[1.0, 2.0, 3.0], [4.0, np.nan, 5.0]])
    assert finished(data) == {
        "nan_fraction": 0.166667,
        "min": 1.0,
        "max": 5.0,
        "mean": 3.0,
        "std": 1.41421,  # population: sqrt(2)
        "p01": 1.04,
        "p50": 3.0,
        "p99": 4.96,
        "warnings": [],
    }


def test_complex_statistics_are_of_the_amplitude() -> None:
    record = finished(np.array([3 + 4j, -6 + 8j, complex(np.nan, 0), 0], dtype=np.complex64))
    assert record["amplitude_max"] == 10.0
    assert record["amplitude_mean"] == 5.0
    assert record["amplitude_p50"] == 5.0
    assert record["nan_fraction"] == 0.25
    assert "mean" not in record


def test_bools_have_only_a_fraction_of_true() -> None:
    assert finished(np.array([True, False, True, False, False])) == {"true_fraction": 0.4, "warnings": []}


@quick
@given(
    seed=st.integers(0, 99),
    size=st.integers(1, 60),
    n_blocks=st.integers(1, 7),
    dtype=st.sampled_from(["float32", "float64", "complex64", "int16", "bool"]),
)
def test_statistics_of_blocks_merge_to_those_of_the_whole(seed: int, size: int, n_blocks: int, dtype: str) -> None:
    data = image(seed, (size,), dtype)
    if dtype.startswith("float"):
        data = data + np.asarray(1e6, dtype=dtype)  # mean large against the spread
        data[seed % size] = np.inf
    parts = [part_of(block) for block in np.array_split(data, n_blocks)]
    merged = kernels.merge_statistics(parts)
    finite = data[np.isfinite(data)]
    if dtype.startswith("complex"):
        finite = np.abs(finite.astype(np.complex128))  # in float32 the oracle itself would round the amplitudes
    assert merged["count"] == size
    assert merged["nan"] == np.isnan(data).sum()
    assert merged["inf"] == np.isinf(data).sum()
    if finite.size:
        wide = finite.astype(np.float64)
        assert merged["min"] == pytest.approx(wide.min(), rel=1e-6)
        assert merged["max"] == pytest.approx(wide.max(), rel=1e-6)
        assert merged["mean"] == pytest.approx(wide.mean(), rel=1e-7)
        assert math.sqrt(merged["m2"] / finite.size) == pytest.approx(wide.std(), rel=1e-6, abs=1e-6)


@quick
@given(seed=st.integers(0, 99), dtype=st.sampled_from(["float32", "complex64", "int16", "bool"]))
def test_partial_statistics_come_back_from_a_journal_unchanged(seed: int, dtype: str) -> None:
    part = part_of(image(seed, (17,), dtype))
    assert json.loads(json.dumps(part, allow_nan=False)) == part


def test_nothing_finite_gives_no_numbers_but_a_warning() -> None:
    record = finished(np.full(5, np.nan), 2)
    assert record["warnings"] == ["all values are nan"]
    assert record["nan_fraction"] == 1.0
    assert {record[name] for name in kernels.COLUMNS[1:]} == {None}


def test_infinite_and_constant_values_are_warned_of() -> None:
    assert finished(np.array([1.0, np.inf, -np.inf, 2.0]))["warnings"] == ["2 infinite values"]
    assert finished(np.array([0.25, 0.25, np.nan]))["warnings"] == ["all values are 0.25"]
    assert finished(np.zeros(3, dtype=bool))["warnings"] == ["all values are False"]


def test_a_dull_image_of_a_stack_is_named() -> None:
    stack = np.array([[1.0, np.nan, 7.0], [2.0, np.nan, 7.0]])
    channels = [part_of(stack[:, k]) for k in range(3)]
    record = kernels.finished_statistics(kernels.merge_statistics(channels), percentiles(stack), channels)
    assert record["warnings"] == ["image 1: all values are nan", "image 2: all values are 7"]


def test_merging_nothing_or_unlike_kinds_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one block"):
        kernels.merge_statistics([])
    with pytest.raises(ValueError, match="bool"):
        kernels.merge_statistics([part_of(np.zeros(2, d)) for d in ("bool", "float32")])


def test_the_sample_takes_every_value_of_data_up_to_its_size() -> None:
    assert [sample_step(n) for n in (0, 1, 2**23, 2**23 + 1, 2**24, 2**24 + 1)] == [1, 1, 1, 2, 2, 3]


@quick
@given(
    seed=st.integers(0, 99),
    n_lines=st.integers(1, 9),
    length=st.integers(1, 9),
    step=st.integers(1, 20),
    before=st.integers(0, 30),
    dtype=st.sampled_from(["float32", "complex64", "int16", "bool"]),
)
def test_the_sample_is_every_nth_finite_value_of_each_line(
    seed: int, n_lines: int, length: int, step: int, before: int, dtype: str
) -> None:
    data = image(seed, (n_lines, length), dtype)
    expected = []
    for i, line in enumerate(data):
        known = [abs(complex(value)) if dtype == "complex64" else float(value) for value in line if np.isfinite(value)]
        expected += [v for k, v in enumerate(known) if (before + i * length + k) % step == 0]
    _, (found,) = kernels.measure_lines(data, length, [step], [before])
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_where_nothing_is_missing_the_sample_is_every_nth_value() -> None:
    data = np.arange(60.0).reshape(6, 10)
    samples = [kernels.measure_lines(data[i : i + 2], 10, [7], [i * 10])[1][0] for i in range(0, 6, 2)]
    np.testing.assert_array_equal(np.concatenate(samples), np.arange(0.0, 60.0, 7))


@quick
@given(seed=st.integers(0, 99), n=st.integers(1, 300), dtype=st.sampled_from(["float32", "float64", "int16", "bool"]))
def test_percentiles_are_those_of_numpy(seed: int, n: int, dtype: str) -> None:
    data = image(seed, (n,), dtype, missing=0)
    expected = np.percentile(data.astype("float64"), [1, 50, 99])
    np.testing.assert_allclose(percentiles(data), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_an_amplitude_is_missing_or_infinite_as_its_parts_are(dtype: str) -> None:
    data = np.array([3 + 4j, complex(np.nan, np.inf), complex(np.inf, 1), complex(1, np.nan)], dtype=dtype)
    assert part_of(data) | {"m2": 0} == {
        "kind": "complex", "count": 4, "nan": 2, "inf": 1, "min": 5.0, "max": 5.0, "mean": 5.0, "m2": 0
    }  # fmt: skip


def test_amplitudes_near_the_limit_of_their_dtype_do_not_overflow() -> None:
    for dtype, large in (("complex64", 2e38), ("complex128", 1e308)):
        part = part_of(np.array([complex(large, large)], dtype=dtype))
        assert part["max"] == pytest.approx(large * math.sqrt(2), rel=1e-6)


def test_numbers_are_rounded_to_six_digits_and_never_nan() -> None:
    assert kernels.six_digits(1234567.8) == 1234570.0
    assert kernels.six_digits(-0.00012345678) == -0.000123457
    assert kernels.six_digits(math.nan) is None


def test_a_row_of_statistics_has_the_order_of_its_columns() -> None:
    data = np.array([0.0, 10.0, np.nan, np.nan])
    row = kernels.statistics_row(part_of(data), percentiles(data))
    assert dict(zip(kernels.COLUMNS, row, strict=True)) == pytest.approx(
        {"nan_fraction": 0.5, "min": 0, "max": 10, "mean": 5, "std": 5, "p01": 0.1, "p50": 5, "p99": 9.9}
    )


# -- points


def grid_of(x: NDArray[Any], y: NDArray[Any], res: float) -> PointGrid:
    return point_grid((x.min(), y.min()), (x.max(), y.max()), res)


def index_of(x: NDArray[Any], y: NDArray[Any], grid: PointGrid, n_runs: int = 1) -> NDArray[Any]:
    index = np.full((grid.nrows, grid.ncols), -1, dtype=np.int64)
    for run in np.array_split(np.arange(x.size), n_runs):
        kernels.place_points(index, x[run], y[run], int(run[0]) if run.size else 0, grid, 0)
    return index


def test_the_grid_starts_at_the_least_coordinates_and_ends_at_the_largest_cell() -> None:
    grid = grid_of(np.array([5.0, 24.9, 25.1]), np.array([1.0, 2.0, 1.0]), 20.0)
    assert grid == (5.0, 1.0, 20.0, 1, 2)
    assert grid.bounds == (5.0, 1.0, 25.0, 1.0)
    # 9 is below half a cell, 11 above: nearest center
    np.testing.assert_array_equal(index_of(np.array([5.0, 14.0, 16.0]), np.ones(3), grid), [[1, 2]])


def test_rows_grow_with_y_and_the_later_point_wins() -> None:
    x, y = np.array([0.0, 1.0, 0.0, 0.2]), np.array([0.0, 0.0, 2.0, 0.1])
    np.testing.assert_array_equal(index_of(x, y, grid_of(x, y, 1.0)), [[3, 1], [-1, -1], [2, -1]])


@quick
@given(seed=st.integers(0, 99), n=st.integers(1, 60), res=st.sampled_from([0.5, 1.0, 3.0]), n_runs=st.integers(1, 5))
def test_every_cell_shows_its_last_point(seed: int, n: int, res: float, n_runs: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.random(n) * 10, rng.random(n) * 6
    grid = grid_of(x, y, res)
    expected = np.full((grid.nrows, grid.ncols), -1)
    for p in range(n):
        expected[round((y[p] - y.min()) / res), round((x[p] - x.min()) / res)] = p
    np.testing.assert_array_equal(index_of(x, y, grid, n_runs), expected)
    assert (expected[-1] >= 0).any()
    assert (expected[:, -1] >= 0).any()


@settings(max_examples=100, deadline=None)
@given(width=st.floats(0, 1e300), height=st.floats(0, 1e300), res=st.floats(1e-300, 1e300, allow_subnormal=False))
def test_a_grid_is_small_enough_or_a_larger_resolution_is_named(width: float, height: float, res: float) -> None:
    try:
        grid = point_grid((0.0, 0.0), (width, height), res)
    except ValueError as error:
        named = float(str(error).split("take a ras_resolution of ")[1].split()[0])
        assert named > res
        grid = point_grid((0.0, 0.0), (width, height), named)
        with pytest.raises(ValueError, match="makes a grid of"):
            point_grid((0.0, 0.0), (width, height), 0.85 * named)  # it is the least one, in two digits
    assert grid.nrows * grid.ncols <= 2**31


def test_coarser_index_takes_the_first_filled_cell_in_row_major_order() -> None:
    index = np.array([[-1, 4, -1, -1, 9], [7, 1, -1, -1, -1], [-1, -1, -1, 3, -1]])
    np.testing.assert_array_equal(kernels.coarser_index(index), [[4, -1, 9], [-1, 3, -1]])


@quick
@given(seed=st.integers(0, 99), rows=st.integers(1, 12), cols=st.integers(1, 12))
def test_coarser_index_agrees_with_a_plain_loop(seed: int, rows: int, cols: int) -> None:
    index = np.random.default_rng(seed).integers(-1, 3, (rows, cols))
    for (i, j), shown in np.ndenumerate(kernels.coarser_index(index)):
        block = index[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].ravel()
        assert shown == next((p for p in block if p >= 0), -1)


def drawn(values: NDArray[Any], index: NDArray[Any], run: int) -> NDArray[Any]:
    raster = kernels.empty_raster(index.shape, values.dtype)
    for number in kernels.runs_shown([index], values.size, run).tolist():
        kernels.draw_run(raster, index, values[number * run : (number + 1) * run], number * run)
    return raster


@pytest.mark.parametrize("run", [1, 2, 3])
@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("int32", "float32"), ("bool", "float32"), ("float16",) * 2, ("float64",) * 2, ("complex64",) * 2],
)
def test_empty_cells_are_missing_whatever_the_dtype(dtype: str, expected: str, run: int) -> None:
    raster = drawn(np.array([0, 1, 1]).astype(dtype), np.array([[2, -1], [0, -1]]), run)
    assert raster.dtype == expected
    np.testing.assert_array_equal(np.isnan(raster), [[False, True], [False, True]])
    assert raster[0, 0] == 1


def test_only_runs_with_a_point_that_is_shown_are_read() -> None:
    index = np.array([[0, -1], [7, 5]])
    assert kernels.runs_shown([index, np.array([[9]])], 12, 3).tolist() == [0, 1, 2, 3]
    assert kernels.runs_shown([index], 12, 4).tolist() == [0, 1]


def test_the_mean_of_points_counts_filled_cells_only() -> None:
    raster = drawn(np.array([10.0, 0.0, 0.0, 0.0, 0.0]), np.array([[0, -1, 1, 2], [-1, -1, 3, 4]]), 9)
    assert kernels.mean_levels(raster, 2)[0][1][0, 0] == 2.0
