"""The command emi: layouts, blocks, options and what is refused; the numbers are the matter of test_phase_linking."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr

from moraine_core import MoraineError, Workers
from moraine_core.run import check_command
from moraine_core.store import describe, open_array
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_ds.emi import emi
from moraine_ds.phase_linking import kernels

if TYPE_CHECKING:
    from pathlib import Path


def coherence(points: int, n_images: int, looks: int = 12, seed: int = 1) -> np.ndarray[Any, Any]:
    """Return packed coherence estimated from speckle with a common part."""
    samples = speckle((points, looks, n_images), seed=seed) + 1.2 * speckle((points, looks, 1), seed=seed + 1)
    products = np.einsum("pli,plj->pij", samples, samples.conj())
    power = np.sqrt(np.einsum("pii->pi", products).real)
    first, second = np.triu_indices(n_images, 1)
    return (products / (power[:, :, None] * power[:, None, :]))[:, first, second].astype(np.complex64)


def link(folder: Path, coh: np.ndarray[Any, Any], block: int = 7, **options: Any) -> np.ndarray[Any, Any]:
    path = write_array(folder / "coh.zarr", coh, chunks=(block, 1))
    emi(coh=path, ph=str(folder / "ph.zarr"), **options)
    return read_array(folder / "ph.zarr")


def test_phases_are_those_of_the_array_function_whatever_the_blocks(tmp_path):
    coh = coherence(40, 6)
    coh[5] = np.nan
    coh[11, 3] = np.nan
    expected = kernels.emi(coh, ref=2)
    for number, options in enumerate(({}, {"chunks": 3}, {"chunks": 100}, {"workers": Workers(n_workers=4)})):
        folder = tmp_path / str(number)
        folder.mkdir()
        np.testing.assert_array_equal(link(folder, coh, ref=2, **options), expected)
        array = open_array(folder / "ph.zarr")
        assert (array.dtype, array.chunks) == (np.complex64, (options.get("chunks", 7), 1))


def test_options_reach_the_kernel(tmp_path):
    coh = coherence(9, 12, looks=6)
    plain = kernels.emi(coh)
    for number, options in enumerate(({"regularize": False}, {"beta_min": 0.5}, {"ref": 11})):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = link(folder, coh, **options)
        np.testing.assert_array_equal(found, kernels.emi(coh, **options))
        assert np.abs(found - plain).max() > 1e-3


def test_three_images_from_the_shell(tmp_path):
    modulus, angle = np.array([0.8, 0.6, 0.7]), np.array([0.3, 1.0, 0.5])
    path = write_array(tmp_path / "coh.zarr", (modulus * np.exp(1j * angle)).astype(np.complex64)[None])
    command = [sys.executable, "-m", "moraine_core", "emi", "--coh", path, "--ph", str(tmp_path / "ph.zarr")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    found = np.angle(read_array(tmp_path / "ph.zarr"))
    np.testing.assert_allclose(found, [[0, -0.312735, -0.837884]], atol=5e-6)


@pytest.mark.parametrize(("points", "n_images"), [(0, 4), (1, 2), (1, 5)])
def test_clouds_of_no_point_or_one(tmp_path, points, n_images):
    ph = link(tmp_path, coherence(points, n_images))
    assert ph.shape == (points, n_images)
    np.testing.assert_allclose(np.abs(ph), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("n_pairs", "options", "fault"),
    [
        (4, {}, r"emi: coh .*coh\.zarr has shape \(3, 4\); 4 pairs are not all pairs of any number of images"),
        (6, {"ref": 4}, r"emi: ref is 4; expected one of the 4 images of coh .*coh\.zarr, from 0"),
        (6, {"ref": -1}, r"emi: ref is -1; expected"),
        (6, {"beta_min": 1.0}, r"emi: beta_min is 1\.0; expected at least 0 and below 1"),
        (6, {"chunks": 0}, "chunks"),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_written(tmp_path, n_pairs, options, fault):
    with pytest.raises(MoraineError, match=fault):
        link(tmp_path, np.zeros((3, n_pairs), np.complex64), **options)
    assert not (tmp_path / "ph.zarr").exists()


@pytest.mark.parametrize(
    "coh", [np.zeros((3, 6), np.float32), np.zeros(6, np.complex64), np.zeros((2, 3, 6), np.complex64)]
)
def test_coherence_of_another_kind_is_refused(tmp_path, coh):
    path = write_array(tmp_path / "coh.zarr", coh)
    with pytest.raises(MoraineError, match=r"emi: .*coh"):
        emi(coh=path, ph=str(tmp_path / "ph.zarr"))


def test_an_output_that_is_the_input_is_refused(tmp_path):
    coh = coherence(4, 3)
    path = write_array(tmp_path / "coh.zarr", coh)
    with pytest.raises(MoraineError, match="emi"):
        emi(coh=path, ph=path)
    np.testing.assert_array_equal(read_array(path), coh)


def test_a_call_is_checked_before_its_coherence_exists(tmp_path):
    """A35."""
    described = describe(write_array(tmp_path / "coh.zarr", coherence(20, 4), chunks=(6, 1)))
    (tmp_path / "coh.zarr").rename(tmp_path / "gone.zarr")
    arguments = {"coh": described.path, "ph": str(tmp_path / "ph.zarr")}
    known = check_command(emi, arguments, Workers(), expected={described.path: described})
    result = known[str(tmp_path / "ph.zarr")]
    assert result is not None
    assert (result.shape, result.dtype, result.chunks) == ((20, 4), "complex64", (6, 1))


def test_phases_of_persistent_scatterers_pass_unchanged(tmp_path, real_data):
    """A41: 156 points of Amsterdam in 10 dates of Sentinel-1, one look, so coherence 1 and phases that close."""
    group: Any = zarr.open_group(str(next((real_data / "s1-amsterdam-ps-complex").rglob(".zgroup")).parent), mode="r")
    samples = np.asarray(group["complex"][:])
    samples = samples[(np.abs(samples) > 0).all(axis=1)]
    phasors = samples / np.abs(samples)
    first, second = np.triu_indices(samples.shape[1], 1)
    ph = link(tmp_path, (phasors[:, first] * phasors[:, second].conj()).astype(np.complex64), ref=4)
    np.testing.assert_allclose(ph, phasors * phasors[:, 4:5].conj(), atol=1e-4)
