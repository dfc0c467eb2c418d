"""The two-sample Kolmogorov-Smirnov (KS) test as formulas on numbers: how significant a distance is.

Kept free of numpy, so that declarations may ask too; compiled kernels take the same functions.
"""

from __future__ import annotations

from math import exp, pi, sqrt

FEWEST_IMAGES = 3
"""With fewer samples no two series differ significantly at 0.05."""


def effective_scale(n_x: int, n_y: int) -> float:
    """Return the factor that turns the KS statistic of small samples into the argument of Kolmogorov's distribution.

    ``s + 0.12 + 0.11 / s`` with ``s = sqrt(n_x n_y / (n_x + n_y))``.

    Parameters
    ----------
    n_x, n_y
        Sizes of the two samples, 1 or more.

    Returns
    -------
    float
        Unitless.

    References
    ----------
    Stephens, M. A. (1970): Use of the Kolmogorov-Smirnov, Cramer-von Mises and related statistics without extensive
    tables. Journal of the Royal Statistical Society B 32(1), 115-122.
    """
    s = sqrt(n_x * n_y / (n_x + n_y))
    return s + 0.12 + 0.11 / s


def kolmogorov(x: float) -> float:
    """Return the probability that a variable of Kolmogorov's distribution is above `x`.

    ``Q(x) = 2 sum_{i>=1} (-1)**(i-1) exp(-2 i**2 x**2)``, or for small `x`, where that hardly converges, the same
    function as ``1 - sqrt(2 pi) / x sum_{i>=1} exp(-(2i-1)**2 pi**2 / (8 x**2))``.

    Parameters
    ----------
    x
        Unitless, 0 or more.

    Returns
    -------
    float
        Unitless, 0 to 1; four terms of either sum are exact to float64 on its side of 1.18.
    """
    if x < 0.05:  # differs from 1 by less than float64 can tell
        return 1.0
    total = 0.0
    if x < 1.18:
        for i in range(4):
            total += exp(-(((2 * i + 1) * pi / x) ** 2) / 8)
        return 1 - sqrt(2 * pi) / x * total
    sign = 2.0
    for i in range(1, 5):
        total += sign * exp(-2 * (i * x) ** 2)
        sign = -sign
    return total


def significance(distance: int, n_x: int, n_y: int) -> float:
    """Return the p value of a KS distance: how likely samples of one distribution are at least as far apart.

    ``p = Q((s + 0.12 + 0.11 / s) D)`` with ``D = distance / (n_x n_y)``: asymptotic, with Stephens' correction.

    Parameters
    ----------
    distance
        Largest ``|n_y i - n_x j|``, where `i` and `j` samples are not above a value: the KS statistic in whole units
        of ``1 / (n_x n_y)``.
    n_x, n_y
        Sizes of the samples, 1 or more.

    Returns
    -------
    float
        Unitless, 0 to 1.
    """
    return kolmogorov(effective_scale(n_x, n_y) * distance / (n_x * n_y))
