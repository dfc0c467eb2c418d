"""The command load-gamma-range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from moraine_core import MoraineError, Workers
from moraine_core.testing.data import read_array
from moraine_load.load_gamma_range import load_gamma_range
from moraine_load.par import read_slc_par, write_par


def run(stack, tmp_path, **options):
    out = str(tmp_path / "range.zarr")
    load_gamma_range(rslc_par=stack["rslc_par"], range_zarr=out, workers=Workers(n_workers=1), **options)
    return read_array(out)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_range_grows_by_the_spacing_from_the_near_range_on_all_lines(stack, tmp_path, dtype):
    found = run(stack, tmp_path, dtype=dtype, chunks=(5, 6))
    assert (found.shape, found.dtype) == ((13, 17), dtype)
    expected = (849968.0 + 4.0 * np.arange(17)).astype(dtype)
    np.testing.assert_array_equal(found, np.broadcast_to(expected, (13, 17)))


def test_a_header_without_a_range_is_told(stack, tmp_path):
    write_par(stack["rslc_par"], replace(read_slc_par(stack["rslc_par"]), near_range_slc=None))
    with pytest.raises(MoraineError, match=r"20210101\.rslc\.par: near_range_slc not found; expected a line"):
        run(stack, tmp_path)


def test_an_image_in_ground_range_is_refused(stack, tmp_path):
    write_par(stack["rslc_par"], replace(read_slc_par(stack["rslc_par"]), image_geometry="GROUND_RANGE"))
    with pytest.raises(MoraineError, match="image_geometry is GROUND_RANGE; expected SLANT_RANGE"):
        run(stack, tmp_path)


def test_a_missing_header_is_told(stack, tmp_path):
    with pytest.raises(MoraineError, match=r"load-gamma-range: rslc_par: .*nothing\.par does not exist"):
        run({"rslc_par": str(tmp_path / "nothing.par")}, tmp_path)
