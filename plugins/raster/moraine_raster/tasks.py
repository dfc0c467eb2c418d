"""What tasks on rasters do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moraine_raster.expression import Expression

if TYPE_CHECKING:
    from numpy.typing import NDArray


def evaluate(*arrays: NDArray[Any], operation: str) -> NDArray[Any]:
    """Return the value of an expression at every pixel.

    Parameters
    ----------
    arrays
        Arrays of one shape, in the order in which the expression first names them.
    operation
        The expression; see `Expression`.
    """
    expression = Expression(operation)
    return expression.evaluate(dict(zip(expression.names, arrays, strict=True)))
