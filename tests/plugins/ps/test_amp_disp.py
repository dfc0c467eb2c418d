"""The command amp-disp, from zarr to zarr."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest
import zarr

from moraine_core import UsageError, Workers
from moraine_core.errors import LayoutError
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_ps import kernels
from moraine_ps.amp_disp import amp_disp

ONE = Workers(n_workers=1)


def run(folder, stack, stored, *, workers=ONE, **options):
    """Write a stack in chunks as given, run the command, and return what it wrote."""
    rslc = write_array(folder / "rslc.zarr", stack, stored)
    amp_disp(rslc=rslc, adi=str(folder / "adi.zarr"), workers=workers, fresh=True, **options)
    return read_array(folder / "adi.zarr")


@pytest.fixture
def stack():
    """Return speckle with missing samples, whose images differ in brightness."""
    values = speckle((23, 31, 7), seed=1) * np.geomspace(0.1, 10, 7).astype(np.float32)
    values[np.random.default_rng(2).random(values.shape) < 0.1] = nan
    values[4, 5] = 0
    return values


@pytest.mark.parametrize("options", [{}, {"min_images": 6}, {"strict": True}])
def test_a_raster_equals_the_array_function(tmp_path, stack, options):
    found = run(tmp_path, stack, (10, 8, 1), **options)
    np.testing.assert_array_equal(found, kernels.amp_disp(stack, **options))
    assert np.isfinite(found).any()
    assert np.isnan(found[4, 5])


def test_the_output_has_the_chunks_of_the_stack_or_those_asked_for(tmp_path, stack):
    run(tmp_path, stack, (10, 8, 1))
    assert open_array(tmp_path / "adi.zarr").chunks == (10, 8)
    found = run(tmp_path, stack, (10, 8, 1), chunks=(20, 31))
    assert open_array(tmp_path / "adi.zarr").chunks == (20, 31)
    assert (found.shape, found.dtype) == ((23, 31), np.float32)


@pytest.mark.parametrize("calibrate", [False, True])
def test_the_result_depends_neither_on_chunks_nor_on_workers(tmp_path, stack, calibrate):
    """A10: with every option alike."""
    whole = run(tmp_path, stack, (23, 31, 7), calibrate=calibrate)
    for stored in ((1, 31, 1), (10, 8, 1), (7, 5, 3)):
        found = run(tmp_path, stack, stored, calibrate=calibrate, workers=Workers(n_workers=3))
        np.testing.assert_array_equal(found, whole, err_msg=str(stored))


def test_points_give_one_value_each(tmp_path, stack):
    points = stack.reshape(-1, 7)
    found = run(tmp_path, points, (100, 1))
    np.testing.assert_array_equal(found, kernels.amp_disp(points))
    assert open_array(tmp_path / "adi.zarr").chunks == (100,)
    found = run(tmp_path, points, (100, 1), calibrate=True)
    np.testing.assert_array_equal(found, run(tmp_path, stack, (10, 8, 1), calibrate=True).ravel())


def test_calibration_divides_each_image_by_its_mean(tmp_path):
    """[[1, 3], [nan, 2]] becomes [[.5, 1.5], [nan, 1]]; beside an even image the values follow by hand."""
    image = np.array([[1, 3], [nan, 2]], np.complex64)
    even = np.full((2, 2), 7j, np.complex64)
    found = run(tmp_path, np.stack([image, even], axis=-1), (1, 2, 1), calibrate=True)
    np.testing.assert_allclose(found, [[0.25 / 0.75, 0.25 / 1.25], [nan, 0]], rtol=1e-6, atol=1e-7)


def test_calibration_takes_out_the_brightness_of_images(tmp_path, stack):
    """Scaling an image changes nothing then, and everything without."""
    brighter = stack * np.array([1, 1, 50, 1, 1, 0.02, 1], np.float32)
    plain = run(tmp_path, stack, (10, 8, 1), calibrate=True)
    np.testing.assert_allclose(run(tmp_path, brighter, (10, 8, 1), calibrate=True), plain, rtol=1e-5)
    assert not np.allclose(run(tmp_path, brighter, (10, 8, 1)), run(tmp_path, stack, (10, 8, 1)), equal_nan=True)
    amplitude = np.abs(stack.astype(np.complex128))
    amplitude[amplitude == 0] = nan
    amplitude /= np.nanmean(amplitude, axis=(0, 1))
    expected = np.full(amplitude.shape[:2], nan)
    for pixel in map(tuple, np.argwhere(np.isfinite(amplitude).sum(axis=-1) >= 2)):
        expected[pixel] = np.nanstd(amplitude[pixel]) / np.nanmean(amplitude[pixel])
    np.testing.assert_allclose(plain, expected, rtol=1e-5)


def test_an_image_without_a_valid_sample_is_left_out_of_a_calibrated_stack(tmp_path, stack):
    without = np.delete(stack, 3, axis=-1)
    stack[..., 3] = 0
    found = run(tmp_path, stack, (10, 8, 1), calibrate=True)
    np.testing.assert_array_equal(found, run(tmp_path, without, (10, 8, 1), calibrate=True))


def test_real_scatterers_have_the_dispersion_that_made_them_scatterers(tmp_path, real_data):
    """156 real points on 10 dates; all samples of two of them are zero."""
    source = zarr.open_array(str(real_data / "s1-amsterdam-ps-complex" / "stm_sparse.zarr" / "complex"), mode="r")
    assert source.shape == (156, 10)
    amp_disp(rslc=f"{source.store.root}", adi=str(tmp_path / "adi.zarr"), workers=ONE)
    found = read_array(tmp_path / "adi.zarr")
    assert np.flatnonzero(np.isnan(found)).tolist() == [3, 31]
    assert np.nanmin(found) == pytest.approx(0.0209, abs=5e-5)
    assert np.nanmax(found) == pytest.approx(0.1996, abs=5e-5)
    assert np.nanmedian(found) == pytest.approx(0.1643, abs=5e-5)


@pytest.mark.parametrize("calibrate", [False, True])
def test_no_points_give_an_empty_output(tmp_path, calibrate):
    found = run(tmp_path, np.zeros((0, 4), np.complex64), (100, 1), calibrate=calibrate)
    assert (found.shape, found.dtype) == ((0,), np.float32)


def test_a_stack_without_images_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"amp-disp: rslc .* has no images"):
        run(tmp_path, np.zeros((3, 4, 0), np.complex64), (3, 4, 1))
    assert not (tmp_path / "adi.zarr").exists()


def test_fewer_than_one_image_is_refused(tmp_path, stack):
    with pytest.raises(UsageError, match="min_images is 0; expected at least 1"):
        run(tmp_path, stack, (10, 8, 1), min_images=0)


@pytest.mark.parametrize("values", [np.ones((3, 4, 2), np.float32), np.ones(5, np.complex64)])
def test_what_is_no_stack_is_refused(tmp_path, values):
    with pytest.raises(LayoutError, match="amp-disp: rslc"):
        run(tmp_path, values, values.shape)


def test_a_task_holds_few_images_however_many_there_are(tmp_path):
    """Memory of a task, as planned, does not grow with the number of images (a GPU keeps a few of them)."""
    sizes = []
    for images in (3, 300):
        rslc = str(tmp_path / f"{images}.zarr")
        zarr.create_array(rslc, shape=(2000, 2000, images), chunks=(500, 500, 1), dtype="complex64")
        record = amp_disp(rslc=rslc, adi=str(tmp_path / "adi.zarr"), dry_run=True)
        sizes.append(record.plans[0]["task_bytes"])
    assert sizes[0] == sizes[1] < 500 * 500 * 8 * 16
