"""Who does the geometry: moraine itself, or GAMMA's programs."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Literal, TypeAlias

from moraine_core import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

Engine: TypeAlias = Literal["auto", "native", "gamma"]

ENGINE_HELP = "who does the geometry; auto is gamma if its programs are on the PATH, and native otherwise"
SCRATCH_HELP = "folder of the files that GAMMA's programs write; needed where they are used"
THREADS_HELP = "threads of each program of GAMMA; at most 64 by default (threads)"


def scratch_folder(engine: Engine, programs: Sequence[str], scratch_dir: str | None) -> str:
    """Return the absolute folder for what GAMMA's programs write, or nothing where moraine does the geometry.

    Raises
    ------
    UsageError
        The programs are asked for and some are not on the PATH, or they are used and no folder is given.
    """
    missing = [program for program in programs if shutil.which(program) is None]
    if engine == "native" or (engine == "auto" and missing):
        return ""
    if missing:
        msg = (
            f"engine is gamma, but {', '.join(missing)} not found on the PATH; expected all of {', '.join(programs)}, "
            "or engine native"
        )
        raise UsageError(msg)
    if scratch_dir is None:
        msg = f"scratch_dir is missing; expected a folder for what {', '.join(programs)} write, or engine native"
        raise UsageError(msg)
    return os.path.abspath(scratch_dir)


def default_threads() -> int:
    """Return the threads of a program: as many as there are cores, at most 64."""
    return min(64, len(os.sched_getaffinity(0)))
