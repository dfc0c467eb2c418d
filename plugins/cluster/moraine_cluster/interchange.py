"""Starts the engine's interchange so that it ends with the process that started it, and not by a Ctrl-C before it.

Usage: ``python -m moraine_cluster.interchange PARENT``. When the interchange is gone, the jobs end by themselves.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask the kernel for a signal when the parent ends, and become the interchange."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)  # it was gone before
    os.setsid()  # a signal for the parent's group is the parent's business: it cancels the jobs with our help
    program = Path(sys.executable).with_name("interchange.py")
    os.execv(sys.executable, [sys.executable, str(program)])


if __name__ == "__main__":
    main()
