"""Limits of uploads, with requests as a browser sends them and no field on a page."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.web.server.starlette import starlette_routes

from rankdash.kit.widgets import uploader
from rankdash.kit.widgets.uploader import UploadLimits

MEGABYTE = 1 << 20
HEAD = b'--x\r\nContent-Disposition: form-data; name="f"; filename="a.csv"\r\n\r\n'
TAIL = b"\r\n--x--\r\n"


class Server:
    """Streamlit's own handler of uploads behind the limits, with sessions with drawn pages.
    largest: the server's limit for one file, in MB."""

    largest = 3

    def __init__(self, monkeypatch) -> None:
        self.files = MemoryUploadedFileManager("/upload")
        self.sessions = {"one", "two", "three"}
        self.states = {name: {} for name in self.sessions}
        self.monkeypatch = monkeypatch
        # Replaces Streamlit's runtime and a script's context of its run.
        self.uploaded_file_mgr = self.files
        monkeypatch.setattr(uploader, "runtime", self)
        monkeypatch.setattr(starlette_routes, "is_xsrf_enabled", lambda: False)
        option = st.config.get_option
        monkeypatch.setattr(
            st.config,
            "get_option",
            lambda name: self.largest if name == "server.maxUploadSize" else option(name),
        )
        monkeypatch.setattr(st, "get_option", st.config.get_option)
        routes = starlette_routes.create_upload_routes(self, self.files, None)
        self.app = Starlette(routes=routes, middleware=[Middleware(UploadLimits)])

    def exists(self):
        return True

    def get_instance(self):
        return self

    def is_active_session(self, session):
        return session in self.sessions

    def draw(self, session, *fields):
        """Draw a page with fields for files, with these limits in MB."""
        self.session_id = session
        with self.monkeypatch.context() as patch:
            patch.setattr(uploader, "get_script_run_ctx", lambda: self)
            patch.setattr(st, "session_state", self.states[session])
            uploader.begin_page()
            for megabytes in fields:
                uploader.field(megabytes)
            uploader.end_page()

    def put(self, session, *sizes, stated=True, stops=False):
        """Return the statuses of uploads of these sizes in bytes, sent concurrently in pieces.
        stops: before the last piece."""

        async def every():
            return await asyncio.gather(
                *(self._put(session, name, size, stated, stops) for name, size in enumerate(sizes))
            )

        # Playwright leaves a loop running in the thread of the tests.
        with ThreadPoolExecutor(1) as apart:
            return apart.submit(asyncio.run, every()).result()

    async def _put(self, session, name, size, stated, stops):
        body = HEAD + bytes(size) + TAIL

        async def pieces():
            for at in range(0, len(body), MEGABYTE):
                last = at + MEGABYTE >= len(body)
                await (asyncio.Event().wait() if stops and last else asyncio.sleep(0))
                yield body[at : at + MEGABYTE]

        headers = {"content-type": "multipart/form-data; boundary=x"}
        headers |= {"content-length": str(len(body))} if stated else {}
        browser = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.app), base_url="http://here"
        )
        async with browser:
            path = f"/_stcore/upload_file/{session}/{session}{name}"
            return (await browser.put(path, content=pieces(), headers=headers)).status_code

    def held(self):
        """Return MB in memory, by session."""
        return {
            session: sum(len(file.data) for file in files.values()) / MEGABYTE
            for session, files in self.files.file_storage.items()
        }


@pytest.fixture
def server(monkeypatch):
    made = Server(monkeypatch)
    yield made
    # The fields of a session live as long as its state.
    for state in made.states.values():
        state.clear()


@pytest.mark.parametrize("stated", [True, False])
def test_an_upload_that_no_field_asks_for_or_takes_is_refused(server, stated):
    assert server.put("one", 2 * MEGABYTE, stated=stated) == [403]
    server.draw("one")
    server.draw("two", None)
    assert server.put("one", 2 * MEGABYTE, stated=stated) == [403]
    assert server.put("two", 2 * MEGABYTE, stated=stated) == [204]
    server.draw("three", 1)
    assert server.put("three", 3 * MEGABYTE, stated=stated) == [413]
    assert server.put("three", MEGABYTE, stated=stated) == [204]
    assert server.held() == {"two": 2, "three": 1}


def test_a_page_without_a_field_frees_what_the_last_one_took(server):
    server.draw("one", None)
    assert server.put("one", MEGABYTE) == [204]
    server.draw("one", 1, None)
    assert server.held() == {"one": 1}
    server.draw("one")
    assert server.held() == {}
    assert server.put("one", MEGABYTE) == [403]


@pytest.mark.parametrize("stated", [True, False])
def test_a_session_and_all_of_them_hold_no_more_than_their_limits(server, stated):
    server.largest = 12
    for session in server.sessions:
        server.draw(session, None)
    sent = server.put("one", *[5 * MEGABYTE] * 8, stated=stated)
    assert set(sent) == {204, 413} and server.held()["one"] <= 12
    server.put("two", *[5 * MEGABYTE] * 8, stated=stated)
    server.put("three", *[5 * MEGABYTE] * 8, stated=stated)
    assert sum(server.held().values()) <= 2 * 12
    # Files are not in memory after they are read, so the next ones are accepted.
    for session in server.sessions:
        server.files.remove_session_files(session)
    assert server.put("three", 10 * MEGABYTE, stated=stated) == [204]


def test_what_is_refused_or_breaks_off_counts_no_longer(server):
    server.draw("one", None)
    for _ in range(9):
        assert server.put("one", 5 * MEGABYTE, stated=False) == [413]
    server.sessions.clear()
    # Streamlit refuses a session that it does not know.
    assert server.put("one", MEGABYTE) == [400]
    server.sessions.add("one")
    assert server.put("one", 2 * MEGABYTE) == [204]


def test_an_upload_that_stands_still_is_given_up(server, monkeypatch):
    monkeypatch.setattr(uploader, "IDLE_SECONDS", 0.05)
    server.draw("one", None)
    for _ in range(9):
        assert server.put("one", 2 * MEGABYTE, stops=True) == [408]
    assert server.held() == {}
    monkeypatch.setattr(uploader, "IDLE_SECONDS", 60)
    assert server.put("one", 2 * MEGABYTE) == [204]


def test_uploads_of_a_browser_that_has_left_are_freed(server, monkeypatch):
    monkeypatch.setattr(uploader, "GRACE_SECONDS", 0)
    server.draw("one", None)
    server.draw("two", None)
    assert server.put("one", MEGABYTE) + server.put("two", MEGABYTE) == [204, 204]
    server.sessions.remove("one")

    async def leave():
        async def closed(_scope, _receive, _send):
            pass

        await UploadLimits(closed)({"type": "websocket", "path": "/_stcore/stream"}, None, None)
        await asyncio.sleep(0.01)

    with ThreadPoolExecutor(1) as apart:
        apart.submit(asyncio.run, leave()).result()
    assert server.held() == {"two": 1}
