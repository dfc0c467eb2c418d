"""The array functions of persistent scatterers, against plain float64 and against what theory says."""

from __future__ import annotations

import struct
from math import inf, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np
import pytest

from moraine_core.testing.data import speckle
from moraine_ps.kernels import amp_disp, amp_disp_stream, amplitude_sums, calamp, rslc2amp

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
def test_every_pixel_equals_plain_float64(to_device, min_images, strict):
    stack = speckle((11, 5, 8), seed=4)
    rng = np.random.default_rng(5)
    for missing in (nan, inf, 0, 1e-38):
        stack[rng.random(stack.shape) < 0.1] = missing
    stack[2, 3] = 0
    fewest = max(8, min_images) if strict else min_images
    expected = [[dispersion(pixel, fewest) for pixel in line] for line in stack]
    found = amp_disp(to_device(stack), min_images=min_images, strict=strict)
    assert found.dtype == np.float32
    assert np.isnan(found).any()
    assert np.isfinite(found).any()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "missing", [nan, complex(1, nan), complex(nan, 1), inf, complex(1, -inf), 0, 1e-38, complex(1e-31, 1e-31), 1e-42]
)
def test_a_missing_sample_does_not_count(to_device, missing):
    pixel = to_device(np.array([[1, missing, 3]], np.complex64))
    assert amp_disp(pixel)[0] == pytest.approx(0.5, rel=1e-6)
    assert np.isnan(amp_disp(pixel, strict=True)[0])


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


def test_an_array_without_pixels_gives_none(to_device):
    assert amp_disp(to_device(np.zeros((0, 4, 2), np.complex64))).shape == (0, 4)


def test_double_precision_and_read_only_input_are_taken():
    stack = speckle((4, 3, 6), seed=6)
    stack.flags.writeable = False
    np.testing.assert_allclose(amp_disp(stack.astype(np.complex128)), amp_disp(stack), rtol=1e-5)


def test_a_gain_scales_an_image_but_decides_nothing_about_missing_samples(to_device):
    planes = [to_device(np.array(plane, np.complex64)) for plane in ([4, 0, 1e-29], [1, 1, 1])]
    found = amp_disp_stream(planes, gain=[0.5, 2], min_images=2)
    # amplitudes 2 and 2; one valid; 5e-30 and 2
    np.testing.assert_allclose(found, [0, nan, 1], atol=1e-7)


def test_amplitude_sums_give_the_mean_that_calibrates(to_device):
    """An image [[1, 3], [nan, 2]] over its mean is [[.5, 1.5], [nan, 1]]; zero is missing as well as nan."""
    image = np.array([[1, 3], [nan, 2]], np.complex64)
    ((total, count), (all_missing, none)) = amplitude_sums([to_device(image), to_device(0 * image[:1])])
    np.testing.assert_allclose(np.abs(image) * count / total, [[0.5, 1.5], [nan, 1]])
    assert (all_missing, none) == (0, 0)


def test_amplitude_sums_hardly_depend_on_how_an_image_is_cut():
    image = 1e3 * speckle((1000, 300), seed=7)
    ((whole, count),) = amplitude_sums([image])
    parts = amplitude_sums([image[line : line + 7] for line in range(0, 1000, 7)])
    assert count == sum(number for _, number in parts) == image.size
    assert sum(total for total, _ in parts) == pytest.approx(whole, rel=1e-13)
    assert whole == pytest.approx(np.abs(image.astype(np.complex128)).sum(), rel=1e-12)


@pytest.mark.parametrize("nimages", [1, 5, 8, 9, 30])
def test_images_that_come_one_at_a_time_give_the_same_bits(to_device, nimages):
    """Whatever the order of a stack in memory is: pixel by pixel, image by image, or a part of something larger."""
    stack = speckle((23, 29, nimages), seed=8)
    stack[3, 4:9, ::2] = nan
    planes = np.ascontiguousarray(np.moveaxis(stack, -1, 0))
    expected = amp_disp(to_device(stack), min_images=1)
    found = [
        amp_disp_stream([to_device(plane) for plane in planes], min_images=1),
        amp_disp(np.moveaxis(to_device(planes), 0, -1), min_images=1),
        amp_disp(to_device(np.pad(stack, 2))[2:-2, 2:-2, 2:-2], min_images=1),
        amp_disp(to_device(stack).reshape(-1, nimages), min_images=1).reshape(23, 29),
    ]
    for one in found:
        np.testing.assert_array_equal(one, expected)


def test_cpu_and_gpu_agree(to_device):
    stack = speckle((40, 30, 12), seed=9) * np.float32(1e3)
    np.testing.assert_allclose(amp_disp(to_device(stack)), amp_disp(stack), rtol=1e-6)


@pytest.mark.parametrize("nimages", [2, 92, 1000])
@pytest.mark.parametrize("amplitude", [1, 0.3, 1e-29, 12345.678, 3e37])
def test_a_constant_amplitude_has_no_dispersion(to_device, nimages, amplitude):
    stack = np.full((3, nimages), amplitude, np.complex64)
    assert (amp_disp(to_device(stack)) == 0).all()
    turned = stack * np.exp(2j * np.pi * np.random.default_rng(10).random(stack.shape)).astype(np.complex64)
    np.testing.assert_allclose(amp_disp(to_device(turned)), 0, atol=1e-7)


def test_a_pixel_that_begins_with_its_brightest_image_is_as_exact(to_device):
    """The first amplitude is what deviations are taken from: the worst case is that it stands out."""
    pixel = np.ones(92) + 0.01 * np.random.default_rng(11).random(92)
    for first in (1e-3, 11, 1e4):
        pixel[0] = first
        expected = pixel.astype(np.float32).astype(float)
        found = amp_disp(to_device(pixel[None].astype(np.complex64)))[0]
        assert found == pytest.approx(expected.std() / expected.mean(), rel=1e-6)


def test_amplitudes_of_any_size_that_float32_holds_count(to_device):
    """Their squares are no numbers in float32."""
    for size in (1e-29, 1e-20, 1e19, 1e38):
        pixel = to_device(amplitudes(size, 3 * size)[None])
        assert amp_disp(pixel)[0] == pytest.approx(0.5, rel=1e-5)


def test_the_index_of_a_pixel_does_not_depend_on_others(to_device):
    """A40."""
    stack = speckle((700, 6), seed=12)
    whole = amp_disp(to_device(stack))
    changed = stack.copy()
    changed[300] = nan
    found = amp_disp(to_device(changed))
    np.testing.assert_array_equal(np.delete(np.asarray(found), 300), np.delete(np.asarray(whole), 300))
    np.testing.assert_array_equal(amp_disp(to_device(stack[513:514].copy())), whole[513:514])


def test_amplitude_sums_on_a_gpu_are_those_of_the_cpu(emulated_cupy):
    image = speckle((70, 41), seed=13)
    image[3, 4:20] = nan
    image[5, :7] = 0
    ((total, count),) = amplitude_sums([emulated_cupy.asarray(image)])
    ((expected, number),) = amplitude_sums([image])
    assert count == number == 70 * 41 - 23
    assert total == pytest.approx(expected, rel=1e-13)


def test_the_amplitude_of_an_image_keeps_what_is_missing(to_device):
    image = np.array([[3 + 4j, 0, nan], [complex(nan, 1), complex(1, inf), -2]], np.complex64)
    found = rslc2amp(to_device(image))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[5, 0, nan], [nan, inf, 2]])


def test_calibration_by_hand(to_device):
    found = calamp(to_device(np.array([[1, 3], [nan, 2]], np.float32)))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[0.5, 1.5], [nan, 1]], rtol=1e-6)


@pytest.mark.parametrize("missing", [nan, inf, 0, 1e-38])
def test_a_missing_amplitude_does_not_count_in_the_mean(to_device, missing):
    found = calamp(to_device(np.array([1, 3, missing], np.float32)))
    np.testing.assert_allclose(found, [0.5, 1.5, nan], rtol=1e-6)
    assert np.isnan(calamp(to_device(np.full((2, 3), missing, np.float32)))).all()


@pytest.mark.parametrize("factor", [1e-12, 0.1, 7, 1e15])
def test_calibration_does_not_change_with_scale(factor):
    amplitude = rslc2amp(speckle((40, 50), seed=14))
    np.testing.assert_allclose(calamp(np.float32(factor) * amplitude), calamp(amplitude), rtol=1e-6)
    assert calamp(amplitude).mean(dtype=float) == pytest.approx(1, rel=1e-6)


def test_the_mean_of_many_amplitudes_keeps_its_digits():
    """REF-BUG: a sum in float32 was wrong by 1e-4 for ten million pixels; here the mean is known to all digits."""
    amplitude = np.full(3_000_000, np.float32(0.1))
    np.testing.assert_allclose(calamp(amplitude)[:3], 1, rtol=1e-7)


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
