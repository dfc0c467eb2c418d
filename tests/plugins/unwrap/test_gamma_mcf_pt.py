"""The command gamma-mcf-pt with a stand-in that reads the documented files and adds cycles that follow from them."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from moraine_core import MoraineError, UsageError
from moraine_core.errors import TasksError
from moraine_core.store import describe
from moraine_core.testing.data import read_array, write_array
from moraine_unwrap.gamma_mcf_pt import gamma_mcf_pt

if TYPE_CHECKING:
    from pathlib import Path

STAND_IN = '''#!{python} -IS
"""Stands in for mcf_pt: checks all that is documented of its files, and adds x // 10 cycles."""
import cmath, math, os, struct, sys

def read(path, code):
    data = open(path, "rb").read()
    return struct.unpack(">%d%s" % (len(data) // 4, code), data)

plist, pmask, pint, rec_num, pwgt, mask, punw, rps, azps, np_ref, phref_flag = sys.argv[1:]
assert [pmask, rec_num, mask, rps, azps, phref_flag] == ["-", "-", "-", "1", "1", "0"], sys.argv
x, parts = read(plist, "i")[::2], read(pint, "f")
psi = [cmath.phase(complex(*part)) for part in zip(parts[::2], parts[1::2])]
assert 3 <= len(x) == len(psi) and 0 <= int(np_ref) < len(x)
weight = ["uniform"] * len(x) if pwgt == "-" else read(pwgt, "f")
assert len(weight) == len(x) and (pwgt == "-" or 0 <= min(weight) <= max(weight) <= 1)
with open({calls!r}, "a") as calls:
    calls.write("%d points, %s, reference %s" % (len(x), weight[0], np_ref) + chr(10))
unwrapped = [phase + 2 * math.pi * (at // 10) for phase, at in zip(psi, x)]
mode = os.environ.get("STAND_IN") if 0.65 < max(psi) - min(psi) < 0.75 else None
for line in range(40):
    print("line %d of the log" % line)
sys.stdout.flush()
if mode == "fails":
    sys.exit("stand-in: the triangulation failed")
if mode == "is killed":
    os.kill(os.getpid(), {kill})
if mode == "writes nothing":
    sys.exit(0)
if mode == "truncates":
    unwrapped = unwrapped[1:]
if mode == "leaves out":
    unwrapped[2] = 0
if mode == "leaves the reference out":
    unwrapped[int(np_ref)] = 0
if mode == "shifts":
    unwrapped = [phase + 1 for phase in unwrapped]
open(punw, "wb").write(struct.pack(">%df" % len(unwrapped), *unwrapped))
'''

X = np.array([3.2, 11.0, 25.7, 31.4, 48.9, 52.6])
"""Coordinates in range; rounded and divided by ten: 0, 1, 2, 3, 4, 5."""

THETA = np.outer(np.linspace(0, 0.7, 6), [0, 1, 3]) + np.array([0, 0.3, 0.9])
"""Phases of three images; those of the pair 0 1 alone span 0.7 rad."""

PAIRS = [[0, 1], [2, 0], [1, 2]]


@dataclass
class Work:
    """A folder with inputs and a program."""

    folder: Path

    def arguments(self, **changes: Any) -> dict[str, Any]:
        given = {
            "pc_x": X,
            "pc_y": np.array([7, 2, 9, 4, 1, 5]),
            "ph": np.exp(1j * THETA).astype(np.complex64),
            "unw_ph": str(self.folder / "unw.zarr"),
            "image_pairs": PAIRS,
            "program": str(self.folder / "mcf_pt"),
            **changes,
        }
        for name, value in given.items():
            if isinstance(value, np.ndarray):
                chunks = (4, *(1,) * (value.ndim - 1))
                given[name] = write_array(self.folder / f"{name}.zarr", value, chunks)
        return given

    def run(self, **changes: Any) -> np.ndarray[Any, Any]:
        return self.call(self.arguments(**changes))

    def call(self, arguments: dict[str, Any]) -> np.ndarray[Any, Any]:
        gamma_mcf_pt(**arguments)
        return read_array(self.folder / "unw.zarr")

    @property
    def calls(self) -> list[str]:
        file = self.folder / "calls.txt"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    @property
    def left(self) -> list[str]:
        """Names of what is there besides inputs, program and output."""
        return sorted(
            p.name for p in self.folder.iterdir() if p.suffix != ".zarr" and p.suffix != ".txt" and p.name != "mcf_pt"
        )


@pytest.fixture
def work(tmp_path: Path) -> Work:
    folder = tmp_path / "a folder"
    folder.mkdir()
    made = Work(folder)
    program = folder / "mcf_pt"
    text = STAND_IN.format(python=sys.executable, calls=str(folder / "calls.txt"), kill=int(signal.SIGKILL))
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return made


def expected(ref_point: int = 0) -> np.ndarray[Any, Any]:
    """Wrapped phase and a cycle per ten units of range, relative to a point."""
    psi = np.stack([THETA[:, ref] - THETA[:, sec] for ref, sec in PAIRS], axis=1)
    psi -= 2 * np.pi * np.round(psi / (2 * np.pi))
    return psi + 2 * np.pi * (np.arange(6)[:, None] - ref_point)


@pytest.mark.parametrize("ref_point", [0, 4])
def test_results_are_wrapped_phases_plus_the_cycles_of_the_program_and_the_reference_stays(work: Work, ref_point: int):
    found = work.run(ref_point=ref_point)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected(ref_point), rtol=0, atol=1e-5)
    assert work.calls == [f"6 points, uniform, reference {ref_point}"] * 3
    assert work.left == []


def test_output_has_the_chunks_that_are_asked_for(work: Work):
    work.run()
    assert describe(work.folder / "unw.zarr").chunks == (4, 1)
    work.run(out_chunks=5)
    assert describe(work.folder / "unw.zarr").chunks == (5, 1)
    with pytest.raises(UsageError, match="gamma-mcf-pt: out_chunks is 0; expected at least 1"):
        work.run(out_chunks=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_reach_the_program_as_float32_whatever_they_were(work: Work, dtype: Any):
    weight = np.array([0.25, 0, 1, 0.5, 0.5, 0.5], dtype)
    np.testing.assert_allclose(work.run(weight=weight), expected(), rtol=0, atol=1e-5)
    assert work.calls == ["6 points, 0.25, reference 0"] * 3


@pytest.mark.parametrize("wrong", [-0.1, 1.5, np.nan])
def test_a_weight_that_is_none_is_refused(work: Work, wrong: float):
    weight = np.array([0.25, 0, 1, wrong, 0.5, 0.5])
    with pytest.raises(ValueError, match=r"gamma-mcf-pt: weight .*weight\.zarr: point 3 has weight .*expected 0 to 1"):
        work.run(weight=weight)
    assert work.calls == []


# ------------------------------------------------------------------------------------------------- coordinates


def test_coordinates_are_rounded_and_not_cut_off(work: Work):
    """Cut off, 19.9 would be 19, and 9.6 would be 9."""
    found = work.run(pc_x=np.array([9.6, 19.9, 25.7, 31.4, 48.9, 52.6]))
    assert np.round((found[:, 0] - expected()[:, 0]) / (2 * np.pi)).tolist() == [0, 0, -1, -1, -1, -1]


def test_points_that_fall_together_are_named(work: Work):
    """Rounded, so does 11.4 beside 11.0; in the reference implementation they went to the program."""
    y = np.array([7, 2, 9, 4, 2, 5])
    with pytest.raises(ValueError, match=r"x\.zarr, .*y\.zarr: points 1 and 4 are both at \(11, 2\).*scale"):
        work.run(pc_x=np.array([3.2, 11.0, 25.7, 31.4, 11.4, 52.6]), pc_y=y)
    assert work.calls == []
    assert not (work.folder / "unw.zarr").exists()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 3e9])
def test_a_coordinate_that_no_list_can_hold_is_named(work: Work, wrong: float):
    with pytest.raises(ValueError, match=r"gamma-mcf-pt: pc_x .*pc_x\.zarr: point 2 is at .*expected less than 2\^31"):
        work.run(pc_x=np.array([3.2, 11.0, wrong, 31.4, 48.9, 52.6]))


# ----------------------------------------------------------------------------------------------------- missing


def test_points_that_are_missing_in_a_pair_are_not_given_to_the_program(work: Work):
    ph = np.exp(1j * THETA).astype(np.complex64)
    ph[2, 0], ph[4, 1] = np.nan, 0
    found = work.run(ph=ph, ref_point=3)
    missing = np.isnan(found)
    assert np.argwhere(missing).tolist() == [[2, 0], [2, 1], [4, 0], [4, 2]]
    np.testing.assert_allclose(found[~missing], expected(3)[~missing], rtol=0, atol=1e-5)
    assert sorted(work.calls) == [f"{n} points, uniform, reference {ref}" for n, ref in ((4, 2), (5, 2), (5, 3))]


def test_where_the_reference_is_missing_the_first_other_point_keeps_its_phase(work: Work):
    ph = np.exp(1j * THETA).astype(np.complex64)
    ph[:2, 1] = np.nan
    found = work.run(ph=ph)
    np.testing.assert_allclose(found[:, 1], expected()[:, 1], rtol=0, atol=1e-5)
    np.testing.assert_allclose(found[2:, 0], expected(2)[2:, 0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("n_valid", [0, 1, 2])
def test_with_less_points_than_a_triangle_has_nothing_is_called(work: Work, n_valid: int):
    """Two points are nearer to each other than half a cycle."""
    ph = np.exp(1j * np.outer([0, 3, 0, 0, 0, -3], [1, 0, 0])).astype(np.complex64)
    valid = [1, 5][:n_valid]
    ph[[row for row in range(6) if row not in valid]] = np.nan
    found = work.run(ph=ph, image_pairs=[[0, 1]], ref_point=5)
    assert np.flatnonzero(np.isfinite(found[:, 0])).tolist() == valid
    np.testing.assert_allclose(found[valid, 0], [3 - (2 * np.pi if n_valid == 2 else 0), -3][:n_valid], rtol=1e-6)
    assert work.calls == []


def test_a_cloud_without_points_gives_an_array_without_values(work: Work):
    nothing = np.zeros(0)
    assert work.run(pc_x=nothing, pc_y=nothing, ph=np.zeros((0, 3), np.complex64)).shape == (0, 3)


# ---------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("fails", r"ended with exit code 1; expected exit code 0; see .*the triangulation failed"),
        ("is killed", "ended with signal SIGKILL; expected exit code 0; see "),
        ("truncates", r"wrote 20 bytes to .*punw; expected 24 bytes"),
        ("writes nothing", r"wrote nothing to .*punw; expected 24 bytes"),
        ("shifts", "differs from its input by other than whole cycles at 6 of 6 points"),
        ("leaves the reference out", "did not unwrap the reference point; expected a ref_point that has neighbors"),
    ],
)
def test_a_pair_that_fails_is_named_with_the_programs_last_words_and_the_others_are_kept(
    work: Work, monkeypatch: pytest.MonkeyPatch, mode: str, told: str
):
    """A13: command, signal and the last 20 lines are shown. A33: neither exit code nor size is taken on trust."""
    monkeypatch.setenv("STAND_IN", mode)
    arguments = work.arguments()
    with pytest.raises(MoraineError, match=rf"(?s)pair 0 1: .*{told}") as error:
        work.call(arguments)
    if mode == "is killed":
        assert [f"line {line} of the log" in str(error.value) for line in (19, 20, 39)] == [False, True, True]
    assert not (work.folder / "unw.zarr").exists()
    assert len(work.calls) == 3
    monkeypatch.delenv("STAND_IN")
    np.testing.assert_allclose(work.call(arguments), expected(), rtol=0, atol=1e-5)
    assert len(work.calls) == 4, "only the pair that failed is tried again"
    assert work.left == []


def test_what_a_failed_program_said_is_kept_in_a_file(work: Work, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STAND_IN", "fails")
    with pytest.raises(MoraineError, match=r"see .*/unw\.zarr\.mcf_pt-0-1\.log"):
        work.run()
    said = (work.folder / "unw.zarr.mcf_pt-0-1.log").read_text(encoding="utf-8").splitlines()
    assert said[0].startswith(f"$ {work.folder / 'mcf_pt'} ")
    assert said[1:3] == ["line 0 of the log", "line 1 of the log"]
    assert said[-1] == "exit code 1"


def test_a_failed_pair_that_is_skipped_is_nan_and_told(
    work: Work, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("STAND_IN", "fails")
    found = work.run(skip_failed=True)
    assert np.isnan(found[:, 0]).all()
    np.testing.assert_allclose(found[:, 1:], expected()[:, 1:], rtol=0, atol=1e-5)
    assert describe(work.folder / "unw.zarr").attributes["failed_pairs"] == [[0, 1]]
    assert "gamma-mcf-pt: nan in unw_ph: pair 0 1: " in caplog.text
    assert "the triangulation failed" in caplog.text
    assert work.left == ["unw.zarr.mcf_pt-0-1.log"]


def test_where_every_pair_fails_there_is_no_output_to_skip_to(work: Work, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STAND_IN", "fails")
    arguments = work.arguments(skip_failed=True, image_pairs=[[0, 1]])
    with pytest.raises(MoraineError, match=r"(?s)no pair .*with --fresh\. pair 0 1: .*the triangulation failed"):
        work.call(arguments)
    assert not (work.folder / "unw.zarr").exists()
    monkeypatch.delenv("STAND_IN")
    np.testing.assert_allclose(work.call({**arguments, "fresh": True}), expected()[:, :1], rtol=0, atol=1e-5)


def test_points_that_the_program_leaves_out_are_nan_and_counted(
    work: Work, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """A version of mcf_pt of December 2023 gives 0 to some points that have a phase."""
    monkeypatch.setenv("STAND_IN", "leaves out")
    found = work.run()
    assert np.argwhere(np.isnan(found)).tolist() == [[2, 0]]
    assert describe(work.folder / "unw.zarr").attributes["n_lost"] == [1, 0, 0]
    assert "mcf_pt left out 1 values, most in pair 0 1; they are nan" in caplog.text


def test_several_failures_are_reported_together(work: Work, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STAND_IN", "fails")
    with pytest.raises(TasksError, match="2 of 3 tasks failed"):
        work.run(ph=np.exp(1j * np.outer(np.linspace(0, 0.7, 6), [0, 1, 0])).astype(np.complex64))


# ---------------------------------------------------------------------------------------------------- wrong calls


def test_without_the_program_the_call_is_refused_with_a_way_out(work: Work, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        UsageError, match=r"program mcf_pt not found; expected mcf_pt of GAMMA .* mcf-pc needs no GAMMA"
    ):
        work.run(program="mcf_pt")


def test_the_program_is_found_on_the_path(work: Work, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", f"{work.folder}{os.pathsep}{os.environ['PATH']}")
    np.testing.assert_allclose(work.run(program="mcf_pt"), expected(), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"ref_point": 6}, "ref_point is 6; expected 0 to 5"),
        ({"image_pairs": [[0, 3]]}, r"image_pairs: pair 0 is \(0, 3\); expected images 0 to 2 of ph"),
        ({"image_pairs": [[1, 1]]}, r"pair 0 is \(1, 1\); expected two different images"),
        ({"pc_y": np.zeros(5)}, r"pc_y\.zarr has shape \(5,\); expected n_points"),
    ],
)
def test_a_wrong_call_is_one_sentence(work: Work, changes: dict[str, Any], told: str):
    with pytest.raises(MoraineError, match=told):
        work.run(**changes)
    assert work.calls == []


def test_temporary_files_go_where_they_are_asked_to(work: Work, tmp_path: Path):
    """A28: and nothing is left there."""
    scratch = tmp_path / "scratch"
    gamma_mcf_pt(**work.arguments(), scratch=str(scratch))
    assert list(scratch.iterdir()) == []
    np.testing.assert_allclose(read_array(work.folder / "unw.zarr"), expected(), rtol=0, atol=1e-5)
