"""Expressions made ready for arrays of known dtypes, and evaluated on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_raster.expression import TOO_LARGE, Operation, is_too_large
from moraine_raster.fusion import Pass, common_dtype, dtype_of
from moraine_raster.operations import OPERATIONS, is_python_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from moraine_raster.expression import Step

MAX_SIZE = 40
"""Operations and operands of one pass of numexpr, whose machine has room for about 30 arrays and 250 values."""

MAX_COMPUTED = 2
"""Operands of one pass that are results of others: they exist at one time, which costs what the pass is to save."""


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """A part of an expression, of which everything is known but the data.

    Attributes
    ----------
    step
        The name of an array, a number, or the symbol of an operation.
    sample
        An array of its dtype without elements, or the number.
    operands, joins
        Of an operation: what it takes, and which of these numexpr computes in the same pass.
    common_dtype
        The dtype in which numexpr computes it; empty if numpy does.
    size, n_computed
        Operations and operands in its pass, and those operands that are results of others.
    """

    step: Any
    sample: Any
    operands: tuple[Value, ...] = ()
    joins: tuple[bool, ...] = ()
    common_dtype: str = ""
    size: int = 1
    n_computed: int = 0

    @property
    def key(self) -> str | int:
        """What tells it from others."""
        return self.step if isinstance(self.step, str) and not self.operands else id(self)


class Program:
    """An expression made ready for arrays of given dtypes: steps on a stack.

    Parameters
    ----------
    steps
        The expression in postfix order.
    dtypes
        Dtypes of its arrays by name.

    Attributes
    ----------
    dtype : str
        numpy's name of the dtype of the result.
    temporary : int
        Bytes per pixel that evaluating needs at most besides the arrays: values in between, and the result.

    Raises
    ------
    ValueError
        An operation does not exist for the dtypes it meets.
    """

    def __init__(self, steps: Sequence[Step], dtypes: Mapping[str, np.dtype[Any]]) -> None:
        stack: list[Value] = []
        with np.errstate(all="ignore"):
            for step in steps:
                if isinstance(step, Operation):
                    operands = tuple(stack[-step.arity :])
                    del stack[-step.arity :]
                    stack.append(_operation(step.symbol, operands))
                else:
                    stack.append(Value(step, np.empty(0, dtypes[step]) if isinstance(step, str) else step))
        result = stack.pop()
        self.dtype = dtype_of(result.sample)
        # numbers alone make doubles, as in where(c, 1.0, nan); doubles that no array asked for are taken back
        if np.result_type(*dtypes.values()).char in "fF":
            self.dtype = {"float64": "float32", "complex128": "complex64"}.get(self.dtype, self.dtype)
        self._steps: list[Value | Pass] = []
        self._emit(result)
        self.temporary = self._count_bytes()

    def run(self, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Return the value of the expression.

        Parameters
        ----------
        arrays
            Its arrays by name, of one shape.
        """
        stack: list[Any] = []
        with np.errstate(all="ignore"):
            for step in self._steps:
                operands = [stack.pop() for _ in step.operands][::-1]
                if isinstance(step, Pass):
                    stack.append(step.run(operands))
                elif operands:
                    stack.append(_apply(step.step, operands))
                else:
                    stack.append(arrays[step.step] if isinstance(step.step, str) else step.sample)
                del operands
            return np.asarray(stack.pop()).astype(self.dtype, copy=False)

    def _emit(self, value: Value) -> None:
        """Append the steps that leave a value on the stack."""
        step = Pass(value) if any(value.joins) else value
        for operand in step.operands:
            self._emit(operand)
        self._steps.append(step)

    def _count_bytes(self) -> int:
        """Return the bytes per pixel that running needs at most: what a step finds on the stack, and what it makes."""
        stack: list[int] = []
        most = 0
        for step in self._steps:
            found, n_operands = sum(stack), len(step.operands)
            del stack[len(stack) - n_operands :]
            stack.append(step.sample.dtype.itemsize if n_operands else 0)
            # numpy may convert one operand at a time, to 8 bytes at most; numexpr converts a few pixels at a time
            converted = 8 if n_operands and not isinstance(step, Pass) else 0
            most = max(most, found + stack[-1] + converted)
        last = self._steps[-1].sample.dtype
        return most if last == self.dtype else max(most, stack[-1] + np.dtype(self.dtype).itemsize)


def _operation(symbol: str, operands: tuple[Value, ...]) -> Value:
    """Return the value of an operation; numbers alone make a number."""
    samples = [operand.sample for operand in operands]
    sample = _apply(symbol, samples)
    if not dtype_of(sample):
        return Value(sample, sample)
    common = common_dtype(symbol, samples, sample)
    size, joins = 1, []
    n_computed = sum(bool(operand.operands) for operand in operands)
    for operand in operands:
        added = operand.size * (2 if symbol == "**" else 1)  # a square is the product of two
        computed = n_computed - 1 + operand.n_computed
        joins.append(bool(common and operand.common_dtype) and size + added <= MAX_SIZE and computed <= MAX_COMPUTED)
        size += added if joins[-1] else 1
        n_computed = computed if joins[-1] else n_computed
    return Value(symbol, sample, operands, tuple(joins), common, size, n_computed)


def _apply(symbol: str, operands: Sequence[Any]) -> Any:
    """Do one operation by numpy; Python numbers give a Python number again, which sets no precision."""
    try:
        result = OPERATIONS[symbol](*operands)
    except (TypeError, ValueError, ArithmeticError) as error:
        found = ", ".join(str(getattr(value, "dtype", value)) for value in operands)
        reason = "it does not exist for these" if isinstance(error, TypeError) else error
        msg = f"applies {symbol!r} to ({found}): {reason}"
        raise ValueError(msg) from None
    if isinstance(result, bool):
        return np.bool_(result)  # in Python ~True is -2
    if isinstance(result, np.number) and all(map(is_python_number, operands)):
        result = result.item()
    if is_too_large(result):
        raise ValueError(TOO_LARGE)
    return result
