"""Arguments: the same kinds for the words of a line, TOML values and Python values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest

from moraine_core.arguments import (
    BOOLEAN,
    INTEGER,
    INTEGERS,
    NUMBER,
    PAIRS,
    PATHS,
    SIZE,
    TEXT,
    WORDS,
    convert,
    fixed_integers,
    fixed_numbers,
    kind_of,
    one_of,
)
from moraine_core.errors import UsageError


def fails(kind, value):
    with pytest.raises(UsageError) as caught:
        convert("cmd", "name", kind, value)
    return str(caught.value)


@pytest.mark.parametrize(
    "value",
    ["1000,1000", "(1000,1000)", "( 1000 , 1000 )", "[1000, 1000]", "1000 1000", [1000, 1000], (1000, 1000),
     ["1000", "1000"], ["1000,1000"], ["(1000,", "1000)"], ["1000,", "1000"], [1000.0, 1000.0], np.array([1000, 1000]),
     "(1000, 1000,)"],
)  # fmt: skip
def test_a_tuple_may_be_written_in_all_ways(value):
    assert convert("cmd", "chunks", fixed_integers(2), value) == (1000, 1000)


@pytest.mark.parametrize("value", ["-1,-1", ["-1", "-1"], [-1, -1], "(-1,-1)"])
def test_minus_one_is_a_value_of_a_tuple(value):
    assert convert("cmd", "chunks", fixed_integers(2), value) == (-1, -1)


@pytest.mark.parametrize(
    "value", ["1", "1,2,3", [1], [1, 2, 3], "a,b", [1.5, 2], [True, 2], "", [], "1,,2", "(1,2", None, {"a": 1}, 3.5]
)
def test_a_tuple_of_another_count_or_of_no_whole_numbers_is_refused(value):
    assert fails(fixed_integers(2), value) == f"cmd: name is {value!r}; expected 2 whole numbers"


@pytest.mark.parametrize("value", [20000, "20000", ["20000"], [20000], np.int64(20000)])
def test_one_number_is_a_tuple_of_one(value):
    assert convert("cmd", "chunks", INTEGERS, value) == (20000,)


def test_any_number_of_whole_numbers_is_at_least_one():
    assert fails(INTEGERS, []) == "cmd: name is []; expected whole numbers"


def test_real_numbers_are_written_like_whole_ones():
    assert convert("cmd", "extent", fixed_numbers(4), "-1.5, 2 , 3e2,4") == (-1.5, 2, 300, 4)
    assert convert("cmd", "extent", fixed_numbers(2), ["1.5", "2"]) == (1.5, 2)
    fails(fixed_numbers(4), "1,2,3")


@pytest.mark.parametrize(("value", "expected"), [("1", 1), (" -7 ", -7), (3, 3), (3.0, 3)])
def test_a_whole_number_may_be_text(value, expected):
    assert convert("cmd", "n", INTEGER, value) == expected


@pytest.mark.parametrize("value", ["1.5", 1.5, "one", True, [1], "", float("inf"), float("nan")])
def test_what_is_no_whole_number_is_refused(value):
    assert "expected a whole number" in fails(INTEGER, value)


@pytest.mark.parametrize("value", [True, "x", [1.0], ""])
def test_what_is_no_number_is_refused(value):
    assert "expected a number" in fails(NUMBER, value)


@pytest.mark.parametrize("value", ["yes", "True", "1", "", "no", 1, 0, "on"])
def test_only_true_and_false_are_booleans(value):
    """Any other text once counted as true."""
    assert fails(BOOLEAN, value) == f"cmd: name is {value!r}; expected true or false"


def test_true_and_false_are_values_or_words():
    assert [convert("cmd", "b", BOOLEAN, value) for value in (True, "true", False, "false")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("value", ["a.zarr", ["a.zarr"], ("a.zarr",), Path("a.zarr")])
def test_one_path_is_a_list_of_one(value):
    assert convert("cmd", "ras", PATHS, value) == ("a.zarr",)


def test_a_path_may_hold_commas_and_spaces():
    assert convert("cmd", "ras", PATHS, ["a, b.zarr", "(c).zarr"]) == ("a, b.zarr", "(c).zarr")


@pytest.mark.parametrize("value", [[], 3, [3], None])
def test_what_are_no_paths_is_refused(value):
    assert "expected one or more paths" in fails(PATHS, value)


def test_text_is_not_made_of_numbers():
    assert "expected text" in fails(TEXT, 5)


@pytest.mark.parametrize("value", ["1,3", ["1", "3"], [1, 3], "1 3"])
def test_words_may_be_joined_by_commas(value):
    """A17: ``--gpus 1,3``."""
    assert convert("cmd", "gpus", WORDS, value) == ("1", "3")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("4GiB", 4 * 2**30), ("500 MB", 500_000_000), ("2g", 2_000_000_000), ("1.5KiB", 1536), (12345, 12345), ("7", 7)],
)
def test_sizes_have_decimal_and_binary_units(value, expected):
    assert convert("cmd", "max_memory", SIZE, value) == expected


@pytest.mark.parametrize("value", ["0", 0, -5, "4 gigs", "i", "1.2.3", True, "", "-1GiB"])
def test_a_size_is_at_least_one_byte(value):
    """A55: a limit of 0 must not silently mean no limit."""
    assert "expected a size such as 4GiB" in fails(SIZE, value)


def test_one_of_a_few_words():
    kind = kind_of(Literal["mean", "decimate"])
    assert convert("cmd", "method", kind, "mean") == "mean"
    assert fails(kind, "median") == "cmd: name is 'median'; expected one of mean, decimate"
    assert one_of(("a", "b")).metavar == "a|b"


def test_pairs_come_from_text_npy_and_literals(tmp_path):
    (tmp_path / "pairs.txt").write_text("# ref sec\n0 1\n\n1 2 # the second\n")
    np.save(tmp_path / "pairs.npy", np.array([[0, 1], [1, 2]]))
    for value in (
        tmp_path / "pairs.txt",
        str(tmp_path / "pairs.npy"),
        "[[0,1],[1,2]]",
        " [[0, 1], [1, 2]]",
        [[0, 1], [1, 2]],
    ):
        assert convert("cmd", "pairs", PAIRS, value) == ((0, 1), (1, 2))


@pytest.mark.parametrize("value", ["[[0,1,2]]", "[0,1]", "[[0,1.5]]", "[[0,'x']]", "[[0,1]", [[0]], [["a", "b"]], 3])
def test_pairs_have_two_columns_of_whole_numbers(value):
    assert "expected a file or list of (reference, secondary) image numbers" in fails(PAIRS, value)


def test_a_pairs_file_that_is_missing_or_malformed_is_named(tmp_path):
    missing = str(tmp_path / "none.txt")
    assert fails(PAIRS, missing) == f"cmd: name: No such file or directory: {missing}"
    np.save(tmp_path / "wide.npy", np.zeros((2, 3), dtype=int))
    assert "wide.npy" in fails(PAIRS, str(tmp_path / "wide.npy"))
    (tmp_path / "words.txt").write_text("zero one\n")
    assert "words.txt" in fails(PAIRS, str(tmp_path / "words.txt"))


def test_a_number_or_several_is_read_as_several():
    assert kind_of(int | tuple[int, ...]) is INTEGERS
    assert kind_of(Annotated[int | None, "help"]) is INTEGER


@pytest.mark.parametrize("annotation", [dict, tuple[int, str], bytes])
def test_an_annotation_that_no_parameter_can_have_is_refused(annotation):
    with pytest.raises(TypeError, match="cannot be annotated"):
        kind_of(annotation)
