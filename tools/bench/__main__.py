"""What moraine promises to be measured, as rows of a markdown table: ``python tools/bench NAME...`` or ``all``.

Everything is a ratio against something done in the same run, the median of pairs taken in turn; absolute numbers are
for orientation. The exit code is 1 where a bar is not met.
"""

from __future__ import annotations

import argparse

import cluster
import commands
import executor
import filters
import load
import memory
import points
import pyramid
import science
import startup
import unwrap
import view
from measure import HEADER

BENCHES = {
    "startup": startup,
    "executor": executor,
    "memory": memory,
    "commands": commands,
    "load": load,
    "points": points,
    "pyramid": pyramid,
    "science": science,
    "filters": filters,
    "unwrap": unwrap,
    "view": view,
    "cluster": cluster,
}


def main() -> int:
    """Run the benchmarks that the command line names."""
    parser = argparse.ArgumentParser(prog="tools/bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "names", nargs="+", choices=[*BENCHES, "all"], metavar="NAME", help=", ".join([*BENCHES, "all"])
    )
    for name, bench in BENCHES.items():
        bench.options(parser.add_argument_group(name, (bench.__doc__ or "").strip()))
    chosen = parser.parse_args()
    names = list(BENCHES) if "all" in chosen.names else chosen.names
    print(HEADER)
    met = True
    for name in names:
        for row in BENCHES[name].rows(chosen):
            print(row, flush=True)
            met &= row.met
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
