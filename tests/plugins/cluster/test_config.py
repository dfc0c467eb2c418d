"""The user's tables: what may be in them, and one sentence for whatever else is."""

from __future__ import annotations

import json

import pytest

from moraine_cluster import parsl_backend
from moraine_cluster.config import ClusterConfig, Jobs
from moraine_cluster.providers import provider_for
from moraine_core.cli.main import run
from moraine_core.errors import StoreNotFoundError, UsageError
from moraine_core.options import Workers
from moraine_core.plugins import PluginHost
from moraine_core.tables import read_table, tables

FULL = """
[executors.lab]
kind = "cluster"
scheduler = "slurm"
jobs = { start = 1, min = 0, max = 8, idle = "2m" }
nodes_per_job = 1
slots_per_node = 8
walltime = "02:00:00"
partition = "main"
account = "insar"
exclusive = false
options = ["--constraint=a100"]
setup = ["module load cuda/12"]
interface = "lo"
shared = "/scratch/insar/moraine"
max_memory_per_node = "200GiB"
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    def write(text):
        file = tmp_path / "executors.toml"
        file.write_text(text)
        monkeypatch.setenv("MORAINE_EXECUTORS", str(file))
        return file

    return write


def config(**changes):
    return read_table(ClusterConfig, {"scheduler": "slurm", "shared": "/s", **changes}, "x")


def test_a_whole_table_is_read_and_becomes_directives_of_the_scheduler(write):
    write(FULL)
    backend = PluginHost().backend(Workers(executor="lab", cuda=True))
    found = backend._config
    assert found.jobs == Jobs(start=1, min=0, max=8, idle="2m")
    assert (found.slots, found.max_memory_per_node, found.jobs.idle_seconds) == (8, 200 * 2**30, 120)
    provider = provider_for(found)
    for line in ("#SBATCH --constraint=a100\n", "#SBATCH --mem=204800M\n", "--partition=main", "--account=insar"):
        assert line in provider.scheduler_options
    assert "exclusive" not in provider.scheduler_options
    assert provider.worker_init.splitlines()[0] == "set -e"
    assert "\nmodule load cuda/12\n" in provider.worker_init
    assert parsl_backend.address_of(found) == "127.0.0.1"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"partitoin": "main"}, "x: no key partitoin; did you mean partition?"),
        ({"zzz": 1}, "x: no key zzz; known are scheduler, shared, jobs"),
        (
            {"scheduler": "cron"},
            "x: scheduler is 'cron'; expected one of slurm, pbs, torque, lsf, oar, kubernetes, local",
        ),
        ({"jobs": {"start": 1, "most": 2}}, "x: jobs: no key most"),
        ({"jobs": 3}, "x: jobs is 3; expected a table"),
        ({"jobs": {"start": 4, "max": 2}}, "x: jobs: start 4, min 0, max 2; expected 1 <= start <= max"),
        ({"jobs": {"idle": "soon"}}, "idle is 'soon'; expected a time such as 90s, 2m or 1h"),
        ({"walltime": "0:00:00"}, "walltime is '0:00:00'; expected HH:MM:SS"),
        ({"walltime": "two hours"}, "walltime is 'two hours'"),
        ({"shared": "here"}, "shared is 'here'; expected a whole path"),
        ({"shared": "/a b"}, "shared is '/a b'; expected a path without blanks"),
        ({"slots_per_node": -1}, "slots_per_node is -1; expected at least 0"),
        ({"slots_per_node": "many"}, "slots_per_node is 'many'"),
        ({"setup": "module load cuda"}, "setup is 'module load cuda'; expected a list of texts"),
        ({"options": [1]}, "options is [1]; expected a list of texts"),
        ({"max_memory_per_node": "much"}, "max_memory_per_node is 'much'; expected a size"),
        ({"scheduler": "pbs", "nodes_per_job": 2}, "nodes_per_job is 2; with pbs a job has one node"),
        ({"image": "insar:1"}, "image is given; scheduler slurm has no such thing"),
        ({"scheduler": "local", "partition": "main"}, "partition is given; scheduler local has no such thing"),
        ({"scheduler": "local", "exclusive": True}, "exclusive is given; scheduler local has no such thing"),
        ({"scheduler": "kubernetes", "options": ["x"]}, "options is given; scheduler kubernetes has no such thing"),
        ({"scheduler": "kubernetes"}, "image is missing; scheduler kubernetes needs it"),
        ({"scheduler": "kubernetes", "image": "i"}, "max_memory_per_node is missing; scheduler kubernetes needs it"),
        (
            {"scheduler": "kubernetes", "image": "i", "max_memory_per_node": "1GiB", "volumes": ["data"]},
            "volumes has 'data'; expected CLAIM:FOLDER",
        ),
        ({"interface": "lo", "address": "127.0.0.1"}, "interface and address are both given"),
        (
            {"scheduler": "local", "nodes_per_job": 2},
            "nodes_per_job is 2; with local a job has one node: raise max of jobs",
        ),
    ],
)
def test_what_is_wrong_in_a_table_is_one_sentence(changes, sentence):
    with pytest.raises(UsageError) as caught:
        config(**changes)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_key_is_named():
    with pytest.raises(UsageError, match="x: shared is missing"):
        read_table(ClusterConfig, {"scheduler": "local"}, "x")


def test_an_interface_that_is_not_there_is_named():
    with pytest.raises(UsageError, match="interface nosuch0 has no address"):
        parsl_backend.address_of(config(interface="nosuch0"))


def test_gpus_cannot_be_chosen_by_number(write):
    write(FULL)
    with pytest.raises(UsageError, match="--gpus names 1, 3, but on executor lab the scheduler gives the GPUs"):
        PluginHost().backend(Workers(executor="lab", cuda=True, gpus=("1", "3")))


def test_a_shared_folder_in_which_nothing_can_be_made_is_told():
    backend = parsl_backend.ParslBackend(config(scheduler="local", shared="/proc"))
    with pytest.raises(UsageError, match=r"shared folder /proc: .*; a run must be able to make a folder there"):
        backend.start()


def test_slots_are_those_of_the_gpus_unless_they_are_given():
    assert config(gpus_per_node=4).slots == 4
    assert config(gpus_per_node=4, slots_per_node=8).slots == 8
    assert config().slots == 1


def test_files_that_are_no_tables_are_told(write, monkeypatch, tmp_path):
    file = write("[executors.lab")
    with pytest.raises(UsageError, match=str(file)):
        tables()
    write("[executor.lab]\nkind = 'cluster'\n")
    with pytest.raises(UsageError, match=r"found executor; expected tables \[executors.NAME\] only"):
        tables()
    monkeypatch.setenv("MORAINE_EXECUTORS", str(tmp_path / "none"))
    with pytest.raises(StoreNotFoundError, match=r"MORAINE_EXECUTORS names .*none, which does not exist"):
        tables()
    monkeypatch.delenv("MORAINE_EXECUTORS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert tables() == {}


def test_executors_are_listed(write, capsys):
    write(FULL)
    assert run(["executors", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["executors"]
    assert [(row["name"], row["kind"]) for row in rows] == [("lab", "cluster")]
    assert set(rows[0]) == {"name", "kind", "from", "help"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["executors", "check", "moon"], "no executor moon; known: lab"),
        (["executors", "check", "lap"], "no executor lap; did you mean lab?"),
        (["executors", "check", "cluster"], "executor cluster needs a table [executors.NAME] with kind = 'cluster'"),
        (["executors", "check"], "expected: executors list, or executors check NAME"),
        (["executors", "start", "lab"], "expected: executors list, or executors check NAME"),
        (["executors", "check", "lab"], "shared folder /scratch/insar/moraine does not exist"),
    ],
)
def test_a_wrong_call_is_one_sentence(write, capsys, words, sentence):
    write(FULL)
    assert run(words) == 2
    assert sentence in capsys.readouterr().err


def test_a_kind_that_nobody_brings_is_named(write, capsys):
    write("[executors.lab]\nkind = 'grid'\n")
    assert run(["executors", "list"]) == 2
    assert "executors.lab: kind is 'grid'; known: cluster" in capsys.readouterr().err
    write("[executors.lab]\nscheduler = 'local'\n")
    assert run(["executors", "list"]) == 2
    assert "executors.lab: kind is missing; known: cluster" in capsys.readouterr().err
