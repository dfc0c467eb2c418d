"""What tasks share and do around the array functions of the correction by closure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moraine_unwrap.closure import kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from moraine_unwrap.pair_fit.kernels import PairGraph


def label_regions(gix: NDArray[np.integer[Any]], *, graph: PairGraph, **options: Any) -> tuple[kernels.Int32, int]:
    """Return what `moraine_unwrap.closure.kernels.region_labels` does, and the number of regions."""
    region = kernels.region_labels(gix, **options)
    return region, int(region.max(initial=-1)) + 1


def correct_loops(*arrays: Any, with_fraction: bool, **options: Any) -> Sequence[NDArray[Any]]:
    """Return what `moraine_unwrap.closure.kernels.loop_offsets` does, maybe without the share of pairs to correct."""
    return kernels.loop_offsets(*arrays, **options)[: 3 if with_fraction else 2]


def median_offsets(offsets: kernels.Int16, *, regions: tuple[kernels.Int32, NDArray[np.int64]]) -> kernels.Int16:
    """Return the medians of regions, which are given as by `moraine_unwrap.closure.kernels.by_region`."""
    return kernels.region_offsets(offsets, *regions)


def as_stored(values: kernels.Int16) -> kernels.Int16:
    """Return an array as it was read, for tasks to share."""
    return values


def correct_regions(*arrays: Any, results: Sequence[str], **options: Any) -> Sequence[NDArray[Any]]:
    """Return some results of `moraine_unwrap.closure.kernels.region_series`, by their names."""
    corrected = kernels.region_series(*arrays, with_correction="correction" in results, **options)
    return [getattr(corrected, name) for name in results]
