"""Every installed command keeps to what the kit asks of any command."""

from __future__ import annotations

from moraine_core.plugins import PluginHost
from moraine_core.testing.conformance import ConformanceSuite

COMMANDS = PluginHost().commands()


class TestInstalledCommands(ConformanceSuite):
    commands = COMMANDS


def test_every_installed_command_ships_an_example():
    assert [c.name for c in COMMANDS if not c.example] == []
