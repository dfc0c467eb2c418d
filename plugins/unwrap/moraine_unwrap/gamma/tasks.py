"""The tasks of gamma-mcf-pt: the list of points, and one pair of images handed to mcf_pt and read back.

The files are those of GAMMA's point target analysis, big-endian and without a header: a point list of int32 (x, y), an
interferogram of complex64, weights and unwrapped phase of float32, one record of all points.
"""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_load.gamma import GammaError, Product, make
from moraine_unwrap.flow.tasks import interferogram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moraine_core import Chunk

CYCLE = 2 * math.pi

OFF = 0.1
"""Largest distance of a result from the wrapped phase plus whole cycles, in cycles; float32 is far better."""


def point_list(
    x: NDArray[Any], y: NDArray[Any], weight: NDArray[Any] | None, *, names: Sequence[str]
) -> NDArray[np.int32]:
    """Return coordinates rounded to whole numbers, which is all that a point list can hold.

    Parameters
    ----------
    x, y
        Coordinates, ``(n_points,)``.
    weight
        Weights of the points, ``(n_points,)``, unitless, or None. They are only checked.
    names
        What to call the three in errors.

    Returns
    -------
    array
        ``(n_points, 2)`` int32.

    Raises
    ------
    ValueError
        A coordinate is missing or too large, two points fall together, or a weight is not within 0 to 1.
    """
    whole = np.empty((len(x), 2), np.int32)
    for column, values in enumerate((x, y)):
        rounded = np.rint(values.astype(np.float64))
        bad = np.flatnonzero(~(np.abs(rounded) < 2**31))
        if len(bad):
            raise ValueError(f"{names[column]}: point {bad[0]} is at {values[bad[0]]}; expected less than 2^31")
        whole[:, column] = rounded
    order = np.lexsort(whole.T)
    is_twin = (np.diff(whole[order], axis=0) == 0).all(axis=1)
    if is_twin.any():
        first, second = sorted(order[np.argmax(is_twin) :][:2].tolist())
        at = tuple(whole[first].tolist())
        raise ValueError(
            f"{names[0]}, {names[1]}: points {first} and {second} are both at {at} when rounded to whole numbers; "
            "expected points that differ: mcf_pt takes no fractions, so scale the coordinates"
        )
    if weight is not None:
        bad = np.flatnonzero(~((weight >= 0) & (weight <= 1)))
        if len(bad):
            raise ValueError(f"{names[2]}: point {bad[0]} has weight {weight[bad[0]]}; expected 0 to 1")
    return whole


def unwrap_pair(
    points: NDArray[np.int32],
    ref: NDArray[np.complex64],
    sec: NDArray[np.complex64],
    weight: NDArray[Any] | None,
    *,
    pair: tuple[int, int],
    program: str,
    ref_point: int,
    place: Chunk,
    log_file: str,
    skip_failed: bool,
) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """Let mcf_pt unwrap the interferogram of two images.

    The result is the wrapped phase plus the whole cycles that mcf_pt found, so it rewraps exactly. Points whose result
    is no such sum were left out by the program and become missing.

    Parameters
    ----------
    points
        Coordinates, ``(n_points, 2)`` int32.
    ref, sec
        The two images, ``(n_points, 1)`` complex64; only the phase matters. Points that are missing in either are not
        given to the program.
    weight
        Weights, ``(n_points,)``, unitless, or None.
    pair
        Numbers of the images.
    program
        Name or path of mcf_pt.
    ref_point
        Point that keeps its wrapped phase; where it is missing, the first that is not.
    place
        An array in whose folder the program's files are put while it runs.
    log_file
        Where the program's output is kept if it fails.
    skip_failed
        Let the pair be missing if it fails.

    Returns
    -------
    unwrapped
        Radians, ``(n_points, 1)`` float32; nan is missing.
    report
        ``error``, empty where all went well, and ``n_lost``, the number of points that the program left out.

    Raises
    ------
    GammaError
        The program failed, or its result is not the input plus whole cycles; not with `skip_failed`.
    """
    unwrapped = np.full(ref.shape, np.nan, np.float32)
    psi = interferogram(ref, sec)
    rows = np.flatnonzero(np.isfinite(psi))
    report: dict[str, Any] = {"error": "", "n_lost": 0}
    if len(rows) == 0:
        return unwrapped, report
    psi = psi[rows]
    kept = int(np.searchsorted(rows, ref_point))
    kept = kept if kept < len(rows) and rows[kept] == ref_point else 0
    try:
        if len(rows) < 3:  # no triangle to make a network of
            cycles: NDArray[np.float64] = -np.rint((psi - psi[kept]) / CYCLE)
        else:
            weights = None if weight is None else weight[rows]
            found = _mcf_pt(points[rows], psi, weights, kept, program, Path(place.path).parent, Path(log_file))
            cycles = _cycles(found, psi, kept)
    except GammaError as error:
        text = f"pair {pair[0]} {pair[1]}: {error}"
        if not skip_failed:
            raise GammaError(text) from error
        return unwrapped, {**report, "error": text}
    unwrapped[rows, 0] = psi + CYCLE * cycles
    return unwrapped, {**report, "n_lost": int(np.isnan(cycles).sum())}


def _mcf_pt(
    points: NDArray[np.int32],
    psi: NDArray[np.float64],
    weight: NDArray[Any] | None,
    kept: int,
    program: str,
    place: Path,
    log_file: Path,
) -> NDArray[np.float64]:
    """Write the files of a pair, run the program, and return its unwrapped phase in radians."""
    log_file.unlink(missing_ok=True)
    with TemporaryDirectory(prefix="mcf_pt-", dir=place) as folder:
        plist, pint, pwgt, punw = (f"{folder}/{name}" for name in ("plist", "pint", "pwgt", "punw"))
        points.astype(">i4").tofile(plist)
        np.exp(1j * psi).astype(">c8").tofile(pint)
        if weight is not None:
            weight.astype(">f4").tofile(pwgt)
        product = Product(punw, 4 * len(psi))
        pwgt = "-" if weight is None else pwgt
        # pmask, rec_num and mask: none, all, none; then the spacings, the reference point, and that it keeps its phase
        words: list[str | Product] = [program, plist, "-", pint, "-", pwgt, "-", product, "1", "1", str(kept), "0"]
        make(words, [product], [plist, pint], log=log_file)
        found = np.fromfile(punw, ">f4").astype(np.float64)
    log_file.unlink()
    return found


def _cycles(found: NDArray[np.float64], psi: NDArray[np.float64], kept: int) -> NDArray[np.float64]:
    """Return the whole cycles by which a result differs from the wrapped phase, 0 at the reference point.

    Some versions of mcf_pt leave single points out; their result is 0.
    """
    difference = (found - psi) / CYCLE
    cycles: NDArray[np.float64] = np.rint(difference)
    is_lost = ~(np.abs(difference - cycles) < OFF) | ((found == 0) & (psi != 0))
    if 2 * is_lost.sum() > len(psi):
        raise GammaError(
            f"the result of mcf_pt differs from its input by other than whole cycles at {is_lost.sum()} of {len(psi)} "
            "points; expected at hardly any"
        )
    if is_lost[kept]:
        raise GammaError("mcf_pt did not unwrap the reference point; expected a ref_point that has neighbors")
    cycles -= cycles[kept]
    cycles[is_lost] = np.nan
    return cycles
