"""The small expression language of `math` and `pc-logic-*`: arithmetic on named arrays, pixel by pixel.

Parsing needs no numpy, so a command can check an expression while it is being declared. An expression becomes a
postfix program of numbers, array names and operations from a fixed table; evaluating runs that program on a stack.
There is nothing else a program can do, whatever the text says.
"""

from __future__ import annotations

import ast
import math
import operator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

CONSTANTS = {"pi": math.pi, "nan": math.nan}
"""Names of numbers."""

# Functions whose result is never an integer, and all others.
_FLOATING = [
    *("sqrt", "exp", "log", "log10", "log1p", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("arcsin", "arccos", "arctan", "arctan2", "angle"),
]
_OTHER = ["abs", "real", "imag", "conj", "complex", "floor", "ceil", "isnan", "isfinite", "min", "max", "where"]

ARITY = dict.fromkeys(_FLOATING + _OTHER, 1) | {"arctan2": 2, "complex": 2, "min": 2, "max": 2, "where": 3}
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


class _Operation(NamedTuple):
    """A step of a program: replace the last `arity` values by one."""

    symbol: str
    arity: int


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
        self._program: list[float | str | _Operation] = []
        self._compile(tree.body, _MAX_DEPTH)
        self.names = tuple(dict.fromkeys(step for step in self._program if isinstance(step, str)))
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
        return self._run({name: arrays[name] for name in self.names})

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
        live = [0]
        result = self._run({name: np.empty(0, dtypes[name]) for name in self.names}, live)
        return result.dtype.name, max(live) + 8  # an operation may convert one operand at a time, to 8 bytes at most

    def _run(self, used: dict[str, NDArray[Any]], live: list[int] | None = None) -> NDArray[Any]:
        """Run the program; note in `live` the bytes per pixel that each operation finds and makes."""
        import numpy as np

        if len({array.shape for array in used.values()}) > 1:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in used.items())
            raise self._error(f"needs arrays of one shape; found {shapes}")
        for name, array in used.items():
            if array.dtype.kind not in "biufc":
                raise self._error(f"needs numbers; the dtype of {name} is {array.dtype}")

        stack: list[Any] = []
        given = {id(array) for array in used.values()}
        with np.errstate(all="ignore"):
            for step in self._program:
                if isinstance(step, _Operation):
                    operands = stack[-step.arity :]
                    del stack[-step.arity :]
                    stack.append(self._apply(step.symbol, operands))
                    if live is not None:
                        made = [v for v in (*stack, *operands) if isinstance(v, np.ndarray) and id(v) not in given]
                        live.append(sum(value.dtype.itemsize for value in made))
                else:
                    stack.append(used[step] if isinstance(step, str) else step)
            result = np.asarray(stack.pop())
            # numbers alone make doubles, as in where(c, 1.0, nan); doubles that no array asked for are taken back
            if np.result_type(*used.values()).char in "fF" and result.dtype.char in "dD":
                result = result.astype(result.dtype.char.replace("d", "f").replace("D", "F"))
        return result

    def _compile(self, node: ast.expr, depth: int) -> None:
        """Append the program of a node of the syntax tree: its operands first, then its operation."""
        if depth == 0:
            raise self._error("is nested too deeply")
        match node:
            case ast.Constant(value=value) if type(value) in (int, float):  # bool is an int, but not a number here
                self._program.append(self._bounded(value))
                return
            case ast.Name(id=name) if not name.startswith("__"):
                if name in ARITY:
                    raise self._error(f"names the function {name!r} without calling it")
                self._program.append(CONSTANTS.get(name, name))
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
        self._program.append(_Operation(symbol, len(operands)))

    def _apply(self, symbol: str, operands: list[Any]) -> Any:
        """Do one operation; Python numbers give a Python number again, which sets no precision."""
        import numpy as np

        try:
            result = _operations()[symbol](*operands)
        except (TypeError, ValueError, ArithmeticError) as error:
            found = ", ".join(str(getattr(value, "dtype", value)) for value in operands)
            reason = "it does not exist for these" if isinstance(error, TypeError) else error
            raise self._error(f"applies {symbol!r} to ({found}): {reason}") from None
        if isinstance(result, bool):
            return np.bool_(result)  # in Python ~True is -2
        if isinstance(result, np.number) and all(_is_python_number(value) for value in operands):
            result = result.item()
        return self._bounded(result)

    def _bounded(self, value: Any) -> Any:
        """Refuse integers that fit no array, which also keeps Python's unlimited integers from growing."""
        if type(value) is int and not -(2**63) <= value < 2**63:
            raise self._error("makes an integer beyond 64 bits; write it with a decimal point")
        return value

    def _error(self, fault: str) -> ValueError:
        text = self.text if len(self.text) <= 80 else f"{self.text[:77]}..."
        return ValueError(f"expression {text!r} {fault}")


def _is_python_number(value: object) -> bool:
    return type(value) in (int, float, complex)  # numpy's float64 is a float by inheritance


@cache
def _operations() -> dict[str, Callable[..., Any]]:
    """Every operation by symbol: numpy's, but for the corners where numpy's answer would surprise."""
    import numpy as np

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        """Let bool be 0 and 1: numpy adds two bools to a bool, and subtracts none."""

        def apply(first: Any, *rest: Any) -> Any:
            if all(np.result_type(value).kind == "b" for value in (first, *rest)):
                first = np.int64(first)
            return function(first, *rest)

        return apply

    def ordering(function: Callable[..., Any]) -> Callable[..., Any]:
        """Refuse complex values, which numpy orders by their real part first."""

        def apply(*values: Any) -> Any:
            if any(np.iscomplexobj(value) for value in values):
                raise ValueError("complex values have no order; use abs, real or imag")
            return function(*values)

        return apply

    def widening(function: Callable[..., Any]) -> Callable[..., Any]:
        """Take bool and 8-bit integers as float32: numpy answers in float16, where exp(12) is inf."""

        def widen(value: Any) -> Any:
            dtype = np.result_type(value)
            return np.float32(value) if dtype.kind in "biu" and dtype.itemsize == 1 else value

        return lambda *values: function(*map(widen, values))

    def power(base: Any, exponent: Any) -> Any:
        if type(exponent) is int and exponent < 0:
            exponent = float(exponent)  # numpy refuses negative integer powers of integers
        if _is_python_number(base) and _is_python_number(exponent):
            if type(base) is not int or type(exponent) is not int:
                return np.float_power(base, exponent)  # Python would make a complex number of (-8) ** 0.5
            if abs(base) > 1 and exponent > 63:
                raise ValueError("the result is beyond 64 bits")
        return base**exponent

    def compose(real: Any, imag: Any) -> Any:
        if np.iscomplexobj(real) or np.iscomplexobj(imag):
            raise ValueError("both parts must be real")
        # part by part, because 1j * inf has a nan as its real part
        shape = np.broadcast_shapes(np.shape(real), np.shape(imag))
        result = np.empty(shape, np.result_type(real, imag, np.complex64))
        result.real, result.imag = real, imag
        return result if result.ndim else result[()]

    def where(condition: Any, yes: Any, no: Any) -> Any:
        if np.result_type(condition).kind != "b":
            raise ValueError("the condition must be bool, such as a comparison")
        return np.where(condition, yes, no)

    arithmetic: dict[str, Callable[..., Any]] = {
        "+x": operator.pos, "-x": operator.neg, "+": operator.add, "-": operator.sub, "*": operator.mul,
        "/": operator.truediv, "%": operator.mod, "**": power,
    }  # fmt: skip
    order: dict[str, Callable[..., Any]] = {
        "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "min": np.minimum, "max": np.maximum,
    }  # fmt: skip
    rest: dict[str, Callable[..., Any]] = {
        "==": operator.eq, "!=": operator.ne, "&": operator.and_, "|": operator.or_, "~": operator.inv,
        "abs": np.abs, "real": np.real, "imag": np.imag, "conj": np.conj, "complex": compose, "where": where,
        "floor": np.floor, "ceil": np.ceil, "isnan": np.isnan, "isfinite": np.isfinite,
    }  # fmt: skip
    return (
        {symbol: counting(function) for symbol, function in arithmetic.items()}
        | {symbol: ordering(function) for symbol, function in order.items()}
        | {name: widening(getattr(np, name)) for name in _FLOATING}
        | rest
    )
