"""The expression language: what it says, in which dtype, and that nothing else can be said."""

from __future__ import annotations

import cmath
import math
import pickle
import re
import subprocess
import sys
import tracemalloc
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_raster.expression import ARITY, Expression

if TYPE_CHECKING:
    from numpy.typing import NDArray

nan, inf, pi = math.nan, math.inf, math.pi


def evaluate(text: str, **arrays: NDArray[Any]) -> NDArray[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = Expression(text).evaluate(arrays)
    assert isinstance(result, np.ndarray)
    return result


def singles(*values: float) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def value(text: str, number: complex) -> Any:
    """Value of an expression in x where x is one number, in double precision."""
    return evaluate(text, x=np.array([number]))[0]


# -- values ------------------------------------------------------------------------------------------------------------

SAMPLES: list[tuple[str, complex, complex]] = [
    ("x + 1", 2.5, 3.5), ("x - 1", 2.5, 1.5), ("2 * x", 2.5, 5.0), ("x / 4", 2.0, 0.5), ("x % 3", -1.0, 2.0),
    ("x ** 3", 2.0, 8.0), ("x ** -1", 4.0, 0.25), ("-x ** 2", 3.0, -9.0), ("+x", 3.0, 3.0), ("1 - x - 1", 2.0, -2.0),
    ("2 + 3 * x", 4.0, 14.0), ("(2 + 3) * x", 4.0, 20.0), ("2 ** x ** 2", 3.0, 512.0), ("x * pi", 2.0, 2 * pi),
    ("abs(x)", -2.0, 2.0), ("abs(x)", 3 + 4j, 5.0), ("sqrt(x)", 9.0, 3.0), ("exp(x)", 1.0, math.e),
    ("log(x)", math.e, 1.0),
    ("log10(x)", 1000.0, 3.0), ("log1p(x)", 1e-12, math.log1p(1e-12)), ("expm1(x)", 1e-12, math.expm1(1e-12)),
    ("sin(x)", pi / 6, 0.5), ("cos(x)", pi / 3, 0.5), ("tan(x)", pi / 4, 1.0), ("arcsin(x)", 1.0, pi / 2),
    ("arccos(x)", -1.0, pi), ("arctan(x)", 1.0, pi / 4), ("arctan2(x, -1)", 0.0, pi), ("sinh(x)", 1.0, math.sinh(1)),
    ("cosh(x)", 1.0, math.cosh(1)), ("tanh(x)", 1.0, math.tanh(1)), ("real(x)", 3 + 4j, 3.0), ("imag(x)", 3 + 4j, 4.0),
    ("conj(x)", 3 + 4j, 3 - 4j), ("complex(x, 2)", 1.0, 1 + 2j), ("complex(x, x) ** 2", 1.0, 2j),
    ("floor(x)", -1.5, -2.0),
    ("ceil(x)", -1.5, -1.0), ("min(x, 2)", 3.0, 2.0), ("max(x, 2)", 3.0, 3.0), ("angle(x)", 1j, pi / 2),
    ("angle(x)", -1.0, pi), ("angle(exp(x))", 0.7j, 0.7), ("exp(x)", 1j * pi, -1.0), ("x * complex(0, 1)", 2.0, 2j),
    ("where(x > 0, x, -x)", -3.0, 3.0), ("sqrt(16) * x", 2.0, 8.0), ("10 ** 3 * x", 2.0, 2000.0),
    ("x + 1e3", 1.0, 1001.0),
    ("x * 2 ** -1", 3.0, 1.5), ("(x > 0) + (x > 1)", 2.0, 2), ("(x > 0) - (x > 1)", 2.0, 0), ("-(x > 0)", 2.0, -1),
]  # fmt: skip


@pytest.mark.parametrize(("text", "x", "expected"), SAMPLES)
def test_an_expression_has_the_value_of_the_formula(text: str, x: complex, expected: complex) -> None:
    assert cmath.isclose(value(text, x), expected, rel_tol=1e-12, abs_tol=1e-15)


def test_every_function_of_the_language_is_among_the_samples() -> None:
    written = " ".join(text for text, _, _ in SAMPLES)
    tested_below = {"isnan", "isfinite"}
    assert {name for name in ARITY if f"{name}(" not in written} == tested_below


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x < 2", [1, 0, 0, 0]), ("x <= 2", [1, 1, 0, 0]), ("x > 2", [0, 0, 1, 0]), ("x >= 2", [0, 1, 1, 0]),
        ("x == 2", [0, 1, 0, 0]), ("x != 2", [1, 0, 1, 1]), ("~(x < 2)", [0, 1, 1, 1]), ("isnan(x)", [0, 0, 0, 1]),
        ("isfinite(x)", [1, 1, 0, 0]), ("(x > 1) & (x < 3)", [0, 1, 0, 0]), ("(x < 2) | (x > 2)", [1, 0, 1, 0]),
        ("x == x", [1, 1, 1, 0]), ("x != nan", [1, 1, 1, 1]), ("~(1 > 2) & (x == 1)", [1, 0, 0, 0]),
    ],
)  # fmt: skip
def test_comparisons_give_bool_and_do_not_hold_at_nan(text: str, expected: list[int]) -> None:
    result = evaluate(text, x=singles(1, 2, inf, nan))
    assert result.dtype == np.bool_
    assert result.tolist() == [bool(flag) for flag in expected]


@pytest.mark.parametrize("text", ["(pc_in>=0.6)&(pc_in<=1.0)", " ( pc_in >= 0.6 ) & ( pc_in <= 1.0 ) "])
def test_selections_written_in_pipelines_are_read(text: str) -> None:
    assert evaluate(text, pc_in=singles(0.5, 0.7, 1, 1.1, nan)).tolist() == [False, True, True, False, False]


@pytest.mark.parametrize(
    "text",
    ["x + 1", "0 * x", "x ** 2", "-x", "abs(x)", "sin(x)", "min(x, 0)", "min(0, x)", "max(x, 0)", "max(x, 1.0)",
     "x % 2",
     "floor(x)", "where(1 < 2, x, 0)", "real(complex(x, 0))", "imag(complex(0, x))", "angle(complex(x, 1))",
     "arctan2(x, 1)"],
)  # fmt: skip
def test_nan_propagates(text: str) -> None:
    result = evaluate(text, x=singles(nan, 1))
    assert np.isnan(result).tolist() == [True, False]


def test_a_complex_value_is_nan_if_one_part_is() -> None:
    z = np.array([complex(nan, 0), complex(0, nan), 1], np.complex64)
    assert evaluate("isnan(z)", z=z).tolist() == [True, True, False]
    assert evaluate("isfinite(z)", z=z).tolist() == [False, False, True]
    assert np.isnan(evaluate("abs(z)", z=z)).tolist() == [True, True, False]


def test_an_infinite_imaginary_part_leaves_the_real_part_alone() -> None:
    z = evaluate("complex(x, y)", x=singles(1), y=singles(inf))
    assert (z.real.item(), z.imag.item()) == (1.0, inf)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1 / x", inf), ("log(x)", -inf), ("0 / x", nan), ("x % 0", nan), ("sqrt(x - 1)", nan), ("arcsin(x + 2)", nan),
     ("exp(x + 1e5)", inf), ("x + (-8) ** 0.5", nan), ("x + 10.0 ** 400", inf), ("x + sqrt(-1)", nan), ("x ** -1", inf),
     ("x + 0 ** -1", inf), ("x + 1e200 * 1e200", inf)],
)  # fmt: skip
def test_undefined_results_are_nan_or_inf_without_a_warning(text: str, expected: float) -> None:
    np.testing.assert_equal(evaluate(text, x=singles(0)), singles(expected))


# -- dtypes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("x", "f4", "f4"), ("x * 2", "f4", "f4"), ("x * 2.5", "f4", "f4"), ("x * pi", "f4", "f4"),
        ("x + nan", "f4", "f4"),
        ("2 * pi * x / 0.056", "f4", "f4"), ("sqrt(2) * x", "f4", "f4"), ("x ** 0.5", "f4", "f4"),
        ("x ** -2", "f4", "f4"),
        ("where(x > 0, x, nan)", "f4", "f4"), ("where(x > 0, 1.0, nan)", "f4", "f4"),
        ("where(x > 0, 1, 0) * x", "f4", "f4"),
        ("max(x, 0)", "f4", "f4"), ("arctan2(x, 1)", "f4", "f4"), ("x + where(1 < 2, 1.5, 2.5)", "f4", "f4"),
        ("complex(x, 0)", "f4", "c8"), ("x * complex(0, 1)", "f4", "c8"), ("exp(complex(0, 2) * x)", "f4", "c8"),
        ("x * 2.5", "f8", "f8"), ("complex(x, 0)", "f8", "c16"), ("x > 0.5", "f8", "?"),
        ("x * 2.5", "c8", "c8"), ("conj(x) * pi", "c8", "c8"), ("abs(x)", "c8", "f4"), ("angle(x)", "c8", "f4"),
        ("real(x)", "c8", "f4"), ("x == 1", "c8", "?"), ("angle(x)", "c16", "f8"), ("x * 2", "c16", "c16"),
        ("x + 1", "i4", "i4"), ("x ** 2", "i4", "i4"), ("x / 2", "i4", "f8"), ("x ** -1", "i4", "f8"),
        ("sqrt(x)", "i4", "f8"),
        ("sqrt(x)", "u1", "f4"), ("exp(x)", "?", "f4"), ("x & 1", "u1", "u1"), ("~x", "?", "?"), ("x + x", "?", "i8"),
    ],
)  # fmt: skip
def test_the_dtype_comes_from_the_arrays(text: str, dtype: str, expected: str) -> None:
    assert evaluate(text, x=np.ones(3, dtype)).dtype == np.dtype(expected)


def test_single_and_double_precision_together_are_double() -> None:
    assert evaluate("x + y", x=np.ones(1, "f4"), y=np.ones(1, "f8")).dtype == np.float64
    assert evaluate("x * y", x=np.ones(1, "c8"), y=np.ones(1, "f8")).dtype == np.complex128
    assert evaluate("x * y", x=np.ones(1, "f4"), y=np.ones(1, "i4")).dtype == np.float64


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(width=32), min_size=1, max_size=9), st.floats(width=32))
def test_pixels_are_evaluated_one_by_one(pixels: list[float], other: float) -> None:
    text = "where(x > y, x * y - 1.5, max(x, y) / 3)"
    x, y = singles(*pixels), np.full(len(pixels), other, np.float32)
    whole = evaluate(text, x=x, y=y)
    single = [evaluate(text, x=x[k : k + 1], y=y[k : k + 1])[0] for k in range(len(pixels))]
    np.testing.assert_array_equal(whole, np.array(single, np.float32))


def test_arrays_of_any_dimension_keep_their_shape() -> None:
    for shape in ((), (0,), (2, 0, 3), (2, 3, 4)):
        assert evaluate("2 * x + y", x=np.ones(shape), y=np.ones(shape)).shape == shape


def test_inputs_are_left_as_they_were() -> None:
    x = singles(-1, 2)
    evaluate("abs(x) + where(x > 0, x, 0) ** 2", x=x)
    assert x.tolist() == [-1, 2]


# -- what is known without data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["x", "x > 2", "where(x > 0, x, nan)", "angle(complex(x, y))", "x / y + 1", "x & 1"])
@pytest.mark.parametrize("dtypes", [("f4", "f4"), ("f4", "f8"), ("i2", "i4"), ("?", "u1")])
def test_the_dtype_is_known_without_data(text: str, dtypes: tuple[str, str]) -> None:
    arrays = {name: np.ones(3, dtype) for name, dtype in zip("xy", dtypes, strict=True)}
    try:
        expected = Expression(text).evaluate(arrays).dtype.name
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            Expression(text).probe({name: array.dtype.name for name, array in arrays.items()})
    else:
        assert Expression(text).probe({name: array.dtype.name for name, array in arrays.items()})[0] == expected


@pytest.mark.parametrize(
    "text",
    ["x", "x + 1", "(x + y) * (x - y) / (x * x + y * y)", "where(x > y, exp(x), abs(angle(complex(x, y))))",
     "(x > 0) + (y > 0) + (x > y)", "where(x > 0, 1.0, nan)"],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1"])
def test_evaluating_takes_no_more_memory_than_foretold(text: str, dtype: str) -> None:
    n_pixels = 100_000
    arrays = {name: np.ones(n_pixels, dtype) for name in "xy"}
    expression = Expression(text)
    foretold = expression.probe({name: array.dtype.name for name, array in arrays.items()})[1]
    expression.evaluate(arrays)
    tracemalloc.start()
    try:
        expression.evaluate(arrays)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert used <= foretold * n_pixels + 100_000  # numpy's buffers and the interpreter's objects
    assert foretold <= 64


# -- names -------------------------------------------------------------------------------------------------------------


def test_names_are_listed_once_in_order_of_appearance() -> None:
    assert Expression("where(coh > 0.3, angle(intf) + pi, nan) * coh").names == ("coh", "intf")


def test_an_unknown_name_is_refused_with_the_names_that_were_given() -> None:
    expression = Expression("a + b")
    with pytest.raises(ValueError, match="uses 'b'; the given names are: a, c"):
        expression.evaluate({"a": singles(1), "c": singles(1)})
    with pytest.raises(ValueError, match="uses 'a'; the given names are: none"):
        expression.check_names([])


def test_arrays_that_are_not_used_do_no_harm() -> None:
    assert evaluate("a + 1", a=singles(1), b=singles(1, 2)).tolist() == [2]


@pytest.mark.parametrize("name", ["pi", "nan", "abs", "where"])
def test_an_array_cannot_take_a_word_of_the_language(name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}', which is a word of the language"):
        Expression("x + 1").check_names(["x", name])


def test_arrays_of_different_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one shape; found a \(1,\), b \(2,\)"):
        Expression("a + b").evaluate({"a": singles(1), "b": singles(1, 2)})


@pytest.mark.parametrize("array", [np.array([object()]), np.array(["1"]), np.array(["2020-01-01"], "M8[D]")])
def test_arrays_that_hold_no_numbers_are_refused(array: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match="needs numbers"):
        Expression("a + 1").evaluate({"a": array})


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot be read"), ("x +", "cannot be read"), ("x y", "cannot be read"), ("x = 1", "cannot be read"),
        ("x; x", "cannot be read"), ("import os", "cannot be read"), ("x\x00", "cannot be read"),
        ("x\n+ 1\ny", "cannot be read"),
        ("1 + pi", "names no array"), ("sqrt + x", "without calling"), ("f(x)", "the functions are: abs, angle"),
        ("min(x)", "1 arguments; it takes 2"), ("where(x > 0, x)", "2 arguments; it takes 3"), ("pi(x)", "calls 'pi'"),
        ("0 < x < 1", "chains comparisons"), ("x > 0 & x < 1", "chains comparisons"),
        ("x > 0 and x < 1", "write & | ~"),
        ("not x", "write & | ~"), ("x // 2", "'x // 2'"), ("x ^ 2", "not in the language"),
        ("x << 2", "not in the language"),
        ("x @ x", "not in the language"), ("x is x", "not in the language"), ("x in x", "not in the language"),
        ("x + True", "'True'"), ("x + None", "'None'"), ("x + ...", "not in the language"), ("x + 1j", "'1j'"),
    ],
)  # fmt: skip
def test_what_the_language_lacks_is_refused_when_it_is_read(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="expression") as caught:
        Expression(text)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "x.real", "x.__class__", "x.tofile", "abs.__globals__", "().__class__.__bases__", "x[0]", "x[:, 0]", "abs['x']",
        "__import__('os')", "__builtins__", "__class__ + x", "eval(x)", "open(x)", "getattr(x, x)", "(lambda: x)()",
        "lambda: x", "[x for x in x]", "{x for x in x}", "{x: x for x in x}", "(y for y in x)", "[x]", "(x, x)",
        "{x}", "{x: x}",
        "x if x else x", "(x := x)", "'x'", "b'x'", "f'{x}'", "f'{x.real}'", "x + 'a'", "'%s' % x", "abs(*x)",
        "abs(**x)",
        "abs(x, out=x)", "sin(x, where=x)", "abs(x)(x)", "(abs)(x)(x)", "await x", "(yield x)", "x.sum()", "x @ x",
        "*x", "x[...]",
        "ᵉval(x)", "x.\uff52eal", "x if (y := 1) else y", "(x, __import__('os').system('true'))[0]",
        "x.real.__init__.__globals__", "().__class__.__base__.__subclasses__()", "(lambda: __import__('os'))()",
        "where(x > 0, __import__('os'), x)", "x + __debug__", "sum(x)", "ones_like(x)", "contains(x, x)", "copy(x)",
        "print(x)", "vars()", "min(x, key=abs)", "f'{(lambda: x)()}'", "x + `x`", "exec('x')", "min(x, *x)",
    ],
)  # fmt: skip
def test_nothing_but_arrays_and_the_table_can_be_reached(text: str) -> None:
    with pytest.raises(ValueError, match="expression"):
        Expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "x + 9 ** 9 ** 9", "x + 2 ** 2 ** 2 ** 2 ** 2 ** 2", "x + 7 ** 64", "x * (2 ** 62 * 4)",
        "x + 9223372036854775808",
        "x + -(-9223372036854775807 - 1)", "x * 0x" + "f" * 5000, "x * " + "9" * 5000, "x + 1 / 0", "x + 1 % 0",
    ],
)  # fmt: skip
def test_numbers_no_array_can_hold_are_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="expression"):
        Expression(text).evaluate({"x": singles(1)})


@pytest.mark.parametrize(
    "text",
    ["(" * 999 + "x" + ")" * 999, "-" * 9999 + "x", "~" * 500 + "x", "x" + " + x" * 2000, "-" * 200 + "x",
     "abs(" * 200 + "x" + ")" * 200, "x ** " * 1900 + "x", "x" + ".x" * 4000, "x < (" * 190 + "x" + ") < x" * 190,
     "x" * 10_001],
)  # fmt: skip
def test_nesting_and_length_without_end_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expression") as caught:
        Expression(text)
    assert len(str(caught.value)) < 300


def test_a_sum_of_150_terms_is_not_too_deep() -> None:
    assert evaluate("x" + " + x" * 149, x=np.ones(2)).tolist() == [150, 150]


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("~x", "f4"), ("x & 1", "f4"), ("x | x", "c8"), ("x % 2", "c8"), ("floor(x)", "c8"), ("arctan2(x, 1)", "c8"),
     ("x > 1", "c8"), ("min(x, 1)", "c8"), ("complex(x, 1)", "c8"), ("where(x, 1, 2)", "f4"), ("x + 300", "u1"),
     ("2 ** x", "i4")],
)  # fmt: skip
def test_operations_that_do_not_exist_for_a_dtype_say_which(text: str, dtype: str) -> None:
    with pytest.raises(ValueError, match=r"expression '.+' applies '.+' to \(.+\): .+") as caught:
        Expression(text).evaluate({"x": -np.ones(1, "i4").astype(dtype)})
    assert "\n" not in str(caught.value)


def test_letters_that_look_alike_name_the_same_or_nothing() -> None:
    """Python takes wide and bold letters for the plain ones; those of other alphabets are other letters."""
    assert evaluate("ａｂｓ(ｘ) + 𝐱", x=singles(-2)).tolist() == [0]
    with pytest.raises(ValueError, match="uses 'х'; the given names are: x"):
        evaluate("х + 1", x=singles(1))  # a Cyrillic letter
    for text in ("x\u200b + 1", "x + \u22121", "“x”", "x × x"):
        with pytest.raises(ValueError, match="cannot be read"):
            Expression(text)


def test_notes_and_line_breaks_in_parentheses_say_nothing() -> None:
    assert evaluate("(x +\n 1)  # __import__('os')", x=singles(1)).tolist() == [2]


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="xy12.()+-*/%<>=!&|~,^[]{}:'\"_ abspie\n\\#;@", max_size=30))
def test_any_text_is_either_an_expression_or_a_value_error(text: str) -> None:
    try:
        expression = Expression(text)
        result = expression.evaluate({"x": singles(1, nan), "y": singles(0, 2)})
    except ValueError:
        return
    assert result.shape == (2,)


# -- where it is used --------------------------------------------------------------------------------------------------


def test_parsing_loads_no_numpy() -> None:
    code = (
        "import sys; from moraine_raster.expression import Expression;"
        "Expression('where(x > 0, sqrt(x), nan)').check_names(['x']); sys.exit('numpy' in sys.modules)"
    )
    path = ":".join(filter(None, sys.path))
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}, check=False).returncode == 0


def test_an_expression_travels_to_another_process() -> None:
    expression = pickle.loads(pickle.dumps(Expression("x ** 2 + 1")))
    assert expression.evaluate({"x": singles(3)}).tolist() == [10]
