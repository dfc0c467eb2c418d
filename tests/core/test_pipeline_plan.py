"""What has to run, and why."""

import os
import shutil

import pytest
from pipeline_project import CHAIN, actions, ran, step

from moraine_core.errors import ProblemsError, UsageError

ALL_DONE = dict.fromkeys("abc", "skip (done)")


@pytest.fixture
def done(project):
    assert project.run().ok
    return project


def test_a_pipeline_that_never_ran_runs_wholly_and_then_not_again(project):
    result = project.run()
    assert actions(result) == dict.fromkeys("abc", "run (not run yet)")
    assert ran(result) == ["a", "b", "c"]
    again = project.run()
    assert actions(again) == ALL_DONE
    assert again.ok
    assert again.steps == []


def test_a_changed_argument_runs_the_step_and_all_that_depend_on_it(done):
    done.write(CHAIN.replace('result = "a.zarr"', 'result = "a.zarr"\nfactor = 3', 1))
    result = done.run()
    assert actions(result) == {
        "a": "run (arguments changed)",
        "b": "run (input will change: a.zarr)",
        "c": "skip (done)",
    }
    assert ran(result) == ["a", "b"]
    assert (done.get("b.zarr") == 6 * done.x).all()
    assert done.actions() == ALL_DONE


def test_a_changed_variable_or_default_is_a_changed_argument(project):
    project.write("[vars]\nv = 2\n[defaults]\nfactor = '${v}'\n" + CHAIN)
    project.run()
    assert project.actions() == ALL_DONE
    assert project.actions(variables={"v": "3"})["a"] == "run (arguments changed)"


def test_further_keywords_are_arguments_too(project):
    text = step("t", "total", result="t.zarr") + "[step.kw]\nleft = 'x.zarr'\n"
    project.write(text)
    project.run()
    project.write(text + "right = 'x.zarr'\n")
    assert project.actions() == {"t": "run (arguments changed)"}


def test_other_workers_or_pictures_change_no_result_and_run_nothing(done):
    done.write("[pipeline]\nquicklook = false\n[defaults]\nn_workers = 1\nmax_memory = '3GiB'\n" + CHAIN)
    assert done.actions() == ALL_DONE


def test_a_missing_output_runs_its_step(done):
    """A54: what was made and is gone is made again."""
    shutil.rmtree(done.folder / "b.zarr")
    assert done.actions() == {**ALL_DONE, "b": "run (output missing: b.zarr)"}
    assert ran(done.run()) == ["b"]


def test_a_rewritten_input_runs_its_readers_with_the_new_values(done):
    done.put("x.zarr", done.x + 1)
    result = done.run()
    assert actions(result) == {
        "a": "run (input changed: x.zarr)",
        "b": "run (input will change: a.zarr)",
        "c": "skip (done)",
    }
    assert (done.get("b.zarr") == 4 * (done.x + 1)).all()


def test_an_input_of_which_only_a_chunk_was_touched_has_changed(done):
    chunk = next(path for path in (done.folder / "x.zarr" / "c").rglob("*") if path.is_file())
    os.utime(chunk, ns=(1, chunk.stat().st_mtime_ns + 10**9))
    assert done.actions()["a"] == "run (input changed: x.zarr)"


def test_an_input_that_is_gone_has_changed(done):
    shutil.rmtree(done.folder / "x.zarr")
    assert done.actions()["a"] == "run (input changed: x.zarr)"


def test_an_input_that_an_earlier_step_makes_anew_will_change_even_if_it_has_changed_already(done):
    shutil.rmtree(done.folder / "a.zarr")
    assert done.actions() == {
        "a": "run (output missing: a.zarr)",
        "b": "run (input will change: a.zarr)",
        "c": "skip (done)",
    }


def test_an_argument_file_is_an_input(project):
    steps = step("p", "chain-pairs", result="pairs.txt", count=4) + step(
        "w", "weigh", source="x.zarr", pairs="pairs.txt", result="w.zarr"
    )
    project.write(steps)
    assert project.run().ok
    assert (project.get("w.zarr") == 3 * project.x).all()
    project.write(steps.replace("count = 4", "count = 6"))
    result = project.run()
    assert actions(result) == {"p": "run (arguments changed)", "w": "run (input will change: pairs.txt)"}
    assert (project.get("w.zarr") == 5 * project.x).all()
    (project.folder / "pairs.txt").write_text("0 1\n", encoding="utf-8")
    assert project.actions()["w"] == "run (input changed: pairs.txt)"


def test_an_input_inside_a_folder_that_an_earlier_step_writes_will_change(project):
    steps = step("p", "pyramid", source="x.zarr", result="pyr") + step(
        "s", "scale", source="pyr/0.zarr", result="s.zarr"
    )
    project.write(steps)
    assert project.run().ok
    project.put("x.zarr", project.x + 1)
    assert project.actions()["s"] == "run (input will change: pyr/0.zarr)"


def test_a_step_is_tested_again_just_before_its_turn(project):
    """Somebody may rewrite an input while earlier steps run."""
    first = step("n", "note", result="n.txt")
    project.write(first + CHAIN)
    assert project.run().ok
    project.write(step("n", "note", result="n.txt", mode="touch", flag="x.zarr") + CHAIN)
    assert project.actions() == {"n": "run (arguments changed)", **ALL_DONE}
    result = project.run()
    assert ran(result) == ["n", "a", "b"]
    assert actions(result)["a"] == "run (input changed: x.zarr)"


def test_only_runs_just_the_named_steps_and_leaves_the_others(done):
    """A55: each option of a run changes what is done."""
    done.put("x.zarr", done.x + 1)
    assert done.actions(only=["b", "c"]) == {
        "a": "skip (not selected)",
        "b": "skip (done)",
        "c": "skip (done)",
    }
    result = done.run(only=["a"])
    assert ran(result) == ["a"]
    assert (done.get("b.zarr") == 4 * done.x).all()
    assert done.actions()["b"] == "run (input changed: a.zarr)"


def test_from_forces_a_step_and_all_later_ones(done):
    """A55."""
    assert done.actions(start="b") == {"a": "skip (done)", "b": "run (forced)", "c": "run (forced)"}
    assert ran(done.run(start="b", only=["a", "b"])) == ["b"]


def test_force_runs_all(done):
    """A55."""
    assert ran(done.run(force=True)) == ["a", "b", "c"]


@pytest.mark.parametrize("options", [{"only": ["a", "bb"]}, {"start": "bb"}])
def test_a_step_that_does_not_exist_is_a_usage_error(project, options):
    with pytest.raises(UsageError, match="no step bb; did you mean b"):
        project.run(**options)


def test_all_steps_that_do_not_exist_are_told(project):
    with pytest.raises(ProblemsError, match=r"(?s)no step d.*no step e"):
        project.run(only=["d", "e"])


def test_a_dry_run_leaves_no_trace(project):
    """A55."""
    before = sorted(project.folder.rglob("*"))
    assert actions(project.run(dry_run=True)) == dict.fromkeys("abc", "run (not run yet)")
    assert sorted(project.folder.rglob("*")) == before
