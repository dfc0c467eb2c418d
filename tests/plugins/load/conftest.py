"""What the tests of the loaders share: stacks in GAMMA's format and stand-ins for its programs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from moraine_load import examples

if TYPE_CHECKING:
    from pathlib import Path

STAND_IN = '''#!{python}
"""Stands in for GAMMA's programs: checks its arguments, notes the call, and writes something that can be told."""
import os, pathlib, struct, sys

program, args = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
with open({calls!r}, "a") as file:
    file.write(program + chr(9) + chr(9).join(args) + chr(10))
print("this is", program, "with", os.environ["OMP_NUM_THREADS"], "threads")

def par(path, *keys):
    entries = dict(line.split(":", 1) for line in open(path) if ":" in line)
    return [int(entries[key].split()[0]) for key in keys]

def floats(values, code="f"):
    return struct.pack(">%d%s" % (len(values), code), *values)

def expect(condition, text):
    if not condition:
        sys.exit("stand-in: " + text)

if os.environ.get("STAND_IN_FAILS") == program:
    sys.exit("stand-in: no licence")
if program == "create_offset":
    ref, other, off, *rest = args
    expect(rest == ["1", "1", "1", "0"], "arguments")
    par(ref, "range_samples"), par(other, "range_samples")
    open(off, "w").write("offsets of " + other)
elif program == "phase_sim_orb":
    ref, other, off, hgt, out, again, *rest = args
    expect(rest == ["-", "-", "1", "1"] and again == ref, "arguments")
    expect(open(off).read() == "offsets of " + other, "create_offset has not run")
    lines, width = par(ref, "azimuth_lines", "range_samples")
    expect(os.path.getsize(hgt) == 4 * lines * width, "size of heights")
    values = [0.01 * (k + 1) for k in range(lines * width)]
    values[width] = 0.0
    if os.environ.get("STAND_IN_TRUNCATES"):
        values.pop()
    open(out, "wb").write(floats(values))
elif program == "mkgrid":
    out, width, lines, *rest = args
    expect(rest == ["1", "1"], "arguments")
    grid = [v for i in range(int(lines)) for j in range(int(width)) for v in (j, i)]
    open(out, "wb").write(floats(grid, "i"))
elif program == "pt2geo":
    grid, dash, slc, dash2, hgt, dem, diff, one, one2, dash3, dash4, coordinates, heights = args
    expect([dash, dash2, one, one2, dash3, dash4] == ["-", "-", "1", "1", "-", "-"], "arguments")
    lines, width = par(slc, "azimuth_lines", "range_samples")
    pairs = struct.unpack(">%di" % (2 * lines * width), open(grid, "rb").read())
    par(dem, "width"), open(diff)
    places = [v for j, i in zip(pairs[::2], pairs[1::2]) for v in (0.1 * j, 0.0 if j == 0 else 45 + 0.1 * i)]
    if os.environ.get("STAND_IN_NOWHERE"):
        places = [0.0] * len(places)
    open(coordinates, "wb").write(floats(places, "d"))
    open(heights, "wb").write(open(hgt, "rb").read())
elif program == "geocode":
    lt, source, map_width, out, width, lines = args
    values = struct.unpack(">%df" % (os.path.getsize(source) // 4), open(source, "rb").read())
    expect(os.path.getsize(lt) == 8 * len(values) and len(values) % int(map_width) == 0, "size of the map")
    count = int(width) * int(lines)
    open(out, "wb").write(floats([0.0] + [values[len(values) // 2]] * (count - 1)))
elif program == "base_calc":
    table, ref, bperp, itab, dash = args
    expect(dash == "-", "arguments")
    dates = [pathlib.Path(line.split(".rslc.par")[0]).name[:8] for line in open(table)]
    dates = [line.rpartition(os.sep)[2][:8] for line in open(table)]
    reference = pathlib.Path(ref).name[:8]
    rows = [(date, 10.5 * (int(date[4:]) - int(reference[4:]))) for date in dates]
    text = "".join("%d %s %s %.3f 12.0" % (k, reference, d, b) + chr(10) for k, (d, b) in enumerate(reversed(rows)))
    open(bperp, "w").write(os.environ.get("STAND_IN_TABLE", text))
    open(itab, "w").write("1 1 1 1")
else:
    expect(False, "unknown program")
'''


class Programs:
    """Stand-ins for GAMMA's programs in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls_file = folder.parent / "calls.txt"
        folder.mkdir()

    def add(self, *names: str) -> None:
        for name in names:
            file = self.folder / name
            file.write_text(STAND_IN.format(python=sys.executable, calls=str(self.calls_file)), encoding="utf-8")
            file.chmod(0o755)

    @property
    def calls(self) -> list[list[str]]:
        if not self.calls_file.exists():
            return []
        return [line.split("\t") for line in self.calls_file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def programs(tmp_path, monkeypatch) -> Programs:
    """Return stand-ins for GAMMA's programs, none of them there yet, first on the PATH."""
    made = Programs(tmp_path / "programs")
    monkeypatch.setenv("PATH", f"{made.folder}{os.pathsep}{os.environ['PATH']}")
    return made


@pytest.fixture
def stack(tmp_path) -> dict[str, str]:
    """Return the paths of a small stack of three images, in a folder with spaces in its name."""
    return examples.write_stack(tmp_path / "a stack of GAMMA", (13, 17))
