"""The peer of the science benchmarks, in an environment of its own: ``science_peer.py FOLDER`` reads kernel names.

For each name on standard input it calls the public function of the package moraine 0.9.0 on the arrays in the folder
and prints the seconds that took. Results are kept in the folder, for the comparison of accuracy.
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

warnings.filterwarnings("ignore")


def kernels(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return a call for each kernel; arrays are loaded when it is first asked for."""
    import moraine as peer

    @cache
    def load(name: str) -> Any:
        return np.load(folder / f"{name}.npy")

    def shp() -> Any:
        p_values = peer.ks_test(np.abs(load("stack")), 5, 5)
        return peer.select_shp(p_values, 0.05)[1]

    calls: dict[str, Callable[[], Any]] = {"amp-disp": lambda: peer.amp_disp(load("stack")), "shp-test": shp}
    for n_images in (30, 92):
        names = [f"{kind}{n_images}" for kind in ("slc", "coh", "ph")]

        def coherence(slc: str = names[0]) -> Any:
            return peer.emperical_co_pc(load(slc), load("gix"), load("is_shp"))

        def emi(coh: str = names[1]) -> Any:
            return peer.emi(load(coh))[0]

        def quality(coh: str = names[1], ph: str = names[2]) -> Any:
            return peer.ds_temp_coh(load(coh), load(ph))

        calls |= {f"coherence{n_images}": coherence, f"emi{n_images}": emi, f"ds-temp-coh{n_images}": quality}
    return calls


def main(folder: str) -> None:
    """Answer until the input ends."""
    known = kernels(Path(folder))
    for line in sys.stdin:
        name = line.strip()
        known[name]()  # compiled, and the arrays loaded
        start = time.perf_counter()
        result = known[name]()
        print(time.perf_counter() - start, flush=True)
        np.save(Path(folder) / f"peer_{name}.npy", np.asarray(result))


if __name__ == "__main__":
    main(sys.argv[1])
