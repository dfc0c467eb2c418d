"""Serial numba kernels of `matrices`, which documents them."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def are_definite(stack):
    """Return for each matrix, complex128, whether its lower triangle has a Cholesky factorization."""
    result = np.zeros(stack.shape[0], np.bool_)
    for k in range(stack.shape[0]):
        result[k] = is_definite(stack[k].copy())
    return result


@njit(nogil=True, cache=True)
def is_definite(a):
    """Factorize a matrix in place, row by row; return False at the first pivot that is not positive and finite."""
    for i in range(a.shape[0]):
        for j in range(i + 1):
            value = a[i, j]
            for k in range(j):
                value -= a[i, k] * a[j, k].conjugate()
            if j < i:
                a[i, j] = value / a[j, j].real
            elif value.real > 0 and value.real < np.inf:
                a[i, i] = np.sqrt(value.real)
            else:
                return False
    return True
