"""The peers of the unwrapping benchmark, in an environment of their own: ``unwrap_peer.py FOLDER`` reads jobs.

Each line on standard input is ``PROGRAM SCENE``; the arrays of a scene lie in ``FOLDER/SCENE.npz``. It calls the public
functions of the program, prints the seconds that took, and keeps the result in ``FOLDER/PROGRAM_SCENE.npy``.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

THREADS = 2

warnings.filterwarnings("ignore")


def whirlwind(scene: Mapping[str, Any]) -> Any:
    """Unwrap the first interferogram; the program is given the variance of every point."""
    import whirlwind as peer

    return peer.unwrap_sparse(scene["points"], scene["phase"], scene["variance"])


def moraine(scene: Mapping[str, Any]) -> Any:
    """Unwrap the first interferogram with the package moraine 0.9.0: Qhull and OR-Tools."""
    import moraine as peer

    x, y = scene["points"].T
    return peer.mcf_pc(x, y, scene["phasor"])


def spurt(scene: Mapping[str, Any]) -> Any:
    """Unwrap all interferograms of each image with the next three by EMCF."""
    from spurt.graph import DelaunayGraph, Hop3Graph
    from spurt.io import Irreg3DInput
    from spurt.mcf import ORMCFSolver
    from spurt.workflows.emcf import Solver, SolverSettings

    ph, points = scene["ph"], scene["points"].astype(int)
    stack = Irreg3DInput(np.ascontiguousarray(ph.T), points)
    graphs = DelaunayGraph(points), Hop3Graph(ph.shape[1])
    settings = SolverSettings(t_worker_count=THREADS, s_worker_count=THREADS)
    return -Solver(*map(ORMCFSolver, graphs), settings).unwrap_cube(stack).T  # its pairs are later minus earlier


PROGRAMS = {"whirlwind": whirlwind, "moraine": moraine, "spurt": spurt}


def main(folder: str) -> None:
    """Answer until the input ends."""
    logging.disable(logging.INFO)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the programs print is no answer

    @cache
    def scene(name: str) -> Mapping[str, Any]:
        with np.load(Path(folder) / f"{name}.npz") as arrays:
            return dict(arrays)

    for line in sys.stdin:
        program, name = line.split()
        arrays = scene(name)
        start = time.perf_counter()
        result = PROGRAMS[program](arrays)
        took = time.perf_counter() - start
        np.save(Path(folder) / f"{program}_{name}.npy", np.asarray(result))
        print(took, file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
