"""What ``--show`` means: which channels of a stack are read and how they become one picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

SHOWS = ("phase", "intf_0", "intf_seq", "intf_all", "coh", "coh_abs")

Scale = Literal["phase", "unit", "values", "differences"]


@dataclass(frozen=True)
class Slider:
    """One index the user can choose, and the choice made."""

    name: str
    n: int
    """The index runs from 0 to n - 1."""
    value: int


@dataclass(frozen=True)
class Shown:
    """One picture of a stack, with every choice made."""

    label: str
    """What is seen, for the title."""
    scale: Scale
    """How colors are chosen: ``phase`` in radians, ``unit`` for 0 to 1, ``values`` by the statistics of the data,
    ``differences`` by the picture itself."""
    sliders: tuple[Slider, ...]
    channels: tuple[tuple[int, ...], ...]
    """Indices on the stack axes of the channels to read."""
    combine: Callable[..., NDArray[Any]]
    """Turns these channels, arrays of one shape, into real values of that shape."""
    images: tuple[int, ...] = ()
    """The images of the stack that are seen, for their dates."""
    nimages: int = 0
    """How many images the stack has; 0 if its axis does not count images."""


def plan_show(
    show: str | None,
    dtype: np.dtype[Any],
    stack: tuple[int, ...],
    index: Sequence[int] = (),
    pairs: Sequence[tuple[int, int]] | None = None,
) -> Shown:
    """Resolve ``--show`` and ``--index`` for one stack.

    Parameters
    ----------
    show
        One of :data:`SHOWS`, or None for what suits the data.
    dtype
        Of the data.
    stack
        Lengths of the axes behind the spatial ones.
    index
        Slider values in order, from 0; missing ones take their default (0, and 1 for ``sec`` so that the first
        picture is not an image with itself).
    pairs
        Image pairs (reference, secondary) of a compressed coherence; None: all pairs of the images.

    Returns
    -------
    Shown
        The channels to read and how to combine them.
    """
    if show is not None and show not in SHOWS:
        msg = f"show {show!r} is unknown; expected one of {', '.join(SHOWS)}"
        raise ValueError(msg)
    if show in ("coh", "coh_abs"):
        return _coherence(show, dtype, stack, index, pairs)
    if show in ("intf_0", "intf_seq", "intf_all"):
        return _interferogram(show, dtype, stack, index)
    if show == "phase" and (dtype.kind != "c" or len(stack) > 1):
        msg = f"show 'phase' needs complex data with at most one stack axis; found {dtype} with {len(stack)}"
        raise ValueError(msg)
    return _values(dtype, stack, index)


def _values(dtype: np.dtype[Any], stack: tuple[int, ...], index: Sequence[int]) -> Shown:
    names = ["image"] if len(stack) == 1 else [f"index {k + 1}" for k in range(len(stack))]
    sliders = _sliders([(name, n, 0) for name, n in zip(names, stack, strict=True)], index)
    channel = tuple(slider.value for slider in sliders)
    images, nimages = (channel, stack[0]) if len(stack) == 1 else ((), 0)
    if dtype.kind == "c":
        return Shown("phase", "phase", sliders, (channel,), _phase, images, nimages)
    scale: Scale = "unit" if dtype.kind == "b" else "values"
    return Shown("values", scale, sliders, (channel,), _as_is, images, nimages)


def _interferogram(show: str, dtype: np.dtype[Any], stack: tuple[int, ...], index: Sequence[int]) -> Shown:
    if len(stack) not in (1, 2):
        msg = f"show {show!r} needs one stack axis, or two of a full matrix; found {len(stack)}"
        raise ValueError(msg)
    n = min(stack)
    wanted = {
        "intf_0": [("image", n, 0)],
        "intf_seq": [("image", n - 1, 0)],
        "intf_all": [("ref", n, 0), ("sec", n, min(1, n - 1))],
    }
    if show == "intf_seq" and n < 2:
        msg = f"show 'intf_seq' needs at least two images; found {n}"
        raise ValueError(msg)
    sliders = _sliders(wanted[show], index)
    first = sliders[0].value
    ref, sec = {"intf_0": (0, first), "intf_seq": (first, first + 1)}.get(show, (first, sliders[-1].value))
    is_complex = dtype.kind == "c"
    combine: Callable[..., NDArray[Any]]
    if len(stack) == 2:  # the matrix holds the pair already
        channels: tuple[tuple[int, ...], ...] = ((ref, sec),)
        combine = _phase if is_complex else _as_is
    else:
        channels = ((ref,), (sec,))
        combine = _interferometric_phase if is_complex else _difference
    what = "interferometric phase" if is_complex else "difference"
    scale: Scale = "phase" if is_complex else "differences"
    return Shown(f"{what} ({show})", scale, sliders, channels, combine, (ref, sec), n)


def _coherence(
    show: str,
    dtype: np.dtype[Any],
    stack: tuple[int, ...],
    index: Sequence[int],
    pairs: Sequence[tuple[int, int]] | None,
) -> Shown:
    if len(stack) != 1 or dtype.kind != "c":
        msg = f"show {show!r} needs a compressed complex coherence with one stack axis; found {dtype} with {len(stack)}"
        raise ValueError(msg)
    places = _pair_places(stack[0], pairs)
    n = max(sec for _, sec in places) + 1
    sliders = _sliders([("ref", n, 0), ("sec", n, 1)], index)
    ref, sec = (slider.value for slider in sliders)
    magnitude = show == "coh_abs"
    place = places.get((min(ref, sec), max(ref, sec)))

    def combine(coherence: NDArray[Any]) -> NDArray[Any]:
        known = np.isfinite(coherence)
        if ref == sec:
            return np.where(known, float(magnitude), np.nan)  # an image with itself, wherever there are data
        if place is None:
            return np.full(coherence.shape, np.nan)
        if magnitude:
            return _magnitude(coherence)
        return _phase(np.conj(coherence) if ref > sec else coherence)

    return Shown(
        label="coherence magnitude" if magnitude else "coherence phase",
        scale="unit" if magnitude else "phase",
        sliders=sliders,
        channels=((place or 0,),),
        combine=combine,
        images=(ref, sec),
        nimages=n,
    )


def _pair_places(n_pairs: int, pairs: Sequence[tuple[int, int]] | None) -> dict[tuple[int, int], int]:
    """Find the place of each pair on the compressed axis."""
    if pairs is None:
        n = (1 + math.isqrt(1 + 8 * n_pairs)) // 2
        if n_pairs == 0 or n * (n - 1) // 2 != n_pairs:
            msg = f"{n_pairs} pairs are not all pairs of any number of images; give the image pairs"
            raise ValueError(msg)
        pairs = [(ref, sec) for ref in range(n) for sec in range(ref + 1, n)]
    if len(pairs) != n_pairs:
        msg = f"the stack has {n_pairs} pairs, the list of image pairs {len(pairs)}"
        raise ValueError(msg)
    return {(int(ref), int(sec)): place for place, (ref, sec) in enumerate(pairs)}


def _sliders(wanted: Sequence[tuple[str, int, int]], index: Sequence[int]) -> tuple[Slider, ...]:
    if len(index) > len(wanted):
        names = ", ".join(name for name, _, _ in wanted) or "none"
        msg = f"{len(index)} index values given; this picture takes {len(wanted)} ({names})"
        raise ValueError(msg)
    values = [*index, *(default for _, _, default in wanted[len(index) :])]
    for (name, n, _), value in zip(wanted, values, strict=True):
        if not 0 <= value < n:
            msg = f"index {name} = {value} is out of range; expected 0 to {n - 1}"
            raise ValueError(msg)
    return tuple(Slider(name, n, int(value)) for (name, n, _), value in zip(wanted, values, strict=True))


def _as_is(values: NDArray[Any]) -> NDArray[Any]:
    return values


def _interferometric_phase(ref: NDArray[Any], sec: NDArray[Any]) -> NDArray[Any]:
    return _phase(ref * np.conj(sec))


def _difference(ref: NDArray[Any], sec: NDArray[Any]) -> NDArray[Any]:
    difference: NDArray[Any] = ref.astype(np.float64) - sec  # unsigned integers would wrap
    return difference


def _phase(values: NDArray[Any]) -> NDArray[Any]:
    phase: NDArray[Any] = np.angle(values)
    return phase


def _magnitude(values: NDArray[Any]) -> NDArray[Any]:
    magnitude: NDArray[Any] = np.abs(values)
    return magnitude
