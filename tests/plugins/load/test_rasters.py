"""Binary files: formats, byte order, sizes, and many readers at once."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from moraine_core.errors import StoreNotFoundError
from moraine_core.testing.data import speckle
from moraine_load.formats import RasterError, check_byte_order, check_size
from moraine_load.rasters import read_block, write_block

SHAPE = (60, 50)


def stored(image, name, order=">"):
    """Return an image as bytes, by numpy alone."""
    parts = np.stack([image.real, image.imag], axis=-1)
    if name == "SCOMPLEX":
        return np.rint(parts).astype(f"{order}i2").tobytes()
    return parts.astype(f"{order}f4").tobytes()


@pytest.fixture
def image():
    return np.round(60 * speckle(SHAPE, seed=3)).astype(np.complex64)


@pytest.mark.parametrize("name", ["FCOMPLEX", "SCOMPLEX"])
@pytest.mark.parametrize("byte_order", ["big", "little"])
def test_a_block_has_exactly_the_values_that_numpy_reads(tmp_path, image, name, byte_order):
    """A30, A31: both formats, as they are, without a scale."""
    file = tmp_path / "an image"
    file.write_bytes(stored(image, name, ">" if byte_order == "big" else "<"))
    part = read_block(file, name, SHAPE[1], (7, 20), (3, 41), byte_order)
    assert part.dtype == np.complex64
    np.testing.assert_array_equal(part, image[7:20, 3:41])
    np.testing.assert_array_equal(read_block(file, name, SHAPE[1], (0, 60), byte_order=byte_order), image)


@pytest.mark.parametrize("name", ["FCOMPLEX", "SCOMPLEX"])
def test_what_is_written_in_blocks_are_the_bytes_of_the_whole(tmp_path, image, name):
    file = tmp_path / "image"
    for line in (40, 0, 20):
        for sample in (30, 0):
            part = image[line : line + 20, sample : sample + 30]
            write_block(file, part, name, SHAPE[1], line, sample)
    assert file.read_bytes() == stored(image, name)


def test_numbers_too_large_for_short_integers_are_refused(tmp_path):
    with pytest.raises(RasterError, match="a value is 40000 or missing; expected up to 32767 in SCOMPLEX"):
        write_block(tmp_path / "image", np.array([[4e4 + 0j]]), "SCOMPLEX", 1, 0)


def test_many_threads_read_one_file_and_get_equal_bytes(tmp_path, image):
    """A29: 16 threads, 1000 reads, a handle for each."""
    file = tmp_path / "image"
    file.write_bytes(stored(image, "FCOMPLEX"))

    def differs(number):
        line = number % 50
        found = read_block(file, "FCOMPLEX", SHAPE[1], (line, line + 9), (2, 31))
        return found.tobytes() != image[line : line + 9, 2:31].tobytes()

    with ThreadPoolExecutor(16) as pool:
        assert not any(pool.map(differs, range(1000)))


def test_a_file_of_another_size_is_told_with_both_sizes(tmp_path):
    file = tmp_path / "short one"
    file.write_bytes(bytes(8 * 50 * 59 + 3))
    with pytest.raises(
        RasterError,
        match=re.escape(f"{file} has 23603 bytes, 59 lines and 3 bytes of 50 FCOMPLEX samples; expected 24000 bytes"),
    ):
        check_size(file, "FCOMPLEX", 50, 60)
    with pytest.raises(RasterError, match="ends within lines 50:60; expected 50 FCOMPLEX samples in each"):
        read_block(file, "FCOMPLEX", 50, (50, 60))
    with pytest.raises(StoreNotFoundError, match="none does not exist; expected a FLOAT file of 2 lines of 3 samples"):
        check_size(tmp_path / "none", "FLOAT", 3, 2)


@pytest.mark.parametrize("name", ["FCOMPLEX", "SCOMPLEX"])
@pytest.mark.parametrize("scale", [0.02, 1.0, 100.0])
def test_swapped_bytes_are_suspected_and_right_ones_are_not(tmp_path, image, name, scale):
    """A31: also where most samples are zero."""
    if name == "SCOMPLEX":
        scale = max(scale, 0.1)
    image = image * np.float32(scale)
    image[:, ::2] = 0
    file = tmp_path / "image"
    file.write_bytes(stored(image, name))
    check_byte_order(file, name, SHAPE[1], SHAPE[0])
    file.write_bytes(stored(image, name, "<"))
    with pytest.raises(
        RasterError, match=f"image seems to be little-endian; expected big-endian {name}, or the option"
    ):
        check_byte_order(file, name, SHAPE[1], SHAPE[0])


def test_zeros_and_missing_values_say_nothing_of_the_byte_order(tmp_path):
    for values in (np.zeros(SHAPE), np.full(SHAPE, np.nan), np.where(np.eye(*SHAPE), 2240.0, 0)):
        file = tmp_path / "heights"
        file.write_bytes(values.astype(">f4").tobytes())
        check_byte_order(file, "FLOAT", SHAPE[1], SHAPE[0])


def test_heights_in_the_wrong_order_are_suspected(tmp_path):
    file = tmp_path / "heights"
    file.write_bytes(np.linspace(1, 900, 3000).astype("<f4").tobytes())
    with pytest.raises(RasterError, match="seems to be little-endian; expected big-endian FLOAT"):
        check_byte_order(file, "FLOAT", SHAPE[1], SHAPE[0])
