"""Reading pipeline files, putting variables in, and fitting steps to commands."""

import pytest
from pipeline_project import CHAIN, step

from moraine_core import RunOptions, Workers, pipeline
from moraine_core.errors import ProblemsError, UsageError
from moraine_core.pipeline.job import make_jobs

NOTE = step("n", "note", result="n.txt")


def problems_of(call, *args, **kwargs):
    with pytest.raises((UsageError, ProblemsError)) as caught:
        call(*args, **kwargs)
    return str(caught.value).splitlines()


def jobs(project, **kwargs):
    return {job.name: job for job in make_jobs(project.load(**kwargs), project.host)}


# ------------------------------------------------------------------------------------------------- the file


def test_steps_keep_the_order_of_the_file(project):
    loaded = project.load()
    assert [(s.name, s.command) for s in loaded.steps] == [("a", "scale"), ("b", "scale"), ("c", "note")]
    assert loaded.stem == "chain"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no steps"),
        ("[pipeline", "is not valid TOML"),
        ("[pipelin]\n" + NOTE, "unknown table [pipelin]; did you mean pipeline?"),
        ("[pipeline]\nquickloo = false\n" + NOTE, "unknown key quickloo; did you mean quicklook?"),
        ("[pipeline]\nquicklook = 'no'\n" + NOTE, "quicklook is 'no'; expected true or false"),
        ("[pipeline]\nversion = 2\n" + NOTE, "version is 2; this moraine reads version 1"),
        ("[pipeline]\nversion = true\n" + NOTE, "version is True; expected a whole number"),
        ("[pipeline]\nworkdir = 3\n" + NOTE, "workdir is 3; expected a path"),
        ("[step]\nname = 'a'\n", "write [[step]]"),
        ("[[step]]\nrun = 'note'\nresult = 'n.txt'\n", "step number 1: name is missing"),
        ("[[step]]\nname = 'n'\nresult = 'n.txt'\n", "step n: run is missing"),
        ("[[step]]\nname = '../n'\nrun = 'note'\n", "name is '../n'; expected letters"),
        (NOTE + NOTE.replace("n.txt", "m.txt"), "step n: 2 steps have this name"),
        (step("n", "note", result="n.txt", kw=3), "step n: kw is 3; expected a table"),
        (
            step("n", "note", result="n.txt", quicklook="yes"),
            "step n: quicklook is 'yes'; expected true, false or a table",
        ),
        (NOTE + "[step.quicklook]\nshwo = 'phase'\n", "step n: quicklook: unknown option shwo of a picture"),
        (NOTE + "[step.quicklook]\nindex = 'a'\n", "step n: quicklook: index is 'a'; expected whole numbers"),
        ("[vars]\nday = 2020-01-01\n" + NOTE, "[vars]: day is"),
        ("[vars]\n'a-b' = 1\n" + NOTE, "[vars]: name 'a-b'; expected letters, digits and _"),
    ],
)
def test_a_faulty_file_is_refused_in_a_sentence_that_names_it(project, text, sentence):
    project.write(text)
    lines = problems_of(project.load)
    assert sentence in lines[0]
    assert str(project.file) in lines[0]


def test_a_file_that_does_not_exist_is_named(tmp_path):
    assert str(tmp_path / "no.toml") in problems_of(pipeline.load, tmp_path / "no.toml")[0]


def test_all_faults_of_a_file_are_told_at_once(project):
    project.write("[pipeline]\nversion = 9\n[extra]\n[[step]]\nrun = 'note'\nresult = '${where}.txt'\n")
    assert len(problems_of(project.load)) == 4


@pytest.mark.parametrize(
    ("head", "given", "expected"),
    [
        ("", None, "."),
        ("[pipeline]\nworkdir = 'sub'\n", None, "sub"),
        ("[pipeline]\nworkdir = 'sub'\n", "other", "other"),
    ],
)
def test_the_work_directory_is_the_callers_the_files_or_the_folder_of_the_file(
    project, monkeypatch, head, given, expected
):
    monkeypatch.chdir(project.folder)
    project.write(head + CHAIN)
    assert project.load(workdir=given).workdir == str((project.folder / expected).resolve())


# ------------------------------------------------------------------------------------------------ variables


@pytest.mark.parametrize("value", ["plain", "with space", r"\1", "${other}", "$", "ü"])
def test_a_variable_is_put_in_as_text_and_only_once(project, value):
    project.write("[vars]\nv = 'default'\n" + step("n", "note", result="before-${v}-after-${v}"))
    assert project.load({"v": value}).steps[0].args["result"] == f"before-{value}-after-{value}"
    assert project.load().steps[0].args["result"] == "before-default-after-default"


def test_variables_reach_every_string_but_not_the_name_of_the_command(project):
    project.write(
        "[vars]\nv = 1.5\nyes = true\nn = 3\n[defaults]\nfactor = '${v}'\n"
        + step("n", "${v}", source=["${n}", ["${yes}"], 4])
        + "[step.kw]\ndeep.er = '${v}'\n"
    )
    loaded = project.load()
    assert loaded.defaults == {"factor": "1.5"}
    assert loaded.steps[0].command == "${v}"
    assert loaded.steps[0].args == {"source": ["3", ["true"], 4]}
    assert loaded.steps[0].kw == {"deep": {"er": "1.5"}}


def test_an_unknown_variable_is_told_with_the_step_and_the_known_ones(project):
    project.write("[vars]\nalpha = 1\n" + step("n", "note", result="${alpa}"))
    (line,) = problems_of(project.load, {"beta": "2"})[:1]
    assert "step n: unknown variable alpa; known are alpha, beta" in line


def test_a_variable_that_is_given_but_used_nowhere_is_refused(project):
    """A55: a misspelled name must not be accepted and change nothing."""
    project.write("[vars]\nlimit = 1\n" + step("n", "note", result="${limit}"))
    assert (
        "variable limitt is given but used nowhere; did you mean limit?"
        in problems_of(project.load, {"limitt": "2"})[0]
    )


# ----------------------------------------------------------------------------------------- fitting commands


def test_all_faults_of_all_steps_are_told_at_once_with_file_and_step(project):
    """A35: not only the first problem, and before any step runs."""
    project.write(
        step("one", "scal", source="x.zarr", result="a.zarr")
        + step("two", "scale", sourc="x.zarr", factor="much")
        + step("three", "note", result="n.txt")
    )
    lines = problems_of(project.run)
    assert all(line.startswith(f"{project.file}: step ") for line in lines)
    assert "step one: no command scal; did you mean scale?" in lines[0]
    assert "step two: scale: unknown argument sourc; did you mean source?" in lines[1]
    assert "step two: scale: factor is 'much'; expected a number" in lines[2]
    assert "step two: scale: missing source, result" in lines[3]
    assert len(lines) == 4
    assert not (project.folder / "n.txt").exists()


def test_defaults_go_to_the_steps_whose_command_has_the_parameter_and_the_steps_own_value_wins(project):
    project.write("[defaults]\nfactor = 5\n" + CHAIN.replace('result = "b.zarr"', 'result = "b.zarr"\nfactor = 7'))
    found = jobs(project)
    assert found["a"].arguments["factor"] == 5
    assert found["b"].arguments["factor"] == 7
    assert "factor" not in found["c"].arguments


def test_a_default_that_no_step_takes_is_refused(project):
    """A55: a setting that is accepted must be able to change something."""
    project.write("[defaults]\nfacto = 5\n" + CHAIN)
    assert "[defaults]: unknown argument facto; did you mean factor?" in problems_of(jobs, project)[0]


def test_cuda_as_a_default_is_for_commands_with_a_gpu_kernel_only(project):
    project.write("[defaults]\ncuda = true\ngpus = ['1']\n" + CHAIN.replace('"b.zarr"\n', '"b.zarr"\ncuda = false\n'))
    found = {name: job.workers for name, job in jobs(project).items()}
    assert found == {"a": Workers(cuda=True, gpus=("1",)), "b": Workers(), "c": Workers()}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cuda": True}, "note has no GPU kernel"),
        ({"gpus": ["0"]}, "gpus is given without cuda"),
        ({"n_workers": 0}, "n_workers is 0; expected at least 1"),
        ({"n_workers": "many"}, "n_workers is 'many'; expected a whole number"),
        ({"processes": "maybe"}, "processes is 'maybe'; expected true or false"),
        ({"n_worker": 2}, "unknown worker arguments: n_worker; known are cuda, executor,"),
        ({"memory_limit": "4GB"}, "unknown worker arguments: memory_limit"),
        ({"dry_run": True}, "unknown argument dry_run"),
    ],
)
def test_worker_options_that_make_no_sense_are_refused(project, options, sentence):
    """A55: an option that is unused in this mode is an error."""
    project.write(step("n", "note", result="n.txt", **options))
    (line,) = problems_of(jobs, project)
    assert "step n: " in line
    assert sentence in line


def test_worker_options_go_to_the_workers_and_not_to_the_command(project):
    project.write(
        "[defaults]\nn_workers = '${n}'\n"
        + step(
            "n",
            "note",
            result="n.txt",
            max_memory="2GiB",
            threads_per_worker=2,
            processes="true",
            scratch="tmp",
            compressor="none",
        )
    )
    job = jobs(project, variables={"n": "3"})["n"]
    assert job.workers == Workers(n_workers=3, threads_per_worker=2, processes=True, max_memory=2 * 1024**3)
    assert job.options == RunOptions(scratch="tmp", compressor="none")
    assert job.arguments == {"result": "n.txt"}


def test_further_keywords_come_from_their_own_table(project):
    text = step("t", "total", result="t.zarr") + "[step.kw]\nleft = 'x.zarr'\nright = '${r}.zarr'\n"
    project.write(text)
    assert jobs(project, variables={"r": "x"})["t"].arguments == {
        "result": "t.zarr",
        "left": "x.zarr",
        "right": "x.zarr",
    }
    project.write(step("t", "total", result="t.zarr", left="x.zarr"))
    assert "unknown argument left; further keywords belong into [step.kw]" in problems_of(jobs, project)[0]
    project.write(step("n", "note", result="n.txt") + "[step.kw]\nleft = 'x.zarr'\n")
    assert "note takes no further keywords; found kw left" in problems_of(jobs, project)[0]
    project.write(text.replace("left", "result"))
    assert "kw result is a parameter of its own" in problems_of(jobs, project, variables={"r": "x"})[0]


def test_two_steps_may_not_write_the_same(project):
    project.write(NOTE + step("m", "note", result="./n.txt"))
    assert "step m: ./n.txt is, is in, or holds what step n writes" in problems_of(jobs, project)[0]
    project.write(NOTE.replace("n.txt", "p") + step("m", "pyramid", source="x.zarr", result="p/q"))
    assert "step m: p/q is, is in, or holds what step n writes" in problems_of(jobs, project)[0]


def test_a_step_may_not_read_what_a_later_step_writes(project):
    project.write(
        step("b", "scale", source="a.zarr", result="b.zarr") + step("a", "scale", source="x.zarr", result="a.zarr")
    )
    assert "step b: a.zarr is written by the later step a; put that one before" in problems_of(jobs, project)[0]


def test_image_pairs_written_in_the_file_are_checked_before_anything_runs(project):
    project.write(step("w", "weigh", source="x.zarr", result="w.zarr", pairs=[[0, 1], [1]]))
    assert "pairs is [[0, 1], [1]]" in problems_of(jobs, project)[0]
    project.write(step("w", "weigh", source="x.zarr", result="w.zarr", pairs="not-there-yet.txt"))
    assert "not-there-yet.txt" in jobs(project)["w"].inputs
