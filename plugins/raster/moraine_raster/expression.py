"""The small expression language of `math` and `pc-logic-*`: arithmetic on named arrays, pixel by pixel.

Parsing needs no numpy, so a command can check an expression while it is being declared. An expression becomes a
sequence of numbers, array names and operations from a fixed table, in postfix order. `program` makes that ready for
arrays: numexpr does the arithmetic, numpy the rest. There is nothing else an expression can do, whatever its text says.
"""

from __future__ import annotations

import ast
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from moraine_raster.program import Program

CONSTANTS = {"pi": math.pi, "nan": math.nan}
"""Names of numbers."""

FLOATING = [
    *("sqrt", "exp", "log", "log10", "log1p", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("arcsin", "arccos", "arctan", "arctan2", "angle"),
]
"""Functions whose result is never an integer."""

_OTHER = ["abs", "real", "imag", "conj", "complex", "floor", "ceil", "isnan", "isfinite", "min", "max", "where"]

ARITY = dict.fromkeys(FLOATING + _OTHER, 1) | {"arctan2": 2, "complex": 2, "min": 2, "max": 2, "where": 3}
"""Every function and its number of arguments."""

# The operators that exist, by their kind in the syntax tree; any other syntax is refused.
_OPERATORS: dict[type[ast.AST], str] = {
    ast.UAdd: "+x", ast.USub: "-x",
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%", ast.Pow: "**",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.BitAnd: "&", ast.BitOr: "|", ast.Invert: "~",
}  # fmt: skip

_MAX_LENGTH = 10_000  # characters: beyond any use, below what strains the parser
_MAX_DEPTH = 200  # enough for a sum of 200 arrays, below the interpreter's recursion limit


class Operation(NamedTuple):
    """A step that replaces the last `arity` values by one."""

    symbol: str
    arity: int


Step: TypeAlias = "float | str | Operation"
"""A number, the name of an array, or an operation on what came before."""


TOO_LARGE = "makes an integer beyond 64 bits; write it with a decimal point"


def is_too_large(value: object) -> bool:
    """Tell whether a whole number fits no array: Python's grow without end."""
    return type(value) is int and not -(2**63) <= value < 2**63


class Expression:
    """An expression, parsed and ready to be evaluated on arrays.

    Parameters
    ----------
    text
        Numbers, names of arrays, ``pi``, ``nan``, ``+ - * / % **``, comparisons, ``& | ~``, parentheses, and the
        functions of `ARITY`. Precedence is Python's, so comparisons joined by ``&`` or ``|`` need parentheses.

    Attributes
    ----------
    text : str
        The expression.
    names : tuple of str
        Names of the arrays it needs, in order of appearance.

    Raises
    ------
    ValueError
        If the text is not in the language, or names no array.

    Examples
    --------
    >>> Expression("where(coh > 0.3, angle(intf), nan)").names
    ('coh', 'intf')
    """

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        if len(self.text) > _MAX_LENGTH:
            raise self._error(f"has {len(self.text)} characters; at most {_MAX_LENGTH} are allowed")
        try:
            tree = ast.parse(self.text, mode="eval")
        except (RecursionError, MemoryError):
            raise self._error("is nested too deeply") from None
        except (SyntaxError, ValueError) as error:  # ValueError: a null character
            raise self._error(f"cannot be read: {getattr(error, 'msg', error)}") from None
        self._steps: list[Step] = []
        self._compile(tree.body, _MAX_DEPTH)
        self.names = tuple(dict.fromkeys(step for step in self._steps if isinstance(step, str)))
        if not self.names:
            raise self._error("names no array")

    def __repr__(self) -> str:
        """Show the text."""
        return f"Expression({self.text!r})"

    def check_names(self, given: Iterable[str]) -> None:
        """Refuse given names that lack a name of the expression, or that are words of the language.

        Parameters
        ----------
        given
            Names of the arrays at hand; more than needed are fine.

        Raises
        ------
        ValueError
            If the expression uses another name, or a given name is that of a function or constant.
        """
        given = list(given)
        for name in self.names:
            if name not in given:
                raise self._error(f"uses {name!r}; the given names are: {', '.join(given) or 'none'}")
        for name in given:
            if name in ARITY or name in CONSTANTS:
                raise self._error(f"cannot use an array called {name!r}, which is a word of the language")

    def evaluate(self, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Value of the expression at every pixel.

        Numbers take the precision of the arrays they meet: float32 and complex64 stay so. Comparisons give bool, and
        are False at nan (``!=`` is True); everything else passes nan on. Bool counts as 0 and 1 in arithmetic. Division
        by zero, the logarithm of a negative value and the like give inf or nan, without a warning.

        Parameters
        ----------
        arrays
            Arrays of one shape by name; bool, integer, float or complex, any unit (of angles: radians).

        Returns
        -------
        ndarray
            Result, in the shape of the arrays. It may share memory with one of them: copy before changing it.

        Raises
        ------
        ValueError
            If a name is missing, shapes differ, or an operation does not exist for the dtypes it meets.
        """
        self.check_names(arrays)
        used = {name: arrays[name] for name in self.names}
        if len({array.shape for array in used.values()}) > 1:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in used.items())
            raise self._error(f"needs arrays of one shape; found {shapes}")
        with self._naming_itself():
            return self._program({name: array.dtype for name, array in used.items()}).run(used)

    def probe(self, dtypes: Mapping[str, str]) -> tuple[str, int]:
        """Dtype of the result, and the memory that evaluating takes, without any data.

        Parameters
        ----------
        dtypes
            numpy's names of the dtypes of the arrays, by name of the array.

        Returns
        -------
        dtype : str
            numpy's name of the dtype of the result.
        temporary : int
            Bytes per pixel that evaluating needs at most besides the arrays: intermediate values and the result.

        Raises
        ------
        ValueError
            As `evaluate`.
        """
        import numpy as np

        self.check_names(dtypes)
        with self._naming_itself():
            program = self._program({name: np.dtype(dtypes[name]) for name in self.names})
        return program.dtype, program.temporary

    def _program(self, dtypes: Mapping[str, np.dtype[Any]]) -> Program:
        """Make the expression ready for arrays."""
        from moraine_raster.program import Program

        for name, dtype in dtypes.items():
            if dtype.kind not in "biufc":
                msg = f"needs numbers; the dtype of {name} is {dtype}"
                raise ValueError(msg)
        return Program(self._steps, dtypes)

    def _compile(self, node: ast.expr, depth: int) -> None:
        """Append the program of a node of the syntax tree: its operands first, then its operation."""
        if depth == 0:
            raise self._error("is nested too deeply")
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                if is_too_large(value):
                    raise self._error(TOO_LARGE)
                self._steps.append(value)
                return
            case ast.Name(id=name) if not name.startswith("__"):
                if name in ARITY:
                    raise self._error(f"names the function {name!r} without calling it")
                self._steps.append(CONSTANTS.get(name, name))
                return
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
                symbol, operands = _OPERATORS[type(op)], [operand]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                symbol, operands = _OPERATORS[type(op)], [left, right]
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
                symbol, operands = _OPERATORS[type(op)], [left, right]
            case ast.Call(func=ast.Name(id=symbol), args=operands, keywords=[]):
                if symbol not in ARITY:
                    raise self._error(f"calls {symbol!r}; the functions are: {', '.join(sorted(ARITY))}")
                if len(operands) != ARITY[symbol]:
                    raise self._error(f"calls {symbol!r} with {len(operands)} arguments; it takes {ARITY[symbol]}")
            case ast.Compare(ops=[_, _, *_]):
                raise self._error("chains comparisons; write (a < b) & (b < c), with the parentheses")
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                raise self._error("uses and, or, not; write & | ~ and put comparisons in parentheses")
            case _:
                part = ast.get_source_segment(self.text, node) or ""
                raise self._error(f"contains {part[:40]!r}, which is not in the language")
        for operand in operands:
            self._compile(operand, depth - 1)
        self._steps.append(Operation(symbol, len(operands)))

    @contextmanager
    def _naming_itself(self) -> Iterator[None]:
        """Let errors begin with the expression."""
        try:
            yield
        except ValueError as error:
            raise self._error(str(error)) from None

    def _error(self, fault: str) -> ValueError:
        text = self.text if len(self.text) <= 80 else f"{self.text[:77]}..."
        return ValueError(f"expression {text!r} {fault}")
