"""Coherence of points: analytic values, a plain loop in double precision beside it, and what must not matter."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_core.testing.data import speckle
from moraine_ds.coherence import _cpu, kernels
from moraine_ds.coherence.kernels import ad_intf_pc, empirical_co, empirical_co_pc, n_looks, pair_rows

nan = np.nan


def is_missing(sample):
    return not np.isfinite(sample) or abs(sample) < 1e-30


def coherence_by_loops(rslc, point, is_shp, pairs, *, strict=False):
    """Return the coherence of one point, written as the formula is, in complex128."""
    nlines, width, n_images = rslc.shape
    az_half, r_half = is_shp.shape[0] // 2, is_shp.shape[1] // 2
    rows = []
    for az in range(is_shp.shape[0]):
        for rg in range(is_shp.shape[1]):
            line, pixel = point[0] + az - az_half, point[1] + rg - r_half
            if is_shp[az, rg] and 0 <= line < nlines and 0 <= pixel < width:
                rows.append([complex(sample) for sample in rslc[line, pixel]])
    rows = [row for row in rows if not all(map(is_missing, row))]
    has_gap = [any(is_missing(row[image]) for row in rows) for image in range(n_images)]
    found = []
    for ref, sec in pairs:
        common = [row for row in rows if not is_missing(row[ref]) and not is_missing(row[sec])]
        incomplete = has_gap[ref] or has_gap[sec]
        if not rows or (incomplete and (strict or len(common) < 2)):
            found.append(complex(nan, nan))
            continue
        cross = sum(row[ref] * row[sec].conjugate() for row in common)
        power = [sum(abs(row[image]) ** 2 for row in common) for image in (ref, sec)]
        found.append(cross / np.sqrt(power[0]) / np.sqrt(power[1]))
    return found


def all_pairs(n_images):
    return [(ref, sec) for ref in range(n_images) for sec in range(ref + 1, n_images)]


def scene(n_images, n_points=40, shape=(13, 17), window=(5, 7), seed=0):
    """Return a partly coherent stack, points everywhere in it, and flags."""
    rng = np.random.default_rng(seed)
    rslc = speckle((*shape, n_images), seed) + speckle((*shape, 1), seed + 1)
    gix = np.stack([rng.integers(0, n, n_points) for n in shape], axis=1).astype(np.int32)
    return rslc, gix, rng.random((n_points, *window)) < 0.6


def window_of(samples, side=(3, 3)):
    """Return a block, its point and flags such that the first cells of the window hold rows of samples."""
    samples = np.atleast_2d(np.asarray(samples, np.complex64))
    block = np.zeros((*side, samples.shape[1]), np.complex64)
    block.reshape(-1, samples.shape[1])[: len(samples)] = samples
    flags = np.arange(side[0] * side[1]).reshape(1, *side) < len(samples)
    return block, np.array([[side[0] // 2, side[1] // 2]], np.int32), flags


def same_bits(one, two):
    return np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(two).tobytes()


# -- values that are known ---------------------------------------------------------------------------------------------


def test_one_phase_at_all_pixels_is_fully_coherent_with_the_difference_of_phases():
    theta = np.array([0.3, -1.1, 2.5, 0.0])
    coh = empirical_co_pc(*window_of(np.tile(np.exp(1j * theta), (9, 1))))
    np.testing.assert_allclose(coh[0], [np.exp(1j * (theta[i] - theta[j])) for i, j in all_pairs(4)], atol=1e-6)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [([(1, 1), (1, -1)], 0), ([(1, 1j), (1, 1j)], -1j), ([(1, 1), (1, 1), (1, -1), (1, 1)], 0.5)],
)
def test_two_images_have_the_coherence_that_is_worked_out_by_hand(rows, expected):
    np.testing.assert_allclose(empirical_co_pc(*window_of(rows)), [[expected]], atol=1e-7)


def test_a_single_homogeneous_pixel_is_fully_coherent_and_none_is_nan():
    block, gix, flags = window_of(speckle((1, 4)))
    np.testing.assert_allclose(np.abs(empirical_co_pc(block, gix, flags)), 1, atol=1e-6)
    assert np.isnan(empirical_co_pc(block, gix, np.zeros_like(flags))).all()


@pytest.mark.parametrize("n_images", [2, 3, 4, 5, 15, 16, 17, 31, 33])
def test_coherence_is_that_of_loops_for_any_number_of_images(n_images):
    rslc, gix, is_shp = scene(n_images)
    coh = empirical_co_pc(rslc, gix, is_shp)
    assert (coh.dtype, coh.shape) == (np.complex64, (40, n_images * (n_images - 1) // 2))
    for point in range(40):
        expected = coherence_by_loops(rslc, gix[point], is_shp[point], all_pairs(n_images))
        np.testing.assert_allclose(coh[point], expected, atol=1e-6)


@pytest.mark.parametrize("window", [(1, 1), (1, 5), (21, 1), (11, 11), (21, 33)])
def test_coherence_is_that_of_loops_for_any_window_also_beyond_the_raster(window):
    rslc, gix, _ = scene(4, n_points=12)
    is_shp = np.ones((12, *window), bool)
    coh = empirical_co_pc(rslc, gix, is_shp)
    for point in range(12):
        expected = coherence_by_loops(rslc, gix[point], is_shp[point], all_pairs(4))
        np.testing.assert_allclose(coh[point], expected, atol=1e-6)


def test_the_squared_coherence_of_noise_is_one_over_the_number_of_looks():
    """E |gamma|^2 = 1 / L for L independent looks."""
    n_points, looks = 2000, 9
    rslc = speckle((3 * n_points, 3, 4), seed=3)
    gix = np.stack([np.arange(n_points) * 3 + 1, np.ones(n_points, int)], axis=1)
    squared = np.abs(empirical_co_pc(rslc, gix, np.ones((n_points, 3, 3), bool))) ** 2
    # |gamma|^2 of noise has the beta distribution (1, L - 1); its standard deviation is about 1 / L
    assert squared.mean() == pytest.approx(1 / looks, abs=4 / looks / np.sqrt(squared.size))


# -- what must not matter ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e-20, 3e-12, 7.0, 1e18])
def test_the_unit_of_an_image_does_not_matter(factor):
    """Amplitudes whose squares float32 cannot hold are as good as any."""
    rslc, gix, is_shp = scene(5)
    scaled = rslc.copy()
    scaled[:, :, 2] *= np.float32(factor)
    np.testing.assert_allclose(empirical_co_pc(scaled, gix, is_shp), empirical_co_pc(rslc, gix, is_shp), atol=5e-7)


def test_points_do_not_know_of_each_other():
    """A40: in any order, alone or together, a point has the same bits."""
    rslc, gix, is_shp = scene(18)
    coh = empirical_co_pc(rslc, gix, is_shp)
    order = np.random.default_rng(1).permutation(len(gix))
    assert same_bits(empirical_co_pc(rslc, gix[order], is_shp[order]), coh[order])
    assert same_bits(empirical_co_pc(rslc, gix[7:8], is_shp[7:8]), coh[7:8])


def test_a_pixel_changes_only_the_points_that_it_is_homogeneous_with():
    """A40: changing pixel A leaves point B bit-equal."""
    rslc, gix, is_shp = scene(6, n_points=200)
    coh = empirical_co_pc(rslc, gix, is_shp)
    changed = rslc.copy()
    changed[6, 8] = speckle((6,), seed=9)
    again = empirical_co_pc(changed, gix, is_shp)
    cell = np.array([6, 8]) - gix + np.array([2, 3])
    inside = ((cell >= 0) & (cell < (5, 7))).all(axis=1)
    uses = np.array([inside[k] and is_shp[k, cell[k, 0], cell[k, 1]] for k in range(len(gix))])
    assert 0 < uses.sum() < len(gix)
    assert same_bits(again[~uses], coh[~uses])
    assert (again[uses] != coh[uses]).any(axis=1).all()


def test_a_block_of_the_stack_gives_the_same_bits_as_the_whole():
    rslc, gix, is_shp = scene(7)
    inner = (gix[:, 0] >= 4) & (gix[:, 0] < 9)
    block = empirical_co_pc(rslc[2:11], gix[inner] - np.array([2, 0]), is_shp[inner])
    assert same_bits(block, empirical_co_pc(rslc, gix, is_shp)[inner])


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_part_of_the_pairs_gives_the_columns_of_all(data):
    n_images = data.draw(st.sampled_from([3, 9, 20, 35]))
    whole = all_pairs(n_images)
    chosen = sorted(data.draw(st.sets(st.integers(0, len(whole) - 1), min_size=1, max_size=60)))
    rslc, gix, is_shp = scene(n_images, n_points=4)
    rslc[5:8, 6:10, 1] = nan
    some = empirical_co_pc(rslc, gix, is_shp, [whole[k] for k in chosen])
    assert same_bits(some, empirical_co_pc(rslc, gix, is_shp)[:, chosen])


def test_other_dtypes_and_memory_orders_are_taken():
    rslc, gix, is_shp = scene(4)
    coh = empirical_co_pc(rslc, gix, is_shp)
    assert same_bits(empirical_co_pc(np.asfortranarray(rslc), gix.astype(np.uint8), is_shp[:, ::-1][:, ::-1]), coh)
    rslc.flags.writeable = gix.flags.writeable = is_shp.flags.writeable = False
    assert same_bits(empirical_co_pc(rslc.astype(np.complex128), gix.astype(np.int64), is_shp), coh)


# -- missing samples ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [nan, complex(1, nan), 0, 1e-31, np.inf, complex(0, -np.inf)])
@pytest.mark.parametrize("strict", [False, True])
def test_a_missing_sample_counts_in_none_of_its_pairs(missing, strict):
    rslc, gix, is_shp = scene(5)
    rng = np.random.default_rng(2)
    rslc[:5][rng.random((5, 17, 5)) < 0.2] = missing
    rslc[:, :9, 3] = missing
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coh = empirical_co_pc(rslc, gix, is_shp, strict=strict)
    for point in range(len(gix)):
        expected = coherence_by_loops(rslc, gix[point], is_shp[point], all_pairs(5), strict=strict)
        np.testing.assert_allclose(coh[point], expected, atol=1e-6)
    assert np.isnan(coh).any()
    assert not np.isnan(coh).all()


def test_a_pair_needs_two_common_samples_where_some_are_missing():
    rows = [(1, 1j, nan), (1, nan, 1), (nan, 1, 1), (2, 2j, nan)]
    coh = empirical_co_pc(*window_of(rows))
    np.testing.assert_allclose(coh, [[-1j, nan, nan]], atol=1e-7)
    assert np.isnan(empirical_co_pc(*window_of(rows), strict=True)).all()


def test_a_point_with_a_missing_pixel_of_its_own_still_has_coherence():
    """A39: missing samples do not spread to valid neighbors."""
    rslc, _, _ = scene(4)
    rslc[6, 8] = nan
    gix, flags = np.array([[6, 8], [6, 9]]), np.ones((2, 3, 3), bool)
    coh = empirical_co_pc(rslc, gix, flags)
    without = flags.copy()
    without[0, 1, 1] = without[1, 1, 0] = False
    assert same_bits(coh, empirical_co_pc(rslc, gix, without))
    assert np.isfinite(coh).all()


def test_shifted_footprints_leave_each_pair_what_both_images_see():
    """A37: at the edges pairs are of the common pixels; strict keeps only points that all images see."""
    rslc = scene(4, shape=(12, 30))[0]
    for image in range(4):
        rslc[:, : 5 * image, image] = nan
    gix = np.array([[6, pixel] for pixel in range(30)])
    flags = np.ones((30, 3, 3), bool)
    coh, strict = (empirical_co_pc(rslc, gix, flags, strict=strict) for strict in (False, True))
    for column, (ref, sec) in enumerate(all_pairs(4)):
        # two pixels of a line, in three lines, are enough; the window reaches one pixel into the footprint
        np.testing.assert_array_equal(np.isnan(coh[:, column]), np.arange(30) < 5 * max(ref, sec) - 1)
        np.testing.assert_array_equal(np.isnan(strict[:, column]), np.arange(30) < 5 * max(ref, sec) + 1)
    everywhere = np.arange(30) >= 16
    assert same_bits(coh[everywhere], strict[everywhere])


def test_an_image_without_any_sample_is_nan_in_its_pairs_only():
    rslc, gix, is_shp = scene(3)
    rslc[:, :, 1] = 0
    coh = empirical_co_pc(rslc, gix, is_shp)
    assert np.isnan(coh[:, [0, 2]]).all()
    assert same_bits(coh[:, 1], empirical_co_pc(rslc[:, :, [0, 2]], gix, is_shp)[:, 0])


# -- errors and empty input --------------------------------------------------------------------------------------------


def test_no_points_and_no_pairs_are_empty_results():
    rslc, gix, is_shp = scene(4)
    assert empirical_co_pc(rslc, gix[:0], is_shp[:0]).shape == (0, 6)
    assert empirical_co_pc(rslc, gix, is_shp, []).shape == (40, 0)
    assert empirical_co_pc(rslc[:, :, :1], gix, is_shp).shape == (40, 0)


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([(1, 0)], r"pair 0 is \(1, 0\); expected the earlier image first"),
        ([(0, 4)], r"pair 0 is \(0, 4\)"),
        ([(-1, 2)], r"pair 0 is \(-1, 2\)"),
        ([(0, 2), (0, 1)], r"pair 1 is \(0, 1\), after \(0, 2\)"),
        ([(0, 2), (0, 2)], r"pair 1 is \(0, 2\), the images of pair 0"),
    ],
)
def test_pairs_that_are_not_sorted_or_not_of_the_stack_are_named(pairs, text):
    with pytest.raises(ValueError, match=text):
        empirical_co_pc(*scene(4), pairs)


def test_shapes_that_do_not_fit_are_named():
    rslc, gix, is_shp = scene(4)
    with pytest.raises(ValueError, match=r"expected \(nlines, width, nimages\)"):
        empirical_co_pc(rslc[0], gix, is_shp)
    with pytest.raises(ValueError, match=r"expected integers \(n_points, 2\)"):
        empirical_co_pc(rslc, gix.astype(float), is_shp)
    with pytest.raises(ValueError, match=r"expected bool \(40, az_win, r_win\) with odd windows"):
        empirical_co_pc(rslc, gix, is_shp[:, :4])
    with pytest.raises(ValueError, match=r"expected bool \(40, az_win"):
        empirical_co_pc(rslc, gix, is_shp[:-1])
    gix[7] = (3, 17)
    with pytest.raises(ValueError, match=r"row 7 is \(azimuth, range\) = \(3, 17\), outside \(13, 17\)"):
        empirical_co_pc(rslc, gix, is_shp)


# -- one pair, one point, every pixel ----------------------------------------------------------------------------------


def test_one_pair_of_images_is_the_column_of_the_stack():
    rslc, gix, is_shp = scene(4)
    rslc[3, 4:8, 2] = nan
    column = all_pairs(4).index((1, 2))
    one = ad_intf_pc(rslc[:, :, 1], rslc[:, :, 2], gix, is_shp)
    np.testing.assert_allclose(one, empirical_co_pc(rslc, gix, is_shp)[:, column], atol=1e-6)


def test_one_point_is_computed_in_a_workspace_that_is_used_again():
    """The door for kernels that go on with the coherence of a point at once."""
    rslc, gix, is_shp = scene(19)
    rslc[5:7, :, 3] = nan
    first, sec = pair_rows(all_pairs(19), 19)
    work = _cpu.workspace(is_shp[0].size, 19)
    out = np.empty(len(sec), np.complex64)
    coh = empirical_co_pc(rslc, gix, is_shp)
    for point in range(len(gix)):
        n = _cpu.coherence_of_point(rslc, *gix[point], is_shp[point], first, sec, False, work, out)
        assert same_bits(out, coh[point])
        rows = np.arange(-2, 3)[:, None] + gix[point, 0]
        columns = np.arange(-3, 4) + gix[point, 1]
        assert n == (is_shp[point] & (rows >= 0) & (rows < 13) & (columns >= 0) & (columns < 17)).sum()


def test_matrices_of_every_pixel_are_covariance_and_coherence():
    rslc, _, _ = scene(3, shape=(6, 5))
    flags = np.random.default_rng(3).random((6, 5, 3, 3)) < 0.7
    covariance, coherence = empirical_co(rslc, flags)
    assert covariance.shape == coherence.shape == (6, 5, 3, 3)
    for line in range(6):
        for pixel in range(5):
            window = [
                rslc[line + az, pixel + rg]
                for az in (-1, 0, 1)
                for rg in (-1, 0, 1)
                if 0 <= line + az < 6 and 0 <= pixel + rg < 5 and flags[line, pixel, az + 1, rg + 1]
            ]
            samples = np.array(window, np.complex128)
            expected = samples.T @ samples.conj() / len(samples)
            np.testing.assert_allclose(covariance[line, pixel], expected, atol=1e-5)
            root = np.sqrt(expected.diagonal().real)
            np.testing.assert_allclose(coherence[line, pixel], expected / np.outer(root, root), atol=1e-6)


# -- looks -------------------------------------------------------------------------------------------------------------


def correlation(az=(1.0,), rg=(1.0,)):
    """Return a table that is a product of one correlation in azimuth and one in range."""
    table = np.zeros((9, 13))
    a, r = len(az) // 2, len(rg) // 2
    table[4 - a : 5 + a, 6 - r : 7 + r] = np.outer(az, rg)
    return table


def looks_by_loops(flags, table):
    cells = np.argwhere(flags)
    total = 0.0
    for p in cells:
        for q in cells:
            az, rg = q - p + (table.shape[0] // 2, table.shape[1] // 2)
            if 0 <= az < table.shape[0] and 0 <= rg < table.shape[1]:
                total += max(table[az, rg], 0)
    return len(cells) ** 2 / total if len(cells) else 0


NEXT_PIXEL = correlation(rg=(0.25, 1, 0.25))
BOTH = correlation((0.05, 0.41, 1, 0.41, 0.05), (0.02, 0.185, 1, 0.185, 0.02))


@pytest.mark.parametrize(
    ("row", "expected"), [((1, 1, 0), 1.6), ((1, 0, 1), 2.0), ((1, 1, 1), 2.25), ((0, 1, 0), 1), ((0, 0, 0), 0)]
)
def test_neighbors_that_are_correlated_are_worth_less(row, expected):
    np.testing.assert_allclose(n_looks(np.array([[row]], bool), NEXT_PIXEL), expected, rtol=1e-6)


def test_looks_of_whole_and_scattered_windows():
    assert BOTH.sum() == pytest.approx(2.7072)
    whole, scattered = np.ones((1, 11, 11), bool), np.zeros((1, 11, 11), bool)
    scattered[0, ::2, ::2] = True
    np.testing.assert_allclose(n_looks(np.ones((1, 5, 5), bool), NEXT_PIXEL), 17.857143, rtol=1e-6)
    np.testing.assert_allclose(n_looks(whole, BOTH), 48.3671, rtol=1e-6)
    np.testing.assert_allclose(n_looks(scattered, BOTH), 32.1588, rtol=1e-6)


def test_white_speckle_and_an_unknown_correlation_leave_all_pixels():
    flags = np.random.default_rng(4).random((50, 5, 7)) < 0.5
    for table in (None, correlation(), -correlation(rg=(1, 1, 1))):
        np.testing.assert_array_equal(n_looks(flags, table), flags.sum(axis=(1, 2)))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_looks_are_those_of_a_loop_over_all_pairs_of_pixels(data):
    side = st.integers(1, 9).map(lambda n: 2 * n - 1)
    window = data.draw(side), data.draw(st.one_of(side, st.sampled_from([63, 65, 131])))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    flags = rng.random((1, *window)) < data.draw(st.sampled_from([0.1, 0.5, 1.0])) / (1 + window[1] // 40)
    table = rng.random((2 * data.draw(st.integers(0, 4)) + 1, 2 * data.draw(st.integers(0, 6)) + 1)) - 0.3
    table = (table + table[::-1, ::-1]) / 2
    table[table.shape[0] // 2, table.shape[1] // 2] = 1
    np.testing.assert_allclose(n_looks(flags, table), looks_by_loops(flags[0], table), rtol=1e-6)


def test_a_table_with_an_even_side_or_nan_is_refused():
    with pytest.raises(ValueError, match="two odd sides"):
        n_looks(np.ones((1, 3, 3), bool), np.ones((2, 3)))
    with pytest.raises(ValueError, match="nan"):
        n_looks(np.ones((1, 3, 3), bool), np.full((3, 3), nan))


def test_no_array_function_loads_a_gpu_library():
    assert kernels._side(np.zeros(1)) is _cpu
    assert "cupy" not in sys.modules
