"""Standard streams and logging: results on standard output, everything else on standard error."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from moraine_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass
class Globals:
    """Options that every command has, wherever they stand on the line.

    Attributes
    ----------
    json
        Print one JSON object instead of text.
    traceback
        Show the whole traceback of an error.
    quiet
        Log warnings and errors only.
    log
        A file that receives the log too.
    log_json
        Log lines are JSON objects.
    """

    json: bool = False
    traceback: bool = False
    quiet: bool = False
    log: str = ""
    log_json: bool = False


GLOBAL_HELP = (
    ("--json", "print one JSON object on standard output"),
    ("--traceback", "show the whole traceback of an error"),
    ("--log FILE", "append the log to a file too"),
    ("--log-json", "log lines are JSON objects, for machines"),
    ("-q, --quiet", "log warnings and errors only"),
)


VERSION_HELP = (
    ("--version", "print the version"),
    ("--version-notes", "print which defaults, units and signs changed from version to version"),
)


def take_globals(words: Sequence[str]) -> tuple[Globals, list[str]]:
    """Return the global options among the words of a command line, and the other words.

    Raises
    ------
    UsageError
        ``--log`` without a file.
    """
    options, rest = Globals(json="--json" in words), []
    flags = {"--json": "json", "--traceback": "traceback", "--quiet": "quiet", "-q": "quiet", "--log-json": "log_json"}
    waiting = iter(words)
    for word in waiting:
        if word == "--":
            rest += [word, *waiting]
        elif word in flags:
            setattr(options, flags[word], True)
        elif word == "--log" or word.startswith("--log="):
            options.log = word.partition("=")[2] or next(waiting, "")
            if not options.log:
                msg = "--log needs the name of a file"
                raise UsageError(msg)
        else:
            rest.append(word)
    return options, rest


class CurrentCommand(logging.Filter):
    """Adds the name of the running command to log records.

    Parameters
    ----------
    name
        The command; a pipeline's runner names that of each step by itself.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name_of_command = name

    def filter(self, record: logging.LogRecord) -> bool:
        """Name the command, unless the record names one already; let every record pass."""
        if not hasattr(record, "command"):
            record.command = self.name_of_command
        return True


class JsonLines(logging.Formatter):
    """One JSON object per log line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = {
            "time": self.formatTime(record),
            "command": getattr(record, "command", ""),
            "level": record.levelname,
            "message": record.getMessage(),
        }
        return json.dumps(fields, ensure_ascii=False)


TEXT_FORMAT = logging.Formatter("%(asctime)s - %(command)s - %(levelname)s - %(message)s")


@contextlib.contextmanager
def logging_to(options: Globals, command: str) -> Iterator[None]:
    """Log to standard error, and to a file if asked for, while the block runs."""
    log = logging.getLogger("moraine")
    file = _log_file(options.log) if options.log else logging.NullHandler()
    handlers = (logging.StreamHandler(sys.stderr), file)
    for handler in handlers:
        handler.setFormatter(JsonLines() if options.log_json else TEXT_FORMAT)
        handler.addFilter(CurrentCommand(command))
        # the handlers are quiet, not the logger: a pipeline's step logs hold everything from INFO on
        handler.setLevel(logging.WARNING if options.quiet else logging.INFO)
        log.addHandler(handler)
    level, propagate = log.level, log.propagate
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        # standard error gets it as the last line of all, in a short form
        record = log.makeRecord(log.name, logging.ERROR, __file__, 0, f"{type(error).__name__}: {error}", (), None)
        file.handle(record)
        raise
    finally:
        log.setLevel(level)
        log.propagate = propagate
        for handler in handlers:
            log.removeHandler(handler)
            handler.close()


def _log_file(path: str) -> logging.Handler:
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        msg = f"--log {path} cannot be written: {error.strerror}"
        raise UsageError(msg) from error


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send what libraries print, in Python or below it, to standard error while the block runs."""
    sys.stdout.flush()
    try:
        is_real = sys.stdout.fileno() == 1
    except (OSError, ValueError, AttributeError):
        is_real = False
    with contextlib.redirect_stdout(sys.stderr):
        if not is_real:
            yield
            return
        kept = os.dup(1)
        try:
            os.dup2(2, 1)
            yield
        finally:
            # what a C library has printed may still wait in its own buffer
            import ctypes  # here: it takes a millisecond that a help page need not spend

            ctypes.CDLL(None).fflush(None)
            os.dup2(kept, 1)
            os.close(kept)
