"""The array functions of homogeneous pixels, against a plain loop, scipy, published tables and what theory says."""

from __future__ import annotations

from itertools import product
from math import comb, exp, inf, isfinite, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import kolmogorov
from scipy.stats import ks_2samp

from moraine_core.testing.data import speckle
from moraine_ds.homogeneity import _cpu, ks
from moraine_ds.homogeneity.kernels import (
    ks_limits,
    ks_pvalue,
    ks_threshold,
    select_shp,
    shp_test,
    shp_test_stream,
    sorted_amplitudes,
)

HALF = {"az_half_win": 1, "r_half_win": 2}

THRESHOLDS = {
    5: (4, 3, 3, 3),
    10: (6, 5, 5, 4),
    15: (8, 7, 6, 5),
    17: (9, 7, 6, 5),
    30: (12, 10, 9, 8),
    46: (15, 12, 11, 9),
    92: (21, 18, 16, 14),
}
"""Largest distance in samples that is not significant at 0.01, 0.05, 0.1 and 0.2."""

P_OF_5 = (1, 0.999622, 0.697405, 0.208985, 0.036146, 0.003781)
P_OF_17 = (1, 1, 0.999448, 0.930310, 0.672504, 0.387390, 0.190008, 0.081302, 0.030503, 0.010041, 0.002900, 0.000735)


def series(*values):
    """Return one pixel with given amplitudes."""
    return (np.array(values) * np.exp(0.7j)).astype(np.complex64)


def valid(pixel):
    """Return the valid amplitudes of a pixel, rounded to float32 as the test compares them."""
    samples = [abs(complex(sample)) for sample in pixel]
    return [float(np.float32(a)) for a in samples if isfinite(a) and a >= np.float32(1e-30)]


def p_of(x, y):
    """Compute the p value of two samples the plain way: counts at every value, and the sum with many terms."""
    d = max(abs(sum(a <= v for a in x) / len(x) - sum(a <= v for a in y) / len(y)) for v in (*x, *y))
    s = sqrt(len(x) * len(y) / (len(x) + len(y)))
    scaled = (s + 0.12 + 0.11 / s) * d
    if scaled < 0.2:
        return 1.0
    return 2 * sum((-1) ** (i - 1) * exp(-2 * (i * scaled) ** 2) for i in range(1, 60))


def plain(stack, az_half_win, r_half_win, alpha, fewest):
    """Test a stack pixel by pixel; returns is_shp and p values."""
    nlines, width, _ = stack.shape
    amplitudes = [[valid(pixel) for pixel in line] for line in stack]
    p = np.full((nlines, width, 2 * az_half_win + 1, 2 * r_half_win + 1), nan)
    for line, pixel in product(range(nlines), range(width)):
        for az, r in product(range(-az_half_win, az_half_win + 1), range(-r_half_win, r_half_win + 1)):
            if 0 <= line + az < nlines and 0 <= pixel + r < width:
                x, y = amplitudes[line][pixel], amplitudes[line + az][pixel + r]
                if min(len(x), len(y)) >= fewest:
                    p[line, pixel, az + az_half_win, r + r_half_win] = p_of(x, y)
    return p >= alpha, p


def mixed(shape, seed):
    """Return fields of different brightness with missing samples of every kind, and ties."""
    stack = speckle(shape, seed)
    stack[:, shape[1] // 2 :] *= 2.5
    stack[::2] = np.round(8 * np.abs(stack[::2])) / 8  # many equal amplitudes, zeros among them
    rng = np.random.default_rng(seed)
    for missing in (nan, complex(1, nan), inf, 0, 1e-38):
        stack[rng.random(shape) < 0.02] = missing
    stack[1, 1] = nan
    return stack


# -- the formula -------------------------------------------------------------------------------------------------------


def test_thresholds_are_those_of_the_table():
    for n, ks_of_levels in THRESHOLDS.items():
        assert tuple(ks_threshold(n, alpha) for alpha in (0.01, 0.05, 0.1, 0.2)) == ks_of_levels, n


@pytest.mark.parametrize(("n", "table"), [(5, P_OF_5), (17, P_OF_17)])
def test_p_values_are_those_of_the_table(n, table):
    found = ks_pvalue(np.arange(len(table)) * n, n, n)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, table, atol=6e-7)


@pytest.mark.parametrize(
    ("n", "p_at", "p_above"), [(10, 0.110840, 0.031047), (46, 0.072316, 0.040639), (92, 0.051227, 0.033710)]
)
def test_p_values_on_both_sides_of_the_threshold(n, p_at, p_above):
    k = ks_threshold(n, 0.05)
    np.testing.assert_allclose(ks_pvalue(np.array([k, k + 1]) * n, n, n), [p_at, p_above], atol=6e-7)


def test_the_distribution_is_that_of_scipy():
    x = np.concatenate([np.linspace(0, 6, 3001), [1.18, np.nextafter(1.18, 0), 0.05]])
    np.testing.assert_allclose([ks.kolmogorov(one) for one in x], kolmogorov(x), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose([_cpu.kolmogorov(one) for one in x], kolmogorov(x), rtol=1e-12, atol=1e-15)


def test_two_images_never_differ_significantly_which_is_why_they_are_refused():
    assert ks_threshold(2, 0.05) == 2
    assert ks_threshold(3, 0.05) == 2


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.3, float(ks_pvalue(np.array([7 * 17]), 17, 17)[0])])
def test_limits_of_unequal_series_are_where_p_passes_alpha(alpha):
    """The last alpha is itself a p value: at least alpha is homogeneous."""
    limits = ks_limits(17, alpha)
    for n_x, n_y in product(range(1, 18), repeat=2):
        at, above = ks_pvalue(np.array([limits[n_x, n_y], limits[n_x, n_y] + 1]), n_x, n_y)
        assert at >= np.float32(alpha)
        assert above < np.float32(alpha) or limits[n_x, n_y] == n_x * n_y


@pytest.mark.parametrize("alpha", [0, 1, -0.1, nan])
def test_a_level_that_is_none_is_refused(alpha):
    for function in (lambda: ks_threshold(9, alpha), lambda: select_shp(np.ones((1, 1, 1), np.float32), alpha=alpha)):
        with pytest.raises(ValueError, match=r"alpha is .*; expected a level between 0 and 1"):
            function()


# -- the distance of two series ----------------------------------------------------------------------------------------

samples = st.lists(st.sampled_from([1.0, 1.5, 2.0, 2.5, 3.0, 7.0]), min_size=3, max_size=9)


def pair(x, y, n_images, **options):
    """Test two pixels side by side; returns whether they are homogeneous, and the p value if there is one."""
    stack = np.full((1, 2, n_images), nan, np.complex64)
    stack[0, 0, : len(x)], stack[0, 1, n_images - len(y) :] = x, y
    found = shp_test(stack, az_half_win=0, r_half_win=1, min_images=3, **options)
    for one in (found[0], *found[2:]):
        assert one[0, 0, 0, 2] == one[0, 1, 0, 0], "the test is symmetric"
    return [one[0, 0, 0, 2] for one in (found[0], *found[2:])]


@given(samples, samples, st.sampled_from([0.05, 0.2, 0.5, 0.9]))
@settings(max_examples=150, deadline=None)
def test_any_two_series_give_the_distance_of_scipy(x, y, alpha):
    """Ties, unequal lengths and missing samples included."""
    statistic = ks_2samp(x, y, method="asymp").statistic
    n_x, n_y = len(x), len(y)
    expected = ks_pvalue(np.array([round(statistic * n_x * n_y)]), n_x, n_y)[0]
    assert round(statistic * n_x * n_y) == pytest.approx(statistic * n_x * n_y, abs=1e-7)
    is_shp, p = pair(x, y, 9, alpha=alpha, with_pvalue=True)
    assert p == expected
    assert is_shp == (expected >= np.float32(alpha))
    assert pair(x, y, 9, alpha=alpha) == [is_shp]


@given(st.integers(3, 40), st.integers(0, 10_000), st.sampled_from([0.02, 0.05, 0.3, 0.7]))
@settings(max_examples=60, deadline=None)
def test_the_quick_way_of_full_series_decides_as_p_values_do(n_images, seed, alpha):
    """It only compares samples that are k places apart."""
    rng = np.random.default_rng(seed)
    levels = rng.integers(2, 50)
    stack = (rng.integers(1, levels, (4, 300, n_images)) + rng.integers(0, levels // 2 + 1, (4, 300, 1))).astype("c8")
    quick = shp_test(stack, **HALF, alpha=alpha)
    full = shp_test(stack, **HALF, alpha=alpha, with_pvalue=True)
    np.testing.assert_array_equal(quick[0], full[0])
    np.testing.assert_array_equal(quick[1], full[1])


def test_identical_series_have_p_1_and_apart_ranges_the_least():
    assert pair([1, 2, 3, 4, 5], [5, 4, 3, 2, 1], 5, with_pvalue=True) == [True, 1]
    is_shp, p = pair([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 5, with_pvalue=True)
    assert not is_shp
    assert p == pytest.approx(P_OF_5[5], abs=1e-6)


def test_equal_values_in_series_of_unequal_length_are_no_distance():
    """Counting must step over all equal values before it compares."""
    assert pair([2, 2, 2], [2, 2, 2, 2], 6, with_pvalue=True) == [True, 1]


# -- whole windows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "min_images"), [(0.05, None), (0.3, 4), (0.3, 12)])
def test_every_window_equals_the_plain_loop(alpha, min_images):
    """A40, and A37: where images are missing, each pixel is compared by those it has."""
    stack = mixed((7, 9, 12), seed=4)
    expected, p = plain(stack, 1, 2, alpha, min_images or 6)
    is_shp, shp_num, pvalue = shp_test(stack, **HALF, alpha=alpha, min_images=min_images, with_pvalue=True)
    assert (is_shp.dtype, shp_num.dtype, pvalue.dtype) == (bool, np.int32, np.float32)
    assert is_shp.shape == pvalue.shape == (7, 9, 3, 5)
    np.testing.assert_allclose(pvalue, p, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(is_shp, expected)
    np.testing.assert_array_equal(shp_num, expected.sum(axis=(2, 3)))
    assert 0 < is_shp.mean() < 0.9
    without = shp_test(stack, **HALF, alpha=alpha, min_images=min_images)
    np.testing.assert_array_equal(without[0], is_shp)
    np.testing.assert_array_equal(without[1], shp_num)


def test_a_raster_wider_than_a_strip_equals_the_plain_loop_on_its_seams():
    stack = speckle((3, 2 * _cpu.STRIP + 7, 9), seed=5) * np.float32(1 + np.arange(9))
    stack[1, _cpu.STRIP + 1, 3] = nan  # the strips beside it are complete
    is_shp, _ = shp_test(stack, **HALF, alpha=0.3)
    for seam in (_cpu.STRIP, 2 * _cpu.STRIP):
        part = slice(seam - 6, seam + 6)
        expected, _ = plain(stack[:, part], 1, 2, 0.3, 5)
        np.testing.assert_array_equal(is_shp[:, part][:, 2:-2], expected[:, 2:-2])


def test_windows_are_mirrored():
    is_shp, _, p = shp_test(mixed((9, 8, 7), seed=6), az_half_win=2, r_half_win=1, with_pvalue=True)
    for az, r in product(range(-2, 3), range(-1, 2)):
        lines, pixels = range(max(-az, 0), min(9, 9 - az)), range(max(-r, 0), min(8, 8 - r))
        for line, pixel in product(lines, pixels):
            for one in (is_shp, p):
                there, back = one[line, pixel, az + 2, r + 1], one[line + az, pixel + r, 2 - az, 1 - r]
                assert there == back or (there != there and back != back)


def test_the_center_is_homogeneous_and_what_lies_outside_is_not():
    is_shp, shp_num, p = shp_test(speckle((4, 5, 6), seed=7), az_half_win=5, r_half_win=9, with_pvalue=True)
    assert is_shp[:, :, 5, 9].all()
    assert (p[:, :, 5, 9] == 1).all()
    inside = np.zeros((11, 19), bool)
    inside[5:9, 9:14] = True
    assert not is_shp[0, 0][~inside].any()
    assert np.isnan(p[0, 0][~inside]).all()
    assert np.isfinite(p[0, 0][inside]).all()
    assert (shp_num >= 1).all()


def test_a_window_of_one_pixel_holds_its_center_only():
    is_shp, shp_num = shp_test(speckle((3, 4, 6), seed=8), az_half_win=0, r_half_win=0)
    assert is_shp.all()
    assert (shp_num == 1).all()


def test_a_pixel_with_too_few_images_is_tested_with_none():
    """A38: no p value is nan, not homogeneous is False, and the number is 0."""
    stack = speckle((3, 5, 8), seed=9)
    stack[1, 2, :4] = 0  # 4 of 8 are left: half of them, but fewer than 5
    is_shp, shp_num, p = shp_test(stack, **HALF, with_pvalue=True)
    assert shp_num[1, 2] == 0
    assert not is_shp[1, 2].any()
    assert np.isnan(p[1, 2]).all()
    assert np.isnan(p[0, 2, 2, 2])
    assert not is_shp[0, 2, 2, 2]
    assert shp_test(stack, **HALF, min_images=4)[1][1, 2] > 0


def test_zeros_are_missing_and_not_homogeneous_with_each_other():
    stack = speckle((4, 6, 7), seed=10)
    stack[:, :3] = 0
    is_shp, shp_num = shp_test(stack, **HALF)
    assert (shp_num[:, :3] == 0).all()
    assert (shp_num[:, 3:] > 0).all()
    assert not is_shp[:, :3].any()


def test_images_with_shifted_footprints_leave_no_seam():
    """A37: at the edge of an image, pixels are compared by what both have, and rejected as rarely as elsewhere."""
    stack = speckle((40, 60, 20), seed=11)
    stack[:, :30, :6] = 0
    is_shp, shp_num = shp_test(stack, az_half_win=1, r_half_win=1)
    assert (shp_num > 0).all()
    rejected = 1 - is_shp[1:-1, 28:32].mean()
    assert rejected == pytest.approx(1 - is_shp[1:-1, 40:-1].mean(), abs=0.015)
    only_full = shp_test(stack, az_half_win=1, r_half_win=1, min_images=20)
    assert not only_full[0][:, :30].any()
    np.testing.assert_array_equal(only_full[1][:, 31:], shp_num[:, 31:])


def test_one_missing_sample_changes_only_windows_that_hold_its_pixel():
    """A39, A40: valid pixels stay valid, and all others keep every bit."""
    stack = speckle((9, 11, 10), seed=12)
    before = shp_test(stack, **HALF, with_pvalue=True)
    stack[4, 5, 3] = nan
    stack[4, 5, 7] *= 100
    after = shp_test(stack, **HALF, with_pvalue=True)
    near = np.zeros((9, 11), bool)
    near[3:6, 3:8] = True
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one[~near], other[~near])
    assert (after[1] > 0).all()
    changed = before[2] != after[2]
    assert changed[4, 5].any()
    for line, pixel in np.argwhere(near & (changed & ~np.isnan(before[2])).any(axis=(2, 3))):
        cells = np.argwhere(changed[line, pixel] & ~np.isnan(before[2][line, pixel]))
        if (line, pixel) != (4, 5):
            assert cells.tolist() == [[4 - line + 1, 5 - pixel + 2]]


@pytest.mark.parametrize(("n_images", "rate"), [(15, 0.0262), (92, 0.0393)])
def test_speckle_is_rejected_as_often_as_theory_says(n_images, rate):
    """P(D >= k / n) = 2 sum (-1)**(i-1) C(2n, n - ik) / C(2n, n), exactly: the asymptotic test keeps below alpha."""
    k = ks_threshold(n_images, 0.05) + 1
    exact = 2 * sum(
        (-1) ** (i - 1) * comb(2 * n_images, n_images - i * k) / comb(2 * n_images, n_images)
        for i in range(1, n_images // k + 1)
    )
    assert exact == pytest.approx(rate, abs=6e-5)
    is_shp, _ = shp_test(speckle((150, 150, n_images), seed=13), az_half_win=1, r_half_win=2)
    inside = is_shp[1:-1, 2:-2].reshape(-1, 15)
    assert 1 - np.delete(inside, 7, axis=1).mean() == pytest.approx(exact, abs=0.004)


def test_fields_of_other_texture_are_told_apart():
    stack = speckle((20, 30, 40), seed=14)
    stack[:, 15:] *= 3
    is_shp, _ = shp_test(stack, az_half_win=2, r_half_win=2)
    across = is_shp[2:-2, 14, :, 3:]
    assert across.mean() < 0.01
    assert is_shp[2:-2, 2:13].mean() > 0.94


def test_the_result_does_not_change_with_scale_or_order():
    stack = speckle((6, 7, 11), seed=15)
    expected = shp_test(stack, **HALF)[0]
    for other in (2.0**-60 * stack, 2.0**60 * stack, np.conj(stack), stack[:, :, ::-1]):
        np.testing.assert_array_equal(shp_test(other.astype(np.complex64), **HALF)[0], expected)


def test_amplitudes_that_float32_cannot_hold_are_valid():
    stack = np.full((1, 2, 6), 3e38 + 3e38j, np.complex64)
    stack[0, 1, :3] = 1
    assert shp_test(stack, az_half_win=0, r_half_win=1)[1].tolist() == [[2, 2]]


def test_a_gain_scales_images_before_they_are_compared():
    stack = speckle((5, 6, 8), seed=16)
    gain = [1, 2, None, 0.25, 8, None, 1, 4]  # powers of 2 round nothing
    scaled = stack * np.array([one or 1 for one in gain], np.float32)
    for one, other in zip(shp_test(stack, **HALF, gain=gain), shp_test(scaled, **HALF), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(shp_test(stack, **HALF)[0], shp_test(scaled, **HALF)[0])


def test_images_one_at_a_time_give_the_same():
    stack = mixed((8, 10, 9), seed=17)
    planes = (stack[:, :, image] for image in range(9))
    found = shp_test_stream(planes, n_images=9, **HALF, with_pvalue=True)
    for one, other in zip(found, shp_test(stack, **HALF, with_pvalue=True), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(0, 5, 4), (5, 0, 4), (1, 1, 3)])
def test_rasters_with_no_or_one_pixel(shape):
    is_shp, shp_num = shp_test(np.ones(shape, np.complex64), **HALF)
    assert is_shp.shape == (*shape[:2], 3, 5)
    assert shp_num.tolist() == np.ones(shape[:2]).tolist()


def test_read_only_double_precision_in_any_order_is_taken():
    stack = speckle((5, 6, 7), seed=18)
    expected = shp_test(stack, **HALF)[0]
    stack.flags.writeable = False
    for other in (
        stack,
        stack.astype(np.complex128),
        np.asfortranarray(stack),
        stack.swapaxes(0, 1).copy().swapaxes(0, 1),
    ):
        np.testing.assert_array_equal(shp_test(other, **HALF)[0], expected)


@pytest.mark.parametrize("n_images", [0, 1, 2])
def test_fewer_than_three_images_are_refused(n_images):
    with pytest.raises(ValueError, match=f"the stack has {n_images} images; expected at least 3"):
        shp_test(np.ones((2, 2, n_images), np.complex64), **HALF)


@pytest.mark.parametrize("min_images", [2, 8])
def test_min_images_out_of_range_is_refused(min_images):
    with pytest.raises(ValueError, match=f"min_images is {min_images}; expected 3 to 7"):
        shp_test(np.ones((2, 2, 7), np.complex64), **HALF, min_images=min_images)


def test_a_negative_half_window_is_refused():
    with pytest.raises(ValueError, match="az_half_win and r_half_win"):
        shp_test(np.ones((2, 2, 7), np.complex64), az_half_win=0, r_half_win=-1)


# -- amplitudes and selection ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_images", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 92])
def test_amplitudes_are_sorted_with_missing_ones_behind(n_images):
    stack = mixed((3, 5, n_images), seed=19)
    amplitude, n_valid = sorted_amplitudes(stack)
    assert (amplitude.shape, amplitude.dtype, n_valid.dtype) == (stack.shape, np.float32, np.int32)
    for line, pixel in product(range(3), range(5)):
        expected = sorted(valid(stack[line, pixel]))
        assert n_valid[line, pixel] == len(expected)
        assert amplitude[line, pixel].tolist() == expected + [inf] * (n_images - len(expected))


def test_selection_is_a_threshold_that_nan_does_not_pass():
    p = np.array([[[nan, 0.04], [0.05, 1.0]], [[nan, nan], [nan, nan]]], np.float32)
    is_shp, shp_num = select_shp(p, alpha=0.05)
    assert is_shp.tolist() == [[[False, False], [True, True]], [[False, False], [False, False]]]
    assert (shp_num.tolist(), shp_num.dtype) == ([2, 0], np.int32)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.2, float(np.float32(P_OF_17[7]))])
def test_selection_by_p_values_is_the_selection_of_the_test(alpha):
    stack = mixed((8, 9, 17), seed=20)
    p = shp_test(stack, **HALF, with_pvalue=True)[2]
    for one, other in zip(select_shp(p, alpha=alpha), shp_test(stack, **HALF, alpha=alpha), strict=True):
        np.testing.assert_array_equal(one, other)


def test_selection_takes_an_array_without_windows():
    is_shp, shp_num = select_shp(np.zeros((0, 3, 5), np.float32))
    assert (is_shp.shape, shp_num.shape) == ((0, 3, 5), (0,))


# -- the kernels for GPUs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("az_half_win", "r_half_win"), [(0, 0), (0, 3), (2, 0), (1, 2), (5, 4)])
def test_the_gpu_finds_what_the_cpu_finds(emulated_cupy, az_half_win, r_half_win):
    """Every choice and number exactly: in rasters of several tiles, with missing samples and ties."""
    window = {"az_half_win": az_half_win, "r_half_win": r_half_win}
    for shape in ((1, 1, 3), (9, 35, 12), (10, 33, 7)):
        stack = mixed(shape, seed=21) if shape[0] > 1 else np.ones(shape, np.complex64)
        gain = [None, 1.5, 0.3] + [1.0] * (shape[2] - 3)
        for options in ({}, {"alpha": 0.4, "min_images": 3, "gain": gain, "with_pvalue": True}):
            found = shp_test(emulated_cupy.asarray(stack), **window, **options)
            expected = shp_test(stack, **window, **options)
            assert all(isinstance(one, emulated_cupy.ndarray) for one in found)
            for one, other in zip(found[:2], expected[:2], strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)
            for one, other in zip(found[2:], expected[2:], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("n_images", [3, 8, 33, 100, 500, 1000])
def test_the_gpu_sorts_as_the_cpu_does(emulated_cupy, n_images):
    """Long series leave room for fewer pixels in shared memory."""
    stack = mixed((2, 40 if n_images < 100 else 3, n_images), seed=22)
    for one, other in zip(sorted_amplitudes(emulated_cupy.asarray(stack)), sorted_amplitudes(stack), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_gpu_selects_as_the_cpu_does(emulated_cupy):
    p = np.random.default_rng(23).random((7, 5, 3, 13), dtype=np.float32)
    p[p < 0.1] = nan
    p[2, 2, 1, 4] = np.float32(0.3)
    for one, other in zip(select_shp(emulated_cupy.asarray(p), alpha=0.3), select_shp(p, alpha=0.3), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_the_gpu_takes_images_one_at_a_time_and_empty_rasters(emulated_cupy):
    stack = mixed((4, 6, 5), seed=24)
    planes = (emulated_cupy.asarray(stack[:, :, image]) for image in range(5))
    found = shp_test_stream(planes, n_images=5, **HALF)
    np.testing.assert_array_equal(found[0], shp_test(stack, **HALF)[0])
    for shape in ((0, 5, 4), (5, 0, 4)):
        is_shp, shp_num = shp_test(emulated_cupy.asarray(np.ones(shape, np.complex64)), **HALF)
        assert (is_shp.shape, shp_num.shape) == ((*shape[:2], 3, 5), shape[:2])


def test_what_no_gpu_holds_is_refused(emulated_cupy):
    with pytest.raises(ValueError, match="the stack has 2000 images; expected at most 1816 on a GPU"):
        sorted_amplitudes(emulated_cupy.asarray(np.ones((1, 1, 2000), np.complex64)))
    with pytest.raises(ValueError, match="the window is too large for a GPU"):
        shp_test(emulated_cupy.asarray(np.ones((1, 1, 3), np.complex64)), az_half_win=300, r_half_win=300)
