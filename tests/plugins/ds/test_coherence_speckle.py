"""How speckle is correlated: fields made with a known correlation give it back, whatever lies over them."""

from __future__ import annotations

import numpy as np
import pytest

from moraine_core.testing.data import speckle
from moraine_ds.coherence.kernels import n_looks, speckle_correlation
from moraine_ds.coherence.plans import median_correlation

CENTER = (4, 6)


def filtered(shape, az=(1.0,), rg=(1.0,), seed=0):
    """Return speckle convolved with a kernel in azimuth and one in range."""
    white = speckle((shape[0] + len(az) - 1, shape[1] + len(rg) - 1), seed)
    lines = sum(weight * white[k : k + shape[0]] for k, weight in enumerate(az))
    return sum(weight * lines[:, k : k + shape[1]] for k, weight in enumerate(rg)).astype(np.complex64)


def squared(kernel, n_lags):
    """Return the squared correlation of filtered white noise at lags up to n_lags."""
    kernel = np.asarray(kernel)
    padded = np.pad(kernel, (0, n_lags))
    products = [np.sum(padded[: len(kernel)] * padded[lag : lag + len(kernel)]) for lag in range(n_lags + 1)]
    half = (np.array(products) / products[0]) ** 2
    return np.concatenate([half[:0:-1], half])


def test_the_correlation_of_a_filtered_field_is_that_of_its_filter():
    az, rg = (1, 0.9, 0.3), (1, 0.5)
    table = speckle_correlation(filtered((400, 500), az, rg))
    assert table.shape == (9, 13)
    assert table[CENTER] == 1
    np.testing.assert_allclose(table, np.outer(squared(az, 4), squared(rg, 6)), atol=0.02)


def test_white_speckle_has_no_correlation_but_with_itself():
    table = speckle_correlation(speckle((300, 300), seed=1))
    expected = np.zeros((9, 13))
    expected[CENTER] = 1
    np.testing.assert_allclose(table, expected, atol=0.005)


def test_the_table_is_symmetric_in_the_lag():
    table = speckle_correlation(filtered((150, 200), (1, 0.4j), (1, 0.2)))
    np.testing.assert_array_equal(table, table[::-1, ::-1])


def test_phase_ramps_texture_and_the_unit_do_not_matter():
    """TOPS images have a phase that is quadratic in azimuth and so constant along a pair of lines."""
    field = filtered((300, 400), (1, 0.8))
    plain = speckle_correlation(field)
    line, pixel = np.arange(300)[:, None], np.arange(400)
    ramp = np.exp(1j * (0.01 * line**2 + 0.05 * line))
    np.testing.assert_allclose(speckle_correlation(field * ramp), plain, atol=1e-3)
    texture = np.exp(1.5 * np.sin(line / 40) * np.cos(pixel / 60))
    np.testing.assert_allclose(speckle_correlation(field * texture), plain, atol=5e-3)
    np.testing.assert_allclose(speckle_correlation(field * np.float32(1e12)), plain, atol=1e-5)


def test_missing_samples_do_not_count():
    field = filtered((300, 400), (1, 0.8), (1, 0.5))
    plain = speckle_correlation(field)
    for missing in (np.nan, 0, np.inf):
        holes = field.copy()
        holes[np.random.default_rng(5).random(field.shape) < 0.2] = missing
        holes[100:140, 50:300] = missing
        np.testing.assert_allclose(speckle_correlation(holes), plain, atol=0.02)


@pytest.mark.parametrize("shape", [(0, 300), (4, 300), (300, 105), (1, 1), (300, 0)])
def test_an_image_too_small_for_all_lags_is_not_known(shape):
    assert np.isnan(speckle_correlation(speckle(shape))).all()


def test_an_image_with_few_valid_samples_is_not_known():
    image = np.zeros((200, 300), np.complex64)
    assert np.isnan(speckle_correlation(image)).all()
    image[:, :90] = speckle((200, 90))
    assert np.isnan(speckle_correlation(image)).all()


def test_a_stack_is_refused():
    with pytest.raises(ValueError, match=r"expected \(nlines, width\)"):
        speckle_correlation(speckle((3, 4, 5)))


def test_the_median_of_tables_leaves_out_those_that_are_not_known():
    assert median_correlation([[[1.0, 4.0]], None, [[2.0, 9.0]], [[7.0, 5.0]]]) == [[2.0, 5.0]]
    assert median_correlation([None]) is None
    assert median_correlation([]) is None


def test_looks_of_real_speckle_are_less_than_its_pixels(real_data):
    """The sample's oversampling, sum of the table, is that of Sentinel-1: azimuth and range each a bit above 1."""
    image = read_complex_tiff(next((real_data / "s1-slc-single").glob("*.tiff")))
    table = speckle_correlation(image[40:540, 200:1200])
    assert 1.2 < table.sum() < 3.5
    flags = np.ones((1, 11, 11), bool)
    looks = n_looks(flags, table)[0]
    assert 121 / table.sum() < looks < 121


def read_complex_tiff(path):
    """Read a TIFF of little-endian complex int16, one line per strip."""
    import struct

    content = path.read_bytes()
    (entries,) = struct.unpack_from("<I", content, 4)
    (n,) = struct.unpack_from("<H", content, entries)
    tags = {tag: value for tag, _, _, value in struct.iter_unpack("<HHII", content[entries + 2 : entries + 2 + 12 * n])}
    width, height, strips = tags[256], tags[257], tags[273]
    offsets = struct.unpack_from(f"<{height}I", content, strips)
    pairs = np.stack([np.frombuffer(content, "<i2", 2 * width, offset) for offset in offsets]).astype(np.float32)
    return pairs.view(np.complex64)
