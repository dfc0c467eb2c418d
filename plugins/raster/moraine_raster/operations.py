"""What each operation of the expression language is in numpy, but for the corners where numpy would surprise."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_raster.expression import FLOATING

if TYPE_CHECKING:
    from collections.abc import Callable


def is_python_number(value: object) -> bool:
    """Tell whether a value is a number that sets no precision; numpy's float64 is a float only by inheritance."""
    return type(value) in (int, float, complex)


def _counting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let bool be 0 and 1: numpy adds two bools to a bool, and subtracts none."""

    def apply(first: Any, *rest: Any) -> Any:
        if all(np.result_type(value).kind == "b" for value in (first, *rest)):
            first = np.int64(first)
        return function(first, *rest)

    return apply


def _ordering(function: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse complex values, which numpy orders by their real part first."""

    def apply(*values: Any) -> Any:
        if any(np.iscomplexobj(value) for value in values):
            raise ValueError("complex values have no order; use abs, real or imag")
        return function(*values)

    return apply


def _widening(function: Callable[..., Any]) -> Callable[..., Any]:
    """Take bool and 8-bit integers as float32: numpy answers in float16, where exp(12) is inf."""

    def widen(value: Any) -> Any:
        dtype = np.result_type(value)
        return np.float32(value) if dtype.kind in "biu" and dtype.itemsize == 1 else value

    return lambda *values: function(*map(widen, values))


def _power(base: Any, exponent: Any) -> Any:
    if type(exponent) is int and exponent < 0:
        exponent = float(exponent)  # numpy refuses negative integer powers of integers
    if is_python_number(base) and is_python_number(exponent):
        if type(base) is not int or type(exponent) is not int:
            return np.float_power(base, exponent)  # Python would make a complex number of (-8) ** 0.5
        if abs(base) > 1 and exponent > 63:
            raise ValueError("the result is beyond 64 bits")
    return base**exponent


def _complex(real: Any, imag: Any) -> Any:
    if np.iscomplexobj(real) or np.iscomplexobj(imag):
        raise ValueError("both parts must be real")
    # part by part, because 1j * inf has a nan as its real part
    shape = np.broadcast_shapes(np.shape(real), np.shape(imag))
    result = np.empty(shape, np.result_type(real, imag, np.complex64))
    result.real, result.imag = real, imag
    return result if result.ndim else result[()]


def _where(condition: Any, yes: Any, no: Any) -> Any:
    if np.result_type(condition).kind != "b":
        raise ValueError("the condition must be bool, such as a comparison")
    return np.where(condition, yes, no)


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+x": operator.pos, "-x": operator.neg, "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": operator.truediv, "%": operator.mod, "**": _power,
}  # fmt: skip
_ORDER: dict[str, Callable[..., Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_REST: dict[str, Callable[..., Any]] = {
    "==": operator.eq, "!=": operator.ne, "&": operator.and_, "|": operator.or_, "~": operator.inv,
    "abs": np.abs, "real": np.real, "imag": np.imag, "conj": np.conj, "complex": _complex, "where": _where,
    "floor": np.floor, "ceil": np.ceil, "isnan": np.isnan, "isfinite": np.isfinite,
}  # fmt: skip

OPERATIONS = (
    {symbol: _counting(function) for symbol, function in _ARITHMETIC.items()}
    | {symbol: _ordering(function) for symbol, function in _ORDER.items()}
    | {name: _widening(getattr(np, name)) for name in FLOATING}
    | _REST
)
"""Every operation by symbol or name. They take arrays, and numbers of Python or numpy."""
