"""Interferograms and their coherence over boxes, against the definition and what must hold for any images."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from moraine_core.testing.data import speckle
from moraine_raster.interferometry import intf, multi_look

NO_DATA = [nan, complex(1, nan), complex(nan, 1), inf, complex(2, -inf), 0, 1e-38, 1e-42]


def test_the_interferogram_of_two_samples_by_hand():
    np.testing.assert_allclose(intf(np.complex64([1 + 1j]), np.complex64([1 - 1j])), [1j], atol=1e-7)
    np.testing.assert_allclose(intf(np.complex64([3]), np.complex64([5 * np.exp(0.3j)])), [np.exp(-0.3j)], atol=1e-7)


def test_the_phase_is_that_of_the_first_image_minus_that_of_the_second():
    ref, sec = speckle((9, 7, 3), seed=1), speckle((9, 7, 3), seed=2)
    found = intf(ref, sec)
    assert found.dtype == np.complex64
    np.testing.assert_allclose(np.abs(found), 1, rtol=1e-6)
    np.testing.assert_allclose(found, np.exp(1j * (np.angle(ref) - np.angle(sec))), atol=1e-6)
    np.testing.assert_allclose(intf(sec, ref), found.conj(), atol=1e-7)


@pytest.mark.parametrize("factor", [1e-29, 1e-15, 1e18])
def test_amplitudes_do_not_matter(factor):
    ref, sec = np.complex64([1 + 1j, 3]), np.complex64([2j, 1 - 1j])
    np.testing.assert_allclose(intf(ref * np.float32(factor), sec), intf(ref, sec), atol=1e-6)


@pytest.mark.parametrize("missing", NO_DATA)
def test_a_missing_sample_of_either_image_is_missing_in_both_parts(missing):
    for pair in ((missing, 1j), (1j, missing), (missing, missing)):
        found = intf(*(np.array([sample, 1], np.complex64) for sample in pair))
        assert np.isnan(found.real[0])
        assert np.isnan(found.imag[0])
        assert found[1] == 1


def coherence(ref, sec):
    """Return the coherence of one box as a loop."""
    cross, power1, power2 = 0j, 0.0, 0.0
    for a, b in zip(ref.ravel(), sec.ravel(), strict=True):
        a, b = complex(a), complex(b)
        if np.isfinite(a) and np.isfinite(b) and abs(a) >= 1e-30 and abs(b) >= 1e-30:
            cross += a * b.conjugate()
            power1 += abs(a) ** 2
            power2 += abs(b) ** 2
    return cross / np.sqrt(power1 * power2) if power1 * power2 else complex(nan, nan)


@pytest.mark.parametrize("looks", [(1, 1), (2, 3), (3, 2), (7, 5), (9, 11)])
def test_every_box_equals_a_plain_loop(looks):
    rng = np.random.default_rng(3)
    ref, sec = speckle((9, 11), seed=4), speckle((9, 11), seed=5)
    for image in (ref, sec):
        for missing in NO_DATA:
            image[rng.random(image.shape) < 0.03] = missing
    ref[:2, :3] = nan
    found = multi_look(ref, sec, looks)
    assert found.shape == (9 // looks[0], 11 // looks[1])
    assert found.dtype == np.complex64
    for line in range(found.shape[0]):
        for pixel in range(found.shape[1]):
            box = (slice(line * looks[0], (line + 1) * looks[0]), slice(pixel * looks[1], (pixel + 1) * looks[1]))
            np.testing.assert_allclose(found[line, pixel], coherence(ref[box], sec[box]), atol=1e-6)
    assert np.isnan(multi_look(ref, sec, (2, 3))[0, 0])


def test_a_constant_phase_and_an_alternating_sign():
    ref = speckle((4, 6), seed=6)
    np.testing.assert_allclose(multi_look(ref, ref * np.exp(-0.3j), (2, 2)), np.exp(0.3j), atol=1e-6)
    ones = np.ones((4, 6), np.complex64)
    signs = ones * np.where(np.indices((4, 6)).sum(axis=0) % 2, -1, 1)
    np.testing.assert_allclose(multi_look(ones, signs, (2, 2)), 0, atol=1e-7)


def test_a_missing_sample_is_left_out_of_its_box_alone():
    """A39, A40: the other samples of the box count, and the other boxes keep every bit."""
    ref, sec = speckle((6, 6), seed=7), speckle((6, 6), seed=8)
    whole = multi_look(ref, sec, (3, 3))
    ref[1, 1] = nan
    found = multi_look(ref, sec, (3, 3))
    assert np.isfinite(found).all()
    changed = found != whole
    assert np.argwhere(changed).tolist() == [[0, 0]]


def test_a_stack_is_looked_image_by_image():
    ref, sec = speckle((6, 8, 3), seed=9), speckle((6, 8, 3), seed=10)
    found = multi_look(ref, sec, (2, 4))
    for image in range(3):
        np.testing.assert_allclose(found[..., image], multi_look(ref[..., image], sec[..., image], (2, 4)), atol=1e-7)


def test_more_looks_than_pixels_leave_no_box():
    assert multi_look(speckle((3, 4), seed=1), speckle((3, 4), seed=2), (4, 1)).shape == (0, 4)


@pytest.mark.parametrize(
    ("sec", "looks", "fault"),
    [((3, 5), (1, 1), "have shapes"), ((3, 4), (0, 2), "looks are"), ((3, 4), (2, -1), "expected at least 1 line")],
)
def test_what_cannot_be_looked_is_refused(sec, looks, fault):
    with pytest.raises(ValueError, match=fault):
        multi_look(np.ones((3, 4), np.complex64), np.ones(sec, np.complex64), looks)
