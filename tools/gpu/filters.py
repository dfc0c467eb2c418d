"""Checks of the learned filters: that the GPU gives what the CPU gives, and how fast it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu.compare import add_gaps, decorrelate, on_host
from gpu.registry import Setting, check, expect
from gpu.speed import free, held_against, seconds, speckle

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

CLOSE = 1e-3
"""Radians between the phases of CPU and GPU, of all samples but one of a thousand."""


def expect_close_phases(there: Any, here: Array, what: str) -> str:
    """Expect phasors as near as is promised, nan in the same places; return a note."""
    import numpy as np

    there = on_host(there)
    expect(np.array_equal(np.isnan(there), np.isnan(here)), f"{what}: nan in other places")
    apart = np.abs(np.angle(there[~np.isnan(here)] * here[~np.isnan(here)].conj()))
    p999, largest = float(np.quantile(apart, 0.999)), float(apart.max())
    note = f"{what}: p99.9 {p999:.1e}, largest {largest:.1e} rad"
    expect(p999 < CLOSE, note)
    return note


@check("filters: n2f on the GPU equals the CPU")
def n2f(setting: Setting) -> str:
    """Pairs with every kind of missing sample, our weights."""
    import cupy

    from moraine_core.testing.data import speckle as stack_of
    from moraine_filter import weights
    from moraine_filter.raster import kernels

    side = min(setting.side, 400)
    stack = add_gaps(decorrelate(stack_of((side, side + 33, 4), seed=2)))
    images = [stack[..., k] for k in range(4)]
    call: dict[str, Any] = {"image_pairs": [(0, 1), (1, 2), (0, 3)], "model": weights.packaged("n2f")}
    here = kernels.n2f(images, **call)
    there = kernels.n2f([cupy.asarray(image) for image in images], **call)
    expect(isinstance(there, cupy.ndarray), f"it returns {type(there)}")
    return expect_close_phases(there, here, f"{here.shape}")


@check("filters: n2ft on the GPU equals the CPU")
def n2ft(setting: Setting) -> str:
    """Three pairs of a cloud, our weights."""
    import numpy as np

    from moraine_core.testing.data import speckle as stack_of
    from moraine_filter import weights
    from moraine_filter.points import tasks
    from moraine_filter.points.network import graphs_of
    from moraine_filter.points.structure import cloud_of, structure_of

    n_points = 10 * setting.side
    cloud = cloud_of(*np.random.default_rng(1).random((2, n_points)))
    parts = structure_of(cloud, np.arange(n_points))
    samples = decorrelate(stack_of((n_points, 4), seed=3))
    pairs = np.array([(0, 1), (1, 2), (0, 3)])
    found = []
    for device in ("cpu", "cuda"):
        net = tasks.network(weights.packaged("n2ft"), device)
        found.append(tasks.filtered(net, graphs_of(parts, device), samples, pairs, device) @ np.array([1, 1j]))
    return expect_close_phases(found[1], found[0], f"{n_points} points")


@check("filters: n2f of 91 pairs of 981 x 4160 pixels")
def n2f_speed(setting: Setting) -> str:
    """Images that are on the GPU, in one tile."""
    from moraine_filter import weights
    from moraine_filter.raster import kernels

    nlines, width = min(981, setting.side), 4 * min(1040, setting.side)
    images = [speckle(nlines, width) for _ in range(92)]
    pairs = [(k, k + 1) for k in range(91)]
    kernels.n2f(images[:2], image_pairs=pairs[:1], model=weights.packaged("n2f"))  # kernels are chosen and loaded
    took = seconds(lambda: kernels.n2f(images, image_pairs=pairs, model=weights.packaged("n2f")), times=1)
    images.clear()
    free()
    return held_against({"n2f": (took, 10.0)}, "s")


@check("filters: n2ft, points and pairs per second")
def n2ft_speed(setting: Setting) -> str:
    """For orientation: no bar."""
    import numpy as np

    from moraine_filter import weights
    from moraine_filter.points import tasks
    from moraine_filter.points.network import graphs_of
    from moraine_filter.points.structure import cloud_of, structure_of

    n_points, n_pairs = 50 * setting.side, 16
    cloud = cloud_of(*np.random.default_rng(1).random((2, n_points)))
    graphs = graphs_of(structure_of(cloud, np.arange(n_points)), "cuda")
    samples = on_host(speckle(n_points, n_pairs + 1))
    pairs = np.array([(k, k + 1) for k in range(n_pairs)])
    net = tasks.network(weights.packaged("n2ft"), "cuda")
    took = seconds(lambda: tasks.filtered(net, graphs, samples, pairs, "cuda"), times=1)
    return f"{n_points * n_pairs / took / 1e6:.3g} million per second"
