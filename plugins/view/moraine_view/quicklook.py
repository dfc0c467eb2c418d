"""One picture of a pyramid as a PNG: values in color on axes with units, made without a screen."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from moraine_view.palette import BACKGROUND, Palette, color_index, color_table
from moraine_view.pyramid import HALF_WORLD, Pyramid, open_pyramid
from moraine_view.render import Frame, draw_points, frame, level_for, sample_level
from moraine_view.show import Shown, plan_show

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

Extend = Literal["neither", "min", "max", "both"]

DPI = 100
LEFT, RIGHT, BOTTOM, LINE, PAD = 85, 125, 60, 19, 14
"""Margins around the picture, the height of a line of the title and the space beside it, in pixels."""
LEAST_WIDTH, LEAST_HEIGHT = 320, 140
"""Room for the title and the color bar where the picture itself is smaller, in pixels."""


class Coloring(NamedTuple):
    """How values become colors, and what the color bar says."""

    palette: Palette
    low: float
    high: float
    label: str
    ticks: tuple[float, ...] = ()
    """Where the color bar is marked; empty: wherever it looks good."""
    names: tuple[str, ...] = ()
    factor: float = 1.0
    """What the color bar says of a value is the value times this."""


def quicklook(
    pyramid: Path,
    png: Path,
    *,
    show: str | None = None,
    index: tuple[int, ...] = (),
    width: int = 1000,
    extent: tuple[float, float, float, float] | None = None,
    dates: list[str] | None = None,
    image_pairs: Sequence[tuple[int, int]] | None = None,
) -> Path:
    """Draw a pyramid.

    Parameters
    ----------
    pyramid
        A directory made by ``ras-pyramid`` or ``pc-pyramid``.
    png
        The file to write; its parents are created.
    show
        What to show of a stack: ``phase``, ``intf_0``, ``intf_seq``, ``intf_all``, ``coh``, ``coh_abs``; None for
        what suits the data.
    index
        Slider values in order, from 0.
    width
        Largest width of the data area, in pixels; axes, title and color bar come around it.
    extent
        Part to show: ``(west, south, east, north)`` in degrees on a map, ``(range_min, azimuth_min, range_max,
        azimuth_max)`` in pixels on the radar grid. None: everything.
    dates
        One per image, ``YYYYMMDD``; left out where their number is not that of the images.
    image_pairs
        Image pairs of a compressed coherence that does not hold all of them.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    ValueError
        If the directory is not a pyramid, or ``show``, ``index`` or ``extent`` do not fit it.
    """
    source = open_pyramid(pyramid)
    shown = plan_show(show, source.dtype, source.stack, index, image_pairs)
    view = frame(_extent(source, extent), width, is_y_down=source.crs == "grid")
    as_points = source.kind == "point cloud" and view.pixel < source.cell * (1 - 1e-9)
    if as_points:
        values, drawn = draw_points(source, shown, view), "points"
    else:
        level = level_for(view.pixel, source.cell, source.n_levels)
        values, drawn = sample_level(source, shown, view, level), f"level {level}"
    coloring = choose_coloring(shown, source, values)
    title = _title(source, shown, view, drawn, dates)
    figure = compose(values, coloring, view, title, is_map=source.crs == "web_mercator")
    png.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(png, dpi=DPI, format="png", metadata={"Software": "moraine"})
    return png


def mercator(lon: float, lat: float) -> tuple[float, float]:
    """Give web mercator easting and northing in meters of a longitude and latitude in degrees."""
    radius = HALF_WORLD / math.pi
    return radius * math.radians(lon), radius * math.log(math.tan(math.pi / 4 + math.radians(lat) / 2))


def degrees(e: float, n: float) -> tuple[float, float]:
    """Give longitude and latitude in degrees of web mercator easting and northing in meters."""
    radius = HALF_WORLD / math.pi
    return math.degrees(e / radius), math.degrees(2 * math.atan(math.exp(n / radius)) - math.pi / 2)


def choose_coloring(shown: Shown, source: Pyramid, values: NDArray[Any]) -> Coloring:
    """Choose colors by what is shown.

    Parameters
    ----------
    shown, source
        What is shown and of which data.
    values
        ``(rows, cols)`` real, the picture; nan is missing.

    Returns
    -------
    Coloring
        Phases on the cycle; bools and magnitudes of coherence from 0 to 1; differences between the percentiles of
        the picture; other values between the percentiles of all data, so that the images of a stack compare.
    """
    if shown.scale == "phase":
        names = ("-π", "-π/2", "0", "π/2", "π")
        ticks = tuple(k * math.pi / 2 for k in range(-2, 3))
        return Coloring("cyclic", -math.pi, math.pi, f"{shown.label.split(' (')[0]} (rad)", ticks, names)
    if shown.scale == "unit":
        if source.dtype.kind == "b":
            return Coloring("sequential", 0.0, 1.0, source.path.name, (0.0, 1.0), ("0 (False)", "1 (True)"))
        return Coloring("sequential", 0.0, 1.0, f"{shown.label} (unitless)")
    if shown.scale == "values":
        low, high, is_own = _range_of_values(shown, source, values)
        name = f"{source.path.name}, range of this image" if is_own else source.path.name
    else:
        low, high = _range(_percentiles(values))
        name = f"difference of {source.path.name}"
    # deformation is a matter of millimeters
    small = source.unit == "m" and max(abs(low), abs(high)) < 0.1
    unit = "mm" if small else source.unit
    return Coloring("sequential", low, high, f"{name} ({unit})" if unit else name, factor=1000.0 if small else 1.0)


def _range_of_values(shown: Shown, source: Pyramid, values: NDArray[Any]) -> tuple[float, float, bool]:
    """Return the range of colors, and whether it is that of the image alone.

    The percentiles are those of all data, so that the images of a stack compare; but those of the image where its
    values would have less than a quarter of the colors, as the unwrapped phase of a pair may.
    """
    known = source.stats.get("p01"), source.stats.get("p99")
    low, high = _range(_percentiles(values) if None in known else known)
    own = source.image_percentiles(shown.channels[0])
    if own is not None and own[0] < own[1] and min(own[1], high) - max(own[0], low) < (high - low) / 4:
        return *own, True
    return low, high, False


def _percentiles(values: NDArray[Any]) -> tuple[float | None, float | None]:
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return None, None
    p01, p99 = np.quantile(finite, [0.01, 0.99]).tolist()
    return p01, p99


def _range(percentiles: tuple[float | None, float | None]) -> tuple[float, float]:
    """Take the percentiles, and half a unit around them where they coincide; 0 to 1 where there are none."""
    p01, p99 = percentiles
    if p01 is None or p99 is None:
        return 0.0, 1.0
    half = 0.0 if p01 < p99 else max(0.5, 1e-6 * abs(p01))
    return p01 - half, p99 + half


def _extent(source: Pyramid, extent: tuple[float, float, float, float] | None) -> tuple[float, float, float, float]:
    if extent is None:
        return source.extent
    is_map = source.crs == "web_mercator"
    names = "west, south, east, north" if is_map else "range_min, azimuth_min, range_max, azimuth_max"
    a, b, c, d = extent
    if not (a < c and b < d):
        msg = f"extent {a:g}, {b:g}, {c:g}, {d:g} is empty; expected {names} with min < max"
        raise ValueError(msg)
    if not is_map:
        return extent
    if not (a >= -360 and c <= 360 and b > -90 and d < 90):
        msg = f"extent {a:g}, {b:g}, {c:g}, {d:g} is not on the map; expected {names} in degrees"
        raise ValueError(msg)
    return (*mercator(a, b), *mercator(c, d))


def _title(source: Pyramid, shown: Shown, view: Frame, drawn: str, dates: list[str] | None) -> list[str]:
    lines = [
        source.path.name,
        f"{source.kind}, shape {source.shape}, {source.dtype}, shown: {shown.label}",
    ]
    if shown.sliders:
        chosen = ", ".join(f"{slider.name} {slider.value} of 0…{slider.n - 1}" for slider in shown.sliders)
        when = " to ".join(dates[k] for k in shown.images) if dates and len(dates) == shown.nimages else ""
        lines.append(f"{chosen}: {when}" if when else chosen)
    if view.is_y_down:
        place = f"range {view.x_min:g} to {view.x_max:g}, azimuth {view.y_min:g} to {view.y_max:g}"
    else:
        west, south, east, north = (*degrees(view.x_min, view.y_min), *degrees(view.x_max, view.y_max))
        place = f"longitude {west:.4f}° to {east:.4f}°, latitude {south:.4f}° to {north:.4f}°"
    return [*lines, f"{place}; {drawn}"]


def compose(values: NDArray[Any], coloring: Coloring, view: Frame, title: list[str], *, is_map: bool) -> Figure:
    """Put picture, axes, title and color bar together; one pixel of the picture is one pixel of the file.

    Parameters
    ----------
    values
        ``(rows, cols)`` real, of the pixels of `view`; nan is missing.
    coloring
        How they become colors.
    view
        What the pixels cover.
    title
        Lines above the picture.
    is_map
        The axes are longitude and latitude; otherwise range and azimuth.

    Returns
    -------
    Figure
        To be saved at `DPI`.
    """
    # the object-oriented interface with its own canvas: no pyplot, no screen, no state shared between threads
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    total_width = LEFT + max(view.cols, LEAST_WIDTH) + RIGHT
    # 9 point type at this resolution is about 7 pixels wide
    lines = [part for line in title for part in textwrap.wrap(line, (total_width - LEFT - PAD) // 7) or [""]]
    top = LINE * len(lines) + 2 * PAD
    bar_height = max(view.rows, LEAST_HEIGHT)
    total_height = top + bar_height + BOTTOM
    figure = Figure(figsize=(total_width / DPI, total_height / DPI), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)

    def add_axes(left: int, down: int, width: int, height: int) -> Axes:
        bottom = total_height - down - height
        return figure.add_axes((left / total_width, bottom / total_height, width / total_width, height / total_height))

    # a frame one pixel wide around the picture: a dark plate under it
    plate = add_axes(LEFT - 1, top - 1, view.cols + 2, view.rows + 2)
    plate.set(xticks=[], yticks=[], facecolor="0.2")
    plate.spines[:].set_visible(False)
    axes = add_axes(LEFT, top, view.cols, view.rows)
    _draw_picture(axes, color_table(coloring.palette)[color_index(values, coloring.low, coloring.high)], view)
    _label_axes(axes, view, is_map=is_map)
    _draw_bar(add_axes(LEFT + view.cols + 18, top, 18, bar_height), coloring, values)
    for k, line in enumerate(lines):
        figure.text(
            LEFT / total_width,
            1 - (PAD + k * LINE) / total_height,
            line,
            fontsize=11 if k == 0 else 9,
            fontweight="bold" if k == 0 else "normal",
            va="top",
            parse_math=False,
        )
    return figure


def _draw_picture(axes: Axes, rgba: NDArray[np.uint8], view: Frame) -> None:
    y_edges = (view.y_max, view.y_min) if view.is_y_down else (view.y_min, view.y_max)
    axes.set_facecolor(BACKGROUND)
    # frame and tick marks stay off the picture, which may be a single line high
    axes.spines[:].set_visible(False)
    axes.spines[:].set_position(("outward", 72 / DPI))
    axes.imshow(rgba, extent=(view.x_min, view.x_max, *y_edges), interpolation="nearest", aspect="auto")


def _label_axes(axes: Axes, view: Frame, *, is_map: bool) -> None:
    axes.set_xlabel("longitude (°)" if is_map else "range (pixel)", fontsize=9)
    axes.set_ylabel("latitude (°)" if is_map else "azimuth (pixel)", fontsize=9)
    axes.tick_params(labelsize=8)
    west, south, east, north = view.x_min, view.y_min, view.x_max, view.y_max
    if is_map:
        west, south, east, north = (*degrees(west, south), *degrees(east, north))
    for axis, n_pixels, room, low, high in (
        (axes.xaxis, view.cols, 90, west, east),
        (axes.yaxis, view.rows, 60, south, north),
    ):
        marks = axis_marks(low, high, max(1, min(9, n_pixels // room)), whole=not is_map)
        if is_map:
            places = [mercator(mark, 0)[0] if axis is axes.xaxis else mercator(0, mark)[1] for mark in marks]
        else:
            places = marks
        digits = max((len(f"{mark:.10g}".partition(".")[2]) for mark in marks), default=0)
        axis.set_ticks(places, labels=[f"{mark:.{digits}f}" for mark in marks])


def axis_marks(low: float, high: float, n_marks: int, *, whole: bool) -> list[float]:
    """Choose round numbers within a span.

    Parameters
    ----------
    low, high
        The span.
    n_marks
        At most so many, about.
    whole
        Whole numbers only, where there are any: the center of a pixel of the grid is one.

    Returns
    -------
    list of float
        In ascending order.
    """
    from matplotlib.ticker import MaxNLocator

    locator = MaxNLocator(n_marks, steps=[1, 2, 5, 10], integer=whole and high - low >= 1, min_n_ticks=1)
    return [float(mark) for mark in locator.tick_values(low, high) if low <= mark <= high]


def _draw_bar(axes: Axes, coloring: Coloring, values: NDArray[Any]) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.ticker import FuncFormatter

    colors = ListedColormap(color_table(coloring.palette)[:-1] / 255.0)
    known = values[~np.isnan(values)]
    if coloring.palette == "cyclic":
        known = known[:0]  # nothing lies beyond a cycle
    names: tuple[Extend, ...] = ("neither", "min", "max", "both")
    extend = names[(known < coloring.low).any() + 2 * (known > coloring.high).any()]
    mappable = ScalarMappable(Normalize(coloring.low, coloring.high), colors)
    tip = 14 / axes.get_window_extent().height
    bar = Colorbar(axes, mappable, extend=extend, extendfrac=tip, ticks=list(coloring.ticks) or None)
    if coloring.names:
        bar.set_ticklabels(list(coloring.names))
    else:
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * coloring.factor:.4g}"))
    bar.set_label(coloring.label, fontsize=9, parse_math=False)
    bar.ax.tick_params(labelsize=8)
