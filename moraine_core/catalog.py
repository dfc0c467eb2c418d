"""Our commands: which distribution brings each, its family and its summary.

So that a command that is not installed can be named, and the help can list commands without importing them. This is
data, not a dependency: nothing here is imported or required. It is generated from the packages, and a test compares it
with them.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """What is known of a command without importing it."""

    distribution: str
    family: str
    summary: str


COMMANDS: dict[str, Entry] = {
    "amp-disp": Entry(
        "moraine-ps",
        "ps",
        "Compute the amplitude dispersion index, standard deviation over mean of a pixel's amplitude.",
    ),
    "bool2gix": Entry("moraine-points", "points", "List the pixels where a mask is true."),
    "ds-temp-coh": Entry(
        "moraine-ds",
        "ds",
        "Measure how well phase histories fit the coherence that they were linked from.",
    ),
    "emcf-pc": Entry(
        "moraine-unwrap",
        "unwrap",
        "Unwrap the interferograms of a point cloud together, in time and in space.",
    ),
    "emi": Entry(
        "moraine-ds",
        "ds",
        "Link the phases of distributed scatterers: one phase per image out of the coherence of all pairs.",
    ),
    "empirical-co-emi-temp-coh-pc": Entry(
        "moraine-ds",
        "ds",
        "Link the phases of distributed scatterers from their samples, and measure how well they fit.",
    ),
    "empirical-co-pc": Entry(
        "moraine-ds",
        "ds",
        "Estimate the coherence matrix of each point over its statistically homogeneous pixels.",
    ),
    "gamma-mcf-pt": Entry(
        "moraine-unwrap",
        "unwrap",
        "Unwrap the interferograms of a point cloud by GAMMA's program mcf_pt.",
    ),
    "gix2bool": Entry("moraine-points", "points", "Mark the pixels of a raster that are points."),
    "image-pairs": Entry(
        "moraine-raster",
        "raster",
        "Write the pairs of images of a stack that lie close to each other in the order of dates.",
    ),
    "load-gamma-flatten-rslc": Entry(
        "moraine-load",
        "load",
        "Load co-registered SLCs of GAMMA and remove the phase of flat Earth and topography.",
    ),
    "load-gamma-lat-lon-hgt": Entry(
        "moraine-load",
        "load",
        "Load latitude, longitude and height of the pixels of a radar image.",
    ),
    "load-gamma-look-vector": Entry(
        "moraine-load",
        "load",
        "Load the look vectors of a radar image: from GAMMA's, in map geometry, or from heights and the orbit.",
    ),
    "load-gamma-metadata": Entry("moraine-load", "load", "Write the metadata of a stack of GAMMA as TOML."),
    "load-gamma-range": Entry("moraine-load", "load", "Load the slant range of each pixel of a radar image."),
    "math": Entry("moraine-raster", "raster", "Evaluate an expression on arrays, element by element."),
    "mcf-pc": Entry("moraine-unwrap", "unwrap", "Unwrap the interferograms of a point cloud, each by itself."),
    "n2f": Entry(
        "moraine-filter",
        "filter",
        "Remove noise from interferograms, with a network that has learned what phase looks like.",
    ),
    "n2ft": Entry(
        "moraine-filter",
        "filter",
        "Remove noise from interferograms on irregular points, with a network that has learned it.",
    ),
    "pc-concat": Entry("moraine-points", "points", "Put the parts of a cloud one after another, and in order."),
    "pc-diff": Entry("moraine-points", "points", "Take the points of one cloud that are not in another."),
    "pc-gix": Entry(
        "moraine-points",
        "points",
        "Compute the grid index of points from their Hilbert index: the inverse of pc-hix.",
    ),
    "pc-hix": Entry("moraine-points", "points", "Compute the Hilbert index of points from their grid index."),
    "pc-intersect": Entry("moraine-points", "points", "Find the points that two clouds share."),
    "pc-logic-pc": Entry(
        "moraine-points",
        "points",
        "Choose the points of a cloud at which a condition on their data holds.",
    ),
    "pc-logic-ras": Entry("moraine-points", "points", "Choose the pixels of a raster where a condition holds."),
    "pc-pyramid": Entry(
        "moraine-view",
        "view",
        "Build the pyramid of a point cloud: the points, rasters of them for pictures, and exact statistics.",
    ),
    "pc-select-data": Entry("moraine-points", "points", "Take the data of some points of a cloud."),
    "pc-sort": Entry("moraine-points", "points", "Sort a point cloud by its index, and its data with it."),
    "pc-union": Entry("moraine-points", "points", "Join two point clouds into one that has the points of both."),
    "pc2ras": Entry("moraine-points", "points", "Put values of points into rasters."),
    "polygon-mask": Entry(
        "moraine-raster",
        "raster",
        "Mark the data that lie inside polygons, or outside of all of them.",
    ),
    "ras-pyramid": Entry(
        "moraine-view",
        "view",
        "Build the pyramid of a raster: coarser and coarser versions for pictures, and exact statistics.",
    ),
    "ras2pc": Entry("moraine-points", "points", "Take the values of rasters at points."),
    "ras2pc-ras-chunk": Entry(
        "moraine-points",
        "points",
        "Take the values of rasters at points, and store them by raster chunk.",
    ),
    "select-shp": Entry("moraine-ds", "ds", "Choose the homogeneous pixels of each window by p values."),
    "shp-test": Entry("moraine-ds", "ds", "Find the statistically homogeneous pixels (SHP) of each pixel's window."),
    "simulate": Entry(
        "moraine-load",
        "load",
        "Simulate a stack of coregistered, unflattened SLCs in GAMMA format, with everything known about it.",
    ),
    "temp-coh": Entry(
        "moraine-ps",
        "ps",
        "Measure how well a stack fits its filtered interferograms, which is how little noise a pixel has.",
    ),
    "transform": Entry(
        "moraine-raster",
        "raster",
        "Transform coordinates, by default longitude and latitude to web mercator.",
    ),
    "unwrap-correct-closure-pc": Entry(
        "moraine-unwrap",
        "unwrap",
        "Correct unwrapped pairs so that all their loops close, and write the time series of the phase.",
    ),
}
