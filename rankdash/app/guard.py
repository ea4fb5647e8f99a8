"""Who is answered: requests under a name of this server, so that no page of another site can make a
browser speak with it under a name of its own (DNS rebinding); and what changes something only from
its own pages, so that no other page can, not even one from another port of this machine."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import sys
from typing import Any

import streamlit as st
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from rankdash.core.base.allowed import ANY, HOSTS, METRICS, YES, is_loopback, names
from rankdash.core.base.shipped import FRONT_VARIABLE

_HOST = re.compile(r"(?P<name>\[[^\[\]]*\]|[^:\[\]]*)(:\d*)?")
_METRICS = "/_stcore/metrics"
_REFUSED = (
    "rankdash does not answer under the name {host!r}. Whoever starts it lists its names: "
    "rankdash serve --allow-host NAME, or " + HOSTS + ".\n"
)
_ELSEWHERE = (
    "rankdash takes this from its own pages only, not from {origin!r}. A proxy has to pass the "
    "name it is reached under (Host), or the name has to be listed: --allow-host NAME, or "
    + HOSTS
    + ".\n"
)
_SAFE = ("GET", "HEAD", "OPTIONS")
_CLOSED = "Metrics are closed; " + METRICS + "=1 opens them.\n"


class Guard:
    """Passes requests and web sockets on, but for those under another name and for metrics."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None if scope["type"] == "lifespan" else _refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await refusal(scope, receive, send)


def bound_to() -> str:
    """The address at which browsers reach the server: that of the front, where there is one."""
    front = os.environ.get(FRONT_VARIABLE)
    if front is not None:
        return front.rpartition(":")[0]
    return str(st.get_option("server.address") or "0.0.0.0")  # noqa: S104 - so Streamlit does


def is_own_name(host: str, address: str) -> bool:
    """Whether a Host header names this server.

    host: as it was sent, with or without a port. address: what the server is bound to; a server
    that other machines reach answers under every IP address, which no other site can make its own.
    """
    name = _without_port(host).casefold().rstrip(".")
    if is_loopback(name) or not names(HOSTS).isdisjoint({name, ANY}):
        return True
    return not is_loopback(address) and (_is_address(name) or name == address.casefold())


def _refusal(scope: Scope) -> PlainTextResponse | None:
    address = bound_to()
    sent = _values(scope, b"host") or [""]
    foreign = [host for host in sent if not is_own_name(host, address)]
    if foreign:
        return PlainTextResponse(_REFUSED.format(host=foreign[0][:100]), status_code=421)
    if scope["type"] == "websocket" or scope["method"] not in _SAFE:
        for origin in _values(scope, b"origin"):
            if not _is_own_page(origin, sent[0]):
                return PlainTextResponse(_ELSEWHERE.format(origin=origin[:100]), status_code=403)
    if scope["path"].rstrip("/").endswith(_METRICS) and YES not in names(METRICS):
        return PlainTextResponse(_CLOSED, status_code=404)
    return None


def _is_own_page(origin: str, host: str) -> bool:
    """Whether a page of this origin is one of this server, asked as `host`: the same name and port,
    or a listed name, because a proxy may leave out its port. Streamlit itself lets in every port of
    this machine."""
    place = origin.partition("://")[2].casefold()
    if place and place == host.casefold():
        return True
    return not names(HOSTS).isdisjoint({_without_port(place), ANY}) or origin in map(
        str, st.get_option("server.corsAllowedOrigins") or ()
    )


def _values(scope: Scope, header: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == header]


def _without_port(host: str) -> str:
    """The name or address in a Host header; "" where it is none."""
    match = _HOST.fullmatch(host)
    return "" if match is None else match["name"]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


# Connections of browsers: how long the head of a request may take to arrive, and how many may wait
# for theirs. A server that waits without end has no file handles left for others.

if sys.platform != "win32":
    import resource

HEAD_SECONDS = 20.0
"""From the start of a connection, or the first byte of a later request, to the end of the head."""

_MOST, _MOST_WAITING = 1024, 256
# Of the file handles that a process has, so many are for files and other processes.
_OWN_HANDLES = 32


def most_connections() -> int:
    """How many a process may have, with the file handles that it has."""
    if sys.platform == "win32":
        return _MOST
    handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if handles < 0 else max(handles - _OWN_HANDLES, handles // 2)


class Waiting:
    """The connections whose request has no complete head yet."""

    def __init__(self) -> None:
        self._timers: dict[asyncio.BaseTransport, asyncio.TimerHandle] = {}

    def begin(self, transport: asyncio.WriteTransport) -> None:
        """Close it if the head is not complete in time, or too many others begin to wait."""
        if transport not in self._timers:
            if len(self._timers) >= min(most_connections() // 2, _MOST_WAITING):
                self.close_oldest()
            loop = asyncio.get_running_loop()
            self._timers[transport] = loop.call_later(HEAD_SECONDS, self._close, transport)

    def end(self, transport: asyncio.WriteTransport) -> None:
        """The head is complete, or the connection has ended."""
        if (timer := self._timers.pop(transport, None)) is not None:
            timer.cancel()

    def close_oldest(self) -> bool:
        """Close the connection that waits for longest; False if none waits."""
        oldest = next(iter(self._timers), None)
        if isinstance(oldest, asyncio.WriteTransport):
            self._close(oldest)
        return oldest is not None

    def _close(self, transport: asyncio.WriteTransport) -> None:
        self.end(transport)
        transport.abort()


_waiting = Waiting()


class Connection(AutoHTTPProtocol):  # type: ignore[valid-type, misc]
    """uvicorn's own, with these limits."""

    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if len(self.connections) > most_connections() and not _waiting.close_oldest():
            transport.abort()
        else:
            _waiting.begin(transport)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cycle: Any = self.cycle
        if (cycle and not cycle.response_complete) or self.transport.get_protocol() is not self:
            _waiting.end(self.transport)
        else:
            _waiting.begin(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        _waiting.end(self.transport)
        super().connection_lost(exc)
