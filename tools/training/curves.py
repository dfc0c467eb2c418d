"""Draw how the errors of the filters fell while they were trained: ``python tools/training/curves.py PICTURE``.

The curves are in the files of weights, on scenes that were never trained on.
"""

from __future__ import annotations

import json
import sys

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moraine_filter import weights


def curve_of(network: str) -> list[dict[str, float]]:
    """Return what was noted while the packaged weights of a network were trained."""
    rows: list[dict[str, float]] = json.loads(weights.check(weights.packaged(network), network)["curve"])
    return rows


def draw(path: str) -> None:
    """Draw both curves beside each other."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    rows = curve_of("n2f")
    for coh in (0.2, 0.4, 0.6):
        left.plot([row["step"] for row in rows], [row[f"rmse_{coh}"] for row in rows], label=f"coherence {coh}")
    left.set(title="n2f", xlabel="step", ylabel="error of the phase (rad)", yscale="log")
    left.legend()
    rows = curve_of("n2ft")
    right.plot([row["step"] for row in rows], [row["held"] for row in rows])
    right.set(title="n2ft", xlabel="step", ylabel="squared error of the phasor", yscale="log")
    for ax in (left, right):
        ax.grid(which="both", alpha=0.3)
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:g}")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    draw(sys.argv[1])
