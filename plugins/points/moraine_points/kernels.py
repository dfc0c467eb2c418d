"""Array functions on point clouds: hilbert index, keys, sets, grouping by raster chunk and box queries.

A cloud is known by its *gix*, int32 ``(n_points, 2)`` with columns (azimuth, range), or by its *hix*, int64
``(n_points,)``, the position of each point along the Hilbert curve of the raster. Clouds are sets: no point occurs
twice. Wrong data raise `ValueError`; an empty cloud is never wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from moraine_points import _cpu
from moraine_points.layouts import row_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

Gix: TypeAlias = "NDArray[np.int32] | NDArray[np.int64]"
Float: TypeAlias = "NDArray[np.float32] | NDArray[np.float64]"
Int64: TypeAlias = "NDArray[np.int64]"
Rows: TypeAlias = "NDArray[np.int32] | NDArray[np.int64]"

_LONGEST = 2**31  # side of a raster that int32 coordinates can reach; its curve has order 31, so any hix is below 4**31
_ANY_SHAPE = (_LONGEST, _LONGEST)


# -- the Hilbert curve -------------------------------------------------------------------------------------------------


def hilbert_order(shape: tuple[int, int]) -> int:
    """Order of the Hilbert curve that covers a raster: the curve fills the square of side ``2**order``.

    Parameters
    ----------
    shape
        Lines and width of the raster, in pixels.

    Returns
    -------
    int
        Number of bits of ``max(shape) - 1``, from 0 to 31.

    Raises
    ------
    ValueError
        If the raster has no pixel, or a side is longer than ``2**31``.

    Examples
    --------
    >>> hilbert_order((2500, 1834))
    12
    """
    nlines, width = shape
    if not (1 <= nlines <= 2**31 and 1 <= width <= 2**31):
        raise ValueError(f"raster shape is ({nlines}, {width}); expected both sides from 1 to 2**31")
    return (int(max(nlines, width)) - 1).bit_length()


def pc_hix(gix: Gix, shape: tuple[int, int], *, name: str = "gix", first_row: int = 0) -> Int64:
    """Hilbert index of points.

    The curve starts at (0, 0) and ends at (2**order - 1, 0). Going from the coarsest bit to the finest, with u, v the
    bits of azimuth and range, each level adds the base-4 digit ``3u xor v``; where v = 0 the quadrant is transposed,
    and where also u = 1 it is mirrored in both axes first (J. Skilling, "Programming the Hilbert curve", AIP Conf.
    Proc. 707, 2004, with azimuth as the first axis).

    Parameters
    ----------
    gix
        Grid index (azimuth, range), ``(n_points, 2)`` int32 (other integers are accepted), in pixels, in any order.
    shape
        Lines and width of the raster, in pixels; an index has a meaning only together with this shape.
    name, first_row
        What errors call the array, and the number of its first row where it is a part of a longer one.

    Returns
    -------
    ndarray
        Hilbert index, ``(n_points,)`` int64, unitless, in the order of `gix`.

    Raises
    ------
    ValueError
        If a point lies outside the raster; the first such row is named.

    Examples
    --------
    >>> pc_hix(np.array([[0, 1], [3, 3]], np.int32), (4, 4))
    array([ 3, 10])
    """
    hix: Int64 = _cpu.hilbert_encode(_checked_gix(gix, shape, name, first_row), hilbert_order(shape))
    return hix


def pc_gix(
    hix: NDArray[np.integer], shape: tuple[int, int], *, name: str = "hix", first_row: int = 0
) -> NDArray[np.int32]:
    """Grid index of points known by their Hilbert index: the inverse of `pc_hix`.

    Parameters
    ----------
    hix
        Hilbert index, ``(n_points,)`` int64, unitless, in any order.
    shape
        Lines and width of the raster that `hix` was made for, in pixels.
    name, first_row
        What errors call the array, and the number of its first row where it is a part of a longer one.

    Returns
    -------
    ndarray
        Grid index (azimuth, range), ``(n_points, 2)`` int32, in pixels, in the order of `hix`.

    Raises
    ------
    ValueError
        If an index is not on the curve or its point is outside the raster (made for another shape?); the first such
        row is named.
    """
    hix = _checked_hix(hix, shape, name, first_row)
    gix: NDArray[np.int32] = _cpu.hilbert_decode(hix, hilbert_order(shape))
    row = _cpu.first_outside(gix, *shape)
    if row >= 0:
        raise ValueError(
            f"{name}: row {first_row + row} is {hix[row]}, which is (azimuth, range) = {_pair(gix[row])}, outside the "
            f"raster {_pair(shape)}; a hix must be read with the raster shape it was made for"
        )
    return gix


def grid_index(idx: Gix, shape: tuple[int, int], *, name: str = "idx") -> NDArray[np.int32]:
    """Grid index of points known by either index, all of them inside the raster.

    Parameters
    ----------
    idx
        Grid index ``(n_points, 2)`` int32, or Hilbert index ``(n_points,)`` int64, in any order.
    shape
        Lines and width of the raster, in pixels.
    name
        What errors call the array.

    Returns
    -------
    ndarray
        Grid index (azimuth, range), ``(n_points, 2)`` int32, in pixels, in the order of `idx`.

    Raises
    ------
    ValueError
        If a point is outside the raster; the first such row is named.
    """
    if idx.ndim == 1:
        return pc_gix(idx, shape, name=name)
    return _checked_gix(idx, shape, name).astype(np.int32, copy=False)


# -- keys and order ----------------------------------------------------------------------------------------------------


def gix_key(gix: Gix, width: int | None = None) -> Int64:
    """Row-major key ``azimuth * width + range``, which puts points in gix order.

    Parameters
    ----------
    gix
        Grid index (azimuth, range), ``(n_points, 2)`` int32, in pixels.
    width
        Width of the raster, in pixels. Any width larger than every range gives the same order, and it defaults to the
        smallest one. Keys can be compared only if they were made with the same width.

    Returns
    -------
    ndarray
        Key, ``(n_points,)`` int64, unitless.

    Raises
    ------
    ValueError
        If an azimuth or a range is negative, or a range is not below `width`; the first such row is named.
    """
    gix = _checked_gix(gix, _ANY_SHAPE if width is None else (_ANY_SHAPE[0], width))
    if width is None:
        width = _width(gix)
    return _row_major(gix, width)


def checked(idx: Gix, shape: tuple[int, int] | None = None, *, name: str = "idx", first_row: int = 0) -> Gix:
    """Return an index of which every point is known to lie in a raster.

    Parameters
    ----------
    idx
        Grid index ``(n_points, 2)``, or Hilbert index ``(n_points,)``, of integers.
    shape
        Lines and width of the raster, in pixels; by default the largest that int32 coordinates can reach.
    name, first_row
        What errors call the array, and the number of its first row where it is a part of a longer one.

    Returns
    -------
    ndarray
        The index: a gix in int32 or int64, as it is stored, a hix in int64.

    Raises
    ------
    ValueError
        If a point is negative or outside `shape`; the first such row is named.
    """
    check = _checked_hix if idx.ndim == 1 else _checked_gix
    return check(idx, shape or _ANY_SHAPE, name, first_row)


def point_key(idx: Gix, shape: tuple[int, int] | None = None, *, name: str = "idx") -> Int64:
    """Key by which points are compared: a hix as it is, a gix by row and then by column.

    Parameters
    ----------
    idx
        Grid index ``(n_points, 2)`` int32, or Hilbert index ``(n_points,)`` int64, in any order.
    shape
        Lines and width of the raster, in pixels, if points are to be checked against it. The key does not depend on
        it: keys of any two clouds can be compared, if both have a gix, or a hix of one raster.
    name
        What errors call the array.

    Returns
    -------
    ndarray
        Key, ``(n_points,)`` int64, unitless, in the order of `idx`.

    Raises
    ------
    ValueError
        If a point is negative or outside `shape`; the first such row is named.
    """
    idx = checked(idx, shape, name=name)
    return np.asarray(idx, np.int64) if idx.ndim == 1 else _row_major(idx, _LONGEST)


def check_sorted(key: Int64, name: str) -> None:
    """Refuse a key that does not ascend strictly; 0 and 1 points are sorted.

    Parameters
    ----------
    key
        Hilbert index or row-major key, ``(n_points,)`` of integers, unitless.
    name
        What the error calls the array.

    Raises
    ------
    ValueError
        If `key` is not 1-D integers, or if a row is not above the row before it; the first such row is named.
    """
    if key.ndim != 1 or key.dtype.kind not in "iu":
        raise ValueError(f"{name} is {key.dtype} {key.shape}; expected a key of integers (n_points,)")
    row = _first(key[1:] <= key[:-1]) + 1
    if row > 0:
        fault = "repeats" if key[row] == key[row - 1] else "is below"
        raise ValueError(f"{name}: row {row} {fault} the row before it; expected points sorted and without duplicates")


def sort_key(idx: Gix, shape: tuple[int, int] | None = None, *, name: str = "idx") -> Rows:
    """Permutation K that sorts a cloud: ``idx[K]`` is in gix order (of a gix) or hilbert order (of a hix).

    Parameters
    ----------
    idx
        Grid index ``(n_points, 2)`` int32, or Hilbert index ``(n_points,)`` int64, in any order.
    shape
        Lines and width of the raster, in pixels. The order does not depend on it; when given, points are checked
        against it.
    name
        What errors call the array.

    Returns
    -------
    ndarray
        Permutation, ``(n_points,)``, unitless; int32, or int64 where that is too small.

    Raises
    ------
    ValueError
        If a point occurs twice (the first row that repeats an earlier one is named), is negative, or is outside
        `shape`.
    """
    idx = checked(idx, shape, name=name)
    # the narrowest raster: short keys are sorted faster
    order, ordered = _sort(np.asarray(idx, np.int64) if idx.ndim == 1 else _row_major(idx, _width(idx)))
    repeated = np.flatnonzero(ordered[1:] == ordered[:-1])
    if repeated.size:
        # the sort is stable: among equal points the later row comes second
        at = repeated[np.argmin(order[repeated + 1])]
        raise ValueError(
            f"{name}: row {order[at + 1]} repeats the point of row {order[at]} ({repeated.size} rows repeat another); "
            "a point cloud holds no point twice"
        )
    return order


def _sort(key: Int64) -> tuple[Rows, Int64]:
    """Return the stable order of keys that are not negative, and the keys in that order."""
    dtype = row_dtype(key.size)
    bits = max(key.size - 1, 0).bit_length()
    if int(key.max(initial=0)).bit_length() + bits > 63:
        order = np.argsort(key, kind="stable")
        return order.astype(dtype, copy=False), key[order]
    # key and row in one word: numpy sorts words many times faster than it finds an order, and no two of them are equal
    word = key << bits
    word |= np.arange(key.size)
    word.sort()
    return (word & ((1 << bits) - 1)).astype(dtype), word >> bits


# -- sets of points ----------------------------------------------------------------------------------------------------


def union(key1: Int64, key2: Int64, names: tuple[str, str] = ("idx1", "idx2")) -> Rows:
    """All points of two sorted clouds; a point of both is taken from the first.

    One merge, O(n1 + n2), as in every set function here.

    Parameters
    ----------
    key1, key2
        Keys of the clouds, ``(n1,)`` and ``(n2,)`` int64, unitless, strictly ascending: two hix of one raster, or two
        row-major keys of one width.
    names
        What errors call the two arrays.

    Returns
    -------
    ndarray
        Rows of "`key1` followed by `key2`", ``(n,)``, unitless: ``np.concatenate((data1, data2))[rows]`` holds the
        data of the union in sorted order. A row below n1 comes from the first cloud. The dtype is int32, or int64
        where n1 + n2 is too large for that, as in every set function here.

    Raises
    ------
    ValueError
        If a key is not strictly ascending (see `check_sorted`).

    Examples
    --------
    >>> union(np.array([1, 4, 6]), np.array([0, 4, 9]))
    array([3, 0, 1, 2, 5], dtype=int32)
    """
    rows = np.empty(key1.size + key2.size, row_dtype(key1.size + key2.size))
    n = _cpu.merge(_sorted(key1, names[0]), _sorted(key2, names[1]), rows)
    return rows[:n]


def intersect(key1: Int64, key2: Int64, names: tuple[str, str] = ("idx1", "idx2")) -> tuple[Rows, Rows]:
    """Points that two sorted clouds share.

    Parameters
    ----------
    key1, key2
        Keys of the clouds, ``(n1,)`` and ``(n2,)`` int64, unitless, strictly ascending.
    names
        What errors call the two arrays.

    Returns
    -------
    rows1, rows2 : ndarray
        Where the shared points are in each cloud, ``(n,)``, unitless, ascending: ``key1[rows1] == key2[rows2]``.

    Raises
    ------
    ValueError
        If a key is not strictly ascending (see `check_sorted`).
    """
    at = _located(_sorted(key1, names[0]), _sorted(key2, names[1]))
    rows1 = np.flatnonzero(at >= 0).astype(row_dtype(key1.size + key2.size), copy=False)
    return rows1, at[rows1]


def diff(key1: Int64, key2: Int64, names: tuple[str, str] = ("idx1", "idx2")) -> Rows:
    """Points of the first sorted cloud that are not in the second.

    Parameters
    ----------
    key1, key2
        Keys of the clouds, ``(n1,)`` and ``(n2,)`` int64, unitless, strictly ascending.
    names
        What errors call the two arrays.

    Returns
    -------
    ndarray
        Rows of `key1`, ``(n,)``, unitless, ascending.

    Raises
    ------
    ValueError
        If a key is not strictly ascending (see `check_sorted`).
    """
    at = _located(_sorted(key1, names[0]), _sorted(key2, names[1]))
    return np.flatnonzero(at < 0).astype(row_dtype(key1.size + key2.size), copy=False)


def match(key_in: Int64, key: Int64, names: tuple[str, str] = ("idx_in", "idx"), points: Gix | None = None) -> Rows:
    """Where the points of a subset are in the sorted cloud that holds them all.

    Parameters
    ----------
    key_in
        Key of the cloud, ``(n_in,)`` int64, unitless, strictly ascending.
    key
        Key of the subset, ``(n,)`` int64, unitless, strictly ascending.
    names
        What errors call the two arrays.
    points
        What errors show of the subset: its gix ``(n, 2)`` or hix ``(n,)``; `key` by default.

    Returns
    -------
    ndarray
        Rows of `key_in`, ``(n,)``, unitless, ascending: ``key_in[rows] == key``.

    Raises
    ------
    ValueError
        If a key is not strictly ascending, or if a point of the subset is not in the cloud; the number of these and
        the first of them are named.
    """
    rows = _located(_sorted(key, names[1]), _sorted(key_in, names[0]))
    lost = np.flatnonzero(rows < 0)
    if lost.size:
        point = (key if points is None else points)[lost[0]]
        text = str(point) if point.ndim == 0 else f"(azimuth, range) = {_pair(point)}"
        raise ValueError(
            f"{names[1]}: {lost.size} of its {rows.size} points are not in {names[0]}; "
            f"the first is row {lost[0]}, {text}"
        )
    return rows


def _located(key1: Int64, key2: Int64) -> Rows:
    """Row of `key2` for every element of `key1`, -1 where it is not there."""
    rows = np.empty(key1.size, row_dtype(key1.size + key2.size))
    _cpu.locate(key1, key2, rows)
    return rows


# -- points and raster chunks ------------------------------------------------------------------------------------------


class ChunkGroups(NamedTuple):
    """Points grouped by raster chunk: chunk ``chunk[i]`` holds points ``order[offsets[i]:offsets[i + 1]]``."""

    order: Int64
    """Rows of the points, ``(n_points,)``: by chunk, inside a chunk as they were."""
    chunk: Int64
    """Row-major numbers of the chunks that hold points, ``(n_chunks,)``, ascending."""
    offsets: Int64
    """Where each group starts in `order`, ``(n_chunks + 1,)``, from 0 to n_points."""


def points_by_chunk(gix: Gix, shape: tuple[int, int], chunks: tuple[int, int]) -> ChunkGroups:
    """Group points by the raster chunk they lie in, so that each chunk is read once and empty ones never.

    Parameters
    ----------
    gix
        Grid index (azimuth, range), ``(n_points, 2)`` int32, in pixels, in any order.
    shape
        Lines and width of the raster, in pixels.
    chunks
        Lines and width of a chunk, in pixels.

    Returns
    -------
    ChunkGroups
        Three int64 arrays, unitless. Chunk (i, j) of the raster has the number ``i * ceil(width / chunks[1]) + j``.

    Raises
    ------
    ValueError
        If a point lies outside the raster (the first such row is named), or a chunk side is below 1.
    """
    if min(chunks) < 1:
        raise ValueError(f"chunks are {_pair(chunks)}; expected both sides at least 1")
    gix = _checked_gix(gix, shape)
    across = -(-shape[1] // chunks[1])
    number = gix[:, 0].astype(np.int64) // chunks[0] * across + gix[:, 1] // chunks[1]
    # in 8 or 16 bits, enough for most rasters, numpy's stable sort is a radix sort: linear and several times faster
    order = np.argsort(number.astype(np.min_scalar_type(number.max(initial=0))), kind="stable")
    number = number[order]
    start = np.flatnonzero(np.diff(number, prepend=-1))
    return ChunkGroups(order.astype(np.int64, copy=False), number[start], np.append(start, number.size))


# -- points in the plane -----------------------------------------------------------------------------------------------


def rtree(x: Float, y: Float, page_size: int = 512) -> NDArray[np.float64]:
    """Tree of bounding boxes over a cloud whose neighbors in the array are neighbors in the plane (hilbert order).

    A packed R-tree (Kamel and Faloutsos, "Hilbert R-tree", VLDB 1994) as a complete binary tree: root in row 0,
    children of row k in rows 2k + 1 and 2k + 2, leaf q in row L - 1 + q with the points of page q; L is the smallest
    power of two not below the number of pages, and at least 1.

    Parameters
    ----------
    x, y
        Coordinates, ``(n_points,)`` float32 or float64, in any unit. A point with a nan coordinate is in no box.
    page_size
        Points per leaf.

    Returns
    -------
    ndarray
        Boxes (min x, min y, max x, max y), ``(2L - 1, 4)`` float64, in the unit of `x` and `y`; nan for a node
        without points.

    Raises
    ------
    ValueError
        If `x` and `y` are not 1-D of one length, or `page_size` is below 1.
    """
    return rtree_of_pages(page_boxes(x, y, page_size))


def page_boxes(x: Float, y: Float, page_size: int = 512) -> NDArray[np.float64]:
    """Boxes of the pages of a cloud: the leaves of its R-tree.

    Parameters
    ----------
    x, y
        Coordinates, ``(n_points,)`` float32 or float64, in any unit. A point with a nan coordinate is in no box.
    page_size
        Points per page; a cloud may be cut between any two of them.

    Returns
    -------
    ndarray
        Boxes (min x, min y, max x, max y), ``(n_pages, 4)`` float64, in the unit of `x` and `y`; nan for a page
        without points.

    Raises
    ------
    ValueError
        If `x` and `y` are not 1-D of one length, or `page_size` is below 1.
    """
    _check_points(x, y)
    _leaves(x.size, page_size)
    start = np.arange(0, x.size, page_size)
    boxes = np.full((start.size, 4), np.nan)
    if x.size:
        missing = np.isnan(x) | np.isnan(y)
        for column, values in enumerate((x, y)):
            known = np.where(missing, np.nan, values)  # fmin and fmax pass over nan
            boxes[:, column] = np.fmin.reduceat(known, start)
            boxes[:, column + 2] = np.fmax.reduceat(known, start)
    return boxes


def rtree_of_pages(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Tree over the boxes of all pages.

    Parameters
    ----------
    boxes
        From `page_boxes`, ``(n_pages, 4)`` float64, in order.

    Returns
    -------
    ndarray
        As `rtree` returns it.
    """
    leaves = _leaves(len(boxes), 1)
    tree = np.full((2 * leaves - 1, 4), np.nan)
    tree[leaves - 1 : leaves - 1 + len(boxes)] = boxes
    size = leaves // 2
    while size:
        child = tree[2 * size - 1 : 4 * size - 1].reshape(size, 2, 4)
        tree[size - 1 : 2 * size - 1, :2] = np.fmin(child[:, 0, :2], child[:, 1, :2])
        tree[size - 1 : 2 * size - 1, 2:] = np.fmax(child[:, 0, 2:], child[:, 1, 2:])
        size //= 2
    return tree


def rtree_ranges(
    tree: NDArray[np.float64], n_points: int, page_size: int, box: tuple[float, float, float, float]
) -> Int64:
    """Ranges of points that can be inside a box: what to read of a cloud too large to be read whole.

    Parameters
    ----------
    tree
        Boxes from `rtree`, ``(2L - 1, 4)`` float64.
    n_points
        Number of points of the cloud.
    page_size
        Points per leaf, as given to `rtree`.
    box
        Closed box (min x, min y, max x, max y), in the unit of the tree.

    Returns
    -------
    ndarray
        First point and end (exclusive) of each range, ``(n_ranges, 2)`` int64, unitless, ascending, no two touching.
        Every point inside the box is in a range; a range also holds points that are not.

    Raises
    ------
    ValueError
        If the tree is not one of `n_points` and `page_size`.
    """
    leaves = _leaves(n_points, page_size)
    if tree.shape != (2 * leaves - 1, 4):
        raise ValueError(
            f"tree has shape {tree.shape}; expected ({2 * leaves - 1}, 4) for {n_points} points in pages of {page_size}"
        )
    node = np.zeros(1, np.int64)  # the nodes of one level that meet the box; comparisons with nan are False
    while True:
        x0, y0, xm, ym = tree[node].T
        node = node[(x0 <= box[2]) & (xm >= box[0]) & (y0 <= box[3]) & (ym >= box[1])]
        if node.size == 0 or node[0] >= leaves - 1:
            break
        node = (2 * node[:, None] + (1, 2)).ravel()
    page = node - (leaves - 1)
    first = page[np.diff(page, prepend=-2) > 1]
    last = page[np.diff(page, append=page[-1:] + 2) > 1] if page.size else page
    return np.column_stack((first * page_size, np.minimum((last + 1) * page_size, n_points)))


def rtree_query(
    tree: NDArray[np.float64], x: Float, y: Float, page_size: int, box: tuple[float, float, float, float]
) -> Int64:
    """Points inside a closed box.

    Parameters
    ----------
    tree
        Boxes from `rtree` of the same points and page size, ``(2L - 1, 4)`` float64.
    x, y
        Coordinates, ``(n_points,)`` float32 or float64, in any unit. A point with a nan coordinate is never inside.
    page_size
        Points per leaf, as given to `rtree`.
    box
        Closed box (min x, min y, max x, max y), in the unit of `x` and `y`: points on the border are inside.

    Returns
    -------
    ndarray
        Numbers of the points inside, ``(n,)`` int64, unitless, ascending.

    Raises
    ------
    ValueError
        If `x` and `y` are not 1-D of one length, or the tree is not one of them.
    """
    _check_points(x, y)
    # Python numbers would take the precision of float32 coordinates and move the border of the box
    x0, y0, xm, ym = np.asarray(box, np.float64)
    inside = [np.empty(0, np.int64)]
    for start, stop in rtree_ranges(tree, x.size, page_size, box):
        px, py = x[start:stop], y[start:stop]
        inside.append(start + np.flatnonzero((x0 <= px) & (px <= xm) & (y0 <= py) & (py <= ym)))
    return np.concatenate(inside)


# -- checks ------------------------------------------------------------------------------------------------------------


def _pair(values: tuple[int, int] | NDArray[np.integer]) -> str:
    return f"({values[0]}, {values[1]})"


def _first(bad: NDArray[np.bool_]) -> int:
    """Row of the first True, -1 if there is none."""
    row = int(bad.argmax()) if bad.size else 0
    return row if bad.size and bad[row] else -1


def _checked_gix(gix: Gix, shape: tuple[int, int], name: str = "gix", first_row: int = 0) -> Gix:
    """`gix` as the compiled loops want it, all its points inside `shape`."""
    if gix.ndim != 2 or gix.shape[1] != 2 or gix.dtype.kind not in "iu":
        raise ValueError(f"{name} is {gix.dtype} {gix.shape}; expected integers (n_points, 2)")
    # two dtypes are enough: the loops are compiled anew for every other
    layout: dict[str, Any] = {"order": "C", "copy": False}
    checked: Gix = gix.astype(np.int32, **layout) if gix.dtype == np.int32 else gix.astype(np.int64, **layout)
    row = _cpu.first_outside(checked, *shape)
    if row >= 0:
        point = f"row {first_row + row} is (azimuth, range) = {_pair(gix[row])}"
        raise ValueError(f"{name}: {point}, outside the raster {_pair(shape)}")
    return checked


def _checked_hix(hix: NDArray[np.integer], shape: tuple[int, int], name: str, first_row: int = 0) -> Int64:
    """`hix` as the compiled loops want it, all its points on the curve of `shape`."""
    if hix.ndim != 1 or hix.dtype.kind not in "iu":
        raise ValueError(f"{name} is {hix.dtype} {hix.shape}; expected integers (n_points,)")
    checked = np.ascontiguousarray(hix, np.int64)
    end = 4 ** hilbert_order(shape)
    row = _first((checked < 0) | (checked >= end))
    if row >= 0:
        value = f"row {first_row + row} is {hix[row]}"
        raise ValueError(f"{name}: {value}; expected 0 to {end - 1} on the curve of raster {_pair(shape)}")
    return checked


def _width(gix: Gix) -> int:
    """Width of the narrowest raster that holds the points."""
    return int(gix[:, 1].max(initial=0)) + 1


def _row_major(gix: Gix, width: int) -> Int64:
    key = gix[:, 0].astype(np.int64)
    key *= width
    key += gix[:, 1]
    return key


def _sorted(key: Int64, name: str) -> Int64:
    check_sorted(key, name)
    return np.ascontiguousarray(key, np.int64)


def _check_points(x: Float, y: Float) -> None:
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"x has shape {x.shape} and y {y.shape}; expected (n_points,) for both")


def _leaves(n_points: int, page_size: int) -> int:
    if page_size < 1:
        raise ValueError(f"page_size is {page_size}; expected at least 1")
    pages = -(-n_points // page_size)
    return 1 << max(pages - 1, 0).bit_length()
