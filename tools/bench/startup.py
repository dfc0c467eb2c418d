"""Start-up: `moraine --help` and `moraine amp-disp --help` against a typer hello-world with 40 lazy commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row, in_turn, seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

HEAVY = {"numba", "scipy", "torch", "cupy", "matplotlib"}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--starts", type=int, default=15, help="pairs of process starts (count)")


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Measure."""
    moraine = str(Path(sys.executable).with_name("moraine"))
    hello = [sys.executable, str(Path(__file__).with_name("hello.py"))]
    for ours, peer in ((["--help"], ["--help"]), (["amp-disp", "--help"], ["hello-07", "--help"])):
        name = f"`moraine {' '.join(ours)}` against a typer hello-world"
        for what, bare, bar in (("", False, 1.5), (" without rich, listing names only", True, None)):
            times = in_turn(
                lambda w=ours: _start([moraine, *w]), lambda w=peer, b=bare: _start([*hello, *w], bare=b), chosen.starts
            )
            yield Row(name + what, *times, "s", bar)
        yield Row(f"heavy libraries it imports ({', '.join(sorted(HEAVY))})", [len(_heavy_imports(ours))], [], "", 0)


def _start(command: Sequence[str], *, bare: bool = False) -> float:
    environ = os.environ | ({"HELLO_BARE": "1"} if bare else {})
    return seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environ))


def _heavy_imports(words: Sequence[str]) -> set[str]:
    """Return which heavy libraries a command line imports, by the interpreter's own account."""
    command = [sys.executable, "-X", "importtime", "-m", "moraine_core", *words]
    done = subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    if "moraine_core" not in imported:
        msg = "the interpreter listed no imports"
        raise RuntimeError(msg)
    return imported & HEAVY
