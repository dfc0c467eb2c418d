"""Temporal coherence of filtered interferograms: the array function, and the command from zarr to zarr."""

from __future__ import annotations

from cmath import exp, pi
from math import inf, nan, sqrt
from weakref import WeakSet

import numpy as np
import pytest
import zarr

from moraine_core import UsageError, Workers
from moraine_core.errors import LayoutError
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_ps import _cpu, kernels
from moraine_ps.temp_coh import most_held, temp_coh
from moraine_raster.networks import TempNet

NO_DATA = [nan, complex(nan, 1), complex(1, nan), inf, complex(1, -inf), 0, 1e-31, 1e-40]
SEQUENCE = TempNet.from_bandwidth(5, 1).pairs
ANY = ((3, 0), (0, 1), (4, 2), (2, 0), (1, 3))


def filtered(rslc, pairs, noise, seed=0):
    """Return interferograms of a stack with noise of a standard deviation in radians."""
    z = np.stack([rslc[..., ref] * rslc[..., sec].conj() for ref, sec in pairs], axis=-1)
    phase = np.random.default_rng(seed).normal(size=z.shape) * noise
    return (z / np.abs(z) * np.exp(1j * phase)).astype(np.complex64)


def is_valid(value):
    return np.isfinite(value) and abs(value) >= 1e-30


def by_loops(intf, rslc, pairs, min_pairs=1):
    """Return the temporal coherence of each pixel, written as the formula is."""
    out = np.full(rslc.shape[:-1], nan)
    for pixel in np.ndindex(out.shape):
        total, count = 0j, 0
        for k, (a, b) in enumerate(pairs):
            samples = [complex(intf[pixel][k]), complex(rslc[pixel][a]).conjugate(), complex(rslc[pixel][b])]
            if all(map(is_valid, samples)):
                total += np.prod([sample / abs(sample) for sample in samples])
                count += 1
        if count >= min_pairs:
            out[pixel] = abs(total) / count
    return out


@pytest.fixture
def stack():
    """Return images and interferograms of pairs in any order, with some of every kind of missing sample."""
    rslc = speckle((9, 13, 5), seed=1)
    intf = filtered(rslc, ANY, noise=1)
    rng = np.random.default_rng(2)
    for missing in NO_DATA:
        rslc[rng.random(rslc.shape) < 0.02] = missing
        intf[rng.random(intf.shape) < 0.02] = missing
    rslc[4, 5] = 0
    return intf, rslc


@pytest.mark.parametrize("pairs", [None, SEQUENCE, ANY])
def test_interferograms_of_the_images_themselves_have_one(to_device, pairs):
    rslc = speckle((6, 5, 5), seed=3)
    intf = filtered(rslc, pairs or TempNet.from_bandwidth(5).pairs, noise=0)
    found = kernels.temp_coh(to_device(intf), to_device(rslc), image_pairs=pairs)
    assert found.dtype == np.float32
    assert found.shape == (6, 5)
    np.testing.assert_allclose(found, 1, rtol=1e-6)
    assert (found <= 1).all()


def test_one_of_three_pairs_that_is_off_by_pi_leaves_a_third(to_device):
    rslc = speckle((4, 3), seed=4)
    intf = filtered(rslc, [(0, 1), (0, 2), (1, 2)], noise=0) * np.complex64([1, -1, 1])
    np.testing.assert_allclose(kernels.temp_coh(to_device(intf), to_device(rslc)), 1 / 3, rtol=1e-6)


def test_a_constant_phase_of_all_interferograms_does_not_matter(to_device):
    rslc = speckle((30, 5), seed=5)
    intf = filtered(rslc, SEQUENCE, noise=1)
    plain, turned = (
        kernels.temp_coh(to_device(z.astype(np.complex64)), to_device(rslc), image_pairs=SEQUENCE)
        for z in (intf, intf * exp(0.7j))
    )
    np.testing.assert_allclose(turned, plain, rtol=1e-5)


@pytest.mark.parametrize("factor", [1e-25, 300, 1e20])
def test_amplitudes_do_not_matter(to_device, factor):
    rslc = speckle((30, 5), seed=6)
    intf = filtered(rslc, ANY, noise=1)
    plain, scaled = (
        kernels.temp_coh(to_device(intf * np.float32(f)), to_device(rslc * np.float32(f)), image_pairs=ANY)
        for f in (1, factor)
    )
    np.testing.assert_allclose(scaled, plain, rtol=1e-5)


@pytest.mark.parametrize(("min_pairs", "strict"), [(1, False), (4, False), (1, True), (6, False)])
def test_every_pixel_equals_plain_loops(to_device, stack, min_pairs, strict):
    """REF-BUG: a pixel with any missing sample was nan; here only where that is asked for."""
    intf, rslc = stack
    found = kernels.temp_coh(to_device(intf), to_device(rslc), image_pairs=ANY, min_pairs=min_pairs, strict=strict)
    expected = by_loops(intf, rslc, ANY, max(min_pairs, 5) if strict else min_pairs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert np.isnan(found[4, 5])
    assert np.isfinite(found).any() == (min_pairs < 6)


@pytest.mark.parametrize("missing", NO_DATA)
@pytest.mark.parametrize("where", ["intf", "rslc"])
def test_a_pair_with_a_missing_sample_does_not_count(to_device, missing, where):
    data = {"intf": np.complex64([[1, -1, 1]]), "rslc": np.ones((1, 4), np.complex64)}
    data[where][0, 1] = missing
    found = kernels.temp_coh(to_device(data["intf"]), to_device(data["rslc"]), image_pairs=[(0, 1), (0, 2), (2, 3)])
    assert found[0] == pytest.approx(1 if where == "intf" else 0, abs=1e-7)
    all_missing = np.full((1, 3), missing, np.complex64)
    assert np.isnan(kernels.temp_coh(to_device(all_missing), to_device(np.ones((1, 3), np.complex64)))[0])


@pytest.mark.parametrize(("n_pairs", "floor"), [(91, 0.093), (16, 0.22)])
def test_random_phases_have_the_noise_floor_of_theory(n_pairs, floor):
    rslc = speckle((3000, n_pairs + 1), seed=7)
    intf = speckle((3000, n_pairs), seed=8)
    found = kernels.temp_coh(intf, rslc, image_pairs=TempNet.from_bandwidth(n_pairs + 1, 1).pairs)
    assert found.mean() == pytest.approx(0.886 / sqrt(n_pairs), rel=0.03)
    assert found.mean() == pytest.approx(floor, rel=0.03)


def test_noise_lowers_it_as_theory_says():
    """The mean of exp(j psi) of a normal phase of 1 rad is exp(-1/2); of uniform noise in [-pi/2, pi/2], 2 / pi."""
    rslc = speckle((50, 400), seed=9)
    pairs = TempNet.from_bandwidth(400, 2).pairs
    found = kernels.temp_coh(filtered(rslc, pairs, noise=1), rslc, image_pairs=pairs)
    assert found.mean() == pytest.approx(np.exp(-0.5), abs=0.01)
    uniform = np.exp(1j * np.random.default_rng(10).uniform(-pi / 2, pi / 2, (50, len(pairs))))
    intf = (filtered(rslc, pairs, noise=0) * uniform).astype(np.complex64)
    assert kernels.temp_coh(intf, rslc, image_pairs=pairs).mean() == pytest.approx(2 / pi, abs=0.01)


def test_a_pixel_does_not_depend_on_others(to_device, stack):
    """A40."""
    intf, rslc = stack
    whole = kernels.temp_coh(to_device(intf), to_device(rslc), image_pairs=ANY)
    part = kernels.temp_coh(to_device(intf[2:3, 4:6].copy()), to_device(rslc[2:3, 4:6].copy()), image_pairs=ANY)
    np.testing.assert_array_equal(part, whole[2:3, 4:6])


@pytest.mark.parametrize(
    ("intf", "options", "fault"),
    [
        ((4, 9), {}, r"intf has shape \(4, 9\); expected \(4, 10\)"),
        ((3, 10), {}, r"expected \(4, 10\)"),
        ((4, 1), {"image_pairs": [(0, 5)]}, "pair 0 is"),
        ((4, 10), {"min_pairs": 0}, "min_pairs is 0; expected at least 1"),
        ((4, 0), {"image_pairs": []}, "there are no image pairs"),
    ],
)
def test_what_does_not_fit_is_refused(intf, options, fault):
    with pytest.raises(ValueError, match=fault):
        kernels.temp_coh(np.ones(intf, np.complex64), np.ones((4, 5), np.complex64), **options)


@pytest.mark.parametrize(
    ("pairs", "most"),
    [
        (SEQUENCE, 2),
        (TempNet.from_bandwidth(9, 3).pairs, 4),
        (TempNet.from_bandwidth(6).pairs, 6),
        (((0, 1), (2, 3), (4, 5)), 2),
        (((7, 2), (2, 0)), 3),
        (((3, 4), (1, 0)), 4),
        (ANY, 5),
    ],
)
def test_images_are_held_as_long_as_their_pairs_need_them(monkeypatch, pairs, most):
    """How many are held at a time is what the plan of the command says."""
    held, numbers = WeakSet(), []

    class Phasors:
        """Stands for the phasors of an image."""

    class Residuals:
        def __init__(self, shape):
            pass

        def phasors(self, plane):
            one = Phasors()
            held.add(one)
            numbers.append(len(held))
            return one

        def add(self, intf, ref, sec):
            pass

        def coherence(self, fewest):
            return fewest

    monkeypatch.setattr(_cpu, "Residuals", Residuals)
    planes = (np.ones(3, np.complex64) for _ in range(9))
    kernels.temp_coh_stream([np.ones(3, np.complex64)] * len(pairs), planes, image_pairs=pairs)
    assert max(numbers) == most == most_held(TempNet.of(pairs))


def run(folder, intf, rslc, *, stored=((4, 5, 1), (5, 6, 1)), workers=2, **options):
    """Write interferograms and images in chunks as given, run the command, and return what it wrote."""
    paths = {
        name: write_array(folder / f"{name}.zarr", array, chunks)
        for name, array, chunks in zip(("intf", "rslc"), (intf, rslc), stored, strict=True)
    }
    temp_coh(**paths, t_coh=str(folder / "t_coh.zarr"), workers=Workers(n_workers=workers), fresh=True, **options)
    return read_array(folder / "t_coh.zarr")


@pytest.mark.parametrize("options", [{}, {"min_pairs": 3}, {"strict": True}])
def test_a_raster_equals_the_array_function(tmp_path, stack, options):
    found = run(tmp_path, *stack, image_pairs=ANY, **options)
    np.testing.assert_array_equal(found, kernels.temp_coh(*stack, image_pairs=ANY, **options))
    assert open_array(tmp_path / "t_coh.zarr").chunks == (4, 5)


def test_the_result_depends_neither_on_chunks_nor_on_workers(tmp_path, stack):
    """A10."""
    whole = kernels.temp_coh(*stack, image_pairs=ANY)
    for stored in (((9, 13, 5), (9, 13, 5)), ((1, 13, 2), (4, 3, 1)), ((7, 5, 1), (2, 2, 3))):
        found = run(tmp_path, *stack, stored=stored, workers=3, image_pairs=ANY, chunks=(3, 6))
        np.testing.assert_array_equal(found, whole, err_msg=str(stored))


def test_points_give_one_value_each(tmp_path, stack):
    intf, rslc = (array.reshape(-1, 5) for array in stack)
    found = run(tmp_path, intf, rslc, stored=((50, 1), (40, 1)), image_pairs=ANY)
    np.testing.assert_array_equal(found, kernels.temp_coh(intf, rslc, image_pairs=ANY))
    assert open_array(tmp_path / "t_coh.zarr").chunks == (50,)


def test_all_pairs_are_the_default_and_a_file_names_others(tmp_path):
    rslc = speckle((6, 8, 4), seed=11)
    every = TempNet.from_bandwidth(4)
    intf = filtered(rslc, every.pairs, noise=1)
    np.testing.assert_array_equal(run(tmp_path, intf, rslc), kernels.temp_coh(intf, rslc))
    some = TempNet.from_bandwidth(4, 1)
    some.save(tmp_path / "pairs.txt")
    part = intf[..., every.index_of(some.pairs)]
    found = run(tmp_path, part, rslc, image_pairs=str(tmp_path / "pairs.txt"))
    np.testing.assert_array_equal(found, kernels.temp_coh(part, rslc, image_pairs=some.pairs))


def test_no_points_give_an_empty_output(tmp_path):
    empty = np.zeros((0, 4), np.complex64), np.zeros((0, 5), np.complex64)
    found = run(tmp_path, *empty, stored=((10, 1), (10, 1)), image_pairs=SEQUENCE)
    assert (found.shape, found.dtype) == ((0,), np.float32)


@pytest.mark.parametrize(
    ("n_pairs", "options", "fault"),
    [
        (4, {}, r"intf .*intf\.zarr has 4 pairs; expected 10, all pairs of the 5 images of rslc .*rslc\.zarr"),
        (4, {"image_pairs": [[0, 1]]}, r"intf .* has 4 pairs; expected 1, image_pairs"),
        (1, {"image_pairs": [[0, 5]]}, r"image_pairs: pair 0 is \(0, 5\); expected images 0 to 4 of rslc"),
        (2, {"image_pairs": [[0, 1], [1, 0]]}, r"image_pairs: pair 1 is \(1, 0\)"),
        (10, {"min_pairs": 0}, "min_pairs is 0; expected at least 1"),
    ],
)
def test_pairs_that_do_not_fit_are_refused(tmp_path, n_pairs, options, fault):
    with pytest.raises(UsageError, match=f"temp-coh: {fault}"):
        run(tmp_path, np.ones((6, 8, n_pairs), np.complex64), np.ones((6, 8, 5), np.complex64), **options)
    assert not (tmp_path / "t_coh.zarr").exists()


def test_a_single_image_has_no_pairs(tmp_path):
    with pytest.raises(UsageError, match=r"rslc .* has 1 images; expected at least 2, to make pairs"):
        run(tmp_path, np.ones((6, 8, 0), np.complex64), np.ones((6, 8, 1), np.complex64))


def test_images_of_another_size_are_refused(tmp_path):
    with pytest.raises(LayoutError, match=r"rslc .* has shape \(6, 7, 3\); expected width 8, as in intf"):
        run(tmp_path, np.ones((6, 8, 3), np.complex64), np.ones((6, 7, 3), np.complex64))


def test_memory_of_a_task_does_not_grow_with_the_images_of_a_sequence(tmp_path):
    sizes = []
    for images in (4, 90):
        paths = {}
        for name, axis in (("intf", images - 1), ("rslc", images)):
            paths[name] = str(tmp_path / f"{name}{images}.zarr")
            zarr.create_array(paths[name], shape=(2000, 2000, axis), chunks=(500, 500, 1), dtype="complex64")
        pairs = [[image, image + 1] for image in range(images - 1)]
        record = temp_coh(**paths, t_coh=str(tmp_path / "t_coh.zarr"), image_pairs=pairs, dry_run=True)
        sizes.append(record.plans[0]["task_bytes"])
    assert sizes[0] == sizes[1] < 500 * 500 * 8 * 12
