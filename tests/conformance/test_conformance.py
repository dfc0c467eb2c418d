"""Every installed command keeps to what the kit asks of any command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from moraine_core.declaration import Input
from moraine_core.plugins import PluginHost
from moraine_core.testing.conformance import ConformanceSuite
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_core.testing.running import example
from moraine_points.kernels import pc_gix

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


def radar_polygons(**positions):
    """Return the variant that masks a raster or the points of a gix by a polygon of the radar grid."""

    def variant(arguments):
        file = Path(arguments["polygons"]).with_name("radar.geojson")
        ring = [[1.5, 2], [16, 7.5], [3, 25]]
        file.write_text(json.dumps({"type": "Polygon", "coordinates": [ring], "moraine_coordinates": "radar_grid"}))
        given = dict(positions)
        if "gix" in given:
            given["gix"] = write_array(file.with_name("gix.zarr"), given["gix"], (50, 2))
        return {**without("x", "y")(arguments), "polygons": str(file), **given}

    return variant


def in_gix_order(*names):
    """Return the variant that knows the points of some sorted Hilbert indices by their pixels."""

    def variant(arguments):
        changed = dict(arguments)
        for name in names:
            gix = pc_gix(read_array(arguments[name]), arguments["shape"])
            gix = gix[np.lexsort(gix.T[::-1])]
            changed[name] = write_array(f"{arguments[name]}.gix", gix, chunks=(40, 2))
        return changed

    return variant


def all_pairs_of_four_images(arguments):
    coh = read_array(arguments["coh"])[:, [0, 1, 3, 2, 4, 6]]
    ph = read_array(arguments["ph"])[:, :4]
    return {
        **without("image_pairs", "t_coh")(arguments),
        "coh": write_array(f"{arguments['coh']}.four", coh, (12, 1)),
        "ph": write_array(f"{arguments['ph']}.four", ph, (9, 1)),
    }


VARIANTS = {
    "amp-disp": [without("calibrate")],
    "ds-temp-coh": [without("n_looks", "t_coh_w", "eff_n_pairs", "n_components"), all_pairs_of_four_images],
    "empirical-co-emi-temp-coh-pc": [without("t_coh_w_dir", "eff_n_pairs_dir", "n_components_dir", "batch_size")],
    "empirical-co-pc": [without("n_looks_dir", "image_pairs")],
    "gamma-mcf-pt": [without("weight")],
    "emcf-pc": [without("temporal_cost", "dates", "weight", "island")],
    "image-pairs": [pairs_of_a_stack],
    "load-gamma-look-vector": [look_vectors_of_heights],
    "n2f": [without("trust", "image_pairs"), without("chunks", "out_chunks")],
    "pc-pyramid": [points_by_lines_and_pixels],
    "polygon-mask": [
        radar_polygons(shape=(29, 21), chunks=(8, 9)),
        radar_polygons(gix=np.argwhere(np.random.default_rng(1).random((29, 21)) < 0.3)),
    ],
    "mcf-pc": [
        without("weight", "variance", "island", "earth_cost", "ref_point"),
        lambda arguments: {**without("variance")(arguments), "spatial_cost": "length"},
        lambda arguments: {**arguments, "tile": 60},
    ],
    "pc-concat": [without("key")],
    "pc-diff": [without("pc1", "pc"), in_gix_order("idx1", "idx2")],
    "pc-intersect": [without("pc2", "prefer_1"), without("pc1"), without("pc1", "pc2", "pc", "shape")],
    "pc-logic-pc": [without("chunks")],
    "pc-select-data": [in_gix_order("idx"), without("shape")],
    "pc-sort": [without("pc_in", "pc"), without("key", "shape")],
    "pc-union": [without("pc1", "pc2", "pc"), in_gix_order("idx1", "idx2")],
    "shp-test": [without("pvalue", "calibrate"), without("chunks")],
    "unwrap-correct-closure-pc": [
        without("misclosure_fraction", "change_fraction", "correction", "region", "out_chunks")
    ],
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
