"""The whole of the server as one function: from a request to status, headers and body.

Nothing of a request is ever made part of a path: numbers index a list of layers, names look up dictionaries that are
made at the start.
"""

from __future__ import annotations

import hmac
import json
import logging
import math
import re
import secrets
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

from moraine_view.web.meta import meta, stamp_of
from moraine_view.web.products import products
from moraine_view.web.queries import (
    MOST_RADIUS,
    MOST_WIDTH,
    Line,
    NothingThereError,
    Place,
    ground,
    profile,
    reference,
    series,
)
from moraine_view.web.reader import IncompleteError
from moraine_view.web.tiles import array_metadata, tile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moraine_view.web.basemap import Basemap
    from moraine_view.web.layers import Layer
    from moraine_view.web.products import Product

log = logging.getLogger("moraine")

LONGEST_TARGET = 2048

MOST_ZOOM = 26

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}

HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE | re.ASCII)

WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)

REAL = re.compile(r"-?[0-9]{1,12}(\.[0-9]{0,12})?(e-?[0-9]{1,2})?", re.ASCII)


class Request(NamedTuple):
    """What a browser asks."""

    method: str
    target: str
    """Path and query as sent."""
    headers: Mapping[str, str]
    """By name in lower case."""


class Response(NamedTuple):
    """What it is told."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class RefusedError(Exception):
    """A request that is not answered.

    Parameters
    ----------
    status
        Of HTTP.
    reason
        One line that names no path.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass
class Site:
    """What a server shows, and who may see it."""

    layers: Sequence[Layer]
    show: str | None = None
    """What of a stack is shown first, as ``--show`` says it."""
    basemap: Basemap | None = None
    """Pictures behind maps."""
    framed: bool = False
    """Pages of this machine, such as notebooks, may show the page in a frame."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    """128 bits; whoever has it may look."""
    name: str = field(default_factory=lambda: f"moraine-{secrets.token_hex(4)}")
    """Of the cookie: ports do not keep cookies apart."""

    @cached_property
    def resources(self) -> dict[str, bytes]:
        """The files of the page by name."""
        return page_files()

    @cached_property
    def _packed(self) -> dict[str, bytes]:
        return {}

    def packed(self, name: str) -> bytes:
        """Return one of them gzipped, which is done when it is asked for first."""
        if name not in self._packed:
            self._packed[name] = _packed(self.resources[name])
        return self._packed[name]

    @property
    def policy(self) -> list[tuple[str, str]]:
        """Headers of every answer."""
        ancestors = "http://localhost:* http://127.0.0.1:*" if self.framed else "'none'"
        return [
            (
                "Content-Security-Policy",
                "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; "
                f"form-action 'none'; frame-ancestors {ancestors}",
            ),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ]


COAST = "coast.json"
"""The coastline, which pages without a map do not need."""


def page_files(layers: Sequence[Layer] | None = None) -> dict[str, bytes]:
    """Read the files of the page.

    Parameters
    ----------
    layers
        Of a page that shows no others; None: any.

    Returns
    -------
    dict
        By name: ``index.html`` and what it loads.
    """
    found = {}
    for folder in (files("moraine_view.web") / "static", files("moraine_view.web") / "static" / "vendor"):
        found.update({entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()})
    if layers is not None and not any(layer.grid == "map" for layer in layers):
        del found[COAST]
    return {name: data for name, data in found.items() if _type_of(name)}


def _type_of(name: str) -> str:
    return TYPES.get("." + name.rpartition(".")[2], "")


def _packed(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def answer(site: Site, request: Request) -> Response:
    """Answer a request.

    Parameters
    ----------
    site
        What is shown.
    request
        As it came.

    Returns
    -------
    Response
        Errors have one line of text; what is wrong inside is logged, not told.
    """
    try:
        response = _guarded(site, request)
    except RefusedError as refused:
        response = _text(refused.status, refused.reason)
    except IncompleteError as error:
        response = _text(503, f"incomplete: {error}")
    except NothingThereError as error:
        response = _json({"nothing": str(error)})
    except Exception:  # a browser must get an answer, whatever is wrong
        log.exception("view: an answer failed")
        response = _text(500, "internal error")
    return Response(response.status, [*response.headers, *site.policy], response.body)


def _guarded(site: Site, request: Request) -> Response:
    """Let through what comes from this machine's browser with the cookie, and is a question."""
    if request.method not in ("GET", "HEAD"):
        refused = _text(405, "this server only shows")
        return refused._replace(headers=[*refused.headers, ("Allow", "GET, HEAD")])
    if len(request.target) > LONGEST_TARGET:
        raise RefusedError(414, "the address is too long")
    if not HOST.fullmatch(request.headers.get("host", "")):
        raise RefusedError(403, "this server answers to localhost only")
    path, _, query = request.target.partition("?")
    fields = _fields(query)
    if path == "/" and "t" in fields:
        return _welcome(site, request, fields["t"])
    if not _has_cookie(site, request.headers.get("cookie", "")):
        raise RefusedError(403, "no access: open the address that `moraine view` has printed, with its token")
    return content(site.layers, path, fields, site, request.headers)


def _fields(query: str) -> dict[str, str]:
    try:
        found = parse_qs(query, keep_blank_values=True, max_num_fields=16, errors="strict")
    except (ValueError, UnicodeDecodeError):
        raise RefusedError(400, "the query is not well formed") from None
    return {name: values[0] for name, values in found.items()}


def _welcome(site: Site, request: Request, token: str) -> Response:
    """Give the cookie for the right token, and send the browser to the address without it."""
    if not hmac.compare_digest(token.encode(), site.token.encode()):
        raise RefusedError(403, "no access: this is not the token of this server")
    cookie = ("Set-Cookie", f"{site.name}={site.token}; HttpOnly; SameSite=Strict; Path=/")
    headers = [cookie, ("Cache-Control", "no-store")]
    if request.headers.get("sec-fetch-site") == "cross-site":
        # a redirect would still count as coming from the other place, and strict cookies would stay behind
        body = b'<!doctype html><title>moraine view</title><meta http-equiv="refresh" content="0;url=./">'
        return Response(200, [*headers, ("Content-Type", TYPES[".html"])], body)
    return Response(303, [*headers, ("Location", "/")], b"")


def _has_cookie(site: Site, cookies: str) -> bool:
    for cookie in cookies.split(";")[:64]:
        name, _, value = cookie.strip().partition("=")
        if name == site.name:
            return hmac.compare_digest(value.encode(), site.token.encode())
    return False


def content(
    layers: Sequence[Layer],
    path: str,
    fields: Mapping[str, str],
    site: Site | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer a question that may be asked.

    Parameters
    ----------
    layers
        What there is.
    path, fields
        Of the address.
    site, headers
        For the files of the page; None where only data are asked for.

    Returns
    -------
    Response
        200, or 304 for a file of the page that has not changed.

    Raises
    ------
    RefusedError
        There is no such thing.
    IncompleteError, NothingThereError
        Data are missing on disk; there is no data at a place.
    """
    parts = path.split("/")[1:]
    match parts:
        case [""] if site is not None:
            return _file(site, "index.html", headers or {})
        case ["s", name] if site is not None and name in site.resources:
            return _file(site, name, headers or {})
        case ["meta.json"]:
            return _json(meta(layers, show=site.show if site else None, basemap=site.basemap if site else None))
        case ["basemap", zoom, col, row] if site is not None and site.basemap is not None:
            return _basemap(site.basemap, zoom, col, row)
        case ["z", number, name, level, "zarr.json"]:
            layer, product = _layer(layers, number), _product(layers, number, name)
            body = array_metadata(product, layer.levels()[_below(level, len(layer.levels()))])
            return Response(200, [("Content-Type", TYPES[".json"]), ("Cache-Control", "no-store")], body)
        case ["z", number, name, level, "c", row, col, item]:
            return _tile(_layer(layers, number), _product(layers, number, name), (level, row, col, item), fields)
        case ["series"]:
            layer = _layer(layers, fields.get("layer", ""))
            return _json(series(layer, _place(fields), _image(layer, fields)))
        case ["ref"]:
            layer = _layer(layers, fields.get("layer", ""))
            return _json(reference(layer, _place(fields), _image(layer, fields)))
        case ["ground"]:
            layer = _layer(layers, fields.get("layer", ""))
            return _json(ground(layer, _real(fields.get("x", "")), _real(fields.get("y", ""))))
        case ["profile"]:
            return _json(_profile(layers, fields))
    raise RefusedError(404, "there is no such thing here")


def _tile(layer: Layer, product: Product, address: Sequence[str], fields: Mapping[str, str]) -> Response:
    stamp = stamp_of(layer)
    if fields.get("v", stamp) != stamp:
        raise RefusedError(409, "the data have changed")
    grids = layer.levels()
    level = _below(address[0], len(grids))
    rows, cols = (-(-n // 256) for n in grids[level].shape)
    place = _below(address[1], rows), _below(address[2], cols)
    body = tile(layer, product, level, *place, _below(address[3], product.n_items))
    kept = "private, max-age=31536000, immutable" if "v" in fields else "no-store"
    return Response(200, [("Content-Type", "application/octet-stream"), ("Cache-Control", kept)], body)


def _basemap(basemap: Basemap, zoom: str, col: str, row: str) -> Response:
    level = _below(zoom, MOST_ZOOM + 1)
    try:
        kind, body = basemap.tile(level, _below(col, 2**level), _below(row, 2**level))
    except (OSError, ValueError, IndexError, zlib.error):
        raise RefusedError(503, "the basemap cannot be read") from None
    return Response(200, [("Content-Type", kind), ("Cache-Control", "private, max-age=3600")], body)


def _profile(layers: Sequence[Layer], fields: Mapping[str, str]) -> dict[str, Any]:
    layer = _layer(layers, fields.get("layer", ""))
    product = _product(layers, fields.get("layer", ""), fields.get("product", ""))
    ends = [_real(text) for text in fields.get("line", "").split(",", 4)]
    if len(ends) != 4:
        raise RefusedError(400, "a line has two ends")
    level = _below(fields.get("level", ""), len(layer.levels()))
    width = _below(fields.get("width", "1"), MOST_WIDTH + 1)
    x0, y0, x1, y1 = ends
    line = Line(x0, y0, x1, y1, level, max(width, 1))
    return profile(layer, product, _below(fields.get("item", "0"), product.n_items), line)


def _layer(layers: Sequence[Layer], number: str) -> Layer:
    return layers[_below(number, len(layers))]


def _product(layers: Sequence[Layer], number: str, name: str) -> Product:
    found = products(_layer(layers, number)).get(name)
    if found is None:
        raise RefusedError(404, "there is no such product")
    return found


def _below(text: str, end: int) -> int:
    """Return a whole number from 0 to below `end`."""
    if not WHOLE.fullmatch(text) or int(text) >= end:
        raise RefusedError(404, "a number is out of range")
    return int(text)


def _real(text: str) -> float:
    if not REAL.fullmatch(text) or not math.isfinite(float(text)):
        raise RefusedError(400, "a number is not well formed")
    return float(text)


def _place(fields: Mapping[str, str]) -> Place:
    return Place(
        _real(fields.get("x", "")),
        _real(fields.get("y", "")),
        _below(fields.get("r", "0"), MOST_RADIUS + 1),
        _real(fields.get("reach", "0")),
    )


def _image(layer: Layer, fields: Mapping[str, str]) -> int:
    return _below(fields.get("a", "0"), max(layer.n_items, 1))


def _file(site: Site, name: str, headers: Mapping[str, str]) -> Response:
    data = site.resources[name]
    tag = f'"{zlib.crc32(data):08x}-{len(data):x}"'
    found = [("Content-Type", _type_of(name)), ("Cache-Control", "private, no-cache"), ("ETag", tag)]
    if headers.get("if-none-match") == tag:
        return Response(304, found, b"")
    if "gzip" in headers.get("accept-encoding", ""):
        return Response(200, [*found, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")], site.packed(name))
    return Response(200, found, data)


def _json(value: Any) -> Response:
    body = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    return Response(200, [("Content-Type", TYPES[".json"]), ("Cache-Control", "no-store")], body)


def _text(status: int, text: str) -> Response:
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")]
    return Response(status, headers, f"{text}\n".encode())
