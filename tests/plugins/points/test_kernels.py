"""Points: the Hilbert curve against its tables, and sets, groups and boxes against plain loops."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_points import kernels
from moraine_points.layouts import row_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

quick = settings(deadline=None, max_examples=60)  # no deadline: the first example may compile

TABLES = {
    0: "0",
    1: "0 1 / 3 2",
    2: "0 3 4 5 / 1 2 7 6 / 14 13 8 9 / 15 12 11 10",
    3: """ 0  1 14 15 16 19 20 21 /  3  2 13 12 17 18 23 22 /  4  7  8 11 30 29 24 25 /  5  6  9 10 31 28 27 26 /
          58 57 54 53 32 35 36 37 / 59 56 55 52 33 34 39 38 / 60 61 50 51 46 45 40 41 / 63 62 49 48 47 44 43 42""",
}

INDICES = {
    (4, 4): {(0, 0): 0, (0, 1): 3, (1, 0): 1, (0, 3): 5, (3, 0): 15, (3, 3): 10},
    (100, 200): {(0, 0): 0, (0, 199): 20543, (99, 0): 5135, (99, 199): 28304, (50, 100): 13110, (1, 2): 7},
    (981, 4160): {
        (0, 0): 0, (0, 4159): 16778581, (980, 0): 349104, (980, 4159): 17823333, (500, 2000): 1485978, (123, 456): 94085
    },
    (2500, 1834): {
        (0, 0): 0, (2499, 0): 15462415, (0, 1833): 4172865, (2499, 1833): 13917254, (1250, 917): 2070455,
        (1000, 1000): 698496,
    },
}  # fmt: skip

ORDERS = [
    ((1, 1), 0), ((2, 1), 1), ((2, 2), 1), ((3, 5), 3), ((4, 4), 2), ((100, 200), 8), ((2500, 1834), 12),
    ((981, 4160), 13), ((4096, 4096), 12), ((4097, 10), 13), ((2**31, 1), 31),
]  # fmt: skip


def grid(*points: tuple[int, int]) -> NDArray[np.int32]:
    return np.array(points, np.int32).reshape(-1, 2)


def keys(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def square(order: int) -> NDArray[np.int32]:
    """Every pixel of the square of side 2**order, row by row."""
    return np.indices((2**order, 2**order)).reshape(2, -1).T.astype(np.int32)


def curve(order: int) -> NDArray[np.int64]:
    """Hilbert index of every pixel of the square, as a table."""
    side = 2**order
    return kernels.pc_hix(square(order), (side, side)).reshape(side, side)


@st.composite
def clouds(draw: st.DrawFn) -> tuple[NDArray[np.int32], tuple[int, int]]:
    """Draw points without order, and a raster that holds them."""
    shape = draw(st.tuples(st.integers(1, 40), st.integers(1, 40)))
    point = st.tuples(st.integers(0, shape[0] - 1), st.integers(0, shape[1] - 1))
    return grid(*draw(st.lists(point, max_size=60, unique=True))), shape


sets = st.sets(st.integers(0, 30)).map(lambda values: keys(*sorted(values)))


# -- the Hilbert curve -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "order"), ORDERS)
def test_the_order_is_the_number_of_bits_of_the_longest_side(shape: tuple[int, int], order: int) -> None:
    assert kernels.hilbert_order(shape) == order


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (-1, 3), (2**31 + 1, 1)])
def test_a_raster_without_pixels_or_beyond_int32_has_no_order(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="raster shape"):
        kernels.hilbert_order(shape)


@pytest.mark.parametrize("order", TABLES)
def test_the_curve_is_that_of_the_table(order: int) -> None:
    table = [[int(number) for number in row.split()] for row in TABLES[order].split("/")]
    assert curve(order).tolist() == table


@pytest.mark.parametrize("shape", INDICES)
def test_published_indices_are_met_in_both_directions(shape: tuple[int, int]) -> None:
    gix, hix = grid(*INDICES[shape]), keys(*INDICES[shape].values())
    assert kernels.pc_hix(gix, shape).tolist() == hix.tolist()
    assert kernels.pc_gix(hix, shape).tolist() == gix.tolist()


@pytest.mark.parametrize("order", range(8))
def test_the_curve_visits_every_pixel_once_by_steps_of_one(order: int) -> None:
    path = kernels.pc_gix(np.arange(4**order), (2**order, 2**order))
    assert sorted(map(tuple, path.tolist())) == sorted(map(tuple, square(order).tolist()))
    assert (np.abs(np.diff(path, axis=0)).sum(axis=1) == 1).all()
    assert path[0].tolist() == [0, 0]
    assert path[-1].tolist() == [2**order - 1, 0]
    if order:
        assert path[1].tolist() == ([1, 0] if order % 2 == 0 else [0, 1])


@pytest.mark.parametrize("order", range(1, 8))
def test_the_first_quadrant_is_the_transposed_curve_of_the_order_below(order: int) -> None:
    half = 2 ** (order - 1)
    np.testing.assert_array_equal(curve(order)[:half, :half], curve(order - 1).T)


@pytest.mark.parametrize("order", range(1, 8))
def test_quadrants_follow_low_low_then_low_high_then_high_high_then_high_low(order: int) -> None:
    half = 2 ** (order - 1)
    table = curve(order) // 4 ** (order - 1)
    for turn, (i, j) in enumerate([(0, 0), (0, half), (half, half), (half, 0)]):
        assert (table[i : i + half, j : j + half] == turn).all()


@quick
@given(st.data())
def test_decoding_undoes_encoding_in_rasters_of_any_size(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 2**31), st.integers(1, 2**31)))
    point = st.tuples(st.integers(0, shape[0] - 1), st.integers(0, shape[1] - 1))
    gix = grid(*data.draw(st.lists(point, max_size=20)))
    hix = kernels.pc_hix(gix, shape)
    assert hix.dtype == np.int64
    back = kernels.pc_gix(hix, shape)
    assert back.dtype == np.int32
    np.testing.assert_array_equal(back, gix)


@pytest.mark.parametrize("dtype", ["int32", "int64", ">i4", "uint16"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_integers_of_any_kind_and_memory_order_are_read_alike(dtype: str, order: Any) -> None:
    gix = square(3).astype(dtype, order=order)
    assert kernels.pc_hix(gix, (8, 8)).tolist() == curve(3).ravel().tolist()
    assert kernels.pc_hix(gix[::-2], (8, 8)).tolist() == curve(3).ravel()[::-2].tolist()


def test_an_empty_cloud_has_an_empty_index() -> None:
    assert kernels.pc_hix(grid(), (5, 7)).shape == (0,)
    assert kernels.pc_gix(keys(), (5, 7)).shape == (0, 2)


@pytest.mark.parametrize("bad", [(-1, 0), (0, -1), (5, 0), (0, 7)])
def test_a_point_outside_the_raster_is_named_by_its_row(bad: tuple[int, int]) -> None:
    gix = grid((4, 6), bad, (9, 9))
    for function in (kernels.pc_hix, kernels.sort_key):
        with pytest.raises(ValueError, match=rf"row 1 .*\({bad[0]}, {bad[1]}\), outside the raster \(5, 7\)"):
            function(gix, (5, 7))
    with pytest.raises(ValueError, match="row 1"):
        kernels.points_by_chunk(gix, (5, 7), (2, 2))


@pytest.mark.parametrize("bad", [-1, 64])
def test_an_index_off_the_curve_is_named_by_its_row(bad: int) -> None:
    with pytest.raises(ValueError, match=f"row 2 is {bad}; expected 0 to 63"):
        kernels.pc_gix(keys(0, 1, bad), (5, 7))


def test_an_index_of_a_pixel_beyond_the_raster_is_named_by_its_row() -> None:
    with pytest.raises(ValueError, match=r"row 1 is 63, .*\(7, 0\), outside the raster \(5, 7\)"):
        kernels.pc_gix(keys(0, 63), (5, 7))
    with pytest.raises(ValueError, match="my_hix: row 101 is 63"):
        kernels.pc_gix(keys(0, 63), (5, 7), name="my_hix", first_row=100)


@pytest.mark.parametrize("gix", [np.zeros((3, 3), np.int32), np.zeros(3, np.int32), np.zeros((3, 2), np.float32)])
def test_what_is_not_a_grid_index_is_refused_with_its_shape_and_dtype(gix: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match=r"expected integers \(n_points, 2\)"):
        kernels.pc_hix(gix, (5, 7))


@pytest.mark.parametrize("hix", [np.zeros((3, 1), np.int64), np.zeros(3, np.bool_), np.zeros(3)])
def test_what_is_not_a_hilbert_index_is_refused_with_its_shape_and_dtype(hix: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match=r"expected integers \(n_points,\)"):
        kernels.pc_gix(hix, (5, 7))


def test_either_index_gives_the_grid_index() -> None:
    gix = square(3)
    for idx in (gix, gix.astype(np.int64), kernels.pc_hix(gix, (8, 8))):
        found = kernels.grid_index(idx, (8, 8))
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, gix)


@pytest.mark.parametrize("idx", [grid((0, 0), (5, 0)), keys(0, 64), keys(0, 63)])
def test_a_point_outside_the_raster_is_named_with_its_array(idx: Any) -> None:
    with pytest.raises(ValueError, match="my_idx: row 1 is"):
        kernels.grid_index(idx, (5, 7), name="my_idx")


def test_a_part_of_a_cloud_names_the_row_in_the_whole() -> None:
    with pytest.raises(ValueError, match="my_gix: row 103 is"):
        kernels.pc_hix(grid((0, 0), (4, 6), (0, 0), (9, 9)), (5, 7), name="my_gix", first_row=100)


# -- keys and order ----------------------------------------------------------------------------------------------------


def test_the_key_counts_pixels_row_by_row() -> None:
    gix = grid((0, 0), (0, 4), (2, 1))
    assert kernels.gix_key(gix, 7).tolist() == [0, 4, 15]
    assert kernels.gix_key(gix).tolist() == [0, 4, 11]
    assert kernels.gix_key(grid()).tolist() == []


def test_the_key_of_the_largest_pixel_does_not_overflow() -> None:
    last = 2**31 - 1
    assert kernels.gix_key(grid((last, last))).tolist() == [2**62 - 1]


def test_the_key_refuses_a_range_beyond_the_width() -> None:
    with pytest.raises(ValueError, match="row 1"):
        kernels.gix_key(grid((0, 6), (0, 7)), 7)


@pytest.mark.parametrize("key", [keys(), keys(5), keys(-3, 0, 9)])
def test_ascending_keys_and_those_of_at_most_one_point_are_sorted(key: NDArray[np.int64]) -> None:
    kernels.check_sorted(key, "idx")


@pytest.mark.parametrize(("key", "fault"), [(keys(1, 2, 2, 1), "repeats"), (keys(1, 5, 3, 4), "is below")])
def test_the_first_row_out_of_order_is_named_with_the_array(key: NDArray[np.int64], fault: str) -> None:
    with pytest.raises(ValueError, match=f"my_idx: row 2 {fault} the row before"):
        kernels.check_sorted(key, "my_idx")


@quick
@given(clouds())
def test_the_sort_key_puts_a_cloud_in_order(cloud: tuple[NDArray[np.int32], tuple[int, int]]) -> None:
    gix, shape = cloud
    for known in (None, shape):
        key = kernels.sort_key(gix, known)
        assert key.dtype == np.int32
        assert gix[key].tolist() == sorted(gix.tolist())
    hix = kernels.pc_hix(gix, shape)
    assert hix[kernels.sort_key(hix)].tolist() == sorted(hix.tolist())


def test_a_cloud_with_a_point_twice_is_refused_at_the_first_repeating_row() -> None:
    with pytest.raises(ValueError, match="row 3 repeats the point of row 1"):
        kernels.sort_key(grid((9, 9), (5, 5), (1, 1), (5, 5), (1, 1)))
    with pytest.raises(ValueError, match="row 2 repeats the point of row 0"):
        kernels.sort_key(keys(7, 3, 7))


@pytest.mark.parametrize("high", [2**20, 2**62 - 4])
def test_keys_with_and_without_room_for_their_row_are_sorted_alike(high: int) -> None:
    """Keys of up to 62 bits, of which few leave room for a row number in a word of 64."""
    hix = keys(high + 3, 0, high + 1, high + 2, 7)
    assert kernels.sort_key(hix).tolist() == [1, 4, 2, 3, 0]
    with pytest.raises(ValueError, match=r"row 3 repeats the point of row 1 \(2 rows repeat another\)"):
        kernels.sort_key(keys(1, high + 1, 5, high + 1, 5))


def test_a_cloud_of_no_points_has_an_empty_order() -> None:
    assert kernels.sort_key(keys()).tolist() == []
    assert kernels.sort_key(grid()).tolist() == []


@quick
@given(clouds(), clouds())
def test_keys_of_two_clouds_compare_as_their_points_do(
    one: tuple[NDArray[np.int32], tuple[int, int]], two: tuple[NDArray[np.int32], tuple[int, int]]
) -> None:
    gix = np.concatenate((one[0], two[0]))
    key = np.concatenate((kernels.point_key(one[0]), kernels.point_key(two[0], two[1])))
    assert gix[np.argsort(key, kind="stable")].tolist() == sorted(gix.tolist())


def test_the_key_of_the_last_pixel_of_the_largest_raster_fits() -> None:
    last = 2**31 - 1
    assert kernels.point_key(grid((last, last), (last, 0))).tolist() == [2**62 - 1, 2**62 - 2**31]
    assert kernels.point_key(keys(5, 3)).tolist() == [5, 3]


@pytest.mark.parametrize("bad", [grid((0, 0), (0, -1)), keys(0, -1)])
def test_the_key_of_a_negative_point_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="my_idx: row 1 is"):
        kernels.point_key(bad, name="my_idx")


# -- sets of points ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_rows", "dtype"), [(0, "int32"), (2**31 - 1, "int32"), (2**31, "int64")])
def test_rows_are_numbered_in_32_bits_where_these_are_enough(n_rows: int, dtype: str) -> None:
    assert row_dtype(n_rows) == dtype
    assert np.iinfo(dtype).max >= n_rows - 1


def test_the_published_example_of_the_set_operations() -> None:
    key1, key2 = keys(1, 4, 6), keys(0, 4, 9)
    rows = kernels.union(key1, key2)
    assert np.concatenate((key1, key2))[rows].tolist() == [0, 1, 4, 6, 9]
    assert np.where(rows < 3, 1, 2).tolist() == [2, 1, 1, 1, 2]
    rows1, rows2 = kernels.intersect(key1, key2)
    assert (rows1.tolist(), rows2.tolist()) == ([1], [1])
    assert key1[kernels.diff(key1, key2)].tolist() == [1, 6]


@quick
@given(sets, sets)
def test_set_operations_are_those_of_python_sets(key1: NDArray[np.int64], key2: NDArray[np.int64]) -> None:
    set1, set2 = set(key1.tolist()), set(key2.tolist())
    rows = kernels.union(key1, key2)
    assert np.concatenate((key1, key2))[rows].tolist() == sorted(set1 | set2)
    assert set(key1.tolist()) == {key1[row] for row in rows if row < key1.size}
    rows1, rows2 = kernels.intersect(key1, key2)
    assert key1[rows1].tolist() == key2[rows2].tolist() == sorted(set1 & set2)
    assert key1[kernels.diff(key1, key2)].tolist() == sorted(set1 - set2)
    both = keys(*sorted(set1 | set2))
    assert both[kernels.match(both, key2)].tolist() == key2.tolist()


def test_a_subset_with_points_the_cloud_lacks_is_refused_even_beyond_its_end() -> None:
    with pytest.raises(ValueError, match="idx: 2 of its 3 points are not in idx_in; the first is row 1, 5"):
        kernels.match(keys(1, 4, 6), keys(4, 5, 99))
    with pytest.raises(ValueError, match="ds: 1 of its 1 points are not in ps; the first is row 0"):
        kernels.match(keys(), keys(3), names=("ps", "ds"))


@pytest.mark.parametrize("function", [kernels.union, kernels.intersect, kernels.diff, kernels.match])
def test_sets_refuse_unsorted_clouds_by_name(function: Any) -> None:
    with pytest.raises(ValueError, match="first: row 1 repeats"):
        function(keys(2, 2), keys(2), names=("first", "second"))
    with pytest.raises(ValueError, match="second: row 1 is below"):
        function(keys(2), keys(2, 1), names=("first", "second"))


# -- points and raster chunks ------------------------------------------------------------------------------------------


@quick
@given(clouds(), st.tuples(st.integers(1, 50), st.integers(1, 50)))
def test_points_are_grouped_by_chunk_and_keep_their_order(
    cloud: tuple[NDArray[np.int32], tuple[int, int]], chunks: tuple[int, int]
) -> None:
    gix, shape = cloud
    across = math.ceil(shape[1] / chunks[1])
    expected: dict[int, list[int]] = {}
    for row, (azimuth, range_) in enumerate(gix.tolist()):
        expected.setdefault(azimuth // chunks[0] * across + range_ // chunks[1], []).append(row)
    order, chunk, offsets = kernels.points_by_chunk(gix, shape, chunks)
    assert order.dtype == chunk.dtype == offsets.dtype == np.int64
    assert chunk.tolist() == sorted(expected)
    groups = [order[start:stop].tolist() for start, stop in pairwise(offsets)]
    assert groups == [expected[number] for number in sorted(expected)]


def test_grouping_numbers_more_chunks_than_16_bits_hold() -> None:
    groups = kernels.points_by_chunk(grid((999, 999), (0, 1), (999, 999)), (1000, 1000), (1, 1))
    assert [part.tolist() for part in groups] == [[1, 0, 2], [1, 999_999], [0, 1, 3]]


def test_an_empty_cloud_touches_no_chunk() -> None:
    groups = kernels.points_by_chunk(grid(), (10, 10), (5, 5))
    assert [part.tolist() for part in groups] == [[], [], [0]]


def test_chunks_without_pixels_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        kernels.points_by_chunk(grid((0, 0)), (10, 10), (0, 5))


# -- points in the plane -----------------------------------------------------------------------------------------------

# few values, so that points fall on borders, coincide and miss
coordinate = st.sampled_from([-1.0, 0.0, 0.1, 0.5, 1.0, 2.0, math.nan, math.inf])
planes = st.tuples(st.lists(st.tuples(coordinate, coordinate), max_size=40), st.integers(1, 9), st.sampled_from("fd"))
side = st.sampled_from([-2.0, -1.0, 0.0, 0.1, 0.3, 1.0, 2.0, math.inf, -math.inf, math.nan])


def columns(points: list[tuple[float, float]], dtype: str) -> Any:
    return np.array(points, dtype).reshape(-1, 2).T


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


@quick
@given(planes)
def test_every_node_is_the_box_of_the_points_below_it(plane: tuple[list[tuple[float, float]], int, str]) -> None:
    points, page_size, dtype = plane
    x, y = columns(points, dtype)
    tree = kernels.rtree(x, y, page_size)
    leaves = 1
    while leaves * page_size < len(points):
        leaves *= 2
    assert tree.shape == (2 * leaves - 1, 4)
    assert tree.dtype == np.float64
    for node in range(2 * leaves - 1):
        first = last = node
        while first < leaves - 1:
            first, last = 2 * first + 1, 2 * last + 2
        rows = range((first - leaves + 1) * page_size, min((last - leaves + 2) * page_size, len(points)))
        below = [(float(x[k]), float(y[k])) for k in rows if not (math.isnan(x[k]) or math.isnan(y[k]))]
        box = [f(p[i] for p in below) for f in (min, max) for i in (0, 1)] if below else [math.nan] * 4
        assert all(map(same, tree[node].tolist(), box))


@quick
@given(planes, st.tuples(side, side, side, side))
def test_a_query_finds_what_looking_at_every_point_finds(
    plane: tuple[list[tuple[float, float]], int, str], box: tuple[float, float, float, float]
) -> None:
    points, page_size, dtype = plane
    x, y = columns(points, dtype)
    tree = kernels.rtree(x, y, page_size)
    x0, y0, xm, ym = box
    inside = [k for k in range(len(points)) if x0 <= float(x[k]) <= xm and y0 <= float(y[k]) <= ym]
    found = kernels.rtree_query(tree, x, y, page_size, box)
    assert found.dtype == np.int64
    assert found.tolist() == inside

    ranges = kernels.rtree_ranges(tree, len(points), page_size, box)
    assert set(inside) <= {k for start, stop in ranges for k in range(start, stop)}
    edges = [0, *ranges.ravel().tolist(), len(points)]
    assert edges == sorted(edges)
    assert (ranges[1:, 0] > ranges[:-1, 1]).all()


def test_a_query_with_the_box_of_the_cloud_finds_all_points() -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 1000))
    tree = kernels.rtree(x, y, 64)
    assert kernels.rtree_query(tree, x, y, 64, tuple(tree[0])).tolist() == list(range(1000))
    assert kernels.rtree_ranges(tree, 1000, 64, tuple(tree[0])).tolist() == [[0, 1000]]


def test_a_small_box_needs_few_pages_of_a_cloud_in_hilbert_order() -> None:
    y, x = kernels.pc_gix(np.arange(4**7), (128, 128)).T.astype(np.float64)
    ranges = kernels.rtree_ranges(kernels.rtree(x, y, 64), 4**7, 64, (9.0, 9.0, 14.0, 14.0))
    assert ranges.tolist() == [[128, 192]]  # pixels 8 to 15 of both axes are one page: the third on the curve


def test_an_empty_cloud_has_one_empty_node_and_finds_nothing() -> None:
    empty = np.empty(0)
    tree = kernels.rtree(empty, empty)
    assert tree.shape == (1, 4)
    assert np.isnan(tree).all()
    assert kernels.rtree_query(tree, empty, empty, 512, (-1.0, -1.0, 1.0, 1.0)).tolist() == []


def test_a_tree_of_other_points_or_pages_is_refused() -> None:
    x = np.arange(10.0)
    with pytest.raises(ValueError, match=r"expected \(7, 4\) for 10 points in pages of 3"):
        kernels.rtree_query(kernels.rtree(x, x, 5), x, x, 3, (0.0, 0.0, 1.0, 1.0))


def test_coordinates_that_do_not_pair_up_are_refused() -> None:
    with pytest.raises(ValueError, match=r"x has shape \(3,\) and y \(4,\)"):
        kernels.rtree(np.zeros(3), np.zeros(4))
    with pytest.raises(ValueError, match="page_size is 0"):
        kernels.rtree(np.zeros(3), np.zeros(3), 0)
