"""Plans: what makes one wrong, what it says of its size, and how it moves."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from moraine_core import ALL, Array, Chunk, ChunkTask, Layout, Plan, Stream, blocks
from moraine_core.errors import LayoutError
from moraine_core.plan import itemsize

OUT = Layout("out.zarr", (5, 7), "float32", (2, 3))
IN = Array("in.zarr", (5, 7), "complex64", (4, 4))


def task(block, layout=OUT, kernel="m.kernels:f", inputs=()):
    return ChunkTask(kernel, inputs, [Chunk(layout, block)])


def whole(layout=OUT):
    return [task(b, layout) for b in blocks(layout.shape, layout.chunks)]


def problems(*tasks, outputs=(OUT,)):
    return [str(problem) for problem in Plan(list(outputs), list(tasks)).problems()]


def test_a_plan_that_writes_every_chunk_once_is_right():
    assert problems(*whole()) == []
    assert problems(task((ALL, ALL))) == []
    assert problems(task((slice(0, 4), ALL)), task((slice(4, 5), ALL))) == []
    assert problems(task(None)) == []


def test_two_tasks_never_own_the_same_output_chunk():
    """A21."""
    assert problems(*whole(), task((slice(2, 4), slice(3, 6)))) == [
        "task 9 writes out.zarr[2:4, 3:6], of which another task writes a chunk too"
    ]
    twice = ChunkTask("m:f", (), [Chunk(OUT, None), Chunk(OUT, (slice(0, 2), ALL))])
    assert problems(twice) == ["task 0 writes out.zarr[0:2, :], of which another task writes a chunk too"]


def test_a_chunk_that_nobody_writes_is_missed():
    """A24."""
    assert problems(*whole()[:-2]) == ["out.zarr: no task writes 2 of its chunks"]


def test_a_write_of_half_a_chunk_is_refused():
    """A21."""
    found = problems(task((slice(0, 3), ALL)), task((slice(3, 5), ALL)))
    assert found[0] == "task 0 writes out.zarr[0:3, :], which is not made of whole chunks (2, 3)"
    assert "task 1 writes out.zarr[3:5, :]" in found[1]


def test_a_write_outside_the_array_is_refused():
    assert problems(*whole(), task((slice(4, 6), ALL)))[0] == (
        "task 9 writes out.zarr[4:6, :]: axis 0: part 4:6 is not within 0:5"
    )
    assert "a part with 1 axes" in problems(*whole(), task((slice(0, 2),)))[0]


def test_a_write_to_an_array_that_the_plan_does_not_make_is_refused():
    other = Layout("other.zarr", (5, 7), "float32", (2, 3))
    assert problems(*whole(), task(None, other)) == ["task 9 writes other.zarr, which is not an output of the plan"]


@pytest.mark.parametrize(
    "inputs", [[Chunk(OUT, (slice(0, 2), ALL))], [Stream(Chunk(OUT, None), 0)], [Chunk("out.zarr")]]
)
def test_no_task_reads_what_another_writes(inputs):
    """No task ever waits for another."""
    assert any(
        p.startswith("task 0 reads out.zarr") and p.endswith("which this plan writes")
        for p in problems(task(None, inputs=inputs))
    )


@pytest.mark.parametrize("kernel", ["f", "m.f", "m:f.g", ":f", "m:", "m kernels:f", "1m:f"])
def test_a_kernel_is_named_with_its_module(kernel):
    assert problems(task(None, kernel=kernel)) == [
        f"task 0: kernel {kernel!r} is not of the form 'package.module:function'"
    ]


def test_an_output_that_is_listed_twice_is_refused():
    assert problems(*whole(), outputs=(OUT, OUT)) == ["the plan lists an output twice: ['out.zarr', 'out.zarr']"]


def test_all_problems_are_found_at_once():
    """Design: all problems are reported at once."""
    assert len(problems(task((slice(0, 3), ALL), kernel="f"), task((slice(9, 10), ALL)))) == 4


def test_an_empty_array_needs_no_task():
    empty = Layout("empty.zarr", (0, 7), "float32", (2, 3))
    assert problems(outputs=(empty,)) == []


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("bool", 1), ("int8", 1), ("uint16", 2), ("int64", 8), ("float32", 4), ("complex64", 8), ("complex128", 16)],
)
def test_sizes_of_dtypes(dtype, size):
    assert itemsize(dtype) == size


@pytest.mark.parametrize("dtype", ["<f4", "object", "str", "datetime64", "float"])
def test_a_dtype_that_is_not_written_is_refused(dtype):
    with pytest.raises(LayoutError, match="is not one moraine writes"):
        Layout("x", (3,), dtype, (3,))


def test_a_layout_resolves_its_chunks_and_refuses_wrong_ones():
    assert Layout("x", [5, 7], "bool", [-1, 3]).chunks == (5, 3)
    with pytest.raises(LayoutError, match="have 1 axes"):
        Layout("x", (5, 7), "bool", (2,))


def test_sizes_in_bytes():
    """By hand: 5x7 elements; a part of 2x3; a chunk of 4x4 complex64 is what reading decodes."""
    assert OUT.nbytes == 5 * 7 * 4
    assert IN.nbytes == 5 * 7 * 8
    part = Chunk(IN, (slice(0, 2), slice(1, 4)))
    assert (part.nbytes, part.stored_nbytes) == (2 * 3 * 8, 4 * 4 * 8)
    stream = Stream(Chunk(IN, None), 1)
    assert stream.nbytes == 7 * 5 * 8  # a stored chunk holds 4 planes, and twice 4 are more than there are
    thin = Array("in.zarr", (5, 7), "float64", (4, 1))
    assert Stream(Chunk(thin, None), 1).nbytes == 2 * 5 * 8  # two of seven planes
    both = ChunkTask("m:f", [part, stream, 3], [Chunk(OUT, (slice(0, 2), slice(0, 3)))], scratch_bytes=1000)
    assert both.input_bytes == 2 * 3 * 8 + 7 * 5 * 8
    assert both.nbytes == both.input_bytes + 2 * 3 * 4 + 2 * (2 * 4 * 4 * 8) + 1000  # two chunks, packed and decoded
    assert Plan([OUT], [both, ChunkTask("m:f")]).task_bytes == both.nbytes


def test_reading_holds_a_stored_chunk_packed_and_decoded_in_each_thread():
    """By hand: rows 500:1500 and columns 900:2100 touch 2 x 3 chunks of 8 MB; small chunks are read joined."""
    large = Array("in.zarr", (3000, 4000), "float64", (1000, 1000))
    square = ChunkTask("m:f", [Chunk(large, (slice(500, 1500), slice(900, 2100)))])
    assert [square.reading_bytes(threads) for threads in (1, 4, 99)] == [16_000_000, 64_000_000, 96_000_000]
    small = Array("in.zarr", (12, 8), "float64", (3, 4))
    below = ChunkTask("m:f", [Chunk(small, (slice(2, 9), slice(5, 6)))])
    assert [below.reading_bytes(threads) for threads in (1, 4)] == [2 * 3 * 96, 2 * 3 * 96]
    assert ChunkTask("m:f", [3]).reading_bytes(4) == 0


def test_a_moved_plan_reads_and_writes_elsewhere():
    out = Layout("scratch:tmp", (4,), "int32", (2,))
    source = Array("in.zarr", (4,), "int32", (4,))
    plan = Plan(
        [out],
        [
            ChunkTask(
                "m:f", [Chunk(source), Stream(Chunk(source), 0), 3], [Chunk(out)], {"later": Chunk(source), "k": 1}
            )
        ],
        attributes={"scratch:tmp": {"a": 1}},
        texts={"scratch:tmp/note.txt": "hi"},
    )
    moved = plan.relocated(lambda path: "/x/" + path.replace("scratch:", "s/"))
    (only,) = moved.tasks
    assert moved.outputs[0].path == only.outputs[0].path == "/x/s/tmp"
    assert only.inputs[0].path == only.inputs[1].chunk.path == only.kwargs["later"].path == "/x/in.zarr"
    assert (only.inputs[2], only.kwargs["k"]) == (3, 1)
    assert (list(moved.attributes), list(moved.texts)) == (["/x/s/tmp"], ["/x/s/tmp/note.txt"])
    assert only.inputs[0].nbytes == 16
    assert out.is_scratch
    assert not moved.outputs[0].is_scratch
    assert plan.tasks[0].inputs[0].path == "in.zarr"


def test_a_part_is_written_as_people_write_it():
    assert str(Chunk(IN, (slice(0, 2), None))) == "in.zarr[0:2, :]"
    assert str(Chunk(IN, (slice(2, None), slice(None, 3)))) == "in.zarr[2:, 0:3]"
    assert str(Chunk("a.zarr")) == "a.zarr"
    assert str(task((slice(0, 2), ALL), inputs=[Chunk(IN), 5])) == "f(out.zarr[0:2, :], in.zarr)"


def test_a_chunk_of_a_mere_path_does_not_know_its_bounds():
    with pytest.raises(LayoutError, match="shape is not known before the array is opened"):
        _ = Chunk("a.zarr").box


def test_plain_data_travels():
    again = pickle.loads(pickle.dumps(task((slice(0, 2), ALL), inputs=[Chunk(IN), Stream(Chunk(IN), 1)])))
    assert str(again) == str(task((slice(0, 2), ALL), inputs=[Chunk(IN)]))
    assert again.inputs[1].chunk.box == ((0, 5), (0, 7))


def test_declaring_loads_neither_numpy_nor_zarr():
    code = (
        "import sys, moraine_core\nfrom moraine_core import Array, Chunk, ChunkTask, Layout, Plan, blocks\n"
        "out = Layout('o', (4,), 'float32', (2,))\n"
        "assert not list(Plan([out], [ChunkTask('m:f', (), [Chunk(out, b)]) for b in blocks((4,), (2,))]).problems())\n"
        "assert not {'numpy', 'zarr', 'numba', 'cupy'} & set(sys.modules), sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
