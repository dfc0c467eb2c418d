"""math: expressions on stored arrays against the same formula in numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from moraine_core import MoraineError, UsageError, Workers
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_raster.math import math

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def evaluate(folder: Path, operation: str, **arrays: Any) -> NDArray[Any]:
    """Evaluate an expression on arrays, each given alone or with its chunks."""
    paths = {}
    for name, given in arrays.items():
        values, chunks = given if isinstance(given, tuple) else (given, None)
        paths[name] = write_array(folder / f"{name}.zarr", values, chunks)
    math(output=str(folder / "output.zarr"), operation=operation, workers=Workers(n_workers=2), **paths)
    return read_array(folder / "output.zarr")


def test_an_expression_of_two_arrays_is_that_of_numpy(tmp_path: Path) -> None:
    coh, intf = np.random.default_rng(1).random((13, 9), np.float32), speckle((13, 9))
    coh[2, 3] = np.nan
    result = evaluate(tmp_path, "where(coh > 0.3, angle(intf), nan)", coh=(coh, (5, 4)), intf=(intf, (5, 4)))
    assert result.dtype == np.float32
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(result, np.where(coh > 0.3, np.angle(intf), np.nan), rtol=1e-6)


@pytest.mark.parametrize(
    ("operation", "dtype", "expected"),
    [
        ("2 * x", "float32", "float32"), ("2 * x", "float64", "float64"), ("x + 1", "int32", "int32"),
        ("x / 2", "int16", "float64"), ("x > 1", "float32", "bool"), ("x * 2.5", "complex64", "complex64"),
        ("abs(x)", "complex64", "float32"), ("~x", "bool", "bool"), ("complex(x, 1)", "float64", "complex128"),
    ],
)  # fmt: skip
def test_the_dtype_is_that_of_the_expression(tmp_path: Path, operation: str, dtype: str, expected: str) -> None:
    """The reference program wrote float64 whatever came."""
    assert evaluate(tmp_path, operation, x=np.ones((3, 2), dtype)).dtype == np.dtype(expected)


@pytest.mark.parametrize("first", ["x", "y"])
def test_shape_and_chunks_are_those_of_the_first_array(tmp_path: Path, first: str) -> None:
    arrays = {
        "x": (np.arange(77.0).reshape(11, 7), (4, 3)),
        "y": (np.ones((11, 7)), (11, 2)),
    }
    order = ["x", "y"] if first == "x" else ["y", "x"]
    result = evaluate(tmp_path, "y + x", **{name: arrays[name] for name in order})
    np.testing.assert_array_equal(result, np.arange(77.0).reshape(11, 7) + 1)
    assert open_array(tmp_path / "output.zarr").chunks == arrays[first][1]


@pytest.mark.parametrize("shape", [(5,), (1, 7), (3, 4, 2), (2, 3, 2, 2), (0, 4), (0,)])
def test_arrays_of_any_shape_are_evaluated(tmp_path: Path, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).random(shape)
    np.testing.assert_array_equal(evaluate(tmp_path, "x - 2", x=(x, (2,) * len(shape))), x - 2)


def test_nan_propagates_and_compares_as_false(tmp_path: Path) -> None:
    x = np.array([[np.nan, 1.0]], np.float32)
    np.testing.assert_array_equal(evaluate(tmp_path, "x + 1", x=x), [[np.nan, 2]])
    assert evaluate(tmp_path, "x > 0", x=x).tolist() == [[False, True]]


@pytest.mark.parametrize("shape", [(1,), (1, 9), (9, 1), (1, 1)])
def test_rasters_that_are_all_missing_stay_missing(tmp_path: Path, shape: tuple[int, ...]) -> None:
    x = np.full(shape, np.nan, np.float32)
    assert np.isnan(evaluate(tmp_path, "(2 * x + 1) / x - sin(x)", x=(x, (4,) * len(shape)))).all()
    assert not evaluate(tmp_path, "(x > 0) | (x <= 0) | (2 * x + 1 == 1)", x=x).any()
    assert evaluate(tmp_path, "where(isnan(x), -1, 2 * x + 1)", x=x).tolist() == np.full(shape, -1).tolist()


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("angle(z)", np.angle), ("abs(z) ** 2 - real(z) ** 2", lambda z: np.imag(z) ** 2),
        ("z * conj(z)", lambda z: np.abs(z) ** 2), ("complex(imag(z), -real(z)) * 2", lambda z: -2j * z),
        ("where(real(z) > 0, z, conj(z))", lambda z: np.where(z.real > 0, z, z.conj())),
    ],
)  # fmt: skip
def test_complex_arrays_are_evaluated(tmp_path: Path, operation: str, expected: Any) -> None:
    """The reference program had no phase."""
    z = speckle((7, 5), seed=4)
    np.testing.assert_allclose(evaluate(tmp_path, operation, z=(z, (3, 2))), expected(z), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [("2 * n + 1", [1, 3, -1]), ("n / 2 + 0.5", [0.5, 1, 0]), ("(n > 0) * 3 + (n < 0)", [0, 3, 1]),
     ("n ** 2 - n", [0, 0, 2]), ("where(n != 0, n, 7)", [7, 1, -1]), ("~(n > 0)", [True, False, True])],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_integers_are_evaluated(tmp_path: Path, operation: str, expected: list[float], dtype: str) -> None:
    assert evaluate(tmp_path, operation, n=np.array([0, 1, -1], dtype)).tolist() == expected


def test_chunks_of_any_size_give_the_same_bits(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    x, y = random.normal(size=(2, 67, 53)).astype(np.float32)
    operation = "where(y > -1, sqrt(x*x + y*y) / 3 - sin(2 * x + y), nan) * 0.7"
    found = [
        evaluate(tmp_path, operation, x=(x, chunks), y=y) for chunks in ((67, 53), (13, 10), (1, 53), (67, 1), (100, 7))
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize("name", ["abs", "pi", "where"])
def test_an_array_under_a_word_of_the_language_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"math: expression 'x' cannot use an array called '{name}'"):
        evaluate(tmp_path, "x", x=np.zeros(3), **{name: np.zeros(3)})


def test_an_array_may_be_given_that_is_not_used(tmp_path: Path) -> None:
    assert evaluate(tmp_path, "x", y=np.zeros(3), x=np.arange(3.0)).tolist() == [0, 1, 2]


def test_an_unknown_name_is_refused_with_the_names_that_were_given(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"math: expression 'x \+ z' uses 'z'; the given names are: x, y"):
        evaluate(tmp_path, "x + z", x=np.zeros(3), y=np.zeros(3))


def test_another_shape_than_that_of_the_first_array_is_refused(tmp_path: Path) -> None:
    expected = r"math: y .*y\.zarr has shape \(3,\); expected \(4,\), as x .*x\.zarr"
    with pytest.raises(MoraineError, match=expected):
        evaluate(tmp_path, "x + y", x=np.zeros(4), y=np.zeros(3))
    assert not (tmp_path / "output.zarr").exists()


def test_no_array_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="math: no array is given"):
        evaluate(tmp_path, "x + 1")


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        ("x.real", "not in the language"),
        ("open(x)", "calls 'open'"),
        ("x & 1.5", "applies '&'"),
        ("x +", "cannot be read"),
    ],
)
def test_what_is_no_expression_for_the_arrays_is_refused_before_work(
    tmp_path: Path, operation: str, fault: str
) -> None:
    with pytest.raises(UsageError, match=f"math: expression .*{fault}"):
        evaluate(tmp_path, operation, x=np.zeros((3, 2), np.float32))
    assert not (tmp_path / "output.zarr").exists()
