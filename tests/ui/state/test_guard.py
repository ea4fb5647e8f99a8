"""Host names that the server accepts, and its metrics, which are closed."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
import streamlit as st

from rankdash.app.guard import Guard
from rankdash.core.base import allowed
from rankdash.core.base.shipped import FRONT_VARIABLE


@pytest.fixture
def ask(monkeypatch):
    """Return "passed", or the status of a request; of a web socket "passed" or "closed"."""
    options = {"server.address": "127.0.0.1", "server.corsAllowedOrigins": []}
    monkeypatch.setattr(st, "get_option", options.get)
    for name in (allowed.HOSTS, allowed.METRICS):
        monkeypatch.delenv(name, raising=False)

    def asked(*hosts, bound="127.0.0.1", kind="http", path="/", origin=None, method="GET", cors=()):
        options["server.address"] = bound
        options["server.corsAllowedOrigins"] = list(cors)
        sent = []

        async def app(scope, receive, send):
            sent.append({"type": "passed"})

        async def receive():
            return {"type": f"{kind}.connect"}

        async def send(message):
            sent.append(message)

        headers = [(b"host", h.encode()) for h in hosts]
        if origin is not None:
            headers.append((b"origin", origin.encode()))
        scope = {"type": kind, "path": path, "headers": headers}
        asked_of = Guard(app)(scope | {"method": method}, receive, send)
        # Playwright leaves a loop running in the thread of the tests.
        with ThreadPoolExecutor(1) as apart:
            apart.submit(asyncio.run, asked_of).result()
        first = sent[0]
        return first.get("status") or first["type"].replace("websocket.close", "closed")

    return asked


OWN = ["localhost", "LOCALHOST:8501", "app.localhost", "127.0.0.1:8501", "127.1.2.3", "[::1]:8501"]
FOREIGN = ["evil.example", "evil.example:8501", "localhost.evil.example", "127.0.0.1.evil.example",
           "evil.example.", "", "xn--lcalhost-0za", "[::1].evil.example:80"]  # fmt: skip
BOUND = ["127.0.0.1", "localhost", "0.0.0.0", "192.168.1.5"]
# (requested hosts, address the server is bound to, address of the front of several servers, whether
# it answers).
ANSWERS = [
    *(([host], bound, "", True) for host in OWN for bound in ("127.0.0.1", "0.0.0.0")),
    *(([host], bound, "", False) for host in FOREIGN for bound in BOUND),
    ([], "127.0.0.1", "", False), (["localhost", "evil.example"], "127.0.0.1", "", False),
    # A server that is bound to other addresses answers under them.
    (["192.168.1.5:8501"], "127.0.0.1", "", False), (["rack7"], "rack7", "", True),
    *((["192.168.1.5:8501"], bound, "", True) for bound in ("0.0.0.0", "::", "192.168.1.5")),
    *((["[fd00::5]"], bound, "", True) for bound in ("0.0.0.0", "::", "192.168.1.5")),
    # One of several servers, bound to loopback, answers under the address of their front.
    (["192.168.1.5:8501"], "127.0.0.1", "0.0.0.0:8501", True),
    (["evil.example"], "127.0.0.1", "0.0.0.0:8501", False),
    (["[fd00::5]:8501"], "127.0.0.1", ":::8501", True),
    (["192.168.1.5:8501"], "0.0.0.0", "127.0.0.1:8501", False),
]  # fmt: skip


@pytest.mark.parametrize(("hosts", "bound", "front", "answered"), ANSWERS)
def test_a_server_answers_under_its_own_names(ask, monkeypatch, hosts, bound, front, answered):
    if front:
        monkeypatch.setenv(FRONT_VARIABLE, front)
    assert ask(*hosts, bound=bound) == ("passed" if answered else 421)
    assert ask(*hosts, bound=bound, kind="websocket") == ("passed" if answered else "closed")


HERE = "localhost:8501"
ELSEWHERE = ["http://localhost:3000", "http://127.0.0.1:8501", "http://localhost", "null", "",
             "http://evil.example", "http://localhost:8501.evil", "http://[::1]:8501"]  # fmt: skip


@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0"])
def test_only_its_own_pages_open_a_web_socket_or_change_something(ask, bound):
    for origin in (None, "http://localhost:8501", "https://LOCALHOST:8501"):
        assert ask(HERE, bound=bound, kind="websocket", origin=origin) == "passed"
        assert ask(HERE, bound=bound, method="PUT", origin=origin) == "passed"
    for origin in ELSEWHERE:
        assert ask(HERE, bound=bound, kind="websocket", origin=origin) == "closed"
        for method in ("PUT", "DELETE", "POST"):
            assert ask(HERE, bound=bound, method=method, origin=origin) == 403
        assert ask(HERE, bound=bound, origin=origin) == "passed"


def test_names_that_are_listed_are_answered_and_their_proxy_may_leave_out_its_port(
    ask, monkeypatch
):
    page, front = "https://search.example.org:8443", "https://front.example"
    monkeypatch.setenv(allowed.HOSTS, "Search.example.org, other")
    for host in ("search.example.org", "SEARCH.example.org:443", "other"):
        assert ask(host) == ask(host, kind="websocket") == "passed"
        assert ask(host, kind="websocket", origin=page) == "passed"
        assert ask(host, kind="websocket", origin="http://localhost:3000") == "closed"
        assert ask(host, kind="websocket", origin=front) == "closed"
        assert ask(host, kind="websocket", origin=front, cors=[front]) == "passed"
    assert ask("example.org") == 421
    monkeypatch.setenv(allowed.HOSTS, "*")
    assert ask("example.org") == "passed"


def test_metrics_are_closed_unless_asked_for(ask, monkeypatch):
    for path in ("/_stcore/metrics", "/rankdash/_stcore/metrics", "/_stcore/metrics/"):
        assert ask("localhost", path=path) == 404
    assert ask("localhost", path="/_stcore/health") == "passed"
    monkeypatch.setenv(allowed.METRICS, "1")
    assert ask("localhost", path="/_stcore/metrics") == "passed"
