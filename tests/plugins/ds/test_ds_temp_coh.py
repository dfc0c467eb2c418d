"""The command ds-temp-coh, from zarr to zarr."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from moraine_core import UsageError, Workers
from moraine_core.errors import LayoutError
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, write_array
from moraine_ds.ds_temp_coh import ds_temp_coh
from moraine_ds.quality import kernels

OUTPUTS = ("t_coh", "t_coh_w", "eff_n_pairs", "n_components")


@pytest.fixture
def data():
    """Return coherence of all pairs, phases and looks of 23 points in 7 images."""
    rng = np.random.default_rng(1)
    ph = np.exp(1j * rng.uniform(-3, 3, (23, 7)))
    ref, sec = np.triu_indices(7, 1)
    coh = ph[:, ref] * ph[:, sec].conj() * rng.random((23, 21)) * np.exp(1j * rng.normal(size=(23, 21)))
    coh[2, 5], ph[4, 3] = np.nan, 0
    return coh.astype(np.complex64), ph.astype(np.complex64), rng.uniform(1, 60, 23).astype(np.float32)


def run(folder, data, names=OUTPUTS, *, looks=True, workers=2, **options):
    """Write the inputs, run the command, and return what it wrote, by name."""
    inputs = dict(zip(("coh", "ph", "n_looks"), data, strict=True))
    chunks = {"coh": (10, 1), "ph": (8, 2), "n_looks": (6,)}
    paths = {name: write_array(folder / f"{name}.zarr", array, chunks[name]) for name, array in inputs.items()}
    if not looks:
        del paths["n_looks"]
    outputs = {name: str(folder / f"{name}.zarr") for name in names}
    ds_temp_coh(**paths, **outputs, workers=Workers(n_workers=workers), fresh=True, **options)
    return {name: read_array(path) for name, path in outputs.items()}


def test_the_outputs_are_those_of_the_array_function(tmp_path, data):
    found = run(tmp_path, data)
    expected = kernels.ds_temp_coh(*data[:2], n_looks=data[2])
    for name in OUTPUTS:
        np.testing.assert_array_equal(found[name], getattr(expected, name))
        assert found[name].dtype == (np.int16 if name == "n_components" else np.float32)
        assert open_array(tmp_path / f"{name}.zarr").chunks == (10,)


@pytest.mark.parametrize("names", [n for k in (1, 2, 3) for n in combinations(OUTPUTS, k)])
def test_any_of_the_outputs_can_be_left_out(tmp_path, data, names):
    """REF-BUG: without t_coh the command crashed."""
    found = run(tmp_path, data, names)
    expected = kernels.ds_temp_coh(*data[:2], n_looks=data[2])
    for name in names:
        np.testing.assert_array_equal(found[name], getattr(expected, name))
    assert not [name for name in OUTPUTS if name not in names and (tmp_path / f"{name}.zarr").exists()]


def test_t_coh_needs_no_looks_and_does_not_depend_on_them(tmp_path, data):
    np.testing.assert_array_equal(
        run(tmp_path, data, ("t_coh",), looks=False)["t_coh"], run(tmp_path, data, ("t_coh",))["t_coh"]
    )


def test_a_network_of_pairs_takes_its_columns(tmp_path, data):
    coh, ph, looks = data
    pairs = [[0, 1], [2, 1], [2, 3], [0, 6]]
    columns = [0, 6, 11, 5]
    part = coh[:, columns]
    part[:, 1] = part[:, 1].conj()  # (1, 2), the other way round
    (tmp_path / "pairs.txt").write_text("# reference secondary\n" + "".join(f"{a} {b}\n" for a, b in pairs))
    expected = kernels.ds_temp_coh(part, ph, n_looks=looks, image_pairs=pairs)
    for given in (str(tmp_path / "pairs.txt"), str(pairs), pairs):
        found = run(tmp_path, (part, ph, looks), image_pairs=given)
        for name in OUTPUTS:
            np.testing.assert_array_equal(found[name], getattr(expected, name))


@pytest.mark.parametrize("alpha", [1e-6, 0.5])
def test_a_higher_alpha_connects_more(tmp_path, data, alpha):
    found = run(tmp_path, data, ("n_components",), alpha=alpha)["n_components"]
    np.testing.assert_array_equal(found, kernels.ds_temp_coh(*data[:2], n_looks=data[2], alpha=alpha).n_components)
    default = run(tmp_path, data, ("n_components",))["n_components"]
    assert (found >= default if alpha < 1e-3 else found <= default).all()
    assert (found != default).any()


def test_looks_may_be_whole_numbers(tmp_path, data):
    coh, ph, looks = data
    whole = looks.astype(np.int32)
    found = run(tmp_path, (coh, ph, whole))
    np.testing.assert_array_equal(found["t_coh_w"], kernels.ds_temp_coh(coh, ph, n_looks=whole).t_coh_w)


def test_no_points_give_empty_outputs(tmp_path, data):
    found = run(tmp_path, tuple(array[:0] for array in data))
    assert {name: array.shape for name, array in found.items()} == dict.fromkeys(OUTPUTS, (0,))


def test_one_image_has_no_pairs_and_is_one_component(tmp_path):
    data = np.zeros((3, 0), np.complex64), np.ones((3, 1), np.complex64), np.full(3, 9, np.float32)
    found = run(tmp_path, data)
    assert np.isnan(found["t_coh"]).all()
    assert np.isnan(found["t_coh_w"]).all()
    assert (found["eff_n_pairs"] == 0).all()
    assert (found["n_components"] == 1).all()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"names": ()}, "no output is named"),
        ({"names": ("t_coh", "n_components"), "looks": False}, "n_components is asked for without n_looks"),
        ({"alpha": 0.6}, r"alpha is 0\.6; expected 1e-6 to 0\.5"),
        ({"image_pairs": [[0, 1]]}, r"coh .*coh\.zarr has 21 pairs; expected 1, image_pairs"),
        ({"image_pairs": [[0, 7]]}, r"image_pairs: pair 0 is \(0, 7\); expected images 0 to 6 of ph .*ph\.zarr"),
        ({"image_pairs": [[0, 1], [1, 0]]}, "image_pairs: pair 1 is"),
    ],
)
def test_what_cannot_be_measured_is_refused(tmp_path, data, options, fault):
    with pytest.raises(UsageError, match=f"ds-temp-coh: {fault}"):
        run(tmp_path, data, **options)
    assert not [name for name in OUTPUTS if (tmp_path / f"{name}.zarr").exists()]


def test_coherence_of_other_images_is_refused(tmp_path, data):
    coh, ph, looks = data
    with pytest.raises(UsageError, match=r"coh .* has 21 pairs; expected 15, all pairs of the 6 images of ph"):
        run(tmp_path, (coh, ph[:, :6], looks))


def test_inputs_of_different_clouds_are_refused(tmp_path, data):
    coh, ph, looks = data
    with pytest.raises(LayoutError, match=r"n_looks .* has shape \(22,\); expected n_points 23, as in coh"):
        run(tmp_path, (coh, ph, looks[:22]))
