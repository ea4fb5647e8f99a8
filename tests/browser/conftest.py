"""A real server on a new workspace, a real Chromium, and a check of every request."""

import multiprocessing
import os
import re
import socket
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import ModuleType

import pytest
from playwright.sync_api import Browser, Error, Locator, Page, expect

from rankdash.core.workspace import Workspace
from tests.browser import server
from tests.stored import keep_sample

ROOT = Path(__file__).parents[2]
START_SECONDS = 300
# Only an action that hangs takes this long, however busy the machine is.
PATIENCE_MS = 300_000
# A run on two slow processors.
RUN_MS = 900_000
expect.set_options(timeout=PATIENCE_MS)
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([server.__name__])
# Marks the page from each message to the server until the server's next message.
_LISTENING = """(() => {
  const send = WebSocket.prototype.send;
  const waits = (still) => document.documentElement.toggleAttribute("data-unanswered", still);
  WebSocket.prototype.send = function (message) {
    this.addEventListener("message", () => waits(false), {once: true});
    waits(true);
    return send.call(this, message);
  };
})()"""
_BUSY = """html:is([data-unanswered],
  :has([data-testid='stApp']:not([data-test-script-state='notRunning'])))"""
_STILL = """() => document.getAnimations().every((each) =>
  each.playState !== "running" || each.effect?.getComputedTiming().iterations === Infinity)"""


@dataclass
class App:
    """A running dashboard. `home` is its workspace."""

    url: str
    home: Path
    process: ForkServerProcess


@dataclass
class Visit:
    """One browser tab. `strangers` collects requests to any host but the app's own."""

    page: Page
    url: str
    strangers: list[str] = field(default_factory=list)

    def open(self, path: str = "") -> None:
        self.page.goto(self.url + path)
        self.settle()

    def settle(self) -> None:
        """Wait until the app is idle and nothing moves: an expander that is still opening closes a
        list of choices, within half a second in which no user clicks."""
        # The app is also idle before its first run, when it is still empty.
        expect(self.page.get_by_test_id("stSidebar")).to_be_attached(timeout=PATIENCE_MS)
        expect(self.page.locator(_BUSY)).to_have_count(0, timeout=PATIENCE_MS)
        self.page.wait_for_function(_STILL, timeout=PATIENCE_MS)

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition that no page shows."""
        for _ in range(PATIENCE_MS // 100):
            if holds():
                return
            self.page.wait_for_timeout(100)
        raise AssertionError("it did not happen in time")

    def go(self, name: str) -> None:
        self.page.get_by_test_id("stSidebar").get_by_role("link", name=name).click()
        expect(self.page.get_by_role("heading", name=name, level=1)).to_be_visible()
        self.settle()

    def stops(self, key: str) -> list[str]:
        """Return role, name and state of each stop of the Tab key in the component with a key."""
        part = self.page.locator(f"[class*='st-key-{key}']")
        part.locator("button, input, select, [tabindex='0']").first.focus()
        focused, stops = part.locator(":focus"), []
        # A shadow host has the focus together with its child; a focus trap would never end.
        while focused.count() and len(stops) < 100:
            line = focused.last.aria_snapshot().partition("\n")[0]
            stops.append(re.search(r'\w+( "[^"]*")?( \[\w+\])?', line)[0])
            self.page.keyboard.press("Tab")
        return stops

    def open_settings(self) -> None:
        self.page.get_by_test_id("stSidebar").get_by_text("Settings", exact=True).click()

    def sees(self, text: str, *, timeout: float = PATIENCE_MS) -> Locator:
        found = self.page.get_by_text(text).first
        expect(found).to_be_visible(timeout=timeout)
        return found

    def choose_reranker(self, title: str) -> None:
        """Select this reranker instead of the two default ones."""
        box = self.page.get_by_role("combobox", name="Rerankers")
        for _ in range(2):
            box.click()
            self.page.keyboard.press("Backspace")
            self.settle()
        box.click()
        self.page.get_by_role("option", name=title, exact=True).click()
        self.page.keyboard.press("Escape")
        self.settle()

    @property
    def params(self) -> str:
        """Return the query string of the address, which follows the choices."""
        self.settle()
        return self.page.url.partition("?")[2]


def shop_rows(queries: int = 40, docs: int = 4) -> str:
    """Return CSV of queries with relevant documents at ranks 1 to `docs`."""
    return "query_id,query,doc_id,document,label,score\n" + "".join(
        f"q{q},how to return {q},d{d},document {d},{int(d == q % docs)},{docs - d}\n"
        for q in range(queries)
        for d in range(docs)
    )


def shop_lists(queries: int = 40, step: int = 1) -> list[tuple[str, list[str], list[float]]]:
    """Return lists of a run of four documents. step: 1 puts the relevant document first."""
    return [
        (f"q{q}", [f"d{(q * step + d) % 4}" for d in range(4)], [4.0, 3.0, 2.0, 1.0])
        for q in range(queries)
    ]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _started(home: Path) -> App:
    port = free_port()
    # Not in the workspace: a folder that contains files is not accepted as a new workspace.
    log = _log_of(home)
    environment = {**os.environ, "RANKDASH_HOME": str(home)}
    process = _FORKS.Process(
        target=server.serve, args=(ROOT / "app.py", port, environment, log), daemon=True
    )
    with pytest.MonkeyPatch.context() as patch:
        # A new process runs the __main__ of its parent, which a test of pages may have replaced.
        patch.setitem(sys.modules, "__main__", ModuleType("__main__"))
        process.start()
    url = f"http://127.0.0.1:{port}/"
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.is_alive():
        try:
            with urllib.request.urlopen(url + "_stcore/health", timeout=1):
                return App(url, home, process)
        except OSError:
            time.sleep(0.1)
    process.kill()
    pytest.fail("The app did not start:\n" + log.read_text())


def _log_of(home: Path) -> Path:
    return home.with_name(f"{home.name}.log")


@contextmanager
def serving(home: Path) -> Iterator[App]:
    """Yield a dashboard of the workspace in `home`, and check that no page failed."""
    started = _started(home)
    try:
        yield started
    finally:
        started.process.terminate()
        started.process.join(timeout=15)
        started.process.kill()
    said = _log_of(home).read_text(errors="replace")
    assert "A page failed" not in said, said


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app on a workspace with the sample without its runs; for all tests of a file."""
    # A separate folder, because a folder that contains files is refused as a workspace.
    home = tmp_path_factory.mktemp("file") / "home"
    keep_sample(Workspace(home))
    with serving(home) as started:
        yield started


def new_page(browser: Browser, **settings: object) -> Page:
    """Return a page in a new context. Only an action that hangs reaches its timeout."""
    # Animations take a quarter of the time of Chromium in a visit.
    usual = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
    page = browser.new_context(**{**usual, "locale": "en-US", **settings}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    return page


@contextmanager
def visiting(browser: Browser, app: App, **settings: object) -> Iterator[Visit]:
    """Yield a visit that sends no request to another host."""
    page = new_page(browser, **settings)
    opened = Visit(page, app.url)

    def watch(url: str) -> None:
        if not url.startswith((app.url, "data:", "blob:", app.url.replace("http", "ws", 1))):
            opened.strangers.append(url)

    page.add_init_script(_LISTENING)
    # Clicks and keys while a page is being drawn may be lost: each action waits for the page.
    page.add_locator_handler(page.locator(_BUSY), lambda: None)
    page.on("request", lambda request: watch(request.url))
    page.on("websocket", lambda socket: watch(socket.url))
    try:
        yield opened
    finally:
        page.context.close()
    assert opened.strangers == []


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Add the end of the page to the error of a failed test: Playwright adds the whole tree, and
    reports truncate it."""
    visits = [each for each in getattr(item, "funcargs", {}).values() if isinstance(each, Visit)]
    if call.when != "call" or call.excinfo is None or not visits:
        return
    error = call.excinfo.value
    said = str(error).partition("Aria snapshot:")[0]
    for each in visits:
        with suppress(Error):
            shown = each.page.get_by_test_id("stMain").inner_text()
            said += f"\n{each.page.url}\n…{' | '.join(shown.split(chr(10)))[-3000:]}"
    error.args = (said,)


@pytest.fixture
def visit(browser: Browser, app: App) -> Iterator[Visit]:
    with visiting(browser, app) as opened:
        yield opened
