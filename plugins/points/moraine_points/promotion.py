"""The dtype that holds the values of two arrays exactly."""

from __future__ import annotations

KINDS = ("bool", "uint", "int", "float", "complex")
"""Kinds of dtypes; values of one can be held by those after it, but for numbers that need more digits."""

DIGITS = {
    "bool": 1, "uint8": 8, "int8": 7, "uint16": 16, "int16": 15, "uint32": 32, "int32": 31, "uint64": 64, "int64": 63,
    "float16": 11, "float32": 24, "float64": 53, "complex64": 24, "complex128": 53,
}  # fmt: skip
"""Binary digits of the integers that a dtype holds exactly; of two dtypes that hold the same, the smaller is first."""


def common_dtype(dtype1: str, dtype2: str) -> str | None:
    """Return the smallest dtype that holds every value of two dtypes; None if there is none.

    numpy's own promotion takes float64 for int64, of which it holds only numbers of up to 53 binary digits.

    Examples
    --------
    >>> common_dtype("int16", "float32"), common_dtype("int64", "float32")
    ('float32', None)
    """
    if dtype1 == dtype2:
        return dtype1
    return next((dtype for dtype in DIGITS if _holds(dtype, dtype1) and _holds(dtype, dtype2)), None)


def _holds(dtype: str, other: str) -> bool:
    return _rank(dtype) >= _rank(other) and DIGITS[dtype] >= DIGITS.get(other, 65)


def _rank(dtype: str) -> int:
    return KINDS.index(dtype.rstrip("0123456789"))
