"""Print the lowest version of every dependency that the packages declare, as constraints for pip.

    python tools/floors.py > floors.txt && pip install -c floors.txt -r requirements-all.txt

What a floor promises is tested with exactly that floor: `make floors`.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)[^>]*>=\s*([0-9][^,;\s]*)")


def floors() -> dict[str, str]:
    """Return the lowest version by distribution; where several packages name one, the highest of their floors."""
    found: dict[str, str] = {}
    for file in [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]:
        for text in tomllib.loads(file.read_text(encoding="utf-8"))["project"]["dependencies"]:
            if match := REQUIREMENT.match(text):
                name, version = match.groups()
                found[name] = max(found.get(name, "0"), version, key=lambda v: tuple(map(int, v.split("."))))
    return found


if __name__ == "__main__":
    for name, version in sorted(floors().items()):
        print(f"{name}=={version}")
