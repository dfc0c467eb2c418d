"""The log of one step: a file of its own, and the command's name on every line."""

from __future__ import annotations

import logging
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

log = logging.getLogger("moraine")

FORMAT = logging.Formatter("%(asctime)s - %(command)s - %(levelname)s - %(message)s")


@contextmanager
def step_log(path: Path, command: str) -> Iterator[None]:
    """Log everything from INFO on to a file while the block runs, and the traceback of what ends it early."""

    def name_command(record: logging.LogRecord) -> bool:
        record.command = command
        return True

    path.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path, mode="w", encoding="utf-8")
    handler.setLevel(logging.INFO)
    handler.setFormatter(FORMAT)
    level = log.level
    if log.getEffectiveLevel() > logging.INFO:
        log.setLevel(logging.INFO)
    log.addFilter(name_command)
    log.addHandler(handler)
    try:
        yield
    except BaseException as error:
        with path.open("a", encoding="utf-8") as file:
            traceback.print_exception(error, file=file)
        raise
    finally:
        log.removeHandler(handler)
        log.removeFilter(name_command)
        log.setLevel(level)
        handler.close()
