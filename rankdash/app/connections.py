"""Connections of browsers: how long the head of a request may take to arrive, and how many may wait
for theirs. A server that waits without end has no file handles left for others."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

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
        asked: Any = self.cycle
        if (asked and not asked.response_complete) or self.transport.get_protocol() is not self:
            _waiting.end(self.transport)
        else:
            _waiting.begin(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        _waiting.end(self.transport)
        super().connection_lost(exc)
