"""Arithmetic that numexpr does in one pass over the pixels, without an array for each value in between.

It is given what IEEE 754 defines to the last bit, and integers, so a result does not depend on who computes it. What
numpy does many times faster stays with numpy: comparisons and their logic, whose results are small, and all functions
but the square root. numexpr compiles trees of its own nodes; it is never given text, which it would evaluate as Python.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from moraine_raster.program import Value

_OPCODES = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "-x": "neg", "**": "mul", "sqrt": "sqrt", "where": "where",
}  # fmt: skip
"""numexpr's names of the operations; the only power is the square."""

_KINDS = {"bool": "bool", "int32": "int", "int64": "long", "float32": "float", "float64": "double"}
"""numexpr's names of the dtypes in which it computes as numpy does; it takes all others to one of these."""

_CASTS = {("int32", "int64"), ("int32", "float64"), ("int64", "float64"), ("float32", "float64")}


def common_dtype(symbol: str, samples: Sequence[Any], result: Any) -> str:
    """Return the dtype in which numexpr does an operation just as numpy does; empty if it does not.

    Parameters
    ----------
    symbol
        The operation.
    samples, result
        Its operands and its result: arrays without elements, or numbers.

    Returns
    -------
    str
        The dtype that the operands are converted to; the condition of ``where`` stays bool.
    """
    wanted = dtype_of(result)
    if symbol == "where":
        is_done = dtype_of(samples[0]) == "bool"
        samples = samples[1:]
    elif symbol == "**":
        is_done = type(samples[1]) is int and samples[1] == 2
    elif symbol == "sqrt":
        is_done = dtype_of(samples[0]) == wanted  # of integers, numpy chooses the dtype
    else:
        is_done = symbol in _OPCODES
    return wanted if is_done and wanted in _KINDS and all(_fits(sample, wanted) for sample in samples) else ""


def dtype_of(sample: Any) -> str:
    """Return the dtype of what will be an array; empty for numbers."""
    return _name(sample.dtype) if isinstance(sample, np.ndarray) and sample.ndim else ""


@cache
def _name(dtype: np.dtype[Any]) -> str:
    """Return numpy's name of a dtype, which takes numpy long to put together."""
    return dtype.name


def _fits(sample: Any, wanted: str) -> bool:
    """Tell whether numexpr can convert an operand to a dtype as numpy does."""
    if type(sample) is int and wanted.startswith("int"):
        return bool(np.iinfo(wanted).min <= sample <= np.iinfo(wanted).max)
    if type(sample) in (int, float):
        return wanted.startswith("float")
    return dtype_of(sample) == wanted or (dtype_of(sample), wanted) in _CASTS


class Pass:
    """Several operations as one step, which takes arrays to an array.

    Parameters
    ----------
    root
        The last operation; those that it joins belong to the pass, and those that they join.

    Attributes
    ----------
    operands : tuple of Value
        What the pass takes: arrays, and results of operations that are not in it.
    sample : ndarray
        The result without elements.
    """

    def __init__(self, root: Value) -> None:
        self._root = root
        self.sample = root.sample
        found: dict[Any, Value] = {}
        _collect_operands(root, found)
        self.operands = tuple(found.values())

    def run(self, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return the result.

        Parameters
        ----------
        arrays
            The values of `operands`, all of one shape.
        """
        from moraine_raster._numexpr import expressions, numexpr

        kinds = [_KINDS[dtype_of(value.sample)] for value in self.operands]
        leaves = {
            value.key: expressions.VariableNode(f"v{number}", kind)
            for number, (value, kind) in enumerate(zip(self.operands, kinds, strict=True))
        }
        signature = [(f"v{number}", expressions.kind_to_type[kind]) for number, kind in enumerate(kinds)]
        # compiled for this call alone: two threads must not run one compiled expression at a time
        compiled = numexpr.NumExpr(_node(self._root, leaves, expressions), signature)
        result: NDArray[Any] = compiled(*arrays, ex_uses_vml=numexpr.use_vml)
        return result


def _collect_operands(value: Value, found: dict[Any, Value]) -> None:
    """Gather the operands at the border of a pass."""
    for operand, is_joined in zip(value.operands, value.joins, strict=True):
        if is_joined:
            _collect_operands(operand, found)
        elif dtype_of(operand.sample):
            found.setdefault(operand.key, operand)


def _node(value: Value, leaves: Mapping[Any, Any], expressions: Any) -> Any:
    """Return numexpr's node of an operation."""
    nodes = []
    for number, (operand, is_joined) in enumerate(zip(value.operands, value.joins, strict=True)):
        dtype = dtype_of(operand.sample)
        wanted = "bool" if (value.step, number) == ("where", 0) else value.common_dtype
        if is_joined:
            node = _node(operand, leaves, expressions)
        elif dtype:
            node = leaves[operand.key]
        else:
            node = expressions.ConstantNode(np.dtype(wanted).type(operand.sample))
        nodes.append(expressions.OpNode("cast", (node,), _KINDS[wanted]) if dtype not in ("", wanted) else node)
    if value.step == "**":
        nodes = [nodes[0], nodes[0]]
    return expressions.OpNode(_OPCODES[value.step], nodes, _KINDS[dtype_of(value.sample)])
