"""Sixteen float32 at a time inside numba functions: the few vector operations that the loops of `_cpu` are made of.

The compiler does not find them by itself: it cannot prove that two rows of one array are not the same memory. On
processors with narrower registers it splits each into two or four.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

if TYPE_CHECKING:
    from collections.abc import Callable

LANES = 16
"""float32 in a vector: one register of AVX-512."""

_INDEX = ir.IntType(32)
_VECTOR = ir.VectorType(ir.FloatType(), LANES)


class _Lanes(types.Type):
    """The numba type of a vector."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


_lanes = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    """A vector is one value for LLVM."""

    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, _VECTOR)  # type: ignore[no-untyped-call]


def _intrinsic(generator: Callable[..., Any]) -> Any:
    """Make a function for compiled code: its types are those of the call, not of what generates its code."""
    return intrinsic(generator)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


def _call(builder: Any, name: str, args: Any) -> Any:
    """Return the result of a function of LLVM that works on each lane."""
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * len(args))
    function: Any = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
        builder.module, kind, f"llvm.{name}.v{LANES}f32"
    )
    return builder.call(function, args)


@_intrinsic
def load(_: Any, array: Any, index: Any) -> Any:
    """Return ``array[index : index + LANES]`` of a contiguous float32 array; nothing checks the bounds."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args[0], *args), align=4)

    return _lanes(array, types.intp), generate


@_intrinsic
def store(_: Any, array: Any, index: Any, vector: Any) -> Any:
    """Set ``array[index : index + LANES]`` of a contiguous float32 array; nothing checks the bounds."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _pointer(context, builder, signature.args[0], *args[:2]), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, _lanes), generate


@_intrinsic
def splat(_: Any, value: Any) -> Any:
    """Return a vector with one float32 in each lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(nothing, args[0], ir.Constant(_INDEX, 0))
        return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES))

    return _lanes(types.float32), generate


@_intrinsic
def fma(_: Any, a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c``, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "fma", args)

    return _lanes(_lanes, _lanes, _lanes), generate


@_intrinsic
def fnma(_: Any, a: Any, b: Any, c: Any) -> Any:
    """Return ``c - a * b``, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "fma", [builder.fneg(args[0]), args[1], args[2]])

    return _lanes(_lanes, _lanes, _lanes), generate


@_intrinsic
def mul(_: Any, a: Any, b: Any) -> Any:
    """Return ``a * b``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(*args)

    return _lanes(_lanes, _lanes), generate


@_intrinsic
def sqrt(_: Any, a: Any) -> Any:
    """Return the square roots."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "sqrt", args)

    return _lanes(_lanes), generate


@_intrinsic
def total(_: Any, vector: Any) -> Any:
    """Return the sum of the lanes, halves added to halves: the same order everywhere."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rest, width = args[0], LANES
        while width > 1:
            width //= 2
            halves = (
                builder.shuffle_vector(
                    rest, rest, ir.Constant(ir.VectorType(_INDEX, width), list(range(start, start + width)))
                )
                for start in (0, width)
            )
            rest = builder.fadd(*halves)
        return builder.extract_element(rest, ir.Constant(_INDEX, 0))

    return types.float32(_lanes), generate
