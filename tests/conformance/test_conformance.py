"""Every installed command keeps to what the kit asks of any command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from moraine_core.declaration import Input
from moraine_core.plugins import PluginHost
from moraine_core.testing.conformance import ConformanceSuite
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_core.testing.running import example

COMMANDS = PluginHost().commands()


def without(*names):
    """Return the variant that leaves arguments out."""
    return lambda arguments: {name: value for name, value in arguments.items() if name not in names}


def pairs_of_a_stack(arguments):
    stack = write_array(Path(arguments["out"]).with_name("rslc.zarr"), speckle((3, 4, 5)))
    return {**without("nimages")(arguments), "rslc": stack}


def points_by_lines_and_pixels(arguments):
    yx = np.stack([read_array(arguments["y"]), read_array(arguments["x"])], axis=1)
    return {**without("x", "y")(arguments), "yx": write_array(f"{arguments['out_dir']}_yx.zarr", yx)}


def look_vectors_of_heights(arguments):
    return {
        **without("theta", "phi", "lt", "dem_par")(arguments),
        "hgt": str(Path(arguments["theta"]).with_name("hgt")),
    }


VARIANTS = {
    "amp-disp": [without("calibrate")],
    "image-pairs": [pairs_of_a_stack],
    "load-gamma-look-vector": [look_vectors_of_heights],
    "pc-pyramid": [points_by_lines_and_pixels],
    "pc-sort": [without("pc_in", "pc"), without("key", "shape")],
}


class TestInstalledCommands(ConformanceSuite):
    commands = COMMANDS
    variants = VARIANTS


def test_every_installed_command_ships_an_example():
    assert [c.name for c in COMMANDS if not c.example] == []


@pytest.mark.parametrize("command", COMMANDS, ids=[c.name for c in COMMANDS])
def test_each_optional_input_is_given_in_one_call_and_left_out_in_another(command, tmp_path):
    """A10: the example and its variants together show both."""
    arguments = example(command, tmp_path)
    calls = [arguments, *(variant(arguments) for variant in VARIANTS.get(command.name, ()))]
    for parameter in command.parameters:
        if isinstance(parameter.role, Input) and not parameter.required and not parameter.is_extra:
            assert {parameter.name in call for call in calls} == {True, False}, parameter.name
