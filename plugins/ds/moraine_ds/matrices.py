"""Stacks of Hermitian matrices: are they positive definite, what to do if not, and coherence written out as such."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.device import array_module

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray[Any, Any]


def is_pd(matrix: Array) -> Array:
    """Return whether Hermitian matrices are positive definite.

    By Cholesky factorization in double precision on the CPU, by eigenvalues on a GPU.

    Parameters
    ----------
    matrix
        Real symmetric or complex Hermitian, any unit, float or complex, shape ``(..., n, n)``, numpy or cupy.

    Returns
    -------
    array
        Bool, shape ``(...)``; False where anything is not finite.

    Raises
    ------
    ValueError
        The last two axes are not of one length.
    """
    _check_square(matrix)
    xp: Any = array_module(matrix)
    stack = matrix.reshape(-1, *matrix.shape[-2:])
    result = xp.isfinite(stack).all(axis=(1, 2))
    if xp is np:
        from moraine_ds._cpu import are_definite

        result &= are_definite(np.ascontiguousarray(stack, dtype=np.complex128))
    else:
        safe = xp.where(result[:, None, None], stack, 0)
        result &= (xp.linalg.eigvalsh(safe, UPLO="L") > 0).all(axis=1)
    return result.reshape(matrix.shape[:-2])  # type: ignore[no-any-return]


def nearest_pd(matrix: Array) -> Array:
    """Return the nearest positive definite matrices, in the Frobenius norm.

    Of a matrix the Hermitian part is taken. Where that is not positive definite, its eigenvalues are raised to at least
    the resolution of the dtype times the largest modulus of any (Higham, 1988): the nearest semidefinite matrix, made
    definite by no more than rounding needs.

    Parameters
    ----------
    matrix
        Real or complex, any unit, float or complex, shape ``(..., n, n)``, numpy or cupy.

    Returns
    -------
    array
        Hermitian, unit, dtype and shape of `matrix`; nan where anything is not finite.

    Raises
    ------
    ValueError
        The last two axes are not of one length.

    References
    ----------
    Higham, N. J. (1988): Computing a nearest symmetric positive semidefinite matrix. Linear Algebra and its
    Applications 103, 103-118.
    """
    _check_square(matrix)
    xp: Any = array_module(matrix)
    n = matrix.shape[-1]
    stack = matrix.reshape(-1, n, n)
    is_finite = xp.isfinite(stack).all(axis=(1, 2))
    stack = xp.where(is_finite[:, None, None], stack, 0)
    result = (stack + stack.conj().swapaxes(1, 2)) / 2
    rows = xp.flatnonzero(~is_pd(result))
    if rows.size:
        values, vectors = xp.linalg.eigh(result[rows].astype(xp.result_type(stack.dtype, xp.float64)))
        resolution = 4 * n * xp.finfo(stack.dtype).eps
        largest = xp.abs(values).max(axis=1, keepdims=True)
        values = xp.maximum(values, resolution * xp.where(largest > 0, largest, 1))
        raised = (vectors * values[:, None, :]) @ vectors.conj().swapaxes(1, 2)
        result[rows] = (raised + raised.conj().swapaxes(1, 2)) / 2
    result[~is_finite] = xp.nan
    return result.reshape(matrix.shape)  # type: ignore[no-any-return]


def regularize_spectral(matrix: Array, beta: float | Array) -> Array:
    """Pull matrices toward the identity: ``(1 - beta) matrix + beta I``, which moves every eigenvalue toward 1.

    Parameters
    ----------
    matrix
        Float or complex, unitless, shape ``(..., n, n)``, numpy or cupy. A value that is nan stays nan.
    beta
        Share of the identity, unitless: one number, or one for each matrix, shape ``(...)``.

    Returns
    -------
    array
        Unitless, dtype and shape of `matrix`.

    Raises
    ------
    ValueError
        The last two axes are not of one length.
    """
    _check_square(matrix)
    xp: Any = array_module(matrix)
    share = xp.asarray(beta, dtype=matrix.real.dtype)[..., None, None]
    result = (1 - share) * matrix + share * xp.eye(matrix.shape[-1], dtype=matrix.dtype)
    return result.astype(matrix.dtype)  # type: ignore[no-any-return]


def uncompress_coh(coh: Array, image_pairs: Sequence[Sequence[int]] | Array, nimages: int | None = None) -> Array:
    """Write the coherence of image pairs out as matrices.

    Parameters
    ----------
    coh
        Coherence of pairs, unitless, complex or float, shape ``(..., n_pairs)``, numpy or cupy. Nan stays nan.
    image_pairs
        Numbers of the two images of each pair, ``(n_pairs, 2)``, in any order and direction.
    nimages
        Number of images of the stack; one more than the largest in `image_pairs` by default.

    Returns
    -------
    array
        Hermitian matrices, unitless, dtype of `coh`, shape ``(..., nimages, nimages)``: 1 on the diagonal, 0 for pairs
        that are not in the list.

    Raises
    ------
    ValueError
        There are not as many pairs as values, or a pair is not of two different images from 0 to `nimages` - 1.
    """
    xp: Any = array_module(coh)
    pairs = np.asarray(image_pairs.get() if hasattr(image_pairs, "get") else image_pairs, dtype=np.int64).reshape(-1, 2)
    if len(pairs) != coh.shape[-1]:
        raise ValueError(f"coh has {coh.shape[-1]} pairs and image_pairs {len(pairs)}; expected as many")
    n_images = int(pairs.max(initial=-1)) + 1 if nimages is None else nimages
    is_wrong = (pairs < 0).any(axis=1) | (pairs >= n_images).any(axis=1) | (pairs[:, 0] == pairs[:, 1])
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise ValueError(
            f"pair {row} is ({pairs[row, 0]}, {pairs[row, 1]}); expected two different images from 0 to {n_images - 1}"
        )
    matrix = xp.zeros((*coh.shape[:-1], n_images, n_images), dtype=coh.dtype)
    diagonal = xp.arange(n_images)
    matrix[..., diagonal, diagonal] = 1
    first, second = xp.asarray(pairs[:, 0]), xp.asarray(pairs[:, 1])
    matrix[..., first, second] = coh
    matrix[..., second, first] = coh.conj()
    return matrix  # type: ignore[no-any-return]


def _check_square(matrix: Array) -> None:
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"matrix has shape {matrix.shape}; expected (..., n, n)")
