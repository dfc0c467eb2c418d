"""Pyramid of a point cloud: the points, rasters of them for pictures, and exact statistics."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence  # noqa: TC003 - annotations are read at run time
from math import lcm
from typing import Annotated, Any, Literal

from moraine_core import ALL, Array, Chunk, ChunkTask, Input, Layout, Output, Plan, UsageError, command
from moraine_core.plan import SCRATCH, itemsize
from moraine_view.grid import PointGrid, point_grid
from moraine_view.levels import Stage, channels, level_shapes, mean_dtype, stages
from moraine_view.plans import (
    band_parts,
    coarser_plans,
    finished,
    kept_sums,
    level_layouts,
    mean_bytes,
    means_plans,
    stage_outputs,
    warn_of_chunks,
)
from moraine_view.statistics import Notes, statistics_plans

REAL = ("integer", "float")

COORDINATE_UNIT = "that of ras_resolution"

PAGE_SIZE = 512
"""Points per leaf of the R-tree."""

BAND_CELLS = 1 << 22
"""Cells of level 0 that a task draws."""

BLOCK_POINTS = 1 << 19
"""Points that a task works on, about."""


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
    blocks = _blocks(n_points, pc_chunks, max(array.chunks[0] for array in (pc, *coordinates)))

    places = _place_layouts(out_dir, coordinates, n_points, pc_chunks)
    pages = Layout(f"{SCRATCH}pages", (-(-n_points // PAGE_SIZE), 4), "float64", (-(-len(blocks[0]) // PAGE_SIZE), 4))
    found = yield _coordinates_plan(coordinates, places, pages, blocks)
    grid = _grid(found, [array.path for array in coordinates], n_points, ras_resolution)
    tree = _tree_layout(out_dir, n_points)
    yield Plan(
        [tree],
        [ChunkTask("moraine_points.kernels:rtree_of_pages", inputs=[Chunk(pages)], outputs=[Chunk(tree)])],
        desc="tree",
    )
    shapes = level_shapes(grid.nrows, grid.ncols)
    cuts = stages(shapes, ras_chunks[0], max(BAND_CELLS // grid.ncols, 1))
    run = _run(n_points, places[0].chunks[0])

    index = level_layouts(out_dir + "/idx_{}.zarr", shapes, cuts, (), ["int64"] * len(shapes), ras_chunks, {})
    yield _index_plan(tree, places, index, cuts[0], grid, run)
    yield from coarser_plans("moraine_view.tasks:next_index", index, cuts[1:])

    points = Layout(f"{out_dir}/pc.zarr", pc.shape, pc.dtype, (pc_chunks, *(1,) * len(stack)), attributes=pc.meaning)
    notes = Notes(tuple(stack), n_points, PAGE_SIZE, blocks, pc.dtype)
    yield _points_plan(pc, points, notes)
    warn_of_chunks("pc", pc, 1)

    dtypes = [mean_dtype(pc.dtype)] * len(shapes)
    layouts = level_layouts(out_dir + "/{}.zarr", shapes, cuts, stack, dtypes, ras_chunks, pc.meaning)
    if method == "mean":
        yield _mean_plan(points, index, layouts, cuts[0], run)
        yield from means_plans(layouts, cuts[1:], pc.dtype)
    else:
        yield _shown_plan(points, index, layouts, cuts, run)
    stats = yield from statistics_plans(points, 1, notes, f"{out_dir}/stats.zarr")
    text = f"bounds = {list(grid.bounds)}\nresolution = {grid.res}\n"
    yield finished(out_dir, "point cloud", method, stats, {f"{out_dir}/bounds.toml": text})


def _coordinates(x: Array | None, y: Array | None, yx: Array | None) -> list[Array]:
    """Return the one form of the coordinates that is given."""
    if yx is not None and x is None and y is None:
        return [yx]
    if yx is None and x is not None and y is not None:
        return [x, y]
    given = " and ".join(name for name, array in (("x", x), ("y", y), ("yx", yx)) if array is not None)
    raise UsageError(f"pc-pyramid: expected coordinates either as x and y, or as yx; found {given or 'none of them'}")


def _blocks(n_points: int, pc_chunks: int, stored: int) -> list[range]:
    """Cut the points into blocks of whole chunks and whole pages, so large that what is stored is decoded once."""
    unit = lcm(PAGE_SIZE, n_points if pc_chunks == -1 else pc_chunks)
    size = unit * max(1, max(BLOCK_POINTS, stored) // unit)
    return [range(start, min(start + size, n_points)) for start in range(0, n_points, size)]


def _run(n_points: int, chunk: int) -> int:
    """Say how many points are read together where a task looks for those it needs: whole chunks."""
    return min(chunk * max(1, BLOCK_POINTS // chunk), n_points)


def _place_layouts(out_dir: str, coordinates: Sequence[Array], n_points: int, chunk: int) -> list[Layout]:
    """Lay out x and y, each with the dtype it came with."""
    dtypes = coordinates[0].dtype, coordinates[-1].dtype
    return [
        Layout(f"{out_dir}/{name}.zarr", (n_points,), dtype, (chunk,)) for name, dtype in zip("xy", dtypes, strict=True)
    ]


def _tree_layout(out_dir: str, n_points: int) -> Layout:
    leaves = 1 << (-(-n_points // PAGE_SIZE) - 1).bit_length()
    return Layout(
        f"{out_dir}/rtree.zarr",
        (2 * leaves - 1, 4),
        "float64",
        (-1, -1),
        attributes={"page_size": PAGE_SIZE, "n_points": n_points},
    )


def _coordinates_plan(
    coordinates: Sequence[Array], places: Sequence[Layout], pages: Layout, blocks: Sequence[range]
) -> Plan:
    """Return the plan that copies the coordinates, finds the boxes of their pages, and says where they lie."""
    tasks = []
    for block in blocks:
        part = slice(block.start, block.stop)
        boxes = slice(block.start // PAGE_SIZE, -(-block.stop // PAGE_SIZE))
        tasks.append(
            ChunkTask(
                "moraine_view.tasks:copy_coordinates",
                inputs=[Chunk(array, (part, *(ALL,) * (array.ndim - 1))) for array in coordinates],
                outputs=[*(Chunk(place, (part,)) for place in places), Chunk(pages, (boxes, ALL))],
                kwargs={"page_size": PAGE_SIZE},
                scratch_bytes=40 * len(block),
            )
        )
    return Plan([*places, pages], tasks, desc="coordinates")


def _grid(found: Sequence[dict[str, Any]], paths: Sequence[str], n_points: int, resolution: float) -> PointGrid:
    """Lay a grid under points of which the least and largest coordinates of blocks are known."""
    if n_bad := sum(block["n_bad"] for block in found):
        raise UsageError(
            f"pc-pyramid: {' and '.join(paths)}: {n_bad} of {n_points} points have coordinates that are nan or "
            "infinite; expected none, leave these points out first"
        )
    low = [min(block["low"][axis] for block in found) for axis in (0, 1)]
    high = [max(block["high"][axis] for block in found) for axis in (0, 1)]
    return point_grid(low, high, resolution)


def _index_plan(
    tree: Layout, places: Sequence[Layout], index: Sequence[Layout], stage: Stage, grid: PointGrid, run: int
) -> Plan:
    """Return the plan that says which point each cell shows, in the first stage of levels."""
    x, y = (Chunk(place) for place in places)
    pages = {"page_size": PAGE_SIZE, "n_points": places[0].shape[0], "run": run}
    return Plan(
        [index[level] for level in stage.levels],
        [
            ChunkTask(
                "moraine_view.tasks:first_index",
                inputs=[Chunk(tree)],
                outputs=band_parts(index, stage.levels, stage, band),
                kwargs={
                    "x": x,
                    "y": y,
                    "grid": list(grid),
                    "start": band.start,
                    "stop": band.stop,
                    "n": stage.depth,
                    **pages,
                },
                scratch_bytes=48 * run + 2 * tree.nbytes + 4 * (band.stop - band.start) * index[0].shape[1],
            )
            for band in stage.bands
        ],
        desc="index",
    )


def _points_plan(pc: Array, points: Layout, notes: Notes) -> Plan:
    """Return the plan that copies the values of all points and notes their statistics."""
    tasks = []
    for image, channel in enumerate(channels(notes.stack)):
        for number, block in enumerate(notes.blocks):
            part = (slice(block.start, block.stop), *channel)
            tasks.append(
                ChunkTask(
                    "moraine_view.tasks:copy_points",
                    inputs=[Chunk(pc, part)],
                    outputs=[Chunk(points, part), *notes.chunks(number, channel)],
                    kwargs=notes.kwargs(number, image),
                    scratch_bytes=notes.scratch_bytes(),
                )
            )
    return Plan([points, *notes.outputs()], tasks, desc="points")


def _shown_plan(
    points: Layout, index: Sequence[Layout], layouts: Sequence[Layout], cuts: Sequence[Stage], run: int
) -> Plan:
    """Return the plan of all levels of a ``first`` pyramid: the index knows every point shown."""
    return Plan(
        layouts,
        [
            ChunkTask(
                "moraine_view.tasks:shown_points",
                inputs=band_parts(index, stage.levels, stage, band),
                outputs=band_parts(layouts, stage.levels, stage, band, image),
                kwargs={"values": Chunk(points, (ALL, *image)), "run": run},
                scratch_bytes=_run_bytes(points, run),
            )
            for image in channels(points.shape[1:])
            for stage in cuts
            for band in stage.bands
        ],
    )


def _mean_plan(points: Layout, index: Sequence[Layout], layouts: Sequence[Layout], stage: Stage, run: int) -> Plan:
    """Return the plan of the first stage of a pyramid of means."""
    tasks = []
    for image in channels(points.shape[1:]):
        for band in stage.bands:
            sums = kept_sums(layouts, stage, band, image)
            tasks.append(
                ChunkTask(
                    "moraine_view.tasks:mean_points",
                    inputs=band_parts(index, [0], stage, band),
                    outputs=[*band_parts(layouts, stage.levels, stage, band, image), *sums],
                    kwargs={
                        "values": Chunk(points, (ALL, *image)),
                        "run": run,
                        "n": stage.depth,
                        "keep_sums": bool(sums),
                    },
                    scratch_bytes=_run_bytes(points, run)
                    + mean_bytes(band.stop - band.start, layouts[0].shape[1], stage.depth),
                )
            )
    return Plan(stage_outputs(layouts, stage, keep_sums=True), tasks)


def _run_bytes(points: Layout, run: int) -> int:
    """Return the memory of a run of points: their values, and the chunk that is being decoded."""
    return itemsize(points.dtype) * (run + points.chunks[0]) + points.shape[0] // run
