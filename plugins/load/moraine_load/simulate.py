"""A stack in GAMMA format with known truth: orbits, terrain, motion, atmosphere, scatterers that stay or change."""

from __future__ import annotations

import datetime
from collections.abc import Generator  # noqa: TC003 - the host reads the annotations
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

from moraine_core import (
    ALL,
    Block,
    Blocks1D,
    Chunk,
    ChunkTask,
    Layout,
    Output,
    Plan,
    RawLayout,
    UsageError,
    blocks,
    command,
)
from moraine_load.simulation import files
from moraine_load.simulation.covers import COVERS
from moraine_load.simulation.scene import Strength, make_scene

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moraine_load.simulation.scene import Scene

TASKS = "moraine_load.simulation.tasks"

PIXEL_BYTES = 240
"""Memory of a pixel while its images are made, besides the images and their phases: noise, geometry, ground."""

GROUND_BYTES = 130
"""Memory of a pixel while what lies on the ground is found, besides what is kept of it."""


@command("simulate", family="load", example="moraine_load.examples:simulate")
def simulate(
    out: Annotated[str, Output("stack in GAMMA format, and the truth", kind="directory")],
    shape: Annotated[tuple[int, int], "lines and width of the images (pixels)"] = (600, 900),
    nimages: Annotated[int, "number of images (images)"] = 12,
    first_date: Annotated[str, "date of the first image, YYYYMMDD"] = "20230106",
    interval: Annotated[int, "from one image to the next (days)"] = 12,
    dates: Annotated[tuple[str, ...] | None, "dates of all images, YYYYMMDD, instead of the three before"] = None,
    reference: Annotated[int, "number of the image that the others are coregistered to (unitless)"] = 0,
    spacing: Annotated[tuple[float, float], "of lines on the ground, and of samples in slant range (m)"] = (
        13.9516,
        2.329562,
    ),
    center: Annotated[tuple[float, float], "longitude and latitude of the middle (degrees)"] = (14.14, 40.82),
    seed: Annotated[int, "of all that is random (unitless)"] = 1,
    image_format: Annotated[
        Literal["FCOMPLEX", "SCOMPLEX"], "numbers of the images: float32 or int16 pairs"
    ] = "FCOMPLEX",
    relief: Annotated[float, "standard deviation of the terrain's height (m)"] = 60.0,
    subsidence: Annotated[float, "largest, in the line of sight, away from the satellite (m/yr)"] = 0.4,
    seasonal: Annotated[float, "amplitude of the largest yearly motion in the line of sight (m)"] = 0.004,
    atmosphere: Annotated[float, "standard deviation of the atmosphere of each image (rad)"] = 0.6,
    noise: Annotated[float, "amplitude of the receiver's noise, where bare ground has 80 (unitless)"] = 6.0,
    decorrelation: Annotated[bool, "whether distributed scatterers change with time"] = True,  # noqa: FBT002
    baseline: Annotated[float, "standard deviation of the perpendicular baselines (m)"] = 50.0,
    orbit_error: Annotated[float, "standard deviation of what the told orbits are wrong by (m)"] = 0.0,
    geo: Annotated[str, "how the files of the geocoding are called"] = "scene",
    post: Annotated[float, "distance of the posts of the map (m)"] = 25.0,
    lines: Annotated[Blocks1D, "lines of the images and of the map that a task works on (lines)"] = 32,
) -> Generator[Plan, list[Any], None]:
    """Simulate a stack of coregistered, unflattened SLCs in GAMMA format, with everything known about it.

    The scene is a town between fields, woods and a lake, on rolling terrain, seen by a radar in C band from a
    Sentinel-1-like ascending orbit. Ground sinks in a bowl under the town and swings with the year beside it.
    Buildings, streets, bare ground, fields and forest are distributed scatterers, each class the same everywhere,
    whose coherence falls exponentially to a part that stays, and that of the fields with the season; persistent
    scatterers have four brightnesses. The speckle is oversampled as in real images. Terrain so steep that a pixel
    sees it more than once may give nan, and 0 in the images.

    Written are rslc/DATE.rslc and .par, DEM/dem_seg and dem_seg_par, and geocoding/GEO.hgt, .lt_fine, .lv_theta,
    .lv_phi and .diff_par, all big-endian; and truth/: lat, lon (degrees), hgt (m), theta, phi (rad), cover (class of
    the ground, described in truth.toml), is_water, is_ps, ps_amplitude, coherence (of each class, images by images),
    deformation and atmosphere of each image (rad), and phase: that of the flattened images relative to the
    reference, free of noise (rad).

    Signs: an image has the phase -4 pi / lambda r for the slant range r; flattened is s exp(+j phi) with phi =
    4 pi / lambda (r - r_reference); motion toward the satellite adds to the phase.

    Every number depends on the options alone, never on lines or workers.

    Examples
    --------
    moraine simulate --out stack --shape 600 900 --nimages 12 --seed 1
    """
    days = _dates(nimages, first_date, interval, dates)
    _check(shape, len(days), reference, spacing, center, seed, post)
    if not geo or "/" in geo:
        raise UsageError(f"simulate: geo is {geo!r}; expected a name for files")
    scene = make_scene(
        shape=shape,
        spacing=spacing,
        center=center,
        dates=days,
        reference=reference,
        seed=seed,
        baseline=baseline,
        orbit_error=orbit_error,
        post=post,
        strength=Strength(relief, subsidence, seasonal, atmosphere, noise, decorrelation),
    )
    known = {name: _truth(out, name, scene, dtype, lines) for name, dtype in KNOWN.items()}
    yield _ground_plan(out, scene, known, geo, lines)
    yield _images_plan(out, scene, known, geo, image_format, lines)


KNOWN = {
    "lat": "float64",
    "lon": "float64",
    "hgt": "float32",
    "theta": "float32",
    "phi": "float32",
    "cover": "uint8",
    "is_water": "bool",
    "is_ps": "bool",
    "ps_amplitude": "float32",
}
"""What is known of every pixel, and its dtype."""

UNITS = {"lat": "degrees", "lon": "degrees", "hgt": "m", "theta": "rad", "phi": "rad"}


def _dates(nimages: int, first_date: str, interval: int, dates: Sequence[str] | None) -> tuple[str, ...]:
    """Return the dates of all images."""
    if dates is None:
        if nimages < 1 or interval < 1:
            raise UsageError(f"simulate: nimages is {nimages} and interval {interval}; expected at least 1")
        start = _day("first_date", first_date)
        return tuple(f"{start + datetime.timedelta(days=interval * n):%Y%m%d}" for n in range(nimages))
    days = [_day("dates", date) for date in dates]
    if not days or any(b <= a for a, b in pairwise(days)):
        raise UsageError(f"simulate: dates are {' '.join(dates)}; expected one or more, ascending")
    return tuple(dates)


def _day(name: str, date: str) -> datetime.date:
    try:
        return datetime.datetime.strptime(date, "%Y%m%d").date()
    except ValueError:
        raise UsageError(f"simulate: {name} is {date!r}; expected YYYYMMDD") from None


def _check(
    shape: tuple[int, int],
    nimages: int,
    reference: int,
    spacing: tuple[float, float],
    center: tuple[float, float],
    seed: int,
    post: float,
) -> None:
    """Check numbers that have no meaning elsewhere."""
    if min(shape) < 1:
        raise UsageError(f"simulate: shape is {shape[0]} {shape[1]}; expected at least one line and sample")
    if not 0 <= reference < nimages:
        raise UsageError(f"simulate: reference is {reference}; expected the number of one of {nimages} images, from 0")
    if abs(center[1]) > 75:
        raise UsageError(f"simulate: center is at latitude {center[1]}; expected -75 to 75 degrees")
    if not 0 <= seed < 2**63:
        raise UsageError(f"simulate: seed is {seed}; expected 0 or more")
    if min(*spacing, post) <= 0:
        raise UsageError(f"simulate: spacing is {spacing[0]} {spacing[1]} and post {post}; expected more than 0 (m)")


def _truth(out: str, name: str, scene: Scene, dtype: str, lines: int, *stack: int) -> Layout:
    unit = UNITS.get(name) or ("rad" if stack else "")
    return Layout(
        f"{out}/truth/{name}.zarr",
        (scene.nlines, scene.width, *stack),
        dtype,
        (lines, -1, *(1 for _ in stack)),
        attributes={"unit": unit} if unit else {},
    )


def _ground_plan(out: str, scene: Scene, known: dict[str, Layout], geo: str, lines: int) -> Plan:
    """Return the plan of the map, the geometry of the reference, and what lies on the ground."""
    size = (scene.segment.nlines, scene.segment.width)
    posts = [
        RawLayout(f"{out}/{name}", size, dtype, (lines, -1))
        for name, dtype in (
            ("DEM/dem_seg", "float32"),
            (f"geocoding/{geo}.lt_fine", "complex64"),
            (f"geocoding/{geo}.lv_theta", "float32"),
            (f"geocoding/{geo}.lv_phi", "float32"),
        )
    ]
    hgt = RawLayout(f"{out}/geocoding/{geo}.hgt", (scene.nlines, scene.width), "float32", (lines, -1))
    truth = list(known.values())
    pixels = [*truth[:5], hgt, *truth[5:]]
    matrices = Layout(
        f"{out}/truth/coherence.zarr", (len(COVERS), scene.nimages, scene.nimages), "float32", (-1, -1, -1)
    )
    tasks = [
        ChunkTask(
            f"{TASKS}:{kernel}",
            inputs=[part[0].start, part[0].stop],
            outputs=[Chunk(layout, part) for layout in layouts],
            scratch_bytes=GROUND_BYTES * _height(part) * layouts[0].shape[1],
        )
        for kernel, layouts in (("see_map", posts), ("see_ground", pixels))
        for part in blocks(layouts[0].shape, (lines, -1))
    ]
    tasks.append(ChunkTask(f"{TASKS}:cover_coherence", outputs=[Chunk(matrices)]))
    return Plan([*posts, *pixels, matrices], tasks, shared={"scene": scene}, desc="simulate ground")


def _images_plan(out: str, scene: Scene, known: dict[str, Layout], geo: str, image_format: str, lines: int) -> Plan:
    """Return the plan of the images, and of the text files beside them."""
    size = (scene.nlines, scene.width)
    images = [
        RawLayout(f"{out}/rslc/{date}.rslc", size, "complex64", (lines, -1))
        if image_format == "FCOMPLEX"
        else RawLayout(f"{out}/rslc/{date}.rslc", (*size, 2), "int16", (lines, -1, -1))
        for date in scene.dates
    ]
    phases = [
        _truth(out, name, scene, "float32", lines, scene.nimages) for name in ("deformation", "atmosphere", "phase")
    ]
    texts = {
        f"{out}/rslc/{date}.rslc.par": files.slc_par(scene, image, image_format)
        for image, date in enumerate(scene.dates)
    }
    texts[f"{out}/DEM/dem_seg_par"] = files.dem_par(scene)
    texts[f"{out}/geocoding/{geo}.diff_par"] = files.diff_par(scene)
    texts[f"{out}/truth/truth.toml"] = files.truth_toml(scene)
    return Plan(
        [*images, *phases],
        [
            ChunkTask(
                f"{TASKS}:see_images",
                inputs=[Chunk(known[name], part) for name in ("lat", "lon", "hgt")],
                outputs=[
                    *(Chunk(image, (*part, *(ALL for _ in image.shape[2:]))) for image in images),
                    *(Chunk(phase, (*part, ALL)) for phase in phases),
                ],
                kwargs={"first": part[0].start, "image_format": image_format},
                scratch_bytes=PIXEL_BYTES * (_height(part) + 8) * (scene.width + 8),
            )
            for part in blocks(size, (lines, -1))
        ],
        shared={"scene": scene},
        desc="simulate images",
        texts=texts,
    )


def _height(part: Block) -> int:
    return int(part[0].stop - part[0].start)
