"""Networks of image pairs: which interferograms of a stack there are, and what they connect.

Importing this loads no numpy, so that commands can check a network while they declare.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from moraine_core import Array as DeclaredArray


@dataclass(frozen=True)
class TempNet:
    """A network of image pairs (reference, secondary), in the order of the interferograms.

    Attributes
    ----------
    pairs
        Numbers of images from 0, by pair. A pair may have the later image first, and pairs may be in any order; none
        is there twice, in whichever direction.
    nimages
        Number of images of the stack, at least one more than the largest number in `pairs`.

    Raises
    ------
    ValueError
        A pair is made of one image, names an image that is not there, or is there twice.
    """

    pairs: tuple[tuple[int, int], ...]
    nimages: int

    def __post_init__(self) -> None:
        rows: dict[tuple[int, int], int] = {}
        for row, (ref, sec) in enumerate(self.pairs):
            if ref == sec:
                raise ValueError(f"pair {row} is ({ref}, {sec}); expected two different images")
            if min(ref, sec) < 0 or max(ref, sec) >= self.nimages:
                raise ValueError(f"pair {row} is ({ref}, {sec}); expected images 0 to {self.nimages - 1}")
            before = rows.setdefault((min(ref, sec), max(ref, sec)), row)
            if before != row:
                raise ValueError(f"pair {row} is ({ref}, {sec}), the images of pair {before}; expected each pair once")

    @classmethod
    def of(cls, pairs: Iterable[Sequence[int]] | NDArray[Any], nimages: int | None = None) -> TempNet:
        """Return the network of given pairs.

        Parameters
        ----------
        pairs
            Image pairs, ``(n_pairs, 2)``: any rows of two whole numbers, an integer array among them.
        nimages
            Number of images; one more than the largest in `pairs` by default.
        """
        plain = []
        for row in pairs:
            ref, sec = row
            plain.append((int(ref), int(sec)))
        return cls(tuple(plain), 1 + max(map(max, plain), default=-1) if nimages is None else nimages)

    @classmethod
    def chosen(cls, pairs: Iterable[Sequence[int]] | NDArray[Any] | None, nimages: int) -> TempNet:
        """Return the network of given pairs, or of all pairs of the images for None."""
        return cls.from_bandwidth(nimages) if pairs is None else cls.of(pairs, nimages)

    @classmethod
    def from_bandwidth(cls, nimages: int, bandwidth: int | None = None) -> TempNet:
        """Return all pairs of images that lie close to each other in the order of dates.

        They are ``bandwidth nimages - bandwidth (bandwidth + 1) / 2``, sorted, the earlier image first.

        Parameters
        ----------
        nimages
            Number of images.
        bandwidth
            Largest distance of the two images of a pair; None for all pairs.

        Raises
        ------
        ValueError
            `bandwidth` is below 1 or above `nimages`.
        """
        reach = nimages if bandwidth is None else bandwidth
        if nimages < 0 or (bandwidth is not None and not 1 <= bandwidth <= nimages):
            raise ValueError(f"bandwidth is {bandwidth} for {nimages} images; expected 1 to the number of images")
        near = ((ref, sec) for ref in range(nimages) for sec in range(ref + 1, min(ref + reach + 1, nimages)))
        return cls(tuple(near), nimages)

    @classmethod
    def load(cls, path: str | Path, nimages: int | None = None) -> TempNet:
        """Read a text file with two columns of image numbers and notes behind ``#``; see `save`."""
        lines = (line.partition("#")[0].split() for line in Path(path).read_text(encoding="utf-8").splitlines())
        rows = [words for words in lines if words]
        try:
            return cls.of([[int(word) for word in words] for words in rows], nimages)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def save(self, path: str | Path) -> None:
        """Write the pairs as text: a header, then a reference and a secondary image number per line."""
        text = "".join(f"{ref} {sec}\n" for ref, sec in self.pairs)
        Path(path).write_text("# reference secondary\n" + text, encoding="utf-8")

    @property
    def image_pairs(self) -> NDArray[np.int32]:
        """The pairs as an array, ``(n_pairs, 2)`` int32, unitless."""
        import numpy as np

        return np.array(self.pairs, dtype=np.int32).reshape(-1, 2)

    @property
    def is_sorted(self) -> bool:
        """Whether every pair has the earlier image first and the pairs ascend by reference, then secondary."""
        return list(self.pairs) == sorted((min(pair), max(pair)) for pair in self.pairs)

    def in_order(self) -> TempNet:
        """Return this network, for what needs it sorted.

        Raises
        ------
        ValueError
            A pair has the later image first, or comes before one that it should follow.
        """
        before = (-1, -1)
        for row, pair in enumerate(self.pairs):
            if pair[0] > pair[1] or pair < before:
                raise ValueError(
                    f"pair {row} is {pair}, after {before}; expected the earlier image first, and pairs that ascend"
                    if row
                    else f"pair 0 is {pair}; expected the earlier image first"
                )
            before = pair
        return self

    @property
    def is_complete(self) -> bool:
        """Whether these are all pairs of the images, in the order of a packed coherence matrix."""
        return len(self.pairs) == self.nimages * (self.nimages - 1) // 2 and self.is_sorted

    @property
    def is_connected(self) -> bool:
        """Whether the pairs lead from every image to every other."""
        return max(self.components(), default=0) == 0

    def components(self) -> list[int]:
        """Return the connected component of each image, numbered from 0 by their first images."""
        parent = list(range(self.nimages))

        def root(image: int) -> int:
            while parent[image] != image:
                parent[image] = parent[parent[image]]
                image = parent[image]
            return image

        for ref, sec in self.pairs:
            first, second = sorted((root(ref), root(sec)))
            parent[second] = first
        numbers: dict[int, int] = {}
        return [numbers.setdefault(root(image), len(numbers)) for image in range(self.nimages)]

    def index_of(self, pairs: Iterable[Sequence[int]] | NDArray[Any]) -> NDArray[np.int32]:
        """Return where pairs are in this network.

        Parameters
        ----------
        pairs
            Image pairs, ``(n, 2)``, in the direction of this network's.

        Returns
        -------
        ndarray
            Row of each in `pairs` of the network, ``(n,)`` int32, unitless; -1 for a pair that is not there.
        """
        import numpy as np

        rows = {pair: row for row, pair in enumerate(self.pairs)}
        return np.array([rows.get((int(ref), int(sec)), -1) for ref, sec in pairs], dtype=np.int32)


PAIR_SIGN = "phase of reference · conj(secondary): more is away from the satellite, if the reference is earlier"
"""What the sign of the phase of a pair means (docs/data-conventions.md)."""


def pairs_note(pairs: Iterable[Sequence[int]]) -> dict[str, list[list[int]]]:
    """Return the attribute of a stack that says of which images its pairs are."""
    return {"image_pairs": [[int(ref), int(sec)] for ref, sec in pairs]}


def network_of(
    name: str,
    image_pairs: Sequence[Sequence[int]] | None,
    parameter: str,
    stack: DeclaredArray,
    *,
    may_be_empty: bool = False,
) -> TempNet:
    """Return the network of a command's pairs of the images of a stack.

    Parameters
    ----------
    name
        Name of the command.
    image_pairs
        Its pairs; None for all.
    parameter, stack
        Name of the parameter that holds the images, and the array, images last.
    may_be_empty
        Whether there may be no pair.

    Raises
    ------
    UsageError
        A pair is of a single image, of one that is not there, or occurs twice; or there is no pair.
    """
    try:
        network = TempNet.chosen(image_pairs, stack.shape[-1])
    except ValueError as error:
        raise UsageError(f"{name}: image_pairs: {error} of {parameter} {stack.path}") from None
    if network.pairs or may_be_empty:
        return network
    if image_pairs is None:
        found = f"{parameter} {stack.path} has {stack.shape[-1]} images; expected at least 2, to make pairs"
        raise UsageError(f"{name}: {found}")
    raise UsageError(f"{name}: image_pairs is empty; expected at least one pair")


def nimages_of(n_pairs: int) -> int:
    """Return of how many images all pairs are `n_pairs`: N with N (N - 1) / 2; 1 for no pairs.

    Raises
    ------
    ValueError
        No number of images has so many pairs.
    """
    nimages = (1 + isqrt(1 + 8 * max(n_pairs, 0))) // 2
    if nimages * (nimages - 1) // 2 != n_pairs:
        raise ValueError(f"{n_pairs} pairs are not all pairs of any number of images, which are N (N - 1) / 2")
    return nimages
