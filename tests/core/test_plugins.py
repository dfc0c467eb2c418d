"""The plugin host: loads what is needed, when it is needed, and survives bad plugins (A56)."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from importlib.metadata import EntryPoint, entry_points

import pytest
from run_support import install

from moraine_core import Plan, Workers, catalog, command, hookimpl
from moraine_core.declaration import API
from moraine_core.errors import PluginError, UsageError
from moraine_core.executor.backend import ExecutorSpec
from moraine_core.executor.threads import ThreadBackend
from moraine_core.plugins import ALIASES, BUILTINS, COMMANDS, HOOKS, PluginHost


class Dist:
    def __init__(self, name, version="1.0"):
        self.name, self.version = name, version


def make_command(name, **options):
    @command(name, family="test", **options)
    def declare() -> Plan:
        """Do nothing."""
        return Plan([], [])

    return declare


@pytest.fixture
def module(monkeypatch):
    """Make a module that can be imported, of the given contents."""

    def make(name, **contents):
        made = types.ModuleType(name)
        vars(made).update(contents)
        monkeypatch.setitem(sys.modules, name, made)
        return made

    return make


def entry(name, value, group=COMMANDS, dist="some-dist"):
    found = EntryPoint(name, value, group)
    vars(found).update(dist=Dist(dist))
    return found


def only(host):
    (record,) = host.records()
    return record


def test_a_command_is_found_under_both_spellings(module):
    made = make_command("two-words")
    module("good", two_words=made)
    host = PluginHost([entry("two-words", "good:two_words")], blocked=())
    assert host.command("two-words") is host.command("two_words") is made
    assert host.names() == ["two-words"]
    assert (only(host).status, only(host).owner) == ("ok", "some-dist 1.0")


def test_a_command_goes_by_another_name_that_no_list_shows(module):
    made = make_command("coherence")
    module("good", coherence=made, number=3)
    host = PluginHost(
        [
            entry("coherence", "good:coherence"),
            entry("coherance", "good:coherence", ALIASES),
            entry("coh", "good:number", ALIASES),
        ],
        blocked=(),
    )
    assert host.command("coherance") is made
    assert host.names() == ["coherence"]
    assert [c.name for c in host.commands()] == ["coherence"]
    with pytest.raises(PluginError, match=r"coh of some-dist .* broken: good:number is a int, expected a command"):
        host.command("coh")
    assert {record.name: record.status for record in host.records()} == {
        "coherence": "ok",
        "coherance": "ok",
        "coh": "broken",
    }


def test_a_blocked_alias_is_not_imported(module):
    host = PluginHost([entry("coherance", "gone:coherence", ALIASES)], blocked=["coherance"])
    with pytest.raises(PluginError, match="blocked"):
        host.command("coherance")


def test_a_plugin_is_imported_once_and_only_when_it_is_needed(tmp_path, monkeypatch):
    (tmp_path / "lazy_plugin.py").write_text(
        "import os\nos.environ['LAZY'] = os.environ.get('LAZY', '') + 'x'\n"
        "from moraine_core import command, Plan\n"
        "@command('lazy', family='t')\ndef lazy() -> Plan:\n    '''Nothing.'''\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LAZY", "")
    host = PluginHost([entry("lazy", "lazy_plugin:lazy")], blocked=())
    assert os.environ["LAZY"] == ""
    host.names()
    assert os.environ["LAZY"] == ""
    host.command("lazy")
    host.command("lazy")
    assert os.environ["LAZY"] == "x"
    sys.modules.pop("lazy_plugin")


@pytest.mark.parametrize(
    "fault", ["raise ImportError('no libgdal')", "import no_such_module", "1 / 0", "raise SystemExit(3)"]
)
def test_a_broken_import_stays_with_its_plugin_and_is_told_with_traceback(tmp_path, monkeypatch, module, fault):
    (tmp_path / "broken_plugin.py").write_text(f"# the plugin\n{fault}\n")
    monkeypatch.syspath_prepend(tmp_path)
    module("good", good=make_command("good"))
    host = PluginHost([entry("bad", "broken_plugin:bad", dist="bad-dist"), entry("good", "good:good")], blocked=())
    with pytest.raises(PluginError, match=r"^bad of bad-dist 1.0 cannot be used: broken: \w+: "):
        host.command("bad")
    assert [c.name for c in host.commands()] == ["good"]
    record = next(r for r in host.records() if r.name == "bad")
    assert record.status == "broken"
    assert "broken_plugin.py" in record.trace
    assert fault in record.trace


def test_what_an_import_prints_is_not_on_standard_output(tmp_path, monkeypatch, capsys):
    (tmp_path / "loud_plugin.py").write_text("print('loud')\n")
    monkeypatch.syspath_prepend(tmp_path)
    PluginHost([entry("loud", "loud_plugin:loud")], blocked=()).records()
    out, err = capsys.readouterr()
    assert (out, err) == ("", "loud\n")


def test_an_entry_point_that_is_no_command_or_another_one_is_broken(module):
    module("odd", text="not a command", other=make_command("other-name"))
    host = PluginHost([entry("text", "odd:text"), entry("other", "odd:other")], blocked=())
    for name, found in (("text", "a str"), ("other", "the command other-name")):
        with pytest.raises(PluginError, match=f"broken: odd:{name} is {found}, expected the command {name}"):
            host.command(name)


def test_a_command_made_for_a_newer_host_is_not_loaded(module):
    module("new", newer=make_command("newer", api=API + 1))
    host = PluginHost([entry("newer", "new:newer")], blocked=())
    with pytest.raises(PluginError, match=f"too new: made for interface {API + 1} of the host, this one has {API}"):
        host.command("newer")
    assert only(host).status == "too new"


def test_a_module_with_hooks_made_for_a_newer_host_is_not_registered(module):
    heard = []

    @hookimpl
    def moraine_finished(record):
        heard.append(record)

    module("new_hooks", MORAINE_API=API + 1, moraine_finished=moraine_finished)
    host = PluginHost([entry("hooks", "new_hooks", HOOKS)], blocked=())
    host.notify("moraine_finished", record="r")
    assert heard == []
    assert only(host).status == "too new"


def test_two_plugins_of_one_name_are_both_named_and_neither_is_used(module):
    module("twin_a", twin=make_command("twin"))
    module("twin_b", twin=make_command("twin"))
    host = PluginHost(
        [entry("twin", "twin_a:twin", dist="dist-a"), entry("twin", "twin_b:twin", dist="dist-b")], blocked=()
    )
    with pytest.raises(PluginError, match=r"twin is declared by both dist-a 1.0 and dist-b 1.0; uninstall one"):
        host.command("twin")
    assert [r.status for r in host.records()] == ["clash", "clash"]
    host = PluginHost(
        [entry("twin", "twin_a:twin", dist="dist-a"), entry("twin", "twin_b:twin", dist="dist-b")], blocked=["dist-a"]
    )
    assert host.command("twin") is sys.modules["twin_b"].twin, "blocking one of them is a way out"


@pytest.mark.parametrize("name", BUILTINS)
def test_names_of_the_host_are_reserved(module, name):
    module("greedy", greedy=make_command(name))
    host = PluginHost([entry(name, "greedy:greedy"), entry("hooks", "greedy", HOOKS)], blocked=())
    assert host.records()[0].status == "clash"
    assert f"{name} is a name of the host's own" in host.records()[0].reason
    sys.modules["greedy"].moraine_commands = lambda: [make_command(name)]
    host = PluginHost([entry("hooks", "greedy", HOOKS)], blocked=())
    assert only(host).reason == f"{name} is a name of the host's own"
    assert host.names() == []


@pytest.mark.parametrize("blocked", ["some-dist", "some_dist", "Some-Dist", "my-plugin", "my_plugin"])
@pytest.mark.parametrize("group", [COMMANDS, HOOKS])
def test_a_blocked_plugin_is_never_imported(monkeypatch, blocked, group):
    monkeypatch.setenv("MORAINE_BLOCK", f"other, {blocked}")
    host = PluginHost([entry("my-plugin", "no_such_module_at_all:x", group)])
    assert (only(host).status, only(host).reason) == ("blocked", "named in MORAINE_BLOCK")
    if group == COMMANDS:
        with pytest.raises(PluginError, match=r"my-plugin of some-dist 1.0 cannot be used: blocked"):
            host.command("my-plugin")


def test_several_commands_come_from_one_module(module):
    many = [make_command(f"many-{n}") for n in range(3)]
    module("many", moraine_commands=hookimpl(lambda: many))
    host = PluginHost([entry("many", "many", HOOKS)], blocked=())
    assert host.names() == ["many-0", "many-1", "many-2"]
    assert host.command("many_1") is many[1]
    host = PluginHost([entry("many", "many", HOOKS)], blocked=["many-1"])
    assert host.names() == ["many-0", "many-2"]
    assert only(host).reason == "many-1 is named in MORAINE_BLOCK"


def test_a_command_of_a_module_that_clashes_names_both_owners(module):
    module("good", good=make_command("good"))
    module("first", moraine_commands=lambda: [make_command("shared")])
    module("second", moraine_commands=lambda: [make_command("shared"), make_command("good")])
    host = PluginHost(
        [
            entry("good", "good:good", dist="dist-g"),
            entry("first", "first", HOOKS, "dist-1"),
            entry("second", "second", HOOKS, "dist-2"),
        ],
        blocked=(),
    )
    assert host.names() == ["good", "shared"]
    assert host.command("good") is sys.modules["good"].good
    record = next(r for r in host.records() if r.name == "second")
    assert record.reason == "good is declared by both dist-g 1.0 and dist-2 1.0; uninstall one"


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        ({"moraine_no_such_hook": hookimpl(lambda: None)}, "moraine_no_such_hook"),
        ({"moraine_finished": hookimpl(lambda wrong_argument: None)}, "wrong_argument"),
        ({"moraine_commands": lambda: 1 / 0}, "ZeroDivisionError"),
        ({"moraine_commands": lambda: ["text"]}, "moraine_commands() brings a str, expected commands made by @command"),
    ],
)
def test_a_module_with_wrong_hooks_is_broken_and_breaks_nothing_else(module, contents, reason):
    heard = []
    module("wrong_hooks", **contents)
    module("good_hooks", moraine_finished=hookimpl(lambda record: heard.append(record)))
    entries = [entry("wrong", "wrong_hooks", HOOKS), entry("good", "good_hooks", HOOKS)]
    for order in (entries, entries[::-1]):
        heard.clear()
        host = PluginHost(order, blocked=())
        host.notify("moraine_finished", record="r")
        assert heard == ["r"]
        assert {r.name: r.status for r in host.records()} == {"wrong": "broken", "good": "ok"}
        assert reason in next(r for r in host.records() if r.name == "wrong").reason


def test_one_module_named_twice_is_registered_once(module):
    heard = []
    module("hooks", moraine_finished=hookimpl(lambda record: heard.append(record)))
    host = PluginHost([entry("a", "hooks", HOOKS), entry("b", "hooks", HOOKS)], blocked=())
    host.notify("moraine_finished", record="r")
    assert heard == ["r"]
    assert [r.status for r in host.records()] == ["ok", "clash"]


def test_an_observer_that_fails_is_warned_of_and_neither_the_run_nor_others_suffer(module, caplog):
    heard = []

    def fail(record):
        msg = "no disk for metrics"
        raise OSError(msg)

    module("failing", moraine_finished=hookimpl(fail))
    for name in ("before", "after"):
        module(name, moraine_finished=hookimpl(lambda record, name=name: heard.append(name)))
    host = PluginHost([entry(n, n, HOOKS) for n in ("before", "failing", "after")], blocked=())
    host.notify("moraine_finished", record="r")
    assert sorted(heard) == ["after", "before"]
    assert "moraine_finished of failing failed: OSError: no disk for metrics" in caplog.text


def test_a_named_executor_comes_from_a_plugin(module):
    made = []

    def factory(workers):
        made.append(workers)
        return ThreadBackend(3)

    module(
        "moon", factory=factory, moraine_executors=hookimpl(lambda: [ExecutorSpec("moon", "moon:factory", "far away")])
    )
    host = PluginHost([entry("moon", "moon", HOOKS)], blocked=())
    backend = host.backend(Workers(executor="moon", n_workers=3))
    assert len(backend.slots()) == 3
    assert made == [Workers(executor="moon", n_workers=3)]
    with pytest.raises(UsageError, match=r"^no executor sun; known: moon$"):
        host.backend(Workers(executor="sun"))
    with pytest.raises(UsageError, match=r"no executor sun; known: none is installed"):
        PluginHost([], blocked=()).backend(Workers(executor="sun"))


def test_an_unknown_command_is_answered_with_the_closest_or_with_who_brings_it(module):
    module("good", good=make_command("select-shapes"))
    host = PluginHost([entry("select-shapes", "good:good")], blocked=())
    for name, sentence in (
        ("select-shape", "no command select-shape; did you mean select-shapes?"),
        ("statos", "no command statos; did you mean status?"),
        ("qqq", "no command qqq; see moraine list"),
        ("amp-disp", "amp-disp is not installed; it comes with moraine-ps: pip install moraine-ps"),
    ):
        with pytest.raises(UsageError) as caught:
            host.command(name)
        assert str(caught.value) == sentence


def test_the_catalog_says_what_the_installed_distributions_bring():
    """A missing command is told with the distribution that brings it."""
    ours = [e for e in entry_points(group=COMMANDS) if e.dist and e.dist.name.startswith("moraine-")]
    assert ours
    assert {e.name: catalog.COMMANDS[e.name].distribution for e in ours} == {e.name: e.dist.name for e in ours}


HEAVY = ("numpy", "zarr", "numba", "scipy", "torch", "cupy", "matplotlib", "rich", "dask")


@pytest.mark.parametrize("words", [["--help"], ["alone", "--help"], ["list"], ["nothing"], ["alone", "--resutl", "x"]])
def test_help_and_list_are_light_and_a_command_imports_no_other(tmp_path, words):
    text = (
        "from moraine_core import command, Plan\n@command('{0}', family='t')\ndef {0}() -> Plan:\n    '''Nothing.'''\n"
    )
    site = install(
        tmp_path, "light", commands={"alone": "alone_plugin:alone", "other": "other_plugin:other"},
        modules={f"{n}_plugin": text.format(n) for n in ("alone", "other")},
    )  # fmt: skip
    code = (
        "import sys\nfrom moraine_core.cli.main import run\n"
        f"run({words!r})\nprint(*(m.partition('.')[0] for m in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stderr.splitlines()[-1].split())
    assert not loaded & set(HEAVY)
    if "alone" in words:
        assert "alone_plugin" in loaded
        assert not {m for m in loaded if m.startswith("moraine_")} - {"moraine_core"}
        assert "other_plugin" not in loaded
    if words == ["list"]:
        assert {"alone_plugin", "other_plugin"} <= loaded


def test_entry_points_are_read_once(monkeypatch):
    reads = []
    monkeypatch.setattr("importlib.metadata.entry_points", lambda: reads.append(1) or entry_points())
    host = PluginHost()
    host.records()
    host.names()
    assert len(reads) == 1
