"""Times of the kernels on data that are on the GPU, and how busy the fused command keeps it.

The bars are those of one H200; on another GPU the numbers are for orientation.
"""

from __future__ import annotations

import ctypes
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gpu.compare import decorrelate
from gpu.registry import Setting, check, expect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

N_IMAGES = 92
HALF_WIN = 5


def held_against(bars: dict[str, tuple[float, float]], unit: str, *, at_least: bool = False) -> str:
    """Return measured values with their bars as a note; on an H200 all bars must be met."""
    import cupy

    is_h200 = b"H200" in cupy.cuda.runtime.getDeviceProperties(0)["name"]
    missed = [name for name, (value, bar) in bars.items() if (value < bar if at_least else value > bar)]
    note = ", ".join(f"{name} {value:.3g} {unit} (bar {bar:g})" for name, (value, bar) in bars.items())
    expect(not (is_h200 and missed), f"{note}: missed")
    return note


def seconds(call: Callable[[], Any], times: int = 3) -> float:
    """Return how long a call takes on the GPU, once it is compiled and memory is in the pool."""
    import cupy

    call()
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    for _ in range(times):
        call()
    cupy.cuda.Device().synchronize()
    return (time.perf_counter() - start) / times


def speckle(*shape: int) -> Any:
    """Return speckle, complex64, made on the GPU."""
    import cupy

    return cupy.random.standard_normal((*shape, 2), dtype="float32").view("complex64")[..., 0]


def free() -> None:
    """Give the memory of arrays that are gone back."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()


class Points:
    """A coherent stack, 20000 points in it whose homogeneous pixels are the whole window, and their coherence."""

    def __init__(self, setting: Setting) -> None:
        import cupy
        import numpy as np

        side = max(setting.side // 2, 12)
        rng = np.random.default_rng(1)
        place = np.sort(rng.choice(side * side, min(20 * setting.side, side * side // 2), replace=False))
        self.rslc = decorrelate(speckle(side, side, N_IMAGES))
        self.gix = cupy.asarray(np.stack(np.divmod(place, side), axis=1).astype(np.int32))
        self.is_shp = cupy.ones((len(place), 2 * HALF_WIN + 1, 2 * HALF_WIN + 1), dtype=bool)
        self.looks = cupy.full(len(place), 46.0)

    def __len__(self) -> int:
        return len(self.gix)

    @property
    def coherence(self) -> Any:
        """Coherence of all pairs, one point after another."""
        import cupy

        from moraine_ds.coherence import kernels

        return cupy.ascontiguousarray(kernels.empirical_co_pc(self.rslc, self.gix, self.is_shp))

    def microseconds(self, call: Callable[[], Any]) -> float:
        """Return the time of a call for each point."""
        return 1e6 * seconds(call) / len(self)


@check("speed: amp-disp and temp-coh, planes on the GPU")
def planes(setting: Setting) -> str:
    """Input bytes a second; temp-coh of pairs in sequence."""
    from moraine_ps import kernels

    free()
    images = [speckle(setting.side, setting.side) for _ in range(N_IMAGES)]
    nbytes = sum(image.nbytes for image in images)
    rate = nbytes / seconds(lambda: kernels.amp_disp_stream(images)) / 1e12
    pairs = [(k, k + 1) for k in range(N_IMAGES - 1)]
    other = 2 * nbytes / seconds(lambda: kernels.temp_coh_stream(images[1:], images, image_pairs=pairs)) / 1e12
    return f"{held_against({'amp-disp': (rate, 2)}, 'TB/s', at_least=True)}; temp-coh {other:.3g} TB/s"


@check("speed: shp-test with its choice, windows 11 x 11")
def shp_test(setting: Setting) -> str:
    """Sort and test."""
    from moraine_ds.homogeneity import kernels

    free()
    stack = speckle(setting.side, setting.side, N_IMAGES)
    spent = seconds(lambda: kernels.shp_test(stack, az_half_win=HALF_WIN, r_half_win=HALF_WIN))
    return held_against({"a pixel": (1e9 * spent / setting.side**2, 20)}, "ns")


@check("speed: coherence and looks of points, windows of 121 pixels")
def coherence(setting: Setting) -> str:
    """All 4186 pairs of 92 images."""
    from moraine_ds.coherence import kernels

    free()
    points = Points(setting)
    spent = points.microseconds(lambda: kernels.empirical_co_pc(points.rslc, points.gix, points.is_shp))
    looks = points.microseconds(lambda: kernels.n_looks(points.is_shp, [[0.2] * 13] * 9))
    return f"{held_against({'coherence': (spent, 0.8)}, 'us')}; looks {looks:.3g} us"


@check("speed: emi and ds-temp-coh of points")
def linking(setting: Setting) -> str:
    """With the least regularization, and with more, which is easier."""
    from moraine_ds.phase_linking import kernels
    from moraine_ds.quality.kernels import ds_temp_coh

    free()
    points = Points(setting)
    coh = points.coherence
    ph = kernels.emi(coh)
    bars = {}
    for beta in (0, 0.5):
        bars[f"emi {beta:g}"] = points.microseconds(lambda beta=beta: kernels.emi(coh, beta_min=beta)), 4
    quality = points.microseconds(lambda: ds_temp_coh(coh, ph, n_looks=points.looks))
    return f"{held_against(bars, 'us')}; ds-temp-coh {quality:.3g} us"


@check("speed: the fused step in memory")
def fused(setting: Setting) -> str:
    """Hold the default batch against the bar; others show what it costs."""
    from moraine_ds.fused import BATCH_SIZE
    from moraine_ds.fused.kernels import empirical_co_emi_temp_coh_pc as link

    free()
    points = Points(setting)
    spent = {
        size: points.microseconds(
            lambda size=size: link(points.rslc, points.gix, points.is_shp, points.looks, batch_size=size)
        )
        for size in (BATCH_SIZE, 4000, 16000)
    }
    others = ", ".join(f"{value:.3g} us in batches of {size}" for size, value in spent.items())
    return f"{held_against({'a point': (spent[BATCH_SIZE], 6)}, 'us')}: {others}"


@check("speed: the fused command keeps the GPU busy")
def busy(setting: Setting) -> str:
    """Link a million candidates in four raster chunks by a worker that has done it before."""
    import numpy as np

    from moraine_core import RunOptions, Workers
    from moraine_core.run import ExecutorPool, run_command
    from moraine_core.testing.data import write_array
    from moraine_ds.empirical_co_emi_temp_coh_pc import empirical_co_emi_temp_coh_pc

    folder = setting.folder / "busy"
    (folder / "is_shp").mkdir(parents=True)
    side, chunk = 3 * setting.side // 2, 3 * setting.side // 4
    rng = np.random.default_rng(6)
    free()
    rslc = write_array(folder / "rslc.zarr", decorrelate(speckle(side, side, N_IMAGES)).get(), (chunk, chunk, 1))
    free()
    gix = np.argwhere(rng.random((side, side)) < 0.45).astype(np.int32)
    number = gix[:, 0] // chunk * -(-side // chunk) + gix[:, 1] // chunk
    for part in np.unique(number):
        shape = (int((number == part).sum()), 2 * HALF_WIN + 1, 2 * HALF_WIN + 1)
        write_array(folder / "is_shp" / f"{part}.zarr", rng.random(shape, dtype=np.float32) < 0.8)
    outputs = {f"{name}_dir": str(folder / name) for name in ("ph", "t_coh", "t_coh_w", "n_components")}
    arguments = {
        "rslc": rslc,
        "is_shp_dir": str(folder / "is_shp"),
        "gix": write_array(folder / "gix.zarr", gix, (200_000, 2)),
        "chunks": (chunk, chunk),
        **outputs,
    }
    with ExecutorPool() as pool:
        workers, options = Workers(cuda=True, n_workers=1), RunOptions(fresh=True)
        run_command(empirical_co_emi_temp_coh_pc, arguments, workers, options, pool=pool)
        with busy_shares() as shares:
            record = run_command(empirical_co_emi_temp_coh_pc, arguments, workers, options, pool=pool)
    note = f"{len(gix)} points in {record.seconds:.1f} s"
    if not shares:
        return f"{note}; the driver does not tell how busy the GPU was"
    return f"{note}; {held_against({'busy': (100 * sum(shares) / len(shares), 70)}, '%', at_least=True)}"


@contextmanager
def busy_shares() -> Iterator[list[float]]:
    """Note, ten times a second, for which share of the last moments a kernel was running on the first GPU."""
    from moraine_core.device import driver_gpus, visible_gpus

    uuids, name = driver_gpus(), visible_gpus()[0]
    uuid = uuids[int(name)] if name.isdecimal() else name
    nvml, handle, rates = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), (ctypes.c_uint * 2)()
    nvml.nvmlInit_v2()
    nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle))
    shares: list[float] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            if nvml.nvmlDeviceGetUtilizationRates(handle, rates) == 0:
                shares.append(rates[0] / 100)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield shares
    finally:
        done.set()
        thread.join()
        nvml.nvmlShutdown()
