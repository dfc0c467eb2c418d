"""Exact signs against fractions of whole numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moraine_unwrap.triangulation import _cpu
from moraine_unwrap.triangulation.predicates import _cpu as predicates

NEAR = [0.1, 0.1 + 2.0**-56, 0.2, 0.30000000000000004, 1 / 3, 2 / 3, 1.0, 1.0 + 2.0**-52, 12.0, 24.0, 0.5, -0.5]
number = st.one_of(st.sampled_from(NEAR), st.floats(-1, 1).map(lambda v: 0.0 if abs(v) < 2.0**-150 else v))
whole = st.integers(-20, 20).map(float)


def sign(value: Any) -> int:
    return (value > 0) - (value < 0)


def true_turn(px: float, py: float, ax: float, ay: float, bx: float, by: float) -> int:
    x, y, *rest = map(Fraction, (px, py, ax, ay, bx, by))
    a, b, c, d = rest
    return sign((a - x) * (d - y) - (b - y) * (c - x))


def true_circle(points: list[float], weights: tuple[float, float]) -> int:
    x, y, *rest = map(Fraction, points)
    (ax, ay), (bx, by), (dx, dy) = ((rest[k] - x, rest[k + 1] - y) for k in (0, 2, 4))
    a, b, d = (Fraction(weights[0]) * u * u + Fraction(weights[1]) * v * v for u, v in ((ax, ay), (bx, by), (dx, dy)))
    return sign(a * (bx * dy - by * dx) - b * (ax * dy - ay * dx) + d * (ax * by - ay * bx))


@settings(deadline=None, max_examples=300)
@example([0.5, 0.5, 12.0, 12.0, 24.0, 24.0])
@example([0.5 + 2.0**-53, 0.5, 12.0, 12.0, 24.0, 24.0])
@given(st.one_of(st.lists(number, min_size=6, max_size=6), st.lists(whole, min_size=6, max_size=6)))
def test_turns_have_the_sign_of_the_fraction(values: list[float]):
    assert predicates.exact_turn(*values) == true_turn(*values)
    assert sign(_cpu.turn(*values, 3.0000000000000004 * 2.0**-53)) == true_turn(*values)


@settings(deadline=None, max_examples=300)
@given(
    st.one_of(st.lists(number, min_size=8, max_size=8), st.lists(whole, min_size=8, max_size=8)),
    st.sampled_from([(1.0, 1.0), (251.0, 7.0), (1.0, 1e12)]),
)
def test_circles_have_the_sign_of_the_fraction(values: list[float], weights: tuple[float, float]):
    assert predicates.exact_circle(*values, *weights) == true_circle(values, weights)


def test_points_on_a_circle_and_next_to_it_are_told_apart():
    """The corners of a square far from the origin, one moved by one unit in the last place."""
    square = [1e6, 1e6, 1e6 + 1, 1e6, 1e6 + 1, 1e6 + 1, 1e6, 1e6 + 1]
    assert predicates.exact_circle(*square, 1.0, 1.0) == 0
    for moved, expected in ((np.nextafter(1e6, 2e6), -1), (np.nextafter(1e6, 0), 1)):
        assert predicates.exact_circle(*square[:6], moved, square[7], 1.0, 1.0) == expected


@settings(deadline=None)
@given(st.lists(number, max_size=6), st.lists(number, max_size=6))
def test_expansions_add_and_multiply_without_rounding(first: list[float], second: list[float]):
    e, f = np.empty(0), np.empty(0)
    for value in first:
        e = predicates.plus(e, np.array([value]))
    for value in second:
        f = predicates.plus(f, np.array([value]))
    a, b = sum(map(Fraction, first), Fraction()), sum(map(Fraction, second), Fraction())
    assert sum(map(Fraction, predicates.plus(e, f)), Fraction()) == a + b
    assert sum(map(Fraction, predicates.times(e, f)), Fraction()) == a * b
    assert predicates.sign(predicates.times(e, f)) == sign(a * b)
