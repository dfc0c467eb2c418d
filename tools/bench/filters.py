"""Learned filters against the ones they replace, on simulated interferograms never seen in training."""

from __future__ import annotations

import os
import sys
import tempfile
from itertools import pairwise
from math import pi
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filters_points
from measure import Row, in_turn, seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    import numpy as np
    import torch

    Array = np.ndarray[Any, Any]

TOOLS = Path(__file__).parents[1]
SIDE = 256
SCENES = 4
"""Scenes of a kind and a seed."""
EDGE = 8
"""Pixels at the borders that do not count: windows are cut off there."""
FIRST_SEED = 60_000
"""Training uses small seeds; others were looked at while the network was designed."""
WINDOWS = (3, 5, 7, 9, 11)


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--filter-seeds", type=int, default=3, help="sets of scenes (count)")
    parser.add_argument("--filter-model", help="weights of n2f; those of the package by default")
    parser.add_argument("--filter-points-model", help="weights of n2ft; those of the package by default")
    parser.add_argument("--filter-picture", type=Path, help="where to draw the real pair, if its data are there")


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure."""
    import torch

    from moraine_filter import weights

    sys.path.insert(0, str(TOOLS))
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    model = chosen.filter_model or weights.packaged("n2f")
    yield from accuracy(model, chosen.filter_seeds)
    yield from fringes(model, chosen.filter_seeds)
    yield from seams(model)
    yield from throughput(model)
    yield from real_pair(model, chosen.filter_picture)
    yield from filters_points.rows(chosen.filter_points_model or weights.packaged("n2ft"), chosen.filter_seeds)


# -------------------------------------------------------------------------------------------------------- rasters


def accuracy(model: str, seeds: int) -> Iterator[Row]:
    """Compare errors and residues by kind of scene and coherence, constant over the scene."""
    import torch
    from training import scenes

    for coh in (0.2, 0.4, 0.6):
        left: dict[str, list[int]] = {"raw": [], "n2f": [], "boxcar": []}
        for kind in scenes.KINDS:
            ours, peers = [], []
            name = ""
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                gen = torch.Generator().manual_seed(seed)
                phase = scenes.clean_phase(kind, SCENES, SIDE, gen)
                z = scenes.interferogram(phase, torch.full_like(phase, coh), gen, textured=False).numpy()
                clean = phase.numpy()
                found = n2f(z, model)
                others = {label: call(z) for label, call in PEERS.items()}
                errors = {label: rmse(result, clean) for label, result in others.items()}
                name = min(errors, key=errors.__getitem__)
                window = min((label for label in errors if label.startswith("boxcar")), key=errors.__getitem__)
                ours.append(rmse(found, clean))
                peers.append(errors[name])
                for label, result in (("raw", z), ("n2f", found), ("boxcar", others[window])):
                    left[label].append(residues(result))
            bar = 0.85 if coh == 0.4 else 1.0
            yield Row(f"phase error of n2f, {kind}, coherence {coh}, against {name}", ours, peers, "rad", bar)
        bars = (0.2, 1.0) if coh == 0.4 else (None, None)
        for label, bar in zip(("raw", "boxcar"), bars, strict=True):
            words = "none" if label == "raw" else "the boxcar of least error"
            total = [[sum(left[which])] for which in ("n2f", label)]
            yield Row(f"residues left by n2f, coherence {coh}, against {words}", *total, "residues", bar)


def fringes(model: str, seeds: int) -> Iterator[Row]:
    """Compare errors where a bowl has fringes of 12 pixels, which a wide window smooths away."""
    import numpy as np
    import torch
    from training import scenes

    line, pixel = np.indices((SIDE, SIDE)) - SIDE / 2
    radius = SIDE / 5
    r2 = (line**2 + pixel**2) / radius**2
    depth = 2 * pi / 12 * radius / 0.8578  # steepest slope of exp(-r2) over radius
    bowl = (depth * np.exp(-r2)).astype(np.float32)
    steep = np.hypot(*np.gradient(bowl)) > 2 * pi / 16
    for coh in (0.4, 0.6):
        ours, peers = [], []
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            gen = torch.Generator().manual_seed(seed)
            phase = torch.from_numpy(bowl)[None]
            z = scenes.interferogram(phase, torch.full_like(phase, coh), gen, textured=False).numpy()
            for errors, result in ((ours, n2f(z, model)), (peers, boxcar(z, 3))):
                errors.append(rms(np.angle(result[0][steep]) - bowl[steep]))
        yield Row(
            f"phase error of n2f, fringes of 12 pixels, coherence {coh}, against boxcar 3", ours, peers, "rad", 1.0
        )


def seams(model: str) -> Iterator[Row]:
    """Compare the command in small blocks with the whole image at once."""
    import numpy as np

    from moraine_core.testing.data import read_array, speckle, write_array
    from moraine_filter.n2f import n2f as command

    rslc = speckle((700, 900, 2), seed=1)
    with tempfile.TemporaryDirectory(prefix="moraine-bench-") as name:
        stack = write_array(f"{name}/rslc.zarr", rslc, chunks=(300, 300, 1))
        found = []
        for label, chunks in (("whole", (-1, -1)), ("blocks", (200, 150))):
            out = f"{name}/{label}.zarr"
            command(rslc=stack, intf=out, model=model, chunks=chunks, out_chunks=(200, 150))
            found.append(read_array(out))
    yield Row(
        "largest difference of n2f in blocks from the whole image",
        [float(np.abs(np.subtract(*found)).max())],
        [],
        "",
        1e-4,
    )


def throughput(model: str) -> Iterator[Row]:
    """Compare the time of a tile with that of a network of the usual size, both on one core."""
    import torch

    from moraine_filter.raster.kernels import network

    net, usual = network(model, "cpu"), usual_network()
    unit, level = torch.randn(1, 2, 512, 512), torch.randn(1, 1, 512, 512)
    channels_last = unit.contiguous(memory_format=torch.channels_last)
    times = in_turn(lambda: seconds(lambda: net(unit, level)), lambda: seconds(lambda: usual(channels_last)), 3)
    yield Row("n2f of 512 x 512 pixels, one core, against a U-Net of 17 million weights", *times, "s", 1 / 8)


def real_pair(model: str, picture: Path | None) -> Iterator[Row]:
    """Compare with a boxcar on two images of Amsterdam where that is sure, and draw both."""
    import numpy as np

    data = Path(os.environ.get("MORAINE_TEST_DATA") or TOOLS.parent / "shared" / "data") / "s1-amsterdam-slc-pair"
    if not data.is_dir():
        return

    def image(date: str, day: str) -> Array:
        parts = [data / f"{date}-coreg.znap" / f"{part}_VV_{day}" / "0.0" for part in "iq"]
        real, imag = (np.fromfile(file, dtype=">f4").reshape(84, 338) for file in parts)
        return (real + 1j * imag).astype(np.complex64)

    ref, sec = image("20230331", "31Mar2023"), image("20230319", "19Mar2023")
    z = (ref * sec.conj())[None]
    found, mean = n2f(z, model)[0], boxcar(z, 5)[0]
    power = [boxcar(np.abs(s[None]) ** 2, 5)[0].real for s in (ref, sec)]
    coh = np.abs(mean) / np.sqrt(power[0] * power[1])
    off = float(np.median(np.abs(np.angle(found * mean.conj()))[coh > 0.9]))
    yield Row("real pair, median distance of n2f from boxcar 5 where coherence > 0.9", [off], [], "rad", 0.2)
    if picture:
        draw(picture, {"as it is": z[0], "boxcar 5 x 5": mean, "boxcar 11 x 11": boxcar(z, 11)[0], "n2f": found})


def draw(path: Path, panels: dict[str, Array]) -> None:
    """Draw phases below each other."""
    import numpy as np
    from cmcrameri import cm
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.6 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1)
    for ax, (name, z) in zip(axes, panels.items(), strict=True):
        shown = ax.imshow(np.angle(z), cmap=cm.romaO, vmin=-pi, vmax=pi, interpolation="nearest")
        ax.set_title(name)
    figure.colorbar(shown, ax=axes, label="phase (rad)", shrink=0.5)
    figure.savefig(path, dpi=110)


# -------------------------------------------------------------------------------------------------- what is compared


def n2f(z: Array, model: str) -> Array:
    """Return interferograms ``(n, h, w)`` filtered by the package; as pairs of a real image and themselves."""
    import numpy as np

    from moraine_filter.raster import kernels

    ones = np.ones(z.shape[1:], np.complex64)
    pair = [(0, 1)]
    return np.stack([kernels.n2f([z_k, ones], image_pairs=pair, model=model)[..., 0] for z_k in z])


def boxcar(z: Array, side: int) -> Array:
    """Return means of windows around pixels, cut off at the borders."""
    import torch
    from torch.nn.functional import avg_pool2d

    planes = torch.view_as_real(torch.as_tensor(z).to(torch.complex64)).movedim(-1, 1)
    mean = avg_pool2d(planes, side, 1, side // 2, count_include_pad=False)
    result: Array = torch.complex(mean[:, 0], mean[:, 1]).numpy()
    return result


def goldstein(z: Array, alpha: float, side: int = 32, step: int = 8) -> Array:
    """Return interferograms filtered after Goldstein and Werner (1998).

    The spectrum of each patch, of phasors, is multiplied by its own smoothed modulus to the power `alpha`; patches are
    put together with triangular weights.
    """
    import numpy as np
    from numpy.lib.stride_tricks import sliding_window_view
    from scipy.ndimage import uniform_filter

    ramp = 1 - np.abs((np.arange(side) + 0.5) * 2 / side - 1)
    taper = np.outer(ramp, ramp)
    results = []
    for z_k in z:
        unit = np.pad(z_k / np.maximum(np.abs(z_k), 1e-30), side - step, mode="reflect")
        patches = sliding_window_view(unit, (side, side))[::step, ::step]
        spectrum = np.fft.fft2(patches)
        weight = uniform_filter(np.abs(spectrum), (1, 1, 3, 3), mode="wrap") ** alpha
        patches = np.fft.ifft2(spectrum * weight) * taper
        total = np.zeros_like(unit)
        for i, j in np.ndindex(patches.shape[:2]):
            total[i * step : i * step + side, j * step : j * step + side] += patches[i, j]
        inner = slice(side - step, -(side - step))
        results.append(total[inner, inner])
    return np.stack(results).astype(np.complex64)


def unit_phasors(z: Array) -> Array:
    """Return interferograms without their amplitudes."""
    import numpy as np

    return z / np.maximum(np.abs(z), np.float32(1e-30))


PEERS: dict[str, Callable[[Array], Array]] = {
    **{f"boxcar {side}": lambda z, side=side: boxcar(z, side) for side in WINDOWS},
    **{f"boxcar {side} of phasors": lambda z, side=side: boxcar(unit_phasors(z), side) for side in WINDOWS},
    **{f"Goldstein {alpha}": lambda z, alpha=alpha: goldstein(z, alpha) for alpha in (0.5, 1)},
}
"""Filters by name; the best one on the scenes at hand counts."""


def rms(difference: Array) -> float:
    """Return the root mean square of angles, wrapped."""
    import numpy as np

    return float(np.sqrt(np.mean(np.square(difference - 2 * pi * np.round(difference / (2 * pi))))))


def rmse(z: Array, clean: Array) -> float:
    """Return the error of the phase of interferograms, away from their borders, in radians."""
    import numpy as np

    inner = (slice(None), slice(EDGE, -EDGE), slice(EDGE, -EDGE))
    return rms(np.angle(z[inner]) - clean[inner])


def residues(z: Array) -> int:
    """Return the number of 2 x 2 loops whose phase does not close."""
    import numpy as np

    phase = np.angle(z)

    def wrapped(difference: Array) -> Array:
        result: Array = difference - 2 * pi * np.round(difference / (2 * pi))
        return result

    down, right = wrapped(np.diff(phase, axis=1)), wrapped(np.diff(phase, axis=2))
    turns = down[:, :, 1:] - down[:, :, :-1] - (right[:, 1:] - right[:, :-1])
    return int((np.abs(turns) > pi).sum())


def usual_network() -> torch.nn.Module:
    """Return a U-Net of the size that is usual for this: 64 to 512 channels, 17,262,466 weights."""
    import torch
    from torch import nn

    def double(n_in: int, n_mid: int, n_out: int) -> nn.Module:
        layers: list[nn.Module] = []
        for a, b in ((n_in, n_mid), (n_mid, n_out)):
            layers += [nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True)]
        return nn.Sequential(*layers)

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            down = (2, 64, 128, 256, 512, 512)
            self.down = nn.ModuleList(double(a, b, b) for a, b in pairwise(down))
            up = (1024, 512, 256, 128)
            self.up = nn.ModuleList(double(n, n // 2, max(n // 4, 64)) for n in up)
            self.head = nn.Conv2d(64, 2, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            skips = []
            for number, down in enumerate(self.down):
                x = down(nn.functional.max_pool2d(x, 2) if number else x)
                skips.append(x)
            skips.pop()
            for up in self.up:
                x = nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
                x = up(torch.cat([skips.pop(), x], 1))
            return nn.functional.normalize(self.head(x), dim=1)

    net = UNet().eval().to(memory_format=torch.channels_last)
    if sum(p.numel() for p in net.parameters()) != 17_262_466:
        raise ValueError
    return net
