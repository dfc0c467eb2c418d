"""How much of a cloud n2ft works on at a time: what its declaration and its tasks must agree on."""

from __future__ import annotations

AT_ONCE = 32768
"""Points that are filtered together, by default."""

SAMPLES = 2**19
"""Points times interferograms that go through the network together."""

WINDOW = 2**17
"""Points of a stack that are read together, or one chunk of them if that is more."""

RESULTS = 2**28
"""Bytes of results that a task holds; more pairs are shared out among tasks."""


def most_members(at_once: int) -> int:
    """Return how many points results may depend on; where it is more, fewer are worked on together."""
    return 3 * at_once + 2**15


def batch_of(members: int) -> int:
    """Return how many interferograms go through the network together."""
    return max(SAMPLES // max(members, 1), 1)


def task_bytes(n_points: int, block: int, at_once: int, nimages: int, chunk: tuple[int, ...]) -> int:
    """Return the memory of a task, besides its results, in bytes.

    Parameters
    ----------
    n_points, block
        Points of the cloud, and of the task.
    at_once
        Points that are worked on together.
    nimages
        Images that are needed.
    chunk
        Points and images in a stored chunk of the stack.
    """
    members = min(n_points, most_members(at_once))
    structure = (3400 + 8 * nimages) * members + 16 * n_points
    features = 700 * max(min(SAMPLES, members * 64), members)
    window = 16 * max(min(WINDOW, n_points), chunk[0]) * chunk[1]
    return structure + features + window + 40 * block + 48 * 2**20


CLOUD_BYTES = 160
"""Bytes per point while a cloud is prepared."""
