"""Unwrapping of a real network of interferograms against the answer that GAMMA gave: ``unwrap_real.py FOLDER``.

    .venv/bin/python tools/studies/unwrap_real.py FOLDER

FOLDER holds, for each interferogram, ``*_DATE-DATE_*_unw.tif`` (unwrapped phase, radians, 0 where there is none) and
``*_DATE-DATE_*_cc.tif`` (coherence), at any depth. Four tables come of it, as markdown:

1. Closures. Interferograms whose orbits were refined one by one differ by planes, so their loops do not close, and
   neither are they off by whole cycles: how many pixels of each triplet are beyond half a cycle, when whole cycles or
   when a plane is taken off.
2. Cycles. The interferograms are wrapped again and unwrapped by `mcf-pc`; the share of pixels that differ from the
   given answer by whole cycles, each interferogram for itself and after the most frequent difference in each connected
   area. `emcf-pc` needs images: for it planes are taken off so that the loops close, one phase per image is linked from
   all pairs of a pixel, and the pairs of these are compared with the given answer.
3. Closure correction of the given interferograms, planes taken off before or not: pixels beyond half a cycle in each
   triplet, before and after, and how many of those that closed do not close any more.
4. Planted errors: a cycle more in a corner of one interferogram, planes taken off, and how much of it is restored.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from moraine_core import Workers
from moraine_core.testing.data import read_array, write_array
from moraine_raster.networks import TempNet
from moraine_unwrap.emcf_pc import emcf_pc
from moraine_unwrap.mcf_pc import mcf_pc
from moraine_unwrap.triangulation.kernels import edge_lengths, regions, triangulate
from moraine_unwrap.unwrap_correct_closure_pc import unwrap_correct_closure_pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray[Any, Any]

TWO_PI = 2 * np.pi
WORKERS = Workers(n_workers=2)
COSTS = ("constant", "length", "statistical")
SPACING = {"range_pixel_spacing": 1.0, "azimuth_pixel_spacing": 1.0}


@dataclass(frozen=True)
class Network:
    """Unwrapped interferograms of the pixels that have a phase in all of them.

    Attributes
    ----------
    dates
        Of the images, as in the file names.
    pairs
        Images of each interferogram, ``(n_pairs, 2)``.
    gix
        Pixels, ``(n_points, 2)`` int32.
    unwrapped
        Unwrapped phase, ``(n_points, n_pairs)`` float64, in radians.
    coherence
        ``(n_points, n_pairs)``, unitless.
    """

    dates: Sequence[str]
    pairs: Array
    gix: Array
    unwrapped: Array
    coherence: Array

    def name(self, images: Sequence[int]) -> str:
        """Return images by their dates."""
        return "-".join(self.dates[image] for image in images)

    @property
    def triplets(self) -> Array:
        """Interferograms (a, b), (b, c) and (a, c) of every triplet of images, ``(n_triplets, 3)``."""
        row = {(int(a), int(b)): k for k, (a, b) in enumerate(self.pairs)}
        ends = [(a, b, c) for a, b in row for start, c in row if start == b and (a, c) in row]
        return np.array([(row[a, b], row[b, c], row[a, c]) for a, b, c in ends])


def read(folder: Path) -> Network:
    """Read the interferograms and their coherence."""
    found = {}
    for file in sorted(folder.rglob("*_unw.tif")):
        dates = re.search(r"(\d{8})-(\d{8})", file.name)
        if dates:
            (coherence,) = file.parent.glob(f"*{dates[0]}*_cc.tif")
            found[dates.groups()] = np.asarray(Image.open(file)), np.asarray(Image.open(coherence))
    dates = sorted({date for names in found for date in names})
    unwrapped, coherence = (np.stack(layer, axis=-1).astype(np.float64) for layer in zip(*found.values(), strict=True))
    is_valid = np.all((unwrapped != 0) & np.isfinite(unwrapped), axis=-1)
    pairs = np.array([[dates.index(date) for date in names] for names in found], np.int32)
    gix = np.argwhere(is_valid).astype(np.int32)
    return Network(dates, pairs, gix, unwrapped[is_valid], np.nan_to_num(coherence[is_valid]))


def cycles_of(phase: Array) -> Array:
    """Return the nearest whole cycles."""
    cycles: Array = np.rint(phase / TWO_PI)
    return cycles


def closures(network: Network, unwrapped: Array) -> Array:
    """Return the closure of every triplet, less the whole cycles of its median, ``(n_points, n_triplets)``."""
    first, second, around = (unwrapped[:, column] for column in network.triplets.T)
    phase: Array = first + second - around
    return phase - TWO_PI * cycles_of(np.median(phase, axis=0))


def plane(gix: Array, phase: Array) -> Array:
    """Return the plane through most values of every column, of the shape of `phase`."""
    across = np.column_stack([np.ones(len(gix)), gix / gix.max(axis=0) - 0.5])
    fitted = np.empty_like(phase)
    for column, values in enumerate(phase.T):
        is_used = np.ones(len(gix), bool)
        for _ in range(10):
            fitted[:, column] = across @ np.linalg.lstsq(across[is_used], values[is_used], rcond=None)[0]
            rest = np.abs(values - fitted[:, column])
            is_used = rest <= 3 * np.std(rest[is_used]) + np.median(rest)
    return fitted


def without_loop_planes(network: Network) -> Array:
    """Return the unwrapped phases less the planes of what no phases of images can explain."""
    design = np.zeros((len(network.pairs), len(network.dates)))
    for row, (ref, sec) in enumerate(network.pairs):
        design[row, ref], design[row, sec] = 1, -1
    explained = network.unwrapped @ (design @ np.linalg.pinv(design)).T
    return network.unwrapped - plane(network.gix, network.unwrapped - explained)


def linked(network: Network, phase: Array) -> Array:
    """Return phasors of the images whose pairs fit best: the leading eigenvectors, weighted by coherence."""
    n_images = len(network.dates)
    matrix = np.zeros((len(phase), n_images, n_images), np.complex128)
    ref, sec = network.pairs.T
    matrix[:, ref, sec] = network.coherence * np.exp(1j * phase)
    matrix[:, sec, ref] = matrix[:, ref, sec].conj()
    leading = np.linalg.eigh(matrix)[1][:, :, -1]
    return np.exp(1j * np.angle(leading)).astype(np.complex64)


def run(command: Any, folder: Path, network: Network, ph: Array, pairs: Array, out: str, **options: Any) -> Array:
    """Return an output of a command on a phase history."""
    TempNet.of(pairs).save(folder / "pairs.txt")
    gix = write_array(folder / "gix.zarr", network.gix)
    history = write_array(folder / "ph.zarr", ph, (len(ph), 1))
    options |= {out: str(folder / f"{out}.zarr"), "image_pairs": str(folder / "pairs.txt"), **SPACING}
    command(gix=gix, ph=history, workers=WORKERS, **options)
    return read_array(folder / f"{out}.zarr").astype(np.float64)


def off(network: Network, unwrapped: Array, given: Array) -> Array:
    """Return the share of pixels, in percent, whose cycles differ from the most frequent difference in their area."""
    net = triangulate(network.gix)
    area = regions(net, edge_lengths(network.gix, net.edges))
    differs = np.zeros(unwrapped.shape, bool)
    cycles = cycles_of(unwrapped - given)
    for number in np.unique(area):
        rows = np.flatnonzero(area == number)
        for column, values in enumerate(cycles[rows].T):
            levels, counts = np.unique(values, return_counts=True)
            differs[rows, column] = values != levels[counts.argmax()]
    share: Array = 100 * differs.mean(axis=0)
    return share


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a markdown table."""
    for line in (header, ["---"] * len(header), *rows):
        print("|", " | ".join(f"{word:.2f}" if isinstance(word, float) else str(word) for word in line), "|")
    print()


def show_closures(network: Network) -> None:
    """Print what does not close, and what is left of it without a plane."""
    phase = closures(network, network.unwrapped)
    fitted = plane(network.gix, phase)
    rows = []
    for column, triplet in enumerate(network.triplets):
        images = (*network.pairs[triplet[0]], network.pairs[triplet[1], 1])
        rest = phase[:, column] - fitted[:, column]
        rows.append(
            [
                network.name(images),
                float(np.mean(phase[:, column])),
                float(np.ptp(fitted[:, column])),
                float(100 * np.mean(np.abs(phase[:, column]) > np.pi)),
                float(100 * np.mean(np.abs(rest) > np.pi)),
                float(rest.std()),
            ]
        )
    header = ["triplet", "mean (rad)", "plane, range (rad)", "beyond pi (%)", "without plane (%)", "its rms (rad)"]
    table(header, rows)


def show_cycles(network: Network, folder: Path) -> None:
    """Print how often cycles differ from the given ones."""
    n_pairs = len(network.pairs)
    alone = np.exp(1j * np.column_stack([network.unwrapped, np.zeros(len(network.gix))])).astype(np.complex64)
    to_none = np.column_stack([np.arange(n_pairs), np.full(n_pairs, n_pairs)])
    closing = without_loop_planes(network)
    images = linked(network, closing)
    columns = {}
    for cost in COSTS:
        found = run(mcf_pc, folder, network, alone, to_none, "unw_ph", spatial_cost=cost)
        columns[f"mcf-pc, {cost}"] = off(network, found, network.unwrapped)
    for name, command in (("mcf-pc", mcf_pc), ("emcf-pc", emcf_pc)):
        for cost in COSTS:
            found = run(command, folder, network, images, network.pairs, "unw_ph", spatial_cost=cost)
            columns[f"linked, {name}, {cost}"] = off(network, found, closing)
    rows = [
        [
            network.name(pair),
            float(np.median(network.coherence[:, row])),
            *(float(share[row]) for share in columns.values()),
        ]
        for row, pair in enumerate(network.pairs)
    ]
    rows.append(["mean", "", *(float(share.mean()) for share in columns.values())])
    table(["pair", "coherence", *(f"{name} (%)" for name in columns)], rows)


def corrected(network: Network, folder: Path, unwrapped: Array) -> Array:
    """Return the cycles that the closure correction adds to unwrapped interferograms, ``(n_points, n_pairs)``."""
    images = linked(network, unwrapped)
    ref, sec = network.pairs.T
    wrapped = np.angle(images[:, ref].astype(np.complex128) * images[:, sec].conj())
    snapped = (wrapped + TWO_PI * cycles_of(unwrapped - wrapped)).astype(np.float32)
    unw_ph = write_array(folder / "given.zarr", snapped, (len(snapped), 1))
    options = {"unw_ph": unw_ph, "ts": str(folder / "ts.zarr")}
    return run(unwrap_correct_closure_pc, folder, network, images, network.pairs, "correction", **options)


def show_correction(network: Network, folder: Path) -> None:
    """Print what the closure correction makes of the given interferograms."""
    kinds = {"as given": network.unwrapped, "planes off": without_loop_planes(network)}
    rows: list[list[object]] = [
        [network.name((*network.pairs[first], network.pairs[second, 1]))] for first, second, _ in network.triplets
    ]
    changed = []
    for unwrapped in kinds.values():
        correction = corrected(network, folder, unwrapped)
        is_open, is_open_after = (
            np.abs(closures(network, phase)) > np.pi for phase in (unwrapped, unwrapped + TWO_PI * correction)
        )
        for column, row in enumerate(rows):
            before, after = is_open[:, column], is_open_after[:, column]
            row += [int(before.sum()), int(after.sum()), int((after & ~before).sum())]
        changed.append(float(100 * np.mean(correction != np.median(correction, axis=0))))
    header = [f"{kind}: {what}" for kind in kinds for what in ("beyond pi", "after", "opened")]
    table(["triplet (pixels)", *header], rows)
    for kind, share in zip(kinds, changed, strict=True):
        print(f"{kind}: {share:.3g} % of all values were changed otherwise than most of their interferogram.\n")


def show_planted(network: Network, folder: Path) -> None:
    """Print how much of a planted error is restored, and what else is changed."""
    closing = without_loop_planes(network)
    untouched = corrected(network, folder, closing)
    rows = []
    for share in (0.02, 0.1, 0.3, 0.6):
        near = np.sum((network.gix / network.gix.max(axis=0)) ** 2, axis=1)
        is_wrong = near < np.quantile(near, share)
        restored, others = [], []
        for row in range(len(network.pairs)):
            planted = closing.copy()
            planted[is_wrong, row] += TWO_PI
            added = corrected(network, folder, planted) - untouched
            restored.append(100 * np.mean(added[is_wrong, row] == -1))
            added[is_wrong, row] = 0
            others.append(100 * np.mean(added != 0))
        in_loop = np.isin(np.arange(len(network.pairs)), network.triplets)
        rows.append(
            [
                f"{100 * share:g} %",
                float(np.median(np.array(restored)[in_loop])),
                int(np.sum(np.array(restored)[in_loop] > 99)),
                int(in_loop.sum()),
                float(np.max(others)),
            ]
        )
    header = [
        "area",
        "restored, median of pairs (%)",
        "pairs restored by 99 %",
        "of",
        "other values changed, at most (%)",
    ]
    table(header, rows)


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the interferograms")
    network = read(parser.parse_args().folder)
    print(f"{len(network.pairs)} interferograms of {len(network.dates)} images, {len(network.gix)} pixels\n")
    with tempfile.TemporaryDirectory(prefix="moraine-study-") as name:
        show_closures(network)
        show_cycles(network, Path(name))
        show_correction(network, Path(name))
        show_planted(network, Path(name))


if __name__ == "__main__":
    main()
