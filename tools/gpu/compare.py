"""How results of a GPU are held against those of the CPU, and the data for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gpu.registry import expect

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


def expect_close(there: Any, here: Array, what: str, *, atol: float = 1e-5, rtol: float = 1e-5) -> float:
    """Expect values of a GPU to be those of the CPU: integers exactly, others nearly, nan in the same places.

    Returns
    -------
    float
        Largest difference.
    """
    import numpy as np

    there = on_host(there)
    expect((there.dtype, there.shape) == (here.dtype, here.shape), f"{what}: {there.dtype} {there.shape} on the GPU")
    if here.dtype.kind not in "fc":
        wrong = int((there != here).sum())
        expect(wrong == 0, f"{what}: {wrong} of {here.size} values differ")
        return 0.0
    expect(np.array_equal(np.isnan(there), np.isnan(here)), f"{what}: nan in other places")
    is_there = ~np.isnan(here)
    one, other = there[is_there], here[is_there]
    difference = float(np.abs(one - other).max(initial=0))
    expect(np.allclose(one, other, rtol=rtol, atol=atol), f"{what}: they differ by up to {difference:.2g}")
    return difference


def expect_same_phases(there: Any, here: Array, what: str) -> str:
    """Expect phases within 0.01 rad of those of the CPU, and 99 of 100 within 0.001; return a note.

    Both are unit phasors, by point. Where the two smallest eigenvalues are nearly one, the phases of a point are a
    matter of rounding: one of a thousand points may be like that.
    """
    import numpy as np

    there = on_host(there)
    expect(np.array_equal(np.isnan(there), np.isnan(here)), f"{what}: nan in other places")
    difference = np.abs(np.angle(np.where(np.isnan(here), 1, there * here.conj())))
    expect(difference.size, f"{what}: no points")
    p99, worst = float(np.quantile(difference, 0.99)), difference.max(axis=-1)
    bad = int((worst > 1e-2).sum())
    note = f"{what}: p99 {p99:.1e}, largest {worst.max():.1e} rad, {bad} of {len(worst)} points beyond 0.01"
    expect(p99 < 1e-3 and bad <= len(worst) / 1000, note)
    return note


def on_host(array: Any) -> Array:
    """Return an array as numpy's."""
    host: Array = array.get() if hasattr(array, "get") else array
    return host


def add_gaps(stack: Array) -> Array:
    """Put every kind of missing sample into the right half of a stack, in place."""
    import numpy as np

    right = stack[:, stack.shape[1] // 2 :]
    rng = np.random.default_rng(4)
    for value in (np.nan, np.inf, 0, 1e-38):
        right[rng.random(right.shape) < 0.02] = value
    right[1, 2] = np.nan
    right[3, 4] = 0
    return stack


def decorrelate(stack: Any) -> Any:
    """Give independent images, numpy or cupy, coherence of which some decays over time, in place."""
    common = stack[..., 0].copy()
    for image in range(1, stack.shape[-1]):
        stack[..., image] = 0.9 * stack[..., image - 1] + 0.436 * stack[..., image]
    stack += 0.4 * common[..., None]
    return stack


class Scene(NamedTuple):
    """A coherent stack with gaps, points in it, and their homogeneous pixels; a few points have one or none."""

    rslc: Array
    gix: Array
    is_shp: Array


def scene(side: int, n_images: int, n_points: int) -> Scene:
    """Return a scene of a square raster."""
    import numpy as np

    from moraine_core.testing.data import speckle

    rng = np.random.default_rng(5)
    place = np.sort(rng.choice(side * side, min(n_points, side * side), replace=False))
    gix = np.stack(np.divmod(place, side), axis=1).astype(np.int32)
    is_shp = rng.random((len(gix), 11, 11), dtype=np.float32) < rng.uniform(0.2, 1, (len(gix), 1, 1))
    is_shp[1::97] = False
    is_shp[2::97] = False
    is_shp[2::97, 5, 5] = True
    return Scene(add_gaps(decorrelate(speckle((side, side, n_images), seed=3))), gix, is_shp)
