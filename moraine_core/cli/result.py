"""What a command of the line gives back: fields for ``--json``, text for people."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

CONTRACT = 1
"""Version of the JSON contract."""


@dataclass
class Result:
    """One command's result.

    Attributes
    ----------
    text
        For people, on standard output.
    fields
        For ``--json``, besides ``version`` and ``ok``.
    ok
        It succeeded; if not, the exit code is 1.
    """

    text: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    ok: bool = True

    def as_json(self) -> str:
        """Return the one JSON object of this invocation."""
        return to_json({"version": CONTRACT, "ok": self.ok, **self.fields})


def failure(message: str) -> str:
    """Return the JSON object of any failure."""
    return to_json({"version": CONTRACT, "ok": False, "error": message})


def to_json(value: Any) -> str:
    """Return plain data as JSON, in ASCII so that any stream can take any path; what is not finite becomes null."""
    return json.dumps(_finite(value), default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return _finite(value.tolist())
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
