"""Stands in for GAMMA's mcf_pt where that is not installed: reads and writes the same files, unwraps point by point.

It is for examples and tests of the command, not for work: every point follows the one before it in the list.
"""

from __future__ import annotations

import math
import struct
import sys
from pathlib import Path


def main(words: list[str]) -> None:
    """Unwrap along the list of points.

    Parameters
    ----------
    words
        plist, pmask, pint, rec_num, pwgt, mask, punw, rps, azps, np_ref, phref_flag.
    """
    plist, _, pint, _, _, _, punw, _, _, np_ref, _ = words
    n_points = Path(plist).stat().st_size // 8
    parts = struct.unpack(f">{2 * n_points}f", Path(pint).read_bytes())
    wrapped = [math.atan2(imag, real) for real, imag in zip(parts[::2], parts[1::2], strict=True)]
    unwrapped = wrapped[:1]
    for phase in wrapped[1:]:
        unwrapped.append(phase + 2 * math.pi * round((unwrapped[-1] - phase) / (2 * math.pi)))
    kept = int(np_ref)
    shift = wrapped[kept] - unwrapped[kept]
    Path(punw).write_bytes(struct.pack(f">{n_points}f", *(phase + shift for phase in unwrapped)))


if __name__ == "__main__":
    main(sys.argv[1:])
