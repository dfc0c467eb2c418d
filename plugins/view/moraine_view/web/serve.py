"""The server: `answer` behind a port that only this machine can reach."""

from __future__ import annotations

import getpass
import os
import socket
import sys
import tempfile
import webbrowser
from contextlib import suppress
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Any

from moraine_view.web.answer import Request, Site, answer

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = "127.0.0.1"
"""The only address: from elsewhere, ssh forwards a port."""

MOST_THREADS = 16

PATIENCE = 30.0
"""Seconds that a connection may say nothing."""

LITTLE_PATIENCE = 0.2
"""The same between requests while connections are short: browsers open another one when they need it."""

HEAD_PATIENCE = 5.0
"""Seconds to wait for the rest of a request that has begun; a fifth of that while connections are short."""


class Handler(BaseHTTPRequestHandler):
    """Reads requests off a connection and writes answers to it."""

    protocol_version = "HTTP/1.1"
    server_version = "moraine"
    sys_version = ""
    timeout = PATIENCE
    disable_nagle_algorithm = True
    wbufsize = 1 << 17  # head and body of a tile leave together
    server: Server

    def handle_one_request(self) -> None:
        """Wait for a request as long as there are connections to spare."""
        self.connection.settimeout(LITTLE_PATIENCE if self.is_short else PATIENCE)
        super().handle_one_request()

    @property
    def is_short(self) -> bool:
        """Tell whether most connections are taken."""
        return self.server.n_free() < MOST_THREADS // 4

    def parse_request(self) -> bool:
        """Read the rest of a head, and give the answer all the time."""
        self.connection.settimeout(HEAD_PATIENCE / 5 if self.is_short else HEAD_PATIENCE)
        parsed = super().parse_request()
        self.connection.settimeout(PATIENCE)
        return parsed

    def do_GET(self) -> None:
        """Answer."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        response = answer(self.server.site, Request(self.command, self.path, headers))
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            self.close_connection = True  # what follows the head is not read
        self.send_response(response.status)
        for name, value in response.headers:
            self.send_header(name, value)
        if response.status != 304:
            self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Say nothing: requests would hide the address."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request at all with one line."""
        body = f"{message or 'bad request'}\n".encode("ascii", "replace") if code < 500 else b"not supported\n"
        with suppress(OSError):
            self.send_response(code, None)
            for name, value in (*self.server.site.policy, ("Content-Type", "text/plain"), ("Connection", "close")):
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        self.close_connection = True


class Server(ThreadingHTTPServer):
    """Answers up to 16 connections at a time, each in a thread.

    Parameters
    ----------
    site
        What is shown.
    port
        0 takes any free one.
    """

    daemon_threads = True
    request_queue_size = 64
    allow_reuse_address = True

    def __init__(self, site: Site, port: int = 0) -> None:
        self.site = site
        self._free = BoundedSemaphore(MOST_THREADS)
        self._taken = 0
        self._count = Lock()
        super().__init__((HOST, port), Handler)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address with the token."""
        return f"http://{HOST}:{self.port}/?t={self.site.token}"

    def n_free(self) -> int:
        """Count the connections that could still be taken."""
        return MOST_THREADS - self._taken

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection as soon as there is a thread for it."""
        self._free.acquire()
        with self._count:
            self._taken += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._count:
                self._taken -= 1
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over what goes wrong with a connection, such as a browser that has gone away."""


def start(site: Site, port: int = 0) -> Server:
    """Bind a server.

    Parameters
    ----------
    site
        What is shown.
    port
        0 takes any free one.

    Returns
    -------
    Server
        Listening; `serve_forever` answers.

    Raises
    ------
    ValueError
        The port cannot be had.
    """
    try:
        return Server(site, port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        msg = f"port {port} cannot be used: {reason}; leave --port out to take a free one"
        raise ValueError(msg) from error


def run(site: Site, port: int, say: Callable[[str], None], *, browser: bool) -> str:
    """Serve until interrupted.

    Parameters
    ----------
    site
        What is shown.
    port
        0 takes any free one.
    say
        Is given the address and how to reach it from elsewhere.
    browser
        Open a browser where there is a screen.

    Returns
    -------
    str
        The address, without the token.
    """
    with start(site, port) as server:
        say(f"moraine view: {server.url}")
        say(
            f"from another computer: ssh -N -L {server.port}:{HOST}:{server.port} "
            f"{_user()}@{socket.gethostname()}, then open the same address there; Ctrl-C ends"
        )
        launcher = _open_browser(server.url) if browser and _has_screen() else None
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            if launcher:
                launcher.unlink(missing_ok=True)
        return f"http://{HOST}:{server.port}/"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "user"


def _has_screen() -> bool:
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _open_browser(url: str) -> Path | None:
    """Open the address through a file that only this user can read: others see the arguments of a browser."""
    try:
        handle, path = tempfile.mkstemp(suffix=".html", prefix="moraine-view-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(url)}">')
        webbrowser.open(f"file://{path}")
    except (OSError, webbrowser.Error):
        return None
    return Path(path)
