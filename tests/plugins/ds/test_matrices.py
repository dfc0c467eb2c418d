"""Matrices against what linear algebra says of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_ds.matrices import is_pd, nearest_pd, regularize_spectral, uncompress_coh


def random_hermitian(n, seed, dtype=np.complex128):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))
    matrix = half + half.conj().T
    return (matrix.real if np.dtype(dtype).kind == "f" else matrix).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_definite_are_the_matrices_whose_eigenvalues_are_positive(dtype):
    stack = np.array(
        [random_hermitian(6, seed, dtype) + shift * np.eye(6) for seed in range(20) for shift in (0, 4, 9)]
    )
    stack = stack.astype(dtype).reshape(5, 12, 6, 6)
    found = is_pd(stack)
    assert found.shape == (5, 12)
    np.testing.assert_array_equal(found, np.linalg.eigvalsh(stack.astype(np.complex128)).min(axis=-1) > 0)
    assert found.any()
    assert not found.all()


def test_definite_is_no_matrix_with_nan_or_infinity_and_none_that_is_singular():
    stack = np.array([np.eye(3)] * 5)
    stack[1, 2, 1] = stack[1, 1, 2] = np.nan
    stack[2, 0, 0] = np.inf
    stack[3] = 1
    stack[4] = -stack[4]
    assert is_pd(stack).tolist() == [True, False, False, False, False]


def test_there_may_be_no_matrix_or_a_single_one():
    assert is_pd(np.zeros((0, 4, 4))).shape == (0,)
    assert nearest_pd(np.zeros((0, 4, 4))).shape == (0, 4, 4)
    assert is_pd(np.eye(2)).shape == ()
    assert bool(is_pd(np.eye(1)))


def test_a_definite_matrix_is_its_own_nearest():
    definite = random_hermitian(5, 1) + 12 * np.eye(5)
    np.testing.assert_array_equal(nearest_pd(definite), definite)


def test_the_nearest_of_a_diagonal_matrix_has_no_negative_entry():
    found = nearest_pd(np.diag([1.0, -1.0]))
    np.testing.assert_allclose(found, np.diag([1.0, 0.0]), atol=1e-12)
    assert found[1, 1] > 0
    assert is_pd(found)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_the_nearest_matrix_is_definite_and_no_other_semidefinite_one_is_nearer(dtype):
    """REF-BUG: complex matrices were taken for real ones, by a transposition without conjugation."""
    stack = np.array([random_hermitian(7, seed, dtype) for seed in range(10)])
    found = nearest_pd(stack)
    assert found.dtype == dtype
    assert is_pd(found).all()
    np.testing.assert_array_equal(found, found.conj().swapaxes(1, 2))
    for matrix, near in zip(stack.astype(np.complex128), found, strict=True):
        negative = np.minimum(np.linalg.eigvalsh(matrix), 0)
        # the squared distance to the cone of semidefinite matrices is that of the negative eigenvalues to 0
        np.testing.assert_allclose(np.linalg.norm(matrix - near) ** 2, (negative**2).sum(), rtol=1e-4)


def test_of_a_matrix_that_is_not_hermitian_the_hermitian_part_is_meant():
    matrix = np.array([[2, 1], [0, 2.0]])
    np.testing.assert_allclose(nearest_pd(matrix), [[2, 0.5], [0.5, 2]])


def test_a_matrix_with_nan_stays_alone_with_it():
    stack = np.array([-np.eye(3), np.eye(3), np.zeros((3, 3))])
    stack[1, 0, 2] = np.nan
    found = nearest_pd(stack)
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[0], nearest_pd(stack[:1])[0])
    assert is_pd(found).tolist() == [True, False, True]


def test_regularization_moves_eigenvalues_toward_one():
    matrix = random_hermitian(5, 3, np.complex64)
    np.testing.assert_array_equal(regularize_spectral(matrix, 1.0), np.eye(5))
    np.testing.assert_array_equal(regularize_spectral(matrix, 0.0), matrix)
    found = regularize_spectral(np.array([matrix, matrix]), np.array([0.25, 0.75]))
    assert found.dtype == np.complex64
    before = np.linalg.eigvalsh(matrix)
    for beta, one in zip((0.25, 0.75), found, strict=True):
        np.testing.assert_allclose(np.linalg.eigvalsh(one), (1 - beta) * before + beta, atol=1e-5)


def test_coherence_is_written_out_by_pairs_in_any_order():
    """REF-BUG: the number of images was read off the last pair."""
    pairs = [(1, 3), (0, 1), (2, 0)]
    matrix = uncompress_coh(np.array([[1j, 0.5, 0.2j]], np.complex64), pairs)
    expected = np.eye(4, dtype=complex)
    expected[1, 3], expected[3, 1] = 1j, -1j
    expected[0, 1] = expected[1, 0] = 0.5
    expected[2, 0], expected[0, 2] = 0.2j, -0.2j
    np.testing.assert_allclose(matrix, expected[None], rtol=1e-6)
    assert uncompress_coh(np.zeros((2, 3)), pairs, nimages=6).shape == (2, 6, 6)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 7), st.integers(0, 2**31))
def test_written_out_and_packed_again_coherence_is_the_same(n_images, seed):
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(n_images, 1)
    coh = (rng.normal(size=(3, first.size)) + 1j * rng.normal(size=(3, first.size))).astype(np.complex64)
    matrix = uncompress_coh(coh, np.stack([first, second], axis=1), n_images)
    np.testing.assert_array_equal(matrix[:, first, second], coh)
    np.testing.assert_array_equal(matrix, matrix.conj().swapaxes(1, 2))
    np.testing.assert_array_equal(matrix[:, range(n_images), range(n_images)], 1)


@pytest.mark.parametrize(
    ("pairs", "nimages", "fault"),
    [
        ([(0, 1)], None, "coh has 2 pairs and image_pairs 1"),
        ([(0, 1), (1, 1)], None, r"pair 1 is \(1, 1\); expected two different images"),
        ([(0, 1), (1, 3)], 3, r"pair 1 is \(1, 3\); expected two different images from 0 to 2"),
        ([(0, -1), (1, 2)], 3, r"pair 0 is \(0, -1\)"),
    ],
)
def test_wrong_pairs_are_named(pairs, nimages, fault):
    with pytest.raises(ValueError, match=fault):
        uncompress_coh(np.zeros(2), pairs, nimages)


@pytest.mark.parametrize("function", [is_pd, nearest_pd, lambda matrix: regularize_spectral(matrix, 0.5)])
def test_a_matrix_has_two_axes_of_one_length(function):
    with pytest.raises(ValueError, match=r"matrix has shape \(2, 3\); expected \(\.\.\., n, n\)"):
        function(np.zeros((2, 3)))
