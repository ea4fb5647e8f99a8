"""Under which names the server answers, and that its metrics are closed."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
import streamlit as st

from rankdash import allowed
from rankdash.shipped import FRONT_VARIABLE
from rankdash.ui.state.guard import Guard


@pytest.fixture
def ask(monkeypatch):
    """What a request gets: "passed", or the status; of a web socket "passed" or "closed"."""
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


@pytest.mark.parametrize("host", OWN)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_this_machine_is_answered(ask, host, kind):
    assert ask(host, kind=kind) == "passed"
    assert ask(host, kind=kind, bound="0.0.0.0") == "passed"


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("bound", ["127.0.0.1", "localhost", "0.0.0.0", "192.168.1.5"])
def test_a_foreign_name_is_refused(ask, host, bound):
    assert ask(host, bound=bound) == 421
    assert ask(host, kind="websocket", bound=bound) == "closed"


def test_no_host_and_one_of_two_that_is_foreign_are_refused(ask):
    assert ask() == 421
    assert ask("localhost", "evil.example") == 421


def test_a_server_for_others_answers_under_its_addresses(ask):
    assert ask("192.168.1.5:8501") == 421
    for bound in ("0.0.0.0", "::", "192.168.1.5"):
        assert ask("192.168.1.5:8501", bound=bound) == "passed"
        assert ask("[fd00::5]", bound=bound) == "passed"
    assert ask("rack7", bound="rack7") == "passed"


def test_one_of_several_servers_answers_as_the_address_that_browsers_reach(ask, monkeypatch):
    """It is itself bound to loopback."""
    monkeypatch.setenv(FRONT_VARIABLE, "0.0.0.0:8501")
    assert ask("192.168.1.5:8501") == "passed"
    assert ask("evil.example") == 421
    monkeypatch.setenv(FRONT_VARIABLE, ":::8501")
    assert ask("[fd00::5]:8501") == "passed"
    monkeypatch.setenv(FRONT_VARIABLE, "127.0.0.1:8501")
    assert ask("192.168.1.5:8501", bound="0.0.0.0") == 421


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


def test_a_proxy_may_leave_out_its_port_where_its_name_is_listed(ask, monkeypatch):
    page, host = "https://search.example.org:8443", "search.example.org"
    monkeypatch.setenv(allowed.HOSTS, "search.example.org")
    for origin, passed in ((page, "passed"), ("http://localhost:3000", "closed")):
        assert ask(host, kind="websocket", origin=origin) == passed
    for cors, passed in (((), "closed"), (["https://front.example"], "passed")):
        assert ask(host, kind="websocket", origin="https://front.example", cors=cors) == passed


def test_names_that_are_listed_are_answered(ask, monkeypatch):
    monkeypatch.setenv(allowed.HOSTS, "Search.example.org, other")
    for host in ("search.example.org", "SEARCH.example.org:443", "other"):
        assert ask(host) == ask(host, kind="websocket") == "passed"
    assert ask("example.org") == 421
    monkeypatch.setenv(allowed.HOSTS, "*")
    assert ask("example.org") == "passed"


def test_metrics_are_closed_unless_asked_for(ask, monkeypatch):
    for path in ("/_stcore/metrics", "/rankdash/_stcore/metrics", "/_stcore/metrics/"):
        assert ask("localhost", path=path) == 404
    assert ask("localhost", path="/_stcore/health") == "passed"
    monkeypatch.setenv(allowed.METRICS, "1")
    assert ask("localhost", path="/_stcore/metrics") == "passed"
