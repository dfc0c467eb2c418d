"""Parameters that several commands on points declare alike."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from moraine_core import Array, Blocks1D, Input, Output

UNIT = "pixels or unitless"
"""Unit of an index: pixels of a gix, none of a hix."""


def index_input(help: str, axis: str = "n_points") -> Input:
    """Return the role of an index that is read, gix or hix; `axis` is what its length is called."""
    return Input(help, shape=(f"({axis}, 2)", f"({axis})"), dtype="integer", unit=UNIT)


def index_output(help: str) -> Output:
    """Return the role of an index that is written, gix or hix."""
    return Output(help, shape=("(n_points, 2)", "(n_points)"), dtype=("int32", "int64"), unit=UNIT)


FirstIndex: TypeAlias = Annotated[Array, index_input("gix or hix of the first cloud, sorted", "n_points1")]
"""Index of the first of two clouds."""

SecondIndex: TypeAlias = Annotated[
    Array, index_input("index of the second cloud, of the same kind, sorted", "n_points2")
]
"""Index of the second of two clouds."""

BlockOfFirst: TypeAlias = Annotated[
    Blocks1D | None, "points in a chunk of the outputs; the block of idx1 by default (points)"
]
"""Block of what is made of two clouds."""

CheckedShape: TypeAlias = Annotated[
    tuple[int, int] | None, "lines and width of the raster, if the points are to be checked against it (pixels)"
]
"""Raster that the points of a command lie in, which may be left out."""
