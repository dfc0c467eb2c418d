"""empirical-co-emi-temp-coh-pc: from samples to linked phases, raster chunk by raster chunk, in bands of lines."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moraine_core import MoraineError, Workers
from moraine_core.run import check_command
from moraine_core.store import describe, missing_chunks, open_array
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_ds.coherence import kernels as coherence
from moraine_ds.ds_temp_coh import ds_temp_coh
from moraine_ds.emi import emi
from moraine_ds.empirical_co_emi_temp_coh_pc import empirical_co_emi_temp_coh_pc
from moraine_ds.empirical_co_pc import empirical_co_pc
from moraine_ds.fused import kernels, plans, tasks
from moraine_points.ras2pc_ras_chunk import ras2pc_ras_chunk

SHAPE = (19, 130)
CHUNKS = (7, 50)
N_IMAGES = 6
ONE = Workers(n_workers=1)
MEASURES = ("t_coh", "t_coh_w", "eff_n_pairs", "n_components")
KINDS = ("ph", *MEASURES)


class Scene:
    """A stack, points and the flags of their homogeneous pixels, stored."""

    def __init__(self, folder, rslc, gix, flags):
        self.folder, self.rslc, self.gix = folder, rslc, gix
        self.is_shp = flags[gix[:, 0], gix[:, 1]]
        self.flags = write_array(folder / "flags.zarr", flags, (10, 60, *flags.shape[2:]))
        self.paths = {
            "rslc": write_array(folder / "rslc.zarr", rslc, (6, 37, 1)),
            "gix": write_array(folder / "gix.zarr", gix, (100, 2)),
        }

    def inputs(self, chunks=CHUNKS):
        """Return the inputs for raster chunks of a size."""
        path = self.folder / f"is_shp_{chunks[0]}_{chunks[1]}"
        if not path.exists():
            arguments = {"gix": self.paths["gix"], "ras": [self.flags], "pc": [str(path)], "key": f"{path}_key.zarr"}
            ras2pc_ras_chunk(**arguments, chunks=chunks, workers=ONE)
        return {**self.paths, "is_shp_dir": str(path), "chunks": chunks}

    def run(self, chunks=CHUNKS, workers=ONE, folder="found", **options):
        """Run the command for all results, and return them in the order of gix."""
        outputs = {f"{kind}_dir": str(self.folder / folder / kind) for kind in KINDS}
        (self.folder / folder).mkdir(exist_ok=True)
        empirical_co_emi_temp_coh_pc(**self.inputs(chunks), **outputs, **options, workers=workers)
        return [self.joined(outputs[f"{kind}_dir"], chunks) for kind in KINDS]

    def number(self, chunks=CHUNKS):
        """Return the raster chunk of each point."""
        return self.gix[:, 0] // chunks[0] * -(-SHAPE[1] // chunks[1]) + self.gix[:, 1] // chunks[1]

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


@pytest.fixture
def scene(tmp_path):
    """Write a stack with gaps, and points in most of its raster chunks; some have no homogeneous pixel."""
    rng = np.random.default_rng(1)
    rslc = speckle((*SHAPE, N_IMAGES), 2) + speckle((*SHAPE, 1), 3)
    rslc[5:9, 40:60, 1] = np.nan
    rslc[15:, 100:] = 0
    is_point = rng.random(SHAPE) < 0.2
    is_point[7:14, 50:100] = False  # raster chunk 4 has no point
    flags = rng.random((*SHAPE, 3, 5)) < 0.6
    flags[2, ::3] = False
    return Scene(tmp_path, rslc, np.argwhere(is_point).astype(np.int32), flags)


def assert_same_bits(found, expected):
    for kind, one, other in zip(KINDS, found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes(), kind


def test_results_are_those_of_the_separate_commands(scene):
    """The speckle is correlated in none of them or in all: one table for the whole stack."""
    found = scene.run(ref=2, alpha=0.2)
    folder = scene.folder / "separate"
    folder.mkdir()
    coh, looks = str(folder / "coh"), str(folder / "n_looks")
    empirical_co_pc(**scene.inputs(), coh_dir=coh, n_looks_dir=looks, workers=ONE)
    for kind in KINDS:
        (folder / kind).mkdir()
    for chunk in np.unique(scene.number()):
        name = f"{chunk}.zarr"
        emi(coh=f"{coh}/{name}", ph=str(folder / "ph" / name), ref=2, workers=ONE)
        outputs = {kind: str(folder / kind / name) for kind in MEASURES}
        given = {"coh": f"{coh}/{name}", "ph": str(folder / "ph" / name), "n_looks": f"{looks}/{name}"}
        ds_temp_coh(**given, **outputs, alpha=0.2, workers=ONE)
    assert_same_bits(found, [scene.joined(folder / kind) for kind in KINDS])
    assert np.isnan(found[0]).any()
    assert np.isfinite(found[2]).any()
    table = open_array(scene.folder / "found" / "t_coh_w" / "0.zarr").attrs["speckle_correlation"]
    assert table == open_array(f"{looks}/0.zarr").attrs["speckle_correlation"]
    assert np.array(table).shape == (9, 13)


def test_each_raster_chunk_with_points_has_an_array_in_each_directory(scene):
    scene.run()
    number = scene.number()
    assert 4 not in number
    for chunk in np.unique(number):
        n_points = int((number == chunk).sum())
        ph, *measures = (describe(scene.folder / "found" / kind / f"{chunk}.zarr") for kind in KINDS)
        assert (ph.shape, ph.chunks, ph.dtype) == ((n_points, N_IMAGES), (n_points, 1), "complex64")
        assert {(array.shape, array.chunks) for array in measures} == {((n_points,), (n_points,))}
        assert [array.dtype for array in measures] == ["float32", "float32", "float32", "int16"]
        for array in (ph, *measures):
            assert missing_chunks(array.path) == []
            assert array.attributes["unit"] == "unitless"


@pytest.mark.parametrize("chunks", [(19, 130), (5, 60), (100, 30)])
def test_results_do_not_depend_on_the_raster_chunks(scene, chunks):
    assert_same_bits(scene.run(chunks, folder="other"), scene.run())


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_results_do_not_depend_on_the_batches(scene, batch_size):
    assert_same_bits(scene.run(batch_size=batch_size, folder="other"), scene.run())


@pytest.mark.parametrize(("points", "workers"), [(1, 1), (20, 4)])
def test_results_do_not_depend_on_how_chunks_are_cut(scene, monkeypatch, points, workers):
    expected = scene.run()
    for name, value in {"TASKS": 1000, "PIXELS_PER_POINT": 1000, "BAND_POINTS": points, "JOINING_BYTES": 1000}.items():
        monkeypatch.setattr(plans, name, value)
    assert_same_bits(scene.run(workers=Workers(n_workers=workers), folder="other"), expected)


def test_only_outputs_that_are_asked_for_are_made(scene):
    expected = scene.run()
    few = {"ph_dir": str(scene.folder / "few_ph"), "t_coh_dir": str(scene.folder / "few_t_coh")}
    empirical_co_emi_temp_coh_pc(**scene.inputs(), **few, workers=ONE)
    for path, values in zip(few.values(), expected, strict=False):
        assert scene.joined(path).tobytes() == values.tobytes()
    counts = str(scene.folder / "few_components")
    empirical_co_emi_temp_coh_pc(**scene.inputs(), **few, n_components_dir=counts, workers=ONE)
    assert scene.joined(counts).tobytes() == expected[4].tobytes()


def test_options_reach_the_kernel(scene):
    scene.run()
    table = open_array(scene.folder / "found" / "t_coh_w" / "0.zarr").attrs["speckle_correlation"]
    looks = coherence.n_looks(scene.is_shp, table)
    for options in ({"strict": True}, {"regularize": False}, {"beta_min": 0.5}, {"ref": 5}, {"alpha": 0.4}):
        found = scene.run(**options)
        expected = kernels.empirical_co_emi_temp_coh_pc(scene.rslc, scene.gix, scene.is_shp, looks, **options)
        assert_same_bits(found, expected)


def test_the_chunks_of_the_stack_are_the_default(scene):
    arguments = scene.inputs((6, 37))
    del arguments["chunks"]
    outputs = {"ph_dir": str(scene.folder / "ph"), "t_coh_dir": str(scene.folder / "t_coh")}
    empirical_co_emi_temp_coh_pc(**arguments, **outputs, workers=ONE)
    assert scene.joined(outputs["ph_dir"], (6, 37)).tobytes() == scene.run()[0].tobytes()


def test_no_points_are_an_empty_array_in_each_directory(tmp_path):
    empty = Scene(tmp_path, speckle((6, 20, 3)), np.empty((0, 2), np.int32), np.ones((6, 20, 3, 5), bool))
    outputs = {f"{kind}_dir": str(tmp_path / kind) for kind in KINDS}
    empirical_co_emi_temp_coh_pc(**empty.inputs((6, 20)), **outputs, workers=ONE)
    assert [read_array(tmp_path / kind / "0.zarr").shape for kind in KINDS] == [(0, 3), (0,), (0,), (0,), (0,)]
    assert [path.name for path in (tmp_path / "ph").glob("*.zarr")] == ["0.zarr"]


def test_one_point_in_the_corner_of_two_images(tmp_path):
    one = Scene(tmp_path, speckle((6, 20, 2)), np.array([[5, 19]], np.int32), np.ones((6, 20, 3, 3), bool))
    outputs = {f"{kind}_dir": str(tmp_path / kind) for kind in KINDS}
    empirical_co_emi_temp_coh_pc(**one.inputs((6, 20)), **outputs, workers=ONE)
    coh = coherence.empirical_co_pc(one.rslc, one.gix, one.is_shp)[0, 0]
    np.testing.assert_allclose(read_array(tmp_path / "ph" / "0.zarr"), [[1, coh.conj() / abs(coh)]], atol=1e-6)
    assert read_array(tmp_path / "t_coh" / "0.zarr") == pytest.approx([1])


# -- bands -------------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 1000),
    share=st.floats(0, 1),
    chunks=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    n_tasks=st.integers(1, 50),
    pixels_per_point=st.integers(1, 100),
    fewest=st.integers(0, 20),
)
def test_bands_hold_each_point_once_in_the_order_of_its_chunk(seed, share, chunks, **limits):
    shape = (23, 17)
    gix = np.argwhere(np.random.default_rng(seed).random(shape) < share)
    bands = tasks.bands_of_chunks(gix, shape=shape, chunks=chunks, **limits)
    number = gix[:, 0] // chunks[0] * -(-shape[1] // chunks[1]) + gix[:, 1] // chunks[1]
    for chunk in np.unique(number):
        rows = []
        for n_points, top, bottom, start, stop in (band[1:] for band in bands if band[0] == chunk):
            here = np.arange(start, stop)
            assert (gix[here, 0] >= top).all()
            assert (gix[here, 0] < bottom).all()
            mine = here[number[here] == chunk]
            assert len(mine) == n_points > 0
            rows.append(mine)
        assert np.concatenate(rows).tolist() == np.flatnonzero(number == chunk).tolist()


@pytest.mark.parametrize(("limit", "most"), [({}, 1000), ({"n_tasks": 10}, 10), ({"fewest": 7000}, 8)])
def test_bands_have_about_equally_many_points_and_are_no_more_than_is_worth_it(limit, most):
    """Of 120000 pixels in two chunks, half are points."""
    gix = np.argwhere(np.random.default_rng(2).random((400, 300)) < 0.5)
    limits = {"n_tasks": 1000, "pixels_per_point": 1000, "fewest": 1} | limit
    bands = tasks.bands_of_chunks(gix, shape=(400, 300), chunks=(200, 300), **limits)
    counts = [n_points for _, n_points, *_ in bands]
    assert len(gix) / most <= min(counts) + 300  # a line is not cut
    assert max(counts) < 1.3 * len(gix) / most or most == 1000


def test_a_chunk_of_few_points_is_not_cut():
    gix = np.argwhere(np.random.default_rng(2).random((400, 300)) < 0.02)
    limits = {"n_tasks": 1000, "pixels_per_point": 64, "fewest": 1}
    bands = tasks.bands_of_chunks(gix, shape=(400, 300), chunks=(200, 300), **limits)
    assert [chunk for chunk, *_ in bands] == [0, 1]


def test_points_that_are_not_in_the_raster_make_no_bands():
    limits = {"shape": (4, 5), "chunks": (2, 2), "n_tasks": 2, "pixels_per_point": 1, "fewest": 1}
    assert tasks.bands_of_chunks(np.array([[3, 9]]), **limits) == []


# -- from the shell ----------------------------------------------------------------------------------------------------


def moraine(*words):
    return subprocess.run([sys.executable, "-m", "moraine_core", *words], capture_output=True, text=True, timeout=100)


def test_the_command_from_the_shell(scene):
    inputs = {**scene.inputs(), "ph_dir": str(scene.folder / "ph"), "t_coh_dir": str(scene.folder / "t_coh")}
    words = [f"--{name.replace('_', '-')}" for name in inputs]
    values = [map(str, value) if isinstance(value, tuple) else [value] for value in inputs.values()]
    done = moraine("empirical-co-emi-temp-coh-pc", *(w for k, v in zip(words, values, strict=True) for w in (k, *v)))
    assert done.returncode == 0, done.stderr
    expected = scene.run()
    assert scene.joined(inputs["ph_dir"]).tobytes() == expected[0].tobytes()
    assert scene.joined(inputs["t_coh_dir"]).tobytes() == expected[1].tobytes()


def test_other_spellings_of_the_commands_work_and_no_list_shows_them():
    """As pipelines of other packages name them."""
    aliases = {e.name: e.value for e in distribution("moraine-ds").entry_points if e.group == "moraine.aliases"}
    assert sorted(value.partition(":")[2] for value in aliases.values()) == [
        "empirical_co_emi_temp_coh_pc",
        "empirical_co_pc",
    ]
    listed = moraine("list").stdout
    for alias, value in aliases.items():
        command = value.partition(":")[2].replace("_", "-")
        assert command in listed
        assert alias not in listed
        done = moraine(alias, "--help")
        assert done.returncode == 0, done.stderr
        assert command in done.stdout


# -- bad calls ---------------------------------------------------------------------------------------------------------


def refused(scene, text, **options):
    """Run a call that must be refused with one sentence, and without an output."""
    outputs = {"ph_dir": str(scene.folder / "ph"), "t_coh_dir": str(scene.folder / "t_coh")}
    with pytest.raises(MoraineError, match=text) as caught:
        empirical_co_emi_temp_coh_pc(**{**scene.inputs(), **outputs, **options}, workers=ONE)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("empirical-co-emi-temp-coh-pc: ")
    assert not (scene.folder / "ph").exists()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"ref": 6}, "ref is 6; expected one of the 6 images of rslc"),
        ({"ref": -1}, "ref is -1"),
        ({"beta_min": 1.0}, "beta_min is 1.0; expected at least 0 and below 1"),
        ({"alpha": 0.6}, "alpha is 0.6; expected 1e-6 to 0.5"),
        ({"batch_size": 0}, "batch_size is 0; expected at least 1"),
        ({"chunks": (0, 5)}, r"chunks are \(0, 5\); expected positive sizes"),
        ({"chunks": (7, 45)}, "expected the gix and the chunks that the directory was made with, not chunks 7 45"),
        ({"is_shp_dir": "/no/such"}, "is_shp_dir: .*does not exist"),
    ],
)
def test_wrong_arguments_are_named(scene, options, text):
    refused(scene, text, **options)


def test_other_points_than_those_of_the_directory_are_named(scene):
    fewer = write_array(scene.folder / "fewer.zarr", scene.gix[1:], (100, 2))
    refused(scene, r"points in raster chunk 0, gix .*\(1 chunks differ\)", gix=fewer)
    swapped = scene.gix[[1, 0, *range(2, len(scene.gix))]]
    path = write_array(scene.folder / "swapped.zarr", swapped, (100, 2))
    refused(scene, rf"gix {re.escape(path)}: row 1 is below the row before it", gix=path)
    swapped[0] = (19, 0)
    path = write_array(scene.folder / "outside.zarr", swapped, (100, 2))
    refused(scene, r"row 0 is \(azimuth, range\) = \(19, 0\), outside the raster", gix=path)


def test_a_stack_of_one_image_makes_no_pairs(scene):
    path = write_array(scene.folder / "one.zarr", scene.rslc[:, :, :1], (6, 37, 1))
    refused(scene, "one.zarr has 1 images; expected at least 2", rslc=path)


def test_an_output_must_not_be_the_directory_that_is_read(scene):
    inputs = scene.inputs()
    arguments = {**inputs, "ph_dir": inputs["is_shp_dir"], "t_coh_dir": str(scene.folder / "t_coh")}
    with pytest.raises(MoraineError, match="which is only read"):
        check_command(empirical_co_emi_temp_coh_pc, arguments, ONE, expected={})


# -- on a GPU ----------------------------------------------------------------------------------------------------------


def test_a_task_of_a_band_on_an_emulated_gpu(emulated_cupy):
    rng = np.random.default_rng(4)
    rslc = speckle((8, 9, 5), 1) + speckle((8, 9, 1), 2)
    gix = np.argwhere(rng.random((8, 9)) < 0.2).astype(np.int32)
    is_shp = rng.random((len(gix), 3, 5)) < 0.8
    options = {"origin": (20, 30), "pixels": (30, 39), "correlation": [[0.2, 1, 0.2]], "names": ("n_components", "ph")}
    beside = np.append(gix + np.array([20, 30], np.int32), [[28, 41]], axis=0).astype(np.int32)
    here, there = (
        tasks.link_band(*map(move, (rslc, beside, is_shp)), **options, batch_size=3)
        for move in (np.asarray, emulated_cupy.asarray)
    )
    np.testing.assert_array_equal(there[0].get(), here[0])
    np.testing.assert_allclose(there[1].get(), here[1], atol=1e-3)
