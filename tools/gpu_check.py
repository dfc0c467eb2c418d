"""Runs every GPU path on a machine with a GPU, compares with the CPU, and prints a table with times.

    pip install -r requirements-all.txt "cupy-cuda12x[ctk]"    # or the cupy of your CUDA version
    python tools/gpu_check.py

It installs nothing, takes less than 5 minutes, and exits with 1 if a check failed. The checks are in the folder `gpu`.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import sys
import tempfile
import time
import traceback
from pathlib import Path

from gpu.registry import CHECKS, Setting

MODULES = ("machine", "commands", "kernels", "speed", "filters")
"""Where the checks are, in the order in which they run: from those of kernels on this process uses the GPU itself."""

LIMIT_SECONDS = 290
"""Whatever hangs is ended then, with a traceback of all threads."""


def main() -> int:
    """Run the checks and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="WORD", default="", help="run only checks whose name holds this word")
    parser.add_argument("--side", type=int, default=1000, help="lines and pixels of the simulated stack (pixels)")
    parser.add_argument("--list", action="store_true", help="print the names of the checks")
    chosen = parser.parse_args()
    for module in MODULES:
        importlib.import_module(f"gpu.{module}")
    checks = [one for one in CHECKS if chosen.only in one.name]
    if chosen.list:
        print("\n".join(one.name for one in checks))
        return 0
    if problem := unusable():
        sys.exit(f"gpu_check: {problem}")
    faulthandler.dump_traceback_later(LIMIT_SECONDS, exit=True)
    print("| check | result | seconds | note |\n| --- | --- | --- | --- |")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="moraine-gpu-") as folder:
        for one in checks:
            start = time.perf_counter()
            try:
                note, result = one.run(Setting(Path(folder), chosen.side)), "ok"
            except Exception as error:  # noqa: BLE001 - one failing check must not stop the others
                traceback.print_exc()
                note, result = f"{type(error).__name__}: {error}".replace("\n", " ").replace("|", "/"), "FAILED"
                failed += 1
            print(f"| {one.name} | {result} | {time.perf_counter() - start:.2f} | {note} |", flush=True)
    return 1 if failed else 0


def unusable() -> str:
    """Return why nothing can be checked here, or nothing."""
    from importlib.util import find_spec

    from moraine_core.device import visible_gpus
    from moraine_core.errors import DeviceError

    try:
        visible_gpus()
    except DeviceError as error:
        return str(error)
    return "" if find_spec("cupy") else "cupy is not installed; see the top of this file"


if __name__ == "__main__":
    sys.exit(main())
