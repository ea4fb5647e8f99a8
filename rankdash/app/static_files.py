"""The static files of Streamlit, compressed once, and additions to the page's head.

Streamlit sends them uncompressed; its page requests the script of an element, such as a chart, only
when it draws the first one, and folds the sidebar only on phones.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOLDER = Path(st.__file__).parent / "static"
ELEMENTS = (
    *("Html", "PageLink", "Selectbox", "ButtonGroup", "Slider", "Button", "BidiComponent"),
    "PlotlyChart",
)
"""The elements of the first page, by the first word of their scripts' names; the largest is last.
"""

_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
# A higher quality would take longer for the first visitor than it saves.
_BROTLI_QUALITY = 5
_GZIP_LEVEL = 6
_FOR_A_YEAR = "public, immutable, max-age=31536000"
_EACH_TIME = "no-cache"
# Pixels of the window's width.
_FOLDED_BELOW = 1000
# Streamlit stores under the first name whether the user folded the sidebar.
_FOLD = """<script>
      {
        const place = "stSidebarCollapsed-", byUs = "rankdash.folded", kept = window.localStorage;
        if (window.innerWidth >= %d) {
          if (kept.getItem(byUs)) { kept.removeItem(place); kept.removeItem(byUs); }
        } else if (kept.getItem(place) === null) {
          kept.setItem(place, "true");
          kept.setItem(byUs, "true");
        }
      }
    </script>
    """
_IMPORT = re.compile(r'(?:from|import)\s*"\./([\w.-]+\.js)"')


class StaticFiles:
    """Middleware that answers requests for scripts and styles with compressed files, and completes
    the head of the page at all addresses. Other requests, such as ranges, pass."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._index = (FOLDER / "index.html").read_bytes()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        encoding = _encoding(headers)
        file = _files().get(scope["path"].removeprefix(_base()))
        if file is None:
            await self._app(scope, receive, self._with_links(scope, receive, send, encoding))
        elif encoding == "" or "range" in headers:
            await self._app(scope, receive, _varying(send))
        else:
            body = await asyncio.to_thread(_compressed, file, encoding)
            await _answer(headers, body, _TYPES[file.suffix], _FOR_A_YEAR)(scope, receive, send)

    def _with_links(self, scope: Scope, receive: Receive, send: Send, encoding: str) -> Send:
        """Return a `send` that replaces Streamlit's page by the page with links; other messages
        pass."""
        start: Message | None = None

        async def replaced(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and self._is_index(message):
                start = message
            elif start is None:
                await send(message)
            elif message.get("body", b"") in (self._index, b""):
                page = await asyncio.to_thread(_page, encoding)
                kind = Headers(raw=start["headers"])["content-type"]
                answer = _answer(Headers(scope=scope), page, kind, _EACH_TIME)
                await answer(scope, receive, send)
            else:
                await send(start)
                start = None
                await send(message)

        return replaced

    def _is_index(self, message: Message) -> bool:
        headers = Headers(raw=message["headers"])
        kind, length = headers.get("content-type", ""), headers.get("content-length")
        return (
            message["status"] == 200
            and kind.startswith("text/html")
            and length == str(len(self._index))
        )


def _base() -> str:
    path = str(st.get_option("server.baseUrlPath")).strip("/")
    return f"/{path}" if path else ""


@cache
def _files() -> dict[str, Path]:
    """Return path → file, for files that compression makes smaller; their names contain a hash of
    their content."""
    files = (each for each in (FOLDER / "static").rglob("*") if each.suffix in _TYPES)
    return {f"/{each.relative_to(FOLDER).as_posix()}": each for each in files}


def _encoding(headers: Headers) -> str:
    """Return the best encoding that both sides support: "br", "gzip", or "" for none."""
    accepted = {
        name.strip(): float(weight.partition("q=")[2] or 1)
        for each in headers.get("accept-encoding", "").lower().split(",")
        for name, _, weight in [each.partition(";")]
        if re.fullmatch(r"(q=[\d.]{1,5})?", weight.strip())
    }
    supported = ("br", "gzip") if pa.Codec.is_available("brotli") else ("gzip",)
    return next((each for each in supported if accepted.get(each)), "")


@dataclass(frozen=True)
class _Body:
    content: bytes
    encoding: str
    tag: str


@cache
def _compressed(file: Path, encoding: str) -> _Body:
    return _body(file.read_bytes(), encoding)


@cache
def _page(encoding: str) -> _Body:
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    links = "".join(
        f'<link rel="modulepreload" crossorigin{priority} href="./static/js/{name}">\n    '
        for name, priority in preloaded(page)
    )
    head = f"{_FOLD % _FOLDED_BELOW}{links}</head>"
    return _body(page.replace("</head>", head).encode(), encoding)


def _body(content: bytes, encoding: str) -> _Body:
    if encoding == "br":
        codec = pa.Codec("brotli", compression_level=_BROTLI_QUALITY)
        content = codec.compress(content, asbytes=True)
    elif encoding == "gzip":
        content = zlib.compress(content, _GZIP_LEVEL, 16 + zlib.MAX_WBITS)
    return _Body(content, encoding, f'"{hashlib.sha256(content).hexdigest()[:20]}"')


def preloaded(page: str) -> Iterable[tuple[str, str]]:
    """Return the scripts of the elements and all their imports, except those that the page names,
    each with the attribute of its priority."""
    folder = FOLDER / "static" / "js"
    scripts: dict[str, str] = {}
    for element in ELEMENTS:
        waiting = sorted(each.name for each in folder.glob(f"{element}.*.js"))
        priority = ' fetchpriority="low"' if element == ELEMENTS[-1] else ""
        while waiting:
            name = waiting.pop()
            if name not in scripts and name not in page and (folder / name).is_file():
                scripts[name] = priority
                waiting += _IMPORT.findall((folder / name).read_text(encoding="utf-8"))
    return scripts.items()


def _answer(headers: Headers, body: _Body, kind: str, caching: str) -> Response:
    """Return the response with a body, or with status 304 if the browser has it."""
    sent = {"ETag": body.tag, "Vary": "Accept-Encoding", "Cache-Control": caching}
    tags = (each.strip().removeprefix("W/") for each in headers.get("if-none-match", "").split(","))
    if not {body.tag, "*"}.isdisjoint(tags):
        return Response(status_code=304, headers=sent)
    if body.encoding:
        sent["Content-Encoding"] = body.encoding
    return Response(body.content, headers=sent, media_type=kind)


def _varying(send: Send) -> Send:
    async def varying(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(raw=message["headers"]).add_vary_header("Accept-Encoding")
        await send(message)

    return varying
