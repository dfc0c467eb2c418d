"""Small inputs for the commands of this family: what the conformance kit runs, and what a reader can try."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from moraine_core.testing.data import write_array


def gamma_mcf_pt(folder: Path, scale: int) -> dict[str, Any]:
    """Write a winding track of points that swell, with some phases missing, and a program in the place of GAMMA's."""
    n_points, nimages = 90 * scale, 4
    along = np.arange(n_points) / scale
    theta = np.sin(along / 9)[:, None] * np.arange(nimages) ** 2 + 0.1 * np.arange(nimages)
    ph = np.exp(1j * theta).astype(np.complex64)
    ph[5:9, 1] = np.nan
    ph[20, 2] = 0
    stand_in = folder / "mcf_pt"
    script = Path(__file__).parent / "gamma" / "stand_in.py"
    stand_in.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{script}" "$@"\n', encoding="utf-8")
    stand_in.chmod(0o755)
    return {
        "pc_x": write_array(folder / "x.zarr", 7.4 * np.arange(n_points), (40 * scale,)),
        "pc_y": write_array(folder / "y.zarr", 300 * np.sin(along / 5), (25 * scale,)),
        "ph": write_array(folder / "ph.zarr", ph, (30 * scale, 1)),
        "unw_ph": str(folder / "unw.zarr"),
        "image_pairs": "[[0, 1], [3, 1], [1, 2]]",
        "weight": write_array(folder / "weight.zarr", (along % 10 / 10).astype(np.float32), (45 * scale,)),
        "ref_point": 3,
        "program": str(stand_in),
        "out_chunks": 35 * scale,
    }


def mcf_pc(folder: Path, scale: int) -> dict[str, Any]:
    """Write a noisy bowl of random pixels in any order, with single points and a wall of them missing in images."""
    rng = np.random.default_rng(2)
    shape, nimages = (30 * scale, 25), 4
    pixels = rng.permutation(shape[0] * shape[1])[::3]
    gix = np.stack(np.unravel_index(pixels, shape), axis=1).astype(np.int32)
    away = (gix - np.array(shape) / 2) / [scale, 1]
    theta = np.outer(np.exp(-(away**2).sum(axis=1) / 80), 6.0 * np.arange(nimages))
    ph = np.exp(1j * (theta + rng.normal(0, 0.4, theta.shape))).astype(np.complex64)
    ph[rng.random(ph.shape) < 0.02] = np.nan
    ph[abs(gix[:, 0] - 10 * scale) < 3, 2] = 0
    n_points = len(gix)
    return {
        "gix": write_array(folder / "gix.zarr", gix, (70 * scale, 2)),
        "ph": write_array(folder / "ph.zarr", ph, (50 * scale, 1)),
        "unw_ph": str(folder / "unw.zarr"),
        "image_pairs": "[[0, 1], [3, 1], [1, 2]]",
        "range_pixel_spacing": 3.0,
        "azimuth_pixel_spacing": 14.0,
        "weight": write_array(folder / "weight.zarr", rng.random(n_points, np.float32), (60 * scale,)),
        "variance": write_array(folder / "variance.zarr", rng.uniform(0.1, 0.4, n_points), (55 * scale,)),
        "earth_cost": 2,
        "ref_point": 7,
        "island": str(folder / "island.zarr"),
        "out_chunks": 65 * scale,
    }


def emcf_pc(folder: Path, scale: int) -> dict[str, Any]:
    """Write a noisy moving bowl, pairs in any order and direction, dates, and some points that are missing or twice."""
    rng = np.random.default_rng(6)
    shape, days = (30 * scale, 25), np.array([0, 12, 24, 60, 72])
    pixels = rng.permutation(shape[0] * shape[1])[::3]
    gix = np.stack(np.unravel_index(pixels, shape), axis=1).astype(np.int32)
    gix[4] = gix[9]
    away = (gix - np.array(shape) / 2) / [scale, 1]
    theta = np.outer(np.exp(-(away**2).sum(axis=1) / 80), 0.2 * days)
    ph = np.exp(1j * (theta + rng.normal(0, 0.6, theta.shape))).astype(np.complex64)
    ph[rng.random(ph.shape) < 0.02] = np.nan
    ph[abs(gix[:, 0] - 10 * scale) < 3, 2] = 0
    dates = [f"2020{month}" for month in ("0101", "0113", "0125", "0301", "0313")]
    (folder / "meta.toml").write_text(f"dates = {dates}\n", encoding="utf-8")
    return {
        "gix": write_array(folder / "gix.zarr", gix, (70 * scale, 2)),
        "ph": write_array(folder / "ph.zarr", ph, (50 * scale, 1)),
        "unw_ph": str(folder / "unw.zarr"),
        "image_pairs": "[[0, 1], [2, 1], [0, 2], [1, 3], [3, 2], [3, 4], [4, 2]]",
        "range_pixel_spacing": 3.0,
        "azimuth_pixel_spacing": 14.0,
        "temporal_cost": "length",
        "dates": str(folder / "meta.toml"),
        "weight": write_array(folder / "weight.zarr", rng.random(len(gix), np.float32), (60 * scale,)),
        "earth_cost": 2,
        "ref_point": 7,
        "island": str(folder / "island.zarr"),
        "out_chunks": 65 * scale,
    }


def unwrap_correct_closure_pc(folder: Path, scale: int) -> dict[str, Any]:
    """Write unwrapped pairs of a bowl in two regions, one of which is off in one pair; some single values are, too."""
    rng = np.random.default_rng(5)
    n_points, nimages = 250 * scale, 5
    pairs = np.array([[0, 1], [1, 2], [0, 2], [3, 2], [3, 4], [2, 4]])
    gix = np.stack(np.divmod(rng.permutation(n_points), 10), axis=1).astype(np.int32)
    is_far = gix[:, 0] >= 14 * scale
    gix[is_far, 0] += 100 * scale
    true = np.outer(np.hypot(*(gix / [scale, 1] - 7).T), np.arange(nimages)) * 0.4
    wrong = 2 * np.pi * rng.choice(3, (n_points, len(pairs)), p=(0.96, 0.02, 0.02))
    wrong[is_far, 2] += 2 * np.pi
    unw = (true[:, pairs[:, 0]] - true[:, pairs[:, 1]] + wrong).astype(np.float32)
    ph = np.exp(1j * true).astype(np.complex64)
    ph[11:14, 3] = np.nan
    ph[0, 1] = 0
    unw[20:22] = np.nan
    return {
        "gix": write_array(folder / "gix.zarr", gix, (60 * scale, 2)),
        "ph": write_array(folder / "ph.zarr", ph, (40 * scale, 1)),
        "unw_ph": write_array(folder / "unw.zarr", unw, (70 * scale, 1)),
        "image_pairs": str(pairs.tolist()),
        "ts": str(folder / "ts.zarr"),
        "range_pixel_spacing": 5.0,
        "azimuth_pixel_spacing": 14.0,
        "ref": 1,
        "misclosure_fraction": str(folder / "misclosure.zarr"),
        "change_fraction": str(folder / "change.zarr"),
        "correction": str(folder / "correction.zarr"),
        "region": str(folder / "region.zarr"),
        "out_chunks": 80 * scale,
    }
