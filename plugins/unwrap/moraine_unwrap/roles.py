"""Parameters that the commands of this family declare alike, and the checks of them; no numpy is loaded."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Annotated, TypeAlias

from moraine_core import Array, Input, Output, Pairs, UsageError
from moraine_raster.networks import network_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moraine_raster.networks import TempNet

MOST_EARTH_COST = 10**5
"""Largest factor for the hull: with it no cost of an edge passes the integers that they are kept in."""

MOST_RATIO = 10**6
"""Largest ratio of the pixel spacings that points are triangulated with."""

GridIndex: TypeAlias = Annotated[
    Array, Input("grid index of the points, in any order", shape="(n_points, 2)", dtype="integer", unit="pixels")
]
"""Index of the points to unwrap."""

PhaseHistory: TypeAlias = Annotated[
    Array,
    Input(
        "phase history of the points; only the phase matters",
        shape="(n_points, nimages)",
        dtype="complex64",
        unit="unitless",
    ),
]
"""Phases to unwrap, stored image by image."""

ImagePairs: TypeAlias = Annotated[Pairs, "image pairs to unwrap, a file or a list; any network, in any order"]
"""Pairs (reference, secondary) of images."""

RangeSpacing: TypeAlias = Annotated[float, "pixel spacing in range (m)"]
"""Spacing of the second coordinate of a grid index."""

AzimuthSpacing: TypeAlias = Annotated[float, "pixel spacing in azimuth (m)"]
"""Spacing of the first coordinate of a grid index."""

EarthCost: TypeAlias = Annotated[int, "factor for the costs of edges of the hull, at least 1 (unitless)"]
"""What a discontinuity pays for running out of the cloud."""

RefPoint: TypeAlias = Annotated[int, "point that keeps its wrapped phase in every pair, from 0 (unitless)"]
"""Point that all unwrapped phases are relative to, up to its own wrapped phase."""

UnwrappedPhase: TypeAlias = Annotated[
    str, Output("unwrapped phase of the pairs", shape="(n_points, n_pairs)", dtype="float32", unit="radians")
]
"""Result of unwrapping."""

Island: TypeAlias = Annotated[
    str | None,
    Output(
        "number of the connected part that a point belongs to in a pair, -1 where it is missing",
        shape="(n_points, n_pairs)",
        dtype="int32",
        unit="unitless",
    ),
]
"""Labels of what cannot be related."""


def checked_spacing(name: str, range_pixel_spacing: float, azimuth_pixel_spacing: float) -> tuple[float, float]:
    """Return the pixel spacing in the order of a grid index, (azimuth, range), in meters.

    Raises
    ------
    UsageError
        One of the two is not a positive number, or they differ by a factor of more than a million.
    """
    spacing = {"range_pixel_spacing": range_pixel_spacing, "azimuth_pixel_spacing": azimuth_pixel_spacing}
    for parameter, value in spacing.items():
        if not (isfinite(value) and value > 0):
            raise UsageError(f"{name}: {parameter} is {value:g}; expected a positive number (m)")
    if max(spacing.values()) > MOST_RATIO * min(spacing.values()):
        found = " and ".join(f"{parameter} {value:g}" for parameter, value in spacing.items())
        raise UsageError(f"{name}: {found}; expected two numbers whose ratio is at most {MOST_RATIO} (m)")
    return azimuth_pixel_spacing, range_pixel_spacing


def checked_network(name: str, image_pairs: Sequence[Sequence[int]], ph: Array) -> TempNet:
    """Return the network of pairs of the images of a phase history.

    Raises
    ------
    UsageError
        There is no pair, or one is of a single image, of an image that is not there, or occurs twice. Or the phase
        history is not stored image by image.
    """
    check_columns(name, "ph", ph, "image")
    return network_of(name, image_pairs, "ph", ph)


def check_columns(name: str, parameter: str, array: Array, column: str) -> None:
    """Check that an array of points is stored column by column, so that a task reads one without the others.

    Raises
    ------
    UsageError
        Its chunks hold several columns.
    """
    if array.chunks[1] > 1 and array.shape[1] > 1 and array.shape[0]:
        raise UsageError(
            f"{name}: {parameter} {array.path} has chunks {array.chunks}; expected ({array.chunks[0]}, 1), one "
            f"{column} per chunk: moraine pc-concat --pcs {array.path} --pc NEW.zarr writes it so"
        )


def check_ref_point(name: str, ref_point: int, n_points: int) -> None:
    """Check that a reference point is one of the points; 0 is right for a cloud without points.

    Raises
    ------
    UsageError
        It is none of them.
    """
    if not 0 <= ref_point < max(n_points, 1):
        raise UsageError(f"{name}: ref_point is {ref_point}; expected 0 to {max(n_points, 1) - 1}, one of the points")


def check_earth_cost(name: str, earth_cost: int) -> None:
    """Check the factor for edges of the hull.

    Raises
    ------
    UsageError
        It is below 1, or so large that costs would overflow.
    """
    if not 1 <= earth_cost <= MOST_EARTH_COST:
        raise UsageError(f"{name}: earth_cost is {earth_cost}; expected 1 to {MOST_EARTH_COST}")
