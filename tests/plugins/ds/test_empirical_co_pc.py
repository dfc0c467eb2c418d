"""empirical-co-pc: the coherence of points, raster chunk by raster chunk."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import moraine_ds.empirical_co_pc as declaration
from moraine_core import MoraineError, Workers
from moraine_core.run import check_command
from moraine_core.store import describe, missing_chunks, open_array
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_ds.coherence import kernels, plans
from moraine_ds.empirical_co_pc import empirical_co_pc
from moraine_points.ras2pc_ras_chunk import ras2pc_ras_chunk

SHAPE = (19, 130)
CHUNKS = (7, 50)
N_IMAGES = 5


@pytest.fixture
def scene(tmp_path):
    """Write a stack with gaps, points, and their flags by raster chunk, and return all of it."""
    rng = np.random.default_rng(1)
    rslc = speckle((*SHAPE, N_IMAGES), 2) + speckle((*SHAPE, 1), 3)
    rslc[5:9, 40:60, 1] = np.nan
    is_point = rng.random(SHAPE) < 0.2
    is_point[7:14, 50:100] = False  # raster chunk 4 has no point
    flags = rng.random((*SHAPE, 3, 5)) < 0.6
    return Scene(tmp_path, rslc, np.argwhere(is_point).astype(np.int32), flags)


class Scene:
    """Arrays and where they are stored."""

    def __init__(self, folder, rslc, gix, flags):
        self.folder, self.rslc, self.gix, self.flags = folder, rslc, gix, flags
        self.is_shp = flags[gix[:, 0], gix[:, 1]]
        self.paths = {
            "rslc": write_array(folder / "rslc.zarr", rslc, (6, 37, 1)),
            "gix": write_array(folder / "gix.zarr", gix, (100, 2)),
        }

    def directory(self, chunks=CHUNKS):
        """Return the directory of flags in raster chunks of a size."""
        path = self.folder / f"is_shp_{chunks[0]}_{chunks[1]}"
        if not path.exists():
            raster = write_array(self.folder / "is_shp.zarr", self.flags, (10, 60, *self.flags.shape[2:]))
            ras2pc_ras_chunk(
                gix=self.paths["gix"], ras=[raster], pc=[str(path)], key=f"{path}_key.zarr", chunks=chunks, workers=ONE
            )
        return str(path)

    def arguments(self, chunks=CHUNKS, **options):
        """Return the arguments of a call."""
        return {
            **self.paths,
            "is_shp_dir": self.directory(chunks),
            "coh_dir": str(self.folder / "coh"),
            "chunks": chunks,
            **options,
        }

    def number(self, chunks=CHUNKS):
        """Return the raster chunk of each point."""
        return self.gix[:, 0] // chunks[0] * -(-SHAPE[1] // chunks[1]) + self.gix[:, 1] // chunks[1]

    def run(self, chunks=CHUNKS, **options):
        """Run the command, and return its coherence (and looks) in the order of gix."""
        empirical_co_pc(**self.arguments(chunks, **options), workers=ONE)
        found = [self.joined(self.folder / "coh", chunks)]
        return [*found, self.joined(options["n_looks_dir"], chunks)] if "n_looks_dir" in options else found[0]

    def joined(self, directory, chunks=CHUNKS):
        """Return the arrays of a directory as one, in the order of gix."""
        number = self.number(chunks)
        parts = {int(path.stem): read_array(path) for path in Path(directory).glob("*.zarr")}
        assert sorted(parts) == np.unique(number).tolist()
        some = next(iter(parts.values()))
        whole = np.empty((len(self.gix), *some.shape[1:]), some.dtype)
        for chunk, values in parts.items():
            whole[number == chunk] = values
        return whole


ONE = Workers(n_workers=1)


def test_values_are_those_of_the_array_function_in_the_order_of_gix(scene):
    coh, looks = scene.run(n_looks_dir=str(scene.folder / "looks"))
    np.testing.assert_array_equal(coh, kernels.empirical_co_pc(scene.rslc, scene.gix, scene.is_shp))
    assert np.isnan(coh).any()
    table = np.array(open_array(scene.folder / "looks" / "0.zarr").attrs["speckle_correlation"])
    assert table.shape == (9, 13)
    np.testing.assert_array_equal(looks, kernels.n_looks(scene.is_shp, table))


def test_each_raster_chunk_with_points_has_an_array_one_pair_a_chunk(scene):
    scene.run(n_looks_dir=str(scene.folder / "looks"))
    number = scene.number()
    assert 4 not in number
    for chunk in np.unique(number):
        n_points = (number == chunk).sum()
        coh, looks = (describe(scene.folder / name / f"{chunk}.zarr") for name in ("coh", "looks"))
        assert (coh.shape, coh.chunks, coh.dtype) == ((n_points, 10), (n_points, 1), "complex64")
        assert (looks.shape, looks.chunks, looks.dtype) == ((n_points,), (n_points,), "float32")
        assert coh.attributes["unit"] == looks.attributes["unit"] == "unitless"
        assert missing_chunks(coh.path) == []


@pytest.mark.parametrize("chunks", [(19, 130), (5, 60), (100, 30)])
def test_results_do_not_depend_on_the_raster_chunks(scene, chunks):
    expected = scene.run(n_looks_dir=str(scene.folder / "looks"))
    found = scene.run(chunks, n_looks_dir=str(scene.folder / "other"))
    for one, other in zip(expected, found, strict=True):
        assert one.tobytes() == other.tobytes()


def test_the_chunks_of_the_stack_are_the_default(scene):
    arguments = scene.arguments((6, 37))
    del arguments["chunks"]
    empirical_co_pc(**arguments, workers=ONE)
    np.testing.assert_array_equal(
        scene.joined(scene.folder / "coh", (6, 37)), kernels.empirical_co_pc(scene.rslc, scene.gix, scene.is_shp)
    )


@pytest.mark.parametrize("bytes_at_once", [1, 2000, 20000])
def test_pairs_that_do_not_fit_into_one_task_give_the_same_bits(scene, monkeypatch, bytes_at_once):
    expected = scene.run(n_looks_dir=str(scene.folder / "looks"))
    monkeypatch.setattr(declaration, "RESULT_BYTES", bytes_at_once)
    monkeypatch.setattr(plans.Part, "n_pixels", 1)
    groups = declaration._groups(plans.Part(0, 100, slice(0), (), ()), tuple((0, k) for k in range(1, 11)), 5)
    assert len(groups) == {1: 10, 2000: 5, 20000: 1}[bytes_at_once]
    found = scene.run(n_looks_dir=str(scene.folder / "other"))
    for one, other in zip(expected, found, strict=True):
        assert one.tobytes() == other.tobytes()


def test_pairs_are_chosen_from_a_list_or_a_file(scene):
    whole = scene.run()
    pairs = [[0, 2], [1, 3], [3, 4]]
    columns = [list(zip(*np.triu_indices(5, 1), strict=True)).index(tuple(pair)) for pair in pairs]
    assert scene.run(image_pairs=pairs).tobytes() == whole[:, columns].tobytes()
    file = scene.folder / "pairs.txt"
    file.write_text("# reference secondary\n0 2\n1 3\n3 4\n", encoding="utf-8")
    assert scene.run(image_pairs=str(file)).tobytes() == whole[:, columns].tobytes()


def test_strict_leaves_out_pairs_with_missing_samples(scene):
    """A37: the option for what is valid in all dates only."""
    plain, strict = scene.run(), scene.run(strict=True)
    np.testing.assert_array_equal(strict, kernels.empirical_co_pc(scene.rslc, scene.gix, scene.is_shp, strict=True))
    assert np.isnan(strict).sum() > np.isnan(plain).sum()


def test_the_correlation_is_measured_in_the_middle_of_thirds_of_the_stack_and_at_fixed_places():
    assert [(part.start, part.stop) for part in plans._places(300)] == [(0, 300)]
    assert [(part.start, part.stop) for part in plans._places(1000)] == [(122, 634), (366, 878)]
    assert [part.stop - part.start for part in plans._places(40_000)] == [512] * 3
    assert plans._places(0) == []


def test_looks_in_a_scene_too_small_to_measure_are_the_number_of_pixels(tmp_path):
    rslc, gix = speckle((6, 20, 3)), np.array([[2, 5], [4, 9]], np.int32)
    small = Scene(tmp_path, rslc, gix, np.ones((6, 20, 3, 3), bool))
    empirical_co_pc(**{**small.arguments((6, 20)), "n_looks_dir": str(tmp_path / "looks")}, workers=ONE)
    assert read_array(tmp_path / "looks" / "0.zarr").tolist() == [9, 9]
    assert open_array(tmp_path / "looks" / "0.zarr").attrs["speckle_correlation"] is None


def test_no_points_are_an_empty_array_in_each_directory(tmp_path):
    empty = Scene(tmp_path, speckle((6, 20, 3)), np.empty((0, 2), np.int32), np.ones((6, 20, 3, 5), bool))
    empirical_co_pc(**empty.arguments((6, 20)), n_looks_dir=str(tmp_path / "looks"), workers=ONE)
    assert read_array(tmp_path / "coh" / "0.zarr").shape == (0, 3)
    assert read_array(tmp_path / "looks" / "0.zarr").shape == (0,)
    assert [path.name for path in (tmp_path / "coh").glob("*.zarr")] == ["0.zarr"]


def test_one_point_with_one_pixel_is_fully_coherent(tmp_path):
    flags = np.zeros((6, 20, 3, 3), bool)
    flags[5, 19, 1, 1] = True
    one = Scene(tmp_path, speckle((6, 20, 3)), np.array([[5, 19]], np.int32), flags)
    empirical_co_pc(**one.arguments((6, 20)), workers=ONE)
    np.testing.assert_allclose(np.abs(read_array(tmp_path / "coh" / "0.zarr")), 1, atol=1e-6)


# -- bad calls ---------------------------------------------------------------------------------------------------------


def refused(scene, text, **options):
    """Run a call that must be refused with one sentence, and without an output."""
    with pytest.raises(MoraineError, match=text) as caught:
        empirical_co_pc(**{**scene.arguments(), **options}, workers=ONE)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("empirical-co-pc: ")
    assert not (scene.folder / "coh").exists()


def test_raster_chunks_other_than_those_of_the_directory_are_named(scene):
    text = "expected the gix and the chunks that the directory was made with, not chunks 7 45"
    refused(scene, text, chunks=(7, 45))


def test_a_directory_of_other_points_is_named(scene):
    directory = scene.directory()
    n_points = int((scene.number() == 0).sum())
    fewer = write_array(scene.folder / "fewer.zarr", scene.gix[1:], (100, 2))
    found = f"{directory} has {n_points} points in raster chunk 0, gix {fewer} has {n_points - 1} there"
    refused(scene, rf"{found} \(1 chunks differ\)", gix=fewer)


def test_points_out_of_order_or_outside_the_raster_are_named(scene):
    swapped = scene.gix.copy()
    swapped[[3, 4]] = swapped[[4, 3]]
    path = write_array(scene.folder / "swapped.zarr", swapped, (100, 2))
    refused(scene, rf"gix {re.escape(path)}: row 4 is below the row before it", gix=path)
    swapped[0] = (19, 0)
    path = write_array(scene.folder / "outside.zarr", swapped, (100, 2))
    refused(scene, r"row 0 is \(azimuth, range\) = \(19, 0\), outside the raster", gix=path)


def test_a_directory_that_is_not_one_of_flags_is_named(scene, tmp_path):
    refused(scene, "is_shp_dir: .*does not exist", is_shp_dir=str(tmp_path / "no"))
    (tmp_path / "bare").mkdir()
    refused(scene, "is_shp_dir: .*bare: no chunks", is_shp_dir=str(tmp_path / "bare"))
    (tmp_path / "even").mkdir()
    write_array(tmp_path / "even" / "0.zarr", np.ones((4, 2, 3), bool))
    refused(
        scene,
        r"0.zarr is bool \(4, 2, 3\); expected bool \(n_points, az_win, r_win\)",
        is_shp_dir=str(tmp_path / "even"),
    )
    (tmp_path / "p").mkdir()
    write_array(tmp_path / "p" / "0.zarr", np.ones((4, 3, 3), np.float32))
    refused(scene, r"is float32 \(4, 3, 3\); expected bool", is_shp_dir=str(tmp_path / "p"))


def test_a_directory_with_a_lost_chunk_is_refused(scene):
    """A24: a hole must not look like data."""
    directory = Path(scene.directory())
    for file in (directory / "0.zarr" / "c").rglob("*"):
        if file.is_file():
            file.unlink()
    refused(scene, "is_shp_dir: .*0.zarr lacks 1 of its chunks")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"image_pairs": [[1, 0]]}, r"pair 0 is \(1, 0\); expected the earlier image first"),
        ({"image_pairs": [[0, 5]]}, r"pair 0 is \(0, 5\)"),
        ({"image_pairs": [[0, 2], [0, 1]]}, r"pair 1 is \(0, 1\), after \(0, 2\)"),
        ({"image_pairs": []}, "image_pairs is empty"),
        ({"chunks": (0, 5)}, r"chunks are \(0, 5\); expected positive sizes"),
        ({"chunks": (-2, 5)}, r"chunks are \(-2, 5\)"),
    ],
)
def test_wrong_options_are_named(scene, options, text):
    refused(scene, text, **options)


def test_a_stack_of_one_image_makes_no_pairs(scene):
    path = write_array(scene.folder / "one.zarr", scene.rslc[:, :, :1], (6, 37, 1))
    refused(scene, "one.zarr has 1 images; expected at least 2", rslc=path)


def test_an_output_must_not_be_the_directory_that_is_read(scene):
    arguments = scene.arguments(coh_dir=scene.directory())
    with pytest.raises(MoraineError, match="which is only read"):
        check_command(empirical_co_pc, arguments, ONE, expected={})
