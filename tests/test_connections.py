"""Slow connections are closed soon, and do not block the server."""

import asyncio
import http.client
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
import uvicorn
from websockets.sync.client import connect

from rankdash.app import guard
from rankdash.app.processes import Front

PART = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n"
WHOLE = PART + b"\r\n"
# Much longer than any answer takes.
PATIENCE = 120
BEGUN, GO = threading.Event(), threading.Event()


async def app(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        await send({"type": "websocket.send", "text": "still here"})
        await receive()
    elif scope["type"] == "http":
        if scope["path"] == "/slow":
            BEGUN.set()
            await asyncio.to_thread(GO.wait, PATIENCE)
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})


@contextmanager
def serving():
    config = uvicorn.Config(app, http=guard.Connection, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def few(monkeypatch):
    """A process with few file handles: 8 connections may wait."""
    monkeypatch.setattr(guard, "most_connections", lambda: 16)


def opened(port, text):
    link = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    link.sendall(text)
    return link


def is_closed(link):
    """Return whether the server has closed it, after waiting."""
    try:
        return link.recv(1) == b""
    except ConnectionError:
        return True


def asked(port, path="/"):
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as link:
        link.request("GET", path)
        answer = link.getresponse()
        return answer.status, answer.read()


def test_a_head_that_does_not_come_in_time_ends_the_connection(monkeypatch):
    with serving() as port, opened(port, WHOLE) as link:
        assert link.recv(15) == b"HTTP/1.1 200 OK"
        while not link.recv(1000).endswith(b"ok"):
            pass
        monkeypatch.setattr(guard, "HEAD_SECONDS", 0.2)
        # The same for the head of a later request.
        link.sendall(PART)
        assert is_closed(link)
        for text in (b"", PART):
            with opened(port, text) as other:
                assert is_closed(other)


def test_many_slow_connections_leave_the_server_to_others_and_what_is_asked_stays(few):
    with (
        serving() as port,
        connect(f"ws://127.0.0.1:{port}") as link,
        ThreadPoolExecutor(1) as apart,
    ):
        GO.clear()
        answer = apart.submit(asked, port, "/slow")
        BEGUN.wait(PATIENCE)
        slow = [opened(port, PART) for _ in range(60)]
        assert all(map(is_closed, slow[:52]))
        # The newest connections are served when the rest of their head arrives.
        slow[-1].sendall(b"\r\n")
        assert slow[-1].recv(15) == b"HTTP/1.1 200 OK"
        for _ in range(20):
            assert asked(port) == (200, b"ok")
        GO.set()
        assert answer.result() == (200, b"ok")
        link.send("?")
        assert link.recv(timeout=PATIENCE) == "still here"
        for each in slow:
            each.close()


def test_the_front_of_several_servers_closes_slow_connections_too(few, monkeypatch, tmp_path):
    monkeypatch.setattr(guard, "HEAD_SECONDS", 0.2)
    # A file is not a workspace, so that no worker is started.
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RANKDASH_HOME", str(tmp_path / "file"))
    listener = socket.create_server(("127.0.0.1", 0))
    front = Front(["false"], 0, address="127.0.0.1:0")

    async def serve():
        task = asyncio.ensure_future(front.serve(listener))
        slow = [opened(listener.getsockname()[1], PART) for _ in range(20)]
        for link in slow:
            with link:
                assert await asyncio.to_thread(is_closed, link)
        front.end(0)
        await task

    with ThreadPoolExecutor(1) as apart:
        apart.submit(asyncio.run, serve()).result()
