"""The array functions of persistent scatterers, against plain float64 and against what theory says."""

from __future__ import annotations

import struct
from math import inf, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np
import pytest

from moraine_core.testing.data import speckle
from moraine_ps.kernels import amp_disp, amp_disp_stream, amplitude_sums

if TYPE_CHECKING:
    from pathlib import Path

RAYLEIGH = sqrt(4 / np.pi - 1)
"""Dispersion of the amplitude of pure speckle: 0.5227."""


def amplitudes(*values, phase=0.7):
    """Return one pixel with given amplitudes."""
    return (np.array(values) * np.exp(1j * phase)).astype(np.complex64)


def dispersion(pixel, min_images=2):
    """Compute the index of one pixel the plain way, in float64."""
    valid = [abs(complex(sample)) for sample in pixel]
    valid = [amplitude for amplitude in valid if np.isfinite(amplitude) and amplitude >= 1e-30]
    if len(valid) < min_images:
        return nan
    mean = sum(valid) / len(valid)
    return sqrt(sum((amplitude - mean) ** 2 for amplitude in valid) / len(valid)) / mean


@pytest.mark.parametrize(
    ("pixel", "index"),
    [
        ((1, 2, 3), sqrt(2 / 3) / 2),  # 0.4082483
        ((1, 3, 1, 3, 1, 3), 0.5),
        ((1,) * 9 + (11,), 1.5),
    ],
)
def test_dispersion_is_the_population_deviation_over_the_mean(pixel, index):
    assert amp_disp(amplitudes(*pixel)) == pytest.approx(index, rel=1e-6)


@pytest.mark.parametrize("level", [1e-20, 0.3, 1.0, 1e10])
def test_a_constant_amplitude_has_no_dispersion(level):
    assert amp_disp(amplitudes(*[level] * 92)) <= 1e-7


def test_a_small_dispersion_on_a_large_mean_is_not_lost_to_rounding():
    """The difference of mean square and square of the mean would leave nothing of it in float32."""
    pixel = 1e4 + np.tile([-1.0, 1.0], 46)
    assert amp_disp(pixel.astype(np.complex64)) == pytest.approx(1e-4, rel=1e-5)


def test_speckle_has_the_dispersion_of_the_rayleigh_distribution():
    assert amp_disp(speckle((200_000,), seed=1)) == pytest.approx(RAYLEIGH, abs=0.005)
    many = amp_disp(speckle((100, 100, 300), seed=2))
    assert np.median(many) == pytest.approx(RAYLEIGH, abs=0.005)


def test_the_index_does_not_change_with_scale():
    stack = speckle((9, 7, 12), seed=3)
    for factor in (1e-10, 3, 1e10):
        np.testing.assert_allclose(amp_disp(np.complex64(factor) * stack), amp_disp(stack), rtol=1e-5)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("min_images", [1, 2, 5])
def test_every_pixel_equals_plain_float64(min_images, strict):
    stack = speckle((11, 5, 8), seed=4)
    rng = np.random.default_rng(5)
    for missing in (nan, inf, 0, 1e-38):
        stack[rng.random(stack.shape) < 0.1] = missing
    stack[2, 3] = 0
    fewest = max(8, min_images) if strict else min_images
    expected = [[dispersion(pixel, fewest) for pixel in line] for line in stack]
    found = amp_disp(stack, min_images=min_images, strict=strict)
    assert found.dtype == np.float32
    assert np.isnan(found).any()
    assert np.isfinite(found).any()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "missing", [nan, complex(1, nan), complex(nan, 1), inf, complex(1, -inf), 0, 1e-38, complex(1e-31, 1e-31), 1e-42]
)
def test_a_missing_sample_does_not_count(missing):
    assert amp_disp(np.array([1, missing, 3], np.complex64)) == pytest.approx(0.5, rel=1e-6)
    assert np.isnan(amp_disp(np.array([1, missing, 3], np.complex64), strict=True))


def test_the_smallest_valid_amplitude_counts():
    assert amp_disp(amplitudes(1e-29, 3e-29)) == pytest.approx(0.5, rel=1e-5)


def test_fewer_valid_images_than_min_images_are_nan():
    pixel = np.array([1, 2, 3, nan], np.complex64)
    assert np.isfinite(amp_disp(pixel, min_images=3))
    assert np.isnan(amp_disp(pixel, min_images=4))
    assert np.isnan(amp_disp(np.zeros(6, np.complex64), min_images=1))


def test_one_image_is_nan_unless_one_is_enough():
    assert np.isnan(amp_disp(amplitudes(2.0)))
    assert np.isnan(amp_disp(amplitudes(2.0), strict=True))
    assert amp_disp(amplitudes(2.0), min_images=1) == 0


def test_no_images_are_an_error():
    with pytest.raises(ValueError, match="no images"):
        amp_disp(np.zeros((3, 4, 0), np.complex64))
    with pytest.raises(ValueError, match="min_images is 0"):
        amp_disp(np.zeros((3, 4, 2), np.complex64), min_images=0)


def test_an_array_without_pixels_gives_none():
    assert amp_disp(np.zeros((0, 4, 2), np.complex64)).shape == (0, 4)


def test_double_precision_and_read_only_input_are_taken():
    stack = speckle((4, 3, 6), seed=6)
    stack.flags.writeable = False
    np.testing.assert_allclose(amp_disp(stack.astype(np.complex128)), amp_disp(stack), rtol=1e-5)


def test_a_gain_scales_an_image_but_decides_nothing_about_missing_samples():
    planes = [np.array([4, 0, 1e-29], np.complex64), np.array([1, 1, 1], np.complex64)]
    found = amp_disp_stream(planes, gain=[0.5, 2], min_images=2)
    # amplitudes 2 and 2; one valid; 5e-30 and 2
    np.testing.assert_allclose(found, [0, nan, 1], atol=1e-7)


def test_amplitude_sums_give_the_mean_that_calibrates():
    """An image [[1, 3], [nan, 2]] over its mean is [[.5, 1.5], [nan, 1]]; zero is missing as well as nan."""
    image = np.array([[1, 3], [nan, 2]], np.complex64)
    ((total, count), (all_missing, none)) = amplitude_sums([image, 0 * image[:1]])
    np.testing.assert_allclose(np.abs(image) * count / total, [[0.5, 1.5], [nan, 1]])
    assert (all_missing, none) == (0, 0)


def test_amplitude_sums_hardly_depend_on_how_an_image_is_cut():
    image = 1e3 * speckle((1000, 300), seed=7)
    ((whole, count),) = amplitude_sums([image])
    parts = amplitude_sums([image[line : line + 7] for line in range(0, 1000, 7)])
    assert count == sum(number for _, number in parts) == image.size
    assert sum(total for total, _ in parts) == pytest.approx(whole, rel=1e-13)
    assert whole == pytest.approx(np.abs(image.astype(np.complex128)).sum(), rel=1e-12)


def read_complex_tiff(path: Path) -> np.ndarray:
    """Read a TIFF of little-endian complex int16, one line per strip."""
    content = path.read_bytes()
    (entries,) = struct.unpack_from("<I", content, 4)
    (n,) = struct.unpack_from("<H", content, entries)
    tags = {tag: value for tag, _, _, value in struct.iter_unpack("<HHII", content[entries + 2 : entries + 2 + 12 * n])}
    width, height, strips = tags[256], tags[257], tags[273]
    offsets = struct.unpack_from(f"<{height}I", content, strips)
    pairs = np.stack([np.frombuffer(content, "<i2", 2 * width, offset) for offset in offsets]).astype(np.float32)
    return pairs.view(np.complex64)


def blocks_as_samples(image, side):
    """Return the pixels of each square block of an image along the last axis."""
    lines, pixels = (length // side for length in image.shape)
    cut = image[: lines * side, : pixels * side].reshape(lines, side, pixels, side)
    return cut.swapaxes(1, 2).reshape(lines, pixels, side * side)


def test_homogeneous_ground_in_a_real_image_is_speckle(real_data):
    """Over the pixels of a block of even ground; texture can only add to the dispersion of speckle."""
    folder = real_data / "s1-slc-single"
    image = read_complex_tiff(next(folder.glob("*.tiff")))
    assert image.shape == (601, 1401)
    assert np.abs(image).mean() == pytest.approx(51, abs=1)
    steadiest = np.sort(amp_disp(blocks_as_samples(image, 30)), axis=None)[:90]  # a tenth of 20 x 46 blocks
    assert steadiest.mean() == pytest.approx(RAYLEIGH, abs=0.015)
    counts, edges = np.histogram(amp_disp(blocks_as_samples(image, 10)), bins=np.arange(0.3, 1.2, 0.02))
    assert edges[counts.argmax()] == pytest.approx(RAYLEIGH, abs=0.02)
