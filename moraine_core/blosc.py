"""Reading Blosc chunks that may have been cut short, as by a copy that broke off.

The library takes the size of a chunk from the chunk itself and reads on behind its end: what comes is noise, or the
process is gone. Here the sizes are compared first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numcodecs
from zarr.codecs import BloscCodec, ShardingCodec
from zarr.codecs._v2 import V2Codec
from zarr.core.codec_pipeline import BatchedCodecPipeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import zarr
    from zarr.abc.codec import Codec

HEADER = 16
"""Bytes of a header; the last four of them are the size of the chunk (format of Blosc 1)."""


def guarded(array: zarr.AsyncArray[Any]) -> zarr.AsyncArray[Any]:
    """Return an array as it is, but that reading a Blosc chunk that was cut short raises a `ValueError`.

    Pipelines other than zarr's own, such as that of zarrs, see to it themselves.
    """
    if isinstance(array.codec_pipeline, BatchedCodecPipeline):
        codecs = list(_guarded(array.codec_pipeline))
        object.__setattr__(array, "codec_pipeline", BatchedCodecPipeline.from_codecs(codecs))
    return array


def _guarded(codecs: Iterable[Codec]) -> Iterator[Codec]:
    for codec in codecs:
        if isinstance(codec, BloscCodec):
            yield _Blosc.from_dict(codec.to_dict())
        elif isinstance(codec, ShardingCodec):
            yield replace(codec, codecs=tuple(_guarded(codec.codecs)))
        elif isinstance(codec, V2Codec) and isinstance(codec.compressor, numcodecs.Blosc):
            settings = {name: value for name, value in codec.compressor.get_config().items() if name != "id"}
            yield replace(codec, compressor=_BloscV2.from_config(settings))
        else:
            yield codec


def _check(packed: Any) -> None:
    data = memoryview(packed).cast("B")
    size = int.from_bytes(data[HEADER - 4 : HEADER], "little") if len(data) >= HEADER else HEADER
    if len(data) < size:
        msg = f"a chunk was cut short: {len(data)} of {size} bytes are there"
        raise ValueError(msg)


class _Blosc(BloscCodec):
    """Of format 3."""

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        _check(chunk_bytes.as_numpy_array())
        return await super()._decode_single(chunk_bytes, chunk_spec)


class _BloscV2(numcodecs.Blosc):  # type: ignore[misc] # numcodecs says nothing of types
    """Of format 2."""

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Return the values of a chunk."""
        _check(buf)
        return super().decode(buf, out)
