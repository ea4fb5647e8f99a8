"""Protection of the server: against DNS rebinding, only requests under one of its names are
answered, so that no page of another site can make a browser talk to it under its own name; and
requests that change something are accepted only from rankdash's own pages, not even from another
port of this machine."""

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
    "rankdash does not answer requests for the host {host!r}. Ask the server administrator to list "
    "the allowed names: rankdash serve --allow-host NAME, or " + HOSTS + ".\n"
)
_ELSEWHERE = (
    "rankdash accepts this request only from its own pages, not from {origin!r}. A proxy must pass "
    "the original Host header, or its name must be listed: --allow-host NAME, or " + HOSTS + ".\n"
)
_SAFE = ("GET", "HEAD", "OPTIONS")
_CLOSED = "Metrics are disabled. To enable them, set " + METRICS + "=1.\n"


class Guard:
    """Middleware that refuses requests and web sockets with a foreign host name, and requests for
    metrics, and passes all others on."""

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
    """Return the address that the server listens on, or that its front listens on, if it has
    one."""
    front = os.environ.get(FRONT_VARIABLE)
    if front is not None:
        return front.rpartition(":")[0]
    return str(st.get_option("server.address") or "0.0.0.0")  # noqa: S104 - so Streamlit does


def is_own_name(host: str, address: str) -> bool:
    """Return whether a Host header names this server.

    host: as it was sent, with or without a port. address: the address that the server is bound to;
        a server that other machines can reach answers under every IP address, which no other site
        can use as its name.
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
    """Return whether an origin is a page of this server, requested as `host`: the same name and
    port, or a listed name, because a proxy may omit its port. Streamlit itself accepts every port
    of this machine."""
    place = origin.partition("://")[2].casefold()
    if place and place == host.casefold():
        return True
    return not names(HOSTS).isdisjoint({_without_port(place), ANY}) or origin in map(
        str, st.get_option("server.corsAllowedOrigins") or ()
    )


def _values(scope: Scope, header: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == header]


def _without_port(host: str) -> str:
    """Return the name or address in a Host header; "" if it is invalid."""
    match = _HOST.fullmatch(host)
    return "" if match is None else match["name"]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


# Limits of browser connections: the time for the head of a request, and the number of connections
# that wait for it. A server without them would run out of file handles.

if sys.platform != "win32":
    import resource

HEAD_SECONDS = 20.0
"""The time limit from the start of a connection, or the first byte of a later request, to the end
of the head."""

_MOST, _MOST_WAITING = 1024, 256
# The number of file handles that are reserved for files and other processes.
_OWN_HANDLES = 32


def most_connections() -> int:
    """Return the maximum number of connections of a process, by its limit of file handles."""
    if sys.platform == "win32":
        return _MOST
    handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if handles < 0 else max(handles - _OWN_HANDLES, handles // 2)


class Waiting:
    """The connections whose request head is incomplete."""

    def __init__(self) -> None:
        self._timers: dict[asyncio.BaseTransport, asyncio.TimerHandle] = {}

    def begin(self, transport: asyncio.WriteTransport) -> None:
        """Start a timer that closes the connection if its request head is late. If too many
        connections wait, close the oldest one."""
        if transport not in self._timers:
            if len(self._timers) >= min(most_connections() // 2, _MOST_WAITING):
                self.close_oldest()
            loop = asyncio.get_running_loop()
            self._timers[transport] = loop.call_later(HEAD_SECONDS, self._close, transport)

    def end(self, transport: asyncio.WriteTransport) -> None:
        """Stop the timer: the head is complete, or the connection has ended."""
        if (timer := self._timers.pop(transport, None)) is not None:
            timer.cancel()

    def close_oldest(self) -> bool:
        """Close the connection that has waited longest; return False if none waits."""
        oldest = next(iter(self._timers), None)
        if isinstance(oldest, asyncio.WriteTransport):
            self._close(oldest)
        return oldest is not None

    def _close(self, transport: asyncio.WriteTransport) -> None:
        self.end(transport)
        transport.abort()


_waiting = Waiting()


class Connection(AutoHTTPProtocol):  # type: ignore[valid-type, misc]
    """uvicorn's protocol with these limits."""

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
