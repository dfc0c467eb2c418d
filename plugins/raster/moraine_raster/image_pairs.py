"""Lists of image pairs: which interferograms a stack is made into."""

from __future__ import annotations

from typing import Annotated

from moraine_core import Array, Input, Output, UsageError, command
from moraine_raster.networks import TempNet


@command("image-pairs", family="raster", chunked=False, example="moraine_raster.examples:image_pairs")
def image_pairs(
    out: Annotated[str, Output("text file with a reference and a secondary image number per line", kind="file")],
    rslc: Annotated[
        Array | None,
        Input("stack whose images are paired", shape=("(nlines, width, nimages)", "(n_points, nimages)")),
    ] = None,
    nimages: Annotated[int | None, "number of images, instead of rslc (images)"] = None,
    bandwidth: Annotated[int | None, "largest distance of the two images of a pair; all by default (images)"] = None,
) -> None:
    """Write the pairs of images of a stack that lie close to each other in the order of dates.

    Images are numbered from 0 in the order of the stack. Every pair has the earlier image as its reference, and pairs
    are sorted by reference and secondary. A bandwidth of nimages - 1 or more gives all nimages (nimages - 1) / 2 pairs.

    Examples
    --------
    moraine image-pairs --out pairs.txt --rslc rslc.zarr --bandwidth 3
    """
    if (rslc is None) == (nimages is None):
        given = "neither" if rslc is None else "both"
        raise UsageError(f"image-pairs: {given} of rslc and nimages given; expected one of them")
    if bandwidth is not None and bandwidth < 1:
        raise UsageError(f"image-pairs: bandwidth is {bandwidth}; expected at least 1 (images)")
    source = f"nimages is {nimages}" if rslc is None else f"rslc {rslc.path} has {rslc.shape[-1]} images"
    count = nimages if rslc is None else rslc.shape[-1]
    if count is None or count < 2:
        raise UsageError(f"image-pairs: {source}; expected at least 2, to make a pair")
    TempNet.from_bandwidth(count, min(bandwidth or count, count)).save(out)
