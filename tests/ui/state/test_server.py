"""The server process: its imports, its resources and its messages."""

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import streamlit as st

from rankdash.app import guard, server
from rankdash.core.base import allowed
from rankdash.core.base.errors import StoreError
from rankdash.core.base.shipped import FIRST_VARIABLE, FRONT_VARIABLE
from rankdash.core.workspace.jobs.queue import Queue
from rankdash.kit.widgets import stored as widgets_stored
from tests.sets import ROOT

HEAVY = ("torch", "sentence_transformers", "transformers", "bm25s", "rjieba")


def test_the_server_imports_no_model_library():
    code = (
        "import sys, rankdash.kit.widgets.stored, rankdash.app.sidebar, "
        "rankdash.kit.widgets.view, rankdash.features.queries.page, "
        "rankdash.features.run.page_form, rankdash.features.data.page\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.fixture
def lives(hand, monkeypatch):
    """Return a function that starts and ends the resources of a server bound to an address."""
    monkeypatch.delenv(allowed.HOSTS, raising=False)
    monkeypatch.setenv(allowed.SHARED, "")
    for name in ("prepare", "announce"):
        monkeypatch.setattr(server, name, lambda: None)
    monkeypatch.setattr(server.page_samples, "open_once", lambda _store: None)

    def through(address):
        monkeypatch.setattr(server, "bound_to", lambda: address)

        async def run():
            async with server.lifespan(None):
                return allowed.is_shared()

        # Playwright leaves a loop running in the thread of the tests.
        with ThreadPoolExecutor(1) as apart:
            return apart.submit(asyncio.run, run()).result()

    return through


def test_a_server_that_others_reach_says_so_to_its_worker(lives, monkeypatch):
    assert not lives("127.0.0.1")
    assert not lives("localhost")
    monkeypatch.setenv(allowed.HOSTS, "search.example.org")
    assert lives("127.0.0.1")
    monkeypatch.delenv(allowed.HOSTS)
    for address in ("0.0.0.0", "::", "192.168.1.5", "rack7"):
        monkeypatch.setenv(allowed.SHARED, "")
        assert lives(address)


def test_a_server_ends_quietly_where_its_work_cannot_be_written_off(lives, hand, caplog):
    def stop():
        raise StoreError("There is no room.")

    hand.stop = stop
    lives("127.0.0.1")
    assert [record.getMessage() for record in caplog.records] == ["There is no room."]
    del hand.stop


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("repaired", [True, False])
def test_a_worker_is_started_where_work_waits_for_it(
    lives, hand, stored, workspace, only_shown, waits, repaired
):
    if waits:
        Queue(workspace).submit(dataset_id=stored, name="a", reranker="bm25", settings={},
                                depth=None, sample=None, seed=0)  # fmt: skip
    widgets_stored.reopen() if repaired else lives("127.0.0.1")
    assert hand.asked == waits
    # A read-only workspace gets no worker.
    only_shown()
    widgets_stored.reopen()
    assert hand.asked == waits


@pytest.fixture
def announced(monkeypatch, capsys):
    """Return a function that starts the server with options and returns its output on both streams
    and the pages it opens."""

    def start(address, *, path="", headless=False):
        options = {
            "server.address": address,
            "server.port": 8501,
            "server.baseUrlPath": path,
            "server.headless": headless,
            "server.sslCertFile": None,
        }
        opened = []
        monkeypatch.setattr(st, "get_option", options.__getitem__)
        monkeypatch.setattr(server.webbrowser, "open", opened.append)
        server.announce()
        return *capsys.readouterr(), opened

    return start


def test_the_address_is_printed_and_opened(announced, monkeypatch):
    url = "http://127.0.0.1:8501/tools"
    told = (f"rankdash is at {url} (Ctrl+C ends it)\n", "", [url])
    assert announced("127.0.0.1", path="/tools/") == told
    for address in ("localhost", "::1"):
        assert announced(address, headless=True)[1:] == ("", [])


@pytest.mark.parametrize(
    ("address", "shown", "front"),
    [
        ("0.0.0.0", "localhost:8501", None), ("::", "localhost:8501", None),
        ("192.168.1.4", "192.168.1.4:8501", None), ("2001:db8::1", "[2001:db8::1]:8501", None),
        ("search.example", "search.example:8501", None),
        # One of several servers reports the shared address.
        ("0.0.0.0", "localhost:8600", "0.0.0.0:8600"),
    ],
)  # fmt: skip
def test_who_lets_others_in_is_warned_in_one_line(announced, monkeypatch, address, shown, front):
    if front:
        monkeypatch.setenv(FRONT_VARIABLE, front)
        assert announced("127.0.0.1") == ("", "", [])
        monkeypatch.setenv(FIRST_VARIABLE, "1")
    out, err, opened = announced("127.0.0.1" if front else address)
    assert f"http://{shown}/" in out and opened == [f"http://{shown}/"]
    assert err.startswith(f"warning: Every machine that reaches {address} ")
    assert "--read-only" in err and len(err.splitlines()) == 1


def test_one_of_several_servers_says_to_its_worker_what_the_front_is_bound_to(monkeypatch):
    monkeypatch.setattr(st, "get_option", {"server.address": "127.0.0.1"}.get)
    assert guard.bound_to() == "127.0.0.1"
    monkeypatch.setenv(FRONT_VARIABLE, "0.0.0.0:8600")
    assert guard.bound_to() == "0.0.0.0"
