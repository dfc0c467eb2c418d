"""How near the unwrapped time series of a simulated stack comes to its truth: a table, and a picture.

    .venv/bin/python tools/demo_truth.py demo

The folder is one in which pipelines/demo.toml has run, or the other pipelines on a stack of `moraine simulate`. A time
series has no zero of its own in space: the median of all points is taken off each image of the differences. A point has
the right whole cycles in an image if it is within half a cycle of the truth then. Displacements and velocities are
along the line of sight, positive toward the satellite; the bowl is what sinks at least half as fast as the fastest.
"""

from __future__ import annotations

import argparse
import math
import tomllib
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moraine_core.testing.data import read_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]


class Compared(NamedTuple):
    """A time series and its truth.

    Attributes
    ----------
    gix
        Pixels of the points, ``(n_points, 2)``.
    found, truth
        Phases relative to the first image, ``(n_points, nimages)``, radians.
    cover
        Name of the class of the ground of every point.
    velocity, true_velocity
        Of every point, mm per year; the true one is of the ground alone.
    mm
        Millimeters of a radian.
    """

    gix: NDArray[np.int32]
    found: Values
    truth: Values
    cover: NDArray[np.str_]
    velocity: Values
    true_velocity: Values
    mm: float

    @property
    def errors(self) -> Values:
        """Difference of the two in radians, of all images but the first."""
        return (self.found - self.truth)[:, 1:]


def compare(work: Path) -> Compared:
    """Read a time series and the truth of its points.

    Parameters
    ----------
    work
        The work directory of the pipelines.
    """
    constants = tomllib.loads((work / "gamma" / "truth" / "truth.toml").read_text(encoding="utf-8"))
    gix = read_array(work / "unw" / "pc_gix.zarr")
    pixels = tuple(gix.T)

    def true(name: str) -> NDArray[Any]:
        values: NDArray[Any] = read_array(work / "gamma" / "truth" / f"{name}.zarr")[pixels]
        return values

    truth = true("phase").astype(np.float64)
    truth -= truth[:, :1]
    found = read_array(work / "unw" / "pc_ts.zarr").astype(np.float64)
    found -= found[:, :1]
    found -= np.nanmedian(found - truth, axis=0)
    names = np.array([cover["name"] for cover in constants["cover"]])
    mm = constants["radar_wavelength"] / (4 * math.pi) * 1e3
    days = [date.fromisoformat(f"{text[:4]}-{text[4:6]}-{text[6:]}").toordinal() for text in constants["dates"]]
    rate = np.array(days) / 365.25
    rate -= rate.mean()
    rate /= (rate**2).sum()  # the slope of a line of least squares is a product with this
    return Compared(gix, found, truth, names[true("cover")], mm * found @ rate, mm * true("deformation") @ rate, mm)


def table(compared: Compared) -> str:
    """Return the comparison by class of the ground, and of the bowl, as a table."""
    lines = [f"{'ground':<12} {'points':>8} {'right cycles':>13} {'error, rad':>11} {'error, mm':>10}"]
    for name in [*np.unique(compared.cover), "all"]:
        errors = compared.errors[(compared.cover == name) | (name == "all")]
        rms = math.sqrt(np.nanmean(errors**2))
        right = np.mean(np.abs(errors) <= np.pi)
        lines.append(f"{name:<12} {len(errors):>8} {right:>13.3%} {rms:>11.2f} {rms * compared.mm:>10.2f}")
    in_bowl = compared.true_velocity < compared.true_velocity.min() / 2
    if in_bowl.any():
        found, true = (np.median(v[in_bowl]) for v in (compared.velocity, compared.true_velocity))
        off = (compared.velocity - compared.true_velocity)[in_bowl]
        lines.append(
            f"bowl: {in_bowl.sum()} points move away by {-found:.1f} mm a year, in truth by {-true:.1f} (medians); "
            f"single points differ by {np.sqrt(np.mean(off**2)):.1f}"
        )
    return "\n".join(lines)


def draw(compared: Compared, path: Path) -> None:
    """Draw the last image of time series, truth and their difference, each at the pixels of the points."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    last = compared.mm * np.stack([compared.found, compared.truth, compared.found - compared.truth])[..., -1]
    shape = compared.gix.max(axis=0) + 1
    low, high = np.nanpercentile(last[1], [0.1, 99.9])
    widest = float(np.nanpercentile(np.abs(last[2]), 99))
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    panels = FigureCanvasAgg(figure).figure.subplots(1, 3, sharex=True, sharey=True)
    for panel, values, title, limits, colors in zip(
        panels,
        last,
        ("unwrapped time series, last image", "truth: motion and atmosphere", "difference"),
        ((low, high), (low, high), (-widest, widest)),
        ("viridis", "viridis", "RdBu"),
        strict=True,
    ):
        image = np.full(shape, np.nan)
        image[tuple(compared.gix.T)] = values
        shown = panel.imshow(image, cmap=colors, vmin=limits[0], vmax=limits[1], aspect="auto", interpolation="nearest")
        panel.set(title=title, xlabel="range (pixels)", facecolor="0.85")
        figure.colorbar(shown, ax=panel, label="mm toward the satellite", extend="both")
    panels[0].set_ylabel("azimuth (pixels)")
    figure.savefig(path, dpi=80)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="work directory of the pipelines")
    parser.add_argument("--picture", type=Path, help="PNG to draw; WORK/truth.png by default")
    arguments = parser.parse_args()
    compared = compare(arguments.work)
    print(table(compared))
    picture = arguments.picture or arguments.work / "truth.png"
    draw(compared, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
