"""Small inputs for the commands of this family: what the conformance kit runs, and what a reader can try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.testing.data import speckle, write_array

if TYPE_CHECKING:
    from pathlib import Path


def shp_test(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack of two fields of speckle, with missing samples and a pixel without any."""
    rslc = speckle((23 * scale, 19 * scale, 9), seed=1)
    rslc[:, 8 * scale :] *= 3
    rslc[3:9, 4:11, :2] = 0
    rslc[2, 3] = np.nan
    rslc[11, ::5, 4] = np.nan
    return {
        "rslc": write_array(folder / "rslc.zarr", rslc, chunks=(8 * scale, 6 * scale, 1)),
        "is_shp": str(folder / "is_shp.zarr"),
        "shp_num": str(folder / "shp_num.zarr"),
        "az_half_win": 2,
        "r_half_win": 3,
        "pvalue": str(folder / "pvalue.zarr"),
        "calibrate": True,
        "chunks": (9 * scale, 7 * scale),
    }


def select_shp(folder: Path, scale: int) -> dict[str, Any]:
    """Write p values, some of them missing."""
    pvalue = np.random.default_rng(2).random((13 * scale, 11 * scale, 3, 5), dtype=np.float32)
    pvalue[4, 5] = np.nan
    pvalue[0, :, 0] = np.nan
    return {
        "pvalue": write_array(folder / "pvalue.zarr", pvalue, chunks=(5 * scale, 4 * scale, 3, 5)),
        "is_shp": str(folder / "is_shp.zarr"),
        "shp_num": str(folder / "shp_num.zarr"),
        "alpha": 0.3,
    }


def empirical_co_pc(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack with missing samples, points in some of its raster chunks, and their homogeneous pixels."""
    shape, chunks = (17 * scale, 118 * scale), (6 * scale, 40 * scale)
    rslc = speckle((*shape, 5), seed=3)
    rslc[2:4, 5:9, 1] = np.nan
    rslc[12, ::3, 3] = 0
    is_point = np.random.default_rng(4).random(shape) < 0.1
    is_point[6 * scale : 12 * scale, : 40 * scale] = False
    gix = np.argwhere(is_point).astype(np.int32)
    is_shp = np.random.default_rng(5).random((len(gix), 3, 5)) < 0.7
    is_shp[3] = False
    (folder / "is_shp").mkdir()
    number = gix[:, 0] // chunks[0] * -(-shape[1] // chunks[1]) + gix[:, 1] // chunks[1]
    for chunk in np.unique(number):
        write_array(folder / "is_shp" / f"{chunk}.zarr", is_shp[number == chunk])
    return {
        "rslc": write_array(folder / "rslc.zarr", rslc, chunks=(5 * scale, 60 * scale, 1)),
        "is_shp_dir": str(folder / "is_shp"),
        "gix": write_array(folder / "gix.zarr", gix, chunks=(50 * scale, 2)),
        "coh_dir": str(folder / "coh"),
        "n_looks_dir": str(folder / "n_looks"),
        "image_pairs": "[[0, 1], [0, 4], [1, 2], [2, 3]]",
        "chunks": chunks,
    }


def empirical_co_emi_temp_coh_pc(folder: Path, scale: int) -> dict[str, Any]:
    """Write the inputs of `empirical_co_pc`, and ask for every result."""
    arguments = empirical_co_pc(folder, scale)
    shared = {name: arguments[name] for name in ("rslc", "is_shp_dir", "gix", "chunks")}
    outputs = ("ph_dir", "t_coh_dir", "t_coh_w_dir", "eff_n_pairs_dir", "n_components_dir")
    return {**shared, **{name: str(folder / name.removesuffix("_dir")) for name in outputs}, "ref": 1, "batch_size": 7}


def emi(folder: Path, scale: int) -> dict[str, Any]:
    """Write coherence of 11 looks, with missing pairs and an image that one point lacks."""
    looks = speckle((37 * scale, 11, 6), seed=6)
    looks[..., 1:] += looks[..., :1]
    products = np.einsum("pli,plj->pij", looks, looks.conj())
    power = np.sqrt(np.einsum("pii->pi", products).real)
    matrix = products / (power[:, :, None] * power[:, None, :])
    matrix[2, 1, 4] = np.nan
    matrix[3, 2, :] = matrix[3, :, 2] = np.nan
    first, second = np.triu_indices(6, 1)
    coh = matrix[:, first, second].astype(np.complex64)
    return {
        "coh": write_array(folder / "coh.zarr", coh, chunks=(9 * scale, 1)),
        "ph": str(folder / "ph.zarr"),
        "ref": 1,
        "chunks": 8 * scale,
    }


def ds_temp_coh(folder: Path, scale: int) -> dict[str, Any]:
    """Write coherence of some pairs, phases that fit it more or less, and looks; some of each are missing."""
    rng = np.random.default_rng(7)
    pairs = np.array([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [2, 4], [3, 4], [4, 5]])
    ph = np.exp(1j * rng.uniform(-np.pi, np.pi, (41 * scale, 6)))
    noise = rng.random((41 * scale, 8)) * np.exp(1j * rng.normal(size=(41 * scale, 8)))
    coh = noise * ph[:, pairs[:, 0]] * ph[:, pairs[:, 1]].conj()
    looks = rng.uniform(1, 60, 41 * scale)
    coh[3, 2], ph[5, 1], looks[7] = np.nan, np.nan, 0
    return {
        "coh": write_array(folder / "coh.zarr", coh.astype(np.complex64), chunks=(12 * scale, 1)),
        "ph": write_array(folder / "ph.zarr", ph.astype(np.complex64), chunks=(9 * scale, 1)),
        "t_coh": str(folder / "t_coh.zarr"),
        "t_coh_w": str(folder / "t_coh_w.zarr"),
        "eff_n_pairs": str(folder / "eff_n_pairs.zarr"),
        "n_components": str(folder / "n_components.zarr"),
        "n_looks": write_array(folder / "n_looks.zarr", looks.astype(np.float32), chunks=(16 * scale,)),
        "image_pairs": str(pairs.tolist()),
        "alpha": 0.1,
    }
