"""Compressors of zarr arrays: their names on the command line, and the codecs they stand for."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

from moraine_core.plan import itemsize

Compressor: TypeAlias = Literal[
    "none", "lz4", "lz4-shuffle", "lz4-bitshuffle", "zstd", "zstd-shuffle", "zstd-bitshuffle"
]

COMPRESSORS: tuple[Compressor, ...] = get_args(Compressor)

DEFAULT: Compressor = "lz4-bitshuffle"
"""As small as zstd on what moraine writes, in little more than half the time (docs/decisions/0024)."""


def codecs_of(name: Compressor, dtype: str) -> list[dict[str, Any]]:
    """Return the codecs that a compressor's name means, as zarr's metadata spells them.

    Parameters
    ----------
    name
        One of `COMPRESSORS`. The shuffled ones sort bytes or bits of the elements first, which pays where neighbors
        are alike.
    dtype
        Dtype of the array.
    """
    if name == "none":
        return []
    method, _, shuffle = name.partition("-")
    if method == "zstd" and not shuffle:
        return [{"name": "zstd", "configuration": {"level": 1, "checksum": False}}]
    blosc = {
        "cname": method,
        "clevel": 1 if method == "zstd" else 5,
        "shuffle": shuffle or "noshuffle",
        "typesize": itemsize(dtype) // (2 if dtype.startswith("complex") else 1),  # a complex number is two floats
        "blocksize": 0,
    }
    return [{"name": "blosc", "configuration": blosc}]
