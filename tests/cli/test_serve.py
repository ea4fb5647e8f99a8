"""What `serve` asks of the server; the server itself is tried in tests/test_package.py."""

import os
import runpy
import socket
import sys
from pathlib import Path

import pytest

from rankdash import __version__
from rankdash.shipped import APP


class App:
    """The dashboard, which notes how it was started."""

    def __init__(self) -> None:
        self.config: dict[str, object] = {}
        self.argv: list[str] = []
        self.starts = 0

    def run(self, config: dict[str, object]) -> None:
        self.config, self.argv, self.starts = config, list(sys.argv), self.starts + 1


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> App:
    made = App()
    monkeypatch.setattr(runpy, "run_path", lambda path: {"app": made} if path == str(APP) else {})
    monkeypatch.setattr(sys, "argv", ["rankdash"])
    for name in ("HOME", "READ_ONLY", "HOST", "PORT", "BASE_PATH"):
        # Noted, and so put back after the test.
        monkeypatch.setenv(f"RANKDASH_{name}", "")
    return made


def test_without_a_word_the_dashboard_opens_as_its_settings_say(run, app, monkeypatch):
    assert run().code == 0
    assert (app.starts, app.config, app.argv) == (1, {}, [str(APP)])
    assert (APP.parent / ".streamlit" / "config.toml").is_file()


def test_what_is_given_reaches_the_server(run, app, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    home = str(tmp_path / "home")
    done = run(
        *("serve", "--host", "127.0.0.1", "--port", free, "--base-path", "/tools/rank/"),
        *("--read-only", "--home", home, "--no-browser"),
    )
    assert (done.code, done.err) == (0, "")
    assert app.config == {
        "server.address": "127.0.0.1",
        "server.port": free,
        "server.baseUrlPath": "tools/rank",
        "server.headless": True,
    }
    assert (os.environ["RANKDASH_HOME"], os.environ["RANKDASH_READ_ONLY"]) == (home, "1")


def test_where_nothing_is_given_the_environment_is_asked(run, app, monkeypatch):
    monkeypatch.setenv("RANKDASH_HOST", "127.0.0.1")
    monkeypatch.setenv("RANKDASH_PORT", "0")
    monkeypatch.setenv("RANKDASH_BASE_PATH", "/rankdash")
    assert run("serve", "--base-path", "/").code == 0
    assert app.config == {
        "server.address": "127.0.0.1",
        "server.port": 0,
        "server.baseUrlPath": "",
    }
    monkeypatch.setenv("RANKDASH_PORT", "many")
    assert run("serve").code == 2


def test_a_port_that_was_asked_for_and_is_taken_is_said(run, app):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("serve", "--port", port)
    assert (done.code, app.starts) == (2, 0)
    assert done.err == (
        f"error: Port {port} is taken by another program; choose another --port, or leave it out "
        "to take the next free one.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--port", "70000"), "from 1 to 65535"),
        (("--host", "192.0.2.1"), "no address '192.0.2.1'"),
        (("--host", "no-such-host.invalid"), "no address"),
        (("--base-path", "a b"), "no path of an address"),
    ],
)
def test_a_server_that_cannot_be_is_refused_in_one_line(run, app, arguments, said):
    done = run("serve", *arguments)
    assert (done.code, app.starts) == (2, 0)
    assert said in done.err and len(done.err.splitlines()) == 1


def test_the_version_is_told(run, capsys):
    with pytest.raises(SystemExit) as ended:
        run("--version")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"rankdash {__version__}\n"
