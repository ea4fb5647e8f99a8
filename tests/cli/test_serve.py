"""What `serve` asks of the server; the server itself is tried in tests/test_package.py."""

import os
import runpy
import signal
import socket
import sys
from pathlib import Path

import pytest

from rankdash.core.base import allowed
from rankdash.core.base.shipped import APP


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments of each start of Streamlit, which starts nothing."""
    made: list[list[str]] = []
    monkeypatch.setattr(
        runpy, "run_module", lambda name, run_name: made.append([name, *sys.argv[1:]])
    )
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(sys, "argv", ["rankdash"])
    for name in ("RANKDASH_HOME", "RANKDASH_READ_ONLY"):
        # Noted, and so put back after the test.
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
        f"error: Port {port} is taken by another program; choose another --port, or leave it out "
        "to take the next free one.\n"
    )
    monkeypatch.setenv("STREAMLIT_SERVER_SSL_CERT_FILE", "cert.pem")
    done = run("serve", "--processes", "2")
    assert done.code == 2 and "put a proxy with the certificate in front" in done.err
