"""Geometry of chunk grids: laws that hold for any shape."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_core.blocks import (
    ALL,
    blocks,
    box_shape,
    chunks_of,
    grid_shape,
    is_aligned,
    n_blocks,
    resolve_chunks,
    split,
    to_block,
    to_box,
    with_halo,
)
from moraine_core.errors import LayoutError

settings.register_profile("moraine", deadline=None, max_examples=80)
settings.load_profile("moraine")

sizes = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 11)), min_size=0, max_size=3)


@st.composite
def boxes(draw):
    """A shape, its chunks, and a part of it."""
    pairs = draw(sizes)
    box = []
    for n, _ in pairs:
        start = draw(st.integers(0, n))
        box.append((start, draw(st.integers(start, n))))
    return tuple(n for n, _ in pairs), tuple(c for _, c in pairs), tuple(box)


@given(sizes)
def test_blocks_cover_every_element_once(pairs):
    shape, chunks = tuple(n for n, _ in pairs), tuple(c for _, c in pairs)
    count = np.zeros(shape, int)
    seen = list(blocks(shape, chunks))
    for block in seen:
        count[block] += 1
        assert all(0 < part.stop - part.start <= c for part, c in zip(block, chunks, strict=True))
        assert is_aligned(to_box(block, shape), shape, chunks)
    assert (count == 1).all()
    assert len(seen) == n_blocks(shape, chunks) == np.prod(grid_shape(shape, chunks), dtype=int)


@given(sizes)
def test_blocks_come_in_row_major_order(pairs):
    shape, chunks = tuple(n for n, _ in pairs), tuple(c for _, c in pairs)
    starts = [tuple(part.start for part in block) for block in blocks(shape, chunks)]
    assert starts == sorted(starts)


@given(boxes(), st.lists(st.integers(0, 4), min_size=3, max_size=3))
def test_a_halo_is_clipped_and_its_trim_gives_the_block_back(part, halo):
    shape, _, box = part
    halo = halo[: len(shape)]
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    block = to_block(box)
    outer, trim = with_halo(block, halo, shape)
    np.testing.assert_array_equal(values[outer][trim], values[block])
    for (low, high), (start, stop), h, n in zip(to_box(outer, shape), box, halo, shape, strict=True):
        assert (low, high) == (max(0, start - h), min(n, stop + h))


@given(boxes())
def test_the_pieces_of_a_box_tile_it_and_lie_in_one_chunk_each(part):
    shape, chunks, box = part
    count = np.zeros(shape, int)
    pieces = list(split(box, chunks))
    for piece in pieces:
        count[to_block(piece)] += 1
        assert len(list(chunks_of(piece, chunks))) == 1
    inside = np.zeros(shape, int)
    inside[to_block(box)] = 1
    np.testing.assert_array_equal(count, inside)
    assert [next(chunks_of(piece, chunks)) for piece in pieces] == list(chunks_of(box, chunks))


@given(boxes())
def test_a_box_is_aligned_when_it_cuts_no_chunk(part):
    shape, chunks, box = part
    if any(start == stop for start, stop in box):
        return  # nothing is cut by nothing, but it need not lie on a border
    owner = np.zeros(shape, int)
    for number, block in enumerate(blocks(shape, chunks)):
        owner[block] = number
    inside = np.zeros(shape, bool)
    inside[to_block(box)] = True
    cut = bool(set(owner[inside].ravel()) & set(owner[~inside].ravel()))
    assert is_aligned(box, shape, chunks) is not cut


@given(boxes())
def test_a_part_as_slices_and_as_bounds_is_the_same(part):
    shape, _, box = part
    assert to_box(to_block(box), shape) == box
    assert box_shape(box) == np.empty(shape)[to_block(box)].shape


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        ((0, 2), (3, 7), True),
        ((0, 3), (0, 3), False),
        ((4, 5), (0, 7), True),
        ((0, 5), (0, 7), True),
        ((0, 5), (0, 3), True),
        ((4, 5), (6, 7), True),
        ((0, 2), (3, 5), False),
        ((1, 2), (0, 7), False),
    ],
)
def test_alignment_on_a_five_by_seven_array(rows, columns, expected):
    """E7.1: chunks (2, 3)."""
    assert is_aligned((rows, columns), (5, 7), (2, 3)) is expected


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((slice(0, 6), ALL), "axis 0: part 0:6 is not within 0:5"),
        ((ALL, slice(-1, 7)), "axis 1: part -1:7 is not within 0:7"),
        ((slice(3, 2), ALL), "axis 0: part 3:2 is not within 0:5"),
        ((slice(0, 4, 2), ALL), "axis 0: step 2, expected 1"),
        ((ALL,), r"a part with 1 axes was asked of an array with shape \(5, 7\)"),
    ],
)
def test_nothing_is_clipped_or_wrapped_in_silence(block, message):
    """E6."""
    with pytest.raises(LayoutError, match=message):
        to_box(block, (5, 7))


def test_none_and_open_ends_mean_the_whole():
    assert to_box(None, (5, 7)) == ((0, 5), (0, 7))
    assert to_box((None, slice(2, None)), (5, 7)) == ((0, 5), (2, 7))
    assert to_box((slice(None, 3), ALL), (5, 7)) == ((0, 3), (0, 7))


def test_minus_one_is_a_whole_axis_and_an_empty_axis_has_no_blocks():
    assert resolve_chunks((5, 0), (-1, -1)) == (5, 1)
    assert list(blocks((5, 0), (2, 3))) == []
    assert list(blocks((), ())) == [()]
    assert list(product(*[])) == list(blocks((), ()))


@pytest.mark.parametrize("chunks", [(0,), (-2,)])
def test_chunks_are_positive(chunks):
    with pytest.raises(LayoutError, match="expected positive sizes, or -1"):
        resolve_chunks((5,), chunks)


def test_chunks_have_the_axes_of_the_shape():
    with pytest.raises(LayoutError, match="have 1 axes, the shape"):
        list(blocks((5, 7), (2,)))
