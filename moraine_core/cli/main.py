"""One invocation: global options, the command, its result or its error, the exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

from moraine_core import __version__
from moraine_core.cli.output import Globals, logging_to, take_globals
from moraine_core.cli.result import Result, failure
from moraine_core.errors import MoraineError, ProblemsError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moraine_core.plugins import PluginHost

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


def run(arguments: Sequence[str] | None = None, host: PluginHost | None = None) -> int:
    """Run one command line and return the exit code.

    Parameters
    ----------
    arguments
        The words after ``moraine``; those of this process by default.
    host
        The plugins; those installed by default.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = Globals(json="--json" in words, traceback="--traceback" in words)
    try:
        options, words = take_globals(words)
        command = next((word for word in words if not word.startswith("-")), "moraine")
        with logging_to(options, command), terminated_as_interrupt():
            if options.json and not words:
                msg = "no command; see moraine list"
                raise UsageError(msg)
            result = _dispatch(words or ["--help"], host)
    except KeyboardInterrupt:
        return _fail(options, KeyboardInterrupt("interrupted"), EXIT_INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the last place where an error can be told
        return _fail(options, error, _exit_code(error))
    if isinstance(result, Result):
        _print(result.as_json() if options.json else result.text)
        return 0 if result.ok else EXIT_FAILED
    return int(result or 0)


def _dispatch(words: list[str], host: PluginHost | None) -> Any:
    """Let typer find the command and call it; return its result, or the exit code of a help page."""
    if words[0] == "--version":
        return Result(f"moraine-core {__version__}", {"moraine": __version__})
    if words[0] == "--version-notes":
        from moraine_core.cli import notes

        return Result(notes.text(), {"notes": notes.NOTES})
    import typer

    from moraine_core.cli.group import make_app
    from moraine_core.plugins import PluginHost

    app = typer.main.get_command(make_app(host or PluginHost()))
    result = app.main(args=words, prog_name="moraine", standalone_mode=False)
    if result == EXIT_INTERRUPTED:
        raise KeyboardInterrupt  # typer has made an exit code of it
    return result


def _exit_code(error: Exception) -> int:
    if isinstance(error, ProblemsError):
        return max(_exit_code(problem) for problem in error.problems)
    if isinstance(error, UsageError):
        return EXIT_USAGE
    # typer's own errors (an unknown option, say) carry their code
    return int(getattr(error, "exit_code", EXIT_FAILED))


def _fail(options: Globals, error: BaseException, code: int) -> int:
    """Tell an error on standard error, and as JSON where that was asked for; return the exit code."""
    formatted = getattr(error, "format_message", None)
    message = formatted() if formatted is not None else str(error)
    if not isinstance(error, MoraineError | KeyboardInterrupt) and formatted is None:
        message = f"{type(error).__name__}: {message}"
    places = [note for note in getattr(error, "__notes__", []) if note.startswith("in ")]
    message = "\n".join([message, *places])
    if options.traceback:
        traceback.print_exception(error)
    else:
        sys.stderr.write(f"moraine: {message}\n")
    if options.json:
        _print(failure(message))
    return code


def _print(text: str) -> None:
    """Print a result on standard output; a reader that has gone away, such as ``head``, is no fault."""
    try:
        print(text, flush=True)  # noqa: T201 - this is the result
    except BrokenPipeError:
        # Python flushes once more when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def terminated_as_interrupt() -> Iterator[None]:
    """Let SIGTERM end the block like Ctrl-C does: workers stopped, scratch removed, the journal kept."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
