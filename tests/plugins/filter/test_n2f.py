"""The raster filter: array function, tiles, and the command from zarr to zarr; with any weights, and with ours."""

from __future__ import annotations

import json
from math import inf, nan, pi

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from moraine_core import UsageError, Workers
from moraine_core.testing.data import read_array, speckle, write_array
from moraine_filter import weights
from moraine_filter.n2f import n2f
from moraine_filter.raster import kernels, tiles
from moraine_filter.raster.network import N2F, WIDTHS

NO_DATA = [nan, complex(nan, 1), complex(1, nan), inf, complex(1, -inf), 0, 1e-31]
PAIRS = ((0, 1), (2, 0), (1, 2))


@pytest.fixture(scope="module")
def anything(tmp_path_factory):
    """Return a file of random weights: what is true of any weights must not hang on ours."""
    torch.manual_seed(1)
    path = str(tmp_path_factory.mktemp("model") / "anything.safetensors")
    weights.save(path, N2F().state_dict(), "n2f", {})
    return path


@pytest.fixture
def stack():
    """Return a stack of three images with every kind of missing sample."""
    rslc = speckle((45, 61, 3), seed=1)
    rng = np.random.default_rng(2)
    for missing in NO_DATA:
        rslc[rng.random(rslc.shape) < 0.02] = missing
    rslc[20:30, 5:25, 1] = nan
    return rslc


def filtered(rslc, model, pairs=PAIRS, **keywords):
    return kernels.n2f(np.moveaxis(rslc, 2, 0), image_pairs=pairs, model=model, **keywords)


def missing_of(rslc, pairs=PAIRS):
    """Return where interferograms are missing, as the conventions say."""
    with np.errstate(invalid="ignore", over="ignore"):
        gone = ~np.isfinite(rslc) | (np.abs(rslc) < 1e-30)
    return np.stack([gone[..., a] | gone[..., b] for a, b in pairs], axis=-1)


def boxcar(z, half):
    """Return means of a window around each pixel, written as sums of shifted copies."""
    padded = np.pad(z, half)
    side = 2 * half + 1
    return sum(padded[i : i + z.shape[0], j : j + z.shape[1]] for i in range(side) for j in range(side))


def noisy(phase, coh, seed):
    """Return two images with a given phase of the interferogram and a coherence."""
    common, own = speckle(phase.shape, seed), speckle(phase.shape, seed + 1000)
    sec = coh * common + np.sqrt(1 - coh**2) * own
    return np.stack([common, sec * np.exp(-1j * phase)], axis=-1).astype(np.complex64)


def rms(angle):
    return float(np.sqrt(np.mean(np.square((angle + pi) % (2 * pi) - pi))))


# ------------------------------------------------------------------------------------------------ with any weights


def test_results_are_phasors_where_both_samples_are_valid_and_nan_elsewhere(anything, stack):
    before = stack.copy()
    found, trust = filtered(stack, anything, with_trust=True)
    missing = missing_of(stack)
    assert (found.dtype, found.shape) == (np.complex64, (45, 61, 3))
    assert (trust.dtype, trust.shape) == (np.float32, (45, 61, 3))
    np.testing.assert_array_equal(np.isnan(found), missing)
    np.testing.assert_array_equal(np.isnan(trust), missing)
    np.testing.assert_allclose(np.abs(found[~missing]), 1, atol=1e-4)
    assert ((trust[~missing] >= 0) & (trust[~missing] <= 1)).all()
    np.testing.assert_array_equal(stack, before)


@pytest.mark.parametrize("missing", NO_DATA)
def test_what_stands_for_a_missing_sample_does_not_matter(anything, stack, missing):
    """REF-BUG: missing samples were filled with unseeded random phases, so that no two runs agreed."""
    other = stack.copy()
    with np.errstate(invalid="ignore", over="ignore"):
        other[~np.isfinite(stack) | (np.abs(stack) < 1e-30)] = missing
    np.testing.assert_array_equal(filtered(other, anything), filtered(stack, anything))


@pytest.mark.parametrize("factor", [1e-12, 300, 1e12])
def test_amplitudes_of_whole_images_do_not_matter(anything, stack, factor):
    """Even where the product of two amplitudes is beyond what a number holds."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (stack * np.float32(factor)).astype(np.complex64)
    scaled[missing_of(stack, [(0, 0), (1, 1), (2, 2)])] = nan
    np.testing.assert_allclose(filtered(scaled, anything), filtered(stack, anything), atol=1e-4)


def test_a_pair_alone_is_what_it_is_among_others(anything, stack):
    """Bit for bit; and the images come one after another, as a stream."""
    together = filtered(stack, anything)
    for k, pair in enumerate(PAIRS):
        alone = kernels.n2f(iter(np.moveaxis(stack, 2, 0)), image_pairs=[pair], model=anything)
        np.testing.assert_array_equal(alone[..., 0], together[..., k])
        grouped = kernels.n2f(
            iter(np.moveaxis(stack, 2, 0)[min(pair) :]),
            image_pairs=PAIRS,
            model=anything,
            first=min(pair),
            group=(k, k + 1),
        )
        np.testing.assert_array_equal(grouped[..., 0], together[..., k])


def test_a_missing_image_leaves_other_pairs_as_they_are(anything, stack):
    without = stack.copy()
    without[..., 1] = nan
    found, expected = filtered(without, anything), filtered(stack, anything)
    assert np.isnan(found[..., [0, 2]]).all()
    np.testing.assert_array_equal(found[..., 1], expected[..., 1])


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (15, 3), (16, 16), (17, 33)])
def test_images_of_any_size(anything, shape):
    found = filtered(speckle((*shape, 3), seed=3), anything)
    np.testing.assert_allclose(np.abs(found), 1, atol=1e-4)
    assert np.isnan(filtered(np.full((*shape, 3), nan, np.complex64), anything)).all()


def test_where_the_network_says_nothing_a_sample_stays_as_it_is(tmp_path, stack):
    silent = {name: torch.zeros_like(value) for name, value in N2F().state_dict().items()}
    silent["head.bias"][8:] = -1e4  # no share of the input either
    path = str(tmp_path / "silent.safetensors")
    weights.save(path, silent, "n2f", {})
    found, trust = filtered(stack, path, with_trust=True)
    ok = ~missing_of(stack)
    with np.errstate(invalid="ignore"):
        raw = np.stack([stack[..., a] * stack[..., b].conj() for a, b in PAIRS], axis=-1)
    np.testing.assert_allclose(found[ok], raw[ok] / np.abs(raw[ok]), atol=1e-5)
    assert (trust[ok] == 0).all()


# ------------------------------------------------------------------------------------------------------- tiles


@given(n=st.integers(1, 3000), data=st.data())
def test_the_range_to_read_is_on_the_grid_and_wide_enough(n, data):
    start = data.draw(st.integers(0, n - 1))
    stop = data.draw(st.integers(start + 1, n))
    low, high = tiles.outer(start, stop, n)
    assert low % tiles.GRID == high % tiles.GRID == 0
    assert low == 0 or start - tiles.HALO - tiles.GRID < low <= start - tiles.HALO
    assert n <= high < n + tiles.GRID or stop + tiles.HALO <= high < stop + tiles.HALO + tiles.GRID
    assert high <= -(-n // tiles.GRID) * tiles.GRID


@pytest.mark.parametrize("axis", [0, 1])
def test_nothing_outside_the_range_to_read_has_an_influence(axis):
    """The halo is at least the receptive field, wherever on the grid: bit for bit, and it is no wider than need be."""
    torch.manual_seed(2)
    net = N2F().eval()
    n = 400
    shape = (n, 32) if axis == 0 else (32, n)
    gen = torch.Generator().manual_seed(3)
    unit, level = torch.randn((1, 2, *shape), generator=gen), torch.randn((1, 1, *shape), generator=gen)

    def influenced(start, low, high):
        far = torch.ones(n, dtype=bool)
        far[low:high] = False
        far = far[:, None] if axis == 0 else far
        with torch.inference_mode():
            changed = net(torch.where(far, 3 - unit, unit), torch.where(far, -level, level))
        return not torch.equal(changed.select(2 + axis, start), plain.select(2 + axis, start))

    with torch.inference_mode():
        plain = net(unit, level)
    for start in range(192, 192 + tiles.GRID):
        assert not influenced(start, *tiles.outer(start, start + 1, n))
    assert any(influenced(start, start - tiles.HALO, start + tiles.HALO) for start in range(192, 192 + tiles.GRID))


@pytest.mark.parametrize("chunks", [(100, 90), (37, 260), (311, 16)])
def test_the_command_gives_the_whole_image_everywhere(anything, tmp_path, chunks):
    """A10: no seams. REF-BUG: with the usual halo of 0, and tiles off the grid, each tile had values of its own."""
    rslc = speckle((310, 263, 2), seed=5)
    rslc[140:160, 100:130, 0] = nan
    n2f(
        rslc=write_array(tmp_path / "rslc.zarr", rslc, chunks=(64, 50, 1)),
        intf=str(tmp_path / "intf.zarr"),
        model=anything,
        chunks=chunks,
        out_chunks=chunks,
    )
    found = read_array(tmp_path / "intf.zarr")
    np.testing.assert_allclose(found, filtered(rslc, anything, pairs=[(0, 1)]), atol=1e-4)


@given(st.integers(1, 5000), st.integers(1, 10**9))
def test_groups_are_all_pairs_in_sequence_and_of_about_one_size(n_pairs, pair_bytes):
    found = tiles.groups(n_pairs, pair_bytes)
    assert [k for group in found for k in range(group.start, group.stop)] == list(range(n_pairs))
    sizes = {group.stop - group.start for group in found}
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) == 1 or max(sizes) * pair_bytes < tiles.RESULT_BYTES + pair_bytes


@pytest.mark.parametrize(
    ("pairs", "held"),
    [
        ([(k, k + 1) for k in range(9)], 2),  # in sequence: the one before, and the one that comes
        ([(0, k) for k in range(1, 9)], 2),  # the first stays, others go
        ([(k, k + 4) for k in range(4)], 5),
        ([(a, b) for a in range(6) for b in range(a + 1, 6)], 6),
        ([(7, 2)], 2),
    ],
)
def test_images_are_held_until_their_last_pair(pairs, held):
    assert tiles.most_held(pairs) == held


# --------------------------------------------------------------------------------------------------- the command


def test_outputs_are_those_of_the_array_function(anything, tmp_path, stack):
    n2f(
        rslc=write_array(tmp_path / "rslc.zarr", stack, chunks=(20, 30, 1)),
        intf=str(tmp_path / "intf.zarr"),
        trust=str(tmp_path / "trust.zarr"),
        image_pairs=PAIRS,
        model=anything,
        workers=Workers(n_workers=2),
    )
    found, trust = filtered(stack, anything, with_trust=True)
    np.testing.assert_array_equal(read_array(tmp_path / "intf.zarr"), found)
    np.testing.assert_array_equal(read_array(tmp_path / "trust.zarr"), trust)


def broken(path, kind):
    """Write a file that is no weights of this filter, and return its path and what is said of it."""
    if kind == "text":
        path.write_text("not weights")
        return "not a whole safetensors file"
    if kind == "n2ft":
        weights.save(str(path), N2F().state_dict(), "n2ft", {})
        return "weights of n2ft; expected n2f"
    weights.save(str(path), N2F().state_dict(), "n2f", {})
    data = bytearray(path.read_bytes())
    if kind == "short":
        path.write_bytes(data[:-100])
        return "not a whole safetensors file"
    if kind == "flipped bit":
        data[-1000] ^= 4
        path.write_bytes(data)
        return "damaged"
    if kind == "version":
        path.write_bytes(data.replace(b'"version":"1"', b'"version":"7"'))
        return "for version 7 of n2f; expected version 1"
    assert kind == "absent"
    path.unlink()
    return "No such file"


@pytest.mark.parametrize("kind", ["text", "n2ft", "short", "flipped bit", "version", "absent"])
def test_a_wrong_model_is_one_sentence_before_anything_is_written(tmp_path, kind):
    path = tmp_path / "model.safetensors"
    said = broken(path, kind)
    rslc = write_array(tmp_path / "rslc.zarr", speckle((4, 5, 2)))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UsageError) as caught:
        n2f(rslc=rslc, intf=str(tmp_path / "intf.zarr"), model=str(path))
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"n2f: model {path}")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"image_pairs": [(0, 5)]}, "expected images 0 to 2"),
        ({"chunks": (0, 5)}, "expected sizes of at least 1"),
        ({"chunks": (-2, 5)}, "expected sizes of at least 1"),
    ],
)
def test_wrong_arguments_are_one_sentence(anything, tmp_path, stack, changed, said):
    rslc = write_array(tmp_path / "rslc.zarr", stack)
    with pytest.raises(ValueError, match=said):
        n2f(rslc=rslc, intf=str(tmp_path / "intf.zarr"), model=anything, **changed)
    assert not (tmp_path / "intf.zarr").exists()


def test_one_image_has_no_pairs(anything, tmp_path):
    rslc = write_array(tmp_path / "rslc.zarr", speckle((4, 5, 1)))
    with pytest.raises(UsageError, match="has 1 images; expected at least 2, to make pairs"):
        n2f(rslc=rslc, intf=str(tmp_path / "intf.zarr"), model=anything)


def test_without_torch_there_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(weights, "find_spec", lambda name: None)
    rslc = write_array(tmp_path / "rslc.zarr", speckle((4, 5, 2)))
    with pytest.raises(UsageError, match="torch is not installed"):
        n2f(rslc=rslc, intf=str(tmp_path / "intf.zarr"))


# ------------------------------------------------------------------------------------------------ with our weights


@pytest.fixture(scope="module")
def ours():
    return weights.packaged("n2f")


def test_the_weights_are_small_and_say_how_they_were_made(ours):
    notes = weights.check(ours, "n2f")
    assert notes["license"] == "BSD-3-Clause"
    assert json.loads(notes["widths"]) == list(WIDTHS)
    assert sum(value.numel() for value in weights.load(ours, "n2f").values()) <= 1_500_000


@pytest.mark.parametrize("phase", [-2.5, 0.3, 3.1])
def test_a_constant_phase_stays(ours, phase):
    ones = np.ones((40, 50), np.complex64)
    found = filtered(np.stack([ones, np.exp(-1j * np.float32(phase)) * ones], axis=-1), ours, pairs=[(0, 1)])
    assert rms(np.angle(found) - phase) < 0.05


def test_an_offset_of_the_phase_is_an_offset_of_the_result(ours):
    """In the middle of the errors: nothing in the network makes it exact."""
    line, pixel = np.indices((96, 96))
    rslc = noisy(line / 5 - pixel / 9, 0.5, seed=6)
    plain = filtered(rslc, ours, pairs=[(0, 1)])
    for offset in (1.0, 2.5, -2.0):
        turned = filtered(rslc * np.complex64([1, np.exp(-1j * offset)]), ours, pairs=[(0, 1)])
        assert np.median(np.abs(np.angle(turned * plain.conj() * np.exp(-1j * offset)))) < 0.15


@pytest.mark.parametrize("period", [8, 12, 40])
@pytest.mark.parametrize("coh", [0.4, 0.7])
def test_fringes_have_less_noise_than_behind_any_boxcar(ours, period, coh):
    line, pixel = np.indices((160, 160))
    phase = 2 * pi / period * (0.8 * line + 0.6 * pixel)
    rslc = noisy(phase, coh, seed=7)
    found = filtered(rslc, ours, pairs=[(0, 1)])[..., 0]
    z = rslc[..., 0] * rslc[..., 1].conj()
    inner = (slice(8, -8), slice(8, -8))
    best = min(rms(np.angle(boxcar(z, half))[inner] - phase[inner]) for half in range(1, 6))
    assert rms(np.angle(found)[inner] - phase[inner]) < 0.85 * best


def test_trust_is_the_cosine_of_the_error_to_be_expected(ours):
    line, pixel = np.indices((160, 480))
    phase = line / 6 + pixel / 11
    coh = np.select([pixel < 160, pixel < 320], [0.0, 0.25], 0.7)
    found, trust = filtered(noisy(phase, coh, seed=8), ours, pairs=[(0, 1)], with_trust=True)
    right = np.cos(np.angle(found[..., 0]) - phase)
    for third in (slice(0, 120), slice(200, 280), slice(360, 480)):
        assert abs(trust[:, third].mean() - right[:, third].mean()) < 0.15
    assert trust[:, 360:].mean() > trust[:, 200:280].mean() > trust[:, :120].mean() + 0.5


@pytest.mark.parametrize("band", [1.0, 0.7])
def test_of_pure_noise_nothing_is_trusted(ours, band):
    """Two images that have nothing in common, as over water; oversampled ones look smoother than they are."""
    rng = np.random.default_rng(12)
    spectra = rng.normal(size=(2, 192, 192, 2)) @ [1, 1j]
    f = np.abs(np.fft.fftfreq(192))
    spectra[:, f > band / 2] = 0
    spectra[:, :, f > band / 2] = 0
    noise = np.moveaxis(np.fft.ifft2(spectra), 0, 2).astype(np.complex64)
    _, trust = filtered(noise, ours, pairs=[(0, 1)], with_trust=True)
    assert np.median(trust) < 0.25


def test_missing_samples_do_not_spread(ours):
    """A hole costs its neighbors little: they are as near to the truth as they were, within a tenth."""
    line, pixel = np.indices((128, 128))
    phase = line / 7 - pixel / 13
    rslc = noisy(phase, 0.6, seed=9)
    holed = rslc.copy()
    holed[50:70, 60:90, 1] = nan
    near = np.zeros((128, 128), bool)
    near[40:80, 50:100] = True
    near[50:70, 60:90] = False
    errors = [rms((np.angle(filtered(z, ours, pairs=[(0, 1)])[..., 0]) - phase)[near]) for z in (rslc, holed)]
    assert errors[1] < errors[0] * 1.1 + 0.02


def layer(folder, date, name):
    return np.fromfile(folder / f"{date}-coreg.znap" / name / "0.0", dtype=">f4").reshape(84, 338)


def test_a_real_pair_agrees_with_its_boxcar_where_coherence_is_high(ours, real_data):
    folder = real_data / "s1-amsterdam-slc-pair"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    ref = layer(folder, "20230331", "i_VV_31Mar2023") + 1j * layer(folder, "20230331", "q_VV_31Mar2023")
    sec = layer(folder, "20230319", "i_VV_19Mar2023") + 1j * layer(folder, "20230319", "q_VV_19Mar2023")
    found = filtered(np.stack([ref, sec], axis=-1).astype(np.complex64), ours, pairs=[(0, 1)])[..., 0]
    mean = boxcar(ref * sec.conj(), 2)
    coh = np.abs(mean) / np.sqrt(boxcar(np.abs(ref) ** 2, 2) * boxcar(np.abs(sec) ** 2, 2))
    sure = coh > 0.9
    assert sure.mean() > 0.02
    assert np.median(np.abs(np.angle(found * mean.conj()))[sure]) < 0.2
