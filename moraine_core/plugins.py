"""The plugin host: finds commands and hooks through entry points, loads each when it is needed, and survives bad ones.

Ours come by the same door as anybody's. Entry points are read once; a plugin is imported only when its command is
called or listed, and one that is broken, blocked, too new or clashing is kept as a record with the reason.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.metadata
import logging
import os
import sys
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import pluggy

from moraine_core import __version__, hookspec
from moraine_core.catalog import COMMANDS as CATALOG
from moraine_core.errors import PluginError, UsageError
from moraine_core.hookspec import API

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from importlib.metadata import EntryPoint

    from moraine_core.declaration import Command
    from moraine_core.executor.backend import Backend, ExecutorSpec
    from moraine_core.options import Workers

log = logging.getLogger("moraine")

COMMANDS = "moraine.commands"
ALIASES = "moraine.aliases"
HOOKS = "moraine.plugins"

BUILTINS = ("check", "executors", "info", "list", "plugins", "quicklook", "run", "status", "view")
"""The host's own commands, whose names no plugin may take."""


@dataclass
class PluginRecord:
    """What is known of one entry point.

    Attributes
    ----------
    name
        Its name: for a command, the command's.
    group
        `COMMANDS`, `ALIASES` or `HOOKS`.
    distribution, version
        Who brings it.
    status
        ``ok`` once loaded, ``found`` before; else what is wrong.
    reason
        Why it cannot be used.
    trace
        Traceback of a failed import.
    """

    name: str
    group: str
    distribution: str
    version: str
    status: Literal["found", "ok", "broken", "blocked", "clash", "too new"] = "found"
    reason: str = ""
    trace: str = ""

    @property
    def owner(self) -> str:
        """Distribution and version, for sentences."""
        return f"{self.distribution} {self.version}".strip()


class PluginHost:
    """All plugins of this environment.

    Parameters
    ----------
    entry_points
        What is installed; by default read from the environment, once.
    blocked
        Names of plugins, commands or distributions that must not be imported; by default ``MORAINE_BLOCK``.
    """

    def __init__(self, entry_points: Iterable[EntryPoint] | None = None, blocked: Iterable[str] | None = None) -> None:
        if entry_points is None:
            everything = importlib.metadata.entry_points()
            entry_points = [entry for group in (COMMANDS, ALIASES, HOOKS) for entry in everything.select(group=group)]
        if blocked is None:
            blocked = os.environ.get("MORAINE_BLOCK", "").split(",")
        self._blocked = {_spelled(name.strip()) for name in blocked}
        self._manager = pluggy.PluginManager("moraine")
        self._manager.add_hookspecs(hookspec)
        self._entries: dict[str, list[tuple[EntryPoint, PluginRecord]]] = {}
        self._aliases: dict[str, tuple[EntryPoint, PluginRecord]] = {}
        self._hooks: list[tuple[EntryPoint, PluginRecord]] = []
        self._commands: dict[str, Command] = {}
        self._owners: dict[str, str] = {}
        self._distributions: dict[int, tuple[str, str]] = {}
        self._hooks_loaded = False
        for entry in entry_points:
            self._file(entry)
        self._mark_clashes()

    def _file(self, entry: EntryPoint) -> None:
        """Note an entry point under its name, without importing it."""
        distribution, version = self._owner(entry)
        record = PluginRecord(entry.name, entry.group, distribution, version)
        if {_spelled(entry.name), _spelled(distribution)} & self._blocked:
            record.status, record.reason = "blocked", "named in MORAINE_BLOCK"
        if entry.group == HOOKS:
            self._hooks.append((entry, record))
        elif entry.group == ALIASES:
            self._aliases.setdefault(_spelled(entry.name), (entry, record))
        else:
            self._entries.setdefault(_spelled(entry.name), []).append((entry, record))

    def _owner(self, entry: EntryPoint) -> tuple[str, str]:
        """Return distribution and version; each distribution's metadata is parsed once, not for every entry point."""
        if entry.dist is None:
            return entry.value.partition(".")[0], ""
        key = id(entry.dist)
        if key not in self._distributions:
            self._distributions[key] = (entry.dist.name, entry.dist.version)
        return self._distributions[key]

    def _mark_clashes(self) -> None:
        for name, found in self._entries.items():
            active = [record for _, record in found if record.status != "blocked"]
            if name in BUILTINS:
                for record in active:
                    record.status, record.reason = "clash", f"{name} is a name of the host's own"
            elif len(active) > 1:
                owners = " and ".join(record.owner for record in active)
                for record in active:
                    record.status, record.reason = "clash", f"{name} is declared by both {owners}; uninstall one"

    # -------------------------------------------------------------------------------------------- commands

    def names(self) -> list[str]:
        """Return the names of all commands, sorted; hook modules that bring several are imported for it."""
        self._load_hooks()
        return sorted({*self._entries, *self._commands})

    def command(self, name: str) -> Command:
        """Return a command by its name or another that it goes by, importing its module if that has not been done.

        Raises
        ------
        UsageError
            There is no such command; the message says which distribution brings it, or the closest name.
        PluginError
            Its plugin is broken, blocked, too new or clashes with another.
        """
        name = _spelled(name)
        if name not in self._commands and name in self._entries:
            self._load_command(name)
        if name not in self._commands:
            self._load_hooks()
        if name not in self._commands and name in self._aliases:
            return self._aliased(name)
        if name not in self._commands:
            raise UsageError(self._unknown(name))
        return self._commands[name]

    def commands(self) -> list[Command]:
        """Return all commands that can be loaded, by name; the others are told by `records`."""
        found = []
        for name in self.names():
            try:
                found.append(self.command(name))
            except PluginError:
                continue
        return found

    def overview(self) -> list[tuple[str, str, str]]:
        """Return name, family and summary of all commands, or with the family ``not usable`` the reason.

        Commands of ours in the version of this host are told from the catalog, without being imported: a list of
        commands must not cost what loading all of them does.
        """
        rows = []
        for name in self.names():
            known = CATALOG.get(name)
            found = self._entries.get(name, [])
            if known is not None and len(found) == 1 and _is_ours(found[0][1], known.distribution):
                rows.append((name, known.family, known.summary))
                continue
            try:
                command = self.command(name)
                rows.append((name, command.family, command.summary))
            except PluginError as error:
                rows.append((name, "not usable", str(error)))
        return rows

    def _load_command(self, name: str) -> None:
        usable = [pair for pair in self._entries[name] if pair[1].status != "blocked"]
        entry, record = usable[0] if usable else self._entries[name][0]
        if record.status in ("found", "ok"):
            from moraine_core.declaration import Command

            loaded = self._import(entry, record)
            if isinstance(loaded, Command) and _spelled(loaded.name) == name:
                if _fits(record, loaded.api):
                    self._add(name, loaded)
                    return
            elif loaded is not None:
                found = f"the command {loaded.name}" if isinstance(loaded, Command) else f"a {type(loaded).__name__}"
                record.status, record.reason = "broken", f"{entry.value} is {found}, expected the command {name}"
        msg = f"{name} of {record.owner} cannot be used: {record.status}: {record.reason}"
        raise PluginError(msg)

    def _aliased(self, name: str) -> Command:
        """Return the command that goes by another name too."""
        from moraine_core.declaration import Command

        entry, record = self._aliases[name]
        loaded = self._import(entry, record) if record.status in ("found", "ok") else None
        if isinstance(loaded, Command):
            return self.command(loaded.name)
        if loaded is not None:
            record.status = "broken"
            record.reason = f"{entry.value} is a {type(loaded).__name__}, expected a command"
        msg = f"{name} of {record.owner} cannot be used: {record.status}: {record.reason}"
        raise PluginError(msg)

    def _add(self, name: str, command: Command) -> None:
        self._commands[name] = command
        if not self._manager.is_registered(command):
            self._manager.register(command, name)

    def _import(self, entry: EntryPoint, record: PluginRecord) -> Any:
        """Import what an entry point names; whatever goes wrong in it is its own fault and stays with it."""
        try:
            with contextlib.redirect_stdout(sys.stderr):
                loaded = entry.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin's import runs anybody's code
            _mark_broken(record, error)
            return None
        record.status = "ok"
        return loaded

    def _unknown(self, name: str) -> str:
        if name in CATALOG:
            distribution = CATALOG[name].distribution
            return f"{name} is not installed; it comes with {distribution}: pip install {distribution}"
        close = difflib.get_close_matches(name, [*self.names(), *BUILTINS], n=1)
        return f"no command {name}" + (f"; did you mean {close[0]}?" if close else "; see moraine list")

    # ----------------------------------------------------------------------------------------------- hooks

    def _load_hooks(self) -> None:
        """Import and register the modules with hooks, and take the commands that they bring."""
        if self._hooks_loaded:
            return
        self._hooks_loaded = True
        for entry, record in self._hooks:
            module = self._import(entry, record) if record.status == "found" else None
            if module is not None and _fits(record, getattr(module, "MORAINE_API", API)):
                self._register(module, record)

    def _register(self, module: Any, record: PluginRecord) -> None:
        """Register a module with hooks, and take the commands that it brings."""
        if self._manager.is_registered(module):
            record.status, record.reason = "clash", f"{module.__name__} is named by another plugin too"
            return
        try:
            self._manager.register(module)
            self._manager.check_pending()
            brought = list(getattr(module, "moraine_commands", list)())
            _prove_commands(brought)
        except Exception as error:  # noqa: BLE001 - a plugin's hooks run anybody's code
            _mark_broken(record, error)
            if self._manager.is_registered(module):
                self._manager.unregister(module)
            return
        for command in brought:
            self._take(command, record)

    def _take(self, command: Command, record: PluginRecord) -> None:
        """Add a command that a module with hooks brings, unless something is in its way."""
        name = _spelled(command.name)
        if name in BUILTINS:
            record.status, record.reason = "clash", f"{name} is a name of the host's own"
        elif name in self._owners or name in self._entries:
            owners = f"{self._owners.get(name) or self._entries[name][0][1].owner} and {record.owner}"
            record.status, record.reason = "clash", f"{name} is declared by both {owners}; uninstall one"
        elif name in self._blocked:
            record.reason = f"{name} is named in MORAINE_BLOCK"
        elif _fits(record, command.api):
            self._owners[name] = record.owner
            self._add(name, command)

    @property
    def hook(self) -> Any:
        """The hooks, to be called by keyword; modules with hooks are imported first."""
        self._load_hooks()
        return self._manager.hook

    def register(self, plugin: Any) -> None:
        """Let an object with hooks take part, beside the plugins that are installed: an observer of a program's own."""
        self._manager.register(plugin)

    def notify(self, hook: str, **facts: Any) -> None:
        """Tell all plugins that implement a hook; one that fails is warned of, and neither run nor others suffer."""
        for implementation in getattr(self.hook, hook).get_hookimpls():
            try:
                implementation.function(*(facts[name] for name in implementation.argnames))
            except Exception as error:  # noqa: BLE001 - a plugin's hooks run anybody's code
                log.warning("%s of %s failed: %s: %s", hook, implementation.plugin_name, type(error).__name__, error)

    def backend(self, workers: Workers) -> Backend:
        """Return the named executor backend of a plugin, with the settings of its table if its kind has some.

        Raises
        ------
        UsageError
            No plugin offers one of that name, or its table is wrong.
        """
        from moraine_core import tables
        from moraine_core.task import resolve

        name = workers.executor or ""
        specs, named = self.executors()
        if name in named:
            spec = specs[named[name]]
            table = {key: value for key, value in tables.tables()[name].items() if key != "kind"}
            where = f"{tables.file()}: executors.{name}"
            return resolve(spec.load)(workers, tables.read_table(cast("type", resolve(spec.schema)), table, where))  # type: ignore[no-any-return]
        if name not in specs or specs[name].schema:
            offered = sorted({*named, *(n for n, s in specs.items() if not s.schema)})
            close = difflib.get_close_matches(name, offered, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(offered) or 'none is installed'}"
            msg = f"no executor {name}; {hint}"
            if name in specs:
                msg = f"executor {name} needs a table [executors.NAME] with kind = {name!r} in {tables.file()}"
            raise UsageError(msg)
        return resolve(specs[name].load)(workers)  # type: ignore[no-any-return]

    def executors(self) -> tuple[dict[str, ExecutorSpec], dict[str, str]]:
        """Return the executors and kinds of them that plugins bring, and the kind of each that the user has named.

        Raises
        ------
        UsageError
            A table is of a kind that no plugin brings.
        """
        from moraine_core import tables

        specs = {spec.name: spec for group in self.hook.moraine_executors() for spec in group}
        kinds = [name for name, spec in specs.items() if spec.schema]
        named = {}
        for name, table in tables.tables().items():
            if table.get("kind") not in kinds:
                known = ", ".join(kinds) or "none is installed (the kind cluster comes with moraine-cluster)"
                found = f"kind is {table['kind']!r}" if "kind" in table else "kind is missing"
                msg = f"{tables.file()}: executors.{name}: {found}; known: {known}"
                raise UsageError(msg)
            named[name] = str(table["kind"])
        return specs, named

    # --------------------------------------------------------------------------------------------- records

    def records(self) -> Sequence[PluginRecord]:
        """Return what is known of every plugin after trying to load all of them."""
        self.commands()
        for name in self._aliases:
            with contextlib.suppress(PluginError):
                self._aliased(name)
        found = [record for entries in self._entries.values() for _, record in entries]
        found += [record for _, record in (*self._aliases.values(), *self._hooks)]
        return sorted(found, key=lambda record: (record.distribution, record.group, record.name))


def _prove_commands(brought: Sequence[Any]) -> None:
    """Raise unless all that a hook brings are commands."""
    if brought:
        from moraine_core.declaration import Command

        for command in brought:
            if not isinstance(command, Command):
                msg = f"moraine_commands() brings a {type(command).__name__}, expected commands made by @command"
                raise TypeError(msg)


def _is_ours(record: PluginRecord, distribution: str) -> bool:
    """Tell whether a command is ours, in the version of this host, and nothing is known against it."""
    return record.distribution == distribution and record.version == __version__ and record.status in ("found", "ok")


def _fits(record: PluginRecord, api: int) -> bool:
    """Tell whether this host has the interface that a plugin was made for; note it if not."""
    if api > API:
        record.status = "too new"
        record.reason = f"made for interface {api} of the host, this one has {API}; update moraine-core"
    return api <= API


def _mark_broken(record: PluginRecord, error: BaseException) -> None:
    record.status, record.reason = "broken", f"{type(error).__name__}: {error}"
    record.trace = "".join(traceback.format_exception(error))


def _spelled(name: str) -> str:
    """Return a command's name as it is spelled with hyphens."""
    return name.replace("_", "-").lower()
