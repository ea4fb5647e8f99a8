"""The server process stays light."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from rankdash.ui.state import server
from tests.sets import ROOT

HEAVY = ("torch", "sentence_transformers", "transformers", "bm25s", "jieba")


def test_the_server_imports_no_model_library():
    code = (
        "import sys, rankdash.ui.state.server, rankdash.ui.sidebar.sidebar, "
        "rankdash.ui.sidebar.view, rankdash.ui.queries.query_detail, "
        "rankdash.ui.run.run_form, rankdash.ui.data.check_view\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.fixture
def announced(monkeypatch, capsys):
    """With these options: what the server says on both streams, and which pages it opens."""

    def start(address, *, path="", headless=False):
        options = {
            "server.address": address,
            "server.port": 8501,
            "server.baseUrlPath": path,
            "server.headless": headless,
            "server.sslCertFile": None,
        }
        opened = []
        monkeypatch.setattr(server, "st", SimpleNamespace(get_option=options.__getitem__))
        monkeypatch.setattr(server.webbrowser, "open", opened.append)
        server._announce()
        return *capsys.readouterr(), opened

    return start


def test_the_address_is_printed_and_opened(announced):
    out, err, opened = announced("127.0.0.1", path="/tools/")
    assert out == "rankdash is at http://127.0.0.1:8501/tools (Ctrl+C ends it)\n"
    assert (err, opened) == ("", ["http://127.0.0.1:8501/tools"])
    assert announced("localhost", headless=True)[1:] == ("", [])
    assert announced("::1", headless=True)[1] == ""


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("0.0.0.0", "localhost"),
        ("::", "localhost"),
        ("192.168.1.4", "192.168.1.4"),
        ("2001:db8::1", "[2001:db8::1]"),
        ("search.example", "search.example"),
    ],
)
def test_who_lets_others_in_is_warned_in_one_line(announced, address, shown):
    out, err, _ = announced(address)
    assert f"http://{shown}:8501/" in out
    assert err.startswith(f"warning: Every machine that reaches {address} ")
    assert "--read-only" in err and len(err.splitlines()) == 1
