"""Pyramid of a point cloud: the points, rasters of them for pictures, and exact statistics."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence  # noqa: TC003 - annotations are read at run time
from typing import Annotated, Any, Literal

from moraine_core import ALL, Array, Chunk, ChunkTask, Input, Layout, Output, Plan, UsageError, command
from moraine_view.levels import Stage, channels, level_shapes, mean_dtype, stages
from moraine_view.plans import (
    band_parts,
    coarser_plans,
    drawn_bytes,
    finished,
    kept_sums,
    level_layouts,
    mean_bytes,
    means_plans,
    piece_bytes,
    stage_outputs,
    warn_of_chunks,
)
from moraine_view.statistics import lines_layout, statistics_plans

REAL = ("integer", "float")

COORDINATE_UNIT = "that of ras_resolution"

PAGE_SIZE = 512
"""Points per leaf of the R-tree."""

MOST_CELLS = 1 << 31
"""Largest grid: its index takes 16 GiB."""

BAND_CELLS = 1 << 24
"""Cells of level 0 that a task draws."""

LINE = 1 << 16
"""Points that are measured together; the statistics do not depend on how the points are stored."""


@command("pc-pyramid", family="view", example="moraine_view.examples:pc_pyramid")
def pc_pyramid(
    pc: Annotated[Array, Input("point data", shape="(n_points, ...)", dtype=("bool", *REAL, "complex"))],
    out_dir: Annotated[str, Output("pyramid: the points, 0.zarr, 1.zarr, ... and stats.zarr", kind="directory")],
    x: Annotated[
        Array | None,
        Input("x of the points, such as web mercator easting", shape="(n_points)", dtype=REAL, unit=COORDINATE_UNIT),
    ] = None,
    y: Annotated[
        Array | None,
        Input("y of the points, such as web mercator northing", shape="(n_points)", dtype=REAL, unit=COORDINATE_UNIT),
    ] = None,
    yx: Annotated[
        Array | None,
        Input(
            "both in one array, such as a gix, instead of x and y",
            shape="(n_points, 2)",
            dtype=REAL,
            unit=COORDINATE_UNIT,
        ),
    ] = None,
    ras_resolution: Annotated[float, "cell size of level 0 (unit of the coordinates)"] = 20,
    ras_chunks: Annotated[tuple[int, int], "rows and columns of a tile; -1 is the whole axis (cells)"] = (256, 256),
    pc_chunks: Annotated[int, "points of a stored block; -1 is all (points)"] = 65536,
    method: Annotated[Literal["first", "mean"], "show the first point of a coarser cell, or average"] = "first",
) -> Generator[Plan, list[Any], None]:
    """Build the pyramid of a point cloud: the points, rasters of them for pictures, and exact statistics.

    A point falls in the cell with the nearest center; the grid begins at the least x and y, and its rows grow with y.
    Of two points in a cell the later one is shown. A cell of the next level shows the first point of its four finer
    cells in row-major order, or with method mean the average of all finite level-0 cells under it. Empty cells are nan.

    Statistics are of all points: fraction of nan, min, max, mean and population standard deviation of the finite
    values, and percentiles of a regular sample of them; of the amplitude where values are complex. Coordinates that are
    not finite are an error.

    Examples
    --------
    moraine pc-pyramid --pc t_coh.zarr --x e.zarr --y n.zarr --out-dir t_coh_pyramid
    """
    coordinates = _coordinates(x, y, yx)
    if 0 in pc.shape:
        raise UsageError(f"pc-pyramid: pc {pc.path} has shape {pc.shape}; expected at least one point and image")
    if not (ras_resolution > 0 and math.isfinite(ras_resolution)):
        raise UsageError(f"pc-pyramid: ras_resolution is {ras_resolution}; expected a positive number")
    if any(size == 0 or size < -1 for size in (*ras_chunks, pc_chunks)):
        raise UsageError(
            f"pc-pyramid: ras_chunks are {ras_chunks}, pc_chunks {pc_chunks}; expected positive sizes, or -1 for all"
        )
    n_points, *stack = pc.shape
    images = channels(stack)

    places = _place_layouts(out_dir, coordinates, n_points, pc_chunks)
    (found,) = yield Plan(
        places,
        [
            ChunkTask(
                "moraine_view.tasks:copy_coordinates",
                inputs=[Chunk(array) for array in coordinates],
                outputs=[Chunk(place) for place in places],
                kwargs={"resolution": ras_resolution, "page_size": PAGE_SIZE},
                scratch_bytes=64 * n_points,
            )
        ],
        desc="coordinates",
    )
    if found["n_bad"]:
        where = " and ".join(array.path for array in coordinates)
        raise UsageError(
            f"pc-pyramid: {where}: {found['n_bad']} of {n_points} points have coordinates that are nan or infinite; "
            "expected none, leave these points out first"
        )
    x0, y0, res, nrows, ncols = grid = found["grid"]
    _check_size(nrows, ncols, res)
    shapes = level_shapes(nrows, ncols)
    cuts = stages(shapes, ras_chunks[0], max(BAND_CELLS // ncols, 1))

    index = level_layouts(out_dir + "/idx_{}.zarr", shapes, (), ["int64"] * len(shapes), ras_chunks)
    yield _index_plan(places, index, cuts[0], grid)
    yield from coarser_plans("moraine_view.tasks:next_index", index, cuts[1:])

    points = Layout(f"{out_dir}/pc.zarr", pc.shape, pc.dtype, (pc_chunks, *(1,) * len(stack)))
    n_lines = -(-n_points // LINE)
    lines = lines_layout(n_lines, stack, n_lines)
    counts = yield Plan(
        [points, lines],
        [
            ChunkTask(
                "moraine_view.tasks:copy_points",
                inputs=[Chunk(pc, (ALL, *image))],
                outputs=[Chunk(points, (ALL, *image)), Chunk(lines, (ALL, *image, ALL))],
                kwargs={"line": LINE},
                scratch_bytes=60 * LINE,
            )
            for image in images
        ],
        desc="points",
    )
    warn_of_chunks("pc", pc, 1)

    dtypes = [mean_dtype(pc.dtype)] * len(shapes)
    layouts = level_layouts(out_dir + "/{}.zarr", shapes, stack, dtypes, ras_chunks, pc.attributes)
    if method == "mean":
        yield _mean_plan(points, index, layouts, cuts[0])
        yield from means_plans(layouts, cuts[1:], pc.dtype)
    else:
        yield _shown_plan(points, index, layouts, cuts)
    whole = [slice(0, n_points)]
    stats = yield from statistics_plans(points, 1, whole, lines, counts, f"{out_dir}/stats.zarr")
    bounds = [x0, y0, x0 + (ncols - 1) * res, y0 + (nrows - 1) * res]
    yield finished(
        out_dir, "point cloud", method, stats, {f"{out_dir}/bounds.toml": f"bounds = {bounds}\nresolution = {res}\n"}
    )


def _coordinates(x: Array | None, y: Array | None, yx: Array | None) -> list[Array]:
    """Return the one form of the coordinates that is given."""
    if yx is not None and x is None and y is None:
        return [yx]
    if yx is None and x is not None and y is not None:
        return [x, y]
    given = " and ".join(name for name, array in (("x", x), ("y", y), ("yx", yx)) if array is not None)
    raise UsageError(f"pc-pyramid: expected coordinates either as x and y, or as yx; found {given or 'none of them'}")


def _place_layouts(out_dir: str, coordinates: Sequence[Array], n_points: int, block: int) -> list[Layout]:
    """Lay out x and y, each with the dtype it came with, and the R-tree."""
    x_dtype, y_dtype = coordinates[0].dtype, coordinates[-1].dtype
    leaves = 1 << (-(-n_points // PAGE_SIZE) - 1).bit_length()
    return [
        Layout(f"{out_dir}/x.zarr", (n_points,), x_dtype, (block,)),
        Layout(f"{out_dir}/y.zarr", (n_points,), y_dtype, (block,)),
        Layout(
            f"{out_dir}/rtree.zarr",
            (2 * leaves - 1, 4),
            "float64",
            (-1, -1),
            attributes={"page_size": PAGE_SIZE, "n_points": n_points},
        ),
    ]


def _check_size(nrows: int, ncols: int, resolution: float) -> None:
    factor = 1
    while (nrows // factor + 1) * (ncols // factor + 1) > MOST_CELLS:
        factor *= 2
    if nrows * ncols > MOST_CELLS:
        raise UsageError(
            f"pc-pyramid: ras_resolution {resolution:g} makes a grid of {nrows} x {ncols} cells; expected at most "
            f"{MOST_CELLS}, take a ras_resolution of {resolution * factor:g} or more"
        )


def _index_plan(places: Sequence[Layout], index: Sequence[Layout], stage: Stage, grid: list[Any]) -> Plan:
    """Return the plan that says which point each cell shows, in the first stage of levels."""
    x, y, _ = places
    return Plan(
        [index[level] for level in stage.levels],
        [
            ChunkTask(
                "moraine_view.tasks:first_index",
                inputs=[Chunk(x), Chunk(y)],
                outputs=band_parts(index, stage.levels, stage, band),
                kwargs={"grid": grid, "start": band.start, "stop": band.stop, "n": stage.depth},
                scratch_bytes=72 * x.shape[0] + 16 * (band.stop - band.start) * index[0].shape[1],
            )
            for band in stage.bands
        ],
        desc="index",
    )


def _shown_plan(points: Layout, index: Sequence[Layout], layouts: Sequence[Layout], cuts: Sequence[Stage]) -> Plan:
    """Return the plan of all levels of a ``first`` pyramid: the index knows every point shown."""
    tasks = []
    for image in channels(points.shape[1:]):
        for stage in cuts:
            for band in stage.bands:
                shown = band_parts(index, stage.levels, stage, band)
                tasks.append(
                    ChunkTask(
                        "moraine_view.tasks:shown_points",
                        inputs=[Chunk(points, (ALL, *image)), *shown],
                        outputs=band_parts(layouts, stage.levels, stage, band, image),
                        scratch_bytes=drawn_bytes(max(chunk.nbytes for chunk in shown) // 8, points.dtype),
                    )
                )
    return Plan(layouts, tasks)


def _mean_plan(points: Layout, index: Sequence[Layout], layouts: Sequence[Layout], stage: Stage) -> Plan:
    """Return the plan of the first stage of a pyramid of means."""
    tasks = []
    for image in channels(points.shape[1:]):
        for band in stage.bands:
            (shown,) = band_parts(index, [0], stage, band)
            sums = kept_sums(layouts, stage, band, image)
            cells = shown.nbytes // 8
            tasks.append(
                ChunkTask(
                    "moraine_view.tasks:mean_points",
                    inputs=[Chunk(points, (ALL, *image)), shown],
                    outputs=[*band_parts(layouts, stage.levels, stage, band, image), *sums],
                    kwargs={"n": stage.depth, "keep_sums": bool(sums)},
                    scratch_bytes=drawn_bytes(cells, points.dtype)
                    + piece_bytes(layouts[0].shape[1])
                    + mean_bytes(cells, stage.depth),
                )
            )
    return Plan(stage_outputs(layouts, stage, keep_sums=True), tasks)
