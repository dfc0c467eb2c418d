"""A serial kernel that releases the interpreter lock, as all of moraine's do."""

import numba as nb


@nb.njit(nogil=True)
def kernel(values):
    total = 0.0
    for i in range(values.size):
        total += values[i] ** 0.5
    return total
