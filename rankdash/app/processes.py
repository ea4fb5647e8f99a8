"""`serve --processes n`: several servers behind one address, and one worker for all of them.

A cookie keeps a browser with one server, which holds its session, its uploads and its files. Every
request has a connection of its own behind the front, which reads no more of it than its head; what
the servers check, such as the host and the origin, they check as if they were asked directly. A
server that ends is started again, and its browsers go to another until it is there.
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
    """One of the servers. port: None while it cannot be asked."""

    place: int
    port: int | None = None
    process: asyncio.subprocess.Process | None = None
    connections: int = 0


class Front:
    """Servers, each started by a command to which its port is added, and what is between them and
    the browsers. address: host:port, as the servers are told; base_path: without slashes."""

    def __init__(
        self, command: Sequence[str], count: int, *, address: str, base_path: str = ""
    ) -> None:
        self._command = command
        self._address = address
        self._servers = [_Server(place) for place in range(count)]
        self._cookie_path = f"/{base_path}"
        # What one server signs, another has to know.
        self._secret = secrets.token_hex(32)
        self._worker = _worker()
        self._ended = asyncio.Event()
        self._any_up = asyncio.Event()
        self._code = DONE
        self._waiting = Waiting()

    async def serve(self, listener: socket.socket) -> int:
        """Until `end`, or until servers cannot be started: the exit code."""
        front = await asyncio.start_server(self._connected, sock=listener, limit=_HEAD_BYTES)
        tasks = [asyncio.create_task(self._keep(server)) for server in self._servers]
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

    async def _keep(self, server: _Server) -> None:
        """Start a server as often as it ends."""
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
                    # Ctrl+C is for the front, which ends its servers. Not a new session: Linux may
                    # share processors between sessions first, and then the worker gives way to
                    # nobody.
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
        """Its exit code, in the end."""
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
        """Do what a server asks of the worker."""
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
            # Closed with something unread, such as the rest of too large an upload, the answer
            # would be lost on its way.
            writer.write_eof()
            async with asyncio.timeout(_LINGER_SECONDS):
                while await reader.read(_PIECE_BYTES):
                    pass
        with contextlib.suppress(OSError):
            writer.close()
            await writer.wait_closed()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of a browser to its server, and all that follows it."""
        self._waiting.begin(writer.transport)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        finally:
            self._waiting.end(writer.transport)
        chosen = _CHOSEN.search(head)
        known = int(chosen[1]) if chosen else None
        connection = await self._reached(known)
        if connection is None:
            writer.write(_refusal("503 Service Unavailable"))
            return
        server, answer, behind = connection
        server.connections += 1
        try:
            behind.write(_forwarded(head, str(writer.get_extra_info("peername")[0])))
            place = None if server.place == known else server.place
            await _first_of(_copy(reader, behind), self._answer(answer, writer, place))
        finally:
            server.connections -= 1
            behind.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: int | None
    ) -> None:
        """Pass an answer on. place: of the server that the browser shall keep to."""
        if place is not None:
            writer.write(self._with_cookie(await reader.readuntil(b"\r\n\r\n"), place))
        await _copy(reader, writer)

    async def _reached(
        self, known: int | None
    ) -> tuple[_Server, asyncio.StreamReader, asyncio.StreamWriter] | None:
        """The server that a browser knows, else the one with the fewest connections, and a
        connection with it; None where none comes up."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_START_SECONDS):
                while await self._any_up.wait():
                    up = [server for server in self._servers if server.port is not None]
                    up.sort(key=lambda each: (each.place != known, each.connections))
                    for server in up:
                        # One that was just killed refuses before its end is known.
                        with contextlib.suppress(OSError):
                            return server, *await asyncio.open_connection(
                                _LOOPBACK, server.port, limit=_HEAD_BYTES
                            )
                    await asyncio.sleep(_LOOK_SECONDS)
        return None

    def _with_cookie(self, head: bytes, place: int) -> bytes:
        line, rest = head.split(b"\r\n", 1)
        # What comes before the answer itself is no place for cookies.
        if line.split(b" ")[1:2] == [b"100"]:
            return head
        cookie = f"{COOKIE}={place}; Path={self._cookie_path}; HttpOnly; SameSite=Lax"
        return line + f"\r\nSet-Cookie: {cookie}\r\n".encode() + rest


async def until_stopped(front: Front, listener: socket.socket) -> int:
    """Serve until a signal asks for the end: the exit code."""
    loop = asyncio.get_running_loop()
    for number, code in ((signal.SIGINT, INTERRUPTED), (signal.SIGTERM, DONE)):
        loop.add_signal_handler(number, front.end, code)
    # A terminal may stop those of its programs that write while another is in front.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    return await front.serve(listener)


def listening(host: str, port: int | None) -> socket.socket:
    """A socket there; without a port at 8501 or the next free one. Raises OSError."""
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
    """None where the workspace is only shown; what is wrong with it the servers say."""
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
    """Whether a server has started: until then it takes connections and says nothing."""
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
    """The head of a request as a server gets it: after its answer the connection ends, so that the
    next request may be another browser's. Who asks, only a proxy on this machine may say."""
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


async def _first_of(asking: Awaitable[None], answering: Awaitable[None]) -> None:
    """Until the answer ends. A browser that has gone ends it too; one that only has nothing more to
    ask cannot be told from it, and browsers do not do that."""
    tasks = [asyncio.ensure_future(asking), asyncio.ensure_future(answering)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
