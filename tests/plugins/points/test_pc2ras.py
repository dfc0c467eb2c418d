"""pc2ras: against plain assignment, fill values, and the way back by ras2pc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_core import MoraineError, Workers
from moraine_core.run import check_command
from moraine_core.store import describe, open_array
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_points import kernels
from moraine_points.pc2ras import pc2ras
from moraine_points.ras2pc import ras2pc

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

    from numpy.typing import NDArray

quick = settings(deadline=None, max_examples=10)

SHAPE = (23, 17)
"""Lines and width of the rasters."""


def points(n_points: int = 40) -> NDArray[np.int32]:
    """Return different points in random order."""
    pixels = np.random.default_rng(n_points).permutation(SHAPE[0] * SHAPE[1])[:n_points]
    return np.stack(np.divmod(pixels, SHAPE[1]), axis=1).astype(np.int32)


def place(
    folder: Path,
    idx: NDArray[Any],
    *data: tuple[NDArray[Any], tuple[int, ...]],
    shape: tuple[int, int] = SHAPE,
    block: int = 7,
    **options: Any,
) -> list[NDArray[Any]]:
    """Put data, given with the chunks of their further axes, into rasters."""
    outputs = [str(folder / f"ras{k}.zarr") for k in range(len(data))]
    pc2ras(
        idx=write_array(folder / "idx.zarr", idx, (block, *idx.shape[1:])),
        pc=[write_array(folder / f"pc{k}.zarr", values, (block, *tail)) for k, (values, tail) in enumerate(data)],
        ras=outputs,
        shape=shape,
        **{"chunks": (6, 5), "workers": Workers(n_workers=2), **options},
    )
    return [read_array(path) for path in outputs]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "bool", "int16", "uint8", "int64"])
def test_values_are_at_their_pixels_and_the_fill_value_is_elsewhere(tmp_path: Path, dtype: str) -> None:
    gix = points()
    rng = np.random.default_rng(1)
    data = [(rng.random((len(gix), *tail)) * 2).astype(dtype) for tail in ((), (3,), (3, 5))]
    missing: Any = {"f": np.nan, "c": complex(np.nan, np.nan), "b": False}.get(np.dtype(dtype).kind)
    fill = 7 if missing is None else None
    results = place(tmp_path, gix, (data[0], ()), (data[1], (1,)), (data[2], (3, 5)), fill=fill)
    for result, values in zip(results, data, strict=True):
        expected = np.full((*SHAPE, *values.shape[1:]), 7 if missing is None else missing, dtype)
        for (i, j), value in zip(gix.tolist(), values, strict=True):
            expected[i, j] = value
        assert result.dtype == dtype
        # bit by bit: also both parts of a missing complex number are nan
        np.testing.assert_array_equal(result.real, expected.real)
        np.testing.assert_array_equal(result.imag, expected.imag)


def test_images_are_cut_and_windows_are_not(tmp_path: Path) -> None:
    gix = points(20)
    windows = np.ones((20, 3, 5), np.float32)
    place(
        tmp_path, gix, (np.ones(20), ()), (np.ones((20, 3)), (3,)), (windows, (3, 5)), (windows, (1, 1)),
        (gix, (2,)), fill=0,
    )  # fmt: skip
    for k, trailing in enumerate([(), (1,), (3, 5), (1, 1), (1,)]):
        assert describe(tmp_path / f"ras{k}.zarr").chunks == (6, 5, *trailing)


@pytest.mark.parametrize(("chunks", "block"), [((2, 3), 1), ((-1, -1), 9), ((23, 4), 5), ((100, 100), 100)])
def test_chunks_and_blocks_change_nothing(tmp_path: Path, chunks: tuple[int, int], block: int) -> None:
    gix = points(12)
    stack, windows = speckle((12, 2)), np.arange(12 * 6, dtype=np.float32).reshape(12, 2, 3)
    results = place(tmp_path, gix, (stack, (1,)), (windows, (2, 3)), chunks=chunks, block=block)
    for result, values in zip(results, (stack, windows), strict=True):
        expected = np.full((*SHAPE, *values.shape[1:]), np.nan, values.dtype)
        expected[gix[:, 0], gix[:, 1]] = values
        np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
        np.testing.assert_array_equal(np.nan_to_num(result), np.nan_to_num(expected))


@pytest.mark.parametrize("block", [1, 2, 9])
def test_of_points_that_share_a_pixel_the_last_one_counts(tmp_path: Path, block: int) -> None:
    gix = np.array([[2, 3], [9, 9], [2, 3], [0, 0], [2, 3], [9, 9]], np.int32)
    (result,) = place(tmp_path, gix, (np.arange(6, dtype=np.float32), ()), block=block)
    assert (result[2, 3], result[9, 9], result[0, 0]) == (4, 5, 3)


def test_images_that_are_stored_together_are_placed_together(
    tmp_path: Path, chunk_reads: dict[str, Counter[str]]
) -> None:
    gix, stack = points(20), speckle((20, 4))
    (result,) = place(tmp_path, gix, (stack, (4,)), block=20, chunks=(-1, -1))
    np.testing.assert_array_equal(result[gix[:, 0], gix[:, 1]], stack)
    assert chunk_reads["pc0.zarr"] == {"0/0": 1}


def test_a_hix_is_decoded_with_the_shape(tmp_path: Path) -> None:
    gix, values = points(), np.arange(40, dtype=np.float32)
    np.testing.assert_array_equal(
        place(tmp_path, kernels.pc_hix(gix, SHAPE), (values, ()))[0], place(tmp_path, gix, (values, ()))[0]
    )


@pytest.mark.parametrize("idx", [np.zeros((0, 2), np.int32), np.zeros(0, np.int64)])
def test_no_points_make_a_raster_of_the_fill_value(tmp_path: Path, idx: NDArray[Any]) -> None:
    empty = [(np.zeros((0, *tail), dtype), tail) for tail, dtype in (((), "float32"), ((1,), "bool"), ((3, 5), "int8"))]
    plane, stack, windows = place(tmp_path, idx, *empty, fill=0)
    assert (plane == 0).all()
    assert not stack.any()
    assert windows.shape == (*SHAPE, 3, 5)
    assert np.isnan(place(tmp_path, idx, empty[0])[0]).all()


def test_a_raster_of_one_pixel(tmp_path: Path) -> None:
    (result,) = place(tmp_path, np.zeros((1, 2), np.int32), (np.ones(1), ()), shape=(1, 1))
    assert result.tolist() == [[1]]


@pytest.mark.parametrize(
    ("dtype", "fill", "expected"),
    [
        ("float32", -9999, -9999),
        ("float32", float("inf"), float("inf")),
        ("complex64", 0, 0),
        ("bool", 1, True),
        ("uint16", 65535, 65535),
        ("int8", -128, -128),
        ("int64", -(2**63), -(2**63)),
    ],
)
def test_a_fill_value_that_is_given_is_used(tmp_path: Path, dtype: str, fill: float, expected: Any) -> None:
    (result,) = place(tmp_path, np.array([[1, 1]], np.int32), (np.ones(1, dtype), ()), shape=(2, 2), fill=fill)
    assert result.tolist() == [[expected, expected], [expected, 1]]


def test_nan_as_fill_value_of_complex_data_is_missing_in_both_parts(tmp_path: Path) -> None:
    (result,) = place(tmp_path, points(1), (speckle((1,)), ()), fill="nan")
    assert np.isnan(result.imag).sum() == result.size - 1


@pytest.mark.parametrize(
    ("dtype", "fill", "expected"),
    [
        ("int16", None, r"is not given; expected a whole number from -32768 to 32767, such as -1"),
        ("uint8", None, r"is not given; expected a whole number from 0 to 255, such as 0"),
        ("uint8", -1, r"is -1\.0; expected a whole number from 0 to 255"),
        ("int16", 0.5, r"is 0\.5; expected a whole number"),
        ("int16", float("nan"), r"is nan; expected a whole number"),
        ("int64", 2**63, r"is 9\.2.*; expected a whole number from -9223372036854775808"),
        ("bool", 2, r"is 2\.0; expected 0 or 1"),
        ("bool", float("nan"), r"is nan; expected 0 or 1"),
        ("float32", 1e39, r"is 1e\+39; expected a number in its range"),
        ("complex64", 1e39, r"is 1e\+39; expected a number in its range"),
    ],
)
def test_a_fill_value_that_the_dtype_cannot_hold_is_refused(
    tmp_path: Path, dtype: str, fill: float | None, expected: str
) -> None:
    with pytest.raises(MoraineError, match=rf"pc2ras: fill of pc .*pc0\.zarr, which is {dtype}, {expected}"):
        place(tmp_path, points(3), (np.zeros(3, dtype), ()), fill=fill)
    assert not (tmp_path / "ras0.zarr").exists()


@pytest.mark.parametrize("bad", [(-1, 0), (0, -1), (23, 0), (0, 17)])
def test_a_point_outside_the_raster_is_refused_and_never_wrapped(tmp_path: Path, bad: tuple[int, int]) -> None:
    with pytest.raises(MoraineError, match=rf"pc2ras: idx .*row 1 is .*\({bad[0]}, {bad[1]}\), outside the raster"):
        place(tmp_path, np.array([(1, 1), bad], np.int32), (np.zeros(2), ()))
    assert not (tmp_path / "ras0.zarr").exists()


def test_wrong_calls_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match=r"pc2ras: shape is \(0, 5\); expected two sides from 1"):
        place(tmp_path, points(3), (np.zeros(3), ()), shape=(0, 5))
    with pytest.raises(MoraineError, match=r"pc .*pc0\.zarr has shape \(4,\); expected n_points 3, as in idx"):
        place(tmp_path, points(3), (np.zeros(4), ()))
    arguments = {"idx": write_array(tmp_path / "idx.zarr", points(3)), "shape": SHAPE}
    pc = write_array(tmp_path / "pc0.zarr", np.zeros(3))
    with pytest.raises(MoraineError, match="pc2ras: pc has 1 arrays and ras 2; expected as many"):
        pc2ras(**arguments, pc=pc, ras=[str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr")])


def test_a_task_reads_only_blocks_of_points_that_lie_there(
    tmp_path: Path, chunk_reads: dict[str, Counter[str]]
) -> None:
    """Points in the order of the raster, four blocks of them, each within one or two of three rows of chunks."""
    gix = np.array([(i, j) for i in range(0, 24, 3) for j in (2, 9, 15)][:24], np.int32)
    values = np.arange(48, dtype=np.float32).reshape(24, 2)
    (result,) = place(tmp_path, gix, (values, (1,)), shape=(24, 17), block=6, chunks=(8, 5))
    np.testing.assert_array_equal(result[gix[:, 0], gix[:, 1]], values)
    # lines 0 3 | 6 9 | 12 15 | 18 21 in blocks 0 to 3; rows of chunks begin at lines 0, 8 and 16
    assert chunk_reads["pc0.zarr"] == {
        f"{block}/{image}": times for block, times in enumerate((1, 2, 1, 1)) for image in range(2)
    }


def test_a_call_is_checked_before_its_index_exists(tmp_path: Path) -> None:
    """A35: a pipeline knows what comes out of a step whose inputs an earlier step has yet to write."""
    inputs = [
        describe(write_array(tmp_path / name, values))
        for name, values in (("idx.zarr", points(5)), ("pc.zarr", speckle((5, 2))))
    ]
    for array in inputs:
        (tmp_path / array.path).rename(f"{array.path}.gone")
    arguments = {"idx": inputs[0].path, "pc": inputs[1].path, "ras": str(tmp_path / "ras.zarr"), "shape": SHAPE}
    known = check_command(pc2ras, arguments, Workers(), expected={array.path: array for array in inputs})
    result = known[str(tmp_path / "ras.zarr")]
    assert result is not None
    assert (result.shape, result.dtype) == ((*SHAPE, 2), "complex64")


# -------------------------------------------------------------------------------------------------- there and back


@quick
@given(
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.tuples(st.integers(1, 8), st.integers(1, 8)),
    st.integers(1, 9),
    st.data(),
)
def test_into_a_raster_and_back_gives_the_points_again(
    tmp_path_factory: pytest.TempPathFactory,
    shape: tuple[int, int],
    chunks: tuple[int, int],
    block: int,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("there")
    n_pixels = shape[0] * shape[1]
    pixels = np.array(data.draw(st.lists(st.integers(0, n_pixels - 1), max_size=30, unique=True)), np.int64)
    gix = np.stack(np.divmod(pixels, shape[1]), axis=1).astype(np.int32)
    cases = [(speckle((len(gix), 2)), (1,)), (np.arange(len(gix) * 6, dtype=np.int16).reshape(-1, 2, 3), (2, 3))]
    place(folder, gix, *cases, shape=shape, block=block, chunks=chunks, fill=-1)
    ras2pc(
        idx=str(folder / "idx.zarr"),
        ras=[str(folder / f"ras{k}.zarr") for k in range(2)],
        pc=[str(folder / f"back{k}.zarr") for k in range(2)],
    )
    for k, (values, _) in enumerate(cases):
        np.testing.assert_array_equal(read_array(folder / f"back{k}.zarr"), values)


def test_real_points_in_a_raster(tmp_path: Path, real_data: Path) -> None:
    """Persistent scatterers of Amsterdam, 156 points and 10 dates of Sentinel-1."""
    source = real_data / "s1-amsterdam-ps-complex"
    if not source.is_dir():
        pytest.skip(f"no {source.name} in {real_data}")
    group: Any = zarr.open_group(str(next(source.rglob(".zgroup")).parent), mode="r")
    gix = np.stack([group["azimuth"][:], group["range"][:]], axis=1).astype(np.int32)
    samples = np.asarray(group["complex"][:]).astype(np.complex64)
    shape = (int(gix[:, 0].max()) + 1, int(gix[:, 1].max()) + 1)
    (result,) = place(tmp_path, gix, (samples, (1,)), shape=shape, block=50, chunks=(-1, -1))
    assert np.count_nonzero(~np.isnan(result[..., 0])) == len({tuple(pixel) for pixel in gix.tolist()})
    own = {tuple(pixel): row for pixel, row in zip(gix.tolist(), samples, strict=True)}
    for (i, j), row in own.items():
        np.testing.assert_array_equal(result[i, j], row)
    assert open_array(tmp_path / "ras0.zarr").chunks == (*shape, 1)
