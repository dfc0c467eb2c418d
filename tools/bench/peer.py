"""Another program to measure against: in an environment of its own, it answers what is asked line by line."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@contextmanager
def started(
    script: str, folder: Path, packages: Sequence[str], python: Path | None
) -> Iterator[Callable[[str], float]]:
    """Run a script beside this module; yield the function that hands it a line and returns the seconds it answers.

    Parameters
    ----------
    script
        Name of the script, which is started with `folder` as its argument.
    folder
        Where the data lie, and the environment if one is made.
    packages
        What the environment needs.
    python
        Python of an environment that has them; one is made by default.
    """
    if python is None:
        subprocess.run([sys.executable, "-m", "venv", str(folder / "peer")], check=True)
        python = folder / "peer" / "bin" / "python"
        subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
    process = subprocess.Popen(
        [str(python), str(Path(__file__).with_name(script)), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # loops are parallel; threads of BLAS within stall them
    )

    def ask(line: str) -> float:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            msg = f"{script} gave no answer to {line!r}; see its error above"
            raise RuntimeError(msg)
        return float(answer)

    with process:
        yield ask
        process.communicate()
