"""Several servers behind one address: real processes and sockets, and servers that return the
requests they received."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rankdash.app import processes
from rankdash.app.processes import Front, listening
from rankdash.core.base.errors import SettingError
from rankdash.core.runs.jobs import RelayedWorker, obey

SERVER = """
import json, os, socket, sys, threading, time

def answer(connection):
    head = b""
    while b"\\r\\n\\r\\n" not in head:
        piece = connection.recv(65536)
        if not piece:
            return
        head += piece
    head, body = head.split(b"\\r\\n\\r\\n", 1)
    line, *lines = head.decode().split("\\r\\n")
    headers = {name.lower(): value for name, value in (each.split(": ", 1) for each in lines)}
    if "/die" in line:
        os._exit(3)
    if "/worker" in line:
        os.write(int(os.environ["_RANKDASH_WORKER_PIPE"]), b"\\n")
    if headers.get("upgrade"):
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\n"
                           b"Pid: %d\\r\\n\\r\\n" % os.getpid())
        while piece := connection.recv(65536):
            connection.sendall(piece.upper())
        return
    length = int(headers.get("content-length", 0))
    if headers.get("expect"):
        connection.sendall(b"HTTP/1.1 100 Continue\\r\\n\\r\\n")
    while len(body) < length:
        body += connection.recv(65536)
    told = {"pid": os.getpid(), "line": line, "headers": headers, "body": len(body),
            "secret": os.environ["STREAMLIT_SERVER_COOKIE_SECRET"],
            "front": os.environ["_RANKDASH_FRONT"], "first": "_RANKDASH_FIRST" in os.environ,
            "more": "x" * (3_000_000 if "/large" in line else 0)}
    content = json.dumps(told).encode()
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\nConnection: %s\\r\\n\\r\\n"
                       % (len(content), headers.get("connection", "").encode()) + content)
    if headers.get("connection") == "close":
        connection.shutdown(socket.SHUT_WR)

threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
with open(os.environ["PIDS"], "a") as pids:
    pids.write(f"{os.getpid()}\\n")
while os.path.exists(os.environ["PIDS"] + ".held"):
    time.sleep(0.01)
with socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1]))) as listener:
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
"""


# A program that serves a command as `serve` does, with a terminal as standard input.
ON_A_TERMINAL = """
import asyncio, os, sys, termios
from rankdash.app.processes import Front, listening, until_stopped

os.login_tty(0)
settings = termios.tcgetattr(0)
settings[3] |= termios.TOSTOP
termios.tcsetattr(0, termios.TCSANOW, settings)
front = Front([sys.executable, "-c", sys.argv[1]], 1, address="127.0.0.1:1")
sys.exit(asyncio.run(until_stopped(front, listening("127.0.0.1", 0))))
"""


class Browser:
    """A client of the front at a port, from an address; `cookie` is the last one it received."""

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        self.port = port
        self.address = address
        self.cookie = ""

    async def ask(self, path: str = "/", *lines: str, body: bytes = b"") -> tuple[str, dict]:
        """Return the head of the answer and the server's JSON; {} for an empty body."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, local_addr=(self.address, 0)
        )
        head = [f"POST {path} HTTP/1.1", "Host: here:1", f"Content-Length: {len(body)}", *lines]
        if self.cookie:
            head.append(f"Cookie: other=1; {self.cookie}; last=2")
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        told = (await reader.read()).decode()
        writer.close()
        while told.startswith("HTTP/1.1 100"):
            told = told.split("\r\n\r\n", 1)[1]
        answer, _blank, content = told.partition("\r\n\r\n")
        for line in answer.split("\r\n"):
            if line.startswith("Set-Cookie: rankdash_process"):
                self.cookie = line.removeprefix("Set-Cookie: ").partition(";")[0]
        return answer, json.loads(content) if content else {}


@pytest.fixture
def fronted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Return a function that runs a scenario with a browser and a front of two servers, or without
    a browser until the front ends. It returns the exit code."""
    (tmp_path / "server.py").write_text(SERVER)
    pids = tmp_path / "pids"
    monkeypatch.setenv("PIDS", str(pids))
    monkeypatch.setenv("RANKDASH_HOME", str(tmp_path / "home"))

    def run(scenario: Callable | None, *, code: str = "server.py") -> int:
        async def both() -> int:
            listener = listening("127.0.0.1", 0)
            port = listener.getsockname()[1]
            server = [sys.executable, str(tmp_path / code)]
            front = Front(server, 2, address=f"127.0.0.1:{port}", base_path="tools")
            ending = asyncio.create_task(front.serve(listener))
            try:
                if scenario is not None:
                    await scenario(Browser(port))
                    front.end(0)
                return await ending
            finally:
                front.end(0)
                await ending

        # A browser of another test may use this thread's loop.
        with ThreadPoolExecutor(1) as own:
            found = own.submit(asyncio.run, both()).result()
        for pid in pids.read_text().split() if pids.exists() else ():
            with pytest.raises(ProcessLookupError):
                os.kill(int(pid), 0)
        return found

    return run


@asynccontextmanager
async def upgraded(browser: Browser, *lines: str) -> AsyncIterator[tuple]:
    """Yield reader, writer and the head of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", browser.port)
    head = ["GET /stream HTTP/1.1", "Host: here:1", "Connection: Upgrade", "Upgrade: websocket"]
    writer.write("\r\n".join([*head, *lines, "", ""]).encode())
    told = (await reader.readuntil(b"\r\n\r\n")).decode()
    yield reader, writer, told
    writer.close()


async def all_up(browser: Browser) -> None:
    """Wait until a new client gets another server while one is busy."""
    async with upgraded(browser) as (_reader, _writer, busy):
        while f"Pid: {(await Browser(browser.port).ask())[1]['pid']}" in busy:
            await asyncio.sleep(0.02)


def test_a_browser_stays_with_one_server_and_the_next_one_gets_the_other(fronted):
    async def scenario(browser: Browser) -> None:
        await all_up(browser)
        answer, first = await browser.ask()
        assert "HttpOnly; SameSite=Lax" in answer and "Path=/tools;" in answer
        async with upgraded(browser, f"Cookie: {browser.cookie}"):
            other = Browser(browser.port)
            _, second = await other.ask()
            assert second["pid"] != first["pid"]
            for each, told in ((browser, first), (other, second), (browser, first)):
                answer, again = await each.ask("/again")
                assert again["pid"] == told["pid"] and "Set-Cookie" not in answer
        assert second["secret"] == first["secret"]
        # One server prints the address of the front.
        assert first["front"] == second["front"] == f"127.0.0.1:{browser.port}"
        assert sorted([first["first"], second["first"]]) == [False, True]

    assert fronted(scenario) == 0


# The front replaces the headers of clients on other machines with their address.
FORWARDED = {
    "127.0.0.1": {"x-forwarded-for": "192.0.2.7", "forwarded": "for=x"},
    "127.0.0.2": {"x-forwarded-for": "127.0.0.2"},
}


def test_requests_uploads_and_what_is_said_after_an_upgrade_go_through_whole(fronted):
    async def scenario(browser: Browser) -> None:
        for address, forwarded in FORWARDED.items():
            _, told = await Browser(browser.port, address).ask(
                *("/a?b=1", "Connection: keep-alive", "Origin: http://here:1"),
                *("X-Forwarded-For: 192.0.2.7", "forwarded: for=x"),
            )
            assert told["line"] == "POST /a?b=1 HTTP/1.1"
            own = {"host": "here:1", "content-length": "0", "origin": "http://here:1"}
            assert told["headers"] == {**own, "connection": "close", **forwarded}
        _, told = await browser.ask("/large", body=b"u" * 5_000_000)
        assert (told["body"], len(told["more"])) == (5_000_000, 3_000_000)
        # The cookie is in the answer after the interim response.
        _, told = await Browser(browser.port).ask("/", "Expect: 100-continue", body=b"u" * 10)
        assert told["body"] == 10
        answer, _ = await Browser(browser.port).ask("/", f"Long: {'x' * 200_000}")
        assert "431" in answer
        async with upgraded(browser) as (reader, writer, head):
            assert "101" in head and "Set-Cookie: rankdash_process=" in head
            for said in (b"a", b"b" * 300_000, b"c"):
                writer.write(said)
                assert await reader.readexactly(len(said)) == said.upper()

    fronted(scenario)


def test_a_server_that_ends_is_started_again_and_others_serve_until_then(fronted, capfd, tmp_path):
    held = tmp_path / "pids.held"

    async def scenario(browser: Browser) -> None:
        await all_up(browser)
        _, first = await browser.ask()
        before = browser.cookie
        # The next server starts immediately, but serves only after this file is removed.
        held.touch()
        answer, _ = await browser.ask("/die")
        assert answer == ""
        second: dict = {}
        # A server that is ending may accept a connection without an answer.
        while not second:
            _, second = await browser.ask()
        assert second["pid"] != first["pid"] and browser.cookie != before
        held.unlink()
        third = second
        while third["pid"] == second["pid"]:
            browser.cookie = before
            _, third = await browser.ask()
        assert third["pid"] != first["pid"]

    assert fronted(scenario) == 0
    assert "ended with exit code 3" in capfd.readouterr().err


def test_servers_that_cannot_start_end_the_front(fronted, tmp_path, capfd):
    (tmp_path / "broken.py").write_text("raise SystemExit(7)")

    assert fronted(None, code="broken.py") == 1
    assert "error: The servers cannot be started." in capfd.readouterr().err


def test_any_server_starts_the_worker_in_one_session_and_ctrl_c_is_not_for_them(
    fronted, monkeypatch, tmp_path, workspace
):
    worker = processes.WorkerProcess(workspace)
    monkeypatch.setattr(processes, "WorkerProcess", lambda _workspace: worker)

    async def scenario(browser: Browser) -> None:
        await all_up(browser)
        await browser.ask("/worker")
        while worker.pid is None:
            await asyncio.sleep(0.01)
        servers = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        # Linux may divide the processor time by session first, regardless of the worker's priority.
        assert {os.getsid(pid) for pid in (*servers, worker.pid)} == {os.getsid(0)}
        assert os.getpgrp() not in {os.getpgid(pid) for pid in servers}

    fronted(scenario)


def test_a_terminal_that_stops_what_writes_behind_it_stops_no_server(tmp_path):
    terminal, its_end = pty.openpty()
    front = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, "print('written', flush=True); input()"],
        stdin=its_end,
        env={**os.environ, "RANKDASH_HOME": str(tmp_path)},
    )
    os.close(its_end)
    with os.fdopen(terminal, "r+b", buffering=0) as seen:
        while b"written" not in seen.read(1000):
            pass
        # Ctrl+C.
        seen.write(b"\x03")
        assert front.wait() == 130


def test_keys_reach_the_worker_of_another_process(monkeypatch, workspace):
    reading, writing = os.pipe()
    told: list[object] = []
    worker = processes.WorkerProcess(workspace)
    monkeypatch.setattr(worker, "ensure", lambda: told.append("ensure"))
    monkeypatch.setattr(worker, "hand_over", lambda *given: told.append(given))
    there = RelayedWorker(writing)
    there.ensure()
    there.hand_over("job", {"KEY": "s\necret"})
    there.stop()
    with os.fdopen(reading, "rb") as pipe:
        with pytest.raises(SettingError):
            there.hand_over("job", {"KEY": "x" * 5000})
        os.close(writing)
        for line in pipe:
            obey(worker, line)
    assert told == ["ensure", ("job", {"KEY": "s\necret"})]


def test_the_next_free_port_is_taken_unless_one_is_named(monkeypatch):
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("STREAMLIT_SERVER_PORT", str(port))
        with listening("127.0.0.1", None) as next_one:
            assert port < next_one.getsockname()[1] < port + 100
        with pytest.raises(OSError):
            listening("127.0.0.1", port)
