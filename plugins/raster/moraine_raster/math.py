"""Arithmetic on arrays, pixel by pixel."""

from __future__ import annotations

from math import prod
from typing import Annotated

from moraine_core import Array, Chunk, ChunkTask, Input, Layout, Output, Plan, UsageError, blocks, command
from moraine_raster.expression import Expression


@command("math", family="raster", example="moraine_raster.examples:math")
def math(
    output: Annotated[str, Output("the result", shape="(...)")],
    operation: Annotated[str, "expression on the names, such as 'angle(intf) * 0.056 / (4 * pi)'"],
    **names: Annotated[Array, Input("arrays of one shape, under the names that the operation uses", shape="(...)")],
) -> Plan:
    """Evaluate an expression on arrays, element by element.

    The language has + - * / % **, comparisons, & | ~, parentheses, the constants pi and nan, where(c, a, b), and the
    functions abs sqrt exp log log10 log1p expm1 sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh real imag conj
    complex(a, b) angle floor ceil isnan isfinite min(a, b) max(a, b); angles are in radians.

    The arrays are given as --kw name=path. The result has the shape and the chunks of the first of them. Its dtype is
    that of the expression: float32 and complex64 stay so, a comparison gives bool. A missing value (nan) makes the
    result missing; comparisons with it are false.

    Examples
    --------
    moraine math --output mask.zarr --operation '(coh > 0.3) & (hgt < 500)' --kw coh=coh.zarr --kw hgt=hgt.zarr
    """
    if not names:
        raise UsageError("math: no array is given; expected at least one as --kw name=path")
    first_name, first = next(iter(names.items()))
    for name, array in names.items():
        if array.shape != first.shape:
            expected = f"{first.shape}, as {first_name} {first.path}"
            raise UsageError(f"math: {name} {array.path} has shape {array.shape}; expected {expected}")
    expression = Expression(operation)
    dtype, temporary = expression.probe({name: array.dtype for name, array in names.items()})
    out = Layout(output, first.shape, dtype, first.chunks)
    return Plan(
        [out],
        [
            ChunkTask(
                "moraine_raster.tasks:evaluate",
                inputs=[Chunk(names[name], block) for name in expression.names],
                outputs=[Chunk(out, block)],
                kwargs={"operation": operation},
                scratch_bytes=temporary * prod(part.stop - part.start for part in block),
            )
            for block in blocks(out.shape, out.chunks)
        ],
    )
