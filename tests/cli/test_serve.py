"""Arguments that `serve` passes to the server; tests/test_package.py runs the server itself."""

import asyncio
import os
import runpy
import signal
import socket
import sys
from pathlib import Path

import pytest

from rankdash.app import processes
from rankdash.core.base import allowed
from rankdash.core.base.shipped import APP
from rankdash.core.rerankers.neural import runtimes


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments of each start of Streamlit, which is not executed."""
    made: list[list[str]] = []
    monkeypatch.setattr(
        runpy, "run_module", lambda name, run_name: made.append([name, *sys.argv[1:]])
    )
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(sys, "argv", ["rankdash"])
    for name in ("RANKDASH_HOME", "RANKDASH_READ_ONLY"):
        # So that the variable is restored after the test.
        monkeypatch.setenv(name, "")
    return made


def test_what_is_given_reaches_the_server(run, starts, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    home = str(tmp_path / "home")
    assert run().code == 0
    assert (APP.parent / ".streamlit" / "config.toml").is_file()
    assert starts.pop() == ["streamlit", "run", str(APP)]
    done = run(
        *("serve", "--host", "127.0.0.1", "--port", free, "--base-path", "/tools/rank/"),
        *("--read-only", "--home", home, "--no-browser"),
    )
    assert (done.code, done.err) == (0, "")
    assert starts[0][3:] == [
        "--server.address=127.0.0.1",
        f"--server.port={free}",
        "--server.baseUrlPath=tools/rank",
        "--server.headless=true",
    ]
    assert (os.environ["RANKDASH_HOME"], os.environ["RANKDASH_READ_ONLY"]) == (home, "1")


def test_what_is_allowed_reaches_the_server_and_its_worker(run, starts, monkeypatch):
    for name in (allowed.HOSTS, allowed.KEYS, allowed.SERVICES):
        monkeypatch.setenv(name, "before" if name == allowed.HOSTS else "")
    run("serve", "--allow-host", "a.example", "B.example", "--allow-host", "c", "--allow-key", "K")
    assert allowed.names(allowed.HOSTS) == {"before", "a.example", "b.example", "c"}
    assert allowed.names(allowed.KEYS) == {"k"}
    assert allowed.names(allowed.SERVICES) == frozenset()
    assert starts == [["streamlit", "run", str(APP)]]


def test_a_port_that_is_taken_and_a_certificate_for_several_processes_are_refused(
    run, starts, monkeypatch
):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("serve", "--port", port)
    assert (done.code, starts) == (2, [])
    assert done.err == (
        f"error: Port {port} is in use by another program; choose another --port, or remove it "
        "to use the next free one.\n"
    )
    monkeypatch.setenv("STREAMLIT_SERVER_SSL_CERT_FILE", "cert.pem")
    done = run("serve", "--processes", "2")
    assert done.code == 2 and "put a proxy with the certificate in front" in done.err


LINE = "{n} server processes; set another number with --processes.\n"


@pytest.mark.parametrize(
    ("options", "address", "processors", "count"),
    [
        ("", "", 8, 1),
        ("--host ::1", "0.0.0.0", 8, 1),
        ("--host 0.0.0.0", "", 8, 4),
        ("--host 0.0.0.0", "", 3, 3),
        ("--host 0.0.0.0", "", 1, 1),
        # As in Docker.
        ("", "0.0.0.0", 8, 4),
        ("--host 0.0.0.0 --processes 1", "", 8, 1),
        ("--host 0.0.0.0 --processes 2", "", 8, 2),
        ("--processes 3", "", 8, 3),
    ],
)
def test_others_are_served_by_a_process_for_each_processor_and_one_line_says_so(
    run, starts, monkeypatch, options, address, processors, count
):
    fronts = []

    def until_stopped(front, listener):
        listener.close()
        return 0

    monkeypatch.setenv("STREAMLIT_SERVER_ADDRESS", address)
    # The test restores the variable that the command sets for its processes.
    monkeypatch.setenv(allowed.SHARED, "")
    monkeypatch.setattr(runtimes, "threads", lambda: processors)
    monkeypatch.setattr(processes, "Front", lambda command, n, **_more: fronts.append(n))
    monkeypatch.setattr(processes, "until_stopped", until_stopped)
    # The browser of another test in this process may have a separate loop.
    monkeypatch.setattr(asyncio, "run", lambda code: code)
    done = run("serve", *options.split(), "--port", "0", "--no-browser")
    assert done.code == 0
    assert (fronts, len(starts)) == (([count], 0) if count > 1 else ([], 1))
    says = count > 1 and "--processes" not in options
    assert done.out == (LINE.format(n=count) if says else "")
