"""Checks of the array functions on cupy arrays against numpy's; from here on this process uses the GPU itself."""

from __future__ import annotations

from typing import Any

from gpu.compare import add_gaps, expect_close, expect_same_phases, on_host, scene
from gpu.machine import map_chunks
from gpu.registry import Setting, check, expect

IMAGES = (17, 92)
"""Numbers of images of the stacks."""

SIDE = 100
"""Lines and pixels of the stacks."""


def to_gpu(*arrays: Any) -> list[Any]:
    """Return arrays on the GPU."""
    import cupy

    return [cupy.asarray(array) for array in arrays]


def scene_of(setting: Setting, n_images: int) -> Any:
    """Return a scene with 2000 points, unless everything is to be small."""
    return scene(min(SIDE, setting.side), n_images, 2 * setting.side)


# ------------------------------------------------------------------------------------------------------------------ ps


@check("kernels: amp-disp equals numpy")
def amp_disp(setting: Setting) -> str:
    """Array functions take either kind and return the same."""
    import cupy
    import numpy as np

    from moraine_core.testing.data import speckle
    from moraine_ps import kernels

    stack = add_gaps(speckle((setting.side, setting.side, 30), seed=3))
    (device,) = to_gpu(stack)
    for options in ({}, {"strict": True}, {"min_images": 20}):
        found = kernels.amp_disp(device, **options)
        expect(isinstance(found, cupy.ndarray), f"it returns {type(found)}")
        expect_close(found, kernels.amp_disp(stack, **options), str(options))
    for mine, theirs in zip(
        kernels.amplitude_sums([device[..., 0]]), kernels.amplitude_sums([stack[..., 0]]), strict=True
    ):
        expect(mine[1] == theirs[1], f"{mine[1]} valid samples instead of {theirs[1]}")
        np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-12)
    expect_close(kernels.amp_disp(device[:50].astype(np.complex128)), kernels.amp_disp(stack[:50]), "complex128")
    expect(kernels.amp_disp(device[:0]).shape == (0, setting.side), "an empty stack has another shape")
    return f"{stack.shape} with missing samples"


@check("kernels: temp-coh equals numpy")
def temp_coh(setting: Setting) -> str:
    """All pairs, and pairs in sequence."""
    import numpy as np

    from moraine_ps import kernels

    rslc = scene_of(setting, 12).rslc
    pairs = {"all": np.transpose(np.triu_indices(12, 1)), "in sequence": [(k, k + 1) for k in range(11)]}
    for name, image_pairs in pairs.items():
        noise = np.exp(1j * np.random.default_rng(1).normal(size=(*rslc.shape[:2], len(image_pairs))))
        ref, sec = np.transpose(image_pairs)
        with np.errstate(all="ignore"):
            intf = (rslc[..., ref] * rslc[..., sec].conj() * noise).astype(np.complex64)
        for strict in (False, True):
            options = {"image_pairs": image_pairs, "strict": strict}
            found = kernels.temp_coh(*to_gpu(intf, rslc), **options)
            expect_close(found, kernels.temp_coh(intf, rslc, **options), f"pairs {name}, strict {strict}")
    return f"{rslc.shape} with missing samples"


# ------------------------------------------------------------------------------------------------------------------ ds


@check("kernels: shp-test and select-shp equal numpy exactly")
def shp_test(setting: Setting) -> str:
    """Choice, counts and p values, windows with and without symmetry."""
    from moraine_ds.homogeneity import kernels

    for n_images in (*IMAGES, 300):
        rslc = scene_of(setting, n_images).rslc
        for window in ((5, 5), (2, 7)):
            options = {"az_half_win": window[0], "r_half_win": window[1]}
            plain = kernels.shp_test(*to_gpu(rslc), **options)
            here = kernels.shp_test(rslc, **options, with_pvalue=True)
            there = kernels.shp_test(*to_gpu(rslc), **options, with_pvalue=True)
            what = f"{n_images} images, {window}"
            for one, other in zip((*plain, *there), (*here[:2], *here), strict=True):
                expect_close(one, other, what)
            for one, other in zip(kernels.select_shp(there[2]), kernels.select_shp(here[2]), strict=True):
                expect_close(one, other, f"select-shp, {what}")
    return f"{rslc.shape[0] * rslc.shape[1]} pixels"


@check("kernels: coherence and looks equal numpy")
def coherence(setting: Setting) -> str:
    """All pairs and some, missing samples masked or strict."""
    from moraine_ds.coherence import kernels

    largest = 0.0
    for n_images in IMAGES:
        arrays = scene_of(setting, n_images)
        for options in ({}, {"strict": True}, {"image_pairs": [(k, k + 1) for k in range(n_images - 1)]}):
            found = kernels.empirical_co_pc(*to_gpu(*arrays), **options)
            here = kernels.empirical_co_pc(*arrays, **options)
            largest = max(largest, expect_close(found, here, f"{n_images} images, {[*options]}"))
    for rho2 in (None, [[0.3, 1, 0.3]], [[0.1, 0.02] * 6 + [0.1]] * 9):
        expect_close(kernels.n_looks(*to_gpu(arrays.is_shp), rho2), kernels.n_looks(arrays.is_shp, rho2), "looks")
    return f"{len(arrays.gix)} points; largest difference {largest:.1e}"


@check("kernels: emi equals numpy")
def emi(setting: Setting) -> str:
    """Regularize as little as needed, and more; matrices of 150 images do not fit into shared memory."""
    from moraine_ds.coherence import kernels as estimate
    from moraine_ds.phase_linking import kernels

    notes = []
    for n_images, n_points in ((2, 1), (17, 1), (92, 1), (150, 50)):
        arrays = scene_of(setting, n_images)
        coh = estimate.empirical_co_pc(arrays.rslc, arrays.gix[::n_points], arrays.is_shp[::n_points])
        for options in ({}, {"beta_min": 0.5, "ref": 1}):
            found = kernels.emi(*to_gpu(coh), **options)
            notes.append(expect_same_phases(found, kernels.emi(coh, **options), f"{n_images} images {options}"))
    return "; ".join(notes)


@check("kernels: ds-temp-coh equals numpy")
def ds_temp_coh(setting: Setting) -> str:
    """All pairs and some, with and without looks."""
    import numpy as np

    from moraine_ds.coherence import kernels as estimate
    from moraine_ds.phase_linking.kernels import emi as link
    from moraine_ds.quality import kernels

    for n_images in IMAGES:
        arrays = scene_of(setting, n_images)
        coh = np.ascontiguousarray(estimate.empirical_co_pc(*arrays))
        ph, looks = link(coh), estimate.n_looks(arrays.is_shp, None)
        columns = np.arange(0, coh.shape[1], 3)
        pairs = np.transpose(np.triu_indices(n_images, 1))[columns]
        for what, given, options in (("all", coh, {}), ("some", coh[:, columns], {"image_pairs": pairs})):
            for n_looks in (None, looks):
                there = kernels.ds_temp_coh(
                    *to_gpu(given, ph), n_looks=n_looks if n_looks is None else to_gpu(looks)[0], **options
                )
                here = kernels.ds_temp_coh(given, ph, n_looks=n_looks, **options)
                for name, one, other in zip(here._fields, there, here, strict=True):
                    expect_close(one, other, f"{name}, {n_images} images, {what} pairs", atol=1e-6, rtol=2e-5)
    return f"{len(coh)} points"


@check("kernels: the fused step equals the separate ones exactly, and numpy")
def fused(setting: Setting) -> str:
    """Batches do not matter."""
    from moraine_ds.coherence import kernels as estimate
    from moraine_ds.fused import kernels
    from moraine_ds.phase_linking.kernels import emi as link
    from moraine_ds.quality.kernels import ds_temp_coh as measure

    notes = []
    for n_images in IMAGES:
        arrays = scene_of(setting, n_images)
        looks = estimate.n_looks(arrays.is_shp, [[0.3, 1, 0.3]])
        device = to_gpu(*arrays, looks)
        there = kernels.empirical_co_emi_temp_coh_pc(*device)
        coh = estimate.empirical_co_pc(*device[:3])
        ph = link(coh)
        for what, others in (
            ("separate", (ph, *measure(coh, ph, n_looks=device[3]))),
            ("batches of 7", kernels.empirical_co_emi_temp_coh_pc(*device, batch_size=7)),
        ):
            for name, one, other in zip(there._fields, there, others, strict=True):
                expect(on_host(one).tobytes() == on_host(other).tobytes(), f"{what}: {name} of {n_images} differs")
        here = kernels.empirical_co_emi_temp_coh_pc(*arrays, looks)
        notes.append(expect_same_phases(there.ph, here.ph, f"{n_images} images"))
        for name in ("t_coh", "t_coh_w"):
            expect_close(getattr(there, name), getattr(here, name), f"{name}, {n_images} images", atol=1e-3)
        wrong = int((on_host(there.n_components) != here.n_components).sum())
        expect(wrong <= len(here.ph) / 500, f"n_components of {n_images} images: {wrong} points differ")
    return "; ".join(notes)


# ------------------------------------------------------------------------------------------------------------ executor


@check("executor: works after a GPU call in the parent process")
def after_parent(setting: Setting) -> str:
    """A18: nothing is forked, so a context in the parent does no harm."""
    import cupy

    expect(int(cupy.arange(10).sum()) == 45, "the parent's own GPU call is wrong")
    cupy.get_default_memory_pool().free_all_blocks()
    return map_chunks(setting)
