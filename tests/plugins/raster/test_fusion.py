"""Arithmetic in one pass of numexpr: the bits of numpy, no text, no threads, no memory for values in between."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_raster import fusion, program
from moraine_raster._numexpr import numexpr
from moraine_raster.expression import Expression

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

Arrays = dict[str, "NDArray[Any]"]

CHAIN = "where((a > 0.3) & (b < 2), sqrt(a*a + b*b), nan)"


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the number of arrays that each pass takes."""
    counted: list[int] = []
    run = fusion.Pass.run

    def counting(self: fusion.Pass, arrays: Any) -> Any:
        counted.append(len(arrays))
        return run(self, arrays)

    monkeypatch.setattr(fusion.Pass, "run", counting)
    return counted


def by_numpy(text: str, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Evaluate an expression by numpy alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "common_dtype", lambda *_: "")
        patch.setattr(fusion.Pass, "run", None)
        return Expression(text).evaluate(arrays)


def assert_same_bits(found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Compare every bit, but for that of the sign of a nan, which no rule defines."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
    if expected.dtype.kind == "f":
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


def assert_same_outcome(text: str, arrays: Arrays) -> None:
    """Compare values and what is known of them before, or the sentence that says why there are none."""
    dtypes = {name: array.dtype.name for name, array in arrays.items()}
    try:
        expected = by_numpy(text, arrays)
    except ValueError as error:
        for evaluate, given in ((Expression.evaluate, arrays), (Expression.probe, dtypes)):
            with pytest.raises(ValueError, match=f"^{re.escape(str(error))}$"):
                evaluate(Expression(text), given)
    else:
        assert_same_bits(Expression(text).evaluate(arrays), expected)
        assert Expression(text).probe(dtypes)[0] == expected.dtype.name


def awkward(dtype: str) -> NDArray[Any]:
    """Return values where arithmetic is odd: zeros of both signs, infinities, nan, extremes."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([True, False] * 6)
    if kind == "i":
        info = np.iinfo(dtype)
        return np.array([0, 1, -1, 2, 3, -7, info.max, info.min, info.max - 1, 10, 100, -100], dtype)
    tiny = np.finfo(dtype).smallest_subnormal
    return np.array([0.0, -0.0, 1, -1, 0.3, 1 / 3, np.nan, np.inf, -np.inf, tiny, 1e30, -2.5], dtype)


def pairs(left: str, right: str) -> Arrays:
    """Return every value of one dtype with every value of another."""
    x, y = np.meshgrid(awkward(left), awkward(right), indexing="ij")
    return {"x": x, "y": y}


# -- the same bits -----------------------------------------------------------------------------------------------------

DTYPES = ["bool", "int32", "int64", "float32", "float64"]


@pytest.mark.parametrize("right", DTYPES)
@pytest.mark.parametrize("left", DTYPES)
def test_every_operation_gives_the_bits_of_numpy(left: str, right: str, passes: list[int]) -> None:
    """Each is put into a pass with another one; mixed dtypes are converted as numpy does."""
    arrays = pairs(left, right)
    texts = [f"-(x {op} y)" for op in ("+", "-", "*", "/")]
    texts += [f"{number} {op} x {op} y" for op in ("+", "-", "*", "/") for number in ("3", "0.3", "nan", "7000000000")]
    texts += [f"where(x == y, {operand}, 2 * y)" for operand in ("-x", "x", "3", "nan", "x == 1")]
    texts += [f"{unary} + y" for unary in ("-x", "x ** 2", "sqrt(x)", "sqrt(x + 1)", "(x * 2) ** 2")]
    for text in texts:
        assert_same_outcome(text, arrays)
    assert len(passes) > 15 or "bool" in (left, right)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "uint64", "complex64", "complex128", "float16"])
def test_other_dtypes_are_left_to_numpy(dtype: str, passes: list[int]) -> None:
    arrays = {"x": np.ones(3, dtype), "y": np.ones(3, dtype)}
    for text in ("x * y + x", "-(x * x)", "where(x == y, 2 * x, y)"):
        assert_same_bits(Expression(text).evaluate(arrays), by_numpy(text, arrays))
    assert passes == []


NUMBERS = st.sampled_from(["2", "0.3", "-1", "nan", "pi", "1e30", "0", "3000000000"])
NAMES = st.sampled_from(["b", "i", "l", "f", "d"])


def larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return expressions made of others."""
    operators = st.sampled_from(["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&", "|"])
    functions = st.sampled_from(["-{}", "~{}", "{}**2", "abs({})", "sqrt({})", "floor({})", "sin({})", "isnan({})"])
    return st.one_of(
        st.builds("({} {} {})".format, parts, operators, parts),
        st.builds(lambda function, part: f"({function.format(part)})", functions, parts),
        st.builds("where({} < {}, {}, {})".format, parts, parts, parts, parts),
        st.builds("max({}, {})".format, parts, parts),
    )


@settings(deadline=None, max_examples=300)
@given(text=st.recursive(NAMES | NUMBERS, larger, max_leaves=25))
def test_any_expression_gives_the_bits_of_numpy(text: str) -> None:
    random = np.random.default_rng(1)
    arrays = {
        "b": random.random(1500) < 0.5, "i": random.integers(-9, 9, 1500, np.int32),
        "l": random.integers(-9, 9, 1500, np.int64), "f": np.resize(awkward("float32"), 1500),
        "d": random.normal(size=1500),
    }  # fmt: skip
    assert_same_outcome(text, arrays)


@pytest.mark.parametrize("n", [0, 1, 2, 1023, 1024, 1025, 2047, 4099])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_where_blocks_of_1024_pixels_end_makes_no_difference(n: int, dtype: str, passes: list[int]) -> None:
    random = np.random.default_rng(n)
    whole = {name: random.normal(size=9000).astype(dtype) for name in "ab"}
    expected = Expression(CHAIN).evaluate(whole)
    for start in (0, 1, 517):
        part = {name: values[start : start + n] for name, values in whole.items()}
        assert_same_bits(Expression(CHAIN).evaluate(part), expected[start : start + n])
    assert passes


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 5), (2, 3, 4)])
def test_arrays_of_any_shape_go_through_a_pass(shape: tuple[int, ...], passes: list[int]) -> None:
    found = Expression("2 * x + 1").evaluate({"x": np.full(shape, 3, np.float32)})
    assert_same_bits(found, np.full(shape, 7, np.float32))
    assert passes == [1]


def test_strided_and_swapped_arrays_go_through_a_pass(passes: list[int]) -> None:
    x = np.arange(24.0).reshape(4, 6)
    for view in (x.T, x[::2, ::-1], x.astype(">f8"), np.asfortranarray(x)):
        np.testing.assert_array_equal(Expression("2 * x + 1").evaluate({"x": view}), 2 * view + 1)
    assert len(passes) == 4


# -- what goes together ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CHAIN, [3]),  # the condition is an array by then
        ("a + b", []),  # one operation alone: numpy does it faster
        ("sin(a) + sin(b) * 2", [2]),
        ("sin(a * 2 + 1) * 2 + 1", [1, 1]),
        ("(a * 2 + 1) % (b * b + 1)", [1, 1]),
        ("a ** 3 + b ** 2", [2]),
        ("a * 2 * a * 2 * a", [1]),
        ("(2 * a + 1 > 0) & (2 * b - 1 < 0)", [1, 1]),
        (" + ".join(f"sin({k} * a)" for k in range(9)), []),  # in one pass they would all have to exist at one time
    ],
)
def test_numexpr_does_what_it_can_in_as_few_passes_as_possible(
    text: str, expected: list[int], passes: list[int]
) -> None:
    arrays = {"a": np.ones(3, np.float32), "b": np.ones(3, np.float32)}
    Expression(text).evaluate(arrays)
    assert passes == expected


@pytest.mark.parametrize(
    "text",
    [
        " + ".join(f"x{k}" for k in range(150)),
        " * ".join(f"(x{k} - {k}.5)" for k in range(60)),
        "(" * 60 + "x0" + ")**2" * 60,
        "-" * 190 + "x0",
        "where(c, " * 60 + "x1" + ", x2)" * 60,
        "sqrt(" * 90 + "x0" + ")" * 90,
    ],
)
def test_long_expressions_are_cut_into_passes_that_numexpr_has_room_for(text: str, passes: list[int]) -> None:
    names = Expression(text).names
    arrays = {name: np.random.default_rng(n).normal(size=5) for n, name in enumerate(names)}
    arrays |= {"c": np.arange(5) < 2} if "c" in names else {}
    assert_same_bits(Expression(text).evaluate(arrays), by_numpy(text, arrays))
    assert len(passes) > 1
    assert max(passes) <= 30


def test_no_memory_is_foretold_for_values_in_between() -> None:
    """By numpy alone the first needs three arrays at once, and one more where a dtype changes."""
    text = "(a*a + b*b - 2*a*b) / (a + 1)"
    assert Expression(text).probe({"a": "float32", "b": "float32"}) == ("float32", 4)
    assert Expression(text).probe({"a": "float32", "b": "float64"}) == ("float64", 8)
    assert Expression(CHAIN).probe({"a": "float32", "b": "float32"})[1] < 12


# -- neither text nor threads ------------------------------------------------------------------------------------------


def test_numexpr_is_given_no_text(monkeypatch: pytest.MonkeyPatch, passes: list[int]) -> None:
    """It would evaluate text as Python, with little protection."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("numexpr was given text")

    for name in ("stringToExpression", "evaluate", "validate", "re_evaluate"):
        monkeypatch.setattr(numexpr.necompiler, name, refuse)
    Expression(CHAIN).evaluate({"a": np.ones(3), "b": np.ones(3)})
    assert passes == [3]


def test_names_of_arrays_do_not_reach_numexpr(passes: list[int]) -> None:
    """Some mean something to it; others are no ASCII."""
    names = ["sum", "prod", "ones_like", "contains", "truediv", "None_", "E", "v0", "v1", "größe", "_", "real_"]
    arrays = {name: np.full(3, n, float) for n, name in enumerate(names)}
    found = Expression(" + ".join(f"2 * {name}" for name in names)).evaluate(arrays)
    assert found.tolist() == [2.0 * sum(range(len(names)))] * 3
    assert passes


@settings(deadline=None, max_examples=100)
@given(text=st.recursive(NAMES, larger, max_leaves=25))
def test_passes_never_need_more_memory_than_numpy_alone(text: str) -> None:
    dtypes = {"b": "bool", "i": "int32", "l": "int64", "f": "float32", "d": "float64"}
    try:
        foretold = Expression(text).probe(dtypes)[1]
    except ValueError:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "common_dtype", lambda *_: "")
        assert foretold <= Expression(text).probe(dtypes)[1]


@pytest.mark.parametrize("setting", ["8", "0", "-3", "", "many"])
def test_numexpr_starts_no_threads_and_says_nothing_whatever_the_environment(setting: str) -> None:
    names = ["NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS", "OMP_NUM_THREADS"]
    code = """
import logging, os, sys
logging.basicConfig(level=logging.DEBUG)
import numpy as np
from moraine_raster.expression import Expression
before, threads = dict(os.environ), len(os.listdir("/proc/self/task"))
x = np.ones(100_000)
Expression("2 * x + 1").evaluate({"x": x})
import numexpr
assert numexpr.get_num_threads() == 1
assert len(os.listdir("/proc/self/task")) == threads
assert dict(os.environ) == before
"""
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
    environment |= dict.fromkeys(names, setting)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_threads_of_numexpr_that_somebody_else_has_started_are_ended() -> None:
    code = """
import numexpr
numexpr.set_num_threads(3)
import numpy as np
from moraine_raster.expression import Expression
assert Expression("2 * x + 1").evaluate({"x": np.ones(100_000)})[-1] == 3
assert numexpr.get_num_threads() == 1
"""
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "NUMEXPR_MAX_THREADS": "4"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_planning_loads_no_numexpr() -> None:
    code = (
        "import sys; from moraine_raster.expression import Expression;"
        "Expression('2 * x + 1').probe({'x': 'float32'}); sys.exit('numexpr' in sys.modules)"
    )
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_one_expression_is_evaluated_in_many_threads_at_once() -> None:
    """numexpr's compiled expressions are not for two threads at a time, so each evaluation has its own."""
    expression = Expression(CHAIN)
    inputs = [{name: np.random.default_rng(n).random(50_000, np.float32) * 3 for name in "ab"} for n in range(16)]
    expected = [expression.evaluate(arrays) for arrays in inputs]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(5):
            for found, right in zip(threads.map(expression.evaluate, inputs), expected, strict=True):
                np.testing.assert_array_equal(found, right)
