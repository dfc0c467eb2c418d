"""Small inputs for the commands of this family: what the conformance kit runs, and what a reader can try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_core.testing.data import speckle, write_array
from moraine_points.kernels import pc_gix as grid_index
from moraine_points.kernels import pc_hix as hilbert_index

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def _cloud(scale: int) -> tuple[NDArray[np.int32], tuple[int, int]]:
    """Return every third pixel of a raster in random order, and the raster's shape."""
    shape = (37 * scale, 23 * scale)
    pixels = np.random.default_rng(3).permutation(shape[0] * shape[1])[::3]
    return np.stack(np.unravel_index(pixels, shape), axis=1).astype(np.int32), shape


def pc_hix(folder: Path, scale: int) -> dict[str, Any]:
    """Write a cloud without order."""
    gix, shape = _cloud(scale)
    path = write_array(folder / "gix.zarr", gix, chunks=(50 * scale, 2))
    return {"gix": path, "hix": str(folder / "hix.zarr"), "shape": shape, "chunks": 60 * scale}


def pc_sort(folder: Path, scale: int) -> dict[str, Any]:
    """Write a cloud without order with a stack, a window array and its gix as data."""
    gix, shape = _cloud(scale)
    block = 50 * scale
    windows = np.random.default_rng(4).random((len(gix), 3, 5)) < 0.5
    return {
        "idx_in": write_array(folder / "hix_in.zarr", hilbert_index(gix, shape), chunks=(block,)),
        "idx": str(folder / "hix.zarr"),
        "pc_in": [
            write_array(folder / "rslc_in.zarr", speckle((len(gix), 4), seed=5), chunks=(block, 1)),
            write_array(folder / "is_shp_in.zarr", windows, chunks=(block, 3, 5)),
            write_array(folder / "gix_in.zarr", gix, chunks=(block, 2)),
        ],
        "pc": [str(folder / name) for name in ("rslc.zarr", "is_shp.zarr", "gix.zarr")],
        "shape": shape,
        "key": str(folder / "key.zarr"),
    }


def pc_logic_ras(folder: Path, scale: int) -> dict[str, Any]:
    """Write a raster with missing values, a third of whose pixels are chosen."""
    ras = np.random.default_rng(6).random((41 * scale, 29 * scale), dtype=np.float32)
    ras[::7, ::5] = np.nan
    path = write_array(folder / "adi.zarr", ras, chunks=(9 * scale, 8 * scale))
    return {"ras": path, "gix": str(folder / "gix.zarr"), "operation": "ras < 0.3", "chunks": 50 * scale}


def ras2pc(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack, a window array and a height, and points in the order of the Hilbert curve."""
    gix, shape = _cloud(scale)
    hix = np.sort(hilbert_index(gix, shape))
    windows = np.random.default_rng(7).random((*shape, 3, 5), dtype=np.float32)
    height = np.random.default_rng(8).integers(-5, 300, shape, dtype=np.int16)
    chunks = (9 * scale, 8 * scale)
    return {
        "idx": write_array(folder / "hix.zarr", hix, chunks=(50 * scale,)),
        "ras": [
            write_array(folder / "rslc.zarr", speckle((*shape, 3), seed=9), chunks=(*chunks, 1)),
            write_array(folder / "p.zarr", windows, chunks=(*chunks, 3, 5)),
            write_array(folder / "hgt.zarr", height, chunks=chunks),
        ],
        "pc": [str(folder / f"pc_{name}.zarr") for name in ("rslc", "p", "hgt")],
        "chunks": 60 * scale,
    }


def pc_gix(folder: Path, scale: int) -> dict[str, Any]:
    """Write the Hilbert index of a cloud without order."""
    gix, shape = _cloud(scale)
    path = write_array(folder / "hix.zarr", hilbert_index(gix, shape), chunks=(50 * scale,))
    return {"hix": path, "gix": str(folder / "gix.zarr"), "shape": shape, "chunks": 60 * scale}


def gix2bool(folder: Path, scale: int) -> dict[str, Any]:
    """Write a cloud without order."""
    gix, shape = _cloud(scale)
    path = write_array(folder / "gix.zarr", gix, chunks=(50 * scale, 2))
    return {"gix": path, "is_pc": str(folder / "is_pc.zarr"), "shape": shape, "chunks": (9 * scale, 8 * scale)}


def bool2gix(folder: Path, scale: int) -> dict[str, Any]:
    """Write a mask of which a third is true."""
    mask = np.random.default_rng(10).random((41 * scale, 29 * scale)) < 0.3
    path = write_array(folder / "is_pc.zarr", mask, chunks=(9 * scale, 8 * scale))
    return {"is_pc": path, "gix": str(folder / "gix.zarr"), "chunks": 50 * scale}


def pc_logic_pc(folder: Path, scale: int) -> dict[str, Any]:
    """Write a cloud with missing values, of whose points a third are chosen."""
    gix, _ = _cloud(scale)
    coherence = np.random.default_rng(11).random(len(gix), dtype=np.float32)
    coherence[::7] = np.nan
    return {
        "idx_in": write_array(folder / "gix_in.zarr", gix, chunks=(50 * scale, 2)),
        "pc_in": write_array(folder / "t_coh.zarr", coherence, chunks=(70 * scale,)),
        "idx": str(folder / "gix.zarr"),
        "operation": "pc_in > 0.6",
        "chunks": 30 * scale,
    }


def _two_clouds(folder: Path, scale: int, trailing: tuple[int, ...]) -> dict[str, Any]:
    """Write the indices of two sorted clouds that share a third of their points, and data of both."""
    gix, shape = _cloud(scale)
    hix = hilbert_index(gix, shape)
    third = len(gix) // 3
    arguments: dict[str, Any] = {"idx": str(folder / "hix.zarr"), "pc": [str(folder / "rslc.zarr")]}
    for cloud, points, block in (("1", slice(0, 2 * third), 50 * scale), ("2", slice(third, None), 40 * scale)):
        index = np.sort(hix[points])
        data = speckle((len(index), *trailing), seed=int(cloud))
        arguments[f"idx{cloud}"] = write_array(folder / f"hix{cloud}.zarr", index, chunks=(block,))
        arguments[f"pc{cloud}"] = [write_array(folder / f"rslc{cloud}.zarr", data, chunks=(block, 1))]
    return {**arguments, "shape": shape}


def pc_union(folder: Path, scale: int) -> dict[str, Any]:
    """Write two clouds that share points, with a stack of each."""
    return _two_clouds(folder, scale, (3,))


def pc_intersect(folder: Path, scale: int) -> dict[str, Any]:
    """Write two clouds that share points, with a stack of each; the second is preferred."""
    return {**_two_clouds(folder, scale, (3,)), "prefer_1": False}


def pc_diff(folder: Path, scale: int) -> dict[str, Any]:
    """Write two clouds that share points, with a stack of the first."""
    arguments = _two_clouds(folder, scale, (3,))
    del arguments["pc2"]
    return arguments


def pc_select_data(folder: Path, scale: int) -> dict[str, Any]:
    """Write a sorted cloud with a stack, a window array and its gix, and a third of its points."""
    gix, shape = _cloud(scale)
    hix = np.sort(hilbert_index(gix, shape))
    chosen = np.flatnonzero(np.random.default_rng(12).random(len(hix)) < 0.3)
    windows = np.random.default_rng(13).random((len(hix), 3, 5), dtype=np.float32)
    block = 50 * scale
    return {
        "idx_in": write_array(folder / "hix_in.zarr", hix, chunks=(block,)),
        "idx": write_array(folder / "hix.zarr", hix[chosen], chunks=(30 * scale,)),
        "pc_in": [
            write_array(folder / "rslc_in.zarr", speckle((len(hix), 4), seed=14), chunks=(block, 1)),
            write_array(folder / "p_in.zarr", windows, chunks=(block, 3, 5)),
            write_array(folder / "gix_in.zarr", grid_index(hix, shape), chunks=(block, 2)),
        ],
        "pc": [str(folder / name) for name in ("rslc.zarr", "p.zarr", "gix.zarr")],
        "shape": shape,
    }


def ras2pc_ras_chunk(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack, a window array and a height, and points in the order of the raster."""
    gix, shape = _cloud(scale)
    gix = gix[np.lexsort((gix[:, 1], gix[:, 0]))]
    windows = np.random.default_rng(10).random((*shape, 3, 5)) < 0.5
    height = np.random.default_rng(11).integers(-5, 300, shape, dtype=np.int16)
    chunks = (9 * scale, 8 * scale)
    return {
        "gix": write_array(folder / "gix.zarr", gix, chunks=(50 * scale, 2)),
        "ras": [
            write_array(folder / "rslc.zarr", speckle((*shape, 3), seed=12), chunks=(*chunks, 1)),
            write_array(folder / "is_shp.zarr", windows, chunks=(*chunks, 3, 5)),
            write_array(folder / "hgt.zarr", height, chunks=chunks),
        ],
        "pc": [str(folder / f"pc_{name}") for name in ("rslc", "is_shp", "hgt")],
        "key": str(folder / "key.zarr"),
        "chunks": (18 * scale, 8 * scale),
    }


def pc_concat(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack and a window array in parts of several sizes, and two keys."""
    sizes = {0: 40 * scale, 2: 7 * scale, 10: 60 * scale, 9: 33 * scale}
    for number, size in sizes.items():
        windows = np.random.default_rng(number).random((size, 3, 5), dtype=np.float32)
        write_array(folder / "parts_ph" / f"{number}.zarr", speckle((size, 4), seed=number), chunks=(size, 1))
        write_array(folder / "parts_p" / f"{number}.zarr", windows, chunks=(size, 3, 5))
    n_points = sum(sizes.values())
    rng = np.random.default_rng(13)
    return {
        "pcs": [str(folder / name) for name in ("parts_ph", "parts_p")],
        "pc": [str(folder / name) for name in ("ph.zarr", "p.zarr")],
        "key": [
            write_array(folder / f"key{number}.zarr", rng.permutation(n_points), chunks=(50 * scale,))
            for number in (1, 2)
        ],
        "chunks": 45 * scale,
    }


def pc2ras(folder: Path, scale: int) -> dict[str, Any]:
    """Write a stack, a window array and a mask of points in the order of the Hilbert curve."""
    gix, shape = _cloud(scale)
    hix = np.sort(hilbert_index(gix, shape))
    n_points, block = len(hix), 50 * scale
    windows = np.random.default_rng(14).random((n_points, 3, 5), dtype=np.float32)
    return {
        "idx": write_array(folder / "hix.zarr", hix, chunks=(block,)),
        "pc": [
            write_array(folder / "pc_ph.zarr", speckle((n_points, 3), seed=15), chunks=(block, 1)),
            write_array(folder / "pc_p.zarr", windows, chunks=(block, 3, 5)),
            write_array(folder / "pc_is_ps.zarr", windows[:, 0, 0] < 0.5, chunks=(block,)),
        ],
        "ras": [str(folder / f"{name}.zarr") for name in ("ph", "p", "is_ps")],
        "shape": shape,
        "chunks": (16 * scale, 9 * scale),
    }
