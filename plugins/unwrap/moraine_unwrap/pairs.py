"""What the plans of commands share that unwrap pair by pair: sizes, images of a pair, and the account of all pairs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from moraine_core import ALL, Array, Chunk, Layout
from moraine_raster.networks import PAIR_SIGN, pairs_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    Pair = tuple[int, int]

log = logging.getLogger("moraine")

CLOUD_BYTES = 180
"""Bytes of a point in the network that all pairs share."""

PAIR_BYTES = 360
"""Bytes of a point while a pair is unwrapped, besides its phases."""


def images_of(ph: Array, pair: Pair) -> list[Chunk]:
    """Return the two images of a pair, all points."""
    return [Chunk(ph, (ALL, slice(image, image + 1))) for image in pair]


def column_of(layout: Layout, number: int) -> Chunk:
    """Return one pair of an array of pairs, all points."""
    return Chunk(layout, (ALL, slice(number, number + 1)))


def unwrapped_layouts(
    unw_ph: str, island: str | None, n_points: int, pairs: Sequence[Pair], block: int
) -> list[Layout]:
    """Return the outputs: unwrapped phases, and islands if they have a path; chunks of `block` points of one pair."""
    paths = {unw_ph: "float32"} if island is None else {unw_ph: "float32", island: "int32"}
    of = pairs_note(pairs)
    notes = {unw_ph: {"sign": PAIR_SIGN, **of}}
    return [
        Layout(path, (n_points, len(pairs)), dtype, (block, 1), attributes=notes.get(path, of))
        for path, dtype in paths.items()
    ]


def noted(
    name: str,
    pairs: Sequence[Pair],
    facts: Sequence[Sequence[int]],
    n_points: int,
    *,
    with_island: bool,
) -> dict[str, list[int]]:
    """Return what the attributes say of each pair, and warn of pairs whose points cannot all be related.

    Parameters
    ----------
    name
        Name of the command.
    pairs
        The pairs.
    facts
        Cost, number of islands and number of valid points of each pair; nothing for a cloud without points.
    n_points
        Number of points.
    with_island
        Whether islands are written.
    """
    empty = [pair for pair, (_, _, n_valid) in zip(pairs, facts, strict=False) if n_valid == 0]
    apart = [pair for pair, (_, n_islands, _) in zip(pairs, facts, strict=False) if n_islands > 1]
    if empty and n_points:
        log.warning("%s: no point is valid in %s: nan", name, _words(empty))
    if apart:
        hint = "island tells which belong together" if with_island else "--island tells which belong together"
        log.warning(
            "%s: missing points part %s into islands, whose cycles are not related; %s", name, _words(apart), hint
        )
    keys = ("costs", "n_islands", "n_valid")
    return {key: [int(fact[k]) for fact in facts] for k, key in enumerate(keys)}


def _words(pairs: Sequence[Pair], most: int = 5) -> str:
    """Return some pairs as text."""
    named = ", ".join(f"{ref} {sec}" for ref, sec in pairs[:most])
    more = f" and {len(pairs) - most} more" if len(pairs) > most else ""
    return f"pair{'s' if len(pairs) > 1 else ''} {named}{more}"
