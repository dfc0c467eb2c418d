"""Kernels of scatterers and phase linking on two cores, against the public package moraine 0.9.0 on the same data."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import Row, in_turn, seconds
from peer import started

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    import numpy as np

    Array = np.ndarray[Any, Any]

THREADS = 2
HALF = 5
PATCH = 9
FEWEST = 20
PEER = "moraine==0.9.0"


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--science-side", type=int, default=512, help="lines and pixels of the stack (pixels)")
    parser.add_argument("--ds-points", type=int, default=20_000, help="points of phase linking (points)")
    parser.add_argument("--science-runs", type=int, default=3, help="pairs of runs (count)")
    parser.add_argument("--peer", type=Path, help="Python with the peer installed; by default one is made, and goes")


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure."""
    import numpy as np

    size = f"{chosen.science_side} x {chosen.science_side} x 30"
    with tempfile.TemporaryDirectory(prefix="moraine-bench-", dir=Path(__file__).parents[3]) as name:
        folder = Path(name)
        data = _data(folder, chosen)
        with started("science_peer.py", folder, [PEER], chosen.peer) as ask:
            for kernel, bar, words in (
                ("amp-disp", 0.7, f"amp-disp of {size}"),
                ("shp-test", 0.3, f"SHP test 11 x 11 with selection of {size}"),
                ("coherence30", 0.25, f"coherence of {chosen.ds_points:,} points, 30 images"),
                ("coherence92", 0.15, f"coherence of {chosen.ds_points:,} points, 92 images"),
                ("emi30", 0.2, f"EMI of {chosen.ds_points:,} points, 30 images"),
                ("emi92", 0.3, f"EMI of {chosen.ds_points:,} points, 92 images"),
                ("ds-temp-coh30", 1.0, "temporal coherence, ours weighted with components, 30 images"),
                ("ds-temp-coh92", 1.0, "temporal coherence, ours weighted with components, 92 images"),
            ):
                ours = _ours(kernel, data)
                times = in_turn(lambda call=ours: seconds(call), lambda name=kernel: ask(name), chosen.science_runs)
                yield Row(f"{words}, against {PEER}", *times, "s", bar)
                if kernel.startswith("emi"):
                    errors = [np.sqrt(np.nanmean(np.angle(ph) ** 2)) for ph in (ours(), _kept(folder, kernel))]
                    yield Row(f"phase error of {words}, against {PEER}", [errors[0]], [errors[1]], "rad")
        copied = [seconds(lambda: _halves(np.copy, data["stack"])) for _ in range(5)]
        once = [seconds(_ours("amp-disp", data)) for _ in range(5)]
        yield Row(f"amp-disp of {size} against copying it", once, copied, "s", 2.0)


def _data(folder: Path, chosen: argparse.Namespace) -> dict[str, Array]:
    """Make stacks of patches of homogeneous ground, and what each kernel takes; all is written for the peer too."""
    import numpy as np

    from moraine_ds.coherence.kernels import empirical_co_pc
    from moraine_ds.homogeneity.kernels import shp_test
    from moraine_ds.phase_linking.kernels import emi

    rng = np.random.default_rng(1)
    data = {"stack": _stack((chosen.science_side, chosen.science_side), 30, rng)}
    side = int(chosen.ds_points**0.5 * 1.3) + 2 * HALF
    slc = {n_images: _stack((side, side), n_images, rng) for n_images in (30, 92)}
    is_shp, shp_num = shp_test(slc[30], az_half_win=HALF, r_half_win=HALF)
    candidates = np.argwhere(shp_num >= FEWEST)  # with a single neighbor the peer meets a singular matrix and stops
    chosen_ones = np.sort(rng.permutation(len(candidates))[: chosen.ds_points])
    data["gix"] = candidates[chosen_ones].astype(np.int32)
    data["is_shp"] = is_shp[data["gix"][:, 0], data["gix"][:, 1]]
    for n_images, images in slc.items():
        # row after row, as both read it from disk
        coh = np.ascontiguousarray(empirical_co_pc(images, data["gix"], data["is_shp"]))
        data |= {f"slc{n_images}": images, f"coh{n_images}": coh, f"ph{n_images}": emi(coh)}
    for name, values in data.items():
        np.save(folder / f"{name}.npy", values)
    return data


def _stack(shape: tuple[int, int], n_images: int, rng: np.random.Generator) -> Array:
    """Return speckle of patches of different power, whose coherence decays to a part that stays; true phases are 0."""
    import numpy as np

    distance = np.abs(np.subtract.outer(np.arange(n_images), np.arange(n_images)))
    coherence = 0.3 + 0.4 * np.exp(-distance / 10)
    np.fill_diagonal(coherence, 1)
    factor = np.linalg.cholesky(coherence).astype(np.float32)
    power = rng.gamma(2, size=(-(-shape[0] // PATCH), -(-shape[1] // PATCH))).astype(np.float32)
    power = power.repeat(PATCH, 0).repeat(PATCH, 1)[: shape[0], : shape[1]]
    noise = rng.standard_normal((2, *shape, n_images), dtype=np.float32)
    stack: Array = (noise[0] + 1j * noise[1]) @ factor.T * np.sqrt(power)[..., None]
    return stack.astype(np.complex64)


def _ours(kernel: str, data: dict[str, Array]) -> Callable[[], Any]:
    """Return the call of one of our kernels, its input cut in as many parts as there are threads."""
    import numpy as np

    from moraine_ds.coherence.kernels import empirical_co_pc
    from moraine_ds.homogeneity.kernels import shp_test
    from moraine_ds.phase_linking.kernels import emi
    from moraine_ds.quality.kernels import ds_temp_coh
    from moraine_ps.kernels import amp_disp

    n_images = kernel[-2:]
    if kernel == "amp-disp":
        return lambda: _halves(amp_disp, data["stack"])
    if kernel == "shp-test":
        stack, middle = data["stack"], data["stack"].shape[0] // 2
        with_halo = [stack[: middle + HALF], stack[middle - HALF :]]
        return lambda: _each(lambda part: shp_test(part, az_half_win=HALF, r_half_win=HALF), with_halo)
    slc, coh, ph = (data.get(f"{kind}{n_images}") for kind in ("slc", "coh", "ph"))
    if kernel.startswith("coherence"):
        return lambda: _halves(lambda gix, is_shp: empirical_co_pc(slc, gix, is_shp), data["gix"], data["is_shp"])
    if kernel.startswith("emi"):
        return lambda: np.concatenate(_halves(emi, coh))
    looks = np.full(len(data["gix"]), 40, np.float32)
    return lambda: _halves(lambda c, p, n: ds_temp_coh(c, p, n_looks=n), coh, ph, looks)


def _halves(kernel: Callable[..., Any], *arrays: Any) -> list[Any]:
    middle = len(arrays[0]) // 2
    parts = [tuple(array[part] for array in arrays) for part in (slice(middle), slice(middle, None))]
    return _each(lambda part: kernel(*part), parts)


def _each(work: Callable[[Any], Any], parts: list[Any]) -> list[Any]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, parts))


def _kept(folder: Path, kernel: str) -> Any:
    import numpy as np

    return np.load(folder / f"peer_{kernel}.npy")
