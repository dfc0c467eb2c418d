"""Commands as data: what annotations mean, and the checks on arguments and inputs."""

from __future__ import annotations

from typing import Annotated

import pytest
import run_commands

from moraine_core import Array, Blocks1D, Blocks2D, Input, Output, Pairs, UsageError, Workers, command
from moraine_core.declaration import API, Command
from moraine_core.plan import Layout


@command("demo-command", family="test")
def demo(
    rslc: Annotated[
        Array, Input("stack", shape=("(nlines, width, nimages)", "(n_points, nimages)"), dtype="complex64")
    ],
    hgt: Annotated[Array, Input("heights", shape="(nlines, width, ...)", dtype=("float", "integer"), unit="m")],
    out: Annotated[str, Output("index", shape="(nlines, width)", dtype="float32", unit="rad")],
    optional: Annotated[Array | None, Input("mask", shape="(nlines, 2)", dtype="bool")] = None,
    many: Annotated[list[Array] | None, Input("more")] = None,
    chunks: Annotated[Blocks2D, "block (pixels)"] = (10, 20),
    pairs: Annotated[Pairs | None, "pairs"] = None,
) -> None:
    """Do as asked.

    More.
    """


def array(*shape, dtype="complex64", path="a.zarr"):
    return Array(path, shape, dtype, shape)


def problems(**arrays):
    return [str(problem) for problem in demo.input_problems({k: [v] for k, v in arrays.items()})]


def test_a_declaration_is_read_from_its_annotations():
    assert (demo.name, demo.family, demo.api, demo.gpu, demo.chunked) == ("demo-command", "test", API, False, True)
    assert demo.summary == "Do as asked."
    assert demo.help == "Do as asked.\n\nMore."
    assert demo.module == __name__
    assert [p.name for p in demo.parameters if p.required] == ["rslc", "hgt", "out"]
    assert [p.name for p in demo.parameters if p.is_array] == ["rslc", "hgt", "optional", "many"]
    assert demo.blocks_parameter.name == "chunks"
    assert demo.parameter("chunks").option == "--chunks"
    assert demo.extra is None


def test_the_help_of_an_array_says_role_shape_dtype_and_unit():
    assert demo.parameter("hgt").full_help == "heights [input, (nlines, width, ...), float/integer, m]"
    assert (
        demo.parameter("rslc").full_help == "stack [input, (nlines, width, nimages) or (n_points, nimages), complex64]"
    )
    assert demo.parameter("out").full_help == "index [output, (nlines, width), float32, rad]"
    assert demo.parameter("chunks").full_help == "block (pixels)"


@command("blocky", family="test")
def blocky(
    a: Annotated[Blocks2D, "block (pixels)"],
    b: Annotated[Blocks2D | None, "block (pixels)"],
    c: Annotated[Blocks1D, "block (points)"],
    d: Annotated[Blocks1D | None, "block (points)"],
    e: Annotated[tuple[int, int], "shape (pixels)"],
) -> None:
    """Take blocks."""


def test_blocks_are_known_by_their_type_also_where_optional():
    assert [p.name for p in blocky.parameters if p.is_blocks] == ["a", "b", "c", "d"]


def test_a_parameter_without_annotated_is_refused():
    with pytest.raises(TypeError, match="parameter bare needs Annotated"):

        @command("bad", family="test")
        def bad(bare: int): ...


def test_arguments_are_bound_as_the_function_takes_them():
    bound = demo.bind({"rslc": "r", "hgt": "h", "out": "o", "chunks": "5,-1", "many": "m", "optional": None})
    assert bound == {
        "rslc": "r", "hgt": "h", "out": "o", "optional": None, "many": ("m",), "chunks": (5, -1), "pairs": None
    }  # fmt: skip
    assert demo.paths(bound, Input) == {"rslc": ("r",), "hgt": ("h",), "many": ("m",)}
    assert demo.paths(bound, Output) == {"out": ("o",)}


def test_all_that_is_missing_is_listed():
    with pytest.raises(UsageError, match=r"^demo-command: missing --rslc, --out$"):
        demo.bind({"hgt": "h", "rslc": None})


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("rlsc", "demo-command: unknown argument rlsc; did you mean rslc?"),
        ("zzz", "demo-command: unknown argument zzz"),
        ("n_worker", "demo-command: unknown worker arguments: n_worker; known are cuda, executor, gpus, max_memory, "
                     "n_workers, processes, threads_per_worker"),
    ],
)  # fmt: skip
def test_an_unknown_argument_is_refused_with_the_closest(name, sentence):
    with pytest.raises(UsageError, match=f"^{sentence.replace('?', '[?]')}$"):
        demo.bind({"rslc": "r", "hgt": "h", "out": "o", name: 1})


def test_files_that_are_read_when_the_command_runs_are_told_from_literals(tmp_path):
    assert demo.files({"pairs": "p.txt", "rslc": "r"}) == {"pairs": "p.txt"}
    assert demo.files({"pairs": tmp_path}) == {"pairs": str(tmp_path)}
    assert demo.files({"pairs": "[[0, 1]]"}) == demo.files({"pairs": [[0, 1]]}) == {}
    demo.bind({"rslc": "r", "hgt": "h", "out": "o", "pairs": "none.txt"}, late=False)
    with pytest.raises(UsageError, match=r"pairs: No such file or directory: none.txt"):
        demo.bind({"rslc": "r", "hgt": "h", "out": "o", "pairs": "none.txt"})


def test_inputs_that_fit_have_no_problems():
    assert problems(rslc=array(3, 4, 5), hgt=array(3, 4, dtype="int16"), optional=array(3, 2, dtype="bool")) == []
    assert problems(rslc=array(3, 5)) == []
    assert problems(hgt=array(3, 4, 9, 9, dtype="float64")) == []


def test_dtype_axes_and_equal_lengths_are_checked():
    """A34: every odd file is told with its size."""
    found = problems(
        rslc=array(3, 4, 5),
        hgt=array(3, 6, dtype="complex64", path="h.zarr"),
        optional=array(7, 3, dtype="bool", path="o.zarr"),
    )
    assert found == [
        "demo-command: hgt h.zarr is complex64; expected float or integer",
        "demo-command: hgt h.zarr has shape (3, 6); expected width 4, as in rslc a.zarr",
        "demo-command: optional o.zarr has shape (7, 3); expected nlines 3, as in rslc a.zarr",
        "demo-command: optional o.zarr has shape (7, 3); expected (nlines, 2)",
    ]
    assert problems(rslc=array(3)) == [
        "demo-command: rslc a.zarr has shape (3,); expected (nlines, width, nimages) or (n_points, nimages)"
    ]


@pytest.mark.parametrize("dtype", ["float32", "complex128", "complex", "xcomplex64"])
def test_a_dtype_is_compared_whole(dtype):
    assert problems(rslc=array(3, 4, 5, dtype=dtype))


def test_a_command_is_a_python_call_and_its_own_plugin():
    assert isinstance(demo, Command)
    assert demo.moraine_commands() == [demo]
    with pytest.raises(UsageError, match="missing --source"):
        run_commands.double(result="y.zarr", workers=Workers(n_workers=1))


def test_layouts_and_parameters_are_light():
    assert Layout("y", (3, 4), "float32", (-1, 2)).chunks == (3, 2)
