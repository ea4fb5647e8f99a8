"""`serve --processes n`: several servers behind one address, and one worker for all of them.

A cookie binds a browser to one server, which has its session, uploads and files. Every request has
a separate connection behind the front, which reads only its head; the servers check the host and
the origin as for direct requests. A server that ends is restarted, and its browsers use another one
until it is ready.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from rankdash.app.guard import Waiting
from rankdash.core.base.errors import RankdashError
from rankdash.core.base.shipped import FIRST_VARIABLE, FRONT_VARIABLE, python_path
from rankdash.core.runs.jobs import (
    PIPE_VARIABLE,
    QUICK_DEATH_SECONDS,
    QUICK_DEATHS,
    WorkerProcess,
    obey,
)
from rankdash.core.workspace import Workspace
from rankdash.kit.commands.arguments import DONE, INCOMPLETE, INTERRUPTED

COOKIE = "rankdash_process"
_LOOPBACK = "127.0.0.1"
_SECRET_VARIABLE = "STREAMLIT_SERVER_COOKIE_SECRET"  # noqa: S105 - its name
_HEAD_BYTES = 1 << 16
_PIECE_BYTES = 1 << 16
_START_SECONDS = 120.0
_STOP_SECONDS = 10.0
_LINGER_SECONDS = 5.0
_LOOK_SECONDS = 0.1
_CHOSEN = re.compile(rb"(?im)^cookie:.*?[ ;]" + COOKIE.encode() + rb"=(\d{1,4})(?=[;\r ])")
_HOP = re.compile(rb"(?im)^(connection|keep-alive|proxy-connection):[^\n]*\n")
_FORWARDED = re.compile(rb"(?im)^(forwarded|x-forwarded-[\w-]+):[^\n]*\n")
_UPGRADE = re.compile(rb"(?im)^upgrade:\s*websocket\s*$")


@dataclass
class _Server:
    """One of the servers. port: None until it is ready."""

    place: int
    port: int | None = None
    process: asyncio.subprocess.Process | None = None
    connections: int = 0


class Front:
    """The front of several servers, each started by a command with a port appended, which relays
    between them and the browsers. address: host:port, as passed to the servers; base_path: without
    slashes."""

    def __init__(
        self, command: Sequence[str], count: int, *, address: str, base_path: str = ""
    ) -> None:
        self._command = command
        self._address = address
        self._servers = [_Server(place) for place in range(count)]
        self._cookie_path = f"/{base_path}"
        # The servers verify each other's cookies.
        self._secret = secrets.token_hex(32)
        self._worker = _worker()
        self._ended = asyncio.Event()
        self._any_up = asyncio.Event()
        self._code = DONE
        self._waiting = Waiting()

    async def serve(self, listener: socket.socket) -> int:
        """Serve until `end` is called, or servers cannot be started; return the exit code."""
        front = await asyncio.start_server(self._connected, sock=listener, limit=_HEAD_BYTES)
        tasks = [asyncio.create_task(self._run_server(server)) for server in self._servers]
        await self._ended.wait()
        front.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(_stopped(server.process) for server in self._servers))
        if self._worker is not None:
            await asyncio.to_thread(self._worker.stop)
        return self._code

    def end(self, code: int) -> None:
        self._code = code
        self._ended.set()

    async def _run_server(self, server: _Server) -> None:
        """Start a server whenever it ends."""
        quick = 0
        says = {FIRST_VARIABLE: "1"} if server.place == 0 else {}
        while quick < QUICK_DEATHS:
            started = time.monotonic()
            port = _free_port()
            reading, writing = os.pipe()
            try:
                server.process = await asyncio.create_subprocess_exec(
                    *self._command,
                    *("--port", str(port)),
                    stdin=asyncio.subprocess.PIPE,
                    env={
                        _SECRET_VARIABLE: self._secret,
                        **os.environ,
                        "PYTHONPATH": python_path(),
                        FRONT_VARIABLE: self._address,
                        **says,
                        PIPE_VARIABLE: str(writing),
                    },
                    pass_fds=(writing,),
                    # Ctrl+C goes to the front, which ends its servers. Not a new session: Linux may
                    # divide processors between sessions first, and then the worker would not yield
                    # to the servers.
                    process_group=0,
                )
            finally:
                os.close(writing)
            listening = asyncio.create_task(self._listen(reading))
            code = await self._watch(server, server.process, port)
            listening.cancel()
            says = {}
            quick = quick + 1 if time.monotonic() - started < QUICK_DEATH_SECONDS else 0
            sys.stderr.write(f"warning: Server {server.place + 1} ended with exit code {code}.\n")
        sys.stderr.write("error: The servers cannot be started.\n")
        self.end(INCOMPLETE)

    async def _watch(self, server: _Server, process: asyncio.subprocess.Process, port: int) -> int:
        """Mark the server as ready once it answers; return its exit code when it ends."""
        ended = asyncio.create_task(process.wait())
        try:
            while not ended.done() and not await _answers(port):
                await asyncio.wait([ended], timeout=_LOOK_SECONDS)
            if not ended.done():
                server.port = port
                self._any_up.set()
            return await ended
        finally:
            ended.cancel()
            server.port = None
            if not any(each.port for each in self._servers):
                self._any_up.clear()

    async def _listen(self, pipe: int) -> None:
        """Pass a server's messages on to the worker."""
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipe, "rb", 0)
        )
        try:
            while message := await reader.readline():
                if self._worker is not None:
                    await asyncio.to_thread(obey, self._worker, message)
        finally:
            transport.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            try:
                await self._pass_on(reader, writer)
            except asyncio.LimitOverrunError:
                writer.write(_refusal("431 Request Header Fields Too Large"))
        with contextlib.suppress(OSError, TimeoutError):
            # Read the rest, such as a refused upload: closing a connection with unread data would
            # lose the answer.
            writer.write_eof()
            async with asyncio.timeout(_LINGER_SECONDS):
                while await reader.read(_PIECE_BYTES):
                    pass
        with contextlib.suppress(OSError):
            writer.close()
            await writer.wait_closed()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay one request of a browser, and everything that follows it, to its server."""
        self._waiting.begin(writer.transport)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        finally:
            self._waiting.end(writer.transport)
        chosen = _CHOSEN.search(head)
        bound_place = int(chosen[1]) if chosen else None
        connection = await self._reached(bound_place)
        if connection is None:
            writer.write(_refusal("503 Service Unavailable"))
            return
        server, answer, behind = connection
        server.connections += 1
        try:
            behind.write(_forwarded(head, str(writer.get_extra_info("peername")[0])))
            place = None if server.place == bound_place else server.place
            await _first_of(_copy(reader, behind), self._answer(answer, writer, place))
        finally:
            server.connections -= 1
            behind.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: int | None
    ) -> None:
        """Relay the response; set the cookie if `place`, the number of the browser's new server, is
        passed."""
        if place is not None:
            writer.write(self._with_cookie(await reader.readuntil(b"\r\n\r\n"), place))
        await _copy(reader, writer)

    async def _reached(
        self, bound_place: int | None
    ) -> tuple[_Server, asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Return the server in a browser's cookie, or else the server with the fewest connections,
        and a connection to it; None if none starts in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_START_SECONDS):
                while await self._any_up.wait():
                    up = [server for server in self._servers if server.port is not None]
                    up.sort(key=lambda each: (each.place != bound_place, each.connections))
                    for server in up:
                        # A server that was just killed refuses connections before its end is
                        # noticed.
                        with contextlib.suppress(OSError):
                            return server, *await asyncio.open_connection(
                                _LOOPBACK, server.port, limit=_HEAD_BYTES
                            )
                    await asyncio.sleep(_LOOK_SECONDS)
        return None

    def _with_cookie(self, head: bytes, place: int) -> bytes:
        line, rest = head.split(b"\r\n", 1)
        # An interim response cannot set cookies.
        if line.split(b" ")[1:2] == [b"100"]:
            return head
        cookie = f"{COOKIE}={place}; Path={self._cookie_path}; HttpOnly; SameSite=Lax"
        return line + f"\r\nSet-Cookie: {cookie}\r\n".encode() + rest


async def until_stopped(front: Front, listener: socket.socket) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code."""
    loop = asyncio.get_running_loop()
    for number, code in ((signal.SIGINT, INTERRUPTED), (signal.SIGTERM, DONE)):
        loop.add_signal_handler(number, front.end, code)
    # A terminal may stop programs that write while another one is in the foreground.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    return await front.serve(listener)


def listening(host: str, port: int | None) -> socket.socket:
    """Return a listening socket; without a port, at 8501 or the next free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    first = int(os.environ.get("STREAMLIT_SERVER_PORT", "8501"))
    ports = (port,) if port is not None else range(first, first + 100)
    for each in ports:
        try:
            return socket.create_server((host, each), family=family, backlog=2048)
        except OSError:
            if each == ports[-1]:
                raise
    raise AssertionError(ports)


def _worker() -> WorkerProcess | None:
    """Return the worker; None if the workspace is read-only or cannot be opened (the servers report
    the error)."""
    try:
        workspace = Workspace.open()
        if workspace.read_only:
            return None
    except RankdashError:
        return None
    return WorkerProcess(workspace)


def _free_port() -> int:
    with socket.create_server((_LOOPBACK, 0)) as probe:
        return int(probe.getsockname()[1])


async def _answers(port: int) -> bool:
    """Return whether a server answers: before that, it accepts connections without answering."""
    try:
        reader, writer = await asyncio.open_connection(_LOOPBACK, port)
    except OSError:
        return False
    try:
        writer.write(b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(_START_SECONDS):
            return (await reader.readline()).startswith(b"HTTP/1.1 ")
    except (OSError, TimeoutError):
        return False
    finally:
        writer.close()


async def _stopped(process: asyncio.subprocess.Process | None) -> None:
    if process is None or process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


def _forwarded(head: bytes, peer: str) -> bytes:
    """Return the request head for a server: the connection closes after the response, because the
    next request may come from another browser, and the client's address is set, unless a proxy on
    this machine already did."""
    line, rest = head.split(b"\r\n", 1)
    if not _UPGRADE.search(rest.replace(b"\r", b"")):
        rest = b"Connection: close\r\n" + _HOP.sub(b"", rest)
    if peer not in (_LOOPBACK, "::1"):
        rest = f"X-Forwarded-For: {peer}\r\n".encode() + _FORWARDED.sub(b"", rest)
    return line + b"\r\n" + rest


def _refusal(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE_BYTES):
        writer.write(piece)
        await writer.drain()


async def _first_of(requests: Awaitable[None], responses: Awaitable[None]) -> None:
    """Run both directions until either ends, then cancel the other one. A half-closed connection,
    which browsers do not use, counts as closed."""
    tasks = [asyncio.ensure_future(requests), asyncio.ensure_future(responses)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
