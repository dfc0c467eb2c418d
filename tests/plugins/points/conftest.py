"""Fixtures of the tests on points."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from zarr.storage import LocalStore


@pytest.fixture
def chunk_reads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter[str]]:
    """How often each chunk of each array is read in this process, by the array's name and the chunk's key."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    get = LocalStore.get

    async def counting_get(self, key, *args, **kwargs):
        array, _, chunk = str(Path(self.root) / key).rpartition("/c/")
        if array:
            counted[Path(array).name][chunk] += 1
        return await get(self, key, *args, **kwargs)

    monkeypatch.setattr(LocalStore, "get", counting_get)
    return counted
