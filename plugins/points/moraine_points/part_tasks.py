"""What tasks on clouds in parts do: put parts one after another, and find their rows again in any order."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_points.spill import padded

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from moraine_core import Chunk
    from moraine_core.store import ZarrParts
    from moraine_points.kernels import Int64

    Values = NDArray[Any]


# -- the order of the rows ---------------------------------------------------------------------------------------------


def compose(*keys: Int64, n_points: int, names: Sequence[str]) -> Int64 | None:
    """Return the permutation that several mean one after another: ``keys[0][keys[1]][...]``.

    Parameters
    ----------
    *keys
        Permutations, ``(n_points,)`` integers, unitless.
    n_points
        Rows that are put in order.
    names
        What errors call the keys.

    Returns
    -------
    ndarray or None
        ``(n_points,)`` int64, unitless; None where there is no key.

    Raises
    ------
    ValueError
        One is not a permutation; its first row that is out of range or repeats another is named.
    """
    order: Int64 | None = None
    for key, name in zip(keys, names, strict=True):
        _check_permutation(key, n_points, name)
        rows = key.astype(np.int64, copy=False)
        order = rows if order is None else order[rows]
    return order


def _check_permutation(key: NDArray[np.integer[Any]], n_points: int, name: str) -> None:
    outside = np.flatnonzero((key < 0) | (key >= n_points))
    if outside.size:
        row = outside[0]
        raise ValueError(f"{name}: row {row} is {key[row]}; expected 0 to {n_points - 1}, each once")
    seen = np.full(n_points, -1, np.int64)
    seen[key[::-1]] = np.arange(len(key))[::-1]  # the first row of each value
    repeats = np.flatnonzero(seen[key] != np.arange(len(key)))
    if repeats.size:
        row = repeats[0]
        raise ValueError(f"{name}: row {row} repeats {key[row]} of row {seen[key[row]]}; expected each row once")


# -- columns -----------------------------------------------------------------------------------------------------------


def concat(
    *, number: int, trailing: Sequence[tuple[int, int]], parts: Sequence[ZarrParts], order: Int64 | None
) -> Values:
    """Return the rows of all parts of an array in order.

    Parameters
    ----------
    number
        Which of `parts`.
    trailing
        Bounds of the part of the further axes to take.
    parts
        Arrays in parts.
    order
        Row of the concatenation for each row of the result, ``(n_points,)`` int64, unitless; None keeps them.

    Returns
    -------
    ndarray
        ``(n_points, ...)``.
    """
    values = parts[number].read([slice(*bounds) for bounds in trailing])
    return values if order is None else values[order]


# -- rows of window arrays, by way of a spill --------------------------------------------------------------------------


def pad(values: Values, *, n_rows: int) -> Values:
    """Return values with rows of 0 below them, `n_rows` in all."""
    more = np.zeros((n_rows - len(values), *values.shape[1:]), values.dtype)
    return np.concatenate([values, more])


def in_spill(places: Int64, sizes: Sequence[int] | NDArray[np.int64]) -> Int64:
    """Return the rows of a spill that hold rows of a concatenation.

    Parameters
    ----------
    places
        Rows of the concatenation, ``(n,)`` int64, unitless.
    sizes
        Rows of each part.

    Returns
    -------
    ndarray
        Rows of the spill, ``(n,)`` int64, unitless.
    """
    ends = np.cumsum(np.asarray(sizes, np.int64))
    skipped = np.cumsum([0, *(padded(size) - size for size in np.asarray(sizes).tolist())])
    rows: Int64 = places + skipped[np.searchsorted(ends, places, side="right")]
    return rows


def places_of_rows(
    *keys: Int64, n_points: int, names: Sequence[str], sizes: Sequence[Sequence[int]]
) -> dict[Hashable, Int64]:
    """Return where spills keep the rows of a concatenation, in the order that keys ask for.

    Parameters
    ----------
    *keys, n_points, names
        As in `compose`.
    sizes
        Rows of each part, for each spill.

    Returns
    -------
    dict
        By number of the spill: its row for each row of the result, ``(n_points,)`` int64, unitless.
    """
    order = compose(*keys, n_points=n_points, names=names)
    places = np.arange(n_points) if order is None else order
    return {number: in_spill(places, rows) for number, rows in enumerate(sizes)}


def restore(
    *, spill: Chunk, dtype: str, rows: tuple[int, int], which: Hashable, places: Mapping[Hashable, Int64]
) -> Values:
    """Return rows of a spill in the order of the points.

    Parameters
    ----------
    spill
        The file, one row of values after another.
    dtype
        Of the values.
    rows
        First and last (exclusive) point.
    which
        Which of `places` is that of this spill.
    places
        Row of the spill of each point, ``(n_points,)`` int64, unitless.

    Returns
    -------
    ndarray
        ``(n, ...)``.
    """
    wanted = places[which][slice(*rows)]
    values = np.empty((len(wanted), *(stop for _, stop in spill.box[1:])), dtype)
    row_bytes = values.nbytes // len(wanted)
    starts = np.flatnonzero(np.diff(wanted, prepend=-2) != 1).tolist()
    # runs of neighbors are read at once; a mapped file would count as memory with all pages around those touched
    with Path(spill.path).open("rb") as file:
        for start, stop in pairwise([*starts, len(wanted)]):
            file.seek(int(wanted[start]) * row_bytes)
            run = values[start:stop].data.cast("B")
            if file.readinto(run) < run.nbytes:
                raise ValueError(f"{spill.path}: ends before row {wanted[stop - 1]}; was it cut?")
    return values
