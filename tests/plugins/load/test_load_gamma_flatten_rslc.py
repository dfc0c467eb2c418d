"""The command load-gamma-flatten-rslc: native, with stand-ins for GAMMA's programs, and with bad input."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from moraine_core import MoraineError, Workers
from moraine_core.store import describe
from moraine_core.testing.data import read_array
from moraine_load import examples, kernels
from moraine_load.geometry import earth_fixed, ground
from moraine_load.load_gamma_flatten_rslc import load_gamma_flatten_rslc
from moraine_load.par import read_slc_par, write_par
from moraine_load.rasters import read_block, write_block
from moraine_load.scene import scene_of

SHAPE = (13, 17)
REFERENCE, SECOND, THIRD = examples.DATES


def run(stack, **options):
    """Run the command beside the stack and return what it wrote."""
    out = Path(stack["hgt"]).parent / "rslc.zarr"
    arguments = {"rslc_dir": stack["rslc_dir"], "reference": REFERENCE, "hgt": stack["hgt"], "engine": "native"}
    load_gamma_flatten_rslc(
        **{**arguments, "chunks": (6, 5), "rslc": str(out), "workers": Workers(n_workers=1), "fresh": True, **options}
    )
    return read_array(out)


def refused(stack, **options):
    """Run the command, expect a refusal before anything is written, and return its text."""
    folder = Path(stack["hgt"]).parent
    before = sorted(folder.rglob("*"))
    with pytest.raises(MoraineError) as caught:
        run(stack, **options)
    assert sorted(folder.rglob("*")) == before
    return str(caught.value)


def distance_to_circle(points, orbit):
    """Return the distance of points from the circle that state vectors are on, in closed form."""
    first, middle, last = (np.array(orbit.positions[k]) for k in (0, 3, 6))
    normal = np.cross(middle - first, last - first)
    normal /= np.linalg.norm(normal)
    away = points - normal * (middle @ normal)
    out_of_plane = away @ normal
    radius = np.linalg.norm(middle - normal * (middle @ normal))
    return np.hypot(np.sqrt(np.sum(away**2, axis=-1) - out_of_plane**2) - radius, out_of_plane)


# ----------------------------------------------------------------------------------------------------- native


def test_images_of_a_still_landscape_have_no_phase_after_flattening(stack):
    """Images are made from distances to circles in closed form; what is left is below 1e-3 rad."""
    pars = {date: read_slc_par(f"{stack['rslc_dir']}/{date}.rslc.par") for date in examples.DATES}
    scene = scene_of(pars[REFERENCE])
    heights = examples.example_heights(SHAPE)
    place = ground(scene, np.arange(SHAPE[0]), np.arange(SHAPE[1]), heights)
    points = earth_fixed(place.lon, place.lat, heights, scene.semi_major, scene.semi_minor)
    rng = np.random.default_rng(4)
    scatterers = rng.uniform(50, 200, SHAPE) * np.exp(2j * np.pi * rng.random(SHAPE))
    for date, par in pars.items():
        distance = distance_to_circle(points, par.orbit)
        image = scatterers * np.exp(-4j * np.pi / scene.wavelength * distance)
        image[np.isnan(image)] = 1
        write_block(f"{stack['rslc_dir']}/{date}.rslc", image, "FCOMPLEX", SHAPE[1], 0)
    found = run(stack)
    for number in (1, 2):
        phase = np.angle(found[..., 0] * np.conj(found[..., number]))
        np.testing.assert_array_equal(np.isnan(phase), np.isnan(heights))
        assert np.nanmax(np.abs(phase)) < 1e-3
    raw = [
        read_block(f"{stack['rslc_dir']}/{date}.rslc", "FCOMPLEX", SHAPE[1], (0, 13)) for date in (REFERENCE, SECOND)
    ]
    assert np.ptp(np.unwrap(np.angle(raw[0] * np.conj(raw[1]))[5])) > 1, "there was something to flatten"


def test_the_layout_is_a_chunk_for_each_image_and_attributes_tell_what_was_done(stack):
    """A32: that the stack is flattened can be told from its metadata."""
    run(stack)
    found = describe(Path(stack["hgt"]).parent / "rslc.zarr")
    assert (found.shape, found.dtype, found.chunks) == ((13, 17, 3), "complex64", (6, 5, 1))
    assert found.attributes["flattened"] is True
    assert found.attributes["reference"] == REFERENCE
    assert found.attributes["dates"] == list(examples.DATES)


def test_the_reference_is_copied_and_only_zero_samples_are_missing_in_it(stack):
    """The phase of the reference is 0 by definition, and no sample is lost for that, not even without a height."""
    raw = read_block(f"{stack['rslc_dir']}/{SECOND}.rslc", "FCOMPLEX", SHAPE[1], (0, 13))
    found = run(stack, reference=SECOND)[..., 1]
    np.testing.assert_array_equal(found[raw != 0], raw[raw != 0])
    np.testing.assert_array_equal(np.isnan(found.real) & np.isnan(found.imag), raw == 0)
    assert (raw == 0).sum() == 1


def test_amplitudes_are_kept_and_heights_at_sea_level_are_heights(stack):
    raw = read_block(f"{stack['rslc_dir']}/{THIRD}.rslc", "FCOMPLEX", SHAPE[1], (0, 13))
    heights = examples.example_heights(SHAPE)
    found = run(stack)[..., 2]
    assert (heights == 0).sum() > 20
    np.testing.assert_array_equal(np.isnan(found), (raw == 0) | np.isnan(heights))
    np.testing.assert_allclose(np.abs(found)[~np.isnan(found)], np.abs(raw)[~np.isnan(found)], rtol=1e-6)


def test_denormal_samples_are_missing(stack):
    """A33."""
    image = np.full(SHAPE, 5 + 5j)
    image[3, 3], image[4, 4], image[5, 5] = 1e-40, complex(np.nan, 1), complex(np.inf, 1)
    write_block(f"{stack['rslc_dir']}/{REFERENCE}.rslc", image, "FCOMPLEX", SHAPE[1], 0)
    missing = np.isnan(run(stack)[..., 0])
    assert missing.sum() == 3
    assert missing[[3, 4, 5], [3, 4, 5]].all()


def test_little_endian_files_are_read_where_the_option_says_so(stack):
    """A31."""
    expected = run(stack)
    for file in [*Path(stack["rslc_dir"]).glob("*.rslc"), Path(stack["hgt"])]:
        file.write_bytes(np.fromfile(file, ">f4").astype("<f4").tobytes())
    np.testing.assert_array_equal(run(stack, byte_order="little"), expected)


def test_more_images_than_a_task_takes_are_flattened_alike(stack):
    dates = [f"202102{day:02d}" for day in range(1, 10)]
    for date in dates:
        par = read_slc_par(f"{stack['rslc_dir']}/{SECOND}.rslc.par")
        write_par(f"{stack['rslc_dir']}/{date}.rslc.par", replace(par, date=date))
        shutil.copy(f"{stack['rslc_dir']}/{SECOND}.rslc", f"{stack['rslc_dir']}/{date}.rslc")
    found = run(stack)
    assert found.shape[2] == 12
    for number in range(3, 12):
        assert found[..., number].tobytes() == found[..., 1].tobytes()


def test_the_array_function_takes_missing_phases_for_missing():
    image = np.array([[1 + 0j, 2 + 0j, 0]], np.complex64)
    found = kernels.flatten(image, np.array([[np.pi / 2, np.nan, 0.0]]))
    np.testing.assert_allclose(found[0, 0], 1j, atol=1e-7)
    assert np.isnan(found[0, 1:]).all()
    turns = 2 * np.pi * 1e5
    np.testing.assert_allclose(kernels.flatten(image, np.full((1, 3), turns))[0, :2], [1, 2], atol=1e-6)


# -------------------------------------------------------------------------------------------------- bad input


def test_a_truncated_image_is_told_with_found_and_expected_size(stack):
    file = Path(stack["rslc_dir"]) / f"{SECOND}.rslc"
    file.write_bytes(file.read_bytes()[:-9])
    expected = f"{file} has 1759 bytes, 12 lines and 127 bytes of 17 FCOMPLEX samples; expected 1768 bytes, 13 lines"
    assert expected in refused(stack)


def test_all_images_of_another_size_are_listed_at_once(stack):
    """A33, A34: every header is checked, before anything is computed."""
    for date, shape in ((SECOND, (12, 17)), (THIRD, (13, 19))):
        par = read_slc_par(f"{stack['rslc_dir']}/{date}.rslc.par")
        changed = replace(par, azimuth_lines=shape[0], range_samples=shape[1])
        write_par(f"{stack['rslc_dir']}/{date}.rslc.par", changed)
        write_block(f"{stack['rslc_dir']}/{date}.rslc", np.ones(shape, complex), "FCOMPLEX", shape[1], 0)
    Path(f"{stack['rslc_dir']}/{SECOND}.rslc").write_bytes(bytes(12 * 17 * 8))
    text = refused(stack)
    assert f"{SECOND}.rslc.par: the image has 12 lines of 17 samples; expected 13 lines of 17 samples" in text
    assert f"{THIRD}.rslc.par: the image has 13 lines of 19 samples; expected 13 lines of 17 samples" in text


def test_images_of_different_sizes_are_cut_to_what_all_have_where_the_option_says_so(stack):
    """A34."""
    expected = run(stack)
    for date, shape in ((SECOND, (12, 19)), (THIRD, (15, 16))):
        file = f"{stack['rslc_dir']}/{date}.rslc"
        image = np.full(shape, 7 + 0j)
        raw = read_block(file, "FCOMPLEX", 17, (0, 13))
        image[: min(13, shape[0]), : min(17, shape[1])] = raw[: shape[0], : shape[1]]
        changed = replace(read_slc_par(f"{file}.par"), azimuth_lines=shape[0], range_samples=shape[1])
        write_par(f"{file}.par", changed)
        Path(file).unlink()
        write_block(file, image, "FCOMPLEX", shape[1], 0)
    found = run(stack, crop=True)
    np.testing.assert_array_equal(found, expected[:12, :16])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: (f / f"{SECOND}.rslc.par").unlink(), f"{SECOND}.rslc has no header; expected {SECOND}.rslc.par"),
        (
            lambda f: (f / f"{SECOND}.rslc").unlink(),
            f"{SECOND}.rslc.par has no image; expected {SECOND}.rslc beside it",
        ),
        (lambda f: (f / "mine.rslc").touch(), "mine.rslc is an image without a date for a name; expected one"),
        (lambda f: (f / "2021010.rslc").touch(), "2021010.rslc is an image without a date for a name"),
        (lambda f: (f / f"{SECOND}_VV.rslc").touch(), f"{SECOND}_VV.rslc is a second file for {SECOND}; expected one"),
        (lambda f: (f / f"{SECOND}.RSLC").touch(), f"{SECOND}.RSLC is a second file for {SECOND}; expected one"),
    ],
)
def test_missing_stray_odd_and_double_files_are_named(stack, change, message):
    change(Path(stack["rslc_dir"]))
    assert message in refused(stack)


def test_files_that_have_nothing_to_do_with_images_are_passed_over(stack):
    for name in ("README", "20210101.rslc.ras", "SLC_tab", "20210101.mli.par"):
        (Path(stack["rslc_dir"]) / name).write_text("nothing")
    assert run(stack).shape == (13, 17, 3)


def test_a_header_of_another_date_is_told(stack):
    shutil.copy(f"{stack['rslc_dir']}/{SECOND}.rslc.par", f"{stack['rslc_dir']}/{THIRD}.rslc.par")
    assert f"{THIRD}.rslc.par: date is {SECOND}; expected {THIRD}, as the name of the file says" in refused(stack)


def test_an_unknown_reference_is_told_with_the_dates_there_are(stack):
    text = refused(stack, reference="20300101")
    assert (
        f"reference is 20300101; expected one of the dates in {stack['rslc_dir']}: {', '.join(examples.DATES)}" in text
    )


def test_an_empty_folder_is_told(stack, tmp_path):
    (tmp_path / "nothing").mkdir()
    text = refused(stack, rslc_dir=str(tmp_path / "nothing"))
    assert "nothing has no image; expected files YYYYMMDD.rslc with YYYYMMDD.rslc.par beside them" in text


def test_swapped_bytes_are_suspected_before_any_work(stack):
    file = Path(stack["rslc_dir"]) / f"{THIRD}.rslc"
    file.write_bytes(np.fromfile(file, ">f4").astype("<f4").tobytes())
    assert f"{file} seems to be little-endian; expected big-endian FCOMPLEX, or the option byte-order" in refused(stack)


def test_heights_of_another_size_are_told(stack):
    Path(stack["hgt"]).write_bytes(bytes(4 * 13 * 16))
    assert re.search(
        r"hgt has 832 bytes, 12 lines and 16 bytes of 17 FLOAT samples; expected 884 bytes", refused(stack)
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"image_format": "FLOAT"}, "image_format is FLOAT; expected FCOMPLEX or SCOMPLEX"),
        ({"image_format": ""}, "image_format not found"),
        ({"azimuth_lines": 0}, "the image has 0 lines of 17 samples; expected at least 1"),
        ({"radar_frequency": 9.65e9}, "radar_frequency is 9650000000.0 Hz; expected 5405000000.0 Hz"),
        ({"orbit": None}, "number_of_state_vectors is 0; expected at least 4"),
        ({"start_time": 900.0}, "expected state vectors before and after the image"),
    ],
)
def test_a_header_that_does_not_fit_is_told_with_its_file(stack, changed, message):
    file = f"{stack['rslc_dir']}/{SECOND}.rslc.par"
    write_par(file, replace(read_slc_par(file), **changed))
    text = refused(stack)
    assert f"{file}: " in text
    assert message in text


def test_state_vectors_that_several_headers_lack_are_told_at_once(stack):
    for date in (SECOND, THIRD):
        file = f"{stack['rslc_dir']}/{date}.rslc.par"
        write_par(file, replace(read_slc_par(file), orbit=None))
    assert refused(stack).count("number_of_state_vectors is 0") == 2


# ----------------------------------------------------------------------------------------------- GAMMA's programs


@pytest.fixture
def scratch(tmp_path):
    return str(tmp_path / "scratch of GAMMA" / "deep")


def test_programs_make_the_phase_of_each_image_but_the_reference(stack, programs, scratch):
    programs.add("create_offset", "phase_sim_orb")
    found = run(stack, engine="gamma", scratch_dir=scratch, gamma_threads=3)
    raw = [read_block(f"{stack['rslc_dir']}/{date}.rslc", "FCOMPLEX", 17, (0, 13)) for date in examples.DATES]
    phase = 0.01 * (np.arange(13 * 17) + 1).reshape(SHAPE)
    expected = raw[1] * np.exp(1j * phase)
    expected[(raw[1] == 0)] = np.nan
    expected[1, 0] = np.nan  # where the program wrote exactly 0
    np.testing.assert_allclose(found[..., 1], expected, rtol=2e-6)
    np.testing.assert_array_equal(found[raw[0] != 0, 0], raw[0][raw[0] != 0])
    assert [call[0] for call in programs.calls] == ["create_offset", "phase_sim_orb"] * 2
    log = (Path(scratch) / "gamma.log").read_text()
    assert "this is phase_sim_orb with 3 threads" in log
    assert "exit code 0" in log
    assert not list(Path(scratch).glob("*.part"))


def test_what_programs_have_made_is_used_again_until_an_input_changes(stack, programs, scratch):
    programs.add("create_offset", "phase_sim_orb")
    first = run(stack, engine="gamma", scratch_dir=scratch)
    count = len(programs.calls)
    np.testing.assert_array_equal(run(stack, engine="gamma", scratch_dir=scratch), first)
    assert len(programs.calls) == count
    header = Path(stack["rslc_dir"]) / f"{THIRD}.rslc.par"
    header.write_text(header.read_text() + "\n")
    run(stack, engine="gamma", scratch_dir=scratch)
    assert [call[0] for call in programs.calls[count:]] == ["create_offset", "phase_sim_orb"]


def test_a_scratch_file_of_unknown_origin_is_not_used(stack, programs, scratch):
    programs.add("create_offset", "phase_sim_orb")
    Path(scratch).mkdir(parents=True)
    (Path(scratch) / f"{SECOND}.sim").write_bytes(bytes(13 * 17 * 4))
    assert np.isfinite(run(stack, engine="gamma", scratch_dir=scratch)[5, 5, 1])


def test_auto_is_native_unless_all_programs_are_there(stack, programs, scratch):
    native = run(stack)
    np.testing.assert_array_equal(run(stack, engine="auto", scratch_dir=scratch), native)
    programs.add("create_offset")
    np.testing.assert_array_equal(run(stack, engine="auto", scratch_dir=scratch), native)
    programs.add("phase_sim_orb")
    assert not np.array_equal(run(stack, engine="auto", scratch_dir=scratch), native, equal_nan=True)


def test_missing_programs_are_named_before_any_work(stack, programs, scratch):
    programs.add("create_offset")
    text = refused(stack, engine="gamma", scratch_dir=scratch)
    expected = "engine is gamma, but phase_sim_orb not found on the PATH; expected all of create_offset, phase_sim_orb"
    assert expected in text
    assert not Path(scratch).exists()


def test_a_missing_scratch_folder_is_told(stack, programs):
    programs.add("create_offset", "phase_sim_orb")
    assert "scratch_dir is missing; expected a folder for what create_offset, phase_sim_orb write" in refused(
        stack, engine="gamma"
    )


def test_a_program_that_fails_is_told_with_its_code_and_its_last_words(stack, programs, scratch, monkeypatch):
    """A33: no step ignores a child's exit status."""
    programs.add("create_offset", "phase_sim_orb")
    monkeypatch.setenv("STAND_IN_FAILS", "phase_sim_orb")
    sentence = r"(?s)phase_sim_orb .* ended with exit code 1; expected exit code 0.*no licence"
    with pytest.raises(MoraineError, match=sentence):
        run(stack, engine="gamma", scratch_dir=scratch)
    assert not (Path(stack["hgt"]).parent / "rslc.zarr").exists()
    monkeypatch.delenv("STAND_IN_FAILS")
    assert run(stack, engine="gamma", scratch_dir=scratch).shape == (13, 17, 3)


def test_a_program_that_writes_too_little_is_told(stack, programs, scratch, monkeypatch):
    programs.add("create_offset", "phase_sim_orb")
    monkeypatch.setenv("STAND_IN_TRUNCATES", "1")
    with pytest.raises(MoraineError, match=r"phase_sim_orb wrote 880 bytes to .*sim; expected 884 bytes"):
        run(stack, engine="gamma", scratch_dir=scratch)
    assert not list(Path(scratch).glob("*.sim"))
